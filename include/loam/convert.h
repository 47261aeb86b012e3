/* loam/convert.h - many floats to and from the 16-bit formats. UNSTABLE: the lower tier may change between minor versions.
 *
 *   F16    sign, 5 bits of exponent, 10 of fraction (binary16)       BF16   the upper half of a float
 *
 * Widening is exact. Narrowing rounds once, to the nearest, ties to even, into subnormals too; what is too large becomes
 * infinity; a NaN stays a NaN with its sign (F16: without its payload). The results are the same bits on every processor,
 * whatever the thread's rounding of subnormals. The processor's own instructions are used where it has them.
 * n values; in and out may not overlap; n 0 is fine. All functions may be called from several threads at once. */
#ifndef LOAM_CONVERT_H
#define LOAM_CONVERT_H

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

LOAM_API void loam_f16_to_f32(const uint16_t *in, float *out, size_t n);
LOAM_API void loam_f32_to_f16(const float *in, uint16_t *out, size_t n);
LOAM_API void loam_bf16_to_f32(const uint16_t *in, float *out, size_t n);
LOAM_API void loam_f32_to_bf16(const float *in, uint16_t *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
