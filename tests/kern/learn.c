/* learn.c - kernels of training: products against a chain of fused steps, rows against the reference, bit for bit. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kerncheck.h"
#include "kernels/gemm.h"
#include "kernels/learn.h"

/* ---- products ---- */

static const int64_t shapes[][3] = { { 1, 1, 1 }, { 3, 5, 7 }, { 14, 32, 16 }, { 29, 65, 300 }, { 6, 16, 257 }, { 40, 100, 33 } };

static float at_b(const gemm_args *g, int64_t p, int64_t j)
{
    const char *row = (const char *)g->b + (g->b_turned ? j : p) * g->b_stride;
    return ((const float *)row)[g->b_turned ? p : j];
}

static void check_product(const kernels *k, const int64_t mnk[3], int form, int threads)
{
    int64_t m = mnk[0], n = mnk[1], d = mnk[2];
    guard a = guard_new((size_t)(m * d) * 4, 0), b = guard_new((size_t)(n * d) * 4, 4), c = guard_new((size_t)(m * n) * 4, 8);
    guard s = guard_new(gemm_scratch(), 0);
    float *want = calloc((size_t)(m * n), 4);
    check_fill(guard_floats(&a), m * d, SHAPE_NORMAL);
    check_fill(guard_floats(&b), n * d, SHAPE_NORMAL);
    check_fill(guard_floats(&c), m * n, SHAPE_NORMAL);
    gemm_args g = { .m = m, .n = n, .k = d, .a = guard_floats(&a), .a_row = form == 2 ? 1 : d, .a_col = form == 2 ? m : 1,
                    .b = b.p, .b_type = LOAM_F32, .b_stride = form == 0 ? d * 4 : n * 4, .b_turned = form == 0,
                    .c = guard_floats(&c), .c_stride = n, .add = form == 2 };
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = g.add ? g.c[i * n + j] : 0.0f;
            for (int64_t p = 0; p < d; p++) sum = fmaf(g.a[i * g.a_row + p * g.a_col], at_b(&g, p, j), sum);
            want[i * n + j] = sum;
        }
    for (int t = 0; t < threads; t++) gemm(k, &g, t, threads, s.p);
    assert_true(check_same(g.c, want, m * n, "product"));
    assert_true(guard_ok(&a, "a") && guard_ok(&b, "b") && guard_ok(&c, "c") && guard_ok(&s, "scratch"));
    guard_free(&a), guard_free(&b), guard_free(&c), guard_free(&s);
    free(want);
}

static void products(const kernels *ref, const kernels *k)
{
    (void)ref;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int form = 0; form < 3; form++)
            for (int threads = 1; threads < 5; threads++) check_product(k, shapes[i], form, threads);
}

/* Weights of other types are decoded as they are packed: the same as decoding them first. */
static void coded_products(const kernels *ref, const kernels *k)
{
    (void)ref;
    enum { M = 20, N = 512, D = 256 };
    static const loam_type types[] = { LOAM_F16, LOAM_BF16, LOAM_Q8_0, LOAM_Q4_0 };
    float *a = calloc(M * N, 4), *w = calloc(N * D, 4), *plain = calloc(N * D, 4), *c = calloc(M * N, 4), *want = calloc(M * N, 4);
    uint8_t *coded = calloc(N * D, 4);
    void *s = aligned_alloc(64, (gemm_scratch() + 63) & ~(size_t)63);
    check_fill(a, M * N, SHAPE_NORMAL);
    check_fill(w, N * D, SHAPE_NORMAL);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int turned = 0; turned < 2; turned++) {
            int64_t row = turned ? D : N, rows = turned ? N : D, bytes = row / dtype_table[types[i]].values * dtype_table[types[i]].bytes;
            for (int64_t r = 0; r < rows; r++) {
                k->encode[types[i]](w + r * row, coded + r * bytes, row);
                k->decode[types[i]](coded + r * bytes, plain + r * row, row);
            }
            gemm_args g = { .m = M, .n = N, .k = D, .a = a, .a_row = D, .a_col = 1, .b = coded, .b_type = types[i], .b_stride = bytes,
                            .b_turned = turned, .c = c, .c_stride = N };
            for (int t = 0; t < 2; t++) gemm(k, &g, t, 2, s);
            g.b = plain, g.b_type = LOAM_F32, g.b_stride = row * 4, g.c = want;
            gemm(k, &g, 0, 1, s);
            assert_true(check_same(c, want, M * N, loam_type_name((int)types[i])));
        }
    free(a), free(w), free(plain), free(c), free(want), free(coded), free(s);
}

static void test_products(void **state)
{
    (void)state;
    check_seed();
    check_sets(products);
    check_sets(coded_products);
}

/* ---- rows ---- */

#define MAX 1000
static const int sizes[] = { 1, 7, 15, 16, 17, 33, 64, 100, 1000 };
static float x[MAX], y[MAX], z[MAX], w[MAX], a1[MAX], a2[MAX], b1[MAX], b2[MAX];

