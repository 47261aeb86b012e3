/* chunks.h - a text cut into chunks of tokens, as perplexity, imatrix and the like read it.
 *
 *     tokens of the whole text:  [ chunk 0: n_ctx tokens ][ chunk 1 ] ... [ remainder, not used ]
 *     a chunk:                   [BOS | context, not scored | n_ctx/2 ... n_ctx-2: each scored on the token after it ]
 *
 * Each chunk is computed alone from position 0; where the vocabulary begins texts with a token, that replaces the chunk's first. */
#ifndef LOAM_CLI_CHUNKS_H
#define LOAM_CLI_CHUNKS_H

#include "session.h"

typedef struct chunks {
    loam_token *ids;    /* [n] for loam_tokens_free */
    size_t n;
    int32_t n_ctx;
    int64_t total;      /* chunks of the text */
    int64_t count;      /* that are to be read: at most --chunks */
    loam_token bos;     /* LOAM_TOKEN_NULL: the first token stays */
} chunks;

/* Reads and encodes the text of -f; -c and --chunks. An exit code. */
int chunks_read(chunks *c, const session *s, const options *o);
void chunks_free(chunks *c);
/* Whether the model can score texts: has a vocabulary that does not end texts with a token of its own. An exit code. */
int chunks_check_model(const session *s, const options *o);

/* Computes one chunk alone, in batches that keep the logits small. wanted: a flag for each of the n_ctx tokens whose outputs are
 * wanted; decode and row may be NULL (loam_decode; nothing). row is called for each wanted token i of the chunk in order; false
 * stops. 0, or a code of loam_decode (2 after false). */
typedef struct chunk_run {
    int (*decode)(void *user, loam_context *ctx, const loam_batch *batch, loam_error *err);
    bool (*row)(void *user, int32_t i, const float *logits, loam_error *err);
    void *user;
    const int8_t *wanted;
} chunk_run;
int chunk_compute(const session *s, const chunks *c, int64_t chunk, const chunk_run *run, loam_error *err);
/* Flags of the scored tokens, n_ctx of them, for free(). */
int8_t *chunk_scored(int32_t n_ctx);

/* Mean of -ln p and perplexity. */
typedef struct score {
    double sum, squares; /* of -ln p */
    int64_t n;
} score;
void score_add(score *t, const float *logits, int32_t n_vocab, int32_t target);
double score_perplexity(const score *t);
double score_uncertainty(const score *t); /* of the perplexity: the standard error of the mean, through the exponential */

#endif
