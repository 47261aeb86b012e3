/* job_config.h - the description of a training run, checked. */
#ifndef LOAM_TRAIN_JOB_CONFIG_H
#define LOAM_TRAIN_JOB_CONFIG_H

#include "base/error.h"
#include "base/js.h"

#define JOB_FILES   256 /* files of training data */
#define JOB_TARGETS 64  /* names of matrices under adapters */

typedef enum job_type { JOB_F32, JOB_F16, JOB_BF16 } job_type;

/* Texts point into the document; NULL where a key is absent. Defaults are in job_config.c. */
typedef struct job_config {
    js *document;

    /* model: from the beginning ... */
    const char *architecture;
    int64_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_ctx;
    double norm_eps, rope_base;
    bool tied;
    const js *keys; /* further hyper-parameters by their names in GGUF, without the architecture */
    const char *tokenizer;
    /* ... or tuned */
    const char *base;

    int64_t lora_rank;
    double lora_alpha, lora_dropout;
    const char *targets[JOB_TARGETS];
    size_t n_targets;

    const char *train[JOB_FILES], *valid[JOB_FILES];
    size_t n_train, n_valid;
    double hold_out;
    int64_t format, split, too_long; /* the enums of loam/data.h */
    bool shuffle;

    int64_t optimizer; /* loam_optimizer */
    double rate, beta1, beta2, eps, momentum, weight_decay, clip, label_smoothing, muon_rate;
    bool nesterov, small_state, decay_all;

    int64_t schedule; /* loam_decay */
    double floor;
    int64_t warmup, decay;

    int64_t row_tokens; /* 0: the context of the model, of a base at most 512 */
    int64_t rows, accumulate, steps;
    double epochs;
    int64_t seed, threads;
    bool bf16, recompute;

    int64_t valid_every, valid_rows, patience;
    const char *checkpoint;
    int64_t save_every;
    const char *output, *adapter, *peft, *log;
    int64_t type; /* job_type */
} job_config;

/* Fills c; the document lives until job_config_free. Refused by name: unknown keys, wrong kinds, values out of range, what
 * contradicts itself. */
loam_status job_config_read(job_config *c, const char *text, size_t len, const char *label, loam_error *err);
void job_config_free(job_config *c);

#endif
