/* truncate.c - the stages that drop unlikely (or, XTC, too likely) tokens. Each keeps at least one. */
#include <math.h>

#include "sample/sample.h"

/* Sums of probabilities that should meet a bound exactly miss it by roundings: a bound is met from this much below. */
#define SLACK 1e-6

static size_t min_keep(const loam_sampler *s) { return s->p.min_keep < 1 ? 1 : (size_t)s->p.min_keep; }

/* Keeps logits within n standard deviations of the largest (Tang et al., 2024, "Top-n-sigma"). */
loam_status smp_top_n_sigma(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    size_t n = set->dense ? (size_t)set->n_vocab : set->n, count = 0;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        float x = set->dense ? set->logits[i] : set->c[i].logit;
        if (x == -INFINITY) continue;
        sum += x;
        count++;
    }
    double mean = sum / (double)(count ? count : 1);
    for (size_t i = 0; i < n; i++) {
        float x = set->dense ? set->logits[i] : set->c[i].logit;
        if (x != -INFINITY) squares += (x - mean) * (x - mean);
    }
    double sigma = sqrt(squares / (double)(count ? count : 1));
    return set_keep_above(set, set_max(set) - s->p.top_n_sigma * sigma, min_keep(s), err);
}

loam_status smp_top_k(loam_sampler *s, loam_error *err)
{
    size_t k = (size_t)s->p.top_k;
    return set_keep_top(&s->set, k < min_keep(s) ? min_keep(s) : k, err);
}

/* Keeps the tokens whose surprise is nearest to the expected one until they hold typical_p of the probability (Meister et al.,
 * 2022, "Locally typical sampling"). */
loam_status smp_typical(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    set_softmax(set);
    double h = set_entropy(set);
    for (size_t i = 0; i < set->n; i++) {
        smp_cand *c = &set->c[i];
        c->u.key = c->p > 0 ? order_key((float)-fabs(-log(c->p) - h)) : 0;
    }
    set_cut(set, true, s->p.typical_p - SLACK, min_keep(s));
    return LOAM_OK;
}

/* Keeps the likeliest tokens until they hold top_p of the probability (Holtzman et al., 2019), the one that crosses it
 * included. */
loam_status smp_top_p(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    set_softmax(set);
    for (size_t i = 0; i < set->n; i++) set->c[i].u.key = order_key(set->c[i].logit);
    set_cut(set, true, s->p.top_p - SLACK, min_keep(s));
    return LOAM_OK;
}

/* Keeps tokens at least min_p times as likely as the likeliest. */
loam_status smp_min_p(loam_sampler *s, loam_error *err)
{
    return set_keep_above(&s->set, set_max(&s->set) + log(s->p.min_p), min_keep(s), err);
}

/* "Exclude top choices": with a given probability, of the tokens at least as likely as the threshold only the least likely
 * stays. */
loam_status smp_xtc(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    loam_status status = set_list(set, err);
    if (status != LOAM_OK || set->n < 2 || smp_uniform(s) >= s->p.xtc_probability) return status;
    set_softmax(set);
    size_t least = set->n, above = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->c[i].p < s->p.xtc_threshold) continue;
        above++;
        if (least == set->n || set->c[i].logit <= set->c[least].logit) least = i;
    }
    if (above < 2 || set->n - (above - 1) < min_keep(s)) return LOAM_OK;
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        if (i == least || set->c[i].p < s->p.xtc_threshold) set->c[n++] = set->c[i];
    set->n = n;
    return LOAM_OK;
}
