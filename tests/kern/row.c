/* row.c - row kernels: the reference against double precision, every set against the reference, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kerncheck.h"
#include "kernels/ref/mathf.h"

static const int sizes[] = { 0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 127, 128, 257, 896, 1000 };
#define N_SIZES ((int)(sizeof sizes / sizeof sizes[0]))
#define MAX_SIZE 1000

/* ---- accuracy ---- */

/* Distance of got from the exact value in units in the last place of a binary32 near it. */
static double ulps(float got, double exact)
{
    if (isnan(exact)) return isnan(got) ? 0.0 : INFINITY;
    float near = (float)exact;
    if (isinf(near)) return got == near ? 0.0 : INFINITY;
    int e;
    frexp(exact, &e);
    if (e < -125) e = -125;
    return fabs((double)got - exact) / ldexp(1.0, e - 24);
}

typedef struct accuracy_row {
    const char *name;
    float (*f)(float);
    double (*exact)(double);
    double limit; /* measured over all binary32 values, rounded up in the second digit */
} accuracy_row;

static double exact_exp(double x)
{
    double y = exp(x);
    return y < 0x1p-126 ? 0.0 : y; /* subnormal results are flushed by definition */
}

static void test_accuracy(void **state)
{
    (void)state;
    static const accuracy_row rows[] = {
        { "exp", math_exp, exact_exp, 0.9 },
        { "tanh", math_tanh, tanh, 1.4 },
        { "erf", math_erf, erf, 1.1 },
        { "log", math_log, log, 0.81 },
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        double worst = 0.0;
        float at = 0.0f;
        uint32_t step = 1021;
        for (uint64_t u = check_u32() % step; u <= UINT32_MAX; u += step) {
            float x = f32_of_bits((uint32_t)u);
            double d = ulps(rows[r].f(x), rows[r].exact((double)x));
            if (d > worst) {
                worst = d;
                at = x;
            }
        }
        printf("%s: largest error %.3f ulp at %a\n", rows[r].name, worst, (double)at);
        assert_true(worst <= rows[r].limit);
    }
    assert_true(math_exp(-INFINITY) == 0.0f && math_exp(INFINITY) == INFINITY && isnan(math_exp(NAN)));
    assert_true(math_exp(0.0f) == 1.0f && math_exp(-87.4f) == 0.0f && isinf(math_exp(88.8f)));
    assert_true(signbit(math_tanh(-0.0f)) && math_tanh(INFINITY) == 1.0f && math_erf(-INFINITY) == -1.0f);
    assert_true(isinf(math_log(0.0f)) && isnan(math_log(-1.0f)) && math_log(1.0f) == 0.0f);
}

