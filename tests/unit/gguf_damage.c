/* A good GGUF file cut at every byte, with every bit turned, with every byte at its extremes; and vocabularies whose arrays
 * have the wrong kind or length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "file/gguf.h"
#include "raw.h"

enum { U8 = 0, I8 = 1, I32 = 5, F32 = 6, STRING = 8 };
#define NE(...) ((const int64_t[]){ __VA_ARGS__ })

static raw bytes;

/* ---- a good file, damaged ---- */

static void good_file(raw *r)
{
    raw_head(r, 2, 6);
    raw_key(r, "general.architecture", STRING);
    raw_text(r, "llama");
    raw_key_u32(r, "llama.block_count", 2);
    raw_key(r, "tokenizer.ggml.model", STRING);
    raw_text(r, "llama");
    raw_key_array(r, "tokenizer.ggml.tokens", STRING, 3);
    raw_text(r, "<unk>");
    raw_text(r, "a");
    raw_text(r, "");
    raw_key_array(r, "tokenizer.ggml.scores", F32, 3);
    raw_zeros(r, 12);
    raw_key_array(r, "tokenizer.ggml.token_type", I32, 3);
    raw_zeros(r, 12);
    raw_tensor(r, "a.weight", 2, NE(4, 2), 0, 0);
    raw_tensor(r, "b.weight", 2, NE(32, 2), 2, 32);
    raw_pad(r, 32);
    raw_zeros(r, 32 + 36); /* ends within the padding of b.weight */
}

