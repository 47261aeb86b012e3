/* bind.c - gives every tensor of the file its place in the model, with its shape checked. Refused by name: a missing tensor, a
 * wrong shape, a type without a product. A tensor that no rule asks for is left alone, with a warning.
 *
 * The rules of one block, later ones replacing earlier ones of the same tensor:
 *   baseline  ->  what the recipe implies (form of the feed-forward, experts, shared expert, latent attention)  ->  the
 *   architecture's own table  ->  presence by kind of block (`where` of tensors.def, `when` of the rule) */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/fresh.h"
#include "model/model_impl.h"
#include "quant/quant.h"

typedef enum where { GLOBAL, BLOCK, DENSE, EXPERT, ATTN, RECUR, CHANNEL } where;
static const struct {
    const char *name;
    suffix suffix;
    where where;
    const char *shape;
} slots[T_COUNT] = {
#define TENSOR(ID, NAME, SUFFIX, WHERE, SHAPE) [T_##ID] = { NAME, SUFFIX_##SUFFIX, WHERE, SHAPE },
#include "model/tensors.def"
#undef TENSOR
};

typedef struct binder {
    loam_model *m;
    loam_error *err;
    int il;                     /* block; -1 = outside */
    bool encoder;               /* a block of the encoder of two stacks */
    const char *prefix;         /* of its names: "blk.", "enc.blk.", "dec.blk." */
    symbols sym;
    tensor_rule rules[T_COUNT]; /* of this block */
} binder;

/* ---- rules ---- */

static void rule(binder *b, slot s, need n, const char *shape)
{
    b->rules[s] = (tensor_rule) { .slot = s, .need = n, .shape = shape };
}

static void rule_biased(binder *b, slot s, need n, const char *shape, bias_need bias)
{
    b->rules[s] = (tensor_rule) { .slot = s, .need = n, .shape = shape, .bias = bias };
}

static void baseline(binder *b)
{
    const arch_spec *a = &b->m->spec;
    for (int s = 0; s < T_COUNT; s++) rule(b, (slot)s, DROP, NULL);
    rule(b, T_TOKEN_EMBD, NEED, NULL);
    rule(b, T_OUTPUT_NORM, NEED, NULL);
    rule(b, T_OUTPUT, MAY, NULL);
    rule(b, T_ATTN_NORM, NEED, NULL);
    rule(b, T_FFN_NORM, NEED, NULL);
    rule(b, T_ATTN_OUTPUT, NEED, a->latent ? "HZ,D" : NULL);
    if (a->ffn.kind == SWIGLU || a->ffn.kind == GEGLU) rule(b, T_FFN_GATE, NEED, NULL);
    rule(b, T_FFN_UP, NEED, a->ffn.kind == SWIGLU_FUSED ? "D,2F" : NULL);
    rule(b, T_FFN_DOWN, NEED, NULL);
}

static void latent_rules(binder *b)
{
    if (b->m->spec.latent == LATENT_NONE) return;
    bool compressed = SYM(b->sym, A) > 0, absorbed = b->m->hp.absorbed;
    rule(b, T_ATTN_Q_A, compressed ? NEED : DROP, NULL);
    rule(b, T_ATTN_Q_A_NORM, compressed ? NEED : DROP, NULL);
    rule(b, T_ATTN_Q_B, compressed ? NEED : DROP, NULL);
    rule(b, T_ATTN_Q, compressed ? DROP : NEED, "D,HM");
    rule(b, T_ATTN_KV_A_MQA, NEED, NULL);
    rule(b, T_ATTN_KV_A_NORM, NEED, NULL);
    rule(b, T_ATTN_K_B, absorbed ? NEED : DROP, NULL);
    rule(b, T_ATTN_V_B, absorbed ? NEED : DROP, NULL);
    rule(b, T_ATTN_KV_B, absorbed ? DROP : NEED, NULL);
}

/* "D,w,E" with w put in; the text lives in the binder's caller. */
typedef char shape_text[48];

