/* Every kind of tokenizer on a small vocabulary: ids, texts, roles, what is refused. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "toy.h"

#define PARSE LOAM_ENCODE_PARSE_SPECIAL
#define ADD   LOAM_ENCODE_ADD_SPECIAL
#define MARK  SPACE_MARK

static toy v;

/* ---- SPM ---- */

static void spm_toy(void)
{
    toy_begin(&v, "llama", NULL);
    toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
    toy_add(&v, "<s>", TOY_CONTROL, 0);
    toy_add(&v, "</s>", TOY_CONTROL, 0);
    toy_hex_bytes(&v);                  /* 3 .. 258 */
    toy_add(&v, MARK, TOY_NORMAL, -10); /* 259 */
    toy_add(&v, "a", TOY_NORMAL, -11);
    toy_add(&v, "b", TOY_NORMAL, -12);
    toy_add(&v, "c", TOY_NORMAL, -13); /* 262 */
    toy_add(&v, "ab", TOY_NORMAL, -2);
    toy_add(&v, "bc", TOY_NORMAL, -1);      /* 264 */
    toy_add(&v, MARK "a", TOY_NORMAL, -3);  /* 265 */
    toy_add(&v, "aa", TOY_NORMAL, -4);      /* 266 */
    toy_add(&v, "<u>", TOY_USER, 0);        /* 267 */
    toy_add(&v, MARK MARK, TOY_NORMAL, -5); /* 268 */
    toy_add(&v, "gone", TOY_UNUSED, 0);     /* 269 */
}

static void test_spm(void **state)
{
    (void)state;
    spm_toy();
    loam_tokenizer *t = toy_make(&v);
    assert_int_equal(loam_tokenizer_kind_of(t), LOAM_TOKENIZER_SPM);
    CHECK(t, "abc", 0, 265, 264); /* bc before ab */
    CHECK(t, "babc", 0, 259, 261, 260, 264);
    CHECK(t, "a", 0, 265);
    CHECK(t, " a", 0, 259, 265);
    CHECK(t, "aaaa", 0, 265, 266, 260); /* mark-a first, then the leftmost aa */
    CHECK(t, "b  c", 0, 259, 261, 268, 262);
    CHECK(t, "\xC3\xA9", 0, 259, 3 + 0xC3, 3 + 0xA9);
    CHECK(t, "a<u>a</s>", 0, 265, 267, 265, 3 + '<', 3 + '/', 3 + 's', 3 + '>');
    CHECK(t, "a<u>a</s>", PARSE | ADD, 1, 265, 267, 265, 2);
    CHECK(t, "", ADD, 1);
    CHECK_NONE(t, "", 0);
    CHECK(t, "a\0b", 0, 265, 3, 261);
    CHECK_TEXT(t, "a", 0, 265);
    CHECK_TEXT(t, " a", 0, 1, 265);
    CHECK_TEXT(t, "<s> a</s>", LOAM_DECODE_SPECIAL, 1, 265, 2);
    CHECK_TEXT(t, " a", LOAM_DECODE_REMOVE_SPECIAL, 1, 265);
    CHECK_TEXT(t, "\xC3\xA9<u>", 0, 3 + 0xC3, 3 + 0xA9, 267, 269);
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_NEWLINE), 3 + '\n');
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_UNK), 0);
    assert_int_equal(loam_tokenizer_special(t, (loam_token_role)99), LOAM_TOKEN_NULL);
    assert_true(loam_tokenizer_adds_bos(t));
    assert_false(loam_tokenizer_adds_eos(t));
    assert_true(loam_tokenizer_is_control(t, 1));
    assert_true(loam_tokenizer_is_eog(t, 2));
    assert_int_equal(loam_tokenizer_attributes(t, -1), 0);
    assert_int_equal(loam_tokenizer_attributes(t, 9999), 0);
    assert_int_equal(loam_tokenizer_attributes(t, 267), LOAM_ATTR_USER);
    assert_int_equal(loam_tokenizer_find(t, "ab", 2), 263);
    assert_int_equal(loam_tokenizer_find(t, "abx", 3), LOAM_TOKEN_NULL);
    assert_true(loam_tokenizer_score(t, 264) == -1);
    loam_tokenizer_free(t);
}