/* Opens bytes that may be anything and uses all that comes out. */
static loam_status use(const uint8_t *data, size_t size, loam_error *err)
{
    gguf_file *f;
    gguf_vocab v;
    err->message[0] = 0;
    loam_status s = gguf_open_memory(&f, data, size, "damaged.gguf", err);
    if (s != LOAM_OK) {
        assert_null(f);
        assert_true(strlen(err->message) > 20);
        return s;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < gguf_tensor_count(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        assert_ptr_equal(gguf_tensor_find(f, t->name), t);
        for (uint64_t k = 0; k < t->bytes; k++) sum += ((const uint8_t *)t->data)[k];
    }
    if (gguf_vocab_view(&v, f, err) == LOAM_OK)
        for (uint32_t i = 0; i < v.view.n_tokens; i++) sum += v.view.tokens[i].len ? (uint8_t)v.view.tokens[i].data[0] : 0;
    gguf_vocab_free(&v);
    gguf_close(f);
    return sum == UINT64_MAX ? LOAM_E_NUMERIC : LOAM_OK; /* uses the sum */
}

static void every_truncation(void **state)
{
    loam_error err;
    (void)state;
    good_file(&bytes);
    assert_int_equal(use(bytes.data, bytes.size, &err), LOAM_OK);
    for (size_t n = 0; n < bytes.size; n++) {
        uint8_t *part = malloc(n + 1);
        memcpy(part, bytes.data, n);
        assert_int_equal(use(part, n, &err), LOAM_E_FORMAT);
        free(part);
    }
    printf("%zu truncations\n", bytes.size);
}

static void every_bit_flip(void **state)
{
    loam_error err;
    size_t refused = 0;
    (void)state;
    good_file(&bytes);
    for (size_t i = 0; i < bytes.size * 8; i++) {
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        loam_status s = use(bytes.data, bytes.size, &err);
        assert_true(s == LOAM_OK || s == LOAM_E_FORMAT || s == LOAM_E_UNSUPPORTED);
        refused += s != LOAM_OK;
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    printf("%zu of %zu bit flips refused\n", refused, bytes.size * 8);
    assert_true(refused > bytes.size * 2);
}

static void every_byte_extreme(void **state)
{
    static const uint8_t values[] = { 0, 0x7F, 0x80, 0xFF };
    loam_error err;
    (void)state;
    good_file(&bytes);
    for (size_t i = 0; i < bytes.size; i++)
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t old = bytes.data[i];
            bytes.data[i] = values[v];
            loam_status s = use(bytes.data, bytes.size, &err);
            assert_true(s == LOAM_OK || s == LOAM_E_FORMAT || s == LOAM_E_UNSUPPORTED);
            bytes.data[i] = old;
        }
}

/* ---- HO-06: tokenizer arrays ---- */

static void vocabulary(raw *r, const char *key, uint32_t item, uint64_t count, size_t item_bytes)
{
    raw_head(r, 0, 2);
    raw_key_array(r, "tokenizer.ggml.tokens", STRING, 2);
    raw_text(r, "a");
    raw_text(r, "b");
    raw_key_array(r, key, item, count);
    raw_zeros(r, (size_t)count * item_bytes);
}

static void tokenizer_arrays(void **state)
{
    static const struct {
        const char *key;
        uint32_t item;
        uint64_t count;
        size_t item_bytes;
        const char *words[2];
    } cases[] = {
        { "tokenizer.ggml.scores", U8, 2, 1, { "array of uint8", "float" } },
        { "tokenizer.ggml.scores", 12, 2, 8, { "array of float64", "float32" } },
        { "tokenizer.ggml.scores", F32, 1, 4, { "has 1 elements", "has 2" } },
        { "tokenizer.ggml.scores", F32, 3, 4, { "has 3 elements", "has 2" } },
        { "tokenizer.ggml.scores", F32, 0, 4, { "has 0 elements", "has 2" } },
        { "tokenizer.ggml.token_type", I8, 2, 1, { "array of int8", "int32" } },
        { "tokenizer.ggml.token_type", F32, 2, 4, { "array of float32", "integers" } },
        { "tokenizer.ggml.token_type", I32, 1, 4, { "has 1 elements", "has 2" } },
        { "tokenizer.ggml.merges", I32, 2, 4, { "array of int32", "strings" } },
        { "tokenizer.ggml.precompiled_charsmap", F32, 2, 4, { "array of float32", "integers" } },
        { "tokenizer.ggml.precompiled_charsmap", I32, 2, 4, { "array of int32", "uint8" } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_file *f;
        gguf_vocab v;
        loam_error err;
        vocabulary(&bytes, cases[i].key, cases[i].item, cases[i].count, cases[i].item_bytes);
        assert_int_equal(gguf_open_memory(&f, bytes.data, bytes.size, "v.gguf", &err), LOAM_OK);
        assert_int_equal(gguf_vocab_view(&v, f, &err), LOAM_E_FORMAT);
        assert_null(v.memory);
        if (!strstr(err.message, cases[i].key) || !strstr(err.message, cases[i].words[0]) ||
            !strstr(err.message, cases[i].words[1]))
            fail_msg("case %zu: \"%s\"", i, err.message);
        gguf_close(f);
    }
}

static void tokenizer_kinds(void **state)
{
    gguf_file *f;
    gguf_vocab v;
    loam_error err;
    (void)state;
    raw_head(&bytes, 0, 1);
    raw_key_u32(&bytes, "tokenizer.ggml.tokens", 5);
    assert_int_equal(gguf_open_memory(&f, bytes.data, bytes.size, "v.gguf", &err), LOAM_OK);
    assert_int_equal(gguf_vocab_view(&v, f, &err), LOAM_E_FORMAT);
    assert_non_null(strstr(err.message, "'tokenizer.ggml.tokens' is of kind uint32"));
    gguf_close(f);
    raw_head(&bytes, 0, 1);
    raw_key_u32(&bytes, "tokenizer.ggml.model", 5);
    assert_int_equal(gguf_open_memory(&f, bytes.data, bytes.size, "v.gguf", &err), LOAM_OK);
    assert_int_equal(gguf_vocab_view(&v, f, &err), LOAM_E_FORMAT);
    assert_non_null(strstr(err.message, "'tokenizer.ggml.model'"));
    gguf_close(f);
}

/* CVE-2025-49847: a token beyond the limit is refused by index. */
static void token_too_long(void **state)
{
    gguf_file *f;
    gguf_vocab v;
    loam_error err;
    size_t size = 200000;
    static raw head;
    (void)state;
    raw_head(&head, 0, 1);
    raw_key_array(&head, "tokenizer.ggml.tokens", STRING, 2);
    raw_text(&head, "a");
    raw_u64(&head, 100000);
    uint8_t *data = calloc(1, size);
    memcpy(data, head.data, head.size);
    assert_int_equal(gguf_open_memory(&f, data, size, "v.gguf", &err), LOAM_OK);
    assert_int_equal(gguf_vocab_view(&v, f, &err), LOAM_E_FORMAT);
    assert_non_null(strstr(err.message, "tokenizer.ggml.tokens[1] has 100000 bytes"));
    gguf_close(f);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_truncation), cmocka_unit_test(every_bit_flip),
                                        cmocka_unit_test(every_byte_extreme), cmocka_unit_test(tokenizer_arrays),
                                        cmocka_unit_test(tokenizer_kinds), cmocka_unit_test(token_too_long) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
