/* grad_rows.c - gradients of look-ups, elementwise arithmetic, activations, norms and joins. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mix.h"
#include "device/grad.h"
#include "kernels/ref/mathf.h"

static void put(const kernels *k, float *to, const float *from, bool add, int64_t n)
{
    if (add) k->add(to, to, from, n);
    else if (to != from) memcpy(to, from, (size_t)n * 4);
}

static void put_scaled(const kernels *k, float *to, const float *from, float s, int64_t n, bool add)
{
    if (add) k->axpy(to, from, s, n);
    else k->scale(to, from, s, n);
}

static void put_one(float *to, float x, bool add) { *to = add ? *to + x : x; }

/* Values that lie in one run of memory from value c of the row on, in both. */
static int64_t piece(const value *a, const value *b, int64_t c, int64_t end) { return cpu_stretch(b, c, cpu_stretch(a, c, end)) - c; }

/* ---- look-ups: columns are dealt out, tokens ascend ---- */

void grad_embed(const grad_step *g, worker *w)
{
    const value *v = g->v;
    const int32_t *ids = value_data(v->src[1], w);
    range c = grad_columns(v->ne[0], w);
    for (int64_t t = 0; t < v->ne[2]; t++) {
        float *row = g->dx[0] + ids[t] * v->ne[0] + c.first;
        w->run->k->add(row, row, grad_dy(g, t) + c.first, c.last - c.first);
    }
}

void grad_select(const grad_step *g, worker *w)
{
    const value *v = g->v, *x = g->in[0];
    const int32_t *rows = value_data(v->src[1], w);
    range c = grad_columns(row_values(v), w);
    for (int64_t t = 0; t < x->ne[2] && !grad_adds(g, 0); t++) memset(grad_at(g->dx[0], x, t, c.first), 0, (size_t)(c.last - c.first) * 4);
    for (int64_t t = 0; t < v->ne[2]; t++) {
        float *to = grad_at(g->dx[0], x, rows[t], c.first);
        w->run->k->add(to, to, grad_dy(g, t) + c.first, c.last - c.first);
    }
}

/* ---- elementwise ---- */

typedef enum factor { FACTOR_SAME, FACTOR_ROW, FACTOR_TOKEN, FACTOR_ONE } factor; /* what the second operand is */

static factor factor_of(const value *a, const value *b)
{
    if (b->op == OP_WEIGHT) return row_values(b) * b->ne[2] == 1 && row_values(a) != 1 ? FACTOR_ONE : FACTOR_ROW;
    return row_values(b) == 1 && row_values(a) != 1 ? FACTOR_TOKEN : FACTOR_SAME;
}

static void first_of_add(const grad_step *g, worker *w)
{
    range r = grad_tokens(g, w);
    int64_t row = row_values(g->v);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(g->in[0], NULL, c, row);
            put(w->run->k, grad_at(g->dx[0], g->in[0], t, c), grad_dy(g, t) + c, grad_adds(g, 0), n);
        }
}

static void second_of_add(const grad_step *g, worker *w)
{
    const value *b = g->in[1];
    const kernels *k = w->run->k;
    int64_t row = row_values(g->v), tokens = g->v->ne[2];
    range c = grad_columns(row, w), r = grad_tokens(g, w);
    switch (factor_of(g->in[0], b)) {
    case FACTOR_ROW:
        for (int64_t t = 0; t < tokens; t++) k->add(g->dx[1] + c.first, g->dx[1] + c.first, grad_dy(g, t) + c.first, c.last - c.first);
        break;
    case FACTOR_ONE:
        for (int64_t t = 0; t < tokens && w->ith == 0; t++) g->dx[1][0] += k->learn->sum(grad_dy(g, t), row);
        break;
    case FACTOR_TOKEN:
        for (int64_t t = r.first; t < r.last; t++) put_one(grad_at(g->dx[1], b, t, 0), k->learn->sum(grad_dy(g, t), row), grad_adds(g, 1));
        break;
    case FACTOR_SAME:
        for (int64_t t = r.first; t < r.last; t++)
            for (int64_t i = 0, n; i < row; i += n) {
                n = piece(b, NULL, i, row);
                put(k, grad_at(g->dx[1], b, t, i), grad_dy(g, t) + i, grad_adds(g, 1), n);
            }
        break;
    }
}

