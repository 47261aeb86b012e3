/* cpu_rows.c - operations on rows of floats: look-ups, elementwise arithmetic, norms. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "device/cpu.h"
#include "kernels/learn.h"
#include "kernels/ref/mathf.h"

/* ---- look-ups ---- */

/* False where there is no such row: the result is zeros, and the run fails. */
static bool has_row(worker *w, const value *v, int64_t row, int64_t rows, float *y)
{
    if (row >= 0 && row < rows) return true;
    memset(y, 0, (size_t)row_values(v) * 4);
    atomic_store_explicit(&w->run->bad_index, v->id + 1, memory_order_relaxed);
    return false;
}

void run_embed(const step *s, worker *w)
{
    const value *v = s->v, *table = v->src[0];
    const int32_t *ids = value_data(v->src[1], w);
    const char *rows = value_data(table, w);
    row_decode_fn decode = w->run->k->decode[table->type];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        if (has_row(w, v, ids[t], table->ne[1], row_at(v, w, t, 0))) decode(rows + ids[t] * table->nb[1], row_at(v, w, t, 0), v->ne[0]);
}

void run_select(const step *s, worker *w)
{
    const value *v = s->v;
    const int32_t *rows = value_data(v->src[1], w);
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        if (has_row(w, v, rows[t], v->src[0]->ne[2], row_at(v, w, t, 0)))
            memcpy(row_at(v, w, t, 0), row_at(v->src[0], w, rows[t], 0), (size_t)row_values(v) * 4);
}

/* ---- elementwise ---- */

static void apply_binary(const step *s, worker *w, binary_fn f, scale_fn by_token)
{
    const value *v = s->v, *a = v->src[0], *b = v->src[1];
    bool fixed = b->op == OP_WEIGHT, one = row_values(b) == 1 && row_values(a) != 1;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t c = p.c0, e; c < p.c1; c = e) {
            e = cpu_stretch(a, c, p.c1);
            if (!one && !fixed) e = min64(e, cpu_stretch(b, c, p.c1));
            float *y = row_at(v, w, t, c);
            const float *x = row_at(a, w, t, c);
            if (one) by_token(y, x, fixed ? *(const float *)value_data(b, w) : *row_at(b, w, t, 0), e - c);
            else f(y, x, fixed ? (const float *)value_data(b, w) + c : row_at(b, w, t, c), e - c);
        }
}

static void add_scalar(float *y, const float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] + s;
}

void run_add(const step *s, worker *w) { apply_binary(s, w, w->run->k->add, add_scalar); }

void run_mul(const step *s, worker *w) { apply_binary(s, w, w->run->k->mul2, w->run->k->scale); }

typedef void (*unary_fn)(float *y, const float *x, const value *v, const kernels *k, int64_t n);

static void apply_unary(const step *s, worker *w, unary_fn f)
{
    const value *v = s->v, *a = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t c = p.c0, e; c < p.c1; c = e) {
            e = cpu_stretch(a, c, p.c1);
            f(row_at(v, w, t, c), row_at(a, w, t, c), v, w->run->k, e - c);
        }
}

static void do_scale(float *y, const float *x, const value *v, const kernels *k, int64_t n) { k->scale(y, x, v->p.f.a, n); }

static void do_clamp(float *y, const float *x, const value *v, const kernels *k, int64_t n)
{
    (void)k;
    float lo = v->p.f.a, hi = v->p.f.b;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
}

static void do_softcap(float *y, const float *x, const value *v, const kernels *k, int64_t n) { k->softcap(y, x, v->p.f.a, n); }

void run_scale(const step *s, worker *w) { apply_unary(s, w, do_scale); }
void run_clamp(const step *s, worker *w) { apply_unary(s, w, do_clamp); }
void run_softcap(const step *s, worker *w) { apply_unary(s, w, do_softcap); }

/* ---- gates ---- */

/* GPT-OSS: g = min(gate, 7), u = clamp(up, -7, 7): g * sigmoid(1.702 g) * (u + 1). */
static void gate_oai(float *y, const float *gate, const float *up, int64_t n, const kernels *k)
{
    float g[256], u[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = min64(256, n - i);
        for (int64_t j = 0; j < m; j++) {
            g[j] = gate[i + j] > 7.0f ? 7.0f : gate[i + j];
            u[j] = (up[i + j] > 7.0f ? 7.0f : up[i + j] < -7.0f ? -7.0f : up[i + j]) + 1.0f;
        }
        k->gelu_quick(y + i, g, u, m);
    }
}

/* xIELU with parameters alpha_p, alpha_n, beta, eps (already through softplus; alpha_n includes beta). */
static void gate_xielu(float *y, const float *x, const float p[4], int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float z = x[i];
        if (z > 0.0f) {
            y[i] = p[0] * z * z + p[2] * z;
        } else {
            float m = z < p[3] ? z : p[3];
            /* exp(m) - 1 by its series near 0, where the difference would lose digits */
            float e = m > -0.01f && m < 0.01f ? m + m * m * (0.5f + m * (1.0f / 6.0f + m * (1.0f / 24.0f))) : math_exp(m) - 1.0f;
            y[i] = (e - z) * p[1] + p[2] * z;
        }
    }
}