static const char *shaped(shape_text text, const char *form, const char *width)
{
    snprintf(text, sizeof(shape_text), form, width);
    return text;
}

static bool stored(const binder *b, slot s)
{
    char name[96];
    snprintf(name, sizeof name, "%s%d.%s.weight", b->prefix, b->il, slots[s].name);
    return gguf_tensor_find(b->m->file, name) != NULL;
}

static void expert_rules(binder *b, shape_text text[4])
{
    const arch_spec *a = &b->m->spec;
    const expert_recipe *e = &a->experts;
    if (e->blocks == EXPERTS_NOWHERE) return;
    const char *w = e->width ? e->width : "X";
    bool fused = e->gates == GATE_MAYBE_FUSED && stored(b, T_FFN_GATE_UP_EXPS);
    need gate = fused ? DROP : e->gates == GATE_OPTIONAL ? MAY : NEED;
    rule_biased(b, T_FFN_GATE_INP, NEED, NULL, e->bias);
    rule_biased(b, T_FFN_GATE_EXPS, gate, shaped(text[0], "D,%s,E", w), e->bias);
    rule_biased(b, T_FFN_UP_EXPS, fused ? DROP : NEED, text[0], e->bias);
    rule_biased(b, T_FFN_DOWN_EXPS, NEED, shaped(text[1], "%s,D,E", w), e->bias);
    rule(b, T_FFN_GATE_UP_EXPS, fused ? NEED : DROP, shaped(text[2], "D,2(%s),E", w));
}

static void shared_rules(binder *b, shape_text text[3])
{
    const shared_expert_recipe *s = &b->m->spec.shared;
    int64_t width = 0;
    if (!s->width || !expr_value(s->width, &b->sym, &width) || width == 0) return;
    need n = s->optional ? MAY : NEED;
    rule(b, T_FFN_GATE_SHEXP, s->fused || s->plain ? DROP : n, shaped(text[0], "D,%s", s->width));
    rule(b, T_FFN_UP_SHEXP, n, s->fused ? shaped(text[1], "D,2(%s)", s->width) : text[0]);
    rule(b, T_FFN_DOWN_SHEXP, n, shaped(text[2], "%s,D", s->width));
}

static bool holds(const binder *b, when w)
{
    const hparams *h = &b->m->hp;
    switch (w) {
    case USUALLY: case IN_EVERY: return true;
    case IF_DEEP: return h->n_layer >= 64;
    }
    return false;
}

/* One matrix may hold gate and up: the file's shape tells. */
static void by_width(binder *b)
{
    char name[96];
    snprintf(name, sizeof name, "%s%d.ffn_up.weight", b->prefix, b->il);
    const gguf_tensor *t = b->il >= 0 && b->m->spec.ffn.kind == GEGLU_ANY ? gguf_tensor_find(b->m->file, name) : NULL;
    if (t && t->ne[1] == 2 * SYM(b->sym, F)) b->rules[T_FFN_UP].shape = "D,2F";
}

static bool is_cross(int s)
{
    return s == T_CROSS_ATTN_NORM || s == T_CROSS_ATTN_Q || s == T_CROSS_ATTN_K || s == T_CROSS_ATTN_V || s == T_CROSS_ATTN_O;
}

