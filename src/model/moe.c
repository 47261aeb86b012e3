/* moe.c - mixture of experts: a router picks U of E experts for each token; their outputs are summed by weight. */
#include "model/build.h"

#define SQRT_HALF 0.70710678118654752440f

static value *expert_linear(builder *b, const bound *t, value *x, value *routing)
{
    value *y = g_expert_scale(b->g, g_experts(b->g, t->w, x, routing), t->s, routing);
    return g_expert_add(b->g, g_adapt(b->g, t->w, x, routing, y), t->b, routing);
}

static route_params routing_of(const builder *b)
{
    const hparams *h = b->h;
    return (route_params) {
        .n_expert = (int)SYM(h->sym, E), .n_used = (int)SYM(h->sym, U), .n_group = h->n_group > 1 ? h->n_group : 1,
        .n_group_used = h->n_group > 1 ? h->n_group_used : 1, .router = h->router, .select = b->a->experts.select,
        .normalise = h->normalise, .scale = h->expert_scale, .divide = 1,
    };
}

/* act(gate x) * up x, or act(up x) without a gate matrix: [width, U, T]. */
static value *inner(builder *b, value *x, value *routing)
{
    graph *g = b->g;
    const bound *t = b->t;
    gate_kind act = b->a->experts.activation;
    if (t[T_FFN_GATE_UP_EXPS].w) {
        value *u = expert_linear(b, &t[T_FFN_GATE_UP_EXPS], x, routing);
        int64_t half = u ? u->ne[0] / 2 : 0, used = SYM(b->h->sym, U);
        return g_gate(g, act, g_view(g, u, 0, half, used), g_view(g, u, half, half, used));
    }
    value *up = expert_linear(b, &t[T_FFN_UP_EXPS], x, routing);
    if (!t[T_FFN_GATE_EXPS].w) return g_gate(g, act, up, NULL);
    return g_gate(g, act, expert_linear(b, &t[T_FFN_GATE_EXPS], x, routing), up);
}

/* Grove (Wu et al. 2025): small experts, each belonging to a run of B experts, read the first pass's output y. The runs of the
 * best min(U, E/B) experts by sigmoid take part, weighted by the softmax at the run's own number. */
static value *chunk_pass(builder *b, value *y, value *logits)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t runs = SYM(b->h->sym, E) / SYM(b->h->sym, B);
    route_params p = routing_of(b);
    p.n_used = (int)(p.n_used < runs ? p.n_used : runs);
    p.divide = (int)SYM(b->h->sym, B);
    p.n_group = p.n_group_used = 1;
    value *routing = g_route(g, logits, NULL, &p);
    value *gate = expert_linear(b, &t[T_FFN_GATE_CHEXPS], y, routing), *up = expert_linear(b, &t[T_FFN_UP_CHEXPS], y, routing);
    value *down = expert_linear(b, &t[T_FFN_DOWN_CHEXPS], g_gate(g, b->a->experts.activation, gate, up), routing);
    return g_add(g, y, g_scale(g, g_expert_sum(g, down, routing), b->h->group_scale));
}

value *build_experts(builder *b, value *x, value *router_in)
{
    graph *g = b->g;
    const bound *t = b->t;
    const expert_recipe *e = &b->a->experts;
    route_params p = routing_of(b);
    value *logits = build_linear(b, &t[T_FFN_GATE_INP], router_in);
    value *routing = g_route(g, logits, t[T_EXP_PROBS_B].w, &p);
    value *reduced = t[T_FFN_LATENT_DOWN].w ? g_matmul(g, t[T_FFN_LATENT_DOWN].w, x) : x;
    value *in = e->weigh_input ? g_expert_weigh(g, reduced, routing) : reduced;
    value *y = expert_linear(b, &t[T_FFN_DOWN_EXPS], inner(b, in, routing), routing);
    y = e->weigh_input ? g_expert_sum(g, y, NULL) : g_expert_sum(g, y, routing);
    if (t[T_FFN_LATENT_UP].w) y = g_matmul(g, t[T_FFN_LATENT_UP].w, y);
    if (e->chunks) y = chunk_pass(b, y, logits);
    if (e->dense_too && t[T_FFN_UP].w) y = g_scale(g, g_add(g, build_dense(b, x), y), SQRT_HALF);
    value *shared = build_shared(b, x);
    if (!shared) return y;
    return g_scale(g, g_add(g, y, shared), b->a->shared.halve ? 0.5f : 1);
}
