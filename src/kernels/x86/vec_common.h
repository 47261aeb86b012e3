/* vec_common.h - what the vector vocabularies (vec_avx2.h, vec_avx512.h) share. */
#ifndef LOAM_KERNELS_VEC_COMMON_H
#define LOAM_KERNELS_VEC_COMMON_H

#include <immintrin.h>

/* Vocabulary and tile bodies are always inlined: sums must stay in registers. */
#define VEC static inline __attribute__((always_inline))

#define PRAGMA(x) _Pragma(#x)
#if defined(__clang__)
#define UNROLL(n) PRAGMA(unroll)
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif

/* Keeps a loaded value in its register: the compiler would load it again for each use, and loads are the scarcer. */
#define HOLD(v) __asm__("" : "+v"(v))

/* The fold from 8 lanes on: 8 -> 4 -> 2 -> 1. */
VEC float fold8(__m256 v)
{
    __m128 t = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    t = _mm_add_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

/* The largest of 8 lanes without NaN. */
VEC float fold8_max(__m256 v)
{
    __m128 t = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    t = _mm_max_ps(t, _mm_movehl_ps(t, t));
    return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}

/* The hardware keeps a part of a NaN's payload; the format's rule drops it. */
VEC __m256i f16_quiet(__m256i h)
{
    __m256i nan = _mm256_cmpgt_epi16(_mm256_and_si256(h, _mm256_set1_epi16(0x7FFF)), _mm256_set1_epi16(0x7C00));
    __m256i quiet = _mm256_or_si256(_mm256_and_si256(h, _mm256_set1_epi16((short)0x8000)), _mm256_set1_epi16(0x7E00));
    return _mm256_blendv_epi8(h, quiet, nan);
}

VEC void v_store_halves(void *p, __m256i h) { _mm256_storeu_si256(p, h); }
VEC void v_store_fold4(float *p, __m128 v) { _mm_storeu_ps(p, v); }

#endif