void grad_add(const grad_step *g, worker *w)
{
    if (g->dx[0]) first_of_add(g, w);
    if (g->dx[1]) second_of_add(g, w);
}

static void put_product(const kernels *k, float *to, const float *a, const float *b, bool add, int64_t n)
{
    if (add) k->learn->mul_add(to, a, b, n);
    else k->mul2(to, a, b, n);
}

static void first_of_mul(const grad_step *g, worker *w)
{
    const value *a = g->in[0], *b = g->in[1];
    const kernels *k = w->run->k;
    factor f = factor_of(a, b);
    int64_t row = row_values(g->v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(a, f == FACTOR_SAME ? b : NULL, c, row);
            float *to = grad_at(g->dx[0], a, t, c);
            const float *dy = grad_dy(g, t) + c, *fixed = b->op == OP_WEIGHT ? value_data(b, w) : NULL;
            if (f == FACTOR_SAME) put_product(k, to, dy, row_at(b, w, t, c), grad_adds(g, 0), n);
            else if (f == FACTOR_ROW) put_product(k, to, dy, fixed + c, grad_adds(g, 0), n);
            else put_scaled(k, to, dy, fixed ? *fixed : *row_at(b, w, t, 0), n, grad_adds(g, 0));
        }
}

/* Sum of dy a over the row of a token. */
static float row_dot(const grad_step *g, worker *w, int64_t t)
{
    const value *a = g->in[0];
    float sum = 0.0f;
    int64_t row = row_values(g->v);
    for (int64_t c = 0, n; c < row; c += n) {
        n = piece(a, NULL, c, row);
        sum += w->run->k->learn->dot(grad_dy(g, t) + c, row_at(a, w, t, c), n);
    }
    return sum;
}

static void second_of_mul(const grad_step *g, worker *w)
{
    const value *a = g->in[0], *b = g->in[1];
    const kernels *k = w->run->k;
    int64_t row = row_values(g->v), tokens = g->v->ne[2];
    range c = grad_columns(row, w), r = grad_tokens(g, w);
    switch (factor_of(a, b)) {
    case FACTOR_ROW:
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t i = c.first, n; i < c.last; i += n) {
                n = piece(a, NULL, i, c.last);
                k->learn->mul_add(g->dx[1] + i, grad_dy(g, t) + i, row_at(a, w, t, i), n);
            }
        break;
    case FACTOR_ONE:
        for (int64_t t = 0; t < tokens && w->ith == 0; t++) g->dx[1][0] += row_dot(g, w, t);
        break;
    case FACTOR_TOKEN:
        for (int64_t t = r.first; t < r.last; t++) put_one(grad_at(g->dx[1], b, t, 0), row_dot(g, w, t), grad_adds(g, 1));
        break;
    case FACTOR_SAME:
        for (int64_t t = r.first; t < r.last; t++)
            for (int64_t i = 0, n; i < row; i += n) {
                n = piece(a, b, i, row);
                put_product(k, grad_at(g->dx[1], b, t, i), grad_dy(g, t) + i, row_at(a, w, t, i), grad_adds(g, 1), n);
            }
        break;
    }
}

void grad_mul(const grad_step *g, worker *w)
{
    if (g->dx[0]) first_of_mul(g, w);
    if (g->dx[1]) second_of_mul(g, w);
}

/* One input, one result: to (+)= f(dy, x or y). */
typedef void (*unary_fn)(float *to, const float *dy, const float *x, const grad_step *g, const kernels *k, int64_t n);

static void unary(const grad_step *g, worker *w, const value *reads, unary_fn f)
{
    int64_t row = row_values(g->v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(g->in[0], reads, c, row);
            f(grad_at(g->dx[0], g->in[0], t, c), grad_dy(g, t) + c, reads ? row_at(reads, w, t, c) : NULL, g, w->run->k, n);
        }
}

static void d_scale(float *to, const float *dy, const float *x, const grad_step *g, const kernels *k, int64_t n)
{
    (void)x;
    put_scaled(k, to, dy, g->v->p.f.a, n, grad_adds(g, 0));
}

