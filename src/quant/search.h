/* search.h - what the encoders share: extremes, rounding, and the searches for scales. */
#ifndef LOAM_QUANT_SEARCH_H
#define LOAM_QUANT_SEARCH_H

#include <math.h>
#include <stdint.h>

/* The element of largest magnitude with its sign; the first of equals; 0 where there is none. */
static inline float signed_max(const float *x, int n)
{
    float best = 0.0f, a = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > a) {
            a = fabsf(x[i]);
            best = x[i];
        }
    return best;
}

static inline float abs_max(const float *x, int n)
{
    float a = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > a) a = fabsf(x[i]);
    return a;
}

/* 1 / d, and 0 where that is not finite: such a block counts as all zero. */
static inline float inverse_or_zero(float d)
{
    float id = 1.0f / d;
    return fabsf(id) <= 3.402823466e38f ? id : 0.0f;
}

/* Nearest integer, ties away from zero; 0 for NaN. |x| is below 2^31 for finite input. */
static inline int round_away(float x)
{
    float r = truncf(x);
    if (fabsf(x - r) >= 0.5f) r += x < 0.0f ? -1.0f : 1.0f;
    return r >= -2147483648.0f && r < 2147483648.0f ? (int)r : 0;
}

/* Nearest integer as a float, ties to even, for |x| < 2^22; a plain sum, so that loops over it become vector code. */
static inline float round_even(float x) { return (x + 12582912.0f) - 12582912.0f; }

/* A rounded float as a level of lo..hi; NaN gives lo. */
static inline int to_level(float r, int lo, int hi) { return r >= (float)hi ? hi : r > (float)lo ? (int)r : lo; }

#endif
