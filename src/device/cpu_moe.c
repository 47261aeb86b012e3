/* cpu_moe.c - mixtures of experts: routing, products with the chosen experts, the weighted sum.
 *
 * A routing row holds, for one token, n_used expert numbers (I32) followed by their n_used weights (F32 bits). */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "device/cpu.h"
#include "kernels/ref/mathf.h"

const int32_t *cpu_experts_at(const value *routing, const worker *w, int64_t t)
{
    return (const int32_t *)((const char *)value_data(routing, w) + t * routing->nb[2]);
}

static const float *weights_at(const value *routing, const worker *w, int64_t t)
{
    return (const float *)cpu_experts_at(routing, w, t) + routing->ne[0] / 2;
}

/* ---- routing ---- */

static float sigmoid(float x) { return 1.0f / (1.0f + math_exp(-x)); }

static float softplus(float x) { return x > 20.0f ? x : math_log(1.0f + math_exp(x)); }

/* The best n entries of score[count] in descending order, ties to the lower index; score is destroyed. NaN never wins over
 * a number; where nothing is left the lowest unused index is taken, so that the result is always n valid indexes. */
static void take_best(float *score, int count, int n, int32_t *best)
{
    for (int i = 0; i < n; i++) {
        int at = -1;
        for (int e = 0; e < count; e++) {
            bool used = false;
            for (int j = 0; j < i && !used; j++) used = best[j] == e;
            if (!used && (at < 0 || score[e] > score[at] || (isnan(score[at]) && !isnan(score[e])))) at = e;
        }
        best[i] = at;
    }
}

/* Keeps the best groups of experts (group score: its two best), the others' scores become -inf. */
static void keep_groups(float *score, const route_params *p)
{
    float sums[LIMIT_EXPERTS];
    int32_t kept[LIMIT_EXPERTS];
    int size = p->n_expert / p->n_group;
    for (int g = 0; g < p->n_group; g++) {
        float a = -INFINITY, b = -INFINITY;
        for (int i = 0; i < size; i++) {
            float x = score[g * size + i];
            if (x > a) b = a, a = x;
            else if (x > b) b = x;
        }
        sums[g] = size > 1 ? a + b : a;
    }
    take_best(sums, p->n_group, p->n_group_used, kept);
    for (int g = 0; g < p->n_group; g++) {
        bool keep = false;
        for (int j = 0; j < p->n_group_used && !keep; j++) keep = kept[j] == g;
        for (int i = 0; i < size && !keep; i++) score[g * size + i] = -INFINITY;
    }
}

static void probabilities(float *probs, const float *logits, const route_params *p, const kernels *k)
{
    int n = p->n_expert;
    switch (p->router) {
    case ROUTER_SOFTMAX: k->softmax(probs, logits, n); break;
    case ROUTER_SIGMOID:
        for (int e = 0; e < n; e++) probs[e] = sigmoid(logits[e]);
        break;
    case ROUTER_SQRT_SOFTPLUS:
        for (int e = 0; e < n; e++) probs[e] = sqrtf(softplus(logits[e]));
        break;
    case ROUTER_TOP_SOFTMAX: memcpy(probs, logits, (size_t)n * 4); break;
    }
}

static void route_token(const float *logits, const float *bias, const route_params *p, const kernels *k, int32_t *out)
{
    float probs[LIMIT_EXPERTS], score[LIMIT_EXPERTS], *share = (float *)(out + p->n_used);
    probabilities(probs, logits, p, k);
    for (int e = 0; e < p->n_expert; e++) {
        float x = p->select == SELECT_LOGITS ? logits[e] : p->select == SELECT_SIGMOID ? sigmoid(logits[e]) : probs[e];
        score[e] = bias ? x + bias[e] : x;
    }
    if (p->n_group > 1) keep_groups(score, p);
    take_best(score, p->n_expert, p->n_used, out);
    if (p->divide > 1)
        for (int i = 0; i < p->n_used; i++) out[i] /= p->divide;
    for (int i = 0; i < p->n_used; i++) share[i] = probs[out[i]];
    if (p->router == ROUTER_TOP_SOFTMAX) k->softmax(share, share, p->n_used);
    if (p->normalise) {
        float sum = 0.0f;
        for (int i = 0; i < p->n_used; i++) sum += share[i];
        float inverse = 1.0f / (sum > 6.103515625e-5f ? sum : 6.103515625e-5f);
        for (int i = 0; i < p->n_used; i++) share[i] *= inverse;
    }
    for (int i = 0; i < p->n_used; i++) share[i] *= p->scale;
}

void run_route(const step *s, worker *w)
{
    const value *v = s->v;
    const float *bias = v->src[1] ? value_data(v->src[1], w) : NULL;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        route_token(row_at(v->src[0], w, t, 0), bias, &v->p.route, w->run->k, (int32_t *)row_at(v, w, t, 0));
}

/* ---- products ---- */


/* y rows of one expert for the (token, rank) pairs in list. Columns lie anywhere, so they are handed over in runs of equal
 * distance; a single column is the common case of generation. */
