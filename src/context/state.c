/* state.c - the state of a context (all sequences, or one) in memory, in a file, through a callback.
 *
 *   "LOAMSTAT"  u32 version  u32 kind (0 all, 1 one sequence)  u64 fingerprint of the model  u64 geometry of the cache
 *   u32 tokens, tokens x i32 (the caller's, may be none)       the memory (memory/dump.h)       u64 XXH64 of all before
 *
 * Little-endian. A state is bound to the model and to the types and widths of the cache, not to its size: restoring into
 * another context works where it fits. The checksum is verified before anything else is looked at; a refused state
 * leaves the context as it was. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <string.h>

#include "base/atomic.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/reader.h"
#include "context/context.h"
#include "memory/dump.h"

#define STATE_VERSION 1
#define STATE_HEAD (8 + 4 + 4 + 8 + 8 + 4)

/* ---- writing ---- */

typedef struct out {
    loam_write_fn write;
    void *user;
    XXH64_state_t hash;
    uint64_t bytes;
} out;

static bool emit(void *user, const void *data, size_t n)
{
    out *o = user;
    XXH64_update(&o->hash, data, n);
    o->bytes += n;
    return o->write(o->user, data, n);
}

static void le(uint8_t *p, uint64_t x, int n)
{
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(x >> 8 * i);
}

static bool valid_seq(const loam_context *ctx, int32_t seq) { return seq == -1 || (seq >= 0 && (uint32_t)seq < ctx->p.n_seq_max); }

loam_status loam_state_write(loam_context *ctx, int32_t seq, const int32_t *tokens, size_t n_tokens, const loam_writer *writer, loam_error *err)
{
    if (!ctx || !writer || !writer->write) return fail(err, LOAM_E_ARG, "loam_state_write: %s is NULL", ctx ? "writer" : "context");
    if (!valid_seq(ctx, seq)) return fail(err, LOAM_E_ARG, "sequence %d: the context has %u", seq, ctx->p.n_seq_max);
    if (context_is_empty(ctx)) return fail(err, LOAM_E_UNSUPPORTED, "state: a context of a vocabulary has none");
    if (n_tokens > LIMIT_CONTEXT || (n_tokens && !tokens)) return fail(err, LOAM_E_ARG, "state: %zu tokens", n_tokens);
    loam_status status = context_apply_shifts(ctx, err);
    if (status != LOAM_OK) return status;
    out o = { .write = writer->write, .user = writer->user };
    XXH64_reset(&o.hash, 0);
    uint8_t head[STATE_HEAD], sum[8], id[4];
    memcpy(head, "LOAMSTAT", 8);
    le(head + 8, STATE_VERSION, 4);
    le(head + 12, seq >= 0, 4);
    le(head + 16, context_fingerprint(ctx, seq), 8);
    le(head + 24, memory_geometry(ctx->mem), 8);
    le(head + 32, n_tokens, 4);
    bool ok = emit(&o, head, sizeof head);
    for (size_t i = 0; i < n_tokens && ok; i++) {
        le(id, (uint32_t)tokens[i], 4);
        ok = emit(&o, id, 4);
    }
    if (ok) status = memory_dump(ctx->mem, seq, emit, &o);
    if (status == LOAM_E_NOMEM) return fail_nomem(err, "a state", o.bytes);
    ok = ok && status == LOAM_OK;
    le(sum, XXH64_digest(&o.hash), 8);
    ok = ok && o.write(o.user, sum, 8);
    return ok ? LOAM_OK : fail(err, LOAM_E_IO, "state: writing stopped after %llu bytes", (unsigned long long)o.bytes);
}

static bool count_bytes(void *user, const void *data, size_t n)
{
    (void)data;
    *(size_t *)user += n;
    return true;
}

size_t loam_state_size(loam_context *ctx, int32_t seq)
{
    size_t n = 0;
    loam_writer w = { count_bytes, &n };
    return loam_state_write(ctx, seq, NULL, 0, &w, NULL) == LOAM_OK ? n : 0;
}

typedef struct buffer {
    uint8_t *data;
    size_t size, used;
} buffer;

static bool into_buffer(void *user, const void *data, size_t n)
{
    buffer *b = user;
    if (n > b->size - b->used) return false;
    memcpy(b->data + b->used, data, n);
    b->used += n;
    return true;
}

loam_status loam_state_save(loam_context *ctx, int32_t seq, void *data, size_t size, size_t *written, loam_error *err)
{
    buffer b = { data, data ? size : 0, 0 };
    loam_writer w = { into_buffer, &b };
    loam_status status = loam_state_write(ctx, seq, NULL, 0, &w, err);
    if (written) *written = status == LOAM_OK ? b.used : 0;
    if (status == LOAM_E_IO) return fail(err, LOAM_E_ARG, "state: %zu bytes are too few, loam_state_size() tells how many", size);
    return status;
}

typedef struct to_file {
    atomic_file *f;
    loam_error *err;
} to_file;

static bool into_file(void *user, const void *data, size_t n)
{
    to_file *t = user;
    return atomic_write(t->f, data, n, t->err) == LOAM_OK;
}

