/* pool.c - one result per sequence of a batch, made from the embeddings of its tokens.
 *
 *   embeddings of the batch ── mean, or one chosen row ──► rows [sequences][n_embd] ── classifier or dense layers ──► results
 *
 * A token of several sequences counts for each. Where no weights take part, the rows are the results. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "context/context.h"

loam_status pooling_settle(loam_context *ctx, loam_error *err)
{
    loam_pooling kind = ctx->p.pooling;
    if (kind < LOAM_POOLING_MODEL || kind > LOAM_POOLING_RANK)
        return fail(err, LOAM_E_ARG, "pooling: %d is not a loam_pooling", (int)kind);
    if (kind == LOAM_POOLING_MODEL) kind = loam_model_pooling(ctx->model);
    if (!loam_model_has_decoder(ctx->model)) ctx->p.embeddings = true; /* it gives nothing else */
    ctx->pooling = kind;
    ctx->n_pooled = kind == LOAM_POOLING_NONE ? 0 : model_pooled_width(ctx->model, kind);
    if (kind == LOAM_POOLING_RANK && !ctx->n_pooled)
        return fail(err, LOAM_E_ARG, "pooling: rank needs a classifier, and architecture '%s' has none here",
                    loam_model_architecture(ctx->model));
    if (kind == LOAM_POOLING_NONE && model_pooled_width(ctx->model, kind) != loam_model_n_embd(ctx->model))
        return fail(err, LOAM_E_UNSUPPORTED, "pooling: none, where the dense layers give %d values a token in place of %d",
                    model_pooled_width(ctx->model, kind), loam_model_n_embd(ctx->model));
    return LOAM_OK;
}

bool pooling_on(const loam_context *ctx) { return ctx->p.embeddings && ctx->pooling != LOAM_POOLING_NONE; }

loam_status pooling_fit(loam_context *ctx, loam_error *err)
{
    size_t n = ctx->p.n_seq_max, n_embd = (size_t)loam_model_n_embd(ctx->model);
    if (ctx->rows && ctx->pooled && ctx->row_of_seq) return LOAM_OK;
    if (!ctx->rows) ctx->rows = mem_alloc_array(n, n_embd * sizeof *ctx->rows);
    if (!ctx->pooled) ctx->pooled = mem_alloc_array(n, (size_t)ctx->n_pooled * sizeof *ctx->pooled);
    if (!ctx->row_of_seq) ctx->row_of_seq = mem_alloc_array(n, sizeof *ctx->row_of_seq);
    return ctx->rows && ctx->pooled && ctx->row_of_seq ? LOAM_OK : fail_nomem(err, "pooled embeddings", n * n_embd * 8);
}

/* The rows of the sequences in the batch get numbers, ascending by sequence. */
static void number_rows(loam_context *ctx)
{
    const full_batch *b = &ctx->batch;
    for (uint32_t q = 0; q < ctx->p.n_seq_max; q++) ctx->row_of_seq[q] = -1;
    for (int32_t j = 0; j < b->first_seq[b->n_tokens]; j++) ctx->row_of_seq[b->seqs[j]] = 0;
    ctx->n_rows = 0;
    for (uint32_t q = 0; q < ctx->p.n_seq_max; q++)
        if (ctx->row_of_seq[q] == 0) ctx->row_of_seq[q] = ctx->n_rows++;
}

static bool belongs(const full_batch *b, int token, int32_t seq)
{
    for (int32_t j = b->first_seq[token]; j < b->first_seq[token + 1]; j++)
        if (b->seqs[j] == seq) return true;
    return false;
}

static void mean_row(const loam_context *ctx, int32_t seq, float *out)
{
    size_t n_embd = (size_t)loam_model_n_embd(ctx->model);
    int n = 0;
    memset(out, 0, n_embd * sizeof *out);
    for (int i = 0; i < ctx->batch.n_tokens; i++) {
        if (!belongs(&ctx->batch, i, seq)) continue;
        const float *row = ctx->embeddings + (size_t)i * n_embd;
        for (size_t d = 0; d < n_embd; d++) out[d] += row[d];
        n++;
    }
    for (size_t d = 0; d < n_embd; d++) out[d] /= (float)n;
}

