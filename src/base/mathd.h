/* mathd.h - ln, exp, pow, sin, cos of binary64 from plain additions and multiplications: the same bits on every machine
 * (files are compiled without contraction), so that no result of a C library enters a tensor. Errors stay below 1e-15
 * relative (ln, exp) and 1e-15 absolute (sin, cos for |x| < 2^20; 1e-8 up to 2^27): below the binary32 they end in.
 * Not for hot loops. NaN and infinities are not handled: callers give finite arguments (ln: positive). */
#ifndef LOAM_BASE_MATHD_H
#define LOAM_BASE_MATHD_H

#include <stdint.h>
#include <string.h>

#define MATHD_LN2_HI 6.93147180369123816490e-01
#define MATHD_LN2_LO 1.90821492927058770002e-10

static inline double mathd_ln(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) m *= 0.5, e++;
    /* ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172 */
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
    return (double)e * MATHD_LN2_HI + ((2.0 * s + 2.0 * s * sum) + (double)e * MATHD_LN2_LO);
}

static inline double mathd_exp(double x)
{
    if (x > 700.0) x = 700.0;
    if (x < -700.0) return 0.0;
    double n = (double)(int64_t)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    double r = (x - n * MATHD_LN2_HI) - n * MATHD_LN2_LO, sum = 1.0;
    for (int k = 16; k >= 1; k--) sum = 1.0 + sum * r / k;
    uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

static inline double mathd_pow(double x, double y) { return mathd_exp(y * mathd_ln(x)); }

/* Pi/2 in three parts of 33 bits: n times a part is exact for n < 2^20. */
static inline void mathd_sincos(double x, double *s, double *c)
{
    double n = (double)(int64_t)(x * 0.63661977236758134308 + (x < 0 ? -0.5 : 0.5));
    double r = x - n * 1.57079632673412561417e+00;
    r -= n * 6.07710050630396597660e-11;
    r -= n * 2.02226624879595063154e-21;
    double z = r * r, sn = 0.0, cs = 0.0;
    for (int k = 17; k >= 3; k -= 2) sn = (1.0 - sn) * z / (k * (k - 1.0));
    for (int k = 18; k >= 2; k -= 2) cs = (1.0 - cs) * z / (k * (k - 1.0));
    sn = r * (1.0 - sn);
    cs = 1.0 - cs;
    switch ((int64_t)n & 3) {
    case 0: *s = sn, *c = cs; break;
    case 1: *s = cs, *c = -sn; break;
    case 2: *s = -sn, *c = -cs; break;
    default: *s = -cs, *c = sn; break;
    }
}

#endif
