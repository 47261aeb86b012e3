/* mul_grid.h - unpackers of the codebook types IQ1, IQ2, IQ3 for integer products, for any vector width.
 *
 * A grid entry is looked up for 4 or 8 values at a time, so these types are unpacked row by row into bytes, with signs
 * applied 32 values at once, and then transposed like the others (mul_levels.h). Integer levels and scales as in
 * ref/mul_grid.c: (2s + 1) with d / 8 or d / 4, eighths for IQ1. */
#ifndef LOAM_KERNELS_X86_MUL_GRID_H
#define LOAM_KERNELS_X86_MUL_GRID_H

#include "kernels/x86/mul_levels.h"
#include "quant/bytes.h"
#include "quant/codebooks.h"

/* 256 levels of one row. */
typedef void (*row_fn)(const uint8_t *b, int8_t *level);

INLINE void rows_levels(const uint8_t *b, size_t s, row_fn row, sink_fn sink, void *to)
{
    _Alignas(64) int8_t level[LANES][256];
    for (int r = 0; r < LANES; r++) row(b + (size_t)r * s, level[r]);
#pragma GCC unroll 1
    for (int block = 0; block < 8; block++) {
        vi q[8];
        rows_32((const uint8_t *)level[0] + 32 * block, 256, q);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = XOR(q[i], BYTES(0x80));
        sink(to, block, q);
    }
}

/* 0xFF in byte i where bit i of the mask is set. */
INLINE __m256i bytes_of_bits(uint32_t bits)
{
    const __m256i copies = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), _mm256_setr_epi64x(
        0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    return _mm256_cmpeq_epi8(_mm256_and_si256(copies, bit), bit);
}

INLINE void store_signed(int8_t *level, __m256i v, uint32_t signs)
{
    const __m256i m = bytes_of_bits(signs);
    _mm256_storeu_si256((__m256i *)level, _mm256_sub_epi8(_mm256_xor_si256(v, m), m));
}

/* Four indexes of 7 sign bits, from bit 0 on, as four masks of 8 bits with an even number of ones each. */
INLINE uint32_t four_signs(uint32_t v)
{
    const uint32_t k = (v & 0x7F) | (v << 1 & 0x7F00) | (v << 2 & 0x7F0000) | (v << 3 & 0x7F000000);
    uint32_t parity = k ^ k >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return k | (parity & 0x01010101) << 7;
}

INLINE __m256i four_entries(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return _mm256_set_epi64x((long long)d, (long long)c, (long long)b, (long long)a);
}

#define GRID_TYPE(suffix) \
    INLINE void suffix##_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to) \
    { \
        (void)high; \
        rows_levels(b, s, suffix##_row, sink, to); \
    }

/* Scales and d of all rows: SCALE(b, j) is the integer of sub-block j of the row at b. */
#define GRID_HEAD(suffix, subs, SCALE, D) \
    INLINE void suffix##_head(const uint8_t *at, size_t s, head256 *h) \
    { \
        for (int r = 0; r < LANES; r++) { \
            const uint8_t *b = at + (size_t)r * s; \
            for (int j = 0; j < (subs); j++) h->scale[j][r] = (float)(2 * (int)(SCALE) + 1); \
            h->d[r] = (D); \
        } \
    }

/* ---- IQ2 --------------------------------------------------------------------------------------------------------- */

INLINE void iq2_xxs_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint8_t *at = b + 2 + 8 * g;
        store_signed(level + 32 * g, four_entries(iq2xxs_grid[at[0]], iq2xxs_grid[at[1]], iq2xxs_grid[at[2]],
            iq2xxs_grid[at[3]]), four_signs(get_u32(at + 4)));
    }
}
GRID_HEAD(iq2_xxs, 8, get_u32(b + 6 + 8 * j) >> 28, get_f16(b) * 0.125f)
GRID_TYPE(iq2_xxs)

INLINE void iq2_xs_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        uint32_t q[4], signs = 0;
        for (int k = 0; k < 4; k++) {
            q[k] = get_u16(b + 2 + 8 * g + 2 * k);
            signs |= (q[k] >> 9) << 7 * k;
        }
        store_signed(level + 32 * g, four_entries(iq2xs_grid[q[0] & 511], iq2xs_grid[q[1] & 511], iq2xs_grid[q[2] & 511],
            iq2xs_grid[q[3] & 511]), four_signs(signs));
    }
}
GRID_HEAD(iq2_xs, 16, b[66 + j / 2] >> 4 * (j % 2) & 15, get_f16(b) * 0.125f)
GRID_TYPE(iq2_xs)

