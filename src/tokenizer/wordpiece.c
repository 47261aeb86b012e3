/* wordpiece.c - WordPiece: words cut at white space and punctuation, each spelled by the longest tokens that match.
 *
 *   text ──► base letters, lower case ──► SPACE_MARK word ──► longest token, again and again; one misfit makes it unknown */
#include "tokenizer/tokenizer.h"

loam_status wordpiece_build(loam_tokenizer *t, loam_error *err)
{
    uint32_t *list = mem_alloc_array(t->n_tokens, sizeof *list);
    for (uint32_t id = 0; list && id < t->n_tokens; id++) list[id] = id;
    bool ok = list && trie_build(&t->matches, t->texts, list, t->n_tokens);
    mem_free(list);
    return ok ? LOAM_OK : fail_nomem(err, "the token trie", t->n_tokens * sizeof(trie_node));
}

/* The ids of one word, which begins with SPACE_MARK. */
static loam_status match_word(tok_run *r, const char *s, size_t n)
{
    size_t first = r->n, len;
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < n && st == LOAM_OK; i += len) {
        uint32_t id = trie_longest(&r->t->matches, s + i, n - i, &len);
        if (id == TRIE_NONE) {
            r->n = first;
            return run_push(r, r->t->role[LOAM_TOKEN_UNK]);
        }
        st = run_push(r, (loam_token)id);
    }
    return st;
}

static bool stands_alone(glyph g)
{
    uint32_t c = glyph_cp(g);
    if (g & G_P || (g & G_S && c < 0x7F)) return true;
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Matches the word that lies in r->text behind its SPACE_MARK, if any, and begins a new one. */
static loam_status end_word(tok_run *r, size_t *len)
{
    size_t n = *len;
    *len = SPACE_MARK_LEN;
    return n > SPACE_MARK_LEN ? match_word(r, r->text, n) : LOAM_OK;
}

loam_status wordpiece_encode(tok_run *r, const char *s, size_t n)
{
    const tok_flags *f = &r->t->flags;
    loam_status st = run_text(r, SPACE_MARK_LEN + 4 + 3 * n); /* one byte becomes at most three */
    if (st != LOAM_OK) return st;
    memcpy(r->text, SPACE_MARK, SPACE_MARK_LEN);
    size_t len = SPACE_MARK_LEN;
    for (size_t i = 0, used; i < n && st == LOAM_OK; i += used) {
        uint32_t cp = uni_decode(s + i, n - i, &used);
        if (f->strip_accents) cp = uni_base(cp);
        glyph g = uni_glyph(cp);
        if (g & G_WS) {
            st = end_word(r, &len);
            continue;
        }
        if (cp == 0 || cp == UNI_BAD || g & G_C || (f->strip_accents && g & G_M)) continue;
        bool alone = stands_alone(g);
        if (alone) st = end_word(r, &len);
        len += uni_encode(f->lowercase ? uni_lower(cp) : cp, r->text + len);
        if (alone && st == LOAM_OK) st = end_word(r, &len);
    }
    return st == LOAM_OK ? end_word(r, &len) : st;
}
