/* half.h - F16 and BF16: exact conversion to binary32, correctly rounded conversion back.
 *
 *   F16   s eeeee ffffffffff   bias 15            BF16   the upper half of a binary32
 *
 * Encoding rounds once, to nearest even, into subnormals too; a NaN stays a NaN (F16: without its payload). Only integer
 * and normal-range arithmetic, or an instruction that converts, is used, so that the denormal mode of the thread changes
 * nothing. ARM always has such instructions, POWER from 9 on, RISC-V with Zfh: there by what the compiler is told. */
#ifndef LOAM_BASE_HALF_H
#define LOAM_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float f32_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t bits_of_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* ---- F16: the processor's own conversions where the compiler may use them, else integer arithmetic ---- */

#if defined(__aarch64__)
static inline float half_widen(uint16_t h)
{
    __fp16 x;
    memcpy(&x, &h, sizeof x);
    return (float)x;
}

static inline uint16_t half_narrow(float f)
{
    __fp16 x = (__fp16)f;
    uint16_t h;
    memcpy(&h, &x, sizeof h);
    return h;
}
#define HALF_HARDWARE 1
#elif defined(_ARCH_PWR9) && defined(__VSX__)
static inline float half_widen(uint16_t h)
{
    double d;
    __asm__("mtfprd %0,%1\n\txscvhpdp %x0,%x0" : "=d"(d) : "r"((uint64_t)h));
    return (float)d;
}

/* From double, which the float is without rounding. */
static inline uint16_t half_narrow(float f)
{
    double d = (double)f;
    uint64_t h;
    __asm__("xscvdphp %x1,%x1\n\tmffprd %0,%1" : "=r"(h), "+d"(d));
    return (uint16_t)h;
}
#define HALF_HARDWARE 1
#elif defined(__riscv_zfh)
/* The instruction would drop the sign of a NaN. */
static inline float half_widen(uint16_t h)
{
    float f;
    if ((h & 0x7C00) == 0x7C00) return f32_of_bits((uint32_t)(h & 0x8000) << 16 | 0x7F800000 | (uint32_t)(h & 0x3FF) << 13);
    __asm__("fmv.h.x %0,%1\n\tfcvt.s.h %0,%0" : "=f"(f) : "r"((uint64_t)h));
    return f;
}

static inline uint16_t half_narrow(float f)
{
    uint64_t h;
    __asm__("fcvt.h.s %1,%1,rne\n\tfmv.x.h %0,%1" : "=r"(h), "+f"(f));
    return (uint16_t)h;
}
#define HALF_HARDWARE 1
#endif

#if defined(HALF_HARDWARE)
static inline float f16_to_f32(uint16_t h) { return half_widen(h); }

/* The processors differ in what they make of a NaN. */
static inline uint16_t f32_to_f16(float f) { return f == f ? half_narrow(f) : (uint16_t)((bits_of_f32(f) >> 16 & 0x8000) | 0x7E00); }
#else
static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t u = (uint32_t)(h & 0x7FFF) << 13;
    uint32_t exponent = u & 0x0F800000;
    uint32_t normal = u + (112u << 23);
    if (exponent == 0x0F800000) normal += 112u << 23;
    /* A subnormal gets the implied one of exponent 1, which is taken away again as a number: exact. */
    uint32_t subnormal = bits_of_f32(f32_of_bits(u + (113u << 23)) - f32_of_bits(113u << 23));
    return f32_of_bits(sign | (exponent ? normal : subnormal));
}

/* Magnitudes from 65520 on become infinity. */
static inline uint16_t f32_to_f16(float f)
{
    uint32_t u = bits_of_f32(f), a = u & 0x7FFFFFFF, h;
    if (a > 0x7F800000) h = 0x7E00;
    else if (a >= 0x477FF000) h = 0x7C00;
    else if (a < 0x38800000) h = bits_of_f32(f32_of_bits(a) + 0.5f) - 0x3F000000; /* one ulp of 0.5 is 2^-24 */
    else h = (a - (112u << 23) + 0xFFF + ((a >> 13) & 1)) >> 13;
    return (uint16_t)((u >> 16 & 0x8000) | h);
}
#endif

static inline float bf16_to_f32(uint16_t h) { return f32_of_bits((uint32_t)h << 16); }

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u = bits_of_f32(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

#endif
