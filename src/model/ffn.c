/* ffn.c - dense feed-forward and shared expert. */
#include "model/build.h"

/* W x + bias, then the weight scale: here it multiplies the bias too. */
static value *linear_then_scale(builder *b, const bound *t, value *x)
{
    value *y = g_adapt(b->g, t->w, x, NULL, g_matmul(b->g, t->w, x));
    return g_scale(b->g, g_add(b->g, y, g_weight(b->g, t->b)), t->scale);
}

static value *gated_halves(builder *b, gate_kind f, value *u)
{
    int64_t half = u ? u->ne[0] / 2 : 0;
    return g_gate(b->g, f, g_view(b->g, u, 0, half, 1), g_view(b->g, u, half, half, 1));
}

value *build_dense(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->t;
    if (!t[T_FFN_UP].w || !t[T_FFN_DOWN].w) {
        graph_fail(g, LOAM_E_FORMAT, "block %d has neither experts nor ffn_up and ffn_down", b->il);
        return NULL;
    }
    ffn_kind kind = b->a->ffn.kind;
    value *up = linear_then_scale(b, &t[T_FFN_UP], x), *y = NULL;
    if ((kind == SWIGLU || kind == GEGLU) && !t[T_FFN_GATE].w) {
        graph_fail(g, LOAM_E_FORMAT, "block %d has neither experts nor ffn_gate", b->il);
        return NULL;
    }
    switch (kind) {
    case SWIGLU: y = g_gate(g, GATE_SILU, linear_then_scale(b, &t[T_FFN_GATE], x), up); break;
    case GEGLU: y = g_gate(g, GATE_GELU, linear_then_scale(b, &t[T_FFN_GATE], x), up); break;
    case SWIGLU_FUSED: y = gated_halves(b, GATE_SILU, up); break;
    case FUSED_BY_KEY: y = gated_halves(b, b->h->activation, up); break;
    case GEGLU_ANY:
        if (t[T_FFN_GATE].w) y = g_gate(g, GATE_GELU, linear_then_scale(b, &t[T_FFN_GATE], x), up);
        else if (t[T_FFN_UP].w->ne[1] != t[T_FFN_DOWN].w->ne[0]) y = gated_halves(b, GATE_GELU, up);
        else y = g_gate(g, GATE_GELU, up, NULL);
        break;
    case GEGLU_OR_RELU:
        if (t[T_FFN_GATE].w) y = g_gate(g, GATE_GELU_HALF, linear_then_scale(b, &t[T_FFN_GATE], x), up);
        else y = g_gate(g, GATE_RELU, up, NULL);
        break;
    case GELU: y = g_gate(g, GATE_GELU, up, NULL); break;
    case RELU_SQUARED: y = g_gate(g, GATE_RELU2, up, NULL); break;
    case XIELU: y = g_gate_xielu(g, up, b->l->xielu); break;
    case CHANNEL_MIX: case NO_FFN: return NULL;
    }
    if (t[T_FFN_ACT_SCALES].w) y = g_mul(g, y, g_weight(g, t[T_FFN_ACT_SCALES].w));
    if (t[T_FFN_SUB_NORM].w) y = build_norm(b, y, &t[T_FFN_SUB_NORM]);
    return linear_then_scale(b, &t[T_FFN_DOWN], y);
}

value *build_shared(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->t;
    if (!t[T_FFN_UP_SHEXP].w) return b->a->shared.identity ? g_gate(g, GATE_SILU, x, NULL) : NULL;
    value *up = linear_then_scale(b, &t[T_FFN_UP_SHEXP], x), *y;
    if (b->a->shared.fused) y = gated_halves(b, GATE_SILU, up);
    else if (b->a->shared.plain) y = g_gate(g, b->a->experts.activation, up, NULL);
    else y = g_gate(g, GATE_SILU, linear_then_scale(b, &t[T_FFN_GATE_SHEXP], x), up);
    y = linear_then_scale(b, &t[T_FFN_DOWN_SHEXP], y);
    if (t[T_FFN_GATE_INP_SHEXP].w)
        y = g_mul(g, y, g_gate(g, GATE_SIGMOID, g_matmul(g, t[T_FFN_GATE_INP_SHEXP].w, x), NULL));
    return y;
}
