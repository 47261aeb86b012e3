/* hparams.c - metadata to hyper-parameters: widths first, then rotary, window, attention, experts and factors, at last the
 * facts of each block. Writers store keys that do not apply as 0, so 0 counts as absent where a 0 would make no sense. */
#include "model/hparams.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mathd.h"
#include "base/mem.h"
#include "model/keys.h"

#define S(letter) SYM(h->sym, letter)

static int64_t or_else(int64_t v, int64_t otherwise) { return v ? v : otherwise; }

/* A default width written in symbols. */
static int64_t or_expr(const hparams *h, int64_t v, const char *expr)
{
    int64_t d = 0;
    if (!v && expr && !expr_value(expr, &h->sym, &d)) d = 0;
    return v ? v : d;
}

static void read_blocks(hparams *h, keys *k)
{
    h->n_stored = (int)key_int_needed(k, "block_count", LIMIT_LAYERS);
    int64_t nextn = key_int(k, "nextn_predict_layers", 0, LIMIT_LAYERS);
    if (nextn >= h->n_stored) key_fail(k, LOAM_E_FORMAT, "is %lld of %d blocks: none is left", (long long)nextn, h->n_stored);
    if (k->status != LOAM_OK) return;
    h->n_layer = h->n_stored - (int)nextn;
    S(L) = h->n_layer;
    h->layers = mem_zalloc_array((size_t)h->n_layer, sizeof *h->layers);
    if (!h->layers) k->status = fail_nomem(k->err, "blocks of a model", (uint64_t)h->n_layer * sizeof *h->layers);
}

/* H, G and F of every block. */
static void read_heads(hparams *h, keys *k)
{
    if (k->status != LOAM_OK) return;
    int64_t heads[LIMIT_LAYERS], kv[LIMIT_LAYERS], ff[LIMIT_LAYERS];
    bool headless = h->spec->recurrent.kind && h->spec->recurrent.blocks == RECURRENT_EVERYWHERE;
    key_per_block(k, "attention.head_count", headless ? 0 : -1, LIMIT_HEADS, heads, h->n_layer);
    memcpy(kv, heads, sizeof kv);
    if (key_present(k, "attention.head_count_kv"))
        key_per_block(k, "attention.head_count_kv", -1, LIMIT_HEADS, kv, h->n_layer);
    key_per_block(k, "feed_forward_length", 0, LIMIT_WIDTH, ff, h->n_layer);
    if (k->status != LOAM_OK) return;
    for (int i = 0; i < h->n_layer; i++) {
        layer_facts *l = &h->layers[i];
        *l = (layer_facts) { .n_head = heads[i], .n_head_kv = kv[i], .n_ff = ff[i] };
        bool may_lack = h->spec->block_kinds || h->spec->recurrent.kind != RECURRENT_NONE;
        key_name(k, "attention.head_count");
        if (!l->n_head && !may_lack) key_fail(k, LOAM_E_FORMAT, "is 0 for block %d", i);
        key_name(k, "attention.head_count_kv");
        if (l->n_head && !l->n_head_kv && !may_lack) key_fail(k, LOAM_E_FORMAT, "is 0 for block %d", i);
        if (l->n_head && l->n_head_kv && l->n_head % l->n_head_kv)
            key_fail(k, LOAM_E_FORMAT, "is %lld for block %d, which does not divide its %lld heads", (long long)l->n_head_kv, i,
                     (long long)l->n_head);
    }
    S(H) = h->layers[0].n_head;
    S(G) = h->layers[0].n_head_kv;
    S(F) = h->layers[0].n_ff;
}

