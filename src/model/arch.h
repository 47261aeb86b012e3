/* arch.h - what an architecture is: data. One arch_spec names the file's tensors and describes the forward pass; bind.c
 * turns it into a directory of checked weights and build.c into a graph. Everything left out (zero) means the baseline:
 *
 *   x = embed(token)
 *   each block:  h = rms(x, attn_norm)                       q, k, v from h, rotary over adjacent pairs, causal softmax
 *                f = x + attn_output . attention(q, k, v)    scores scaled by 1/sqrt(K)
 *                n = rms(f, ffn_norm)
 *                x = f + ffn_down . (silu(ffn_gate . n) * (ffn_up . n))
 *   logits = output . rms(x, output_norm)                    output missing in the file: token_embd is the head too
 *
 * so that a plain architecture is a few lines (docs/guides/add-a-model.md). A tensor that a rule names is also used: sinks,
 * gates, biases, sub-norms, learned positions, selection biases and per-head norms need no second switch.
 *
 * Shapes are written in symbols, one letter each, multiplied by juxtaposition: "D,HK+2GK", "F/2", "H(M-R+Z)".
 *
 *   D embedding length   L blocks that run      P context length      V vocabulary
 *   H heads              G key-value heads      K width of a q, k head   W width of a v head   R rotated part of K
 *   F feed-forward       E experts              U experts used per token
 *   X expert width       S shared expert width  N shared experts      J, B chunk width, experts per chunk (grovemoe)
 *   A, C rank of compressed q, kv               M, Z width of q/k and v heads of latent attention
 *   I inner width   O states of a row   T heads or rank of the time step   Y groups or key heads   Q taps of the convolution
 * of recurrent mixers; RWKV has its heads in H and K and the ranks of its small products in A, C, M, Z.
 * Encoders have token types in T, relative buckets in B, classifier labels in N, widths of the dense
 * layers behind pooling in I, O.
 * H, G and F may differ from block to block. */
#ifndef LOAM_MODEL_ARCH_H
#define LOAM_MODEL_ARCH_H

#include "graph/graph.h"
#include "loam/model.h"

/* ---- tensors ---- */

typedef enum slot {
    T_NONE,
#define TENSOR(ID, ...) T_##ID,
#include "model/tensors.def"
#undef TENSOR
    T_COUNT
} slot;

typedef enum need {
    NEED,          /* must be there */
    MAY,           /* may be there */
    DROP,          /* the architecture has no such tensor */
    UNUSED         /* may be there and takes no part in the forward pass */
} need;

typedef enum bias_need { NO_BIAS, BIAS, MAY_BIAS, UNUSED_BIAS } bias_need;

/* What runs, and what it keeps between batches. */
typedef enum stack_kind {
    STACK_DECODER,         /* keys and values of all tokens */
    STACK_WHOLE,           /* nothing: no causal mask, tokens see those of their own batch (diffusion) */
    STACK_ENCODER,         /* nothing, and has no head: gives embeddings */
    STACK_ENCODER_DECODER  /* "enc.blk." gives rows that cross attention of "dec.blk." reads */
} stack_kind;

/* Blocks with attention and blocks with a recurrent mixer have tensors of their own; tensors.def says which. */
typedef enum when {
    USUALLY,       /* where tensors.def says */
    IN_EVERY,      /* in every block, also one of the other feed-forward kind */
    IF_DEEP        /* L >= 64 */
} when;

typedef enum suffix { SUFFIX_USUAL, SUFFIX_WEIGHT, SUFFIX_BIAS, SUFFIX_BARE } suffix;

typedef struct tensor_rule {
    slot slot;
    need need;
    const char *shape;   /* NULL: the usual one */
    bias_need bias;      /* its shape follows from the weight's: outputs of a matrix, all of a norm */
    when when;
    suffix suffix;
} tensor_rule;

