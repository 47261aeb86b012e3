/* recurrent.c - decoders without attention, and hybrids of attention and recurrent mixers. */
#include "model/arch/archs.h"

/* The tensors of each kind of mixer. */
#define MAMBA_TENSORS \
    NEEDS(SSM_IN), NEEDS(SSM_CONV1D, .bias = BIAS), NEEDS(SSM_X), NEEDS(SSM_DT, .bias = BIAS), NEEDS(SSM_A), NEEDS(SSM_D), NEEDS(SSM_OUT), \
        MAYBE(SSM_DT_NORM), MAYBE(SSM_B_NORM), MAYBE(SSM_C_NORM)
#define MAMBA2_TENSORS \
    NEEDS(SSM_IN, .shape = "D,2I+2YO+T"), NEEDS(SSM_CONV1D, .shape = "Q,I+2YO", .bias = MAY_BIAS), NEEDS(SSM_DT_BIAS), \
        NEEDS(SSM_A, .shape = "1,T"), NEEDS(SSM_D, .shape = "1,T"), MAYBE(SSM_NORM), NEEDS(SSM_OUT)
#define SHORT_CONV_TENSORS NEEDS(SHORTCONV_IN), NEEDS(SHORTCONV_CONV), NEEDS(SHORTCONV_OUT)
#define DELTA_TENSORS \
    NEEDS(SSM_CONV1D, .shape = "Q,2OY+I"), NEEDS(SSM_DT_BIAS), NEEDS(SSM_A, .shape = "T"), NEEDS(SSM_NORM, .shape = "I/T"), NEEDS(SSM_OUT)
#define GATED_QUERY HEAD_NORMS, NEEDS(ATTN_Q, .shape = "D,2HK", .bias = MAY_BIAS)
#define RWKV_MATRICES(BIASES) \
    NEEDS(TIME_MIX_KEY, .shape = "D,GK", .bias = BIASES), NEEDS(TIME_MIX_VALUE, .shape = "D,GK", .bias = BIASES), \
        NEEDS(TIME_MIX_RECEPTANCE, .bias = BIASES), NEEDS(TIME_MIX_OUTPUT)
#define RWKV6_TENSORS \
    NEEDS(TIME_MIX_W1), NEEDS(TIME_MIX_W2), NEEDS(TIME_MIX_LERP_X), MAYBE(TIME_MIX_LERP_FUSED), MAYBE(TIME_MIX_LERP_W), \
        MAYBE(TIME_MIX_LERP_K), MAYBE(TIME_MIX_LERP_V), MAYBE(TIME_MIX_LERP_R), MAYBE(TIME_MIX_LERP_G), NEEDS(TIME_MIX_DECAY), \
        NEEDS(TIME_MIX_DECAY_W1), NEEDS(TIME_MIX_DECAY_W2), NEEDS(TIME_MIX_GATE)
#define RWKV7_TENSORS \
    NEEDS(TIME_MIX_W0), NEEDS(TIME_MIX_W1, .shape = "D,C"), NEEDS(TIME_MIX_W2, .shape = "C,D"), NEEDS(TIME_MIX_A0), NEEDS(TIME_MIX_A1), \
        NEEDS(TIME_MIX_A2), NEEDS(TIME_MIX_LERP_FUSED, .shape = "D,1,1,Y"), NEEDS(TIME_MIX_V0), NEEDS(TIME_MIX_V1), \
        NEEDS(TIME_MIX_V2), MAYBE(TIME_MIX_G1), MAYBE(TIME_MIX_G2), NEEDS(TIME_MIX_K_K), NEEDS(TIME_MIX_K_A), NEEDS(TIME_MIX_R_K)

#define QWEN_EXPERTS { .blocks = EXPERTS_EVERYWHERE, .x_default = "F/U", .gates = GATE_MAYBE_FUSED, .scale_key = true, SOFTMAX_ROUTING }
#define QWEN_SCALES (SCALE_FFN | SCALE_EXPERTS | SCALE_SHARED)

