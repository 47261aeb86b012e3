/* mul.h - weights of every quantized type as integers: what the reference products and the generic panels are made of.
 *
 * A row of weights is seen in pieces of 256 values (super-block types, activation A256) or 32 values (block types, A32):
 *
 *   A256:  w = (d * scale[v / 16]) * level[v]  -  dmin * min[v / 16]
 *   A32:   w = d[v / 16] * level[v]  +  m
 *
 * Constants of a type become integers by taking a power of two out of the scale: 0.25 * (0.5 + s) of IQ2 is
 * (2s + 1) with d / 8, the shift of IQ1 of an eighth is 1 in levels of 8. */
#ifndef LOAM_KERNELS_REF_MUL_H
#define LOAM_KERNELS_REF_MUL_H

#include <stdint.h>

#include "kernels/kernels.h"

typedef struct weight256 {
    int8_t level[256];
    int16_t scale[16], min[16];
    float d, dmin;
} weight256;

typedef struct weight32 {
    int8_t level[32];
    float d[2];           /* of values 0..15 and 16..31; equal but for types with a scale for each 16 */
    float m;
} weight32;

/* Piece i of a row. */
typedef void (*unpack256_fn)(const uint8_t *row, int64_t i, weight256 *w);
typedef void (*unpack32_fn)(const uint8_t *row, int64_t i, weight32 *w);

typedef struct weight_form {
    unpack256_fn unpack256;   /* one of the two; both NULL where the type has no integer product */
    unpack32_fn unpack32;
    bool has_min;             /* the type has minima: dmin or m may be other than 0 */
    int sub;                  /* A256: values of a sub-block, 16 or 32; then both scales of 32 values are the same */
    bool split;               /* A32: the two scales of a piece of 32 differ: two sums and two steps, 16 values each */
} weight_form;

/* Bytes of scratch of a product, and the most values of k of a row that are unpacked or copied into it at a time. */
#define MUL_SCRATCH (768u << 10)
#define MUL_CHUNK 2048

extern const weight_form weight_forms[LOAM_TYPE_LIMIT];

void act_encode_a32(const float *x, void *out, int64_t k);
void act_encode_a256(const float *x, void *out, int64_t k);

#endif
