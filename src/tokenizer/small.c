/* small.c - the small kinds: hashes for tests of models. */
#include "tokenizer/tokenizer.h"

/* Chunks of five bytes, hashed to ids. */
loam_status test_encode(tok_run *r, const char *s, size_t n)
{
    loam_status st = LOAM_OK;
    for (size_t i = 0; i < n && st == LOAM_OK && r->t->n_tokens;) {
        uint64_t h = 0;
        for (size_t end = n - i < 5 ? n : i + 5; i < end; i++) h = h * 31 + (uint8_t)s[i];
        st = run_push(r, (loam_token)(h % r->t->n_tokens));
    }
    return st;
}