/* Takes out what this kind of block does not have. */
static void by_block(binder *b)
{
    const arch_spec *a = &b->m->spec;
    const layer_facts *l = b->il < 0 ? NULL : &b->m->hp.layers[b->il];
    for (int s = 1; s < T_COUNT; s++) {
        tensor_rule *r = &b->rules[s];
        bool here = (slots[s].where == GLOBAL) == !l && holds(b, r->when);
        if (l && slots[s].where == DENSE) here = here && (l->ffn == FFN_DENSE || r->when == IN_EVERY);
        if (l && slots[s].where == EXPERT) here = here && (l->expert_tensors || r->when == IN_EVERY);
        if (b->encoder && is_cross(s)) here = false;
        if (l && slots[s].where == ATTN) here = here && (l->mixer == MIXER_ATTENTION || l->mixer == MIXER_BOTH);
        if (l && slots[s].where == RECUR) here = here && (l->mixer == MIXER_RECURRENT || l->mixer == MIXER_BOTH);
        if (l && slots[s].where == CHANNEL) here = here && l->ffn == FFN_CHANNEL_MIX;
        if (!here) r->need = DROP;
    }
    if (l && l->ffn == FFN_NONE) b->rules[T_FFN_NORM].need = DROP;
    if (b->il == 0 && a->recurrent.kind == RWKV7) /* the first block's values are what later ones mix in */
        b->rules[T_TIME_MIX_V0].need = b->rules[T_TIME_MIX_V1].need = b->rules[T_TIME_MIX_V2].need = UNUSED;
    if (!l || !a->block_kinds) return;
    if (l->n_head && !l->n_head_kv) b->rules[T_ATTN_OUTPUT].shape = "D,D"; /* attention is this one matrix */
    if (!l->n_head) b->rules[T_ATTN_NORM].need = b->rules[T_ATTN_OUTPUT].need = DROP;
    if (!l->n_ff)
        b->rules[T_FFN_NORM].need = b->rules[T_FFN_GATE].need = b->rules[T_FFN_UP].need = b->rules[T_FFN_DOWN].need = DROP;
}

/* ---- finding and checking ---- */

typedef char name_text[128];

static void tensor_name(const binder *b, const char *name, suffix sfx, name_text out)
{
    static const char *const suffixes[] = { "", ".weight", ".bias", "" };
    if (b->il < 0) snprintf(out, sizeof(name_text), "%s%s", name, suffixes[sfx]);
    else snprintf(out, sizeof(name_text), "%s%d.%s%s", b->prefix, b->il, name, suffixes[sfx]);
}

static void print_shape(const int64_t *ne, int n, char *out, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? " x " : "", (long long)ne[i]);
}

typedef struct extents {
    int64_t ne[4];
    int n;
} extents;

/* The tensor of that name as a weight, or NULL; its extents must be `want`. */
static loam_status take(binder *b, const char *name, need n, const extents *want, const weight **out)
{
    loam_model *m = b->m;
    *out = NULL;
    const gguf_tensor *t = n == DROP ? NULL : gguf_tensor_find(m->file, name);
    if (!t && n == NEED && m->wishes) return wish_add(m->wishes, name, want->ne, want->n, b->err);
    if (!t && n == NEED) {
        char shape[96];
        print_shape(want->ne, want->n, shape, sizeof shape);
        return fail(b->err, LOAM_E_FORMAT, "%s: tensor '%s' (%s) is missing", gguf_path(m->file), name, shape);
    }
    if (!t) return LOAM_OK;
    size_t i = (size_t)(t - gguf_tensor_at(m->file, 0));
    m->used[i] = 1;
    if (n == UNUSED) return LOAM_OK;
    if (dtype_table[t->type].act == ACT_NONE)
        return fail(b->err, LOAM_E_UNSUPPORTED, "%s: tensor '%s' has type %s, which weights cannot have", gguf_path(m->file),
                    name, loam_type_name((int)t->type));
    if (memcmp(t->ne, want->ne, sizeof t->ne)) {
        char have[96], expected[96];
        print_shape(t->ne, t->n_dims, have, sizeof have);
        print_shape(want->ne, want->n, expected, sizeof expected);
        return fail(b->err, LOAM_E_FORMAT, "%s: tensor '%s' has shape %s, expected %s", gguf_path(m->file), name, have, expected);
    }
    *out = &m->weights[i];
    return LOAM_OK;
}

/* Vectors that are added or multiplied elementwise have one supported type. */
static loam_status want_float(const binder *b, const weight *w)
{
    if (!w || w->type == LOAM_F32) return LOAM_OK;
    return fail(b->err, LOAM_E_UNSUPPORTED, "%s: tensor '%s' is %s; f32 is supported here", gguf_path(b->m->file), w->name,
                loam_type_name((int)w->type));
}

