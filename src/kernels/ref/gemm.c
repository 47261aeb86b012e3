/* gemm.c - the tile of gemm.h and its packing in plain C. */
#include <math.h>
#include <string.h>

#include "kernels/gemm.h"

#define MR 4
#define NR 16

static void tile(int64_t k, const float *a, const float *b, float *c, int64_t c_stride, bool add)
{
    float sum[MR][NR];
    for (int i = 0; i < MR; i++)
        for (int j = 0; j < NR; j++) sum[i][j] = add ? c[i * c_stride + j] : 0.0f;
    for (int64_t p = 0; p < k; p++)
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++) sum[i][j] = fmaf(a[p * MR + i], b[p * NR + j], sum[i][j]);
    for (int i = 0; i < MR; i++) memcpy(c + i * c_stride, sum[i], sizeof sum[i]);
}

static void turn(const float *src, int64_t stride, int rows, int64_t k, float *panel, int width)
{
    for (int64_t p = 0; p < k; p++)
        for (int r = 0; r < width; r++) panel[p * width + r] = r < rows ? src[r * stride + p] : 0.0f;
}

static void lay(const float *src, int64_t stride, int lanes, int64_t k, float *panel, int width)
{
    for (int64_t p = 0; p < k; p++)
        for (int r = 0; r < width; r++) panel[p * width + r] = r < lanes ? src[p * stride + r] : 0.0f;
}

void kernels_ref_gemm(kernels *k)
{
    static const gemm_kernel g = { MR, NR, tile, turn, lay };
    k->gemm = &g;
}
