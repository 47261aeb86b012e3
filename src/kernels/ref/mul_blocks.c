/* mul_blocks.c - unpackers of the 32-value types to integers and scales (ref/mul.h). Blocks as drawn in docs/formats.
 * Codebook, ternary and super-block types: mul_super.c. */
#include "kernels/ref/mul_types.h"
#include "quant/bytes.h"
#include "quant/codebooks.h"

static void scale(weight32 *w, float d, float m)
{
    w->d[0] = w->d[1] = d;
    w->m = m;
}

/* Byte j of qs holds value j in its low and value j + 16 in its high half. */
static void nibbles(const uint8_t *qs, int8_t *level, int offset)
{
    for (int j = 0; j < 16; j++) {
        level[j] = (int8_t)((qs[j] & 15) - offset);
        level[j + 16] = (int8_t)((qs[j] >> 4) - offset);
    }
}

static void nibbles_through(const uint8_t *qs, int8_t *level, const int8_t *table)
{
    for (int j = 0; j < 16; j++) {
        level[j] = table[qs[j] & 15];
        level[j + 16] = table[qs[j] >> 4];
    }
}

static void fifth_bits(uint32_t qh, int8_t *level)
{
    for (int v = 0; v < 32; v++) level[v] = (int8_t)(level[v] + ((qh >> v & 1) << 4));
}

void unpack_q4_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 18 * i;
    nibbles(b + 2, w->level, 8);
    scale(w, get_f16(b), 0.0f);
}

void unpack_q4_1(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 20 * i;
    nibbles(b + 4, w->level, 0);
    scale(w, get_f16(b), get_f16(b + 2));
}

void unpack_q5_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 22 * i;
    nibbles(b + 6, w->level, 16);
    fifth_bits(get_u32(b + 2), w->level);
    scale(w, get_f16(b), 0.0f);
}

void unpack_q5_1(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 24 * i;
    nibbles(b + 8, w->level, 0);
    fifth_bits(get_u32(b + 4), w->level);
    scale(w, get_f16(b), get_f16(b + 2));
}

void unpack_q8_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 34 * i;
    memcpy(w->level, b + 2, 32);
    scale(w, get_f16(b), 0.0f);
}

void unpack_iq4_nl(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 18 * i;
    nibbles_through(b + 2, w->level, iq4_levels);
    scale(w, get_f16(b), 0.0f);
}

void unpack_mxfp4(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 17 * i;
    nibbles_through(b + 1, w->level, e2m1_levels);
    scale(w, e8m0_half(b[0]), 0.0f);
}

/* A block of 64 has four scales, one for each 16 values, whose nibbles lie 8 + 8. */
void unpack_nvfp4(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 36 * (i / 2);
    for (int s = 0; s < 2; s++) {
        const int sub = (int)(2 * (i % 2)) + s;
        for (int j = 0; j < 8; j++) {
            const uint8_t q = b[4 + 8 * sub + j];
            w->level[16 * s + j] = e2m1_levels[q & 15];
            w->level[16 * s + 8 + j] = e2m1_levels[q >> 4];
        }
        w->d[s] = ue4m3_half(b[sub]);
    }
    w->m = 0.0f;
}

void unpack_q1_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 18 * (i / 4), *qs = b + 2 + 4 * (i % 4);
    for (int v = 0; v < 32; v++) w->level[v] = qs[v / 8] >> v % 8 & 1 ? 1 : -1;
    scale(w, get_f16(b), 0.0f);
}

void unpack_q2_0(const uint8_t *row, int64_t i, weight32 *w)
{
    const uint8_t *b = row + 18 * (i / 2), *qs = b + 2 + 8 * (i % 2);
    for (int v = 0; v < 32; v++) w->level[v] = (int8_t)((qs[v / 4] >> 2 * (v % 4) & 3) - 1);
    scale(w, get_f16(b), 0.0f);
}
