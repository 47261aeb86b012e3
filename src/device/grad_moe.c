/* grad_moe.c - gradients of mixtures of experts: the router's weights, the products of the chosen experts, their sum. */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "device/grad.h"
#include "kernels/ref/mathf.h"

/* The gradient of a routing row lies where its weights do: behind the expert numbers. */
static float *shares_of(float *row, const value *routing) { return row + routing->ne[0] / 2; }

/* ---- routing ---- */

static float sigmoid(float x) { return 1.0f / (1.0f + math_exp(-x)); }

typedef struct routed {
    const route_params *p;
    const kernels *k;
    const float *logits, *share; /* share: after scale and division */
    const int32_t *expert;
    float *dshare;               /* [n_used] gradient, changed */
} routed;

/* Back through scale and division by the sum: what was divided is found again from share = scale x / sum. */
static void undo_normalise(const routed *r, const float *x)
{
    const route_params *p = r->p;
    for (int i = 0; i < p->n_used; i++) r->dshare[i] *= p->scale;
    if (!p->normalise) return;
    float sum = 0.0f, dot = 0.0f;
    for (int i = 0; i < p->n_used; i++) sum += x[i];
    bool floored = !(sum > 6.103515625e-5f);
    float inverse = 1.0f / (floored ? 6.103515625e-5f : sum);
    for (int i = 0; i < p->n_used; i++) dot += r->dshare[i] * x[i] * inverse;
    for (int i = 0; i < p->n_used; i++) r->dshare[i] = (r->dshare[i] - (floored ? 0.0f : dot)) * inverse;
}

static void route_back(const routed *r, float *dlogits)
{
    const route_params *p = r->p;
    float probs[LIMIT_EXPERTS], x[LIMIT_EXPERTS], dprobs[LIMIT_EXPERTS];
    int n = p->n_expert;
    memset(dprobs, 0, (size_t)n * 4);
    if (p->router == ROUTER_TOP_SOFTMAX) {
        for (int i = 0; i < p->n_used; i++) x[i] = r->logits[r->expert[i]];
        r->k->softmax(x, x, p->n_used);
        undo_normalise(r, x);
        float dot = 0.0f;
        for (int i = 0; i < p->n_used; i++) dot += r->dshare[i] * x[i];
        for (int i = 0; i < p->n_used; i++) dprobs[r->expert[i]] += x[i] * (r->dshare[i] - dot);
        memcpy(dlogits, dprobs, (size_t)n * 4);
        return;
    }
    if (p->router == ROUTER_SOFTMAX) r->k->softmax(probs, r->logits, n);
    for (int e = 0; e < n && p->router != ROUTER_SOFTMAX; e++)
        probs[e] = p->router == ROUTER_SIGMOID ? sigmoid(r->logits[e]) : sqrtf(math_softplus(r->logits[e]));
    for (int i = 0; i < p->n_used; i++) x[i] = probs[r->expert[i]];
    undo_normalise(r, x);
    for (int i = 0; i < p->n_used; i++) dprobs[r->expert[i]] += r->dshare[i];
    float dot = 0.0f;
    for (int e = 0; e < n && p->router == ROUTER_SOFTMAX; e++) dot += dprobs[e] * probs[e];
    for (int e = 0; e < n; e++) {
        if (p->router == ROUTER_SOFTMAX) dlogits[e] = probs[e] * (dprobs[e] - dot);
        else if (p->router == ROUTER_SIGMOID) dlogits[e] = dprobs[e] * probs[e] * (1.0f - probs[e]);
        else dlogits[e] = probs[e] > 0.0f ? dprobs[e] * sigmoid(r->logits[e]) / (2.0f * probs[e]) : 0.0f;
    }
}

void grad_route(const grad_step *g, worker *w)
{
    const value *v = g->v;
    const route_params *p = &v->p.route;
    range tokens = grad_tokens(g, w);
    for (int64_t t = tokens.first; t < tokens.last; t++) {
        float dshare[LIMIT_EXPERTS], dlogits[LIMIT_EXPERTS], *to = grad_at(g->dx[0], g->in[0], t, 0);
        memcpy(dshare, shares_of((float *)(uintptr_t)grad_dy(g, t), v), (size_t)p->n_used * 4);
        routed r = { p, w->run->k, row_at(g->in[0], w, t, 0), NULL, cpu_experts_at(v, w, t), dshare };
        route_back(&r, dlogits);
        for (int e = 0; e < p->n_expert; e++) to[e] = grad_adds(g, 0) ? to[e] + dlogits[e] : dlogits[e];
    }
}

