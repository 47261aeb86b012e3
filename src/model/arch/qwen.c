/* qwen.c - Qwen: rotary over halves, biases on q, k, v, later a norm for each head. */
#include "model/arch/archs.h"

#define QWEN_EXPERTS { .blocks = EXPERTS_EVERYWHERE, .x_default = "F/U", SOFTMAX_ROUTING }

const arch_spec archs_qwen[] = {
    {
        .name = "qwen", /* the stored feed_forward_length is twice the width */
        .tensors = TENSORS(OWN_HEAD, NEEDS(ATTN_QKV, .shape = "D,3D", .bias = BIAS), NEEDS(FFN_GATE, .shape = "D,F/2"),
                           NEEDS(FFN_UP, .shape = "D,F/2"), NEEDS(FFN_DOWN, .shape = "F/2,D")),
        .qkv_bias = BIAS,
        .rope.kind = ROTARY_HALVES,
    },
    {
        .name = "qwen2",
        .tensors = TENSORS(MAYBE(OUTPUT, .bias = MAY_BIAS)),
        .rope.kind = ROTARY_HALVES,
    },
    {
        .name = "qwen2vl", /* the field computes it with epsilon 0 */
        .tensors = TENSORS(MAYBE(OUTPUT, .bias = UNUSED_BIAS)),
        .rope.kind = ROTARY_SECTIONS,
        .zero_epsilon = true,
    },
    {
        .name = "qwen2moe",
        .tensors = TENSORS(OWN_HEAD, NEEDS(FFN_GATE_INP_SHEXP)),
        .rope.kind = ROTARY_HALVES,
        .experts = { .blocks = EXPERTS_EVERYWHERE, .x_default = "F/U", .activation = GATE_SILU },
        .shared = { .width = "S", .s_default = "F" },
    },
    {
        .name = "qwen3",
        .tensors = TENSORS(HEAD_NORMS, MAYBE(CLS_OUTPUT, .bias = MAY_BIAS)),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .classifier = { .from = LOAM_POOLING_LAST, .softmax = true },
        .scales = SCALE_FFN,
    },
    {
        .name = "qwen3moe",
        .tensors = TENSORS(HEAD_NORMS),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .experts = QWEN_EXPERTS,
        .scales = SCALE_EXPERTS,
    },
    {
        .name = "qwen3vl",
        .tensors = TENSORS(HEAD_NORMS, MAYBE(CLS_OUTPUT, .bias = MAY_BIAS)),
        .rope.kind = ROTARY_INTERLEAVED,
        .classifier = { .from = LOAM_POOLING_LAST, .softmax = true },
        .attn.head_norm = HEAD_NORM_SHARED,
    },
    {
        .name = "qwen3vlmoe",
        .tensors = TENSORS(HEAD_NORMS),
        .rope.kind = ROTARY_INTERLEAVED,
        .attn.head_norm = HEAD_NORM_SHARED,
        .experts = QWEN_EXPERTS,
    },
    { .name = NULL },
};
