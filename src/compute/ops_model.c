/* ops_model.c - constructors: rotary positions, attention, experts, recurrent layers. Tokens are the last axis. */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "compute/compute.h"

#define G compute_graph(g)
#define SHOW_BYTES 200

static void wrong(loam_graph *g, const char *op, const loam_tensor *x, const char *why)
{
    char text[SHOW_BYTES];
    compute_fail(g, op, "%s: %s", compute_show(x, text, sizeof text), why);
}

/* [width, heads, tokens] of floats. */
static value *heads(loam_graph *g, const char *op, loam_tensor *x)
{
    if (x->type != LOAM_F32) wrong(g, op, x, "must be f32");
    else if (x->ne[3] != 1) wrong(g, op, x, "has a fourth axis");
    else return compute_rows(g, x, x->ne[0], x->ne[1], x->ne[2]);
    return NULL;
}

/* One token's values as one row: [width, tokens], or [width, heads, tokens]. */
static int64_t tokens_of(const loam_tensor *x) { return x->n_axes <= 2 ? x->ne[1] : x->ne[2]; }
static int64_t mids_of(const loam_tensor *x) { return x->n_axes <= 2 ? 1 : x->ne[1]; }

static value *tokens(loam_graph *g, const char *op, loam_tensor *x)
{
    if (x->type != LOAM_F32) wrong(g, op, x, "must be f32");
    else if (x->ne[3] != 1) wrong(g, op, x, "has a fourth axis");
    else return compute_rows(g, x, x->ne[0], mids_of(x), tokens_of(x));
    return NULL;
}

static value *positions(loam_graph *g, const char *op, loam_tensor *x, int64_t n)
{
    if (x->type != LOAM_I32) wrong(g, op, x, "positions must be i32");
    else if (x->ne[1] * x->ne[2] * x->ne[3] != 1 || (n && x->ne[0] != n)) wrong(g, op, x, "there must be a position for each token");
    else return compute_rows(g, x, 1, 1, x->ne[0]);
    return NULL;
}

/* ---- rotary positions ---- */

loam_tensor *loam_op_rope_table(loam_graph *g, loam_tensor *pos, loam_tensor *factors, const loam_rope_params *p)
{
    if (!compute_all(g, "ROPE_TABLE", (loam_tensor *[]){ pos, factors }, 2, 1)) return NULL;
    bool sections = p && (p->sections[0] | p->sections[1] | p->sections[2] | p->sections[3]) != 0;
    for (int i = 0; p && i < 4; i++)
        if (p->sections[i] < 0 || p->sections[i] > LIMIT_WIDTH) p = NULL;
    if (!p || !(p->base > 0.0f)) {
        compute_fail(g, "ROPE_TABLE", p ? "the base is not positive" : "parameters are NULL or a section is negative");
        return NULL;
    }
    rope_params r = {
        .kind = !sections ? ROPE_NEOX : p->interleaved ? ROPE_IMROPE : ROPE_MROPE, .n_rot = p->n_rot, .base = p->base,
        .freq_scale = p->freq_scale == 0.0f ? 1.0f : p->freq_scale, .ext_factor = p->ext_factor, .ramp_low = p->ramp_low,
        .ramp_high = p->ramp_high, .magnitude = p->magnitude == 0.0f ? 1.0f : p->magnitude,
    };
    memcpy(r.sections, p->sections, sizeof r.sections);
    value *v = positions(g, "ROPE_TABLE", pos, 0);
    const weight *f = compute_weight(g, factors);
    return v ? compute_result(g, g_rope_table(G, v, &r, f), 2, (const int64_t[4]){ p->n_rot, pos->ne[0] }) : NULL;
}

loam_tensor *loam_op_rope(loam_graph *g, loam_tensor *x, loam_tensor *table, int first, bool neox)
{
    if (!compute_all(g, "ROPE", (loam_tensor *[]){ x, table }, 2, 2)) return NULL;
    value *v = heads(g, "ROPE", x), *t = v ? heads(g, "ROPE", table) : NULL;
    if (!t) return NULL;
    if (table->ne[1] != x->ne[2] || table->ne[2] != 1 || first < 0 || first > x->ne[0] - table->ne[0] || table->ne[0] % 2) {
        wrong(g, "ROPE", table, "does not fit the heads or tokens of the input");
        return NULL;
    }
    t = compute_rows(g, table, table->ne[0], 1, table->ne[1]);
    return compute_like(g, g_rope(G, v, t, first, neox), x);
}

