/* mul.h - integer products with AVX-512 VNNI: 16 rows of weights at once.
 *
 * vpdpbusd multiplies four unsigned bytes of each row (mul_levels.h) with the four activations of a column, broadcast from
 * memory, and adds. A byte is level + (128 >> shift), and the sum starts at the activation's -128 * sum >> shift (act.h),
 * which leaves the exact sum over the levels.
 *
 * Two ways, the same unpackers:
 *   few columns    the sink multiplies at once; nothing is stored                       (mul_few.h)
 *   many columns   the sink stores bytes into a panel in cache; the core multiplies     (mul_panel.h, mul_core.c)
 *                  the panel with all columns. Stored bytes are shifted left by `shift`, so every offset is 128. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_H
#define LOAM_KERNELS_AVX512VNNI_MUL_H

#include "kernels/act.h"
#include "kernels/ref/mul.h"
#include "kernels/ref/mul_run.h"
#include "kernels/x86/mul_vec512.h"

#include "kernels/x86/mul_super.h"

/* FEW: up to this many columns are multiplied without panels. The core takes TILE_PANELS x TILE_COLUMNS. */
enum { FEW = 8, TILE_PANELS = 3, TILE_COLUMNS = 4 };

#define CORES TILE_PANELS * TILE_COLUMNS
extern const core_fn vnni_core32_plain[CORES], vnni_core32_min[CORES], vnni_core32_split[CORES];
extern const core_fn vnni_core256_wide_min[CORES], vnni_core256_wide_offset[CORES], vnni_core256_narrow_min[CORES], vnni_core256_narrow_offset[CORES];

INLINE __m512i broadcast(const void *p)
{
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

#endif
