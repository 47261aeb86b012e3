/* Every allocation of making each kind of tokenizer, of encoding, decoding and streaming fails in turn. Afterwards the same call
 * gives the same ids as ever. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "toy.h"

static const struct {
    const char *model, *pre;
} kinds[] = { { "llama", NULL },
              { "gpt2", "llama-bpe" },
              { "gpt2", "deepseek-llm" },
              { "gemma4", NULL },
              { "bert", NULL },
              { "t5", NULL },
              { "rwkv", NULL },
              { "plamo2", NULL },
              { "test", NULL },
              { "hybriddna", "gpt-2" },
              { "whitespace", "whitespace" } };

static toy v;
static char text[1200];

static void build(size_t kind)
{
    toy_begin(&v, kinds[kind].model, kinds[kind].pre);
    toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
    if (kinds[kind].pre) toy_bytes(&v);
    else toy_hex_bytes(&v);
    for (const char *const *s =
             (const char *const[]){ "ab", "xaby", SPACE_MARK "w", "<end>", "<dna>", "</dna>", "<oov>", SPACE_MARK, "", NULL };
         *s; s++)
        toy_add(&v, *s, (*s)[0] == '<' && (*s)[1] == 'e' ? TOY_CONTROL : TOY_NORMAL, -1);
    toy_merge(&v, "a b");
    toy_merge(&v, "x ab"); /* xab is no token: a further symbol */
    toy_merge(&v, "xab y");
    for (size_t i = 0; i < sizeof text; i++) text[i] = "ab xaby<end>\n w\xC3\xA9\xFF"[i % 19];
    memcpy(text + 300, "<dna>acgt</dna>", 15);
    memset(text + 600, 'a', 300); /* a long word */
}

static loam_status make_and_free(void *arg, loam_error *err)
{
    loam_tokenizer *t;
    (void)arg;
    loam_status st = tokenizer_new(&t, &v.view, err);
    if (st != LOAM_OK) assert_null(t);
    loam_tokenizer_free(t);
    return st;
}

static loam_status encode(void *arg, loam_error *err)
{
    loam_token *ids;
    size_t n;
    loam_status st =
        loam_tokenizer_encode_all(arg, text, sizeof text, LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL, &ids, &n, err);
    loam_tokens_free(ids);
    return st;
}

static loam_token sample[64];

static loam_status decode(void *arg, loam_error *err)
{
    char out[4096];
    size_t n;
    return loam_tokenizer_decode(arg, sample, 64, LOAM_DECODE_SPECIAL, out, sizeof out, &n, err);
}

static loam_status stream(void *arg, loam_error *err)
{
    loam_detokenizer *s;
    const char *piece;
    size_t n;
    loam_status st = loam_detokenizer_new(&s, arg, 0, err);
    for (size_t i = 0; i < 64 && st == LOAM_OK; i++) st = loam_detokenizer_push(s, sample[i], &piece, &n, err);
    loam_detokenizer_free(s);
    return st;
}

static void test_kinds(void **state)
{
    loam_error err;
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        char what[64];
        loam_token *before, *after;
        size_t n_before, n_after;
        build(kind);
        snprintf(what, sizeof what, "make %s %s", kinds[kind].model, kinds[kind].pre ? kinds[kind].pre : "");
        fault_loop(what, make_and_free, NULL);
        loam_tokenizer *t = toy_make(&v);
        assert_int_equal(loam_tokenizer_encode_all(t, text, sizeof text, 0, &before, &n_before, &err), LOAM_OK);
        for (size_t i = 0; i < 64; i++) sample[i] = before[i % n_before];
        fault_loop("encode", encode, t);
        fault_loop("decode", decode, t);
        fault_loop("stream", stream, t);
        assert_int_equal(loam_tokenizer_encode_all(t, text, sizeof text, 0, &after, &n_after, &err), LOAM_OK);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before * sizeof *before);
        loam_tokens_free(before);
        loam_tokens_free(after);
        loam_tokenizer_free(t);
    }
    assert_int_equal(fault_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinds) };
    fault_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
