/* batch.c - fills in the defaults of a batch and checks every field of every token before anything changes. */
#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "context/context.h"

static loam_status check_shape(const loam_context *ctx, const loam_batch *in, bool encode, loam_error *err)
{
    if (in->n_tokens <= 0) return fail(err, LOAM_E_ARG, "batch: n_tokens is %d", in->n_tokens);
    if ((uint32_t)in->n_tokens > ctx->p.n_batch)
        return fail(err, LOAM_E_ARG, "batch: %d tokens, the context takes %u at once (n_batch)", in->n_tokens, ctx->p.n_batch);
    if (!in->token == !in->embd) return fail(err, LOAM_E_ARG, "batch: %s", in->token ? "both token and embd are given" : "neither token nor embd is given");
    int32_t n_vocab = loam_model_n_vocab(ctx->model);
    for (int i = 0; in->token && i < in->n_tokens; i++)
        if (in->token[i] < 0 || in->token[i] >= n_vocab)
            return fail(err, LOAM_E_ARG, "batch: token %d is %d, the vocabulary has %d", i, in->token[i], n_vocab);
    if ((encode || ctx->p.attention != LOAM_ATTENTION_CAUSAL) && (uint32_t)in->n_tokens > ctx->p.n_ubatch)
        return fail(err, LOAM_E_ARG, "batch: %d tokens without a causal mask, at most n_ubatch %u", in->n_tokens, ctx->p.n_ubatch);
    return LOAM_OK;
}

static loam_status fill_sequences(loam_context *ctx, const loam_batch *in, loam_error *err)
{
    full_batch *b = &ctx->batch;
    int32_t used = 0;
    for (int i = 0; i < in->n_tokens; i++) {
        int n = in->n_seq_id ? in->n_seq_id[i] : 1;
        if (n < 1 || (uint32_t)n > ctx->p.n_seq_max)
            return fail(err, LOAM_E_ARG, "batch: token %d belongs to %d sequences, the context has %u", i, n, ctx->p.n_seq_max);
        if (!mem_grow(&b->seqs, &b->cap_seqs, (size_t)used + (size_t)n, sizeof *b->seqs, SIZE_MAX / sizeof *b->seqs))
            return fail_nomem(err, "a batch", (uint64_t)used * 4);
        b->first_seq[i] = used;
        for (int j = 0; j < n; j++) {
            int32_t q = in->seq_id && in->seq_id[i] ? in->seq_id[i][j] : 0;
            if (q < 0 || (uint32_t)q >= ctx->p.n_seq_max)
                return fail(err, LOAM_E_ARG, "batch: token %d has sequence %d, the context has %u", i, q, ctx->p.n_seq_max);
            for (int k = 0; k < j; k++)
                if (b->seqs[used - j + k] == q) return fail(err, LOAM_E_ARG, "batch: token %d names sequence %d twice", i, q);
            b->seqs[used++] = q;
        }
    }
    b->first_seq[in->n_tokens] = used;
    return LOAM_OK;
}

/* Per sequence: positions continue its memory, without gaps, not falling. */
typedef struct seen {
    bool known;
    int32_t stored;  /* largest position in memory, -1: none */
    int32_t first;   /* first position in the batch, -1: none yet */
    int32_t last;
} seen;

static loam_status check_position(seen *s, int i, int32_t q, int32_t pos, loam_error *err)
{
    if (s->first < 0) {
        if (s->stored >= 0 && pos != s->stored + 1)
            return fail(err, LOAM_E_ARG, "batch: token %d has position %d, sequence %d continues at %d", i, pos, q, s->stored + 1);
        s->first = pos;
    } else if (pos < s->last) {
        return fail(err, LOAM_E_ARG, "batch: token %d has position %d after %d of sequence %d", i, pos, s->last, q);
    } else if (pos > s->last + 1) {
        return fail(err, LOAM_E_ARG, "batch: token %d has position %d, sequence %d is at %d: a gap", i, pos, q, s->last);
    }
    s->last = pos;
    return LOAM_OK;
}

static loam_status fill_positions(loam_context *ctx, const loam_batch *in, loam_error *err)
{
    full_batch *b = &ctx->batch;
    seen all[LIMIT_SEQUENCES];
    for (uint32_t q = 0; q < ctx->p.n_seq_max; q++) all[q].known = false;
    for (int i = 0; i < in->n_tokens; i++) {
        int32_t lead = b->seqs[b->first_seq[i]];
        for (int32_t j = b->first_seq[i]; j < b->first_seq[i + 1]; j++) {
            int32_t q = b->seqs[j];
            if (all[q].known) continue;
            all[q] = (seen){ .known = true, .stored = b->encode ? -1 : memory_pos_max(ctx->mem, q), .first = -1 };
        }
        const seen *s = &all[lead];
        int32_t next = s->first >= 0 ? s->last + 1 : s->stored + 1;
        b->pos[i] = in->pos ? in->pos[i] : next;
        if (b->pos[i] < 0 || b->pos[i] >= model_position_limit(ctx->model)) return fail(err, LOAM_E_ARG, "batch: token %d has position %d", i, b->pos[i]);
        for (int32_t j = b->first_seq[i]; j < b->first_seq[i + 1]; j++) {
            int32_t q = b->seqs[j];
            if (q != lead && all[q].first < 0 && all[lead].first < 0 && !b->encode && !memory_same_ends(ctx->mem, lead, q))
                return fail(err, LOAM_E_ARG, "batch: token %d joins sequences %d and %d, which hold different positions", i, lead, q);
        }
        for (int32_t j = b->first_seq[i]; j < b->first_seq[i + 1]; j++) {
            loam_status status = check_position(&all[b->seqs[j]], i, b->seqs[j], b->pos[i], err);
            if (status != LOAM_OK) return status;
        }
    }
    return LOAM_OK;
}

/* Cross attention needs something to read. */
static loam_status check_encoded(const loam_context *ctx, const loam_batch *in, loam_error *err)
{
    const full_batch *b = &ctx->batch;
    for (int i = 0; i < in->n_tokens; i++) {
        int32_t q = b->seqs[b->first_seq[i]];
        if (!memory_encoded(ctx->mem, q))
            return fail(err, LOAM_E_ARG, "batch: token %d decodes sequence %d, for which nothing was encoded", i, q);
    }
    return LOAM_OK;
}

loam_status batch_fill(loam_context *ctx, const loam_batch *in, bool encode, loam_error *err)
{
    full_batch *b = &ctx->batch;
    b->encode = encode;
    loam_status status = check_shape(ctx, in, encode, err);
    if (status == LOAM_OK) status = fill_sequences(ctx, in, err);
    if (status == LOAM_OK) status = fill_positions(ctx, in, err);
    if (status == LOAM_OK && !encode && model_has_cross(ctx->model)) status = check_encoded(ctx, in, err);
    if (status != LOAM_OK) return status;
    b->n_tokens = in->n_tokens;
    b->token = in->token;
    b->embd = in->embd;
    b->n_outputs = 0;
    for (int i = 0; i < in->n_tokens; i++) {
        b->output[i] = encode || pooling_on(ctx) || (in->logits ? in->logits[i] != 0 : i == in->n_tokens - 1);
        b->n_outputs += b->output[i];
    }
    return LOAM_OK;
}
