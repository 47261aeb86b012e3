/* random_blocks.c - see random_blocks.h.
 *
 * A block is filled with random bits, which every type reads as valid levels and sub-scales, and then its 16-bit scales
 * are set. `spread` is the root mean square of what uniformly random bits decode to when the scale is 1 (from the
 * formulas of the types); types with a minimum get the one that brings the mean to 0. */
#include "model/random_blocks.h"

#include <math.h>
#include <string.h>

#include "tensor/dtype.h"

#define NO (-1)

typedef struct recipe {
    loam_type type;
    float spread;
    int scale;    /* offset of the binary16 scale; NO: the type has another kind */
    int min;      /* offset of the binary16 minimum, NO where there is none */
    float centre; /* minimum in units of the scale */
} recipe;

static const recipe recipes[] = {
    { LOAM_F32, 1, NO, NO, 0 },          { LOAM_F16, 1, NO, NO, 0 },         { LOAM_BF16, 1, NO, NO, 0 },
    { LOAM_Q4_0, 4.637f, 0, NO, 0 },     { LOAM_Q4_1, 4.610f, 0, 2, -7.5f }, { LOAM_Q5_0, 9.247f, 0, NO, 0 },
    { LOAM_Q5_1, 9.233f, 0, 2, -15.5f }, { LOAM_Q8_0, 73.90f, 0, NO, 0 },    { LOAM_Q2_K, 13.87f, 80, 82, 1.5f },
    { LOAM_Q3_K, 43.34f, 108, NO, 0 },   { LOAM_Q4_K, 258.3f, 0, 2, 7.5f },  { LOAM_Q5_K, 526.9f, 0, 2, 15.5f },
    { LOAM_Q6_K, 1365.7f, 208, NO, 0 },  { LOAM_IQ2_XXS, 53.36f, 0, NO, 0 }, { LOAM_IQ2_XS, 55.90f, 0, NO, 0 },
    { LOAM_IQ2_S, 56.39f, 0, NO, 0 },    { LOAM_IQ3_XXS, 142.4f, 0, NO, 0 }, { LOAM_IQ3_S, 140.2f, 0, NO, 0 },
    { LOAM_IQ1_S, 7.200f, 0, NO, 0 },    { LOAM_IQ1_M, 7.200f, NO, NO, 0 },  { LOAM_IQ4_NL, 67.44f, 0, NO, 0 },
    { LOAM_IQ4_XS, 1246.0f, 0, NO, 0 },  { LOAM_TQ1_0, 0.8165f, 52, NO, 0 }, { LOAM_TQ2_0, 0.7071f, 64, NO, 0 },
    { LOAM_MXFP4, 2.926f, NO, NO, 0 },   { LOAM_NVFP4, 2.926f, NO, NO, 0 },  { LOAM_Q1_0, 1, 0, NO, 0 },
    { LOAM_Q2_0, 0.7071f, 0, NO, 0 },
};

static const recipe *find(loam_type type)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (recipes[i].type == type) return &recipes[i];
    return NULL;
}

bool random_blocks_can(loam_type type) { return find(type) != NULL; }

/* binary16 of a finite value of ordinary size, rounded to nearest (ties up: the exact rule does not matter here). */
static uint16_t half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float a = fabsf(x);
    if (a < 0x1p-14f) return (uint16_t)(sign | (uint16_t)(a * 0x1p24f + 0.5f));
    return (uint16_t)(sign | (((bits & 0x7FFFFFFF) - (112u << 23) + 0x1000) >> 13));
}

static void put_half(uint8_t *p, float x)
{
    uint16_t h = half(x);
    memcpy(p, &h, sizeof h);
}

static void random_bytes(uint8_t *out, size_t n, uint64_t *state)
{
    for (; n >= 8; n -= 8, out += 8) {
        uint64_t v = random_next(state);
        memcpy(out, &v, 8);
    }
    uint64_t v = random_next(state);
    memcpy(out, &v, n);
}

/* A sum of two uniform numbers: mean 0, this standard deviation. */
static float scalar(float deviation, uint64_t bits)
{
    float u = (float)(uint32_t)(bits >> 40) * 0x1p-24f, v = (float)(uint32_t)(bits >> 8 & 0xFFFFFF) * 0x1p-24f;
    return (u + v - 1.0f) * 2.4494897f * deviation;
}

static void random_scalars(loam_type type, float deviation, uint8_t *out, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        float x = scalar(deviation, random_next(state));
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint16_t h = type == LOAM_F16 ? half(x) : (uint16_t)(bits >> 16);
        if (type == LOAM_F32) memcpy(out + 4 * i, &x, 4);
        else memcpy(out + 2 * i, &h, 2);
    }
}

/* Two-bit levels 3 become 1, so that the mean of the levels -1, 0, 1 is 0. */
static void no_threes(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] &= (uint8_t) ~((p[i] >> 1 & p[i] & 0x55) << 1);
}

/* Unsigned 4-bit exponent, 3-bit fraction; powers of two above 2^-6, multiples of 2^-9 below. */
static uint8_t ue4m3(float x)
{
    if (x < 0x1p-6f) return (uint8_t)fmaxf(1, roundf(x * 512));
    int e = (int)roundf(log2f(x)) + 7;
    return (uint8_t)((e > 15 ? 15 : e) << 3);
}

/* The scales that are not one binary16. */
static void odd_scales(loam_type type, float d, uint8_t *block)
{
    if (type == LOAM_MXFP4) block[0] = (uint8_t)(127 + (int)roundf(log2f(d)));
    if (type == LOAM_NVFP4) memset(block, ue4m3(d), 4);
    if (type == LOAM_IQ1_M) {
        uint16_t h = half(d);
        for (int i = 0; i < 4; i++) block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (h >> 4 * i & 15) << 4);
    }
}

void random_blocks(loam_type type, float deviation, uint8_t *out, size_t n_blocks, uint64_t *state)
{
    const recipe *r = find(type);
    size_t bytes = (size_t)dtype_table[type].bytes;
    float d = deviation / r->spread;
    if (dtype_table[type].values == 1) {
        random_scalars(type, deviation, out, n_blocks, state);
        return;
    }
    random_bytes(out, n_blocks * bytes, state);
    if (type == LOAM_TQ2_0 || type == LOAM_Q2_0) no_threes(out, n_blocks * bytes);
    for (uint8_t *block = out; n_blocks > 0; n_blocks--, block += bytes) {
        if (r->scale != NO) put_half(block + r->scale, d);
        else odd_scales(type, d, block);
        if (r->min != NO) put_half(block + r->min, r->centre * d);
    }
}
