/* rwkv.c - greedy longest match on bytes. Token texts are written with escapes, which are undone at load. */
#include "tokenizer/tokenizer.h"

static int hex_digit(char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; }

/* Undoes the escapes of a token text; out has room for s.len bytes. An escape cut off by the end gives nothing. */
static size_t unescape(text_view s, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c == '\\') {
            if (++i == s.len) break;
            c = s.data[i];
            if (c == 'x') {
                if (s.len - i < 3) break;
                c = (char)(16 * hex_digit(s.data[i + 1]) + hex_digit(s.data[i + 2]));
                i += 2;
            } else {
                c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
            }
        }
        out[n++] = c;
    }
    return n;
}

loam_status rwkv_build(loam_tokenizer *t, loam_error *err)
{
    uint32_t old;
    t->word_text = mem_zalloc_array(t->n_tokens, sizeof *t->word_text);
    bool ok = t->word_text && trie_init(&t->words, t->word_text, t->n_tokens + t->n_tokens / 4, t->secret);
    for (uint32_t id = t->n_tokens; id-- > 0 && ok;) { /* of equal texts the highest id stays */
        char *out = arena_take(&t->arena, t->texts[id].len);
        if (out) t->word_text[id] = (text_view){ out, unescape(t->texts[id], out) };
        ok = out && trie_put(&t->words, id, &old);
    }
    return ok ? LOAM_OK : fail_nomem(err, "the token trie", t->n_tokens * sizeof(trie_edge));
}

loam_status rwkv_encode(tok_run *r, const char *s, size_t n)
{
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < n && st == LOAM_OK;) {
        size_t len;
        uint32_t id = trie_longest(&r->t->words, s + i, n - i, &len);
        st = run_push(r, id == TRIE_NONE ? r->t->role[LOAM_TOKEN_UNK] : (loam_token)id);
        i += id == TRIE_NONE ? 1 : len;
    }
    return st;
}
