/* hf_vocab.c - the vocabulary of a folder as "tokenizer.ggml.*" keys: from tokenizer.json, else tokenizer.model, else vocab.txt.
 *
 * Ids below the size of the token table without a text become "[PADn]", unused; texts beyond it are left out. A folder without
 * any of the files has no vocabulary: its models take ids only. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf_impl.h"

#define KEPT_BLOCK 65536

bool hf_vocab_room(hf_vocab *v, uint32_t n)
{
    size_t cap = v->cap, caps[4] = { cap, cap, cap, cap };
    if (n > LIMIT_VOCAB) return false;
    if (n > cap) {
        bool ok = mem_grow(&v->tokens, &caps[0], n, sizeof *v->tokens, LIMIT_VOCAB) &&
                  mem_grow(&v->types, &caps[1], n, sizeof *v->types, LIMIT_VOCAB) &&
                  mem_grow(&v->scores, &caps[2], n, sizeof *v->scores, LIMIT_VOCAB) &&
                  mem_grow(&v->special, &caps[3], n, sizeof *v->special, LIMIT_VOCAB);
        /* on failure some are larger than cap says, which harms nobody */
        if (!ok) return false;
        v->cap = (uint32_t)caps[0];
    }
    for (; v->n < n; v->n++) {
        v->tokens[v->n] = (text_view){ NULL, 0 };
        v->types[v->n] = HF_NORMAL;
        v->scores[v->n] = 0;
        v->special[v->n] = false;
    }
    return true;
}

text_view hf_vocab_keep(hf_vocab *v, const char *text, size_t len)
{
    char *block = v->kept;
    if (len > v->kept_left) {
        size_t size = len > KEPT_BLOCK ? len : KEPT_BLOCK;
        block = mem_alloc(sizeof(void *) + size);
        if (!block) return (text_view){ NULL, 0 };
        memcpy(block, &v->kept, sizeof(void *));
        v->kept = block;
        v->kept_left = size;
    }
    /* a block is filled from its end */
    char *to = block + sizeof(void *) + (v->kept_left - len);
    memcpy(to, text, len);
    v->kept_left -= len;
    return (text_view){ to, len };
}

static void free_vocab(hf_vocab *v)
{
    while (v->kept) {
        void *next;
        memcpy(&next, v->kept, sizeof next);
        mem_free(v->kept);
        v->kept = next;
    }
    mem_free(v->tokens);
    mem_free(v->types);
    mem_free(v->scores);
    mem_free(v->special);
    map_free(&v->index);
    js_free(v->tokenizer);
    js_free(v->config);
    js_free(v->special_map);
    js_free(v->generation);
    os_file_close(&v->model_file);
}

/* ---- vocab.txt of BERT: a token a line ---- */

static void read_lines(hf_build *b, hf_vocab *v, const char *path)
{
    os_file f;
    b->status = os_file_open(&f, path, true, b->err);
    if (b->status != LOAM_OK) return;
    v->kind = "bert";
    const char *at = (const char *)f.data, *end = at + f.size;
    for (uint32_t id = 0; at < end && b->status == LOAM_OK; id++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        size_t kept = len > 0 && at[len - 1] == '\r' ? len - 1 : len;
        if (!hf_vocab_room(v, id + 1)) b->status = fail_nomem(b->err, "the vocabulary", id);
        else if (kept > 1 && at[0] == '[' && at[kept - 1] == ']' && !(kept > 7 && memcmp(at, "[unused", 7) == 0)) {
            v->tokens[id] = hf_vocab_keep(v, at, kept);
            v->types[id] = HF_CONTROL;
            v->special[id] = true;
        } else if (kept > 2 && at[0] == '#' && at[1] == '#') v->tokens[id] = hf_vocab_keep(v, at + 2, kept - 2);
        else {
            char text[512];
            int n = snprintf(text, sizeof text, "\xE2\x96\x81%.*s", kept > 400 ? 400 : (int)kept, at);
            v->tokens[id] = hf_vocab_keep(v, text, (size_t)n);
        }
        if (b->status == LOAM_OK && !v->tokens[id].data) b->status = fail_nomem(b->err, "the vocabulary", kept);
        at += len + 1;
    }
    os_file_close(&f);
}

