/* trainer.c - the public trainer: parameters, memory, micro-batches. */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"
#include "train/trainer.h"

loam_trainer_params loam_trainer_defaults(void)
{
    return (loam_trainer_params){
        .struct_size = sizeof(loam_trainer_params), .optimizer = LOAM_ADAMW, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f,
        .muon_rate = 20.0f, .weight_decay = 0.01f, .clip_norm = 1.0f, .lora_alpha = 16.0f, .momentum = -1.0f,
    };
}

/* ---- checks ---- */

static bool within(double x, double low, double high) { return x >= low && x <= high; }

loam_status trainer_check(const loam_trainer_params *p, loam_error *err)
{
    struct { const char *name; double x, low, high; } fields[] = {
        { "n_threads", p->n_threads, 0, LIMIT_THREADS }, { "beta1", p->beta1, 0, 0.9999999 }, { "beta2", p->beta2, 0, 0.9999999 },
        { "eps", p->eps, 0, 1 }, { "momentum", p->momentum, 0, 0.9999999 }, { "muon_rate", p->muon_rate, 0, 1e6 },
        { "weight_decay", p->weight_decay, 0, 1e6 }, { "clip_norm", p->clip_norm, 0, 1e30 },
        { "label_smoothing", p->label_smoothing, 0, 0.9999999 }, { "lora_rank", p->lora_rank, 0, 65536 },
        { "lora_alpha", p->lora_alpha, 1e-6, 1e6 }, { "lora_dropout", p->lora_dropout, 0, 0.9999999 },
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!within(fields[i].x, fields[i].low, fields[i].high))
            return fail(err, LOAM_E_ARG, "%s: %g, must be between %g and %g", fields[i].name, fields[i].x, fields[i].low, fields[i].high);
    if (p->optimizer < LOAM_ADAMW || p->optimizer > LOAM_MUON) return fail(err, LOAM_E_ARG, "optimizer: %d is not a loam_optimizer", (int)p->optimizer);
    if (p->n_lora_targets > 1024) return fail(err, LOAM_E_ARG, "n_lora_targets: %zu, at most 1024", p->n_lora_targets);
    for (size_t i = 0; p->lora_targets && i < p->n_lora_targets; i++)
        if (!p->lora_targets[i]) return fail(err, LOAM_E_ARG, "lora_targets: entry %zu is NULL", i);
    return LOAM_OK;
}

static loam_status settle(loam_trainer *t, const loam_model *model, const loam_trainer_params *params, loam_error *err)
{
    loam_trainer_params p = loam_trainer_defaults();
    if (params) {
        if (params->struct_size == 0 || params->struct_size > sizeof p)
            return fail(err, LOAM_E_ARG, "loam_trainer_params: struct_size %zu is unknown", params->struct_size);
        memcpy(&p, params, params->struct_size);
    }
    if (p.momentum == -1.0f) p.momentum = p.optimizer == LOAM_MUON ? 0.95f : 0.0f;
    loam_status status = trainer_check(&p, err);
    if (status != LOAM_OK) return status;
    t->model = model;
    t->p = p;
    t->n_threads = p.n_threads ? p.n_threads : os_cpu_count();
    return params_make(t, err);
}

/* ---- the plan of a shape ---- */

build_params trainer_build_params(const loam_trainer *t, int n_tokens)
{
    return (build_params){
        .n_tokens = n_tokens, .n_outputs = n_tokens, .want_logits = true, .causal = model_causal(t->model),
        .rope_long = loam_model_n_ctx_train(t->model) > model_rope_short(t->model), .rope_scaling = -1, .yarn_ext_factor = -1, .yarn_attn_factor = -1,
        .yarn_beta_fast = -1, .yarn_beta_slow = -1, .adapters = t->p.lora_rank > 0 ? &t->adapter : NULL,
        .n_adapters = t->p.lora_rank > 0 ? 1 : 0,
    };
}

static loam_status make_tape(loam_trainer *t, int n_tokens, tape **out, loam_error *err)
{
    graph g;
    graph_init(&g, n_tokens, n_tokens);
    build_params b = trainer_build_params(t, n_tokens);
    value *root = NULL;
    *out = NULL;
    loam_status status = model_build(t->model, &b, &g, err);
    if (status == LOAM_OK) status = head_find(t, &g, &root, err);
    if (status != LOAM_OK) {
        graph_free(&g);
        return status;
    }
    tape_spec spec = {
        .dev = device_cpu(), .n_threads = t->n_threads, .recompute = t->p.recompute, .root = root, .bind = params_bind,
        .loss = head_loss, .user = t, .loss_scratch = head_scratch(&t->head), .loss_shared = head_shared(&t->head),
    };
    return tape_new(out, &g, &spec, err);
}

