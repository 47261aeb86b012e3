/* diffusion.c - decoders without causal mask: a whole text, masked tokens included, goes through at once and nothing is kept. */
#include "model/arch/archs.h"

const arch_spec archs_diffusion[] = {
    {
        .name = "dream",
        .tensors = TENSORS(MAYBE(OUTPUT, .bias = UNUSED_BIAS)),
        .rope.kind = ROTARY_HALVES,
        .stack = STACK_WHOLE,
    },
    {
        .name = "llada",
        .tensors = TENSORS(IGNORES(ROPE_FREQS), OUTPUT_BIAS_UNUSED, FFN_BIASES_UNUSED),
        .stack = STACK_WHOLE,
    },
    {
        .name = "llada-moe",
        .tensors = TENSORS(OWN_HEAD, HEAD_NORMS),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .experts = { .blocks = EXPERTS_EVERYWHERE, .x_default = "F/U", .router = ROUTER_SOFTMAX, .activation = GATE_SILU },
        .stack = STACK_WHOLE,
    },
    {
        .name = "rnd1",
        .tensors = TENSORS(HEAD_NORMS),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .experts = { .blocks = EXPERTS_EVERYWHERE, .x_default = "F/U", SOFTMAX_ROUTING },
        .stack = STACK_WHOLE,
    },
    { .name = NULL },
};