static void read_widths(hparams *h, keys *k)
{
    S(P) = key_int_needed(k, "context_length", LIMIT_CONTEXT);
    S(D) = key_int_needed(k, "embedding_length", LIMIT_WIDTH);
    read_blocks(h, k);
    read_heads(h, k);
    hparams_recurrent_widths(h, k);
    if (k->status != LOAM_OK) return;
    int64_t per_head = 0;
    for (int i = 0; i < h->n_layer && !per_head; i++) per_head = h->layers[i].n_head ? S(D) / h->layers[i].n_head : 0;
    S(K) = or_else(key_int(k, "attention.key_length", 0, LIMIT_WIDTH), per_head);
    S(W) = or_else(key_int(k, "attention.value_length", 0, LIMIT_WIDTH), per_head);
    key_name(k, "attention.key_length");
    bool headless = h->spec->recurrent.kind && h->spec->recurrent.blocks == RECURRENT_EVERYWHERE;
    if (!headless && (!S(K) || !S(W))) key_fail(k, LOAM_E_FORMAT, "is missing, and embedding_length %lld gives no head width", (long long)S(D));
    S(R) = or_else(key_int(k, "rope.dimension_count", 0, LIMIT_WIDTH), S(K));
    if (h->spec->latent == LATENT_NONE && h->spec->rope.kind != ROTARY_NONE && (S(R) > S(K) || S(R) % 2))
        key_fail(k, LOAM_E_FORMAT, "is %lld: rotated values must be even and at most the head width %lld", (long long)S(R), (long long)S(K));
}

static void read_latent(hparams *h, keys *k)
{
    S(M) = S(K), S(Z) = S(W);
    if (h->spec->latent == LATENT_NONE) return;
    S(A) = key_int(k, "attention.q_lora_rank", 0, LIMIT_WIDTH);
    S(C) = key_int_needed(k, "attention.kv_lora_rank", LIMIT_WIDTH);
    int64_t m = 0, z = 0;
    if (h->spec->latent == LATENT_BY_KEY) {
        m = key_int(k, "attention.key_length_mla", 0, LIMIT_WIDTH);
        z = key_int(k, "attention.value_length_mla", 0, LIMIT_WIDTH);
    }
    h->absorbed = m && z;
    if (h->absorbed) S(M) = m, S(Z) = z;
    key_name(k, "rope.dimension_count");
    if (S(R) > S(M) - (h->absorbed ? 1 : 0) || S(R) % 2)
        key_fail(k, LOAM_E_FORMAT, "is %lld: must be even and leave something of the head width %lld", (long long)S(R), (long long)S(M));
    key_name(k, "attention.key_length");
    if (h->absorbed && (S(K) != S(C) + S(R) || S(W) != S(C)))
        key_fail(k, LOAM_E_FORMAT, "is %lld and value_length %lld; rank %lld with %lld rotated values needs %lld and %lld", (long long)S(K),
                 (long long)S(W), (long long)S(C), (long long)S(R), (long long)(S(C) + S(R)), (long long)S(C));
    for (int i = 0; i < h->n_layer; i++) {
        key_name(k, "attention.head_count_kv");
        if (h->absorbed && h->layers[i].n_head_kv != 1) key_fail(k, LOAM_E_FORMAT, "must be 1 with an absorbed latent");
        if (!h->absorbed) h->layers[i].n_head_kv = h->layers[i].n_head; /* every head has a key of its own */
    }
}

static float epsilon(keys *k, const char *key)
{
    float eps = key_float_needed(k, key);
    if (eps < 0) key_fail(k, LOAM_E_FORMAT, "is negative");
    return eps;
}

static void read_norm(hparams *h, keys *k)
{
    static const char rms[] = "attention.layer_norm_rms_epsilon", layer[] = "attention.layer_norm_epsilon";
    h->norm = h->spec->norm == RMS || h->spec->norm == RMS_ANY_EPSILON ? NORM_RMS : NORM_LAYER;
    if (h->spec->norm == NORM_BY_EPSILON && key_float(k, rms, 0) > 0) h->norm = NORM_RMS;
    bool other = h->spec->norm == RMS_ANY_EPSILON && !key_present(k, rms);
    h->eps = h->spec->zero_epsilon ? 0 : epsilon(k, h->norm == NORM_RMS && !other ? rms : layer);
}

static rope_kind rotary_of(rotary r, const int sections[4])
{
    bool by_section = sections[0] > 0 && sections[1] > 0;
    switch (r) {
    case ROTARY_HALVES: return ROPE_NEOX;
    case ROTARY_SECTIONS: return ROPE_MROPE;
    case ROTARY_INTERLEAVED: return ROPE_IMROPE;
    case ROTARY_SECTIONS_OR_ADJACENT: return by_section ? ROPE_MROPE : ROPE_NORM;
    case ROTARY_SECTIONS_OR_HALVES: return by_section ? ROPE_MROPE : ROPE_NEOX;
    case ROTARY_ADJACENT: case ROTARY_NONE: break;
    }
    return ROPE_NORM;
}

