/* state_tmpl.h - recurrent states on 16 lanes, compiled once per instruction set: same bits as ref/state.c. Included after a
 * vec_*.h; defines fill_states(). Rows shorter than 16, or their rest, are loaded with zeros behind them, which changes no
 * sum; zeros are never stored. */
#include "kernels/kernels.h"
#include "kernels/ref/mathf.h"
#include "kernels/x86/mathv.h"
#include "kernels/x86/rows.h"

/* sum + t c in the lanes that are there: infinities must not turn the others into NaN. */
#define SUM(sum, t, c) (rest == 16 ? v_fma(t, c, sum) : v_select(v_first(rest), v_fma(t, c, sum), sum))

#define GATE(name, f) \
    static void name(float *y, const float *gate, const float *up, int64_t n) \
    { \
        if (up) FOR_ROW(n, STORE(y, v_mul(f(LOAD(gate)), LOAD(up)))); \
        else FOR_ROW(n, STORE(y, f(LOAD(gate)))); \
    }
GATE(exponential, v_exp)
GATE(tangent, v_tanh)

/* One by one, with this instruction set's fused operations. */
static void softplus(float *y, const float *gate, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = up ? math_softplus(gate[i]) * up[i] : math_softplus(gate[i]);
}

static void conv(const conv_args *a)
{
    int last = a->taps - 1;
    FOR_ROW(a->n, {
        vf x = LOAD(a->x);
        vf y = v_zero();
        float *win = a->win;
        for (int t = 0; t < last; t++) {
            vf s = LOAD(win + (size_t)t * a->win_stride);
            y = v_fma(LOAD(a->w + (size_t)t * a->w_stride), s, y);
            if (t > 0) STORE(win + (size_t)(t - 1) * a->win_stride, s);
        }
        y = v_fma(LOAD(a->w + (size_t)last * a->w_stride), x, y);
        if (last > 0) STORE(win + (size_t)(last - 1) * a->win_stride, x);
        STORE(a->y, a->bias ? v_add(y, LOAD(a->bias)) : y);
    });
}

static void scan_each(const scan_args *a)
{
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n;
        const float *decay = a->a + r * a->n;
        vf sum = v_zero(), dt = v_set(a->dt[r]), step = v_set(a->dt[r] * a->x[r]);
        FOR_ROW(a->n, {
            vf e = v_exp(v_mul(dt, LOAD(decay)));
            vf t = v_fma(LOAD(s), e, v_mul(step, LOAD(a->b)));
            STORE(s, t);
            sum = SUM(sum, t, LOAD(a->c));
        });
        a->y[r] = fmaf(a->d[r], a->x[r], v_fold(sum));
    }
}

static void scan_shared(const scan_args *a)
{
    float decays[16];
    v_store(decays, v_exp(v_set(*a->dt * *a->a)));
    vf decay = v_set(decays[0]);
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n;
        vf sum = v_zero(), step = v_set(*a->dt * a->x[r]);
        FOR_ROW(a->n, {
            vf t = v_fma(LOAD(s), decay, v_mul(step, LOAD(a->b)));
            STORE(s, t);
            sum = SUM(sum, t, LOAD(a->c));
        });
        a->y[r] = fmaf(*a->d, a->x[r], v_fold(sum));
    }
}

static void delta(const delta_args *a)
{
    vf one = v_set(*a->decay);
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n;
        vf sum = v_zero(), out = v_zero();
        FOR_ROW(a->n, {
            vf t = v_mul(LOAD(s), a->each ? LOAD(a->decay) : one);
            STORE(s, t);
            sum = SUM(sum, t, LOAD(a->k));
        });
        vf u = v_set(a->beta * (a->v[r] - v_fold(sum)));
        FOR_ROW(a->n, {
            vf t = v_fma(u, LOAD(a->k), LOAD(s));
            STORE(s, t);
            out = SUM(out, t, LOAD(a->q));
        });
        a->y[r] = v_fold(out);
    }
}

static void wkv6(const wkv6_args *a)
{
    FOR_ROW(a->n, STORE(a->y, v_zero()));
    for (int64_t key = 0; key < a->n; key++) {
        float *s = a->s + key * a->n;
        vf r = v_set(a->r[key]), k = v_set(a->k[key]), w = v_set(a->w[key]), uk = v_set(a->u ? a->u[key] * a->k[key] : 0.0f);
        FOR_ROW(a->n, {
            vf old = LOAD(s);
            vf v = LOAD(a->v);
            vf t = v_fma(old, w, v_mul(k, v));
            STORE(s, t);
            STORE(a->y, v_fma(r, a->u ? v_fma(uk, v, old) : t, LOAD(a->y)));
        });
    }
}

static void wkv7(const wkv7_args *a)
{
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n;
        vf sum = v_zero(), out = v_zero(), v = v_set(a->v[r]);
        FOR_ROW(a->n, sum = SUM(sum, LOAD(s), LOAD(a->kk)));
        vf e = v_set(-v_fold(sum));
        FOR_ROW(a->n, {
            vf t = v_fma(LOAD(s), LOAD(a->w), v_fma(v, LOAD(a->k), v_mul(e, LOAD(a->ka))));
            STORE(s, t);
            out = SUM(out, t, LOAD(a->r));
        });
        a->y[r] = v_fold(out);
    }
}

static void fill_states(kernels *k)
{
    k->softplus = softplus, k->exp_ = exponential, k->tanh_ = tangent;
    k->conv = conv;
    k->scan_each = scan_each, k->scan_shared = scan_shared;
    k->delta = delta;
    k->wkv6 = wkv6, k->wkv7 = wkv7;
}
