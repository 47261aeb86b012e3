/* attn_fill.h - the part of kernels_SET_row that fills the attention kernels. */
#ifndef LOAM_KERNELS_ATTN_FILL_H
#define LOAM_KERNELS_ATTN_FILL_H

#include "kernels/kernels.h"

void kernels_avx2_attn(kernels *k);
void kernels_avx512_attn(kernels *k);

#endif
