/* iq4.c - the non-linear 4-bit blocks: levels from one table of 16.
 *
 *   IQ4_NL   18 B,  32 values   d:f16 | nibbles[16]                                         y = d level
 *   IQ4_XS  136 B, 256 values   d:f16 | scales high:u16 (2 bits each) | scales low[4] (nibbles) | nibbles[8][16]
 *                                                                                           y = d (s - 32) level
 * Byte j of 16 nibble bytes: value j (low), value j + 16 (high), as in Q4_0. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/quant.h"

static void put_group(float *out, float scale, const uint8_t *nibbles)
{
    for (int j = 0; j < 16; j++) {
        out[j] = scale * (float)iq4_levels[nibbles[j] & 15];
        out[j + 16] = scale * (float)iq4_levels[nibbles[j] >> 4];
    }
}

void decode_iq4_nl(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 18) put_group(out + i, get_f16(b), b + 2);
}

void decode_iq4_xs(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 136) {
        float d = get_f16(b);
        for (int g = 0; g < 8; g++) {
            int s = (b[4 + g / 2] >> 4 * (g % 2) & 15) | (get_u16(b + 2) >> 2 * g & 3) << 4;
            put_group(out + i + 32 * g, d * (float)(s - 32), b + 8 + 16 * g);
        }
    }
}
