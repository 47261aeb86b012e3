/* adapters.c - which adapters and control vectors a context adds, and how strongly for each token. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "context/context.h"

static loam_status check_strengths(const float *strengths, size_t n, loam_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(strengths[i])) return fail(err, LOAM_E_ARG, "strength of adapter %zu is not finite", i);
    return LOAM_OK;
}

loam_status loam_context_set_adapters(loam_context *ctx, loam_adapter *const *adapters, const float *strengths, size_t n, loam_error *err)
{
    if (!ctx || (n && (!adapters || !strengths))) return fail(err, LOAM_E_ARG, "loam_context_set_adapters: %s is NULL", !ctx ? "context" : "a list");
    if (n > LOAM_MAX_ADAPTERS) return fail(err, LOAM_E_ARG, "%zu adapters, at most %d at once", n, LOAM_MAX_ADAPTERS);
    loam_status status = check_strengths(strengths, n, err);
    if (status != LOAM_OK) return status;
    for (size_t i = 0; i < n; i++)
        if (!adapters[i] || adapters[i]->model != ctx->model) return fail(err, LOAM_E_ARG, "adapter %zu is %s", i, adapters[i] ? "of another model" : "NULL");
    if (n && !ctx->strengths) {
        ctx->strengths = mem_alloc_array((size_t)ctx->p.n_seq_max * LOAM_MAX_ADAPTERS, sizeof *ctx->strengths);
        if (!ctx->strengths) return fail_nomem(err, "strengths of adapters", (uint64_t)ctx->p.n_seq_max * LOAM_MAX_ADAPTERS * 4);
    }
    if (n && !ctx->token_strengths) {
        ctx->token_strengths = mem_alloc_array((size_t)ctx->p.n_batch * LOAM_MAX_ADAPTERS, sizeof *ctx->token_strengths);
        if (!ctx->token_strengths) return fail_nomem(err, "strengths of adapters", (uint64_t)ctx->p.n_batch * LOAM_MAX_ADAPTERS * 4);
    }
    context_drop_plans(ctx);
    ctx->n_adapters = (int)n;
    for (size_t i = 0; i < n; i++) {
        ctx->adapters[i] = adapters[i];
        ctx->adapter_pairs[i] = (graph_adapter){ adapters[i]->pairs, adapters[i]->n_pairs };
        for (uint32_t q = 0; q < ctx->p.n_seq_max; q++) ctx->strengths[(size_t)q * LOAM_MAX_ADAPTERS + i] = strengths[i];
    }
    return LOAM_OK;
}

loam_status loam_context_set_seq_adapters(loam_context *ctx, int32_t seq, const float *strengths, size_t n, loam_error *err)
{
    if (!ctx || (n && !strengths)) return fail(err, LOAM_E_ARG, "loam_context_set_seq_adapters: %s is NULL", !ctx ? "context" : "strengths");
    if (seq < 0 || (uint32_t)seq >= ctx->p.n_seq_max) return fail(err, LOAM_E_ARG, "sequence %d: the context has %u", seq, ctx->p.n_seq_max);
    if (n != (size_t)ctx->n_adapters) return fail(err, LOAM_E_ARG, "%zu strengths for %d adapters", n, ctx->n_adapters);
    loam_status status = check_strengths(strengths, n, err);
    if (status != LOAM_OK || n == 0) return status;
    memcpy(ctx->strengths + (size_t)seq * LOAM_MAX_ADAPTERS, strengths, n * sizeof *strengths);
    return LOAM_OK;
}

static int32_t lead(const full_batch *b, int token) { return b->seqs[b->first_seq[token]]; }

/* First token of an invocation of the adapter that ends at `token` of the batch; -1: none ends there. */
static int invocation_start(const loam_adapter *a, const full_batch *b, int token)
{
    int at = token;
    for (int left = a->n_invocation; b->token; at--) {
        if (at < 0) return -1;
        if (lead(b, at) != lead(b, token)) continue;
        if (b->token[at] != a->invocation[left - 1]) return -1;
        if (--left == 0) return at;
    }
    return -1;
}

/* An activated adapter works for a sequence from the first token of its invocation on, also in later batches, until the
 * sequence begins anew. */
