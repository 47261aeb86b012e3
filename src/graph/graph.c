/* graph.c - constructors: each checks its inputs by the shape rule of its row in op.def and appends a value. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "graph/shape.h"
#include "kernels/kernels.h"

#define BLOCK_VALUES 256
#define MAX_VALUES (1u << 22)

typedef struct block {
    struct block *next;
    int used;
    value values[BLOCK_VALUES];
} block;

static const struct {
    const char *name;
    int least, most;
    shape_rule shape;
} ops[] = {
#define OP(NAME, least, most, shape, ...) { #NAME, least, most, shape_##shape },
#include "graph/op.def"
#undef OP
};

bool op_has_effect(op_kind op)
{
    switch (op) {
    case OP_KV_WRITE: case OP_CONV: case OP_TOKEN_SHIFT: case OP_SCAN: case OP_DELTA: case OP_WKV6: case OP_WKV7: return true;
    default: return false;
    }
}

const char *op_name(op_kind op) { return op >= 0 && op < OP_COUNT ? ops[op].name : "?"; }

int64_t value_bytes(const value *v) { return v->nb[2] * v->ne[2]; }

void graph_init(graph *g, int n_tokens, int n_outputs)
{
    memset(g, 0, sizeof *g);
    g->n_tokens = n_tokens;
    g->n_outputs = n_outputs;
    g->layer = -1;
}

uint64_t graph_bytes(const graph *g)
{
    uint64_t n = mem_size(g->values);
    for (const block *b = g->blocks; b; b = b->next) n += mem_size(b);
    return n;
}

void graph_free(graph *g)
{
    for (block *b = g->blocks; b;) {
        block *next = b->next;
        mem_free(b);
        b = next;
    }
    mem_free(g->values);
    memset(g, 0, sizeof *g);
}

void graph_fail(graph *g, loam_status code, const char *fmt, ...)
{
    if (g->error.code != LOAM_OK) return;
    va_list args;
    va_start(args, fmt);
    g->error.code = code;
    g->error.offset = LOAM_NO_OFFSET;
    vsnprintf(g->error.message, sizeof g->error.message, fmt, args);
    va_end(args);
}

loam_status graph_check(const graph *g, loam_error *err)
{
    if (g->error.code != LOAM_OK && err) *err = g->error;
    return g->error.code;
}

static value *append(graph *g)
{
    block *b = g->blocks;
    if (!b || b->used == BLOCK_VALUES) {
        block *fresh = mem_zalloc(sizeof *fresh);
        if (!fresh) return NULL;
        fresh->next = b;
        g->blocks = b = fresh;
    }
    if (!mem_grow(&g->values, &g->cap, (size_t)g->n_values + 1, sizeof *g->values, MAX_VALUES)) return NULL;
    value *v = &b->values[b->used++];
    v->id = v->uid = g->n_values;
    g->values[g->n_values++] = v;
    return v;
}

value *graph_adopt(graph *g, const value *v)
{
    value *c = g->error.code == LOAM_OK ? append(g) : NULL;
    if (!c) {
        graph_fail(g, LOAM_E_NOMEM, "out of memory: graph of %d values", g->n_values);
        return NULL;
    }
    int id = c->id;
    *c = *v;
    c->id = id;
    c->buffer = -1;
    c->replicated = false;
    memset(c->encoded, 0, sizeof c->encoded);
    return c;
}

/* A fresh value with its inputs; NULL once the graph has failed or when a required input is missing. */
static value *begin_with(graph *g, op_kind op, value *const src[GRAPH_MAX_SRC])
{
    if (g->error.code != LOAM_OK) return NULL;
    for (int i = 0; i < ops[op].least; i++)
        if (!src[i]) {
            graph_fail(g, LOAM_E_ARG, "%s of block %d: input %d is missing", ops[op].name, g->layer, i);
            return NULL;
        }
    value *v = append(g);
    if (!v) {
        graph_fail(g, LOAM_E_NOMEM, "out of memory: graph of %d values", g->n_values);
        return NULL;
    }
    v->op = op;
    v->layer = g->layer;
    v->name = ops[op].name;
    v->type = LOAM_F32;
    v->buffer = -1;
    v->device = -1;
    memcpy(v->src, src, sizeof v->src);
    return v;
}

