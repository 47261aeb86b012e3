/* act.c - activations to 8 bits (act.h) with AVX2: the bits of the reference. */
#include <immintrin.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/kernels.h"
#include "kernels/x86/avx2/mul.h"

/* Bits of the largest magnitude of 32 values: as integers NaNs are the largest. */
INLINE vi largest(const float *x, vi most)
{
    for (int i = 0; i < 32; i += 8) {
        const vi bits = _mm256_loadu_si256((const __m256i *)(x + i));
        most = _mm256_max_epi32(most, AND(bits, DWORDS(0x7FFFFFFF)));
    }
    return most;
}

INLINE uint32_t fold_max(vi v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* The scale and the factor of the levels; the factor is 0 where all levels are. */
INLINE float scale_of(uint32_t most, float *factor)
{
    float a, bad;
    const uint32_t nan = ACT_BAD;
    memcpy(&a, &most, 4);
    memcpy(&bad, &nan, 4);
    *factor = 0.0f;
    if (most < ACT_TINY) return 0.0f;
    if (most >= ACT_HUGE) return bad;
    *factor = 127.0f / a;
    return a / 127.0f;
}

INLINE void levels_of(const float *x, float factor, int8_t *q)
{
    if (factor == 0.0f) {
        _mm256_storeu_si256((__m256i *)q, ZERO_I);
        return;
    }
    const vf f = FLOATS(factor), round = FLOATS(12582912.0f);
    vi v[4];
    for (int i = 0; i < 4; i++) {
        /* Adding 1.5 * 2^23 leaves the integer, rounded to nearest even, in the low bits whatever the mode of conversions. */
        const vf r = _mm256_sub_ps(ADDF(MULF(_mm256_loadu_ps(x + 8 * i), f), round), round);
        v[i] = _mm256_cvttps_epi32(r);
    }
    const vi bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    _mm256_storeu_si256((__m256i *)q, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

/* Sums of the two halves of 32 levels. */
INLINE void sums_of(const int8_t *q, int *low, int *high)
{
    const vi v = _mm256_loadu_si256((const __m256i *)q);
    const vi pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(BYTES(1), v), _mm256_set1_epi16(1));
    __m128i a = _mm256_castsi256_si128(pairs), b = _mm256_extracti128_si256(pairs, 1);
    a = _mm_hadd_epi32(a, b);
    a = _mm_hadd_epi32(a, a);
    *low = _mm_cvtsi128_si32(a);
    *high = _mm_extract_epi32(a, 1);
}

static void encode_a32(const float *x, void *out, int64_t k)
{
    for (act_a32 *g = out; k > 0; g++, x += ACT_GROUP, k -= ACT_GROUP) {
        if (k < ACT_GROUP) memset(g, 0, sizeof *g);
        const int blocks = k < ACT_GROUP ? (int)(k / 32) : 8;
        for (int i = 0; i < blocks; i++) {
            float factor;
            int low, high;
            g->d[i] = scale_of(fold_max(largest(x + 32 * i, ZERO_I)), &factor);
            levels_of(x + 32 * i, factor, g->q + 32 * i);
            sums_of(g->q + 32 * i, &low, &high);
            g->init16[2 * i] = -128 * low;
            g->init16[2 * i + 1] = -128 * high;
            g->init32[i] = -128 * (low + high);
            g->ds[i] = g->d[i] * (float)(low + high);
        }
    }
}

static void encode_a256(const float *x, void *out, int64_t k)
{
    for (act_a256 *g = out; k > 0; g++, x += ACT_GROUP, k -= ACT_GROUP) {
        vi most = ZERO_I;
        float factor;
        for (int i = 0; i < 8; i++) most = largest(x + 32 * i, most);
        g->d = scale_of(fold_max(most), &factor);
        for (int i = 0; i < 8; i++) {
            int low, high;
            levels_of(x + 32 * i, factor, g->q + 32 * i);
            sums_of(g->q + 32 * i, &low, &high);
            g->init16[2 * i] = -128 * low;
            g->init16[2 * i + 1] = -128 * high;
            g->init32[i] = -128 * (low + high);
            g->sum16[2 * i] = (int16_t)low;
            g->sum16[2 * i + 1] = (int16_t)high;
            g->sum32[i] = (int16_t)(low + high);
        }
    }
}

void avx2_act_encode(kernels *k)
{
    k->act_encode[ACT_A32] = encode_a32;
    k->act_encode[ACT_A256] = encode_a256;
}