/* Space of `bytes`, kept where it is large enough. */
static bool room(uint8_t **p, uint64_t *have, uint64_t bytes)
{
    if (*have >= bytes && *p) return true;
    uint8_t *fresh = os_reserve((size_t)bytes);
    if (!fresh) return false;
    os_release(*p, (size_t)*have);
    *p = fresh;
    *have = bytes;
    return true;
}

static uint64_t threads_scratch(const loam_trainer *t, const tape *tp) { return (uint64_t)t->n_threads * tp->scratch_bytes; }

static loam_status fit_tape(loam_trainer *t, int n_tokens, loam_error *err)
{
    if (t->tape && t->tape_tokens == n_tokens) return LOAM_OK;
    tape *fresh;
    loam_status status = make_tape(t, n_tokens, &fresh, err);
    if (status != LOAM_OK) return status;
    uint64_t need = fresh->arena_bytes + threads_scratch(t, fresh) + fresh->shared_bytes, have = os_memory_available();
    uint64_t own = t->arena_bytes + t->scratch_bytes + t->shared_bytes;
    if (need > own && have != UINT64_MAX && need - own > have) {
        tape_free(fresh);
        return fail(err, LOAM_E_NOMEM, "a batch of %d tokens needs %llu MB of work space, %llu MB are left", n_tokens,
                    (unsigned long long)(need >> 20), (unsigned long long)((have + own) >> 20));
    }
    if (!room(&t->arena, &t->arena_bytes, fresh->arena_bytes + 64) || !room(&t->scratch, &t->scratch_bytes, threads_scratch(t, fresh) + 64) ||
        !room(&t->shared, &t->shared_bytes, fresh->shared_bytes + 64)) {
        tape_free(fresh);
        return fail_nomem(err, "work space of training", need);
    }
    tape_free(t->tape);
    t->tape = fresh;
    t->tape_tokens = n_tokens;
    return LOAM_OK;
}

/* ---- life ---- */

loam_status loam_trainer_estimate(const loam_model *model, const loam_trainer_params *params, int32_t n_tokens, loam_train_memory *out, loam_error *err)
{
    if (!model || !out) return fail(err, LOAM_E_ARG, "loam_trainer_estimate: %s is NULL", model ? "out" : "model");
    if (n_tokens < 1 || n_tokens > LIMIT_BATCH) return fail(err, LOAM_E_ARG, "n_tokens: %d, must be 1 to %d", n_tokens, LIMIT_BATCH);
    loam_trainer t = { 0 };
    tape *tp = NULL;
    loam_status status = settle(&t, model, params, err);
    if (status == LOAM_OK) {
        /* The plan asks which tensors have gradients: any address will do. */
        for (size_t i = 0; i < t.n_params; i++) t.params[i].grad = (float *)&t;
        status = make_tape(&t, n_tokens, &tp, err);
    }
    if (status == LOAM_OK) {
        *out = (loam_train_memory){ 0 };
        params_memory(&t, out);
        out->work = tp->arena_bytes + threads_scratch(&t, tp) + tp->shared_bytes + (uint64_t)n_tokens * 40;
        out->total = out->weights + out->gradients + out->state + out->work;
        out->available = os_memory_available();
    }
    for (size_t i = 0; i < t.n_params; i++) t.params[i].grad = NULL;
    tape_free(tp);
    params_free(&t);
    return status;
}

static loam_status check_memory(const loam_trainer *t, loam_error *err)
{
    loam_train_memory m = { 0 };
    params_memory(t, &m);
    uint64_t need = m.weights + m.gradients + m.state, have = os_memory_available();
    if (have == UINT64_MAX || need <= have) return LOAM_OK;
    return fail(err, LOAM_E_NOMEM, "training %llu values takes %llu MB for weights, gradients and optimizer, %llu MB are left",
                (unsigned long long)m.n_trainable, (unsigned long long)(need >> 20), (unsigned long long)(have >> 20));
}

loam_status loam_trainer_new(loam_trainer **out, const loam_model *model, const loam_trainer_params *params, loam_error *err)
{
    if (!out || !model) return fail(err, LOAM_E_ARG, "loam_trainer_new: %s is NULL", out ? "model" : "out");
    *out = NULL;
    loam_trainer *t = mem_zalloc(sizeof *t);
    if (!t) return fail_nomem(err, "a trainer", sizeof *t);
    loam_status status = settle(t, model, params, err);
    if (status == LOAM_OK) status = check_memory(t, err);
    if (status == LOAM_OK) status = params_alloc(t, err);
    if (status == LOAM_OK && t->n_threads > 1) status = pool_new(&t->threads, t->n_threads, err);
    if (status == LOAM_OK && t->threads) t->n_threads = pool_threads(t->threads);
    if (status == LOAM_OK) { /* an operation without a gradient is told now, not in the first batch */
        tape *probe;
        status = make_tape(t, 2, &probe, err);
        tape_free(probe);
    }
    if (status != LOAM_OK) {
        loam_trainer_free(t);
        return status;
    }
    *out = t;
    return LOAM_OK;
}

