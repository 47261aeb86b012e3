/* row_tmpl.h - row kernels on 16 lanes, compiled once per instruction set: same bits as ref/row.c. Included after a
 * vec_*.h; defines fill_rows(). */
#include <float.h>

#include "kernels/kernels.h"
#include "kernels/ref/hadamard.h"
#include "kernels/ref/mathf.h"
#include "kernels/x86/mathv.h"
#include "kernels/x86/rows.h"

#define KEEP(v) (rest == 16 ? (v) : v_keep(v_first(rest), v))

/* ---- norms ---- */

static void scale_row(float *y, const float *d, float r_, const float *w, const float *b, int64_t n)
{
    vf r = v_set(r_);
    if (w && b) FOR_ROW(n, STORE(y, v_fma(v_mul(LOAD(d), r), LOAD(w), LOAD(b))));
    else if (w) FOR_ROW(n, STORE(y, v_mul(v_mul(LOAD(d), r), LOAD(w))));
    else if (b) FOR_ROW(n, STORE(y, v_add(v_mul(LOAD(d), r), LOAD(b))));
    else FOR_ROW(n, STORE(y, v_mul(LOAD(d), r)));
}

static float inverse_rms(const float *x, int64_t n, float eps)
{
    vf sum = v_zero();
    FOR_ROW(n, vf t = LOAD(x); sum = v_fma(t, t, sum));
    return 1.0f / sqrtf(v_fold(sum) / (float)n + eps);
}

static void rms_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    scale_row(y, x, inverse_rms(x, n, eps), w, b, n);
}

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    vf sum = v_zero();
    FOR_ROW(n, sum = v_add(sum, LOAD(x)));
    vf mean = v_set(v_fold(sum) / (float)n);
    FOR_ROW(n, STORE(y, v_sub(LOAD(x), mean)));
    scale_row(y, y, inverse_rms(y, n, eps), w, b, n);
}

/* ---- activations ---- */

VEC vf logistic(vf x, vf z) { return v_div(x, v_add(v_set(1.0f), v_exp(z))); }

VEC vf f_silu(vf x) { return logistic(x, v_neg(x)); }
VEC vf f_gelu(vf x) { return logistic(x, v_mul(x, v_step(v_mul(x, x), v_set(GELU_K1), GELU_K0))); }
VEC vf f_gelu_erf(vf x)
{
    return v_mul(v_mul(v_set(0.5f), x), v_add(v_set(1.0f), v_erf(v_mul(x, v_set(SQRT_HALF)))));
}
VEC vf f_gelu_quick(vf x) { return logistic(x, v_mul(v_set(GELU_QUICK), x)); }
VEC vf f_relu(vf x) { return v_max(v_zero(), x); }
VEC vf f_relu2(vf x) { return v_mul(f_relu(x), f_relu(x)); }
VEC vf f_sigmoid(vf x) { return logistic(v_set(1.0f), v_neg(x)); }

