/* head.c - the output matrix together with the loss: cross-entropy with sparse targets, `piece` rows at a time.
 *
 *   x rows with targets ─► gather ─► W x ─► scale, bias, cap ─► softmax ─► loss, gradient of the logits in place
 *                                                                  │
 *                       dx ◄─ scatter ◄─ dlogits W ◄───────────────┴──► dW += dlogits^T x
 *
 * Rows without a target are never multiplied, and no more than a piece of logits exists at a time. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "kernels/gemm.h"
#include "kernels/learn.h"
#include "train/trainer.h"

#define PIECE_FLOATS (4 << 20)
#define PIECE_ROWS 512
#define PIECE_LEAST 256

/* ---- finding it ---- */

static bool is_row(const value *x, int64_t n) { return x->op == OP_WEIGHT && x->ne[0] == n && x->ne[1] == 1; }

loam_status head_find(loam_trainer *t, graph *g, value **root, loam_error *err)
{
    head *h = &t->head;
    value *v = g->outputs[OUTPUT_LOGITS];
    if (!v) return fail(err, LOAM_E_UNSUPPORTED, "training: the model has no output matrix");
    h->n_ops = 0;
    for (; v->op != OP_MATMUL; v = v->src[0]) {
        bool fits = v->op == OP_SCALE || v->op == OP_SOFTCAP || (v->op == OP_ADD && is_row(v->src[1], v->ne[0]));
        if (!fits || h->n_ops == HEAD_OPS)
            return fail(err, LOAM_E_UNSUPPORTED, "training: %s behind the output matrix", op_name(v->op));
        head_op *o = &h->ops[h->n_ops++];
        *o = (head_op){ .op = v->op, .a = v->p.f.a };
        if (v->op != OP_ADD) continue;
        tape_weight b = params_bind(t, v->src[1]->p.w);
        o->a = 0, o->bias = b.w, o->bias_grad = b.grad;
    }
    for (int i = 0; i < h->n_ops / 2; i++) {
        head_op swap = h->ops[i];
        h->ops[i] = h->ops[h->n_ops - 1 - i];
        h->ops[h->n_ops - 1 - i] = swap;
    }
    h->w = params_bind(t, v->src[0]->p.w);
    *root = v->src[1]->op == OP_ENCODE ? v->src[1]->src[0] : v->src[1];
    h->width = h->w.w->ne[0], h->classes = h->w.w->ne[1];
    int64_t piece = PIECE_FLOATS / (h->classes > 0 ? h->classes : 1);
    h->piece = (int)(piece > PIECE_ROWS ? PIECE_ROWS : piece < PIECE_LEAST ? PIECE_LEAST : piece);
    return LOAM_OK;
}

/* ---- memory: shared by all threads: logits, rows of x, their gradient, encoded rows ---- */

typedef struct head_space {
    float *logits, *x, *dx;
    uint8_t *encoded;
    size_t encoded_stride;
} head_space;

static size_t cut(const head *h, uint8_t *p, head_space *s)
{
    size_t rows = (size_t)h->piece, logits = mem_padded(rows * (size_t)h->classes * 4), x = mem_padded(rows * (size_t)h->width * 4);
    act_kind act = dtype_table[h->w.w->type].act;
    s->encoded_stride = act == ACT_F32 ? 0 : act_bytes(act, h->width);
    if (p) s->logits = (float *)p, s->x = (float *)(p + logits), s->dx = (float *)(p + logits + x), s->encoded = p + logits + 2 * x;
    return logits + 2 * x + mem_padded(rows * s->encoded_stride);
}

size_t head_shared(const head *h)
{
    head_space s;
    return cut(h, NULL, &s);
}

size_t head_scratch(const head *h)
{
    size_t products = gemm_scratch(), integers = mul_scratch(h->width) + 64, row = mem_padded((size_t)h->classes * 4);
    return (products > integers ? products : integers) + row;
}

/* ---- one piece ---- */

typedef struct piece {
    head *h;
    worker *w;
    head_space s;
    const float *x;
    float *dx;             /* NULL: the loss alone */
    int first, n;          /* of the rows with targets */
} piece;

static range rows_of(const piece *p) { return range_of(p->n, 1, p->w->ith, p->w->nth); }

static void gather(const piece *p)
{
    const head *h = p->h;
    act_kind act = dtype_table[h->w.w->type].act;
    range r = rows_of(p);
    for (int64_t i = r.first; i < r.last; i++) {
        float *row = p->s.x + i * h->width;
        memcpy(row, p->x + h->rows[p->first + i] * h->width, (size_t)h->width * 4);
        if (act != ACT_F32) p->w->run->k->act_encode[act](row, p->s.encoded + (size_t)i * p->s.encoded_stride, h->width);
    }
}

static void logits(const piece *p)
{
    const weight *m = p->h->w.w;
    const kernels *k = p->w->run->k;
    if (dtype_table[m->type].act == ACT_F32) {
        gemm_args a = { .m = p->n, .n = p->h->classes, .k = p->h->width, .a = p->s.x, .a_row = p->h->width, .a_col = 1, .b = m->data,
                        .b_type = m->type, .b_stride = (int64_t)m->row_bytes, .b_turned = true, .c = p->s.logits,
                        .c_stride = p->h->classes };
        gemm(k, &a, p->w->ith, p->w->nth, p->w->scratch);
        return;
    }
    range r = range_of(p->h->classes, ROW_UNIT, p->w->ith, p->w->nth);
    mul_args a = { .w = (const char *)m->data + r.first * (int64_t)m->row_bytes, .w_stride = m->row_bytes, .x = p->s.encoded,
                   .x_stride = p->s.encoded_stride, .y = p->s.logits + r.first, .y_stride = (size_t)p->h->classes, .k = p->h->width,
                   .rows = (int)(r.last - r.first), .cols = p->n, .scratch = p->w->scratch };
    if (a.rows > 0) k->mul[m->type](&a);
}