/* No prefix, keys that override, ids that are out of range, a byte without a token. */
static void test_spm_keys(void **state)
{
    (void)state;
    toy_begin(&v, "llama", NULL);
    toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
    toy_add(&v, "x", TOY_NORMAL, 0);
    toy_add(&v, "y", TOY_NORMAL, 0);
    toy_add(&v, "", TOY_NORMAL, 0);
    toy_key(&v, "add_space_prefix", 0);
    toy_key(&v, "add_bos_token", 0);
    toy_key(&v, "add_eos_token", 1);
    toy_key(&v, "eos_token_id", 2);
    toy_key(&v, "padding_token_id", 77);
    v.view.suppress = (const int32_t[]){ 1, -1, 99, 2 };
    v.view.n_suppress = 4;
    loam_tokenizer *t = toy_make(&v);
    size_t n;
    CHECK(t, "xzy", ADD, 1, 0, 2, 2); /* z is no byte token: unknown */
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_PAD), LOAM_TOKEN_NULL);
    assert_string_equal(loam_tokenizer_text(t, 3, &n) ? "" : "none", "");
    assert_int_equal(loam_tokenizer_find(t, "[EMPTY_3]", 9), 3);
    const loam_token *ids = loam_tokenizer_suppressed(t, &n);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    loam_tokenizer_free(t);
}

/* ---- byte-level BPE ---- */

static void bpe_toy(const char *model, const char *pre)
{
    toy_begin(&v, model, pre);
    toy_bytes(&v);                    /* 0 .. 255 */
    toy_add(&v, "ab", TOY_NORMAL, 0); /* 256 */
    toy_add(&v,
            "\xC4\xA0"
            "a",
            TOY_NORMAL, 0);
    toy_add(&v, "abab", TOY_NORMAL, 0);  /* 258 */
    toy_add(&v, "whole", TOY_NORMAL, 0); /* 259 */
    toy_add(&v, "<|im_end|>", TOY_CONTROL, 0);
    toy_add(&v, "  ", TOY_USER, 0);    /* 261: raw spaces */
    toy_add(&v, "xyz", TOY_NORMAL, 0); /* 262 */
    toy_merge(&v, "a b");
    toy_merge(&v, "\xC4\xA0 a");
    toy_merge(&v, "ab ab");
    toy_merge(&v, "x y"); /* xy is no token */
    toy_merge(&v, "xy z");
    toy_merge(&v, "a b"); /* again: the first rank stays */
    toy_merge(&v, "nospace");
    toy_merge(&v, "a ");
    toy_merge(&v, "p  q"); /* a part with a space never applies */
}

static void test_bpe(void **state)
{
    (void)state;
    bpe_toy("gpt2", "gpt-2");
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "abab", 0, 258);
    CHECK(t, "ab ab", 0, 256, ' ', 256); /* ab before Ġa */
    CHECK(t, " a", 0, 257);
    CHECK(t, "xyz", 0, 262);
    CHECK(t, "xy", 0, 'x', 'y'); /* xy is a merge but no token: its bytes */
    CHECK(t, "whole", 0, 'w', 'h', 'o', 'l', 'e');
    CHECK(t, "a  b", 0, 'a', 261, 'b');
    CHECK(t, "\xFF", 0, 0xEF, 0xBF, 0xBD);
    CHECK(t, "a<|im_end|>b", 0, 'a', '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>', 'b');
    CHECK(t, "a<|im_end|>b", PARSE, 'a', 260, 'b');
    CHECK_TEXT(t, " a", 0, 257);
    CHECK_TEXT(t, "a.", 0, 'a', ' ', '.'); /* cleaned */
    CHECK_TEXT(t, "<|im_end|>", LOAM_DECODE_SPECIAL, 260);
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_EOT), 260);
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_BOS), 11); /* the default */
    assert_true(loam_tokenizer_is_eog(t, 260));
    assert_int_equal(loam_tokenizer_find(t,
                                         "\xC4\xA0"
                                         "a",
                                         3),
                     257);
    assert_int_equal(loam_tokenizer_find(t, "  ", 2), 261);
    assert_int_equal(loam_tokenizer_find(t, " a", 2), LOAM_TOKEN_NULL);
    loam_tokenizer_free(t);
    bpe_toy("gpt2", "llama-bpe"); /* ignore_merges, bos */
    t = toy_make(&v);
    CHECK(t, "whole", ADD, 11, 259);
    assert_false(loam_tokenizer_adds_eos(t));
    loam_tokenizer_free(t);
    bpe_toy("gpt2", "glm4"); /* no default bos */
    t = toy_make(&v);
    CHECK(t, "ab", ADD, 256);
    loam_tokenizer_free(t);
}

