/* context.c - construction of a context: memory, worst-case plans, buffers, threads. An estimate is such a construction on
 * reserved address space, taken down again: its numbers are those of the context. */
#include "context/context.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"

/* ---- plans and buffers ---- */

static build_params build_of(const loam_context *ctx, const plan_shape *s)
{
    const loam_context_params *p = &ctx->p;
    return (build_params){
        .n_tokens = s->n_tokens, .n_outputs = s->n_outputs, .embd_input = s->embd_input, .encode = s->kind == PLAN_ENCODE,
        .watched = s->watched, .dense_rows = ctx->pooling == LOAM_POOLING_NONE, .want_logits = true, .want_embd = p->embeddings,
        .causal = p->attention == LOAM_ATTENTION_CAUSAL, .rope_long = s->far, .rope_scaling = p->rope_scaling,
        .rope_freq_base = p->rope_freq_base, .rope_freq_scale = p->rope_freq_scale, .yarn_ext_factor = p->yarn_ext_factor,
        .yarn_attn_factor = p->yarn_attn_factor, .yarn_beta_fast = p->yarn_beta_fast, .yarn_beta_slow = p->yarn_beta_slow,
        .yarn_orig_ctx = p->yarn_orig_ctx, .adapters = ctx->adapter_pairs, .n_adapters = ctx->n_adapters, .control = ctx->control,
    };
}

static loam_status make_plan(const loam_context *ctx, const plan_shape *s, plan **out, loam_error *err)
{
    graph g;
    build_params b = build_of(ctx, s);
    graph_init(&g, s->n_tokens, s->n_outputs);
    loam_status status = s->kind == PLAN_POOLED ? model_build_pooled(ctx->model, ctx->pooling, s->n_tokens, &g, err)
                                                : model_build(ctx->model, &b, &g, err);
    if (status != LOAM_OK) {
        graph_free(&g);
        *out = NULL;
        return status;
    }
    return plan_new(out, &g, device_cpu(), ctx->n_most, err);
}

static loam_status renew(uint8_t **p, uint64_t *have, uint64_t need, const char *what, loam_error *err)
{
    if (need <= *have) return LOAM_OK;
    uint8_t *fresh = need <= SIZE_MAX / 2 ? os_reserve((size_t)need) : NULL;
    if (!fresh) return fail_nomem(err, what, need);
    os_release(*p, (size_t)*have);
    *p = fresh;
    *have = need;
    return LOAM_OK;
}

/* Makes arena, scratch and shared space large enough for a plan. */
static loam_status fit_buffers(loam_context *ctx, const plan *p, loam_error *err)
{
    size_t scratch, shared;
    uint64_t n = (uint64_t)ctx->n_most;
    plan_scratch(p, (int)n, memory_max_pages(ctx->mem), &scratch, &shared);
    uint64_t have_scratch = n * ctx->scratch_stride, have_shared = ctx->shared_bytes;
    loam_status status = renew(&ctx->arena, &ctx->arena_bytes, p->arena_bytes, "activations", err);
    if (status == LOAM_OK) status = renew(&ctx->scratch, &have_scratch, n * scratch, "scratch of the threads", err);
    if (status == LOAM_OK && scratch > ctx->scratch_stride) ctx->scratch_stride = scratch;
    if (status == LOAM_OK) status = renew(&ctx->shared, &have_shared, shared, "shared scratch", err);
    ctx->shared_bytes = (size_t)have_shared;
    return status;
}

static bool same_shape(const plan_shape *a, const plan_shape *b)
{
    return a->kind == b->kind && a->n_tokens == b->n_tokens && a->n_outputs == b->n_outputs && a->embd_input == b->embd_input &&
           a->watched == b->watched && a->far == b->far;
}

static void drop_plan(kept_plan *k)
{
    sched_plan_free(k->spread);
    plan_free(k->p);
    *k = (kept_plan){ 0 };
}

loam_status context_plan(loam_context *ctx, plan_shape s, plan **out, loam_error *err)
{
    kept_plan *oldest = &ctx->plans[0];
    bool causal = ctx->p.attention == LOAM_ATTENTION_CAUSAL;
    for (int i = 0; i < PLANS_KEPT; i++) {
        kept_plan *k = &ctx->plans[i];
        if (k->p && same_shape(&k->shape, &s) && k->want_embd == ctx->p.embeddings && k->causal == causal) {
            k->used = ++ctx->clock;
            *out = k->p;
            return LOAM_OK;
        }
        if (!k->p || (oldest->p && k->used < oldest->used)) oldest = k;
    }
    plan *p;
    sched_plan *spread = NULL;
    loam_status status = make_plan(ctx, &s, &p, err);
    if (status == LOAM_OK) status = model_devices(ctx->model) ? context_spread(ctx, p, &spread, err) : fit_buffers(ctx, p, err);
    if (status != LOAM_OK) {
        plan_free(p);
        return status;
    }
    drop_plan(oldest);
    *oldest = (kept_plan){ s, ctx->p.embeddings, causal, ++ctx->clock, p, spread };
    ctx->perf.n_plans++;
    *out = p;
    return LOAM_OK;
}

