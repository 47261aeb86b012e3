/* loam/train.h - training: a language model from its weights as they are, or adapters (LoRA) beside frozen ones.
 *
 *   loam_model ─► loam_trainer ── accumulate(batch) ... ─► update(rate) ─► save_model / save_adapter
 *                                 forward, loss, backward    clip, step
 *
 * A trainer has its own copies (binary32) of the weights that learn; the model is not changed and may be of any weight type.
 * Gradients are sums over targets until the update divides them by the weight of all targets since the last one: so batches
 * may be cut in any way, and the same targets give the same bits. No result depends on the number of threads. A trainer
 * belongs to one thread at a time. */
#ifndef LOAM_TRAIN_H
#define LOAM_TRAIN_H

#include "loam/model.h"
#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- learning rates ---- */

typedef enum loam_decay { LOAM_DECAY_NONE = 0, LOAM_DECAY_LINEAR = 1, LOAM_DECAY_COSINE = 2 } loam_decay;

/* Rates of the updates 1 .. total. Up to update `warmup` the rate grows in equal steps and is `base` at update max(1, warmup);
 * over the last `decay` updates (-1: all that are left) it falls, and is `floor` at update `total`, exactly. A single update
 * has rate base. So only a floor of 0 gives an update of rate 0, the last. */
typedef struct loam_schedule {
    loam_decay kind;
    double base, floor;
    int64_t warmup, total, decay;
} loam_schedule;

/* Rate of an update, counted from 1; updates after `total` have the rate of `total`. Depends on nothing else. */
LOAM_API double loam_schedule_rate(const loam_schedule *schedule, int64_t update);

/* ---- a trainer ---- */

typedef struct loam_trainer loam_trainer;

typedef enum loam_optimizer {
    LOAM_ADAMW = 0,  /* Loshchilov and Hutter 2019 */
    LOAM_SGD = 1,    /* with momentum */
    LOAM_MUON = 2    /* Jordan 2024: matrices of blocks by orthogonal momentum, everything else by AdamW */
} loam_optimizer;

/* Get them from loam_trainer_defaults(), then change what you need. */
typedef struct loam_trainer_params {
    size_t struct_size;        /* set by loam_trainer_defaults() */
    int32_t n_threads;         /* 0 (default): the CPUs of this process */
    loam_optimizer optimizer;  /* default ADAMW */
    float beta1, beta2, eps;   /* ADAMW: 0.9, 0.999, 1e-8 */
    float momentum;            /* -1: the default of the optimizer, SGD 0, MUON 0.95 */
    bool nesterov;             /* SGD, MUON: false */
    float muon_rate;           /* rate of the matrices is that of the update times this; default 20 */
    float weight_decay;        /* of matrices; 0.01 */
    bool decay_all;            /* also of norms, biases and the token embedding; false */
    float clip_norm;           /* largest length of the whole gradient; 0: no limit; 1 */
    float label_smoothing;     /* 0 */
    bool small_state;          /* ADAMW: moments in 8 bits (blocks of 256 with a scale); false */
    bool recompute;            /* keep only what passes from block to block, make the rest again: less memory; false */
    bool bf16;                 /* products read copies of the weights rounded to BF16, updates stay in binary32; false */
    uint64_t seed;             /* of dropout and of fresh adapters; 0 */
    /* Which tensors learn: NULL, all but rotary factors. Not asked with lora_rank. */
    bool (*filter)(void *user, const char *name);
    void *filter_user;
    /* lora_rank > 0: the model stays as it is, and pairs A [in, rank], B [rank, out] learn beside its matrices. */
    int32_t lora_rank;         /* 0 */
    float lora_alpha;          /* additions are scaled by alpha / rank; 16 */
    float lora_dropout;        /* of the input of A, 0 .. below 1; 0 */
    /* Names of matrices, as in files ("attn_q") or as elsewhere ("q_proj"); NULL: all matrices of blocks. */
    const char *const *lora_targets;
    size_t n_lora_targets;
} loam_trainer_params;

LOAM_API loam_trainer_params loam_trainer_defaults(void);

/* Bytes of a configuration. */
typedef struct loam_train_memory {
    uint64_t weights;      /* copies of what learns */
    uint64_t gradients;
    uint64_t state;        /* of the optimizer */
    uint64_t work;         /* activations and the rest, for micro-batches of n_tokens in documents of up to n_tokens */
    uint64_t total;
    uint64_t available;    /* what the machine has left now */
    uint64_t n_trainable;  /* values that learn */
} loam_train_memory;

LOAM_API loam_status loam_trainer_estimate(const loam_model *model, const loam_trainer_params *params, int32_t n_tokens,
                                           loam_train_memory *out, loam_error *err);