/* A symbol that is no token disappears but for its ASCII bytes; token texts that are single broken bytes count. */
static void test_bpe_loss(void **state)
{
    (void)state;
    toy_begin(&v, "gpt2", "gpt-2");
    toy_add(&v, "a", TOY_NORMAL, 0);
    toy_add(&v, "\xA0", TOY_NORMAL, 0);
    toy_merge(&v, "q r");
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "bab", 0, 0);
    CHECK(t, "a a", 0, 0, 1, 0); /* the space is C4 A0 in the alphabet */
    CHECK_TEXT(t, "[UNK_BYTE_0xa0\xA0]", 0, 1);
    loam_tokenizer_free(t);
}

static void test_gemma4(void **state)
{
    (void)state;
    toy_begin(&v, "gemma4", "whatever");
    toy_add(&v, "<pad>", TOY_CONTROL, 0);
    toy_add(&v, "<bos>", TOY_CONTROL, 0);
    toy_hex_bytes(&v);               /* 2 .. 257 */
    toy_add(&v, "a", TOY_NORMAL, 0); /* 258 */
    toy_add(&v, MARK, TOY_NORMAL, 0);
    toy_add(&v, MARK "a", TOY_NORMAL, 0); /* 260 */
    toy_add(&v, MARK MARK, TOY_NORMAL, 0);
    toy_add(&v, "\n", TOY_NORMAL, 0);     /* 262 */
    toy_add(&v, "\n\n", TOY_NORMAL, 0);   /* 263: whole, without a merge */
    toy_add(&v, "a" MARK, TOY_NORMAL, 0); /* 264 */
    toy_merge(&v, MARK " " MARK);
    toy_merge(&v, MARK " a");
    toy_merge(&v, "a " MARK);
    toy_key(&v, "bos_token_id", 1);
    toy_key(&v, "add_bos_token", 0); /* in vain */
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "a", ADD, 1, 258);
    CHECK(t, " a  a", 0, 260, 261, 258);
    CHECK(t, "a a", 0, 258, 260);
    CHECK(t, "a \n\n", 0, 264, 263);
    CHECK(t, "\n\n\n", 0, 262, 262, 262);
    CHECK(t, "\xE2\x98\x83", 0, 2 + 0xE2, 2 + 0x98, 2 + 0x83);
    CHECK_TEXT(t, " a  a", 0, 260, 261, 258);
    loam_tokenizer_free(t);
}

static void test_dna(void **state)
{
    (void)state;
    bpe_toy("hybriddna", "gpt-2");
    int32_t open = toy_add(&v, "<dna>", TOY_NORMAL, 0), close = toy_add(&v, "</dna>", TOY_NORMAL, 0);
    int32_t oov = toy_add(&v, "<oov>", TOY_NORMAL, 0);
    int32_t block = toy_add(&v, "ACGTAC\xEE\x80\x80", TOY_USER, 0), filled = toy_add(&v, "GGAAAA\xEE\x80\x80", TOY_USER, 0);
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "ab<dna>acgtacGG</dna>ab", 0, 256, open, block, filled, close, 256);
    CHECK(t, "<dna>xx", 0, open, oov);
    CHECK(t, "<dna></dna><dna>", 0, open, close, open);
    CHECK_TEXT(t, "ACGTAC", 0, block);
    assert_int_equal(loam_tokenizer_find(t, "ACGTAC\xEE\x80\x80", 9), block);
    loam_tokenizer_free(t);
}

