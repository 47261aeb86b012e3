/* mul_levels.h - unpackers for the panels of mul_tmpl.h: those of the reference, but for the common types, whose levels come
 * out of vectors. */
#ifndef LOAM_KERNELS_ARM_MUL_LEVELS_H
#define LOAM_KERNELS_ARM_MUL_LEVELS_H

#include <arm_neon.h>

#include "kernels/ref/mul_types.h"
#include "quant/bytes.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void levels_q4_0(const uint8_t *b, int8_t *level)
{
    const uint8x16_t q = vld1q_u8(b);
    vst1q_s8(level, vsubq_s8(vreinterpretq_s8_u8(vandq_u8(q, vdupq_n_u8(15))), vdupq_n_s8(8)));
    vst1q_s8(level + 16, vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(q, 4)), vdupq_n_s8(8)));
}

INLINE void fast_q4_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 18 * i;
    levels_q4_0(b + 2, w->level);
    w->d[0] = w->d[1] = get_f16(b);
    w->m = 0.0f;
}

INLINE void fast_q8_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 34 * i;
    memcpy(w->level, b + 2, 32);
    w->d[0] = w->d[1] = get_f16(b);
    w->m = 0.0f;
}

/* 64 values in 32 bytes: the low halves are the first 32. */
INLINE void fast_q4_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 144 * i, *q = b + 16;
    for (int v = 0; v < 256; v += 64, q += 32)
        for (int j = 0; j < 32; j += 16) {
            const uint8x16_t x = vld1q_u8(q + j);
            vst1q_s8(w->level + v + j, vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15))));
            vst1q_s8(w->level + v + 32 + j, vreinterpretq_s8_u8(vshrq_n_u8(x, 4)));
        }
    unpack_q4_k_head(b, w);
}

/* 128 values: 64 bytes of low halves, 32 bytes of pairs of high bits. */
INLINE void fast_q6_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 210 * i;
    const uint8x16_t low = vdupq_n_u8(15), two = vdupq_n_u8(0x30);
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < 32; j += 16) {
            const uint8x16_t a = vld1q_u8(b + 64 * h + j), c = vld1q_u8(b + 64 * h + 32 + j), t = vld1q_u8(b + 128 + 32 * h + j);
            const uint8x16_t q[4] = { vorrq_u8(vandq_u8(a, low), vandq_u8(vshlq_n_u8(t, 4), two)),
                                      vorrq_u8(vandq_u8(c, low), vandq_u8(vshlq_n_u8(t, 2), two)),
                                      vorrq_u8(vshrq_n_u8(a, 4), vandq_u8(t, two)),
                                      vorrq_u8(vshrq_n_u8(c, 4), vandq_u8(vshrq_n_u8(t, 2), two)) };
            for (int g = 0; g < 4; g++)
                vst1q_s8(w->level + 128 * h + 32 * g + j, vsubq_s8(vreinterpretq_s8_u8(q[g]), vdupq_n_s8(32)));
        }
    unpack_q6_k_head(b, w);
}

#define fast_q4_1 unpack_q4_1
#define fast_q5_0 unpack_q5_0
#define fast_q5_1 unpack_q5_1
#define fast_iq4_nl unpack_iq4_nl
#define fast_mxfp4 unpack_mxfp4
#define fast_nvfp4 unpack_nvfp4
#define fast_q1_0 unpack_q1_0
#define fast_q2_0 unpack_q2_0
#define fast_q2_k unpack_q2_k
#define fast_q3_k unpack_q3_k
#define fast_q5_k unpack_q5_k
#define fast_tq1_0 unpack_tq1_0
#define fast_tq2_0 unpack_tq2_0
#define fast_iq4_xs unpack_iq4_xs
#define fast_iq2_xxs unpack_iq2_xxs
#define fast_iq2_xs unpack_iq2_xs
#define fast_iq2_s unpack_iq2_s
#define fast_iq3_xxs unpack_iq3_xxs
#define fast_iq3_s unpack_iq3_s
#define fast_iq1_s unpack_iq1_s
#define fast_iq1_m unpack_iq1_m

#endif
