/* mul_levels.h - unpackers: levels and scales of 16 rows, for every type that has a fast form.
 *
 * X_levels hands the bytes of a piece to the sink, 32 values (8 registers) at a time;
 * X_head fills the scales of a super-block. Layouts of blocks: docs/formats. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_LEVELS_H
#define LOAM_KERNELS_AVX512VNNI_MUL_LEVELS_H

#include "kernels/x86/avx512vnni/mul.h"

/* Constants of a type. */
typedef struct traits {
    int bytes;                   /* of a block in memory */
    int shift;                   /* a byte is level + (128 >> shift) */
    bool offset;                 /* else a byte is the level */
    bool narrow;                 /* A256: sub-blocks of 16 values, not 32 */
    bool has_min;
    enum scale_kind { SCALE_HALF, SCALE_HALF_MIN, SCALE_E8M0 } scale;   /* A32: what a block begins with */
    bool high;                   /* A32: 32 fifth bits follow */
} traits;

/* 32 values from 32 * block on, of all 16 rows; blocks come in ascending order. */
typedef void (*sink_fn)(void *sink, int block, const __m512i q[8]);
/* Hands the levels of the piece at b (rows s bytes apart) to the sink. high: the fifth bits of the rows where a type has
 * such. */
typedef void (*levels_fn)(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to);
typedef void (*head_fn)(const uint8_t *b, size_t s, head256 *h);

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

/* ---- heads of blocks of 32 --------------------------------------------------------------------------------------- */

/* What stands before the levels of up to 8 blocks of 16 rows: [block][row]. */
typedef struct heads32 {
    uint32_t scale[8 * 16];      /* SCALE_HALF: 16 bits each; SCALE_HALF_MIN: scale and minimum; SCALE_E8M0: the byte */
    uint32_t high[8][16];
} heads32;

/* Word by word through memory: this leaves the vector ports to the products. The empty asm keeps the compiler from
 * turning it back into vector inserts. */
INLINE void gather_heads(const uint8_t *w, size_t s, const traits t, int n, heads32 *h)
{
    const size_t size = t.scale == SCALE_HALF_MIN ? 4 : t.scale == SCALE_HALF ? 2 : 1;
    for (int r = 0; r < 16; r++)
        for (int i = 0; i < n; i++) {
            const uint8_t *at = w + (size_t)r * s + (size_t)(i * t.bytes);
            uint32_t v = 0;
            __builtin_memcpy(&v, at, size);
            __asm__("" : "+r"(v));
            __builtin_memcpy((uint8_t *)h->scale + size * (size_t)(16 * i + r), &v, size);
            if (t.high) __builtin_memcpy(&h->high[i][r], at + size, 4);
        }
}

INLINE __m512 scale32(const heads32 *h, int i, const traits t)
{
    const uint8_t *at = (const uint8_t *)h->scale;
    if (t.scale == SCALE_HALF_MIN) return halves_to_floats(_mm512_load_si512(at + 64 * i));
    if (t.scale == SCALE_HALF) return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(at + 32 * i)));
    /* Half of 2^(e - 127): a normal number from e = 2 on, 2^-127 and 2^-128 below. */
    const __m512i e = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(at + 16 * i)));
    const __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 normal = _mm512_cmpge_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_slli_epi32(small, normal, _mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23));
}

INLINE __m512 min32(const heads32 *h, int i)
{
    return halves_to_floats(_mm512_srli_epi32(_mm512_load_si512(h->scale + 16 * i), 16));
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

INLINE void q8_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
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

INLINE void q4_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i q[8];
    split_nibbles(b + 2, s, q);
    sink(to, 0, q);
}

INLINE void q4_1_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i q[8];
    split_nibbles(b + 4, s, q);
    sink(to, 0, q);
}

/* Fifth bits: value v is bit v of the row's dword. Each byte of it, copied to four, is tested against one bit a lane. */
INLINE void add_fifth_bits(const uint32_t *high, __m512i q[8])
{
    const __m512i bits = _mm512_load_si512(high), bit = _mm512_set1_epi32((int)0x80402010u);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i copies = _mm512_shuffle_epi8(bits, _mm512_set4_epi32(
            0x0C0C0C0C + 0x01010101 * i, 0x08080808 + 0x01010101 * i, 0x04040404 + 0x01010101 * i, 0x01010101 * i));
        const __m512i low = _mm512_min_epu8(AND(LEFT(copies, 4), bit), BYTES(16));
        const __m512i top = _mm512_min_epu8(AND(copies, bit), BYTES(16));
        q[2 * i] = OR(q[2 * i], low);
        q[2 * i + 1] = OR(q[2 * i + 1], top);
    }
}