/* The row of the smallest position (the first such token), or of the largest (the last such token). */
static void one_row(const loam_context *ctx, int32_t seq, bool largest, float *out)
{
    const full_batch *b = &ctx->batch;
    size_t n_embd = (size_t)loam_model_n_embd(ctx->model);
    int best = -1;
    for (int i = 0; i < b->n_tokens; i++)
        if (belongs(b, i, seq) && (best < 0 || (largest ? b->pos[i] >= b->pos[best] : b->pos[i] < b->pos[best]))) best = i;
    memcpy(out, ctx->embeddings + (size_t)best * n_embd, n_embd * sizeof *out);
}

static void softmax(float *x, int n)
{
    float most = x[0];
    double sum = 0;
    for (int i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < n; i++) sum += x[i] = (float)mathd_exp((double)x[i] - (double)most);
    for (int i = 0; i < n; i++) x[i] = (float)(x[i] / sum);
}

static loam_status through_weights(loam_context *ctx, loam_error *err)
{
    plan *p;
    loam_status status = context_plan(ctx, (plan_shape){ PLAN_POOLED, ctx->n_rows, ctx->n_rows, true }, &p, err);
    if (status != LOAM_OK) return status;
    plan_run run = context_run(ctx, p, ctx->n_rows);
    run.inputs[INPUT_EMBD] = ctx->rows;
    run.outputs[OUTPUT_EMBD] = ctx->pooled;
    status = context_execute(ctx, &run);
    if (status != LOAM_OK) return fail(err, status, "the abort callback stopped the batch");
    for (int i = 0; i < ctx->n_rows && ctx->pooling == LOAM_POOLING_RANK && model_rank_softmax(ctx->model); i++)
        softmax(ctx->pooled + (size_t)i * (size_t)ctx->n_pooled, ctx->n_pooled);
    return LOAM_OK;
}

loam_status pooling_run(loam_context *ctx, loam_error *err)
{
    size_t n_embd = (size_t)loam_model_n_embd(ctx->model);
    loam_pooling kind = ctx->pooling == LOAM_POOLING_RANK ? model_rank_row(ctx->model) : ctx->pooling;
    number_rows(ctx);
    for (uint32_t q = 0; q < ctx->p.n_seq_max; q++) {
        if (ctx->row_of_seq[q] < 0) continue;
        float *out = ctx->rows + (size_t)ctx->row_of_seq[q] * n_embd;
        if (kind == LOAM_POOLING_MEAN) mean_row(ctx, (int32_t)q, out);
        else one_row(ctx, (int32_t)q, kind == LOAM_POOLING_LAST, out);
    }
    if (model_pools_with_weights(ctx->model, ctx->pooling)) {
        loam_status status = through_weights(ctx, err);
        if (status != LOAM_OK) ctx->n_rows = 0;
        return status;
    }
    memcpy(ctx->pooled, ctx->rows, (size_t)ctx->n_rows * n_embd * sizeof *ctx->rows);
    return LOAM_OK;
}

/* ---- results ---- */

const float *loam_embeddings_seq(const loam_context *ctx, int32_t seq)
{
    if (!ctx || seq < 0 || (uint32_t)seq >= ctx->p.n_seq_max || ctx->n_rows == 0 || ctx->row_of_seq[seq] < 0) return NULL;
    return ctx->pooled + (size_t)ctx->row_of_seq[seq] * (size_t)ctx->n_pooled;
}

int32_t loam_n_pooled(const loam_context *ctx) { return ctx ? ctx->n_pooled : 0; }
loam_pooling loam_context_pooling(const loam_context *ctx) { return ctx->pooling; }
