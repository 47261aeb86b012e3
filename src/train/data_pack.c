/* data_pack.c - pieces of documents are laid into rows.
 *
 * About DATA_POOL pieces wait. A row begins with the one that has waited longest; then come, as long as any fit into what is
 * left of the row, the two or the one that fill it best. The rest is padding, about one percent. Whole documents stay whole, and where a document's
 * last token is known its label is, too: the token that ends a document is a label only, never an input. */
#include <string.h>

#include "train/data.h"

/* Ends a batch: pieces that were laid into its rows leave the pool, or on failure wait again. */
static void settle(loam_data *d, bool done)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_pool; i++) {
        data_piece *p = &d->pool[i];
        if (done && p->laid) {
            mem_free(p->ids);
            continue;
        }
        p->laid = false;
        d->pool[n++] = *p;
    }
    d->n_pool = n;
    d->n_laid = 0;
}

void data_pool_clear(loam_data *d)
{
    while (d->n_pool) mem_free(d->pool[--d->n_pool].ids);
    d->n_laid = 0;
}

static size_t piece_bytes(int32_t n) { return (size_t)n * (2 * sizeof(int32_t) + 1); }
static const int32_t *piece_labels(const data_piece *p) { return p->ids + p->n; }
static const uint8_t *piece_mask(const data_piece *p) { return (const uint8_t *)(p->ids + 2 * (size_t)p->n); }

/* Tokens from .. from + n - 1 of the document in d->scratch, with the labels behind them. */
static loam_status push_piece(loam_data *d, int64_t doc, int32_t from, int32_t n, loam_error *err)
{
    if (!mem_grow(&d->pool, &d->pool_cap, d->n_pool + 1, sizeof *d->pool, SIZE_MAX / 64)) return fail_nomem(err, "pieces of documents", 0);
    data_piece p = { doc, from, n, false, mem_alloc(piece_bytes(n)) };
    if (!p.ids) return fail_nomem(err, "a piece of a document", piece_bytes(n));
    memcpy(p.ids, d->scratch.ids + from, (size_t)n * sizeof *p.ids);
    memcpy(p.ids + n, d->scratch.ids + from + 1, (size_t)n * sizeof *p.ids);
    memcpy(p.ids + 2 * (size_t)n, d->scratch.mask + from + 1, (size_t)n);
    d->pool[d->n_pool++] = p;
    return LOAM_OK;
}

/* The document in d->scratch, cut into pieces; all of them or none. */
static loam_status push_document(loam_data *d, int64_t doc, loam_error *err)
{
    int64_t n = (int64_t)d->scratch.n - 1;
    size_t before = d->n_pool;
    char name[256];
    if (n > d->p.n_ctx && d->p.too_long == LOAM_LONG_REFUSE) {
        data_doc_name(d, doc, name, sizeof name);
        return fail(err, LOAM_E_FORMAT, "%s: a document of %lld tokens is longer than the context of %d", name, (long long)n, d->p.n_ctx);
    }
    if (n > INT32_MAX / 2) return fail(err, LOAM_E_FORMAT, "a document has more than a billion tokens");
    if (d->p.too_long == LOAM_LONG_TRUNCATE && n > d->p.n_ctx) n = d->p.n_ctx;
    loam_status s = LOAM_OK;
    for (int64_t from = 0; from < n && s == LOAM_OK; from += d->p.n_ctx)
        s = push_piece(d, doc, (int32_t)from, (int32_t)(n - from < d->p.n_ctx ? n - from : d->p.n_ctx), err);
    while (s != LOAM_OK && d->n_pool > before) mem_free(d->pool[--d->n_pool].ids);
    return s;
}

/* Lets pieces wait until there are enough, or no document is left. */
static loam_status refill(loam_data *d, loam_error *err)
{
    int64_t in_vain = 0;
    while (d->n_pool - d->n_laid < DATA_POOL) {
        if (d->cursor == d->n_mine) {
            if (!d->p.endless) return LOAM_OK;
            d->epoch++;
            d->cursor = 0;
        }
        size_t before = d->n_pool;
        int64_t doc = data_doc_at(d, d->epoch, d->cursor);
        loam_status s = data_encode(d, doc, err);
        if (s == LOAM_OK) s = push_document(d, doc, err);
        if (s != LOAM_OK) return s;
        d->cursor++;
        in_vain = d->n_pool > before ? 0 : in_vain + 1;
        if (d->p.endless && in_vain > 2 * d->n_mine)
            return fail(err, LOAM_E_FORMAT, "%s: no document has two tokens", d->files[0].path);
    }
    return LOAM_OK;
}

