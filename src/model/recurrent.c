/* recurrent.c - mixers that carry a state from token to token.
 *
 *   mamba        h ─ ssm_in ─┬ u ─ conv ─ silu ─┬─────────────── selective scan ─┐
 *                            │                  └ ssm_x ─ dt, b, c ┘             ├ gate ─ ssm_out
 *                            └ z ────────────────────────────────────────────────┘
 *   mamba2       all of z, u, b, c, dt from ssm_in; u, b and c through the convolution
 *   short conv   h ─ in ─ b, c, v:   out . (c * conv(b * v))
 *   delta        q, k, v through one convolution, then the gated delta rule, norm by head, gate */
#include "model/build.h"

static int64_t sym(const builder *b, char letter) { return b->h->sym.s[letter - 'A']; }

static state_params state_of(const builder *b) { return (state_params) { .layer = b->il }; }

value *build_after_state(builder *b, value *y)
{
    return b->il == b->h->n_layer - 1 && b->p->n_outputs == 0 && b->l->ffn != FFN_CHANNEL_MIX ? NULL : build_narrow(b, y);
}

static value *finish_mixer(builder *b, slot out, value *y)
{
    y = build_after_state(b, y);
    return y ? build_linear(b, &b->t[out], y) : NULL;
}

/* silu of the convolution over channels of x; `first`: channel of the weights, and of the window, that comes first. */
static value *convolve(builder *b, value *x, slot taps, int64_t first)
{
    const bound *t = &b->t[taps];
    state_params p = state_of(b);
    p.first = first;
    p.at = first * (sym(b, 'Q') - 1);
    return g_gate(b->g, GATE_SILU, g_conv(b->g, x, t->w, t->b, &p), NULL);
}

/* The norms of dt, b, c in Mamba: with weights where they are stored, without where only the key asks for them. */
static value *norm_step(builder *b, value *x, slot s)
{
    const bound *t = b->t;
    bool stored = t[T_SSM_DT_NORM].w && t[T_SSM_B_NORM].w && t[T_SSM_C_NORM].w;
    return stored || b->h->norm_steps ? g_norm(b->g, x, t[s].w, NULL, (norm_params){ NORM_RMS, b->h->eps, 0 }) : x;
}

value *build_mamba(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t inner = sym(b, 'I'), n = sym(b, 'O'), rank = sym(b, 'T');
    value *uz = build_linear(b, &t[T_SSM_IN], h), *z = g_view(g, uz, inner, inner, 1);
    value *u = convolve(b, g_view(g, uz, 0, inner, 1), T_SSM_CONV1D, 0);
    value *x = build_linear(b, &t[T_SSM_X], u);
    value *dt = norm_step(b, g_view(g, x, 0, rank, 1), T_SSM_DT_NORM);
    scan_inputs in = {
        .x = u, .dt = g_gate(g, GATE_SOFTPLUS, build_linear(b, &t[T_SSM_DT], dt), NULL),
        .b = norm_step(b, g_view(g, x, rank, n, 1), T_SSM_B_NORM), .c = norm_step(b, g_view(g, x, rank + n, n, 1), T_SSM_C_NORM),
        .a = t[T_SSM_A].w, .d = t[T_SSM_D].w,
    };
    state_params p = state_of(b);
    return finish_mixer(b, T_SSM_OUT, g_gate(g, GATE_SILU, z, g_scan(g, &in, &p)));
}

value *build_mamba2(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t inner = sym(b, 'I'), n = sym(b, 'O'), heads = sym(b, 'T'), groups = sym(b, 'Y'), conv = inner + 2 * groups * n;
    value *all = build_linear(b, &t[T_SSM_IN], h), *z = g_view(g, all, 0, inner, 1);
    value *u = convolve(b, g_view(g, all, inner, conv, 1), T_SSM_CONV1D, 0);
    value *dt = g_add(g, g_view(g, all, inner + conv, heads, 1), g_weight(g, t[T_SSM_DT_BIAS].w));
    scan_inputs in = {
        .x = g_view(g, u, 0, inner / heads, heads), .dt = g_gate(g, GATE_SOFTPLUS, dt, NULL),
        .b = g_view(g, u, inner, n, groups), .c = g_view(g, u, inner + groups * n, n, groups),
        .a = t[T_SSM_A].w, .d = t[T_SSM_D].w,
    };
    state_params p = state_of(b);
    value *y = g_gate(g, GATE_SILU, z, g_scan(g, &in, &p));
    if (t[T_SSM_NORM].w) y = g_norm(g, y, t[T_SSM_NORM].w, NULL, (norm_params){ NORM_RMS, b->h->eps, (int)(inner / groups) });
    return finish_mixer(b, T_SSM_OUT, y);
}

/* z and u lie side by side in each head; the norms are always there. */
value *build_plamo(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t inner = sym(b, 'I'), n = sym(b, 'O'), heads = sym(b, 'T'), width = inner / heads;
    value *zu = g_view(g, build_linear(b, &t[T_SSM_IN], h), 0, 2 * width, heads), *z = g_view(g, zu, 0, width, heads);
    value *u = convolve(b, g_view(g, zu, width, width, heads), T_SSM_CONV1D, 0);
    value *x = build_linear(b, &t[T_SSM_X], u);
    value *dt = norm_step(b, g_view(g, x, 2 * n, sym(b, 'A'), 1), T_SSM_DT_NORM);
    scan_inputs in = {
        .x = g_view(g, u, 0, width, heads), .dt = g_gate(g, GATE_SOFTPLUS, build_linear(b, &t[T_SSM_DT], dt), NULL),
        .b = norm_step(b, g_view(g, x, 0, n, 1), T_SSM_B_NORM), .c = norm_step(b, g_view(g, x, n, n, 1), T_SSM_C_NORM),
        .a = t[T_SSM_A].w, .d = t[T_SSM_D].w,
    };
    state_params p = state_of(b);
    value *y = g_gate(g, GATE_SILU, z, g_scan(g, &in, &p));
    return finish_mixer(b, T_SSM_OUT, g_view(g, y, 0, inner, 1));
}

