/* mathf.h - exp, tanh, erf, log of binary32, with the same bits on every machine and instruction set.
 *
 * The vector forms (x86/mathv.h) perform the same operations in the same order. Largest errors, over all inputs
 * (tests/kern/row.c measures them): exp 0.90, tanh 1.38, erf 1.08, log 0.81 units in the last place.
 * NaN gives NaN. exp flushes what would be subnormal to +0; subnormal arguments are kept everywhere. */
#ifndef LOAM_KERNELS_MATHF_H
#define LOAM_KERNELS_MATHF_H

#include <math.h>

#include "base/half.h"
#include "kernels/ref/mathf_coef.h"

/* x = n ln(2) + r, exp(x) = 2^n exp(r): n is rounded by adding EXP_MAGIC and goes into the exponent as an integer. */
static inline float math_exp(float x)
{
    float t = fmaf(x, EXP_LOG2E, EXP_MAGIC), n = t - EXP_MAGIC;
    float r = fmaf(n, -EXP_LN2_HI, x);
    r = fmaf(n, -EXP_LN2_LO, r);
    float p = fmaf(EXP_C6, r, EXP_C5);
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    float y = f32_of_bits(bits_of_f32(p) + (bits_of_f32(t) << 23));
    if (x < EXP_LOW) y = 0.0f;
    if (x > EXP_HIGH) y = INFINITY;
    return x != x ? x : y;
}

/* y, negative where x is (-0 too): y is not negative otherwise. */
static inline float with_sign_of(float x, float y) { return f32_of_bits(bits_of_f32(y) | (bits_of_f32(x) & 0x80000000)); }

/* Odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1) with the sign of x. */
static inline float math_tanh(float x)
{
    float a = fabsf(x), z = x * x;
    float p = fmaf(TANH_C5, z, TANH_C4);
    p = fmaf(p, z, TANH_C3);
    p = fmaf(p, z, TANH_C2);
    p = fmaf(p, z, TANH_C1);
    float small = fmaf(x * z, p, x);
    float b = TANH_BIG < a ? TANH_BIG : a;
    float big = 1.0f - 2.0f / (math_exp(b + b) + 1.0f);
    return with_sign_of(x, a < TANH_SMALL ? small : big);
}

/* Odd polynomial near 0, else 1 - exp(L(|x|)) with the sign of x. */
static inline float math_erf(float x)
{
    float a = fabsf(x), z = x * x;
    float p = fmaf(ERF_S6, z, ERF_S5);
    p = fmaf(p, z, ERF_S4);
    p = fmaf(p, z, ERF_S3);
    p = fmaf(p, z, ERF_S2);
    p = fmaf(p, z, ERF_S1);
    p = fmaf(p, z, ERF_S0);
    float small = fmaf(x, p, x);
    float b = ERF_BIG < a ? ERF_BIG : a;
    float q = fmaf(ERF_L8, b, ERF_L7);
    q = fmaf(q, b, ERF_L6);
    q = fmaf(q, b, ERF_L5);
    q = fmaf(q, b, ERF_L4);
    q = fmaf(q, b, ERF_L3);
    q = fmaf(q, b, ERF_L2);
    q = fmaf(q, b, ERF_L1);
    q = fmaf(q, b, ERF_L0);
    float big = 1.0f - math_exp(q);
    return with_sign_of(x, a < ERF_SMALL ? small : big);
}

/* Scalar only: for step sizes and gates of a few elements. x = 2^e m, sqrt(1/2) <= m < sqrt(2). */
static inline float math_log(float x)
{
    if (!(x > 0.0f)) return x == 0.0f ? -INFINITY : x != x ? x : NAN;
    if (x == INFINITY) return x;
    int e = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p23f;
        e = -23;
    }
    uint32_t u = bits_of_f32(x) - bits_of_f32(SQRT_HALF);
    e += (int32_t)u >> 23;
    float f = f32_of_bits((u & 0x007FFFFF) + bits_of_f32(SQRT_HALF)) - 1.0f, z = f * f, n = (float)e;
    float g = fmaf(LOG_G8, f, LOG_G7);
    g = fmaf(g, f, LOG_G6);
    g = fmaf(g, f, LOG_G5);
    g = fmaf(g, f, LOG_G4);
    g = fmaf(g, f, LOG_G3);
    g = fmaf(g, f, LOG_G2);
    g = fmaf(g, f, LOG_G1);
    g = fmaf(g, f, LOG_G0);
    float r = fmaf(n, LOG_LN2_LO, f * z * g);
    r = fmaf(-0.5f, z, r);
    return fmaf(n, LOG_LN2_HI, f + r);
}

/* ln(1 + e^x): the logarithm of the rounded sum, corrected by what the rounding took. Above 20 it is x. */
static inline float math_softplus(float x)
{
    if (x > 20.0f) return x;
    float e = math_exp(x), s = 1.0f + e, d = s - 1.0f;
    return d == 0.0f ? e : math_log(s) * (e / d);
}

#endif