/* Makes a trainer of `model`, which must outlive it. Errors: ARG (a parameter out of range, by name; nothing would learn; a
 * target that no tensor has), UNSUPPORTED (an operation of the model that has no gradient, by name), NOMEM (also when the
 * machine has less than the estimate for weights, gradients and state, with both numbers). *out is NULL on failure. */
LOAM_API loam_status loam_trainer_new(loam_trainer **out, const loam_model *model, const loam_trainer_params *params, loam_error *err);
LOAM_API void loam_trainer_free(loam_trainer *trainer); /* NULL is fine */

/* A micro-batch: tokens of one or more documents one after another. Tokens see earlier ones of their own document only. */
typedef struct loam_train_batch {
    size_t n_tokens;
    const int32_t *tokens;
    const int32_t *labels;     /* [n_tokens] what follows token i: its target; -1: none (masked) */
    const int32_t *documents;  /* [n_tokens] equal numbers in a row: one document; NULL: a single one */
    const int32_t *positions;  /* [n_tokens] ascending within a document; NULL: 0, 1, 2 ... in each document */
    const float *weights;      /* [n_tokens] weight of each target, >= 0; NULL: 1 */
} loam_train_batch;

typedef struct loam_train_loss {
    double sum;                /* of weight * loss (natural logarithm), targets ascending */
    double weight;             /* of the targets; the mean loss is sum / weight */
    int64_t n_targets, n_correct; /* n_correct: the target had the largest logit */
} loam_train_loss;

/* Forward and backward: adds to the gradients and to what loam_trainer_update will divide by. A batch without targets is
 * fine and changes nothing. *loss (may be NULL) receives this batch's numbers. Errors: ARG (a token, label or position out of
 * range, by index), NUMERIC (the loss is not finite: token by index; all that was accumulated is forgotten), NOMEM. */
LOAM_API loam_status loam_trainer_accumulate(loam_trainer *trainer, const loam_train_batch *batch, loam_train_loss *loss, loam_error *err);
/* The loss alone; without dropout and label smoothing. */
LOAM_API loam_status loam_trainer_evaluate(loam_trainer *trainer, const loam_train_batch *batch, loam_train_loss *loss, loam_error *err);

typedef struct loam_update {
    bool skipped;              /* a gradient was not finite: nothing has changed, the gradients are forgotten */
    double norm;               /* length of the gradient before clipping */
    char tensor[80];           /* the first one with a gradient that is not finite; else empty */
    int64_t update;            /* number of this update, from 1; of the last one where it was skipped */
} loam_update;

/* One step of the optimizer with everything accumulated since the last one, which is cleared. Without targets since then it
 * does nothing and is not counted. *info may be NULL. Errors: ARG (a rate that is negative or not finite). */
LOAM_API loam_status loam_trainer_update(loam_trainer *trainer, double rate, loam_update *info, loam_error *err);
LOAM_API void loam_trainer_forget(loam_trainer *trainer); /* clears what is accumulated */

LOAM_API int64_t loam_trainer_updates(const loam_trainer *trainer);
LOAM_API uint64_t loam_trainer_n_trainable(const loam_trainer *trainer);

/* ---- looking at what learns: adapters are named NAME.lora_a, NAME.lora_b ---- */

typedef struct loam_train_tensor {
    const char *name;
    int64_t ne[4];
    float *data;               /* may be written between updates */
    const float *gradient;     /* sum over the targets so far, not divided */
    uint64_t n;                /* values */
} loam_train_tensor;

LOAM_API size_t loam_trainer_n_tensors(const loam_trainer *trainer);
LOAM_API bool loam_trainer_tensor(const loam_trainer *trainer, size_t i, loam_train_tensor *out); /* false: no such index */

/* ---- files; each appears whole or not at all ---- */

/* Everything that a later run needs to go on with the same bits: weights, optimizer, counters, random state, and
 * `extra_size` bytes of the caller's (data position ...). With a checksum. Not between accumulate and update: ARG. */
LOAM_API loam_status loam_trainer_save(loam_trainer *trainer, const char *path, const void *extra, size_t extra_size, loam_error *err);
/* Takes up such a state in a trainer of the same model and parameters. *extra (may be NULL) receives a copy of the caller's
 * bytes, to be freed by loam_train_free. Errors: IO, FORMAT (damaged, or of another model or other tensors: by name), NOMEM;
 * the trainer is as before then. */
LOAM_API loam_status loam_trainer_load(loam_trainer *trainer, const char *path, void **extra, size_t *extra_size, loam_error *err);
LOAM_API void loam_train_free(void *p);

