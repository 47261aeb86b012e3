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
#include "kernels/kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    PANELS = 6, CHUNK = 2048,          /* panels and values of k that are unpacked before they are multiplied */
    SMALL = 4, SMALL_CHUNK = 2048,     /* up to SMALL columns: TILE_PANELS panels and less of k */
    FEW = 8,                           /* up to this many columns are multiplied without panels */
    TILE_PANELS = 3, TILE_COLUMNS = 4,  /* of one pass of the core */
    COLUMNS = 32           /* columns that are multiplied with TILE_PANELS panels before the next ones */
};

/* Work of a "few" kernel: 16 rows, cols <= FEW. */
typedef struct strip {
    const uint8_t *w, *next;     /* next: where to prefetch, one strip ahead */
    size_t stride;
    const uint8_t *x;            /* group of the first piece */
    size_t x_stride;
    int64_t pieces;              /* of 256 (A256) or 32 (A32) values */
    float *y;
    size_t y_stride;
    __mmask16 rows;              /* rows that exist */
    bool resume;                 /* sums go on from y */
} strip;
typedef void (*few_fn)(const strip *s);

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

typedef void (*panel_fn)(const uint8_t *w, size_t stride, int64_t pieces, void *panel);

/* Work of the core: up to TILE_PANELS panels, one behind the other, and TILE_COLUMNS columns. */
typedef struct tile {
    const void *panel;
    const uint8_t *x;
    size_t x_stride;
    int64_t pieces;              /* of each panel */
    float *y;
    size_t y_stride;
    __mmask16 last_rows;         /* rows of the last panel that exist */
    bool resume;
} tile;
typedef void (*core_fn)(const tile *t);

/* What a type is made of. */
typedef struct vnni_type {
    few_fn few[FEW];             /* by columns - 1; NULL: panels only */
    panel_fn panel;
    const core_fn (*core)[TILE_COLUMNS];   /* [TILE_PANELS] by panels - 1, columns - 1 */
    int values, bytes;           /* of a block in memory */
    bool super;
} vnni_type;

extern const core_fn core32_plain[TILE_PANELS][TILE_COLUMNS], core32_min[TILE_PANELS][TILE_COLUMNS],
    core32_split[TILE_PANELS][TILE_COLUMNS], core256_wide_min[TILE_PANELS][TILE_COLUMNS],
    core256_wide_offset[TILE_PANELS][TILE_COLUMNS], core256_narrow_min[TILE_PANELS][TILE_COLUMNS],
    core256_narrow_offset[TILE_PANELS][TILE_COLUMNS];

void vnni_mul(const mul_args *a, const vnni_type *t);

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

INLINE __m512 y_start(const float *y, __mmask16 rows, bool resume)
{
    return resume ? _mm512_maskz_loadu_ps(rows, y) : _mm512_setzero_ps();
}

#endif
