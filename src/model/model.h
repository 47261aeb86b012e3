/* model.h - a model: hyper-parameters, bound weights and the recipe that turns them into a graph. Immutable after opening. */
#ifndef LOAM_MODEL_MODEL_H
#define LOAM_MODEL_MODEL_H

#include "graph/graph.h"
#include "loam/adapter.h"
#include "loam/model.h"

/* What one block keeps in the cache. */
typedef struct layer_cache {
    bool present;            /* keys and values; false: the block has no attention */
    bool encode;             /* filled by encoding, replaced by the next encoding */
    int n_kv_head, k_dim, v_dim;
    window_kind window;      /* WINDOW_NONE: sees everything */
    int window_size;
    int64_t r_row, s_row;    /* floats of a recurrent state; 0: none */
} layer_cache;

/* How the context wants the graph. */
typedef struct build_params {
    int n_tokens, n_outputs; /* n_outputs rows reach the head; 0: no head at all */
    bool embd_input;         /* rows of floats instead of token ids */
    bool encode;             /* the encoder, or the whole of a model that keeps nothing */
    bool want_logits, want_embd;
    bool dense_rows;         /* dense layers behind pooling work on each row: there is no pooling */
    bool causal;             /* model_causal() unless the caller switched it */
    bool watched;            /* products are looked at: all rows go through the last block too, and only then are narrowed */
    bool rope_long;          /* rotary factors of long sequences, where the model has two sets */
    /* Overrides of the model's rotary parameters; 0 (ext_factor, attn_factor, betas: negative) means the model's own. */
    int rope_scaling;        /* -1 model, 0 none, 1 linear, 2 yarn, 3 longrope */
    float rope_freq_base, rope_freq_scale, yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    uint32_t yarn_orig_ctx;
    const graph_adapter *adapters; /* low-rank additions, with strengths in INPUT_ADAPTERS */
    int n_adapters;
    const weight *control;         /* [n_layer] control vectors added after blocks, data NULL: none; or NULL */
} build_params;

int model_n_layer(const loam_model *m);
int model_n_cache(const loam_model *m);     /* layers of the cache */
bool model_keeps_nothing(const loam_model *m); /* tokens see those of their own batch */
bool model_has_cross(const loam_model *m);  /* decoding reads what was encoded */
layer_cache model_layer_cache(const loam_model *m, int layer);
bool model_causal(const loam_model *m);
bool model_can_shift(const loam_model *m);  /* keys can be re-rotated to other positions */
/* Most tokens of a sequence that takes the short rotary factors; longer ones take the long ones. INT64_MAX: one set for all. */
int64_t model_rope_short(const loam_model *m);
/* 64-bit hash of the architecture, the hyper-parameters and the tensor directory: binds saved states to the model. */
uint64_t model_fingerprint(const loam_model *m);

/* Positions must be below this: learned positions end. INT32_MAX where they do not. */
int32_t model_position_limit(const loam_model *m);

/* Bytes of tensor i of the file; false behind the last. */
bool model_tensor_data(const loam_model *m, uint32_t i, const uint8_t **data, uint64_t *bytes);
bool model_vocab_only(const loam_model *m);

/* The file it was opened from. */
const struct gguf_file *model_file(const loam_model *m);

/* Weight of that tensor name, NULL where the model has none. */
const weight *model_weight(const loam_model *m, const char *name);

/* For a model that its owner alone uses, between decodes: weight i (in the order of the file's tensors) gets another type and
 * data, which the caller keeps; data NULL: the file's. Contexts must forget their plans. */
void model_set_weight(loam_model *m, uint32_t i, loam_type type, const void *data);

/* An adapter file, bound to a model. */
struct loam_adapter {
    const loam_model *model;
    void *file;                    /* gguf_file *: keeps the data mapped */
    weight *weights;               /* two per pair */
    adapter_pair *pairs;
    int n_pairs;
    float alpha;                   /* 0: strengths are used as they are */
    int32_t *invocation;           /* ids that switch it on, or NULL: always on */
    int n_invocation;
};

/* Behind pooling: values of a result (0: the model has no classifier), whether weights take part, the row that ranking reads. */
int model_pooled_width(const loam_model *m, loam_pooling kind);
bool model_pools_with_weights(const loam_model *m, loam_pooling kind);
loam_pooling model_rank_row(const loam_model *m);
bool model_rank_softmax(const loam_model *m);
/* Rows of pooled embeddings [D, n_rows] to results. */
loam_status model_build_pooled(const loam_model *m, loam_pooling kind, int n_rows, graph *g, loam_error *err);

/* The devices that the model is spread over, NULL: it is not; the one that has a block, -1: none in particular. */
struct loam_devices *model_devices(const loam_model *m);
int model_device_of_layer(const loam_model *m, int layer);

/* Appends the whole forward pass to an empty graph. */
loam_status model_build(const loam_model *m, const build_params *p, graph *g, loam_error *err);

#endif
