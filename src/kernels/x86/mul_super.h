/* mul_super.h - unpackers of super-blocks for integer products, for any vector width (see mul_levels.h). */
#ifndef LOAM_KERNELS_X86_MUL_SUPER_H
#define LOAM_KERNELS_X86_MUL_SUPER_H

#include "kernels/x86/mul_levels.h"

/* Byte j of each dword as a float. */
INLINE vf byte_of(vi v, int j)
{
    return TO_FLOATS(j == 3 ? RIGHT32(v, 24) : AND(RIGHT32(v, 8 * j), DWORDS(255)));
}
INLINE vf signed_byte_of(vi v, int j)
{
    return TO_FLOATS(ARITHMETIC32(LEFT32(v, 24 - 8 * j), 24));
}

/* Bytes 2j and 2j + 1 of each dword as 16-bit halves. */
INLINE vi byte_pair(vi v, int j)
{
    const vi even = AND(RIGHT32(v, 16 * j), DWORDS(255));
    return OR(even, AND(j ? RIGHT32(v, 8) : LEFT32(v, 8), DWORDS(0x00FF0000)));
}

/* d, dmin and the 6-bit scales and minima of Q4_K and Q5_K: the 16 bytes at b. */
INLINE void q4_K_head(const uint8_t *b, size_t s, head256 *h)
{
    const vi low6 = BYTES(63), low4 = BYTES(15), high2 = BYTES(48);
    vi t[4];
    rows_16(b, s, t);
    const vi scales[2] = { AND(t[1], low6), OR(AND(t[3], low4), AND(RIGHT32(t[1], 2), high2)) };
    const vi minima[2] = { AND(t[2], low6),
        OR(AND(RIGHT32(t[3], 4), low4), AND(RIGHT32(t[2], 2), high2)) };
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) STOREF(h->scale[j], byte_of(scales[j / 4], j % 4));
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) STORE(h->min[j], byte_pair(minima[j / 2], j % 2));
    STOREF(h->d, halves_to_floats(t[0]));
    STOREF(h->dmin, halves_to_floats(RIGHT32(t[0], 16)));
}

#define q5_K_head q4_K_head

INLINE void q4_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int c = 0; c < 4; c++) {
        vi t[8], q[8];
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
    vi t[4];
    rows_16(b + 192, s, t);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) STOREF(h->scale[j], signed_byte_of(t[j / 4], j % 4));
    _Alignas(32) uint16_t d[LANES];
    for (int r = 0; r < LANES; r++) __builtin_memcpy(&d[r], b + 208 + (size_t)r * s, 2);
    STOREF(h->d, load_halves(d));
}

INLINE void q6_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        vi top[8], low[2][8], q[8];
        rows_32(b + 128 + 32 * h, s, top);
        rows_32(b + 64 * h, s, low[0]);
        rows_32(b + 64 * h + 32, s, low[1]);
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) {
                const vi bits = t < 2 ? LEFT(top[i], 4 - 2 * t) : t == 2 ? top[i] : RIGHT(top[i], 2);
                q[i] = OR_AND(AND(t < 2 ? low[t][i] : RIGHT(low[t - 2][i], 4), BYTES(15)), bits, BYTES(48));
            }
            sink(to, 4 * h + t, q);
        }
    }
}

/* Moves bit `from` of every byte to bit `to` (other bits: rubbish). */
INLINE vi move_bit(vi v, int from, int to)
{
    return from < to ? LEFT(v, (to - from)) : from > to ? RIGHT(v, (from - to)) : v;
}

INLINE void q5_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi top[8];
    rows_32(b + 16, s, top);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        vi t[8], q[8];
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
    vi t[4], d[4];
    rows_16(b, s, t);
    rows_16(b + 68, s, d);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) STOREF(h->scale[j], byte_of(AND(t[j / 4], BYTES(15)), j % 4));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) STORE(h->min[j], byte_pair(AND(RIGHT(t[j / 2], 4), BYTES(15)), j % 2));
    STOREF(h->d, halves_to_floats(d[3]));
    STOREF(h->dmin, halves_to_floats(RIGHT32(d[3], 16)));
}

/* Two bits a value, 32 bytes for 128 values: bits 0-1 are the first 32 of them. */
INLINE vi two_bits(vi t, int part) { return AND(part ? RIGHT(t, (2 * part)) : t, BYTES(3)); }

