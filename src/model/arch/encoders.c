/* encoders.c - models that turn a text into embeddings, with attention in both directions, and T5. */
#include "model/arch/archs.h"

/* Embedding, two norms behind the branches of each block, a classifier; the word positions come from the table or rotary. */
#define BERT_NORMS NEEDS(TOKEN_EMBD_NORM, .bias = MAY_BIAS), MAYBE(TOKEN_TYPES), NEEDS(ATTN_OUTPUT_NORM, .bias = BIAS), \
                   NEEDS(LAYER_OUTPUT_NORM, .bias = BIAS), WITHOUT(OUTPUT_NORM), WITHOUT(OUTPUT), WITHOUT(ATTN_NORM), \
                   WITHOUT(FFN_NORM)
#define CLASSIFIER MAYBE(CLS, .bias = MAY_BIAS), MAYBE(CLS_NORM), MAYBE(CLS_OUTPUT, .bias = MAY_BIAS)
#define BERT_BIASES NEEDS(ATTN_OUTPUT, .bias = MAY_BIAS), NEEDS(FFN_UP, .bias = MAY_BIAS), NEEDS(FFN_DOWN, .bias = MAY_BIAS)
#define NO_HEAD WITHOUT(OUTPUT)
#define T5_ENCODER WITHOUT(OUTPUT_NORM), NEEDS(ENC_OUTPUT_NORM), WITHOUT(ATTN_OUTPUT), NEEDS(ATTN_O), MAYBE(ATTN_REL_B), \
                   MAYBE(FFN_GATE)

const arch_spec archs_encoders[] = {
    {
        .name = "bert",
        .required = "/tokenizer.ggml.token_type_count",
        .tensors = TENSORS(BERT_NORMS, NEEDS(POSITION_EMBD), BERT_BIASES, CLASSIFIER),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .form = POST_NORM,
        .ffn.kind = GELU,
        .stack = STACK_ENCODER,
    },
    {
        .name = "nomic-bert",
        .required = "/tokenizer.ggml.token_type_count",
        .tensors = TENSORS(BERT_NORMS, NEEDS(ATTN_OUTPUT, .bias = MAY_BIAS), CLASSIFIER),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = POST_NORM,
        .stack = STACK_ENCODER,
    },
    {
        .name = "nomic-bert-moe",
        .required = "/tokenizer.ggml.token_type_count moe_every_n_layers",
        .tensors = TENSORS(BERT_NORMS, BERT_BIASES, CLASSIFIER, WITHOUT(FFN_GATE_EXPS)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = POST_NORM,
        .ffn.kind = GELU,
        .experts = { .blocks = EXPERTS_SECOND_OF, .width = "F", .gates = GATE_OPTIONAL, .router = ROUTER_SOFTMAX,
                     .activation = GATE_GELU },
        .stack = STACK_ENCODER,
    },
    {
        .name = "jina-bert-v2", /* positions by ALiBi in both directions; three forms of feed-forward */
        .required = "/tokenizer.ggml.token_type_count",
        .tensors = TENSORS(BERT_NORMS, BERT_BIASES, MAYBE(FFN_GATE), MAYBE(ATTN_NORM_2, .bias = MAY_BIAS),
                           MAYBE(ATTN_Q_NORM, .shape = "D", .bias = MAY_BIAS), MAYBE(ATTN_K_NORM, .shape = "D", .bias = MAY_BIAS),
                           MAYBE(CLS, .shape = "D,N", .bias = MAY_BIAS)),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_NONE,
        .attn = { .alibi = 8, .head_norm = HEAD_NORM_ROW },
        .form = POST_NORM,
        .ffn.kind = GEGLU_ANY,
        .stack = STACK_ENCODER,
    },
    {
        .name = "jina-bert-v3",
        .required = "/tokenizer.ggml.token_type_count",
        .tensors = TENSORS(BERT_NORMS, BERT_BIASES, CLASSIFIER),
        .norm = LAYER_NORM,
        .rope.kind = ROTARY_HALVES,
        .form = POST_NORM,
        .ffn.kind = GELU,
        .stack = STACK_ENCODER,
    },
    {
        .name = "modern-bert",
        .tensors = TENSORS(NEEDS(TOKEN_EMBD_NORM), NO_HEAD, MAYBE(ATTN_NORM), NEEDS(FFN_UP, .shape = "D,2F"), CLASSIFIER),
        .norm = LAYER_NORM,
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_10000 },
        .window = { .kind = WINDOW_SYMMETRIC, .period = 3, .dense_first = true, .by_key = true },
        .attn.norm_maybe = true,
        .ffn.kind = FUSED_BY_KEY,
        .classifier = { .from = LOAM_POOLING_MEAN, .gelu = true },
        .stack = STACK_ENCODER,
    },
    {
        .name = "eurobert",
        .tensors = TENSORS(NO_HEAD, CLASSIFIER),
        .rope.kind = ROTARY_HALVES,
        .stack = STACK_ENCODER,
    },
    {
        .name = "neo-bert",
        .tensors = TENSORS(NO_HEAD, WITHOUT(OUTPUT_NORM), NEEDS(ENC_OUTPUT_NORM), CLASSIFIER),
        .ffn.kind = SWIGLU_FUSED,
        .stack = STACK_ENCODER,
    },
    {
        .name = "gemma-embedding",
        .tensors = TENSORS(NO_HEAD, HEAD_NORMS, AFTER_NORMS, MAYBE(DENSE_2), MAYBE(DENSE_3)),
        .embedding = { .value = 1, .by = BY_SQRT_D },
        .rope = { .kind = ROTARY_HALVES, .window = WINDOW_BASE_10000 },
        .window = { .kind = WINDOW_SYMMETRIC, .period = 6, .by_key = true },
        .attn = { .head_norm = HEAD_NORM_SHARED, .after = T_POST_ATTENTION_NORM },
        .ffn = { .kind = GEGLU, .after = { T_POST_FFW_NORM } },
        .stack = STACK_ENCODER,
    },
    {
        .name = "llama-embed",
        .tensors = TENSORS(NO_HEAD, ROPE_FACTORS, OUTPUT_BIAS_MAYBE, FFN_BIASES_MAYBE),
        .rope.factors = true,
        .scales = SCALE_FFN,
        .stack = STACK_ENCODER,
    },
    {
        .name = "t5",
        .tensors = TENSORS(T5_ENCODER, NEEDS(DEC_OUTPUT_NORM), NEEDS(CROSS_ATTN_NORM), NEEDS(CROSS_ATTN_Q), NEEDS(CROSS_ATTN_K),
                           NEEDS(CROSS_ATTN_V), NEEDS(CROSS_ATTN_O)),
        .rope.kind = ROTARY_NONE,
        .ffn.kind = GEGLU_OR_RELU,
        .stack = STACK_ENCODER_DECODER,
    },
    {
        .name = "t5encoder",
        .tensors = TENSORS(T5_ENCODER, NO_HEAD),
        .rope.kind = ROTARY_NONE,
        .ffn.kind = GEGLU_OR_RELU,
        .stack = STACK_ENCODER,
    },
    { .name = NULL },
};
