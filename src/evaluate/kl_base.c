/* kl_base.c - base files of comparisons.
 *
 *   "_logits_" | i32 n_ctx | i32 n_vocab | i32 n_chunks | i32 tokens [n_chunks * n_ctx]
 *   per chunk and scored token: f32 scale | f32 lowest | u16 codes [n_vocab, rounded up to even]    ln p = scale * code + lowest
 *
 * Logits more than 16 below the largest have code 0. Files of the field's perplexity tool are the same. Refused: a size that
 * is not what the head says, tokens outside the vocabulary. */
#include <math.h>
#include <string.h>

#include "base/atomic.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/reader.h"
#include "evaluate/kl.h"

#define MAGIC "_logits_"
#define RANGE 16.0f

struct loam_kl_writer {
    atomic_file *file;
    loam_kl_text text;     /* without tokens */
    int64_t row, rows;
    uint8_t *bytes;        /* of a row */
    size_t row_bytes;
};

struct loam_kl_base {
    os_file file;          /* empty where the bytes are the caller's */
    loam_kl_text text;
    int32_t *tokens;
    const uint8_t *rows;
    int64_t n_rows;
    size_t row_bytes;
};

int32_t loam_kl_rows(int32_t n_ctx) { return n_ctx < 2 ? 0 : n_ctx - 1 - n_ctx / 2; }

static size_t row_bytes(int32_t n_vocab) { return 8 + 2 * (((size_t)n_vocab + 1) & ~(size_t)1); }

