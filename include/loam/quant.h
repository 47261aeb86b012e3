/* loam/quant.h - rows of floats to and from the element types of GGUF files. UNSTABLE: the lower tier may change between
 * minor versions.
 *
 * A row of n values is stored as n / loam_type_block_values(type) blocks of loam_type_block_bytes(type) bytes, rows
 * follow each other without padding. All functions may be called from several threads at once. */
#ifndef LOAM_QUANT_H
#define LOAM_QUANT_H

#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is converted: rows >= 0 rows of n >= 0 values. n must be a multiple of the type's block. */
typedef struct loam_rows {
    int type;      /* a loam_type */
    int64_t rows;
    int64_t n;
} loam_rows;

/* Bytes of the encoded rows. LOAM_E_ARG: unknown type, bad row length, or more bytes than can be counted. */
LOAM_API loam_status loam_quant_bytes(const loam_rows *shape, uint64_t *bytes, loam_error *err);

/* How an encoder uses column weights (an importance matrix: one non-negative weight for each of the n columns, the same
 * for all rows; usually the mean square of the activations that meet the column). */
typedef enum loam_weight_need {
    LOAM_WEIGHTS_IGNORED = 0,   /* the encoding does not depend on them */
    LOAM_WEIGHTS_OPTIONAL = 1,  /* used if given */
    LOAM_WEIGHTS_ASKED = 2,     /* works without, with a poor result */
    LOAM_WEIGHTS_REQUIRED = 3   /* refused without */
} loam_weight_need;

/* LOAM_WEIGHTS_IGNORED for an unknown type. */
LOAM_API loam_weight_need loam_quant_weight_need(int type);

/* Encodes rows * n floats into out, which holds out_bytes bytes and must not overlap in.
 * weights: n column weights, or NULL for none; a weight of 0 counts as the mean of the others.
 * Errors: LOAM_E_ARG for a shape, size or missing weights; LOAM_E_NUMERIC for a value that is not finite or does not fit
 * the type's range (1e9 for the types with 16-bit scales, or less), or a weight that is negative or above 1e20, with row
 * and column in the message (from 0); LOAM_E_NOMEM. The contents of out are undefined after an error. */
LOAM_API loam_status loam_quant_encode(const loam_rows *shape, const float *in, const float *weights, void *out,
                                       uint64_t out_bytes, loam_error *err);

/* Decodes in, which holds in_bytes bytes, into rows * n floats. Every bit pattern decodes to something.
 * Errors: LOAM_E_ARG for a shape or size. */
LOAM_API loam_status loam_quant_decode(const loam_rows *shape, const void *in, uint64_t in_bytes, float *out,
                                       loam_error *err);

/* Checks stored rows for scales and values that are not finite: LOAM_E_NUMERIC with row and block (from 0). */
LOAM_API loam_status loam_quant_check(const loam_rows *shape, const void *in, uint64_t in_bytes, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