static void d_clamp(float *to, const float *dy, const float *x, const grad_step *g, const kernels *k, int64_t n)
{
    (void)k;
    for (int64_t i = 0; i < n; i++) put_one(to + i, x[i] < g->v->p.f.a || x[i] > g->v->p.f.b ? 0.0f : dy[i], grad_adds(g, 0));
}

static void d_softcap(float *to, const float *dy, const float *y, const grad_step *g, const kernels *k, int64_t n)
{
    (void)k;
    float inverse = 1.0f / g->v->p.f.a;
    for (int64_t i = 0; i < n; i++) {
        float u = y[i] * inverse;
        put_one(to + i, dy[i] * (1.0f - u * u), grad_adds(g, 0));
    }
}

void grad_scale(const grad_step *g, worker *w) { unary(g, w, NULL, d_scale); }
void grad_clamp(const grad_step *g, worker *w) { unary(g, w, g->in[0], d_clamp); }
void grad_softcap(const grad_step *g, worker *w) { unary(g, w, g->v, d_softcap); }

/* The factor of a token is that of the forward step. */
void grad_temperature(const grad_step *g, worker *w)
{
    const value *v = g->v;
    const int32_t *pos = value_data(v->src[1], w);
    int64_t row = row_values(v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++) {
        double steps = floor(((double)pos[t] + v->p.temp.o) / v->p.temp.n);
        float f = (float)(1.0 + v->p.temp.t * mathd_ln(1.0 + steps));
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(g->in[0], NULL, c, row);
            put_scaled(w->run->k, grad_at(g->dx[0], g->in[0], t, c), grad_dy(g, t) + c, f, n, grad_adds(g, 0));
        }
    }
}

/* ---- dropout: the mask is a function of seed, operation, token and column, so that nothing is kept ---- */

typedef struct drop_run {
    int64_t t, c, n;       /* n values of token t from value c on */
    const float *from;
    float *to;
    bool add;
} drop_run;

/* to (+)= from where kept, scaled so that the mean stays. */
static void drop(const value *v, const worker *w, const drop_run *r)
{
    const grad_view *view = w->run->grads;
    float rate = v->p.dropout.rate, keep = rate < 1.0f ? 1.0f / (1.0f - rate) : 0.0f;
    uint32_t limit = rate < 1.0f ? (uint32_t)((double)rate * 4294967296.0) : UINT32_MAX;
    uint64_t base = mix64(view->seed + MIX64_STEP * (uint64_t)(v->id + 1)) + (uint64_t)view->row[r->t] * 0xD1342543DE82EF95ull;
    for (int64_t i = 0; i < r->n; i++) {
        uint32_t dice = (uint32_t)(mix64(base + (uint64_t)(r->c + i) * MIX64_STEP) >> 32);
        float x = dice < limit ? 0.0f : r->from[i] * keep;
        r->to[i] = r->add ? r->to[i] + x : x;
    }
}

void learn_dropout(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    int64_t row = row_values(v);
    part p = part_of(s, w);
    if (!w->run->grads->drop) {
        run_dropout(s, w);
        return;
    }
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(x, NULL, c, row);
            drop(v, w, &(drop_run){ t, c, n, row_at(x, w, t, c), row_at(v, w, t, c), false });
        }
}

void grad_dropout(const grad_step *g, worker *w)
{
    int64_t row = row_values(g->v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(g->in[0], NULL, c, row);
            drop(g->v, w, &(drop_run){ t, c, n, grad_dy(g, t) + c, grad_at(g->dx[0], g->in[0], t, c), grad_adds(g, 0) });
        }
}

/* ---- activations ---- */

/* Those without a kernel: f(x) and its derivative. */
static float rare_gate(const value *v, float x, float *f)
{
    const float *p = v->p.gate.p;
    if (v->p.gate.kind == GATE_OAI) {
        float g = x > 7.0f ? 7.0f : x, s = 1.0f / (1.0f + math_exp(GELU_QUICK * g));
        *f = g * s;
        return x > 7.0f ? 0.0f : s + g * s * (1.0f - s) * -GELU_QUICK;
    }
    if (x > 0.0f) {
        *f = p[0] * x * x + p[2] * x;
        return 2.0f * p[0] * x + p[2];
    }
    bool near = !(x < p[3]);
    float m = near ? p[3] : x, e = math_exp(m);
    *f = (e - 1.0f - x) * p[1] + p[2] * x;
    return ((near ? 0.0f : e) - 1.0f) * p[1] + p[2];
}

