/* learn_tmpl.h - learn.h on 16 lanes, compiled once per instruction set: the operations of ref/learn.c in its order. Included
 * after a vec_*.h; defines fill_learn(). */
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/learn.h"
#include "kernels/ref/learn_plain.h"
#include "kernels/x86/mathv.h"
#include "kernels/x86/rows.h"

/* ---- sums: lanes beyond the row add 0 ---- */

static float dot(const float *a, const float *b, int64_t n)
{
    vf s = v_zero();
    FOR_ROW(n, s = v_fma(LOAD(a), LOAD(b), s));
    return v_fold(s);
}

static float sum(const float *a, int64_t n)
{
    vf s = v_zero();
    FOR_ROW(n, s = v_add(s, LOAD(a)));
    return v_fold(s);
}

/* ---- norms ---- */

#define KEEP(v) (rest == 16 ? (v) : v_keep(v_first(rest), v))

VEC void norm_back(const norm_back_args *a, bool centred)
{
    const float *x = a->x, *w = a->w, *dy = a->dy;
    float n = (float)a->n, mean = centred ? sum(x, a->n) / n : 0.0f;
    vf squares = v_zero(), gs = v_zero(), gx = v_zero(), m = v_set(mean);
    FOR_ROW(a->n, vf d = KEEP(v_sub(LOAD(x), m)); vf g = w ? v_mul(LOAD(dy), LOAD(w)) : LOAD(dy); squares = v_fma(d, d, squares);
            gs = v_add(gs, g); gx = v_fma(g, d, gx));
    float r = 1.0f / sqrtf(v_fold(squares) / n + a->eps);
    a->stats[0] = mean, a->stats[1] = r;
    if (!a->dx) return;
    vf mg = v_set(centred ? v_fold(gs) / n : 0.0f), mx = v_set(v_fold(gx) * r / n * r), rv = v_set(r);
    float *dx = a->dx;
    FOR_ROW(a->n, vf d = v_sub(LOAD(x), m); vf g = w ? v_mul(LOAD(dy), LOAD(w)) : LOAD(dy);
            vf t = v_mul(v_fma(v_neg(d), mx, v_sub(g, mg)), rv); STORE(dx, a->add ? v_add(LOAD(dx), t) : t));
}

static void rms_back(const norm_back_args *a) { norm_back(a, false); }
static void layer_back(const norm_back_args *a) { norm_back(a, true); }

static void norm_weight(float *dw, const float *dy, const float *x, const float *stats, int64_t n)
{
    vf m = v_set(stats[0]), r = v_set(stats[1]);
    FOR_ROW(n, STORE(dw, v_fma(LOAD(dy), v_mul(v_sub(LOAD(x), m), r), LOAD(dw))));
}

/* ---- activations ---- */

VEC vf inverse_1p_exp(vf z) { return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp(z))); }

VEC vf d_silu(vf x, vf *f)
{
    vf s = inverse_1p_exp(v_neg(x));
    *f = v_mul(x, s);
    return v_fma(*f, v_sub(v_set(1.0f), s), s);
}

VEC vf d_logistic(vf x, vf z, vf minus_dz, vf *f)
{
    vf s = inverse_1p_exp(z);
    *f = v_mul(x, s);
    return v_fma(v_mul(*f, v_sub(v_set(1.0f), s)), minus_dz, s);
}

VEC vf d_gelu(vf x, vf *f)
{
    vf z = v_mul(x, x);
    return d_logistic(x, v_mul(x, v_step(z, v_set(GELU_K1), GELU_K0)), v_neg(v_step(z, v_set(3.0f * GELU_K1), GELU_K0)), f);
}

VEC vf d_gelu_quick(vf x, vf *f) { return d_logistic(x, v_mul(v_set(GELU_QUICK), x), v_set(-GELU_QUICK), f); }

#define ROOT_2PI 0.39894228040143267794f

