/* rwkv.c - RWKV 6 and 7 (Peng et al. 2024, 2025): time mix and channel mix. Every input of a matrix is a mixture of this
 * token's row and the one before it: x + (previous - x) * mu. */
#include "model/build.h"

#define HEAD_EPSILON 64e-5f /* of the norm over each head's output */

static int64_t sym(const builder *b, char letter) { return b->h->sym.s[letter - 'A']; }

static state_params state_at(const builder *b, int64_t at) { return (state_params) { .layer = b->il, .at = at }; }

static value *heads_of(builder *b, value *x) { return g_view(b->g, x, 0, b->k, b->n_head); }

/* A low-rank product: second . f(first . x). Adapters do not act on these. */
static value *low_rank(builder *b, slot first, slot second, value *x, const gate_kind *f)
{
    value *m = g_matmul(b->g, b->t[first].w, x);
    return g_matmul(b->g, b->t[second].w, f ? g_gate(b->g, *f, m, NULL) : m);
}

/* Norm by head (where stored), gate (where there is one), output matrix. */
static value *finish_time_mix(builder *b, value *y, value *bonus, value *gate)
{
    graph *g = b->g;
    const bound *ln = &b->t[T_TIME_MIX_LN];
    if (ln->w) y = g_norm(g, y, ln->w, ln->b, (norm_params){ NORM_LAYER, HEAD_EPSILON, (int)b->k });
    y = g_mul(g, g_add(g, y, bonus), gate);
    y = build_after_state(b, g_view(g, y, 0, sym(b, 'D'), 1));
    return y ? build_linear(b, &b->t[T_TIME_MIX_OUTPUT], y) : NULL;
}

/* Each of fewer heads stands for its neighbours. */
static value *repeat_heads(builder *b, value *x)
{
    value *one = g_view(b->g, x, 0, b->k, b->n_kv), *all = one;
    for (int64_t i = 1; i < b->n_head / b->n_kv; i++) all = g_concat(b->g, all, one);
    return heads_of(b, all);
}

value *build_rwkv6(builder *b, value *h)
{
    static const slot lerps[] = { T_TIME_MIX_LERP_W, T_TIME_MIX_LERP_K, T_TIME_MIX_LERP_V, T_TIME_MIX_LERP_R, T_TIME_MIX_LERP_G };
    graph *g = b->g;
    const bound *t = b->t;
    const weight *fused = b->m->blocks[b->il].lerp;
    state_params shift = state_at(b, 0), state = state_at(b, 0);
    bool plain = !t[T_TIME_MIX_FIRST].w; /* rwkv6qwen2 */
    int64_t d = sym(b, 'D');
    value *sx = g_token_shift(g, h, &shift), *in[5];
    value *m = g_matmul(g, t[T_TIME_MIX_W1].w, g_add(g, h, g_mul(g, sx, g_weight(g, t[T_TIME_MIX_LERP_X].w))));
    m = g_matmul_heads(g, t[T_TIME_MIX_W2].w, g_view(g, g_gate(g, GATE_TANH, m, NULL), 0, sym(b, 'A'), 5));
    for (int i = 0; i < 5; i++) {
        const weight *mu = t[T_TIME_MIX_LERP_FUSED].w ? &fused[i] : t[lerps[i]].w;
        if (!mu) graph_fail(g, LOAM_E_FORMAT, "block %d has neither time_mix_lerp_fused nor all of time_mix_lerp_*", b->il);
        in[i] = g_add(g, h, g_mul(g, sx, g_add(g, g_view(g, m, i * d, d, 1), g_weight(g, mu))));
    }
    const gate_kind tangent = GATE_TANH;
    value *w = g_add(g, low_rank(b, T_TIME_MIX_DECAY_W1, T_TIME_MIX_DECAY_W2, in[0], &tangent), g_weight(g, t[T_TIME_MIX_DECAY].w));
    w = heads_of(b, g_gate(g, GATE_EXP, g_scale(g, g_gate(g, GATE_EXP, w, NULL), -1), NULL));
    value *k = repeat_heads(b, build_linear(b, &t[T_TIME_MIX_KEY], in[1]));
    value *v = repeat_heads(b, build_linear(b, &t[T_TIME_MIX_VALUE], in[2]));
    value *r = heads_of(b, build_linear(b, &t[T_TIME_MIX_RECEPTANCE], in[3]));
    value *gate = g_gate(g, b->a->ffn.kind == CHANNEL_MIX ? GATE_SILU : GATE_SIGMOID, build_linear(b, &t[T_TIME_MIX_GATE], in[4]), NULL);
    if (b->a->ffn.kind != CHANNEL_MIX) k = g_add(g, k, g_scale(g, g_mul(g, k, w), -1));
    wkv6_inputs wkv = { .r = r, .k = k, .v = v, .w = w, .bonus = t[T_TIME_MIX_FIRST].w };
    value *y = g_wkv6(g, &wkv, &state);
    if (plain) y = g_scale(g, y, (float)(1 / __builtin_sqrt((double)b->k)));
    return finish_time_mix(b, y, NULL, gate);
}

