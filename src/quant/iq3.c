/* iq3.c - codecs of the 3-bit codebook blocks: 256 values, groups of four from a grid, with signs.
 *
 *   IQ3_XXS   98 B   d:f16 | index[64] | 8 x u32: four 7-bit sign indexes, scale of 32 values in bits 28-31
 *   IQ3_S    110 B   d:f16 | index low 8 bits[64] | index bit 8 (64 bits) | sign mask[32] | scale nibble[8]
 *
 * IQ3_XXS: y = d (0.5 + s) / 2 * grid * sign.   IQ3_S: y = d (1 + 2 s) * grid * sign. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/grid.h"
#include "quant/quant.h"

/* Four values of one grid entry; bit i of signs negates value i. */
static inline void put_four(float *out, float scale, uint32_t entry, unsigned signs)
{
    for (int i = 0; i < 4; i++) {
        float y = scale * (float)(entry >> 8 * i & 255);
        out[i] = y * (signs >> i & 1 ? -1.0f : 1.0f);
    }
}

void decode_iq3_xxs(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 98) {
        float d = get_f16(b);
        for (int p = 0; p < 64; p++) {
            uint32_t word = get_u32(b + 66 + 4 * (p / 8));
            uint8_t signs = even_signs(word >> 7 * (p / 2 % 4) & 127);
            float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
            put_four(out + i + 4 * p, scale, iq3xxs_grid[b[2 + p]], signs >> 4 * (p % 2));
        }
    }
}

void decode_iq3_s(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 110) {
        float d = get_f16(b);
        for (int p = 0; p < 64; p++) {
            int index = b[2 + p] | (b[66 + p / 8] >> p % 8 & 1) << 8;
            int s = b[106 + p / 16] >> 4 * (p / 8 % 2) & 15;
            put_four(out + i + 4 * p, d * (float)(1 + 2 * s), iq3s_grid[index], (unsigned)b[74 + p / 2] >> 4 * (p % 2));
        }
    }
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

void encode_iq3_xxs(const float *in, void *out, int64_t n, const float *weights)
{
    static const signed_rule rule = { .type = LOAM_IQ3_XXS, .size = 32, .top = 15, .reach = 15, .step = 0.2f, .zero = 1e-8f,
                                      .weights_mean = 2.0f, .choose = CHOOSE_OFF, .even_signs = true };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 98) {
        signed_block s;
        signed_search(&rule, in + i, weights ? weights + i : NULL, &s);
        put_f16(b, s.d * 1.0125f);
        for (int p = 0; p < 64; p++) b[2 + p] = (uint8_t)s.entry[p];
        for (int g = 0; g < 8; g++) {
            uint32_t word = (uint32_t)s.scale[g] << 28;
            for (int k = 0; k < 4; k++) word |= (uint32_t)(s.signs[4 * g + k] & 127) << 7 * k;
            put_u32(b + 66 + 4 * g, word);
        }
    }
}

void encode_iq3_s(const float *in, void *out, int64_t n, const float *weights)
{
    static const signed_rule rule = { .type = LOAM_IQ3_S, .size = 32, .top = 15, .reach = 9, .step = 0.2f, .zero = 0.0f,
                                      .weights_mean = 2.0f, .choose = CHOOSE_ALL_IF_OFF };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 110) {
        signed_block s;
        signed_search(&rule, in + i, weights ? weights + i : NULL, &s);
        put_f16(b, s.d * 1.033f);
        memset(b + 66, 0, 8);
        for (int p = 0; p < 64; p++) {
            b[2 + p] = (uint8_t)s.entry[p];
            b[66 + p / 8] |= (uint8_t)(s.entry[p] >> 8 << p % 8);
        }
        memcpy(b + 74, s.signs, 32);
        for (int g = 0; g < 4; g++) b[106 + g] = (uint8_t)(s.scale[2 * g] | s.scale[2 * g + 1] << 4);
    }
}
