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
    uint32_t *list = mem_alloc_array(t->n_tokens, sizeof *list);
    t->word_text = mem_zalloc_array(t->n_tokens, sizeof *t->word_text);
    bool ok = list && t->word_text;
    for (uint32_t id = 0; id < t->n_tokens && ok; id++) {
        char *out = arena_take(&t->arena, t->texts[id].len);
        if (out) t->word_text[id] = (text_view){ out, unescape(t->texts[id], out) };
        list[t->n_tokens - 1 - id] = id; /* of equal texts the highest id stays */
        ok = out != NULL;
    }
    ok = ok && trie_build(&t->matches, t->word_text, list, t->n_tokens);
    mem_free(list);
    return ok ? LOAM_OK : fail_nomem(err, "the token trie", t->n_tokens * sizeof(trie_node));
}

loam_status rwkv_encode(tok_run *r, const char *s, size_t n)
{
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < n && st == LOAM_OK;) {
        size_t len;
        uint32_t id = trie_longest(&r->t->matches, s + i, n - i, &len);
        st = run_push(r, id == TRIE_NONE ? r->t->role[LOAM_TOKEN_UNK] : (loam_token)id);
        i += id == TRIE_NONE ? 1 : len;
    }
    return st;
}