static void read_sections(hparams *h, keys *k)
{
    rotary r = h->spec->rope.kind;
    bool needed = r == ROTARY_SECTIONS || r == ROTARY_INTERLEAVED;
    if (k->status != LOAM_OK || r == ROTARY_ADJACENT || r == ROTARY_HALVES || r == ROTARY_NONE) return;
    gguf_array a;
    k->status = gguf_get_array(k->file, key_name(k, "rope.dimension_sections"), needed ? GGUF_REQUIRED : GGUF_OPTIONAL, GGUF_INTS, &a, k->err);
    if (k->status != LOAM_OK) return;
    int64_t total = 0;
    for (uint64_t i = 0; i < 4 && i < a.count; i++) {
        int64_t s = gguf_int_at(&a, i);
        if (s < 0 || s > LIMIT_WIDTH) key_fail(k, LOAM_E_FORMAT, "has %lld: out of range", (long long)s);
        else h->rope.sections[i] = (int)s, total += s;
    }
    if (needed && !total) key_fail(k, LOAM_E_FORMAT, "has no section");
}

static void read_scaling(hparams *h, keys *k)
{
    static const char *const names[] = { "none", "linear", "yarn", "longrope" };
    rope_facts *r = &h->rope;
    text_view type = { "linear", 6 };
    if (k->status == LOAM_OK)
        k->status = gguf_get_text(k->file, key_name(k, "rope.scaling.type"), GGUF_OPTIONAL, &type, k->err);
    int found = -1;
    for (int i = 0; i < 4; i++)
        if (strlen(names[i]) == type.len && !memcmp(names[i], type.data, type.len)) found = i;
    if (found < 0) key_fail(k, LOAM_E_UNSUPPORTED, "is none of none, linear, yarn, longrope");
    r->scaling = found < 0 ? ROPE_SCALING_NONE : (rope_scaling)found;
    float old_name = key_float(k, "rope.scale_linear", 0);
    r->factor = key_float(k, "rope.scaling.factor", old_name);
    if (r->factor < 0) key_fail(k, LOAM_E_FORMAT, "is negative");
    if (r->factor == 0) r->factor = 1;
    r->magnitude = key_float(k, "rope.scaling.attn_factor", 1);
    r->n_original = (float)or_else(key_int(k, "rope.scaling.original_context_length", 0, LIMIT_CONTEXT), S(P));
}

static void read_yarn(hparams *h, keys *k)
{
    unsigned yarn = h->spec->rope.yarn;
    rope_facts *r = &h->rope;
    r->yarn_ext = yarn & YARN_EXT ? key_float(k, "rope.scaling.yarn_ext_factor", -1) : -1;
    r->yarn_attn = yarn & YARN_ATTN ? key_float(k, "rope.scaling.yarn_attn_factor", 1) : 1;
    r->beta_fast = h->spec->rope.beta_fast > 0 ? h->spec->rope.beta_fast : 32;
    r->beta_slow = 1;
    if (yarn & YARN_BETA) {
        r->beta_fast = key_float(k, "rope.scaling.yarn_beta_fast", r->beta_fast);
        r->beta_slow = key_float(k, "rope.scaling.yarn_beta_slow", r->beta_slow);
    }
    if (yarn & (YARN_LOG | YARN_LOG_TENTH)) r->yarn_log = key_float(k, "rope.scaling.yarn_log_multiplier", 0);
    if (yarn & YARN_LOG_TENTH) r->yarn_log /= 0.1f;
}

