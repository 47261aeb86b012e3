/* k_encode.c - encoders of the K blocks (k.c draws them): a search per sub-block, then the sub-block scales are quantized,
 * then the levels are chosen anew for the scales as they are stored. */
#include <string.h>

#include "quant/bytes.h"
#include "quant/k.h"
#include "quant/quant.h"
#include "quant/search.h"

/* A block while it is encoded: `groups` sub-blocks of `size` values. */
typedef struct k_block {
    int size, groups;
    int half, max;          /* levels are -half..max - half, stored with half added */
    uint8_t levels[256];    /* offset levels, 0 and up */
    float a[16], b[16];     /* scale and minimum of each sub-block as searched */
    float weight[16];       /* sum of the weights of each sub-block */
} k_block;

/* Weights of a type: what w is with and without column weights. */
typedef enum weight_rule {
    W_SQUARE,        /* x x */
    W_ABS,           /* |x| */
    W_RMS_ABS,       /* rms of the sub-block + |x| */
    W_COLUMN,        /* c */
    W_COLUMN_X1,     /* c sqrt(mean square of the block + x x) */
    W_COLUMN_X2      /* c sqrt(twice the mean square of the block + x x) */
} weight_rule;

static void fill_weights(lane_group *in, weight_rule rule, const float *c, float squares)
{
    float factor = 1.0f;
    switch (rule) {
    case W_SQUARE: lanes_squares(in); return;
    case W_COLUMN: lanes_columns(in, c, SEARCH_LANES); return;
    case W_COLUMN_X2: factor = 2.0f; /* fall through */
    case W_COLUMN_X1:
        lanes_columns(in, c, SEARCH_LANES);
        lanes_scale_weights(in, factor * squares / 256.0f);
        return;
    case W_ABS: case W_RMS_ABS: break;
    }
    float rms[SEARCH_LANES] = { 0 };
    if (rule == W_RMS_ABS) {
        for (int i = 0; i < in->n; i++)
            for (int l = 0; l < SEARCH_LANES; l++) rms[l] += in->x[i][l] * in->x[i][l];
        for (int l = 0; l < SEARCH_LANES; l++) rms[l] = sqrtf(rms[l] / (float)in->n);
    }
    for (int i = 0; i < in->n; i++)
        for (int l = 0; l < SEARCH_LANES; l++) in->w[i][l] = rms[l] + fabsf(in->x[i][l]);
}

/* Which search a type uses: fit_min where `min` is given, else fit_sym or its descent. */
typedef struct k_rule {
    int size, half;         /* values of a sub-block; half of the symmetric levels (offset of the stored ones) */
    const min_rule *min;
    bool descent;
    weight_rule weights;
} k_rule;

static void search_block(const float *x, const float *c, const k_rule *rule, k_block *k)
{
    const search_ops *ops = search_get();
    const int span = SEARCH_LANES * rule->size;
    float squares = rule->weights >= W_COLUMN_X1 ? sum_squares(x, 256) : 0.0f;
    lane_group in;
    lane_fit fit;
    k->size = rule->size;
    k->groups = 256 / rule->size;
    k->half = rule->half;
    k->max = rule->min ? rule->min->max : 2 * rule->half - 1;
    for (int first = 0; first < 256; first += span) {
        lanes_load(&in, x + first, rule->size, SEARCH_LANES);
        fill_weights(&in, rule->weights, c ? c + first : NULL, squares);
        if (rule->min) ops->fit_min(&in, rule->min, &fit);
        else if (rule->descent) ops->fit_sym_descent(&in, rule->half, &fit);
        else ops->fit_sym(&in, rule->half, &fit);
        float sums[SEARCH_LANES] = { 0 };
        for (int i = 0; i < in.n; i++)
            for (int l = 0; l < SEARCH_LANES; l++) {
                sums[l] += in.w[i][l];
                k->levels[first + l * rule->size + i] = (uint8_t)(int)(fit.q[i][l] + (float)rule->half);
            }
        for (int l = 0; l < SEARCH_LANES; l++) {
            int g = first / rule->size + l;
            k->a[g] = fit.a[l];
            k->b[g] = rule->min ? -fit.b[l] : 0.0f;
            k->weight[g] = sums[l];
        }
    }
}

/* The final levels of sub-block g of the block at x, for its scale d and minimum m as stored; where d is 0 those of the search
 * stay. */
static void requantize(k_block *k, int g, const float *x, float d, float m)
{
    if (d == 0.0f) return;
    uint8_t *levels = k->levels + g * k->size;
    x += g * k->size;
    for (int i = 0; i < k->size; i++)
        levels[i] = (uint8_t)(to_level(round_even((x[i] + m) / d), -k->half, k->max - k->half) + k->half);
}

