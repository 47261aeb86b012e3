/* mul_vec512.h - the vectors of integer products: 16 rows in a 512-bit register (AVX-512 F, BW, DQ, VL). */
#ifndef LOAM_KERNELS_X86_MUL_VEC_H
#define LOAM_KERNELS_X86_MUL_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16 };
typedef __m512i vi;
typedef __m512 vf;

#define BYTES(v) _mm512_set1_epi8((char)(v))
#define DWORDS(v) _mm512_set1_epi32((int)(v))
#define FLOATS(v) _mm512_set1_ps(v)
#define AND(a, b) _mm512_and_si512(a, b)
#define OR(a, b) _mm512_or_si512(a, b)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define OR_AND(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0xF8)    /* a | (b & c) */
#define RIGHT(a, n) _mm512_srli_epi16(a, (unsigned)(n))
#define LEFT(a, n) _mm512_slli_epi16(a, (unsigned)(n))
#define RIGHT32(a, n) _mm512_srli_epi32(a, (unsigned)(n))
#define LEFT32(a, n) _mm512_slli_epi32(a, (unsigned)(n))
#define ARITHMETIC32(a, n) _mm512_srai_epi32(a, (unsigned)(n))
#define ADD32(a, b) _mm512_add_epi32(a, b)
#define ADD8(a, b) _mm512_add_epi8(a, b)
/* a + amount in the bytes where v has one of the bits of `test`, of which there is one in each byte. */
#define ADD8_WHERE(a, v, test, amount) _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(v, test), a, amount)
#define SATURATED_SUB8(a, b) _mm512_subs_epu8(a, b)
#define MIN8(a, b) _mm512_min_epu8(a, b)
#define SHUFFLE8(table, v) _mm512_shuffle_epi8(table, v)
#define EACH_LANE(v) _mm512_broadcast_i32x4(v)
#define INTERLEAVE32_LOW(a, b) _mm512_unpacklo_epi32(a, b)
#define INTERLEAVE32_HIGH(a, b) _mm512_unpackhi_epi32(a, b)
#define INTERLEAVE64_LOW(a, b) _mm512_unpacklo_epi64(a, b)
#define INTERLEAVE64_HIGH(a, b) _mm512_unpackhi_epi64(a, b)
#define SHIFT_LEFT_BY(a, n) _mm512_sllv_epi32(a, n)
#define GREATER32(mask, a, b, yes, no) _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(a, b), no, yes)
#define TO_FLOATS(v) _mm512_cvtepi32_ps(v)
#define AS_FLOATS(v) _mm512_castsi512_ps(v)
#define ADDF(a, b) _mm512_add_ps(a, b)
#define MULF(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define ZERO_I _mm512_setzero_si512()
#define ZERO_F _mm512_setzero_ps()
#define LOAD(p) _mm512_load_si512(p)
#define STORE(p, v) _mm512_store_si512(p, v)
#define LOADF(p) _mm512_load_ps(p)
#define STOREF(p, v) _mm512_store_ps(p, v)

/* The low 16 bits of each dword as binary16; 16 binary16, and 16 bytes, from aligned memory. */
INLINE vf halves_to_floats(vi v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
INLINE vf load_halves(const void *p) { return _mm512_cvtph_ps(_mm256_load_si256(p)); }
INLINE vi load_bytes(const void *p) { return _mm512_cvtepu8_epi32(_mm_load_si128(p)); }

/* 16 bytes of rows 0, 4, 8, 12. The masked broadcasts leave the shuffle port free. */
INLINE vi lanes_of_rows(const uint8_t *p, size_t s)
{
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_loadu_si128((const __m128i *)(p + 4 * s)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_loadu_si128((const __m128i *)(p + 8 * s)));
    return _mm512_mask_broadcast_i32x4(v, 0xF000, _mm_loadu_si128((const __m128i *)(p + 12 * s)));
}

INLINE vi halves_of_rows(const uint8_t *low, const uint8_t *high)
{
    return _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)low)), 0xF0,
                                       _mm256_loadu_si256((const __m256i *)high));
}

INLINE __mmask16 mask_of(int rows) { return (__mmask16)((1u << rows) - 1); }
INLINE vf y_start(const float *y, int rows, bool resume)
{
    return resume ? _mm512_maskz_loadu_ps(mask_of(rows), y) : ZERO_F;
}
INLINE void y_store(float *y, int rows, vf v) { _mm512_mask_storeu_ps(y, mask_of(rows), v); }

#endif
