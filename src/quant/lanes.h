/* lanes.h - vectors of the compiler for the bodies in search_lanes.h and grid_lanes.h, which are written once and compiled
 * for each instruction set.
 *
 * The including file defines LANES (lanes of a vector: 4 or 8), LANES_TARGET (a function attribute), LOWER and UPPER
 * (minimum and maximum of two vectors), IQ4_NEAR(u, q) (q becomes the iq4 level nearest to u; an exact tie takes the
 * higher one), GRID_NEAREST (a function, see search_ops.grid_nearest) and OPS (the name of the resulting
 * search_ops). Masks are all ones or zero; not a number never wins. */
#include <string.h>

#include "quant/codebooks.h"
#include "quant/grid.h"
#include "quant/search.h"

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

#define FN LANES_TARGET static void
#define ALL(c) ((vf){ 0 } + (float)(c))
#define SELECT(mask, yes, no) ((vf)(((mask) & (vi)(yes)) | (~(mask) & (vi)(no))))
#define ABS(v) ((vf)((vi)(v) & 0x7FFFFFFF))
#define ROUND(v) (((v) + 12582912.0f) - 12582912.0f) /* round_even */
#define BOUND(v, lo, hi) LOWER(UPPER(v, ALL(lo)), ALL(hi))
#define LOAD(p) (*(const vf *)(p))
#define STORE(p, v) (*(vf *)(p) = (v))
