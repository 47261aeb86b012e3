/* grad_attn.c - attention in training, forward and backward (Dao et al. 2022): tiles of TILE x TILE scores, never all of them.
 *
 * Tokens of one run of the batch (a document) see each other as their positions say; keys and values come from where they
 * are made, no cache stands between. The forward pass leaves L = ln sum exp(score) for each token and head; the backward
 * pass makes the scores again, P = exp(S - L), and with D = dO . O:
 *
 *   dV = P^T dO      dS = P (dO V^T - D)      dQ = scale dS K      dK = scale dS^T Q
 *
 * An item is a run with one head (forward) or one key-value head (backward: its query heads add to the same dK and dV, in
 * order), and belongs to one thread. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "device/grad.h"

#define TILE 64

typedef struct rows {
    float *p;          /* first value of this head for the first token of the run */
    int64_t stride;    /* floats from token to token */
} rows;

typedef struct scene {
    const attention_params *p;
    const kernels *k;
    const int32_t *pos;            /* of the run */
    int count;                     /* tokens of the run */
    rows q, key, val, o;
    float *lse;                    /* L of this head, tokens n_head floats apart */
    float slope;                   /* ALiBi */
    float *s, *ds, *d, *m, *sum;   /* scratch: two tiles, D of the run, state of a tile's rows */
    void *gemm;
} scene;

size_t learn_attention_scratch(const attention_params *p, int n_tokens)
{
    (void)p;
    return gemm_scratch() + 64 + 2 * TILE * TILE * 4 + mem_padded((size_t)n_tokens * 4) + 2 * TILE * 4;
}

static void lay_out(scene *c, void *scratch, int n_tokens)
{
    uint8_t *p = scratch;
    c->s = (float *)p, p += TILE * TILE * 4;
    c->ds = (float *)p, p += TILE * TILE * 4;
    c->m = (float *)p, p += TILE * 4;
    c->sum = (float *)p, p += TILE * 4;
    c->d = (float *)p, p += mem_padded((size_t)n_tokens * 4);
    c->gemm = p;
}

static rows rows_of(const value *v, float *base, int64_t first, int64_t head)
{
    return (rows){ (float *)((char *)base + first * v->nb[2] + head * v->nb[1]), v->nb[2] / 4 };
}

/* ---- which tiles and scores there are; positions of a run ascend ---- */

/* A tile: queries from q0, keys from k0. */
typedef struct tile {
    int q0, nq, k0, nk;
} tile;

typedef enum cover { COVER_NONE, COVER_SOME, COVER_ALL } cover;

static tile tile_of(const scene *c, int q0, int k0)
{
    return (tile){ q0, c->count - q0 < TILE ? c->count - q0 : TILE, k0, c->count - k0 < TILE ? c->count - k0 : TILE };
}

static cover cover_of(const scene *c, const tile *t)
{
    const attention_params *p = c->p;
    int32_t qa = c->pos[t->q0], qz = c->pos[t->q0 + t->nq - 1], ka = c->pos[t->k0], kz = c->pos[t->k0 + t->nk - 1];
    if (p->causal && ka > qz) return COVER_NONE;
    if (p->window == WINDOW_STANDARD && (int64_t)qa - kz >= p->window_size) return COVER_NONE;
    if (p->window == WINDOW_CHUNKED && kz < qa / p->window_size * p->window_size) return COVER_NONE;
    if (p->window != WINDOW_NONE && p->window != WINDOW_STANDARD) return COVER_SOME;
    if (p->causal && kz > qa) return COVER_SOME;
    if (p->window == WINDOW_STANDARD && (int64_t)qz - ka >= p->window_size) return COVER_SOME;
    return COVER_ALL;
}

