/* state.c - recurrent kernels: the reference against double precision, every set against the reference, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kerncheck.h"

#define MOST 130

/* ---- gates ---- */

static void test_gates(void **state)
{
    (void)state;
    const kernels *k = kernels_for("ref");
    double worst = 0;
    for (float x = -95.0f; x < 90.0f; x += 0.0137f) {
        float y;
        k->softplus(&y, &x, NULL, 1);
        double want = x > 20 ? x : log1p(exp((double)x)), e = fabs(y - want) / want;
        if (want > 1e-37 && e > worst) worst = e;
        k->exp_(&y, &x, NULL, 1);
        if (x > -87 && x < 88) assert_true(fabs(y - exp((double)x)) <= 2e-7 * exp((double)x));
        k->tanh_(&y, &x, NULL, 1);
        assert_true(fabs(y - tanh((double)x)) <= 2e-7);
    }
    printf("softplus: largest relative error %.1e\n", worst);
    assert_true(worst < 4e-7);
}

/* ---- states: reference against sums in double ---- */

static void fill_all(float *const *p, int n, int64_t len)
{
    for (int i = 0; i < n; i++) check_fill(p[i], len, SHAPE_NORMAL);
}

static void test_reference(void **state)
{
    (void)state;
    enum { N = 37, R = 5 };
    const kernels *k = kernels_for("ref");
    static float s[N * N], b[N], c[N], q[N], x[N], y[N], a[N * R], dt[R], d[R], old[N * N];
    float *all[] = { b, c, q, x };
    fill_all(all, 4, N);
    check_fill(s, N * N, SHAPE_NORMAL);
    check_fill(a, N * R, SHAPE_NORMAL);
    check_fill(dt, R, SHAPE_NORMAL);
    check_fill(d, R, SHAPE_NORMAL);
    memcpy(old, s, sizeof s);
    k->scan_each(&(scan_args){ .s = s, .y = y, .x = x, .b = b, .c = c, .dt = dt, .a = a, .d = d, .rows = R, .n = N });
    for (int r = 0; r < R; r++) {
        double want = (double)d[r] * x[r], scale = 1;
        for (int i = 0; i < N; i++) {
            double t = old[r * N + i] * exp((double)dt[r] * a[r * N + i]) + (double)dt[r] * x[r] * b[i];
            want += t * c[i];
            scale += fabs(t * c[i]);
            assert_true(fabs(s[r * N + i] - t) <= 1e-5 * (fabs(t) + 1));
        }
        assert_true(fabs(y[r] - want) <= 1e-5 * scale);
    }
    memcpy(old, s, sizeof s);
    float decay = 0.75f;
    k->delta(&(delta_args){ .s = s, .y = y, .q = q, .k = b, .v = x, .decay = &decay, .beta = 0.5f, .rows = R, .n = N });
    for (int r = 0; r < R; r++) {
        double m = 0, want = 0, scale = 1;
        for (int i = 0; i < N; i++) m += (double)old[r * N + i] * decay * b[i];
        for (int i = 0; i < N; i++) {
            double t = old[r * N + i] * 0.75 + 0.5 * (x[r] - m) * b[i];
            want += t * q[i];
            scale += fabs(t * q[i]);
        }
        assert_true(fabs(y[r] - want) <= 1e-5 * scale);
    }
    memcpy(old, s, sizeof s);
    k->wkv6(&(wkv6_args){ .s = s, .y = y, .r = b, .k = c, .v = x, .w = q, .u = a, .n = N });
    for (int j = 0; j < N; j++) {
        double want = 0, scale = 1;
        for (int i = 0; i < N; i++) {
            want += (double)b[i] * (old[i * N + j] + (double)a[i] * c[i] * x[j]);
            scale += fabs((double)b[i] * old[i * N + j]);
            assert_true(fabs(s[i * N + j] - ((double)old[i * N + j] * q[i] + (double)c[i] * x[j])) < 1e-4);
        }
        assert_true(fabs(y[j] - want) <= 1e-5 * scale);
    }
    memcpy(old, s, sizeof s);
    k->wkv7(&(wkv7_args){ .s = s, .y = y, .r = b, .w = q, .k = c, .v = x, .kk = a, .ka = a + N, .rows = R, .n = N });
    for (int r = 0; r < R; r++) {
        double e = 0, want = 0, scale = 1;
        for (int j = 0; j < N; j++) e -= (double)old[r * N + j] * a[j];
        for (int j = 0; j < N; j++) {
            double t = (double)old[r * N + j] * q[j] + (double)x[r] * c[j] + e * a[N + j];
            want += t * b[j];
            scale += fabs(t * b[j]);
        }
        assert_true(fabs(y[r] - want) <= 1e-4 * scale);
    }
}

/* ---- every set against the reference ---- */

