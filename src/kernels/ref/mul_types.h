/* mul_types.h - the list of types with an integer product. Declares their unpackers; mul.c makes its table from it.
 *
 * BLOCK32(NAME, suffix, has_min, split)    BLOCK256(NAME, suffix, has_min, sub)    sub: values of a sub-block */
#ifndef LOAM_KERNELS_REF_MUL_TYPES_H
#define LOAM_KERNELS_REF_MUL_TYPES_H

#include "kernels/ref/mul.h"

#define MUL_TYPES(BLOCK32, BLOCK256) \
    BLOCK32(Q4_0, q4_0, false, false) \
    BLOCK32(Q4_1, q4_1, true, false) \
    BLOCK32(Q5_0, q5_0, false, false) \
    BLOCK32(Q5_1, q5_1, true, false) \
    BLOCK32(Q8_0, q8_0, false, false) \
    BLOCK32(IQ4_NL, iq4_nl, false, false) \
    BLOCK32(MXFP4, mxfp4, false, false) \
    BLOCK32(NVFP4, nvfp4, false, true) \
    BLOCK32(Q1_0, q1_0, false, false) \
    BLOCK32(Q2_0, q2_0, false, false) \
    BLOCK256(Q2_K, q2_k, true, 16) \
    BLOCK256(Q3_K, q3_k, false, 16) \
    BLOCK256(Q4_K, q4_k, true, 32) \
    BLOCK256(Q5_K, q5_k, true, 32) \
    BLOCK256(Q6_K, q6_k, false, 16) \
    BLOCK256(TQ1_0, tq1_0, false, 32) \
    BLOCK256(TQ2_0, tq2_0, false, 32) \
    BLOCK256(IQ4_XS, iq4_xs, false, 32) \
    BLOCK256(IQ2_XXS, iq2_xxs, false, 32) \
    BLOCK256(IQ2_XS, iq2_xs, false, 16) \
    BLOCK256(IQ2_S, iq2_s, false, 16) \
    BLOCK256(IQ3_XXS, iq3_xxs, false, 32) \
    BLOCK256(IQ3_S, iq3_s, false, 32) \
    BLOCK256(IQ1_S, iq1_s, false, 32) \
    BLOCK256(IQ1_M, iq1_m, false, 16)

#define DECLARE32(NAME, suffix, has_min, split) void unpack_##suffix(const uint8_t *row, int64_t i, weight32 *w);
#define DECLARE256(NAME, suffix, has_min, sub) void unpack_##suffix(const uint8_t *row, int64_t i, weight256 *w);
MUL_TYPES(DECLARE32, DECLARE256)
#undef DECLARE32
#undef DECLARE256

/* All of a block but its levels, for those who unpack these in another way. b: the block. */
void unpack_q4_k_head(const uint8_t *b, weight256 *w);
void unpack_q6_k_head(const uint8_t *b, weight256 *w);

#endif
