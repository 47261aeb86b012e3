/* mul_levels.h - unpackers: levels and scales of 16 rows, for every type that has a fast form.
 *
 * X_levels hands the bytes of a piece to the sink, 32 values (8 registers) at a time;
 * X_head fills the scales of a super-block. Layouts of blocks: docs/formats. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_LEVELS_H
#define LOAM_KERNELS_AVX512VNNI_MUL_LEVELS_H

#include "kernels/x86/avx512vnni/mul.h"

/* 32 values from 32 * block on, of all 16 rows; blocks come in ascending order. */
typedef void (*sink_fn)(void *sink, int block, const __m512i q[8]);

#define BYTES(v) _mm512_set1_epi8((char)(v))
#define AND(a, b) _mm512_and_si512(a, b)
#define OR(a, b) _mm512_or_si512(a, b)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define RIGHT(a, n) _mm512_srli_epi16(a, n)
#define LEFT(a, n) _mm512_slli_epi16(a, n)
/* (a & m) | (b & ~m) */
#define SELECT(m, a, b) _mm512_ternarylogic_epi32(m, a, b, 0xCA)
/* a | (b & c) */
#define OR_AND(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0xF8)

/* ---- transposes -------------------------------------------------------------------------------------------------- */

/* Four registers whose 128-bit lanes hold four dwords of one row become four with one dword of four rows. */
INLINE void transpose_lanes(const __m512i a[4], __m512i t[4])
{
    const __m512i b0 = _mm512_unpacklo_epi32(a[0], a[1]), b1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const __m512i b2 = _mm512_unpacklo_epi32(a[2], a[3]), b3 = _mm512_unpackhi_epi32(a[2], a[3]);
    t[0] = _mm512_unpacklo_epi64(b0, b2);
    t[1] = _mm512_unpackhi_epi64(b0, b2);
    t[2] = _mm512_unpacklo_epi64(b1, b3);
    t[3] = _mm512_unpackhi_epi64(b1, b3);
}

/* t[j] = dword j of the 16 bytes at p of each row. */
INLINE void rows_16(const uint8_t *p, size_t s, __m512i t[4])
{
    __m512i a[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = p + (size_t)i * s;
        a[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 4 * s)), 1);
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 8 * s)), 2);
        a[i] = _mm512_inserti32x4(a[i], _mm_loadu_si128((const __m128i *)(at + 12 * s)), 3);
    }
    transpose_lanes(a, t);
}

INLINE __m512i two_rows_32(const uint8_t *low, const uint8_t *high)
{
    return _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)low)), 0xF0,
                                       _mm256_loadu_si256((const __m256i *)high));
}

/* t[j] = dword j of the 32 bytes at p of each row. */
INLINE void rows_32(const uint8_t *p, size_t s, __m512i t[8])
{
    __m512i a[4], b[4], c[4], e[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = p + (size_t)i * s;
        a[i] = two_rows_32(at, at + 4 * s);
        b[i] = two_rows_32(at + 8 * s, at + 12 * s);
    }
    transpose_lanes(a, c);
    transpose_lanes(b, e);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(c[j], e[j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(c[j], e[j], 0xDD);
    }
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

INLINE void q8_0_levels(const uint8_t *b, size_t s, sink_fn sink, void *to)
{
    __m512i q[8];
    rows_32(b + 2, s, q);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) q[i] = XOR(q[i], BYTES(0x80));
    sink(to, 0, q);
}

/* Low halves of the bytes are values 0..15, high halves 16..31. */
INLINE void split_nibbles(const uint8_t *qs, size_t s, __m512i q[8])
{
    __m512i t[4];
    rows_16(qs, s, t);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        q[i] = AND(t[i], BYTES(15));
        q[4 + i] = AND(RIGHT(t[i], 4), BYTES(15));
    }
}

INLINE void q4_0_levels(const uint8_t *b, size_t s, sink_fn sink, void *to)
{
    __m512i q[8];
    split_nibbles(b + 2, s, q);
    sink(to, 0, q);
}

