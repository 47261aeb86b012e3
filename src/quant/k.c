/* k.c - decoders of the K blocks: 256 values, sub-blocks of 16 or 32 with small integer scales.
 *
 *   Q2_K   84 B   sub[16] (scale low, minimum high nibble) | two bits[64] | d:f16 | dmin:f16
 *   Q3_K  110 B   third bit[32] | two bits[64] | sub[12] | d:f16
 *   Q4_K  144 B   d:f16 | dmin:f16 | sub[12] | nibbles[128]
 *   Q5_K  176 B   d:f16 | dmin:f16 | sub[12] | fifth bit[32] | nibbles[128]
 *   Q6_K  210 B   nibbles[128] | two bits[64] | sub:i8[16] | d:f16
 *   Q8_K  292 B   d:f32 | i8[256] | sums:i16[16] (of 16 levels each; activations only)
 *
 * Two bits: value 128 h + 32 k + l is bits 2k of byte 32 h + l. Third and fifth bit: value v is bit v/32 of byte v%32.
 * Nibbles of Q4_K, Q5_K: value 64 c + l low, 64 c + 32 + l high nibble of byte 32 c + l. Sub-block scales: k.h.
 * Nibbles of Q6_K: values 128 h + l, + 32 low, + 64, + 96 high nibble of bytes 64 h + l, + 32, + 0, + 32. */
#include "quant/k.h"
#include "quant/bytes.h"
#include "quant/quant.h"

void decode_q2_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 84) {
        float d = get_f16(b + 80), dmin = get_f16(b + 82);
        for (int s = 0; s < 16; s++) {
            const uint8_t *qs = b + 16 + 32 * (s / 8) + 16 * (s % 2);
            float scale = d * (float)(b[s] & 15), min = dmin * (float)(b[s] >> 4);
            for (int l = 0; l < 16; l++) out[i + 16 * s + l] = scale * (float)(qs[l] >> 2 * (s % 8 / 2) & 3) - min;
        }
    }
}

void decode_q3_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 110) {
        float d = get_f16(b + 108);
        for (int s = 0; s < 16; s++) {
            const uint8_t *qs = b + 32 + 32 * (s / 8) + 16 * (s % 2), *third = b + 16 * (s % 2);
            float scale = d * (float)(q3k_scale(b + 96, s) - 32);
            for (int l = 0; l < 16; l++) {
                int q = (qs[l] >> 2 * (s % 8 / 2) & 3) - (third[l] >> s / 2 & 1 ? 0 : 4);
                out[i + 16 * s + l] = scale * (float)q;
            }
        }
    }
}

void decode_q4_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 144) {
        float d = get_f16(b), dmin = get_f16(b + 2);
        for (int j = 0; j < 8; j++) {
            const uint8_t *qs = b + 16 + 32 * (j / 2);
            int sc, mn;
            q4k_scale_min(b + 4, j, &sc, &mn);
            float scale = d * (float)sc, min = dmin * (float)mn;
            for (int l = 0; l < 32; l++) out[i + 32 * j + l] = scale * (float)(qs[l] >> 4 * (j % 2) & 15) - min;
        }
    }
}

void decode_q5_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 176) {
        float d = get_f16(b), dmin = get_f16(b + 2);
        for (int j = 0; j < 8; j++) {
            const uint8_t *qs = b + 48 + 32 * (j / 2), *fifth = b + 16;
            int sc, mn;
            q4k_scale_min(b + 4, j, &sc, &mn);
            float scale = d * (float)sc, min = dmin * (float)mn;
            for (int l = 0; l < 32; l++) {
                int q = (qs[l] >> 4 * (j % 2) & 15) | (fifth[l] >> j & 1) << 4;
                out[i + 32 * j + l] = scale * (float)q - min;
            }
        }
    }
}

void decode_q6_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 210) {
        float d = get_f16(b + 208);
        for (int s = 0; s < 16; s++) {
            int h = s / 8, t = s % 8 / 2, l0 = 16 * (s % 2);
            const uint8_t *low = b + 64 * h + 32 * (t % 2) + l0, *high = b + 128 + 32 * h + l0;
            float scale = d * (float)(int8_t)b[192 + s];
            for (int l = 0; l < 16; l++) {
                int q = (low[l] >> 4 * (t / 2) & 15) | (high[l] >> 2 * t & 3) << 4;
                out[i + 16 * s + l] = scale * (float)(q - 32);
            }
        }
    }
}

void decode_q8_k(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 292) {
        float d = f32_of_bits(get_u32(b));
        for (int v = 0; v < 256; v++) out[i + v] = d * (float)(int8_t)b[4 + v];
    }
}
