/* hf_rope.c - rotary positions of config.json: base, share of a head, scaling.
 *
 * Written in two ways: `rope_theta` and `rope_scaling`, or both in `rope_parameters` (per kind of layer where they differ).
 *
 *   linear    rope.scaling.factor             llama3    divisors of the angles, in rope_freqs
 *   yarn      and the original context        longrope  two sets of divisors, and the magnitude (Ding et al. 2024)
 *   dynamic   changes nothing within the trained context, and is left out */
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "file/hf_impl.h"

#define PI 3.14159265358979323846

typedef struct rope_config {
    const js *params; /* NULL: none */
    text_view type;
    int64_t n_rot, original;
} rope_config;

static double param(const rope_config *r, const char *key, double otherwise)
{
    double v = otherwise;
    js_number(js_get(r->params, key), &v);
    return v;
}

static void set_factor(hf_build *b, const rope_config *r, const char *type)
{
    double factor = param(r, "factor", 0);
    if (!(factor > 0)) hf_fail(b, LOAM_E_FORMAT, "rope scaling '%s' has no factor", type);
    hf_set_text(b, "rope.scaling.type", type);
    hf_set_float(b, "rope.scaling.factor", factor);
}

static void put_yarn(hf_build *b, const rope_config *r)
{
    double factor = param(r, "factor", 0), ln = factor > 1 ? mathd_ln(factor) : 0;
    double usual = 1 + 0.1 * ln, given = param(r, "attention_factor", usual);
    double mscale = param(r, "mscale", 0), all = param(r, "mscale_all_dim", 0);
    if (mscale > 0 && all > 0) given = (1 + 0.1 * mscale * ln) / (1 + 0.1 * all * ln);
    set_factor(b, r, "yarn");
    hf_set_int(b, "rope.scaling.original_context_length", r->original);
    if (given != usual) hf_set_float(b, "rope.scaling.attn_factor", given / usual);
    if (param(r, "beta_fast", 32) != 32 || param(r, "beta_slow", 1) != 1)
        hf_fail(b, LOAM_E_UNSUPPORTED, "rope scaling 'yarn' with beta_fast and beta_slow other than 32 and 1");
}

/* Angles of long waves are divided by the factor, of short ones kept, with a ramp between (Llama 3.1). */
static void put_llama3(hf_build *b, const rope_config *r, double base)
{
    double factor = param(r, "factor", 8), low = param(r, "low_freq_factor", 1), high = param(r, "high_freq_factor", 4);
    double original = (double)r->original;
    int64_t n = r->n_rot / 2;
    if (!(factor > 0) || !(low > 0) || !(high > low)) {
        hf_fail(b, LOAM_E_FORMAT, "rope scaling 'llama3' needs a factor and low_freq_factor < high_freq_factor");
        return;
    }
    float *values = mem_alloc_array((size_t)n, sizeof *values);
    if (!values) {
        b->status = fail_nomem(b->err, "rotary factors", (uint64_t)n * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double wave = 2 * PI * mathd_pow(base, (double)(2 * i) / (double)r->n_rot);
        double smooth = (original / wave - low) / (high - low);
        if (wave < original / high) values[i] = 1;
        else if (wave > original / low) values[i] = (float)factor;
        else values[i] = (float)(1 / ((1 - smooth) / factor + smooth));
    }
    hf_make_item(b, "rope_freqs.weight", values, n);
    mem_free(values);
}

static void put_factors(hf_build *b, const rope_config *r, const char *key, const char *name)
{
    const js *list = js_get(r->params, key);
    size_t n = js_count(list);
    if (!js_is_array(list) || n != (size_t)(r->n_rot / 2)) {
        hf_fail(b, LOAM_E_FORMAT, "rope scaling: %s has %zu values, %lld are needed", key, n, (long long)(r->n_rot / 2));
        return;
    }
    float *values = mem_alloc_array(n, sizeof *values);
    if (!values) b->status = fail_nomem(b->err, "rotary factors", n * sizeof *values);
    for (size_t i = 0; values && i < n; i++) {
        double v = 0;
        if (!js_number(js_at(list, i), &v) || !(v > 0)) hf_fail(b, LOAM_E_FORMAT, "rope scaling: %s[%zu] is not a positive number", key, i);
        values[i] = (float)v;
    }
    if (b->status == LOAM_OK) hf_make_item(b, name, values, (int64_t)n);
    mem_free(values);
}

static void put_longrope(hf_build *b, const rope_config *r)
{
    int64_t context = hf_config_int(b, "max_position_embeddings", r->original);
    double ratio = r->original > 0 ? (double)context / (double)r->original : 1;
    double usual = ratio > 1 && r->original > 1 ? __builtin_sqrt(1 + mathd_ln(ratio) / mathd_ln((double)r->original)) : 1;
    hf_set_int(b, "rope.scaling.original_context_length", r->original);
    hf_set_float(b, "rope.scaling.attn_factor", param(r, "attention_factor", usual));
    put_factors(b, r, "long_factor", "rope_factors_long.weight");
    put_factors(b, r, "short_factor", "rope_factors_short.weight");
}

void hf_put_rope(hf_build *b)
{
    const js *params = hf_config_get(b, "rope_parameters rope_scaling"), *full = js_get(params, "full_attention"), *local = NULL;
    if (b->arch->no_rope) return;
    if (full) local = js_get(params, "sliding_attention"), params = full;
    rope_config r = { .params = params };
    double base = param(&r, "rope_theta", hf_config_float(b, "rope_theta global_rope_theta", 10000)), part;
    part = param(&r, "partial_rotary_factor", hf_config_float(b, "partial_rotary_factor", 1));
    r.n_rot = (int64_t)((double)b->head_dim * part);
    r.original = hf_config_int(b, "original_max_position_embeddings max_position_embeddings", 0);
    js_int(js_get(params, "original_max_position_embeddings"), &r.original);
    if (!js_text(js_get(params, "rope_type"), &r.type)) js_text(js_get(params, "type"), &r.type);
    if (!(base > 0) || r.n_rot < 2 || r.n_rot > b->head_dim || r.n_rot % 2)
        hf_fail(b, LOAM_E_FORMAT, "a rotary base of %g over %lld of %lld values", base, (long long)r.n_rot, (long long)b->head_dim);
    if (b->arch->adjacent && r.n_rot != b->head_dim)
        hf_fail(b, LOAM_E_UNSUPPORTED, "partial_rotary_factor: models of '%s' turn whole heads", b->arch->name);
    if (b->status != LOAM_OK) return;
    hf_set_float(b, "rope.freq_base", base);
    hf_set_int(b, "rope.dimension_count", r.n_rot);
    double window = hf_config_float(b, "rope_local_base_freq", 0);
    js_number(js_get(local, "rope_theta"), &window);
    if (window > 0) hf_set_float(b, "rope.freq_base_swa", window);
    if (!r.type.data || hf_word_in("default dynamic mrope none", r.type)) return;
    if (js_text_is(r.type, "linear")) set_factor(b, &r, "linear");
    else if (js_text_is(r.type, "yarn")) put_yarn(b, &r);
    else if (js_text_is(r.type, "llama3")) put_llama3(b, &r, base);
    else if (hf_word_in("longrope su", r.type)) put_longrope(b, &r);
    else hf_fail(b, LOAM_E_UNSUPPORTED, "rope scaling '%s'", gguf_quote(r.type.data, r.type.len).text);
}
