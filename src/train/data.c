/* data.c - opening training data; in which order documents come. */
#include "base/mix.h"
#include "train/data.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

loam_data_params loam_data_defaults(void)
{
    return (loam_data_params){ .struct_size = sizeof(loam_data_params), .n_ctx = 512, .shuffle = true, .endless = true };
}

static loam_status check_params(const loam_data_params *p, loam_error *err)
{
    if (p->struct_size != sizeof *p) return fail(err, LOAM_E_ARG, "loam_data_params: wrong struct_size");
    if (p->n_ctx < 2 || p->n_ctx > 1 << 20) return fail(err, LOAM_E_ARG, "n_ctx %d: rows have 2 to 1048576 tokens", p->n_ctx);
    if (!(p->hold_out >= 0 && p->hold_out <= 0.5)) return fail(err, LOAM_E_ARG, "hold_out %g is not between 0 and 0.5", p->hold_out);
    if ((unsigned)p->format > LOAM_DATA_JSONL || (unsigned)p->split > LOAM_SPLIT_FILE || (unsigned)p->too_long > LOAM_LONG_REFUSE)
        return fail(err, LOAM_E_ARG, "format, split or too_long has no such value");
    return LOAM_OK;
}

/* ---- order ---- */

/* A Feistel network of four rounds over the next even number of bits; values outside 0 .. n-1 are sent through again. */
uint64_t data_shuffled(uint64_t i, uint64_t n, uint64_t key)
{
    unsigned half = 1;
    while (n > 1 && half < 31 && (n - 1) >> (2 * half)) half++;
    const uint64_t mask = (1u << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 1; round <= 4; round++) {
            uint64_t next = left ^ (mix64(right + key + round * 0x9E3779B97F4A7C15u) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Two steps: the split puts the held-out documents first; each epoch then orders its side anew. */
int64_t data_doc_at(const loam_data *d, int64_t epoch, int64_t place)
{
    uint64_t i = (uint64_t)place;
    if (d->p.shuffle) i = data_shuffled(i, (uint64_t)d->n_mine, mix64(d->p.seed ^ mix64((uint64_t)epoch + 1)));
    i += (uint64_t)d->first;
    return d->p.hold_out > 0 ? (int64_t)data_shuffled(i, d->n_docs, 0x5EED) : (int64_t)i;
}

static loam_status choose_side(loam_data *d, loam_error *err)
{
    int64_t n = (int64_t)d->n_docs, held = d->p.hold_out > 0 ? (int64_t)floor(d->p.hold_out * (double)n + 0.5) : 0;
    if (d->p.hold_out > 0 && held < 1) held = 1;
    if (d->p.held_out && !held) return fail(err, LOAM_E_ARG, "held-out documents are asked for, but hold_out is 0");
    d->first = d->p.held_out ? 0 : held;
    d->n_mine = d->p.held_out ? held : n - held;
    if (d->n_mine < 1) return fail(err, LOAM_E_FORMAT, "%s: %lld documents are too few to hold some out", d->files[0].path, (long long)n);
    return LOAM_OK;
}

/* ---- opening ---- */

static uint64_t fingerprint(const loam_data *d)
{
    struct {
        uint64_t seed, n_docs, hold_out;
        int64_t n_ctx, split, too_long, shuffle, held_out, n_vocab;
    } facts = { d->p.seed, d->n_docs, 0, d->p.n_ctx, d->p.split, d->p.too_long, d->p.shuffle, d->p.held_out,
                loam_tokenizer_size(d->tokenizer) };
    memcpy(&facts.hold_out, &d->p.hold_out, sizeof facts.hold_out);
    return XXH3_64bits_withSeed(&facts, sizeof facts, XXH3_64bits(d->docs, d->n_docs * sizeof *d->docs));
}

static loam_status open_all(loam_data *d, const char *const *paths, size_t n_paths, loam_error *err)
{
    if (!n_paths) return fail(err, LOAM_E_ARG, "training data: no file is given");
    loam_status s = data_find_documents(d, paths, n_paths, err);
    if (s == LOAM_OK && !d->n_docs) s = fail(err, LOAM_E_FORMAT, "%s: there is no text in it", paths[0]);
    if (s == LOAM_OK) s = choose_side(d, err);
    if (s == LOAM_OK) d->fingerprint = fingerprint(d);
    return s;
}

loam_status loam_data_open(loam_data **out, const char *const *paths, size_t n_paths, const loam_tokenizer *tokenizer,
                           const loam_data_params *params, loam_error *err)
{
    *out = NULL;
    loam_data_params p = params ? *params : loam_data_defaults();
    loam_status s = check_params(&p, err);
    if (s != LOAM_OK) return s;
    if (!tokenizer) return fail(err, LOAM_E_ARG, "training data: a tokenizer is needed");
    loam_data *d = mem_zalloc(sizeof *d);
    if (!d) return fail_nomem(err, "training data", sizeof *d);
    d->p = p;
    d->tokenizer = tokenizer;
    s = open_all(d, paths, n_paths, err);
    if (s != LOAM_OK) loam_data_free(d);
    else *out = d;
    return s;
}

void loam_data_free(loam_data *d)
{
    if (!d) return;
    data_pool_clear(d);
    mem_free(d->pool);
    for (size_t i = 0; i < d->n_files; i++) {
        os_file_close(&d->files[i].file);
        mem_free(d->files[i].path);
    }
    mem_free(d->files);
    mem_free(d->docs);
    mem_free(d->scratch.ids);
    mem_free(d->scratch.mask);
    mem_free(d->rows.ids);
    mem_free(d);
}

int64_t loam_data_n_documents(const loam_data *d) { return d->n_mine; }
int64_t loam_data_epoch(const loam_data *d) { return d->epoch; }

void loam_data_rewind(loam_data *d)
{
    data_pool_clear(d);
    d->epoch = d->cursor = 0;
}
