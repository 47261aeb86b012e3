/* convert.c - include/loam/convert.h: the row codecs of the kernel table under public names. */
#include "loam/convert.h"

#include "kernels/kernels.h"

void loam_f16_to_f32(const uint16_t *in, float *out, size_t n) { kernels_get()->decode[LOAM_F16](in, out, (int64_t)n); }
void loam_f32_to_f16(const float *in, uint16_t *out, size_t n) { kernels_get()->encode[LOAM_F16](in, out, (int64_t)n); }
void loam_bf16_to_f32(const uint16_t *in, float *out, size_t n) { kernels_get()->decode[LOAM_BF16](in, out, (int64_t)n); }
void loam_f32_to_bf16(const float *in, uint16_t *out, size_t n) { kernels_get()->encode[LOAM_BF16](in, out, (int64_t)n); }