static value *begin(graph *g, op_kind op, value *a, value *b, value *c)
{
    return begin_with(g, op, (value *const[GRAPH_MAX_SRC]){ a, b, c });
}

/* Contiguous strides for the value's type and extents. */
static void lay_out(value *v)
{
    const dtype_info *t = &dtype_table[v->type];
    v->nb[0] = t->bytes;
    v->nb[1] = v->ne[0] / t->values * t->bytes;
    v->nb[2] = v->nb[1] * v->ne[1];
    v->nb[3] = v->nb[2] * v->ne[2];
}

static value *finish(graph *g, value *v)
{
    if (!v) return NULL;
    char why[160];
    if (!ops[v->op].shape(v, why, sizeof why)) {
        if (v->layer < 0) graph_fail(g, LOAM_E_ARG, "%s: %s", ops[v->op].name, why);
        else graph_fail(g, LOAM_E_ARG, "%s of block %d: %s", ops[v->op].name, v->layer, why);
        return NULL;
    }
    if (v->op != OP_VIEW && v->op != OP_WEIGHT) lay_out(v);
    return v;
}

static value *binary(graph *g, op_kind op, value *a, value *b) { return finish(g, begin(g, op, a, b, NULL)); }

value *g_name(value *v, const char *name)
{
    if (v) v->name = name;
    return v;
}

value *g_input(graph *g, input_kind kind, int64_t width)
{
    if (g->inputs[kind]) return g->inputs[kind];
    value *v = begin(g, OP_INPUT, NULL, NULL, NULL);
    if (!v) return NULL;
    static const char *names[] = { "tokens", "embeddings", "positions", "output rows", "adapter strengths" };
    v->name = names[kind];
    v->layer = -1;
    v->p.in.input = kind;
    v->type = kind == INPUT_EMBD || kind == INPUT_ADAPTERS ? LOAM_F32 : LOAM_I32;
    v->ne[0] = width;
    v->ne[1] = v->ne[3] = 1;
    v->ne[2] = kind == INPUT_OUT_ROWS ? g->n_outputs : g->n_tokens;
    return g->inputs[kind] = finish(g, v);
}

value *g_weight(graph *g, const weight *w)
{
    if (w && w->from) return w->from;
    value *v = w ? begin(g, OP_WEIGHT, NULL, NULL, NULL) : NULL;
    if (!v) return NULL;
    v->p.w = w;
    v->name = w->name;
    v->type = w->type;
    memcpy(v->ne, w->ne, sizeof v->ne);
    v->nb[0] = dtype_table[w->type].bytes;
    v->nb[1] = (int64_t)w->row_bytes;
    v->nb[2] = v->nb[1] * v->ne[1];
    v->nb[3] = v->nb[2] * v->ne[2];
    return finish(g, v);
}

value *g_view(graph *g, value *x, int64_t offset, int64_t n0, int64_t n1)
{
    value *v = begin(g, OP_VIEW, x, NULL, NULL);
    if (!v) return NULL;
    bool by_head = n1 == x->ne[1] && offset >= 0 && n0 >= 0 && offset + n0 <= x->ne[0];
    bool by_row = (x->ne[1] == 1 || x->nb[1] == x->ne[0] * x->nb[0]) && offset >= 0 && n0 >= 0 && n1 >= 0 &&
                  offset + n0 * n1 <= x->ne[0] * x->ne[1];
    if (!by_head && !by_row) {
        graph_fail(g, LOAM_E_ARG, "VIEW of block %d: %lld values in %lld pieces from %lld do not lie in a row of %lld x %lld",
                   g->layer, (long long)n0, (long long)n1, (long long)offset, (long long)x->ne[0], (long long)x->ne[1]);
        return NULL;
    }
    v->type = x->type;
    v->ne[0] = n0, v->ne[1] = n1, v->ne[2] = x->ne[2], v->ne[3] = 1;
    v->nb[0] = x->nb[0], v->nb[1] = by_head ? x->nb[1] : n0 * x->nb[0], v->nb[2] = x->nb[2], v->nb[3] = x->nb[3];
    v->p.view.offset = offset * x->nb[0];
    v->recut = x->recut;
    return finish(g, v);
}

value *g_bound(graph *g, const weight *w)
{
    value *v = begin(g, OP_INPUT, NULL, NULL, NULL);
    if (!v) return NULL;
    v->name = w->name;
    v->p.in.bound = w;
    v->type = w->type;
    memcpy(v->ne, w->ne, sizeof v->ne);
    return finish(g, v);
}

