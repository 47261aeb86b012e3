/* temperature.c - temperature, fixed or moved by the entropy of the candidates. Logits become differences to the largest one
 * first, so that no temperature, however small, overflows: the likeliest stays at 0. */
#include <math.h>

#include "sample/sample.h"

/* temp +- range: an even distribution gets the upper end, a certain one the lower; between them a power of the entropy's
 * share. */
static double dynamic(loam_sampler *s)
{
    smp_set *set = &s->set;
    if (set->n < 2) return s->p.temp;
    set_softmax(set);
    double lo = s->p.temp - (double)s->p.dynatemp_range, hi = s->p.temp + (double)s->p.dynatemp_range;
    double share = set_entropy(set) / log((double)set->n);
    if (lo < 0) lo = 0;
    if (share > 1) share = 1;
    return lo + (hi - lo) * pow(share, s->p.dynatemp_exponent);
}

loam_status smp_temperature(loam_sampler *s, loam_error *err)
{
    smp_set *set = &s->set;
    if (s->p.temp <= 0) return set_keep_top(set, 1, err);
    loam_status status = set_list(set, err);
    if (status != LOAM_OK) return status;
    double t = s->p.dynatemp_range > 0 ? dynamic(s) : s->p.temp;
    if (t <= 0) return set_keep_top(set, 1, err);
    double most = set_max(set);
    for (size_t i = 0; i < set->n; i++) set->c[i].logit = to_finite((set->c[i].logit - most) / t);
    return LOAM_OK;
}
