/* devices.c - a context on several devices: plans become schedules, the cache is counted where its blocks are. */
#include "context/context.h"

static int place(void *user, const value *v) { return model_device_of_layer(user, v->layer); }

loam_status context_spread(loam_context *ctx, plan *p, sched_plan **out, loam_error *err)
{
    sched_rules rules = {
        .set = model_devices(ctx->model), .n_threads = ctx->n_most, .place = place, .user = (void *)(uintptr_t)ctx->model,
        .max_pages = memory_max_pages(ctx->mem),
    };
    loam_status status = sched_plan_new(out, &p->g, &rules, err);
    if (status == LOAM_OK) status = sched_plan_take(*out, err);
    if (status == LOAM_E_NOMEM && *out) {
        context_drop_plans(ctx); /* the others give way to it */
        status = sched_plan_take(*out, err);
    }
    if (status == LOAM_OK) return LOAM_OK;
    sched_plan_free(*out);
    *out = NULL;
    return status;
}

loam_status context_execute(loam_context *ctx, plan_run *run)
{
    for (int i = 0; i < PLANS_KEPT; i++)
        if (ctx->plans[i].p == run->p && ctx->plans[i].spread) return sched_run(ctx->plans[i].spread, run);
    return plan_execute(run);
}

/* Every block with a cache counts the same. */
loam_status context_charge(loam_context *ctx, uint64_t cache_bytes, loam_error *err)
{
    loam_devices *set = model_devices(ctx->model);
    int n = loam_model_n_layer(ctx->model), on[LIMIT_DEVICES] = { 0 };
    for (int i = 0; set && i < n; i++) on[model_device_of_layer(ctx->model, i)]++;
    for (int d = 0; set && d < set->n; d++) {
        uint64_t bytes = n ? cache_bytes / (uint64_t)n * (uint64_t)on[d] : 0;
        loam_status status = device_charge(&set->at[d], bytes, "keys and values", err);
        if (status != LOAM_OK) return status;
        ctx->charged[d] = bytes;
    }
    return LOAM_OK;
}

void context_refund(loam_context *ctx)
{
    loam_devices *set = ctx->model ? model_devices(ctx->model) : NULL;
    for (int d = 0; set && d < set->n; d++) device_refund(&set->at[d], ctx->charged[d]);
}

bool loam_context_splits(const loam_context *ctx, loam_context_split *out)
{
    const kept_plan *last = NULL;
    for (int i = 0; ctx && i < PLANS_KEPT; i++)
        if (ctx->plans[i].p && (!last || ctx->plans[i].used > last->used)) last = &ctx->plans[i];
    if (!last || !out) return false;
    *out = (loam_context_split){ .n_devices = 1, .n_splits = 1 };
    if (!last->spread) return true;
    const sched_plan *p = last->spread;
    out->n_devices = p->rules.set->n;
    out->n_splits = p->n_splits;
    out->n_copies = p->n_copies;
    for (int d = 0; d < p->rules.set->n; d++) out->buffers[d] = p->need[d];
    return true;
}