value *g_recut(graph *g, value *x, int64_t offset, const int64_t ne[4])
{
    value *v = begin(g, OP_VIEW, x, NULL, NULL);
    if (!v) return NULL;
    v->type = x->type;
    v->recut = true;
    memcpy(v->ne, ne, sizeof v->ne);
    lay_out(v);
    v->p.view.offset = offset;
    return finish(g, v);
}

value *g_copy(graph *g, value *x, const copy_params *p, loam_type type)
{
    value *v = begin(g, OP_COPY, x, NULL, NULL);
    if (!v) return NULL;
    v->type = type;
    v->p.copy = *p;
    return finish(g, v);
}

value *g_tuple(graph *g, value *const src[GRAPH_MAX_SRC])
{
    value *v = begin_with(g, OP_TUPLE, src);
    if (v) v->ne[0] = v->ne[1] = v->ne[2] = v->ne[3] = 0;
    return finish(g, v);
}

value *g_custom(graph *g, value *const src[GRAPH_MAX_SRC], const custom_op *op)
{
    value *v = begin_with(g, OP_CUSTOM, src);
    if (!v) return NULL;
    v->p.custom = op;
    if (op->spec.name) v->name = op->spec.name;
    return finish(g, v);
}

value *g_embed(graph *g, const weight *table, value *ids) { return binary(g, OP_EMBED, g_weight(g, table), ids); }

value *g_select(graph *g, value *x, value *rows) { return binary(g, OP_SELECT, x, rows); }

value *g_add(graph *g, value *a, value *b) { return b ? binary(g, OP_ADD, a, b) : a; }

value *g_mul(graph *g, value *a, value *b) { return b ? binary(g, OP_MUL, a, b) : a; }

static value *unary_f(graph *g, op_kind op, value *x, float a, float b)
{
    value *v = begin(g, op, x, NULL, NULL);
    if (!v) return NULL;
    v->p.f.a = a;
    v->p.f.b = b;
    return finish(g, v);
}

value *g_scale(graph *g, value *x, float s) { return s == 1.0f ? x : unary_f(g, OP_SCALE, x, s, 0); }

value *g_clamp(graph *g, value *x, float lo, float hi) { return unary_f(g, OP_CLAMP, x, lo, hi); }

value *g_softcap(graph *g, value *x, float cap) { return cap == 0.0f ? x : unary_f(g, OP_SOFTCAP, x, cap, 0); }

value *g_gate(graph *g, gate_kind kind, value *gate, value *up)
{
    value *v = begin(g, OP_GATE, gate, up, NULL);
    if (!v) return NULL;
    v->p.gate.kind = kind;
    return finish(g, v);
}

value *g_gate_xielu(graph *g, value *x, const float p[4])
{
    value *v = begin(g, OP_GATE, x, NULL, NULL);
    if (!v) return NULL;
    v->p.gate.kind = GATE_XIELU;
    memcpy(v->p.gate.p, p, 4 * sizeof(float));
    return finish(g, v);
}

value *g_norm(graph *g, value *x, const weight *w, const weight *b, norm_params p)
{
    value *wv = g_weight(g, w), *bv = g_weight(g, b);
    value *v = begin(g, OP_NORM, x, wv, bv);
    if (!v) return NULL;
    v->p.norm = p;
    if (p.group == 0) v->p.norm.group = (int)(x->ne[0] * x->ne[1]);
    return finish(g, v);
}

value *g_concat(graph *g, value *a, value *b) { return binary(g, OP_CONCAT, a, b); }

value *g_dropout(graph *g, value *x, float rate)
{
    value *v = rate > 0 ? begin(g, OP_DROPOUT, x, NULL, NULL) : NULL;
    if (!v) return rate > 0 ? NULL : x;
    v->p.dropout.rate = rate;
    return finish(g, v);
}

value *g_softmax(graph *g, value *x) { return finish(g, begin(g, OP_SOFTMAX, x, NULL, NULL)); }

value *g_log_softmax(graph *g, value *x) { return finish(g, begin(g, OP_LOG_SOFTMAX, x, NULL, NULL)); }

value *g_sum(graph *g, value *x) { return finish(g, begin(g, OP_SUM, x, NULL, NULL)); }

