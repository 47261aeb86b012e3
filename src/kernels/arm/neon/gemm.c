/* gemm.c - the tile of gemm.h with NEON: 6 x 16 sums. */
#include "kernels/arm/vec_neon.h"

#define MR 6
#define NV 4
#include "kernels/x86/gemm_tmpl.h"

void kernels_neon_gemm(kernels *k) { k->gemm = &gemm_of_set; }
