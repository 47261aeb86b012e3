/* search_avx2.c - the searches with eight groups in one AVX2 register. No fused operations: the bits are the portable ones. */
#if defined(__x86_64__)
#include <immintrin.h>

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
#define OPS search_avx2
#include "quant/lanes.h"
#include "quant/search_lanes.h"
#include "quant/grid_lanes.h"
#else
typedef int search_avx2_is_for_x86; /* a translation unit has at least one declaration */
#endif
