/* hparams.c - metadata to hyper-parameters: widths first, then rotary, window, attention, experts and factors, at last the
 * facts of each block. Writers store keys that do not apply as 0, so 0 counts as absent where a 0 would make no sense. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mathd.h"
#include "base/mem.h"
#include "model/hparams_parts.h"

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
    memcpy(kv, heads, (size_t)h->n_layer * sizeof *kv);
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
        key_fail(k, LOAM_E_FORMAT, "is %lld: rotated values must be even and at most the head width %lld", (long long)S(R),
                 (long long)S(K));
}

static void read_latent(hparams *h, keys *k)
{
    if (h->spec->recurrent.kind != RWKV7) S(M) = S(K), S(Z) = S(W);
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
        key_fail(k, LOAM_E_FORMAT, "is %lld: must be even and leave something of the head width %lld", (long long)S(R),
                 (long long)S(M));
    key_name(k, "attention.key_length");
    if (h->absorbed && (S(K) != S(C) + S(R) || S(W) != S(C)))
        key_fail(k, LOAM_E_FORMAT, "is %lld and value_length %lld; rank %lld with %lld rotated values needs %lld and %lld",
                 (long long)S(K), (long long)S(W), (long long)S(C), (long long)S(R), (long long)(S(C) + S(R)), (long long)S(C));
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
    if (a->scale == SCORE_KEY || a->scale == SCORE_SQRT_D_H) h->attention_scale = key_float(k, "attention.scale", 0);
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
    if (S(V) > LIMIT_VOCAB) return fail(err, LOAM_E_FORMAT, "%s: %lld tokens, at most %u", gguf_path(f), (long long)S(V), LIMIT_VOCAB);
    read_widths(h, &k);
    if (k.status == LOAM_OK) {
        read_latent(h, &k);
        read_norm(h, &k);
        hparams_rope(h, &k);
        hparams_windows(h, &k);
        read_attention(h, &k);
        read_factors(h, &k);
        hparams_encoder(h, &k);
        hparams_experts(h, &k);
        hparams_place_experts(h, &k);
        hparams_recurrent_blocks(h, &k);
        hparams_place_rotary(h, &k);
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
