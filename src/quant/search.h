/* search.h - what the encoders share: extremes, rounding, and the searches for scales.
 *
 * Notation: x values, w their weights, q integer levels (held as floats), a scale, b minimum (<= 0). A search minimises
 * the sum of w (x - a q - b)^2. All sums run in index order, one rounding per operation, so that the bytes of published
 * files are had; what is done at once is independent: eight groups of values, one in each lane. */
#ifndef LOAM_QUANT_SEARCH_H
#define LOAM_QUANT_SEARCH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The element of largest magnitude with its sign; the first of equals; 0 where there is none. */
static inline float signed_max(const float *x, int n)
{
    float best = 0.0f, a = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > a) {
            a = fabsf(x[i]);
            best = x[i];
        }
    return best;
}

static inline float abs_max(const float *x, int n)
{
    float a = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > a) a = fabsf(x[i]);
    return a;
}

/* 1 / d, and 0 where that is not finite: such a block counts as all zero. */
static inline float inverse_or_zero(float d)
{
    float id = 1.0f / d;
    return fabsf(id) <= 3.402823466e38f ? id : 0.0f;
}

/* Nearest integer, ties away from zero, as a float that truncates to it; for |x| < 2^22. The constant is the float below a
 * half: with a half itself the float below 0.5 would become 1. */
static inline float round_away(float x) { return x + copysignf(0x1.fffffep-2f, x); }

/* Nearest integer as a float, ties to even, for |x| < 2^22; a plain sum, so that loops over it become vector code. */
static inline float round_even(float x) { return (x + 12582912.0f) - 12582912.0f; }

/* ---- searches over eight groups ---------------------------------------------------------------------------------- */

#define SEARCH_LANES 8

/* Eight groups of n (16 or 32) values, transposed: element i of group l is x[i][l]. */
typedef struct lane_group {
    int n;
    float x[32][SEARCH_LANES] __attribute__((aligned(32)));
    float w[32][SEARCH_LANES] __attribute__((aligned(32)));
} lane_group;

/* Results of a search: levels transposed as the values, one scale and minimum for each group. */
typedef struct lane_fit {
    float q[32][SEARCH_LANES] __attribute__((aligned(32)));
    float a[SEARCH_LANES] __attribute__((aligned(32)));
    float b[SEARCH_LANES] __attribute__((aligned(32)));
} lane_fit;

/* fit_min: levels 0..max. Candidates of the inverse scale are (first + step t + max) / range, t = 0..steps. The error is
 * squared, or absolute for `absolute`. */
typedef struct min_rule {
    int max, steps;
    float first, step;
    bool absolute;
} min_rule;

struct grid_index;
struct grid_group;

typedef struct search_ops {
    /* Levels -half..half-1 and a scale of either sign: 19 candidates. A group whose values are all below 1e-15 gets
     * a = 0 and q = -half. */
    void (*fit_sym)(const lane_group *in, int half, lane_fit *fit);
    /* The same, one candidate, improved by changing one level at a time. */
    void (*fit_sym_descent)(const lane_group *in, int half, lane_fit *fit);
    /* Levels 0..max, a >= 0, b <= 0. */
    void (*fit_min)(const lane_group *in, const min_rule *rule, lane_fit *fit);
    /* Levels of iq4_levels: 16 candidates; fills a only (0 for a group below 1e-15). n is 32. */
    void (*fit_iq4)(const lane_group *in, lane_fit *fit);
    /* Searches of the grid types, one group at a time: grid.h. */
    void (*grid_search)(const struct grid_index *index, struct grid_group *group, const float *g, int tries);
    void (*grid_choose)(const struct grid_index *index, struct grid_group *group, unsigned which, float scale);
    int (*grid_nearest)(const struct grid_index *index, int point, float (*table)[8]);
} search_ops;

/* The same results from each: plain C for any machine, and AVX2. */
extern const search_ops search_portable;
#if defined(__x86_64__)
extern const search_ops search_avx2;
#endif
const search_ops *search_get(void);

/* Copies `groups` (1..8) consecutive groups of n values of a row into in->x; lanes beyond them are zero. */
void lanes_load(lane_group *in, const float *x, int n, int groups);

/* Weights of those groups: w = c, the column weights of the same place. */
void lanes_columns(lane_group *in, const float *c, int groups);
/* w = w * sqrt(S + x * x) */
void lanes_scale_weights(lane_group *in, float S);
/* w = x * x */
void lanes_squares(lane_group *in);

/* The sum of x * x in index order. */
float sum_squares(const float *x, int64_t n);

/* Quantizes n <= 32 non-negative numbers s with weights w to levels 0..max; returns the scale of the levels. */
float fit_pos(const float *s, const float *w, int n, int max, uint8_t *levels);

/* The integer part of r as a level of lo..hi; NaN gives lo. */
static inline int to_level(float r, int lo, int hi)
{
    r = r > (float)lo ? r : (float)lo;
    r = r < (float)hi ? r : (float)hi;
    return (int)r;
}

#endif
