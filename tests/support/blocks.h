/* blocks.h - random rows of every block type for tests and benches of kernels, in shapes that reach corners. */
#ifndef LOAM_TEST_BLOCKS_H
#define LOAM_TEST_BLOCKS_H

#include <stdint.h>
#include <string.h>

#include "tensor/dtype.h"

/* splitmix64: any seed is good. */
static inline uint64_t blocks_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* NORMAL: random levels, scales near 0.01. ZERO: all bytes 0. DENORMAL, HUGE, NONFINITE: scales of that kind. RAW: every
 * byte random. */
typedef enum blocks_shape {
    BLOCKS_NORMAL, BLOCKS_ZERO, BLOCKS_DENORMAL, BLOCKS_HUGE, BLOCKS_NONFINITE, BLOCKS_RAW, BLOCKS_SHAPES
} blocks_shape;

/* Offsets of the binary16 scales of a block; -1 ends. */
static inline void blocks_scales(loam_type type, int at[2])
{
    at[0] = at[1] = -1;
    switch (type) {
    case LOAM_Q4_1: case LOAM_Q5_1: case LOAM_Q4_K: case LOAM_Q5_K: at[0] = 0; at[1] = 2; break;
    case LOAM_Q2_K: at[0] = 80; at[1] = 82; break;
    case LOAM_Q3_K: at[0] = 108; break;
    case LOAM_Q6_K: at[0] = 208; break;
    case LOAM_TQ1_0: at[0] = 52; break;
    case LOAM_TQ2_0: at[0] = 64; break;
    case LOAM_MXFP4: case LOAM_NVFP4: case LOAM_IQ1_M: break;
    default: at[0] = 0;
    }
}

static inline uint16_t blocks_scale(blocks_shape shape, uint64_t r)
{
    const uint16_t sign = (uint16_t)(r >> 32 & 0x8000);
    switch (shape) {
    case BLOCKS_ZERO: return 0;
    case BLOCKS_DENORMAL: return (uint16_t)(sign | (r & 0x3FF));
    case BLOCKS_HUGE: return (uint16_t)(sign | (0x7BFF - (r & 0xFF)));
    case BLOCKS_NONFINITE: return (uint16_t)(sign | (r & 3 ? 0x2000 + (r >> 8 & 0x3FF) : 0x7C00 + (r >> 8 & 1)));
    default: return (uint16_t)(sign | (0x2000 + (r & 0x3FF))); /* 2^-7 to 2^-6 */
    }
}

/* Fills n bytes of whole blocks. */
static inline void blocks_fill(loam_type type, blocks_shape shape, uint8_t *out, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) out[i] = shape == BLOCKS_ZERO ? 0 : (uint8_t)blocks_random(state);
    if (shape == BLOCKS_RAW || shape == BLOCKS_ZERO) return;
    const size_t bytes = (size_t)dtype_table[type].bytes;
    int at[2];
    blocks_scales(type, at);
    for (uint8_t *b = out; b < out + n; b += bytes) {
        for (int i = 0; i < 2 && at[i] >= 0; i++) {
            const uint16_t h = blocks_scale(shape, blocks_random(state));
            memcpy(b + at[i], &h, 2);
        }
        if (type == LOAM_MXFP4) b[0] = (uint8_t)(shape == BLOCKS_HUGE ? 250 : shape == BLOCKS_DENORMAL ? b[0] & 1 : 118 + (b[0] & 3));
        if (type == LOAM_IQ1_M) /* the scale's top nibble: no infinities */
            b[55] = (uint8_t)((b[55] & 0x0F) | (shape == BLOCKS_HUGE ? 0x70 : shape == BLOCKS_DENORMAL ? 0x00 : 0x20));
    }
}

/* k floats of an activation column: smooth values, some rows with zeros, extremes or odd values. */
static inline void blocks_column(float *x, int64_t k, unsigned kind, uint64_t *state)
{
    for (int64_t i = 0; i < k; i++) {
        const uint64_t r = blocks_random(state);
        x[i] = (float)((double)(int64_t)r * 0x1p-63);
        if (kind == 1 && r & 256) x[i] = 0.0f;
        if (kind == 2) x[i] *= 0x1p-70f;
        if (kind == 3) x[i] *= 0x1p+90f;
        if (kind == 4 && (r & 1023) == 0) x[i] = r & 1024 ? (r & 2048 ? __builtin_inff() : -__builtin_inff()) : __builtin_nanf("");
        if (kind == 5) x[i] = r & 256 ? 1.0f : -1.0f;
        if (kind == 6) x[i] = 0.0f;
    }
}
#define BLOCKS_COLUMNS 7

#endif
