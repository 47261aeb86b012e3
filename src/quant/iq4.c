/* iq4.c - codecs of the non-linear 4-bit blocks: levels from one table of 16.
 *
 *   IQ4_NL   18 B,  32 values   d:f16 | nibbles[16]                                         y = d level
 *   IQ4_XS  136 B, 256 values   d:f16 | scales high:u16 (2 bits each) | scales low[4] (nibbles) | nibbles[8][16]
 *                                                                                           y = d (s - 32) level
 * Byte j of 16 nibble bytes: value j (low), value j + 16 (high), as in Q4_0. */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/quant.h"
#include "quant/search.h"

static void put_group(float *out, float scale, const uint8_t *nibbles)
{
    for (int j = 0; j < 16; j++) {
        out[j] = scale * (float)iq4_levels[nibbles[j] & 15];
        out[j + 16] = scale * (float)iq4_levels[nibbles[j] >> 4];
    }
}

void decode_iq4_nl(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 18) put_group(out + i, get_f16(b), b + 2);
}

void decode_iq4_xs(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 136) {
        float d = get_f16(b);
        for (int g = 0; g < 8; g++) {
            int s = (b[4 + g / 2] >> 4 * (g % 2) & 15) | (get_u16(b + 2) >> 2 * g & 3) << 4;
            put_group(out + i + 32 * g, d * (float)(s - 32), b + 8 + 16 * g);
        }
    }
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

/* The nibble of the level nearest to u; an exact tie takes the higher one. Twice the middle between two levels is an
 * integer, so the sum is exact where it matters. */
static int nearest(float u)
{
    int lo = 0, hi = 15;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (u < 0.5f * (float)(iq4_levels[mid] + iq4_levels[mid + 1])) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

static void put_nibbles(const float *x, float inverse, uint8_t *nibbles)
{
    for (int j = 0; j < 16; j++)
        nibbles[j] = (uint8_t)(nearest(inverse * x[j]) | nearest(inverse * x[j + 16]) << 4);
}

/* The scales of up to eight blocks of 32 from x on. */
static void nl_scales(const float *x, const float *c, int groups, float *a)
{
    lane_group in;
    lane_fit fit;
    lanes_load(&in, x, 32, groups);
    if (c) {
        lanes_columns(&in, c, groups);
        float S[SEARCH_LANES] = { 0 };
        for (int g = 0; g < groups; g++) S[g] = sum_squares(x + 32 * g, 32) * (2.0f / 32.0f);
        for (int i = 0; i < 32; i++)
            for (int g = 0; g < SEARCH_LANES; g++) in.w[i][g] *= sqrtf(S[g] + in.x[i][g] * in.x[i][g]);
    } else {
        lanes_squares(&in);
    }
    search_get()->fit_iq4(&in, &fit);
    memcpy(a, fit.a, sizeof fit.a);
}

void encode_iq4_nl(const float *in, void *out, int64_t n, const float *weights)
{
    uint8_t *b = out;
    float a[SEARCH_LANES];
    for (int64_t i = 0, g = 0; i < n; i += 32, g++, b += 18) {
        int lane = (int)(g % SEARCH_LANES);
        if (lane == 0) {
            int64_t left = (n - i) / 32;
            nl_scales(in + i, weights ? weights + i : NULL, left < SEARCH_LANES ? (int)left : SEARCH_LANES, a);
        }
        put_f16(b, a[lane]);
        put_nibbles(in + i, a[lane] == 0.0f ? 0.0f : 1.0f / a[lane], b + 2);
    }
}

void encode_iq4_xs(const float *in, void *out, int64_t n, const float *weights)
{
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 136) {
        lane_group group;
        lane_fit fit;
        lanes_load(&group, in + i, 32, SEARCH_LANES);
        if (weights) {
            lanes_columns(&group, weights + i, SEARCH_LANES);
            lanes_scale_weights(&group, sum_squares(in + i, 256) * (2.0f / 256.0f));
        } else {
            lanes_squares(&group);
        }
        search_get()->fit_iq4(&group, &fit);
        float d = -signed_max(fit.a, 8) / 32.0f, id = d == 0.0f ? 0.0f : 1.0f / d;
        unsigned high = 0;
        memset(b + 4, 0, 4);
        for (int g = 0; g < 8; g++) {
            int level = to_level(round_even(id * fit.a[g]), -32, 31);
            float scale = d * (float)level;
            put_nibbles(in + i + 32 * g, scale == 0.0f ? 0.0f : 1.0f / scale, b + 8 + 16 * g);
            high |= (unsigned)(level + 32) >> 4 << 2 * g;
            b[4 + g / 2] |= (uint8_t)(((level + 32) & 15) << 4 * (g % 2));
        }
        put_f16(b, d);
        put_u16(b + 2, (uint16_t)high);
    }
}
