/* gguf_vocab.c - the neutral vocabulary view (base/vocab.h) of an opened GGUF file.
 *
 * Token and merge texts stay in the file; one block of memory holds the arrays of views, scores and types. Refuses, by key:
 * arrays of the wrong element kind, scores or types that are not as many as the tokens, entries and counts beyond limits.h. */
#include <string.h>

#include "base/mem.h"
#include "file/gguf_impl.h"
#include "base/reader.h"

#define TOKENS   "tokenizer.ggml.tokens"
#define SCORES   "tokenizer.ggml.scores"
#define TYPES    "tokenizer.ggml.token_type"
#define MERGES   "tokenizer.ggml.merges"
#define CHARSMAP "tokenizer.ggml.precompiled_charsmap"
#define SUPPRESS "tokenizer.ggml.suppress_tokens"

static int64_t view_int(void *keys, const char *key)
{
    const gguf_file *f = keys;
    int64_t v = VOCAB_ABSENT;
    bool b;
    const gguf_key *k = gguf_key_find(f, key);
    if (k && k->kind == GGUF_BOOL && gguf_get_bool(f, key, GGUF_REQUIRED, &b, NULL) == LOAM_OK) return b;
    return gguf_get_i64(f, key, GGUF_OPTIONAL, &v, NULL) == LOAM_OK ? v : VOCAB_ABSENT;
}

static text_view view_text(void *keys, const char *key)
{
    text_view t = { NULL, 0 };
    gguf_get_text(keys, key, GGUF_OPTIONAL, &t, NULL);
    return t;
}

typedef struct arrays {
    gguf_array tokens, scores, types, merges, charsmap, suppress;
} arrays;

/* An array of float32 or int32 (uint32 is taken for it), as long as the tokens. */
static loam_status beside_tokens(const gguf_file *f, const char *key, gguf_kind kind, uint64_t n, gguf_array *a, loam_error *err)
{
    loam_status s = gguf_get_array(f, key, GGUF_OPTIONAL, kind == GGUF_F32 ? GGUF_FLOATS : GGUF_INTS, a, err);
    if (s != LOAM_OK || !a->data) return s;
    uint64_t at = gguf_key_find(f, key)->at;
    if (a->item != kind && !(kind == GGUF_I32 && a->item == GGUF_U32))
        return fail_at(err, LOAM_E_FORMAT, at, "%s: key '%s' is an array of %s; an array of %s is required", f->label, key,
                       gguf_kind_name(a->item), gguf_kind_name(kind));
    if (a->count != n)
        return fail_at(err, LOAM_E_FORMAT, at, "%s: key '%s' has %llu elements, but '%s' has %llu", f->label, key,
                       (unsigned long long)a->count, TOKENS, (unsigned long long)n);
    return LOAM_OK;
}

static loam_status text_array(const gguf_file *f, const char *key, gguf_array *a, loam_error *err)
{
    loam_status s = gguf_get_array(f, key, GGUF_OPTIONAL, GGUF_STRINGS, a, err);
    if (s == LOAM_OK && a->count > LIMIT_VOCAB)
        s = fail_at(err, LOAM_E_FORMAT, gguf_key_find(f, key)->at, "%s: key '%s' has %llu entries (at most %u)", f->label, key,
                    (unsigned long long)a->count, LIMIT_VOCAB);
    return s;
}

static loam_status find_arrays(const gguf_file *f, arrays *a, loam_error *err)
{
    loam_status s = text_array(f, TOKENS, &a->tokens, err);
    if (s == LOAM_OK) s = text_array(f, MERGES, &a->merges, err);
    if (s == LOAM_OK) s = beside_tokens(f, SCORES, GGUF_F32, a->tokens.count, &a->scores, err);
    if (s == LOAM_OK) s = beside_tokens(f, TYPES, GGUF_I32, a->tokens.count, &a->types, err);
    if (s == LOAM_OK) s = gguf_get_array(f, SUPPRESS, GGUF_OPTIONAL, GGUF_INTS, &a->suppress, err);
    if (s == LOAM_OK && a->suppress.count > LIMIT_VOCAB)
        s = fail_at(err, LOAM_E_FORMAT, gguf_key_find(f, SUPPRESS)->at, "%s: key '%s' has %llu entries (at most %u)", f->label,
                    SUPPRESS, (unsigned long long)a->suppress.count, LIMIT_VOCAB);
    if (s == LOAM_OK) s = gguf_get_array(f, CHARSMAP, GGUF_OPTIONAL, GGUF_INTS, &a->charsmap, err);
    if (s == LOAM_OK && a->charsmap.data && a->charsmap.item != GGUF_U8 && a->charsmap.item != GGUF_I8)
        s = fail_at(err, LOAM_E_FORMAT, gguf_key_find(f, CHARSMAP)->at,
                    "%s: key '%s' is an array of %s; an array of uint8 is required", f->label, CHARSMAP,
                    gguf_kind_name(a->charsmap.item));
    return s;
}