INLINE void iq2_s_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint32_t top = b[66 + g];
        const uint8_t *q = b + 2 + 4 * g;
        store_signed(level + 32 * g, four_entries(iq2s_grid[q[0] | (top << 8 & 0x300)], iq2s_grid[q[1] | (top << 6 & 0x300)],
            iq2s_grid[q[2] | (top << 4 & 0x300)], iq2s_grid[q[3] | (top << 2 & 0x300)]), get_u32(b + 34 + 4 * g));
    }
}
GRID_HEAD(iq2_s, 16, b[74 + j / 2] >> 4 * (j % 2) & 15, get_f16(b) * 0.125f)
GRID_TYPE(iq2_s)

/* ---- IQ3 --------------------------------------------------------------------------------------------------------- */

#define EIGHT_ENTRIES(grid, index) _mm256_setr_epi32((int)grid[index(0)], (int)grid[index(1)], (int)grid[index(2)], \
    (int)grid[index(3)], (int)grid[index(4)], (int)grid[index(5)], (int)grid[index(6)], (int)grid[index(7)])

INLINE void iq3_xxs_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b + 2 + 8 * g;
#define INDEX(i) q[i]
        store_signed(level + 32 * g, EIGHT_ENTRIES(iq3xxs_grid, INDEX), four_signs(get_u32(b + 66 + 4 * g)));
#undef INDEX
    }
}
GRID_HEAD(iq3_xxs, 8, get_u32(b + 66 + 4 * j) >> 28, get_f16(b) * 0.25f)
GRID_TYPE(iq3_xxs)

INLINE void iq3_s_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b + 2 + 8 * g;
        const uint32_t top = (uint32_t)b[66 + g] << 8;
#define INDEX(i) (q[i] | (top >> (i) & 256))
        store_signed(level + 32 * g, EIGHT_ENTRIES(iq3s_grid, INDEX), get_u32(b + 74 + 4 * g));
#undef INDEX
    }
}
GRID_HEAD(iq3_s, 8, b[106 + j / 2] >> 4 * (j % 2) & 15, get_f16(b))
GRID_TYPE(iq3_s)

/* ---- IQ1 --------------------------------------------------------------------------------------------------------- */

/* Eighths: 8 * entry + 1, or - 1 where the group of eight is shifted down (bit k of `down`). */
INLINE void store_shifted(int8_t *level, __m256i v, uint32_t down)
{
    const uint32_t bytes = (down & 1) * 0xFFu | (down >> 1 & 1) * 0xFF00u | (down >> 2 & 1) * 0xFF0000u | (down >> 3 & 1) * 0xFF000000u;
    const __m256i eighths = _mm256_and_si256(_mm256_slli_epi16(v, 3), _mm256_set1_epi8((char)0xF8));
    _mm256_storeu_si256((__m256i *)level, _mm256_add_epi8(eighths, _mm256_or_si256(bytes_of_bits(bytes), _mm256_set1_epi8(1))));
}

INLINE void iq1_s_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint32_t top = get_u16(b + 34 + 2 * g);
        const uint8_t *q = b + 2 + 4 * g;
        store_shifted(level + 32 * g, four_entries(iq1s_grid[q[0] | (top << 8 & 0x700)], iq1s_grid[q[1] | (top << 5 & 0x700)],
            iq1s_grid[q[2] | (top << 2 & 0x700)], iq1s_grid[q[3] | (top >> 1 & 0x700)]), top >> 15 ? 15 : 0);
    }
}
GRID_HEAD(iq1_s, 8, get_u16(b + 34 + 2 * j) >> 12 & 7, get_f16(b) * 0.125f)
GRID_TYPE(iq1_s)

INLINE void iq1_m_row(const uint8_t *b, int8_t *level)
{
    for (int g = 0; g < 8; g++) {
        const uint32_t top = get_u16(b + 32 + 2 * g);
        const uint8_t *q = b + 4 * g;
        const uint32_t down = (top >> 3 & 1) | (top >> 6 & 2) | (top >> 9 & 4) | (top >> 12 & 8);
        store_shifted(level + 32 * g, four_entries(iq1s_grid[q[0] | (top << 8 & 0x700)], iq1s_grid[q[1] | (top << 4 & 0x700)],
            iq1s_grid[q[2] | (top & 0x700)], iq1s_grid[q[3] | (top >> 4 & 0x700)]), down);
    }
}
GRID_HEAD(iq1_m, 16, get_u16(b + 48 + 2 * (j / 4)) >> 3 * (j % 4) & 7, f16_to_f32(iq1_m_scale(b)) * 0.125f)
GRID_TYPE(iq1_m)

#endif