/* Weights of operations that have no product: convolutions, decays, mixing factors. */
static bool is_factor(slot s)
{
    switch (s) {
    case T_SSM_CONV1D: case T_SSM_A: case T_SSM_D: case T_SHORTCONV_CONV: case T_TIME_MIX_LERP_FUSED: case T_TIME_MIX_LERP_X:
    case T_TIME_MIX_LERP_W: case T_TIME_MIX_LERP_K: case T_TIME_MIX_LERP_V: case T_TIME_MIX_LERP_R: case T_TIME_MIX_LERP_G:
    case T_TIME_MIX_FIRST: case T_CHANNEL_MIX_LERP_K: case T_CHANNEL_MIX_LERP_R: return true;
    default: return false;
    }
}

static bool is_vector(slot s, const extents *e)
{
    return e->n == 1 || s == T_TOKEN_TYPES || s == T_SSM_NORM || s == T_ATTN_Q_NORM || s == T_ATTN_K_NORM;
}

/* Token types other than the first are never used. */
static void keep_first_row(const weight *w) { ((weight *)w)->ne[1] = 1; }

/* A norm with a row of its own for each head is one long row here. */
static void flatten(const weight *w)
{
    weight *flat = (weight *)w;
    flat->ne[0] *= flat->ne[1];
    flat->ne[1] = 1;
    flat->row_bytes = (uint64_t)flat->ne[0] * sizeof(float);
}

static bool is_dense_matrix(slot s) { return s == T_FFN_GATE || s == T_FFN_UP || s == T_FFN_DOWN; }
static bool is_shared_matrix(slot s) { return s == T_FFN_GATE_SHEXP || s == T_FFN_UP_SHEXP || s == T_FFN_DOWN_SHEXP; }
static bool is_recurrent_matrix(slot s)
{
    return s == T_SSM_IN || s == T_SSM_OUT || s == T_SSM_QKV || s == T_SSM_GATE || s == T_SSM_ALPHA || s == T_SSM_BETA;
}
static bool is_expert_matrix(slot s) { return s == T_FFN_GATE_EXPS || s == T_FFN_UP_EXPS || s == T_FFN_DOWN_EXPS; }
static bool is_projection(slot s) { return s == T_ATTN_Q || s == T_ATTN_K || s == T_ATTN_V || s == T_ATTN_QKV; }

/* Whether NAME.scale takes part in the forward pass. */
static bool scale_counts(const arch_spec *a, slot s, loam_type type)
{
    if (is_projection(s)) return !(a->scales & SCALE_NOT_QKV);
    if (is_dense_matrix(s)) return a->scales & SCALE_FFN;
    if (is_shared_matrix(s)) return a->scales & SCALE_SHARED;
    if (is_expert_matrix(s)) return a->scales & SCALE_EXPERTS;
    if (is_recurrent_matrix(s)) return a->scales & SCALE_RECURRENT;
    return s == T_ATTN_OUTPUT || (s == T_OUTPUT && type == LOAM_NVFP4);
}

static loam_status take_scales(binder *b, slot s, bound *out)
{
    name_text name, scale;
    const weight *w;
    tensor_name(b, slots[s].name, SUFFIX_BARE, name);
    snprintf(scale, sizeof scale, "%.100s.input_scale", name);
    loam_status st = take(b, scale, UNUSED, NULL, &w);
    snprintf(scale, sizeof scale, "%.100s.scale", name);
    bool counts = out->w && scale_counts(&b->m->spec, s, out->w->type);
    extents e = { { is_expert_matrix(s) ? SYM(b->sym, E) : 1, 1, 1, 1 }, 1 };
    if (st == LOAM_OK) st = take(b, scale, counts ? MAY : UNUSED, &e, &w);
    if (st == LOAM_OK) st = want_float(b, w);
    if (st != LOAM_OK || !w) return st;
    if (is_expert_matrix(s)) out->s = w;
    else memcpy(&out->scale, w->data, sizeof out->scale);
    return LOAM_OK;
}