loam_tensor *loam_op_temperature(loam_graph *g, loam_tensor *x, loam_tensor *pos, const float tno[3])
{
    if (!compute_all(g, "TEMPERATURE", (loam_tensor *[]){ x, pos }, 2, 2)) return NULL;
    if (!tno || !(tno[1] > 0.0f)) {
        compute_fail(g, "TEMPERATURE", "n must be positive");
        return NULL;
    }
    value *v = tokens(g, "TEMPERATURE", x), *p = v ? positions(g, "TEMPERATURE", pos, tokens_of(x)) : NULL;
    return p ? compute_like(g, g_temperature(G, v, p, tno[0], tno[1], tno[2]), x) : NULL;
}

/* ---- attention ---- */

static uint64_t head_bytes(loam_type t, int64_t dim)
{
    return (uint64_t)(dim / dtype_table[t].values * dtype_table[t].bytes) * PAGE_SLOTS;
}

static bool attention_fits(loam_graph *g, loam_tensor *const x[3], const loam_tensor *sinks, const loam_attention_params *p)
{
    const loam_tensor *q = x[0], *k = x[1], *v = x[2];
    if (k->ne[0] != q->ne[0]) wrong(g, "ATTENTION", k, "keys are not as wide as queries");
    else if (q->ne[1] % k->ne[1]) wrong(g, "ATTENTION", k, "queries do not share these heads evenly");
    else if (v->ne[1] != k->ne[1] || v->ne[2] != k->ne[2]) wrong(g, "ATTENTION", v, "values do not fit the keys");
    else if (q->ne[2] > k->ne[2] && p->causal) wrong(g, "ATTENTION", q, "there are more queries than keys");
    else if (q->ne[1] > LIMIT_HEADS || q->ne[0] > LIMIT_WIDTH || v->ne[0] > LIMIT_WIDTH || k->ne[2] > LIMIT_CONTEXT)
        wrong(g, "ATTENTION", q, "is too large");
    else if (!dtype_caches(p->type_k) || !dtype_caches(p->type_v)) wrong(g, "ATTENTION", k, "no such type of keys or values");
    else if (k->ne[0] % dtype_table[p->type_k].values || v->ne[0] % dtype_table[p->type_v].values)
        wrong(g, "ATTENTION", k, "heads are not made of blocks of the wanted type");
    else if (sinks && (sinks->type != LOAM_F32 || sinks->ne[0] != q->ne[1])) wrong(g, "ATTENTION", sinks, "there is one sink a head");
    else return true;
    return false;
}

loam_tensor *loam_op_attention(loam_graph *g, loam_tensor *const qkv[3], loam_tensor *sinks, const loam_attention_params *p)
{
    if (!qkv || !p) {
        if (g) compute_fail(g, "ATTENTION", "inputs or parameters are NULL");
        return NULL;
    }
    if (!compute_all(g, "ATTENTION", qkv, 3, 3) || !compute_all(g, "ATTENTION", &sinks, 1, 0)) return NULL;
    if (!attention_fits(g, qkv, sinks, p)) return NULL;
    value *in[3];
    for (int i = 0; i < 3; i++)
        if (!(in[i] = heads(g, "ATTENTION", qkv[i]))) return NULL;
    int dim = (int)qkv[0]->ne[0], v_dim = (int)qkv[2]->ne[0], n_kv = (int)qkv[1]->ne[1];
    attention_params a = {
        .layer = (int)g->n_sides, .n_head = (int)qkv[0]->ne[1], .n_kv_head = n_kv, .k_dim = dim, .v_dim = v_dim,
        .scale = p->scale == 0.0f ? 1.0f / sqrtf((float)dim) : p->scale, .softcap = p->softcap, .causal = p->causal,
        .window = p->window > 0 ? WINDOW_STANDARD : WINDOW_NONE, .window_size = p->window, .alibi_max_bias = p->alibi,
    };
    side s = { .n_q = qkv[0]->ne[2], .n_k = qkv[1]->ne[2] };
    s.shape = (page_shape){ .k_type = p->type_k, .v_type = p->type_v, .n_kv_head = n_kv, .k_dim = dim, .v_dim = v_dim };
    s.shape.k_head_bytes = head_bytes(p->type_k, dim);
    s.shape.v_head_bytes = head_bytes(p->type_v, v_dim);
    s.shape.page_bytes = (uint64_t)n_kv * (s.shape.k_head_bytes + s.shape.v_head_bytes);
    const weight *extra = compute_weight(g, sinks);
    value *written = g_kv_write(G, in[1], in[2], a.layer);
    s.v = g_attention(G, in[0], written, extra, &a);
    if (!s.v || compute_note_side(g, s) != LOAM_OK) return NULL;
    return compute_result(g, s.v, 3, (const int64_t[4]){ v_dim, a.n_head, s.n_q });
}