/* A table of rules: NEEDS(NAME, .shape = "HK", .bias = BIAS, ...), MAYBE(...), WITHOUT(NAME), IGNORES(NAME). */
#define TENSORS(...) (const tensor_rule[]) { __VA_ARGS__, { .slot = T_NONE } }
#define NEEDS(NAME, ...) { .slot = T_##NAME, .need = NEED, ##__VA_ARGS__ }
#define MAYBE(NAME, ...) { .slot = T_##NAME, .need = MAY, ##__VA_ARGS__ }
#define WITHOUT(NAME, ...) { .slot = T_##NAME, .need = DROP, ##__VA_ARGS__ }
#define IGNORES(NAME, ...) { .slot = T_##NAME, .need = UNUSED, ##__VA_ARGS__ }

/* ---- parts of the recipe ---- */

/* A factor: from the metadata key of its place where `key` is set and the file has it (0 turns it off), else `value`
 * times the power of a width; value 0 means no factor. */
typedef enum factor_by { BY_ONE, BY_SQRT_D, BY_1_SQRT_L, BY_1_D } factor_by;
typedef struct factor {
    bool key;
    float value;
    factor_by by;
} factor;

/* A soft cap c tanh(y / c): on when `on`; from the key of its place, default `value`, 0 = off. */
typedef struct cap {
    bool on;
    float value;
} cap;

typedef enum norm_form {
    RMS,                  /* epsilon: attention.layer_norm_rms_epsilon */
    RMS_ANY_EPSILON,      /* RMS; where its epsilon is missing that of LayerNorm */
    LAYER_NORM,           /* epsilon: attention.layer_norm_epsilon */
    LAYER_NORM_BARE,      /* without weight and bias */
    NORM_BY_EPSILON       /* RMS where its epsilon is given and not 0, else LayerNorm */
} norm_form;

typedef enum rotary {
    ROTARY_ADJACENT,      /* pairs 2i, 2i + 1 */
    ROTARY_HALVES,        /* pairs i, i + R/2 */
    ROTARY_SECTIONS,      /* halves, positions by section of rope.dimension_sections */
    ROTARY_INTERLEAVED,   /* halves, sections interleaved */
    ROTARY_SECTIONS_OR_ADJACENT, /* sections where the file gives at least two, else adjacent */
    ROTARY_SECTIONS_OR_HALVES,
    ROTARY_NONE
} rotary;

/* Blocks without rotary embedding. */
typedef enum rotary_skip {
    SKIP_NEVER,
    SKIP_EVERY_4TH,       /* il = 3, 7, 11, ... */
    SKIP_FIRST_OF_4,      /* il = 0, 4, 8, ... when there is a window and L is not 4 */
    SKIP_FULL,            /* blocks without window */
    SKIP_FULL_IF_WINDOW,  /* the same, provided that any block has a window */
    SKIP_FULL_UNLESS_LEADING, /* blocks without window behind the leading dense ones */
    SKIP_NOT_FINETUNED,   /* all, when rope.scaling.finetuned is false */
    SKIP_BY_PATTERN       /* those whose attention.rope_pattern is 0 */
} rotary_skip;

/* Rotary base and scaling of window blocks. */
typedef enum window_base {
    WINDOW_BASE_SAME,     /* as all others, context overrides included */
    WINDOW_BASE_TRAINED,  /* rope.freq_base_swa, default rope.freq_base; the file's scaling */
    WINDOW_BASE_10000,    /* rope.freq_base_swa, default 10000; no scaling */
    WINDOW_BASE_PLAIN     /* rope.freq_base without scaling, YaRN and magnitude */
} window_base;

enum yarn_keys { YARN_EXT = 1, YARN_ATTN = 2, YARN_BETA = 4, YARN_LOG = 8, YARN_LOG_TENTH = 16 };