/* ---- products: (token, rank) pairs sorted by expert, PAIRS at a time gathered, then large products ---- */

#define PAIRS 256

typedef struct pair_space {
    int32_t *count, *list, *at;  /* at[pair]: its place in list */
    float *dx;                   /* [pairs][in] gradients in the order of list */
} pair_space;

size_t grad_experts_shared(const value *v)
{
    int64_t pairs = v->ne[1] * v->ne[2], experts = v->src[0]->ne[2];
    return (size_t)(2 * pairs + experts + 17) * 4 + (size_t)(pairs * v->src[0]->ne[0]) * 4;
}

size_t grad_experts_scratch(const value *v)
{
    size_t products = gemm_scratch(), rows = (size_t)PAIRS * (size_t)(v->ne[0] + v->src[0]->ne[0]) * 4;
    size_t forward = mul_scratch(v->src[0]->ne[0]) + 64;
    return products + rows > forward ? products + rows : forward;
}

static pair_space pairs_of(const value *v, worker *w)
{
    int64_t pairs = v->ne[1] * v->ne[2], experts = v->src[0]->ne[2];
    pair_space s = { .count = (int32_t *)w->run->shared };
    s.list = s.count + experts + 1;
    s.at = s.list + pairs;
    s.dx = (float *)(((uintptr_t)(s.at + pairs) + 63) & ~(uintptr_t)63);
    return s;
}

/* Pairs [first, last) of the list, which belong to expert e. */
static void expert_part(const grad_step *g, worker *w, const pair_space *s, int64_t e, const range *r)
{
    const value *v = g->v, *m = g->in[0], *x = g->in[1];
    int64_t used = v->ne[1], in = m->ne[0], out = m->ne[1], n = r->last - r->first;
    float *dy = (float *)(w->scratch + gemm_scratch()), *rows = dy + PAIRS * out;
    for (int64_t i = 0; i < n; i++) {
        int64_t t = s->list[r->first + i] / used, u = s->list[r->first + i] % used;
        memcpy(dy + i * out, grad_dy(g, t) + u * out, (size_t)out * 4);
        if (g->dx[0]) memcpy(rows + i * in, row_at(x, w, t, x->ne[1] == 1 ? 0 : u * in), (size_t)in * 4);
    }
    if (g->dx[1]) {
        gemm_args a = { .m = n, .n = in, .k = out, .a = dy, .a_row = out, .a_col = 1, .b = (const char *)value_data(m, w) + e * m->nb[2],
                        .b_type = m->type, .b_stride = m->nb[1], .c = s->dx + r->first * in, .c_stride = in };
        gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
    }
    if (g->dx[0]) {
        gemm_args a = { .m = out, .n = in, .k = n, .a = dy, .a_row = 1, .a_col = out, .b = rows, .b_type = LOAM_F32,
                        .b_stride = in * 4, .c = g->dx[0] + e * in * out, .c_stride = in, .add = true };
        gemm(w->run->k, &a, w->ith, w->nth, w->scratch);
    }
}

void grad_experts(const grad_step *g, worker *w)
{
    const value *v = g->v, *m = g->in[0], *x = g->in[1];
    int64_t used = v->ne[1], in = m->ne[0];
    pair_space s = pairs_of(v, w);
    if (w->ith == 0) {
        cpu_sort_by_expert(v->src[2], w, m->ne[2], s.count, s.list);
        for (int64_t i = 0; i < used * v->ne[2]; i++) s.at[s.list[i]] = (int32_t)i;
    }
    worker_barrier(w);
    for (int64_t e = 0; e < m->ne[2]; e++)
        for (int64_t i = s.count[e]; i < s.count[e + 1]; i += PAIRS) {
            range r = { i, min64(i + PAIRS, s.count[e + 1]) };
            expert_part(g, w, &s, e, &r);
        }
    worker_barrier(w);
    range tokens = grad_tokens(g, w);
    for (int64_t t = tokens.first; t < tokens.last && g->dx[1]; t++)
        for (int64_t u = 0; u < used; u++) {
            float *to = grad_at(g->dx[1], x, t, x->ne[1] == 1 ? 0 : u * in), *from = s.dx + s.at[t * used + u] * in;
            if (grad_adds(g, 1) || (x->ne[1] == 1 && u > 0)) w->run->k->add(to, to, from, in);
            else memcpy(to, from, (size_t)in * 4);
        }
    worker_barrier(w); /* the lists are used again */
}

