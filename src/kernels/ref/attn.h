/* attn.h - the scratch of attention kernels: attn_scratch is enough for these three areas, in this order, in floats.
 *
 *   keys    [k_dim][PAGE_SLOTS]
 *   values  [PAGE_SLOTS][attn_pad(v_dim)]
 *   rows    [ATTN_ROWS][attn_pad of the larger dimension] */
#ifndef LOAM_KERNELS_REF_ATTN_H
#define LOAM_KERNELS_REF_ATTN_H

#include <stddef.h>

#define ATTN_ROWS 16

static inline size_t attn_pad(int dim) { return ((size_t)dim + 15) / 16 * 16; }

#endif