static void fill_all(int64_t n, shape s)
{
    float *all[] = { x, y, z, w };
    for (int i = 0; i < 4; i++) check_fill(all[i], n, s);
    memcpy(a1, z, sizeof a1), memcpy(a2, z, sizeof a2), memcpy(b1, w, sizeof b1), memcpy(b2, w, sizeof b2);
}

static void gates(const learn_kernels *r, const learn_kernels *k, int64_t n)
{
    gate_back_fn ref[] = { r->silu, r->gelu, r->gelu_erf, r->gelu_quick, r->relu, r->relu2, r->sigmoid, r->softplus, r->exp_, r->tanh_ };
    gate_back_fn own[] = { k->silu, k->gelu, k->gelu_erf, k->gelu_quick, k->relu, k->relu2, k->sigmoid, k->softplus, k->exp_, k->tanh_ };
    for (size_t i = 0; i < sizeof ref / sizeof ref[0]; i++)
        for (int form = 0; form < 4; form++) {
            fill_all(n, SHAPE_NORMAL);
            gate_back_args a = { .dgate = a1, .dup = form & 1 ? b1 : NULL, .gate = x, .up = form & 1 ? y : NULL, .dy = z, .n = n,
                                 .add_gate = form & 2, .add_up = form & 2 };
            ref[i](&a);
            a.dgate = a2, a.dup = form & 1 ? b2 : NULL;
            own[i](&a);
            assert_true(check_same(a1, a2, n, "gate") && check_same(b1, b2, n, "up"));
        }
}

static void norms(const learn_kernels *r, const learn_kernels *k, int64_t n)
{
    for (int form = 0; form < 8; form++) {
        float s1[2], s2[2];
        fill_all(n, SHAPE_NORMAL);
        norm_back_args a = { .dx = a1, .x = x, .dy = y, .w = form & 1 ? w : NULL, .stats = s1, .n = n, .eps = 1e-5f, .add = form & 2 };
        (form & 4 ? r->layer_back : r->rms_back)(&a);
        a.dx = a2, a.stats = s2;
        (form & 4 ? k->layer_back : k->rms_back)(&a);
        assert_true(check_same(a1, a2, n, "norm") && check_same(s1, s2, 2, "stats"));
        r->norm_weight(b1, x, y, s1, n);
        k->norm_weight(b2, x, y, s1, n);
        assert_true(check_same(b1, b2, n, "norm weight"));
    }
}

static void steps(const learn_kernels *r, const learn_kernels *k, int64_t n)
{
    fill_all(n, SHAPE_NORMAL);
    float p1[MAX], p2[MAX];
    memcpy(p1, x, sizeof p1), memcpy(p2, x, sizeof p2);
    for (int64_t i = 0; i < n; i++) b1[i] = b2[i] = fabsf(w[i]);
    adamw_args a = { p1, a1, b1, y, n, 0.5f, 0.9f, 0.999f, 1e-8f, 1e-3f, 2.0f, 0.99f };
    r->adamw(&a);
    a.p = p2, a.m = a2, a.v = b2;
    k->adamw(&a);
    assert_true(check_same(p1, p2, n, "adamw") && check_same(a1, a2, n, "m") && check_same(b1, b2, n, "v"));
    sgd_args s = { p1, a1, y, n, 0.5f, 1e-3f, 0.9f, 0.01f, true };
    r->sgd(&s);
    s.p = p2, s.m = a2;
    k->sgd(&s);
    assert_true(check_same(p1, p2, n, "sgd") && check_same(a1, a2, n, "momentum"));
}

static void rows(const kernels *ref, const kernels *set)
{
    const learn_kernels *r = ref->learn, *k = set->learn;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t n = sizes[i];
        gates(r, k, n);
        norms(r, k, n);
        steps(r, k, n);
        fill_all(n, SHAPE_NORMAL);
        float d1 = r->dot(x, y, n), d2 = k->dot(x, y, n), t1, t2;
        assert_true(check_same(&d1, &d2, 1, "dot"));
        d1 = r->sum(x, n), d2 = k->sum(x, n);
        assert_true(check_same(&d1, &d2, 1, "sum"));
        assert_true(r->square_sum(x, n) == k->square_sum(x, n));
        r->mul_add(a1, x, y, n), k->mul_add(a2, x, y, n);
        assert_true(check_same(a1, a2, n, "mul_add"));
        d1 = r->exp_sum(a1, x, &t1, n), d2 = k->exp_sum(a2, x, &t2, n);
        assert_true(check_same(a1, a2, n, "exp_sum") && check_same(&d1, &d2, 1, "its sum") && check_same(&t1, &t2, 1, "its maximum"));
        r->exp_from(a1, x, 0.5f, n), k->exp_from(a2, x, 0.5f, n);
        assert_true(check_same(a1, a2, n, "exp_from"));
        r->soft_back(b1, x, 0.25f, 0.125f, n), k->soft_back(b2, x, 0.25f, 0.125f, n);
        assert_true(check_same(b1, b2, n, "soft_back"));
    }
}

static void test_rows(void **state)
{
    (void)state;
    check_seed();
    check_sets(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_products), cmocka_unit_test(test_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
