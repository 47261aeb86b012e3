/* mul.c - products of quantized weights with 8-bit activations: the reference, in the written orders of kernels.h.
 *
 * Every type goes through its unpacker (mul.h) and one of two sums. A type with a scale for each 16 values inside a
 * piece of 32 takes two steps of 16 for it, ascending. */
#include <math.h>

#include "kernels/act.h"
#include "kernels/kernels.h"
#include "kernels/ref/mul_types.h"

static int dot16(const int8_t *a, const int8_t *b)
{
    int s = 0;
    for (int i = 0; i < 16; i++) s += a[i] * b[i];
    return s;
}

static float step256(const weight256 *w, const act_a256 *x, const weight_form *form, float acc)
{
    float levels = 0.0f;
    int32_t minima = 0;
    for (int v = 0; v < 256; v += form->sub) {
        int p = dot16(w->level + v, x->q + v);
        if (form->sub == 32) p += dot16(w->level + v + 16, x->q + v + 16);
        levels = fmaf((float)w->scale[v / 16], (float)p, levels);
    }
    acc = fmaf(w->d * x->d, levels, acc);
    if (!form->has_min) return acc;
    for (int j = 0; j < 16; j++) minima += w->min[j] * x->sum16[j];
    return fmaf(-(w->dmin * x->d), (float)minima, acc);
}

static float step32(const weight32 *w, const act_a32 *x, int i, const weight_form *form, float acc)
{
    const int8_t *q = x->q + 32 * i;
    const int low = dot16(w->level, q), high = dot16(w->level + 16, q + 16);
    if (form->split) return fmaf(w->d[1] * x->d[i], (float)high, fmaf(w->d[0] * x->d[i], (float)low, acc));
    acc = fmaf(w->d[0] * x->d[i], (float)(low + high), acc);
    return form->has_min ? fmaf(w->m, x->ds[i], acc) : acc;
}

static void mul_any(const mul_args *a, loam_type type)
{
    const weight_form *form = &weight_forms[type];
    const bool super = form->unpack256 != NULL;
    const int64_t pieces = a->k / (super ? 256 : 32);
    for (int r = 0; r < a->rows; r++) {
        const uint8_t *row = (const uint8_t *)a->w + (size_t)r * a->w_stride;
        for (int c = 0; c < a->cols; c++) a->y[(size_t)c * a->y_stride + (size_t)r] = 0.0f;
        for (int64_t i = 0; i < pieces; i++) {
            weight256 w256;
            weight32 w32;
            if (super) form->unpack256(row, i, &w256);
            else form->unpack32(row, i, &w32);
            for (int c = 0; c < a->cols; c++) {
                const uint8_t *x = (const uint8_t *)a->x + (size_t)c * a->x_stride;
                float *y = &a->y[(size_t)c * a->y_stride + (size_t)r];
                if (super) *y = step256(&w256, (const act_a256 *)x + i, form, *y);
                else *y = step32(&w32, (const act_a32 *)x + i / 8, (int)(i % 8), form, *y);
            }
        }
    }
}

#define PRODUCT32(NAME, suffix, has_min, split) \
    static void mul_##suffix(const mul_args *a) { mul_any(a, LOAM_##NAME); }
#define PRODUCT256(NAME, suffix, has_min, sub) PRODUCT32(NAME, suffix, has_min, 0)
MUL_TYPES(PRODUCT32, PRODUCT256)

const weight_form weight_forms[LOAM_TYPE_LIMIT] = {
#define FORM32(NAME, suffix, min, split_) [LOAM_##NAME] = { NULL, unpack_##suffix, min, 0, split_ },
#define FORM256(NAME, suffix, min, sub_) [LOAM_##NAME] = { unpack_##suffix, NULL, min, sub_, false },
    MUL_TYPES(FORM32, FORM256)
};

size_t mul_scratch(int64_t k)
{
    (void)k;
    return MUL_SCRATCH;
}

void kernels_ref_mul(kernels *k)
{
    k->act_encode[ACT_A32] = act_encode_a32;
    k->act_encode[ACT_A256] = act_encode_a256;
#define FILL32(NAME, suffix, has_min, split) k->mul[LOAM_##NAME] = mul_##suffix;
#define FILL256(NAME, suffix, has_min, sub) FILL32(NAME, suffix, has_min, 0)
    MUL_TYPES(FILL32, FILL256)
    kernels_ref_mulf(k);
}