static loam_status fill_texts(const gguf_file *f, const char *key, const gguf_array *a, text_view *out, loam_error *err)
{
    gguf_strings it = gguf_strings_of(a);
    for (uint64_t i = 0; gguf_next(&it, &out[i]); i++)
        if (out[i].len > LIMIT_TOKEN_BYTES)
            return fail_at(err, LOAM_E_FORMAT, gguf_key_find(f, key)->at,
                           "%s: %s[%llu] has %zu bytes (at most %u)", f->label, key, (unsigned long long)i, out[i].len,
                           LIMIT_TOKEN_BYTES);
    return LOAM_OK;
}

/* The arrays of one vocabulary, in one block: merges and tokens as views, scores, types, suppressed ids. */
static loam_status fill_arrays(const gguf_file *f, gguf_vocab *v, const arrays *a, loam_error *err)
{
    size_t n = (size_t)a->tokens.count, m = (size_t)a->merges.count, k = (size_t)a->suppress.count;
    size_t bytes = (n + m) * sizeof(text_view) + n * (sizeof(float) + sizeof(int32_t)) + k * sizeof(int32_t);
    text_view *texts = v->memory = mem_alloc(bytes);
    if (!texts) return fail_nomem(err, "the vocabulary", bytes);
    float *scores = (float *)(texts + n + m);
    int32_t *types = (int32_t *)(scores + n), *suppress = types + n;
    loam_status s = fill_texts(f, TOKENS, &a->tokens, texts, err);
    if (s == LOAM_OK) s = fill_texts(f, MERGES, &a->merges, texts + n, err);
    if (s != LOAM_OK) return s;
    for (size_t i = 0; a->scores.data && i < n; i++) scores[i] = lef32(a->scores.data + 4 * i);
    for (size_t i = 0; a->types.data && i < n; i++) types[i] = (int32_t)le32(a->types.data + 4 * i);
    v->view.tokens = a->tokens.data ? texts : NULL;
    v->view.merges = a->merges.data ? texts + n : NULL;
    v->view.scores = a->scores.data ? scores : NULL;
    v->view.types = a->types.data ? types : NULL;
    for (size_t i = 0; i < k; i++) {
        int64_t id = gguf_int_at(&a->suppress, i);
        suppress[i] = id >= 0 && id < (int64_t)n ? (int32_t)id : -1;
    }
    v->view.suppress = k ? suppress : NULL;
    v->view.n_suppress = (uint32_t)k;
    v->view.n_tokens = (uint32_t)n;
    v->view.n_merges = (uint32_t)m;
    return LOAM_OK;
}

static loam_status fill_names(const gguf_file *f, vocab_view *v, loam_error *err)
{
    loam_status s = gguf_get_text(f, "tokenizer.ggml.model", GGUF_OPTIONAL, &v->model, err);
    if (s == LOAM_OK) s = gguf_get_text(f, "tokenizer.ggml.pre", GGUF_OPTIONAL, &v->pre, err);
    if (s == LOAM_OK) s = gguf_get_text(f, "general.architecture", GGUF_OPTIONAL, &v->architecture, err);
    if (s == LOAM_OK) s = gguf_get_text(f, "general.name", GGUF_OPTIONAL, &v->name, err);
    return s;
}

loam_status gguf_vocab_view(gguf_vocab *v, const gguf_file *f, loam_error *err)
{
    arrays a;
    memset(v, 0, sizeof *v);
    loam_status s = find_arrays(f, &a, err);
    if (s == LOAM_OK) s = fill_names(f, &v->view, err);
    if (s == LOAM_OK) s = fill_arrays(f, v, &a, err);
    if (s != LOAM_OK) {
        gguf_vocab_free(v);
        return s;
    }
    v->view.source = f->label;
    v->view.charsmap = (text_view){ (const char *)a.charsmap.data, (size_t)a.charsmap.count };
    v->view.borrow = true;
    v->view.keys = (void *)(uintptr_t)f;
    v->view.get_int = view_int;
    v->view.get_text = view_text;
    return LOAM_OK;
}

void gguf_vocab_free(gguf_vocab *v)
{
    mem_free(v->memory);
    memset(v, 0, sizeof *v);
}
