/* iq1.c - decoders of the ternary codebook blocks: 256 values, groups of eight from a grid, shifted by an eighth.
 *
 *   IQ1_S  50 B   d:f16 | index low 8 bits[32] | 8 x u16: four index bits 8-10 (3 each), scale of 32 values in bits
 *                 12-14, bit 15: shift is negative
 *   IQ1_M  56 B   index low 8 bits[32] | nibble[32]: index bits 8-10, bit 3: shift is negative | 4 x u16: four 3-bit scales
 *                 of 16 values, and a quarter of d (f16) in bits 12-15, low quarter first
 *
 * y = d (2 s + 1) * (grid + shift), shift = +-1/8. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/quant.h"

static inline void put_shifted(float *out, float scale, uint64_t entry, float shift)
{
    for (int i = 0; i < 8; i++) out[i] = scale * ((float)(int8_t)(entry >> 8 * i & 255) + shift);
}

void decode_iq1_s(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 50) {
        float d = get_f16(b);
        for (int k = 0; k < 32; k++) {
            uint16_t word = get_u16(b + 34 + 2 * (k / 4));
            int index = b[2 + k] | (word >> 3 * (k % 4) & 7) << 8;
            put_shifted(out + i + 8 * k, d * (float)(2 * (word >> 12 & 7) + 1), iq1s_grid[index],
                        word >> 15 ? -0.125f : 0.125f);
        }
    }
}

void decode_iq1_m(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 56) {
        float d = f16_to_f32(iq1_m_scale(b));
        for (int k = 0; k < 32; k++) {
            int nibble = b[32 + k / 2] >> 4 * (k % 2) & 15, index = b[k] | (nibble & 7) << 8;
            int s = get_u16(b + 48 + 2 * (k / 8)) >> 3 * (k / 2 % 4) & 7;
            put_shifted(out + i + 8 * k, d * (float)(2 * s + 1), iq1s_grid[index], nibble & 8 ? -0.125f : 0.125f);
        }
    }
}