static void read_rope(hparams *h, keys *k)
{
    const rope_recipe *spec = &h->spec->rope;
    rope_facts *r = &h->rope;
    read_sections(h, k);
    r->kind = rotary_of(spec->kind, r->sections);
    r->none = spec->kind == ROTARY_NONE || (spec->only_layers && spec->only_layers != h->n_layer);
    r->base = key_float(k, "rope.freq_base", 10000);
    if (!(r->base > 0)) key_fail(k, LOAM_E_FORMAT, "must be positive");
    read_scaling(h, k);
    read_yarn(h, k);
    if (spec->plain) {
        r->base = 10000;
        r->scaling = ROPE_SCALING_NONE;
        r->factor = r->magnitude = 1;
    }
    float alpha = spec->alpha ? key_float(k, "rope.scaling.alpha", 0) : 0;
    if (alpha > 0 && S(K) > 2) r->base = (float)(r->base * mathd_pow(alpha, (double)S(K) / (double)(S(K) - 2)));
    r->base_window = r->base;
    if (spec->window == WINDOW_BASE_TRAINED) r->base_window = key_float(k, "rope.freq_base_swa", r->base);
    if (spec->window == WINDOW_BASE_10000) r->base_window = key_float(k, "rope.freq_base_swa", 10000);
    if (!(r->base_window > 0)) key_fail(k, LOAM_E_FORMAT, "must be positive");
}

/* Whether the model has window blocks at all, and their size. */
static void read_window_size(hparams *h, keys *k)
{
    static const char key[] = "attention.sliding_window";
    const window_recipe *w = &h->spec->window;
    if (w->kind == WINDOW_NONE || (w->only_layers && w->only_layers != h->n_layer)) return;
    bool present = key_present(k, key);
    int64_t size = key_int(k, key, 0, LIMIT_CONTEXT);
    if (w->by_key && !size) return;
    key_name(k, key);
    if (w->kind == WINDOW_CHUNKED && present && !size) key_fail(k, LOAM_E_UNSUPPORTED, "is 0: this form without chunks is not supported");
    if (w->fixed_size || !size) size = w->size;
    if (!size) key_fail(k, LOAM_E_FORMAT, "must be positive");
    h->window = w->kind;
    h->window_size = (int)size;
}

static void read_windows(hparams *h, keys *k)
{
    const window_recipe *w = &h->spec->window;
    read_window_size(h, k);
    if (h->window == WINDOW_NONE || k->status != LOAM_OK) return;
    bool flags[LIMIT_LAYERS] = { false };
    static const char pattern[] = "attention.sliding_window_pattern";
    bool given = key_flags(k, pattern, flags, h->n_layer);
    if (!given && w->array) key_fail(k, LOAM_E_FORMAT, "must be there, as an array of one flag a block");
    int64_t period = given ? 0 : key_int(k, pattern, w->period, LIMIT_LAYERS);
    for (int i = 0; i < h->n_layer; i++) {
        if (!given && period == 0) flags[i] = true;
        else if (!given) flags[i] = w->dense_first ? i % period != 0 : i % period < period - 1;
        h->layers[i].window = flags[i];
    }
}

/* The value of a factor's key, or its default. */
static float factor_value(hparams *h, keys *k, const factor *f, const char *key)
{
    double by[] = { 1, __builtin_sqrt((double)S(D)), 1 / __builtin_sqrt(h->n_layer), 1.0 / (double)S(D) };
    float otherwise = f->value != 0 ? (float)(f->value * by[f->by]) : 1;
    float v = f->key ? key_float(k, key, otherwise) : otherwise;
    return v == 0 ? 1 : v;
}

static float cap_value(keys *k, const cap *c, const char *key)
{
    float v = c->on ? key_float(k, key, c->value) : 0;
    if (v < 0) key_fail(k, LOAM_E_FORMAT, "is negative");
    return v;
}

static void read_temperature(hparams *h, keys *k)
{
    switch (h->spec->attn.temperature) {
    case TEMPERATURE_NONE: return;
    case TEMPERATURE_NO_ROTARY:
        h->temperature = 0.1f, h->temperature_n = 8192, h->temperature_o = 1;
        return;
    case TEMPERATURE_ALL:
        h->temperature_n = h->rope.n_original;
        break;
    case TEMPERATURE_LATENT:
        h->temperature_n = (float)key_int(k, "attention.temperature_length", 0, LIMIT_CONTEXT);
        break;
    }
    h->temperature = key_float(k, "attention.temperature_scale", 0);
    if (h->temperature != 0 && h->temperature_n <= 0)
        key_fail(k, LOAM_E_FORMAT, "needs a positive attention.temperature_length");
}

