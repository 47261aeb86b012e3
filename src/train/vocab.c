/* vocab.c - loam_vocab_builder: a learned vocabulary becomes a file.
 *
 *   ids   0 .. n_special - 1   <s> </s> and further control tokens
 *         then                 the 256 bytes, then what merging made, in the order in which it was learned */
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/limits.h"
#include "base/mem.h"
#include "file/gguf_write.h"
#include "loam/tokenizer.h"
#include "tokenizer/learn.h"
#include "tokenizer/unicode.h"

#define MAX_SPECIAL 256

struct loam_vocab_builder {
    bpe_learner *learner;
    loam_vocab_params p;
    char pre[64];
    char *special[MAX_SPECIAL];
    size_t n_special;
    bool written;
};

loam_vocab_params loam_vocab_defaults(void)
{
    return (loam_vocab_params){ .struct_size = sizeof(loam_vocab_params), .n_vocab = 4096, .pre = "qwen2", .min_count = 2 };
}

static loam_status add_special(loam_vocab_builder *b, const char *text, loam_error *err)
{
    for (size_t i = 0; i < b->n_special; i++)
        if (strcmp(b->special[i], text) == 0) return fail(err, LOAM_E_ARG, "special token '%.64s' is given twice", text);
    if (!*text) return fail(err, LOAM_E_ARG, "a special token has no text");
    if (b->n_special == MAX_SPECIAL) return fail(err, LOAM_E_ARG, "more than %d special tokens", MAX_SPECIAL);
    char *copy = mem_strdup(text, strlen(text));
    if (!copy) return fail_nomem(err, "a special token", strlen(text));
    b->special[b->n_special++] = copy;
    return LOAM_OK;
}

static loam_status prepare(loam_vocab_builder *b, loam_error *err)
{
    loam_status s = add_special(b, "<s>", err);
    if (s == LOAM_OK) s = add_special(b, "</s>", err);
    for (size_t i = 0; s == LOAM_OK && i < b->p.n_special; i++) s = add_special(b, b->p.special[i], err);
    if (s != LOAM_OK) return s;
    int32_t least = (int32_t)b->n_special + 256;
    if (b->p.n_vocab < least || b->p.n_vocab > (int32_t)LIMIT_VOCAB)
        return fail(err, LOAM_E_ARG, "n_vocab %d: the bytes and %zu special tokens are %d already, and %u is the most", b->p.n_vocab,
                    b->n_special, least, LIMIT_VOCAB);
    if (!b->p.pre || strlen(b->p.pre) >= sizeof b->pre) return fail(err, LOAM_E_ARG, "pre: a name is needed");
    snprintf(b->pre, sizeof b->pre, "%s", b->p.pre);
    return learner_new(&b->learner, b->pre, err);
}

loam_status loam_vocab_builder_create(loam_vocab_builder **out, const loam_vocab_params *params, loam_error *err)
{
    *out = NULL;
    loam_vocab_builder *b = mem_zalloc(sizeof *b);
    if (!b) return fail_nomem(err, "a vocabulary", sizeof *b);
    b->p = params ? *params : loam_vocab_defaults();
    loam_status s = b->p.struct_size == sizeof b->p ? prepare(b, err) : fail(err, LOAM_E_ARG, "loam_vocab_params: wrong struct_size");
    if (s != LOAM_OK) loam_vocab_builder_free(b);
    else *out = b;
    return s;
}

void loam_vocab_builder_free(loam_vocab_builder *b)
{
    if (!b) return;
    learner_free(b->learner);
    for (size_t i = 0; i < b->n_special; i++) mem_free(b->special[i]);
    mem_free(b);
}

loam_status loam_vocab_builder_add(loam_vocab_builder *b, const char *text, size_t len, loam_error *err)
{
    return learner_add(b->learner, text, len, err);
}

/* ---- the file ---- */

/* Texts of all tokens and merges in the byte alphabet, one after another in one block. */
typedef struct listing {
    char *text;
    text_view *tokens, *merges;
    int32_t *types;
    uint32_t n_tokens, n_merges;
} listing;

static void listing_free(listing *l)
{
    mem_free(l->text);
    mem_free(l->tokens);
    mem_free(l->merges);
    mem_free(l->types);
}

