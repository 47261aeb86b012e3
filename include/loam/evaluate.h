/* loam/evaluate.h - how far a model is from another one: Kullback-Leibler divergence of the predictions of each token, change
 * of the probability of the token that comes, agreement of the likeliest. UNSTABLE: the lower tier may change between minor
 * versions.
 *
 *   the first model   logits ── loam_kl_writer ──► base file
 *   the second one    base file ── loam_kl_base ──┬──► loam_kl ──► loam_kl_summary
 *                     logits ─────────────────────┘
 *
 * A text is n_chunks chunks of n_ctx tokens. Scored are the tokens i = n_ctx/2 ... n_ctx-2 of each chunk, each by what it says
 * about token i + 1: loam_kl_rows(n_ctx) rows of logits a chunk. */
#ifndef LOAM_EVALUATE_H
#define LOAM_EVALUATE_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_kl_writer loam_kl_writer;
typedef struct loam_kl_base loam_kl_base;
typedef struct loam_kl loam_kl;

/* What a base file is about. */
typedef struct loam_kl_text {
    int32_t n_ctx, n_vocab, n_chunks;
    const int32_t *tokens; /* [n_chunks * n_ctx] as they are in the text */
} loam_kl_text;

LOAM_API int32_t loam_kl_rows(int32_t n_ctx); /* scored tokens of a chunk */

/* ---- base files: logits of 16 bits within 16 of the largest, 2 * n_vocab + 8 bytes a row ---- */

/* The file appears when it is closed, or not at all. Errors: ARG (a size out of range, a token outside the vocabulary), IO, NOMEM. */
LOAM_API loam_status loam_kl_writer_open(loam_kl_writer **out, const char *path, const loam_kl_text *text, loam_error *err);
/* The next row, in order. NUMERIC: a logit is not finite. */
LOAM_API loam_status loam_kl_writer_put(loam_kl_writer *w, const float *logits, loam_error *err);
LOAM_API loam_status loam_kl_writer_close(loam_kl_writer *w, loam_error *err); /* ARG where rows are missing; frees w in any case */
LOAM_API void loam_kl_writer_cancel(loam_kl_writer *w); /* NULL is fine */

/* Errors: IO, FORMAT (not a base file, cut off, a token outside the vocabulary), NOMEM. */
LOAM_API loam_status loam_kl_base_open(loam_kl_base **out, const char *path, loam_error *err);
LOAM_API loam_status loam_kl_base_open_memory(loam_kl_base **out, const void *data, size_t size, loam_error *err); /* data must stay */
LOAM_API void loam_kl_base_free(loam_kl_base *base); /* NULL is fine */
LOAM_API loam_kl_text loam_kl_base_text(const loam_kl_base *base);
/* ln p of every token, n_vocab floats, of a row counted from 0 over all chunks; false beyond the last. */
LOAM_API bool loam_kl_base_row(const loam_kl_base *base, int64_t row, float *log_p);

/* ---- comparing ---- */

LOAM_API loam_status loam_kl_new(loam_kl **out, int32_t n_vocab, loam_error *err); /* NOMEM, ARG */
LOAM_API void loam_kl_free(loam_kl *kl);
/* One token: what the base says (ln p), what the model says (logits), and the token that comes. Errors: ARG (next is outside the
 * vocabulary), NUMERIC (a logit that is not finite), NOMEM; the statistics are then as they were. */
LOAM_API loam_status loam_kl_add(loam_kl *kl, const float *base_log_p, const float *logits, int32_t next, loam_error *err);

typedef struct loam_measure {
    double value, error; /* error: one standard error; 0 for ten tokens or fewer */
} loam_measure;

#define LOAM_KL_POINTS 13
/* Shares of loam_kl_summary.kld and .dp: 1 (the largest), .999, .99, .95, .9, .75, .5, .25, .1, .05, .01, .001, 0 (the smallest). */
LOAM_API double loam_kl_point(int i);

typedef struct loam_kl_summary {
    int64_t n;                                   /* tokens */
    loam_measure ppl, ppl_base;                  /* perplexities */
    double correlation;                          /* of ln p of the token that comes, -1 .. 1 */
    loam_measure ln_ratio, ratio, difference;    /* of the perplexities, model to base */
    loam_measure mean_kld;
    double kld[LOAM_KL_POINTS];                  /* percentiles */
    loam_measure mean_dp, rms_dp;                /* change of the probability of the token that comes */
    double dp[LOAM_KL_POINTS];
    loam_measure same_top;                       /* share of tokens with the same likeliest next one */
} loam_kl_summary;

/* NOMEM; ARG where nothing was added. */
LOAM_API loam_status loam_kl_summarize(const loam_kl *kl, loam_kl_summary *out, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
