/* row_codec.c - rows of the element types as the kernels read and write them: the float types here, block types through
 * src/quant, whose codecs are the law. Encoders exist for the types that a cache may have. */
#include <string.h>

#include "base/half.h"
#include "kernels/kernels.h"
#include "kernels/ref/row.h"

static void decode_row_f32(const void *in, float *out, int64_t n) { memcpy(out, in, (size_t)n * sizeof *out); }
static void encode_row_f32(const float *in, void *out, int64_t n) { memcpy(out, in, (size_t)n * sizeof *in); }

/* Rows may stand at any address. */
#define HALF_CODEC(type) \
    static void decode_row_##type(const void *in, float *out, int64_t n) \
    { \
        const uint8_t *p = in; \
        for (int64_t i = 0; i < n; i++) { \
            uint16_t h; \
            memcpy(&h, p + 2 * i, 2); \
            out[i] = type##_to_f32(h); \
        } \
    } \
    static void encode_row_##type(const float *in, void *out, int64_t n) \
    { \
        uint8_t *p = out; \
        for (int64_t i = 0; i < n; i++) { \
            uint16_t h = f32_to_##type(in[i]); \
            memcpy(p + 2 * i, &h, 2); \
        } \
    }
HALF_CODEC(f16)
HALF_CODEC(bf16)

void kernels_ref_codec(kernels *k)
{
    k->decode[LOAM_F32] = decode_row_f32;
    k->decode[LOAM_F16] = decode_row_f16;
    k->decode[LOAM_BF16] = decode_row_bf16;
    k->encode[LOAM_F32] = encode_row_f32;
    k->encode[LOAM_F16] = encode_row_f16;
    k->encode[LOAM_BF16] = encode_row_bf16;
}
