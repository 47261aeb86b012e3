/* context.c - construction of a context: parameters, memory, worst-case plans, buffers, threads. */
#include "context/context.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"

loam_context_params loam_context_defaults(void)
{
    return (loam_context_params){
        .struct_size = sizeof(loam_context_params), .n_ctx = 512, .n_batch = 2048, .n_ubatch = 512, .n_seq_max = 1, .unified = true,
        .type_k = LOAM_F16, .type_v = LOAM_F16, .window_full = true, .rope_scaling = LOAM_ROPE_MODEL,
        .yarn_ext_factor = -1.0f, .yarn_attn_factor = -1.0f, .yarn_beta_fast = -1.0f, .yarn_beta_slow = -1.0f, .pooling = LOAM_POOLING_MODEL,
    };
}

/* ---- parameters ---- */

static bool cache_type(loam_type t)
{
    switch (t) {
    case LOAM_F32: case LOAM_F16: case LOAM_BF16: case LOAM_Q8_0: case LOAM_Q5_1: case LOAM_Q5_0: case LOAM_Q4_1: case LOAM_Q4_0:
    case LOAM_IQ4_NL: return true;
    default: return false;
    }
}

static loam_status check_type(const char *field, loam_type t, loam_error *err)
{
    if (cache_type(t)) return LOAM_OK;
    const char *name = loam_type_name((int)t);
    return fail(err, LOAM_E_ARG, "%s: %s is no cache type (f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl)", field, name ? name : "?");
}

static uint32_t up256(uint32_t n) { return (n + 255) & ~255u; }

/* Replaces every "0 means" by its value; checks ranges. */
static loam_status settle(loam_context_params *p, int64_t *n_ctx_seq, const loam_model *model, const loam_context_params *given, loam_error *err)
{
    *p = loam_context_defaults();
    if (given) {
        if (given->struct_size < sizeof p->struct_size || given->struct_size > 4096)
            return fail(err, LOAM_E_ARG, "context parameters: struct_size %zu; start from loam_context_defaults()", given->struct_size);
        size_t n = given->struct_size < sizeof *p ? given->struct_size : sizeof *p;
        memcpy(p, given, n);
    }
    if (p->n_ctx == 0) p->n_ctx = (uint32_t)loam_model_n_ctx_train(model);
    if (p->n_ctx == 0 || p->n_ctx > LIMIT_CONTEXT) return fail(err, LOAM_E_ARG, "n_ctx: %u is not within 1 .. %d", p->n_ctx, LIMIT_CONTEXT);
    if (p->n_seq_max < 1 || p->n_seq_max > LIMIT_SEQUENCES)
        return fail(err, LOAM_E_ARG, "n_seq_max: %u is not within 1 .. %d", p->n_seq_max, LIMIT_SEQUENCES);
    p->n_ctx = up256(p->n_ctx);
    *n_ctx_seq = p->n_ctx;
    if (!p->unified) {
        *n_ctx_seq = up256(p->n_ctx / p->n_seq_max ? p->n_ctx / p->n_seq_max : 1);
        p->n_ctx = (uint32_t)*n_ctx_seq * p->n_seq_max;
    }
    if (p->n_batch == 0 && p->n_ubatch == 0) return fail(err, LOAM_E_ARG, "n_batch and n_ubatch are both 0");
    if (p->n_batch == 0) p->n_batch = p->n_ubatch;
    if (p->n_batch > p->n_ctx) p->n_batch = p->n_ctx;
    if (p->n_batch > LIMIT_BATCH) return fail(err, LOAM_E_ARG, "n_batch: %u is above %d", p->n_batch, LIMIT_BATCH);
    if (p->n_ubatch == 0 || p->n_ubatch > p->n_batch) p->n_ubatch = p->n_batch;
    if (p->n_rs_seq > LIMIT_ROLL_BACK) return fail(err, LOAM_E_ARG, "n_rs_seq: %u is above %d", p->n_rs_seq, LIMIT_ROLL_BACK);
    if (p->n_threads == 0) p->n_threads = os_cpu_count();
    if (p->n_threads_batch == 0) p->n_threads_batch = p->n_threads;
    if (p->n_threads < 1 || p->n_threads > LIMIT_THREADS) return fail(err, LOAM_E_ARG, "n_threads: %d is not within 1 .. %d", p->n_threads, LIMIT_THREADS);
    if (p->n_threads_batch < 1 || p->n_threads_batch > LIMIT_THREADS)
        return fail(err, LOAM_E_ARG, "n_threads_batch: %d is not within 1 .. %d", p->n_threads_batch, LIMIT_THREADS);
    if (p->rope_scaling < LOAM_ROPE_MODEL || p->rope_scaling > LOAM_ROPE_LONGROPE)
        return fail(err, LOAM_E_ARG, "rope_scaling: %d is not a loam_rope_scaling", p->rope_scaling);
    if (p->cache_rotation < LOAM_ROTATION_AUTO || p->cache_rotation > LOAM_ROTATION_ON)
        return fail(err, LOAM_E_ARG, "cache_rotation: %d is not a loam_cache_rotation", p->cache_rotation);
    loam_status status = check_type("type_k", p->type_k, err);
    return status != LOAM_OK ? status : check_type("type_v", p->type_v, err);
}