static char *spell(char *out, text_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t b = (uint8_t)bytes.data[i];
        uint32_t cp = byte_to_cp(b);
        out += uni_encode(cp, out);
    }
    return out;
}

static loam_status make_listing(listing *l, const loam_vocab_builder *b, loam_error *err)
{
    uint32_t n_symbols, n_merges;
    const text_view *symbols = learner_symbols(b->learner, &n_symbols);
    const bpe_merge *merges = learner_merges(b->learner, &n_merges);
    size_t bytes = 1;
    for (uint32_t i = 0; i < n_symbols; i++) bytes += symbols[i].len * 2;
    for (uint32_t i = 0; i < n_merges; i++) bytes += (symbols[merges[i].left].len + symbols[merges[i].right].len) * 2 + 1;
    *l = (listing){ .n_tokens = (uint32_t)b->n_special + n_symbols, .n_merges = n_merges };
    l->text = mem_alloc(bytes);
    l->tokens = mem_alloc_array(l->n_tokens, sizeof *l->tokens);
    l->types = mem_alloc_array(l->n_tokens, sizeof *l->types);
    l->merges = mem_alloc_array(n_merges + 1, sizeof *l->merges);
    if (!l->text || !l->tokens || !l->types || !l->merges) return fail_nomem(err, "the texts of a vocabulary", bytes);
    char *at = l->text;
    for (uint32_t i = 0; i < l->n_tokens; i++) {
        bool special = i < b->n_special;
        char *from = at;
        if (!special) at = spell(at, symbols[i - b->n_special]);
        l->tokens[i] = special ? (text_view){ b->special[i], strlen(b->special[i]) } : (text_view){ from, (size_t)(at - from) };
        l->types[i] = special ? 3 : 1; /* control, normal */
    }
    for (uint32_t i = 0; i < n_merges; i++) {
        char *from = at;
        at = spell(at, symbols[merges[i].left]);
        *at++ = ' ';
        at = spell(at, symbols[merges[i].right]);
        l->merges[i] = (text_view){ from, (size_t)(at - from) };
    }
    return LOAM_OK;
}

