/* encode.c - the public way from text to ids: special tokens around and inside the text, scratch memory, output.
 *
 * Refuses: texts beyond limits.h, unknown flags, vocabularies without texts. */
#include "tokenizer/tokenizer.h"

void run_free(tok_run *r)
{
    mem_free(r->ids);
    mem_free(r->text);
    mem_free(r->glyphs);
    mem_free(r->work);
    mem_free(r->heap.items);
    mem_free(r->words);
}

loam_status run_push_slow(tok_run *r, loam_token id)
{
    if (id < 0) return LOAM_OK;
    if (!mem_grow(&r->ids, &r->cap, r->n + 1, sizeof *r->ids, SIZE_MAX / 16))
        return fail_nomem(r->err, "token ids", r->n * sizeof *r->ids);
    r->ids[r->n++] = id;
    return LOAM_OK;
}

loam_status run_text(tok_run *r, size_t bytes)
{
    return mem_grow(&r->text, &r->text_cap, bytes, 1, SIZE_MAX / 4) ? LOAM_OK : fail_nomem(r->err, "a text", bytes);
}

loam_status run_glyphs(tok_run *r, size_t count)
{
    return mem_grow(&r->glyphs, &r->glyph_cap, count, sizeof *r->glyphs, SIZE_MAX / 16)
               ? LOAM_OK
               : fail_nomem(r->err, "the characters of a text", count * sizeof *r->glyphs);
}

loam_status run_work(tok_run *r, size_t count, size_t size)
{
    if (count <= r->work_cap / size) return LOAM_OK;
    void *p = mem_alloc_array(count, size);
    if (!p) return fail_nomem(r->err, "encoding a text", (uint64_t)count * size);
    mem_free(r->work);
    r->work = p;
    r->work_cap = count * size;
    return LOAM_OK;
}

loam_status encode_fragment(tok_run *r, const char *s, size_t n)
{
    switch (r->t->kind) {
    case LOAM_TOKENIZER_SPM: return spm_encode(r, s, n);
    case LOAM_TOKENIZER_BPE:
        if (r->t->dialect == DIALECT_DNA) return dna_encode(r, s, n);
        return r->t->dialect == DIALECT_WHITESPACE ? whitespace_encode(r, s, n) : bpe_encode(r, s, n);
    case LOAM_TOKENIZER_WPM: return wordpiece_encode(r, s, n);
    case LOAM_TOKENIZER_UGM: return unigram_encode(r, s, n);
    case LOAM_TOKENIZER_RWKV: return rwkv_encode(r, s, n);
    case LOAM_TOKENIZER_PLAMO2: return plamo2_encode(r, s, n);
    case LOAM_TOKENIZER_TEST: return test_encode(r, s, n);
    case LOAM_TOKENIZER_NONE: break;
    }
    return fail(r->err, LOAM_E_UNSUPPORTED, "this model has no vocabulary: text cannot be encoded");
}

/* The ids that add_special puts before and behind the text; LOAM_TOKEN_NULL for none. */
static void frame(const loam_tokenizer *t, loam_token *before, loam_token *behind)
{
    *before = *behind = LOAM_TOKEN_NULL;
    if (t->kind == LOAM_TOKENIZER_WPM) {
        *before = t->role[LOAM_TOKEN_BOS];
        *behind = t->role[LOAM_TOKEN_SEP];
    } else if (t->kind == LOAM_TOKENIZER_SPM || t->kind == LOAM_TOKENIZER_BPE || t->kind == LOAM_TOKENIZER_UGM) {
        if (t->flags.add_bos) *before = t->role[LOAM_TOKEN_BOS];
        if (t->flags.add_eos) *behind = t->role[LOAM_TOKEN_EOS];
    }
}

static void warn_doubled(const tok_run *r, loam_token before, loam_token behind)
{
    if (r->t->kind == LOAM_TOKENIZER_WPM || r->n < 2) return;
    if (before >= 0 && r->ids[1] == before)
        log_at(LOAM_LOG_WARN, "the text begins with the token that is added before it: it is there twice now");
    if (r->t->kind == LOAM_TOKENIZER_BPE && behind >= 0 && r->ids[r->n - 2] == behind)
        log_at(LOAM_LOG_WARN, "the text ends with the token that is added behind it: it is there twice now");
}

static loam_status encode(tok_run *r, const char *text, size_t len, unsigned flags)
{
    if (flags & ~(LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL))
        return fail(r->err, LOAM_E_ARG, "unknown encoding flags %#x", flags);
    if (len > LIMIT_TEXT_BYTES)
        return fail(r->err, LOAM_E_ARG, "a text of %zu bytes is too long (at most %u)", len, LIMIT_TEXT_BYTES);
    if (r->t->kind == LOAM_TOKENIZER_NONE) return encode_fragment(r, text, len);
    loam_token before = LOAM_TOKEN_NULL, behind = LOAM_TOKEN_NULL;
    if (flags & LOAM_ENCODE_ADD_SPECIAL) frame(r->t, &before, &behind);
    loam_status st = run_push(r, before);
    if (st == LOAM_OK && len) st = encode_special(r, text, len, flags & LOAM_ENCODE_PARSE_SPECIAL);
    if (st == LOAM_OK) st = run_push(r, behind);
    if (st == LOAM_OK) warn_doubled(r, before, behind);
    return st;
}

loam_status loam_tokenizer_encode(const loam_tokenizer *t, const char *text, size_t len, unsigned flags, loam_token *ids,
                                  size_t cap, size_t *n, loam_error *err)
{
    tok_run r = { .t = t, .err = err };
    loam_status st = encode(&r, text, len, flags);
    *n = st == LOAM_OK ? r.n : 0;
    if (st == LOAM_OK && r.n > cap) st = fail(err, LOAM_E_FULL, "room for %zu ids, but the text has %zu", cap, r.n);
    if (st == LOAM_OK && r.n) memcpy(ids, r.ids, r.n * sizeof *ids);
    run_free(&r);
    return st;
}

loam_status loam_tokenizer_encode_all(const loam_tokenizer *t, const char *text, size_t len, unsigned flags, loam_token **ids,
                                      size_t *n, loam_error *err)
{
    tok_run r = { .t = t, .err = err };
    loam_status st = encode(&r, text, len, flags);
    if (st == LOAM_OK && !r.ids && !(r.ids = mem_alloc(0))) st = fail_nomem(err, "token ids", 0);
    *ids = st == LOAM_OK ? r.ids : NULL;
    *n = st == LOAM_OK ? r.n : 0;
    if (st == LOAM_OK) r.ids = NULL;
    run_free(&r);
    return st;
}

void loam_tokens_free(loam_token *ids) { mem_free(ids); }
