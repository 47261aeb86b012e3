/* cpu_matmul.c - products with weights. The work is cut into pieces of a few million products, between which an abort is
 * noticed; pieces, threads and columns do not change any bit (written orders, kernels.h). */
#include "device/cpu.h"

#define PIECE_PRODUCTS (8 << 20) /* multiply-adds of one piece: a millisecond or less */

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

/* Rows [first, last) of one product, in pieces. a holds all but w, y and rows. */
static void rows_of_product(worker *w, mul_args a, mul_fn f, range r)
{
    const char *weights = a.w;
    float *y = a.y;
    int64_t per_row = a.k * a.cols, unit = 64;
    int64_t step_rows = max64(unit, PIECE_PRODUCTS / max64(per_row, 1) / unit * unit);
    for (int64_t i = r.first; i < r.last && !worker_stopped(w); i += step_rows) {
        a.rows = (int)min64(step_rows, r.last - i);
        a.w = weights + i * (int64_t)a.w_stride;
        a.y = y + i;
        f(&a);
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
    rows_of_product(w, a, w->run->k->mul[m->type], range_of(v->ne[0], ROW_UNIT, w->ith, w->nth));
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
        rows_of_product(w, a, f, rows);
    }
}
