/* hparams_rope.c - rotary embedding and sliding windows: their keys, and which blocks have them. */
#include <string.h>

#include "base/limits.h"
#include "base/mathd.h"
#include "model/hparams_parts.h"

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
    k->status = gguf_get_array(k->file, key_name(k, "rope.dimension_sections"), needed ? GGUF_REQUIRED : GGUF_OPTIONAL,
                               GGUF_INTS, &a, k->err);
    if (k->status != LOAM_OK) return;
    int64_t total = 0;
    for (uint64_t i = 0; i < 4 && i < a.count; i++) {
        int64_t s = gguf_int_at(&a, i);
        if (s < 0 || s > LIMIT_WIDTH) key_fail(k, LOAM_E_FORMAT, "has %lld: out of range", (long long)s);
        else h->rope.sections[i] = (int)s, total += s;
    }
    if (needed && !total) key_fail(k, LOAM_E_FORMAT, "has no section");
}

/* LongRoPE: sqrt(1 + ln s / ln O) for s = trained context / O, 1 where nothing is stretched or there is one set of factors. */
static float usual_magnitude(const hparams *h, const keys *k)
{
    double original = (double)h->rope.n_original, s = (double)S(P) / original;
    bool two = k->status == LOAM_OK && h->spec->rope.factors && gguf_tensor_find(k->file, "rope_factors_long.weight");
    return two && s > 1 && original > 1 ? (float)__builtin_sqrt(1 + mathd_ln(s) / mathd_ln(original)) : 1.0f;
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
    r->n_original = (float)or_else(key_int(k, "rope.scaling.original_context_length", 0, LIMIT_CONTEXT), S(P));
    r->magnitude = key_float(k, "rope.scaling.attn_factor", usual_magnitude(h, k));
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

void hparams_rope(hparams *h, keys *k)
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
    if (w->kind == WINDOW_CHUNKED && present && !size) key_fail(k, LOAM_E_UNSUPPORTED,
                                                                "is 0: this form without chunks is not supported");
    if (w->fixed_size || !size) size = w->size;
    if (!size) key_fail(k, LOAM_E_FORMAT, "must be positive");
    h->window = w->kind;
    h->window_size = (int)size;
}

void hparams_windows(hparams *h, keys *k)
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

/* Which blocks turn. */
void hparams_place_rotary(hparams *h, keys *k)
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