static void test_whitespace(void **state)
{
    (void)state;
    toy_begin(&v, "whitespace", "whitespace");
    for (const char *const *s = (const char *const[]){ "<x>", "<y>", "<z>", "\xE4\xB8\xAD", "\xE5\x9B\xBD",
                                                       "\xE4\xB8\xAD\xE5\x9B\xBD", "a", "b", "ab", "<0xC3>", "<0xA9>", NULL };
         *s; s++)
        toy_add(&v, *s, (*s)[0] == '<' ? TOY_BYTE : TOY_NORMAL, 0);
    toy_merge(&v, "\xE4\xB8\xAD \xE5\x9B\xBD");
    toy_merge(&v, "a b");
    toy_key(&v, "normalizer.lowercase", 1);
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "\xE4\xB8\xAD\xE5\x9B\xBD AB", 0, 5, 8);
    CHECK(t, "\xE4\xB8\xAD \xE5\x9B\xBD", 0, 3, 4);
    CHECK(t, "\xC3\xA9", 0, 9, 10);
    CHECK(t, " xa\t", 0, 6);
    loam_tokenizer_free(t);
}

/* ---- the others ---- */

static void test_wordpiece(void **state)
{
    (void)state;
    toy_begin(&v, "bert", NULL);
    for (const char *const *s = (const char *const[]){ "[PAD]", "[UNK]", "[CLS]", "[SEP]", MARK "hello", "s", MARK "h", "e",
                                                       "llo", MARK "!", MARK "\xE4\xB8\xAD", MARK "zurich", NULL };
         *s; s++)
        toy_add(&v, *s, (*s)[0] == '[' ? TOY_CONTROL : TOY_NORMAL, 0);
    toy_key(&v, "bos_token_id", 2);
    toy_key(&v, "seperator_token_id", 3);
    toy_key(&v, "unknown_token_id", 1);
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "Hello hellos", 0, 4, 4, 5);
    CHECK(t, "he!llo", 0, 6, 7, 9, 1);
    CHECK(t, "hello\xE4\xB8\xADhello", 0, 4, 10, 4);
    CHECK(t,
          "Z\xC3\xBCrich h\x01\x00"
          "e",
          0, 11, 6, 7); /* controls are dropped inside a word */
    CHECK(t, "q hello [SEP]", ADD, 2, 1, 4, 1, 1, 1, 3);
    CHECK(t, "hello[SEP]", ADD | PARSE, 2, 4, 3, 3);
    CHECK_TEXT(t, " hello hellos!", 0, 2, 4, 4, 5, 9, 3);
    assert_true(loam_tokenizer_is_eog(t, 0)); /* [PAD] is taken for the padding of fill-in-the-middle */
    loam_tokenizer_free(t);
}

static void ugm_toy(bool prefix, bool remove)
{
    toy_begin(&v, "t5", NULL);
    toy_add(&v, "<pad>", TOY_CONTROL, 0);
    toy_add(&v, "</s>", TOY_CONTROL, 0);
    toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
    toy_add(&v, MARK, TOY_NORMAL, -2);
    toy_add(&v, "a", TOY_NORMAL, -3);
    toy_add(&v, "b", TOY_NORMAL, -3);
    toy_add(&v, "ab", TOY_NORMAL, -5);
    toy_add(&v, MARK "a", TOY_NORMAL, -4);
    toy_add(&v, "<x>", TOY_USER, 0);
    if (prefix) toy_key(&v, "add_space_prefix", 1);
    if (remove) toy_key(&v, "remove_extra_whitespaces", 1);
}