static void read_attention(hparams *h, keys *k)
{
    const attention_recipe *a = &h->spec->attn;
    h->causal = key_bool(k, "attention.causal", true);
    h->clamp = a->clamp ? key_float(k, "attention.clamp_kqv", 0) : 0;
    if (h->clamp < 0) key_fail(k, LOAM_E_FORMAT, "is negative");
    h->alibi = a->alibi_key ? key_float(k, "attention.max_alibi_bias", 0) : a->alibi;
    if (a->alibi_only_layers && a->alibi_only_layers != h->n_layer) h->alibi = 0;
    if (h->alibi < 0) key_fail(k, LOAM_E_FORMAT, "is negative");
    h->score_cap = cap_value(k, &a->softcap, "attn_logit_softcapping");
    if (a->scale == SCORE_KEY) h->attention_scale = key_float(k, "attention.scale", 0);
    if (a->scale == SCORE_OUTPUT_SCALE) h->output_scale = key_float(k, "attention.output_scale", 0.08838834764831845f);
    h->value_scale = a->value_scale ? key_float(k, "attention.value_scale", 0) : 1;
    if (h->value_scale == 0) h->value_scale = 1;
    read_temperature(h, k);
}

static void read_factors(hparams *h, keys *k)
{
    const arch_spec *a = h->spec;
    h->embedding_scale = factor_value(h, k, &a->embedding, "embedding_scale");
    h->residual_scale = factor_value(h, k, &a->residual, "residual_scale");
    h->hidden_scale = factor_value(h, k, &a->hidden, "");
    h->logit_scale = factor_value(h, k, &a->logit, "logit_scale");
    if (a->logit_divides) h->logit_scale = 1 / h->logit_scale;
    h->logit_cap = cap_value(k, &a->logit_cap, "final_logit_softcapping");
    if (a->form == PARALLEL_BY_KEY) h->use_parallel_residual = key_bool(k, "use_parallel_residual", true);
}

static void read_router(hparams *h, keys *k)
{
    const expert_recipe *e = &h->spec->experts;
    h->router = e->router;
    if (e->router_from != ROUTER_FIXED) {
        static const router_kind kinds[] = { ROUTER_SOFTMAX, ROUTER_SIGMOID, ROUTER_TOP_SOFTMAX, ROUTER_SQRT_SOFTPLUS };
        int64_t kind = key_int(k, "expert_gating_func", 0, INT32_MAX);
        h->router_given = kind != 0;
        if (kind > 4 || (kind == 0 && e->router_from == ROUTER_KEY))
            key_fail(k, LOAM_E_UNSUPPORTED, "is %lld, known are 1 (softmax), 2 (sigmoid), 3 (softmax of the selected), 4", (long long)kind);
        else if (kind) h->router = kinds[kind - 1];
    }
    h->normalise = e->normalise == ALWAYS || (e->normalise == BY_KEY && key_bool(k, "expert_weights_norm", false));
    h->expert_scale = e->scale_key ? key_float(k, "expert_weights_scale", 0) : 1;
    if (h->expert_scale == 0) h->expert_scale = 1;
    h->n_group = (int)key_int(k, "expert_group_count", 0, LIMIT_EXPERTS);
    h->n_group_used = (int)key_int(k, "expert_group_used_count", 0, LIMIT_EXPERTS);
    if (h->n_group <= 1) return;
    if (S(E) % h->n_group || h->n_group_used < 1 || h->n_group_used > h->n_group)
        key_fail(k, LOAM_E_FORMAT, "is %d: %lld experts in %d groups do not work", h->n_group_used, (long long)S(E), h->n_group);
    else if (S(U) > S(E) / h->n_group * h->n_group_used)
        key_fail(k, LOAM_E_FORMAT, "is %d: fewer experts are left than the %lld that are used", h->n_group_used, (long long)S(U));
}

