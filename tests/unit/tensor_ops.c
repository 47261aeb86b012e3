/* tensor_ops.c - every operation of loam/tensor.h against naive loops in double precision, on random shapes, strides, views,
 * broadcasts and types, through the public headers alone. Each case has a seed of its own; a failure prints it. Tolerances
 * are normalised mean squared errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "loam/quant.h"
#include "loam/tensor.h"

/* ---- random numbers, a case ---- */

static uint64_t state;

static uint32_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

static int64_t in_range(int64_t a, int64_t b) { return a + (int64_t)(draw() % (uint32_t)(b - a + 1)); }
static double uniform(void) { return (double)draw() / 2147483648.0 * 2.0 - 1.0; }

#define MAX_INPUTS 12
#define MAX_VALUES 16384

/* A tensor of the graph and its values in order, as the reference sees them. */
typedef struct in {
    loam_tensor *t;
    int64_t ne[4];
    double *x;
} in;

static loam_graph *g;
static void *blocks[64];
static int n_blocks;
static int n_cases;

static void *keep(size_t bytes)
{
    assert_true(n_blocks < 64);
    void *p = calloc(1, bytes + 64);
    assert_non_null(p);
    return blocks[n_blocks++] = p;
}

static void begin(uint64_t seed)
{
    loam_error err;
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < 8; i++) draw();
    assert_int_equal(loam_graph_new(&g, &err), LOAM_OK);
}

static int64_t count(const int64_t ne[4]) { return ne[0] * ne[1] * ne[2] * ne[3]; }

static loam_tensor *leaf(loam_type type, int n_axes, const int64_t *ne, const void *data)
{
    loam_error err;
    loam_tensor *t = loam_tensor_new(g, "x", type, n_axes, ne);
    assert_non_null(t);
    if (loam_tensor_bind(t, data, loam_tensor_bytes(t), &err) != LOAM_OK) fail_msg("%s", err.message);
    return t;
}

/* Index in a row of values of extents ne. */
static int64_t at(const int64_t ne[4], int64_t i, int64_t j, int64_t k, int64_t l) { return i + ne[0] * (j + ne[1] * (k + ne[2] * l)); }

/* The value at (i, j, k, l), with extents of 1 repeated. */
static double get(const in *a, int64_t i, int64_t j, int64_t k, int64_t l)
{
    return a->x[at(a->ne, a->ne[0] == 1 ? 0 : i, a->ne[1] == 1 ? 0 : j, a->ne[2] == 1 ? 0 : k, a->ne[3] == 1 ? 0 : l)];
}

/* Floats of these extents, as a leaf, a permuted one, a part of a larger one, a repeated one, or a cast. */
static in floats_scaled(int n_axes, const int64_t *want, double scale)
{
    in r = { .ne = { 1, 1, 1, 1 } };
    memcpy(r.ne, want, (size_t)n_axes * sizeof *want);
    r.x = keep((size_t)count(r.ne) * sizeof(double));
    int kind = (int)in_range(0, 5);
    int64_t base[4] = { r.ne[0], r.ne[1], r.ne[2], r.ne[3] }, first = 0;
    int order[4] = { 0, 1, 2, 3 }, axis = (int)in_range(0, n_axes - 1);
    if (kind == 1)
        for (int i = 3; i > 0; i--) {
            int j = (int)in_range(0, i), t = order[i];
            order[i] = order[j], order[j] = t;
        }
    for (int i = 0; i < 4 && kind == 1; i++) base[i] = r.ne[order[i]];
    if (kind == 2) first = in_range(0, 3), base[axis] += first + in_range(0, 2);
    if (kind == 3) base[axis] = 1;
    int64_t n = count(base);
    float *data = keep((size_t)n * 4);
    for (int64_t i = 0; i < n; i++) data[i] = (float)(uniform() * scale);
    loam_tensor *t;
    if (kind == 4) { /* rounded to F16 and back */
        loam_error err;
        uint16_t *half = keep((size_t)n * 2);
        loam_rows rows = { LOAM_F16, 1, n };
        assert_int_equal(loam_quant_encode(&rows, data, NULL, half, (uint64_t)n * 2, &err), LOAM_OK);
        assert_int_equal(loam_quant_decode(&rows, half, (uint64_t)n * 2, data, &err), LOAM_OK);
        t = loam_op_cast(g, leaf(LOAM_F16, n_axes, base, half), LOAM_F32);
    } else {
        t = leaf(LOAM_F32, kind == 1 ? 4 : n_axes, base, data);
    }
    if (kind == 1) t = loam_op_broadcast(g, loam_op_permute(g, t, order), n_axes, r.ne); /* repeats nothing: sets the number of axes */
    if (kind == 2) t = loam_op_slice(g, t, axis, first, r.ne[axis]);
    if (kind == 3) t = loam_op_broadcast(g, t, n_axes, r.ne);
    if (kind == 5) t = loam_op_reshape(g, loam_op_reshape(g, t, 1, (const int64_t[]){ -1 }), n_axes, r.ne);
    for (int64_t l = 0; l < r.ne[3]; l++)
        for (int64_t k = 0; k < r.ne[2]; k++)
            for (int64_t j = 0; j < r.ne[1]; j++)
                for (int64_t i = 0; i < r.ne[0]; i++) {
                    int64_t me[4] = { i, j, k, l }, p[4];
                    for (int a = 0; a < 4; a++) p[a] = kind == 1 ? me[order[a]] : me[a];
                    if (kind == 2) p[axis] += first;
                    if (kind == 3) p[axis] = 0;
                    r.x[at(r.ne, i, j, k, l)] = data[at(base, p[0], p[1], p[2], p[3])];
                }
    r.t = t;
    return r;
}