/* T5 is run this way in the field, and its scores, which nothing scales, carry the rounding to the logits. */
static void gate_gelu_half(float *y, const float *x, const float *up, int64_t n, const kernels *k)
{
    enum { RUN = 256 };
    uint16_t half[RUN];
    float f[RUN];
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t m = min64(RUN, n - i);
        k->encode[LOAM_F16](x + i, half, m);
        k->decode[LOAM_F16](half, f, m);
        k->gelu(f, f, NULL, m);
        k->encode[LOAM_F16](f, half, m);
        k->decode[LOAM_F16](half, f, m);
        for (int64_t j = 0; j < m; j++) {
            float v = x[i + j] >= 10.0f ? x[i + j] : x[i + j] <= -10.0f ? 0.0f : f[j];
            y[i + j] = up ? v * up[i + j] : v;
        }
    }
}

static gate_fn gate_of(const kernels *k, gate_kind kind)
{
    switch (kind) {
    case GATE_SILU: return k->silu;
    case GATE_GELU: return k->gelu;
    case GATE_GELU_ERF: return k->gelu_erf;
    case GATE_GELU_QUICK: return k->gelu_quick;
    case GATE_RELU: return k->relu;
    case GATE_RELU2: return k->relu2;
    case GATE_SIGMOID: return k->sigmoid;
    case GATE_SOFTPLUS: return k->softplus;
    case GATE_EXP: return k->exp_;
    case GATE_TANH: return k->tanh_;
    default: return NULL;
    }
}

void run_gate(const step *s, worker *w)
{
    const value *v = s->v, *a = v->src[0], *b = v->src[1];
    const kernels *k = w->run->k;
    gate_fn f = gate_of(k, v->p.gate.kind);
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t c = p.c0, e; c < p.c1; c = e) {
            e = min64(cpu_stretch(a, c, p.c1), cpu_stretch(b, c, p.c1));
            float *y = row_at(v, w, t, c);
            const float *x = row_at(a, w, t, c), *u = b ? row_at(b, w, t, c) : NULL;
            if (f) f(y, x, u, e - c);
            else if (v->p.gate.kind == GATE_GELU_HALF) gate_gelu_half(y, x, u, e - c, k);
            else if (v->p.gate.kind == GATE_OAI) gate_oai(y, x, u, e - c, k);
            else gate_xielu(y, x, v->p.gate.p, e - c);
        }
}

/* ---- norms and joins ---- */

void run_norm(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    const kernels *k = w->run->k;
    norm_fn f = v->p.norm.kind == NORM_RMS ? k->rms_norm : k->layer_norm;
    int64_t group = v->p.norm.group;
    const float *weights[2] = { 0 };
    int64_t stride[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        const value *u = v->src[i + 1];
        if (!u) continue;
        weights[i] = value_data(u, w);
        stride[i] = u->ne[0] * u->ne[1] == group ? 0 : group;
    }
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t i = p.c0 / group; i < p.c1 / group; i++)
            f(row_at(v, w, t, i * group), row_at(x, w, t, i * group), weights[0] ? weights[0] + i * stride[0] : NULL,
              weights[1] ? weights[1] + i * stride[1] : NULL, group, v->p.norm.eps);
}

void run_concat(const step *s, worker *w)
{
    const value *v = s->v, *a = v->src[0], *b = v->src[1];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t m = 0; m < v->ne[1]; m++) {
            float *y = row_at(v, w, t, m * v->ne[0]);
            memcpy(y, row_at(a, w, t, m * a->ne[0]), (size_t)a->ne[0] * 4);
            memcpy(y + a->ne[0], row_at(b, w, t, b->ne[1] == 1 ? 0 : m * b->ne[0]), (size_t)b->ne[0] * 4);
        }
}

/* Factor 1 + t * ln(1 + floor((pos + o) / n)). */
void run_temperature(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    const int32_t *pos = value_data(v->src[1], w);
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++) {
        double steps = floor(((double)pos[t] + v->p.temp.o) / v->p.temp.n);
        float f = (float)(1.0 + v->p.temp.t * mathd_ln(1.0 + steps));
        for (int64_t m = 0; m < v->ne[1]; m++)
            w->run->k->scale(row_at(v, w, t, m * v->ne[0]), row_at(x, w, t, m * x->ne[0]), f, v->ne[0]);
    }
}

/* ---- general networks ---- */

/* Training has another form (grad_rows.c). */
void run_dropout(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t m = 0; m < v->ne[1]; m++)
            memcpy(row_at(v, w, t, m * v->ne[0]), row_at(x, w, t, m * v->ne[0]), (size_t)v->ne[0] * 4);
}

void run_softmax(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t m = 0; m < v->ne[1]; m++)
            w->run->k->softmax(row_at(v, w, t, m * v->ne[0]), row_at(x, w, t, m * v->ne[0]), v->ne[0]);
}

void run_log_softmax(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t m = 0; m < v->ne[1]; m++) {
            float *y = row_at(v, w, t, m * v->ne[0]), top;
            const float *in = row_at(x, w, t, m * v->ne[0]);
            float sum = w->run->k->learn->exp_sum(y, in, &top, v->ne[0]), shift = top + (float)mathd_ln(sum);
            for (int64_t i = 0; i < v->ne[0]; i++) y[i] = in[i] - shift;
        }
}

void run_sum(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++) {
        float sum = 0.0f;
        for (int64_t m = 0; m < x->ne[1]; m++) sum += w->run->k->learn->sum(row_at(x, w, t, m * x->ne[0]), x->ne[0]);
        *row_at(v, w, t, 0) = sum;
    }
}
