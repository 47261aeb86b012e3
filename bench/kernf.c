/* kernf.c - speed of the float kernels of every set, one thread: products, attention, rows.
 *
 * Usage: kernf [set]. Every figure is the best of several runs of about 20 ms. Sizes are in cache unless a line says
 * memory. GFLOP/s counts a multiply-add as two; GB/s counts the bytes of weights, pages or rows that are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "kernels/kernels.h"

typedef void (*run_fn)(void *arg);

/* Seconds of one call. */
static double time_of(run_fn run, void *arg)
{
    double best = 1e30;
    int calls = 1;
    for (int turn = 0; turn < 8; turn++) {
        uint64_t start = os_now_ns();
        for (int i = 0; i < calls; i++) run(arg);
        double seconds = (double)(os_now_ns() - start) * 1e-9;
        if (seconds / calls < best) best = seconds / calls;
        if (seconds < 0.015) {
            calls = (int)(calls * (seconds > 1e-7 ? 0.02 / seconds : 1000)) + 1;
            turn = 0;
        }
    }
    return best;
}

static float *floats(size_t n)
{
    float *p = mem_alloc_array(n, sizeof *p);
    if (!p) exit(1);
    uint32_t s = 1;
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        p[i] = (float)(int32_t)s * 0x1p-31f;
    }
    return p;
}

/* ---- products ---- */

typedef struct mul_bench {
    mul_fn fn;
    mul_args args;
} mul_bench;

static void run_mul(void *arg)
{
    mul_bench *b = arg;
    b->fn(&b->args);
}

static void bench_mul(const kernels *k, loam_type type, int rows, int cols, int64_t n)
{
    size_t size = (size_t)dtype_table[type].bytes * (size_t)n;
    float *x = floats((size_t)(n + 16) * (size_t)cols), *y = floats((size_t)rows * (size_t)cols);
    float *w = floats((size_t)rows * (size_t)n);
    if (type != LOAM_F32) k->encode[type](w, w, (int64_t)rows * n); /* in place: narrower */
    mul_bench b = { k->mul[type], { .w = w, .w_stride = size, .x = x, .x_stride = 4 * (size_t)n + 64, .y = y,
                                    .y_stride = (size_t)rows, .k = n,
                                    .rows = rows, .cols = cols, .scratch = mem_alloc(mul_scratch(n)) } };
    double t = time_of(run_mul, &b);
    printf("%-10s mul  %-5s %6d x %5lld, %4d columns  %7.1f GFLOP/s  %6.1f GB/s\n", k->name, loam_type_name((int)type), rows,
           (long long)n, cols, 2e-9 * rows * cols * (double)n / t, 1e-9 * rows * (double)size / t);
    mem_free(b.args.scratch);
    mem_free(x);
    mem_free(y);
    mem_free(w);
}

/* ---- attention ---- */

typedef struct attn_bench {
    attn_fn fn;
    attn_args args;
    const uint8_t *k, *v;
    size_t k_bytes, v_bytes;
    int pages;
} attn_bench;

static void run_attn(void *arg)
{
    attn_bench *b = arg;
    for (int i = 0; i < b->pages; i++) {
        b->args.page.k = b->k + (size_t)i * b->k_bytes;
        b->args.page.v = b->v + (size_t)i * b->v_bytes;
        b->args.next = i + 1 < b->pages ? (page_head){ b->k + (size_t)(i + 1) * b->k_bytes, b->v + (size_t)(i + 1) * b->v_bytes } : (page_head){ NULL, NULL };
        b->fn(&b->args);
    }
}

static void bench_attn(const kernels *k, loam_type type, int dim, int n_q, bool causal, int pages)
{
    uint64_t bytes = 0;
    size_t n = (size_t)n_q, values = (size_t)dim * PAGE_SLOTS;
    if (!k->decode[type] || !k->encode[type] || !dtype_row_bytes(type, (int64_t)values, &bytes)) return;
    float *page = floats(values), *q = floats(n * (size_t)dim), *o = floats(n * (size_t)dim), *ms = floats(2 * n);
    uint8_t *data = mem_alloc(2 * (size_t)pages * bytes);
    uint64_t *visible = mem_alloc_array(n, sizeof *visible);
    for (size_t i = 0; i < n; i++) visible[i] = causal ? UINT64_MAX >> (63 - i % 64) : UINT64_MAX;
    for (int i = 0; i < 2 * pages; i++) k->encode[type](page, data + (size_t)i * bytes, (int64_t)values);
    attn_bench b = { k->attn, { .k_type = type, .v_type = type, .k_dim = dim, .v_dim = dim, .q = q, .q_stride = (size_t)dim,
                                .n_q = n_q, .visible = visible, .m = ms, .s = ms + n, .o = o, .o_stride = (size_t)dim,
                                .scratch = mem_alloc(attn_scratch(dim, dim)) },
                     data, data + (size_t)pages * bytes, bytes, bytes, pages };
    double t = time_of(run_attn, &b) / pages;
    printf("%-10s attn %-5s dim %3d, %3d queries%s, %s  %7.1f GFLOP/s  %6.1f GB/s  %7.2f us a page\n", k->name,
           loam_type_name((int)type), dim, n_q, causal ? " causal" : "", pages > 1000 ? "memory" : "cache ",
           4e-9 * n_q * (double)values / t, 2e-9 * (double)bytes / t, 1e6 * t);
    mem_free(b.args.scratch);
    mem_free(page);
    mem_free(q);
    mem_free(o);
    mem_free(ms);
    mem_free(data);
    mem_free(visible);
}