/* The model with its learned weights as GGUF: keys and tokenizer of the model's file. type: the element type of the matrices
 * that learned (F32, F16, BF16), others stay as they are; with adapters, the additions are in the matrices. */
LOAM_API loam_status loam_trainer_save_model(const loam_trainer *trainer, const char *path, loam_type type, loam_error *err);
/* The adapter as GGUF (F32). ARG where the trainer has none. */
LOAM_API loam_status loam_trainer_save_adapter(const loam_trainer *trainer, const char *path, loam_error *err);

/* ================ fitting networks of one's own: graphs of loam/tensor.h ================
 *
 *     loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_F32, 64, 10, 1000, 10 }, &err);   // fill data and labels
 *     loam_opt_params p = loam_opt_defaults(LOAM_LOSS_CROSS_ENTROPY);
 *     p.graph = g, p.inputs = x, p.outputs = logits, p.parameters = weights, p.n_parameters = 4;     // static graph
 *     loam_opt_fit(&p, ds, &(loam_fit_params){ .n_epochs = 10, .n_logical = 100, .validation = 0.1 }, &err);
 *
 * What is learned is written where loam_tensor_bind said that the parameters' data lie. */

/* ---- data: n points and their labels, in shards that are shuffled and copied as a whole ---- */

typedef struct loam_dataset loam_dataset;
typedef struct loam_dataset_params {
    loam_type type_data, type_label; /* F32 or I32 */
    int64_t ne_data, ne_label;       /* values of a point and of its label; ne_label 0: none */
    int64_t n, n_shard;              /* points; of a shard, a divisor of n */
} loam_dataset_params;

LOAM_API loam_status loam_dataset_new(loam_dataset **out, const loam_dataset_params *params, loam_error *err); /* ARG, NOMEM */
LOAM_API void loam_dataset_free(loam_dataset *ds);
LOAM_API int64_t loam_dataset_n(const loam_dataset *ds);
LOAM_API void *loam_dataset_data(loam_dataset *ds);   /* [n][ne_data], to be filled; zeros at first */
LOAM_API void *loam_dataset_labels(loam_dataset *ds); /* [n][ne_label]; NULL where there are none */
/* Copies batch `i` of `count` points, in shuffled order; labels may be NULL. ARG: beyond the end, not made of whole shards. */
LOAM_API loam_status loam_dataset_batch(const loam_dataset *ds, int64_t i, int64_t count, void *data, void *labels, loam_error *err);

/* ---- parameters of the optimizer: asked for before every step ---- */

typedef enum loam_loss { LOAM_LOSS_MEAN, LOAM_LOSS_SUM, LOAM_LOSS_CROSS_ENTROPY, LOAM_LOSS_SQUARED_ERROR } loam_loss;
typedef enum loam_build { LOAM_BUILD_FORWARD = 10, LOAM_BUILD_GRAD = 20, LOAM_BUILD_OPT = 30 } loam_build;

typedef struct loam_opt_rates {
    struct { float alpha, beta1, beta2, eps, wd; } adamw; /* 1e-3, 0.9, 0.999, 1e-8, 0 */
    struct { float alpha, wd; } sgd;                      /* 1e-3, 0 */
} loam_opt_rates;
typedef loam_opt_rates (*loam_opt_rates_fn)(void *user);
LOAM_API loam_opt_rates loam_opt_rates_default(void *user);  /* the numbers above */
LOAM_API loam_opt_rates loam_opt_rates_constant(void *user); /* user points to a loam_opt_rates */

typedef struct loam_opt loam_opt;
typedef struct loam_opt_params {
    size_t struct_size;              /* set by loam_opt_defaults() */
    loam_graph *graph;               /* with inputs and outputs: static; else each evaluation has its own (loam_opt_prepare) */
    loam_tensor *inputs, *outputs;   /* points are the last axis of inputs, bound by the optimizer */
    loam_tensor *const *parameters;  /* F32 tensors with data, of every graph: what learns */
    size_t n_parameters;
    loam_loss loss;
    loam_build build;                /* OPT */
    int32_t period;                  /* evaluations with gradients to a step; 1 */
    loam_optimizer optimizer;        /* ADAMW, SGD */
    loam_opt_rates_fn rates;
    void *rates_user;
    int32_t n_threads;               /* 0: the CPUs of this process */
    uint64_t seed;                   /* of shuffling and dropout */
} loam_opt_params;
LOAM_API loam_opt_params loam_opt_defaults(loam_loss loss);

/* The graph is the optimizer's until loam_opt_free: it is not evaluated otherwise. Errors: ARG (by name), UNSUPPORTED (an
 * operation without a gradient, by name), NOMEM. */