INLINE void q4_1_levels(const uint8_t *b, size_t s, sink_fn sink, void *to)
{
    __m512i q[8];
    split_nibbles(b + 4, s, q);
    sink(to, 0, q);
}

/* ---- super-blocks ------------------------------------------------------------------------------------------------ */

/* Byte j of each dword as a float. */
INLINE __m512 byte_of(__m512i v, int j)
{
    return _mm512_cvtepi32_ps(j == 3 ? _mm512_srli_epi32(v, 24) : AND(_mm512_srli_epi32(v, 8 * j), _mm512_set1_epi32(255)));
}
INLINE __m512 signed_byte_of(__m512i v, int j)
{
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * j), 24));
}

/* Bytes 2j and 2j + 1 of each dword as 16-bit halves. */
INLINE __m512i byte_pair(__m512i v, int j)
{
    const __m512i even = AND(_mm512_srli_epi32(v, 16 * j), _mm512_set1_epi32(255));
    return OR(even, AND(j ? _mm512_srli_epi32(v, 8) : _mm512_slli_epi32(v, 8), _mm512_set1_epi32(0x00FF0000)));
}

/* d, dmin and the 6-bit scales and minima of Q4_K and Q5_K: the 16 bytes at b. */
INLINE void q4_K_head(const uint8_t *b, size_t s, head256 *h)
{
    const __m512i low6 = BYTES(63), low4 = BYTES(15), high2 = BYTES(48);
    __m512i t[4];
    rows_16(b, s, t);
    const __m512i scales[2] = { AND(t[1], low6), OR(AND(t[3], low4), AND(_mm512_srli_epi32(t[1], 2), high2)) };
    const __m512i minima[2] = { AND(t[2], low6),
        OR(AND(_mm512_srli_epi32(t[3], 4), low4), AND(_mm512_srli_epi32(t[2], 2), high2)) };
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) _mm512_store_ps(h->scale[j], byte_of(scales[j / 4], j % 4));
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) _mm512_store_si512(h->min[j], byte_pair(minima[j / 2], j % 2));
    _mm512_store_ps(h->d, halves_to_floats(t[0]));
    _mm512_store_ps(h->dmin, halves_to_floats(_mm512_srli_epi32(t[0], 16)));
}

INLINE void q4_K_levels(const uint8_t *b, size_t s, sink_fn sink, void *to)
{
#pragma GCC unroll 1
    for (int c = 0; c < 4; c++) {
        __m512i t[8], q[8];
        rows_32(b + 16 + 32 * c, s, t);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = AND(t[i], BYTES(15));
        sink(to, 2 * c, q);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = AND(RIGHT(t[i], 4), BYTES(15));
        sink(to, 2 * c + 1, q);
    }
}

INLINE void q6_K_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4];
    rows_16(b + 192, s, t);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) _mm512_store_ps(h->scale[j], signed_byte_of(t[j / 4], j % 4));
    uint16_t d[16];
    for (int r = 0; r < 16; r++) __builtin_memcpy(&d[r], b + 208 + (size_t)r * s, 2);
    _mm512_store_ps(h->d, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)d)));
}

INLINE void q6_K_levels(const uint8_t *b, size_t s, sink_fn sink, void *to)
{
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        __m512i high[8], low[2][8], q[8];
        rows_32(b + 128 + 32 * h, s, high);
        rows_32(b + 64 * h, s, low[0]);
        rows_32(b + 64 * h + 32, s, low[1]);
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) {
                const __m512i bits = t < 2 ? LEFT(high[i], 4 - 2 * t) : t == 2 ? high[i] : RIGHT(high[i], 2);
                q[i] = OR_AND(AND(t < 2 ? low[t][i] : RIGHT(low[t - 2][i], 4), BYTES(15)), bits, BYTES(48));
            }
            sink(to, 4 * h + t, q);
        }
    }
}

#endif
