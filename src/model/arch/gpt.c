/* gpt.c - LayerNorm families with a plain (ungated) feed-forward, mostly GELU. */
#include "model/arch/archs.h"

#define PLAIN_FFN_BIASES NEEDS(FFN_UP, .bias = BIAS), NEEDS(FFN_DOWN, .bias = BIAS)
#define OUTPUT_BIAS NEEDS(ATTN_OUTPUT, .bias = BIAS)

const arch_spec archs_gpt[] = {
    {
        .name = "gpt2",
        .tensors = TENSORS(NEEDS(POSITION_EMBD), NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .ffn.kind = GELU,
    },
    {
        .name = "starcoder",
        .tensors = TENSORS(NEEDS(POSITION_EMBD), NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .ffn.kind = GELU,
    },
    {
        .name = "gptneox",
        .required = "use_parallel_residual",
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = PARALLEL_BY_KEY,
        .ffn.kind = GELU,
    },
    {
        .name = "codeshell",
        .tensors = TENSORS(OWN_HEAD, MAYBE(TOKEN_EMBD), NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = GELU,
    },
    {
        .name = "starcoder2",
        .tensors = TENSORS(NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = GELU,
    },
    {
        .name = "bloom",
        .tensors = TENSORS(NEEDS(TOKEN_EMBD_NORM, .bias = BIAS), NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn.alibi = 8,
        .ffn.kind = GELU,
    },
    {
        .name = "mpt",
        .tensors = TENSORS(MAYBE(POSITION_EMBD), NEEDS(OUTPUT_NORM, .bias = MAY_BIAS), NEEDS(ATTN_NORM, .bias = MAY_BIAS),
                           NEEDS(FFN_NORM, .bias = MAY_BIAS), OUTPUT_BIAS_MAYBE, NEEDS(FFN_UP, .bias = MAY_BIAS),
                           NEEDS(FFN_DOWN, .bias = MAY_BIAS), MAYBE(FFN_ACT_SCALES),
                           MAYBE(ATTN_Q_NORM, .shape = "HK", .bias = MAY_BIAS),
                           MAYBE(ATTN_K_NORM, .shape = "GK", .bias = MAY_BIAS)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn = { .clamp = true, .alibi_key = true, .head_norm = HEAD_NORM_ROW },
        .ffn.kind = GELU,
    },
    {
        .name = "falcon", /* two input norms in the 40B form: attention reads the second */
        .tensors = TENSORS(NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS), MAYBE(ATTN_NORM_2, .bias = MAY_BIAS),
                           WITHOUT(FFN_NORM)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .attn.second_norm = T_ATTN_NORM_2,
        .form = PARALLEL,
        .ffn.kind = GELU,
    },
    {
        .name = "phi2",
        .tensors = TENSORS(NEEDS(OUTPUT, .bias = BIAS), NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS),
                           OUTPUT_BIAS, WITHOUT(FFN_NORM), PLAIN_FFN_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = PARALLEL,
        .ffn.kind = GELU,
    },
    {
        .name = "jais", /* scores are scaled by 1/K */
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES, OUTPUT_BIAS, NEEDS(FFN_GATE, .bias = BIAS), PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn = { .alibi_key = true, .scale = SCORE_K },
    },
    {
        .name = "jais2",
        .tensors = TENSORS(NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = RELU_SQUARED,
    },
    {
        .name = "nemotron", /* norm weights are stored with their +1 */
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES, OUTPUT_BIAS_MAYBE, NEEDS(FFN_UP, .bias = MAY_BIAS),
                           NEEDS(FFN_DOWN, .bias = MAY_BIAS)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = RELU_SQUARED,
    },
    { .name = NULL },
};
