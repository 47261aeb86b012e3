/* attn.c - attention of one block: projections, norms of heads, rotary, scores, output.
 *
 *   h ── W_q, W_k, W_v (or one fused matrix) ── clamp ── head norm ── rotary ── temperature ── softmax(q k / scale) v
 *     ── gate, sub-norm ── W_o */
#include "base/mathd.h"
#include "model/build.h"

typedef struct qkv {
    value *q, *k, *v; /* rows of all heads */
} qkv;

static value *part_of_row(builder *b, value *x, const bound *t, int64_t offset, int64_t width)
{
    return g_add(b->g, g_view(b->g, x, offset, width, 1), g_weight(b->g, t->b));
}

static qkv project(builder *b, value *h)
{
    const bound *t = b->t;
    int64_t q = b->n_head * b->k * (b->a->attn.gated_query ? 2 : 1), k = b->n_kv * b->k, v = b->n_kv * b->w, d = SYM(b->h->sym, D);
    qkv p;
    if (t[T_ATTN_QKV].w) {
        value *y = build_linear(b, &t[T_ATTN_QKV], h);
        bool at_d = b->a->attn.fused_at_d;
        p.q = part_of_row(b, y, &t[T_ATTN_Q], 0, q);
        p.k = part_of_row(b, y, &t[T_ATTN_K], at_d ? d : q, k);
        p.v = part_of_row(b, y, &t[T_ATTN_V], at_d ? 2 * d : q + k, v);
    } else {
        p.q = build_linear(b, &t[T_ATTN_Q], h);
        p.k = build_linear(b, &t[T_ATTN_K], h);
        p.v = build_linear(b, &t[T_ATTN_V], h);
    }
    float c = b->h->clamp;
    if (c > 0) p.q = g_clamp(b->g, p.q, -c, c), p.k = g_clamp(b->g, p.k, -c, c), p.v = g_clamp(b->g, p.v, -c, c);
    return p;
}

/* Norm of the heads of q or k; x is [K, heads, T]. */
static value *norm_heads(builder *b, value *x, const bound *t)
{
    const attention_recipe *a = &b->a->attn;
    int group = (int)b->k;
    switch (a->head_norm) {
    case HEAD_NORM_NONE: return x;
    case HEAD_NORM_UNIT:
        if (!b->l->rotary || (a->norm_unless_experts && a->norm_unless_experts == SYM(b->h->sym, E))) return x;
        break;
    case HEAD_NORM_ROW: group = 0; /* fall through */
    case HEAD_NORM_SHARED: case HEAD_NORM_EACH:
        if (!b->t[T_ATTN_Q_NORM].w) return x;
        break;
    }
    return g_norm(b->g, x, t->w, t->b, (norm_params){ b->h->norm, b->h->eps, group });
}

static value *rotate(builder *b, value *x)
{
    value *table = build_angles(b);
    return table ? g_rope(b->g, x, table, 0, b->h->rope.kind != ROPE_NORM) : x;
}

static value *place(builder *b, value *x, const bound *norm)
{
    bool after = b->a->attn.norm_after_rotary;
    if (!after) x = norm_heads(b, x, norm);
    x = rotate(b, x);
    return after ? norm_heads(b, x, norm) : x;
}

static float score_scale_of(const builder *b)
{
    const attention_recipe *a = &b->a->attn;
    const hparams *h = b->h;
    double m = (double)SYM(h->sym, M), k = (double)b->k;
    score_scale rule = a->scale_only_layers && a->scale_only_layers != h->n_layer ? SCORE_SQRT_K : a->scale;
    switch (rule) {
    case SCORE_SQRT_K: if (h->attention_scale != 0) return h->attention_scale; break;
    case SCORE_SQRT_R: return (float)(1 / __builtin_sqrt((double)b->n_rot));
    case SCORE_K: return (float)(1 / k);
    case SCORE_KEY: if (h->attention_scale != 0) return h->attention_scale; break;
    case SCORE_SQRT_D_H:
        if (h->attention_scale != 0) return h->attention_scale;
        return (float)(1 / __builtin_sqrt((double)(SYM(h->sym, D) / b->n_head)));
    case SCORE_OUTPUT_SCALE: return h->output_scale;
    case SCORE_LATENT: {
        double g = b->rope.attn_factor * (1 + 0.1 * b->rope.ln_s) * (1 + 0.1 * b->rope.log_multiplier * b->rope.ln_s);
        return (float)(g * g / __builtin_sqrt(m));
    }
    }
    return (float)(1 / __builtin_sqrt(k));
}

value *build_heads(builder *b, value *q, value *k, value *v)
{
    const hparams *h = b->h;
    value *written = g_kv_write(b->g, k, v, b->il);
    if (b->il == h->n_layer - 1 && b->p->n_outputs == 0) return NULL;
    attention_params p = {
        .layer = b->il, .n_head = (int)b->n_head, .n_kv_head = (int)b->n_kv, .k_dim = (int)b->k, .v_dim = (int)b->w,
        .scale = score_scale_of(b), .softcap = h->score_cap, .causal = b->p->causal,
        .window = b->l->window ? h->window : WINDOW_NONE, .window_size = b->l->window ? h->window_size : 0,
        .alibi_max_bias = h->alibi,
    };
    return build_narrow(b, g_attention(b->g, q, written, b->t[T_ATTN_SINKS].w, &p));
}

value *build_attention(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    qkv p = project(b, h);
    value *q = g_view(g, p.q, 0, b->k, b->n_head), *k = g_view(g, p.k, 0, b->k, b->n_kv), *v = g_view(g, p.v, 0, b->w, b->n_kv);
    if (b->a->attn.gated_query) q = g_view(g, g_view(g, p.q, 0, 2 * b->k, b->n_head), 0, b->k, b->n_head);
    q = build_temperature(b, place(b, q, &t[T_ATTN_Q_NORM]));
    k = place(b, k, &t[T_ATTN_K_NORM]);
    value *y = build_heads(b, q, k, v);
    if (!y) return NULL;
    if (b->a->attn.gated_query) {
        value *both = g_view(g, build_narrow(b, p.q), 0, 2 * b->k, b->n_head);
        y = g_gate(g, GATE_SIGMOID, g_view(g, both, b->k, b->k, b->n_head), y);
    }
    y = g_view(g, y, 0, b->n_head * b->w, 1);
    if (t[T_ATTN_GATE].w) y = g_gate(g, GATE_SIGMOID, build_linear(b, &t[T_ATTN_GATE], build_narrow(b, h)), y);
    if (t[T_ATTN_SUB_NORM].w) y = build_norm(b, y, &t[T_ATTN_SUB_NORM]);
    return g_scale(g, build_linear(b, &t[T_ATTN_OUTPUT], y), b->h->value_scale);
}