static void test_unigram(void **state)
{
    (void)state;
    ugm_toy(false, false);
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "ab", 0, 6);
    CHECK(t, "a  b ", 0, 4, 3, 3, 5, 3);
    CHECK(t, "cc<x>c", 0, 2, 8, 2);
    CHECK(t, "a", ADD, 4, 1);
    CHECK(t, "<\xE2\x96", 0, 2);
    loam_tokenizer_free(t);
    ugm_toy(true, false);
    t = toy_make(&v);
    CHECK(t, "ab", 0, 3, 6);
    CHECK(t, "a  b ", 0, 7, 3, 3, 5, 3);
    CHECK(t, "cc<x>c", 0, 3, 2, 8, 3, 2);
    CHECK_TEXT(t, "ab", 0, 3, 6);
    loam_tokenizer_free(t);
    ugm_toy(true, true);
    t = toy_make(&v);
    CHECK(t, "ab", 0, 3, 6);
    CHECK(t, "a  b ", 0, 7, 3, 5);
    CHECK(t, "cc<x>c", 0, 3, 2, 8, 3, 2);
    loam_tokenizer_free(t);
}

/* A table with one rule, "c" becomes "ab": units at 'c' and at its value. */
static void test_charsmap(void **state)
{
    static uint8_t map[4 + 4 * 256 + 3];
    uint32_t c_unit = 'c' | 1u << 8 | (uint32_t)(('c' ^ 200) << 10); /* label, leaf, offset to the value at 200 */
    (void)state;
    memset(map, 0, sizeof map);
    map[1] = 4; /* 1024 bytes of units */
    map[4 + 4 * 'c'] = (uint8_t)c_unit;
    map[4 + 4 * 'c' + 1] = (uint8_t)(c_unit >> 8);
    map[4 + 4 * 'c' + 2] = (uint8_t)(c_unit >> 16);
    memcpy(map + 4 + 1024, "ab", 3);
    ugm_toy(false, false);
    v.view.charsmap = (text_view){ (const char *)map, sizeof map };
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "c", 0, 6);
    CHECK(t, "cac", 0, 6, 4, 6);
    CHECK(t, "d", 0, 2);
    loam_tokenizer_free(t);
    loam_error err;
    for (size_t size = 0; size < sizeof map; size++) { /* cut short anywhere: refused, or harmless */
        v.view.charsmap.len = size;
        if (tokenizer_new(&t, &v.view, &err) == LOAM_OK) {
            check_ids(t, "ab", 2, 0, (const int32_t[]){ 6, -1 });
            loam_tokenizer_free(t);
        } else {
            assert_int_equal(err.code, LOAM_E_FORMAT);
        }
    }
}

static void test_rwkv(void **state)
{
    (void)state;
    toy_begin(&v, "rwkv", NULL);
    toy_add(&v, "<s>", TOY_CONTROL, 0);
    for (int b = 0; b < 256; b++) {
        char text[8];
        size_t n = (size_t)snprintf(text, sizeof text, "\\x%02x", (unsigned)b);
        toy_add_n(&v, text, n, TOY_NORMAL, 0);
    }
    toy_add(&v, "ab", TOY_NORMAL, 0);
    toy_add(&v, "abcd", TOY_NORMAL, 0);
    toy_add(&v, "\\n\\n", TOY_NORMAL, 0);
    toy_add(&v, "\\xc3\\xa9", TOY_NORMAL, 0);
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "abcx", 0, 257, 100, 121);
    CHECK(t, "abcd", 0, 258);
    CHECK(t, "\n\n\n", 0, 259, 11);
    CHECK(t,
          "\xC3\xA9"
          "a",
          0, 260, 98);
    CHECK(t, "\xFF<s>", 0, 256, 0); /* every text takes part in the matching */
    CHECK(t, "\xFF<s>", PARSE | ADD, 256, 0);
    CHECK_TEXT(t, "\xC3\xA9\n\n", 0, 260, 259);
    assert_int_equal(loam_tokenizer_special(t, LOAM_TOKEN_NEWLINE), 11);
    loam_tokenizer_free(t);
}

static void plamo_toy(void)
{
    toy_begin(&v, "plamo2", NULL);
    toy_add(&v, "<unk>", TOY_UNKNOWN, 0);
    toy_add(&v, "<bos>", TOY_CONTROL, 0);
    toy_add(&v, "<eos>", TOY_CONTROL, 0);
    toy_add(&v, "<pad>", TOY_CONTROL, 0);
    toy_hex_bytes(&v);
    toy_add(&v, "a", TOY_NORMAL, -1);
    toy_add(&v, "ab", TOY_NORMAL, -3);
    toy_add(&v, "b", TOY_NORMAL, -1.5f);
    toy_add(&v, "aa", TOY_NORMAL, -2);
    toy_add(&v, "\xE6\x97\xA5\xE6\x9C\xAC", TOY_NORMAL, -2);
}

