/* legacy.c - the blocks of 32 values with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1.
 *
 *   Q4_0  18 B   d:f16 | nibbles[16]                   y = (q - 8) d
 *   Q4_1  20 B   d:f16 | m:f16 | nibbles[16]           y = q d + m
 *   Q5_0  22 B   d:f16 | fifth:u32 | nibbles[16]       y = (q - 16) d
 *   Q5_1  24 B   d:f16 | m:f16 | fifth:u32 | nibbles[16]   y = q d + m
 *   Q8_0  34 B   d:f16 | i8[32]                        y = q d
 *   Q8_1  36 B   d:f16 | s:f16 | i8[32]                y = q d, s = d * sum of q
 *
 * Byte j of the nibbles: value j (low), value j + 16 (high). Bit v of `fifth` is bit 4 of value v.
 * Without weights the scale comes from the extremes alone; with weights it is searched (search.h). */
#include <math.h>

#include "quant/bytes.h"
#include "quant/quant.h"
#include "quant/search.h"

/* Levels of one block as they go to or come from nibbles and fifth bits. */
typedef struct levels32 {
    uint8_t q[32];
} levels32;

static levels32 unpack4(const uint8_t *nibbles)
{
    levels32 l;
    for (int j = 0; j < 16; j++) {
        l.q[j] = nibbles[j] & 15;
        l.q[j + 16] = nibbles[j] >> 4;
    }
    return l;
}

static levels32 unpack5(const uint8_t *fifth, const uint8_t *nibbles)
{
    levels32 l = unpack4(nibbles);
    uint32_t bits = get_u32(fifth);
    for (int v = 0; v < 32; v++) l.q[v] |= (uint8_t)((bits >> v & 1) << 4);
    return l;
}

static void pack4(const levels32 *l, uint8_t *nibbles)
{
    for (int j = 0; j < 16; j++) nibbles[j] = (uint8_t)((l->q[j] & 15) | (l->q[j + 16] & 15) << 4);
}

static void pack5(const levels32 *l, uint8_t *fifth, uint8_t *nibbles)
{
    uint32_t bits = 0;
    for (int v = 0; v < 32; v++) bits |= (uint32_t)(l->q[v] >> 4) << v;
    put_u32(fifth, bits);
    pack4(l, nibbles);
}

/* ---- decoders ---------------------------------------------------------------------------------------------------- */

void decode_q4_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 18) {
        float d = get_f16(b);
        levels32 l = unpack4(b + 2);
        for (int v = 0; v < 32; v++) out[i + v] = (float)(l.q[v] - 8) * d;
    }
}

void decode_q4_1(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 20) {
        float d = get_f16(b), m = get_f16(b + 2);
        levels32 l = unpack4(b + 4);
        for (int v = 0; v < 32; v++) out[i + v] = (float)l.q[v] * d + m;
    }
}

void decode_q5_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 22) {
        float d = get_f16(b);
        levels32 l = unpack5(b + 2, b + 6);
        for (int v = 0; v < 32; v++) out[i + v] = (float)(l.q[v] - 16) * d;
    }
}

void decode_q5_1(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 24) {
        float d = get_f16(b), m = get_f16(b + 2);
        levels32 l = unpack5(b + 4, b + 8);
        for (int v = 0; v < 32; v++) out[i + v] = (float)l.q[v] * d + m;
    }
}

void decode_q8_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 34) {
        float d = get_f16(b);
        for (int v = 0; v < 32; v++) out[i + v] = (float)(int8_t)b[2 + v] * d;
    }
}

void decode_q8_1(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 36) {
        float d = get_f16(b);
        for (int v = 0; v < 32; v++) out[i + v] = (float)(int8_t)b[4 + v] * d;
    }
}

/* ---- encoders from the extremes ---------------------------------------------------------------------------------- */

/* The signed maximum goes to the lowest level, so that the scale is negative for a positive one. Returns d. */
static float levels_signed(const float *x, int half, levels32 *l)
{
    float d = signed_max(x, 32) / (float)-half;
    float id = inverse_or_zero(d), round_up = (float)half + 0.5f;
    if (id == 0.0f) d = -0.0f;
    for (int v = 0; v < 32; v++) l->q[v] = (uint8_t)to_level(x[v] * id + round_up, 0, 2 * half - 1);
    return d;
}

/* Levels 0..max from the lowest to the highest value. Returns d, the lowest value in *m. */
static float levels_min(const float *x, int max, levels32 *l, float *m)
{
    float lo = x[0], hi = x[0];
    for (int v = 1; v < 32; v++) {
        if (x[v] < lo) lo = x[v];
        if (x[v] > hi) hi = x[v];
    }
    float d = (hi - lo) / (float)max, id = inverse_or_zero(d);
    for (int v = 0; v < 32; v++) l->q[v] = (uint8_t)to_level((x[v] - lo) * id + 0.5f, 0, max);
    *m = lo;
    return d;
}