/* Bits lo..lo + 1 of the levels in the order of Q2_K and Q3_K. */
static void pack_two_bits(const uint8_t *levels, uint8_t *qs)
{
    for (int m = 0; m < 64; m++) {
        const uint8_t *l = levels + 128 * (m / 32) + m % 32;
        qs[m] = (uint8_t)((l[0] & 3) | (l[32] & 3) << 2 | (l[64] & 3) << 4 | (l[96] & 3) << 6);
    }
}

static void pack_nibbles(const uint8_t *levels, uint8_t *qs)
{
    for (int m = 0; m < 128; m++) {
        const uint8_t *l = levels + 64 * (m / 32) + m % 32;
        qs[m] = (uint8_t)((l[0] & 15) | (l[32] & 15) << 4);
    }
}

/* One more bit of each level: value v is bit v / 32 of byte v % 32. */
static void pack_bit(const uint8_t *levels, int bit, uint8_t *bits)
{
    memset(bits, 0, 32);
    for (int v = 0; v < 256; v++) bits[v % 32] |= (uint8_t)((levels[v] >> bit & 1) << v / 32);
}

/* Quantizes non-negative sub-block scales to 0..max; returns the block's scale as stored. */
static uint16_t quantize_scales(const k_block *k, const float *s, bool weighted, int max, uint8_t *codes)
{
    if (weighted) return f32_to_f16(fit_pos(s, k->weight, k->groups, max, codes));
    float top = 0.0f;
    for (int g = 0; g < k->groups; g++)
        if (s[g] > top) top = s[g];
    memset(codes, 0, 16);
    if (!(top > 0.0f)) return 0;
    float inverse = (float)max / top;
    for (int g = 0; g < k->groups; g++) codes[g] = (uint8_t)to_level(round_even(inverse * s[g]), 0, max);
    return f32_to_f16(top / (float)max);
}

/* ---- types with minima ------------------------------------------------------------------------------------------- */

/* Search, scales and final levels of Q2_K, Q4_K, Q5_K. d and dmin as stored. */
static void encode_min_block(const float *x, const float *c, const k_rule *rule, k_block *k, uint8_t codes[2][16],
                             uint16_t d[2])
{
    const int scale_max = rule->size == 16 ? 15 : 63;
    search_block(x, c, rule, k);
    d[0] = quantize_scales(k, k->a, c != NULL, scale_max, codes[0]);
    d[1] = quantize_scales(k, k->b, c != NULL, scale_max, codes[1]);
    for (int g = 0; g < k->groups; g++)
        requantize(k, g, x, f16_to_f32(d[0]) * (float)codes[0][g], f16_to_f32(d[1]) * (float)codes[1][g]);
}

void encode_q2_k(const float *in, void *out, int64_t n, const float *weights)
{
    static const min_rule plain = { 3, 15, -0.5f, 0.1f, true }, weighted = { 3, 36, -0.9f, 0.05f, false };
    const k_rule rule = { 16, 0, weights ? &weighted : &plain, false, weights ? W_COLUMN_X1 : W_ABS };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 84) {
        k_block k;
        uint8_t codes[2][16];
        uint16_t d[2];
        encode_min_block(in + i, weights ? weights + i : NULL, &rule, &k, codes, d);
        for (int g = 0; g < 16; g++) b[g] = (uint8_t)(codes[0][g] | codes[1][g] << 4);
        pack_two_bits(k.levels, b + 16);
        put_u16(b + 80, d[0]);
        put_u16(b + 82, d[1]);
    }
}

/* The scales of Q4_K and Q5_K (k.h). */
static void pack_q4k_scales(uint8_t codes[2][16], uint8_t *scales)
{
    const uint8_t *sc = codes[0], *mn = codes[1];
    for (int j = 0; j < 4; j++) {
        scales[j] = (uint8_t)(sc[j] | sc[4 + j] >> 4 << 6);
        scales[4 + j] = (uint8_t)(mn[j] | mn[4 + j] >> 4 << 6);
        scales[8 + j] = (uint8_t)((sc[4 + j] & 15) | (mn[4 + j] & 15) << 4);
    }
}

void encode_q4_k(const float *in, void *out, int64_t n, const float *weights)
{
    static const min_rule plain = { 15, 20, -1.0f, 0.1f, false }, weighted = { 15, 36, -0.9f, 0.05f, false };
    const k_rule rule = { 32, 0, weights ? &weighted : &plain, false, weights ? W_COLUMN_X2 : W_RMS_ABS };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 144) {
        k_block k;
        uint8_t codes[2][16];
        uint16_t d[2];
        encode_min_block(in + i, weights ? weights + i : NULL, &rule, &k, codes, d);
        put_u16(b, d[0]);
        put_u16(b + 2, d[1]);
        pack_q4k_scales(codes, b + 4);
        pack_nibbles(k.levels, b + 16);
    }
}

