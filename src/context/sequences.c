/* sequences.c - the public operations on sequences: they check their arguments, memory.h does the work. */
#include <limits.h>

#include "context/context.h"

static bool valid(const loam_context *ctx, int32_t seq) { return ctx && seq >= 0 && (uint32_t)seq < ctx->p.n_seq_max; }

static int32_t low(int32_t p0) { return p0 < 0 ? 0 : p0; }
static int32_t high(int32_t p1) { return p1 < 0 ? INT32_MAX : p1; }

bool loam_memory_seq_rm(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1)
{
    if (ctx && seq == -1 && !memory_has_states(ctx->mem)) {
        bool all = true;
        for (uint32_t q = 0; q < ctx->p.n_seq_max; q++) all = memory_seq_rm(ctx->mem, (int)q, low(p0), high(p1)) && all;
        return all;
    }
    return valid(ctx, seq) && memory_seq_rm(ctx->mem, seq, low(p0), high(p1));
}

static loam_status bad_sequence(const loam_context *ctx, int32_t seq, loam_error *err)
{
    return fail(err, LOAM_E_ARG, "sequence %d: the context has %u", seq, ctx ? ctx->p.n_seq_max : 0);
}

loam_status loam_memory_seq_cp(loam_context *ctx, int32_t src, int32_t dst, int32_t p0, int32_t p1, loam_error *err)
{
    if (!valid(ctx, src) || !valid(ctx, dst)) return bad_sequence(ctx, valid(ctx, src) ? dst : src, err);
    loam_status status = memory_seq_cp(ctx->mem, src, dst, low(p0), high(p1));
    return status == LOAM_OK ? status : fail(err, status, "copying sequence %d to %d: %s", src, dst, loam_status_text(status));
}

bool loam_memory_seq_keep(loam_context *ctx, int32_t seq)
{
    if (!valid(ctx, seq)) return false;
    memory_seq_keep(ctx->mem, seq);
    return true;
}

static loam_status move(loam_context *ctx, int32_t seq, const int32_t range_[2], int32_t add, int32_t div, loam_error *err)
{
    if (!valid(ctx, seq)) return bad_sequence(ctx, seq, err);
    if (!loam_memory_can_shift(ctx)) return fail(err, LOAM_E_UNSUPPORTED, "keys of this model cannot be turned to other positions");
    if (div < 1) return fail(err, LOAM_E_ARG, "positions divided by %d", div);
    int32_t to[2] = { low(range_[0]), high(range_[1]) };
    if (to[0] >= to[1] || (add == 0 && div == 1)) return LOAM_OK;
    loam_status status = memory_seq_move(ctx->mem, seq, to, add, div);
    if (status == LOAM_E_UNSUPPORTED) return fail(err, status, "sequence %d: tokens that its window would need again are gone", seq);
    return status == LOAM_OK ? status : fail(err, status, "moving sequence %d: %s", seq, loam_status_text(status));
}

loam_status loam_memory_seq_add(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1, int32_t delta, loam_error *err)
{
    return move(ctx, seq, (int32_t[]){ p0, p1 }, delta, 1, err);
}

loam_status loam_memory_seq_div(loam_context *ctx, int32_t seq, int32_t p0, int32_t p1, int32_t d, loam_error *err)
{
    return move(ctx, seq, (int32_t[]){ p0, p1 }, 0, d, err);
}

int32_t loam_memory_seq_pos_min(const loam_context *ctx, int32_t seq) { return valid(ctx, seq) ? memory_pos_min(ctx->mem, seq) : -1; }
int32_t loam_memory_seq_pos_max(const loam_context *ctx, int32_t seq) { return valid(ctx, seq) ? memory_pos_max(ctx->mem, seq) : -1; }

void loam_memory_clear(loam_context *ctx)
{
    if (ctx) memory_clear(ctx->mem);
}

bool loam_memory_can_shift(const loam_context *ctx) { return ctx && !context_is_empty(ctx) && model_can_shift(ctx->model); }

int64_t loam_memory_n_tokens(const loam_context *ctx) { return ctx ? memory_n_tokens(ctx->mem) : 0; }