const arch_spec archs_recurrent[] = {
    {
        .name = "mamba",
        .tensors = TENSORS(MAMBA_TENSORS),
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = MAMBA, .twice_wide = true },
        .ffn.kind = NO_FFN,
        .scales = SCALE_RECURRENT,
    },
    {
        .name = "mamba2",
        .tensors = TENSORS(MAMBA2_TENSORS),
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = MAMBA2 },
        .ffn.kind = NO_FFN,
        .scales = SCALE_RECURRENT,
    },
    {
        .name = "rwkv6",
        .tensors = TENSORS(OWN_HEAD, NEEDS(TOKEN_EMBD_NORM, .bias = BIAS), NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS),
                           NEEDS(ATTN_NORM_2, .bias = BIAS), WITHOUT(FFN_NORM), RWKV6_TENSORS, RWKV_MATRICES(NO_BIAS),
                           NEEDS(TIME_MIX_FIRST), NEEDS(TIME_MIX_LN, .bias = BIAS), NEEDS(CHANNEL_MIX_LERP_K),
                           NEEDS(CHANNEL_MIX_LERP_R), NEEDS(CHANNEL_MIX_KEY), NEEDS(CHANNEL_MIX_VALUE), NEEDS(CHANNEL_MIX_RECEPTANCE)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = RWKV6 },
        .ffn = { .kind = CHANNEL_MIX, .input_norm = T_ATTN_NORM_2 },
    },
    {
        .name = "rwkv6qwen2", /* fewer key and value heads; an ordinary feed-forward */
        .tensors = TENSORS(OWN_HEAD, RWKV6_TENSORS, RWKV_MATRICES(MAY_BIAS), MAYBE(TIME_MIX_FIRST), MAYBE(TIME_MIX_LN, .bias = MAY_BIAS)),
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = RWKV6 },
    },
    {
        .name = "rwkv7",
        .tensors = TENSORS(OWN_HEAD, NEEDS(TOKEN_EMBD_NORM, .bias = BIAS), NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS),
                           NEEDS(ATTN_NORM_2, .bias = BIAS), WITHOUT(FFN_NORM), RWKV7_TENSORS, RWKV_MATRICES(NO_BIAS),
                           NEEDS(TIME_MIX_LN, .bias = BIAS), NEEDS(CHANNEL_MIX_LERP_K), NEEDS(CHANNEL_MIX_KEY), NEEDS(CHANNEL_MIX_VALUE)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = RWKV7 },
        .ffn = { .kind = CHANNEL_MIX, .input_norm = T_ATTN_NORM_2 },
    },
    {
        .name = "arwkv7",
        .tensors = TENSORS(OWN_HEAD, RWKV7_TENSORS, RWKV_MATRICES(MAY_BIAS), MAYBE(TIME_MIX_LN, .bias = MAY_BIAS)),
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = RWKV7 },
    },
    { .name = NULL },
};

