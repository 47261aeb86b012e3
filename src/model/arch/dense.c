/* dense.c - dense families that differ from llama in the place and kind of their norms, their windows or their blocks. */
#include "model/arch/archs.h"

/* No norms before the branches, one behind each. */
#define NO_INPUT_NORMS WITHOUT(ATTN_NORM), WITHOUT(FFN_NORM)

const arch_spec archs_dense[] = {
    {
        .name = "stablelm", /* without ffn_norm both branches read the same norm */
        .tensors = TENSORS(OWN_HEAD, NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS),
                           MAYBE(FFN_NORM, .bias = MAY_BIAS),
                           MAYBE(ATTN_Q_NORM, .shape = "K,H"), MAYBE(ATTN_K_NORM, .shape = "K,G")),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_EACH,
        .form = PARALLEL_WITHOUT_NORM,
    },
    {
        .name = "orion",
        .tensors = TENSORS(OWN_HEAD, NORM_BIASES),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
    },
    {
        .name = "command-r",
        .tensors = TENSORS(TIED_HEAD, WITHOUT(FFN_NORM), NEEDS(ATTN_Q_NORM, .shape = "K,H", .when = IF_DEEP),
                           NEEDS(ATTN_K_NORM, .shape = "K,G", .when = IF_DEEP)),
        .norm = LAYER_NORM,
        .attn.head_norm = HEAD_NORM_EACH,
        .form = PARALLEL,
        .logit.key = true,
    },
    {
        .name = "cohere2", /* window blocks turn, the others have no positions */
        .required = "logit_scale attention.sliding_window",
        .tensors = TENSORS(TIED_HEAD, WITHOUT(FFN_NORM)),
        .norm = LAYER_NORM,
        .rope.skip = SKIP_FULL,
        .window = { .kind = WINDOW_STANDARD, .period = 4 },
        .form = PARALLEL,
        .logit.key = true,
        .scales = SCALE_FFN,
    },
    {
        .name = "olmo",
        .tensors = TENSORS(WITHOUT(OUTPUT_NORM), NO_INPUT_NORMS),
        .norm = LAYER_NORM_BARE,
        .attn.clamp = true,
    },
    {
        .name = "olmo2",
        .tensors = TENSORS(OWN_HEAD, NO_INPUT_NORMS, AFTER_NORMS, ROW_NORMS),
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_PLAIN },
        .window = { .kind = WINDOW_STANDARD, .period = 4, .by_key = true },
        .attn = { .raw_input = true, .head_norm = HEAD_NORM_ROW, .after = T_POST_ATTENTION_NORM },
        .ffn = { .raw_input = true, .after = { T_POST_FFW_NORM } },
    },
    {
        .name = "exaone4", /* 64 blocks: window blocks turn, the others have no positions; other sizes have no window */
        .tensors = TENSORS(ROPE_FACTORS, NO_INPUT_NORMS, AFTER_NORMS, HEAD_NORMS),
        .rope = { .kind = ROTARY_HALVES, .factors = true, .skip = SKIP_FULL_IF_WINDOW },
        .window = { .kind = WINDOW_STANDARD, .period = 4, .size = 4096, .only_layers = 64 },
        .attn = { .raw_input = true, .head_norm = HEAD_NORM_SHARED, .after = T_POST_ATTENTION_NORM },
        .ffn = { .raw_input = true, .after = { T_POST_FFW_NORM } },
    },
    { .name = "chatglm", .ffn.kind = SWIGLU_FUSED },
    {
        .name = "glm4",
        .tensors = TENSORS(AFTER_NORMS),
        .rope.kind = ROTARY_SECTIONS_OR_ADJACENT,
        .attn.after = T_POST_ATTENTION_NORM,
        .ffn = { .kind = SWIGLU_FUSED, .after = { T_POST_FFW_NORM } },
    },
    {
        .name = "plamo",
        .tensors = TENSORS(OWN_HEAD, WITHOUT(FFN_NORM)),
        .rope.kind = ROTARY_HALVES,
        .form = PARALLEL,
    },
    {
        .name = "plamo3",
        .tensors = TENSORS(HEAD_NORMS, NEEDS(POST_ATTENTION_NORM, .suffix = SUFFIX_BARE),
                           NEEDS(POST_FFW_NORM, .suffix = SUFFIX_BARE)),
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_10000 },
        .window = { .kind = WINDOW_STANDARD, .period = 8, .by_key = true },
        .attn = { .head_norm = HEAD_NORM_SHARED, .after = T_POST_ATTENTION_NORM },
        .ffn = { .kind = SWIGLU_FUSED, .after = { T_POST_FFW_NORM } },
        .scales = SCALE_NOT_QKV,
    },
    {
        .name = "openelm", /* heads and widths differ from block to block */
        .tensors = TENSORS(TIED_HEAD, HEAD_NORMS),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .scales = SCALE_NOT_QKV,
    },
    {
        .name = "phi3",
        .tensors = TENSORS(MAYBE(ROPE_LONG), MAYBE(ROPE_SHORT)),
        .rope = { .kind = ROTARY_HALVES, .factors = true },
        .ffn.kind = SWIGLU_FUSED,
    },
    {
        .name = "ernie4_5",
        .tensors = TENSORS(OUTPUT_BIAS_UNUSED),
    },
    {
        .name = "paddleocr", /* the text part */
        .tensors = TENSORS(OUTPUT_BIAS_MAYBE),
        .rope.kind = ROTARY_SECTIONS,
    },
    {
        .name = "hunyuan-dense",
        .tensors = TENSORS(HEAD_NORMS),
        .rope = { .kind = ROTARY_HALVES, .alpha = true },
        .attn = { .head_norm = HEAD_NORM_SHARED, .norm_after_rotary = true },
    },
    {
        .name = "hunyuan_vl", /* the text part */
        .tensors = TENSORS(HEAD_NORMS),
        .rope = { .kind = ROTARY_SECTIONS_OR_HALVES, .alpha = true },
        .attn = { .head_norm = HEAD_NORM_SHARED, .norm_after_rotary = true },
    },
    {
        .name = "cogvlm", /* the text part; images have matrices of their own */
        .tensors = TENSORS(NEEDS(ATTN_QKV, .shape = "D,3HK"), IGNORES(ROPE_FREQS), IGNORES(VIS_ATTN_QKV),
                           IGNORES(VIS_ATTN_OUTPUT), IGNORES(VIS_GATE), IGNORES(VIS_UP), IGNORES(VIS_DOWN)),
        .rope = { .kind = ROTARY_HALVES, .plain = true },
        .attn.fused_at_d = true,
        .scales = SCALE_NOT_QKV,
    },
    {
        .name = "bitnet", /* ternary weights; norms between the heads and the output, and before ffn_down */
        .tensors = TENSORS(TIED_HEAD, NEEDS(ATTN_SUB_NORM), NEEDS(FFN_SUB_NORM)),
        .rope.kind = ROTARY_HALVES,
        .scales = SCALE_FFN,
    },
    {
        .name = "apertus",
        .tensors = TENSORS(OWN_HEAD, ROPE_FACTORS, OUTPUT_BIAS_MAYBE, NEEDS(ATTN_Q_NORM, .bias = UNUSED_BIAS),
                           NEEDS(ATTN_K_NORM, .bias = UNUSED_BIAS)),
        .rope = { .kind = ROTARY_HALVES, .factors = true },
        .attn.head_norm = HEAD_NORM_SHARED,
        .ffn.kind = XIELU,
    },
    { .name = NULL },
};
