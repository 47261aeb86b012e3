/* decode.c - one batch through the model: places, micro-batches, outputs. All or nothing. */
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "context/context.h"

static bool gives_logits(const loam_context *ctx)
{
    return loam_model_has_decoder(ctx->model) && !(ctx->batch.encode && model_has_cross(ctx->model));
}

loam_status context_fit_outputs(loam_context *ctx, size_t need, bool logits_too, loam_error *err)
{
    size_t n_vocab = (size_t)loam_model_n_vocab(ctx->model), n_embd = (size_t)loam_model_n_embd(ctx->model);
    if (need > ctx->cap_outputs || (logits_too && !ctx->logits)) {
        float *logits = logits_too ? mem_alloc_array(need, n_vocab * sizeof(float)) : NULL;
        if (logits_too && !logits) return fail_nomem(err, "logits", (uint64_t)need * n_vocab * 4);
        mem_free(ctx->logits);
        mem_free(ctx->embeddings);
        ctx->logits = logits;
        ctx->embeddings = NULL;
        ctx->cap_outputs = need;
        ctx->n_outputs = ctx->last_n_tokens = ctx->n_rows = 0;
    }
    if (ctx->p.embeddings && !ctx->embeddings && need > 0) {
        ctx->embeddings = mem_alloc_array(ctx->cap_outputs, n_embd * sizeof(float));
        if (!ctx->embeddings) return fail_nomem(err, "embeddings", (uint64_t)ctx->cap_outputs * n_embd * 4);
    }
    return pooling_on(ctx) ? pooling_fit(ctx, err) : LOAM_OK;
}

static loam_status add_tokens(loam_context *ctx, loam_error *err)
{
    const full_batch *b = &ctx->batch;
    loam_status status = b->encode ? memory_begin_encode(ctx->mem) : memory_begin(ctx->mem);
    if (status == LOAM_OK) status = replay_add(ctx);
    for (int i = 0; i < b->n_tokens && status == LOAM_OK; i++) {
        memory_token t = { b->pos[i], b->seqs + b->first_seq[i], b->first_seq[i + 1] - b->first_seq[i] };
        if (t.pos >= ctx->n_ctx_seq && !ctx->p.unified) status = LOAM_E_FULL;
        else status = memory_add(ctx->mem, &t);
        if (status == LOAM_OK) memory_mark(ctx->mem, b->token ? b->token[i] : -1, ctx->replay.far[t.seqs[0]]);
    }
    if (status == LOAM_E_FULL)
        return fail(err, LOAM_E_FULL, "the cache of %u tokens has no room for %d more%s", ctx->p.n_ctx, b->n_tokens,
                    ctx->replay.n ? ", with those that longer rotary factors compute again" : "");
    return status == LOAM_OK ? status : fail_nomem(err, "the tables of the cache", 0);
}

plan_run context_run(loam_context *ctx, plan *p, int n)
{
    plan_run run = {
        .p = p, .k = ctx->k, .threads = context_pool(ctx, n), .n_threads = n > 1 ? ctx->p.n_threads_batch : ctx->p.n_threads,
        .arena = ctx->arena, .scratch = ctx->scratch, .scratch_stride = ctx->scratch_stride,
        .shared = ctx->shared, .shared_bytes = ctx->shared_bytes,
        .abort = ctx->p.abort, .abort_user = ctx->p.abort_user,
        .observe = ctx->watch ? ctx->watch : ctx->p.observe ? context_observe : NULL,
        .observe_user = ctx->watch ? ctx->watch_user : ctx,
    };
    if (run.n_threads > pool_threads(run.threads)) run.n_threads = pool_threads(run.threads);
    return run;
}

static int32_t lead(const full_batch *b, int i) { return b->seqs[b->first_seq[i]]; }

static loam_status execute(loam_context *ctx, plan_run *run, loam_error *err)
{
    loam_status status = context_execute(ctx, run);
    if (status == LOAM_E_ARG) return fail(err, LOAM_E_UNSUPPORTED, "called from inside a run of the same threads");
    ctx->perf.cache_bytes += atomic_load(&run->cache_bytes);
    if (status != LOAM_E_ABORTED) return status;
    return fail(err, status, "the %s stopped the batch", ctx->p.observe ? "observer or the abort callback" : "abort callback");
}

