/* budget.c - types by measured divergence: within the limit, the same whatever the threads, better than one type of the same size;
 * the file has the planned types; refusals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "loam/debug.h"
#include "loam/gguf.h"
#include "loam/quantize.h"

static char in[512], out[512], text[4096];

static loam_budget_params params_of(double bits)
{
    loam_budget_params p = loam_budget_defaults();
    p.bits = bits;
    p.text = text;
    p.text_len = strlen(text);
    p.n_ctx = 32;
    p.n_tokens = 32;
    p.n_threads = 1;
    return p;
}

static loam_budget *plan_of(const loam_budget_params *p)
{
    loam_budget *b;
    loam_error err;
    if (loam_budget_plan(&b, in, p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return b;
}

static void within_limits(void **unused)
{
    (void)unused;
    const double limits[] = { 4.5, 9 };
    double last = INFINITY;
    for (int k = 0; k < 2; k++) {
        loam_budget_params p = params_of(limits[k]);
        p.n_threads = 1 + k;
        loam_budget *b = plan_of(&p);
        loam_budget_facts f = loam_budget_get(b);
        loam_budget_point point, before = { 0 };
        loam_budget_tensor t;
        uint64_t bytes = 0;
        size_t n = 0;
        assert_true(f.chosen.bits <= limits[k] && f.chosen.bits > limits[k] * 0.93);
        assert_true(f.measured > 0 && f.measured < last);
        last = f.measured;
        for (; loam_budget_tensor_at(b, n, &t); n++) bytes += t.bytes;
        assert_int_equal(n, 4 * 7 + 2);
        assert_true(bytes < f.chosen.bytes); /* norms come on top */
        for (size_t i = 0; loam_budget_point_at(b, i, &point); i++) {
            assert_true(point.bytes > before.bytes);
            assert_true(i == 0 || point.kld <= before.kld * 1.0001);
            before = point;
        }
        loam_budget_free(b);
    }
}

static void same_with_threads(void **unused)
{
    (void)unused;
    loam_budget_params p = params_of(6);
    p.n_rounds = 0;
    loam_budget *a = plan_of(&p);
    p.n_threads = 2;
    loam_budget *b = plan_of(&p);
    loam_budget_tensor x, y;
    for (size_t i = 0; loam_budget_tensor_at(a, i, &x); i++) {
        assert_true(loam_budget_tensor_at(b, i, &y));
        assert_string_equal(x.name, y.name);
        assert_int_equal(x.to, y.to);
        assert_true(x.kld == y.kld);
    }
    loam_budget_free(a);
    loam_budget_free(b);
}

static void file_as_planned(void **unused)
{
    (void)unused;
    loam_budget_params p = params_of(0);
    loam_quantize_params q = loam_quantize_defaults();
    loam_error err;
    loam_gguf *f;
    loam_gguf_tensor t;
    loam_budget_tensor want;
    p.bytes = 3000000;
    p.n_rounds = 0;
    loam_budget *b = plan_of(&p);
    q.budget = b;
    if (loam_quantize_file(in, out, &q, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_gguf_open(&f, out, NULL, &err), LOAM_OK);
    assert_true(loam_gguf_bytes(f) <= p.bytes && loam_gguf_bytes(f) > p.bytes * 9 / 10);
    for (size_t i = 0; loam_budget_tensor_at(b, i, &want); i++) {
        assert_true(loam_gguf_tensor_find(f, want.name, &t));
        assert_int_equal(t.type, want.to);
        assert_int_equal(t.bytes, want.bytes);
    }
    loam_gguf_free(f);
    loam_model *m; /* it opens as a model */
    if (loam_model_open(&m, out, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_model_free(m);
    assert_int_equal(loam_quantize_file(out, in, &q, NULL, &err), LOAM_E_UNSUPPORTED); /* it is quantized already */
    loam_budget_free(b);
    remove(out);
}

static bool stop(void *user, const char *stage, double share)
{
    (void)share;
    return !strstr(stage, user);
}

static void refused(const loam_budget_params *p, loam_status want, const char *part)
{
    loam_budget *b;
    loam_error err = { 0 };
    loam_status status = loam_budget_plan(&b, in, p, &err);
    if (status != want || !strstr(err.message, part)) fail_msg("%d, '%s'; expected %d and '%s'", status, err.message, want, part);
    assert_null(b);
}

static void refusals(void **unused)
{
    (void)unused;
    loam_budget_params p = params_of(0);
    refused(&p, LOAM_E_ARG, "budget");
    p.bits = 4, p.bytes = 1000;
    refused(&p, LOAM_E_ARG, "either");
    p = params_of(0.5);
    refused(&p, LOAM_E_ARG, "smallest file");
    p = params_of(NAN);
    refused(&p, LOAM_E_ARG, "budget");
    p = params_of(4);
    p.text_len = 10;
    refused(&p, LOAM_E_ARG, "calibration text");
    p = params_of(4);
    p.n_ctx = 1;
    refused(&p, LOAM_E_ARG, "n_ctx");
    p = params_of(4);
    static char stages[][12] = { "reading", "looking", "measuring", "correcting" };
    p.progress = stop;
    p.bits = 8;
    for (int i = 0; i < 4; i += 2) {
        p.progress_user = stages[i];
        refused(&p, LOAM_E_ABORTED, "stopped");
    }
}

int main(void)
{
    loam_error err;
    dice d = { 4 };
    for (size_t at = 0; at < sizeof text - 8;) at += (size_t)snprintf(text + at, 8, "%c%c ", 'a' + (int)dice_below(&d, 26), 'a' + (int)dice_below(&d, 26));
    scratch_path(in, "in.gguf");
    scratch_path(out, "out.gguf");
    if (loam_debug_make_model(in, "tiny", "f32", 1, &err) != LOAM_OK) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(within_limits), cmocka_unit_test(same_with_threads),
                                        cmocka_unit_test(file_as_planned), cmocka_unit_test(refusals) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(in);
    return failed;
}
