/* sample_extremes.c - what a sampler answers to NaN, infinities, ties, tiny vocabularies, extreme parameters and wrong settings;
 * exact boundaries of the nucleus; penalties; seeds; clones; mirostat and adaptive-p reach what they steer for. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "loam/sampler.h"

static loam_sampler *make(loam_sampler_params p)
{
    loam_sampler *s = NULL;
    loam_error err = { 0 };
    if (loam_sampler_new(&s, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return s;
}

static loam_sampler_params plain(void) /* draws from the softmax, reports everything */
{
    loam_sampler_params p = loam_sampler_defaults();
    p.seed = 7;
    p.temp = 1;
    p.top_k = 0;
    p.top_p = 1;
    p.min_p = 0;
    p.n_probs = LOAM_SAMPLER_PROBS_MAX;
    return p;
}

static loam_status try_once(loam_sampler_params p, const float *logits, int n, int32_t *id, loam_error *err)
{
    loam_sampler *s = make(p);
    loam_status status = loam_sampler_sample(s, logits, n, id, err);
    loam_sampler_free(s);
    return status;
}

static void not_numbers(void **unused)
{
    (void)unused;
    enum { N = 150 };
    float x[N];
    for (int at = 0; at < N; at += 149 / 2) {
        for (int i = 0; i < N; i++) x[i] = (float)(i % 7);
        loam_error err;
        int32_t id = -5;
        loam_sampler_params greedy = loam_sampler_defaults();
        greedy.temp = 0;
        for (int odd = 0; odd < 2; odd++) {
            x[at] = odd ? INFINITY : NAN;
            assert_int_equal(try_once(greedy, x, N, &id, &err), LOAM_OK);
            assert_int_equal(id, at == 6 ? 13 : 6); /* the largest of the finite ones */
            assert_int_equal(try_once(plain(), x, N, &id, &err), LOAM_OK);
            assert_true(id >= 0 && id < N && id != at);
        }
        x[at] = -INFINITY;
        assert_int_equal(try_once(plain(), x, N, &id, &err), LOAM_OK);
        assert_true(id >= 0 && id < N && id != at);
    }
    loam_error err;
    int32_t id = -5;
    for (int odd = 0; odd < 4; odd++) {
        for (int i = 0; i < N; i++) x[i] = odd == 0 ? -INFINITY : odd == 1 ? (float)NAN : odd == 2 ? INFINITY : i % 2 ? (float)NAN : -INFINITY;
        assert_int_equal(try_once(loam_sampler_defaults(), x, N, &id, &err), LOAM_E_NUMERIC);
        assert_non_null(strstr(err.message, "no logit is finite"));
        assert_int_equal(id, -5);
    }
    for (int i = 0; i < N; i++) x[i] = -INFINITY;
    x[77] = -1e38f;
    for (int greedy = 0; greedy < 2; greedy++) {
        loam_sampler_params p = loam_sampler_defaults();
        p.temp = greedy ? 0 : 1e-30f;
        assert_int_equal(try_once(p, x, N, &id, &err), LOAM_OK);
        assert_int_equal(id, 77);
    }
}

static void sizes(void **unused)
{
    (void)unused;
    float x[3] = { 1, 2, 3 };
    loam_error err;
    int32_t id;
    assert_int_equal(try_once(plain(), x, 0, &id, &err), LOAM_E_ARG);
    assert_int_equal(try_once(plain(), x, -1, &id, &err), LOAM_E_ARG);
    for (int mirostat = 0; mirostat < 3; mirostat++) {
        loam_sampler_params p = loam_sampler_defaults();
        p.mirostat = mirostat;
        p.typical_p = 0.5f;
        p.xtc_probability = 1;
        p.top_n_sigma = 1;
        p.dynatemp_range = 0.5f;
        assert_int_equal(try_once(p, x, 1, &id, &err), LOAM_OK);
        assert_int_equal(id, 0);
    }
}