/* By measurement (docs/cache-types.md): levels around zero gain from it below 8 bits, levels above a minimum lose. */
static bool rotates(const loam_context_params *p, loam_type type)
{
    if (p->cache_rotation != LOAM_ROTATION_AUTO) return p->cache_rotation == LOAM_ROTATION_ON;
    return type == LOAM_Q5_0 || type == LOAM_Q4_0 || type == LOAM_IQ4_NL;
}

static memory_params memory_of(const loam_context_params *p, int64_t n_ctx_seq, const loam_model *model, memory_layer *layers)
{
    for (int i = 0; i < model_n_cache(model); i++) {
        layer_cache c = model_layer_cache(model, i);
        bool limited = !p->window_full && c.window == WINDOW_STANDARD;
        layers[i] = (memory_layer){
            .present = c.present, .n_kv_head = c.n_kv_head, .k_dim = c.k_dim, .v_dim = c.v_dim,
            .window = limited ? c.window_size : 0, .encode = c.encode, .r_row = c.r_row, .s_row = c.s_row,
        };
    }
    return (memory_params){
        .layers = layers, .n_layer = model_n_cache(model), .n_ctx = p->n_ctx, .n_ctx_seq = n_ctx_seq, .n_seq_max = (int)p->n_seq_max,
        .n_batch = (int)p->n_batch, .k_type = p->type_k, .v_type = p->type_v,
        .k_rotated = rotates(p, p->type_k), .v_rotated = rotates(p, p->type_v),
        .n_rs_seq = (int)p->n_rs_seq,
        .n_encode = (model_has_cross(model) ? (int64_t)p->n_ctx : 0) + p->n_batch,
    };
}

/* ---- plans and buffers ---- */

static build_params build_of(const loam_context *ctx, const plan_shape *s)
{
    const loam_context_params *p = &ctx->p;
    return (build_params){
        .n_tokens = s->n_tokens, .n_outputs = s->n_outputs, .embd_input = s->embd_input, .encode = s->kind == PLAN_ENCODE,
        .dense_rows = ctx->pooling == LOAM_POOLING_NONE, .want_logits = true, .want_embd = p->embeddings,
        .causal = model_causal(ctx->model), .n_ctx_seq = ctx->n_ctx_seq, .rope_scaling = p->rope_scaling,
        .rope_freq_base = p->rope_freq_base, .rope_freq_scale = p->rope_freq_scale, .yarn_ext_factor = p->yarn_ext_factor,
        .yarn_attn_factor = p->yarn_attn_factor, .yarn_beta_fast = p->yarn_beta_fast, .yarn_beta_slow = p->yarn_beta_slow,
        .yarn_orig_ctx = p->yarn_orig_ctx, .adapters = ctx->adapter_pairs, .n_adapters = ctx->n_adapters, .control = ctx->control,
    };
}

static int most_threads(const loam_context_params *p) { return p->n_threads > p->n_threads_batch ? p->n_threads : p->n_threads_batch; }

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
    return plan_new(out, &g, device_cpu(), most_threads(&ctx->p), err);
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
    uint64_t n = (uint64_t)most_threads(&ctx->p);
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
    return a->kind == b->kind && a->n_tokens == b->n_tokens && a->n_outputs == b->n_outputs && a->embd_input == b->embd_input;
}

loam_status context_plan(loam_context *ctx, plan_shape s, plan **out, loam_error *err)
{
    kept_plan *oldest = &ctx->plans[0];
    for (int i = 0; i < PLANS_KEPT; i++) {
        kept_plan *k = &ctx->plans[i];
        if (k->p && same_shape(&k->shape, &s) && k->want_embd == ctx->p.embeddings) {
            k->used = ++ctx->clock;
            *out = k->p;
            return LOAM_OK;
        }
        if (!k->p || (oldest->p && k->used < oldest->used)) oldest = k;
    }
    plan *p;
    loam_status status = make_plan(ctx, &s, &p, err);
    if (status == LOAM_OK) status = fit_buffers(ctx, p, err);
    if (status != LOAM_OK) {
        plan_free(p);
        return status;
    }
    plan_free(oldest->p);
    *oldest = (kept_plan){ s, ctx->p.embeddings, ++ctx->clock, p };
    *out = p;
    return LOAM_OK;
}

