/* toy.c - see toy.h. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"

static text_view keep(toy *v, const char *s, size_t n)
{
    assert_true(v->n_text + n <= sizeof v->text);
    char *copy = v->text + v->n_text;
    memcpy(copy, s, n);
    v->n_text += n;
    return (text_view){ copy, n };
}

static int64_t get_int(void *keys, const char *key)
{
    const toy *v = keys;
    for (size_t i = 0; i < v->n_keys; i++) {
        const char *name = strncmp(key, "tokenizer.ggml.", 15) == 0 ? key + 15 : key;
        if (strcmp(v->keys[i].key, name) == 0) return v->keys[i].value;
    }
    return VOCAB_ABSENT;
}

void toy_begin(toy *v, const char *model, const char *pre)
{
    memset(v, 0, sizeof *v);
    v->view = (vocab_view){ .source = "toy",
                            .tokens = v->tokens,
                            .scores = v->scores,
                            .types = v->types,
                            .merges = v->merges,
                            .keys = v,
                            .get_int = get_int };
    v->view.model = keep(v, model, strlen(model));
    if (pre) v->view.pre = keep(v, pre, strlen(pre));
}

int32_t toy_add_n(toy *v, const char *text, size_t n, int type, float score)
{
    uint32_t id = v->view.n_tokens++;
    assert_true(id < TOY_TOKENS);
    v->tokens[id] = keep(v, text, n);
    v->types[id] = type;
    v->scores[id] = score;
    return (int32_t)id;
}

int32_t toy_add(toy *v, const char *text, int type, float score) { return toy_add_n(v, text, strlen(text), type, score); }

void toy_merge(toy *v, const char *merge)
{
    assert_true(v->view.n_merges < TOY_TOKENS);
    v->merges[v->view.n_merges++] = keep(v, merge, strlen(merge));
}

void toy_key(toy *v, const char *key, int64_t value)
{
    assert_true(v->n_keys < TOY_KEYS);
    v->keys[v->n_keys].key = key;
    v->keys[v->n_keys++].value = value;
}

void toy_hex_bytes(toy *v)
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        toy_add(v, text, TOY_BYTE, 0);
    }
}

void toy_bytes(toy *v)
{
    for (int b = 0; b < 256; b++) {
        char text[4];
        toy_add_n(v, text, uni_encode(byte_to_cp((uint8_t)b), text), TOY_NORMAL, 0);
    }
}

loam_tokenizer *toy_make(const toy *v)
{
    loam_tokenizer *t;
    loam_error err;
    if (tokenizer_new(&t, &v->view, &err) != LOAM_OK) fail_msg("%s", err.message);
    return t;
}

static void print_ids(const char *what, const int32_t *ids, size_t n)
{
    print_error("  %s", what);
    for (size_t i = 0; i < n; i++) print_error(" %d", ids[i]);
    print_error("\n");
}

static size_t count(const int32_t *ids)
{
    size_t n = 0;
    while (ids[n] >= 0) n++;
    return n;
}

void check_ids(const loam_tokenizer *t, const char *text, size_t n, unsigned flags, const int32_t *want)
{
    loam_error err;
    loam_token *ids;
    size_t got, wanted = count(want);
    if (loam_tokenizer_encode_all(t, text, n, flags, &ids, &got, &err) != LOAM_OK) fail_msg("%s", err.message);
    bool same = got == wanted && memcmp(ids, want, got * sizeof *ids) == 0;
    if (!same) {
        print_error("text '%.*s', flags %u\n", (int)n, text, flags);
        print_ids("expected", want, wanted);
        print_ids("received", ids, got);
    }
    loam_tokens_free(ids);
    assert_true(same);
}

void check_text(const loam_tokenizer *t, const int32_t *ids, unsigned flags, const char *want)
{
    loam_error err;
    char text[1024];
    size_t len;
    if (loam_tokenizer_decode(t, ids, count(ids), flags, text, sizeof text - 1, &len, &err) != LOAM_OK)
        fail_msg("%s", err.message);
    text[len] = 0;
    assert_string_equal(text, want);
}
