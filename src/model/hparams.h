/* hparams.h - the hyper-parameters of one model, read once from the file's metadata and checked against limits.h. */
#ifndef LOAM_MODEL_HPARAMS_H
#define LOAM_MODEL_HPARAMS_H

#include "file/gguf.h"
#include "model/arch.h"
#include "model/shape_expr.h"

typedef enum ffn_form { FFN_DENSE, FFN_EXPERTS, FFN_IDENTITY /* no matrices: silu(h) */, FFN_CHANNEL_MIX, FFN_NONE } ffn_form;
typedef enum mixer { MIXER_ATTENTION, MIXER_RECURRENT, MIXER_BOTH, MIXER_NONE } mixer;

/* One block that runs. */
typedef struct layer_facts {
    int64_t n_head, n_head_kv, n_ff;
    bool window, rotary;
    ffn_form ffn;
    mixer mixer;
    bool expert_tensors;     /* stored, whether or not they are used */
    float xielu[4];          /* softplus'd: slope of z^2 above 0, factor below 0, beta, epsilon */
} layer_facts;

typedef enum rope_scaling { ROPE_SCALING_NONE, ROPE_SCALING_LINEAR, ROPE_SCALING_YARN, ROPE_SCALING_LONGROPE } rope_scaling;

/* What the file says about rotary embedding; rope.c turns it into angles. */
typedef struct rope_facts {
    rope_kind kind;
    bool none;               /* no block rotates */
    float base, base_window;
    rope_scaling scaling;
    float factor;            /* s >= 0, never 0 */
    float magnitude;         /* rope.scaling.attn_factor */
    float n_original;        /* O: context of the original training */
    float yarn_ext;          /* < 0: 1 for type yarn, else 0 */
    float yarn_attn, beta_fast, beta_slow, yarn_log;
    int sections[4];
} rope_facts;

typedef struct hparams {
    const arch_spec *spec;
    symbols sym;             /* H, G, F of block 0; see layer_symbols() */
    int n_layer, n_stored;   /* blocks that run; blocks in the file (trailing ones are nextn blocks) */
    layer_facts *layers;     /* [n_layer] */
    norm_kind norm;
    float eps, eps_rms;      /* of the block norms; of the norms inside latent attention */
    bool causal, use_parallel_residual, absorbed;
    rope_facts rope;
    window_kind window;      /* of the window blocks; WINDOW_NONE when there are none */
    int window_size;
    float embedding_scale, residual_scale, hidden_scale, logit_scale; /* 1 = none */
    float logit_cap, score_cap;          /* 0 = off */
    float clamp, alibi;                  /* 0 = off */
    float value_scale;                   /* 1 = none */
    float attention_scale, output_scale; /* keys; 0 = absent */
    float temperature;                   /* 0 = off */
    float temperature_n, temperature_o;
    /* encoders */
    int n_decoder;           /* blocks of the decoder where there are two stacks */
    int32_t decoder_start;   /* -1: none */
    gate_kind activation;    /* of FUSED_BY_KEY */
    loam_pooling pooling;    /* NONE where the file says nothing */
    router_kind router;
    bool router_given;       /* by expert_gating_func */
    bool normalise;
    float expert_scale, group_scale;
    int n_group, n_group_used;
    bool norm_steps;         /* mamba: step, b and c are normed, with weights where they are stored */
    int rescale_every;       /* the stream is halved after every such block; 0 = never */
} hparams;

/* Reads everything for `spec`. V (the vocabulary) is the number of rows of the token table. On failure nothing needs to be freed. */
loam_status hparams_read(hparams *h, const arch_spec *spec, const gguf_file *f, loam_error *err);
void hparams_free(hparams *h);

/* Floats of the two rows of a recurrent block's state (tensor/pages.h). */
void hparams_state_rows(const hparams *h, int64_t *r, int64_t *s);

/* The symbols with H, G, F of block il; il < 0: outside the blocks. */
symbols layer_symbols(const hparams *h, int il);

#endif
