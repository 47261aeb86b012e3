/* gemma.c - Gemma: embedding times sqrt(D), GELU gates, later norms around both branches and windows in most blocks. The
 * norm weights are stored with their +1. */
#include "model/arch/archs.h"

const arch_spec archs_gemma[] = {
    {
        .name = "gemma",
        .tensors = TENSORS(TIED_HEAD),
        .embedding = { .value = 1, .by = BY_SQRT_D },
        .rope.kind = ROTARY_HALVES,
        .ffn.kind = GEGLU,
    },
    {
        .name = "gemma2",
        .tensors = TENSORS(TIED_HEAD, AFTER_NORMS),
        .embedding = { .value = 1, .by = BY_SQRT_D },
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_TRAINED },
        .window = { .kind = WINDOW_STANDARD, .period = 2, .size = 4096 },
        .attn = { .scale = SCORE_SQRT_D_H, .scale_only_layers = 46, .softcap = { true, 50 }, .after = T_POST_ATTENTION_NORM },
        .ffn = { .kind = GEGLU, .after = { T_POST_FFW_NORM } },
        .logit_cap = { true, 30 },
    },
    {
        .name = "gemma3",
        .tensors = TENSORS(HEAD_NORMS, AFTER_NORMS),
        .embedding = { .value = 1, .by = BY_SQRT_D },
        .embedding_tokens_only = true,
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_10000 },
        .window = { .kind = WINDOW_STANDARD, .period = 6, .by_key = true },
        .attn = { .head_norm = HEAD_NORM_SHARED, .scale = SCORE_SQRT_D_H, .scale_only_layers = 62,
                  .after = T_POST_ATTENTION_NORM },
        .ffn = { .kind = GEGLU, .after = { T_POST_FFW_NORM } },
        .logit_cap = { true, 0 },
    },
    { .name = NULL },
};