typedef struct rope_recipe {
    rotary kind;
    int only_layers;      /* rotary only when L has this value; 0 = always */
    bool factors;         /* rope_freqs, or rope_factors_long and _short, divide the angles */
    bool plain;           /* base 10000 without scaling, whatever the keys say */
    bool alpha;           /* rope.scaling.alpha raises the base */
    unsigned yarn;        /* yarn_keys that are read beyond the common ones */
    float beta_fast;      /* default of rope.scaling.yarn_beta_fast; 0 = 32 */
    rotary_skip skip;
    window_base window;
} rope_recipe;

typedef struct window_recipe {
    window_kind kind;     /* WINDOW_NONE: every block sees everything */
    int period;           /* block il has a window unless il mod period is the last (first: `dense_first`) */
    bool dense_first;
    bool by_key;          /* there is a window only when attention.sliding_window is present and > 0 */
    bool array;           /* attention.sliding_window_pattern must be there, as an array */
    int only_layers;      /* only when L has this value; 0 = always */
    int size;             /* default of attention.sliding_window; 0 = the key must be there */
    bool fixed_size;      /* the size is always `size`, the key only says whether there is a window */
} window_recipe;

typedef enum head_norm {
    HEAD_NORM_NONE,
    HEAD_NORM_SHARED,     /* weight [K] for all heads */
    HEAD_NORM_EACH,       /* weight [K, heads] */
    HEAD_NORM_ROW,        /* over the whole row of heads */
    HEAD_NORM_UNIT        /* RMS without weight, in rotary blocks */
} head_norm;

/* What q.k is multiplied by. */
typedef enum score_scale {
    SCORE_SQRT_K,         /* 1 / sqrt(K) */
    SCORE_SQRT_R,
    SCORE_K,              /* 1 / K */
    SCORE_KEY,            /* attention.scale, 0 = 1 / sqrt(K) */
    SCORE_SQRT_D_H,       /* 1 / sqrt(D / H), or attention.scale */
    SCORE_LATENT,         /* 1 / sqrt(M), raised with the rotary scaling */
    SCORE_OUTPUT_SCALE    /* attention.output_scale */
} score_scale;

typedef enum temperature { TEMPERATURE_NONE, TEMPERATURE_NO_ROTARY, TEMPERATURE_ALL, TEMPERATURE_LATENT } temperature;

typedef struct attention_recipe {
    bool raw_input;       /* reads x, not a norm of it */
    bool norm_maybe;      /* reads x where attn_norm is not stored */
    slot second_norm;     /* where stored, attention reads this norm of x and the feed-forward attn_norm */
    bool clamp;           /* q, k, v to [-c, c], c = attention.clamp_kqv */
    head_norm head_norm;
    bool norm_after_rotary;
    int norm_unless_experts; /* unit norm: off when E has this value */
    score_scale scale;
    int scale_only_layers;   /* `scale` holds only when L has this value, else SCORE_SQRT_K; 0 = always */
    cap softcap;             /* attn_logit_softcapping */
    float alibi;             /* maximal bias; 0 = none */
    bool alibi_key;          /* from attention.max_alibi_bias */
    int alibi_only_layers;
    temperature temperature;
    bool value_scale;        /* attention.value_scale multiplies the branch */
    bool gated_query;        /* q holds per head K values and K of a gate on the head's output */
    bool fused_at_d;         /* k and v start at D and 2D of the fused row */
    slot after;              /* norm of the branch before it is added */
} attention_recipe;

typedef enum block_form {
    SEQUENTIAL,              /* f = x + A(N1 x); f + Y(N2 f) */
    PARALLEL,                /* x + A(N1 x) + Y(N1 x) */
    PARALLEL_BY_KEY,         /* use_parallel_residual: x + A(N1 x) + Y(N2 x), else sequential */
    PARALLEL_WITHOUT_NORM,   /* parallel when ffn_norm is not stored, else sequential */
    POST_NORM,               /* f = N(x + A x), with attn_norm_2 f = N(f + x); N(f + Y f) */
    DENSE_PLUS_EXPERTS       /* f = x + A(N1 x); f + dense(N2 f) + experts(N3 x), N3 = ffn_norm_exps */
} block_form;