value *build_short_conv(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t d = sym(b, 'D');
    value *all = build_linear(b, &t[T_SHORTCONV_IN], h);
    state_params p = state_of(b);
    value *in = g_mul(g, g_view(g, all, 0, d, 1), g_view(g, all, 2 * d, d, 1));
    value *y = g_mul(g, g_view(g, all, d, d, 1), g_conv(g, in, t[T_SHORTCONV_CONV].w, NULL, &p));
    return finish_mixer(b, T_SHORTCONV_OUT, y);
}

/* ---- gated delta rule ---- */

typedef struct delta_parts {
    value *q, *k, *v, *z; /* before the convolution, any form of row */
} delta_parts;

/* Either q, k, v one after the other and z by itself, or per key head q, k and its value heads' v, z. */
static delta_parts split_delta(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t d = sym(b, 'O'), keys = sym(b, 'Y'), inner = sym(b, 'I'), share = inner / keys;
    if (t[T_SSM_QKV].w) {
        value *x = build_linear(b, &t[T_SSM_QKV], h);
        return (delta_parts) { g_view(g, x, 0, d * keys, 1), g_view(g, x, d * keys, d * keys, 1), g_view(g, x, 2 * d * keys, inner, 1),
                               build_linear(b, &t[T_SSM_GATE], h) };
    }
    value *x = g_view(g, build_linear(b, &t[T_SSM_IN], h), 0, 2 * d + 2 * share, keys);
    return (delta_parts) { g_view(g, x, 0, d, keys), g_view(g, x, d, d, keys), g_view(g, x, 2 * d, share, keys),
                           g_view(g, x, 2 * d + share, share, keys) };
}

/* What goes into beta and the step: one of each per value head. */
static void split_steps(builder *b, value *h, value **beta, value **alpha)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t keys = sym(b, 'Y'), share = sym(b, 'T') / keys;
    if (t[T_SSM_BA].w) {
        value *x = g_view(g, build_linear(b, &t[T_SSM_BA], h), 0, 2 * share, keys);
        *beta = g_view(g, x, 0, share, keys);
        *alpha = g_view(g, x, share, share, keys);
    } else {
        *beta = build_linear(b, &t[T_SSM_BETA], h);
        *alpha = build_linear(b, &t[T_SSM_ALPHA], h);
    }
}

/* Each head divided by the root of its sum of squares + eps, times `scale`: the norm by the mean, put right. */
static value *unit(builder *b, value *x, int64_t d, int64_t heads, double scale)
{
    value *n = g_norm(b->g, g_view(b->g, x, 0, d, heads), NULL, NULL, (norm_params){ NORM_RMS, b->h->eps / (float)d, (int)d });
    return g_scale(b->g, n, (float)(scale / __builtin_sqrt((double)d)));
}

value *build_delta(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    int64_t d = sym(b, 'O'), keys = sym(b, 'Y'), heads = sym(b, 'T'), inner = sym(b, 'I'), dv = inner / heads;
    delta_parts p = split_delta(b, h);
    value *beta, *alpha;
    split_steps(b, h, &beta, &alpha);
    value *step = g_gate(g, GATE_SOFTPLUS, g_add(g, alpha, g_weight(g, t[T_SSM_DT_BIAS].w)), NULL);
    delta_inputs in = {
        .q = unit(b, convolve(b, p.q, T_SSM_CONV1D, 0), d, keys, 1 / __builtin_sqrt((double)d)),
        .k = unit(b, convolve(b, p.k, T_SSM_CONV1D, d * keys), d, keys, 1),
        .v = g_view(g, convolve(b, p.v, T_SSM_CONV1D, 2 * d * keys), 0, dv, heads),
        .decay = g_gate(g, GATE_EXP, g_mul(g, step, g_weight(g, t[T_SSM_A].w)), NULL),
        .beta = g_gate(g, GATE_SIGMOID, beta, NULL),
    };
    state_params s = state_of(b);
    s.spread = b->a->recurrent.kind == DELTA_SPREAD;
    value *y = g_norm(g, g_delta(g, &in, &s), t[T_SSM_NORM].w, NULL, (norm_params){ NORM_RMS, b->h->eps, (int)dv });
    y = g_gate(g, GATE_SILU, p.z, y);
    return finish_mixer(b, T_SSM_OUT, g_view(g, y, 0, inner, 1));
}

value *build_recurrent(builder *b, value *h)
{
    switch (b->a->recurrent.kind) {
    case MAMBA: return build_mamba(b, h);
    case MAMBA2: return build_mamba2(b, h);
    case MAMBA_PLAMO: return build_plamo(b, h);
    case SHORT_CONV: return build_short_conv(b, h);
    case DELTA: case DELTA_SPREAD: return build_delta(b, h);
    case RWKV6: return build_rwkv6(b, h);
    case RWKV7: return build_rwkv7(b, h);
    case RECURRENT_NONE: break;
    }
    return NULL;
}