/* S = cap(scale q k) + bias, -inf where masked; with `cap_slope` the derivative of the cap goes there. */
static void scores(const scene *c, const tile *t, cover seen, float *cap_slope)
{
    const attention_params *p = c->p;
    int q0 = t->q0, nq = t->nq, k0 = t->k0, nk = t->nk;
    gemm_args a = {
        .m = nq, .n = nk, .k = p->k_dim, .a = c->q.p + q0 * c->q.stride, .a_row = c->q.stride, .a_col = 1,
        .b = c->key.p + k0 * c->key.stride, .b_type = LOAM_F32, .b_stride = c->key.stride * 4, .b_turned = true,
        .c = c->s, .c_stride = TILE,
    };
    gemm(c->k, &a, 0, 1, c->gemm);
    for (int i = 0; i < nq; i++) {
        float *row = c->s + i * TILE;
        c->k->scale(row, row, p->scale, nk);
        if (p->softcap > 0.0f) {
            c->k->softcap(row, row, p->softcap, nk);
            for (int j = 0; cap_slope && j < nk; j++) {
                float u = row[j] / p->softcap;
                cap_slope[i * TILE + j] = 1.0f - u * u;
            }
        }
        for (int j = 0; c->slope != 0.0f && j < nk; j++) {
            int64_t d = (int64_t)c->pos[q0 + i] - c->pos[k0 + j];
            row[j] -= c->slope * (float)(d < 0 ? -d : d);
        }
        for (int j = 0; seen == COVER_SOME && j < nk; j++)
            if (!cpu_sees(p, c->pos[q0 + i], c->pos[k0 + j])) row[j] = -INFINITY;
    }
}

/* ---- forward ---- */

/* Adds one tile of keys to the rows: m, sum and o are scaled to the new maximum. */
static void add_tile(const scene *c, const tile *t)
{
    const kernels *k = c->k;
    int q0 = t->q0, nq = t->nq, k0 = t->k0, nk = t->nk;
    for (int i = 0; i < nq; i++) {
        float *row = c->s + i * TILE, top, *o = c->o.p + (q0 + i) * c->o.stride;
        float total = k->learn->exp_sum(row, row, &top, nk);
        if (top == -INFINITY) continue;
        float most = top > c->m[i] ? top : c->m[i];
        float old = c->m[i] == -INFINITY ? 0.0f : (float)mathd_exp((double)c->m[i] - most);
        float fresh = (float)mathd_exp((double)top - most);
        if (fresh != 1.0f) k->scale(row, row, fresh, nk);
        if (old != 1.0f) k->scale(o, o, old, c->p->v_dim);
        c->sum[i] = c->sum[i] * old + total * fresh;
        c->m[i] = most;
    }
    gemm_args a = {
        .m = nq, .n = c->p->v_dim, .k = nk, .a = c->s, .a_row = TILE, .a_col = 1, .b = c->val.p + k0 * c->val.stride,
        .b_type = LOAM_F32, .b_stride = c->val.stride * 4, .c = c->o.p + q0 * c->o.stride, .c_stride = c->o.stride, .add = true,
    };
    gemm(k, &a, 0, 1, c->gemm);
}

static void forward_tile(const scene *c, int q0, const float *sink)
{
    int nq = c->count - q0 < TILE ? c->count - q0 : TILE;
    for (int i = 0; i < nq; i++) {
        c->m[i] = -INFINITY, c->sum[i] = 0.0f;
        memset(c->o.p + (q0 + i) * c->o.stride, 0, (size_t)c->p->v_dim * 4);
    }
    for (int k0 = 0; k0 < c->count; k0 += TILE) {
        tile t = tile_of(c, q0, k0);
        cover seen = cover_of(c, &t);
        if (seen == COVER_NONE) continue;
        scores(c, &t, seen, NULL);
        add_tile(c, &t);
    }
    for (int i = 0; i < nq; i++) {
        float *o = c->o.p + (q0 + i) * c->o.stride;
        double m = c->m[i], sum = c->sum[i];
        if (sink) {
            double most = *sink > m ? (double)*sink : m;
            float shrink = m == -INFINITY ? 0.0f : (float)mathd_exp(m - most);
            sum = sum * shrink + mathd_exp((double)*sink - most);
            if (shrink != 1.0f) c->k->scale(o, o, shrink, c->p->v_dim);
            m = most;
        }
        c->k->scale(o, o, sum > 0.0 ? (float)(1.0 / sum) : 0.0f, c->p->v_dim);
        c->lse[(int64_t)(q0 + i) * c->p->n_head] = sum > 0.0 ? (float)(m + mathd_ln(sum)) : INFINITY;
    }
}

