/* mul.c - products with quantized weights: AVX-512 without VNNI. */
#include "kernels/kernels.h"

void kernels_avx512_mul(kernels *k)
{
    kernels_avx512_mulf(k);
}