/* ---- encoders from a search --------------------------------------------------------------------------------------- */

/* The searches of up to eight blocks at once. */
typedef struct searched {
    const float *row, *weights;
    int64_t n;
    float squares;          /* mean of x x over the row */
    int64_t first;          /* value where the blocks in fit begin; -1 before the first */
    lane_fit fit;
} searched;

static searched search_start(const float *row, int64_t n, const float *weights)
{
    searched s = { .row = row, .weights = weights, .n = n, .first = -1 };
    if (weights) s.squares = sum_squares(row, n) / (float)n;
    return s;
}

/* Levels of the block at value i: symmetric ones -half..half-1, or where half is 0 those of 0..max. Returns its lane in
 * s->fit, where scale and minimum are. */
static int search_block(searched *s, int64_t i, int half, int max, levels32 *l)
{
    const int64_t span = 32 * SEARCH_LANES;
    if (s->first < 0 || i >= s->first + span) {
        lane_group in;
        int groups = (int)((s->n - i < span ? s->n - i : span) / 32);
        const min_rule rule = { max, 36, -0.9f, 0.05f, false };
        lanes_load(&in, s->row + i, 32, groups);
        lanes_columns(&in, s->weights + i, groups);
        lanes_scale_weights(&in, s->squares);
        if (half) search_get()->fit_sym(&in, half, &s->fit);
        else search_get()->fit_min(&in, &rule, &s->fit);
        s->first = i;
    }
    int lane = (int)((i - s->first) / 32);
    for (int v = 0; v < 32; v++) l->q[v] = (uint8_t)to_level(s->fit.q[v][lane] + (float)half, 0, 31);
    return lane;
}

/* ---- encoders ---------------------------------------------------------------------------------------------------- */

/* Q4_0 and Q5_0: scale and levels of the block at value i. */
static float block_signed(searched *s, int64_t i, int half, levels32 *l)
{
    if (!s->weights) return levels_signed(s->row + i, half, l);
    int lane = search_block(s, i, half, 0, l);
    return s->fit.a[lane];
}

/* Q4_1 and Q5_1. */
static float block_min(searched *s, int64_t i, int max, levels32 *l, float *m)
{
    if (!s->weights) return levels_min(s->row + i, max, l, m);
    int lane = search_block(s, i, 0, max, l);
    *m = s->fit.b[lane];
    return s->fit.a[lane];
}

void encode_q4_0(const float *in, void *out, int64_t n, const float *weights)
{
    searched s = search_start(in, n, weights);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 18) {
        levels32 l;
        put_f16(b, block_signed(&s, i, 8, &l));
        pack4(&l, b + 2);
    }
}

void encode_q5_0(const float *in, void *out, int64_t n, const float *weights)
{
    searched s = search_start(in, n, weights);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 22) {
        levels32 l;
        put_f16(b, block_signed(&s, i, 16, &l));
        pack5(&l, b + 2, b + 6);
    }
}

void encode_q4_1(const float *in, void *out, int64_t n, const float *weights)
{
    searched s = search_start(in, n, weights);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 20) {
        levels32 l;
        float m;
        put_f16(b, block_min(&s, i, 15, &l, &m));
        put_f16(b + 2, m);
        pack4(&l, b + 4);
    }
}

void encode_q5_1(const float *in, void *out, int64_t n, const float *weights)
{
    searched s = search_start(in, n, weights);
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 24) {
        levels32 l;
        float m;
        put_f16(b, block_min(&s, i, 31, &l, &m));
        put_f16(b + 2, m);
        pack5(&l, b + 4, b + 8);
    }
}

/* Levels -127..127; returns d, the sum of the levels in *sum. */
static float levels8(const float *x, uint8_t *q, int *sum)
{
    float d = abs_max(x, 32) / 127.0f, id = inverse_or_zero(d);
    if (id == 0.0f) d = 0.0f;
    *sum = 0;
    for (int v = 0; v < 32; v++) {
        int level = to_level(round_away(x[v] * id), -127, 127);
        q[v] = (uint8_t)level;
        *sum += level;
    }
    return d;
}

void encode_q8_0(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 34) {
        int sum;
        put_f16(b, levels8(in + i, b + 2, &sum));
    }
}

void encode_q8_1(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 36) {
        int sum;
        float d = levels8(in + i, b + 4, &sum);
        put_f16(b, d);
        put_f16(b + 2, (float)sum * d);
    }
}