LOAM_API loam_status loam_opt_new(loam_opt **out, const loam_opt_params *params, loam_error *err);
LOAM_API void loam_opt_free(loam_opt *opt);
LOAM_API void loam_opt_reset(loam_opt *opt, bool optimizer);  /* gradients; with optimizer also moments and steps */
LOAM_API bool loam_opt_is_static(const loam_opt *opt);
/* Of the current graph; data until the next loam_opt_alloc. */
LOAM_API float *loam_opt_inputs(loam_opt *opt);
LOAM_API const float *loam_opt_outputs(loam_opt *opt);        /* NULL before an evaluation */
LOAM_API float *loam_opt_labels(loam_opt *opt);               /* as outputs; NULL where the loss has none */
LOAM_API double loam_opt_loss(const loam_opt *opt);           /* of the last evaluation */
LOAM_API const int32_t *loam_opt_pred(const loam_opt *opt);   /* cross-entropy: largest output of each point */
LOAM_API int64_t loam_opt_n_correct(const loam_opt *opt);     /* -1: no predictions */
LOAM_API const float *loam_opt_grad(const loam_opt *opt, const loam_tensor *parameter); /* accumulated; NULL: does not learn */

/* ---- one evaluation: (dynamic: prepare) -> alloc -> fill inputs and labels -> eval ---- */

/* parameters: the same tensors in the new graph, in the order of loam_opt_params. */
LOAM_API loam_status loam_opt_prepare(loam_opt *opt, loam_graph *g, loam_tensor *inputs, loam_tensor *outputs,
                                      loam_tensor *const *parameters, loam_error *err);
LOAM_API loam_status loam_opt_alloc(loam_opt *opt, bool backward, loam_error *err);

typedef struct loam_opt_result loam_opt_result;
LOAM_API loam_status loam_opt_result_new(loam_opt_result **out, loam_error *err);
LOAM_API void loam_opt_result_free(loam_opt_result *r);
LOAM_API void loam_opt_result_reset(loam_opt_result *r);
LOAM_API int64_t loam_opt_result_n(const loam_opt_result *r); /* points */
/* Mean over the batches (SUM: their sum) with its standard error: NaN for fewer than two batches; 0 and NaN when empty. */
LOAM_API void loam_opt_result_loss(const loam_opt_result *r, double *loss, double *uncertainty);
LOAM_API const int32_t *loam_opt_result_pred(const loam_opt_result *r); /* in the order of evaluation */
LOAM_API void loam_opt_result_accuracy(const loam_opt_result *r, double *accuracy, double *uncertainty); /* NaN: no predictions */

/* Runs what alloc has set up; takes a step when `period` evaluations with gradients are complete. result may be NULL.
 * NUMERIC: the loss is not finite (nothing is learned from it). */
LOAM_API loam_status loam_opt_eval(loam_opt *opt, loam_opt_result *result, loam_error *err);

/* ---- many ---- */

/* Shuffles the shards of the first n points (negative: all). */
LOAM_API loam_status loam_opt_shuffle(loam_opt *opt, loam_dataset *ds, int64_t n, loam_error *err);

/* Called after each batch, i of n; start: microseconds of a clock when the pass began. false: stop (ABORTED). */
typedef bool (*loam_opt_progress_fn)(void *user, bool train, const loam_opt *opt, const loam_opt_result *result, const int64_t batch[2],
                                     int64_t start);
typedef struct loam_epoch {
    loam_opt_result *train, *eval;   /* either may be NULL */
    int64_t split;                   /* points below learn, the rest is evaluated; negative: all learn */
    loam_opt_progress_fn progress;   /* NULL: nobody looks */
    void *user;
} loam_epoch;
/* One pass over the data; static graphs. Labels: a row of floats as outputs have; for cross-entropy also one I32, the number of
 * the class (-1: the point does not count). */
LOAM_API loam_status loam_opt_epoch(loam_opt *opt, loam_dataset *ds, const loam_epoch *e, loam_error *err);

typedef struct loam_fit_params {
    int64_t n_epochs, n_logical;     /* points to a step: a multiple of the graph's batch */
    double validation;               /* part of the points that is only evaluated, 0 .. below 1 */
    loam_opt_progress_fn progress;
    void *user;
} loam_fit_params;
/* Shuffles all points once and those that learn before each epoch. The user pointer of params->rates becomes the address of
 * the epoch's number (int64_t, from 1), unless it is set. */
LOAM_API loam_status loam_opt_fit(const loam_opt_params *params, loam_dataset *ds, const loam_fit_params *fit, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
