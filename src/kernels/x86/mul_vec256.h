/* mul_vec256.h - the vectors of integer products: 8 rows in a 256-bit register (AVX2, FMA, F16C). */
#ifndef LOAM_KERNELS_X86_MUL_VEC_H
#define LOAM_KERNELS_X86_MUL_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8 };
typedef __m256i vi;
typedef __m256 vf;

#define BYTES(v) _mm256_set1_epi8((char)(v))
#define DWORDS(v) _mm256_set1_epi32((int)(v))
#define FLOATS(v) _mm256_set1_ps(v)
#define AND(a, b) _mm256_and_si256(a, b)
#define OR(a, b) _mm256_or_si256(a, b)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define OR_AND(a, b, c) _mm256_or_si256(a, _mm256_and_si256(b, c))
#define RIGHT(a, n) _mm256_srli_epi16(a, (int)(n))
#define LEFT(a, n) _mm256_slli_epi16(a, (int)(n))
#define RIGHT32(a, n) _mm256_srli_epi32(a, (int)(n))
#define LEFT32(a, n) _mm256_slli_epi32(a, (int)(n))
#define ARITHMETIC32(a, n) _mm256_srai_epi32(a, (int)(n))
#define ADD32(a, b) _mm256_add_epi32(a, b)
#define ADD8(a, b) _mm256_add_epi8(a, b)
/* a + amount in the bytes where v has one of the bits of `test`, of which there is one in each byte. */
#define ADD8_WHERE(a, v, test, amount) \
    _mm256_add_epi8(a, _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(v, test), test), amount))
#define SATURATED_SUB8(a, b) _mm256_subs_epu8(a, b)
#define MIN8(a, b) _mm256_min_epu8(a, b)
#define SHUFFLE8(table, v) _mm256_shuffle_epi8(table, v)
#define EACH_LANE(v) _mm256_broadcastsi128_si256(v)
#define INTERLEAVE32_LOW(a, b) _mm256_unpacklo_epi32(a, b)
#define INTERLEAVE32_HIGH(a, b) _mm256_unpackhi_epi32(a, b)
#define INTERLEAVE64_LOW(a, b) _mm256_unpacklo_epi64(a, b)
#define INTERLEAVE64_HIGH(a, b) _mm256_unpackhi_epi64(a, b)
#define SHIFT_LEFT_BY(a, n) _mm256_sllv_epi32(a, n)
#define GREATER32(mask, a, b, yes, no) _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(a, b))
#define TO_FLOATS(v) _mm256_cvtepi32_ps(v)
#define AS_FLOATS(v) _mm256_castsi256_ps(v)
#define ADDF(a, b) _mm256_add_ps(a, b)
#define MULF(a, b) _mm256_mul_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FNMA(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define ZERO_I _mm256_setzero_si256()
#define ZERO_F _mm256_setzero_ps()
#define LOAD(p) _mm256_load_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_store_si256((__m256i *)(p), v)
#define LOADF(p) _mm256_load_ps(p)
#define STOREF(p, v) _mm256_store_ps(p, v)

/* The low 16 bits of each dword as binary16; 8 binary16, and 8 bytes, from memory. */
INLINE vf halves_to_floats(vi v)
{
    const vi words = AND(v, DWORDS(0xFFFF));
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
INLINE vf load_halves(const void *p) { return _mm256_cvtph_ps(_mm_load_si128(p)); }
INLINE vi load_bytes(const void *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }

/* 16 bytes of rows 0 and 4. */
INLINE vi lanes_of_rows(const uint8_t *p, size_t s)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)),
                                   _mm_loadu_si128((const __m128i *)(p + 4 * s)), 1);
}

INLINE vi mask_of(int rows)
{
    return _mm256_cmpgt_epi32(DWORDS(rows), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf y_start(const float *y, int rows, bool resume) { return resume ? _mm256_maskload_ps(y, mask_of(rows)) : ZERO_F; }
INLINE void y_store(float *y, int rows, vf v) { _mm256_maskstore_ps(y, mask_of(rows), v); }

#endif