/* What stands in the place of attention, or beside it. */
typedef enum recurrent_kind {
    RECURRENT_NONE,
    MAMBA,                   /* selective scan, a decay per channel and state (Gu and Dao 2023) */
    MAMBA2,                  /* a decay per head (Dao and Gu 2024) */
    MAMBA_PLAMO,             /* a decay per head, the step from the convolved input */
    SHORT_CONV,              /* gated short convolution without further state */
    DELTA,                   /* gated delta rule, decay per head (Yang et al. 2024) */
    DELTA_SPREAD,            /* the same, neighbouring value heads share a key head */
    RWKV6,
    RWKV7
} recurrent_kind;

typedef enum recurrent_blocks {
    RECURRENT_EVERYWHERE,
    RECURRENT_BESIDE,        /* every block, together with attention: their sum */
    RECURRENT_WITHOUT_KV,    /* blocks whose head_count_kv is 0 */
    RECURRENT_OR_FFN,        /* one branch a block: a feed-forward where its width is not 0, else attention where
                                head_count_kv is not 0, else recurrent */
    RECURRENT_BY_INTERVAL    /* attention.recurrent_layers, else all but every full_attention_interval-th (default 4) */
} recurrent_blocks;

typedef struct recurrent_recipe {
    recurrent_kind kind;
    recurrent_blocks blocks;
    bool twice_wide;         /* I must be 2D */
} recurrent_recipe;

typedef enum ffn_kind { SWIGLU, SWIGLU_FUSED /* ffn_up holds gate, then up */, GEGLU, GELU, RELU_SQUARED, XIELU, CHANNEL_MIX /* RWKV */,
                        FUSED_BY_KEY /* as SWIGLU_FUSED, the function from hidden_activation */,
                        GEGLU_ANY /* ffn_gate stored: GEGLU; ffn_up of 2F: its halves; else GELU */,
                        GEGLU_OR_RELU /* without ffn_gate: ReLU of ffn_up */, NO_FFN } ffn_kind;

typedef struct ffn_recipe {
    ffn_kind kind;
    slot input_norm;         /* T_NONE: ffn_norm */
    bool raw_input;          /* no norm */
    slot after[2];           /* norm of the branch before it is added: the first that is stored */
} ffn_recipe;

/* Which blocks have experts in place of a dense feed-forward. */
typedef enum expert_blocks {
    EXPERTS_NOWHERE,
    EXPERTS_IF_ANY,          /* all, when E > 0 */
    EXPERTS_EVERYWHERE,
    EXPERTS_AFTER_LEADING,   /* il >= leading_dense_block_count */
    EXPERTS_EVERY_STEP,      /* (il + 1) mod interleave_moe_layer_step = 0 */
    EXPERTS_AFTER_LEADING_EVERY_STEP, /* both; a block behind the leading ones that the step leaves out computes silu(h) */
    EXPERTS_SECOND_OF,       /* il mod moe_every_n_layers = 1 */
    EXPERTS_WHERE_STORED,    /* blocks with ffn_gate_inp */
    EXPERTS_DEAD             /* stored when E > 0, and every block then computes silu(h) */
} expert_blocks;

typedef enum router_from { ROUTER_FIXED, ROUTER_KEY_OR_FIXED /* expert_gating_func, 0 = `router` */, ROUTER_KEY } router_from;
typedef enum by_key { NEVER, ALWAYS, BY_KEY } by_key;
typedef enum gate_up { GATE_SEPARATE, GATE_OPTIONAL /* no ffn_gate_exps: down(act(up)) */, GATE_MAYBE_FUSED } gate_up;