/* Values of one output row. */
static uint64_t output_width(const loam_context *ctx)
{
    int64_t logits = loam_model_has_decoder(ctx->model) ? loam_model_n_vocab(ctx->model) : 0;
    return (uint64_t)(logits + (ctx->p.embeddings ? loam_model_n_embd(ctx->model) : 0));
}

/* ---- life ---- */

static loam_status check_memory(const loam_memory_use *use, loam_error *err)
{
    uint64_t need = use->cache + use->buffers + use->outputs, left = os_memory_available();
    if (need <= left) return LOAM_OK;
    return fail(err, LOAM_E_NOMEM, "the context needs %llu MiB (cache %llu, buffers %llu, outputs %llu), the machine has %llu MiB left",
                (unsigned long long)(need >> 20), (unsigned long long)(use->cache >> 20), (unsigned long long)(use->buffers >> 20),
                (unsigned long long)(use->outputs >> 20), (unsigned long long)(left >> 20));
}

/* A full micro-batch and a single token of what the model does; how many. */
static int worst_shapes(const loam_context *ctx, plan_shape shapes[3])
{
    int n = 0, most = (int)ctx->p.n_ubatch;
    if (loam_model_has_encoder(ctx->model)) shapes[n++] = (plan_shape){ PLAN_ENCODE, most, most, false };
    if (model_keeps_nothing(ctx->model)) return n;
    shapes[n++] = (plan_shape){ PLAN_DECODE, most, 1, false };
    shapes[n++] = (plan_shape){ PLAN_DECODE, 1, 1, false };
    return n;
}

/* Buffers of the worst case. */
static loam_status reserve(loam_context *ctx, loam_error *err)
{
    plan_shape shapes[3];
    plan *p;
    loam_status status = LOAM_OK;
    for (int i = 0, n = worst_shapes(ctx, shapes); i < n && status == LOAM_OK; i++) status = context_plan(ctx, shapes[i], &p, err);
    return status;
}

static loam_status build(loam_context *ctx, const loam_context_params *params, loam_error *err)
{
    loam_status status = settle(&ctx->p, &ctx->n_ctx_seq, ctx->model, params, err);
    if (status == LOAM_OK) status = pooling_settle(ctx, err);
    if (status != LOAM_OK) return status;
    size_t n = ctx->p.n_batch;
    ctx->k = kernels_get();
    ctx->layers = mem_zalloc_array((size_t)model_n_cache(ctx->model) + 1, sizeof *ctx->layers);
    ctx->row_of = mem_alloc_array(n, sizeof *ctx->row_of);
    ctx->out_rows = mem_alloc_array(n, sizeof *ctx->out_rows);
    ctx->batch.pos = mem_alloc_array(n, sizeof *ctx->batch.pos);
    ctx->batch.first_seq = mem_alloc_array(n + 1, sizeof *ctx->batch.first_seq);
    ctx->batch.output = mem_alloc_array(n, sizeof *ctx->batch.output);
    if (!ctx->layers || !ctx->row_of || !ctx->out_rows || !ctx->batch.pos || !ctx->batch.first_seq || !ctx->batch.output)
        return fail_nomem(err, "a context", n * 16);
    memory_params mp = memory_of(&ctx->p, ctx->n_ctx_seq, ctx->model, ctx->layers);
    loam_memory_use use = { 0 };
    status = memory_estimate(&mp, &use.cache, err);
    if (status == LOAM_OK) status = check_memory(&use, err);
    if (status == LOAM_OK) status = memory_new(&ctx->mem, &mp, err);
    if (status == LOAM_OK) status = pool_new(&ctx->threads, most_threads(&ctx->p), err);
    if (status == LOAM_OK) status = reserve(ctx, err);
    if (status != LOAM_OK) return status;
    loam_context_memory_use(ctx, &use);
    return check_memory(&use, err);
}

loam_status loam_context_new(loam_context **out, const loam_model *model, const loam_context_params *params, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_context_new: out is NULL");
    *out = NULL;
    if (!model) return fail(err, LOAM_E_ARG, "loam_context_new: model is NULL");
    uint64_t start = os_now_ns();
    loam_context *ctx = mem_zalloc(sizeof *ctx);
    if (!ctx) return fail_nomem(err, "a context", sizeof *ctx);
    ctx->model = model;
    loam_status status = build(ctx, params, err);
    if (status != LOAM_OK) {
        loam_context_free(ctx);
        return status;
    }
    ctx->perf.load_ns = os_now_ns() - start;
    *out = ctx;
    return LOAM_OK;
}