/* ---- experts ---- */

loam_tensor *loam_op_route(loam_graph *g, loam_tensor *logits, loam_tensor *bias, const loam_routing *p)
{
    if (!compute_all(g, "ROUTE", (loam_tensor *[]){ logits, bias }, 2, 1)) return NULL;
    if (!p || (int)p->router < 0 || p->router > LOAM_ROUTER_SQRT_SOFTPLUS || logits->ne[0] > LIMIT_EXPERTS || logits->ne[2] * logits->ne[3] != 1) {
        wrong(g, "ROUTE", logits, "is no [experts, tokens], or the parameters are NULL");
        return NULL;
    }
    if (bias && bias->type != LOAM_F32) {
        wrong(g, "ROUTE", bias, "must be f32");
        return NULL;
    }
    route_params r = {
        .n_expert = (int)logits->ne[0], .n_used = p->n_used, .n_group = p->n_group > 0 ? p->n_group : 1,
        .n_group_used = p->n_group_used > 0 ? p->n_group_used : 1, .router = (router_kind)p->router, .select = SELECT_PROBS,
        .normalise = p->normalise, .scale = p->scale == 0.0f ? 1.0f : p->scale, .divide = 1,
    };
    value *v = tokens(g, "ROUTE", logits);
    const weight *b = compute_weight(g, bias);
    return v ? compute_result(g, g_route(G, v, b, &r), 2, (const int64_t[4]){ 2 * p->n_used, logits->ne[1] }) : NULL;
}

/* The routing as it was made, for this many tokens; n_expert >= 0: of so many experts. NULL after a mistake. */
static value *routing_of(loam_graph *g, const char *op, const loam_tensor *r, int64_t n_tokens, int64_t n_expert)
{
    if (!r->v || r->is_view || r->v->op != OP_ROUTE) wrong(g, op, r, "is no result of loam_op_route");
    else if (r->ne[1] != n_tokens) wrong(g, op, r, "is for another number of tokens");
    else if (n_expert >= 0 && n_expert != r->v->p.route.n_expert) wrong(g, op, r, "is for another number of experts");
    else return r->v;
    return NULL;
}

loam_tensor *loam_op_experts(loam_graph *g, loam_tensor *w, loam_tensor *x, loam_tensor *routing)
{
    if (!compute_all(g, "EXPERTS", (loam_tensor *[]){ w, x, routing }, 3, 3)) return NULL;
    if (w->ne[3] != 1) {
        wrong(g, "EXPERTS", w, "has a fourth axis");
        return NULL;
    }
    value *r = routing_of(g, "EXPERTS", routing, tokens_of(x), w->ne[2]), *v = r ? tokens(g, "EXPERTS", x) : NULL;
    const weight *m = v ? compute_weight(g, w) : NULL;
    return m ? compute_result(g, g_experts(G, m, v, r), 3, (const int64_t[4]){ w->ne[1], routing->ne[0] / 2, tokens_of(x) }) : NULL;
}

typedef value *(*expert_fn)(graph *g, value *y, const weight *w, value *routing);

/* An operation of each row of y with what w holds for its expert, counted along axis `experts` of w. */
static loam_tensor *each_expert(loam_graph *g, const char *op, loam_tensor *const x[3], int experts, expert_fn f)
{
    if (!compute_all(g, op, x, 3, 3)) return NULL;
    loam_tensor *y = x[0], *w = x[1], *routing = x[2];
    value *r = routing_of(g, op, routing, y->ne[2], w->ne[experts]), *v = r ? heads(g, op, y) : NULL;
    if (v && y->ne[1] != routing->ne[0] / 2) wrong(g, op, y, "has not one row for each expert of a token");
    const weight *m = compute_weight(g, w);
    return v && m ? compute_like(g, f(G, v, m, r), y) : NULL;
}