/* Norms and softmax in double: bounds are a few roundings of the largest term. */
static void test_reference(void **state)
{
    (void)state;
    const kernels *k = kernels_for("ref");
    float x[300], w[300], b[300], y[300];
    check_fill(x, 300, SHAPE_NORMAL);
    check_fill(w, 300, SHAPE_NORMAL);
    check_fill(b, 300, SHAPE_NORMAL);
    double sum = 0, sq = 0, var = 0, e = 0;
    for (int i = 0; i < 300; i++) sum += x[i], sq += (double)x[i] * x[i], e += exp(x[i]);
    double mean = sum / 300;
    for (int i = 0; i < 300; i++) var += (x[i] - mean) * (x[i] - mean);
    k->rms_norm(y, x, w, NULL, 300, 1e-5f);
    for (int i = 0; i < 300; i++) assert_true(fabs(y[i] - x[i] / sqrt(sq / 300 + 1e-5) * w[i]) < 4e-6);
    k->layer_norm(y, x, w, b, 300, 1e-5f);
    for (int i = 0; i < 300; i++) assert_true(fabs(y[i] - ((x[i] - mean) / sqrt(var / 300 + 1e-5) * w[i] + b[i])) < 4e-6);
    k->softmax(y, x, 300);
    for (int i = 0; i < 300; i++) assert_true(fabs(y[i] * e / exp(x[i]) - 1) < 2e-6);
    float hidden[3] = { -INFINITY, -INFINITY, -INFINITY };
    k->softmax(y, hidden, 3);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
    k->softcap(y, x, 2.5f, 300);
    for (int i = 0; i < 300; i++) assert_true(fabs(y[i] - 2.5 * tanh(x[i] / 2.5)) < 1e-6);
    for (int i = 0; i < 300; i++) {
        double g = x[i], u = w[i], t = 0.79788456080286536 * (g + 0.044715 * g * g * g), near = 2e-6;
        k->silu(y, x + i, w + i, 1);
        assert_true(fabs(y[0] - g / (1 + exp(-g)) * u) < near);
        k->gelu(y, x + i, w + i, 1);
        assert_true(fabs(y[0] - 0.5 * g * (1 + tanh(t)) * u) < near);
        k->gelu_erf(y, x + i, w + i, 1);
        assert_true(fabs(y[0] - 0.5 * g * (1 + erf(g * sqrt(0.5))) * u) < near);
        k->gelu_quick(y, x + i, w + i, 1);
        assert_true(fabs(y[0] - g / (1 + exp(-1.702 * g)) * u) < near);
        k->relu(y, x + i, NULL, 1);
        assert_true(y[0] == (g > 0 ? x[i] : 0));
        k->relu2(y, x + i, NULL, 1);
        assert_true(y[0] == (g > 0 ? x[i] * x[i] : 0));
        k->sigmoid(y, x + i, NULL, 1);
        assert_true(fabs(y[0] - 1 / (1 + exp(-g))) < near);
    }
    float v[4] = { 1, 2, 3, 4 }, c[2] = { 0.6f, 0.8f }, s[2] = { 0.8f, 0.6f };
    k->rope(v, c, s, 2, true); /* pairs (1,3), (2,4) */
    assert_true(fabs(v[0] + 1.8) < 1e-6 && fabs(v[2] - 2.6) < 1e-6 && fabs(v[1] + 0.8) < 1e-6 && fabs(v[3] - 4.4) < 1e-6);
    float z[4] = { 1, 2, 3, 4 };
    k->rope(z, c, s, 2, false); /* pairs (1,2), (3,4) */
    assert_true(fabs(z[0] + 1.0) < 1e-6 && fabs(z[1] - 2.0) < 1e-6 && fabs(z[2] - 0.0) < 1e-6 && fabs(z[3] - 5.0) < 1e-6);
}

/* ---- every set against the reference ---- */

/* One call of some kernel: y out, three inputs of n floats; scalar s. */
typedef void (*case_fn)(const kernels *k, float *y, const float *a, const float *b, const float *c, int n);
#define CASE(name, call) \
    static void case_##name(const kernels *k, float *y, const float *a, const float *b, const float *c, int n) \
    { \
        (void)b; \
        (void)c; \
        call; \
    }
CASE(rms_norm, k->rms_norm(y, a, NULL, NULL, n, 1e-6f))
CASE(rms_norm_w, k->rms_norm(y, a, b, NULL, n, 1e-6f))
CASE(rms_norm_b, k->rms_norm(y, a, NULL, c, n, 1e-6f))
CASE(rms_norm_wb, k->rms_norm(y, a, b, c, n, 1e-6f))
CASE(layer_norm, k->layer_norm(y, a, NULL, NULL, n, 1e-5f))
CASE(layer_norm_wb, k->layer_norm(y, a, b, c, n, 1e-5f))
CASE(silu, k->silu(y, a, NULL, n))
CASE(silu_up, k->silu(y, a, b, n))
CASE(gelu, k->gelu(y, a, NULL, n))
CASE(gelu_up, k->gelu(y, a, b, n))
CASE(gelu_erf, k->gelu_erf(y, a, NULL, n))
CASE(gelu_erf_up, k->gelu_erf(y, a, b, n))
CASE(gelu_quick, k->gelu_quick(y, a, NULL, n))
CASE(gelu_quick_up, k->gelu_quick(y, a, b, n))
CASE(relu, k->relu(y, a, NULL, n))
CASE(relu_up, k->relu(y, a, b, n))
CASE(relu2, k->relu2(y, a, NULL, n))
CASE(relu2_up, k->relu2(y, a, b, n))
CASE(sigmoid, k->sigmoid(y, a, NULL, n))
CASE(sigmoid_up, k->sigmoid(y, a, b, n))
CASE(add, k->add(y, a, b, n))
CASE(mul2, k->mul2(y, a, b, n))
CASE(scale, k->scale(y, a, -1.7f, n))
CASE(axpy, (memmove(y, a, sizeof *y * (size_t)n), k->axpy(y, b, 0.3f, n)))
CASE(softmax, k->softmax(y, a, n))
CASE(softcap, k->softcap(y, a, 30.0f, n))
CASE(rope_neox, (memmove(y, a, sizeof *y * (size_t)n), k->rope(y, b, c, n / 2, true)))
CASE(rope_pairs, (memmove(y, a, sizeof *y * (size_t)n), k->rope(y, b, c, n / 2, false)))
CASE(merge, (memmove(y, a, sizeof *y * (size_t)n),
             n > 2 ? k->attn_merge((attn_state){ y, y + 1, y + 2 }, (attn_part){ b[0], b[1], c }, n - 2) : (void)0))