/* v of the first block flows into the later ones. */
static value *mix_values(builder *b, value *v, value *x)
{
    graph *g = b->g;
    if (b->il == 0) return b->v_first = v;
    value *share = g_add(g, low_rank(b, T_TIME_MIX_V1, T_TIME_MIX_V2, x, NULL), g_weight(g, b->t[T_TIME_MIX_V0].w));
    return g_add(g, v, g_gate(g, GATE_SIGMOID, share, g_add(g, b->v_first, g_scale(g, v, -1))));
}

value *build_rwkv7(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    const weight *mu = b->m->blocks[b->il].lerp;
    const gate_kind tangent = GATE_TANH, logistic = GATE_SIGMOID;
    state_params shift = state_at(b, 0), state = state_at(b, 0);
    value *sx = g_token_shift(g, h, &shift), *in[6] = { NULL };
    for (int i = 0; i < (int)sym(b, 'Y'); i++) in[i] = g_add(g, h, g_mul(g, sx, g_weight(g, &mu[i])));
    value *r = build_linear(b, &t[T_TIME_MIX_RECEPTANCE], in[0]);
    value *w = g_add(g, low_rank(b, T_TIME_MIX_W1, T_TIME_MIX_W2, in[1], &tangent), g_weight(g, t[T_TIME_MIX_W0].w));
    w = g_gate(g, GATE_EXP, g_scale(g, g_gate(g, GATE_SIGMOID, w, NULL), -0.606531f), NULL);
    value *k = g_view(g, repeat_heads(b, build_linear(b, &t[T_TIME_MIX_KEY], in[2])), 0, sym(b, 'D'), 1);
    value *v = g_view(g, repeat_heads(b, build_linear(b, &t[T_TIME_MIX_VALUE], in[3])), 0, sym(b, 'D'), 1);
    v = mix_values(b, v, in[3]);
    value *a = g_add(g, low_rank(b, T_TIME_MIX_A1, T_TIME_MIX_A2, in[4], NULL), g_weight(g, t[T_TIME_MIX_A0].w));
    a = g_gate(g, GATE_SIGMOID, a, NULL);
    value *gate = t[T_TIME_MIX_G1].w && in[5] ? low_rank(b, T_TIME_MIX_G1, T_TIME_MIX_G2, in[5], &logistic) : NULL;
    /* The removed direction has length 1; an epsilon far below any sum of squares keeps zeros zero. */
    value *kk = heads_of(b, g_mul(g, k, g_weight(g, t[T_TIME_MIX_K_K].w)));
    kk = g_scale(g, g_norm(g, kk, NULL, NULL, (norm_params){ NORM_RMS, 1e-24f / (float)b->k, (int)b->k }), (float)(1 / __builtin_sqrt((double)b->k)));
    value *less = g_add(g, g_mul(g, k, a), g_scale(g, k, -1));
    k = g_add(g, k, g_mul(g, less, g_weight(g, t[T_TIME_MIX_K_A].w)));
    wkv7_inputs wkv = { .r = heads_of(b, r), .w = heads_of(b, w), .k = heads_of(b, k), .v = heads_of(b, v), .kk = kk,
                        .ka = g_mul(g, kk, heads_of(b, a)) };
    value *bonus = NULL;
    if (t[T_TIME_MIX_R_K].w) bonus = g_head_dot(g, heads_of(b, g_mul(g, k, g_weight(g, t[T_TIME_MIX_R_K].w))), wkv.r, wkv.v);
    return finish_time_mix(b, g_wkv7(g, &wkv, &state), bonus, gate);
}

value *build_channel_mix(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    state_params shift = state_at(b, sym(b, 'D'));
    value *sx = g_token_shift(g, h, &shift);
    value *k = build_linear(b, &t[T_CHANNEL_MIX_KEY], g_add(g, h, g_mul(g, sx, g_weight(g, t[T_CHANNEL_MIX_LERP_K].w))));
    value *y = build_linear(b, &t[T_CHANNEL_MIX_VALUE], g_gate(g, GATE_RELU2, k, NULL));
    if (!t[T_CHANNEL_MIX_RECEPTANCE].w) return y;
    value *r = build_linear(b, &t[T_CHANNEL_MIX_RECEPTANCE], g_add(g, h, g_mul(g, sx, g_weight(g, t[T_CHANNEL_MIX_LERP_R].w))));
    return g_gate(g, GATE_SIGMOID, r, y);
}
