/* mul_levels.h - unpackers of weights for integer products, for any vector width: LANES rows at once, one row in each
 * 32-bit lane (mul_vec512.h, mul_vec256.h). Super-blocks: mul_super.h.
 *
 * A strip is LANES rows, `stride` bytes apart. Packed bytes are loaded row by row and transposed in registers, so that one
 * register holds four consecutive values of all rows, and no sum of a product ever runs across lanes:
 *
 *   register t of 8:   | row 0: v[4t] v[4t+1] v[4t+2] v[4t+3] | row 1: ... | ... |     32 values
 *
 * X_levels hands the bytes of a piece to a sink, 32 values (8 registers) at a time; a byte is the level, or, so that it is
 * unsigned, level + (128 >> shift) (traits). The sink multiplies at once or stores a panel. X_head fills the scales of a
 * super-block. Layouts of blocks: docs/formats. */
#ifndef LOAM_KERNELS_X86_MUL_LEVELS_H
#define LOAM_KERNELS_X86_MUL_LEVELS_H

#include <stdbool.h>
#include <stddef.h>

/* What one piece of a strip becomes in a panel. */
typedef struct panel32 {
    uint8_t q[32 * LANES];
    float d[LANES], m[LANES];    /* m: the minimum, or the scale of values 16..31 of a split type */
} panel32;

typedef struct head256 {
    float scale[16][LANES];      /* [sub-block][row]; sub-blocks of 32 values use the first 8 */
    int32_t min[8][LANES];       /* minima of sub-blocks 2j and 2j + 1 as two 16-bit halves */
    float d[LANES], dmin[LANES];
} head256;

typedef struct panel256 {
    uint8_t q[256 * LANES];
    head256 head;
} panel256;

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
typedef void (*sink_fn)(void *sink, int block, const vi q[8]);
/* Hands the levels of the piece at b (rows s bytes apart) to the sink. high: the fifth bits of the rows where a type has
 * such. */
typedef void (*levels_fn)(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to);
typedef void (*head_fn)(const uint8_t *b, size_t s, head256 *h);

/* ---- transposes -------------------------------------------------------------------------------------------------- */

/* Four registers whose 128-bit lanes hold four dwords of one row become four with one dword of four rows. */
INLINE void transpose_lanes(const vi a[4], vi t[4])
{
    const vi b0 = INTERLEAVE32_LOW(a[0], a[1]), b1 = INTERLEAVE32_HIGH(a[0], a[1]);
    const vi b2 = INTERLEAVE32_LOW(a[2], a[3]), b3 = INTERLEAVE32_HIGH(a[2], a[3]);
    t[0] = INTERLEAVE64_LOW(b0, b2);
    t[1] = INTERLEAVE64_HIGH(b0, b2);
    t[2] = INTERLEAVE64_LOW(b1, b3);
    t[3] = INTERLEAVE64_HIGH(b1, b3);
}

/* t[j] = dword j of the 16 bytes at p of each row. */
INLINE void rows_16(const uint8_t *p, size_t s, vi t[4])
{
    const vi a[4] = { lanes_of_rows(p, s), lanes_of_rows(p + s, s), lanes_of_rows(p + 2 * s, s), lanes_of_rows(p + 3 * s, s) };
    transpose_lanes(a, t);
}

