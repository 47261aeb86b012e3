/* hparams_encoder.c - keys of models that encode: direction, pooling, labels, token types, and the two stacks of T5. */
#include <string.h>

#include "base/limits.h"
#include "model/hparams_parts.h"

#define UNSET 4294967295 /* what writers store for "not specified" */

static void read_pooling(hparams *h, keys *k)
{
    int64_t kind = key_int(k, "pooling_type", 0, UINT32_MAX);
    if (kind == UNSET) kind = 0;
    if (kind > LOAM_POOLING_RANK) key_fail(k, LOAM_E_UNSUPPORTED, "is %lld, known are 0 to 4", (long long)kind);
    else h->pooling = (loam_pooling)kind;
}

static void read_labels(hparams *h, keys *k)
{
    gguf_array a = { 0 };
    S(N) = 1;
    if (k->status != LOAM_OK || h->spec->stack == STACK_ENCODER_DECODER) return;
    if (h->spec->experts.blocks != EXPERTS_NOWHERE && h->spec->stack != STACK_ENCODER) return; /* N counts shared experts */
    k->status = gguf_get_array(k->file, key_name(k, "classifier.output_labels"), GGUF_OPTIONAL, GGUF_STRINGS, &a, k->err);
    if (a.count > LIMIT_WIDTH) key_fail(k, LOAM_E_FORMAT, "has %llu labels", (unsigned long long)a.count);
    else if (a.count) S(N) = (int64_t)a.count;
}

static void read_activation(hparams *h, keys *k)
{
    static const struct {
        const char *name;
        gate_kind kind;
    } known[] = { { "gelu", GATE_GELU }, { "geglu", GATE_GELU }, { "silu", GATE_SILU }, { "swish", GATE_SILU },
                  { "swiglu", GATE_SILU }, { "reglu", GATE_RELU } };
    text_view name = { "gelu", 4 };
    if (h->spec->ffn.kind != FUSED_BY_KEY || k->status != LOAM_OK) return;
    k->status = gguf_get_text(k->file, key_name(k, "hidden_activation"), GGUF_OPTIONAL, &name, k->err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == name.len && !memcmp(known[i].name, name.data, name.len)) {
            h->activation = known[i].kind;
            return;
        }
    key_fail(k, LOAM_E_UNSUPPORTED, "is '%.*s', known are gelu, silu and reglu", (int)(name.len < 40 ? name.len : 40), name.data);
}

static void read_stacks(hparams *h, keys *k)
{
    bool t5 = h->spec->ffn.kind == GEGLU_OR_RELU;
    h->decoder_start = -1;
    if (t5) S(B) = key_int_needed(k, "attention.relative_buckets_count", 4096);
    if (t5 && S(B) < 4) key_fail(k, LOAM_E_FORMAT, "is %lld, at least 4 are needed", (long long)S(B));
    if (h->spec->stack != STACK_ENCODER_DECODER) return;
    h->n_decoder = (int)or_else(key_int(k, "decoder_block_count", 0, LIMIT_LAYERS), h->n_layer);
    if (h->n_decoder > h->n_layer) key_fail(k, LOAM_E_FORMAT, "is %d, the encoder has %d blocks", h->n_decoder, h->n_layer);
    h->decoder_start = (int32_t)key_int(k, "decoder_start_token_id", 0, INT32_MAX);
    if (h->decoder_start >= S(V)) key_fail(k, LOAM_E_FORMAT, "is %d, the vocabulary has %lld", h->decoder_start, (long long)S(V));
}

void hparams_encoder(hparams *h, keys *k)
{
    stack_kind stack = h->spec->stack;
    read_pooling(h, k);
    read_labels(h, k);
    read_stacks(h, k);
    if (stack == STACK_DECODER) return;
    if (stack != STACK_ENCODER_DECODER) h->causal = false;
    if (stack != STACK_ENCODER) return;
    read_activation(h, k);
    S(T) = key_int(k, "/tokenizer.ggml.token_type_count", 0, LIMIT_WIDTH);
    S(I) = or_else(key_int(k, "dense_2_feat_out", 0, LIMIT_WIDTH), S(D));
    S(O) = or_else(key_int(k, "dense_3_feat_out", 0, LIMIT_WIDTH), S(D));
}
