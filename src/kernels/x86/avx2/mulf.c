/* mulf.c - products with float weights with AVX2: mulf_tmpl.h. */
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/mulf_tmpl.h"

void kernels_avx2_mulf(kernels *k) { fill_mulf(k); }