value *g_conv2d(graph *g, value *x, const weight *w, const weight *bias, const image_params *p)
{
    value *wv = g_weight(g, w), *bv = g_weight(g, bias), *v = begin(g, OP_CONV2D, x, wv, bv);
    if (!v) return NULL;
    v->p.image = *p;
    return finish(g, v);
}

value *g_pool2d(graph *g, value *x, const image_params *p)
{
    value *v = begin(g, OP_POOL2D, x, NULL, NULL);
    if (!v) return NULL;
    v->p.image = *p;
    return finish(g, v);
}

value *g_temperature(graph *g, value *x, value *pos, float t, float n, float o)
{
    value *v = begin(g, OP_TEMPERATURE, x, pos, NULL);
    if (!v) return NULL;
    v->p.temp.t = t;
    v->p.temp.n = n;
    v->p.temp.o = o;
    return finish(g, v);
}

value *g_rope_table(graph *g, value *pos, const rope_params *p, const weight *factors)
{
    value *v = begin(g, OP_ROPE_TABLE, pos, g_weight(g, factors), NULL);
    if (!v) return NULL;
    v->p.rope = *p;
    return finish(g, v);
}

value *g_rope(graph *g, value *x, value *table, int offset, bool neox)
{
    value *v = begin(g, OP_ROPE, x, table, NULL);
    if (!v) return NULL;
    v->p.turn.offset = offset;
    v->p.turn.neox = neox;
    return finish(g, v);
}

/* x in the form that products with weights of this type want; made once per value. */
static value *encoded(graph *g, value *x, loam_type type)
{
    act_kind kind = dtype_table[type].act;
    if (!x || kind == ACT_F32) return x;
    if (kind == ACT_NONE) {
        graph_fail(g, LOAM_E_UNSUPPORTED, "block %d: no product is defined for weights of type %s", g->layer, loam_type_name((int)type));
        return NULL;
    }
    if (x->encoded[kind]) return x->encoded[kind];
    value *v = begin(g, OP_ENCODE, x, NULL, NULL);
    if (!v) return NULL;
    v->p.encode.kind = kind;
    return x->encoded[kind] = finish(g, v);
}

value *g_matmul(graph *g, const weight *w, value *x)
{
    value *y = w && w->n_parts > 1 ? g_matmul(g, &w->parts[0], x) : NULL;
    for (int i = 1; y && i < w->n_parts; i++) y = g_concat(g, y, g_matmul(g, &w->parts[i], x));
    if (y) return y;
    value *wv = g_weight(g, w);
    return binary(g, OP_MATMUL, wv, wv ? encoded(g, x, wv->type) : NULL);
}

value *g_matmul_heads(graph *g, const weight *w, value *x)
{
    value *wv = g_weight(g, w);
    return binary(g, OP_MATMUL_HEADS, wv, wv ? encoded(g, x, wv->type) : NULL);
}

value *g_kv_write(graph *g, value *k, value *v, int layer)
{
    value *w = begin(g, OP_KV_WRITE, k, v, NULL);
    if (!w) return NULL;
    w->p.kv.layer = layer;
    return finish(g, w);
}

value *g_attention(graph *g, value *q, value *written, const weight *extra, const attention_params *p)
{
    value *v = begin(g, OP_ATTENTION, q, written, g_weight(g, extra));
    if (!v) return NULL;
    v->p.attn = *p;
    return finish(g, v);
}

value *g_route(graph *g, value *logits, const weight *bias, const route_params *p)
{
    value *v = begin(g, OP_ROUTE, logits, g_weight(g, bias), NULL);
    if (!v) return NULL;
    v->p.route = *p;
    return finish(g, v);
}

value *g_experts(graph *g, const weight *w, value *x, value *routing)
{
    value *wv = g_weight(g, w);
    return finish(g, begin(g, OP_EXPERTS, wv, wv ? encoded(g, x, wv->type) : NULL, routing));
}

value *g_expert_add(graph *g, value *y, const weight *b, value *routing)
{
    return b ? finish(g, begin(g, OP_EXPERT_ADD, y, g_weight(g, b), routing)) : y;
}

value *g_expert_scale(graph *g, value *y, const weight *s, value *routing)
{
    return s ? finish(g, begin(g, OP_EXPERT_SCALE, y, g_weight(g, s), routing)) : y;
}

