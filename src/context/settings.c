/* settings.c - parameters of a context: defaults, the rules by which they are settled, what can be asked and set later. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/os.h"
#include "context/context.h"

loam_context_params loam_context_defaults(void)
{
    return (loam_context_params){
        .struct_size = sizeof(loam_context_params), .n_ctx = 512, .n_batch = 2048, .n_ubatch = 512, .n_seq_max = 1, .unified = true,
        .type_k = LOAM_F16, .type_v = LOAM_F16, .window_full = true, .rope_scaling = LOAM_ROPE_MODEL,
        .yarn_ext_factor = -1.0f, .yarn_attn_factor = -1.0f, .yarn_beta_fast = -1.0f, .yarn_beta_slow = -1.0f,
        .pooling = LOAM_POOLING_MODEL, .attention = LOAM_ATTENTION_MODEL,
    };
}

void context_log(const loam_context_params *p, loam_log_level level, const char *fmt, ...)
{
    char text[352];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (p->log) p->log(p->log_user, level, text);
    else log_at(level, "%s", text);
}

/* ---- rules ---- */

static loam_status check_type(const char *field, loam_type t, loam_error *err)
{
    if (dtype_caches(t)) return LOAM_OK;
    const char *name = loam_type_name((int)t);
    return fail(err, LOAM_E_ARG, "%s: %s is no cache type (f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl)", field, name ? name : "?");
}

static loam_status check_threads(const char *field, int32_t n, loam_error *err)
{
    if (n >= 1 && n <= LIMIT_THREADS) return LOAM_OK;
    return fail(err, LOAM_E_ARG, "%s: %d is not within 1 .. %d", field, n, LIMIT_THREADS);
}

static loam_status settle_threads(int32_t *one, int32_t *many, loam_error *err)
{
    if (*one == 0) *one = os_cpu_count();
    if (*many == 0) *many = *one;
    loam_status status = check_threads("n_threads", *one, err);
    return status == LOAM_OK ? check_threads("n_threads_batch", *many, err) : status;
}

static uint32_t up256(uint32_t n) { return (n + 255) & ~255u; }

/* Tokens of the context, of a sequence, of a batch, of a micro-batch. */
static loam_status settle_sizes(loam_context *ctx, loam_error *err)
{
    loam_context_params *p = &ctx->p;
    uint32_t trained = (uint32_t)loam_model_n_ctx_train(ctx->model);
    if (p->n_ctx == 0) p->n_ctx = context_is_empty(ctx) ? 256 : trained;
    if (p->n_ctx == 0 || p->n_ctx > LIMIT_CONTEXT) return fail(err, LOAM_E_ARG, "n_ctx: %u is not within 1 .. %d", p->n_ctx, LIMIT_CONTEXT);
    if (p->n_seq_max == 0) p->n_seq_max = 1;
    if (p->n_seq_max > LIMIT_SEQUENCES) return fail(err, LOAM_E_ARG, "n_seq_max: %u is above %d", p->n_seq_max, LIMIT_SEQUENCES);
    ctx->n_short = context_is_empty(ctx) ? INT64_MAX : model_rope_short(ctx->model);
    if (ctx->n_short != INT64_MAX && p->yarn_orig_ctx > 0) ctx->n_short = p->yarn_orig_ctx;
    p->n_ctx = up256(p->n_ctx);
    ctx->n_ctx_seq = p->n_ctx;
    if (!p->unified) {
        ctx->n_ctx_seq = up256(p->n_ctx / p->n_seq_max ? p->n_ctx / p->n_seq_max : 1);
        p->n_ctx = (uint32_t)ctx->n_ctx_seq * p->n_seq_max;
    }
    if (p->n_batch == 0 && p->n_ubatch == 0) return fail(err, LOAM_E_ARG, "n_batch and n_ubatch are both 0");
    if (p->n_batch == 0) p->n_batch = p->n_ubatch;
    if (p->n_batch > p->n_ctx && !(model_keeps_nothing(ctx->model) && !context_is_empty(ctx))) p->n_batch = p->n_ctx;
    if (p->n_batch > LIMIT_BATCH) return fail(err, LOAM_E_ARG, "n_batch: %u is above %d", p->n_batch, LIMIT_BATCH);
    if (p->n_ubatch == 0 || p->n_ubatch > p->n_batch) p->n_ubatch = p->n_batch;
    if (p->n_outputs_max == 0) p->n_outputs_max = p->n_seq_max;
    if (p->n_outputs_max > p->n_batch) p->n_outputs_max = p->n_batch;
    if (p->n_rs_seq > LIMIT_ROLL_BACK) return fail(err, LOAM_E_ARG, "n_rs_seq: %u is above %d", p->n_rs_seq, LIMIT_ROLL_BACK);
    if (trained && ctx->n_ctx_seq > up256(trained))
        context_log(p, LOAM_LOG_INFO, "a sequence may have %lld tokens, the model was trained with %u", (long long)ctx->n_ctx_seq, trained);
    return LOAM_OK;
}

