/* mix.c - which element type each tensor gets: categories of tensors, rules, options, fall-backs.
 *
 * The rules are those of the formats' home tools, so that a mix of one name has the same types everywhere. They are kept
 * by mix and category; i is the number of the tensor within its category (or its layer, with experts), N the number of
 * layers. "First" are the first N/8, "more" the first and last eighth and every third between. */
#include "quant/mix.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/dtype.h"

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Output, token embedding, attention value, key, query and output, feed-forward up, gate and down, any other. */
typedef enum category { CAT_O, CAT_E, CAT_V, CAT_K, CAT_Q, CAT_A, CAT_U, CAT_G, CAT_D, CAT_X, CAT_COUNT } category;

static category category_of(const char *name)
{
    static const struct { const char *part; category cat; bool whole; } parts[] = {
        { "output.weight", CAT_O, true },      { "token_embd.weight", CAT_E, true },
        { "per_layer_token_embd.weight", CAT_E, true },
        { "attn_qkv.weight", CAT_V, false },   { "attn_kv_b.weight", CAT_V, false }, { "attn_v.weight", CAT_V, false },
        { "attn_k.weight", CAT_K, false },     { "attn_q.weight", CAT_Q, false },
        { "attn_output.weight", CAT_A, false }, { "ffn_up", CAT_U, false },          { "ffn_gate", CAT_G, false },
        { "ffn_down", CAT_D, false },
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].whole ? strcmp(name, parts[i].part) == 0 : strstr(name, parts[i].part) != NULL) return parts[i].cat;
    return CAT_X;
}

bool mix_is_quantized(const mix_tensor *t)
{
    /* Parts of names of tensors that are small, or that suffer most. */
    static const char *const kept[] = {
        "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
        "ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "attn_rel_b.weight",
        "time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight",
        "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight",
        "time_mix_g1.weight", "time_mix_g2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight",
        "time_mix_lerp_fused.weight", ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos",
        ".patch_embd", ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
    };
    size_t len = strlen(t->name);
    if (len < 6 || strcmp(t->name + len - 6, "weight") != 0) return false;
    if (t->ne[1] <= 1 && t->ne[2] <= 1 && t->ne[3] <= 1) return false;
    if (strcmp(t->name, "position_embd.weight") == 0 || strcmp(t->name, "token_types.weight") == 0) return false;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (strstr(t->name, kept[i])) return false;
    return true;
}