static void free_batch(loam_trainer *t)
{
    void *all[] = { t->rows, t->labels, t->pos, t->row_number, t->weights, t->losses, t->ones, t->correct, t->runs };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) mem_free(all[i]);
    t->rows = t->labels = t->pos = t->row_number = NULL;
    t->weights = t->losses = t->ones = NULL;
    t->correct = NULL;
    t->runs = NULL;
    t->batch_cap = 0;
}

void loam_trainer_free(loam_trainer *t)
{
    if (!t) return;
    tape_free(t->tape);
    os_release(t->arena, (size_t)t->arena_bytes);
    os_release(t->scratch, (size_t)t->scratch_bytes);
    os_release(t->shared, (size_t)t->shared_bytes);
    free_batch(t);
    params_free(t);
    pool_free(t->threads);
    mem_free(t);
}

/* ---- batches ---- */

static loam_status room_for_batch(loam_trainer *t, size_t n, loam_error *err)
{
    if (n <= t->batch_cap) return LOAM_OK;
    free_batch(t);
    t->rows = mem_alloc_array(n, sizeof *t->rows);
    t->labels = mem_alloc_array(n, sizeof *t->labels);
    t->pos = mem_alloc_array(n, sizeof *t->pos);
    t->row_number = mem_alloc_array(n, sizeof *t->row_number);
    t->weights = mem_alloc_array(n, sizeof *t->weights);
    t->losses = mem_alloc_array(n, sizeof *t->losses);
    t->ones = mem_alloc_array(n, sizeof *t->ones);
    t->correct = mem_alloc(n);
    t->runs = mem_alloc_array(n, sizeof *t->runs);
    if (!t->rows || !t->labels || !t->pos || !t->row_number || !t->weights || !t->losses || !t->ones || !t->correct || !t->runs) {
        free_batch(t);
        return fail_nomem(err, "a batch", n * 40);
    }
    for (size_t i = 0; i < n; i++) t->ones[i] = 1.0f;
    t->batch_cap = n;
    return LOAM_OK;
}

static loam_status check_token(const loam_trainer *t, const loam_train_batch *b, size_t i, loam_error *err)
{
    int32_t n = loam_model_n_vocab(t->model);
    if (b->tokens[i] < 0 || b->tokens[i] >= n) return fail(err, LOAM_E_ARG, "token %zu is %d, the vocabulary has %d", i, b->tokens[i], n);
    if (b->labels && (b->labels[i] < -1 || b->labels[i] >= t->head.classes))
        return fail(err, LOAM_E_ARG, "label %zu is %d, the vocabulary has %d", i, b->labels[i], n);
    if (b->weights && !(b->weights[i] >= 0.0f && b->weights[i] < INFINITY)) return fail(err, LOAM_E_ARG, "weight %zu is %g", i, (double)b->weights[i]);
    return LOAM_OK;
}

/* Cuts the batch into documents and picks the targets. */
static loam_status read_batch(loam_trainer *t, const loam_train_batch *b, loam_error *err)
{
    int32_t limit = model_position_limit(t->model);
    int n = 0;
    t->n_runs = 0;
    for (size_t i = 0; i < b->n_tokens; i++) {
        loam_status status = check_token(t, b, i, err);
        if (status != LOAM_OK) return status;
        bool fresh = i == 0 || (b->documents && b->documents[i] != b->documents[i - 1]);
        if (fresh) t->runs[t->n_runs++] = (grad_run){ (int)i, 0 };
        t->runs[t->n_runs - 1].count++;
        t->pos[i] = b->positions ? b->positions[i] : fresh ? 0 : t->pos[i - 1] + 1;
        if (t->pos[i] < 0 || t->pos[i] >= limit || (!fresh && t->pos[i] <= t->pos[i - 1]))
            return fail(err, LOAM_E_ARG, "position %zu is %d%s", i, t->pos[i], t->pos[i] >= limit ? ", beyond the learned positions" : ", must ascend in a document");
        t->row_number[i] = (int32_t)(t->tokens + (int64_t)i);
        if (!b->labels || b->labels[i] < 0) continue;
        t->rows[n] = (int32_t)i, t->labels[n] = b->labels[i], t->weights[n] = b->weights ? b->weights[i] : 1.0f;
        n++;
    }
    t->head.n = n;
    return LOAM_OK;
}

