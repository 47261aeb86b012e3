/* kl.c - statistics of a comparison with a base: sums for the means and their errors, a value of each token for percentiles.
 *
 * With x = -ln p_q and y = -ln p_b of the token that comes: the error of a mean is sqrt((mean x^2 - mean^2) / (n - 1)), errors of
 * differences and ratios take the covariance of x and y into account, as both models read the same text. */
#include "evaluate/kl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define FLOOR (-16.0f) /* less likely tokens carry nothing that counts, and base files end there */

struct loam_kl {
    int32_t n_vocab;
    size_t n, cap_kld, cap_dp;
    float *kld, *dp;                                       /* [n] */
    double x, xx, y, yy, xy, k, kk, d, dd, dddd;           /* sums: nll, base nll, products, kld, dp and powers */
    int64_t same;
};

double kl_log_sum(const float *logits, int32_t n, float *most)
{
    float m = logits[0];
    double sum = 0;
    for (int32_t i = 1; i < n; i++) m = logits[i] > m ? logits[i] : m;
    for (int32_t i = 0; i < n; i++) sum += (double)expf(logits[i] - m);
    *most = m;
    return (double)m + log(sum);
}

static int32_t arg_max(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

kl_row kl_compare(const float *base, const float *logits, int32_t n, int32_t next)
{
    float most;
    double log_sum = kl_log_sum(logits, n, &most), kld = 0;
    for (int32_t i = 0; i < n; i++)
        if (base[i] > FLOOR) kld += (double)expf(base[i]) * ((double)base[i] - ((double)logits[i] - log_sum));
    kl_row r = { .kld = kld, .log_p = (double)logits[next] - log_sum, .base_log_p = base[next] };
    r.same_top = arg_max(base, n) == arg_max(logits, n);
    r.finite = isfinite(log_sum) && isfinite(kld) && isfinite(r.log_p);
    return r;
}

loam_status loam_kl_new(loam_kl **out, int32_t n_vocab, loam_error *err)
{
    *out = NULL;
    if (n_vocab < 1) return fail(err, LOAM_E_ARG, "a vocabulary of %d tokens", n_vocab);
    *out = mem_zalloc(sizeof **out);
    if (!*out) return fail_nomem(err, "statistics", sizeof **out);
    (*out)->n_vocab = n_vocab;
    return LOAM_OK;
}

void loam_kl_free(loam_kl *kl)
{
    if (!kl) return;
    mem_free(kl->kld);
    mem_free(kl->dp);
    mem_free(kl);
}

loam_status loam_kl_add(loam_kl *kl, const float *base, const float *logits, int32_t next, loam_error *err)
{
    if (next < 0 || next >= kl->n_vocab) return fail(err, LOAM_E_ARG, "token %d is outside the vocabulary of %d", next, kl->n_vocab);
    if (!mem_grow(&kl->kld, &kl->cap_kld, kl->n + 1, sizeof *kl->kld, SIZE_MAX / sizeof *kl->kld) ||
        !mem_grow(&kl->dp, &kl->cap_dp, kl->n + 1, sizeof *kl->dp, SIZE_MAX / sizeof *kl->dp))
        return fail_nomem(err, "statistics", (kl->n + 1) * sizeof(float));
    kl_row r = kl_compare(base, logits, kl->n_vocab, next);
    if (!r.finite) return fail(err, LOAM_E_NUMERIC, "the logits of the model or the probabilities of the base are not finite");
    double x = -r.log_p, y = -r.base_log_p, d = exp(r.log_p) - exp(r.base_log_p);
    kl->x += x, kl->xx += x * x, kl->y += y, kl->yy += y * y, kl->xy += x * y;
    kl->k += r.kld, kl->kk += r.kld * r.kld, kl->d += d, kl->dd += d * d, kl->dddd += d * d * d * d;
    kl->same += r.same_top;
    kl->kld[kl->n] = (float)r.kld;
    kl->dp[kl->n++] = (float)d;
    return LOAM_OK;
}

/* ---- the summary ---- */

static const double points[LOAM_KL_POINTS] = { 1, .999, .99, .95, .9, .75, .5, .25, .1, .05, .01, .001, 0 };

double loam_kl_point(int i) { return i >= 0 && i < LOAM_KL_POINTS ? points[i] : 0; }

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Linear between neighbours at share * (n - 1). */
static void percentiles(float *values, size_t n, double *out)
{
    qsort(values, n, sizeof *values, ascending);
    for (int i = 0; i < LOAM_KL_POINTS; i++) {
        double at = points[i] * (double)(n - 1);
        size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
        out[i] = (double)values[low] + (at - (double)low) * ((double)values[high] - (double)values[low]);
    }
}

/* Mean of n values with these sums, and its error. */
static loam_measure mean(double sum, double squares, double n)
{
    loam_measure m = { sum / n, 0 };
    double variance = squares / n - m.value * m.value;
    if (n > 10 && variance > 0) m.error = sqrt(variance / (n - 1));
    return m;
}

static void perplexities(const loam_kl *kl, loam_kl_summary *s)
{
    double n = (double)kl->n;
    loam_measure q = mean(kl->x, kl->xx, n), b = mean(kl->y, kl->yy, n);
    double cov = n > 10 ? (kl->xy / n - q.value * b.value) / (n - 1) : 0;
    double d = q.value - b.value, var = q.error * q.error + b.error * b.error - 2 * cov, sd = var > 0 ? sqrt(var) : 0;
    s->ppl = (loam_measure){ exp(q.value), exp(q.value) * q.error };
    s->ppl_base = (loam_measure){ exp(b.value), exp(b.value) * b.error };
    s->correlation = q.error > 0 && b.error > 0 ? cov / (q.error * b.error) : 1;
    s->ln_ratio = (loam_measure){ d, sd };
    s->ratio = (loam_measure){ exp(d), exp(d) * sd };
    double p = s->ppl.error, r = s->ppl_base.error, both = p * p + r * r - 2 * s->ppl.value * s->ppl_base.value * cov;
    s->difference = (loam_measure){ s->ppl.value - s->ppl_base.value, both > 0 ? sqrt(both) : 0 };
}

loam_status loam_kl_summarize(const loam_kl *kl, loam_kl_summary *out, loam_error *err)
{
    if (kl->n == 0) return fail(err, LOAM_E_ARG, "nothing was compared");
    float *copy = mem_alloc_array(kl->n, sizeof *copy);
    if (!copy) return fail_nomem(err, "percentiles", kl->n * sizeof *copy);
    double n = (double)kl->n, same = (double)kl->same / n;
    *out = (loam_kl_summary){ .n = (int64_t)kl->n };
    perplexities(kl, out);
    out->mean_kld = mean(kl->k, kl->kk, n);
    out->mean_dp = mean(kl->d, kl->dd, n);
    loam_measure square = mean(kl->dd, kl->dddd, n);
    out->rms_dp.value = sqrt(square.value);
    out->rms_dp.error = square.value > 0 ? 0.5 / out->rms_dp.value * square.error : 0;
    out->same_top = (loam_measure){ same, n > 10 ? sqrt(same * (1 - same) / (n - 1)) : 0 };
    memcpy(copy, kl->kld, kl->n * sizeof *copy);
    percentiles(copy, kl->n, out->kld);
    memcpy(copy, kl->dp, kl->n * sizeof *copy);
    percentiles(copy, kl->n, out->dp);
    mem_free(copy);
    return LOAM_OK;
}
