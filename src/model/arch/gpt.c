/* gpt.c - LayerNorm families with a plain (ungated) feed-forward, mostly GELU. */
#include "model/arch/archs.h"

#define PLAIN_FFN_BIASES { T_FFN_UP, .bias = BIAS }, { T_FFN_DOWN, .bias = BIAS }
#define OUTPUT_BIAS { T_ATTN_OUTPUT, .bias = BIAS }

const arch_spec archs_gpt[] = {
    {
        .name = "gpt2",
        .tensors = TENSORS({ T_POSITION_EMBD, NEED }, NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .ffn.kind = GELU,
    },
    {
        .name = "starcoder",
        .tensors = TENSORS({ T_POSITION_EMBD, NEED }, NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
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
        .tensors = TENSORS(OWN_HEAD, { T_TOKEN_EMBD, MAY }, NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
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
        .tensors = TENSORS({ T_TOKEN_EMBD_NORM, NEED, .bias = BIAS }, NORM_BIASES, OUTPUT_BIAS, PLAIN_FFN_BIASES),
        .qkv_bias = BIAS,
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn.alibi = 8,
        .ffn.kind = GELU,
    },
    {
        .name = "mpt",
        .tensors = TENSORS({ T_POSITION_EMBD, MAY }, { T_OUTPUT_NORM, .bias = MAY_BIAS }, { T_ATTN_NORM, .bias = MAY_BIAS },
                           { T_FFN_NORM, .bias = MAY_BIAS }, OUTPUT_BIAS_MAYBE, { T_FFN_UP, .bias = MAY_BIAS },
                           { T_FFN_DOWN, .bias = MAY_BIAS }, { T_FFN_ACT_SCALES, MAY },
                           { T_ATTN_Q_NORM, MAY, "HK", MAY_BIAS }, { T_ATTN_K_NORM, MAY, "GK", MAY_BIAS }),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn = { .clamp = true, .alibi_key = true, .head_norm = HEAD_NORM_ROW },
        .ffn.kind = GELU,
    },
    {
        .name = "falcon", /* two input norms in the 40B form: attention reads the second */
        .tensors = TENSORS({ T_OUTPUT_NORM, .bias = BIAS }, { T_ATTN_NORM, .bias = BIAS }, { T_ATTN_NORM_2, MAY, .bias = MAY_BIAS },
                           { T_FFN_NORM, DROP }),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .attn.second_norm = T_ATTN_NORM_2,
        .form = PARALLEL,
        .ffn.kind = GELU,
    },
    {
        .name = "phi2",
        .tensors = TENSORS({ T_OUTPUT, NEED, .bias = BIAS }, { T_OUTPUT_NORM, .bias = BIAS }, { T_ATTN_NORM, .bias = BIAS }, OUTPUT_BIAS,
                           { T_FFN_NORM, DROP }, PLAIN_FFN_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = PARALLEL,
        .ffn.kind = GELU,
    },
    {
        .name = "jais", /* scores are scaled by 1/K */
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES, OUTPUT_BIAS, { T_FFN_GATE, .bias = BIAS }, PLAIN_FFN_BIASES),
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
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES, OUTPUT_BIAS_MAYBE, { T_FFN_UP, .bias = MAY_BIAS }, { T_FFN_DOWN, .bias = MAY_BIAS }),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = RELU_SQUARED,
    },
    { .name = NULL },
};