/* ---- life ---- */

/* By measurement (docs/cache-types.md): levels around zero gain from it below 8 bits, levels above a minimum lose. */
static bool rotates(const loam_context_params *p, loam_type type)
{
    if (p->cache_rotation != LOAM_ROTATION_AUTO) return p->cache_rotation == LOAM_ROTATION_ON;
    return type == LOAM_Q5_0 || type == LOAM_Q4_0 || type == LOAM_IQ4_NL;
}

static memory_params memory_of(const loam_context *ctx)
{
    const loam_context_params *p = &ctx->p;
    int n = context_is_empty(ctx) ? 0 : model_n_cache(ctx->model);
    for (int i = 0; i < n; i++) {
        layer_cache c = model_layer_cache(ctx->model, i);
        bool limited = !p->window_full && c.window == WINDOW_STANDARD;
        ctx->layers[i] = (memory_layer){
            .present = c.present, .n_kv_head = c.n_kv_head, .k_dim = c.k_dim, .v_dim = c.v_dim,
            .window = limited ? c.window_size : 0, .encode = c.encode, .r_row = c.r_row, .s_row = c.s_row,
        };
    }
    return (memory_params){
        .layers = ctx->layers, .n_layer = n, .n_ctx = p->n_ctx, .n_ctx_seq = ctx->n_ctx_seq, .n_seq_max = (int)p->n_seq_max,
        .n_batch = (int)(p->n_batch + replay_cap(ctx)), .n_replay = replay_room(ctx), .k_type = p->type_k, .v_type = p->type_v,
        .k_rotated = rotates(p, p->type_k), .v_rotated = rotates(p, p->type_v), .n_rs_seq = (int)p->n_rs_seq,
        .n_encode = (n && model_has_cross(ctx->model) ? (int64_t)p->n_ctx : 0) + p->n_batch,
    };
}

static loam_status check_memory(const loam_memory_use *use, loam_error *err)
{
    uint64_t need = use->cache + use->buffers + use->outputs + use->tables, left = os_memory_available();
    if (need <= left) return LOAM_OK;
    return fail(err, LOAM_E_NOMEM, "the context needs %llu MiB (cache %llu, buffers %llu, outputs %llu), the machine has %llu MiB left",
                (unsigned long long)(need >> 20), (unsigned long long)(use->cache >> 20), (unsigned long long)(use->buffers >> 20),
                (unsigned long long)(use->outputs >> 20), (unsigned long long)(left >> 20));
}

/* A full micro-batch and a single token of what the model does; how many. */
static int worst_shapes(const loam_context *ctx, plan_shape shapes[3])
{
    int n = 0, most = (int)ctx->p.n_ubatch;
    if (loam_model_has_encoder(ctx->model)) shapes[n++] = (plan_shape){ .kind = PLAN_ENCODE, .n_tokens = most, .n_outputs = most };
    if (model_keeps_nothing(ctx->model)) return n;
    shapes[n++] = (plan_shape){ .kind = PLAN_DECODE, .n_tokens = most, .n_outputs = 1 };
    shapes[n++] = (plan_shape){ .kind = PLAN_DECODE, .n_tokens = 1, .n_outputs = 1 };
    return n;
}

/* Plans, buffers and outputs of the worst case. */
static loam_status reserve(loam_context *ctx, loam_error *err)
{
    plan_shape shapes[3];
    plan *p;
    loam_status status = LOAM_OK;
    for (int i = 0, n = worst_shapes(ctx, shapes); i < n && status == LOAM_OK; i++) status = context_plan(ctx, shapes[i], &p, err);
    if (status == LOAM_OK) status = context_fit_outputs(ctx, ctx->p.n_outputs_max, loam_model_has_decoder(ctx->model), err);
    ctx->perf.n_plans = 0;
    return status;
}

static loam_status make_tables(loam_context *ctx, loam_error *err)
{
    size_t n = ctx->p.n_batch;
    ctx->k = kernels_get();
    ctx->layers = mem_zalloc_array((size_t)model_n_cache(ctx->model) + 1, sizeof *ctx->layers);
    ctx->row_of = mem_alloc_array(n, sizeof *ctx->row_of);
    ctx->out_rows = mem_alloc_array(n, sizeof *ctx->out_rows);
    ctx->batch.pos = mem_alloc_array(n, sizeof *ctx->batch.pos);
    ctx->batch.first_seq = mem_alloc_array(n + 1, sizeof *ctx->batch.first_seq);
    ctx->batch.output = mem_alloc_array(n, sizeof *ctx->batch.output);
    if (replay_can(ctx)) {
        loam_status status = replay_new(ctx, err);
        if (status != LOAM_OK) return status;
    }
    bool all = ctx->layers && ctx->row_of && ctx->out_rows && ctx->batch.pos && ctx->batch.first_seq && ctx->batch.output;
    return all ? LOAM_OK : fail_nomem(err, "a context", n * 16);
}