static void read_experts(hparams *h, keys *k)
{
    const expert_recipe *e = &h->spec->experts;
    const shared_expert_recipe *s = &h->spec->shared;
    if (s->s_default || s->width) {
        S(N) = key_int(k, "expert_shared_count", 0, LIMIT_EXPERTS);
        S(S) = key_int(k, "expert_shared_feed_forward_length", 0, LIMIT_WIDTH);
    }
    if (e->blocks == EXPERTS_NOWHERE) return;
    S(E) = key_int(k, "expert_count", 0, LIMIT_EXPERTS);
    if (!S(E) && e->blocks != EXPERTS_IF_ANY && e->blocks != EXPERTS_DEAD && e->blocks != EXPERTS_WHERE_STORED)
        key_fail(k, LOAM_E_FORMAT, "must be positive");
    S(X) = key_int(k, "expert_feed_forward_length", 0, LIMIT_WIDTH);
    if (!S(E) || k->status != LOAM_OK) return;
    S(U) = key_int_needed(k, "expert_used_count", S(E));
    S(X) = or_expr(h, S(X), e->x_default);
    S(S) = or_expr(h, S(S), s->s_default);
    if (e->chunks) {
        S(J) = or_else(key_int(k, "expert_chunk_feed_forward_length", 0, LIMIT_WIDTH), S(K));
        S(B) = key_int_needed(k, "experts_per_group", LIMIT_EXPERTS);
        h->group_scale = key_float(k, "expert_group_scale", 1);
        if (S(E) % S(B)) key_fail(k, LOAM_E_FORMAT, "is missing or %lld does not divide %lld experts", (long long)S(B), (long long)S(E));
    }
    read_router(h, k);
}

/* Where the experts are. */
static void place_experts(hparams *h, keys *k)
{
    expert_blocks where = h->spec->experts.blocks;
    bool leading = where == EXPERTS_AFTER_LEADING || where == EXPERTS_AFTER_LEADING_EVERY_STEP;
    bool steps = where == EXPERTS_EVERY_STEP || where == EXPERTS_AFTER_LEADING_EVERY_STEP;
    int64_t lead = leading ? key_int(k, "leading_dense_block_count", 0, LIMIT_LAYERS) : 0;
    int64_t step = steps ? key_int(k, "interleave_moe_layer_step", 0, LIMIT_LAYERS) : 0;
    for (int i = 0; i < h->n_layer; i++) {
        layer_facts *l = &h->layers[i];
        bool on_step = step > 0 && (i + 1) % step == 0;
        bool stored = false;
        char name[64];
        switch (where) {
        case EXPERTS_NOWHERE: break;
        case EXPERTS_IF_ANY: case EXPERTS_DEAD: stored = S(E) > 0; break;
        case EXPERTS_EVERYWHERE: stored = true; break;
        case EXPERTS_AFTER_LEADING: case EXPERTS_AFTER_LEADING_EVERY_STEP: stored = i >= lead; break;
        case EXPERTS_EVERY_STEP: stored = on_step; break;
        case EXPERTS_WHERE_STORED:
            snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
            stored = gguf_tensor_find(k->file, name) != NULL;
            break;
        }
        l->expert_tensors = stored;
        l->ffn = stored ? FFN_EXPERTS : FFN_DENSE;
        if (stored && (where == EXPERTS_DEAD || (where == EXPERTS_AFTER_LEADING_EVERY_STEP && !on_step))) l->ffn = FFN_IDENTITY;
    }
}

static void place_rotary(hparams *h, keys *k)
{
    bool pattern[LIMIT_LAYERS], finetuned = true, any_window = h->window != WINDOW_NONE;
    int64_t lead = 0;
    for (int i = 0; i < LIMIT_LAYERS; i++) pattern[i] = true;
    rotary_skip skip = h->spec->rope.skip;
    if (skip == SKIP_BY_PATTERN && !key_flags(k, "attention.rope_pattern", pattern, h->n_layer)) {
        bool on = key_int(k, "attention.rope_pattern", 1, INT32_MAX) != 0;
        for (int i = 0; i < h->n_layer; i++) pattern[i] = on;
    }
    if (skip == SKIP_NOT_FINETUNED) finetuned = key_bool(k, "rope.scaling.finetuned", true);
    if (skip == SKIP_FULL_UNLESS_LEADING) lead = key_int(k, "leading_dense_block_count", 0, LIMIT_LAYERS);
    for (int i = 0; i < h->n_layer; i++) {
        bool off = false, full = !h->layers[i].window;
        switch (skip) {
        case SKIP_NEVER: break;
        case SKIP_EVERY_4TH: off = (i + 1) % 4 == 0; break;
        case SKIP_FIRST_OF_4: off = any_window && h->n_layer != 4 && i % 4 == 0; break;
        case SKIP_FULL: off = full; break;
        case SKIP_FULL_IF_WINDOW: off = any_window && full; break;
        case SKIP_FULL_UNLESS_LEADING: off = full && i >= lead; break;
        case SKIP_NOT_FINETUNED: off = !finetuned; break;
        case SKIP_BY_PATTERN: off = !pattern[i]; break;
        }
        h->layers[i].rotary = !off && !h->rope.none;
    }
}

