/* gemm.c - the tile of gemm.h with AVX-512: 14 x 32 sums. */
#include "kernels/x86/vec_avx512.h"

#define MR 14
#define NV 2
#include "kernels/x86/gemm_tmpl.h"

void kernels_avx512_gemm(kernels *k) { k->gemm = &gemm_of_set; }