/* Extents of the bias that belongs to a weight: what a matrix gives out, or all of a norm. */
static extents bias_extents(const extents *w)
{
    extents e = { { w->n == 1 ? w->ne[0] : w->ne[1], w->n > 2 ? w->ne[2] : 1, 1, 1 }, w->n > 2 ? 2 : 1 };
    return e;
}

static loam_status take_bias(binder *b, const tensor_rule *r, const extents *shape, bound *out)
{
    if (r->bias == NO_BIAS) return LOAM_OK;
    name_text name;
    tensor_name(b, slots[r->slot].name, SUFFIX_BIAS, name);
    extents e = bias_extents(shape);
    bool wanted = r->bias == BIAS && r->need != MAY;
    loam_status st = take(b, name, r->bias == UNUSED_BIAS ? UNUSED : wanted ? NEED : MAY, &e, &out->b);
    return st == LOAM_OK ? want_float(b, out->b) : st;
}

static loam_status shape_of(const binder *b, const tensor_rule *r, extents *e)
{
    const char *text = r->shape ? r->shape : slots[r->slot].shape;
    bool good = expr_shape(text, &b->sym, e->ne, &e->n);
    for (int i = 0; i < 4; i++) good = good && e->ne[i] > 0;
    if (good) return LOAM_OK;
    return fail(b->err, LOAM_E_FORMAT, "%s: the shape of tensor '%s' (%s) does not follow from the hyper-parameters",
                gguf_path(b->m->file), slots[r->slot].name, text);
}

static loam_status bind_slot(binder *b, const tensor_rule *r, bound *out)
{
    if (r->need == DROP) return LOAM_OK;
    extents e = { { 0 }, 0 };
    name_text name;
    suffix sfx = r->suffix ? r->suffix : slots[r->slot].suffix;
    tensor_name(b, slots[r->slot].name, sfx, name);
    loam_status st = r->need == UNUSED ? LOAM_OK : shape_of(b, r, &e);
    if (st == LOAM_OK) st = take(b, name, r->need, &e, &out->w);
    if (st == LOAM_OK && out->w && is_vector(r->slot, &e) && r->slot != T_FFN_GATE_INP_SHEXP) st = want_float(b, out->w);
    if (st == LOAM_OK && out->w && is_vector(r->slot, &e) && e.n == 2 && r->slot != T_TOKEN_TYPES) flatten(out->w);
    if (st == LOAM_OK && out->w && r->slot == T_TOKEN_TYPES) keep_first_row(out->w);
    if (st == LOAM_OK && out->w && is_factor(r->slot)) st = want_float(b, out->w);
    if (st == LOAM_OK) st = take_bias(b, r, &e, out);
    return st == LOAM_OK && e.n > 1 ? take_scales(b, r->slot, out) : st;
}

/* ---- q, k, v ---- */

/* One fused matrix, or three; biases of either form go with either. */
static void qkv_rules(binder *b)
{
    const arch_spec *a = &b->m->spec;
    const layer_facts *l = &b->m->hp.layers[b->il];
    if (a->latent != LATENT_NONE || !l->n_head || !l->n_head_kv) return;
    bool fused = stored(b, T_ATTN_QKV);
    bias_need bias = a->qkv_bias == NO_BIAS ? MAY_BIAS : a->qkv_bias;
    rule_biased(b, T_ATTN_QKV, fused ? NEED : DROP, NULL, bias == BIAS ? MAY_BIAS : bias);
    rule_biased(b, T_ATTN_Q, fused ? DROP : NEED, NULL, bias);
    rule_biased(b, T_ATTN_K, fused ? DROP : NEED, NULL, bias);
    rule_biased(b, T_ATTN_V, fused ? DROP : NEED, NULL, bias);
}