INLINE void q5_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    __m512i q[8];
    split_nibbles(b + 6, s, q);
    add_fifth_bits(high, q);
    sink(to, 0, q);
}

INLINE void q5_1_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    __m512i q[8];
    split_nibbles(b + 8, s, q);
    add_fifth_bits(high, q);
    sink(to, 0, q);
}

/* 128 + the level of each nibble. */
#define TABLE_IQ4 _mm512_broadcast_i32x4(_mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153, \
    (char)166, (char)181, (char)197, (char)217, (char)241))
#define TABLE_FP4 _mm512_broadcast_i32x4(_mm_setr_epi8((char)128, (char)129, (char)130, (char)131, (char)132, (char)134, \
    (char)136, (char)140, (char)128, 127, 126, 125, 124, 122, 120, 116))

INLINE void nibbles_through(const uint8_t *qs, size_t s, __m512i table, __m512i q[8])
{
    split_nibbles(qs, s, q);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) q[i] = _mm512_shuffle_epi8(table, q[i]);
}

INLINE void iq4_nl_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i q[8];
    nibbles_through(b + 2, s, TABLE_IQ4, q);
    sink(to, 0, q);
}

INLINE void mxfp4_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i q[8];
    nibbles_through(b + 1, s, TABLE_FP4, q);
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

INLINE void q4_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
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

INLINE void q6_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        __m512i top[8], low[2][8], q[8];
        rows_32(b + 128 + 32 * h, s, top);
        rows_32(b + 64 * h, s, low[0]);
        rows_32(b + 64 * h + 32, s, low[1]);
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) {
                const __m512i bits = t < 2 ? LEFT(top[i], 4 - 2 * t) : t == 2 ? top[i] : RIGHT(top[i], 2);
                q[i] = OR_AND(AND(t < 2 ? low[t][i] : RIGHT(low[t - 2][i], 4), BYTES(15)), bits, BYTES(48));
            }
            sink(to, 4 * h + t, q);
        }
    }
}

/* Moves bit `from` of every byte to bit `to` (other bits: rubbish). */
INLINE __m512i move_bit(__m512i v, int from, int to)
{
    return from < to ? LEFT(v, (unsigned)(to - from)) : from > to ? RIGHT(v, (unsigned)(from - to)) : v;
}

INLINE void q5_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i top[8];
    rows_32(b + 16, s, top);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        __m512i t[8], q[8];
        rows_32(b + 48 + 32 * c, s, t);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = OR_AND(AND(t[i], BYTES(15)), move_bit(top[i], 2 * c, 4), BYTES(16));
        sink(to, 2 * c, q);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
            q[i] = OR_AND(AND(RIGHT(t[i], 4), BYTES(15)), move_bit(top[i], 2 * c + 1, 4), BYTES(16));
        sink(to, 2 * c + 1, q);
    }
}

INLINE void q2_K_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4], d[4];
    rows_16(b, s, t);
    rows_16(b + 68, s, d);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) _mm512_store_ps(h->scale[j], byte_of(AND(t[j / 4], BYTES(15)), j % 4));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) _mm512_store_si512(h->min[j], byte_pair(AND(RIGHT(t[j / 2], 4), BYTES(15)), j % 2));
    _mm512_store_ps(h->d, halves_to_floats(d[3]));
    _mm512_store_ps(h->dmin, halves_to_floats(_mm512_srli_epi32(d[3], 16)));
}

/* Two bits a value, 32 bytes for 128 values: bits 0-1 are the first 32 of them. */
INLINE __m512i two_bits(__m512i t, int part) { return AND(part ? RIGHT(t, (unsigned)(2 * part)) : t, BYTES(3)); }

INLINE void q2_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        __m512i t[8], q[8];
        rows_32(b + 16 + 32 * h, s, t);
#pragma GCC unroll 4
        for (int part = 0; part < 4; part++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) q[i] = two_bits(t[i], part);
            sink(to, 4 * h + part, q);
        }
    }
}

INLINE void q3_K_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4];
    rows_16(b + 94, s, t);   /* two bytes, 12 of scales, d */
    const __m512i a = OR(_mm512_srli_epi32(t[0], 16), _mm512_slli_epi32(t[1], 16));
    const __m512i c = OR(_mm512_srli_epi32(t[1], 16), _mm512_slli_epi32(t[2], 16));
    const __m512i top = OR(_mm512_srli_epi32(t[2], 16), _mm512_slli_epi32(t[3], 16));
    const __m512i low[4] = { AND(a, BYTES(15)), AND(c, BYTES(15)), AND(RIGHT(a, 4), BYTES(15)), AND(RIGHT(c, 4), BYTES(15)) };
    const __m512i high[4] = { LEFT(top, 4), LEFT(top, 2), top, RIGHT(top, 2) };
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
        const __m512i six = OR_AND(low[j / 4], high[j / 4], BYTES(48));
        _mm512_store_ps(h->scale[j], _mm512_sub_ps(byte_of(six, j % 4), _mm512_set1_ps(32.0f)));
    }
    _mm512_store_ps(h->d, halves_to_floats(_mm512_srli_epi32(t[3], 16)));
}

