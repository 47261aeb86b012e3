/* mirostat.c - stages that steer the surprise of the text, and what they learn from the tokens that were really taken.
 *
 * Mirostat (Basu et al., 2020): mu is the largest surprise allowed, in bits. After each token mu moves by eta times the
 * difference of its surprise to the target tau. Version 1 estimates the exponent of Zipf's law from the m likeliest tokens and
 * derives how many to keep; version 2 drops what is more surprising than mu. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sample/sample.h"

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Least squares for s in p(i) ~ 1 / i^s over the first tokens; p falling. NaN where they say nothing. */
static double zipf_exponent(const float *p, size_t n)
{
    double tb = 0, tt = 0;
    for (size_t i = 0; i + 1 < n && p[i + 1] > 0; i++) {
        double t = log((double)(i + 2) / (double)(i + 1)), b = log((double)p[i] / p[i + 1]);
        tb += t * b;
        tt += t * t;
    }
    return tt > 0 ? tb / tt : NAN;
}

static size_t tokens_to_keep(double s_hat, double mu, double n)
{
    double eps = s_hat - 1;
    double k = pow(eps * exp2(mu) / (1 - pow(n, -eps)), 1 / s_hat);
    return k >= 1 && k < n ? (size_t)k : k < 1 ? 1 : (size_t)n; /* NaN: all */
}

loam_status smp_mirostat1(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    set_softmax(set);
    /* The m likeliest, sorted, in memory of their own; the set itself stays as it is. */
    size_t m = (size_t)s->p.mirostat_m < set->n ? (size_t)s->p.mirostat_m : set->n;
    smp_set top = { .n = set->n, .c = mem_alloc_array(set->n, sizeof *top.c) };
    float *p = mem_alloc_array(m, sizeof *p);
    if (!top.c || !p) {
        mem_free(top.c);
        mem_free(p);
        return fail_nomem(err, "mirostat", set->n * sizeof *top.c);
    }
    for (size_t i = 0; i < set->n; i++) top.c[i] = set->c[i];
    status = set_keep_top(&top, m, err);
    for (size_t i = 0; i < m; i++) p[i] = top.c[i].p;
    qsort(p, m, sizeof *p, descending);
    size_t k = tokens_to_keep(zipf_exponent(p, m), s->mu, (double)set->n_vocab);
    mem_free(top.c);
    mem_free(p);
    return status == LOAM_OK ? set_keep_top(set, k, err) : status;
}

loam_status smp_mirostat2(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    set_softmax(set);
    float most = set_max(set);
    size_t n = 0, best = 0;
    while (best < set->n && set->c[best].logit != most) best++;
    for (size_t i = 0; i < set->n; i++)
        if (i == best || -log2(set->c[i].p) <= s->mu) set->c[n++] = set->c[i];
    set->n = n;
    return LOAM_OK;
}

/* Adaptive-p: favours tokens whose probability is near a target, which is moved against the average of past choices so that
 * the average comes to the wish. Logits become a hill around the target, PEAK high, WIDTH wide, and falling to PEAK -
 * SHARPNESS * distance. */
#define PEAK      5.0
#define SHARPNESS 10.0
#define WIDTH     0.3

loam_status smp_adaptive(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    set_softmax(set);
    double target = s->p.adaptive_target;
    if (s->adaptive_weight > 0) target = 2 * target - s->adaptive_sum / s->adaptive_weight;
    target = target < 0 ? 0 : target > 1 ? 1 : target;
    for (size_t i = 0; i < set->n; i++) {
        smp_cand *c = &set->c[i];
        double d = fabs(c->p - target) / WIDTH;
        c->u.before = c->p;
        c->logit = (float)(PEAK - SHARPNESS * d * d / (1 + d));
    }
    return LOAM_OK;
}

void smp_learn(loam_sampler *s, int32_t id)
{
    bool own = id == s->drawn; /* another token was taken in its place: nothing to learn from */
    s->drawn = -1;
    if (!own) return;
    if (s->p.mirostat)
        s->mu = to_finite(s->mu - (double)s->p.mirostat_eta * (s->drawn_surprise - (double)s->p.mirostat_tau));
    if (s->p.adaptive_target >= 0) {
        s->adaptive_sum = s->drawn_before + s->p.adaptive_decay * s->adaptive_sum;
        s->adaptive_weight = 1 + s->p.adaptive_decay * s->adaptive_weight;
    }
}