/* What goes into a row next: for an empty one the piece that has waited longest; then the two pieces, or the one, that fill it
 * best. n_pool for "none". */
typedef struct choice {
    size_t first, second;
} choice;

static choice choose(const loam_data *d, int32_t room)
{
    choice best = { d->n_pool, d->n_pool };
    int32_t most = 0;
    for (size_t i = 0; i < d->n_pool; i++) {
        int32_t n = d->pool[i].n;
        if (d->pool[i].laid || n > room) continue;
        if (room == d->p.n_ctx) return (choice){ i, d->n_pool };
        if (n > most) most = n, best = (choice){ i, d->n_pool };
        for (size_t k = i + 1; k < d->n_pool; k++) {
            int32_t both = n + d->pool[k].n;
            if (!d->pool[k].laid && both <= room && both > most) most = both, best = (choice){ i, k };
        }
    }
    return best;
}

static void lay(loam_data_rows *r, size_t at, const data_piece *p, int32_t document)
{
    memcpy(r->ids + at, p->ids, (size_t)p->n * sizeof *p->ids);
    memcpy(r->labels + at, piece_labels(p), (size_t)p->n * sizeof *p->ids);
    memcpy(r->mask + at, piece_mask(p), (size_t)p->n);
    for (int32_t i = 0; i < p->n; i++) {
        r->documents[at + (size_t)i] = document;
        r->positions[at + (size_t)i] = i;
        r->n_labels += piece_mask(p)[i];
    }
    r->n_tokens += p->n;
}

static void pad(loam_data_rows *r, size_t at, int32_t n, int32_t document)
{
    for (int32_t i = 0; i < n; i++) {
        r->ids[at + (size_t)i] = 0;
        r->labels[at + (size_t)i] = -1;
        r->mask[at + (size_t)i] = 0;
        r->documents[at + (size_t)i] = document;
        r->positions[at + (size_t)i] = i;
    }
}

static void take(loam_data *d, size_t i, size_t at, int32_t *used, int32_t *document)
{
    if (i == d->n_pool) return;
    lay(&d->rows, at + (size_t)*used, &d->pool[i], (*document)++);
    *used += d->pool[i].n;
    d->pool[i].laid = true;
    d->n_laid++;
}

static loam_status fill_row(loam_data *d, int32_t row, int32_t *document, loam_error *err)
{
    int32_t used = 0, n_ctx = d->p.n_ctx;
    size_t at = (size_t)row * (size_t)n_ctx;
    for (;;) {
        loam_status s = refill(d, err);
        if (s != LOAM_OK) return s;
        choice c = choose(d, n_ctx - used);
        if (c.first == d->n_pool) break;
        take(d, c.first, at, &used, document);
        take(d, c.second, at, &used, document);
    }
    if (used && used < n_ctx) pad(&d->rows, at + (size_t)used, n_ctx - used, (*document)++);
    d->rows.n_rows += used > 0;
    return LOAM_OK;
}

static loam_status make_room(loam_data *d, int32_t n_rows, loam_error *err)
{
    size_t n = (size_t)n_rows * (size_t)d->p.n_ctx;
    loam_data_rows *r = &d->rows;
    if (n > d->rows_cap) {
        int32_t *block = mem_alloc_array(n, 4 * sizeof(int32_t) + 1);
        if (!block) return fail_nomem(err, "rows of tokens", n * 17);
        mem_free(r->ids);
        r->ids = block;
        d->rows_cap = n;
    }
    r->labels = r->ids + d->rows_cap;
    r->documents = r->labels + d->rows_cap;
    r->positions = r->documents + d->rows_cap;
    r->mask = (uint8_t *)(r->positions + d->rows_cap);
    r->n_ctx = d->p.n_ctx;
    r->n_rows = 0;
    r->n_tokens = r->n_labels = 0;
    return LOAM_OK;
}

