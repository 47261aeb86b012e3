/* mul.h - integer products with AVX2: 8 rows of weights at once, always through panels (small ones stay in L1).
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds pairs with saturation at 16 bits, so a panel has one of two forms:
 *
 *   RAW      small unsigned bytes, level + (128 >> shift) or the level itself, up to 63: `adds` products of 4 values fit
 *            into 16 bits together before they are widened
 *   SIGNED   levels of -128..127: |level| times the activation with the level's sign; each product is widened at once
 *
 * Sums, starts and float steps are those of kernels.h. */
#ifndef LOAM_KERNELS_AVX2_MUL_H
#define LOAM_KERNELS_AVX2_MUL_H

#include "kernels/act.h"
#include "kernels/ref/mul.h"
#include "kernels/ref/mul_run.h"
#include "kernels/x86/mul_vec256.h"

#include "kernels/x86/mul_super.h"

enum { TILE_COLUMNS = 4 };

/* By columns - 1. The name says: 32 or 256; sub-blocks of 16 (narrow) or 32 (wide); RAW with its adds, and shift where
 * there is an offset; min; SIGNED. */
extern const core_fn avx2_core32_raw8_shift4[TILE_COLUMNS], avx2_core32_raw4_shift3[TILE_COLUMNS], avx2_core32_raw8_min[TILE_COLUMNS],
    avx2_core32_raw4_min[TILE_COLUMNS], avx2_core32_signed[TILE_COLUMNS], avx2_core32_split[TILE_COLUMNS];
extern const core_fn avx2_core256_wide_raw8_min[TILE_COLUMNS], avx2_core256_wide_raw4_min[TILE_COLUMNS],
    avx2_core256_narrow_raw8_min[TILE_COLUMNS], avx2_core256_narrow_raw2_shift2[TILE_COLUMNS],
    avx2_core256_narrow_raw8_shift5[TILE_COLUMNS], avx2_core256_wide_signed[TILE_COLUMNS], avx2_core256_narrow_signed[TILE_COLUMNS];

void avx2_act_encode(kernels *k);   /* act.c */

#endif
