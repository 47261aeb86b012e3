/* replay.c - models with two sets of rotary factors, for short and for long sequences.
 *
 *   rope_short 0    n_short              a sequence takes the short factors while it is no longer than n_short tokens, the
 *   sequence   |======|                  long ones beyond; `far` is said of a sequence that takes the long ones
 *   batch             |====|             this batch crosses: tokens 0 .. n_short are computed again with the long factors
 *
 * Which set a sequence takes depends on its length after the batch alone, so that its logits are those of a cold run, however
 * it was cut into batches and whatever the context was made for. What the cache holds of the other set is computed again in the
 * transaction of the batch, at the positions that it has by then; that needs the ids of the tokens. The same happens the other
 * way round where the end of a long sequence was removed. Refused: what was decoded from rows of floats, what a limited window
 * has given back, two tokens at one position, recurrent states, decoding without a causal mask, adapters with invocation ids. */
#include "context/context.h"

#include "base/mem.h"

/* Sequences may cross together; as many tokens as the cache has. */
int64_t replay_cap(const loam_context *ctx)
{
    if (!replay_can(ctx)) return 0;
    int64_t all = ctx->n_short * (int64_t)ctx->p.n_seq_max;
    return all < (int64_t)ctx->p.n_ctx ? all : (int64_t)ctx->p.n_ctx;
}

int64_t replay_room(const loam_context *ctx)
{
    int64_t cap = replay_cap(ctx);
    return cap < ctx->n_short ? cap : ctx->n_short;
}

loam_status replay_new(loam_context *ctx, loam_error *err)
{
    replay *r = &ctx->replay;
    size_t cap = (size_t)replay_cap(ctx) + 1, n_ubatch = ctx->p.n_ubatch;
    r->cached = mem_alloc_array(cap, sizeof *r->cached);
    r->id = mem_alloc_array(cap, sizeof *r->id);
    r->pos = mem_alloc_array(cap, sizeof *r->pos);
    r->seq = mem_alloc_array(cap, sizeof *r->seq);
    r->strengths = mem_alloc_array(n_ubatch, LOAM_MAX_ADAPTERS * sizeof *r->strengths);
    r->cap = (int)cap - 1;
    bool all = r->cached && r->id && r->pos && r->seq && r->strengths;
    return all ? LOAM_OK : fail_nomem(err, "tokens to compute again", cap * 20);
}

void replay_free(loam_context *ctx)
{
    replay *r = &ctx->replay;
    mem_free(r->cached);
    mem_free(r->id);
    mem_free(r->pos);
    mem_free(r->seq);
    mem_free(r->strengths);
}

uint64_t replay_bytes(const loam_context *ctx)
{
    const replay *r = &ctx->replay;
    return (uint64_t)mem_size(r->cached) + mem_size(r->id) + mem_size(r->pos) + mem_size(r->seq) + mem_size(r->strengths);
}

static loam_status refuse(int32_t seq, const char *why, loam_error *err)
{
    return fail(err, LOAM_E_UNSUPPORTED, "sequence %d changes its rotary factors, but cannot be computed again: %s", seq, why);
}

/* What stands in the way of computing again whatever the tokens are. */
static const char *obstacle(const loam_context *ctx)
{
    if (memory_has_states(ctx->mem)) return "the model has recurrent states";
    if (ctx->p.attention != LOAM_ATTENTION_CAUSAL) return "there is no causal mask";
    for (int i = 0; i < ctx->n_adapters; i++)
        if (ctx->adapters[i]->n_invocation > 0) return "an adapter has invocation ids";
    return NULL;
}

