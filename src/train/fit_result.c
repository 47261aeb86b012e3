/* fit_result.c - what evaluations gave, with its uncertainty. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train/fit.h"

loam_status loam_opt_result_new(loam_opt_result **out, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_opt_result_new: out is NULL");
    *out = mem_zalloc(sizeof **out);
    if (!*out) return fail_nomem(err, "a result", sizeof **out);
    return LOAM_OK;
}

void loam_opt_result_free(loam_opt_result *r)
{
    if (!r) return;
    mem_free(r->pred);
    mem_free(r);
}

void loam_opt_result_reset(loam_opt_result *r)
{
    if (!r) return;
    mem_free(r->pred);
    *r = (loam_opt_result){ 0 };
}

loam_status result_add(loam_opt_result *r, const loam_opt *opt, loam_error *err)
{
    size_t fresh = opt->n_correct >= 0 ? (size_t)opt->n_points : 0;
    if (fresh && !mem_grow(&r->pred, &r->cap_pred, r->n_pred + fresh, sizeof *r->pred, SIZE_MAX / 8)) return fail_nomem(err, "predictions", fresh * 4);
    if (fresh) memcpy(r->pred + r->n_pred, opt->pred, fresh * sizeof *r->pred);
    r->n_pred += fresh;
    r->total = opt->p.loss == LOAM_LOSS_SUM;
    r->n_correct = opt->n_correct < 0 ? -1 : (r->n_batches ? r->n_correct : 0) + opt->n_correct;
    r->n += opt->n_points;
    r->n_batches++;
    r->sum += opt->loss;
    r->squares += opt->loss * opt->loss;
    return LOAM_OK;
}

int64_t loam_opt_result_n(const loam_opt_result *r) { return r ? r->n : 0; }
const int32_t *loam_opt_result_pred(const loam_opt_result *r) { return r && r->n_pred ? r->pred : NULL; }

void loam_opt_result_loss(const loam_opt_result *r, double *loss, double *uncertainty)
{
    double l = 0, u = NAN;
    if (r && r->n_batches) {
        double n = (double)r->n_batches, mean = r->sum / n, spread = r->squares / n - mean * mean;
        if (spread < 0) spread = 0;
        l = r->total ? r->sum : mean;
        if (r->n_batches > 1) u = sqrt(r->total ? spread * n / (n - 1) : spread / (n - 1));
    }
    if (loss) *loss = l;
    if (uncertainty) *uncertainty = u;
}

void loam_opt_result_accuracy(const loam_opt_result *r, double *accuracy, double *uncertainty)
{
    bool any = r && r->n_batches && r->n_correct >= 0;
    double a = any ? (double)r->n_correct / (double)r->n : NAN;
    if (accuracy) *accuracy = a;
    if (uncertainty) *uncertainty = any && r->n > 1 ? sqrt(a * (1 - a) / (double)(r->n - 1)) : NAN;
}