#undef CASE

#define CASE(name) { #name, case_##name }
static const struct {
    const char *name;
    case_fn run;
} cases[] = { CASE(rms_norm), CASE(rms_norm_w), CASE(rms_norm_b), CASE(rms_norm_wb), CASE(layer_norm), CASE(layer_norm_wb),
              CASE(silu), CASE(silu_up), CASE(gelu), CASE(gelu_up), CASE(gelu_erf), CASE(gelu_erf_up), CASE(gelu_quick),
              CASE(gelu_quick_up), CASE(relu), CASE(relu_up), CASE(relu2), CASE(relu2_up), CASE(sigmoid), CASE(sigmoid_up),
              CASE(add), CASE(mul2), CASE(scale), CASE(axpy), CASE(softmax), CASE(softcap), CASE(rope_neox), CASE(rope_pairs),
              CASE(merge) };
#undef CASE

/* alias 0: y apart, 1: y is the first input, 2: y is the second (element-wise kernels and gates only). */
static void one_case(const kernels *ref, const kernels *k, int which, int n, shape s)
{
    char what[96];
    snprintf(what, sizeof what, "%s %s n %d shape %d", k->name, cases[which].name, n, (int)s);
    static float in[3][MAX_SIZE], expected[MAX_SIZE];
    for (int i = 0; i < 3; i++) check_fill(in[i], n, i == 0 ? s : check_below(2) ? s : SHAPE_NORMAL);
    cases[which].run(ref, expected, in[0], in[1], in[2], n);
    const char *name = cases[which].name;
    bool elementwise = strstr(name, "_up") || !strcmp(name, "add") || !strcmp(name, "mul2");
    for (int alias = 0; alias < (elementwise ? 3 : 2); alias++) {
        guard g[4];
        for (int i = 0; i < 4; i++) g[i] = guard_new(sizeof(float) * (size_t)n, 4 * (size_t)check_below(16));
        for (int i = 0; i < 3; i++) memcpy(g[i].p, in[i], sizeof(float) * (size_t)n);
        float *y = guard_floats(&g[alias == 0 ? 3 : alias - 1]);
        cases[which].run(k, y, guard_floats(&g[0]), guard_floats(&g[1]), guard_floats(&g[2]), n);
        assert_true(check_same(expected, y, n, what));
        for (int i = 0; i < 4; i++) {
            assert_true(guard_ok(&g[i], what));
            guard_free(&g[i]);
        }
    }
}

static void set_cases(const kernels *ref, const kernels *k)
{
    for (int c = 0; c < (int)(sizeof cases / sizeof cases[0]); c++)
        for (int i = 0; i < N_SIZES; i++)
            for (int s = 0; s < SHAPE_COUNT; s++) one_case(ref, k, c, sizes[i], (shape)s);
}

static void test_sets(void **state)
{
    (void)state;
    check_sets(set_cases);
}