static void test_plamo2(void **state)
{
    loam_tokenizer *t;
    loam_error err;
    (void)state;
    plamo_toy();
    t = toy_make(&v);
    CHECK(t, "ab", 0, 260, 262);
    CHECK(t, "aa", 0, 263);
    CHECK(t, "aab", 0, 263, 262);
    CHECK(t, "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 0, 264, 236, 174, 162);
    CHECK(t,
          "\xEF\xBB\xBF"
          "a",
          0, 260);
    CHECK(t, "a<bos>b", 0, 260, 1, 262); /* found as an ordinary candidate */
    CHECK(t, "a", ADD, 260);
    CHECK_TEXT(t, "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 0, 264, 236, 174, 162);
    loam_tokenizer_free(t);
    plamo_toy();
    v.tokens[4 + 0x41].len = 3; /* byte 41 has no token now */
    assert_int_equal(tokenizer_new(&t, &v.view, &err), LOAM_E_FORMAT);
    assert_non_null(strstr(err.message, "0x41"));
}

static void test_test(void **state)
{
    (void)state;
    toy_begin(&v, "test", NULL);
    for (int i = 0; i < 1000; i++) {
        char text[16];
        toy_add_n(&v, text, (size_t)snprintf(text, sizeof text, "<%d>", i), i == 995 ? TOY_CONTROL : TOY_NORMAL, 0);
    }
    loam_tokenizer *t = toy_make(&v);
    CHECK(t, "Hello world", 0, 650, 114, 100);
    CHECK(t, "\xC3\xA9", 0, 214);
    CHECK(t, "a<995>b", 0, 594, 20);
    CHECK(t, "a<995>b", PARSE, 97, 995, 98);
    CHECK_TEXT(t, "3e3", LOAM_DECODE_SPECIAL, 995);
    loam_tokenizer_free(t);
}

static int64_t seven(void *keys, const char *key)
{
    (void)keys;
    return strcmp(key, "llama.vocab_size") == 0 ? 7 : VOCAB_ABSENT;
}

static void test_none(void **state)
{
    loam_error err;
    size_t n;
    char text[8];
    (void)state;
    toy_begin(&v, "none", NULL);
    v.view.tokens = NULL;
    v.view.scores = NULL;
    v.view.types = NULL;
    v.view.architecture = (text_view){ "llama", 5 };
    v.view.get_int = seven;
    loam_tokenizer *t = toy_make(&v);
    assert_int_equal(loam_tokenizer_size(t), 7);
    assert_int_equal(loam_tokenizer_encode(t, "a", 1, 0, NULL, 0, &n, &err), LOAM_E_UNSUPPORTED);
    assert_int_equal(loam_tokenizer_decode(t, (const loam_token[]){ 3 }, 1, 0, text, sizeof text, &n, &err), LOAM_OK);
    assert_int_equal(n, 0);
    for (int role = 0; role < LOAM_TOKEN_ROLES; role++)
        assert_int_equal(loam_tokenizer_special(t, (loam_token_role)role), LOAM_TOKEN_NULL);
    assert_int_equal(loam_tokenizer_find(t, "a", 1), LOAM_TOKEN_NULL);
    loam_tokenizer_free(t);
}

/* ---- what is refused ---- */

static void refused(loam_status status, const char *part)
{
    loam_tokenizer *t;
    loam_error err;
    assert_int_equal(tokenizer_new(&t, &v.view, &err), status);
    assert_null(t);
    if (!strstr(err.message, part)) fail_msg("'%s' does not say '%s'", err.message, part);
    assert_int_equal(tokenizer_new(&t, &v.view, NULL), status);
}

static void test_refusals(void **state)
{
    (void)state;
    toy_begin(&v, "megatron", NULL);
    refused(LOAM_E_UNSUPPORTED, "megatron");
    v.view.model.data = NULL;
    v.view.model.len = 0;
    refused(LOAM_E_FORMAT, "tokenizer.ggml.model");
    bpe_toy("gpt2", "klingon");
    refused(LOAM_E_UNSUPPORTED, "klingon");
    bpe_toy("gpt2", "gpt-2");
    v.view.merges = NULL;
    refused(LOAM_E_FORMAT, "merges");
    bpe_toy("gpt2", "kimi-k2");
    v.view.merges = NULL;
    loam_tokenizer_free(toy_make(&v)); /* the one exception */
    bpe_toy("gpt2", "gpt-2");
    toy_add(&v, "whole", TOY_NORMAL, 0);
    refused(LOAM_E_FORMAT, "259");
    spm_toy();
    v.view.tokens = NULL;
    refused(LOAM_E_FORMAT, "tokenizer.ggml.tokens");
    spm_toy();
    v.view.n_tokens = UINT32_MAX;
    refused(LOAM_E_FORMAT, "tokens");
    spm_toy();
    v.tokens[5].len = LIMIT_TOKEN_BYTES + 1;
    refused(LOAM_E_FORMAT, "token 5");
    ugm_toy(false, false);
    v.view.charsmap = (text_view){ "\x08\0\0\0abcd", 8 };
    refused(LOAM_E_FORMAT, "charsmap");
}

static void test_calls(void **state)
{
    loam_error err;
    loam_token ids[2] = { -7, -7 }, *all;
    size_t n;
    char text[4] = "zzz";
    (void)state;
    spm_toy();
    loam_tokenizer *t = toy_make(&v);
    assert_int_equal(loam_tokenizer_encode(t, "abcc", 4, 0, ids, 2, &n, &err), LOAM_E_FULL);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], -7);
    assert_int_equal(loam_tokenizer_encode(t, "abcc", 4, 0, NULL, 0, &n, NULL), LOAM_E_FULL);
    assert_int_equal(loam_tokenizer_encode(t, "", 0, 0, NULL, 0, &n, &err), LOAM_OK);
    assert_int_equal(loam_tokenizer_encode(t, "abc", 3, 64, ids, 2, &n, &err), LOAM_E_ARG);
    assert_int_equal(loam_tokenizer_encode(t, "abc", (size_t)LIMIT_TEXT_BYTES + 1, 0, ids, 2, &n, &err), LOAM_E_ARG);
    assert_int_equal(loam_tokenizer_encode_all(t, "abc", 3, 64, &all, &n, &err), LOAM_E_ARG);
    assert_null(all);
    ids[0] = 263;
    ids[1] = 9999;
    assert_int_equal(loam_tokenizer_decode(t, ids, 2, 0, text, 3, &n, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "9999"));
    assert_int_equal(loam_tokenizer_decode(t, ids, 1, 0, text, 1, &n, &err), LOAM_E_FULL);
    assert_int_equal(n, 2);
    assert_string_equal(text, "zzz");
    assert_int_equal(loam_tokenizer_decode(t, ids, 1, 64, text, 1, &n, &err), LOAM_E_ARG);
    assert_int_equal(loam_tokenizer_piece(t, 263, 0, text, 3, &n, &err), LOAM_OK);
    assert_memory_equal(text, "ab", 2);
    assert_int_equal(loam_tokenizer_piece(t, -1, 0, text, 3, &n, &err), LOAM_E_ARG);
    assert_int_equal(loam_tokenizer_piece(t, 1, LOAM_DECODE_REMOVE_SPECIAL, text, 3, &n, &err), LOAM_E_ARG);
    assert_null(loam_tokenizer_text(t, 9999, &n));
    loam_tokenizer_free(t);
    loam_tokenizer_free(NULL);
    loam_tokens_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spm),        cmocka_unit_test(test_spm_keys),  cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_bpe_loss),   cmocka_unit_test(test_gemma4),    cmocka_unit_test(test_dna),
        cmocka_unit_test(test_whitespace), cmocka_unit_test(test_wordpiece), cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_charsmap),   cmocka_unit_test(test_rwkv),      cmocka_unit_test(test_plamo2),
        cmocka_unit_test(test_test),       cmocka_unit_test(test_none),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
