/* muon.c - see muon.h. For a matrix of r x c, r <= c after turning: X = M / |M|, then five times
 *
 *   G = X X^T,  X = a X + (b G + c G G) X      a, b, c = 3.4445, -4.7750, 2.0315
 *
 * which pushes the singular values towards 1. The update is X times sqrt(max(1, rows / columns)) of the matrix as stored. */
#include "train/muon.h"

#include "base/mem.h"
#include "kernels/gemm.h"
#include "kernels/learn.h"

#define STEPS 5

loam_status muon_prepare(const loam_trainer *t, muon_space *s, loam_error *err)
{
    uint64_t most = 0, gram = 0;
    for (size_t i = 0; i < t->n_params; i++) {
        const param *p = &t->params[i];
        if (!p->matrix) continue;
        uint64_t a = (uint64_t)p->w.ne[0], b = (uint64_t)p->w.ne[1], low = a < b ? a : b;
        if (a * b > most) most = a * b;
        if (low * low > gram) gram = low * low;
    }
    s->x = mem_alloc_array(2 * most, 4);
    s->gram = mem_alloc_array(gram, 4);
    s->square = mem_alloc_array(gram, 4);
    s->scratch = mem_alloc_array((size_t)t->n_threads, mem_padded(gemm_scratch()));
    if (s->x && s->gram && s->square && s->scratch) return LOAM_OK;
    muon_release(s);
    return fail_nomem(err, "a Muon step", (2 * most + 2 * gram) * 4);
}

void muon_release(muon_space *s)
{
    mem_free(s->x);
    mem_free(s->gram);
    mem_free(s->square);
    mem_free(s->scratch);
    *s = (muon_space){ 0 };
}

typedef struct muon_job {
    loam_trainer *t;
    muon_space *s;
    const kernels *k;
    float *x, *y;          /* the matrix and the next one, [r][c] */
    int64_t r, c;
    int threads;
} muon_job;

/* One product on all threads, which meet behind it. */
static void product(muon_job *j, const gemm_args *a, int ith)
{
    size_t stride = mem_padded(gemm_scratch());
    gemm(j->k, a, ith, j->threads, j->s->scratch + (size_t)ith * stride);
    if (j->threads > 1) pool_barrier(j->t->threads, ith);
}

static gemm_args square_args(int64_t m, int64_t n, int64_t k, const float *a, const float *b)
{
    return (gemm_args){ .m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .b = b, .b_type = LOAM_F32, .b_stride = n * 4, .c_stride = n };
}

static void newton_schulz(void *arg, int ith, int nth)
{
    muon_job *j = arg;
    if (ith == 0) j->threads = nth;
    int64_t r = j->r, c = j->c;
    float *gram = j->s->gram, *square = j->s->square, *x = j->x, *y = j->y;
    if (nth > 1) pool_barrier(j->t->threads, ith);
    for (int i = 0; i < STEPS; i++) {
        gemm_args g = { .m = r, .n = r, .k = c, .a = x, .a_row = c, .a_col = 1, .b = x, .b_type = LOAM_F32, .b_stride = c * 4,
                        .b_turned = true, .c = gram, .c_stride = r };
        product(j, &g, ith);
        gemm_args s = square_args(r, r, r, gram, gram);
        s.c = square;
        product(j, &s, ith);
        range part = range_of(r * r, ROW_UNIT, ith, nth);
        j->k->scale(square + part.first, square + part.first, 2.0315f, part.last - part.first);
        j->k->axpy(square + part.first, gram + part.first, -4.7750f, part.last - part.first);
        range all = range_of(r * c, ROW_UNIT, ith, nth);
        j->k->scale(y + all.first, x + all.first, 3.4445f, all.last - all.first);
        if (nth > 1) pool_barrier(j->t->threads, ith);
        gemm_args n = square_args(r, c, r, square, x);
        n.c = y, n.add = true;
        product(j, &n, ith);
        float *swap = x;
        x = y, y = swap;
    }
    if (nth > 1) pool_barrier(j->t->threads, ith);
    if (ith == 0) j->x = x;
}

/* X = M / |M|, rows along the smaller extent. */
static void load(muon_job *j, const float *m, int64_t rows, int64_t cols)
{
    double norm = __builtin_sqrt(j->k->learn->square_sum(m, rows * cols)) + 1e-7;
    float inverse = (float)(1.0 / norm);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++) j->x[rows <= cols ? i * cols + k : k * rows + i] = m[i * cols + k] * inverse;
}

static loam_status one_matrix(muon_job *j, param *p, uint64_t first, float g_scale, double rate)
{
    const loam_trainer_params *tp = &j->t->p;
    int64_t cols = p->w.ne[0], rows = p->w.ne[1], n = rows * cols;
    float *m = p->m + first, *g = p->grad + first, *w = p->data + first;
    j->k->scale(g, g, g_scale, n);
    j->k->scale(m, m, tp->momentum, n);
    j->k->add(m, m, g, n);
    if (tp->nesterov) j->k->axpy(g, m, tp->momentum, n);
    j->x = j->s->x, j->y = j->s->x + n;
    j->r = rows <= cols ? rows : cols, j->c = rows <= cols ? cols : rows;
    load(j, tp->nesterov ? g : m, rows, cols);
    loam_status status = pool_run_n(j->t->threads, j->t->n_threads, newton_schulz, j);
    if (status != LOAM_OK) return status;
    double own = rate * tp->muon_rate, size = rows > cols ? __builtin_sqrt((double)rows / (double)cols) : 1.0;
    float keep = p->decays ? (float)(1.0 - own * tp->weight_decay) : 1.0f, move = (float)(own * size);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            w[i * cols + k] = w[i * cols + k] * keep - move * j->x[rows <= cols ? i * cols + k : k * rows + i];
    return LOAM_OK;
}

loam_status muon_step(loam_trainer *t, muon_space *s, float g_scale, double rate)
{
    muon_job j = { .t = t, .s = s, .k = kernels_get() };
    for (size_t i = 0; i < t->n_params; i++) {
        param *p = &t->params[i];
        if (!p->matrix) continue;
        uint64_t plane = (uint64_t)(p->w.ne[0] * p->w.ne[1]);
        for (uint64_t first = 0; first < p->n; first += plane) {
            loam_status status = one_matrix(&j, p, first, g_scale, rate);
            if (status != LOAM_OK) return status;
        }
    }
    return LOAM_OK;
}