/* t[j] = dword j of the 32 bytes at p of each row. */
INLINE void rows_32(const uint8_t *p, size_t s, vi t[8])
{
#ifdef __AVX512F__
    vi a[4], b[4], c[4], e[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = p + (size_t)i * s;
        a[i] = halves_of_rows(at, at + 4 * s);
        b[i] = halves_of_rows(at + 8 * s, at + 12 * s);
    }
    transpose_lanes(a, c);
    transpose_lanes(b, e);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(c[j], e[j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(c[j], e[j], 0xDD);
    }
#else
    rows_16(p, s, t);
    rows_16(p + 16, s, t + 4);
#endif
}

/* ---- heads of blocks of 32 --------------------------------------------------------------------------------------- */

/* What stands before the levels of up to 8 blocks of a strip: [block][row]. */
typedef struct heads32 {
    uint32_t scale[8 * LANES];     /* SCALE_HALF: 16 bits each; SCALE_HALF_MIN: scale and minimum; SCALE_E8M0: the byte */
    uint32_t high[8][LANES];
} heads32;

/* Word by word through memory: this leaves the vector ports to the products. The empty asm keeps the compiler from
 * turning it back into vector inserts. */
INLINE void gather_heads(const uint8_t *w, size_t s, const traits t, int n, heads32 *h)
{
    const size_t size = t.scale == SCALE_HALF_MIN ? 4 : t.scale == SCALE_HALF ? 2 : 1;
    for (int r = 0; r < LANES; r++)
        for (int i = 0; i < n; i++) {
            const uint8_t *at = w + (size_t)r * s + (size_t)(i * t.bytes);
            uint32_t v = 0;
            __builtin_memcpy(&v, at, size);
            __asm__("" : "+r"(v));
            __builtin_memcpy((uint8_t *)h->scale + size * (size_t)(LANES * i + r), &v, size);
            if (t.high) __builtin_memcpy(&h->high[i][r], at + size, 4);
        }
}

INLINE vf scale32(const heads32 *h, int i, const traits t)
{
    const uint8_t *at = (const uint8_t *)h->scale;
    if (t.scale == SCALE_HALF_MIN) return halves_to_floats(LOAD(at + 4 * LANES * i));
    if (t.scale == SCALE_HALF) return load_halves(at + 2 * LANES * i);
    /* Half of 2^(e - 127): a normal number from e = 2 on, 2^-127 and 2^-128 below. */
    const vi e = load_bytes(at + LANES * i), small = SHIFT_LEFT_BY(DWORDS(0x00200000), e);
    return AS_FLOATS(GREATER32(mask, e, DWORDS(1), LEFT32(ADD32(e, DWORDS(-1)), 23), small));
}

INLINE vf min32(const heads32 *h, int i) { return halves_to_floats(RIGHT32(LOAD(h->scale + LANES * i), 16)); }

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

INLINE void q8_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi q[8];
    rows_32(b + 2, s, q);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) q[i] = XOR(q[i], BYTES(0x80));
    sink(to, 0, q);
}

/* Low halves of the bytes are values 0..15, high halves 16..31. */
INLINE void split_nibbles(const uint8_t *qs, size_t s, vi q[8])
{
    vi t[4];
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
    vi q[8];
    split_nibbles(b + 2, s, q);
    sink(to, 0, q);
}

INLINE void q4_1_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi q[8];
    split_nibbles(b + 4, s, q);
    sink(to, 0, q);
}

/* Fifth bits: value v is bit v of the row's dword. Each byte of it, copied to four, is tested against one bit a byte. */
INLINE void add_fifth_bits(const uint32_t *high, vi q[8])
{
    const vi bits = LOAD(high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const vi copies = SHUFFLE8(bits, EACH_LANE(_mm_setr_epi32(
            0x01010101 * i, 0x04040404 + 0x01010101 * i, 0x08080808 + 0x01010101 * i, 0x0C0C0C0C + 0x01010101 * i)));
        q[2 * i] = ADD8_WHERE(q[2 * i], copies, DWORDS(0x08040201), BYTES(16));
        q[2 * i + 1] = ADD8_WHERE(q[2 * i + 1], copies, DWORDS(0x80402010u), BYTES(16));
    }
}

INLINE void q5_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    vi q[8];
    split_nibbles(b + 6, s, q);
    add_fifth_bits(high, q);
    sink(to, 0, q);
}

INLINE void q5_1_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    vi q[8];
    split_nibbles(b + 8, s, q);
    add_fifth_bits(high, q);
    sink(to, 0, q);
}

/* 128 + the level of each nibble. */
#define TABLE_IQ4 EACH_LANE(_mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, (char)129, (char)141, (char)153, \
    (char)166, (char)181, (char)197, (char)217, (char)241))
#define TABLE_FP4 EACH_LANE(_mm_setr_epi8((char)128, (char)129, (char)130, (char)131, (char)132, (char)134, \
    (char)136, (char)140, (char)128, 127, 126, 125, 124, 122, 120, 116))

INLINE void nibbles_through(const uint8_t *qs, size_t s, vi table, vi q[8])
{
    split_nibbles(qs, s, q);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) q[i] = SHUFFLE8(table, q[i]);
}

INLINE void iq4_nl_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi q[8];
    nibbles_through(b + 2, s, TABLE_IQ4, q);
    sink(to, 0, q);
}

INLINE void mxfp4_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi q[8];
    nibbles_through(b + 1, s, TABLE_FP4, q);
    sink(to, 0, q);
}

#endif