/* Inputs, states and outputs of one case; states and outputs of both sides between poisoned margins. */
typedef struct bench {
    float in[8][MOST * MOST];
    float start[MOST * MOST];
    guard state[2], out[2];
} bench;

static bench t;

static void begin(int64_t n_state, int64_t n_out, shape form)
{
    for (int i = 0; i < 8; i++) check_fill(t.in[i], MOST * MOST, form);
    check_fill(t.start, MOST * MOST, form);
    for (int i = 0; i < 2; i++) {
        t.state[i] = guard_new((size_t)n_state * 4, 4 * (size_t)check_below(16));
        t.out[i] = guard_new((size_t)n_out * 4, 4 * (size_t)check_below(16));
        memcpy(t.state[i].p, t.start, (size_t)n_state * 4);
    }
}

static void end(int64_t n_state, int64_t n_out, const char *what)
{
    assert_true(check_same(guard_floats(&t.state[0]), guard_floats(&t.state[1]), n_state, what));
    assert_true(check_same(guard_floats(&t.out[0]), guard_floats(&t.out[1]), n_out, what));
    for (int i = 0; i < 2; i++) {
        assert_true(guard_ok(&t.state[i], what) && guard_ok(&t.out[i], what));
        guard_free(&t.state[i]);
        guard_free(&t.out[i]);
    }
}

static void one_size(const kernels *const side[2], int n, int rows, shape form)
{
    for (int taps = 1; taps < 6; taps++) {
        begin((taps - 1) * n, n, form);
        for (int i = 0; i < 2; i++)
            side[i]->conv(&(conv_args){ .y = guard_floats(&t.out[i]), .win = guard_floats(&t.state[i]), .x = t.in[0], .w = t.in[1],
                                        .bias = taps % 2 ? t.in[2] : NULL, .win_stride = (size_t)n, .w_stride = (size_t)n, .taps = taps, .n = n });
        end((taps - 1) * n, n, "conv");
    }
    for (int each = 0; each < 2; each++) {
        begin(rows * n, rows, form);
        for (int i = 0; i < 2; i++)
            (each ? side[i]->scan_each : side[i]->scan_shared)(&(scan_args){
                .s = guard_floats(&t.state[i]), .y = guard_floats(&t.out[i]), .x = t.in[0], .b = t.in[1], .c = t.in[2], .dt = t.in[3], .a = t.in[4],
                .d = t.in[5], .rows = rows, .n = n });
        end(rows * n, rows, "scan");
        begin(rows * n, rows, form);
        for (int i = 0; i < 2; i++)
            side[i]->delta(&(delta_args){ .s = guard_floats(&t.state[i]), .y = guard_floats(&t.out[i]), .q = t.in[0], .k = t.in[1], .v = t.in[2],
                                          .decay = t.in[3], .each = each, .beta = t.in[4][0], .rows = rows, .n = n });
        end(rows * n, rows, "delta");
        begin(n * n, n, form);
        for (int i = 0; i < 2; i++)
            side[i]->wkv6(&(wkv6_args){ .s = guard_floats(&t.state[i]), .y = guard_floats(&t.out[i]), .r = t.in[0], .k = t.in[1], .v = t.in[2],
                                        .w = t.in[3], .u = each ? t.in[4] : NULL, .n = n });
        end(n * n, n, "wkv6");
    }
    begin(rows * n, rows, form);
    for (int i = 0; i < 2; i++)
        side[i]->wkv7(&(wkv7_args){ .s = guard_floats(&t.state[i]), .y = guard_floats(&t.out[i]), .r = t.in[0], .w = t.in[1], .k = t.in[2],
                                    .v = t.in[3], .kk = t.in[4], .ka = t.in[5], .rows = rows, .n = n });
    end(rows * n, rows, "wkv7");
    gate_fn gates[3][2] = { { side[0]->softplus, side[1]->softplus }, { side[0]->exp_, side[1]->exp_ }, { side[0]->tanh_, side[1]->tanh_ } };
    for (int g = 0; g < 6; g++) {
        begin(1, n, form);
        for (int i = 0; i < 2; i++) gates[g % 3][i](guard_floats(&t.out[i]), t.in[0], g < 3 ? NULL : t.in[1], n);
        end(1, n, "gate");
    }
}

static void set_cases(const kernels *ref, const kernels *k)
{
    static const int sizes[] = { 1, 2, 7, 15, 16, 17, 31, 32, 48, 64, 100, 128, 129 };
    const kernels *const side[2] = { ref, k };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int s = 0; s < SHAPE_COUNT; s++) one_size(side, sizes[i], 1 + (int)i % 5, (shape)s);
}

static void test_sets(void **state)
{
    (void)state;
    check_sets(set_cases);
}

int main(void)
{
    check_seed();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_gates), cmocka_unit_test(test_reference), cmocka_unit_test(test_sets) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