static loam_status check_text(const loam_kl_text *t, loam_status status, loam_error *err)
{
    if (t->n_ctx < 3 || t->n_ctx > LIMIT_CONTEXT || t->n_vocab < 1 || t->n_vocab > (int32_t)LIMIT_VOCAB || t->n_chunks < 1 ||
        t->n_chunks > INT32_MAX / t->n_ctx)
        return fail(err, status, "%d chunks of %d tokens of a vocabulary of %d", t->n_chunks, t->n_ctx, t->n_vocab);
    for (int32_t i = 0; t->tokens && i < t->n_chunks * t->n_ctx; i++)
        if (t->tokens[i] < 0 || t->tokens[i] >= t->n_vocab)
            return fail(err, status, "token %d of the text is %d, the vocabulary has %d", i, t->tokens[i], t->n_vocab);
    return LOAM_OK;
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static void put_float(uint8_t *p, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put32(p, bits);
}

/* ---- writing ---- */

static loam_status write_head(loam_kl_writer *w, const loam_kl_text *t, loam_error *err)
{
    uint8_t head[20];
    memcpy(head, MAGIC, 8);
    put32(head + 8, (uint32_t)t->n_ctx);
    put32(head + 12, (uint32_t)t->n_vocab);
    put32(head + 16, (uint32_t)t->n_chunks);
    loam_status status = atomic_write(w->file, head, sizeof head, err);
    for (int32_t i = 0; i < t->n_chunks * t->n_ctx && status == LOAM_OK; i++) {
        put32(head, (uint32_t)t->tokens[i]);
        status = atomic_write(w->file, head, 4, err);
    }
    return status;
}

loam_status loam_kl_writer_open(loam_kl_writer **out, const char *path, const loam_kl_text *text, loam_error *err)
{
    *out = NULL;
    if (!text->tokens) return fail(err, LOAM_E_ARG, "a base file needs the tokens of its text");
    loam_status status = check_text(text, LOAM_E_ARG, err);
    if (status != LOAM_OK) return status;
    loam_kl_writer *w = mem_zalloc(sizeof *w);
    if (w) w->bytes = mem_zalloc(w->row_bytes = row_bytes(text->n_vocab));
    if (!w || !w->bytes) status = fail_nomem(err, "a base file", row_bytes(text->n_vocab));
    if (status == LOAM_OK) {
        w->text = *text;
        w->rows = (int64_t)text->n_chunks * loam_kl_rows(text->n_ctx);
        status = atomic_open(&w->file, path, err);
    }
    if (status == LOAM_OK) status = write_head(w, text, err);
    if (status != LOAM_OK) {
        loam_kl_writer_cancel(w);
        return status;
    }
    *out = w;
    return LOAM_OK;
}

loam_status loam_kl_writer_put(loam_kl_writer *w, const float *logits, loam_error *err)
{
    int32_t n = w->text.n_vocab;
    float least = logits[0], most;
    double log_sum = kl_log_sum(logits, n, &most);
    if (w->row == w->rows) return fail(err, LOAM_E_ARG, "the base file has all its %lld rows", (long long)w->rows);
    for (int32_t i = 1; i < n; i++) least = logits[i] < least ? logits[i] : least;
    if (!isfinite(log_sum)) return fail(err, LOAM_E_NUMERIC, "the model's logits are not finite");
    float low = least > most - RANGE ? least : most - RANGE, scale = (most - low) / 65535.0f, inverse = scale > 0 ? 1.0f / scale : 0;
    put_float(w->bytes, scale);
    put_float(w->bytes + 4, (float)((double)low - log_sum));
    for (int32_t i = 0; i < n; i++) {
        float code = logits[i] > low ? rintf(inverse * (logits[i] - low)) : 0;
        uint16_t bits = (uint16_t)(code > 65535.0f ? 65535.0f : code);
        w->bytes[8 + 2 * (size_t)i] = (uint8_t)bits;
        w->bytes[9 + 2 * (size_t)i] = (uint8_t)(bits >> 8);
    }
    loam_status status = atomic_write(w->file, w->bytes, w->row_bytes, err);
    if (status == LOAM_OK) w->row++;
    return status;
}

loam_status loam_kl_writer_close(loam_kl_writer *w, loam_error *err)
{
    loam_status status = LOAM_OK;
    if (w->row != w->rows)
        status = fail(err, LOAM_E_ARG, "the base file has %lld of its %lld rows", (long long)w->row, (long long)w->rows);
    if (status == LOAM_OK) status = atomic_finish(w->file, err);
    if (status == LOAM_OK) status = atomic_commit(w->file, err);
    loam_kl_writer_cancel(w);
    return status;
}

void loam_kl_writer_cancel(loam_kl_writer *w)
{
    if (!w) return;
    atomic_free(w->file);
    mem_free(w->bytes);
    mem_free(w);
}

/* ---- reading ---- */

static loam_status read_base(loam_kl_base *b, const void *data, uint64_t size, loam_error *err)
{
    reader r = { .data = data, .end = size };
    const uint8_t *magic = reader_take(&r, 8);
    if (!magic || memcmp(magic, MAGIC, 8) != 0) return fail(err, LOAM_E_FORMAT, "this is no base file of a comparison");
    loam_kl_text t = { (int32_t)reader_u32(&r), (int32_t)reader_u32(&r), (int32_t)reader_u32(&r), NULL };
    loam_status status = check_text(&t, LOAM_E_FORMAT, err);
    if (status != LOAM_OK) return status;
    size_t n = (size_t)t.n_chunks * (size_t)t.n_ctx;
    const uint8_t *tokens = reader_take(&r, 4 * (uint64_t)n);
    b->n_rows = (int64_t)t.n_chunks * loam_kl_rows(t.n_ctx);
    b->row_bytes = row_bytes(t.n_vocab);
    if (!tokens || reader_left(&r) / b->row_bytes != (uint64_t)b->n_rows || reader_left(&r) % b->row_bytes)
        return fail_at(err, LOAM_E_FORMAT, r.pos, "%llu bytes of rows where %lld rows of %zu are expected: cut off, or not a base file",
                       (unsigned long long)reader_left(&r), (long long)b->n_rows, b->row_bytes);
    b->rows = r.data + r.pos;
    b->tokens = mem_alloc_array(n, sizeof *b->tokens);
    if (!b->tokens) return fail_nomem(err, "the text of a base file", n * sizeof *b->tokens);
    for (size_t i = 0; i < n; i++) b->tokens[i] = (int32_t)le32(tokens + 4 * i);
    t.tokens = b->tokens;
    b->text = t;
    return check_text(&t, LOAM_E_FORMAT, err);
}

loam_status loam_kl_base_open_memory(loam_kl_base **out, const void *data, size_t size, loam_error *err)
{
    *out = NULL;
    loam_kl_base *b = mem_zalloc(sizeof *b);
    if (!b) return fail_nomem(err, "a base file", sizeof *b);
    loam_status status = read_base(b, data, size, err);
    if (status == LOAM_OK) *out = b;
    else loam_kl_base_free(b);
    return status;
}

loam_status loam_kl_base_open(loam_kl_base **out, const char *path, loam_error *err)
{
    os_file f;
    *out = NULL;
    loam_status status = os_file_open(&f, path, true, err);
    if (status != LOAM_OK) return status;
    status = loam_kl_base_open_memory(out, f.data, (size_t)f.size, err);
    if (status != LOAM_OK) {
        os_file_close(&f);
        return fail_prefix(err, status, "%s", path);
    }
    (*out)->file = f;
    return LOAM_OK;
}

void loam_kl_base_free(loam_kl_base *b)
{
    if (!b) return;
    if (b->file.data) os_file_close(&b->file);
    mem_free(b->tokens);
    mem_free(b);
}

loam_kl_text loam_kl_base_text(const loam_kl_base *b) { return b->text; }

bool loam_kl_base_row(const loam_kl_base *b, int64_t row, float *log_p)
{
    if (row < 0 || row >= b->n_rows) return false;
    const uint8_t *p = b->rows + (size_t)row * b->row_bytes;
    float scale = lef32(p), low = lef32(p + 4);
    for (int32_t i = 0; i < b->text.n_vocab; i++) log_p[i] = scale * (float)le16(p + 8 + 2 * (size_t)i) + low;
    return true;
}