static in floats(int n_axes, const int64_t *ne) { return floats_scaled(n_axes, ne, 1.0); }

/* A plain leaf of floats: for inputs that need data of their own. */
static in plain(int n_axes, const int64_t *ne, double low, double high)
{
    in r = { .ne = { 1, 1, 1, 1 } };
    memcpy(r.ne, ne, (size_t)n_axes * sizeof *ne);
    int64_t n = count(r.ne);
    float *data = keep((size_t)n * 4);
    r.x = keep((size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) r.x[i] = data[i] = (float)(low + (high - low) * (uniform() + 1) / 2);
    r.t = leaf(LOAM_F32, n_axes, ne, data);
    return r;
}

static in indexes(int64_t n, int64_t limit)
{
    in r = { .ne = { n, 1, 1, 1 } };
    int32_t *data = keep((size_t)n * 4);
    r.x = keep((size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) r.x[i] = data[i] = (int32_t)in_range(0, limit - 1);
    r.t = leaf(LOAM_I32, 1, r.ne, data);
    return r;
}

static void shape(int64_t ne[4], int n_axes, int64_t most)
{
    for (int i = 0; i < 4; i++) ne[i] = i < n_axes ? in_range(1, i == 0 ? most : 5) : 1;
}

/* Evaluates y and holds it against the reference; ends the case. */
static void check(const char *what, uint64_t seed, loam_tensor *y, const double *want, double limit)
{
    loam_error err;
    loam_eval_params p = loam_eval_defaults();
    p.n_threads = (int32_t)(1 + seed % 3);
    if (loam_graph_check(g, &err) != LOAM_OK) fail_msg("%s, seed %llu: %s", what, (unsigned long long)seed, err.message);
    loam_graph_output(g, y);
    if (loam_graph_eval(g, &p, &err) != LOAM_OK) fail_msg("%s, seed %llu: %s", what, (unsigned long long)seed, err.message);
    size_t n = loam_tensor_bytes(y) / 4;
    float *got = keep(n * 4);
    assert_int_equal(loam_tensor_get(y, got, n * 4, &err), LOAM_OK);
    double wrong = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(got[i]) != isnan(want[i])) wrong = 1e9;
        wrong += (got[i] - want[i]) * (got[i] - want[i]);
        all += want[i] * want[i];
    }
    if (!(wrong <= limit * all + 1e-12)) fail_msg("%s, seed %llu: error %g, limit %g", what, (unsigned long long)seed, wrong / (all + 1e-300), limit);
    loam_graph_free(g);
    for (int i = 0; i < n_blocks; i++) free(blocks[i]);
    n_blocks = 0;
    n_cases++;
}

#define EACH(ne, ...) \
    for (int64_t l = 0; l < (ne)[3]; l++) \
        for (int64_t k = 0; k < (ne)[2]; k++) \
            for (int64_t j = 0; j < (ne)[1]; j++) \
                for (int64_t i = 0; i < (ne)[0]; i++) __VA_ARGS__

/* ---- arithmetic ---- */

