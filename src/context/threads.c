/* threads.c - which threads a context runs on: its own, or pools lent to it; warming up.
 *
 * Buffers and plans are made for the largest number of threads that was asked for so far; a run uses as many as are wanted
 * and as the pool has. */
#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "context/context.h"

pool *context_pool(const loam_context *ctx, int n_tokens)
{
    pool *lent = n_tokens > 1 ? ctx->p.pool_batch : ctx->p.pool;
    return lent ? lent : ctx->threads;
}

/* Own threads, as many as buffers are made for. */
static loam_status start_own(loam_context *ctx, loam_error *err)
{
    return ctx->threads ? LOAM_OK : pool_new(&ctx->threads, ctx->n_most, err);
}

loam_status context_start_threads(loam_context *ctx, loam_error *err)
{
    ctx->n_most = ctx->p.n_threads > ctx->p.n_threads_batch ? ctx->p.n_threads : ctx->p.n_threads_batch;
    if (!ctx->p.pool) ctx->p.pool = ctx->p.pool_batch;
    if (!ctx->p.pool_batch) ctx->p.pool_batch = ctx->p.pool;
    return ctx->p.pool ? LOAM_OK : start_own(ctx, err);
}

loam_status context_fit_threads(loam_context *ctx, int n, loam_error *err)
{
    if (n <= ctx->n_most || context_is_empty(ctx)) return LOAM_OK;
    pool *fresh = NULL;
    loam_status status = ctx->p.pool ? LOAM_OK : pool_new(&fresh, n, err);
    if (status != LOAM_OK) return status;
    uint8_t *scratch = ctx->scratch_stride ? os_reserve(ctx->scratch_stride * (size_t)n) : NULL;
    if (ctx->scratch_stride && !scratch) {
        pool_free(fresh);
        return fail_nomem(err, "scratch of the threads", (uint64_t)ctx->scratch_stride * (uint64_t)n);
    }
    os_release(ctx->scratch, ctx->scratch_stride * (size_t)ctx->n_most);
    ctx->scratch = scratch;
    pool_free(ctx->threads);
    ctx->threads = fresh;
    ctx->n_most = n;
    context_drop_plans(ctx); /* they were made for fewer */
    return LOAM_OK;
}

loam_status loam_context_attach_pools(loam_context *ctx, loam_pool *one, loam_pool *many, loam_error *err)
{
    if (!ctx || !one) return fail(err, LOAM_E_ARG, "loam_context_attach_pools: %s is NULL", ctx ? "pool" : "context");
    ctx->p.pool = one;
    ctx->p.pool_batch = many ? many : one;
    pool_free(ctx->threads);
    ctx->threads = NULL;
    return LOAM_OK;
}

void loam_context_detach_pools(loam_context *ctx)
{
    loam_error err;
    if (!ctx || !ctx->p.pool) return;
    ctx->p.pool = ctx->p.pool_batch = NULL;
    if (start_own(ctx, &err) != LOAM_OK) context_log(&ctx->p, LOAM_LOG_WARN, "running on one thread: %s", err.message);
}

/* ---- warming up ---- */

#define TOUCH_STEP 4096        /* bytes: one read a page of the system */
#define TOUCH_POLL (1 << 20)   /* bytes between two looks at the abort callback */

typedef struct toucher {
    const loam_context *ctx;
    atomic_int stop;
    _Atomic uint64_t sum;      /* what was read is used, or it would not be read */
} toucher;

static uint64_t touch(toucher *t, const uint8_t *data, uint64_t bytes, bool may_ask)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < bytes && !atomic_load(&t->stop); at += TOUCH_POLL) {
        uint64_t end = at + TOUCH_POLL < bytes ? at + TOUCH_POLL : bytes;
        for (uint64_t i = at; i < end; i += TOUCH_STEP) sum += *(const volatile uint8_t *)(data + i);
        if (may_ask && t->ctx->p.abort && t->ctx->p.abort(t->ctx->p.abort_user)) atomic_store(&t->stop, 1);
    }
    return sum;
}

static void touch_share(void *arg, int ith, int nth)
{
    toucher *t = arg;
    uint64_t sum = 0;
    const uint8_t *data;
    uint64_t bytes;
    for (uint32_t i = 0; model_tensor_data(t->ctx->model, i, &data, &bytes); i++) {
        uint64_t share = (bytes / (uint64_t)nth + TOUCH_STEP) & ~(uint64_t)(TOUCH_STEP - 1);
        uint64_t first = share * (uint64_t)ith, end = first + share < bytes ? first + share : bytes;
        if (first < end) sum += touch(t, data + first, end - first, ith == 0);
    }
    if (ith == 0) sum += touch(t, t->ctx->arena, t->ctx->arena_bytes, true);
    atomic_fetch_add(&t->sum, sum);
}

loam_status loam_context_warm_up(loam_context *ctx, loam_error *err)
{
    if (!ctx) return fail(err, LOAM_E_ARG, "loam_context_warm_up: context is NULL");
    toucher t = { .ctx = ctx };
    pool *threads = context_pool(ctx, 2);
    loam_status status = context_is_empty(ctx) ? LOAM_OK : pool_run_n(threads, pool_threads(threads), touch_share, &t);
    if (status != LOAM_OK) return fail(err, status, "warming up: called from inside a run of the same threads");
    return atomic_load(&t.stop) ? fail(err, LOAM_E_ABORTED, "the abort callback stopped warming up") : LOAM_OK;
}