/* Computes tokens [first, first + n) of the batch; *row: output rows that are done. */
static loam_status run_ubatch(loam_context *ctx, int first, int n, int *row, loam_error *err)
{
    const full_batch *b = &ctx->batch;
    int n_out = 0;
    for (int i = 0; i < n; i++)
        if (b->output[first + i]) ctx->out_rows[n_out++] = i;
    plan *p;
    plan_shape shape = { b->encode ? PLAN_ENCODE : PLAN_DECODE, n, n_out, b->embd != NULL, ctx->watch != NULL, ctx->replay.far[lead(b, first)] };
    loam_status status = context_plan(ctx, shape, &p, err);
    if (status != LOAM_OK) return status;
    plan_run run = context_run(ctx, p, n);
    run.inputs[INPUT_TOKENS] = b->token ? b->token + first : NULL;
    run.inputs[INPUT_EMBD] = b->embd ? b->embd + (size_t)first * (size_t)loam_model_n_embd(ctx->model) : NULL;
    run.inputs[INPUT_POS] = b->pos + first;
    run.inputs[INPUT_OUT_ROWS] = ctx->out_rows;
    run.inputs[INPUT_ADAPTERS] = ctx->n_adapters ? ctx->token_strengths + (size_t)first * (size_t)ctx->n_adapters : NULL;
    run.outputs[OUTPUT_LOGITS] = ctx->logits ? ctx->logits + (size_t)*row * (size_t)loam_model_n_vocab(ctx->model) : NULL;
    run.outputs[OUTPUT_EMBD] = ctx->p.embeddings ? ctx->embeddings + (size_t)*row * (size_t)loam_model_n_embd(ctx->model) : NULL;
    status = memory_view(ctx->mem, ctx->replay.n + first, n, b->pos + first, &run.kv);
    *row += n_out;
    return status == LOAM_OK ? execute(ctx, &run, err) : status;
}

/* Computes tokens [first, first + n) of those that are computed again. Nobody watches: they have been seen. */
static loam_status run_again(loam_context *ctx, int first, int n, loam_error *err)
{
    const replay *r = &ctx->replay;
    plan *p;
    loam_status status = context_plan(ctx, (plan_shape){ PLAN_DECODE, n, 0, false, false, r->far[r->seq[first]] }, &p, err);
    if (status != LOAM_OK) return status;
    plan_run run = context_run(ctx, p, n);
    if (ctx->watch) run.observe = NULL;
    run.inputs[INPUT_TOKENS] = r->id + first;
    run.inputs[INPUT_POS] = r->pos + first;
    run.inputs[INPUT_OUT_ROWS] = ctx->out_rows;
    run.inputs[INPUT_ADAPTERS] = replay_strengths(ctx, first, n);
    status = memory_view(ctx->mem, first, n, r->pos + first, &run.kv);
    return status == LOAM_OK ? execute(ctx, &run, err) : status;
}

/* How many of the tokens from `first` on one micro-batch takes: they are of one set of rotary factors. */
static int alike(const loam_context *ctx, int first)
{
    const full_batch *b = &ctx->batch;
    int n = 1, most = (int)ctx->p.n_ubatch;
    while (n < most && first + n < b->n_tokens && ctx->replay.far[lead(b, first + n)] == ctx->replay.far[lead(b, first)]) n++;
    return n;
}

static int alike_again(const loam_context *ctx, int first)
{
    const replay *r = &ctx->replay;
    int n = 1, most = (int)ctx->p.n_ubatch;
    while (n < most && first + n < r->n && r->seq[first + n] == r->seq[first]) n++;
    return n;
}

static loam_status compute(loam_context *ctx, loam_error *err)
{
    int row = 0;
    loam_status status = LOAM_OK;
    for (int first = 0, n; first < ctx->replay.n && status == LOAM_OK; first += n) status = run_again(ctx, first, n = alike_again(ctx, first), err);
    for (int first = 0, n; first < ctx->batch.n_tokens && status == LOAM_OK; first += n) status = run_ubatch(ctx, first, n = alike(ctx, first), &row, err);
    return status;
}

static void note_outputs(loam_context *ctx)
{
    const full_batch *b = &ctx->batch;
    int row = 0;
    for (int i = 0; i < b->n_tokens; i++) ctx->row_of[i] = b->output[i] ? row++ : -1;
    ctx->n_outputs = row;
    ctx->last_n_tokens = b->n_tokens;
    ctx->have_embeddings = ctx->p.embeddings;
    ctx->have_logits = gives_logits(ctx);
}