INLINE void q3_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i top[8];
    rows_32(b, s, top);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m512i t[8], q[8];
        rows_32(b + 32 + 32 * h, s, t);
#pragma GCC unroll 4
        for (int part = 0; part < 4; part++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) q[i] = OR_AND(two_bits(t[i], part), move_bit(top[i], 4 * h + part, 2), BYTES(4));
            sink(to, 4 * h + part, q);
        }
    }
}

INLINE void iq4_xs_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4];
    rows_16(b, s, t);
    _mm512_store_ps(h->d, halves_to_floats(t[0]));
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const __m512i low = AND(_mm512_srli_epi32(t[1], (unsigned)(4 * g)), _mm512_set1_epi32(15));
        const __m512i six = OR_AND(low, _mm512_srli_epi32(t[0], (unsigned)(12 + 2 * g)), _mm512_set1_epi32(48));
        _mm512_store_ps(h->scale[g], _mm512_sub_ps(_mm512_cvtepi32_ps(six), _mm512_set1_ps(32.0f)));
    }
}

INLINE void iq4_xs_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    const __m512i table = TABLE_IQ4;
#pragma GCC unroll 1
    for (int g = 0; g < 8; g += 2) {
        __m512i t[8], q[8];
        rows_32(b + 8 + 16 * g, s, t);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                q[i] = _mm512_shuffle_epi8(table, AND(t[4 * half + i], BYTES(15)));
                q[4 + i] = _mm512_shuffle_epi8(table, AND(RIGHT(t[4 * half + i], 4), BYTES(15)));
            }
            sink(to, g + half, q);
        }
    }
}

INLINE void unit_scales(head256 *h)
{
    for (int j = 0; j < 8; j++) _mm512_store_ps(h->scale[j], _mm512_set1_ps(1.0f));
}

INLINE void tq2_0_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4];
    rows_16(b + 50, s, t);
    _mm512_store_ps(h->d, halves_to_floats(_mm512_srli_epi32(t[3], 16)));
    unit_scales(h);
}

INLINE void tq2_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        __m512i t[8], q[8];
        rows_32(b + 32 * h, s, t);
#pragma GCC unroll 4
        for (int part = 0; part < 4; part++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) q[i] = _mm512_add_epi8(two_bits(t[i], part), BYTES(127));
            sink(to, 4 * h + part, q);
        }
    }
}

INLINE void tq1_0_head(const uint8_t *b, size_t s, head256 *h)
{
    __m512i t[4];
    rows_16(b + 38, s, t);
    _mm512_store_ps(h->d, halves_to_floats(_mm512_srli_epi32(t[3], 16)));
    unit_scales(h);
}

/* The ternary digit that stands first in a byte (0 to 85, to 170, to 255), as 127 + digit; the byte is then multiplied
 * by 3 for the next one. */
INLINE __m512i next_digit(__m512i *v)
{
    const __m512i one = BYTES(1);
    const __m512i a = _mm512_min_epu8(_mm512_subs_epu8(*v, BYTES(85)), one);
    const __m512i c = _mm512_min_epu8(_mm512_subs_epu8(*v, BYTES(170)), one);
    *v = _mm512_add_epi8(*v, _mm512_add_epi8(*v, *v));
    return _mm512_add_epi8(_mm512_add_epi8(a, c), BYTES(127));
}

INLINE void tq1_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    __m512i t[8], q[8];
    rows_32(b, s, t);
#pragma GCC unroll 1
    for (int n = 0; n < 5; n++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = next_digit(&t[i]);
        sink(to, n, q);
    }
    rows_16(b + 32, s, t);
    rows_16(b + 38, s, t + 4);
    t[4] = OR(_mm512_srli_epi32(t[6], 16), _mm512_slli_epi32(t[7], 16));   /* the last four bytes */
#pragma GCC unroll 3
    for (int n = 5; n < 8; n++) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) q[i] = next_digit(&t[i]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) q[4 + i] = next_digit(n < 7 ? &t[i] : &t[4]);
        sink(to, n, q);
    }
}

#endif
