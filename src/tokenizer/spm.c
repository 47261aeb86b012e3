/* spm.c - SentencePiece pair merging: spaces become SPACE_MARK, one is put before the text, pairs whose text is a token are
 * joined by score. A character without a token becomes byte tokens. Nothing is normalized. */
#include "tokenizer/tokenizer.h"

void spm_build(loam_tokenizer *t)
{
    tok_fill_bytes(t, BYTE_BOTH);
    for (uint32_t id = 0; id < t->n_tokens; id++) words_note_joint(t, t->texts[id]);
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
    size_t len = (size_t)(out - r->text);
    words_begin(r, len);
    for (size_t at = 0, word; at < len && st == LOAM_OK; at += word) {
        word = words_next(r->t, r->text + at, len - at);
        st = words_add(r, r->text + at, word);
    }
    return st;
}