static void note_time(loam_context *ctx, uint64_t ns)
{
    const full_batch *b = &ctx->batch;
    bool seen[LIMIT_SEQUENCES] = { false }, prompt = false;
    for (int32_t i = 0; i < b->first_seq[b->n_tokens]; i++) {
        prompt = prompt || seen[b->seqs[i]];
        seen[b->seqs[i]] = true;
    }
    loam_perf *p = &ctx->perf;
    *(prompt ? &p->prompt_ns : &p->gen_ns) += ns;
    *(prompt ? &p->n_prompt : &p->n_gen) += b->n_tokens;
    ++*(prompt ? &p->n_prompt_batches : &p->n_gen_batches);
}

static int code_of(loam_status status)
{
    switch (status) {
    case LOAM_OK: return 0;
    case LOAM_E_FULL: return 1;
    case LOAM_E_ABORTED: return 2;
    case LOAM_E_ARG: return -1;
    case LOAM_E_NOMEM: return -2;
    default: return -3;
    }
}

static int run_batch(loam_context *ctx, const loam_batch *batch, bool encode, loam_error *err);

/* A callback of a decode that calls for another one of the same context is refused. */
static int enter(loam_context *ctx, const loam_batch *batch, bool encode, loam_error *err)
{
    if (ctx->running) return code_of(fail(err, LOAM_E_ARG, "called from inside a decode of the same context"));
    ctx->running = true;
    int code = run_batch(ctx, batch, encode, err);
    ctx->running = false;
    return code;
}

static int run_batch(loam_context *ctx, const loam_batch *batch, bool encode, loam_error *err)
{
    if (context_is_empty(ctx)) return code_of(fail(err, LOAM_E_ARG, "the model was opened for its vocabulary only: nothing can be computed"));
    uint64_t start = os_now_ns();
    loam_status status = batch_fill(ctx, batch, encode, err);
    if (status == LOAM_OK) status = context_fit_outputs(ctx, (size_t)ctx->batch.n_outputs, gives_logits(ctx), err);
    if (status == LOAM_OK && !encode) status = context_apply_shifts(ctx, err);
    if (status == LOAM_OK) status = replay_settle(ctx, err);
    if (status != LOAM_OK) return code_of(status);
    status = add_tokens(ctx, err);
    if (status == LOAM_OK) {
        context_fill_strengths(ctx);
        ctx->n_outputs = ctx->last_n_tokens = ctx->n_rows = 0; /* the old rows are overwritten from here on */
        status = compute(ctx, err);
    }
    if (status == LOAM_OK && pooling_on(ctx)) status = pooling_run(ctx, err);
    if (status != LOAM_OK) {
        memory_rollback(ctx->mem);
        return code_of(status);
    }
    if (model_keeps_nothing(ctx->model)) memory_rollback(ctx->mem);
    else memory_commit(ctx->mem);
    note_outputs(ctx);
    note_time(ctx, os_now_ns() - start);
    return 0;
}

int loam_decode(loam_context *ctx, const loam_batch *batch, loam_error *err)
{
    if (!ctx || !batch) return code_of(fail(err, LOAM_E_ARG, "loam_decode: %s is NULL", ctx ? "batch" : "context"));
    return enter(ctx, batch, model_keeps_nothing(ctx->model), err);
}

int loam_encode(loam_context *ctx, const loam_batch *batch, loam_error *err)
{
    if (!ctx || !batch) return code_of(fail(err, LOAM_E_ARG, "loam_encode: %s is NULL", ctx ? "batch" : "context"));
    if (!loam_model_has_encoder(ctx->model))
        return code_of(fail(err, LOAM_E_ARG, "architecture '%s' has no encoder", loam_model_architecture(ctx->model)));
    return enter(ctx, batch, true, err);
}

/* ---- outputs ---- */

static int row_at_index(const loam_context *ctx, int32_t i)
{
    if (!ctx) return -1;
    if (i < 0) return ctx->n_outputs + (int64_t)i >= 0 ? ctx->n_outputs + i : -1;
    return i < ctx->last_n_tokens ? ctx->row_of[i] : -1;
}

const float *loam_logits(const loam_context *ctx, int32_t i)
{
    int row = row_at_index(ctx, i);
    return row < 0 || !ctx->have_logits ? NULL : ctx->logits + (size_t)row * (size_t)loam_model_n_vocab(ctx->model);
}

const float *loam_embeddings(const loam_context *ctx, int32_t i)
{
    int row = row_at_index(ctx, i);
    return row < 0 || !ctx->have_embeddings ? NULL : ctx->embeddings + (size_t)row * (size_t)loam_model_n_embd(ctx->model);
}

int32_t loam_n_outputs(const loam_context *ctx) { return ctx ? ctx->n_outputs : 0; }