/* A fused matrix whose bias is stored in three parts. */
static loam_status fused_biases(binder *b, bound *t)
{
    const arch_spec *a = &b->m->spec;
    if (!t[T_ATTN_QKV].w || t[T_ATTN_QKV].b) return LOAM_OK;
    static const slot parts[] = { T_ATTN_Q, T_ATTN_K, T_ATTN_V };
    for (int i = 0; i < 3; i++) {
        tensor_rule r = { .slot = parts[i], .need = NEED, .bias = a->qkv_bias == NO_BIAS ? MAY_BIAS : a->qkv_bias };
        extents e;
        loam_status st = shape_of(b, &r, &e);
        if (st == LOAM_OK) st = take_bias(b, &r, &e, &t[parts[i]]);
        if (st != LOAM_OK) return st;
    }
    return LOAM_OK;
}

/* ---- the whole ---- */

/* Each row of mixing factors is a weight of its own. */
static void split_lerp(block_weights *w)
{
    const weight *all = w->t[T_TIME_MIX_LERP_FUSED].w;
    for (int i = 0; all && i < all->ne[3] && i < 6; i++) {
        w->lerp[i] = *all;
        w->lerp[i].ne[3] = 1;
        w->lerp[i].data = (const float *)all->data + i * all->ne[0];
    }
}

static loam_status bind_set(binder *b, int il, block_weights *out)
{
    const arch_spec *a = &b->m->spec;
    shape_text expert_text[4], shared_text[3];
    b->il = il;
    b->sym = layer_symbols(&b->m->hp, il);
    baseline(b);
    if (il >= 0) {
        latent_rules(b);
        expert_rules(b, expert_text);
        shared_rules(b, shared_text);
        qkv_rules(b);
    }
    for (const tensor_rule *r = a->tensors; r && r->slot != T_NONE; r++)
        if (holds(b, r->when)) b->rules[r->slot] = *r;
    by_block(b);
    by_width(b);
    for (int s = 1; s < T_COUNT; s++) {
        out->t[s].scale = 1;
        loam_status st = bind_slot(b, &b->rules[s], &out->t[s]);
        if (st != LOAM_OK) return st;
    }
    split_lerp(out);
    return il < 0 ? LOAM_OK : fused_biases(b, out->t);
}

/* One over the activation scales of block il, in memory of the model: the graph multiplies. */
static loam_status invert_scales(loam_model *m, int il, loam_error *err)
{
    bound *t = &m->blocks[il].t[T_FFN_ACT_SCALES];
    if (!t->w) return LOAM_OK;
    size_t n = (size_t)t->w->ne[0];
    float *r = m->owned[il] = mem_alloc_array(n, sizeof *r);
    if (!r) return fail_nomem(err, "activation scales", n * sizeof *r);
    const float *s = t->w->data;
    for (size_t i = 0; i < n; i++) r[i] = 1 / s[i];
    m->owned_weights[il] = *t->w;
    m->owned_weights[il].data = r;
    t->w = &m->owned_weights[il];
    return LOAM_OK;
}

static loam_status make_weights(loam_model *m, loam_error *err)
{
    uint32_t n = gguf_tensor_count(m->file);
    m->weights = mem_zalloc_array((size_t)n + 1, sizeof *m->weights);
    m->used = mem_zalloc((size_t)n + 1);
    m->blocks = mem_zalloc_array((size_t)m->hp.n_layer, sizeof *m->blocks);
    m->owned = mem_zalloc_array(2 * (size_t)m->hp.n_layer, sizeof *m->owned);
    m->owned_weights = mem_zalloc_array(2 * (size_t)m->hp.n_layer, sizeof *m->owned_weights);
    if (!m->weights || !m->used || !m->blocks || !m->owned || !m->owned_weights)
        return fail_nomem(err, "tensor directory",
                          (uint64_t)n * sizeof *m->weights + (uint64_t)m->hp.n_layer * sizeof *m->blocks);
    for (uint32_t i = 0; i < n; i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        weight *w = &m->weights[i];
        *w = (weight) { .name = t->name, .type = t->type, .data = t->data };
        memcpy(w->ne, t->ne, sizeof w->ne);
        if (!dtype_row_bytes(t->type, t->ne[0], &w->row_bytes))
            return fail(err, LOAM_E_FORMAT, "%s: tensor '%s': rows of %lld values do not fit type %s", gguf_path(m->file),
                        t->name, (long long)t->ne[0], loam_type_name((int)t->type));
        if (!t->data && gguf_values(t))
            return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' has no data", gguf_path(m->file), t->name);
    }
    return LOAM_OK;
}