/* Everything of one head of a run. */
static scene scene_of(const value *v, worker *w, const grad_run *run, int head, float *lse)
{
    const attention_params *p = &v->p.attn;
    value *in[GRAPH_MAX_SRC];
    unsigned flow;
    grad_inputs(v, in, &flow);
    int group = head / (p->n_head / p->n_kv_head);
    scene c = {
        .p = p, .k = w->run->k, .pos = w->run->grads->pos + run->first, .count = run->count,
        .q = rows_of(in[0], value_data(in[0], w), run->first, head), .key = rows_of(in[1], value_data(in[1], w), run->first, group),
        .val = rows_of(in[2], value_data(in[2], w), run->first, group), .o = rows_of(v, value_data(v, w), run->first, head),
        .lse = lse + (int64_t)run->first * p->n_head + head, .slope = p->alibi_max_bias > 0.0f ? cpu_alibi_slope(p, head) : 0.0f,
    };
    lay_out(&c, w->scratch, (int)v->ne[2]);
    return c;
}

void learn_attention(const step *s, worker *w)
{
    const value *v = s->v;
    const attention_params *p = &v->p.attn;
    const float *sinks = v->src[2] ? value_data(v->src[2], w) : NULL;
    int item = 0;
    for (int r = 0; r < w->run->grads->n_runs; r++)
        for (int head = 0; head < p->n_head; head++) {
            const grad_run *run = &w->run->grads->runs[r];
            scene c = scene_of(v, w, run, head, w->run->grads->saved[v->id]);
            for (int q0 = 0; q0 < run->count; q0 += TILE, item++)
                if (item % w->nth == w->ith) forward_tile(&c, q0, sinks ? &sinks[head] : NULL);
        }
}

/* ---- backward ---- */

typedef struct grads {
    rows dq, dk, dv, dout; /* p NULL: not wanted */
} grads;

static void add_product(const scene *c, const gemm_args *a)
{
    if (a->c) gemm(c->k, a, 0, 1, c->gemm);
}

static float *row_or_null(rows r, int64_t i) { return r.p ? r.p + i * r.stride : NULL; }

static void backward_tile(const scene *c, const grads *g, int q0, int k0)
{
    const attention_params *p = c->p;
    tile t = tile_of(c, q0, k0);
    int nq = t.nq, nk = t.nk;
    float cap_slope[TILE * TILE];
    cover seen = cover_of(c, &t);
    if (seen == COVER_NONE) return;
    scores(c, &t, seen, p->softcap > 0.0f ? cap_slope : NULL);
    for (int i = 0; i < nq; i++)
        c->k->learn->exp_from(c->s + i * TILE, c->s + i * TILE, c->lse[(int64_t)(q0 + i) * p->n_head], nk);
    add_product(c, &(gemm_args){
        .m = nk, .n = p->v_dim, .k = nq, .a = c->s, .a_row = 1, .a_col = TILE, .b = g->dout.p + q0 * g->dout.stride,
        .b_type = LOAM_F32, .b_stride = g->dout.stride * 4, .c = row_or_null(g->dv, k0), .c_stride = g->dv.stride, .add = true });
    add_product(c, &(gemm_args){
        .m = nq, .n = nk, .k = p->v_dim, .a = g->dout.p + q0 * g->dout.stride, .a_row = g->dout.stride, .a_col = 1,
        .b = c->val.p + k0 * c->val.stride, .b_type = LOAM_F32, .b_stride = c->val.stride * 4, .b_turned = true,
        .c = c->ds, .c_stride = TILE });
    for (int i = 0; i < nq; i++) {
        c->k->learn->soft_back(c->ds + i * TILE, c->s + i * TILE, c->d[q0 + i], p->scale, nk);
        if (p->softcap > 0.0f) c->k->mul2(c->ds + i * TILE, c->ds + i * TILE, cap_slope + i * TILE, nk);
    }
    add_product(c, &(gemm_args){
        .m = nq, .n = p->k_dim, .k = nk, .a = c->ds, .a_row = TILE, .a_col = 1, .b = c->key.p + k0 * c->key.stride,
        .b_type = LOAM_F32, .b_stride = c->key.stride * 4, .c = row_or_null(g->dq, q0), .c_stride = g->dq.stride, .add = true });
    add_product(c, &(gemm_args){
        .m = nk, .n = p->k_dim, .k = nq, .a = c->ds, .a_row = 1, .a_col = TILE, .b = c->q.p + q0 * c->q.stride,
        .b_type = LOAM_F32, .b_stride = c->q.stride * 4, .c = row_or_null(g->dk, k0), .c_stride = g->dk.stride, .add = true });
}

