/* sample.c - a sampler whose allocations fail, one after the other: no crash, no leak, and a sampler that goes on as if
 * nothing had been. */
#include "check.h"
#include "fault.h"
#include "loam/sampler.h"

#define N 3000

static float logits[N];

static loam_sampler_params everything(int mirostat)
{
    static const loam_logit_bias bias[] = { { 5, 1 }, { 7, -2 } };
    static const int32_t breakers[] = { 9, 3 };
    loam_sampler_params p = loam_sampler_defaults();
    p.seed = 11;
    p.penalty_repeat = 1.1f;
    p.dry_multiplier = 0.8f;
    p.typical_p = 0.95f;
    p.top_n_sigma = 3;
    p.xtc_probability = 0.5f;
    p.n_probs = 10;
    p.logit_bias = bias, p.n_logit_bias = 2;
    p.dry_breakers = breakers, p.n_dry_breakers = 2;
    p.mirostat = mirostat;
    return p;
}

static loam_status whole_life(void *arg, loam_error *err)
{
    loam_sampler_params p = everything(*(int *)arg);
    loam_sampler *s = NULL, *copy = NULL;
    int32_t id;
    loam_status status = loam_sampler_new(&s, &p, err);
    for (int i = 0; i < 40 && status == LOAM_OK; i++) {
        status = loam_sampler_accept(s, i % 6, err);
        if (status == LOAM_OK && i % 8 == 0) status = loam_sampler_sample(s, logits, N, &id, err);
    }
    if (status == LOAM_OK) status = loam_sampler_clone(&copy, s, err);
    if (status == LOAM_OK) status = loam_sampler_sample(copy, logits, N, &id, err);
    loam_sampler_free(s);
    loam_sampler_free(copy);
    return status;
}

static void every_allocation(void **unused)
{
    (void)unused;
    for (int mirostat = 0; mirostat < 3; mirostat++) assert_true(fault_loop("sampler", whole_life, &mirostat) > 5);
}

/* Draws of a sampler that meets a failure in each step and tries again are those of one that meets none. */
static void goes_on(void **unused)
{
    (void)unused;
    loam_sampler_params p = everything(0);
    loam_sampler *calm = NULL, *hit = NULL;
    loam_error err;
    assert_int_equal(loam_sampler_new(&calm, &p, &err), LOAM_OK);
    assert_int_equal(loam_sampler_new(&hit, &p, &err), LOAM_OK);
    int failures = 0;
    for (int i = 0; i < 60; i++) {
        int32_t a = -1, b = -1;
        assert_int_equal(loam_sampler_sample(calm, logits, N, &a, &err), LOAM_OK);
        assert_int_equal(loam_sampler_accept(calm, a, &err), LOAM_OK);
        for (long n = 1;; n++) {
            fault_arm(n, false);
            loam_status status = loam_sampler_sample(hit, logits, N, &b, &err);
            fault_arm(0, false);
            if (status == LOAM_OK) break;
            assert_int_equal(status, LOAM_E_NOMEM);
            assert_int_equal(b, -1);
            failures++;
        }
        assert_int_equal(a, b);
        fault_arm(1, false);
        loam_status status = loam_sampler_accept(hit, b, &err);
        fault_arm(0, false);
        if (status != LOAM_OK) {
            failures++;
            assert_int_equal(loam_sampler_accept(hit, b, &err), LOAM_OK);
        }
    }
    print_message("%d failures on the way\n", failures);
    assert_true(failures > 3);
    loam_sampler_free(calm);
    loam_sampler_free(hit);
}

int main(void)
{
    fault_install();
    for (int i = 0; i < N; i++) logits[i] = (float)(i * 7919 % 1000) / 100;
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation), cmocka_unit_test(goes_on) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
