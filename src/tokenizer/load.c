/* load.c - makes a tokenizer from a vocabulary view.
 *
 * Order matters and is the field's: kind and pre-tokenizer, defaults, texts and attributes, the tables of the kind (from the
 * attributes as the file has them), ids and flags from keys, roles by name, special tokens, strip attributes.
 * Refuses: unknown kinds and pre-tokenizers, two equal texts, texts and counts beyond limits.h, missing merges. */
#include <stdio.h>

#include "base/os.h"
#include "tokenizer/tokenizer.h"

/* ---- small questions ---- */

int64_t tok_key(const vocab_view *v, const char *key) { return v->get_int ? v->get_int(v->keys, key) : VOCAB_ABSENT; }

bool tok_is(text_view s, const char *text) { return s.len == strlen(text) && (s.len == 0 || memcmp(s.data, text, s.len) == 0); }

bool tok_has(text_view s, const char *part) { return s.len && memmem(s.data, s.len, part, strlen(part)) != NULL; }

bool tok_has_any_case(text_view s, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= s.len; i++) {
        size_t k = 0;
        while (k < n && (char)uni_lower((unsigned char)s.data[i + k]) == part[k]) k++;
        if (k == n) return true;
    }
    return false;
}

uint32_t tok_lookup(const loam_tokenizer *t, const char *s, size_t n)
{
    if (n > t->longest) return TABLE_NONE;
    if (t->kind != LOAM_TOKENIZER_BPE || t->flags.raw) return table_get(&t->table, t->keys, s, n, 0);
    char small[256], *out = n <= sizeof small ? small : mem_alloc(n);
    size_t len = out ? bytes_from_alphabet(s, n, out) : SIZE_MAX;
    uint32_t id =
        len == SIZE_MAX ? table_get(&t->table, t->keys, s, n, TABLE_VERBATIM) : table_get(&t->table, t->keys, out, len, 0);
    if (out != small) mem_free(out);
    return id;
}

loam_token tok_find(const loam_tokenizer *t, const char *s, size_t n)
{
    uint32_t id = t->table.slots ? tok_lookup(t, s, n) : TABLE_NONE;
    return id < t->n_tokens ? (loam_token)id : LOAM_TOKEN_NULL;
}

