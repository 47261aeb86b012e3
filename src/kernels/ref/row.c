/* row.c - rows of floats in plain C: norms, activations, element-wise operations, softmax, rotation.
 *
 * This file is the law: vector forms give the same bits (a NaN stands for any NaN). Sums go through the 16 lanes of
 * fold.h. Arguments are checked nowhere: lengths and pointers come from the planner; any float value is fine. */
#include "kernels/fold.h"
#include "kernels/kernels.h"
#include "kernels/ref/hadamard.h"
#include "kernels/ref/mathf.h"
#include "kernels/ref/row.h"

/* ---- norms ---- */

static void scale_row(float *y, const float *d, float r, const float *w, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float t = d[i] * r;
        if (w) t = b ? fmaf(t, w[i], b[i]) : t * w[i];
        else if (b) t += b[i];
        y[i] = t;
    }
}

static float inverse_rms(const float *x, int64_t n, float eps)
{
    float lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % LANES] = fmaf(x[i], x[i], lane[i % LANES]);
    return 1.0f / sqrtf(fold_lanes(lane) / (float)n + eps);
}

static void rms_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    scale_row(y, x, inverse_rms(x, n, eps), w, b, n);
}

/* Two passes: the variance is taken of the differences from the mean. */
static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    float lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % LANES] += x[i];
    float mean = fold_lanes(lane) / (float)n;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - mean;
    scale_row(y, y, inverse_rms(y, n, eps), w, b, n);
}

/* ---- activations ---- */

/* x times the logistic function of -z, written with one division. */
static float logistic(float x, float z) { return x / (1.0f + math_exp(z)); }

static float f_silu(float x) { return logistic(x, -x); }
/* (1 + tanh(u)) / 2 is the logistic function of 2u: no cancellation where x is negative. */
static float f_gelu(float x) { return logistic(x, x * fmaf(x * x, GELU_K1, GELU_K0)); }
static float f_gelu_erf(float x) { return 0.5f * x * (1.0f + math_erf(x * SQRT_HALF)); }
static float f_gelu_quick(float x) { return logistic(x, GELU_QUICK * x); }
static float f_relu(float x) { return 0.0f > x ? 0.0f : x; }
static float f_relu2(float x) { return f_relu(x) * f_relu(x); }
static float f_sigmoid(float x) { return logistic(1.0f, -x); }

#define GATE(name) \
    static void name(float *y, const float *gate, const float *up, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) y[i] = up ? f_##name(gate[i]) * up[i] : f_##name(gate[i]); \
    }
GATE(silu)
GATE(gelu)
GATE(gelu_erf)
GATE(gelu_quick)
GATE(relu)
GATE(relu2)
GATE(sigmoid)

/* ---- element-wise ---- */

static void add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void mul2(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void scale(float *y, const float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s;
}

static void axpy(float *y, const float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(x[i], s, y[i]);
}

static void softcap(float *y, const float *x, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = cap * math_tanh(x[i] / cap);
}

/* The maximum passes over NaN, which then makes the sum, and with it every element, NaN. A row of -inf gives zeros. */
static void softmax(float *y, const float *x, int64_t n)
{
    float max = -INFINITY, lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    if (max == -INFINITY) max = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        y[i] = math_exp(x[i] - max);
        lane[i % LANES] += y[i];
    }
    float sum = fold_lanes(lane), r = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int64_t i = 0; i < n; i++) y[i] *= r;
}

static void rope(float *x, const float *cos_, const float *sin_, int n_pairs, bool neox)
{
    for (int i = 0; i < n_pairs; i++) {
        float *a = neox ? x + i : x + 2 * i, *b = neox ? x + n_pairs + i : a + 1;
        float a0 = *a, b0 = *b;
        *a = fmaf(a0, cos_[i], -(b0 * sin_[i]));
        *b = fmaf(b0, cos_[i], a0 * sin_[i]);
    }
}

void kernels_ref_row(kernels *k)
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
    kernels_ref_codec(k);
}
