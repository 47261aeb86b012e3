/* mul.c - integer products with NEON alone: bytes are multiplied into 16 bits and added by pairs into 32. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

/* Two products of at most 2^14 fit into 16 bits. */
#define DOT(sum, a, b) vpadalq_s16(vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b))), vmull_high_s8(a, b))
#include "kernels/arm/dots.h"
#include "kernels/arm/mul_tmpl.h"

void kernels_neon_mul(kernels *k)
{
    fill_mul(k);
    kernels_neon_mulf(k);
}