static loam_status write_gguf(const loam_vocab_builder *b, const listing *l, const char *path, loam_error *err)
{
    gguf_builder *g;
    loam_status s = gguf_builder_create(&g, NULL, 0, err);
    if (s != LOAM_OK) return s;
    gguf_set_word(g, "general.architecture", "llama");
    gguf_set_word(g, "general.type", "vocabulary");
    gguf_set_word(g, "tokenizer.ggml.model", "gpt2");
    gguf_set_word(g, "tokenizer.ggml.pre", b->pre);
    gguf_set_texts(g, "tokenizer.ggml.tokens", l->tokens, l->n_tokens);
    gguf_set_array(g, "tokenizer.ggml.token_type", GGUF_I32, l->types, l->n_tokens);
    gguf_set_texts(g, "tokenizer.ggml.merges", l->merges, l->n_merges);
    gguf_set_u32(g, "tokenizer.ggml.bos_token_id", 0);
    gguf_set_u32(g, "tokenizer.ggml.eos_token_id", 1);
    gguf_set_bool(g, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(g, "tokenizer.ggml.add_eos_token", false);
    s = gguf_write(g, path, NULL, err);
    gguf_builder_free(g);
    return s;
}

/* ---- tokenizer.json ---- */

/* Appends formatted text or a JSON string to an atomic file; the first failure sticks. */
typedef struct out_file {
    atomic_file *f;
    loam_error *err;
    loam_status status;
} out_file;

static void put(out_file *o, const char *s, size_t n)
{
    if (o->status == LOAM_OK) o->status = atomic_write(o->f, s, n, o->err);
}

static void put_text(out_file *o, const char *s) { put(o, s, strlen(s)); }

static void put_string(out_file *o, text_view t)
{
    put_text(o, "\"");
    for (size_t i = 0, from = 0; i <= t.len; i++) {
        uint8_t c = i < t.len ? (uint8_t)t.data[i] : 0;
        if (i < t.len && c >= 0x20 && c != '"' && c != '\\') continue;
        put(o, t.data + from, i - from);
        from = i + 1;
        char code[8];
        if (i == t.len) break;
        if (c >= 0x20) snprintf(code, sizeof code, "\\%c", c);
        else snprintf(code, sizeof code, "\\u%04x", c);
        put_text(o, code);
    }
    put_text(o, "\"");
}

/* The pattern of the pre-tokenizer, for readers that know patterns and not names. Only that of the default is written out. */
static const char qwen2_pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static void put_json(out_file *o, const loam_vocab_builder *b, const listing *l)
{
    char number[48];
    put_text(o, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (size_t i = 0; i < b->n_special; i++) {
        snprintf(number, sizeof number, "%s\n    {\"id\": %zu, ", i ? "," : "", i);
        put_text(o, number);
        put_text(o, "\"content\": ");
        put_string(o, l->tokens[i]);
        put_text(o, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}");
    }
    put_text(o, "\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
                "    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    put_string(o, (text_view){ qwen2_pattern, sizeof qwen2_pattern - 1 });
    put_text(o, "}, \"behavior\": \"Isolated\", \"invert\": false},\n    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                "\"trim_offsets\": false, \"use_regex\": false}]},\n  \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
                "[{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}],\n    \"pair\": "
                "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], \"special_tokens\": "
                "{\"<s>\": {\"id\": \"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]}}},\n  \"decoder\": {\"type\": \"ByteLevel\", "
                "\"add_prefix_space\": false, \"trim_offsets\": false, \"use_regex\": false},\n  \"model\": {\"type\": \"BPE\", \"dropout\": "
                "null, \"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, "
                "\"byte_fallback\": false, \"ignore_merges\": false,\n    \"vocab\": {");
    for (uint32_t i = 0; i < l->n_tokens; i++) {
        put_text(o, i ? ",\n      " : "\n      ");
        put_string(o, l->tokens[i]);
        snprintf(number, sizeof number, ": %u", i);
        put_text(o, number);
    }
    put_text(o, "\n    },\n    \"merges\": [");
    for (uint32_t i = 0; i < l->n_merges; i++) {
        put_text(o, i ? ",\n      " : "\n      ");
        put_string(o, l->merges[i]);
    }
    put_text(o, "\n    ]\n  }\n}\n");
}

static loam_status write_json(const loam_vocab_builder *b, const listing *l, const char *path, loam_error *err)
{
    if (strcmp(b->pre, "qwen2") != 0)
        return fail(err, LOAM_E_UNSUPPORTED, "tokenizer.json is written with pre-tokenizer qwen2 only, not %s; write a .gguf file", b->pre);
    out_file o = { .err = err };
    o.status = atomic_open(&o.f, path, err);
    if (o.status != LOAM_OK) return o.status;
    put_json(&o, b, l);
    if (o.status == LOAM_OK) o.status = atomic_finish(o.f, err);
    if (o.status == LOAM_OK) o.status = atomic_commit(o.f, err);
    atomic_free(o.f);
    return o.status;
}

loam_status loam_vocab_builder_write(loam_vocab_builder *b, const char *path, int32_t *n_vocab, loam_error *err)
{
    if (b->written) return fail(err, LOAM_E_ARG, "this vocabulary has been written already");
    if (!learner_bytes(b->learner)) return fail(err, LOAM_E_ARG, "there is no text to learn a vocabulary from");
    b->written = true;
    listing l = { 0 };
    size_t n = strlen(path);
    bool json = n > 5 && strcmp(path + n - 5, ".json") == 0;
    loam_status s = learner_learn(b->learner, (uint32_t)b->p.n_vocab - (uint32_t)b->n_special, (uint64_t)(b->p.min_count > 0 ? b->p.min_count : 1),
                                  b->p.progress, b->p.progress_user, err);
    if (s == LOAM_OK) s = make_listing(&l, b, err);
    if (s == LOAM_OK) s = json ? write_json(b, &l, path, err) : write_gguf(b, &l, path, err);
    if (s == LOAM_OK && n_vocab) *n_vocab = (int32_t)l.n_tokens;
    listing_free(&l);
    return s;
}