int tok_byte_of(text_view s, bool any_case)
{
    int byte = 0;
    if (s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>') return -1;
    for (int i = 3; i < 5; i++) {
        char c = s.data[i];
        int digit = c >= '0' && c <= '9'               ? c - '0'
                    : c >= 'A' && c <= 'F'             ? c - 'A' + 10
                    : any_case && c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                       : -1;
        if (digit < 0) return -1;
        byte = byte * 16 + digit;
    }
    return byte;
}

void tok_fill_bytes(loam_tokenizer *t, byte_form form)
{
    static const char digits[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        char hex[6] = { '<', '0', 'x', digits[b >> 4], digits[b & 15], '>' }, self = (char)b;
        t->byte_token[b] = form == BYTE_ITSELF ? LOAM_TOKEN_NULL : tok_find(t, hex, sizeof hex);
        if (t->byte_token[b] < 0 && form != BYTE_HEX) t->byte_token[b] = tok_find(t, &self, 1);
    }
}

/* ---- kind, defaults ---- */

typedef struct kind_row {
    const char *model;
    loam_tokenizer_kind kind;
    tok_dialect dialect;
    int32_t bos, eos, unk, sep, pad, mask;
    tok_flags flags;
} kind_row;

static const kind_row kinds[] = {
    { "no_vocab", LOAM_TOKENIZER_NONE, DIALECT_PLAIN, -1, -1, -1, -1, -1, -1, { 0 } },
    { "none", LOAM_TOKENIZER_NONE, DIALECT_PLAIN, -1, -1, -1, -1, -1, -1, { 0 } },
    { "llama",
      LOAM_TOKENIZER_SPM,
      DIALECT_PLAIN,
      1,
      2,
      0,
      -1,
      -1,
      -1,
      { .add_bos = true, .space_prefix = true, .escape = true, .lowercase = true } },
    { "gpt2", LOAM_TOKENIZER_BPE, DIALECT_PLAIN, 11, 11, -1, -1, -1, -1, { .clean = true, .lowercase = true } },
    { "gemma4", LOAM_TOKENIZER_BPE, DIALECT_PLAIN, -1, -1, -1, -1, -1, -1, { .clean = true, .lowercase = true } },
    { "hybriddna", LOAM_TOKENIZER_BPE, DIALECT_DNA, 11, 11, -1, -1, -1, -1, { .clean = true, .lowercase = true } },
    { "whitespace", LOAM_TOKENIZER_BPE, DIALECT_WHITESPACE, 11, 11, -1, -1, -1, -1, { .clean = true, .lowercase = true } },
    { "bert",
      LOAM_TOKENIZER_WPM,
      DIALECT_PLAIN,
      101,
      -1,
      100,
      102,
      0,
      103,
      { .add_bos = true, .add_sep = true, .clean = true, .escape = true, .lowercase = true } },
    { "t5", LOAM_TOKENIZER_UGM, DIALECT_PLAIN, -1, 1, 2, -1, 0, -1, { .add_eos = true, .escape = true, .lowercase = true } },
    { "rwkv", LOAM_TOKENIZER_RWKV, DIALECT_PLAIN, -1, -1, -1, -1, -1, -1, { .escape = true, .lowercase = true } },
    { "plamo2", LOAM_TOKENIZER_PLAMO2, DIALECT_PLAIN, 1, 2, 0, -1, 3, -1, { .escape = true, .lowercase = true } },
    { "test", LOAM_TOKENIZER_TEST, DIALECT_PLAIN, -1, -1, -1, -1, -1, -1, { .escape = true, .lowercase = true } },
};

static loam_status load_pre(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    text_view name = tok_is(v->model, "gemma4") ? (text_view){ "gemma4", 6 } : v->pre;
    if (name.len == 0)
        log_at(LOAM_LOG_WARN, "%s: tokenizer.ggml.pre is missing; using the default pre-tokenizer, text may be encoded badly",
               v->source);
    t->pre = pre_find(name.data, name.len);
    if (!t->pre)
        return fail(err, LOAM_E_UNSUPPORTED, "%s: unknown pre-tokenizer '%.*s' (tokenizer.ggml.pre)", v->source,
                    (int)(name.len < 64 ? name.len : 64), name.data);
    unsigned f = t->pre->flags;
    t->flags.clean = !(f & PRE_NOCLEAN);
    t->flags.ignore_merges = f & PRE_IGNORE_MERGES;
    t->flags.add_bos = f & PRE_BOS;
    t->flags.add_sep = f & PRE_SEP;
    t->flags.escape = f & PRE_ESCAPE;
    t->flags.raw = f & PRE_RAW || t->dialect == DIALECT_WHITESPACE;
    t->flags.newline_whole = f & PRE_NLWHOLE;
    t->flags.lowercase = !(f & PRE_NOLOWER);
    if (f & PRE_NOBOSID) t->role[LOAM_TOKEN_BOS] = LOAM_TOKEN_NULL;
    return LOAM_OK;
}

static loam_status load_kind(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    const kind_row *k = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tok_is(v->model, kinds[i].model)) k = &kinds[i];
    if (!v->model.data) return fail(err, LOAM_E_FORMAT, "%s: key 'tokenizer.ggml.model' is missing", v->source);
    if (!k)
        return fail(err, LOAM_E_UNSUPPORTED, "%s: unknown tokenizer '%.*s' (tokenizer.ggml.model)", v->source,
                    (int)(v->model.len < 64 ? v->model.len : 64), v->model.data);
    t->kind = k->kind;
    t->dialect = k->dialect;
    t->flags = k->flags;
    for (int i = 0; i < LOAM_TOKEN_ROLES; i++) t->role[i] = LOAM_TOKEN_NULL;
    t->role[LOAM_TOKEN_BOS] = k->bos;
    t->role[LOAM_TOKEN_EOS] = k->eos;
    t->role[LOAM_TOKEN_UNK] = k->unk;
    t->role[LOAM_TOKEN_SEP] = k->sep;
    t->role[LOAM_TOKEN_PAD] = k->pad;
    t->role[LOAM_TOKEN_MASK] = k->mask;
    return k->kind == LOAM_TOKENIZER_BPE ? load_pre(t, v, err) : LOAM_OK;
}