/* The relative bias as floats, in memory of the model where the file has it in another type. */
static loam_status widen_bias(binder *b, block_weights *block)
{
    loam_model *m = b->m;
    bound *t = &block->t[T_ATTN_REL_B];
    if (!t->w || t->w->type == LOAM_F32) return LOAM_OK;
    int at = b->il + (b->encoder ? m->hp.n_layer : 0);
    size_t n = (size_t)(t->w->ne[0] * t->w->ne[1]);
    float *x = m->owned[at] = mem_alloc_array(n, sizeof *x);
    if (!x) return fail_nomem(b->err, "relative bias", n * sizeof *x);
    loam_rows rows = { t->w->type, t->w->ne[1], t->w->ne[0] };
    loam_status st = quant_decode_rows(&rows, t->w->data, x, b->err);
    m->owned_weights[at] = *t->w;
    m->owned_weights[at].type = LOAM_F32;
    m->owned_weights[at].data = x;
    m->owned_weights[at].row_bytes = (uint64_t)t->w->ne[0] * sizeof *x;
    t->w = &m->owned_weights[at];
    return st;
}

/* The other stack. */
static loam_status bind_encoder(binder *b)
{
    loam_model *m = b->m;
    m->encoder = mem_zalloc_array((size_t)m->hp.n_layer, sizeof *m->encoder);
    if (!m->encoder) return fail_nomem(b->err, "an encoder", (uint64_t)m->hp.n_layer * sizeof *m->encoder);
    b->encoder = true;
    b->prefix = "enc.blk.";
    loam_status st = LOAM_OK;
    for (int il = 0; il < m->hp.n_layer && st == LOAM_OK; il++) {
        st = bind_set(b, il, &m->encoder[il]);
        if (st == LOAM_OK) st = widen_bias(b, &m->encoder[il]);
    }
    return st;
}

/* Names what nobody asked for; blocks behind the last one that runs are not looked at. */
static void warn_unused(const loam_model *m)
{
    for (uint32_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        char shown[64];
        int il = -1;
        if (m->used[i]) continue;
        if (sscanf(t->name, "blk.%d.", &il) == 1 && il >= m->hp.n_layer && il < m->hp.n_stored) continue;
        log_at(LOAM_LOG_WARN, "%s: tensor '%s' does not belong to architecture '%s' and is ignored", gguf_path(m->file),
               arch_printable(shown, t->name, strlen(t->name)), m->spec.name);
    }
}

loam_status model_bind(loam_model *m, loam_error *err)
{
    bool both = m->spec.stack == STACK_ENCODER_DECODER, t5 = m->spec.ffn.kind == GEGLU_OR_RELU;
    binder b = { .m = m, .err = err, .prefix = both ? "dec.blk." : t5 ? "enc.blk." : "blk." };
    loam_status st = make_weights(m, err);
    if (st == LOAM_OK) st = bind_set(&b, -1, &m->globals);
    for (int il = 0; il < (both ? m->hp.n_decoder : m->hp.n_layer) && st == LOAM_OK; il++) {
        st = bind_set(&b, il, &m->blocks[il]);
        if (st == LOAM_OK) st = invert_scales(m, il, err);
        if (st == LOAM_OK) st = widen_bias(&b, &m->blocks[il]);
    }
    if (both && st == LOAM_OK) st = bind_encoder(&b);
    if (st == LOAM_OK) warn_unused(m);
    return st;
}
