/* mul.h - integer products with AVX-512 VNNI: 16 rows of weights at once, one row in each 32-bit lane.
 *
 * A strip is 16 rows, `stride` bytes apart. Its packed bytes are loaded row by row and transposed in registers, so that
 * one register holds four consecutive values of all 16 rows; vpdpbusd multiplies it with the four activations of a
 * column, broadcast from memory, and no sum ever runs across lanes:
 *
 *   register t of 8:   | row 0: v[4t] v[4t+1] v[4t+2] v[4t+3] | row 1: ... | ... | row 15: ... |     32 values, 16 rows
 *
 * vpdpbusd wants unsigned weights: a byte is level + (128 >> shift), and the sum starts at the activation's
 * -128 * sum >> shift (act.h), which leaves the exact sum over the levels.
 *
 * Two ways, the same unpackers (mul_levels.h), which hand 32 values at a time to a sink:
 *   few columns    the sink multiplies at once; nothing is stored                       (mul_few.h)
 *   many columns   the sink stores bytes into a panel in cache; the core multiplies     (mul_panel.h, mul_core.c)
 *                  the panel with all columns. Stored bytes are shifted left by `shift`, so every offset is 128. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_H
#define LOAM_KERNELS_AVX512VNNI_MUL_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/act.h"
#include "kernels/ref/mul.h"
#include "kernels/ref/mul_run.h"

#define INLINE static inline __attribute__((always_inline))

/* FEW: up to this many columns are multiplied without panels. The core takes TILE_PANELS x TILE_COLUMNS. */
enum { FEW = 8, TILE_PANELS = 3, TILE_COLUMNS = 4 };

/* Panels: what one piece of 16 rows becomes. */
typedef struct panel32 {
    uint8_t q[512];
    float d[16], m[16];          /* m: the minimum, or the scale of values 16..31 of a split type */
} panel32;

typedef struct head256 {
    float scale[16][16];         /* [sub-block][row]; sub-blocks of 32 values use the first 8 */
    int32_t min[8][16];          /* minima of sub-blocks 2j and 2j + 1 as two 16-bit halves */
    float d[16], dmin[16];
} head256;

typedef struct panel256 {
    uint8_t q[4096];
    head256 head;
} panel256;

#define CORES TILE_PANELS * TILE_COLUMNS
extern const core_fn core32_plain[CORES], core32_min[CORES], core32_split[CORES];
extern const core_fn core256_wide_min[CORES], core256_wide_offset[CORES], core256_narrow_min[CORES], core256_narrow_offset[CORES];

INLINE __m512i broadcast(const void *p)
{
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

INLINE __m512 halves_to_floats(__m512i low_words)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(low_words));
}

INLINE __mmask16 mask_of(int rows) { return (__mmask16)((1u << rows) - 1); }

INLINE __m512 y_start(const float *y, __mmask16 rows, bool resume)
{
    return resume ? _mm512_maskz_loadu_ps(rows, y) : _mm512_setzero_ps();
}

#endif