static void clear(rows r, int count, int width)
{
    for (int i = 0; r.p && i < count; i++) memset(r.p + i * r.stride, 0, (size_t)width * 4);
}

static void backward_head(const scene *c, const grads *g)
{
    for (int i = 0; i < c->count; i++)
        c->d[i] = c->k->learn->dot(g->dout.p + i * g->dout.stride, c->o.p + i * c->o.stride, c->p->v_dim);
    for (int k0 = 0; k0 < c->count; k0 += TILE)
        for (int q0 = 0; q0 < c->count; q0 += TILE) backward_tile(c, g, q0, k0);
}

static rows maybe(const value *x, float *base, const grad_run *run, int head)
{
    return base ? rows_of(x, base, run->first, head) : (rows){ NULL, 0 };
}

static void backward_item(const grad_step *g, worker *w, const grad_run *run, int group)
{
    const value *v = g->v;
    const attention_params *p = &v->p.attn;
    int heads = p->n_head / p->n_kv_head;
    for (int h = group * heads; h < (group + 1) * heads; h++) {
        scene c = scene_of(v, w, run, h, g->saved);
        grads d = {
            maybe(g->in[0], g->dx[0], run, h), maybe(g->in[1], g->dx[1], run, group), maybe(g->in[2], g->dx[2], run, group),
            rows_of(v, (float *)(uintptr_t)g->dy, run->first, h),
        };
        if (!grad_adds(g, 0)) clear(d.dq, run->count, p->k_dim);
        if (!grad_adds(g, 1) && h == group * heads) clear(d.dk, run->count, p->k_dim);
        if (!grad_adds(g, 2) && h == group * heads) clear(d.dv, run->count, p->v_dim);
        backward_head(&c, &d);
    }
}

/* The sink's share exp(sink - L) took no value: its gradient is minus the sum of share times D. */
static void sink_gradients(const grad_step *g, worker *w)
{
    const value *v = g->v;
    const attention_params *p = &v->p.attn;
    const float *sinks = value_data(g->in[3], w), *lse = g->saved;
    range heads = range_of(p->n_head, 1, w->ith, w->nth);
    for (int64_t h = heads.first; h < heads.last; h++)
        for (int64_t t = 0; t < v->ne[2]; t++) {
            float d = w->run->k->learn->dot(grad_dy(g, t) + h * p->v_dim, row_at(v, w, t, h * p->v_dim), p->v_dim);
            g->dx[3][h] -= (float)mathd_exp((double)sinks[h] - lse[t * p->n_head + h]) * d;
        }
}

void grad_attention(const grad_step *g, worker *w)
{
    const attention_params *p = &g->v->p.attn;
    int item = 0;
    for (int r = 0; r < w->run->grads->n_runs; r++)
        for (int group = 0; group < p->n_kv_head; group++, item++)
            if (item % w->nth == w->ith) backward_item(g, w, &w->run->grads->runs[r], group);
    if (g->dx[3]) sink_gradients(g, w);
}
