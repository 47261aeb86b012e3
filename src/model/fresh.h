/* fresh.h - a new model with random weights, for training from the beginning: any architecture whose tensors follow from its
 * hyper-parameters. */
#ifndef LOAM_MODEL_FRESH_H
#define LOAM_MODEL_FRESH_H

#include "base/error.h"
#include "base/limits.h"
#include "file/gguf_write.h"

/* Tensors that a model needs and its file does not have, in the order in which they were missed. */
typedef struct wish {
    char name[LIMIT_NAME_BYTES + 1];
    int64_t ne[4];
    int n; /* extents; 1: a vector */
} wish;

typedef struct wishes {
    wish *items;
    size_t n, cap;
} wishes;

loam_status wish_add(wishes *w, const char *name, const int64_t *ne, int n, loam_error *err);

/* What the model in a file lacks, by the rules of its architecture. Errors as loam_model_open's, but for missing tensors. */

loam_status model_wishes(const char *path, wishes *w, loam_error *err);

typedef struct fresh_shape {
    int64_t n_embd, n_vocab;
    int n_layer;
    bool tied;     /* the token embeddings are the output matrix too */
    uint64_t seed;       /* the same seed gives the same file */
    uint64_t max_values; /* of all tensors; more are refused with LOAM_E_NOMEM before they are written */
} fresh_shape;

/* Writes the model whose keys (general.architecture, hyper-parameters, vocabulary) `b` has, in F32, to path; b gains its tensors.
 * Matrices are normal with deviation 0.577 / sqrt(inputs), those that end a branch divided by sqrt(2 blocks); token embeddings
 * have 0.02, norms are 1, biases 0. */
loam_status model_fresh_write(gguf_builder *b, const fresh_shape *shape, const char *path, loam_error *err);

#endif