/* For an estimate no thread is started, and what the machine has left does not matter. */
static loam_status build(loam_context *ctx, const loam_context_params *params, bool estimate, loam_error *err)
{
    bool empty = context_is_empty(ctx);
    loam_memory_use use = { 0 };
    loam_status status = context_settle(ctx, params, err);
    if (status == LOAM_OK && !empty) status = pooling_settle(ctx, err);
    if (status == LOAM_OK) status = make_tables(ctx, err);
    if (status != LOAM_OK) return status;
    memory_params mp = memory_of(ctx);
    status = memory_estimate(&mp, &use.cache, err);
    if (status == LOAM_OK && !estimate) status = check_memory(&use, err);
    if (status == LOAM_OK) status = context_charge(ctx, use.cache, err);
    if (status == LOAM_OK) status = memory_new(&ctx->mem, &mp, err);
    if (estimate || empty) ctx->n_most = ctx->p.n_threads > ctx->p.n_threads_batch ? ctx->p.n_threads : ctx->p.n_threads_batch;
    else if (status == LOAM_OK) status = context_start_threads(ctx, err);
    if (status == LOAM_OK && !empty) status = reserve(ctx, err);
    if (status != LOAM_OK || estimate) return status;
    loam_context_memory_use(ctx, &use);
    return check_memory(&use, err);
}

static loam_status make(loam_context **out, const loam_model *model, const loam_context_params *params, bool estimate, loam_error *err)
{
    uint64_t start = os_now_ns();
    loam_context *ctx = mem_zalloc(sizeof *ctx);
    *out = NULL;
    if (!ctx) return fail_nomem(err, "a context", sizeof *ctx);
    ctx->model = model;
    loam_status status = build(ctx, params, estimate, err);
    if (status != LOAM_OK) {
        loam_context_free(ctx);
        return status;
    }
    ctx->perf.start_ns = os_now_ns();
    ctx->perf.load_ns = ctx->perf.start_ns - start;
    *out = ctx;
    return LOAM_OK;
}

loam_status loam_context_new(loam_context **out, const loam_model *model, const loam_context_params *params, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_context_new: out is NULL");
    *out = NULL;
    return model ? make(out, model, params, false, err) : fail(err, LOAM_E_ARG, "loam_context_new: model is NULL");
}

loam_status loam_context_estimate(const loam_model *model, const loam_context_params *params, loam_memory_use *use, loam_error *err)
{
    if (!model || !use) return fail(err, LOAM_E_ARG, "loam_context_estimate: %s is NULL", model ? "use" : "model");
    loam_context *probe;
    loam_status status = make(&probe, model, params, true, err);
    if (status != LOAM_OK) return status;
    loam_context_memory_use(probe, use);
    loam_context_free(probe);
    return LOAM_OK;
}

void context_drop_plans(loam_context *ctx)
{
    for (int i = 0; i < PLANS_KEPT; i++) drop_plan(&ctx->plans[i]);
}

void loam_context_free(loam_context *ctx)
{
    if (!ctx) return;
    context_drop_plans(ctx);
    context_refund(ctx);
    os_release(ctx->arena, (size_t)ctx->arena_bytes);
    os_release(ctx->scratch, ctx->scratch_stride * (size_t)ctx->n_most);
    os_release(ctx->shared, ctx->shared_bytes);
    memory_free(ctx->mem);
    pool_free(ctx->threads);
    replay_free(ctx);
    void *blocks[] = {
        ctx->layers, ctx->logits, ctx->embeddings, ctx->rows, ctx->pooled, ctx->row_of_seq, ctx->row_of, ctx->out_rows, ctx->batch.pos,
        ctx->batch.first_seq, ctx->batch.seqs, ctx->batch.output, ctx->strengths, ctx->token_strengths, ctx->control, ctx->control_data,
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) mem_free(blocks[i]);
    mem_free(ctx);
}

void loam_context_memory_use(const loam_context *ctx, loam_memory_use *use)
{
    const void *tables[] = {
        ctx, ctx->layers, ctx->row_of_seq, ctx->row_of, ctx->out_rows, ctx->batch.pos, ctx->batch.first_seq, ctx->batch.seqs,
        ctx->batch.output, ctx->strengths, ctx->token_strengths, ctx->control, ctx->control_data,
    };
    *use = (loam_memory_use){
        .weights = loam_model_bytes(ctx->model), .cache = memory_bytes(ctx->mem),
        .buffers = ctx->arena_bytes + (uint64_t)ctx->scratch_stride * (uint64_t)ctx->n_most + ctx->shared_bytes,
        .outputs = mem_size(ctx->logits) + mem_size(ctx->embeddings) + mem_size(ctx->rows) + mem_size(ctx->pooled),
        .tables = memory_table_bytes(ctx->mem),
    };
    use->tables += replay_bytes(ctx);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) use->tables += mem_size(tables[i]);
    for (int i = 0; i < PLANS_KEPT; i++) use->tables += plan_bytes(ctx->plans[i].p);
}
