/* grad_matmul.c - products in training: y = W x as one large product of floats, and its two gradients.
 *
 *   forward       y  [T x out]  =  x  [T x in]   W^T
 *   of the input  dx [T x in]  (+)= dy [T x out]  W       W may be of any type: decoded as it is packed
 *   of the weight dW [out x in] += dy^T           x       tokens ascend, so that batches may be cut anywhere
 *
 * Weights of block types take the integer products of inference, so that the model is trained as it will run; the gradient
 * goes straight through the rounding of activations. */
#include "device/grad.h"

/* Floats from row to row of the gradient of a matrix: a weight's is whole, whatever type products read. */
static int64_t row_floats(const value *m) { return m->op == OP_WEIGHT ? m->ne[0] : m->nb[1] / 4; }
static int64_t plane_floats(const value *m) { return m->op == OP_WEIGHT ? m->ne[0] * m->ne[1] : m->nb[2] / 4; }

void learn_matmul(const step *s, worker *w)
{
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    if (!is_float_weight(m->type)) {
        run_matmul(s, w);
        return;
    }
    gemm_args a = {
        .m = v->ne[2], .n = v->ne[0], .k = m->ne[0], .a = value_data(x, w), .a_row = x->nb[2] / 4, .a_col = 1,
        .b = value_data(m, w), .b_type = m->type, .b_stride = m->nb[1], .b_turned = true,
        .c = value_data(v, w), .c_stride = v->nb[2] / 4,
    };
    gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
}

void grad_matmul(const grad_step *g, worker *w)
{
    const value *v = g->v, *m = g->in[0], *x = g->in[1];
    if (g->dx[1]) {
        gemm_args a = {
            .m = v->ne[2], .n = m->ne[0], .k = v->ne[0], .a = g->dy, .a_row = v->nb[2] / 4, .a_col = 1,
            .b = value_data(m, w), .b_type = m->type, .b_stride = m->nb[1], .c = g->dx[1], .c_stride = x->nb[2] / 4,
            .add = grad_adds(g, 1),
        };
        gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
    }
    if (g->dx[0]) {
        gemm_args a = {
            .m = v->ne[0], .n = m->ne[0], .k = v->ne[2], .a = g->dy, .a_row = 1, .a_col = v->nb[2] / 4,
            .b = value_data(x, w), .b_type = LOAM_F32, .b_stride = x->nb[2], .c = g->dx[0], .c_stride = row_floats(m), .add = grad_adds(g, 0),
        };
        gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
    }
}

/* ---- one product per head ---- */

void learn_matmul_heads(const step *s, worker *w)
{
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    if (!is_float_weight(m->type)) {
        run_matmul_heads(s, w);
        return;
    }
    for (int64_t h = 0; h < v->ne[1]; h++) {
        gemm_args a = {
            .m = v->ne[2], .n = v->ne[0], .k = m->ne[0],
            .a = (const float *)((const char *)value_data(x, w) + h * x->nb[1]), .a_row = x->nb[2] / 4, .a_col = 1,
            .b = (const char *)value_data(m, w) + h * m->nb[2], .b_type = m->type, .b_stride = m->nb[1], .b_turned = true,
            .c = (float *)value_data(v, w) + h * v->ne[0], .c_stride = v->nb[2] / 4,
        };
        gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
    }
}

void grad_matmul_heads(const grad_step *g, worker *w)
{
    const value *v = g->v, *m = g->in[0], *x = g->in[1];
    for (int64_t h = 0; h < v->ne[1]; h++) {
        const float *dy = g->dy + h * v->ne[0];
        if (g->dx[1]) {
            gemm_args a = {
                .m = v->ne[2], .n = m->ne[0], .k = v->ne[0], .a = dy, .a_row = v->nb[2] / 4, .a_col = 1,
                .b = (const char *)value_data(m, w) + h * m->nb[2], .b_type = m->type, .b_stride = m->nb[1],
                .c = (float *)((char *)g->dx[1] + h * x->nb[1]), .c_stride = x->nb[2] / 4, .add = grad_adds(g, 1),
            };
            gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
        }
        if (g->dx[0]) {
            gemm_args a = {
                .m = v->ne[0], .n = m->ne[0], .k = v->ne[2], .a = dy, .a_row = 1, .a_col = v->nb[2] / 4,
                .b = (const char *)value_data(x, w) + h * x->nb[1], .b_type = LOAM_F32, .b_stride = x->nb[2],
                .c = g->dx[0] + h * plane_floats(m), .c_stride = row_floats(m), .add = grad_adds(g, 0),
            };
            gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
        }
    }
}