static void arithmetic(uint64_t seed)
{
    begin(seed);
    int n = (int)in_range(1, 4), m = n, kind = (int)in_range(0, 2);
    int64_t a[4], b[4], ne[4];
    shape(a, n, 40);
    memcpy(b, a, sizeof b);
    for (int i = 0; i < 4; i++) {
        if (in_range(0, 3) == 0) b[i] = 1;
        else if (in_range(0, 7) == 0) a[i] = 1;
        ne[i] = a[i] > b[i] ? a[i] : b[i];
    }
    in x = floats(n, a), y = floats(m, b);
    double *want = keep((size_t)count(ne) * sizeof *want);
    EACH(ne, {
        double p = get(&x, i, j, k, l), q = get(&y, i, j, k, l);
        want[at(ne, i, j, k, l)] = kind == 0 ? p + q : kind == 1 ? p - q : p * q;
    });
    loam_tensor *(*const f[])(loam_graph *, loam_tensor *, loam_tensor *) = { loam_op_add, loam_op_sub, loam_op_mul };
    check("arithmetic", seed, f[kind](g, x.t, y.t), want, 1e-12);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double gate(loam_gate kind, double x)
{
    switch (kind) {
    case LOAM_GATE_SILU: return x * sigmoid(x);
    case LOAM_GATE_GELU: return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case LOAM_GATE_GELU_ERF: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case LOAM_GATE_GELU_QUICK: return x * sigmoid(1.702 * x);
    case LOAM_GATE_RELU: return x > 0 ? x : 0;
    case LOAM_GATE_RELU2: return x > 0 ? x * x : 0;
    case LOAM_GATE_SIGMOID: return sigmoid(x);
    case LOAM_GATE_SOFTPLUS: return log1p(exp(x));
    case LOAM_GATE_EXP: return exp(x);
    case LOAM_GATE_TANH: return tanh(x);
    default: return 0;
    }
}

static void unary(uint64_t seed)
{
    begin(seed);
    int64_t ne[4];
    int n = (int)in_range(1, 4), kind = (int)in_range(0, 14);
    shape(ne, n, 70);
    in x = floats_scaled(n, ne, 4), up = floats(n, ne);
    double *want = keep((size_t)count(ne) * sizeof *want);
    bool two = kind <= LOAM_GATE_TANH && in_range(0, 1);
    float xi[4] = { 0.8f, 0.6f, 0.5f, -1e-6f };
    loam_tensor *y;
    switch (kind) {
    case 10: y = loam_op_gate(g, LOAM_GATE_OAI, x.t, up.t); break;
    case 11: y = loam_op_xielu(g, x.t, xi); break;
    case 12: y = loam_op_scale(g, x.t, -1.5f); break;
    case 13: y = loam_op_clamp(g, x.t, -0.5f, 1.25f); break;
    case 14: y = loam_op_softcap(g, x.t, 2.5f); break;
    default: y = loam_op_gate(g, (loam_gate)kind, x.t, two ? up.t : NULL); break;
    }
    for (int64_t i = 0; i < count(ne); i++) {
        double v = x.x[i], u = up.x[i];
        switch (kind) {
        case 10: v = v > 7 ? 7 : v; want[i] = v * sigmoid(1.702 * v) * (u + 1); break;
        case 11: want[i] = v > 0 ? 0.8f * v * v + 0.5 * v : (expm1(v < -1e-6 ? v : -1e-6) - v) * 0.6f + 0.5 * v; break;
        case 12: want[i] = -1.5 * v; break;
        case 13: want[i] = v < -0.5 ? -0.5 : v > 1.25 ? 1.25 : v; break;
        case 14: want[i] = 2.5 * tanh(v / 2.5); break;
        default: want[i] = gate((loam_gate)kind, v) * (two ? u : 1); break;
        }
    }
    check("unary", seed, y, want, 1e-9);
}

/* ---- rows ---- */

static void rows(uint64_t seed)
{
    begin(seed);
    int64_t ne[4], out[4];
    int n = (int)in_range(1, 4), kind = (int)in_range(0, 4);
    shape(ne, n, 90);
    int64_t group = ne[0];
    if (kind <= 1 && in_range(0, 2) == 0) group = in_range(1, 8), ne[0] = group * in_range(1, 8);
    in x = floats_scaled(n, ne, 3), w = plain(1, (int64_t[]){ in_range(0, 1) ? group : ne[0] }, -1, 1), b = plain(1, w.ne, -1, 1);
    memcpy(out, ne, sizeof out);
    if (kind == 4) out[0] = 1;
    double *want = keep((size_t)count(out) * sizeof *want);
    bool weighted = in_range(0, 1), shifted = weighted && in_range(0, 1);
    int64_t n_rows = count(ne) / ne[0];
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t f = 0; f < ne[0]; f += group) {
            const double *v = x.x + r * ne[0] + f;
            double *to = want + r * out[0] + f, sum = 0, squares = 0, top = -1e300, e = 0;
            for (int64_t i = 0; i < group; i++) sum += v[i], top = fmax(top, v[i]);
            double mean = kind == 1 ? sum / (double)group : 0;
            for (int64_t i = 0; i < group; i++) squares += (v[i] - mean) * (v[i] - mean), e += exp(v[i] - top);
            double scale = 1 / sqrt(squares / (double)group + 1e-5f);
            for (int64_t i = 0; i < group && kind < 4; i++) {
                int64_t c = w.ne[0] == group ? i : f + i;
                if (kind <= 1) to[i] = (v[i] - mean) * scale * (weighted ? w.x[c] : 1) + (shifted ? b.x[c] : 0);
                if (kind == 2) to[i] = exp(v[i] - top) / e;
                if (kind == 3) to[i] = v[i] - top - log(e);
            }
            if (kind == 4) to[0] = sum;
        }
    loam_norm_params p = { kind == 0 ? LOAM_NORM_RMS : LOAM_NORM_LAYER, 1e-5f, group == ne[0] ? 0 : (int)group };
    loam_tensor *y = kind <= 1 ? loam_op_norm(g, x.t, weighted ? w.t : NULL, shifted ? b.t : NULL, &p)
                   : kind == 2 ? loam_op_softmax(g, x.t) : kind == 3 ? loam_op_log_softmax(g, x.t) : loam_op_sum(g, x.t);
    check("rows", seed, y, want, 1e-8);
}