/* All tokens of a sequence are to be computed again. */
static loam_status list_sequence(loam_context *ctx, int32_t seq, loam_error *err)
{
    replay *r = &ctx->replay;
    const char *why = obstacle(ctx);
    if (why) return refuse(seq, why, err);
    int64_t n = memory_list(ctx->mem, seq, r->cached, r->cap - r->n);
    if (n < 0) return refuse(seq, "its window has given tokens back", err);
    if (n > r->cap - r->n)
        return fail(err, LOAM_E_FULL, "sequences change their rotary factors: no room to compute %lld tokens again", (long long)n + r->n);
    int32_t n_vocab = loam_model_n_vocab(ctx->model);
    for (int64_t i = 0; i < n; i++) {
        const memory_cached *t = &r->cached[i];
        if (t->id < 0 || t->id >= n_vocab) return refuse(seq, "a token of it has no id", err);
        if (i > 0 && t->pos == t[-1].pos) return refuse(seq, "two tokens of it have one position", err);
        r->id[r->n] = t->id, r->pos[r->n] = t->pos, r->seq[r->n++] = seq;
    }
    r->again[seq] = n > 0;
    return LOAM_OK;
}

/* Tokens that several sequences get are computed once; without a causal mask a batch is one micro-batch. */
static loam_status check_alike(const loam_context *ctx, loam_error *err)
{
    const full_batch *b = &ctx->batch;
    const replay *r = &ctx->replay;
    bool whole = b->encode || ctx->p.attention != LOAM_ATTENTION_CAUSAL;
    for (int i = 0; i < b->n_tokens; i++) {
        int32_t lead = b->seqs[whole ? 0 : b->first_seq[i]];
        for (int32_t j = b->first_seq[i]; j < b->first_seq[i + 1]; j++)
            if (r->far[b->seqs[j]] != r->far[lead])
                return fail(err, LOAM_E_UNSUPPORTED, "batch: token %d: sequences %d and %d take other rotary factors, short and long ones", i,
                            lead, b->seqs[j]);
    }
    return LOAM_OK;
}

loam_status replay_settle(loam_context *ctx, loam_error *err)
{
    replay *r = &ctx->replay;
    const full_batch *b = &ctx->batch;
    if (!replay_can(ctx)) return LOAM_OK;
    *r = (replay){ .cached = r->cached, .id = r->id, .pos = r->pos, .seq = r->seq, .strengths = r->strengths, .cap = r->cap };
    for (int i = 0; i < b->n_tokens; i++)
        for (int32_t j = b->first_seq[i]; j < b->first_seq[i + 1]; j++) r->far[b->seqs[j]] |= b->pos[i] >= ctx->n_short;
    loam_status status = check_alike(ctx, err);
    for (int32_t j = 0; j < b->first_seq[b->n_tokens] && status == LOAM_OK && !b->encode; j++) {
        int32_t seq = b->seqs[j];
        bool cached = memory_pos_max(ctx->mem, seq) >= 0;
        if (cached && !r->again[seq] && memory_is_far(ctx->mem, seq) != r->far[seq]) status = list_sequence(ctx, seq, err);
    }
    if (status != LOAM_OK) r->n = 0;
    return status;
}

loam_status replay_add(loam_context *ctx)
{
    const replay *r = &ctx->replay;
    loam_status status = LOAM_OK;
    for (uint32_t q = 0; q < ctx->p.n_seq_max; q++)
        if (r->again[q]) memory_restart(ctx->mem, (int)q);
    for (int i = 0; i < r->n && status == LOAM_OK; i++) {
        memory_token t = { r->pos[i], &r->seq[i], 1 };
        status = memory_add(ctx->mem, &t);
        if (status == LOAM_OK) memory_mark(ctx->mem, r->id[i], r->far[r->seq[i]]);
    }
    return status;
}

const float *replay_strengths(loam_context *ctx, int first, int n)
{
    const replay *r = &ctx->replay;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < ctx->n_adapters; i++)
            r->strengths[t * ctx->n_adapters + i] = ctx->strengths[r->seq[first + t] * LOAM_MAX_ADAPTERS + i];
    return ctx->n_adapters ? r->strengths : NULL;
}
