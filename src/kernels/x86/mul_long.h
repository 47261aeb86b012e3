/* mul_long.h - panels of the types whose blocks hold several pieces of 32 values: NVFP4, Q1_0, Q2_0. Rows are unpacked
 * one by one into bytes and then transposed, like those of mul_grid.h. */
#ifndef LOAM_KERNELS_X86_MUL_LONG_H
#define LOAM_KERNELS_X86_MUL_LONG_H

#include "kernels/x86/mul_grid.h"

/* T(NAME, suffix, form of the core, values and bytes of a block) */
#define LONG_TYPES(T) \
    T(NVFP4, nvfp4, split, 64, 36) \
    T(Q1_0, q1_0, plain, 128, 18) \
    T(Q2_0, q2_0, plain, 64, 18)

/* X_row: the levels of a block. X_scales: the scales of values 0..15 and 16..31 of piece i. */

INLINE void q1_0_row(const uint8_t *b, int8_t *level)
{
    for (int i = 0; i < 4; i++) {
        const __m256i set = bytes_of_bits(get_u32(b + 2 + 4 * i));  /* -1 or 0, wanted: 1 or -1 */
        const __m256i v = _mm256_sub_epi8(_mm256_set1_epi8(-1), _mm256_add_epi8(set, set));
        _mm256_storeu_si256((__m256i *)(level + 32 * i), v);
    }
}

INLINE void q2_0_row(const uint8_t *b, int8_t *level)
{
    const __m256i copy = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
    const __m256i low = _mm256_set1_epi32(0x40100401), high = _mm256_set1_epi32((int)0x80200802u);
    for (int i = 0; i < 2; i++) {
        uint64_t bits;
        __builtin_memcpy(&bits, b + 2 + 8 * i, 8);
        const __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)bits), copy);
        const __m256i one = _mm256_cmpeq_epi8(_mm256_and_si256(v, low), low);     /* -1 where set */
        const __m256i two = _mm256_cmpeq_epi8(_mm256_and_si256(v, high), high);
        const __m256i sum = _mm256_add_epi8(one, _mm256_add_epi8(two, two));      /* minus the two bits */
        _mm256_storeu_si256((__m256i *)(level + 32 * i), _mm256_sub_epi8(_mm256_set1_epi8(-1), sum));
    }
}

INLINE void nvfp4_row(const uint8_t *b, int8_t *level)
{
    const __m128i table = _mm_loadu_si128((const __m128i *)e2m1_levels);
    for (int i = 0; i < 4; i++) {
        const __m128i qs = _mm_loadl_epi64((const __m128i *)(b + 4 + 8 * i));
        const __m128i both = _mm_unpacklo_epi64(qs, _mm_srli_epi16(qs, 4));
        _mm_storeu_si128((__m128i *)(level + 16 * i), _mm_shuffle_epi8(table, _mm_and_si128(both, _mm_set1_epi8(15))));
    }
}

INLINE void q1_0_scales(const uint8_t *b, int i, float d[2]) { (void)i; d[0] = d[1] = get_f16(b); }
INLINE void q2_0_scales(const uint8_t *b, int i, float d[2]) { (void)i; d[0] = d[1] = get_f16(b); }
INLINE void nvfp4_scales(const uint8_t *b, int i, float d[2])
{
    d[0] = ue4m3_half(b[2 * i]);
    d[1] = ue4m3_half(b[2 * i + 1]);
}

typedef struct long_type {
    int values, bytes;
    row_fn row;
    void (*scales)(const uint8_t *b, int i, float d[2]);
} long_type;

/* flip: 0x80 for bytes with an offset of 128. */
INLINE void long_panel(const uint8_t *w, size_t s, int64_t pieces, panel32 *out, const long_type t, uint8_t flip)
{
    const int per = t.values / 32;
    for (; pieces > 0; pieces -= per, w += t.bytes) {
        _Alignas(64) int8_t level[LANES][128];
        for (int r = 0; r < LANES; r++) t.row(w + (size_t)r * s, level[r]);
        for (int i = 0; i < per; i++, out++) {
            vi q[8];
            rows_32((const uint8_t *)level[0] + 32 * i, 128, q);
            for (int j = 0; j < 8; j++) STORE(out->q + 4 * LANES * j, XOR(q[j], BYTES(flip)));
            for (int r = 0; r < LANES; r++) {
                float d[2];
                t.scales(w + (size_t)r * s, i, d);
                out->d[r] = d[0];
                out->m[r] = d[1];
            }
        }
    }
}

#endif
