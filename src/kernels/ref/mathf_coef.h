/* mathf_coef.h - constants of exp, tanh, erf and log, shared by the scalar and the vector forms (mathf.h says how they
 * are used). Polynomials are minimax fits in binary32 coefficients, lowest power first; errors are relative unless said. */
#ifndef LOAM_KERNELS_MATHF_COEF_H
#define LOAM_KERNELS_MATHF_COEF_H

/* exp(r) = 1 + r + r^2 E(r), |r| <= ln(2)/2, error 2^-28.2 */
#define EXP_C2 0x1.fffffap-2f
#define EXP_C3 0x1.555492p-3f
#define EXP_C4 0x1.555a26p-5f
#define EXP_C5 0x1.123988p-7f
#define EXP_C6 0x1.694cd4p-10f
#define EXP_LOG2E 0x1.715476p0f
#define EXP_LN2_HI 0x1.62e430p-1f   /* ln(2) rounded; times a small integer it has at most 24 bits below 1/2 */
#define EXP_LN2_LO (-0x1.05c610p-29f)
#define EXP_MAGIC 0x1.8p23f         /* adding it rounds to an integer, which stands in the low bits */
#define EXP_LOW (-87.33654f)        /* below: +0 (the result would be subnormal) */
#define EXP_HIGH 88.72283f          /* above: +infinity */

/* tanh(x) = x + x^3 T(x^2), |x| < 0.625, error 2^-27.7 */
#define TANH_SMALL 0.625f
#define TANH_BIG 10.0f              /* from here on the result is 1 */
#define TANH_C1 (-0x1.555532p-2f)
#define TANH_C2 0x1.110704p-3f
#define TANH_C3 (-0x1.b838a0p-5f)
#define TANH_C4 0x1.5211c4p-6f
#define TANH_C5 (-0x1.758facp-8f)

/* erf(x) = x + x S(x^2), |x| < 0.92, error 2^-30 */
#define ERF_SMALL 0.92f
#define ERF_BIG 3.95f               /* from here on the result is 1 */
#define ERF_S0 0x1.06eba8p-3f
#define ERF_S1 (-0x1.812742p-2f)
#define ERF_S2 0x1.ce2df2p-4f
#define ERF_S3 (-0x1.b80db4p-6f)
#define ERF_S4 0x1.54c5dcp-8f
#define ERF_S5 (-0x1.aa51f4p-11f)
#define ERF_S6 0x1.5d6d2ap-14f
/* log(1 - erf(x)), 0.92 <= x <= 3.95; erf has the error 2^-28.8 */
#define ERF_L0 0x1.3dd0acp-12f
#define ERF_L1 (-0x1.2152b8p0f)
#define ERF_L2 (-0x1.438c58p-1f)
#define ERF_L3 (-0x1.c2836cp-4f)
#define ERF_L4 0x1.b01774p-6f
#define ERF_L5 (-0x1.36e41cp-8f)
#define ERF_L6 0x1.3744dap-11f
#define ERF_L7 (-0x1.7f860cp-15f)
#define ERF_L8 0x1.b345bcp-20f

/* log(1 + f) = f - f^2/2 + f^3 G(f), sqrt(1/2) <= 1 + f < sqrt(2), error 2^-28.1 */
#define LOG_G0 0x1.555554p-2f
#define LOG_G1 (-0x1.fffff8p-3f)
#define LOG_G2 0x1.999d44p-3f
#define LOG_G3 (-0x1.555c8cp-3f)
#define LOG_G4 0x1.23d54ep-3f
#define LOG_G5 (-0x1.fcbfeap-4f)
#define LOG_G6 0x1.de32ecp-4f
#define LOG_G7 (-0x1.d778e8p-4f)
#define LOG_G8 0x1.20456cp-4f
#define LOG_LN2_HI 0x1.62e400p-1f   /* 16 bits: exact times any exponent */
#define LOG_LN2_LO 0x1.7f7d1cp-20f

/* Activations */
#define GELU_K0 (-1.5957691216057308f)    /* -2 sqrt(2/pi) */
#define GELU_K1 (-0.0713548162726009f)    /* -2 sqrt(2/pi) * 0.044715 */
#define GELU_QUICK (-1.702f)
#define SQRT_HALF 0.70710678118654752f

#endif
