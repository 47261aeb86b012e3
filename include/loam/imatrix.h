/* loam/imatrix.h - importance matrices: how large the activations are that each column of a weight meets. An encoder that knows
 * it spends its precision where it counts. UNSTABLE: the lower tier may change between minor versions.
 *
 *     loam_imatrix_new(&im, &err);
 *     while (...) loam_imatrix_decode(im, ctx, &batch, &err);     // as loam_decode, and counts
 *     loam_imatrix_add_dataset(im, "text.txt", &err);
 *     loam_imatrix_save(im, "model.imatrix.gguf", &err);
 *
 * For each weight matrix there is an entry with the sum of squares of every input column over all rows that were multiplied
 * with it, and the number of rows; a stack of experts has sums and a number for each expert. Entries can be added up, so that
 * work can be resumed and shared out. A matrix belongs to one thread at a time. */
#ifndef LOAM_IMATRIX_H
#define LOAM_IMATRIX_H

#include "loam/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_imatrix loam_imatrix;

/* An empty matrix; the caller owns it. Errors: NOMEM. */
LOAM_API loam_status loam_imatrix_new(loam_imatrix **out, loam_error *err);
LOAM_API void loam_imatrix_free(loam_imatrix *im); /* NULL is fine */

/* Reads a file in GGUF form (general.type imatrix) or in the older form without a magic number. On failure *out is NULL.
 * Errors: IO; FORMAT (malformed, half an entry, a key that is missing or wrong); NUMERIC (a sum or count that is negative or
 * not finite, with its tensor and column); NOMEM. */
LOAM_API loam_status loam_imatrix_open(loam_imatrix **out, const char *path, loam_error *err);

/* Adds the sums, counts and data set names of `from`. Entries of one name must have the same size: else ARG by name. On failure
 * im is as it was. */
LOAM_API loam_status loam_imatrix_merge(loam_imatrix *im, const loam_imatrix *from, loam_error *err);

/* Writes the GGUF form: sums and counts as floats, sorted by name. The file appears whole or not at all.
 * Errors: ARG (nothing was counted; a tensor name that is too long), IO, NOMEM. */
LOAM_API loam_status loam_imatrix_save(const loam_imatrix *im, const char *path, loam_error *err);

/* loam_decode(ctx, batch), whose results it returns; where that is 0 every product of the batch with a weight of the blocks has
 * been counted, over all tokens of the batch whatever outputs are wanted. -3 with NUMERIC names a weight whose input is not
 * finite. Costs a few percent of the decode. */
LOAM_API int loam_imatrix_decode(loam_imatrix *im, loam_context *ctx, const loam_batch *batch, loam_error *err);

/* Also count for the weights of the head (default false): output.weight, or the table of the embeddings where it serves as
 * head. They need the outputs of the tokens that are to count. */
LOAM_API void loam_imatrix_set_head(loam_imatrix *im, bool on);

/* Facts that go into the file: the name of a text, once each; tokens of a chunk (default 512). */
LOAM_API loam_status loam_imatrix_add_dataset(loam_imatrix *im, const char *name, loam_error *err);
LOAM_API void loam_imatrix_set_chunk_size(loam_imatrix *im, uint32_t tokens);
LOAM_API uint32_t loam_imatrix_chunk_size(const loam_imatrix *im);
LOAM_API uint32_t loam_imatrix_chunk_count(const loam_imatrix *im); /* the most rows of an entry by the size of a chunk */

/* One weight. Belongs to the matrix, valid until it is changed or freed. */
typedef struct loam_imatrix_entry {
    const char *name;      /* of the weight tensor */
    int64_t n, n_mats;     /* columns; matrices of the tensor (experts), else 1 */
    int64_t n_counts;      /* n_mats, or 1: the same for all */
    const double *sums;    /* [n_mats][n] of squares */
    const int64_t *counts; /* [n_counts] rows; 0: never met */
} loam_imatrix_entry;

LOAM_API size_t loam_imatrix_n_entries(const loam_imatrix *im);
LOAM_API bool loam_imatrix_entry_at(const loam_imatrix *im, size_t i, loam_imatrix_entry *e); /* in no order; false: no such */

#ifdef __cplusplus
}
#endif
#endif