/* Every stage at its ends, on logits at the ends of floats: always a token that exists. */
static void extremes(void **unused)
{
    (void)unused;
    static float x[500];
    const float values[] = { 3e38f, -3e38f, 0, 1e-40f, -1e-40f, 1, -1 };
    const float temps[] = { -1, 0, 1e-38f, 1e-30f, 1, 1e30f, 3e38f };
    for (int t = 0; t < 7; t++)
        for (int k = 0; k < 64; k++) {
            for (int i = 0; i < 500; i++) x[i] = values[(i * 31 + k) % 7];
            loam_sampler_params p = plain();
            p.temp = temps[t];
            p.top_p = k & 1 ? 0 : 1;
            p.min_p = k & 2 ? 1 : 0;
            p.typical_p = k & 4 ? 0 : 0.5f;
            p.penalty_repeat = k & 8 ? 3e38f : 1e-37f;
            p.penalty_freq = k & 16 ? 3e38f : -3e38f;
            p.dry_multiplier = k & 32 ? 3e38f : 0;
            p.dry_base = 3e38f;
            p.dynatemp_range = k & 1 ? 3e38f : 0;
            p.top_n_sigma = k & 2 ? 3e38f : 1e-38f;
            p.top_k = k & 4 ? 2147483647 : 1;
            p.min_keep = k & 8 ? 2147483647 : 0;
            loam_sampler *s = make(p);
            loam_error err;
            int32_t id;
            for (int i = 0; i < 100; i++) assert_int_equal(loam_sampler_accept(s, i % 5 * 100, &err), LOAM_OK);
            if (loam_sampler_sample(s, x, 500, &id, &err) != LOAM_OK) fail_msg("%s", err.message);
            assert_in_range(id, 0, 499);
            const loam_token_prob *probs;
            size_t n = loam_sampler_probs(s, &probs);
            assert_true(n >= 1);
            for (size_t i = 0; i < n; i++) assert_true(probs[i].p >= 0 && probs[i].p <= 1 && isfinite(probs[i].logit));
            loam_sampler_free(s);
        }
}

/* Puts probabilities into a vocabulary of n, the rest forbidden or hopeless, and checks which tokens a setting keeps. */
static void kept(loam_sampler_params p, const float *probs, int n_probs, int n, const char *want)
{
    static float x[150000];
    for (int i = 0; i < n; i++) x[i] = i < n_probs ? logf(probs[i]) : -200.f - (float)(i % 10);
    loam_sampler *s = make(p);
    loam_error err;
    int32_t id;
    assert_int_equal(loam_sampler_sample(s, x, n, &id, &err), LOAM_OK);
    const loam_token_prob *got;
    size_t count = loam_sampler_probs(s, &got);
    char text[64] = "";
    for (int t = 0; t < n_probs; t++)
        for (size_t i = 0; i < count; i++)
            if (got[i].id == t) {
                size_t len = strlen(text);
                text[len] = (char)('0' + t);
                text[len + 1] = 0;
            }
    assert_string_equal(text, want);
    assert_int_equal(count, strlen(want));
    loam_sampler_free(s);
}

static void nucleus(void **unused)
{
    (void)unused;
    const struct {
        float p[4];
        float top_p;
        int top_k;
        const char *want;
    } cases[] = {
        { { .4f, .3f, .2f, .1f }, .8f, 0, "012" },      { { .4f, .3f, .2f, .1f }, .7f, 0, "01" },
        { { .5f, .3f, .15f, .05f }, .6f, 0, "01" },     { { .5f, .3f, .15f, .05f }, .85f, 0, "012" },
        { { .5f, .25f, .125f, .125f }, .75f, 0, "01" }, { { .5f, .25f, .25f, 0 }, .75f, 0, "01" },
        { { .5f, .25f, .25f, 0 }, 1, 2, "01" },         { { .125f, .5f, .25f, .125f }, .75f, 0, "12" },
        { { .25f, .25f, .25f, .25f }, 1, 3, "012" },    { { .4f, .3f, .2f, .1f }, 0, 0, "0" },
    };
    const int vocabularies[] = { 4, 300, 1025, 150000 };
    for (int v = 0; v < 4; v++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            loam_sampler_params p = plain();
            p.top_p = cases[i].top_p;
            p.top_k = cases[i].top_k;
            if (p.top_k == 0 && p.top_p == 1) continue;
            kept(p, cases[i].p, 4, vocabularies[v], cases[i].want);
        }
}

static void penalty_values(void **unused)
{
    (void)unused;
    float x[4] = { 2, -2, 1, 1 };
    loam_sampler_params p = plain();
    p.penalty_repeat = 1.25f;
    loam_sampler *s = make(p);
    loam_error err;
    int32_t id;
    for (int i = 0; i < 6; i++) loam_sampler_accept(s, i % 2, &err);
    assert_int_equal(loam_sampler_accept(s, -1, &err), LOAM_E_ARG);
    assert_int_equal(loam_sampler_accept(s, 2000000000, &err), LOAM_OK); /* unknown here, no effect */
    assert_int_equal(loam_sampler_sample(s, x, 4, &id, &err), LOAM_OK);
    const loam_token_prob *probs;
    assert_int_equal(loam_sampler_probs(s, &probs), 4);
    assert_true(fabsf(probs[0].logit - 1.6f) < 1e-6f && probs[0].id == 0);
    assert_true(fabsf(probs[3].logit + 2.5f) < 1e-6f && probs[3].id == 1);
    loam_sampler_free(s);
}

