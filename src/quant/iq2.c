/* iq2.c - codecs of the 2-bit codebook blocks: 256 values, groups of eight from a grid, with signs.
 *
 *   IQ2_XXS  66 B   d:f16 | 8 x { index:u8[4], u32: four 7-bit sign indexes, scale in bits 28-31 }
 *   IQ2_XS   74 B   d:f16 | 32 x u16: index 9 bits, sign index 7 bits | scale nibble[16]
 *   IQ2_S    82 B   d:f16 | index low 8 bits[32] | sign mask[32] | index high 2 bits[8] | scale nibble[16]
 *
 * Scale nibble s: of 32 values in IQ2_XXS, of 16 in the others (low nibble first). y = d (0.5 + s) / 4 * grid * sign. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/grid.h"
#include "quant/quant.h"

/* Eight values of one grid entry. */
static inline void put_eight(float *out, float scale, uint64_t entry, uint8_t signs)
{
    for (int i = 0; i < 8; i++) {
        float y = scale * (float)(entry >> 8 * i & 255);
        out[i] = y * (signs >> i & 1 ? -1.0f : 1.0f);
    }
}

static inline float scale_of(float d, int s) { return d * (0.5f + (float)s) * 0.25f; }

void decode_iq2_xxs(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 66) {
        float d = get_f16(b);
        for (int k = 0; k < 32; k++) {
            const uint8_t *group = b + 2 + 8 * (k / 4);
            uint32_t word = get_u32(group + 4);
            put_eight(out + i + 8 * k, scale_of(d, (int)(word >> 28)), iq2xxs_grid[group[k % 4]],
                      even_signs(word >> 7 * (k % 4) & 127));
        }
    }
}

void decode_iq2_xs(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 74) {
        float d = get_f16(b);
        for (int k = 0; k < 32; k++) {
            uint16_t word = get_u16(b + 2 + 2 * k);
            int s = b[66 + k / 4] >> 4 * (k / 2 % 2) & 15;
            put_eight(out + i + 8 * k, scale_of(d, s), iq2xs_grid[word & 511], even_signs(word >> 9));
        }
    }
}

void decode_iq2_s(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 82) {
        float d = get_f16(b);
        for (int k = 0; k < 32; k++) {
            int index = b[2 + k] | (b[66 + k / 4] >> 2 * (k % 4) & 3) << 8;
            int s = b[74 + k / 4] >> 4 * (k / 2 % 2) & 15;
            put_eight(out + i + 8 * k, scale_of(d, s), iq2s_grid[index], b[34 + k]);
        }
    }
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

void encode_iq2_xxs(const float *in, void *out, int64_t n, const float *weights)
{
    static const signed_rule rule = { .type = LOAM_IQ2_XXS, .size = 32, .top = 5, .reach = 6, .step = 0.1f, .zero = 1e-15f,
                                      .weights_mean = 1.0f, .choose = CHOOSE_ALL, .even_signs = true, .fit_range = true };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 66) {
        signed_block s;
        signed_search(&rule, in + i, weights ? weights + i : NULL, &s);
        put_f16(b, s.d);
        for (int g = 0; g < 8; g++) {
            uint8_t *group = b + 2 + 8 * g;
            uint32_t word = (uint32_t)s.scale[g] << 28;
            for (int k = 0; k < 4; k++) {
                group[k] = (uint8_t)s.entry[4 * g + k];
                word |= (uint32_t)(s.signs[4 * g + k] & 127) << 7 * k;
            }
            put_u32(group + 4, word);
        }
    }
}

void encode_iq2_xs(const float *in, void *out, int64_t n, const float *weights)
{
    static const signed_rule rule = { .type = LOAM_IQ2_XS, .size = 16, .top = 5, .reach = 9, .step = 0.1f, .zero = 1e-15f,
                                      .weights_mean = 1.0f, .choose = CHOOSE_OFF, .even_signs = true };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 74) {
        signed_block s;
        signed_search(&rule, in + i, weights ? weights + i : NULL, &s);
        put_f16(b, s.d);
        for (int k = 0; k < 32; k++) put_u16(b + 2 + 2 * k, (uint16_t)(s.entry[k] | (s.signs[k] & 127) << 9));
        for (int g = 0; g < 8; g++) b[66 + g] = (uint8_t)(s.scale[2 * g] | s.scale[2 * g + 1] << 4);
    }
}

void encode_iq2_s(const float *in, void *out, int64_t n, const float *weights)
{
    static const signed_rule rule = { .type = LOAM_IQ2_S, .size = 16, .top = 5, .reach = 9, .step = 0.1f, .zero = 1e-8f,
                                      .weights_mean = 2.0f, .choose = CHOOSE_OFF };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 82) {
        signed_block s;
        signed_search(&rule, in + i, weights ? weights + i : NULL, &s);
        put_f16(b, s.d * 0.9875f);
        memset(b + 66, 0, 8);
        for (int k = 0; k < 32; k++) {
            b[2 + k] = (uint8_t)s.entry[k];
            b[34 + k] = s.signs[k];
            b[66 + k / 4] |= (uint8_t)(s.entry[k] >> 8 << 2 * (k % 4));
        }
        for (int g = 0; g < 8; g++) b[74 + g] = (uint8_t)(s.scale[2 * g] | s.scale[2 * g + 1] << 4);
    }
}
