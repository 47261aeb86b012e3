/* state.c - recurrent states in plain C: short convolution, selective scan, gated delta rule, RWKV; and their gates.
 *
 * This file is the law: vector forms give the same bits. Sums over a row go through the 16 lanes of fold.h. */
#include "kernels/fold.h"
#include "kernels/kernels.h"
#include "kernels/ref/mathf.h"

/* ---- gates ---- */

#define GATE(name, f) \
    static void name(float *y, const float *gate, const float *up, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) y[i] = up ? f(gate[i]) * up[i] : f(gate[i]); \
    }
GATE(softplus, math_softplus)
GATE(exponential, math_exp)
GATE(tangent, math_tanh)

/* ---- states ---- */

static void conv(const conv_args *a)
{
    for (int64_t i = 0; i < a->n; i++) {
        float y = 0.0f, x = a->x[i], *win = a->win + i;
        int last = a->taps - 1;
        for (int t = 0; t < last; t++) y = fmaf(a->w[(size_t)t * a->w_stride + (size_t)i], win[(size_t)t * a->win_stride], y);
        y = fmaf(a->w[(size_t)last * a->w_stride + (size_t)i], x, y);
        for (int t = 0; t + 1 < last; t++) win[(size_t)t * a->win_stride] = win[(size_t)(t + 1) * a->win_stride];
        if (last > 0) win[(size_t)(last - 1) * a->win_stride] = x;
        a->y[i] = a->bias ? y + a->bias[i] : y;
    }
}

static void scan_each(const scan_args *a)
{
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n, lane[LANES] = { 0 }, dt = a->dt[r], step = dt * a->x[r];
        const float *decay = a->a + r * a->n;
        for (int64_t i = 0; i < a->n; i++) {
            s[i] = fmaf(s[i], math_exp(dt * decay[i]), step * a->b[i]);
            lane[i % LANES] = fmaf(s[i], a->c[i], lane[i % LANES]);
        }
        a->y[r] = fmaf(a->d[r], a->x[r], fold_lanes(lane));
    }
}

static void scan_shared(const scan_args *a)
{
    float decay = math_exp(*a->dt * *a->a);
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n, lane[LANES] = { 0 }, step = *a->dt * a->x[r];
        for (int64_t i = 0; i < a->n; i++) {
            s[i] = fmaf(s[i], decay, step * a->b[i]);
            lane[i % LANES] = fmaf(s[i], a->c[i], lane[i % LANES]);
        }
        a->y[r] = fmaf(*a->d, a->x[r], fold_lanes(lane));
    }
}

static void delta(const delta_args *a)
{
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n, lane[LANES] = { 0 }, out[LANES] = { 0 };
        for (int64_t i = 0; i < a->n; i++) {
            s[i] *= a->decay[a->each ? i : 0];
            lane[i % LANES] = fmaf(s[i], a->k[i], lane[i % LANES]);
        }
        float u = a->beta * (a->v[r] - fold_lanes(lane));
        for (int64_t i = 0; i < a->n; i++) {
            s[i] = fmaf(u, a->k[i], s[i]);
            out[i % LANES] = fmaf(s[i], a->q[i], out[i % LANES]);
        }
        a->y[r] = fold_lanes(out);
    }
}

static void wkv6(const wkv6_args *a)
{
    for (int64_t j = 0; j < a->n; j++) a->y[j] = 0.0f;
    for (int64_t i = 0; i < a->n; i++) {
        float *s = a->s + i * a->n, r = a->r[i], k = a->k[i], w = a->w[i], uk = a->u ? a->u[i] * k : 0.0f;
        for (int64_t j = 0; j < a->n; j++) {
            float old = s[j];
            s[j] = fmaf(old, w, k * a->v[j]);
            a->y[j] = fmaf(r, a->u ? fmaf(uk, a->v[j], old) : s[j], a->y[j]);
        }
    }
}

static void wkv7(const wkv7_args *a)
{
    for (int64_t r = 0; r < a->rows; r++) {
        float *s = a->s + r * a->n, lane[LANES] = { 0 }, out[LANES] = { 0 }, v = a->v[r];
        for (int64_t j = 0; j < a->n; j++) lane[j % LANES] = fmaf(s[j], a->kk[j], lane[j % LANES]);
        float e = -fold_lanes(lane);
        for (int64_t j = 0; j < a->n; j++) {
            s[j] = fmaf(s[j], a->w[j], fmaf(v, a->k[j], e * a->ka[j]));
            out[j % LANES] = fmaf(s[j], a->r[j], out[j % LANES]);
        }
        a->y[r] = fold_lanes(out);
    }
}

void kernels_ref_state(kernels *k)
{
    k->softplus = softplus, k->exp_ = exponential, k->tanh_ = tangent;
    k->conv = conv;
    k->scan_each = scan_each, k->scan_shared = scan_shared;
    k->delta = delta;
    k->wkv6 = wkv6, k->wkv7 = wkv7;
}