/* ---- all of it ---- */

static void load_files(hf_build *b, hf_vocab *v)
{
    const struct { js **to; const char *name; } files[] = { { &v->tokenizer, "tokenizer.json" }, { &v->config, "tokenizer_config.json" },
                                                            { &v->special_map, "special_tokens_map.json" },
                                                            { &v->generation, "generation_config.json" } };
    for (size_t i = 0; i < 4 && b->status == LOAM_OK; i++) b->status = hf_open_json(files[i].to, b->path, files[i].name, b->err);
}

static void read_tokens(hf_build *b, hf_vocab *v)
{
    char *model = hf_path(b->path, "tokenizer.model"), *lines = hf_path(b->path, "vocab.txt");
    if (!model || !lines) b->status = fail_nomem(b->err, "a file name", strlen(b->path));
    else if (v->tokenizer) hf_read_tokenizer_json(b, v);
    else if (os_is_file(model)) {
        b->status = os_file_open(&v->model_file, model, true, b->err);
        if (b->status == LOAM_OK) hf_read_spm(b, v);
    } else if (os_is_file(lines) && strcmp(b->arch->name, "bert") == 0) read_lines(b, v, lines);
    mem_free(model);
    mem_free(lines);
}

/* As many texts as the token table has rows. */
static void fit_vocab(hf_build *b, hf_vocab *v)
{
    if (b->n_vocab > 0 && v->n > b->n_vocab) {
        log_at(LOAM_LOG_WARN, "%s: %u tokens for a table of %lld rows: those behind it are left out", b->path, v->n,
               (long long)b->n_vocab);
        v->n = (uint32_t)b->n_vocab;
    }
    if (b->n_vocab > 0 && !hf_vocab_room(v, (uint32_t)b->n_vocab)) b->status = fail_nomem(b->err, "the vocabulary", (uint64_t)b->n_vocab);
    for (uint32_t i = 0; i < v->n && b->status == LOAM_OK; i++) {
        char text[24];
        if (v->tokens[i].data) continue;
        v->tokens[i] = hf_vocab_keep(v, text, (size_t)snprintf(text, sizeof text, "[PAD%u]", i));
        v->types[i] = HF_UNUSED;
        v->scores[i] = -10000;
        if (!v->tokens[i].data) b->status = fail_nomem(b->err, "the vocabulary", sizeof text);
    }
}

static void put_tokens(hf_build *b, const hf_vocab *v)
{
    gguf_set_text(b->b, "tokenizer.ggml.model", v->kind, strlen(v->kind));
    gguf_set_texts(b->b, "tokenizer.ggml.tokens", v->tokens, v->n);
    gguf_set_array(b->b, "tokenizer.ggml.token_type", GGUF_I32, v->types, v->n);
    if (strcmp(v->kind, "llama") == 0 || strcmp(v->kind, "t5") == 0)
        gguf_set_array(b->b, "tokenizer.ggml.scores", GGUF_F32, v->scores, v->n);
}

static bool index_tokens(hf_vocab *v)
{
    if (!map_init(&v->index, v->n)) return false;
    for (uint32_t i = 0; i < v->n; i++)
        if (!map_put(&v->index, v->tokens[i].data, v->tokens[i].len, i, NULL)) return false;
    return true;
}

void hf_put_vocab(hf_build *b)
{
    hf_vocab v = { .unknown = -1 };
    load_files(b, &v);
    if (b->status == LOAM_OK) read_tokens(b, &v);
    if (b->status == LOAM_OK && v.kind) fit_vocab(b, &v);
    if (b->status == LOAM_OK && v.kind) {
        put_tokens(b, &v);
        if (!index_tokens(&v)) b->status = fail_nomem(b->err, "the vocabulary", v.n);
        else hf_put_special(b, &v);
    } else if (b->status == LOAM_OK) gguf_set_text(b->b, "tokenizer.ggml.model", "none", 4);
    free_vocab(&v);
}