loam_tensor *loam_op_expert_add(loam_graph *g, loam_tensor *y, loam_tensor *bias, loam_tensor *routing)
{
    return each_expert(g, "EXPERT_ADD", (loam_tensor *[]){ y, bias, routing }, 1, g_expert_add);
}

loam_tensor *loam_op_expert_scale(loam_graph *g, loam_tensor *y, loam_tensor *scale, loam_tensor *routing)
{
    return each_expert(g, "EXPERT_SCALE", (loam_tensor *[]){ y, scale, routing }, 0, g_expert_scale);
}

loam_tensor *loam_op_expert_sum(loam_graph *g, loam_tensor *y, loam_tensor *routing)
{
    if (!compute_all(g, "EXPERT_SUM", (loam_tensor *[]){ y, routing }, 2, 1)) return NULL;
    value *r = routing ? routing_of(g, "EXPERT_SUM", routing, y->ne[2], -1) : NULL, *v = r || !routing ? heads(g, "EXPERT_SUM", y) : NULL;
    return v ? compute_result(g, g_expert_sum(G, v, r), 2, (const int64_t[4]){ y->ne[0], y->ne[2] }) : NULL;
}

loam_tensor *loam_op_expert_weigh(loam_graph *g, loam_tensor *x, loam_tensor *routing)
{
    if (!compute_all(g, "EXPERT_WEIGH", (loam_tensor *[]){ x, routing }, 2, 2)) return NULL;
    value *r = routing_of(g, "EXPERT_WEIGH", routing, tokens_of(x), -1), *v = r ? tokens(g, "EXPERT_WEIGH", x) : NULL;
    int64_t width = x->ne[0] * mids_of(x);
    return v ? compute_result(g, g_expert_weigh(G, v, r), 3, (const int64_t[4]){ width, routing->ne[0] / 2, tokens_of(x) }) : NULL;
}

/* ---- recurrent layers ---- */

/* Notes the state of y, in floats of the two kinds of rows, and gives its tensor. */
static loam_tensor *stateful(loam_graph *g, value *y, const loam_tensor *like, side s)
{
    s.v = y;
    return y && compute_note_side(g, s) == LOAM_OK ? compute_like(g, y, like) : NULL;
}

static bool has_data(loam_graph *g, const char *op, const loam_tensor *x)
{
    if (!x || (x->data && !x->is_view)) return true;
    wrong(g, op, x, "must be a tensor with data of its own");
    return false;
}

loam_tensor *loam_op_conv(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *bias)
{
    if (!compute_all(g, "CONV", (loam_tensor *[]){ x, w, bias }, 3, 2) || !has_data(g, "CONV", w) || !has_data(g, "CONV", bias)) return NULL;
    value *v = tokens(g, "CONV", x);
    state_params p = { .layer = (int)g->n_sides };
    side s = { .r_row = (w->ne[0] - 1) * x->ne[0] * mids_of(x), .n_q = tokens_of(x) };
    return v ? stateful(g, g_conv(G, v, &w->data->w, bias ? &bias->data->w : NULL, &p), x, s) : NULL;
}

loam_tensor *loam_op_token_shift(loam_graph *g, loam_tensor *x)
{
    value *v = compute_all(g, "TOKEN_SHIFT", &x, 1, 1) ? tokens(g, "TOKEN_SHIFT", x) : NULL;
    state_params p = { .layer = (int)g->n_sides };
    return v ? stateful(g, g_token_shift(G, v, &p), x, (side){ .r_row = x->ne[0] * mids_of(x), .n_q = tokens_of(x) }) : NULL;
}

/* All of x as [width, heads, tokens]; n of them. */
static bool all_heads(loam_graph *g, const char *op, loam_tensor *const *x, int n, value **v)
{
    for (int i = 0; i < n; i++)
        if (!(v[i] = heads(g, op, x[i]))) return false;
    return true;
}

