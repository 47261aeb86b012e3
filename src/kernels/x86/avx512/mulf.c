/* mulf.c - products with float weights with AVX-512: mulf_tmpl.h. */
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/mulf_tmpl.h"

void kernels_avx512_mulf(kernels *k) { fill_mulf(k); }
