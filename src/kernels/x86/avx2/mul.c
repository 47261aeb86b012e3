/* mul.c - products with quantized weights: AVX2. */
#include "kernels/kernels.h"

void kernels_avx2_mul(kernels *k)
{
    kernels_avx2_mulf(k);
}
