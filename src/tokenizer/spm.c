/* spm.c - SentencePiece pair merging: spaces become SPACE_MARK, one is put before the text, pairs whose text is a token are
 * joined by score. A character without a token becomes byte tokens. Nothing is normalized. */
#include "tokenizer/tokenizer.h"

/* Which bytes stand before an inner SPACE_MARK in some token. Words can be cut before all other space marks. */
loam_status spm_build(loam_tokenizer *t, loam_error *err)
{
    (void)err;
    tok_fill_bytes(t, BYTE_BOTH);
    t->word_cuts = true;
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        const char *s = t->keys[id].data, *end = s + t->keys[id].len;
        for (const char *p = s; (p = memchr(p, SPACE_MARK[0], (size_t)(end - p))) != NULL; p++)
            if (p > s && end - p >= SPACE_MARK_LEN && memcmp(p, SPACE_MARK, SPACE_MARK_LEN) == 0)
                t->joins_space[(uint8_t)p[-1]] = true;
    }
    return LOAM_OK;
}

loam_status spm_encode(tok_run *r, const char *s, size_t n)
{
    const tok_flags *f = &r->t->flags;
    size_t spaces = f->space_prefix;
    for (size_t i = 0; i < n; i++) spaces += s[i] == ' ';
    loam_status st = run_text(r, n + f->space_prefix + spaces * (SPACE_MARK_LEN - 1));
    if (st != LOAM_OK) return st;
    char *out = r->text;
    if (f->space_prefix) {
        memcpy(out, SPACE_MARK, SPACE_MARK_LEN);
        out += SPACE_MARK_LEN;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') {
            memcpy(out, SPACE_MARK, SPACE_MARK_LEN);
            out += SPACE_MARK_LEN;
        } else {
            *out++ = s[i];
        }
    }
    merge_begin(r, (size_t)(out - r->text));
    return merge_text(r, r->text, (size_t)(out - r->text));
}