static void wrong_settings(void **unused)
{
    (void)unused;
    const int32_t ids[] = { 3, -1 };
    const loam_logit_bias bad_bias[] = { { 1, NAN }, { -1, 0 }, { 1, INFINITY } }, far = { 3, 1 };
    for (int k = 0; k < 22; k++) {
        loam_sampler_params p = loam_sampler_defaults();
        const char *name = NULL;
        switch (k) {
        case 0: p.temp = NAN, name = "temp"; break;
        case 1: p.temp = INFINITY, name = "temp"; break;
        case 2: p.top_p = -0.1f, name = "top_p"; break;
        case 3: p.min_p = 1.5f, name = "min_p"; break;
        case 4: p.typical_p = NAN, name = "typical_p"; break;
        case 5: p.penalty_repeat = 0, name = "penalty_repeat"; break;
        case 6: p.penalty_repeat = -1, name = "penalty_repeat"; break;
        case 7: p.penalty_last_n = -2, name = "penalty_last_n"; break;
        case 8: p.dry_base = 0.5f, name = "dry_base"; break;
        case 9: p.mirostat = 3, name = "mirostat"; break;
        case 10: p.mirostat_m = 1, name = "mirostat_m"; break;
        case 11: p.n_probs = -1, name = "n_probs"; break;
        case 12: p.adaptive_decay = 1, name = "adaptive_decay"; break;
        case 13: p.order = "edq", name = "'q'"; break;
        case 14: p.order = "kk", name = "twice"; break;
        case 15: p.order = "top_k;nucleus", name = "nucleus"; break;
        case 16: p.order = "ak", name = "last"; break;
        case 17: p.logit_bias = &bad_bias[0], p.n_logit_bias = 1, name = "logit_bias"; break;
        case 18: p.logit_bias = &bad_bias[1], p.n_logit_bias = 1, name = "logit_bias"; break;
        case 19: p.logit_bias = &bad_bias[2], p.n_logit_bias = 1, name = "logit_bias"; break;
        case 20: p.dry_breakers = ids, p.n_dry_breakers = 2, name = "dry_breakers"; break;
        case 21: p.struct_size = sizeof p + 8, name = "struct_size"; break;
        }
        loam_sampler *s = NULL;
        loam_error err = { 0 };
        assert_int_equal(loam_sampler_new(&s, &p, &err), LOAM_E_ARG);
        assert_null(s);
        if (!strstr(err.message, name)) fail_msg("'%s' does not name %s", err.message, name);
    }
    float x[3] = { 0, 0, 0 };
    loam_sampler_params p = plain();
    loam_error err;
    int32_t id;
    p.logit_bias = &far, p.n_logit_bias = 1;
    assert_int_equal(try_once(p, x, 3, &id, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "token 3"));
}

