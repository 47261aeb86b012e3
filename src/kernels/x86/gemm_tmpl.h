/* gemm_tmpl.h - the tile of gemm.h in registers: MR rows x NV vectors of sums, and packing by 16 x 16 turns. Included after
 * a vec_*.h with MR and NV defined; defines gemm_of_set. */
#include <string.h>

#include "kernels/gemm.h"

#define NR (NV * N_LANES)
#define AHEAD 12 /* steps: panels of B come from the second cache */

static void tile(int64_t k, const float *a, const float *b, float *c, int64_t c_stride, bool add)
{
    nf sum[MR][NV];
    UNROLL(16) for (int i = 0; i < MR; i++)
        UNROLL(4) for (int j = 0; j < NV; j++) sum[i][j] = add ? n_load(c + i * c_stride + j * N_LANES) : n_zero();
    if (!add) { /* what is stored at the end is fetched meanwhile */
        UNROLL(16) for (int i = 0; i < MR; i++) {
            __builtin_prefetch(c + i * c_stride, 1);
            __builtin_prefetch(c + i * c_stride + NR - 1, 1);
        }
    }
    for (int64_t p = 0; p < k; p++, a += MR, b += NR) {
        nf x[NV];
        __builtin_prefetch(b + AHEAD * NR);
        __builtin_prefetch(b + AHEAD * NR + NR / 2);
        UNROLL(4) for (int j = 0; j < NV; j++) x[j] = n_load(b + j * N_LANES);
        UNROLL(16) for (int i = 0; i < MR; i++) {
            nf y = n_set(a[i]);
            UNROLL(4) for (int j = 0; j < NV; j++) sum[i][j] = n_fma(y, x[j], sum[i][j]);
        }
    }
    UNROLL(16) for (int i = 0; i < MR; i++)
        UNROLL(4) for (int j = 0; j < NV; j++) n_store(c + i * c_stride + j * N_LANES, sum[i][j]);
}

/* 16 lanes at a time; a vector that reaches beyond the panel's width is overwritten by the next k. */
static void turn(const float *src, int64_t stride, int rows, int64_t k, float *panel, int width)
{
    float in[16 * 16], out[16 * 16];
    for (int first = 0; first < width && first < rows; first += 16) {
        int have = rows - first < 16 ? rows - first : 16;
        const float *from = src + first * stride;
        float *to = panel + first;
        int64_t p = 0;
        for (; p + 16 <= k; p += 16) {
            const float *square = from + p;
            size_t step = (size_t)stride;
            if (have < 16) {
                for (int r = 0; r < 16; r++) v_store(in + 16 * r, v_load(square + (r < have ? r : 0) * stride));
                square = in, step = 16;
            }
            if (width - first >= 16) {
                v_transpose(square, step, to + p * width, (size_t)width);
                continue;
            }
            v_transpose(square, step, out, 16);
            for (int i = 0; i < 16; i++) v_store(to + (p + i) * width, v_load(out + 16 * i));
        }
        int lanes = width - first < 16 ? width - first : 16;
        for (; p < k; p++)
            for (int r = 0; r < lanes; r++) to[p * width + r] = r < have ? from[r * stride + p] : 0.0f;
    }
}

static void lay(const float *src, int64_t stride, int lanes, int64_t k, float *panel, int width)
{
    for (int64_t p = 0; p < k; p++, src += stride, panel += width)
        for (int first = 0; first < width; first += 16) {
            int have = lanes - first < 0 ? 0 : lanes - first < 16 ? lanes - first : 16;
            v_store(panel + first, have == 16 ? v_load(src + first) : v_load_first(src + first, have));
        }
}

static const gemm_kernel gemm_of_set = { MR, NR, tile, turn, lay };
