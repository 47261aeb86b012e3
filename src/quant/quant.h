/* quant.h - the codecs of all element types: rows of floats to and from rows of blocks.
 *
 * These plain C codecs are the law for every faster form. A row is a run of blocks without padding; n, the number of
 * values of a row, is a multiple of the type's block. Encoded rows need no alignment.
 *
 * decode_X and encode_X check nothing: they are safe on every bit pattern (each decodes to something, non-finite floats
 * encode to something), but only finite input has a defined encoding. Callers that hold foreign data use
 * quant_encode_rows and quant_check. */
#ifndef LOAM_QUANT_QUANT_H
#define LOAM_QUANT_QUANT_H

#include "base/error.h"
#include "loam/quant.h"
#include "tensor/dtype.h"

typedef void (*quant_decode_fn)(const void *in, float *out, int64_t n);

/* Encodes one row. weights: n column weights, or NULL for the rule without; types that ignore weights do not read them,
 * types that require them (dtype_info.need) must get them. */
typedef void (*quant_encode_fn)(const float *in, void *out, int64_t n, const float *weights);

typedef struct quant_codec {
    quant_decode_fn decode;  /* NULL: the id is not in use */
    quant_encode_fn encode;
} quant_codec;

extern const quant_codec quant_table[LOAM_TYPE_LIMIT];

#define TYPE(id, NAME, text, n, b, act, need, codec) \
    void decode_##codec(const void *in, float *out, int64_t n_values); \
    void encode_##codec(const float *in, void *out, int64_t n_values, const float *weights);
#include "tensor/dtype.def"
#undef TYPE

/* Builds what the encoder of a type needs beyond constants (the neighbour lists of the grid types; once per process,
 * some 5 MB for all, kept until the process ends). Must have succeeded before encode_X of such a type is called
 * directly; quant_encode_rows does it. Thread-safe. */
loam_status quant_prepare(loam_type type, loam_error *err);

/* Encodes shape->rows rows. weights: shape->n column weights for all rows, or NULL. Refused: a row length that is not a
 * multiple of the block, a value that is not finite, a weight that is negative or above 1e20, missing weights where the
 * type requires them, a value that the type's scale cannot hold. The message names row and column, counted from 0. */
loam_status quant_encode_rows(const loam_rows *shape, const float *in, const float *weights, void *out, loam_error *err);

loam_status quant_decode_rows(const loam_rows *shape, const void *in, float *out, loam_error *err);

/* Index of the first of `blocks` blocks with a scale or value that is not finite (MXFP4: the reserved exponent), or -1. */
int64_t quant_bad_block(loam_type type, const void *in, int64_t blocks);

/* The data check of stored rows: scales and values that are not finite are refused with row and block. */
loam_status quant_check_rows(const loam_rows *shape, const void *in, loam_error *err);

#endif