static void join(uint64_t seed)
{
    begin(seed);
    int64_t a[4], b[4], ne[4];
    int axis = (int)in_range(0, 3);
    shape(a, 4, 20);
    memcpy(b, a, sizeof b);
    b[axis] = in_range(1, 6);
    memcpy(ne, a, sizeof ne);
    ne[axis] += b[axis];
    in x = floats(4, a), y = floats(4, b);
    double *want = keep((size_t)count(ne) * sizeof *want);
    EACH(ne, {
        int64_t p[4] = { i, j, k, l };
        bool second = p[axis] >= a[axis];
        if (second) p[axis] -= a[axis];
        want[at(ne, i, j, k, l)] = second ? y.x[at(b, p[0], p[1], p[2], p[3])] : x.x[at(a, p[0], p[1], p[2], p[3])];
    });
    check("concat", seed, loam_op_concat(g, x.t, y.t, axis), want, 0);
}

/* ---- products, look-ups ---- */

static const loam_type coded[] = { LOAM_F16, LOAM_BF16, LOAM_Q4_0, LOAM_Q4_1, LOAM_Q5_0, LOAM_Q5_1, LOAM_Q8_0, LOAM_IQ4_NL, LOAM_Q2_K,
                                   LOAM_Q3_K, LOAM_Q4_K, LOAM_Q5_K, LOAM_Q6_K, LOAM_IQ4_XS, LOAM_TQ1_0, LOAM_TQ2_0, LOAM_IQ3_S };