/* ---- texts, attributes, scores ---- */

static loam_status load_count(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    int64_t n = v->tokens ? v->n_tokens : 0;
    if (t->kind == LOAM_TOKENIZER_NONE) {
        char key[LIMIT_NAME_BYTES + 16];
        size_t len = v->architecture.len < LIMIT_NAME_BYTES ? v->architecture.len : 0;
        if (len) memcpy(key, v->architecture.data, len);
        memcpy(key + len, ".vocab_size", sizeof ".vocab_size");
        n = tok_key(v, key) > 0 ? tok_key(v, key) : 0;
    } else if (!v->tokens) {
        return fail(err, LOAM_E_FORMAT, "%s: key 'tokenizer.ggml.tokens' is missing", v->source);
    }
    if (n > LIMIT_VOCAB)
        return fail(err, LOAM_E_FORMAT, "%s: the vocabulary has %lld tokens (at most %u)", v->source, (long long)n, LIMIT_VOCAB);
    t->n_tokens = (uint32_t)n;
    for (int i = 0; i < LOAM_TOKEN_ROLES; i++)
        if (t->role[i] >= n) t->role[i] = LOAM_TOKEN_NULL;
    return LOAM_OK;
}

/* Copies or borrows the texts; an empty one gets a name. */
static loam_status load_texts(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        text_view s = v->tokens[id];
        if (s.len > LIMIT_TOKEN_BYTES)
            return fail(err, LOAM_E_FORMAT, "%s: token %u has %zu bytes (at most %u)", v->source, id, s.len, LIMIT_TOKEN_BYTES);
        if (s.len == 0) {
            char name[32];
            s.len = (size_t)snprintf(name, sizeof name, "[EMPTY_%u]", id);
            s.data = arena_copy(&t->arena, name, s.len);
            log_at(LOAM_LOG_WARN, "%s: token %u has no text", v->source, id);
        } else if (!v->borrow) {
            s.data = arena_copy(&t->arena, s.data, s.len);
        }
        if (!s.data) return fail_nomem(err, "token texts", s.len);
        t->texts[id] = s;
        if (s.len > t->longest) t->longest = s.len;
    }
    return LOAM_OK;
}

static uint16_t attribute_of(int32_t type)
{
    static const uint16_t bits[7] = {
        0, LOAM_ATTR_NORMAL, LOAM_ATTR_UNKNOWN, LOAM_ATTR_CONTROL, LOAM_ATTR_USER, LOAM_ATTR_UNUSED, LOAM_ATTR_BYTE
    };
    return type >= 0 && type < 7 ? bits[type] : 0;
}

static loam_status load_tokens(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    size_t n = t->n_tokens;
    t->texts = mem_zalloc_array(n, sizeof *t->texts);
    t->attrs = mem_zalloc_array(n, sizeof *t->attrs);
    if (v->scores) t->scores = mem_alloc_array(n, sizeof *t->scores);
    if (!t->texts || !t->attrs || (v->scores && !t->scores)) return fail_nomem(err, "token arrays", n * sizeof *t->texts);
    if (t->kind == LOAM_TOKENIZER_NONE) return LOAM_OK;
    if (v->scores && n) memcpy(t->scores, v->scores, n * sizeof *t->scores);
    for (size_t i = 0; i < n; i++) t->attrs[i] = v->types ? attribute_of(v->types[i]) : LOAM_ATTR_NORMAL;
    return load_texts(t, v, err);
}