static double softplus(double x) { return x > 20 ? x : mathd_ln(1 + mathd_exp(x)); }

static void read_xielu(hparams *h, keys *k)
{
    static const char *const names[] = { "/xielu.alpha_p", "/xielu.alpha_n", "/xielu.beta", "/xielu.eps" };
    if (h->spec->ffn.kind != XIELU) return;
    float v[LIMIT_LAYERS];
    for (int j = 0; j < 4 && k->status == LOAM_OK; j++) {
        key_floats_per_block(k, names[j], v, h->n_layer);
        for (int i = 0; i < h->n_layer && k->status == LOAM_OK; i++) h->layers[i].xielu[j] = v[i];
    }
    for (int i = 0; i < h->n_layer && k->status == LOAM_OK; i++) {
        float *p = h->layers[i].xielu;
        p[0] = (float)softplus(p[0]);
        p[1] = (float)(p[2] + softplus(p[1]));
    }
}

static void check_feed_forward(hparams *h, keys *k)
{
    key_name(k, "feed_forward_length");
    for (int i = 0; i < h->n_layer; i++)
        if (h->layers[i].ffn == FFN_DENSE && !h->layers[i].n_ff && !h->spec->block_kinds)
            key_fail(k, LOAM_E_FORMAT, "is missing or 0 for block %d", i);
}

/* Keys that must be there although the forward pass does not use them. */
static void check_required(hparams *h, keys *k)
{
    for (const char *at = h->spec->required; at && *at;) {
        size_t n = strcspn(at, " ");
        char key[96];
        snprintf(key, sizeof key, "%.*s", (int)n, at);
        if (!key_present(k, key)) key_fail(k, LOAM_E_FORMAT, "is missing: the architecture needs this key");
        at += n + (at[n] == ' ');
    }
}

/* Rows of the token table, or of the head where there is no table; 0 without either. */
static int64_t vocabulary(const gguf_file *f)
{
    const gguf_tensor *t = gguf_tensor_find(f, "token_embd.weight");
    if (!t) t = gguf_tensor_find(f, "output.weight");
    return t ? t->ne[1] : 0;
}

loam_status hparams_read(hparams *h, const arch_spec *spec, const gguf_file *f, loam_error *err)
{
    *h = (hparams) { .spec = spec };
    S(V) = vocabulary(f);
    keys k = { .file = f, .spec = spec, .err = err };
    check_required(h, &k);
    read_widths(h, &k);
    if (k.status == LOAM_OK) {
        read_latent(h, &k);
        read_norm(h, &k);
        read_rope(h, &k);
        read_windows(h, &k);
        read_attention(h, &k);
        read_factors(h, &k);
        read_experts(h, &k);
        place_experts(h, &k);
        hparams_recurrent_blocks(h, &k);
        place_rotary(h, &k);
        read_xielu(h, &k);
        if (spec->adjust) spec->adjust(h);
        check_feed_forward(h, &k);
    }
    if (k.status != LOAM_OK) hparams_free(h);
    return k.status;
}

void hparams_free(hparams *h)
{
    mem_free(h->layers);
    h->layers = NULL;
}

symbols layer_symbols(const hparams *h, int il)
{
    symbols s = h->sym;
    if (il >= 0) {
        SYM(s, H) = h->layers[il].n_head;
        SYM(s, G) = h->layers[il].n_head_kv;
        SYM(s, F) = h->layers[il].n_ff;
    }
    return s;
}
