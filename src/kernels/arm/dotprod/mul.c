/* mul.c - integer products with the dot product of ARMv8.2 (SDOT): 4 products of bytes into each of 4 sums. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define DOT(sum, a, b) vdotq_s32(sum, a, b)
#include "kernels/arm/dots.h"
#include "kernels/arm/mul_tmpl.h"

void kernels_dotprod_mul(kernels *k) { fill_mul(k); }