loam_tensor *loam_op_scan(loam_graph *g, const loam_scan *in)
{
    if (!g || !in) return NULL;
    loam_tensor *x[6] = { in->x, in->dt, in->b, in->c, in->a, in->d };
    if (!compute_all(g, "SCAN", x, 6, 6) || !has_data(g, "SCAN", in->a) || !has_data(g, "SCAN", in->d)) return NULL;
    value *v[4] = { heads(g, "SCAN", x[0]), tokens(g, "SCAN", x[1]), heads(g, "SCAN", x[2]), heads(g, "SCAN", x[3]) };
    if (!v[0] || !v[1] || !v[2] || !v[3]) return NULL;
    scan_inputs s = { v[0], v[1], v[2], v[3], &in->a->data->w, &in->d->data->w };
    state_params p = { .layer = (int)g->n_sides };
    return stateful(g, g_scan(G, &s, &p), x[0], (side){ .s_row = x[0]->ne[0] * x[0]->ne[1] * x[2]->ne[0], .n_q = x[0]->ne[2] });
}

loam_tensor *loam_op_delta(loam_graph *g, const loam_delta *in)
{
    if (!g || !in) return NULL;
    loam_tensor *x[5] = { in->q, in->k, in->v, in->decay, in->beta };
    value *v[5];
    if (!compute_all(g, "DELTA", x, 5, 5) || !all_heads(g, "DELTA", x, 5, v)) return NULL;
    state_params p = { .layer = (int)g->n_sides, .spread = in->spread };
    delta_inputs d = { v[0], v[1], v[2], v[3], v[4] };
    return stateful(g, g_delta(G, &d, &p), x[2], (side){ .s_row = x[2]->ne[0] * x[2]->ne[1] * x[0]->ne[0], .n_q = x[2]->ne[2] });
}

loam_tensor *loam_op_wkv6(loam_graph *g, const loam_wkv6 *in)
{
    if (!g || !in) return NULL;
    loam_tensor *x[4] = { in->r, in->k, in->v, in->w };
    value *v[4];
    if (!compute_all(g, "WKV6", x, 4, 4) || !compute_all(g, "WKV6", &in->bonus, 1, 0) || !has_data(g, "WKV6", in->bonus)) return NULL;
    if (!all_heads(g, "WKV6", x, 4, v)) return NULL;
    state_params p = { .layer = (int)g->n_sides };
    wkv6_inputs w = { v[0], v[1], v[2], v[3], in->bonus ? &in->bonus->data->w : NULL };
    return stateful(g, g_wkv6(G, &w, &p), x[2], (side){ .s_row = x[2]->ne[0] * x[2]->ne[0] * x[2]->ne[1], .n_q = x[2]->ne[2] });
}

loam_tensor *loam_op_wkv7(loam_graph *g, const loam_wkv7 *in)
{
    if (!g || !in) return NULL;
    loam_tensor *x[6] = { in->r, in->w, in->k, in->v, in->kk, in->ka };
    value *v[6];
    if (!compute_all(g, "WKV7", x, 6, 6) || !all_heads(g, "WKV7", x, 6, v)) return NULL;
    state_params p = { .layer = (int)g->n_sides };
    wkv7_inputs w = { v[0], v[1], v[2], v[3], v[4], v[5] };
    return stateful(g, g_wkv7(G, &w, &p), x[3], (side){ .s_row = x[3]->ne[0] * x[3]->ne[0] * x[3]->ne[1], .n_q = x[3]->ne[2] });
}

loam_tensor *loam_op_head_dot(loam_graph *g, loam_tensor *a, loam_tensor *b, loam_tensor *v)
{
    loam_tensor *x[3] = { a, b, v };
    value *in[3];
    if (!compute_all(g, "HEAD_DOT", x, 3, 3) || !all_heads(g, "HEAD_DOT", x, 3, in)) return NULL;
    return compute_like(g, g_head_dot(G, in[0], in[1], in[2]), v);
}

loam_status compute_note_side(loam_graph *g, side s)
{
    for (size_t i = 0; i < g->n_sides; i++) {
        const side *other = &g->sides[i];
        if (s.v->op != OP_ATTENTION && other->v->op != OP_ATTENTION && other->n_q != s.n_q) {
            compute_fail(g, op_name(s.v->op), "%lld tokens, another recurrent layer of the graph has %lld", (long long)s.n_q, (long long)other->n_q);
            return LOAM_E_ARG;
        }
    }
    if (!mem_grow(&g->sides, &g->cap_sides, g->n_sides + 1, sizeof *g->sides, INT32_MAX)) {
        graph_fail(G, LOAM_E_NOMEM, "out of memory: a graph");
        return LOAM_E_NOMEM;
    }
    g->sides[g->n_sides++] = s;
    return LOAM_OK;
}
