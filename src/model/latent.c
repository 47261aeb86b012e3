/* latent.c - multi-head latent attention (DeepSeek-V2, 2024): keys and values of all heads come from one compressed row c of C
 * values and one rotated row r of R values that all heads share.
 *
 *   q  = W_q h, or W_qb norm(W_qa h): H heads of [M-R plain | R rotated]
 *   plain:     per head [key M-R | value Z] = W_kvb c; k = [key | r]
 *   absorbed:  q' = [W_kb[head] plain | rotated], one key-value head k = [c | r], v = c, the head's output W_vb[head] . mean
 * Both give the same scores; the absorbed form caches C + R values in place of H (M + Z). */
#include "model/build.h"

/* Norm of a compressed row. */
static value *norm_row(builder *b, value *x, const weight *w)
{
    return g_norm(b->g, x, w, NULL, (norm_params){ NORM_RMS, b->h->eps, 0 });
}

static value *queries(builder *b, value *h, int64_t m)
{
    const bound *t = b->t;
    value *q;
    if (t[T_ATTN_Q_A].w) {
        value *a = norm_row(b, build_linear(b, &t[T_ATTN_Q_A], h), t[T_ATTN_Q_A_NORM].w);
        q = build_linear(b, &t[T_ATTN_Q_B], a);
    } else {
        q = build_linear(b, &t[T_ATTN_Q], h);
    }
    return g_view(b->g, q, 0, m, b->n_head);
}

value *build_latent_attention(builder *b, value *h)
{
    graph *g = b->g;
    const bound *t = b->t;
    const symbols *s = &b->h->sym;
    int64_t m = SYM(*s, M), z = SYM(*s, Z), c = SYM(*s, C), r = b->n_rot, plain = m - r;
    bool halves = b->h->rope.kind != ROPE_NORM;
    value *table = build_angles(b);
    value *q = queries(b, h, m);
    value *low = build_linear(b, &t[T_ATTN_KV_A_MQA], h);
    value *latent_row = norm_row(b, g_view(g, low, 0, c, 1), t[T_ATTN_KV_A_NORM].w);
    value *shared = g_view(g, low, c, r, 1);
    if (table) {
        q = g_rope(g, q, table, (int)plain, halves);
        shared = g_rope(g, shared, table, 0, halves);
    }
    value *y;
    if (b->h->absorbed) {
        value *inner = g_matmul_heads(g, t[T_ATTN_K_B].w, g_view(g, q, 0, plain, b->n_head));
        q = build_temperature(b, g_concat(g, inner, g_view(g, q, plain, r, b->n_head)));
        y = build_heads(b, q, g_concat(g, latent_row, shared), latent_row);
        if (!y) return NULL;
        y = g_matmul_heads(g, t[T_ATTN_V_B].w, y);
    } else {
        value *kv = g_view(g, build_linear(b, &t[T_ATTN_KV_B], latent_row), 0, plain + z, b->n_head);
        value *k = g_concat(g, g_view(g, kv, 0, plain, b->n_head), shared);
        y = build_heads(b, build_temperature(b, q), k, g_view(g, kv, plain, z, b->n_head));
        if (!y) return NULL;
    }
    return build_linear(b, &t[T_ATTN_OUTPUT], g_view(g, y, 0, b->n_head * z, 1));
}