static void one_expert(const step *s, worker *w, int64_t expert, const int32_t *list, int n, range rows)
{
    const value *v = s->v, *m = v->src[0], *x = v->src[1];
    mul_fn f = w->run->k->mul[m->type];
    int64_t used = v->ne[1], x_mid = x->ne[1];
    const char *weights = (const char *)value_data(m, w) + expert * m->nb[2];
    for (int i = 0; i < n;) {
        int64_t t = list[i] / used, r = list[i] % used;
        int64_t at_x = t * x->nb[2] + (x_mid == 1 ? 0 : r) * x->nb[1], at_y = t * v->nb[2] + r * v->nb[1];
        int64_t dx = 0, dy = 0;
        int count = 1;
        for (; i + count < n; count++) {
            int64_t t2 = list[i + count] / used, r2 = list[i + count] % used;
            int64_t nx = t2 * x->nb[2] + (x_mid == 1 ? 0 : r2) * x->nb[1] - at_x, ny = t2 * v->nb[2] + r2 * v->nb[1] - at_y;
            if (count == 1) {
                if (nx <= 0 || ny <= 0) break;
                dx = nx, dy = ny;
            } else if (nx != dx * count || ny != dy * count) {
                break;
            }
        }
        mul_args a = {
            .w = weights, .w_stride = (size_t)m->nb[1],
            .x = (const char *)value_data(x, w) + at_x, .x_stride = (size_t)dx,
            .y = (float *)((char *)value_data(v, w) + at_y), .y_stride = (size_t)dy / 4,
            .k = m->ne[0], .cols = count, .scratch = w->scratch,
        };
        cpu_product(w, a, f, rows);
        i += count;
    }
}

void cpu_sort_by_expert(const value *routing, const worker *w, int64_t n_expert, int32_t *count, int32_t *list)
{
    int64_t used = routing->ne[0] / 2, tokens = routing->ne[2];
    memset(count, 0, (size_t)(n_expert + 1) * sizeof *count);
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t u = 0; u < used; u++) count[cpu_experts_at(routing, w, t)[u] + 1]++;
    for (int64_t e = 0; e < n_expert; e++) count[e + 1] += count[e];
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t u = 0; u < used; u++) list[count[cpu_experts_at(routing, w, t)[u]]++] = (int32_t)(t * used + u);
    for (int64_t e = n_expert; e > 0; e--) count[e] = count[e - 1];
    count[0] = 0;
}

void run_experts(const step *s, worker *w)
{
    const value *v = s->v, *m = v->src[0];
    int64_t n_expert = m->ne[2];
    int32_t *count = (int32_t *)w->run->shared, *list = count + n_expert + 1;
    /* In an aborted run the routing is not there: nobody may follow it, and no lists are made. */
    if (w->ith == 0 && !worker_stopped(w)) cpu_sort_by_expert(v->src[2], w, n_expert, count, list);
    worker_barrier(w);
    range rows = range_of(v->ne[0], ROW_UNIT, w->ith, w->nth);
    for (int64_t e = 0; e < n_expert && !worker_stopped(w); e++) {
        int n = count[e + 1] - count[e];
        if (n > 0) one_expert(s, w, e, list + count[e], n, rows);
    }
    worker_barrier(w); /* the lists are used again by the next product */
}

/* ---- rows of experts ---- */

void run_expert_add(const step *s, worker *w)
{
    const value *v = s->v, *b = v->src[1];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t u = 0; u < v->ne[1]; u++) {
            const float *row = (const float *)((const char *)value_data(b, w) + cpu_experts_at(v->src[2], w, t)[u] * b->nb[1]);
            w->run->k->add(row_at(v, w, t, u * v->ne[0]), row_at(v->src[0], w, t, u * v->ne[0]), row, v->ne[0]);
        }
}

void run_expert_scale(const step *s, worker *w)
{
    const value *v = s->v;
    const float *scales = value_data(v->src[1], w);
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t u = 0; u < v->ne[1]; u++)
            w->run->k->scale(row_at(v, w, t, u * v->ne[0]), row_at(v->src[0], w, t, u * v->ne[0]),
                             scales[cpu_experts_at(v->src[2], w, t)[u]], v->ne[0]);
}

void run_expert_sum(const step *s, worker *w)
{
    const value *v = s->v, *y = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++) {
        const float *share = v->src[1] ? weights_at(v->src[1], w, t) : NULL;
        float *out = row_at(v, w, t, 0);
        w->run->k->scale(out, row_at(y, w, t, 0), share ? share[0] : 1.0f, v->ne[0]);
        for (int64_t u = 1; u < y->ne[1]; u++)
            w->run->k->axpy(out, row_at(y, w, t, u * y->ne[0]), share ? share[u] : 1.0f, v->ne[0]);
    }
}

void run_expert_weigh(const step *s, worker *w)
{
    const value *v = s->v;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t u = 0; u < v->ne[1]; u++)
            w->run->k->scale(row_at(v, w, t, u * v->ne[0]), row_at(v->src[0], w, t, 0), weights_at(v->src[1], w, t)[u], v->ne[0]);
}