loam_status loam_state_save_file(loam_context *ctx, int32_t seq, const char *path, const int32_t *tokens, size_t n_tokens, loam_error *err)
{
    if (!path) return fail(err, LOAM_E_ARG, "loam_state_save_file: path is NULL");
    loam_error cause = { .code = LOAM_OK };
    to_file t = { NULL, &cause };
    loam_status status = atomic_open(&t.f, path, err);
    if (status != LOAM_OK) return status;
    loam_writer w = { into_file, &t };
    status = loam_state_write(ctx, seq, tokens, n_tokens, &w, err);
    if (status == LOAM_OK) status = atomic_finish(t.f, err);
    if (status == LOAM_OK) status = atomic_commit(t.f, err);
    if (cause.code != LOAM_OK && err) *err = cause;
    atomic_free(t.f);
    return status;
}

/* ---- reading ---- */

static loam_status check_head(const loam_context *ctx, int32_t seq, reader *r, loam_error *err)
{
    const uint8_t *magic = reader_take(r, 8);
    if (!magic || memcmp(magic, "LOAMSTAT", 8) != 0) return fail_at(err, LOAM_E_FORMAT, 0, "state: not a state of Loam");
    uint32_t version = reader_u32(r), kind = reader_u32(r);
    uint64_t model = reader_u64(r), geometry = reader_u64(r);
    if (r->failed) return fail_at(err, LOAM_E_FORMAT, r->pos, "state: cut off");
    if (version != STATE_VERSION) return fail_at(err, LOAM_E_UNSUPPORTED, 8, "state: version %u, this Loam reads %d", version, STATE_VERSION);
    if (r->end < STATE_HEAD + 8) return fail_at(err, LOAM_E_FORMAT, r->end, "state: cut off");
    if (XXH64(r->data, (size_t)r->end - 8, 0) != le64(r->data + r->end - 8))
        return fail_at(err, LOAM_E_FORMAT, r->end - 8, "state: the checksum is wrong: damaged or cut off");
    if (model != context_fingerprint(ctx, seq)) return fail_at(err, LOAM_E_ARG, 16, "state: of another model, or with other adapters or control vectors");
    if (geometry != memory_geometry(ctx->mem))
        return fail_at(err, LOAM_E_ARG, 24, "state: of a context with other cache types or windows");
    if (kind > 1 || (kind == 1) != (seq >= 0))
        return fail_at(err, LOAM_E_ARG, 12, "state: holds %s", kind ? "one sequence: load it into one" : "a whole context: load it with sequence -1");
    r->end -= 8;
    return LOAM_OK;
}

/* tokens (may be NULL) receives at most cap of the stored ids; *n_tokens how many there are. */
static loam_status load(loam_context *ctx, int32_t seq, reader *r, loam_state_tokens *t, loam_error *err)
{
    if (!valid_seq(ctx, seq)) return fail(err, LOAM_E_ARG, "sequence %d: the context has %u", seq, ctx->p.n_seq_max);
    if (context_is_empty(ctx)) return fail(err, LOAM_E_UNSUPPORTED, "state: a context of a vocabulary has none");
    loam_status status = check_head(ctx, seq, r, err);
    if (status != LOAM_OK) return status;
    uint32_t n = reader_u32(r);
    const uint8_t *ids = reader_take(r, (uint64_t)n * 4);
    if (!ids) return fail_at(err, LOAM_E_FORMAT, r->pos, "state: tokens are cut off");
    if (t && n > t->cap) return fail(err, LOAM_E_ARG, "state: holds %u tokens, there is room for %zu", n, t->cap);
    int32_t n_vocab = loam_model_n_vocab(ctx->model);
    for (uint32_t i = 0; i < n; i++)
        if (le32(ids + 4 * (size_t)i) >= (uint32_t)n_vocab) return fail_at(err, LOAM_E_FORMAT, r->pos, "state: token %u is out of range", i);
    status = memory_undump(ctx->mem, seq, r, err);
    if (status != LOAM_OK) return status;
    for (uint32_t i = 0; t && i < n; i++) t->ids[i] = (int32_t)le32(ids + 4 * (size_t)i);
    if (t) t->n = n;
    ctx->n_outputs = ctx->last_n_tokens = 0;
    return LOAM_OK;
}

loam_status loam_state_load(loam_context *ctx, int32_t seq, const void *data, size_t size, loam_error *err)
{
    if (!ctx || !data) return fail(err, LOAM_E_ARG, "loam_state_load: %s is NULL", ctx ? "data" : "context");
    reader r = { .data = data, .end = size };
    return load(ctx, seq, &r, NULL, err);
}

loam_status loam_state_load_file(loam_context *ctx, int32_t seq, const char *path, loam_state_tokens *tokens, loam_error *err)
{
    if (!ctx || !path) return fail(err, LOAM_E_ARG, "loam_state_load_file: %s is NULL", ctx ? "path" : "context");
    os_file f;
    loam_status status = os_file_open(&f, path, true, err);
    if (status != LOAM_OK) return status;
    reader r = { .data = f.data, .end = f.size };
    status = load(ctx, seq, &r, tokens, err);
    os_file_close(&f);
    return status == LOAM_OK ? status : fail_prefix(err, status, "%s", path);
}