#define GATE(name) \
    static void name(float *y, const float *gate, const float *up, int64_t n) \
    { \
        if (up) FOR_ROW(n, STORE(y, v_mul(f_##name(LOAD(gate)), LOAD(up)))); \
        else FOR_ROW(n, STORE(y, f_##name(LOAD(gate)))); \
    }
GATE(silu)
GATE(gelu)
GATE(gelu_erf)
GATE(gelu_quick)
GATE(relu)
GATE(relu2)
GATE(sigmoid)

/* ---- element-wise ---- */

static void add(float *y, const float *a, const float *b, int64_t n) { FOR_ROW(n, STORE(y, v_add(LOAD(a), LOAD(b)))); }
static void mul2(float *y, const float *a, const float *b, int64_t n) { FOR_ROW(n, STORE(y, v_mul(LOAD(a), LOAD(b)))); }

static void scale(float *y, const float *x, float s, int64_t n)
{
    vf f = v_set(s);
    FOR_ROW(n, STORE(y, v_mul(LOAD(x), f)));
}

static void axpy(float *y, const float *x, float s, int64_t n)
{
    vf f = v_set(s);
    FOR_ROW(n, STORE(y, v_fma(LOAD(x), f, LOAD(y))));
}

static void softcap(float *y, const float *x, float cap, int64_t n)
{
    vf c = v_set(cap);
    FOR_ROW(n, STORE(y, v_mul(c, v_tanh(v_div(LOAD(x), c)))));
}

static void softmax(float *y, const float *x, int64_t n)
{
    vf top = v_set(-INFINITY), sum = v_zero();
    FOR_ROW(n, vf t = LOAD(x); top = rest == 16 ? v_max(t, top) : v_select(v_first(rest), v_max(t, top), top));
    float max = v_fold_max(top);
    vf m = v_set(max == -INFINITY ? 0.0f : max);
    FOR_ROW(n, vf e = v_exp(v_sub(LOAD(x), m)); STORE(y, e); sum = v_add(sum, KEEP(e)));
    float total = v_fold(sum);
    scale(y, y, total == 0.0f ? 0.0f : 1.0f / total, n);
}

/* ---- rotation ---- */

static void rotate_halves(float *x, const float *cos_, const float *sin_, int64_t n)
{
    float *y = x + n;
    FOR_ROW(n, vf a = LOAD(x); vf b = LOAD(y); vf c = LOAD(cos_); vf s = LOAD(sin_);
            STORE(x, v_fma(a, c, v_neg(v_mul(b, s)))); STORE(y, v_fma(b, c, v_mul(a, s))));
}

static void rotate_pairs(float *x, const float *cos_, const float *sin_, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        vf a = v_load(x + 2 * i);
        v_store(x + 2 * i, v_fmaddsub(a, v_load_twice(cos_ + i), v_mul(v_swap_pairs(a), v_load_twice(sin_ + i))));
    }
    for (; i < n; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(a, cos_[i], -(b * sin_[i]));
        x[2 * i + 1] = fmaf(b, cos_[i], a * sin_[i]);
    }
}

static void rope(float *x, const float *cos_, const float *sin_, int n_pairs, bool neox)
{
    if (neox) rotate_halves(x, cos_, sin_, n_pairs);
    else rotate_pairs(x, cos_, sin_, n_pairs);
}

/* ---- decoders and encoders ---- */

/* The rest goes through a full vector of memory: there are no 16-bit masks below AVX-512. */
#define HALF_CODEC(type) \
    static void decode_row_##type(const void *in, float *out, int64_t n) \
    { \
        const uint8_t *p = in; \
        int64_t i = 0; \
        for (; i + 16 <= n; i += 16) v_store(out + i, v_load_##type(p + 2 * i)); \
        if (i == n) return; \
        uint16_t t[16] = { 0 }; \
        memcpy(t, p + 2 * i, (size_t)(n - i) * 2); \
        v_store_first(out + i, v_load_##type(t), (int)(n - i)); \
    } \
    static void encode_row_##type(const float *in, void *out, int64_t n) \
    { \
        uint8_t *p = out; \
        int64_t i = 0; \
        for (; i + 16 <= n; i += 16) v_store_halves(p + 2 * i, v_to_##type(v_load(in + i))); \
        if (i == n) return; \
        uint16_t t[16]; \
        v_store_halves(t, v_to_##type(v_load_first(in + i, (int)(n - i)))); \
        memcpy(p + 2 * i, t, (size_t)(n - i) * 2); \
    }
HALF_CODEC(f16)
HALF_CODEC(bf16)

/* Q8_0: f16 d, 32 levels of 8 bits. */
static void decode_row_q8_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 34) {
        uint16_t h;
        memcpy(&h, b, 2);
        vf d = v_set(f16_to_f32(h));
        v_store(out + i, v_mul(v_of_i8(b + 2), d));
        v_store(out + i + 16, v_mul(v_of_i8(b + 18), d));
    }
}

/* Nearest integer, ties away from zero. */
VEC vf round_away(vf x)
{
    vf r = v_trunc(x), unit = v_or(v_set(1.0f), v_sign(x));
    return v_select(v_less(v_abs(v_sub(x, r)), v_set(0.5f)), r, v_add(r, unit));
}

/* d = largest magnitude / 127; a block whose 1 / d is not finite, or 0, is all zero. */
static void encode_row_q8_0(const float *in, void *out, int64_t n)
{
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 34) {
        vf lo = v_load(in + i), hi = v_load(in + i + 16);
        float d = v_fold_max(v_max(v_abs(hi), v_max(v_abs(lo), v_zero()))) / 127.0f, id = 1.0f / d;
        if (!(id <= FLT_MAX && id > 0.0f)) d = id = 0.0f;
        uint16_t h = f32_to_f16(d);
        memcpy(b, &h, 2);
        v_to_i8(b + 2, round_away(v_mul(lo, v_set(id))));
        v_to_i8(b + 18, round_away(v_mul(hi, v_set(id))));
    }
}

static void fill_rows(kernels *k)
{
    k->rms_norm = rms_norm;
    k->layer_norm = layer_norm;
    k->silu = silu;
    k->gelu = gelu;
    k->gelu_erf = gelu_erf;
    k->gelu_quick = gelu_quick;
    k->relu = relu;
    k->relu2 = relu2;
    k->sigmoid = sigmoid;
    k->add = add;
    k->mul2 = mul2;
    k->scale = scale;
    k->axpy = axpy;
    k->softmax = softmax;
    k->softcap = softcap;
    k->rope = rope;
    k->hadamard = hadamard;
    k->decode[LOAM_F16] = decode_row_f16;
    k->decode[LOAM_BF16] = decode_row_bf16;
    k->decode[LOAM_Q8_0] = decode_row_q8_0;
    k->encode[LOAM_Q8_0] = encode_row_q8_0;
    k->encode[LOAM_F16] = encode_row_f16;
    k->encode[LOAM_BF16] = encode_row_bf16;
}