/* ---- rows ---- */

typedef struct row_bench {
    const kernels *k;
    int which, n;
    float *a, *b, *y;
} row_bench;

static const char *const row_names[] = { "rms_norm", "layer_norm", "silu*up", "gelu*up", "gelu_erf", "softmax", "softcap",
                                         "rope neox", "rope pairs", "add", "axpy",
                                         "encode f16", "decode f16", "encode bf16", "merge" };

static void run_row(void *arg)
{
    row_bench *r = arg;
    const kernels *k = r->k;
    int64_t n = r->n;
    switch (r->which) {
    case 0: k->rms_norm(r->y, r->a, r->b, NULL, n, 1e-6f); break;
    case 1: k->layer_norm(r->y, r->a, r->b, r->b, n, 1e-6f); break;
    case 2: k->silu(r->y, r->a, r->b, n); break;
    case 3: k->gelu(r->y, r->a, r->b, n); break;
    case 4: k->gelu_erf(r->y, r->a, NULL, n); break;
    case 5: k->softmax(r->y, r->a, n); break;
    case 6: k->softcap(r->y, r->a, 30.0f, n); break;
    case 7: k->rope(r->y, r->a, r->b, (int)n / 2, true); break;
    case 8: k->rope(r->y, r->a, r->b, (int)n / 2, false); break;
    case 9: k->add(r->y, r->a, r->b, n); break;
    case 10: k->axpy(r->y, r->a, 0.0f, n); break;
    case 11: k->encode[LOAM_F16](r->a, r->y, n); break;
    case 12: k->decode[LOAM_F16](r->a, r->y, n); break;
    case 13: k->encode[LOAM_BF16](r->a, r->y, n); break;
    default: k->attn_merge((attn_state){ r->y, r->y + 1, r->y + 2 }, (attn_part){ 0.0f, 0.0f, r->a }, r->n - 2); break;
    }
}

static void bench_rows(const kernels *k)
{
    row_bench r = { k, 0, 4096, floats(4096), floats(4096), floats(4096) };
    for (r.which = 0; r.which < (int)(sizeof row_names / sizeof row_names[0]); r.which++) {
        memcpy(r.y, r.b, 4096 * sizeof *r.y);
        double t = time_of(run_row, &r);
        printf("%-10s row  %-11s %d values  %8.1f ns  %6.2f values/ns\n", k->name, row_names[r.which], r.n, 1e9 * t,
               r.n / t * 1e-9);
    }
    mem_free(r.a);
    mem_free(r.b);
    mem_free(r.y);
}

int main(int argc, char **argv)
{
    static const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_BF16 };
    for (int i = 0; kernels_set_name(i); i++) {
        const kernels *k = kernels_for(kernels_set_name(i));
        if (!k || (argc > 1 && strcmp(argv[1], k->name))) continue;
        for (int t = 0; t < 3; t++) {
            static const int cols[] = { 1, 2, 4, 6, 8, 16, 48, 512 };
            for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) bench_mul(k, types[t], 256, cols[c], 2048);
            bench_mul(k, types[t], 16384, 1, 4096);
            bench_mul(k, types[t], 256, 512, 8192);
        }
        for (int dim = 64; dim <= 128; dim += 64) {
            bench_attn(k, LOAM_F16, dim, 1, false, 16);
            bench_attn(k, LOAM_F16, dim, 4, false, 16);
            bench_attn(k, LOAM_F16, dim, 8, false, 16);
            bench_attn(k, LOAM_F16, dim, 4, false, 4096);
            bench_attn(k, LOAM_F16, dim, 64, false, 16);
            bench_attn(k, LOAM_F16, dim, 64, true, 16);
            bench_attn(k, LOAM_F16, dim, 128, false, 16);
            bench_attn(k, LOAM_F32, dim, 4, false, 16);
            static const loam_type blocks[] = { LOAM_Q8_0, LOAM_Q5_1, LOAM_Q5_0, LOAM_Q4_1, LOAM_Q4_0, LOAM_IQ4_NL };
            for (int t = 0; t < 6; t++) {
                bench_attn(k, blocks[t], dim, 4, false, 16);
                bench_attn(k, blocks[t], dim, 4, false, 4096);
                bench_attn(k, blocks[t], dim, 64, false, 16);
            }
            bench_attn(k, LOAM_F32, dim, 64, false, 16);
            bench_attn(k, LOAM_BF16, dim, 4, false, 16);
            bench_attn(k, LOAM_Q8_0, dim, 4, false, 16);
            bench_attn(k, LOAM_Q8_0, dim, 64, false, 16);
        }
        bench_attn(k, LOAM_F16, 256, 4, false, 16);
        bench_attn(k, LOAM_F16, 256, 64, false, 16);
        bench_rows(k);
    }
    return 0;
}