static void rare_back(const value *v, const gate_back_args *a)
{
    bool oai = v->p.gate.kind == GATE_OAI;
    for (int64_t i = 0; i < a->n; i++) {
        float f, d = rare_gate(v, a->gate[i], &f), up = 1.0f, inside = 1.0f;
        if (a->up) up = a->up[i];
        if (oai) {
            inside = up > 7.0f || up < -7.0f ? 0.0f : 1.0f;
            up = (up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up) + 1.0f;
        }
        if (a->dgate) put_one(a->dgate + i, a->dy[i] * up * d, a->add_gate);
        if (a->dup) put_one(a->dup + i, a->dy[i] * f * inside, a->add_up);
    }
}

static gate_back_fn gate_back_of(const learn_kernels *l, gate_kind kind)
{
    switch (kind) {
    case GATE_SILU: return l->silu;
    case GATE_GELU: case GATE_GELU_HALF: return l->gelu;
    case GATE_GELU_ERF: return l->gelu_erf;
    case GATE_GELU_QUICK: return l->gelu_quick;
    case GATE_RELU: return l->relu;
    case GATE_RELU2: return l->relu2;
    case GATE_SIGMOID: return l->sigmoid;
    case GATE_SOFTPLUS: return l->softplus;
    case GATE_EXP: return l->exp_;
    case GATE_TANH: return l->tanh_;
    default: return NULL;
    }
}

void grad_gate(const grad_step *g, worker *w)
{
    const value *v = g->v, *x = g->in[0], *u = g->in[1];
    gate_back_fn f = gate_back_of(w->run->k->learn, v->p.gate.kind);
    int64_t row = row_values(v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0, n; c < row; c += n) {
            n = piece(x, u, c, row);
            gate_back_args a = {
                .dgate = g->dx[0] ? grad_at(g->dx[0], x, t, c) : NULL, .dup = g->dx[1] ? grad_at(g->dx[1], u, t, c) : NULL,
                .gate = row_at(x, w, t, c), .up = u ? row_at(u, w, t, c) : NULL, .dy = grad_dy(g, t) + c, .n = n,
                .add_gate = grad_adds(g, 0), .add_up = grad_adds(g, 1),
            };
            if (f) f(&a);
            else rare_back(v, &a);
        }
}

/* ---- norms: first the inputs and the factors of all tokens, then the weights by columns ---- */

static int64_t norm_stride(const value *scale, int64_t group) { return scale->ne[0] * scale->ne[1] == group ? 0 : group; }

static void norm_inputs(const grad_step *g, worker *w, float *stats)
{
    const value *v = g->v, *x = g->in[0], *scale = g->in[1];
    const learn_kernels *l = w->run->k->learn;
    norm_back_fn f = v->p.norm.kind == NORM_RMS ? l->rms_back : l->layer_back;
    int64_t group = v->p.norm.group, groups = row_values(v) / group;
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t i = 0; i < groups; i++) {
            norm_back_args a = {
                .dx = g->dx[0] ? grad_at(g->dx[0], x, t, i * group) : NULL, .x = row_at(x, w, t, i * group),
                .dy = grad_dy(g, t) + i * group, .n = group, .eps = v->p.norm.eps, .add = grad_adds(g, 0),
                .w = scale ? (const float *)value_data(scale, w) + i * norm_stride(scale, group) : NULL,
                .stats = stats + 2 * (t * groups + i),
            };
            f(&a);
        }
}

static void norm_weights(const grad_step *g, worker *w, const float *stats)
{
    const value *v = g->v, *x = g->in[0];
    const kernels *k = w->run->k;
    int64_t group = v->p.norm.group, groups = row_values(v) / group;
    range c = grad_columns(group, w);
    int64_t n = c.last - c.first;
    for (int64_t t = 0; t < v->ne[2] && n > 0; t++)
        for (int64_t i = 0; i < groups; i++) {
            const float *dy = grad_dy(g, t) + i * group + c.first;
            if (g->dx[1]) {
                float *to = g->dx[1] + i * norm_stride(g->in[1], group) + c.first;
                k->learn->norm_weight(to, dy, row_at(x, w, t, i * group + c.first), stats + 2 * (t * groups + i), n);
            }
            if (g->dx[2]) {
                float *to = g->dx[2] + i * norm_stride(g->in[2], group) + c.first;
                k->add(to, to, dy, n);
            }
        }
}

