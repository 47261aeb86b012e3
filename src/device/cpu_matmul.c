/* cpu_matmul.c - products with weights. The work is cut into pieces of a few million products, between which an abort is
 * noticed; pieces, threads and columns do not change any bit (written orders, kernels.h). */
#include "device/cpu.h"

#define PIECE_PRODUCTS (8 << 20)           /* multiply-adds of a piece where rows alone can be cut: a fraction of a millisecond */
#define PIECE_ROWS 64                      /* least rows of a piece: a panel is worth its unpacking */
#define PIECE_MOST_PRODUCTS (128 << 20)    /* with many columns: three milliseconds in floats, one in integers */

void run_encode(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    act_encode_fn f = w->run->k->act_encode[v->p.encode.kind];
    int64_t n = row_values(x) / v->ne[1];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t m = 0; m < v->ne[1]; m++)
            f(row_at(x, w, t, m * n), (char *)value_data(v, w) + t * v->nb[2] + m * v->nb[1], n);
}

/* Columns of a piece: all, or even parts of them where PIECE_ROWS rows of all would take too long. */
static int piece_columns(const mul_args *a)
{
    int64_t most = max64(PIECE_MOST_PRODUCTS / max64(a->k * PIECE_ROWS, 1), 1), parts = max64((a->cols + most - 1) / most, 1);
    return (int)((a->cols + parts - 1) / parts);
}

void cpu_product(worker *w, mul_args a, mul_fn f, range r)
{
    const char *weights = a.w, *x = a.x;
    float *y = a.y;
    int cols = a.cols, step_cols = piece_columns(&a);
    int64_t step_rows = max64(PIECE_ROWS, PIECE_PRODUCTS / max64(a.k * cols, 1) / PIECE_ROWS * PIECE_ROWS);
    for (int64_t i = r.first; i < r.last; i += step_rows) {
        a.rows = (int)min64(step_rows, r.last - i);
        a.w = weights + i * (int64_t)a.w_stride;
        for (int c = 0; c < cols; c += step_cols) {
            if (worker_stopped(w)) return;
            a.cols = (int)min64(step_cols, cols - c);
            a.x = x + (size_t)c * a.x_stride;
            a.y = y + (size_t)c * a.y_stride + i;
            f(&a);
        }
    }
}

void run_matmul(const step *s, worker *w)
{
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    if (v->ne[2] == 0) return;
    mul_args a = {
        .w = value_data(m, w), .w_stride = (size_t)m->nb[1],
        .x = value_data(x, w), .x_stride = (size_t)x->nb[2],
        .y = value_data(v, w), .y_stride = (size_t)v->nb[2] / 4,
        .k = m->ne[0], .cols = (int)v->ne[2], .scratch = w->scratch,
    };
    part p = part_of(s, w);
    cpu_product(w, a, w->run->k->mul[m->type], (range){ p.c0, p.c1 });
}

/* One small product per head: heads are dealt out, or the rows of each where there are fewer heads than threads. */
void run_matmul_heads(const step *s, worker *w)
{
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    mul_fn f = w->run->k->mul[m->type];
    range heads = { 0, v->ne[1] }, rows = { 0, v->ne[0] };
    if (v->ne[1] >= w->nth) heads = range_of(v->ne[1], 1, w->ith, w->nth);
    else rows = range_of(v->ne[0], ROW_UNIT, w->ith, w->nth);
    for (int64_t h = heads.first; h < heads.last; h++) {
        mul_args a = {
            .w = (const char *)value_data(m, w) + h * m->nb[2], .w_stride = (size_t)m->nb[1],
            .x = (const char *)value_data(x, w) + h * x->nb[1], .x_stride = (size_t)x->nb[2],
            .y = (float *)value_data(v, w) + h * v->ne[0], .y_stride = (size_t)v->nb[2] / 4,
            .k = m->ne[0], .cols = (int)v->ne[2], .scratch = w->scratch,
        };
        cpu_product(w, a, f, rows);
    }
}