const arch_spec archs_hybrid[] = {
    {
        .name = "jamba",
        .tensors = TENSORS(MAMBA_TENSORS),
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = MAMBA, .blocks = RECURRENT_WITHOUT_KV, .twice_wide = true },
        .experts = { .blocks = EXPERTS_WHERE_STORED, .width = "F", .router = ROUTER_SOFTMAX, .activation = GATE_SILU },
        .scales = SCALE_RECURRENT,
    },
    {
        .name = "falcon-h1", /* both mixers read the same norm */
        .tensors = TENSORS(MAMBA2_TENSORS, OUTPUT_BIAS_UNUSED, FFN_BIASES_MAYBE, NEEDS(FFN_NORM, .suffix = SUFFIX_BARE)),
        .rope.kind = ROTARY_HALVES,
        .attn.scale = SCORE_KEY,
        .recurrent = { .kind = MAMBA2, .blocks = RECURRENT_BESIDE },
        .scales = SCALE_RECURRENT,
    },
    {
        .name = "granitehybrid",
        .tensors = TENSORS(MAMBA2_TENSORS, ROPE_FACTORS, OUTPUT_BIAS_MAYBE, FFN_BIASES_MAYBE),
        .embedding.key = true,
        .residual.key = true,
        .logit.key = true,
        .logit_divides = true,
        .rope = { .kind = ROTARY_ADJACENT, .factors = true, .skip = SKIP_NOT_FINETUNED },
        .attn.scale = SCORE_KEY,
        .recurrent = { .kind = MAMBA2, .blocks = RECURRENT_WITHOUT_KV, .twice_wide = true },
        .experts = { .blocks = EXPERTS_IF_ANY, .width = "F", SOFTMAX_ROUTING },
        .shared.width = "S",
        .scales = SCALE_RECURRENT,
    },
    {
        .name = "nemotron_h", /* one branch a block */
        .tensors = TENSORS(MAMBA2_TENSORS, OUTPUT_BIAS_MAYBE, WITHOUT(FFN_NORM), NEEDS(FFN_UP, .bias = MAY_BIAS), NEEDS(FFN_DOWN, .bias = MAY_BIAS)),
        .norm = RMS_ANY_EPSILON,
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = MAMBA2, .blocks = RECURRENT_OR_FFN },
        .ffn = { .kind = RELU_SQUARED, .input_norm = T_ATTN_NORM },
        .scales = SCALE_RECURRENT | SCALE_FFN,
    },
    {
        .name = "nemotron_h_moe",
        .tensors = TENSORS(MAMBA2_TENSORS, OUTPUT_BIAS_MAYBE, WITHOUT(FFN_NORM), NEEDS(FFN_UP, .bias = MAY_BIAS), NEEDS(FFN_DOWN, .bias = MAY_BIAS),
                           MAYBE(EXP_PROBS_B), MAYBE(FFN_LATENT_DOWN), MAYBE(FFN_LATENT_UP),
                           NEEDS(FFN_UP_EXPS, .shape = "A,X,E"), NEEDS(FFN_DOWN_EXPS, .shape = "X,A,E")),
        .norm = RMS_ANY_EPSILON,
        .rope.kind = ROTARY_NONE,
        .recurrent = { .kind = MAMBA2, .blocks = RECURRENT_OR_FFN },
        .ffn = { .kind = RELU_SQUARED, .input_norm = T_ATTN_NORM },
        .experts = { .blocks = EXPERTS_IF_ANY, .x_default = "F", .gates = GATE_OPTIONAL, .router = ROUTER_SIGMOID, .normalise = BY_KEY,
                     .scale_key = true, .activation = GATE_RELU2 },
        .shared = { .width = "S", .plain = true },
        .scales = SCALE_RECURRENT | SCALE_FFN | SCALE_EXPERTS | SCALE_SHARED,
    },
    {
        .name = "plamo2", /* norms and their tensors' names without suffix */
        .tensors = TENSORS(NEEDS(SSM_IN), NEEDS(SSM_CONV1D), NEEDS(SSM_X, .shape = "I,2O+A"), NEEDS(SSM_DT, .shape = "A,T", .bias = BIAS),
                           NEEDS(SSM_A, .shape = "T"), NEEDS(SSM_D, .shape = "T"), NEEDS(SSM_OUT),
                           NEEDS(SSM_DT_NORM, .shape = "A", .suffix = SUFFIX_BARE), NEEDS(SSM_B_NORM, .suffix = SUFFIX_BARE),
                           NEEDS(SSM_C_NORM, .suffix = SUFFIX_BARE), NEEDS(ATTN_Q_NORM, .shape = "K,H"), NEEDS(ATTN_K_NORM, .shape = "K,G"),
                           NEEDS(POST_ATTENTION_NORM, .suffix = SUFFIX_BARE), NEEDS(POST_FFW_NORM, .suffix = SUFFIX_BARE)),
        .rope.kind = ROTARY_HALVES,
        .attn = { .head_norm = HEAD_NORM_EACH, .after = T_POST_ATTENTION_NORM },
        .recurrent = { .kind = MAMBA_PLAMO, .blocks = RECURRENT_WITHOUT_KV },
        .ffn = { .kind = SWIGLU_FUSED, .after = { T_POST_FFW_NORM } },
        .scales = SCALE_NOT_QKV,
    },
    {
        .name = "lfm2",
        .tensors = TENSORS(SHORT_CONV_TENSORS, HEAD_NORMS, WITHOUT(OUTPUT_NORM), NEEDS(LAST_NORM)),
        .rope.kind = ROTARY_HALVES,
        .window = { .kind = WINDOW_STANDARD, .by_key = true },
        .attn.head_norm = HEAD_NORM_SHARED,
        .recurrent = { .kind = SHORT_CONV, .blocks = RECURRENT_WITHOUT_KV },
    },
    {
        .name = "lfm2moe",
        .tensors = TENSORS(SHORT_CONV_TENSORS, HEAD_NORMS, WITHOUT(OUTPUT_NORM), NEEDS(LAST_NORM), MAYBE(EXP_PROBS_B)),
        .rope.kind = ROTARY_HALVES,
        .attn.head_norm = HEAD_NORM_SHARED,
        .recurrent = { .kind = SHORT_CONV, .blocks = RECURRENT_WITHOUT_KV },
        .experts = { .blocks = EXPERTS_AFTER_LEADING, .router_from = ROUTER_KEY, .normalise = ALWAYS, .scale_key = true, .activation = GATE_SILU },
    },
    {
        .name = "qwen35",
        .tensors = TENSORS(DELTA_TENSORS, NEEDS(SSM_QKV), NEEDS(SSM_GATE), NEEDS(SSM_ALPHA), NEEDS(SSM_BETA), GATED_QUERY, NEEDS(POST_ATTENTION_NORM),
                           WITHOUT(FFN_NORM)),
        .rope.kind = ROTARY_INTERLEAVED,
        .attn = { .head_norm = HEAD_NORM_SHARED, .gated_query = true },
        .recurrent = { .kind = DELTA, .blocks = RECURRENT_BY_INTERVAL },
        .ffn.input_norm = T_POST_ATTENTION_NORM,
        .scales = SCALE_RECURRENT | QWEN_SCALES,
    },
    {
        .name = "qwen35moe",
        .tensors = TENSORS(DELTA_TENSORS, NEEDS(SSM_QKV), NEEDS(SSM_GATE), NEEDS(SSM_ALPHA), NEEDS(SSM_BETA), GATED_QUERY, NEEDS(POST_ATTENTION_NORM),
                           WITHOUT(FFN_NORM), NEEDS(FFN_GATE_INP_SHEXP)),
        .rope.kind = ROTARY_INTERLEAVED,
        .attn = { .head_norm = HEAD_NORM_SHARED, .gated_query = true },
        .recurrent = { .kind = DELTA, .blocks = RECURRENT_BY_INTERVAL },
        .ffn.input_norm = T_POST_ATTENTION_NORM,
        .experts = QWEN_EXPERTS,
        .shared = { .width = "S", .s_default = "F" },
        .scales = SCALE_RECURRENT | QWEN_SCALES,
    },
    {
        .name = "qwen3next",
        .tensors = TENSORS(DELTA_TENSORS, MAYBE(SSM_QKV), MAYBE(SSM_GATE), MAYBE(SSM_IN, .shape = "D,2OY+2I"), NEEDS(SSM_BA), GATED_QUERY,
                           NEEDS(POST_ATTENTION_NORM), WITHOUT(FFN_NORM), NEEDS(FFN_GATE_INP_SHEXP)),
        .rope.kind = ROTARY_HALVES,
        .attn = { .head_norm = HEAD_NORM_SHARED, .gated_query = true },
        .recurrent = { .kind = DELTA_SPREAD, .blocks = RECURRENT_BY_INTERVAL },
        .ffn.input_norm = T_POST_ATTENTION_NORM,
        .experts = QWEN_EXPERTS,
        .shared = { .width = "S", .s_default = "F" },
        .scales = SCALE_EXPERTS | SCALE_SHARED,
    },
    { .name = NULL },
};