static void fill_one(loam_context *ctx, int i, int n)
{
    const loam_adapter *a = ctx->adapters[i];
    const full_batch *b = &ctx->batch;
    for (int t = 0; t < b->n_tokens; t++) {
        int32_t seq = lead(b, t);
        bool *on = &ctx->invoked[i][seq];
        float s = ctx->strengths[(size_t)seq * LOAM_MAX_ADAPTERS + (size_t)i];
        if (b->pos[t] == 0) *on = a->n_invocation == 0;
        int start = *on || a->n_invocation == 0 ? t : invocation_start(a, b, t);
        ctx->token_strengths[(size_t)t * (size_t)n + (size_t)i] = start < 0 ? 0.0f : s;
        if (start < 0) continue;
        *on = true;
        for (int j = start; j < t; j++)
            if (lead(b, j) == seq) ctx->token_strengths[(size_t)j * (size_t)n + (size_t)i] = s;
    }
}

void context_fill_strengths(loam_context *ctx)
{
    for (int i = 0; i < ctx->n_adapters; i++) fill_one(ctx, i, ctx->n_adapters);
}

loam_status loam_context_set_control(loam_context *ctx, const float *data, size_t len, int32_t n_embd, int32_t first, int32_t last, loam_error *err)
{
    if (!ctx) return fail(err, LOAM_E_ARG, "loam_context_set_control: context is NULL");
    int n_layer = model_n_layer(ctx->model);
    if (data && n_embd != loam_model_n_embd(ctx->model))
        return fail(err, LOAM_E_ARG, "control vectors of %d values, the model has %d", n_embd, loam_model_n_embd(ctx->model));
    if (data && len < (size_t)n_embd * (size_t)(n_layer - 1))
        return fail(err, LOAM_E_ARG, "control vectors: %zu values for %d blocks of %d", len, n_layer - 1, n_embd);
    weight *w = data ? mem_zalloc_array((size_t)n_layer, sizeof *w) : NULL;
    float *copy = data ? mem_alloc_array((size_t)(n_layer - 1) + 1, (size_t)n_embd * sizeof *copy) : NULL;
    if (data && (!w || !copy)) {
        mem_free(w);
        mem_free(copy);
        return fail_nomem(err, "control vectors", (uint64_t)n_layer * (uint64_t)n_embd * 4);
    }
    if (data) memcpy(copy, data, (size_t)(n_layer - 1) * (size_t)n_embd * sizeof *copy);
    for (int i = 1; data && i < n_layer; i++)
        if (i >= first && i <= last)
            w[i] = (weight){ .name = "control", .type = LOAM_F32, .ne = { n_embd, 1, 1, 1 }, .data = copy + (size_t)(i - 1) * (size_t)n_embd,
                             .row_bytes = (uint64_t)n_embd * 4 };
    context_drop_plans(ctx);
    mem_free(ctx->control);
    mem_free(ctx->control_data);
    ctx->control = w;
    ctx->control_data = copy;
    return LOAM_OK;
}

/* Enough of an adapter's weights to tell it from others of the same shapes. */
static uint64_t adapter_fingerprint(const loam_adapter *a, uint64_t h)
{
    for (int i = 0; i < a->n_pairs; i++) {
        const weight *both[] = { a->pairs[i].a, a->pairs[i].b };
        h = XXH64(&a->pairs[i].scale, sizeof a->pairs[i].scale, h);
        for (int j = 0; j < 2; j++) {
            h = XXH64(both[j]->ne, sizeof both[j]->ne, h);
            h = XXH64(both[j]->data, both[j]->row_bytes, h);
        }
    }
    return h;
}

uint64_t context_fingerprint(const loam_context *ctx, int32_t seq)
{
    uint64_t h = model_fingerprint(ctx->model);
    size_t first = seq < 0 ? 0 : (size_t)seq, end = seq < 0 ? ctx->p.n_seq_max : first + 1;
    for (int i = 0; i < ctx->n_adapters; i++)
        for (size_t q = first; q < end; q++) {
            float s = ctx->strengths[q * LOAM_MAX_ADAPTERS + (size_t)i];
            bool news = q == first || s != ctx->strengths[first * LOAM_MAX_ADAPTERS + (size_t)i];
            if (s != 0.0f && news) h = XXH64(&s, sizeof s, adapter_fingerprint(ctx->adapters[i], h + q - first));
        }
    for (int i = 0; ctx->control && i < model_n_layer(ctx->model); i++)
        if (ctx->control[i].data) h = XXH64(ctx->control[i].data, ctx->control[i].row_bytes, h + (uint64_t)i);
    return h;
}