/* ---- rows of experts: columns are dealt out, tokens and ranks ascend ---- */

static void put(const kernels *k, float *to, const float *from, float s, int64_t n, bool add)
{
    if (add) k->axpy(to, from, s, n);
    else k->scale(to, from, s, n);
}

static void rows_through(const grad_step *g, worker *w, const float *scales)
{
    const value *v = g->v;
    range tokens = grad_tokens(g, w);
    for (int64_t t = tokens.first; t < tokens.last && g->dx[0]; t++)
        for (int64_t u = 0; u < v->ne[1]; u++)
            put(w->run->k, grad_at(g->dx[0], g->in[0], t, u * v->ne[0]), grad_dy(g, t) + u * v->ne[0],
                scales ? scales[cpu_experts_at(v->src[2], w, t)[u]] : 1.0f, v->ne[0], grad_adds(g, 0));
}

void grad_expert_add(const grad_step *g, worker *w)
{
    const value *v = g->v;
    rows_through(g, w, NULL);
    range c = grad_columns(v->ne[0], w);
    for (int64_t t = 0; t < v->ne[2] && g->dx[1]; t++)
        for (int64_t u = 0; u < v->ne[1]; u++) {
            float *to = g->dx[1] + cpu_experts_at(v->src[2], w, t)[u] * v->ne[0] + c.first;
            w->run->k->add(to, to, grad_dy(g, t) + u * v->ne[0] + c.first, c.last - c.first);
        }
}

void grad_expert_scale(const grad_step *g, worker *w)
{
    const value *v = g->v;
    rows_through(g, w, value_data(g->in[1], w));
    for (int64_t t = 0; t < v->ne[2] && g->dx[1] && w->ith == 0; t++)
        for (int64_t u = 0; u < v->ne[1]; u++)
            g->dx[1][cpu_experts_at(v->src[2], w, t)[u]] +=
                w->run->k->learn->dot(grad_dy(g, t) + u * v->ne[0], row_at(g->in[0], w, t, u * v->ne[0]), v->ne[0]);
}

static const float *shares_at(const value *routing, const worker *w, int64_t t)
{
    return (const float *)cpu_experts_at(routing, w, t) + routing->ne[0] / 2;
}

void grad_expert_sum(const grad_step *g, worker *w)
{
    const value *v = g->v, *y = g->in[0], *routing = g->in[1];
    range tokens = grad_tokens(g, w);
    for (int64_t t = tokens.first; t < tokens.last; t++)
        for (int64_t u = 0; u < y->ne[1]; u++) {
            float share = routing ? shares_at(routing, w, t)[u] : 1.0f;
            if (g->dx[0]) put(w->run->k, grad_at(g->dx[0], y, t, u * y->ne[0]), grad_dy(g, t), share, v->ne[0], grad_adds(g, 0));
            if (!routing || !g->dx[1]) continue;
            float *to = shares_of(grad_at(g->dx[1], routing, t, 0), routing) + u;
            float d = w->run->k->learn->dot(grad_dy(g, t), row_at(y, w, t, u * y->ne[0]), v->ne[0]);
            *to = grad_adds(g, 1) ? *to + d : d;
        }
}

void grad_expert_weigh(const grad_step *g, worker *w)
{
    const value *v = g->v, *x = g->in[0], *routing = g->in[1];
    range tokens = grad_tokens(g, w);
    for (int64_t t = tokens.first; t < tokens.last; t++)
        for (int64_t u = 0; u < v->ne[1]; u++) {
            const float *dy = grad_dy(g, t) + u * v->ne[0];
            if (g->dx[0]) put(w->run->k, grad_at(g->dx[0], x, t, 0), dy, shares_at(routing, w, t)[u], v->ne[0], grad_adds(g, 0) || u > 0);
            if (!g->dx[1]) continue;
            float *to = shares_of(grad_at(g->dx[1], routing, t, 0), routing) + u;
            float d = w->run->k->learn->dot(dy, row_at(x, w, t, 0), v->ne[0]);
            *to = grad_adds(g, 1) ? *to + d : d;
        }
}