/* The layer in "blk.N."; -1 where there is none. */
static long layer_of(const char *name)
{
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9') return -1;
    char *end;
    long layer = strtol(name + 4, &end, 10);
    return *end == '.' ? layer : -1;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* The walk over all tensors: facts, and how many of each category have been met. */
typedef struct plan {
    const mix_options *options;
    const mix_model *model;
    mix_id mix;
    int base;               /* the default type */
    bool tied, falcon, eight;
    int64_t gqa, n_value;   /* query heads per key-value head; number of V tensors */
    int64_t met[CAT_COUNT];
    regex_t *patterns;
} plan;

/* One tensor in the walk. */
typedef struct visit {
    const mix_tensor *tensor;
    category cat;
    int64_t count, i, n;    /* number within the category; i and N of the rules */
} visit;

static bool first(const visit *v) { return v->i < v->n / 8; }
static bool more(const visit *v) { return first(v) || v->i >= 7 * v->n / 8 || (v->i - v->n / 8) % 3 == 2; }

static bool is_iq12(mix_id mix)
{
    return mix == MIX_IQ1_S || mix == MIX_IQ1_M || mix == MIX_IQ2_XXS || mix == MIX_IQ2_XS || mix == MIX_IQ2_S ||
           mix == MIX_IQ2_M;
}

static int rule_output(const plan *p, const visit *v)
{
    if (p->mix == MIX_MXFP4_MOE) return LOAM_Q8_0;
    if (p->falcon || v->tensor->ne[0] % dtype_table[p->base].values != 0) return LOAM_Q8_0;
    if (is_iq12(p->mix) || p->mix == MIX_IQ3_XXS) return LOAM_Q5_K;
    return p->base == LOAM_Q8_0 ? LOAM_Q8_0 : LOAM_Q6_K;
}

static int rule_embedding(const plan *p)
{
    switch (p->mix) {
    case MIX_IQ1_S: case MIX_IQ1_M: case MIX_IQ2_XXS: case MIX_IQ2_XS: return LOAM_Q2_K;
    case MIX_IQ2_S: case MIX_IQ2_M: case MIX_IQ3_XXS: return LOAM_IQ3_S;
    case MIX_TQ1_0: case MIX_TQ2_0: case MIX_Q2_0: return LOAM_Q4_K;
    default: return p->base;
    }
}

static int rule_iq12(const plan *p, const visit *v)
{
    const bool larger = p->mix == MIX_IQ2_S || p->mix == MIX_IQ2_M;
    switch (v->cat) {
    case CAT_V:
        if (p->gqa >= 4 || p->model->n_expert >= 4) return LOAM_Q4_K;
        return larger ? LOAM_IQ3_S : LOAM_Q2_K;
    case CAT_K: return p->eight ? LOAM_Q4_K : p->base;
    case CAT_D:
        if (v->count >= p->model->n_layer / 8) return p->base;
        return larger ? LOAM_IQ3_S : LOAM_Q2_K;
    case CAT_A:
        if (p->eight) return LOAM_Q5_K;
        if (p->mix == MIX_IQ1_S || p->mix == MIX_IQ1_M) return LOAM_IQ2_XXS;
        return larger ? LOAM_IQ3_S : p->base;
    default: return p->base;
    }
}

static int rule_value(const plan *p, const visit *v)
{
    const bool wide = p->gqa >= 4;
    int type = p->base;
    switch (p->mix) {
    case MIX_Q2_K: type = wide ? LOAM_Q4_K : LOAM_Q3_K; break;
    case MIX_Q2_K_S: case MIX_IQ3_XS: case MIX_IQ3_S: type = wide ? LOAM_Q4_K : p->base; break;
    case MIX_Q3_K_M: type = v->count < 2 ? LOAM_Q5_K : LOAM_Q4_K; break;
    case MIX_Q3_K_L: type = LOAM_Q5_K; break;
    case MIX_Q4_K_S: type = v->count < 4 ? LOAM_Q5_K : p->base; break;
    case MIX_Q4_K_M: case MIX_Q5_K_M: type = more(v) ? LOAM_Q6_K : p->base; break;
    case MIX_IQ3_XXS: type = wide ? LOAM_Q4_K : p->options->has_matrix ? LOAM_IQ3_XXS : LOAM_IQ3_S; break;
    case MIX_IQ3_M: type = LOAM_Q4_K; break;
    case MIX_IQ4_NL: case MIX_IQ4_XS: type = wide ? LOAM_Q5_K : p->base; break;
    default: break;
    }
    /* Few heads over many layers: V is small, and much hangs on it. */
    bool big = strcmp(p->model->arch, "llama") == 0 && p->model->n_layer == 80 && p->model->n_head != p->model->n_head_kv;
    if (big && (type == LOAM_Q3_K || type == LOAM_Q4_K)) type = LOAM_Q5_K;
    return p->eight ? LOAM_Q8_0 : type;
}

static int rule_attention_out(const plan *p)
{
    if (p->falcon) return p->mix == MIX_Q3_K_L ? LOAM_Q4_K : p->base;
    if (p->eight) {
        switch (p->mix) {
        case MIX_Q2_K: case MIX_Q3_K_S: case MIX_Q3_K_M: case MIX_Q4_K_S: case MIX_Q4_K_M: case MIX_IQ3_XXS:
        case MIX_IQ3_XS: case MIX_IQ3_S: case MIX_IQ3_M: case MIX_IQ4_NL: case MIX_IQ4_XS: return LOAM_Q5_K;
        default: return p->base;
        }
    }
    switch (p->mix) {
    case MIX_Q2_K: return LOAM_Q3_K;
    case MIX_Q3_K_M: case MIX_IQ3_M: return LOAM_Q4_K;
    case MIX_Q3_K_L: return LOAM_Q5_K;
    case MIX_IQ3_XXS: return LOAM_IQ3_S;
    default: return p->base;
    }
}

static int rule_down(const plan *p, const visit *v)
{
    const bool m = p->options->has_matrix, very_first = v->i < v->n / 16;
    switch (p->mix) {
    case MIX_Q2_K: return LOAM_Q3_K;
    case MIX_Q2_K_S: return first(v) ? LOAM_Q4_K : p->base;
    case MIX_Q3_K_M:
        if (very_first) return LOAM_Q5_K;
        return !p->falcon || more(v) ? LOAM_Q4_K : LOAM_Q3_K;
    case MIX_Q3_K_L: return p->falcon ? LOAM_Q4_K : LOAM_Q5_K;
    case MIX_Q4_0: return m && first(v) ? LOAM_Q4_1 : p->base;
    case MIX_Q5_0: return m && first(v) ? LOAM_Q5_1 : p->base;
    case MIX_Q4_K_S: return !p->falcon && first(v) ? LOAM_Q5_K : p->base;
    case MIX_Q4_K_M:
        if (p->falcon) return very_first ? LOAM_Q6_K : more(v) ? LOAM_Q5_K : p->base;
        return more(v) ? LOAM_Q6_K : p->base;
    case MIX_Q5_K_M: return more(v) ? LOAM_Q6_K : p->base;
    case MIX_IQ3_XXS: return m ? p->base : first(v) ? LOAM_Q4_K : LOAM_Q3_K;
    case MIX_IQ3_M: return first(v) || (p->eight && more(v)) ? LOAM_Q4_K : p->base;
    case MIX_IQ4_NL: case MIX_IQ4_XS: return !m && first(v) ? LOAM_Q5_K : p->base;
    default: return p->base;
    }
}

static int rule_key_query(const plan *p, const visit *v)
{
    if (v->cat == CAT_K && p->eight) return LOAM_Q8_0;
    if (p->mix == MIX_IQ3_XXS) return LOAM_IQ2_S;
    return p->mix == MIX_IQ3_XS ? LOAM_IQ3_XXS : p->base;
}

/* The type by the rules of the mix. */
static int rule_type(const plan *p, const visit *v)
{
    if (v->cat == CAT_O || (v->cat == CAT_E && p->tied)) return rule_output(p, v);
    if (p->mix == MIX_MXFP4_MOE) {
        bool experts = v->tensor->ne[2] > 1;
        if (strcmp(p->model->arch, "bailingmoe3") == 0) experts &= v->cat == CAT_U || v->cat == CAT_G || v->cat == CAT_D;
        return experts ? LOAM_MXFP4 : LOAM_Q8_0;
    }
    if (v->cat == CAT_E) return rule_embedding(p);
    if (is_iq12(p->mix)) return rule_iq12(p, v);
    switch (v->cat) {
    case CAT_V: return rule_value(p, v);
    case CAT_K: case CAT_Q: return rule_key_query(p, v);
    case CAT_A: return rule_attention_out(p);
    case CAT_D: return rule_down(p, v);
    case CAT_U: case CAT_G:
        return p->mix == MIX_IQ3_XS && v->i >= v->n / 8 && v->i < 7 * v->n / 8 ? LOAM_IQ3_XXS : p->base;
    default: return p->base;
    }
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Pattern in the syntax of regcomp: \d and \D become classes, (?: becomes a bracket. False: too long, or counts so large
 * that the compiled form would not fit. */
static bool translate(const char *from, char *to, size_t size)
{
    size_t n = 0;
    long repeats = 1;
    for (const char *s = from; *s; s++) {
        const char *text = NULL;
        char pair[3] = { *s, 0, 0 };
        if (s[0] == '\\' && s[1]) {
            pair[1] = *++s;
            text = *s == 'd' ? "[0-9]" : *s == 'D' ? "[^0-9]" : pair;
        } else if (strncmp(s, "(?:", 3) == 0) {
            s += 2;
            text = "(";
        } else {
            text = pair;
            if (*s == '{') {
                char *end;
                long low = strtol(s + 1, &end, 10), high = *end == ',' ? strtol(end + 1, NULL, 10) : low;
                if (low > 100 || high > 100 || low < 0 || high < 0) return false;
                repeats *= 1 + (low > high ? low : high);
                if (repeats > 1000) return false;
            }
        }
        size_t len = strlen(text);
        if (n + len + 1 > size) return false;
        memcpy(to + n, text, len);
        n += len;
    }
    to[n] = 0;
    return true;
}

static loam_status compile_patterns(plan *p, size_t *compiled, loam_error *err)
{
    const mix_options *o = p->options;
    *compiled = 0;
    if (o->n_overrides == 0) return LOAM_OK;
    p->patterns = mem_zalloc_array(o->n_overrides, sizeof *p->patterns);
    if (!p->patterns) return fail_nomem(err, "tensor type patterns", o->n_overrides * sizeof *p->patterns);
    for (size_t k = 0; k < o->n_overrides; k++) {
        char text[512], why[128];
        const mix_override *v = &o->overrides[k];
        if (!dtype_get(v->type))
            return fail(err, LOAM_E_ARG, "tensor type pattern '%.80s': %d is no element type", v->pattern, v->type);
        if (!translate(v->pattern, text, sizeof text))
            return fail(err, LOAM_E_ARG, "tensor type pattern '%.80s' is too long or repeats too often", v->pattern);
        int code = regcomp(&p->patterns[k], text, REG_EXTENDED | REG_NOSUB | REG_ICASE);
        if (code) {
            regerror(code, &p->patterns[k], why, sizeof why);
            return fail(err, LOAM_E_ARG, "tensor type pattern '%.80s': %s", v->pattern, why);
        }
        *compiled = k + 1;
    }
    return LOAM_OK;
}

/* The type of the first pattern that matches, -1 for none. */
static int overridden(const plan *p, const char *name)
{
    for (size_t k = 0; k < p->options->n_overrides; k++)
        if (regexec(&p->patterns[k], name, 0, NULL, 0) == 0) return p->options->overrides[k].type;
    return -1;
}

static bool is_plain(int type) { return dtype_table[type].values == 1; }

/* The type a user asked for, -1 where the rules decide. *fixed: without fall-back. */
static int asked_type(const plan *p, const visit *v, bool *fixed)
{
    const mix_options *o = p->options;
    const char *name = v->tensor->name;
    int pattern = is_plain(p->base) ? -1 : overridden(p, name);
    *fixed = true;
    if (v->cat == CAT_E && o->token_type >= 0)
        if (pattern < 0 || strcmp(name, "per_layer_token_embd.weight") != 0) return o->token_type;
    if (v->cat == CAT_O && o->output_type >= 0) return o->output_type;
    *fixed = false;
    if (pattern >= 0) return pattern;
    if (is_plain(p->base) || o->pure) return p->base;
    if (v->cat == CAT_E && p->tied && o->output_type >= 0) return o->output_type;
    return -1;
}

/* ---- fall-backs and checks --------------------------------------------------------------------------------------- */

static int fall_back(int type)
{
    switch (type) {
    case LOAM_IQ1_S: case LOAM_IQ1_M: case LOAM_IQ2_XXS: case LOAM_IQ2_XS: case LOAM_IQ2_S: case LOAM_IQ3_XXS:
    case LOAM_IQ3_S: case LOAM_IQ4_XS: return LOAM_IQ4_NL;
    case LOAM_Q2_0: case LOAM_Q2_K: case LOAM_Q3_K: case LOAM_TQ1_0: case LOAM_TQ2_0: return LOAM_Q4_0;
    case LOAM_Q4_K: return LOAM_Q5_0;
    case LOAM_Q5_K: return LOAM_Q5_1;
    case LOAM_Q6_K: return LOAM_Q8_0;
    case LOAM_Q1_0: case LOAM_NVFP4: return -1;
    default: return LOAM_F16;
    }
}

static loam_status fit_row(const visit *v, bool fixed, mix_choice *c, loam_error *err)
{
    const int64_t n = v->tensor->ne[0];
    const int wanted = c->type;
    while (n % dtype_table[c->type].values != 0) {
        int next = fixed ? -1 : fall_back(c->type);
        if (next < 0)
            return fail(err, LOAM_E_ARG, "tensor %.63s: its rows of %lld values are not a multiple of the %d of %s",
                        v->tensor->name, (long long)n, dtype_table[wanted].values, dtype_table[wanted].name);
        c->type = next;
        c->fell_back = true;
    }
    return LOAM_OK;
}

/* Types that are not worth having without an importance matrix. */
static bool needs_matrix(const plan *p, int type)
{
    switch (type) {
    case LOAM_IQ1_S: case LOAM_IQ1_M: case LOAM_IQ2_XXS: case LOAM_IQ2_XS: case LOAM_IQ2_S: case LOAM_IQ3_XXS: return true;
    case LOAM_Q2_K: return p->mix == MIX_Q2_K_S;
    default: return false;
    }
}

static loam_status check_matrix(const plan *p, const visit *v, mix_choice *c, loam_error *err)
{
    const dtype_info *info = &dtype_table[c->type];
    bool has = p->options->has_matrix && v->tensor->has_weights, embedding = v->cat == CAT_E || v->cat == CAT_O;
    c->use_weights = has && info->need != WEIGHT_IGNORED;
    c->lacks_weights = !has && (info->need == WEIGHT_REQUIRED || (needs_matrix(p, c->type) && !embedding));
    if (c->lacks_weights && !p->options->dry_run)
        return fail(err, LOAM_E_ARG, "tensor %.63s: %s needs an importance matrix%s", v->tensor->name, info->name,
                    p->options->has_matrix ? ", and the one given has no entry for it" : "");
    return LOAM_OK;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static loam_status choose(plan *p, const mix_tensor *t, mix_choice *c, loam_error *err)
{
    const mix_options *o = p->options;
    c->type = t->type;
    c->fell_back = c->use_weights = c->lacks_weights = false;
    visit v = { .tensor = t, .cat = category_of(t->name) };
    if (p->mix == MIX_COPY || !mix_is_quantized(t) || (o->leave_output && strcmp(t->name, "output.weight") == 0)) return LOAM_OK;
    long layer = layer_of(t->name);
    v.count = p->met[v.cat]++;
    v.i = p->model->n_expert > 1 && v.cat != CAT_V && layer >= 0 ? layer : v.count;
    v.n = v.cat == CAT_V ? p->n_value : p->model->n_layer;
    bool fixed = false;
    int asked = o->types && o->types[c->tensor] >= 0 ? o->types[c->tensor] : asked_type(p, &v, &fixed);
    c->type = asked >= 0 ? asked : rule_type(p, &v);
    loam_status status = fit_row(&v, fixed, c, err);
    if (status || c->type == t->type) return status;
    return check_matrix(p, &v, c, err);
}

/* Where a tensor stands in the visiting order. */
typedef struct place {
    const char *name;
    long layer;
    size_t index;
} place;

static int by_layer_and_name(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static loam_status order_tensors(const mix_options *o, const mix_tensor *tensors, size_t n, mix_choice *choices, loam_error *err)
{
    place *places = mem_alloc_array(n, sizeof *places);
    if (!places) return fail_nomem(err, "the order of tensors", (uint64_t)n * sizeof *places);
    for (size_t k = 0; k < n; k++) places[k] = (place){ tensors[k].name, layer_of(tensors[k].name), k };
    if (!o->keep_order) qsort(places, n, sizeof *places, by_layer_and_name);
    for (size_t k = 0; k < n; k++) choices[k].tensor = places[k].index;
    mem_free(places);
    return LOAM_OK;
}

static loam_status check_options(const mix_options *o, const mix_tensor *tensors, size_t n, loam_error *err)
{
    if (!o->mix) return fail(err, LOAM_E_ARG, "no type was given");
    if (o->output_type >= 0 && !dtype_get(o->output_type))
        return fail(err, LOAM_E_ARG, "output tensor type %d is no element type", o->output_type);
    if (o->token_type >= 0 && !dtype_get(o->token_type))
        return fail(err, LOAM_E_ARG, "token embedding type %d is no element type", o->token_type);
    for (size_t k = 0; k < n; k++)
        if (!dtype_get(tensors[k].type))
            return fail(err, LOAM_E_ARG, "tensor %.63s has element type %d, which is unknown", tensors[k].name, tensors[k].type);
    return LOAM_OK;
}

loam_status mix_plan(const mix_options *options, const mix_model *model, const mix_tensor *tensors, size_t n,
                     mix_choice *choices, loam_error *err)
{
    loam_status status = check_options(options, tensors, n, err);
    if (status) return status;
    plan p = { .options = options, .model = model, .mix = options->mix->id, .base = options->mix->type, .tied = true };
    if (p.base < 0) p.base = LOAM_F32; /* COPY: never used */
    p.falcon = strcmp(model->arch, "falcon") == 0;
    p.eight = model->n_expert == 8;
    p.gqa = model->n_head_kv > 0 ? model->n_head / model->n_head_kv : 0;
    for (size_t k = 0; k < n; k++) {
        if (strcmp(tensors[k].name, "output.weight") == 0) p.tied = false;
        if (category_of(tensors[k].name) == CAT_V && mix_is_quantized(&tensors[k])) p.n_value++;
    }
    size_t compiled = 0;
    status = compile_patterns(&p, &compiled, err);
    if (!status) status = order_tensors(options, tensors, n, choices, err);
    for (size_t k = 0; k < n && !status; k++) status = choose(&p, &tensors[choices[k].tensor], &choices[k], err);
    for (size_t k = 0; k < compiled; k++) regfree(&p.patterns[k]);
    mem_free(p.patterns);
    return status;
}