loam_status loam_data_next(loam_data *d, int32_t n_rows, loam_data_rows *rows, loam_error *err)
{
    if (n_rows < 1 || (int64_t)n_rows * d->p.n_ctx > INT32_MAX / 2) return fail(err, LOAM_E_ARG, "%d rows of %d tokens", n_rows, d->p.n_ctx);
    loam_status s = make_room(d, n_rows, err);
    int32_t document = 0;
    for (int32_t row = 0; row < n_rows && s == LOAM_OK; row++) {
        int32_t before = d->rows.n_rows;
        s = fill_row(d, row, &document, err);
        if (d->rows.n_rows == before) break;
    }
    settle(d, s == LOAM_OK);
    if (s == LOAM_OK) *rows = d->rows;
    return s;
}

loam_status loam_data_count(loam_data *d, int64_t *tokens, int64_t *labels, int64_t *bytes, loam_error *err)
{
    int64_t t = 0, l = 0, b = 0;
    for (int64_t i = 0; i < d->n_mine; i++) {
        int64_t doc = data_doc_at(d, 0, i);
        loam_status s = data_encode(d, doc, err);
        if (s != LOAM_OK) return s;
        int64_t n = (int64_t)d->scratch.n - 1;
        if (d->p.too_long == LOAM_LONG_TRUNCATE && n > d->p.n_ctx) n = d->p.n_ctx;
        for (int64_t k = 1; k <= n; k++) l += d->scratch.mask[k];
        t += n > 0 ? n : 0;
        b += d->docs[doc].len;
    }
    if (tokens) *tokens = t;
    if (labels) *labels = l;
    if (bytes) *bytes = b;
    return LOAM_OK;
}

/* ---- position: fingerprint, epoch, cursor, then the pieces that wait, as document and first token ---- */

#define HEAD 3

loam_status loam_data_tell(const loam_data *d, int64_t *numbers, size_t cap, size_t *n, loam_error *err)
{
    *n = HEAD + 2 * d->n_pool;
    if (*n > cap) return fail(err, LOAM_E_FULL, "the position of the data has %zu numbers; there is room for %zu", *n, cap);
    numbers[0] = (int64_t)d->fingerprint;
    numbers[1] = d->epoch;
    numbers[2] = d->cursor;
    for (size_t i = 0; i < d->n_pool; i++) {
        numbers[HEAD + 2 * i] = d->pool[i].doc;
        numbers[HEAD + 2 * i + 1] = d->pool[i].from;
    }
    return LOAM_OK;
}

/* The piece of a document that begins at a token. */
static loam_status push_again(loam_data *d, int64_t doc, int64_t from, loam_error *err)
{
    if (doc < 0 || doc >= (int64_t)d->n_docs) return fail(err, LOAM_E_FORMAT, "the position names a document that is not there");
    loam_status s = data_encode(d, doc, err);
    if (s != LOAM_OK) return s;
    int64_t n = (int64_t)d->scratch.n - 1;
    if (from < 0 || from >= n || from % d->p.n_ctx) return fail(err, LOAM_E_FORMAT, "the position names a token that is not there");
    return push_piece(d, doc, (int32_t)from, (int32_t)(n - from < d->p.n_ctx ? n - from : d->p.n_ctx), err);
}

loam_status loam_data_seek(loam_data *d, const int64_t *numbers, size_t n, loam_error *err)
{
    if (n < HEAD || n % 2 != HEAD % 2) return fail(err, LOAM_E_FORMAT, "%zu numbers are no position of training data", n);
    if ((uint64_t)numbers[0] != d->fingerprint)
        return fail(err, LOAM_E_FORMAT, "%s: the position belongs to other data, or to other settings", d->files[0].path);
    if (numbers[1] < 0 || numbers[2] < 0 || numbers[2] > d->n_mine) return fail(err, LOAM_E_FORMAT, "the position is damaged");
    data_piece *pool = d->pool;
    size_t n_pool = d->n_pool, cap = d->pool_cap;
    d->pool = NULL;
    d->n_pool = d->pool_cap = 0;
    loam_status s = LOAM_OK;
    for (size_t i = HEAD; i < n && s == LOAM_OK; i += 2) s = push_again(d, numbers[i], numbers[i + 1], err);
    if (s == LOAM_OK) {
        d->epoch = numbers[1];
        d->cursor = numbers[2];
    } else { /* back to the pieces that waited before */
        data_piece *given = d->pool;
        data_pool_clear(d);
        mem_free(given);
        d->pool = pool;
        d->n_pool = n_pool;
        d->pool_cap = cap;
        return s;
    }
    for (size_t i = 0; i < n_pool; i++) mem_free(pool[i].ids);
    mem_free(pool);
    return LOAM_OK;
}
