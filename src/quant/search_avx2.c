/* search_avx2.c - the searches with eight groups in one AVX2 register. No fused operations: the bits are the portable ones. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "quant/grid.h"

#define SUMS(PERMUTE, BROADCAST)                                                                            \
    do {                                                                                                    \
        sum = PERMUTE(BROADCAST(table[0]), code);                                                           \
        for (int i = 1; i < digits; i++)                                                                    \
            sum = _mm256_add_ps(sum, PERMUTE(BROADCAST(table[i]), _mm256_srli_epi32(code, bits * i)));      \
    } while (0)
#define FOUR(p) _mm256_broadcast_ps((const __m128 *)(p))
#define EIGHT(p) _mm256_load_ps(p)
#define LOOKUP8(values, code) _mm256_permutevar8x32_ps(values, code)

/* Eight entries at once. The permutations look at the lowest two or three bits of a lane only, so that a shift is all it
 * takes to find a digit. digits and bits are constants where this is called. */
__attribute__((target("avx2"), always_inline))
static inline int nearest_of(const grid_index *index, int point, float (*table)[8], const int digits, const int bits)
{
    const int first = (-1 - index->place[point]) * GRID_CHUNK, chunks = index->chunks[point];
    __m256 least = _mm256_set1_ps(__builtin_inff()), sum;
    __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), best = at;
    for (int k = 0; k < chunks; k++) {
        __m256i code = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(index->list_codes + first + GRID_CHUNK * k)));
        if (bits == 2) SUMS(_mm256_permutevar_ps, FOUR);
        else SUMS(LOOKUP8, EIGHT);
        __m256 less = _mm256_cmp_ps(sum, least, _CMP_LT_OQ);
        least = _mm256_blendv_ps(least, sum, less);
        best = _mm256_blendv_epi8(best, at, _mm256_castps_si256(less));
        at = _mm256_add_epi32(at, _mm256_set1_epi32(GRID_CHUNK));
    }
    /* Of the lanes with the least sum the one that comes first in the list. */
    __m256 m = _mm256_min_ps(least, _mm256_permute2f128_ps(least, least, 1));
    m = _mm256_min_ps(m, _mm256_shuffle_ps(m, m, 0x4E));
    m = _mm256_min_ps(m, _mm256_shuffle_ps(m, m, 0xB1));
    __m256i equal = _mm256_castps_si256(_mm256_cmp_ps(least, m, _CMP_EQ_OQ));
    __m256i b = _mm256_blendv_epi8(_mm256_set1_epi32(INT32_MAX), best, equal);
    __m128i r = _mm_min_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    r = _mm_min_epi32(r, _mm_shuffle_epi32(r, 0x4E));
    r = _mm_min_epi32(r, _mm_shuffle_epi32(r, 0xB1));
    int found = _mm_cvtsi128_si32(r);
    return index->list[first + (found == INT32_MAX ? 0 : found)];
}

__attribute__((target("avx2"))) static int nearest_entry(const grid_index *index, int point, float (*table)[8])
{
    return index->bits == 2 ? nearest_of(index, point, table, 8, 2) : nearest_of(index, point, table, 4, 3);
}

#define LANES 8
#define LANES_TARGET __attribute__((target("avx2")))
#define LOWER(p, r) ((vf)_mm256_min_ps((__m256)(p), (__m256)(r)))
#define UPPER(p, r) ((vf)_mm256_max_ps((__m256)(p), (__m256)(r)))
#define IQ4_NEAR(u, q)                                                                                      \
    do {                                                                                                    \
        q = ALL(iq4_levels[0]);                                                                             \
        for (int k_ = 0; k_ < 15; k_++) {                                                                   \
            float middle_ = 0.5f * (float)(iq4_levels[k_] + iq4_levels[k_ + 1]);                            \
            q += SELECT(u >= ALL(middle_), ALL(iq4_levels[k_ + 1] - iq4_levels[k_]), ALL(0));               \
        }                                                                                                   \
    } while (0)
#define GRID_NEAREST nearest_entry
#define OPS search_avx2
#include "quant/lanes.h"
#include "quant/search_lanes.h"
#include "quant/grid_lanes.h"
#else
typedef int search_avx2_is_for_x86; /* a translation unit has at least one declaration */
#endif