/* Weights of any type: rows of ne[0] values that the reference sees as they were stored. */
static in weights(loam_type type, int n_axes, const int64_t *ne)
{
    loam_error err;
    in r = { .ne = { 1, 1, 1, 1 } };
    memcpy(r.ne, ne, (size_t)n_axes * sizeof *ne);
    int64_t n = count(r.ne);
    float *f = keep((size_t)n * 4);
    for (int64_t i = 0; i < n; i++) f[i] = (float)uniform();
    loam_rows shape_ = { (int)type, n / r.ne[0], r.ne[0] };
    uint64_t bytes;
    assert_int_equal(loam_quant_bytes(&shape_, &bytes, &err), LOAM_OK);
    void *data = keep((size_t)bytes);
    if (loam_quant_encode(&shape_, f, NULL, data, bytes, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_quant_decode(&shape_, data, bytes, f, &err), LOAM_OK);
    r.x = keep((size_t)n * sizeof(double));
    for (int64_t i = 0; i < n; i++) r.x[i] = f[i];
    r.t = leaf(type, n_axes, ne, data);
    return r;
}

static void product(uint64_t seed)
{
    begin(seed);
    bool typed = in_range(0, 2) == 0;
    loam_type type = typed ? coded[in_range(0, (int64_t)(sizeof coded / sizeof *coded) - 1)] : LOAM_F32;
    int block = loam_type_block_values(type);
    int64_t shared = in_range(1, 2), heads = in_range(1, 3), batch = in_range(0, 3) ? 1 : 2;
    int64_t w_ne[4] = { typed ? block * in_range(1, block > 32 ? 1 : 3) : in_range(1, 70), in_range(1, 40), heads, batch };
    int64_t x_ne[4] = { w_ne[0], in_range(1, 12), heads * shared, batch }, ne[4];
    if (in_range(0, 1)) w_ne[2] = w_ne[3] = 1;
    in w = typed ? weights(type, 4, w_ne) : floats(4, w_ne), x = floats(4, x_ne);
    memcpy(ne, x_ne, sizeof ne);
    ne[0] = w_ne[1];
    double *want = keep((size_t)count(ne) * sizeof *want);
    EACH(ne, {
        double sum = 0;
        for (int64_t d = 0; d < w_ne[0]; d++)
            sum += w.x[at(w_ne, d, i, w_ne[2] == 1 ? 0 : k / (x_ne[2] / w_ne[2]), w_ne[3] == 1 ? 0 : l)] * x.x[at(x_ne, d, j, k, l)];
        want[at(ne, i, j, k, l)] = sum;
    });
    check(loam_type_name((int)type), seed, loam_op_matmul(g, w.t, x.t), want, block > 1 ? 5e-4 : 1e-10);
}

static void look_up(uint64_t seed)
{
    begin(seed);
    bool select = in_range(0, 1), typed = !select && in_range(0, 1);
    loam_type type = typed ? coded[in_range(0, 8)] : LOAM_F32;
    int64_t d = typed ? loam_type_block_values(type) : in_range(1, 50), n = in_range(1, 20), m = in_range(1, 15);
    in table = typed ? weights(type, 2, (int64_t[]){ d, n }) : floats(2, (int64_t[]){ d, n }), ids = indexes(m, n);
    double *want = keep((size_t)(d * m) * sizeof *want);
    for (int64_t t = 0; t < m; t++)
        for (int64_t i = 0; i < d; i++) want[t * d + i] = table.x[(int64_t)ids.x[t] * d + i];
    check("look-up", seed, select ? loam_op_select(g, table.t, ids.t) : loam_op_embed(g, table.t, ids.t), want, 0);
}

static void image(uint64_t seed)
{
    begin(seed);
    bool pool = in_range(0, 1);
    loam_image p = { .width = (int)in_range(3, 9), .height = (int)in_range(3, 9), .kernel_w = (int)in_range(1, 3), .kernel_h = (int)in_range(1, 3),
                     .stride_w = (int)in_range(1, 2), .stride_h = (int)in_range(1, 2), .mean = in_range(0, 1) };
    p.pad_w = (int)in_range(0, p.kernel_w - 1), p.pad_h = (int)in_range(0, p.kernel_h - 1);
    int64_t cin = in_range(1, 4), cout = pool ? cin : in_range(1, 5), n = in_range(1, 3);
    in x = floats(3, (int64_t[]){ (int64_t)p.width * p.height, cin, n });
    in w = floats(4, (int64_t[]){ p.kernel_w, p.kernel_h, cin, cout }), b = plain(1, &cout, -1, 1);
    int ow = (p.width + 2 * p.pad_w - p.kernel_w) / p.stride_w + 1, oh = (p.height + 2 * p.pad_h - p.kernel_h) / p.stride_h + 1;
    int64_t ne[4] = { (int64_t)ow * oh, cout, n, 1 };
    double *want = keep((size_t)count(ne) * sizeof *want);
    EACH(ne, {
        double sum = pool ? 0 : b.x[j], top = -1e300;
        int taps = 0;
        for (int c = 0; c < (pool ? 1 : cin); c++)
            for (int v = 0; v < p.kernel_h; v++)
                for (int u = 0; u < p.kernel_w; u++) {
                    int px = (int)(i % ow) * p.stride_w + u - p.pad_w, py = (int)(i / ow) * p.stride_h + v - p.pad_h;
                    if (px < 0 || py < 0 || px >= p.width || py >= p.height) continue;
                    double z = x.x[at(x.ne, py * p.width + px, pool ? j : c, k, 0)];
                    sum += pool ? z : z * w.x[at(w.ne, u, v, c, j)];
                    top = fmax(top, z);
                    taps++;
                }
        want[at(ne, i, j, k, l)] = !pool ? sum : p.mean ? sum / taps : top;
    });
    check("image", seed, pool ? loam_op_pool2d(g, x.t, &p) : loam_op_conv2d(g, x.t, w.t, b.t, &p), want, 1e-10);
}

/* ---- transformers ---- */

static void rope(uint64_t seed)
{
    begin(seed);
    int64_t pairs = in_range(1, 8), first = in_range(0, 3), width = first + 2 * pairs + in_range(0, 3), heads = in_range(1, 4), n = in_range(1, 9);
    bool neox = in_range(0, 1), factored = in_range(0, 1);
    in x = floats(3, (int64_t[]){ width, heads, n }), pos = indexes(n, 200), f = plain(1, &pairs, 0.5, 2);
    loam_rope_params p = { .n_rot = (int)(2 * pairs), .base = 10000.0f };
    loam_tensor *y = loam_op_rope(g, x.t, loam_op_rope_table(g, pos.t, factored ? f.t : NULL, &p), (int)first, neox);
    double *want = keep((size_t)count(x.ne) * sizeof *want);
    memcpy(want, x.x, (size_t)count(x.ne) * sizeof *want);
    for (int64_t t = 0; t < n; t++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < pairs; i++) {
                double angle = pos.x[t] * pow(10000.0, -2.0 * (double)i / (double)(2 * pairs)) / (factored ? f.x[i] : 1);
                int64_t a = first + (neox ? i : 2 * i), b = first + (neox ? i + pairs : 2 * i + 1), row = (t * heads + h) * width;
                want[row + a] = x.x[row + a] * cos(angle) - x.x[row + b] * sin(angle);
                want[row + b] = x.x[row + a] * sin(angle) + x.x[row + b] * cos(angle);
            }
    check("rope", seed, y, want, 1e-8);
}

static void temperature(uint64_t seed)
{
    begin(seed);
    int64_t width = in_range(1, 30), n = in_range(1, 9);
    in x = floats(2, (int64_t[]){ width, n }), pos = indexes(n, 9000);
    double *want = keep((size_t)(width * n) * sizeof *want);
    for (int64_t i = 0; i < width * n; i++) want[i] = x.x[i] * (1 + (double)0.1f * log(1 + floor(pos.x[i / width] / 100)));
    check("temperature", seed, loam_op_temperature(g, x.t, pos.t, (float[]){ 0.1f, 100, 0 }), want, 1e-10);
}

static void attention(uint64_t seed)
{
    begin(seed);
    int64_t dim = in_range(1, 40), v_dim = in_range(1, 40), kv = in_range(1, 3), heads = kv * in_range(1, 3), m = in_range(1, 150), n = in_range(1, m);
    in q = floats_scaled(3, (int64_t[]){ dim, heads, n }, 2), k_ = floats_scaled(3, (int64_t[]){ dim, kv, m }, 2), v = floats(3, (int64_t[]){ v_dim, kv, m });
    in sinks = plain(1, &heads, -1, 1);
    loam_attention_params p = { .causal = in_range(0, 1), .softcap = in_range(0, 1) ? 3.0f : 0.0f, .window = in_range(0, 2) ? 0 : (int)in_range(1, 90) };
    bool sink = in_range(0, 1);
    if (in_range(0, 3) == 0) p.type_k = p.type_v = LOAM_F16;
    double *want = keep((size_t)(v_dim * heads * n) * sizeof *want), *score = keep((size_t)m * sizeof *score);
    for (int64_t t = 0; t < n; t++)
        for (int64_t h = 0; h < heads; h++) {
            double top = sink ? sinks.x[h] : -1e300, sum = 0;
            int64_t g_ = h / (heads / kv), here = t + m - n;
            for (int64_t s = 0; s < m; s++) {
                bool seen = (!p.causal || s <= here) && (!p.window || here - s < p.window);
                double dot = 0;
                for (int64_t d = 0; d < dim; d++) dot += q.x[at(q.ne, d, h, t, 0)] * k_.x[at(k_.ne, d, g_, s, 0)];
                dot /= sqrt((double)dim);
                score[s] = !seen ? -INFINITY : p.softcap ? 3.0 * tanh(dot / 3.0) : dot;
                top = fmax(top, score[s]);
            }
            for (int64_t s = 0; s < m; s++) sum += score[s] = exp(score[s] - top);
            if (sink) sum += exp(sinks.x[h] - top);
            for (int64_t d = 0; d < v_dim; d++) {
                double y = 0;
                for (int64_t s = 0; s < m; s++) y += score[s] * v.x[at(v.ne, d, g_, s, 0)];
                want[(t * heads + h) * v_dim + d] = sum > 0 ? y / sum : 0;
            }
        }
    loam_tensor *y = loam_op_attention(g, (loam_tensor *[]){ q.t, k_.t, v.t }, sink ? sinks.t : NULL, &p);
    check("attention", seed, y, want, p.type_k == LOAM_F16 ? 5e-4 : 1e-9);
}

static void experts(uint64_t seed)
{
    begin(seed);
    int64_t width = in_range(1, 20), out = in_range(1, 20), n_e = in_range(2, 8), used = in_range(1, n_e), n = in_range(1, 9);
    in x = floats(2, (int64_t[]){ width, n }), logits = floats_scaled(2, (int64_t[]){ n_e, n }, 3), w = floats(3, (int64_t[]){ width, out, n_e });
    in bias = plain(2, (int64_t[]){ out, n_e }, -1, 1), scale = plain(1, &n_e, 0.5, 2);
    for (int64_t i = 0; i < n; i++) /* ties would make the choice depend on rounding */
        for (int64_t a = 0; a < n_e; a++)
            for (int64_t b = 0; b < a; b++)
                if (fabs(logits.x[i * n_e + a] - logits.x[i * n_e + b]) < 1e-6) used = n_e;
    bool weigh = in_range(0, 1), normal = in_range(0, 1);
    loam_routing p = { .n_used = (int)used, .router = LOAM_ROUTER_SOFTMAX, .normalise = normal };
    loam_tensor *r = loam_op_route(g, logits.t, NULL, &p), *y = loam_op_experts(g, w.t, weigh ? loam_op_expert_weigh(g, x.t, r) : x.t, r);
    y = loam_op_expert_scale(g, loam_op_expert_add(g, y, bias.t, r), scale.t, r);
    y = weigh ? loam_op_expert_sum(g, y, NULL) : loam_op_expert_sum(g, y, r);
    double *want = keep((size_t)(out * n) * sizeof *want);
    for (int64_t t = 0; t < n; t++) {
        double prob[8], sum = 0, top = -1e300, taken = 0;
        bool chosen[8] = { false };
        for (int64_t e = 0; e < n_e; e++) top = fmax(top, logits.x[t * n_e + e]);
        for (int64_t e = 0; e < n_e; e++) sum += prob[e] = exp(logits.x[t * n_e + e] - top);
        for (int64_t u = 0; u < used; u++) {
            int64_t best = -1;
            for (int64_t e = 0; e < n_e; e++)
                if (!chosen[e] && (best < 0 || prob[e] > prob[best])) best = e;
            chosen[best] = true;
            taken += prob[best] / sum;
        }
        for (int64_t e = 0; e < n_e; e++) {
            double share = prob[e] / sum / (normal ? fmax(taken, 6.103515625e-5) : 1);
            for (int64_t o = 0; o < out && chosen[e]; o++) {
                double dot = 0;
                for (int64_t d = 0; d < width; d++) dot += w.x[at(w.ne, d, o, e, 0)] * x.x[t * width + d];
                want[t * out + o] += ((weigh ? share * dot : dot) + bias.x[e * out + o]) * scale.x[e] * (weigh ? 1 : share);
            }
        }
    }
    check("experts", seed, y, want, 1e-8);
}

/* ---- recurrent layers ---- */

static void recurrent(uint64_t seed)
{
    begin(seed);
    int kind = (int)in_range(0, 6);
    int64_t n = in_range(1, 8), heads = in_range(1, 3), w_ = in_range(2, 12), p_ = kind >= 4 ? w_ : in_range(1, 9), taps = in_range(1, 4);
    int64_t wide[3] = { w_, heads, n }, tall[3] = { p_, heads, n }, one[3] = { 1, heads, n };
    if (kind <= 1) {
        in x = floats(2, (int64_t[]){ w_, n }), c = plain(2, (int64_t[]){ taps, w_ }, -1, 1), b = plain(1, &w_, -1, 1);
        double *want = keep((size_t)(w_ * n) * sizeof *want);
        for (int64_t t = 0; t < n; t++)
            for (int64_t i = 0; i < w_; i++) {
                double sum = b.x[i];
                for (int64_t s = 0; s < taps; s++) sum += t - taps + 1 + s >= 0 ? c.x[i * taps + s] * x.x[(t - taps + 1 + s) * w_ + i] : 0;
                want[t * w_ + i] = kind == 0 ? sum : (t ? x.x[(t - 1) * w_ + i] : 0) - x.x[t * w_ + i];
            }
        check("convolution", seed, kind == 0 ? loam_op_conv(g, x.t, c.t, b.t) : loam_op_token_shift(g, x.t), want, 1e-10);
        return;
    }
    in a = floats(3, wide), b = floats(3, wide), c = floats(3, wide), e = floats(3, wide), f = floats(3, wide), x = floats(3, tall);
    in decay = plain(3, wide, 0.2, 0.95), beta = plain(3, one, 0, 1), dt = plain(2, (int64_t[]){ heads, n }, 0.1, 1), A = plain(1, &heads, -2, -0.1), D = plain(1, &heads, -1, 1);
    in bonus = plain(2, wide, -1, 1);
    loam_tensor *y = NULL;
    switch (kind) {
    case 2: y = loam_op_scan(g, &(loam_scan){ x.t, dt.t, a.t, b.t, A.t, D.t }); break;
    case 3: y = loam_op_delta(g, &(loam_delta){ a.t, b.t, x.t, decay.t, beta.t, true }); break;
    case 4: y = loam_op_wkv6(g, &(loam_wkv6){ a.t, b.t, x.t, decay.t, bonus.t }); break;
    case 5: y = loam_op_wkv7(g, &(loam_wkv7){ a.t, decay.t, b.t, x.t, c.t, e.t }); break;
    default: y = loam_op_head_dot(g, a.t, b.t, x.t); break;
    }
    double *want = keep((size_t)(p_ * heads * n) * sizeof *want), *s = keep((size_t)(p_ * w_) * sizeof *s);
    (void)f;
    for (int64_t h = 0; h < heads; h++) {
        memset(s, 0, (size_t)(p_ * w_) * sizeof *s);
        for (int64_t t = 0; t < n; t++)
            for (int64_t r = 0; r < p_; r++) {
                double *row = s + r * w_, out = 0, u = 0;
                int64_t at_w = (t * heads + h) * w_, at_p = (t * heads + h) * p_ + r;
                double v = x.x[at_p], step = dt.x[t * heads + h];
                for (int64_t i = 0; i < w_; i++) {
                    double q = a.x[at_w + i], k = b.x[at_w + i], d = decay.x[at_w + i];
                    if (kind == 2) row[i] = exp(step * A.x[h]) * row[i] + step * v * q, out += row[i] * k;
                    if (kind == 3) row[i] *= d, u += row[i] * k;
                    if (kind == 4) out += q * (bonus.x[h * w_ + i] * k * v + row[i]), row[i] = row[i] * d + k * v;
                    if (kind == 5) u += row[i] * c.x[at_w + i];
                    if (kind == 6) out += q * k * v;
                }
                if (kind == 2) out += D.x[h] * v;
                for (int64_t i = 0; i < w_; i++) {
                    if (kind == 3) row[i] += beta.x[t * heads + h] * (v - u) * b.x[at_w + i], out += row[i] * a.x[at_w + i];
                    if (kind == 5) row[i] = row[i] * decay.x[at_w + i] + v * b.x[at_w + i] - u * e.x[at_w + i], out += row[i] * a.x[at_w + i];
                }
                want[at_p] = out;
            }
    }
    check("recurrent", seed, y, want, 1e-7);
}

/* ---- copies, views, operations of the caller ---- */

static void views(uint64_t seed)
{
    begin(seed);
    int64_t ne[4], flat = 1;
    shape(ne, 4, 9);
    in x = floats(4, ne);
    flat = count(ne);
    loam_tensor *y = x.t;
    int steps = (int)in_range(1, 4);
    double *now = x.x;
    for (int s = 0; s < steps; s++) {
        int order[4] = { 0, 1, 2, 3 };
        for (int i = 3; i > 0; i--) {
            int j = (int)in_range(0, i), t = order[i];
            order[i] = order[j], order[j] = t;
        }
        int64_t out[4];
        for (int i = 0; i < 4; i++) out[order[i]] = ne[i];
        double *next = keep((size_t)flat * sizeof *next);
        EACH(ne, {
            int64_t p[4];
            p[order[0]] = i, p[order[1]] = j, p[order[2]] = k, p[order[3]] = l;
            next[at(out, p[0], p[1], p[2], p[3])] = now[at(ne, i, j, k, l)];
        });
        y = loam_op_permute(g, y, order);
        if (in_range(0, 1)) y = loam_op_scale(g, y, -1.0f), y = loam_op_scale(g, y, -1.0f);
        now = next;
        memcpy(ne, out, sizeof ne);
        if (in_range(0, 1)) { /* another cut of the same values */
            int64_t cut[4] = { ne[0] * ne[1], ne[2], ne[3], 1 };
            y = loam_op_reshape(g, y, 4, cut);
            memcpy(ne, cut, sizeof ne);
        }
    }
    check("views", seed, loam_op_contiguous(g, y), now, 0);
}

static void casts(uint64_t seed)
{
    begin(seed);
    static const loam_type to[] = { LOAM_F16, LOAM_BF16, LOAM_I32, LOAM_Q8_0, LOAM_Q4_0, LOAM_Q5_1 };
    static const double limit[] = { 1e-6, 1e-4, 1e-12, 1e-4, 2e-2, 5e-3 };
    int kind = (int)in_range(0, 5);
    int64_t ne[4];
    shape(ne, 4, 40);
    if (kind >= 3) ne[0] = 32 * in_range(1, 3);
    in x = floats_scaled(4, ne, kind == 2 ? 1000 : 1);
    double *want = keep((size_t)count(ne) * sizeof *want);
    for (int64_t i = 0; i < count(ne); i++) want[i] = kind == 2 ? nearbyint(x.x[i]) : x.x[i];
    check("cast", seed, loam_op_cast(g, loam_op_cast(g, x.t, to[kind]), LOAM_F32), want, limit[kind]);
}

static double read(const loam_data *d, int64_t i, int64_t j, int64_t k, int64_t l)
{
    return *(const float *)((const char *)d->data + i * d->nb[0] + j * d->nb[1] + k * d->nb[2] + l * d->nb[3]);
}

/* Sum of all inputs, plus what stands in the result where that is in place; rows are dealt out to the tasks. */
static bool add_all(const loam_custom_task *t)
{
    const int64_t *ne = t->out->ne;
    bool in_place = t->user != NULL;
    EACH(ne, {
        int64_t row = j + ne[1] * (k + ne[2] * l);
        if (row % t->n_tasks != t->task) continue;
        double sum = in_place ? read(t->out, i, j, k, l) : 0;
        for (int n = in_place ? 1 : 0; n < t->n_in; n++) sum += read(&t->in[n], i, j, k, l);
        *(float *)((char *)t->out->data + i * t->out->nb[0] + row * t->out->nb[1]) = (float)sum;
    })
    return true;
}

static void custom(uint64_t seed)
{
    begin(seed);
    int64_t ne[4];
    shape(ne, 4, 12);
    int n = (int)in_range(1, MAX_INPUTS), tasks = in_range(0, 1) ? LOAM_TASKS_AS_THREADS : (int)in_range(1, 5);
    bool in_place = in_range(0, 1);
    loam_tensor *x[MAX_INPUTS];
    double *want = keep((size_t)count(ne) * sizeof *want);
    for (int i = 0; i < n; i++) {
        in a = floats(4, ne);
        x[i] = in_range(0, 1) ? loam_op_scale(g, a.t, 2.0f) : a.t;
        for (int64_t k = 0; k < count(ne); k++) want[k] += a.x[k] * (x[i] == a.t ? 1 : 2);
    }
    loam_custom op = { .name = "add_all", .run = add_all, .user = in_place ? &n : NULL, .n_tasks = tasks, .in_place = in_place, .like_first = true };
    loam_tensor *y = n == 1 && !in_place ? loam_op_map1(g, add_all, x[0], tasks, NULL) : n == 2 && !in_place ? loam_op_map2(g, add_all, x, tasks, NULL)
                   : n == 3 && !in_place ? loam_op_map3(g, add_all, x, tasks, NULL) : loam_op_custom(g, &op, x, n);
    check("custom", seed, loam_op_scale(g, y, 1.0f), want, 1e-12);
}

/* ---- the runner ---- */

static void all_cases(void **unused)
{
    (void)unused;
    static void (*const families[])(uint64_t) = { arithmetic, unary, rows, join, product, look_up, image, rope, temperature, attention,
                                                  experts, recurrent, views, casts, custom };
    enum { N = (int)(sizeof families / sizeof *families), PER_FAMILY = 360 };
    for (int f = 0; f < N; f++)
        for (uint64_t i = 0; i < PER_FAMILY; i++) families[f]((uint64_t)f * 100000 + i);
    print_message("%d cases; seeds are 100000 * family + 0 .. %d\n", n_cases, PER_FAMILY - 1);
    assert_true(n_cases >= 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
