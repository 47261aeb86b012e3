/* blas.c - an accelerator of large products of floats: OpenBLAS, loaded when a set of devices asks for it. Each thread makes
 * its rows by one call; the library runs on one thread. Its sums are in another order than Loam's: other bits, the same
 * values (normalised mean squared error below 1e-10). */
#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"
#include "device/set.h"

#define LEAST_COLUMNS 32
#define LEAST_WIDTH 64

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                         float beta, float *c, int ldc);

/* The code of the device, with the function that it calls. */
typedef struct blas {
    device code;
    void *library;
    sgemm_fn sgemm;
} blas;

bool blas_supports(const value *v)
{
    if (v->op != OP_MATMUL) return false;
    const value *w = v->src[0];
    return w->type == LOAM_F32 && v->ne[2] >= LEAST_COLUMNS && v->ne[0] >= LEAST_WIDTH && w->ne[0] >= LEAST_WIDTH && w->ne[0] <= INT32_MAX / 4 &&
           v->ne[0] <= INT32_MAX / 4 && v->ne[2] <= INT32_MAX / 4;
}

/* y[t][r] = sum over k of x[t][k] w[r][k]: row-major, the second operand transposed. */
static void run_blas(const step *s, worker *w)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    range r = range_of(v->ne[0], ROW_UNIT, w->ith, w->nth);
    if (r.first == r.last) return;
    const float *rows = (const float *)((const char *)value_data(m, w) + r.first * m->nb[1]);
    const blas *b = (const blas *)w->run->p->dev;
    b->sgemm(ROW_MAJOR, AS_IT_IS, TRANSPOSED, (int)v->ne[2], (int)(r.last - r.first), (int)m->ne[0], 1.0f, value_data(x, w),
                        (int)(x->nb[2] / 4), rows, (int)(m->nb[1] / 4), 0.0f, (float *)value_data(v, w) + r.first, (int)(v->nb[2] / 4));
}

static run_fn kernel(op_kind op) { return op == OP_MATMUL ? run_blas : NULL; }

static size_t no_scratch(const value *v, int n_threads)
{
    (void)v;
    (void)n_threads;
    return 0;
}

static size_t no_shared(const value *v, int n_threads, int64_t max_pages)
{
    (void)max_pages;
    return no_scratch(v, n_threads);
}

loam_status blas_open(loam_devices *set, loam_error *err)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so" };
    blas *b = set->blas = mem_zalloc(sizeof *b);
    if (!b) return fail_nomem(err, "a device", sizeof *b);
    b->code = (device){ .name = "blas", .description = "OpenBLAS", .kernel = kernel, .scratch = no_scratch, .shared = no_shared };
    for (size_t i = 0; i < 2 && !b->library; i++) b->library = os_library_open(names[i]);
    if (!b->library) return fail(err, LOAM_E_UNSUPPORTED, "devices: blas needs the OpenBLAS library (%s)", names[0]);
    void *f = os_library_symbol(b->library, "cblas_sgemm"), *threads = os_library_symbol(b->library, "openblas_set_num_threads");
    if (!f) return fail(err, LOAM_E_UNSUPPORTED, "devices: %s has no cblas_sgemm", names[0]);
    if (threads) ((void (*)(int))threads)(1);
    b->sgemm = (sgemm_fn)f;
    return LOAM_OK;
}

void blas_close(loam_devices *set)
{
    if (set->blas && set->blas->library) os_library_close(set->blas->library);
    mem_free(set->blas);
    set->blas = NULL;
}

const device *blas_code(const loam_devices *set) { return &set->blas->code; }
