/* sample_reference.c - the sampler against a slow, obvious one: sort everything, double precision, one stage after the other, on
 * thousands of random cases. Cases in which a decision of the reference hangs on less than the roundings of floats are left out
 * (and must stay few). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdbool.h>

#include "check.h"
#include "loam/sampler.h"

#define VOCAB_MAX 4000
#define HISTORY   200

typedef struct ref_token {
    int32_t id;
    double logit, p, key;
} ref_token;

typedef struct ref {
    ref_token t[VOCAB_MAX];
    int n;
    const loam_sampler_params *p;
    int32_t history[HISTORY];
    int n_history;
    uint64_t rng;
    bool unclear; /* a decision was too close to call */
} ref;

static uint64_t state = 1;

static uint64_t splitmix(uint64_t *s)
{
    uint64_t x = *s += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static double uniform(uint64_t *s) { return (double)(splitmix(s) >> 11) / 9007199254740992.0; }
static int below(int n) { return (int)(splitmix(&state) % (uint64_t)n); }
static double normal(void)
{
    double u = 1 - uniform(&state), v = uniform(&state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void near(ref *r, double a, double b, double tolerance)
{
    if (a != b && fabs(a - b) < tolerance) r->unclear = true;
}

/* ---- the reference ---- */

static int by_logit(const void *a, const void *b)
{
    const ref_token *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id - y->id;
}

static int by_key(const void *a, const void *b)
{
    const ref_token *x = a, *y = b;
    if (fabs(x->key - y->key) > 1e-5) return x->key < y->key ? 1 : -1;
    return x->id - y->id;
}

static int by_token(const void *a, const void *b) { return ((const ref_token *)a)->id - ((const ref_token *)b)->id; }

static void softmax(ref *r)
{
    qsort(r->t, (size_t)r->n, sizeof *r->t, by_logit);
    double sum = 0;
    for (int i = 0; i < r->n; i++) sum += r->t[i].p = exp(r->t[i].logit - r->t[0].logit);
    for (int i = 0; i < r->n; i++) r->t[i].p /= sum;
}

static int at_least(const ref *r, int n) /* min_keep applied to a number of survivors */
{
    int least = r->p->min_keep < 1 ? 1 : r->p->min_keep;
    if (n < least) n = least;
    return n < r->n ? n : r->n;
}

static void ref_penalties(ref *r)
{
    int n = r->p->penalty_last_n < 0 || r->p->penalty_last_n > r->n_history ? r->n_history : r->p->penalty_last_n;
    for (int i = 0; i < r->n; i++) {
        int count = 0;
        for (int j = r->n_history - n; j < r->n_history; j++) count += r->history[j] == r->t[i].id;
        if (!count) continue;
        double *x = &r->t[i].logit;
        *x = *x > 0 ? *x / r->p->penalty_repeat : *x * r->p->penalty_repeat;
        *x = (float)(*x - count * (double)r->p->penalty_freq - r->p->penalty_present);
    }
}

static void ref_dry(ref *r)
{
    int n = r->p->dry_last_n < 0 || r->p->dry_last_n > r->n_history ? r->n_history : r->p->dry_last_n;
    const int32_t *h = r->history + r->n_history - n;
    for (int i = 0; i < r->n; i++) {
        int longest = -1;
        for (int end = 0; end < n - 1; end++) { /* the text that ended at `end` was followed by this token */
            if (h[end + 1] != r->t[i].id) continue;
            int len = 0;
            while (end - len >= 0 && h[end - len] == h[n - 1 - len]) {
                bool stop = false;
                for (size_t b = 0; b < r->p->n_dry_breakers; b++) stop |= h[n - 1 - len] == r->p->dry_breakers[b];
                if (stop) break;
                len++;
            }
            if (len > longest) longest = len;
        }
        int newest_break = n; /* where the newest breaker cuts below the allowed length nothing is done at all */
        for (int k = n - 1; k >= 0; k--)
            for (size_t b = 0; b < r->p->n_dry_breakers; b++)
                if (newest_break == n && h[k] == r->p->dry_breakers[b]) newest_break = n - 1 - k;
        if (longest >= r->p->dry_allowed_length && newest_break >= r->p->dry_allowed_length && n > r->p->dry_allowed_length)
            r->t[i].logit =
                (float)(r->t[i].logit - r->p->dry_multiplier * pow(r->p->dry_base, longest - r->p->dry_allowed_length));
    }
}

static void ref_sigma(ref *r)
{
    double mean = 0, var = 0;
    softmax(r);
    for (int i = 0; i < r->n; i++) mean += r->t[i].logit / r->n;
    for (int i = 0; i < r->n; i++) var += (r->t[i].logit - mean) * (r->t[i].logit - mean) / r->n;
    double floor = r->t[0].logit - r->p->top_n_sigma * sqrt(var);
    int n = 0;
    for (int i = 0; i < r->n; i++) near(r, r->t[i].logit, floor, 1e-5);
    while (n < r->n && r->t[n].logit >= floor) n++;
    r->n = at_least(r, n);
}

static void ref_top_k(ref *r)
{
    softmax(r);
    r->n = at_least(r, r->p->top_k);
}

static int cut(ref *r, double mass)
{
    double sum = 0;
    int n = 0;
    while (n < r->n) {
        sum += r->t[n++].p;
        near(r, sum, mass, 3e-6);
        if (sum >= mass) break;
    }
    return at_least(r, n);
}

static void ref_typical(ref *r)
{
    softmax(r);
    double h = 0;
    for (int i = 0; i < r->n; i++) h -= r->t[i].p > 0 ? r->t[i].p * log(r->t[i].p) : 0;
    for (int i = 0; i < r->n; i++) r->t[i].key = r->t[i].p > 1e-37 ? -fabs(-log(r->t[i].p) - h) : -1e9;
    qsort(r->t, (size_t)r->n, sizeof *r->t, by_key);
    for (int i = 0; i + 1 < r->n; i++) /* neighbours that differ, but less than floats can tell */
        if (r->t[i].logit != r->t[i + 1].logit) near(r, r->t[i].key, r->t[i + 1].key, 2e-5);
    r->n = cut(r, r->p->typical_p);
}

static void ref_top_p(ref *r)
{
    softmax(r);
    r->n = cut(r, r->p->top_p);
}

static void ref_min_p(ref *r)
{
    softmax(r);
    double floor = r->t[0].logit + log(r->p->min_p);
    int n = 0;
    for (int i = 0; i < r->n; i++) near(r, r->t[i].logit, floor, 1e-5);
    while (n < r->n && r->t[n].logit >= floor) n++;
    r->n = at_least(r, n);
}

static void ref_xtc(ref *r)
{
    if (r->n < 2 || uniform(&r->rng) >= r->p->xtc_probability) return;
    softmax(r);
    int above = 0;
    for (int i = 0; i < r->n; i++) near(r, r->t[i].p, r->p->xtc_threshold, 1e-6);
    while (above < r->n && r->t[above].p >= r->p->xtc_threshold) above++;
    int drop = above - 1, least = r->p->min_keep < 1 ? 1 : r->p->min_keep;
    if (drop < 1 || r->n - drop < least) return;
    memmove(r->t, r->t + drop, (size_t)(r->n - drop) * sizeof *r->t);
    r->n -= drop;
}

static void ref_temperature(ref *r)
{
    softmax(r);
    double t = r->p->temp;
    if (t > 0 && r->p->dynatemp_range > 0 && r->n > 1) {
        double h = 0, lo = t - r->p->dynatemp_range, hi = t + r->p->dynatemp_range;
        for (int i = 0; i < r->n; i++) h -= r->t[i].p > 0 ? r->t[i].p * log(r->t[i].p) : 0;
        if (lo < 0) lo = 0;
        t = lo + (hi - lo) * pow(fmin(1, h / log(r->n)), r->p->dynatemp_exponent);
        near(r, t, 0, 0.02); /* steep there */
    }
    if (t <= 0) r->n = 1;
    else
        for (int i = r->n - 1; i >= 0; i--) r->t[i].logit = (float)((r->t[i].logit - r->t[0].logit) / t);
}

static int32_t ref_sample(ref *r, const float *logits, int n_vocab, const char *order)
{
    r->n = 0;
    for (int i = 0; i < n_vocab; i++) {
        double x = logits[i];
        for (size_t b = 0; b < r->p->n_logit_bias; b++)
            if (r->p->logit_bias[b].id == i) x = (float)(x + r->p->logit_bias[b].bias);
        if (x != -INFINITY) r->t[r->n++] = (ref_token){ i, x, 0, 0 };
    }
    if (r->n == 0) return -1;
    for (; *order; order++) {
        const loam_sampler_params *p = r->p;
        if (*order == 'e') ref_penalties(r);
        if (*order == 'd' && p->dry_multiplier > 0) ref_dry(r);
        if (*order == 's' && p->top_n_sigma > 0) ref_sigma(r);
        if (*order == 'k' && p->top_k > 0) ref_top_k(r);
        if (*order == 'y' && p->typical_p < 1) ref_typical(r);
        if (*order == 'p' && p->top_p < 1) ref_top_p(r);
        if (*order == 'm' && p->min_p > 0) ref_min_p(r);
        if (*order == 'x' && p->xtc_probability > 0 && p->xtc_threshold <= 0.5) ref_xtc(r);
        if (*order == 't') ref_temperature(r);
    }
    softmax(r);
    double at = uniform(&r->rng), sum = 0;
    ref_token sorted[VOCAB_MAX];
    memcpy(sorted, r->t, (size_t)r->n * sizeof *sorted);
    qsort(sorted, (size_t)r->n, sizeof *sorted, by_token);
    int i = 0;
    for (; i < r->n; i++) {
        sum += sorted[i].p;
        near(r, sum, at, 1e-5);
        if (at < sum) break;
    }
    return sorted[i < r->n ? i : r->n - 1].id;
}

/* ---- random cases ---- */

static int random_logits(float *x)
{
    static const int sizes[] = { 1, 2, 3, 7, 40, 255, 256, 257, 1025, 2000, VOCAB_MAX };
    int n = sizes[below(11)], kind = below(5);
    double scale = pow(10, uniform(&state) * 3 - 1.5);
    for (int i = 0; i < n; i++) {
        double v = normal() * scale;
        if (kind == 1) v = floor(v);                  /* ties */
        if (kind == 2) v = below(20) ? -INFINITY : v; /* mostly forbidden */
        if (kind == 3) v = -i * scale * 0.05;         /* falling */
        if (kind == 4) v = i * scale * 0.05;          /* rising: every block beats the floor */
        x[i] = (float)v;
    }
    x[below(n)] = (float)(scale * 3);
    return n;
}

static float one_of(float off, float a, float b)
{
    int which = below(4);
    return which < 2 ? off : which == 2 ? a : b;
}

static loam_sampler_params random_params(char *order)
{
    loam_sampler_params p = loam_sampler_defaults();
    p.seed = (uint32_t)below(1000);
    p.min_keep = below(3) ? 0 : below(6);
    p.temp = one_of(0.8f, 0.f, 1.7f);
    p.dynatemp_range = one_of(0.f, 0.5f, 0.2f);
    p.top_k = (int)one_of(40.f, 0.f, 300.f);
    p.top_p = one_of(1.f, 0.9f, 0.3f);
    p.min_p = one_of(0.f, 0.05f, 0.4f);
    p.typical_p = one_of(1.f, 0.9f, 0.2f);
    p.top_n_sigma = one_of(-1.f, 1.f, 2.5f);
    p.xtc_probability = one_of(0.f, 1.f, 0.5f);
    p.xtc_threshold = one_of(0.1f, 0.01f, 0.3f);
    p.penalty_repeat = one_of(1.f, 1.3f, 0.8f);
    p.penalty_freq = one_of(0.f, 0.2f, -0.1f);
    p.penalty_present = one_of(0.f, 0.5f, 0.1f);
    p.penalty_last_n = (int)one_of(64.f, -1.f, 5.f);
    p.dry_multiplier = one_of(0.f, 0.8f, 2.f);
    p.dry_last_n = (int)one_of(64.f, -1.f, 30.f);
    p.dry_allowed_length = (int)one_of(2.f, 1.f, 4.f);
    p.n_probs = LOAM_SAMPLER_PROBS_MAX;
    memcpy(order, LOAM_SAMPLER_ORDER, sizeof LOAM_SAMPLER_ORDER);
    if (below(2) == 0)
        for (int i = 8; i > 0; i--) {
            int j = below(i + 1);
            char c = order[i];
            order[i] = order[j];
            order[j] = c;
        }
    p.order = order;
    return p;
}

static void compare(const ref *r, const loam_sampler *s, int32_t id, int32_t want)
{
    const loam_token_prob *probs;
    size_t n = loam_sampler_probs(s, &probs);
    char chain[256];
    loam_sampler_describe(s, chain, sizeof chain);
    if ((int)n != r->n) fail_msg("%zu candidates instead of %d after %s", n, r->n, chain);
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        if (probs[i].id != r->t[i].id && fabs(probs[i].p - r->t[i].p) > 1e-6)
            fail_msg("candidate %d is %d instead of %d after %s", i, probs[i].id, r->t[i].id, chain);
        if (fabs(probs[i].p - r->t[i].p) > 1e-5)
            fail_msg("p of candidate %d: %g, not %g, after %s", i, probs[i].p, r->t[i].p, chain);
        sum += probs[i].p;
    }
    assert_true(fabs(sum - 1) < 1e-4);
    if (id != want) fail_msg("drew %d instead of %d after %s", id, want, chain);
}

static void random_cases(void **unused)
{
    (void)unused;
    static float logits[VOCAB_MAX];
    static ref r;
    int unclear = 0, cases = 6000;
    for (int k = 0; k < cases; k++) {
        char order[16];
        state = (uint64_t)k + 1;
        int n = random_logits(logits);
        loam_sampler_params p = random_params(order);
        loam_logit_bias bias[2] = { { below(n), 1.5f }, { below(n), below(2) ? -INFINITY : -2.f } };
        int32_t breakers[2] = { below(5), below(5) };
        if (n > 3 && below(3) == 0) p.logit_bias = bias, p.n_logit_bias = 2;
        if (below(3) == 0) p.dry_breakers = breakers, p.n_dry_breakers = 2;
        loam_error err;
        loam_sampler *s = NULL;
        assert_int_equal(loam_sampler_new(&s, &p, &err), LOAM_OK);
        r.p = &p;
        r.rng = p.seed;
        r.unclear = false;
        r.n_history = below(HISTORY);
        for (int i = 0; i < r.n_history; i++) {
            r.history[i] = below(below(2) ? 5 : n + 3);
            assert_int_equal(loam_sampler_accept(s, r.history[i], &err), LOAM_OK);
        }
        int32_t want = ref_sample(&r, logits, n, order), id = -1;
        assert_int_equal(loam_sampler_sample(s, logits, n, &id, &err), want < 0 ? LOAM_E_NUMERIC : LOAM_OK);
        unclear += r.unclear;
        if (!r.unclear && want >= 0) compare(&r, s, id, want);
        loam_sampler_free(s);
    }
    print_message("%d random cases, %d too close to call\n", cases, unclear);
    assert_true(unclear < cases / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_cases) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
