/* gemm.c - the tile of gemm.h with AVX2: 6 x 16 sums. */
#include "kernels/x86/vec_avx2.h"

#define MR 6
#define NV 2
#include "kernels/x86/gemm_tmpl.h"

void kernels_avx2_gemm(kernels *k) { k->gemm = &gemm_of_set; }