static void orders(void **unused)
{
    (void)unused;
    const struct {
        const char *order, *want;
    } cases[] = {
        { NULL, "top_k -> top_p -> min_p -> temperature -> draw" },
        { "kt", "top_k -> temperature -> draw" },
        { "", "draw" },
        { "temperature;top_k", "temperature -> top_k -> draw" },
        { "top-p,min_p", "top_p -> min_p -> draw" },
        { "temp", "temperature -> draw" },
        { "tmpk", "temperature -> min_p -> top_p -> top_k -> draw" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loam_sampler_params p = loam_sampler_defaults();
        p.order = cases[i].order;
        loam_sampler *s = make(p);
        char text[128];
        assert_int_equal(loam_sampler_describe(s, text, sizeof text), strlen(cases[i].want));
        assert_string_equal(text, cases[i].want);
        char brief[5];
        loam_sampler_describe(s, brief, sizeof brief);
        assert_memory_equal(brief, cases[i].want, 4);
        loam_sampler_free(s);
    }
}

/* Same seed, same draws, also from a clone half way and after a reset; frequencies follow the probabilities. */
static void draws(void **unused)
{
    (void)unused;
    enum { N = 20000 };
    static int32_t first[N];
    const float x[4] = { 0.f, 0.6931472f, 1.3862944f, -INFINITY }; /* 1 : 2 : 4 : 0 */
    loam_sampler *s = make(plain()), *copy = NULL;
    loam_error err;
    int count[4] = { 0 };
    for (int i = 0; i < N; i++) {
        if (i == N / 2) assert_int_equal(loam_sampler_clone(&copy, s, &err), LOAM_OK);
        assert_int_equal(loam_sampler_sample(s, x, 4, &first[i], &err), LOAM_OK);
        count[first[i]]++;
    }
    const double want[4] = { N / 7.0, N * 2 / 7.0, N * 4 / 7.0, 0 };
    for (int i = 0; i < 4; i++) assert_true(fabs(count[i] - want[i]) <= 4 * sqrt(want[i])); /* over four standard deviations */
    loam_sampler_reset(s);
    for (int i = 0; i < N; i++) {
        int32_t id;
        assert_int_equal(loam_sampler_sample(s, x, 4, &id, &err), LOAM_OK);
        assert_int_equal(id, first[i]);
        if (i < N / 2) continue;
        assert_int_equal(loam_sampler_sample(copy, x, 4, &id, &err), LOAM_OK);
        assert_int_equal(id, first[i]);
    }
    loam_sampler_free(s);
    loam_sampler_free(copy);
}

static void random_seed(void **unused)
{
    (void)unused;
    float x[64] = { 0 };
    loam_sampler_params p = plain();
    p.seed = LOAM_SEED_RANDOM;
    loam_sampler *a = make(p), *b = make(p);
    assert_int_not_equal(loam_sampler_seed(a), LOAM_SEED_RANDOM);
    assert_int_not_equal(loam_sampler_seed(a), loam_sampler_seed(b)); /* fails once in four billion */
    p.seed = loam_sampler_seed(a);
    loam_sampler *again = make(p);
    for (int i = 0; i < 50; i++) {
        int32_t one, two;
        loam_error err;
        loam_sampler_sample(a, x, 64, &one, &err);
        loam_sampler_sample(again, x, 64, &two, &err);
        assert_int_equal(one, two);
    }
    loam_sampler_free(a);
    loam_sampler_free(b);
    loam_sampler_free(again);
}

/* Over a vocabulary with a long tail, mirostat brings the mean surprise to tau. */
static void mirostat_reaches_tau(void **unused)
{
    (void)unused;
    enum { N = 5000, STEPS = 4000 };
    static float x[N];
    for (int i = 0; i < N; i++) x[i] = -1.1f * logf((float)(i + 1));
    for (int version = 1; version <= 2; version++) {
        loam_sampler_params p = plain();
        p.mirostat = version;
        p.mirostat_tau = 3;
        loam_sampler *s = make(p);
        loam_error err;
        double sum = 0;
        for (int i = 0; i < STEPS; i++) {
            int32_t id;
            const loam_token_prob *probs;
            assert_int_equal(loam_sampler_sample(s, x, N, &id, &err), LOAM_OK);
            size_t n = loam_sampler_probs(s, &probs);
            for (size_t k = 0; k < n; k++)
                if (probs[k].id == id) sum -= log2(probs[k].p);
            assert_int_equal(loam_sampler_accept(s, id, &err), LOAM_OK);
        }
        if (fabs(sum / STEPS - 3) > 0.15) fail_msg("mirostat %d: mean surprise %g bits", version, sum / STEPS);
        loam_sampler_free(s);
    }
}

static void adaptive_reaches_target(void **unused)
{
    (void)unused;
    enum { STEPS = 3000 };
    const float probs[6] = { .4f, .3f, .15f, .1f, .04f, .01f };
    float x[6];
    for (int i = 0; i < 6; i++) x[i] = logf(probs[i]);
    for (int k = 0; k < 2; k++) {
        loam_sampler_params p = plain();
        p.adaptive_target = k ? 0.3f : 0.1f;
        loam_sampler *s = make(p);
        loam_error err;
        double sum = 0;
        for (int i = 0; i < STEPS; i++) {
            int32_t id;
            assert_int_equal(loam_sampler_sample(s, x, 6, &id, &err), LOAM_OK);
            assert_int_equal(loam_sampler_accept(s, id, &err), LOAM_OK);
            sum += probs[id];
        }
        if (fabs(sum / STEPS - p.adaptive_target) > 0.05) fail_msg("target %g: mean %g", p.adaptive_target, sum / STEPS);
        loam_sampler_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_numbers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(extremes),
        cmocka_unit_test(nucleus),
        cmocka_unit_test(penalty_values),
        cmocka_unit_test(wrong_settings),
        cmocka_unit_test(orders),
        cmocka_unit_test(draws),
        cmocka_unit_test(random_seed),
        cmocka_unit_test(mirostat_reaches_tau),
        cmocka_unit_test(adaptive_reaches_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