void loam_context_free(loam_context *ctx)
{
    if (!ctx) return;
    for (int i = 0; i < PLANS_KEPT; i++) plan_free(ctx->plans[i].p);
    os_release(ctx->arena, (size_t)ctx->arena_bytes);
    os_release(ctx->scratch, ctx->scratch_stride * (size_t)most_threads(&ctx->p));
    os_release(ctx->shared, ctx->shared_bytes);
    memory_free(ctx->mem);
    pool_free(ctx->threads);
    mem_free(ctx->layers);
    mem_free(ctx->logits);
    mem_free(ctx->embeddings);
    mem_free(ctx->rows);
    mem_free(ctx->pooled);
    mem_free(ctx->row_of_seq);
    mem_free(ctx->row_of);
    mem_free(ctx->out_rows);
    mem_free(ctx->batch.pos);
    mem_free(ctx->batch.first_seq);
    mem_free(ctx->batch.seqs);
    mem_free(ctx->batch.output);
    mem_free(ctx->strengths);
    mem_free(ctx->token_strengths);
    mem_free(ctx->control);
    mem_free(ctx->control_data);
    mem_free(ctx);
}

loam_status loam_context_estimate(const loam_model *model, const loam_context_params *params, loam_memory_use *use, loam_error *err)
{
    if (!model || !use) return fail(err, LOAM_E_ARG, "loam_context_estimate: %s is NULL", model ? "use" : "model");
    loam_context probe = { .model = model };
    loam_status status = settle(&probe.p, &probe.n_ctx_seq, model, params, err);
    if (status == LOAM_OK) status = pooling_settle(&probe, err);
    if (status != LOAM_OK) return status;
    memory_layer *layers = mem_zalloc_array((size_t)model_n_cache(model) + 1, sizeof *layers);
    if (!layers) return fail_nomem(err, "an estimate", (uint64_t)model_n_layer(model) * sizeof *layers);
    memory_params mp = memory_of(&probe.p, probe.n_ctx_seq, model, layers);
    *use = (loam_memory_use){ .weights = loam_model_bytes(model) };
    plan *p = NULL;
    size_t scratch = 0, shared = 0;
    status = memory_estimate(&mp, &use->cache, err);
    plan_shape shapes[3];
    for (int i = 0, n = worst_shapes(&probe, shapes); i < n && status == LOAM_OK; i++) {
        status = make_plan(&probe, &shapes[i], &p, err);
        if (status != LOAM_OK) break;
        size_t a, b;
        plan_scratch(p, most_threads(&probe.p), (int64_t)(probe.p.n_ctx / PAGE_SLOTS + probe.p.n_seq_max + 1), &a, &b);
        scratch = a > scratch ? a : scratch;
        shared = b > shared ? b : shared;
        if (p->arena_bytes > use->buffers) use->buffers = p->arena_bytes;
        plan_free(p);
    }
    mem_free(layers);
    use->buffers += scratch * (uint64_t)most_threads(&probe.p) + shared;
    use->outputs = output_width(&probe) * 4;
    return status;
}

/* ---- getters ---- */

const loam_model *loam_context_model(const loam_context *ctx) { return ctx->model; }
uint32_t loam_context_n_ctx(const loam_context *ctx) { return ctx->p.n_ctx; }
uint32_t loam_context_n_batch(const loam_context *ctx) { return ctx->p.n_batch; }
uint32_t loam_context_n_ubatch(const loam_context *ctx) { return ctx->p.n_ubatch; }
uint32_t loam_context_n_seq_max(const loam_context *ctx) { return ctx->p.n_seq_max; }
int32_t loam_context_n_threads(const loam_context *ctx) { return ctx->p.n_threads; }
int32_t loam_context_n_threads_batch(const loam_context *ctx) { return ctx->p.n_threads_batch; }

void loam_context_memory_use(const loam_context *ctx, loam_memory_use *use)
{
    uint64_t rows = ctx->cap_outputs ? ctx->cap_outputs : 1;
    *use = (loam_memory_use){
        .weights = loam_model_bytes(ctx->model), .cache = memory_bytes(ctx->mem),
        .buffers = ctx->arena_bytes + (uint64_t)ctx->scratch_stride * (uint64_t)most_threads(&ctx->p) + ctx->shared_bytes,
        .outputs = rows * output_width(ctx) * 4,
    };
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

loam_perf loam_context_perf(const loam_context *ctx) { return ctx->perf; }

void loam_context_perf_reset(loam_context *ctx) { ctx->perf = (loam_perf){ .load_ns = ctx->perf.load_ns }; }
