/* hparams_recurrent.c - recurrent mixers: their widths, which blocks have them, and the size of their states. */
#include "base/limits.h"
#include "model/hparams_parts.h"

#define LIMIT_TAPS 64 /* of a short convolution: real models have 3 or 4 */

static bool is_delta(recurrent_kind k) { return k == DELTA || k == DELTA_SPREAD; }
static bool is_rwkv(recurrent_kind k) { return k == RWKV6 || k == RWKV7; }

static void must_divide(keys *k, const char *key, int64_t part, const char *what, int64_t whole)
{
    key_name(k, key);
    if (part < 1 || whole % part) key_fail(k, LOAM_E_FORMAT, "is %lld, which does not divide %s %lld", (long long)part, what, (long long)whole);
}

static void read_scan(hparams *h, keys *k)
{
    recurrent_kind kind = h->spec->recurrent.kind;
    S(Q) = key_int_needed(k, "ssm.conv_kernel", LIMIT_TAPS);
    S(I) = key_int_needed(k, "ssm.inner_size", LIMIT_WIDTH);
    S(O) = key_int_needed(k, "ssm.state_size", LIMIT_WIDTH);
    S(T) = key_int_needed(k, "ssm.time_step_rank", LIMIT_WIDTH);
    S(Y) = key_int(k, "ssm.group_count", 0, LIMIT_WIDTH);
    key_name(k, "ssm.inner_size");
    if (h->spec->recurrent.twice_wide && S(I) != 2 * S(D))
        key_fail(k, LOAM_E_FORMAT, "is %lld, must be twice the embedding length %lld", (long long)S(I), (long long)S(D));
    if (k->status != LOAM_OK) return;
    if (kind == MAMBA) h->norm_steps = key_bool(k, "ssm.dt_b_c_rms", false);
    if (kind != MAMBA) must_divide(k, "ssm.time_step_rank", S(T), "the inner size", S(I));
    if (kind == MAMBA2 || is_delta(kind)) must_divide(k, "ssm.group_count", S(Y), "the heads", S(T));
    if (kind == MAMBA2) must_divide(k, "ssm.group_count", S(Y), "the inner size", S(I));
    if (h->spec->recurrent.blocks == RECURRENT_OR_FFN) {
        S(A) = or_else(key_int(k, "moe_latent_size", 0, LIMIT_WIDTH), key_int(k, "expert_latent_length", 0, LIMIT_WIDTH));
        S(A) = or_else(S(A), S(D));
    }
    if (kind == MAMBA_PLAMO) S(A) = S(D) / 16 > 64 ? S(D) / 16 : 64;
}

/* Heads follow from their width; the ranks of the small products have keys of their own. */
static void read_rwkv(hparams *h, keys *k)
{
    S(K) = S(W) = key_int_needed(k, "wkv.head_size", LIMIT_WIDTH);
    if (k->status == LOAM_OK) must_divide(k, "wkv.head_size", S(K), "the embedding length", S(D));
    if (k->status != LOAM_OK) return;
    S(H) = S(D) / S(K);
    for (int i = 0; i < h->n_layer; i++) {
        layer_facts *l = &h->layers[i];
        l->n_head = S(H);
        if (!l->n_head_kv) l->n_head_kv = S(H);
        key_name(k, "attention.head_count_kv");
        if (S(H) % l->n_head_kv) key_fail(k, LOAM_E_FORMAT, "is %lld, which does not divide %lld heads", (long long)l->n_head_kv, (long long)S(H));
    }
    S(G) = h->layers[0].n_head_kv;
    h->rescale_every = (int)key_int(k, "rescale_every_n_layers", 0, LIMIT_LAYERS);
    if (h->spec->recurrent.kind == RWKV6) {
        S(A) = key_int_needed(k, "time_mix_extra_dim", LIMIT_WIDTH);
        S(C) = key_int_needed(k, "time_decay_extra_dim", LIMIT_WIDTH);
        S(Y) = 5;
    } else {
        S(Y) = gguf_tensor_find(k->file, "blk.0.time_mix_g1.weight") ? 6 : 5;
        S(C) = key_int_needed(k, "attention.decay_lora_rank", LIMIT_WIDTH);
        S(A) = key_int_needed(k, "attention.iclr_lora_rank", LIMIT_WIDTH);
        S(M) = key_int_needed(k, "attention.value_residual_mix_lora_rank", LIMIT_WIDTH);
        S(Z) = key_int(k, "attention.gate_lora_rank", 0, LIMIT_WIDTH);
    }
}