void encode_q5_k(const float *in, void *out, int64_t n, const float *weights)
{
    static const min_rule plain = { 31, 15, -0.5f, 0.1f, false }, weighted = { 31, 36, -0.9f, 0.05f, false };
    const k_rule rule = { 32, 0, weights ? &weighted : &plain, false, weights ? W_COLUMN_X2 : W_RMS_ABS };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 176) {
        k_block k;
        uint8_t codes[2][16];
        uint16_t d[2];
        encode_min_block(in + i, weights ? weights + i : NULL, &rule, &k, codes, d);
        put_u16(b, d[0]);
        put_u16(b + 2, d[1]);
        pack_q4k_scales(codes, b + 4);
        pack_bit(k.levels, 4, b + 16);
        pack_nibbles(k.levels, b + 48);
    }
}

/* ---- types with scales only -------------------------------------------------------------------------------------- */

/* The sixteen scales of Q3_K as codes 0..63 (offset 32); returns d as stored. */
static uint16_t q3k_codes(const k_block *k, bool weighted, int codes[16])
{
    if (weighted) {
        lane_group in = { .n = 16 };
        lane_fit fit;
        for (int g = 0; g < 16; g++) {
            in.x[g][0] = k->a[g];
            in.w[g][0] = k->weight[g];
        }
        search_get()->fit_sym(&in, 32, &fit);
        for (int g = 0; g < 16; g++) codes[g] = (int)fit.q[g][0] + 32;
        return f32_to_f16(fit.a[0]);
    }
    float top = signed_max(k->a, 16);
    memset(codes, 0, 16 * sizeof *codes);
    if (top == 0.0f) return 0;
    float inverse = -32.0f / top;
    for (int g = 0; g < 16; g++) codes[g] = to_level(round_even(inverse * k->a[g]), -32, 31) + 32;
    return f32_to_f16(1.0f / inverse);
}

void encode_q3_k(const float *in, void *out, int64_t n, const float *weights)
{
    const k_rule rule = { 16, 4, NULL, !weights, weights ? W_COLUMN_X2 : W_SQUARE };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 110) {
        k_block k;
        int codes[16];
        search_block(in + i, weights ? weights + i : NULL, &rule, &k);
        uint16_t d = q3k_codes(&k, weights != NULL, codes);
        memset(b + 96, 0, 12);
        for (int g = 0; g < 16; g++) {
            requantize(&k, g, in + i, f16_to_f32(d) * (float)(codes[g] - 32), 0.0f);
            b[96 + g % 8] |= (uint8_t)((codes[g] & 15) << 4 * (g / 8));
            b[104 + g % 4] |= (uint8_t)(codes[g] >> 4 << 2 * (g / 4));
        }
        pack_bit(k.levels, 2, b);
        pack_two_bits(k.levels, b + 32);
        put_u16(b + 108, d);
    }
}

void encode_q6_k(const float *in, void *out, int64_t n, const float *weights)
{
    const k_rule rule = { 16, 32, NULL, false, weights ? W_COLUMN : W_SQUARE };
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 210) {
        k_block k;
        search_block(in + i, weights ? weights + i : NULL, &rule, &k);
        float top = signed_max(k.a, 16);
        memset(b, 0, 210);
        if (fabsf(top) < 1e-15f) continue;
        float inverse = -128.0f / top;
        uint16_t d = f32_to_f16(1.0f / inverse);
        put_u16(b + 208, d);
        for (int g = 0; g < 16; g++) {
            int scale = to_level(round_even(inverse * k.a[g]), -128, 127);
            b[192 + g] = (uint8_t)scale;
            requantize(&k, g, in + i, f16_to_f32(d) * (float)scale, 0.0f);
        }
        for (int v = 0; v < 256; v++) {
            int h = v / 128, t = v % 128 / 32, l = v % 32;
            b[64 * h + 32 * (t % 2) + l] |= (uint8_t)((k.levels[v] & 15) << 4 * (t / 2));
            b[128 + 32 * h + l] |= (uint8_t)(k.levels[v] >> 4 << 2 * t);
        }
    }
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* The signed maximum goes to level -127, so that no level needs -128. */
void encode_q8_k(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 292) {
        memset(b, 0, 292);
        float f = -127.0f / signed_max(in + i, 256);
        if (fabsf(f) > 3.402823466e38f) continue;
        put_u32(b, bits_of_f32(1.0f / f));
        for (int s = 0; s < 16; s++) {
            int sum = 0;
            for (int v = 16 * s; v < 16 * s + 16; v++) {
                int level = to_level(round_even(f * in[i + v]), -128, 127);
                b[4 + v] = (uint8_t)level;
                sum += level;
            }
            put_u16(b + 260 + 2 * s, (uint16_t)sum);
        }
    }
}
