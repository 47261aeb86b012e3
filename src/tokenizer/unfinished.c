/* unfinished.c - kinds that are refused by name. */
#include "tokenizer/tokenizer.h"

static loam_status refuse(loam_error *err) { return fail(err, LOAM_E_UNSUPPORTED, "this kind of tokenizer is not supported"); }

const pre_row *pre_find(const char *name, size_t len)
{
    static const pre_row none = { "", { 0 }, 0 };
    (void)name;
    (void)len;
    return &none;
}
loam_status bpe_build(loam_tokenizer *t, const vocab_view *v, loam_error *err) { (void)t; (void)v; return refuse(err); }
loam_status wordpiece_build(loam_tokenizer *t, loam_error *err) { (void)t; return refuse(err); }
loam_status unigram_build(loam_tokenizer *t, const vocab_view *v, loam_error *err) { (void)t; (void)v; return refuse(err); }
loam_status rwkv_build(loam_tokenizer *t, loam_error *err) { (void)t; return refuse(err); }
loam_status plamo2_build(loam_tokenizer *t, const vocab_view *v, loam_error *err) { (void)t; (void)v; return refuse(err); }
loam_status bpe_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status wordpiece_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status unigram_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status rwkv_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status plamo2_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status dna_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
loam_status whitespace_encode(tok_run *r, const char *s, size_t n) { (void)s; (void)n; return refuse(r->err); }
