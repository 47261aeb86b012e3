/* half.h - the small floats of blocks: F16 and BF16 from base/half.h, and the scales of one byte, E8M0 (MXFP4) and UE4M3
 * (NVFP4). Both are decoded halved, because the table of their levels is doubled to be integers.
 *
 *   E8M0   eeeeeeee      2^(e - 127)            UE4M3   - eeee fff   bias 7, top bit unused, no sign */
#ifndef LOAM_QUANT_HALF_H
#define LOAM_QUANT_HALF_H

#include "base/half.h"

/* Half of the E8M0 value, 2^(e - 128): the E2M1 level table is doubled to be integers. e = 255 gives 2^127. */
static inline float e8m0_half(uint8_t e) { return f32_of_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23); }

/* Half of the UE4M3 value. 0x7F, the format's NaN, counts as 0; bit 7 is ignored otherwise. */
static inline float ue4m3_half(uint8_t b)
{
    if (b == 0 || b == 0x7F) return 0.0f;
    uint32_t e = b >> 3 & 15, f = b & 7;
    return e ? f32_of_bits((e + 119) << 23 | f << 20) : (float)f * 0x1p-10f;
}

/* The UE4M3 code of x. Rounds half up on the first bit that is dropped; from 248 on everything is 448. */
static inline uint8_t ue4m3_of_f32(float x)
{
    if (!(x > 0.0f)) return 0;
    if (x < 0x1p-6f) {
        int m = (int)(x * 512.0f + 0.5f);
        return (uint8_t)(m > 7 ? 7 : m);
    }
    if (x >= 256.0f) return 0x7E;
    uint32_t u = bits_of_f32(x);
    uint32_t code = (u >> 20) - (120u << 3) + (u >> 19 & 1); /* the carry moves into the exponent by itself */
    return (uint8_t)(code >= 15 << 3 ? 0x7E : code);
}

#endif