/* The form of a text that the table holds: with the byte alphabet undone where the kind uses it, else as it is. */
static bool key_of(loam_tokenizer *t, text_view s, text_view *key, uint32_t *space)
{
    *key = s;
    *space = 0;
    if (t->kind != LOAM_TOKENIZER_BPE || t->flags.raw) return true;
    char *out = arena_take(&t->arena, s.len);
    if (!out) return false;
    size_t len = bytes_from_alphabet(s.data, s.len, out);
    arena_return(&t->arena, len == SIZE_MAX ? s.len : s.len - len);
    if (len == SIZE_MAX) *space = TABLE_VERBATIM;
    else *key = (text_view){ out, len };
    return true;
}

/* The blocks of the DNA dialect end with U+E000, which is not printed. The table keeps the marked texts. */
static void unmark_dna(loam_tokenizer *t)
{
    loam_token oov = tok_find(t, "<oov>", 5);
    for (uint32_t id = (uint32_t)oov + 1; oov >= 0 && id < t->n_tokens; id++) {
        text_view *s = &t->texts[id];
        if (s->len > 3 && memcmp(s->data + s->len - 3, "\xEE\x80\x80", 3) == 0) s->len -= 3;
    }
}

/* Adds a batch of texts, so that the table's memory is on its way before it is needed. */
#define BATCH 32u

