/* act.c - quantizes activations to the forms of act.h: the reference. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/kernels.h"
#include "kernels/ref/mul.h"
#include "quant/half.h"

size_t act_bytes(act_kind kind, int64_t k)
{
    if (kind == ACT_F32) return ((size_t)k * sizeof(float) + 63) & ~(size_t)63;
    return (size_t)((k + ACT_GROUP - 1) / ACT_GROUP) * sizeof(act_a32);
}

/* Quantizes n values with one scale, which is returned. Magnitudes are compared as integers: NaNs are then the largest. */
static float encode_scale(const float *x, int8_t *q, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        uint32_t a = bits_of_f32(x[i]) & 0x7FFFFFFF;
        if (a > most) most = a;
    }
    if (most < ACT_TINY || most >= ACT_HUGE) {
        memset(q, 0, (size_t)n);
        return most < ACT_TINY ? 0.0f : f32_of_bits(ACT_BAD);
    }
    const float a = f32_of_bits(most), inverse = 127.0f / a;
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, to nearest even */
    for (int i = 0; i < n; i++) q[i] = (int8_t)(x[i] * inverse + round - round);
    return a / 127.0f;
}

/* Sums of 16 and of 32 levels, and the starts that follow from them. */
static void sums(const int8_t *q, int32_t *init16, int32_t *init32, int16_t *sum16, int16_t *sum32)
{
    for (int i = 0; i < 16; i++) {
        int s = 0;
        for (int j = 0; j < 16; j++) s += q[16 * i + j];
        sum16[i] = (int16_t)s;
        init16[i] = -128 * s;
    }
    for (int i = 0; i < 8; i++) {
        sum32[i] = (int16_t)(sum16[2 * i] + sum16[2 * i + 1]);
        init32[i] = -128 * sum32[i];
    }
}

void act_encode_a32(const float *x, void *out, int64_t k)
{
    for (act_a32 *g = out; k > 0; g++, x += ACT_GROUP, k -= ACT_GROUP) {
        int16_t sum16[16], sum32[8];
        if (k < ACT_GROUP) memset(g, 0, sizeof *g);
        const int blocks = k < ACT_GROUP ? (int)(k / 32) : 8;
        for (int i = 0; i < blocks; i++) g->d[i] = encode_scale(x + 32 * i, g->q + 32 * i, 32);
        sums(g->q, g->init16, g->init32, sum16, sum32);
        for (int i = 0; i < 8; i++) g->ds[i] = g->d[i] * (float)sum32[i];
    }
}

void act_encode_a256(const float *x, void *out, int64_t k)
{
    for (act_a256 *g = out; k > 0; g++, x += ACT_GROUP, k -= ACT_GROUP) {
        g->d = encode_scale(x, g->q, ACT_GROUP);
        sums(g->q, g->init16, g->init32, g->sum16, g->sum32);
    }
}