static void apply_ops(const piece *p, float *z)
{
    const kernels *k = p->w->run->k;
    for (int i = 0; i < p->h->n_ops; i++) {
        const head_op *o = &p->h->ops[i];
        if (o->op == OP_SCALE) k->scale(z, z, o->a, p->h->classes);
        else if (o->op == OP_SOFTCAP) k->softcap(z, z, o->a, p->h->classes);
        else k->add(z, z, o->bias->data, p->h->classes);
    }
}

/* The gradient of the product from that of the logits z: d is changed. A cap stands last where there is one (its value is z),
 * biases are done by columns. */
static void undo_ops(const piece *p, const float *z, float *d)
{
    for (int i = p->h->n_ops - 1; i >= 0; i--) {
        const head_op *o = &p->h->ops[i];
        if (o->op == OP_SCALE) p->w->run->k->scale(d, d, o->a, p->h->classes);
        float inverse = o->op == OP_SOFTCAP ? 1.0f / o->a : 0.0f;
        for (int64_t c = 0; o->op == OP_SOFTCAP && c < p->h->classes; c++) {
            float u = z[c] * inverse;
            d[c] *= 1.0f - u * u;
        }
    }
}

/* Loss of row i; its logits become their gradient. With smoothing e the target is (1 - e) at the label plus e everywhere. */
static void row_loss(const piece *p, int64_t i)
{
    head *h = p->h;
    int64_t n = h->classes, at = p->first + i;
    const learn_kernels *l = p->w->run->k->learn;
    float *z = p->s.logits + i * n, *own = (float *)(p->w->scratch + (head_scratch(h) - mem_padded((size_t)n * 4))), top;
    int32_t label = h->labels[at];
    float weight_ = h->weights[at], e = p->dx ? h->smoothing : 0.0f;
    apply_ops(p, z);
    memcpy(own, z, (size_t)n * 4);
    float sum = l->exp_sum(z, own, &top, n);
    double lse = top + mathd_ln(sum), loss = lse - own[label];
    if (e > 0.0f) loss = (1.0 - (double)e) * loss + (double)e * (lse - (double)l->sum(own, n) / (double)n);
    h->losses[at] = sum > 0.0f && sum < INFINITY ? (float)loss : NAN;
    h->correct[at] = own[label] == top;
    if (!p->dx) return;
    p->w->run->k->scale(z, z, weight_ / sum, n);
    for (int64_t c = 0; e > 0.0f && c < n; c++) z[c] -= weight_ * e / (float)n;
    z[label] -= weight_ * (1.0f - e);
    undo_ops(p, own, z);
}

static void products_back(const piece *p)
{
    head *h = p->h;
    const kernels *k = p->w->run->k;
    const weight *m = h->w.w;
    gemm_args a = { .m = p->n, .n = h->width, .k = h->classes, .a = p->s.logits, .a_row = h->classes, .a_col = 1, .b = m->data,
                    .b_type = m->type, .b_stride = (int64_t)m->row_bytes, .c = p->s.dx, .c_stride = h->width };
    gemm(k, &a, p->w->ith, p->w->nth, p->w->scratch);
    if (h->w.grad) {
        gemm_args d = { .m = h->classes, .n = h->width, .k = p->n, .a = p->s.logits, .a_row = 1, .a_col = h->classes, .b = p->s.x,
                        .b_type = LOAM_F32, .b_stride = h->width * 4, .c = h->w.grad, .c_stride = h->width, .add = true };
        gemm(k, &d, p->w->ith, p->w->nth, p->w->scratch);
    }
}

/* undo_ops went back to the product: at the bias, the scales between the two are not yet in the gradient. */
static void bias_back(const piece *p)
{
    float scale = 1.0f;
    for (int i = 0; i < p->h->n_ops; i++) {
        const head_op *o = &p->h->ops[i];
        if (o->op == OP_SCALE) scale *= o->a;
        if (o->op != OP_ADD || !o->bias_grad) continue;
        range c = range_of(p->h->classes, ROW_UNIT, p->w->ith, p->w->nth);
        for (int r = 0; r < p->n; r++)
            p->w->run->k->axpy(o->bias_grad + c.first, p->s.logits + (int64_t)r * p->h->classes + c.first, 1.0f / scale, c.last - c.first);
    }
}

static void scatter(const piece *p)
{
    range r = rows_of(p);
    for (int64_t i = r.first; i < r.last; i++)
        memcpy(p->dx + p->h->rows[p->first + i] * p->h->width, p->s.dx + i * p->h->width, (size_t)p->h->width * 4);
}

void head_loss(void *trainer, worker *w, const float *x, float *dx)
{
    head *h = &((loam_trainer *)trainer)->head;
    piece p = { .h = h, .w = w, .x = x, .dx = dx };
    cut(h, w->run->shared, &p.s);
    range all = range_of(h->n_tokens * h->width, ROW_UNIT, w->ith, w->nth);
    if (dx) memset(dx + all.first, 0, (size_t)(all.last - all.first) * 4);
    for (p.first = 0; p.first < h->n; p.first += h->piece) {
        p.n = h->n - p.first < h->piece ? h->n - p.first : h->piece;
        gather(&p);
        worker_barrier(w);
        logits(&p);
        worker_barrier(w);
        range r = rows_of(&p);
        for (int64_t i = r.first; i < r.last; i++) row_loss(&p, i);
        worker_barrier(w);
        if (!dx) continue;
        products_back(&p);
        bias_back(&p);
        worker_barrier(w);
        scatter(&p);
    }
}
