/* vocab_gguf.c - see vocab_gguf.h. Trusts the file: the expected results of the tests come with it. */
#include "vocab_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct walker {
    const uint8_t *p;
} walker;

static uint64_t take(walker *w, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, w->p, n);
    w->p += n;
    return v;
}

static text_view take_text(walker *w)
{
    text_view s = { NULL, (size_t)take(w, 8) };
    s.data = (const char *)w->p;
    w->p += s.len;
    return s;
}

static size_t width(uint64_t type)
{
    static const size_t bytes[13] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return bytes[type];
}

static void skip(walker *w, uint64_t type)
{
    if (type == 8) {
        take_text(w);
    } else if (type == 9) {
        uint64_t item = take(w, 4), n = take(w, 8);
        for (uint64_t i = 0; i < n; i++) skip(w, item);
    } else {
        w->p += width(type);
    }
}

/* The value of a key; *type gets its type. NULL where absent. */
static const uint8_t *find(const vocab_gguf *v, const char *key, uint64_t *type)
{
    for (size_t i = 0; i < v->n_keys; i++) {
        if (v->keys[i].name.len != strlen(key) || memcmp(v->keys[i].name.data, key, strlen(key)) != 0) continue;
        *type = v->keys[i].type;
        return v->keys[i].value;
    }
    return NULL;
}

static void list_keys(vocab_gguf *v)
{
    walker w = { v->file.data + 16 };
    uint64_t n = take(&w, 8);
    for (v->n_keys = 0; v->n_keys < n && v->n_keys < VOCAB_GGUF_KEYS; v->n_keys++) {
        vocab_gguf_key *k = &v->keys[v->n_keys];
        k->name = take_text(&w);
        k->type = take(&w, 4);
        k->value = w.p;
        skip(&w, k->type);
    }
}

static int64_t get_int(void *keys, const char *key)
{
    uint64_t type;
    const uint8_t *p = find(keys, key, &type);
    if (!p || width(type) == 0) return VOCAB_ABSENT;
    return (int64_t)take(&(walker){ p }, width(type));
}

static text_view get_text(void *keys, const char *key)
{
    uint64_t type;
    const uint8_t *p = find(keys, key, &type);
    return p && type == 8 ? take_text(&(walker){ p }) : (text_view){ NULL, 0 };
}

static text_view *texts(const vocab_gguf *v, const char *key, uint32_t *n)
{
    uint64_t type;
    const uint8_t *p = find(v, key, &type);
    *n = 0;
    if (!p) return NULL;
    walker w = { p + 4 };
    *n = (uint32_t)take(&w, 8);
    text_view *out = calloc(*n + 1u, sizeof *out);
    for (uint32_t i = 0; i < *n; i++) out[i] = take_text(&w);
    return out;
}

static void *numbers(const vocab_gguf *v, const char *key, size_t bytes, uint64_t *n)
{
    uint64_t type;
    const uint8_t *p = find(v, key, &type);
    *n = 0;
    if (!p) return NULL;
    walker w = { p + 4 };
    *n = take(&w, 8);
    void *out = malloc(*n * bytes + 1);
    memcpy(out, w.p, *n * bytes);
    return out;
}

bool vocab_gguf_open(vocab_gguf *v, const char *path)
{
    uint64_t n;
    loam_error err;
    memset(v, 0, sizeof *v);
    if (os_file_open(&v->file, path, true, &err) != LOAM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return false;
    }
    list_keys(v);
    v->view = (vocab_view){ .source = path, .borrow = true, .keys = v, .get_int = get_int, .get_text = get_text };
    v->view.model = get_text(v, "tokenizer.ggml.model");
    v->view.pre = get_text(v, "tokenizer.ggml.pre");
    v->view.architecture = get_text(v, "general.architecture");
    v->view.name = get_text(v, "general.name");
    v->view.tokens = texts(v, "tokenizer.ggml.tokens", &v->view.n_tokens);
    v->view.merges = texts(v, "tokenizer.ggml.merges", &v->view.n_merges);
    v->view.scores = numbers(v, "tokenizer.ggml.scores", 4, &n);
    v->view.types = numbers(v, "tokenizer.ggml.token_type", 4, &n);
    v->view.charsmap.data = numbers(v, "tokenizer.ggml.precompiled_charsmap", 1, &n);
    v->view.charsmap.len = (size_t)n;
    return true;
}

void vocab_gguf_close(vocab_gguf *v)
{
    free((void *)(uintptr_t)v->view.tokens);
    free((void *)(uintptr_t)v->view.merges);
    free((void *)(uintptr_t)v->view.scores);
    free((void *)(uintptr_t)v->view.types);
    free((void *)(uintptr_t)v->view.charsmap.data);
    os_file_close(&v->file);
}