loam_status context_settle(loam_context *ctx, const loam_context_params *given, loam_error *err)
{
    loam_context_params *p = &ctx->p;
    *p = loam_context_defaults();
    if (given) {
        if (given->struct_size < sizeof p->struct_size || given->struct_size > 4096)
            return fail(err, LOAM_E_ARG, "context parameters: struct_size %zu; start from loam_context_defaults()", given->struct_size);
        memcpy(p, given, given->struct_size < sizeof *p ? given->struct_size : sizeof *p);
        p->struct_size = sizeof *p;
    }
    loam_status status = settle_sizes(ctx, err);
    if (status == LOAM_OK) status = settle_threads(&p->n_threads, &p->n_threads_batch, err);
    if (status != LOAM_OK) return status;
    if (p->rope_scaling < LOAM_ROPE_MODEL || p->rope_scaling > LOAM_ROPE_LONGROPE)
        return fail(err, LOAM_E_ARG, "rope_scaling: %d is not a loam_rope_scaling", p->rope_scaling);
    if (p->cache_rotation < LOAM_ROTATION_AUTO || p->cache_rotation > LOAM_ROTATION_ON)
        return fail(err, LOAM_E_ARG, "cache_rotation: %d is not a loam_cache_rotation", p->cache_rotation);
    if (p->cache_rotation < LOAM_ROTATION_AUTO || p->cache_rotation > LOAM_ROTATION_ON)
        return fail(err, LOAM_E_ARG, "cache_rotation: %d is not a loam_cache_rotation", p->cache_rotation);
    if (p->attention < LOAM_ATTENTION_MODEL || p->attention > LOAM_ATTENTION_NON_CAUSAL)
        return fail(err, LOAM_E_ARG, "attention: %d is not a loam_attention", (int)p->attention);
    if (p->attention == LOAM_ATTENTION_MODEL)
        p->attention = loam_model_is_causal(ctx->model) ? LOAM_ATTENTION_CAUSAL : LOAM_ATTENTION_NON_CAUSAL;
    status = check_type("type_k", p->type_k, err);
    return status != LOAM_OK ? status : check_type("type_v", p->type_v, err);
}

/* ---- asking ---- */

const loam_model *loam_context_model(const loam_context *ctx) { return ctx->model; }
uint32_t loam_context_n_ctx(const loam_context *ctx) { return ctx->p.n_ctx; }
uint32_t loam_context_n_ctx_seq(const loam_context *ctx) { return (uint32_t)ctx->n_ctx_seq; }
uint32_t loam_context_n_batch(const loam_context *ctx) { return ctx->p.n_batch; }
uint32_t loam_context_n_ubatch(const loam_context *ctx) { return ctx->p.n_ubatch; }
uint32_t loam_context_n_seq_max(const loam_context *ctx) { return ctx->p.n_seq_max; }
int32_t loam_context_n_threads(const loam_context *ctx) { return ctx->p.n_threads; }
int32_t loam_context_n_threads_batch(const loam_context *ctx) { return ctx->p.n_threads_batch; }

loam_context_params loam_context_settings(const loam_context *ctx)
{
    loam_context_params p = ctx->p;
    p.pooling = ctx->pooling;
    return p;
}

loam_perf loam_context_perf(const loam_context *ctx) { return ctx->perf; }

/* ---- setting ---- */

void loam_context_perf_reset(loam_context *ctx)
{
    ctx->perf = (loam_perf){ .load_ns = ctx->perf.load_ns, .start_ns = os_now_ns() };
}

void loam_context_set_abort(loam_context *ctx, loam_abort_fn fn, void *user)
{
    ctx->p.abort = fn;
    ctx->p.abort_user = user;
}

void loam_context_set_embeddings(loam_context *ctx, bool on)
{
    ctx->p.embeddings = on || !loam_model_has_decoder(ctx->model);
}

void loam_context_set_causal(loam_context *ctx, bool on)
{
    ctx->p.attention = on ? LOAM_ATTENTION_CAUSAL : LOAM_ATTENTION_NON_CAUSAL;
}

void loam_context_set_observer(loam_context *ctx, loam_observe_fn fn, void *user)
{
    if (!ctx) return;
    ctx->p.observe = fn;
    ctx->p.observe_user = user;
}

loam_status loam_context_set_threads(loam_context *ctx, int32_t n_threads, int32_t n_threads_batch, loam_error *err)
{
    if (!ctx) return fail(err, LOAM_E_ARG, "loam_context_set_threads: context is NULL");
    loam_status status = settle_threads(&n_threads, &n_threads_batch, err);
    if (status == LOAM_OK) status = context_fit_threads(ctx, n_threads > n_threads_batch ? n_threads : n_threads_batch, err);
    if (status != LOAM_OK) return status;
    ctx->p.n_threads = n_threads;
    ctx->p.n_threads_batch = n_threads_batch;
    return LOAM_OK;
}
