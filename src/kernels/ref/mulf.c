/* mulf.c - products with F32, F16 and BF16 weights in plain C: 16 lanes along k, then the fold. The law for the vector
 * forms. Weight rows may stand at any address. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernels/fold.h"
#include "kernels/kernels.h"

static inline float load_f32(const uint8_t *p, int64_t i)
{
    float f;
    memcpy(&f, p + 4 * i, 4);
    return f;
}

static inline uint16_t load_u16(const uint8_t *p, int64_t i)
{
    uint16_t h;
    memcpy(&h, p + 2 * i, 2);
    return h;
}
static inline float load_f16(const uint8_t *p, int64_t i) { return f16_to_f32(load_u16(p, i)); }
static inline float load_bf16(const uint8_t *p, int64_t i) { return bf16_to_f32(load_u16(p, i)); }

#define MUL(type) \
    static float dot_##type(const uint8_t *w, const float *x, int64_t k) \
    { \
        float lane[LANES] = { 0 }; \
        for (int64_t i = 0; i < k; i++) lane[i % LANES] = fmaf(load_##type(w, i), x[i], lane[i % LANES]); \
        return fold_lanes(lane); \
    } \
    static void mul_##type(const mul_args *a) \
    { \
        for (int c = 0; c < a->cols; c++) \
            for (int r = 0; r < a->rows; r++) \
                a->y[(size_t)c * a->y_stride + r] = \
                    dot_##type((const uint8_t *)a->w + (size_t)r * a->w_stride, \
                               (const float *)((const uint8_t *)a->x + (size_t)c * a->x_stride), a->k); \
    }
MUL(f32)
MUL(f16)
MUL(bf16)

static void act_encode_f32(const float *x, void *out, int64_t k) { memcpy(out, x, (size_t)k * sizeof *x); }

void kernels_ref_mulf(kernels *k)
{
    k->mul[LOAM_F32] = mul_f32;
    k->mul[LOAM_F16] = mul_f16;
    k->mul[LOAM_BF16] = mul_bf16;
    k->act_encode[ACT_F32] = act_encode_f32;
}