static loam_status add_batch(loam_tokenizer *t, const vocab_view *v, uint32_t first, loam_error *err)
{
    table_key keys[BATCH];
    uint32_t n = t->n_tokens - first < BATCH ? t->n_tokens - first : BATCH;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t space;
        text_view *key = &t->keys[first + i];
        if (!key_of(t, t->texts[first + i], key, &space)) return fail_nomem(err, "the token table", key->len);
        keys[i] = table_key_of(&t->table, key->data, key->len, space);
        table_prefetch(&t->table, keys[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = first + i, there = id;
        if (!table_put(&t->table, t->keys, keys[i], t->keys[id].data, t->keys[id].len, &there))
            return fail_nomem(err, "the token table", t->table.size * sizeof(table_slot));
        if (there != id)
            return fail(err, LOAM_E_FORMAT, "%s: tokens %u and %u have the same text '%.*s'", v->source, there, id,
                        (int)(t->texts[id].len < 64 ? t->texts[id].len : 64), t->texts[id].data);
        t->keys[id].len |= keys[i].len & TABLE_VERBATIM; /* a length that no symbol has */
    }
    return LOAM_OK;
}

/* Texts to ids. Only BPE keeps keys of its own, which further symbols are added to. */
static loam_status load_table(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    t->keys = t->texts;
    if (t->kind == LOAM_TOKENIZER_BPE) {
        t->keys = NULL;
        if (!mem_grow(&t->keys, &t->cap_symbols, t->n_tokens + 1u, sizeof *t->keys, UINT32_MAX))
            return fail_nomem(err, "token texts", t->n_tokens * sizeof *t->keys);
    }
    t->n_symbols = t->n_tokens;
    if (!table_init(&t->table, t->n_tokens, t->secret))
        return fail_nomem(err, "the token table", t->n_tokens * sizeof(table_slot));
    for (uint32_t id = 0; id < t->n_tokens; id += BATCH) {
        loam_status st = add_batch(t, v, id, err);
        if (st != LOAM_OK) return st;
    }
    if (t->dialect == DIALECT_DNA) unmark_dna(t);
    return LOAM_OK;
}

static loam_status build_kind(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    switch (t->kind) {
    case LOAM_TOKENIZER_SPM: spm_build(t); return LOAM_OK;
    case LOAM_TOKENIZER_BPE: return bpe_build(t, v, err);
    case LOAM_TOKENIZER_WPM: return wordpiece_build(t, err);
    case LOAM_TOKENIZER_UGM: return unigram_build(t, v, err);
    case LOAM_TOKENIZER_RWKV: return rwkv_build(t, err);
    case LOAM_TOKENIZER_PLAMO2: return plamo2_build(t, v, err);
    case LOAM_TOKENIZER_NONE:
    case LOAM_TOKENIZER_TEST: return LOAM_OK;
    }
    return LOAM_OK;
}

/* What a line end encodes to. */
static loam_status find_newline(loam_tokenizer *t, loam_error *err)
{
    loam_token *newline = &t->role[LOAM_TOKEN_NEWLINE];
    *newline = t->role[LOAM_TOKEN_PAD];
    if (t->kind == LOAM_TOKENIZER_NONE || t->kind == LOAM_TOKENIZER_WPM) return LOAM_OK;
    if (t->kind == LOAM_TOKENIZER_SPM) {
        if (t->byte_token['\n'] >= 0) *newline = t->byte_token['\n'];
        return LOAM_OK;
    }
    tok_run r = { .t = t, .err = err };
    loam_status st = encode_fragment(&r, "\n", 1);
    if (st == LOAM_OK && r.n) *newline = r.ids[0];
    run_free(&r);
    return st;
}

/* ---- keys ---- */

static const struct {
    const char *key;
    loam_token_role role;
} id_keys[] = {
    { "tokenizer.ggml.bos_token_id", LOAM_TOKEN_BOS },
    { "tokenizer.ggml.eos_token_id", LOAM_TOKEN_EOS },
    { "tokenizer.ggml.eot_token_id", LOAM_TOKEN_EOT },
    { "tokenizer.ggml.eom_token_id", LOAM_TOKEN_EOM },
    { "tokenizer.ggml.unknown_token_id", LOAM_TOKEN_UNK },
    { "tokenizer.ggml.seperator_token_id", LOAM_TOKEN_SEP },
    { "tokenizer.ggml.padding_token_id", LOAM_TOKEN_PAD },
    { "tokenizer.ggml.mask_token_id", LOAM_TOKEN_MASK },
    { "tokenizer.ggml.fim_pre_token_id", LOAM_TOKEN_FIM_PRE },
    { "tokenizer.ggml.fim_suf_token_id", LOAM_TOKEN_FIM_SUF },
    { "tokenizer.ggml.fim_mid_token_id", LOAM_TOKEN_FIM_MID },
    { "tokenizer.ggml.fim_pad_token_id", LOAM_TOKEN_FIM_PAD },
    { "tokenizer.ggml.fim_rep_token_id", LOAM_TOKEN_FIM_REP },
    { "tokenizer.ggml.fim_sep_token_id", LOAM_TOKEN_FIM_SEP },
    /* older names of three of them; they win */
    { "tokenizer.ggml.prefix_token_id", LOAM_TOKEN_FIM_PRE },
    { "tokenizer.ggml.suffix_token_id", LOAM_TOKEN_FIM_SUF },
    { "tokenizer.ggml.middle_token_id", LOAM_TOKEN_FIM_MID },
};

static void load_ids(loam_tokenizer *t, const vocab_view *v)
{
    for (size_t i = 0; i < sizeof id_keys / sizeof *id_keys; i++) {
        int64_t id = tok_key(v, id_keys[i].key);
        if (id < 0) continue;
        if (id < t->n_tokens) t->role[id_keys[i].role] = (loam_token)id;
        else if (id != UINT32_MAX)
            log_at(LOAM_LOG_WARN, "%s: %s is %lld, but there are %u tokens; ignored", v->source, id_keys[i].key, (long long)id,
                   t->n_tokens);
    }
}

static void load_flag(const vocab_view *v, const char *key, bool *flag)
{
    int64_t value = tok_key(v, key);
    if (value >= 0) *flag = value != 0;
}

static void load_flags(loam_tokenizer *t, const vocab_view *v)
{
    load_flag(v, "tokenizer.ggml.add_bos_token", &t->flags.add_bos);
    load_flag(v, "tokenizer.ggml.add_eos_token", &t->flags.add_eos);
    load_flag(v, "tokenizer.ggml.add_sep_token", &t->flags.add_sep);
    if (t->kind == LOAM_TOKENIZER_BPE && t->pre->flags & PRE_NLWHOLE) {
        if (!t->flags.add_bos) log_at(LOAM_LOG_WARN, "%s: this pre-tokenizer always adds the begin of text", v->source);
        t->flags.add_bos = true;
    }
    load_flag(v, "tokenizer.ggml.normalizer.lowercase", &t->flags.lowercase);
    t->flags.strip_accents = t->flags.lowercase;
    load_flag(v, "tokenizer.ggml.normalizer.strip_accents", &t->flags.strip_accents);
}

static loam_status load_suppressed(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    if (!v->suppress || !v->n_suppress) return LOAM_OK;
    t->suppress = mem_alloc_array(v->n_suppress, sizeof *t->suppress);
    if (!t->suppress) return fail_nomem(err, "the suppressed tokens", v->n_suppress * sizeof *t->suppress);
    for (uint32_t i = 0; i < v->n_suppress; i++)
        if (v->suppress[i] >= 0 && (uint32_t)v->suppress[i] < t->n_tokens) t->suppress[t->n_suppress++] = v->suppress[i];
    return LOAM_OK;
}

static loam_status build(loam_tokenizer *t, const vocab_view *v, loam_error *err)
{
    loam_status st = load_kind(t, v, err);
    if (st == LOAM_OK) st = load_count(t, v, err);
    if (st != LOAM_OK) return st;
    load_flag(v, "tokenizer.ggml.add_space_prefix", &t->flags.space_prefix);
    load_flag(v, "tokenizer.ggml.remove_extra_whitespaces", &t->flags.remove_ws);
    st = load_tokens(t, v, err);
    if (st != LOAM_OK || t->kind == LOAM_TOKENIZER_NONE) return st;
    st = load_table(t, v, err);
    if (st == LOAM_OK) st = build_kind(t, v, err);
    if (st == LOAM_OK) st = find_newline(t, err);
    if (st != LOAM_OK) return st;
    load_ids(t, v);
    load_flags(t, v);
    st = load_suppressed(t, v, err);
    if (st != LOAM_OK) return st;
    names_apply(t, v);
    st = special_build(t, err);
    if (st == LOAM_OK) names_strip(t, v);
    return st;
}

loam_status tokenizer_new(loam_tokenizer **out, const vocab_view *v, loam_error *err)
{
    *out = NULL;
    loam_tokenizer *t = mem_zalloc(sizeof *t);
    if (!t) return fail_nomem(err, "a tokenizer", sizeof *t);
    t->secret = os_random_u64();
    loam_status st = build(t, v, err);
    if (st != LOAM_OK) loam_tokenizer_free(t);
    else *out = t;
    return st;
}

void loam_tokenizer_free(loam_tokenizer *t)
{
    if (!t) return;
    if (t->keys != t->texts) mem_free(t->keys);
    mem_free(t->texts);
    mem_free(t->attrs);
    mem_free(t->scores);
    table_free(&t->table);
    arena_free(&t->arena);
    mem_free(t->suppress);
    mem_free(t->special_id);
    mem_free(t->special_text);
    mem_free(t->special_shorter);
    trie_free(&t->special_trie);
    pair_free(&t->pairs);
    trie_free(&t->matches);
    mem_free(t->word_text);
    mem_free(t->word_cost);
    trie_free(&t->user_prefixes);
    mem_free(t);
}