typedef struct expert_recipe {
    expert_blocks blocks;
    const char *width;       /* of an expert; NULL: "X" */
    const char *x_default;   /* X when expert_feed_forward_length is 0 */
    gate_up gates;
    bias_need bias;          /* of router and expert matrices */
    router_kind router;
    router_from router_from;
    select_kind select;
    by_key normalise;        /* BY_KEY: expert_weights_norm */
    bool scale_key;          /* expert_weights_scale */
    gate_kind activation;
    bool router_reads_x;     /* the router looks at the block's input */
    bool weigh_input;        /* weights multiply what goes into the experts */
    bool chunks;             /* second pass through chunk experts (grovemoe) */
    bool dense_too;          /* a dense feed-forward beside them: (dense + routed) / sqrt(2) */
} expert_recipe;

typedef struct shared_expert_recipe {
    const char *width;       /* NULL: none; absent also when the width is 0 */
    const char *s_default;   /* S when expert_shared_feed_forward_length is 0 */
    bool fused;              /* ffn_up_shexp holds gate, then up */
    bool halve;              /* (routed + shared) / 2 */
    bool identity;           /* silu(h) where it is missing */
    bool optional;           /* its tensors may be missing */
    bool plain;              /* no gate matrix: down(act(up)) with the experts' activation */
} shared_expert_recipe;

typedef enum latent { LATENT_NONE, LATENT_PLAIN, LATENT_BY_KEY /* absorbed where key_length_mla is set */ } latent;

/* Weight scales (NAME.scale) that take part; attn_output's always does. */
enum scale_use { SCALE_NOT_QKV = 1, SCALE_FFN = 2, SCALE_EXPERTS = 4, SCALE_SHARED = 8, SCALE_RECURRENT = 16 };

/* Scores of a whole sequence (pooling kind rank): cls, its function, cls.norm, cls.output. */
typedef struct classifier_recipe {
    loam_pooling from;       /* the row that it reads; 0: as LOAM_POOLING_CLS */
    bool gelu;               /* behind cls, else tanh */
    bool softmax;            /* over the labels */
} classifier_recipe;

struct hparams;

typedef struct arch_spec {
    const char *name;         /* general.architecture */
    const char *required;     /* keys that must be there beyond the common ones, separated by spaces */
    const tensor_rule *tensors; /* changes to the baseline */
    bias_need qkv_bias;       /* NO_BIAS counts as MAY_BIAS: biases of q, k, v are applied where they are stored */
    norm_form norm;
    bool zero_epsilon;
    factor embedding;         /* embedding_scale */
    bool embedding_tokens_only;
    factor residual;          /* residual_scale: both branches */
    factor hidden;            /* of the final normed state */
    factor logit;             /* logit_scale */
    bool logit_divides;
    cap logit_cap;            /* final_logit_softcapping */
    rope_recipe rope;
    window_recipe window;
    attention_recipe attn;
    recurrent_recipe recurrent;
    latent latent;
    block_form form;
    ffn_recipe ffn;
    expert_recipe experts;
    shared_expert_recipe shared;
    unsigned scales;          /* scale_use */
    stack_kind stack;
    classifier_recipe classifier;
    bool block_kinds;         /* deci: H, G or F may be 0 in a block, which then is linear, missing or skipped */
    void (*adjust)(struct hparams *h); /* last word over the hyper-parameters */
} arch_spec;

/* The architecture of that name; NULL when Loam does not have it. */
const arch_spec *arch_find(const char *name, size_t len);
/* i-th architecture, NULL beyond the last. */
const arch_spec *arch_at(int i);
/* Fills err with why `name` cannot be run: a kind that is known and not built yet, or unknown with the nearest known name. */
loam_status arch_refuse(const char *name, size_t len, const char *file, loam_error *err);

/* A name from a file made fit for messages: at most 63 bytes, all of them printable ASCII. Returns out. */
const char *arch_printable(char out[64], const char *name, size_t len);

#endif