void grad_norm(const grad_step *g, worker *w)
{
    float *stats = (float *)w->run->shared;
    norm_inputs(g, w, stats);
    worker_barrier(w);
    if (g->dx[1] || g->dx[2]) norm_weights(g, w, stats);
}

/* ---- joins, rotation ---- */

void grad_concat(const grad_step *g, worker *w)
{
    const value *v = g->v, *a = g->in[0], *b = g->in[1];
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t m = 0; m < v->ne[1]; m++) {
            const float *dy = grad_dy(g, t) + m * v->ne[0];
            if (g->dx[0]) put(w->run->k, grad_at(g->dx[0], a, t, m * a->ne[0]), dy, grad_adds(g, 0), a->ne[0]);
            bool shared = b->ne[1] == 1 && v->ne[1] > 1;
            if (g->dx[1]) put(w->run->k, grad_at(g->dx[1], b, t, shared ? 0 : m * b->ne[0]), dy + a->ne[0],
                              grad_adds(g, 1) || (shared && m > 0), b->ne[0]);
        }
}

/* The transpose of a rotation turns back; a magnitude in the table stays a factor. */
void grad_rope(const grad_step *g, worker *w)
{
    const value *v = g->v, *x = g->in[0], *table = v->src[1];
    int pairs = (int)table->ne[0] / 2;
    float *back = (float *)w->scratch, *turned = back + table->ne[0];
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++) {
        const float *cosines = row_at(table, w, t, 0);
        for (int i = 0; i < pairs; i++) back[i] = -cosines[pairs + i];
        for (int64_t m = 0; m < v->ne[1]; m++) {
            memcpy(turned, grad_dy(g, t) + m * v->ne[0], (size_t)v->ne[0] * 4);
            w->run->k->rope(turned + v->p.turn.offset, cosines, back, pairs, v->p.turn.neox);
            put(w->run->k, grad_at(g->dx[0], x, t, m * x->ne[0]), turned, grad_adds(g, 0), v->ne[0]);
        }
    }
}

/* ---- general networks ---- */

static void each_run(const grad_step *g, worker *w, void (*f)(float *to, const float *dy, const float *y, const kernels *k, const int64_t n[2]))
{
    const value *v = g->v;
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t m = 0; m < v->ne[1]; m++)
            f(grad_at(g->dx[0], g->in[0], t, m * v->ne[0]), grad_dy(g, t) + m * v->ne[0], row_at(v, w, t, m * v->ne[0]), w->run->k,
              (int64_t[2]){ v->ne[0], grad_adds(g, 0) });
}

/* dx = y (dy - dy . y) */
static void d_softmax(float *to, const float *dy, const float *y, const kernels *k, const int64_t n[2])
{
    float d = k->learn->dot(dy, y, n[0]);
    for (int64_t i = 0; i < n[0]; i++) put_one(to + i, y[i] * (dy[i] - d), n[1] != 0);
}

/* dx = dy - exp(y) sum(dy) */
static void d_log_softmax(float *to, const float *dy, const float *y, const kernels *k, const int64_t n[2])
{
    float sum = k->learn->sum(dy, n[0]);
    for (int64_t i = 0; i < n[0]; i++) put_one(to + i, fmaf(-math_exp(y[i]), sum, dy[i]), n[1] != 0);
}

void grad_softmax(const grad_step *g, worker *w) { each_run(g, w, d_softmax); }
void grad_log_softmax(const grad_step *g, worker *w) { each_run(g, w, d_log_softmax); }

void grad_sum(const grad_step *g, worker *w)
{
    const value *x = g->in[0];
    int64_t row = row_values(x);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0; c < row; c++) put_one(grad_at(g->dx[0], x, t, c), *grad_dy(g, t), grad_adds(g, 0));
}