VEC vf d_gelu_erf(vf x, vf *f)
{
    vf half = v_mul(v_set(0.5f), v_add(v_set(1.0f), v_erf(v_mul(x, v_set(SQRT_HALF)))));
    *f = v_mul(x, half);
    return v_fma(v_mul(x, v_exp(v_mul(v_mul(v_set(-0.5f), x), x))), v_set(ROOT_2PI), half);
}

VEC vf d_relu(vf x, vf *f)
{
    vm on = v_less(v_zero(), x);
    *f = v_select(on, x, v_zero());
    return v_select(on, v_set(1.0f), v_zero());
}

VEC vf d_relu2(vf x, vf *f)
{
    vf r = v_select(v_less(v_zero(), x), x, v_zero());
    *f = v_mul(r, r);
    return v_add(r, r);
}

VEC vf d_sigmoid(vf x, vf *f)
{
    *f = inverse_1p_exp(v_neg(x));
    return v_mul(*f, v_sub(v_set(1.0f), *f));
}

VEC vf d_exp_(vf x, vf *f) { return *f = v_exp(x); }

VEC vf d_tanh_(vf x, vf *f)
{
    *f = v_tanh(x);
    return v_fma(v_neg(*f), *f, v_set(1.0f));
}

#define GATE(name) \
    static void name(const gate_back_args *a) \
    { \
        const float *gate = a->gate, *up = a->up, *dy = a->dy; \
        float *dgate = a->dgate, *dup = a->dup; \
        FOR_ROW(a->n, vf f; vf d = d_##name(LOAD(gate), &f); vf g = LOAD(dy); \
                if (dgate) { \
                    vf t = up ? v_mul(v_mul(g, LOAD(up)), d) : v_mul(g, d); \
                    STORE(dgate, a->add_gate ? v_add(LOAD(dgate), t) : t); \
                } \
                if (dup) STORE(dup, a->add_up ? v_fma(g, f, LOAD(dup)) : v_mul(g, f));); \
    }
GATE(silu)
GATE(gelu)
GATE(gelu_erf)
GATE(gelu_quick)
GATE(relu)
GATE(relu2)
GATE(sigmoid)
GATE(exp_)
GATE(tanh_)

/* ---- rows ---- */

static void mul_add(float *y, const float *a, const float *b, int64_t n) { FOR_ROW(n, STORE(y, v_fma(LOAD(a), LOAD(b), LOAD(y)))); }

static void exp_from(float *y, const float *x, float from, int64_t n)
{
    vf m = v_set(from);
    FOR_ROW(n, STORE(y, v_exp(v_sub(LOAD(x), m))));
}

static float exp_sum(float *y, const float *x, float *max, int64_t n)
{
    vf top = v_set(-INFINITY), s = v_zero();
    FOR_ROW(n, vf t = LOAD(x); top = rest == 16 ? v_max(t, top) : v_select(v_first(rest), v_max(t, top), top));
    *max = v_fold_max(top);
    vf m = v_set(*max == -INFINITY ? 0.0f : *max);
    FOR_ROW(n, vf e = v_exp(v_sub(LOAD(x), m)); STORE(y, e); s = v_add(s, KEEP(e)));
    return v_fold(s);
}

static void soft_back(float *ds, const float *p, float d, float s, int64_t n)
{
    vf dv = v_set(d), sv = v_set(s);
    FOR_ROW(n, STORE(ds, v_mul(v_mul(LOAD(p), v_sub(LOAD(ds), dv)), sv)));
}

/* softplus is left as it was: it needs a logarithm. */
static void fill_learn(learn_kernels *own, kernels *k)
{
    gate_back_fn softplus = k->learn->softplus;
    *own = (learn_kernels) {
        rms_back, layer_back, silu, gelu, gelu_erf, gelu_quick, relu, relu2, sigmoid, softplus, exp_, tanh_, dot, sum, mul_add,
        norm_weight, exp_sum, exp_from, soft_back, plain_square_sum, plain_adamw, plain_sgd,
    };
    k->learn = own;
}
