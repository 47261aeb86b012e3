/* learn.c - learn.h in plain C: the law for the vector forms. */
#include "kernels/fold.h"
#include "kernels/kernels.h"
#include "kernels/learn.h"
#include "kernels/ref/learn_plain.h"
#include "kernels/ref/mathf.h"

/* ---- sums ---- */

static float dot(const float *a, const float *b, int64_t n)
{
    float lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % LANES] = fmaf(a[i], b[i], lane[i % LANES]);
    return fold_lanes(lane);
}

static float sum(const float *a, int64_t n)
{
    float lane[LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % LANES] += a[i];
    return fold_lanes(lane);
}

/* ---- norms ---- */

static void norm_back(const norm_back_args *a, bool centred)
{
    const float *x = a->x, *w = a->w;
    float n = (float)a->n, mean = centred ? sum(x, a->n) / n : 0.0f;
    float squares[LANES] = { 0 }, gs[LANES] = { 0 }, gx[LANES] = { 0 };
    for (int64_t i = 0; i < a->n; i++) {
        float d = x[i] - mean, g = w ? a->dy[i] * w[i] : a->dy[i];
        int l = (int)(i % LANES);
        squares[l] = fmaf(d, d, squares[l]);
        gs[l] += g;
        gx[l] = fmaf(g, d, gx[l]);
    }
    float r = 1.0f / sqrtf(fold_lanes(squares) / n + a->eps);
    a->stats[0] = mean, a->stats[1] = r;
    if (!a->dx) return;
    float mg = centred ? fold_lanes(gs) / n : 0.0f, mx = fold_lanes(gx) * r / n * r;
    for (int64_t i = 0; i < a->n; i++) {
        float d = x[i] - mean, g = w ? a->dy[i] * w[i] : a->dy[i];
        float t = fmaf(-d, mx, g - mg) * r;
        a->dx[i] = a->add ? a->dx[i] + t : t;
    }
}

static void rms_back(const norm_back_args *a) { norm_back(a, false); }
static void layer_back(const norm_back_args *a) { norm_back(a, true); }

static void norm_weight(float *dw, const float *dy, const float *x, const float *stats, int64_t n)
{
    for (int64_t i = 0; i < n; i++) dw[i] = fmaf(dy[i], (x[i] - stats[0]) * stats[1], dw[i]);
}

/* ---- activations: d_X gives the derivative and sets *f to the value ---- */

static float d_silu(float x, float *f)
{
    float s = 1.0f / (1.0f + math_exp(-x));
    *f = x * s;
    return fmaf(*f, 1.0f - s, s);
}

/* The logistic function of -z(x) times x, dz its derivative. */
static float d_logistic(float x, float z, float dz, float *f)
{
    float s = 1.0f / (1.0f + math_exp(z));
    *f = x * s;
    return fmaf(*f * (1.0f - s), -dz, s);
}

static float d_gelu(float x, float *f)
{
    float z = x * x;
    return d_logistic(x, x * fmaf(z, GELU_K1, GELU_K0), fmaf(z, 3.0f * GELU_K1, GELU_K0), f);
}

static float d_gelu_quick(float x, float *f) { return d_logistic(x, GELU_QUICK * x, GELU_QUICK, f); }

#define ROOT_2PI 0.39894228040143267794f /* 1 / sqrt(2 pi) */

static float d_gelu_erf(float x, float *f)
{
    float half = 0.5f * (1.0f + math_erf(x * SQRT_HALF));
    *f = x * half;
    return fmaf(x * math_exp(-0.5f * x * x), ROOT_2PI, half);
}

static float d_relu(float x, float *f)
{
    *f = 0.0f < x ? x : 0.0f;
    return 0.0f < x ? 1.0f : 0.0f;
}

static float d_relu2(float x, float *f)
{
    float r = 0.0f < x ? x : 0.0f;
    *f = r * r;
    return r + r;
}

static float d_sigmoid(float x, float *f)
{
    *f = 1.0f / (1.0f + math_exp(-x));
    return *f * (1.0f - *f);
}

static float d_softplus(float x, float *f)
{
    *f = math_softplus(x);
    return 1.0f / (1.0f + math_exp(-x));
}

static float d_exp_(float x, float *f) { return *f = math_exp(x); }

static float d_tanh_(float x, float *f)
{
    *f = math_tanh(x);
    return fmaf(-*f, *f, 1.0f);
}

#define GATE(name) \
    static void name(const gate_back_args *a) \
    { \
        for (int64_t i = 0; i < a->n; i++) { \
            float f, d = d_##name(a->gate[i], &f), dy = a->dy[i]; \
            if (a->dgate) { \
                float t = a->up ? dy * a->up[i] * d : dy * d; \
                a->dgate[i] = a->add_gate ? a->dgate[i] + t : t; \
            } \
            if (a->dup) a->dup[i] = a->add_up ? fmaf(dy, f, a->dup[i]) : dy * f; \
        } \
    }
GATE(silu)
GATE(gelu)
GATE(gelu_erf)
GATE(gelu_quick)
GATE(relu)
GATE(relu2)
GATE(sigmoid)
GATE(softplus)
GATE(exp_)
GATE(tanh_)

/* ---- rows ---- */

static void mul_add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = fmaf(a[i], b[i], y[i]);
}

static void exp_from(float *y, const float *x, float from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = math_exp(x[i] - from);
}

static float exp_sum(float *y, const float *x, float *max, int64_t n)
{
    float top = -INFINITY;
    for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    *max = top;
    exp_from(y, x, top == -INFINITY ? 0.0f : top, n);
    return sum(y, n);
}

static void soft_back(float *ds, const float *p, float d, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ds[i] = p[i] * (ds[i] - d) * s;
}

void kernels_ref_learn(kernels *k)
{
    static const learn_kernels l = {
        rms_back, layer_back, silu, gelu, gelu_erf, gelu_quick, relu, relu2, sigmoid, softplus, exp_, tanh_, dot, sum, mul_add,
        norm_weight, exp_sum, exp_from, soft_back, plain_square_sum, plain_adamw, plain_sgd,
    };
    k->learn = &l;
}