/* Every element of an element-wise kernel depends on its own inputs only: all binary16 values through the functions. */
static void set_functions(const kernels *ref, const kernels *k)
{
    static float x[65536], a[65536], b[65536];
    for (int i = 0; i < 65536; i++) x[i] = f16_to_f32((uint16_t)i);
    gate_fn fr[] = { ref->silu, ref->gelu, ref->gelu_erf, ref->gelu_quick, ref->relu, ref->relu2, ref->sigmoid };
    gate_fn fk[] = { k->silu, k->gelu, k->gelu_erf, k->gelu_quick, k->relu, k->relu2, k->sigmoid };
    for (int f = 0; f < 7; f++) {
        fr[f](a, x, NULL, 65536);
        fk[f](b, x, NULL, 65536);
        assert_true(check_same(a, b, 65536, "function over all binary16"));
    }
    ref->softcap(a, x, 1.0f, 65536);
    k->softcap(b, x, 1.0f, 65536);
    assert_true(check_same(a, b, 65536, "tanh over all binary16"));
}

static void test_functions(void **state)
{
    (void)state;
    check_sets(set_functions);
}

/* ---- decoders and encoders ---- */

static void set_codecs(const kernels *ref, const kernels *k)
{
    static const loam_type types[] = { LOAM_F32,  LOAM_F16,  LOAM_BF16, LOAM_Q8_0,  LOAM_Q5_1,
                                       LOAM_Q5_0, LOAM_Q4_1, LOAM_Q4_0, LOAM_IQ4_NL };
    static float x[65536], a[65536], b[65536];
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        if (!ref->encode[types[t]]) continue;
        const dtype_info *info = dtype_get((int64_t)types[t]);
        for (int i = 0; i < N_SIZES; i++)
            for (int s = 0; s < SHAPE_COUNT; s++) {
                int n = sizes[i] * (info->values > 1 ? info->values : 1);
                if (n > 65536 || (info->values > 1 && s == SHAPE_MIXED)) continue;
                size_t bytes = (size_t)(n / info->values) * (size_t)info->bytes;
                check_fill(x, n, (shape)s);
                guard ge = guard_new(bytes, 0), gk = guard_new(bytes, (size_t)check_below(64));
                guard out = guard_new(sizeof(float) * (size_t)n, 4 * (size_t)check_below(16));
                ref->encode[types[t]](x, ge.p, n);
                k->encode[types[t]](x, gk.p, n);
                assert_memory_equal(ge.p, gk.p, bytes);
                ref->decode[types[t]](ge.p, a, n);
                k->decode[types[t]](gk.p, guard_floats(&out), n);
                assert_true(check_same(a, guard_floats(&out), n, info->name));
                assert_true(guard_ok(&gk, info->name) && guard_ok(&out, info->name));
                guard_free(&ge);
                guard_free(&gk);
                guard_free(&out);
            }
    }
    static uint16_t codes[65536], back[65536];
    for (int i = 0; i < 65536; i++) codes[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++) {
        loam_type type = t ? LOAM_BF16 : LOAM_F16;
        ref->decode[type](codes, a, 65536);
        k->decode[type](codes, b, 65536);
        assert_true(check_same(a, b, 65536, "all codes")); /* hardware quiets a signalling NaN */
        k->encode[type](a, back, 65536);
        for (int i = 0; i < 65536; i++) {
            uint16_t nan = t ? (uint16_t)(codes[i] | 0x40) : (uint16_t)((codes[i] & 0x8000) | 0x7E00);
            assert_int_equal(back[i], isnan(a[i]) ? nan : codes[i]);
        }
    }
    /* Halfway points between neighbouring binary16 values, and their neighbours. */
    for (int i = 0; i < 65536; i++) x[i] = f32_of_bits(check_u32() & ~0xFFFu) + 0.0f;
    for (int i = 0; i < 65536; i += 2) x[i] = (f16_to_f32((uint16_t)(i / 2)) + f16_to_f32((uint16_t)(i / 2 + 1))) * 0.5f;
    ref->encode[LOAM_F16](x, codes, 65536);
    k->encode[LOAM_F16](x, back, 65536);
    assert_memory_equal(codes, back, sizeof codes);
}

static void test_codecs(void **state)
{
    (void)state;
    check_sets(set_codecs);
}

int main(void)
{
    check_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy), cmocka_unit_test(test_reference), cmocka_unit_test(test_sets),
        cmocka_unit_test(test_functions), cmocka_unit_test(test_codecs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
