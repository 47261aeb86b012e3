/* imatrix.h - importance matrices inside: entries by tensor name, and the column weights that an encoder gets.
 *
 *   imatrix ── entries: name ── sums [n_mats][n], counts [n_counts]     collect.c   from a running context
 *           ── data sets, size of a chunk                               file.c      from and to files */
#ifndef LOAM_IMATRIX_IMATRIX_H
#define LOAM_IMATRIX_IMATRIX_H

#include "base/error.h"
#include "base/map.h"
#include "loam/imatrix.h"

typedef struct imatrix_entry {
    char *name;
    int64_t n, n_mats, n_counts;
    double *sums;
    int64_t *counts;
} imatrix_entry;

struct loam_imatrix {
    imatrix_entry *entries;    /* also such as nothing was counted for: nobody is shown them */
    size_t n, cap;
    map index;
    char **datasets;
    size_t n_datasets, cap_datasets;
    uint32_t chunk_size;
    bool head;
    loam_imatrix *batch;       /* what a decode counts, until it has succeeded; NULL before the first */
};

/* The entry of a tensor, made now with zeros if it is not there. n_counts is n_mats or 1. Errors: ARG where it is there with
 * another size, NOMEM. */
typedef struct imatrix_shape {
    int64_t n, n_mats, n_counts;
} imatrix_shape;
loam_status imatrix_entry_of(loam_imatrix *im, const char *name, imatrix_shape shape, imatrix_entry **out, loam_error *err);
const imatrix_entry *imatrix_find(const loam_imatrix *im, const char *name); /* NULL: nothing was counted */

/* Whether the entry of a tensor fits n columns of n_mats matrices and gives weights that an encoder takes: LOAM_OK also where there
 * is none; ARG for the size, NUMERIC with the column for a weight beyond 1e20. */
loam_status imatrix_check(const loam_imatrix *im, const char *name, int64_t n, int64_t n_mats, loam_error *err);

/* Weights of a tensor with n columns and n_mats matrices: the mean square of each column, n_mats * n floats for mem_free; *out is
 * NULL where there is no entry. A matrix that was never met gets ones, with a warning. Errors: those of
 * imatrix_check, NOMEM. */
loam_status imatrix_weights(const loam_imatrix *im, const char *name, int64_t n, int64_t n_mats, float **out, loam_error *err);

/* The same over bytes; label names them in messages. */
loam_status imatrix_open_memory(loam_imatrix **out, const void *data, size_t size, const char *label, loam_error *err);

#endif
