/* fit_loop.c - passes over a data set. */
#include <string.h>

#include "base/os.h"
#include "train/fit.h"

loam_status loam_opt_shuffle(loam_opt *o, loam_dataset *ds, int64_t n, loam_error *err)
{
    if (!o || !ds) return fail(err, LOAM_E_ARG, "loam_opt_shuffle: %s is NULL", o ? "the data set" : "opt");
    dataset_shuffle(ds, n, &o->random);
    return LOAM_OK;
}

static loam_status check_data(const loam_opt *o, const loam_dataset *ds, loam_error *err)
{
    const loam_dataset_params *p = &ds->p;
    if (!o->is_static) return fail(err, LOAM_E_ARG, "passes over a data set need a static graph");
    if (p->ne_data * o->n_points != o->n_inputs)
        return fail(err, LOAM_E_ARG, "points of %lld values for inputs of %lld", (long long)p->ne_data, (long long)(o->n_inputs / o->n_points));
    bool numbers = o->p.loss == LOAM_LOSS_CROSS_ENTROPY && p->type_label == LOAM_I32 && p->ne_label == 1;
    if (o->labels && !numbers && (p->type_label != LOAM_F32 || p->ne_label != o->width))
        return fail(err, LOAM_E_ARG, "labels of %lld values of type %s for outputs of %lld", (long long)p->ne_label, loam_type_name((int)p->type_label), (long long)o->width);
    if (p->n % o->n_points) return fail(err, LOAM_E_ARG, "%lld points are not made of batches of %lld", (long long)p->n, (long long)o->n_points);
    return LOAM_OK;
}

/* Batch i with its labels; numbers of classes (-1: none, the point does not count) become rows of the loss. */
static loam_status fetch(loam_opt *o, const loam_dataset *ds, int64_t i, loam_error *err)
{
    if (!o->labels || ds->p.type_label == LOAM_F32) return loam_dataset_batch(ds, i, o->n_points, o->inputs, o->labels, err);
    loam_status status = loam_dataset_batch(ds, i, o->n_points, o->inputs, o->pred, err);
    if (status != LOAM_OK) return status;
    memset(o->labels, 0, (size_t)(o->n_points * o->width) * 4);
    for (int64_t k = 0; k < o->n_points; k++) {
        int32_t c = o->pred[k];
        if (c < -1 || c >= o->width) return fail(err, LOAM_E_ARG, "label %d of a point in batch %lld: there are %lld classes", c, (long long)i, (long long)o->width);
        if (c >= 0) o->labels[k * o->width + c] = 1;
    }
    return LOAM_OK;
}

/* Batches [first, last) of the data set. */
static loam_status pass(loam_opt *o, const loam_dataset *ds, const loam_epoch *e, const int64_t part[2], bool train, loam_error *err)
{
    int64_t start = (int64_t)(os_now_ns() / 1000);
    loam_opt_result *r = train ? e->train : e->eval;
    for (int64_t i = part[0]; i < part[1]; i++) {
        loam_status status = loam_opt_alloc(o, train, err);
        if (status == LOAM_OK) status = fetch(o, ds, i, err);
        if (status == LOAM_OK) status = loam_opt_eval(o, r, err);
        o->allocated = false;
        if (status != LOAM_OK) return status;
        if (e->progress && !e->progress(e->user, train, o, r, (int64_t[2]){ i - part[0] + 1, part[1] - part[0] }, start))
            return fail(err, LOAM_E_ABORTED, "stopped at batch %lld", (long long)i);
    }
    return LOAM_OK;
}

loam_status loam_opt_epoch(loam_opt *o, loam_dataset *ds, const loam_epoch *e, loam_error *err)
{
    if (!o || !ds || !e) return fail(err, LOAM_E_ARG, "loam_opt_epoch: %s is NULL", !o ? "opt" : ds ? "the epoch" : "the data set");
    loam_status status = check_data(o, ds, err);
    if (status != LOAM_OK) return status;
    int64_t split = e->split < 0 ? ds->p.n : e->split;
    if (split > ds->p.n || split % o->n_points) return fail(err, LOAM_E_ARG, "a split at point %lld of %lld in batches of %lld", (long long)split, (long long)ds->p.n, (long long)o->n_points);
    int64_t n = ds->p.n / o->n_points, learn = split / o->n_points;
    status = pass(o, ds, e, (int64_t[2]){ 0, learn }, true, err);
    return status == LOAM_OK ? pass(o, ds, e, (int64_t[2]){ learn, n }, false, err) : status;
}

static loam_status fit(loam_opt *o, loam_dataset *ds, const loam_fit_params *f, int64_t *number, loam_error *err)
{
    loam_opt_result *r[2] = { NULL, NULL };
    loam_status status = loam_opt_result_new(&r[0], err);
    if (status == LOAM_OK) status = loam_opt_result_new(&r[1], err);
    int64_t split = (int64_t)((1.0 - f->validation) * (double)(ds->p.n / f->n_logical)) * f->n_logical;
    if (status == LOAM_OK) status = loam_opt_shuffle(o, ds, -1, err);
    for (*number = 1; status == LOAM_OK && *number <= f->n_epochs; ++*number) {
        loam_opt_shuffle(o, ds, split, err);
        loam_opt_result_reset(r[0]);
        loam_opt_result_reset(r[1]);
        status = loam_opt_epoch(o, ds, &(loam_epoch){ r[0], r[1], split, f->progress, f->user }, err);
    }
    loam_opt_result_free(r[0]);
    loam_opt_result_free(r[1]);
    return status;
}

loam_status loam_opt_fit(const loam_opt_params *params, loam_dataset *ds, const loam_fit_params *f, loam_error *err)
{
    if (!params || !ds || !f) return fail(err, LOAM_E_ARG, "loam_opt_fit: %s is NULL", !params ? "params" : ds ? "fit" : "the data set");
    if (!(f->validation >= 0 && f->validation < 1)) return fail(err, LOAM_E_ARG, "validation: %g, must be 0 to below 1", f->validation);
    int64_t number = 1;
    loam_opt_params p = *params;
    if (!p.rates_user) p.rates_user = &number;
    loam_opt *o;
    loam_status status = loam_opt_new(&o, &p, err);
    if (status != LOAM_OK) return status;
    bool fits = f->n_logical >= o->n_points && f->n_logical % o->n_points == 0 && f->n_logical <= ds->p.n && f->n_logical / o->n_points <= INT32_MAX;
    if (!fits) status = fail(err, LOAM_E_ARG, "n_logical: %lld points to a step, in batches of %lld, of %lld", (long long)f->n_logical, (long long)o->n_points, (long long)ds->p.n);
    o->p.period = fits ? (int32_t)(f->n_logical / o->n_points) : 1;
    if (status == LOAM_OK) status = fit(o, ds, f, &number, err);
    loam_opt_free(o);
    return status;
}