static loam_status add_losses(loam_trainer *t, loam_train_loss *out, loam_error *err)
{
    const head *h = &t->head;
    *out = (loam_train_loss){ .n_targets = h->n };
    for (int i = 0; i < h->n; i++) {
        if (!isfinite(h->losses[i])) return fail(err, LOAM_E_NUMERIC, "the loss of token %d is not finite", h->rows[i]);
        out->sum += (double)h->weights[i] * (double)h->losses[i];
        out->weight += h->weights[i];
        out->n_correct += h->correct[i];
    }
    return LOAM_OK;
}

static loam_status run_batch(loam_trainer *t, const loam_train_batch *b, bool learn, loam_train_loss *loss, loam_error *err)
{
    if (!t || !b || (b->n_tokens && !b->tokens)) return fail(err, LOAM_E_ARG, "a batch without %s", !t ? "a trainer" : b ? "tokens" : "data");
    if (b->n_tokens > LIMIT_BATCH) return fail(err, LOAM_E_ARG, "%zu tokens in a batch, at most %d", b->n_tokens, LIMIT_BATCH);
    loam_train_loss own = { 0 };
    if (b->n_tokens == 0) {
        if (loss) *loss = own;
        return LOAM_OK;
    }
    loam_status status = room_for_batch(t, b->n_tokens, err);
    if (status == LOAM_OK) status = fit_tape(t, (int)b->n_tokens, err);
    if (status == LOAM_OK) status = read_batch(t, b, err);
    if (status != LOAM_OK) return status;
    head *h = &t->head;
    h->rows = t->rows, h->labels = t->labels, h->weights = t->weights, h->losses = t->losses, h->correct = t->correct;
    h->n_tokens = (int64_t)b->n_tokens, h->smoothing = learn ? t->p.label_smoothing : 0.0f;
    tape_input in = { .view = { .pos = t->pos, .runs = t->runs, .n_runs = t->n_runs, .row = t->row_number, .drop = learn,
                                .seed = t->p.seed * 0x9E3779B97F4A7C15ull + (uint64_t)t->updates } };
    in.inputs[INPUT_TOKENS] = b->tokens, in.inputs[INPUT_POS] = t->pos, in.inputs[INPUT_ADAPTERS] = t->ones;
    tape_memory m = { t->arena, t->scratch, t->shared };
    if (h->n > 0) status = tape_run(t->tape, t->threads, &m, &in, learn);
    if (status == LOAM_OK) status = add_losses(t, &own, err);
    if (status == LOAM_OK && loss) *loss = own;
    if (!learn) return status;
    if (status != LOAM_OK) {
        optim_zero(t);
        return status;
    }
    t->weight += own.weight;
    t->tokens += (int64_t)b->n_tokens;
    return LOAM_OK;
}

loam_status loam_trainer_accumulate(loam_trainer *t, const loam_train_batch *b, loam_train_loss *loss, loam_error *err)
{
    return run_batch(t, b, true, loss, err);
}

loam_status loam_trainer_evaluate(loam_trainer *t, const loam_train_batch *b, loam_train_loss *loss, loam_error *err)
{
    return run_batch(t, b, false, loss, err);
}

loam_status loam_trainer_update(loam_trainer *t, double rate, loam_update *info, loam_error *err)
{
    if (!t) return fail(err, LOAM_E_ARG, "loam_trainer_update: trainer is NULL");
    if (!(rate >= 0.0 && rate < INFINITY)) return fail(err, LOAM_E_ARG, "learning rate %g", rate);
    loam_update own;
    return optim_step(t, rate, info ? info : &own, err);
}

void loam_trainer_forget(loam_trainer *t) { if (t) optim_zero(t); }

int64_t loam_trainer_updates(const loam_trainer *t) { return t ? t->updates : 0; }

uint64_t loam_trainer_n_trainable(const loam_trainer *t)
{
    uint64_t n = 0;
    for (size_t i = 0; t && i < t->n_params; i++) n += t->params[i].n;
    return n;
}

size_t loam_trainer_n_tensors(const loam_trainer *t) { return t ? t->n_params : 0; }

bool loam_trainer_tensor(const loam_trainer *t, size_t i, loam_train_tensor *out)
{
    if (!t || !out || i >= t->n_params) return false;
    const param *p = &t->params[i];
    *out = (loam_train_tensor){ .name = p->name, .data = p->data, .gradient = p->grad, .n = p->n };
    memcpy(out->ne, p->w.ne, sizeof out->ne);
    return true;
}
