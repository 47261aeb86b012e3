/* trial.h - a model whose weights are exchanged one by one, to see how far its predictions move from the original's.
 *
 *     trial_open ── text ── the original's predictions of some tokens, column weights ──► trial
 *     trial_set(i, type, data) ... trial_measure ──► mean KL divergence */
#ifndef LOAM_QUANTIZE_TRIAL_H
#define LOAM_QUANTIZE_TRIAL_H

#include "base/error.h"
#include "context/context.h"
#include "imatrix/imatrix.h"
#include "loam/tokenizer.h"

typedef struct trial_row {
    int32_t *ids;        /* [n] tokens that the original finds possible at all (ln p above -16) ... */
    float *log_p;        /* ... and how likely */
    int32_t n;
} trial_row;

typedef struct trial {
    loam_model *model;
    loam_context *ctx;
    loam_token *tokens;
    int32_t n_ctx, n_chunks;      /* that are measured */
    int8_t *wanted;               /* [n_ctx] tokens whose predictions are compared */
    trial_row *rows;
    size_t n_rows;
    float *probs;                 /* [n_vocab] */
    loam_imatrix *own;            /* column weights from the text, NULL where the caller has some */
    loam_token bos;
} trial;

typedef struct trial_params {
    const char *path, *text;
    size_t text_len;
    int32_t n_ctx, n_tokens, n_threads;      /* n_tokens: measured, 0: by the size of the model */
    const loam_imatrix *imatrix;             /* NULL: made from the text */
    bool (*progress)(void *user, const char *stage, double share);
    void *user;
} trial_params;

/* Opens the model and runs it over the text. On failure nothing is left. */
loam_status trial_open(trial *t, const trial_params *p, loam_error *err);
void trial_close(trial *t); /* also of a zeroed one */
/* Weight i in the order of the file; data NULL: the original. */
void trial_set(trial *t, uint32_t i, loam_type type, const void *data);
/* Mean divergence of the model as it is now from the original. */
loam_status trial_measure(trial *t, double *kld, loam_error *err);

#endif
