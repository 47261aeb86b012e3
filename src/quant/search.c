/* search.c - the searches in portable form, and what of them runs on single groups. */
#include "quant/search.h"

#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/env.h"
#include "quant/grid.h"

static int nearest_entry(const grid_index *index, int point, float (*table)[8])
{
    const int first = (-1 - index->place[point]) * GRID_CHUNK, count = index->chunks[point] * GRID_CHUNK;
    const uint16_t *codes = index->list_codes + first, mask = (uint16_t)(index->base == 3 ? 3 : 7);
    float least = INFINITY;
    int best = 0;
    for (int k = 0; k < count; k++) {
        float sum = table[0][codes[k] & mask];
        for (int i = 1; i < index->digits; i++) sum += table[i][codes[k] >> index->bits * i & mask];
        if (sum < least) {
            least = sum;
            best = k;
        }
    }
    return index->list[first + best];
}

#define LANES 4
#define LANES_TARGET
#define LOWER(p, r) SELECT((p) < (r), p, r)
#define UPPER(p, r) SELECT((p) > (r), p, r)
/* Twice the middle between one level and the next is an integer, so the comparisons are exact. */
#define IQ4_NEAR(u, q)                                                                                      \
    do {                                                                                                    \
        q = ALL(iq4_levels[0]);                                                                             \
        for (int k_ = 0; k_ < 15; k_++) {                                                                   \
            float middle_ = 0.5f * (float)(iq4_levels[k_] + iq4_levels[k_ + 1]);                            \
            q += SELECT(u >= ALL(middle_), ALL(iq4_levels[k_ + 1] - iq4_levels[k_]), ALL(0));               \
        }                                                                                                   \
    } while (0)
#define GRID_NEAREST nearest_entry
#define OPS search_portable
#include "quant/lanes.h"
#include "quant/search_lanes.h"
#include "quant/grid_lanes.h"

static const search_ops *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    chosen = &search_portable;
#if defined(__x86_64__)
    const char *cap = env_get("LOAM_CPU");
    if ((cpu_features() & CPU_AVX2) && !(cap && strcmp(cap, "ref") == 0)) chosen = &search_avx2;
#endif
}

const search_ops *search_get(void)
{
    pthread_once(&once, choose);
    return chosen;
}

static void transpose(float to[][SEARCH_LANES], const float *from, int n, int groups)
{
    for (int l = 0; l < SEARCH_LANES; l++)
        for (int i = 0; i < n; i++) to[i][l] = l < groups ? from[l * n + i] : 0.0f;
}

void lanes_load(lane_group *in, const float *x, int n, int groups)
{
    in->n = n;
    transpose(in->x, x, n, groups);
}

void lanes_columns(lane_group *in, const float *c, int groups) { transpose(in->w, c, in->n, groups); }

void lanes_scale_weights(lane_group *in, float S)
{
    for (int i = 0; i < in->n; i++)
        for (int l = 0; l < SEARCH_LANES; l++) in->w[i][l] *= sqrtf(S + in->x[i][l] * in->x[i][l]);
}

void lanes_squares(lane_group *in)
{
    for (int i = 0; i < in->n; i++)
        for (int l = 0; l < SEARCH_LANES; l++) in->w[i][l] = in->x[i][l] * in->x[i][l];
}

float sum_squares(const float *x, int64_t n)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

/* ---- fit_pos ----------------------------------------------------------------------------------------------------- */

/* Changes one level at a time while that lowers the error (search_lanes.h has the same for eight groups).
 * A level below 0 (see fit_pos) starts the sums as it is and is taken out of them as the byte that holds it: published
 * files of IQ2_XXS are made that way. */
static float descend(const float *s, const float *w, int n, int max, uint8_t *levels)
{
    float A = 0.0f, B = 0.0f;
    for (int i = 0; i < n; i++) {
        float q = levels[i] > max ? (float)levels[i] - 256.0f : (float)levels[i];
        A += w[i] * s[i] * q;
        B += w[i] * q * q;
    }
    for (int pass = 0; pass < 5; pass++) {
        bool changed = false;
        for (int i = 0; i < n; i++) {
            float q = (float)levels[i], a0 = A - w[i] * s[i] * q, b0 = B - w[i] * q * q;
            if (!(a0 > 0.0f && b0 > 0.0f)) continue;
            float q1 = round_even(s[i] * b0 / a0);
            if (q1 > (float)max) q1 = (float)max;
            if (q1 == q) continue;
            float a1 = a0 + w[i] * s[i] * q1, b1 = b0 + w[i] * q1 * q1;
            if (b1 > 0.0f && a1 * a1 * B > A * A * b1) {
                levels[i] = (uint8_t)to_level(q1, -255, max);
                A = a1;
                B = b1;
                changed = true;
            }
        }
        if (!changed) break;
    }
    return B > 0.0f ? A / B : 0.0f;
}

float fit_pos(const float *s, const float *w, int n, int max, uint8_t *levels)
{
    float top = 0.0f;
    for (int i = 0; i < n; i++)
        if (s[i] > top) top = s[i];
    for (int i = 0; i < n; i++) levels[i] = 0;
    if (top < 1e-15f) return 0.0f;
    float best_g = (float)max / top, best = -1.0f;
    for (int k = 0; k < 9; k++) {
        /* The plain inverse scale first, then the rest of -4..4. */
        int t = k == 0 ? 0 : k < 5 ? k - 5 : k - 4;
        float g = (t == 0 ? (float)max : 0.1f * (float)t + (float)max) / top, error = 0.0f;
        for (int i = 0; i < n; i++) {
            float q = round_even(g * s[i]);
            /* A negative level, had where a magnitude is negated for the parity of the signs, wraps in the first try. */
            if (t == 0) q = (float)(uint8_t)to_level(q, -255, 255);
            else if (q > (float)max) q = (float)max;
            float e = s[i] - 1.0f / g * q;
            error += w[i] * e * e;
        }
        if (best < 0.0f || error < best) {
            best = error;
            best_g = g;
        }
    }
    for (int i = 0; i < n; i++) {
        float q = round_even(best_g * s[i]);
        levels[i] = (uint8_t)to_level(q, -255, max);
    }
    return descend(s, w, n, max, levels);
}