void hparams_recurrent_widths(hparams *h, keys *k)
{
    if (k->status != LOAM_OK) return;
    recurrent_kind kind = h->spec->recurrent.kind;
    if (kind == SHORT_CONV) S(Q) = key_int_needed(k, "shortconv.l_cache", LIMIT_TAPS);
    else if (is_rwkv(kind)) read_rwkv(h, k);
    else if (kind != RECURRENT_NONE) read_scan(h, k);
}

/* ---- blocks ---- */

static void by_interval(hparams *h, keys *k, bool recurrent[LIMIT_LAYERS])
{
    if (key_flags(k, "attention.recurrent_layers", recurrent, h->n_layer)) return;
    int64_t every = key_int(k, "full_attention_interval", 4, LIMIT_LAYERS);
    if (every < 1) key_fail(k, LOAM_E_FORMAT, "must be positive");
    for (int i = 0; i < h->n_layer && every > 0; i++) recurrent[i] = (i + 1) % every != 0;
}

static mixer mixer_of(const hparams *h, const layer_facts *l, bool by_list)
{
    switch (h->spec->recurrent.blocks) {
    case RECURRENT_EVERYWHERE: return MIXER_RECURRENT;
    case RECURRENT_BESIDE: return MIXER_BOTH;
    case RECURRENT_WITHOUT_KV: return l->n_head_kv ? MIXER_ATTENTION : MIXER_RECURRENT;
    case RECURRENT_OR_FFN: return l->n_ff ? MIXER_NONE : l->n_head_kv ? MIXER_ATTENTION : MIXER_RECURRENT;
    case RECURRENT_BY_INTERVAL: return by_list ? MIXER_RECURRENT : MIXER_ATTENTION;
    }
    return MIXER_ATTENTION;
}

void hparams_recurrent_blocks(hparams *h, keys *k)
{
    bool listed[LIMIT_LAYERS] = { false };
    const recurrent_recipe *r = &h->spec->recurrent;
    if (r->kind == RECURRENT_NONE || k->status != LOAM_OK) return;
    if (r->blocks == RECURRENT_BY_INTERVAL) by_interval(h, k, listed);
    for (int i = 0; i < h->n_layer; i++) {
        layer_facts *l = &h->layers[i];
        l->mixer = mixer_of(h, l, listed[i]);
        if (h->spec->ffn.kind == CHANNEL_MIX) l->ffn = FFN_CHANNEL_MIX;
        if (h->spec->ffn.kind == NO_FFN || (r->blocks == RECURRENT_OR_FFN && l->mixer != MIXER_NONE)) l->ffn = FFN_NONE;
        if (l->ffn == FFN_NONE) l->expert_tensors = false;
        key_name(k, "attention.head_count");
        if ((l->mixer == MIXER_ATTENTION || l->mixer == MIXER_BOTH) && (!l->n_head || !l->n_head_kv))
            key_fail(k, LOAM_E_FORMAT, "is 0 for block %d, which has attention", i);
    }
}

void hparams_state_rows(const hparams *h, int64_t *r, int64_t *s)
{
    int64_t window = S(Q) - 1, shifts = h->spec->ffn.kind == CHANNEL_MIX ? 2 : 1;
    *r = *s = 0;
    switch (h->spec->recurrent.kind) {
    case RECURRENT_NONE: break;
    case MAMBA: case MAMBA_PLAMO: *r = window * S(I), *s = S(O) * S(I); break;
    case MAMBA2: case DELTA: case DELTA_SPREAD: *r = window * (S(I) + 2 * S(Y) * S(O)), *s = S(O) * S(I); break;
    case SHORT_CONV: *r = window * S(D); break;
    case RWKV6: case RWKV7: *r = shifts * S(D), *s = S(D) * S(K); break;
    }
}
