/* mul_super.c - unpackers of the super-block types (256 values) to integers and scales (ref/mul.h): K, ternary, IQ4_XS.
 * The codebook types with grids are in mul_grid.c. */
#include <string.h>

#include "kernels/ref/mul_types.h"
#include "quant/bytes.h"
#include "quant/codebooks.h"

/* Sub-blocks of 32 values count as two of 16. */
static void both(int16_t *of16, int j, int value) { of16[2 * j] = of16[2 * j + 1] = (int16_t)value; }

static void no_minima(weight256 *w)
{
    memset(w->min, 0, sizeof w->min);
    w->dmin = 0.0f;
}

/* Two bits of value v: byte 32 * (v / 128) + v % 32, bits 2 * ((v % 128) / 32). */
static int two_bits(const uint8_t *qs, int v) { return qs[32 * (v / 128) + v % 32] >> 2 * (v % 128 / 32) & 3; }

void unpack_q2_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 84 * i;
    for (int v = 0; v < 256; v++) w->level[v] = (int8_t)two_bits(b + 16, v);
    for (int j = 0; j < 16; j++) {
        w->scale[j] = b[j] & 15;
        w->min[j] = b[j] >> 4;
    }
    w->d = get_f16(b + 80);
    w->dmin = get_f16(b + 82);
}

void unpack_q3_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 110 * i, *s = b + 96;
    for (int v = 0; v < 256; v++) w->level[v] = (int8_t)(two_bits(b + 32, v) - (b[v % 32] >> v / 32 & 1 ? 0 : 4));
    for (int j = 0; j < 16; j++) {
        const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
        w->scale[j] = (int16_t)((low | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4) - 32);
    }
    w->d = get_f16(b + 108);
    no_minima(w);
}

/* Eight scales and eight minima of 6 bits in 12 bytes. */
static void six_bits(const uint8_t *s, weight256 *w)
{
    for (int j = 0; j < 4; j++) {
        both(w->scale, j, s[j] & 63);
        both(w->min, j, s[j + 4] & 63);
        both(w->scale, j + 4, (s[j + 8] & 15) | (s[j] >> 6) << 4);
        both(w->min, j + 4, s[j + 8] >> 4 | (s[j + 4] >> 6) << 4);
    }
}

static int k_nibble(const uint8_t *qs, int v) { return qs[32 * (v / 64) + v % 32] >> (v % 64 < 32 ? 0 : 4) & 15; }

void unpack_q4_k_head(const uint8_t *b, weight256 *w)
{
    six_bits(b + 4, w);
    w->d = get_f16(b);
    w->dmin = get_f16(b + 2);
}

void unpack_q4_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 144 * i;
    for (int v = 0; v < 256; v++) w->level[v] = (int8_t)k_nibble(b + 16, v);
    unpack_q4_k_head(b, w);
}

void unpack_q5_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 176 * i;
    for (int v = 0; v < 256; v++) w->level[v] = (int8_t)(k_nibble(b + 48, v) | (b[16 + v % 32] >> v / 32 & 1) << 4);
    six_bits(b + 4, w);
    w->d = get_f16(b);
    w->dmin = get_f16(b + 2);
}

void unpack_q6_k_head(const uint8_t *b, weight256 *w)
{
    for (int j = 0; j < 16; j++) w->scale[j] = (int8_t)b[192 + j];
    w->d = get_f16(b + 208);
    no_minima(w);
}

void unpack_q6_k(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 210 * i;
    for (int v = 0; v < 256; v++) {
        const int h = v / 128, t = v % 128 / 32, l = v % 32;
        const int low = b[64 * h + 32 * (t % 2) + l] >> (t < 2 ? 0 : 4) & 15;
        const int high = b[128 + 32 * h + l] >> 2 * t & 3;
        w->level[v] = (int8_t)((low | high << 4) - 32);
    }
    unpack_q6_k_head(b, w);
}

static void unit_scales(weight256 *w)
{
    for (int j = 0; j < 16; j++) w->scale[j] = 1;
    no_minima(w);
}

/* Five ternary digits a byte (four in the last four bytes): a byte is the base-3 fraction times 256, rounded up, so
 * the n-th digit comes out of the carry of a multiplication by 3. */
void unpack_tq1_0(const uint8_t *row, int64_t i, weight256 *w)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
    const uint8_t *b = row + 54 * i;
    for (int v = 0; v < 256; v++) {
        const int byte = v < 160 ? v % 32 : v < 240 ? 32 + (v - 160) % 16 : 48 + (v - 240) % 4;
        const int n = v < 160 ? v / 32 : v < 240 ? (v - 160) / 16 : (v - 240) / 4;
        w->level[v] = (int8_t)(((uint8_t)(b[byte] * power[n]) * 3 >> 8) - 1);
    }
    w->d = get_f16(b + 52);
    unit_scales(w);
}

void unpack_tq2_0(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 66 * i;
    for (int v = 0; v < 256; v++) w->level[v] = (int8_t)(two_bits(b, v) - 1);
    w->d = get_f16(b + 64);
    unit_scales(w);
}

void unpack_iq4_xs(const uint8_t *row, int64_t i, weight256 *w)
{
    const uint8_t *b = row + 136 * i;
    const unsigned high = get_u16(b + 2);
    for (int g = 0; g < 8; g++) {
        const uint8_t *qs = b + 8 + 16 * g;
        for (int j = 0; j < 16; j++) {
            w->level[32 * g + j] = iq4_levels[qs[j] & 15];
            w->level[32 * g + 16 + j] = iq4_levels[qs[j] >> 4];
        }
        both(w->scale, g, (int)((b[4 + g / 2] >> 4 * (g % 2) & 15) | (high >> 2 * g & 3) << 4) - 32);
    }
    w->d = get_f16(b);
    no_minima(w);
}
