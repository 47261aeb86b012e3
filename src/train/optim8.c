/* optim8.c - moments of AdamW in 8 bits: blocks of 256 values with a scale, the largest magnitude.
 *
 * Levels are logarithmic, eight to a factor of two, because moments span many orders of magnitude within a block:
 *
 *   second moment (>= 0)   0: zero;  c = 1 .. 255: scale * 2^((c - 255) / 8)
 *   first moment           bit 7: sign; the rest 0: zero, c = 1 .. 127: scale * 2^((c - 127) / 8)
 *
 * A moving average moves by less than a level in a step: rounding to the nearest one would stop it. So it is rounded up or
 * down by chance, in proportion, with numbers that are a function of update and index: a resumed run repeats them. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "base/mix.h"
#include "train/trainer.h"

#define BLOCK 256
#define STEPS 8

/* 2^(-i / 8), exact to the last bit or two; index up to 254. */
static float level(int below)
{
    return (float)mathd_exp(-(double)below / STEPS * 0.69314718055994530942);
}

/* Levels, then scales. */
uint64_t moments8_bytes(uint64_t n) { return mem_padded(n) + (n + BLOCK - 1) / BLOCK * 4; }

static float *scale_of(const uint8_t *p, const moments8 *q)
{
    return (float *)(uintptr_t)(p + mem_padded(q->n)) + q->first / BLOCK;
}

static void table(float *values, int top)
{
    values[0] = 0.0f;
    for (int c = 1; c <= top; c++) values[c] = level(top - c);
}

void moments8_read(const uint8_t *from, const moments8 *q, moment_kind kind, float *out)
{
    float values[256], scale = *scale_of(from, q);
    int top = kind == MOMENT_SECOND ? 255 : 127;
    table(values, top);
    for (int i = 0; i < q->count; i++) {
        uint8_t c = from[q->first + (uint64_t)i];
        float x = values[c & top] * scale;
        out[i] = kind == MOMENT_FIRST && (c & 128) ? -x : x;
    }
}

static float chance(const moments8 *q, int i)
{
    uint64_t x = mix64(q->number * MIX64_STEP + (q->first + (uint64_t)i + 1) * 0xD1342543DE82EF95u);
    return (float)(x >> 40) * (1.0f / (1 << 24));
}

/* The level of x (0 .. 1): the one below or the one above, by chance. */
static int code_of(const float *values, int top, float x, float dice)
{
    if (!(x > 0.0f)) return 0;
    int low = 0, high = top;
    while (low + 1 < high) {
        int mid = (low + high) / 2;
        if (values[mid] <= x) low = mid;
        else high = mid;
    }
    if (x >= values[high]) return high;
    return dice * (values[high] - values[low]) < x - values[low] ? high : low;
}

void moments8_write(uint8_t *to, const moments8 *q, moment_kind kind, const float *in)
{
    float values[256], most = 0.0f;
    int top = kind == MOMENT_SECOND ? 255 : 127;
    table(values, top);
    for (int i = 0; i < q->count; i++) most = fabsf(in[i]) > most ? fabsf(in[i]) : most;
    *scale_of(to, q) = most;
    float inverse = most > 0.0f ? 1.0f / most : 0.0f;
    for (int i = 0; i < q->count; i++) {
        int c = code_of(values, top, fabsf(in[i]) * inverse, chance(q, i));
        to[q->first + (uint64_t)i] = (uint8_t)(kind == MOMENT_FIRST && in[i] < 0.0f ? c | 128 : c);
    }
}