value *g_expert_sum(graph *g, value *y, value *routing) { return binary(g, OP_EXPERT_SUM, y, routing); }

value *g_expert_weigh(graph *g, value *x, value *routing) { return binary(g, OP_EXPERT_WEIGH, x, routing); }

/* ---- recurrent states ---- */

static value *stateful(graph *g, op_kind op, value *const src[GRAPH_MAX_SRC], const state_params *p)
{
    value *v = begin_with(g, op, src);
    if (v) v->p.state = *p;
    return finish(g, v);
}

value *g_conv(graph *g, value *x, const weight *w, const weight *bias, const state_params *p)
{
    value *wv = g_weight(g, w), *bv = g_weight(g, bias);
    return stateful(g, OP_CONV, (value *const[GRAPH_MAX_SRC]){ x, wv, bv }, p);
}

value *g_token_shift(graph *g, value *x, const state_params *p)
{
    return stateful(g, OP_TOKEN_SHIFT, (value *const[GRAPH_MAX_SRC]){ x }, p);
}

value *g_scan(graph *g, const scan_inputs *in, const state_params *p)
{
    value *a = g_weight(g, in->a), *d = g_weight(g, in->d);
    return stateful(g, OP_SCAN, (value *const[GRAPH_MAX_SRC]){ in->x, in->dt, in->b, in->c, a, d }, p);
}

value *g_delta(graph *g, const delta_inputs *in, const state_params *p)
{
    return stateful(g, OP_DELTA, (value *const[GRAPH_MAX_SRC]){ in->v, in->q, in->k, in->decay, in->beta }, p);
}

value *g_wkv6(graph *g, const wkv6_inputs *in, const state_params *p)
{
    value *u = g_weight(g, in->bonus);
    return stateful(g, OP_WKV6, (value *const[GRAPH_MAX_SRC]){ in->v, in->r, in->k, in->w, u }, p);
}

value *g_wkv7(graph *g, const wkv7_inputs *in, const state_params *p)
{
    return stateful(g, OP_WKV7, (value *const[GRAPH_MAX_SRC]){ in->v, in->r, in->k, in->w, in->kk, in->ka }, p);
}

value *g_head_dot(graph *g, value *a, value *b, value *v) { return finish(g, begin(g, OP_HEAD_DOT, v, a, b)); }

/* ---- adapters ---- */

static const adapter_pair *pair_of(const graph_adapter *a, const weight *w)
{
    for (int i = 0; i < a->n_pairs; i++)
        if (a->pairs[i].base == w) return &a->pairs[i];
    return NULL;
}

/* Strength of adapter i for each of `tokens` rows: [1, tokens]. */
static value *strength(graph *g, int i, int64_t tokens)
{
    bool narrowed = tokens != g->n_tokens;
    value **s = &g->strengths[narrowed];
    if (!*s) {
        value *all = g_input(g, INPUT_ADAPTERS, g->n_adapters);
        *s = narrowed ? g_select(g, all, g_input(g, INPUT_OUT_ROWS, 1)) : all;
    }
    return g_view(g, *s, i, 1, 1);
}

value *g_adapt(graph *g, const weight *w, value *x, value *routing, value *y)
{
    for (int i = 0; y && i < g->n_adapters; i++) {
        const adapter_pair *p = pair_of(&g->adapters[i], w);
        if (!p) continue;
        value *in = g_dropout(g, x, p->dropout);
        value *low = routing ? g_experts(g, p->a, in, routing) : g_matmul(g, p->a, in);
        value *delta = routing ? g_experts(g, p->b, low, routing) : g_matmul(g, p->b, low);
        y = g_add(g, y, g_mul(g, g_scale(g, delta, p->scale), strength(g, i, y->ne[2])));
    }
    return y;
}

value *g_adapt_rows(graph *g, const weight *table, value *ids, value *y)
{
    for (int i = 0; y && i < g->n_adapters; i++) {
        const adapter_pair *p = pair_of(&g->adapters[i], table);
        if (!p) continue;
        value *delta = g_scale(g, g_matmul(g, p->b, g_embed(g, p->a, ids)), p->scale);
        y = g_add(g, y, g_mul(g, delta, strength(g, i, y->ne[2])));
    }
    return y;
}

void g_output(graph *g, output_kind kind, value *v)
{
    if (g->error.code == LOAM_OK) g->outputs[kind] = v;
}
