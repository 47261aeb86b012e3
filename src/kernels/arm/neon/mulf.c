/* mulf.c - products with float weights with NEON: mulf_tmpl.h. */
#include "kernels/arm/vec_neon.h"
#include "kernels/x86/mulf_tmpl.h"

void kernels_neon_mulf(kernels *k) { fill_mulf(k); }