INLINE void q2_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        vi t[8], q[8];
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
    vi t[4];
    rows_16(b + 94, s, t);   /* two bytes, 12 of scales, d */
    const vi a = OR(RIGHT32(t[0], 16), LEFT32(t[1], 16));
    const vi c = OR(RIGHT32(t[1], 16), LEFT32(t[2], 16));
    const vi top = OR(RIGHT32(t[2], 16), LEFT32(t[3], 16));
    const vi low[4] = { AND(a, BYTES(15)), AND(c, BYTES(15)), AND(RIGHT(a, 4), BYTES(15)), AND(RIGHT(c, 4), BYTES(15)) };
    const vi high[4] = { LEFT(top, 4), LEFT(top, 2), top, RIGHT(top, 2) };
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
        const vi six = OR_AND(low[j / 4], high[j / 4], BYTES(48));
        STOREF(h->scale[j], ADDF(byte_of(six, j % 4), FLOATS(-32.0f)));
    }
    STOREF(h->d, halves_to_floats(RIGHT32(t[3], 16)));
}

INLINE void q3_K_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi top[8];
    rows_32(b, s, top);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        vi t[8], q[8];
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
    vi t[4];
    rows_16(b, s, t);
    STOREF(h->d, halves_to_floats(t[0]));
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const vi low = AND(RIGHT32(t[1], (4 * g)), DWORDS(15));
        const vi six = OR_AND(low, RIGHT32(t[0], (12 + 2 * g)), DWORDS(48));
        STOREF(h->scale[g], ADDF(TO_FLOATS(six), FLOATS(-32.0f)));
    }
}

INLINE void iq4_xs_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    const vi table = TABLE_IQ4;
#pragma GCC unroll 1
    for (int g = 0; g < 8; g += 2) {
        vi t[8], q[8];
        rows_32(b + 8 + 16 * g, s, t);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                q[i] = SHUFFLE8(table, AND(t[4 * half + i], BYTES(15)));
                q[4 + i] = SHUFFLE8(table, AND(RIGHT(t[4 * half + i], 4), BYTES(15)));
            }
            sink(to, g + half, q);
        }
    }
}

INLINE void unit_scales(head256 *h)
{
    for (int j = 0; j < 8; j++) STOREF(h->scale[j], FLOATS(1.0f));
}

INLINE void tq2_0_head(const uint8_t *b, size_t s, head256 *h)
{
    vi t[4];
    rows_16(b + 50, s, t);
    STOREF(h->d, halves_to_floats(RIGHT32(t[3], 16)));
    unit_scales(h);
}

INLINE void tq2_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
#pragma GCC unroll 1
    for (int h = 0; h < 2; h++) {
        vi t[8], q[8];
        rows_32(b + 32 * h, s, t);
#pragma GCC unroll 4
        for (int part = 0; part < 4; part++) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) q[i] = ADD8(two_bits(t[i], part), BYTES(127));
            sink(to, 4 * h + part, q);
        }
    }
}

INLINE void tq1_0_head(const uint8_t *b, size_t s, head256 *h)
{
    vi t[4];
    rows_16(b + 38, s, t);
    STOREF(h->d, halves_to_floats(RIGHT32(t[3], 16)));
    unit_scales(h);
}

/* The ternary digit that stands first in a byte (0 to 85, to 170, to 255), as 127 + digit; the byte is then multiplied
 * by 3 for the next one. */
INLINE vi next_digit(vi *v)
{
    const vi one = BYTES(1);
    const vi a = MIN8(SATURATED_SUB8(*v, BYTES(85)), one);
    const vi c = MIN8(SATURATED_SUB8(*v, BYTES(170)), one);
    *v = ADD8(*v, ADD8(*v, *v));
    return ADD8(ADD8(a, c), BYTES(127));
}

INLINE void tq1_0_levels(const uint8_t *b, size_t s, const uint32_t *high, sink_fn sink, void *to)
{
    (void)high;
    vi t[8], q[8];
    rows_32(b, s, t);
#pragma GCC unroll 1
    for (int n = 0; n < 5; n++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) q[i] = next_digit(&t[i]);
        sink(to, n, q);
    }
    rows_16(b + 32, s, t);
    rows_16(b + 38, s, t + 4);
    t[4] = OR(RIGHT32(t[6], 16), LEFT32(t[7], 16));   /* the last four bytes */
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
