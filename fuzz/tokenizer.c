/* tokenizer.c - fuzz target: a small vocabulary of any kind from bytes, then texts. Whatever they are, the vocabulary is
 * refused or gives ids inside it, the same ones each time, that decode without error; streams are valid UTF-8.
 *
 *     bytes: [ kind ][ pre-tokenizer ][ switches ][ keys: 4 ][ tokens: n, then type, score, length, text each ]
 *            [ merges: n, then length, text each ][ charsmap: length, bytes ][ the text ] */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer.h"

#define MAX_TOKENS 640
#define MAX_MERGES 64

typedef struct bytes {
    const uint8_t *p, *end;
} bytes;

static uint8_t byte(bytes *b) { return b->p < b->end ? *b->p++ : 0; }

static text_view take(bytes *b, size_t n)
{
    size_t left = (size_t)(b->end - b->p);
    text_view s = { (const char *)b->p, n < left ? n : left };
    b->p += s.len;
    return s;
}

static void require(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static const char *const models[] = { "llama",  "gpt2", "gemma4",    "bert",       "t5",   "rwkv",
                                      "plamo2", "test", "hybriddna", "whitespace", "none", "?" };
static const char *const pres[] = { "",
                                    "default",
                                    "gpt-2",
                                    "jina-v2-code",
                                    "starcoder",
                                    "falcon",
                                    "llama-bpe",
                                    "glm4",
                                    "minicpm5",
                                    "jais-2",
                                    "qwen2",
                                    "laguna",
                                    "qwen35",
                                    "ufakzeka",
                                    "seed-coder",
                                    "exaone-moe",
                                    "deepseek-llm",
                                    "deepseek-coder",
                                    "deepseek-v3",
                                    "spark2_5",
                                    "youtu",
                                    "afmoe",
                                    "tiny_aya",
                                    "tekken",
                                    "gpt-4o",
                                    "granite-embed-multi-97m",
                                    "kimi-k2",
                                    "superbpe",
                                    "bloom",
                                    "viking",
                                    "chameleon",
                                    "gemma4",
                                    "sarvam-moe",
                                    "whitespace",
                                    "?" };
static const char *const names[] = { "", "a Phi-3", "modern-bert", "?" };
static const char *const given[] = {
    "<s>",     "</s>",     "<unk>",      "<mask>",      "[MASK]",           "<dna>",         "</dna>", "<oov>",
    "<|end|>", "<|call|>", "<|return|>", "<|channel|>", "<|tool_response>", "<|endoftext|>", "[PAD]",  "unused"
};

static const int32_t suppress[] = { 1, 5, 99999, -1 };

/* The vocabulary of one input. */
typedef struct vocabulary {
    vocab_view view;
    text_view tokens[MAX_TOKENS];
    float scores[MAX_TOKENS];
    int32_t types[MAX_TOKENS];
    text_view merges[MAX_MERGES];
    uint8_t keys[4];
    char forms[256][8]; /* of bytes */
} vocabulary;

static int64_t get_int(void *keys, const char *key)
{
    const uint8_t *k = keys;
    if (strstr(key, "vocab_size")) return k[0];
    if (strstr(key, "token_id")) return strlen(key) % 3 ? VOCAB_ABSENT : k[0];
    return k[1] >> strlen(key) % 8 & 1 ? k[2] >> strlen(key) % 8 & 1 : VOCAB_ABSENT;
}

static void add(vocabulary *v, text_view text, int32_t type, float score)
{
    uint32_t id = v->view.n_tokens;
    if (id == MAX_TOKENS) return;
    v->tokens[id] = text;
    v->types[id] = type;
    v->scores[id] = score;
    v->view.n_tokens++;
}

/* The 256 bytes as the kind writes them: 1 hexadecimal tokens, 2 the byte alphabet, 3 escapes. */
static void add_bytes(vocabulary *v, unsigned form)
{
    for (unsigned b = 0; form && b < 256; b++) {
        char *s = v->forms[b];
        size_t n = form == 1   ? (size_t)snprintf(s, 8, "<0x%02X>", b)
                   : form == 3 ? (size_t)snprintf(s, 8, "\\x%02x", b)
                               : uni_encode(byte_to_cp((uint8_t)b), s);
        add(v, (text_view){ s, n }, form == 1 ? 6 : 1, -1);
    }
}

static void fill(vocabulary *v, bytes *b)
{
    const char *model = models[byte(b) % (sizeof models / sizeof *models)], *pre = pres[byte(b) % (sizeof pres / sizeof *pres)];
    unsigned switches = byte(b);
    memset(v, 0, sizeof *v);
    for (int i = 0; i < 4; i++) v->keys[i] = byte(b);
    v->view = (vocab_view){ .source = "fuzz",
                            .tokens = v->tokens,
                            .merges = v->merges,
                            .keys = v->keys,
                            .get_int = get_int,
                            .borrow = switches & 1,
                            .model = { model, strlen(model) },
                            .pre = { pre, strlen(pre) } };
    const char *name = names[switches >> 1 & 3];
    v->view.name = (text_view){ name, strlen(name) };
    v->view.architecture = switches & 64 ? (text_view){ "nomic-bert-moe", 14 } : (text_view){ "llama", 5 };
    if (switches & 8) v->view.scores = v->scores;
    if (switches & 16) v->view.types = v->types;
    add(v, (text_view){ "<0>", 3 }, 2, 0); /* an id 0 that is no byte */
    add_bytes(v, v->keys[3] & 3);
    for (unsigned i = 0; switches & 32 && i < sizeof given / sizeof *given; i++)
        if (v->keys[3] >> (i % 6 + 2) & 1) add(v, (text_view){ given[i], strlen(given[i]) }, i % 7, -2);
    for (unsigned n = byte(b); n > 0; n--) {
        int32_t type = byte(b) % 8;
        int8_t score = (int8_t)byte(b);
        add(v, take(b, byte(b) % 24), type, score == -128 ? -INFINITY : score == 127 ? NAN : (float)score / 8);
    }
    for (unsigned n = byte(b) % MAX_MERGES; n > 0; n--) v->merges[v->view.n_merges++] = take(b, byte(b) % 24);
    size_t units = byte(b);
    if (units) v->view.charsmap = take(b, units * 8);
    v->view.suppress = suppress;
    v->view.n_suppress = 4;
}

static bool valid_utf8(const char *s, size_t n)
{
    for (size_t i = 0, used; i < n; i += used) {
        char again[4];
        uint32_t cp = uni_decode(s + i, n - i, &used);
        if ((cp >= 0xD800 && cp < 0xE000) || uni_encode(cp, again) != used || memcmp(again, s + i, used) != 0) return false;
    }
    return true;
}

static void decode(const loam_tokenizer *t, const loam_token *ids, size_t n, unsigned flags)
{
    loam_detokenizer *d;
    loam_error err;
    const char *text;
    size_t len, need;
    char small[16];
    loam_status st = loam_tokenizer_decode(t, ids, n, flags, small, sizeof small, &need, &err);
    require(st == LOAM_OK || st == LOAM_E_FULL, "ids do not decode");
    char *all = malloc(need + 1);
    require(loam_tokenizer_decode(t, ids, n, flags, all, need, &len, &err) == LOAM_OK && len == need, "the length was wrong");
    free(all);
    require(loam_detokenizer_new(&d, t, flags & LOAM_DECODE_SPECIAL, &err) == LOAM_OK, "no stream");
    for (size_t i = 0; i < n; i++) {
        require(loam_detokenizer_push(d, ids[i], &text, &len, &err) == LOAM_OK, "an id was refused");
        require(valid_utf8(text, len), "a stream gave broken text");
    }
    loam_detokenizer_finish(d, &text, &len);
    require(valid_utf8(text, len), "a stream ended with broken text");
    loam_detokenizer_free(d);
}

static void encode(const loam_tokenizer *t, text_view text, unsigned flags)
{
    loam_token *ids, *again;
    loam_error err;
    size_t n, n_again;
    loam_status st = loam_tokenizer_encode_all(t, text.data, text.len, flags, &ids, &n, &err);
    require(st == LOAM_OK || (st == LOAM_E_UNSUPPORTED && loam_tokenizer_kind_of(t) == LOAM_TOKENIZER_NONE),
            "a text was refused");
    if (st != LOAM_OK) return;
    for (size_t i = 0; i < n; i++) require(ids[i] >= 0 && ids[i] < loam_tokenizer_size(t), "an id is outside the vocabulary");
    require(loam_tokenizer_encode_all(t, text.data, text.len, flags, &again, &n_again, &err) == LOAM_OK && n == n_again &&
                memcmp(ids, again, n * sizeof *ids) == 0,
            "other ids the second time");
    loam_tokens_free(again);
    decode(t, ids, n, flags); /* the flags of both directions go through the same four values */
    loam_tokens_free(ids);
}

/* Questions about the first and last ids, and about one on each side. */
static void ask(const loam_tokenizer *t)
{
    size_t len;
    loam_error err;
    for (loam_token id = -1, size = loam_tokenizer_size(t); id <= size; id += id == 30 && size > 80 ? size - 70 : 1) {
        const char *text = loam_tokenizer_text(t, id, &len);
        char piece[64];
        bool inside = id >= 0 && id < loam_tokenizer_size(t);
        loam_status st = loam_tokenizer_piece(t, id, 0, piece, sizeof piece, &len, &err);
        require(inside ? st == LOAM_OK || st == LOAM_E_FULL : st == LOAM_E_ARG, "a piece");
        require((loam_tokenizer_kind_of(t) == LOAM_TOKENIZER_NONE || (text != NULL) == inside), "a text");
        if (text && loam_tokenizer_kind_of(t) != LOAM_TOKENIZER_NONE) {
            loam_tokenizer_text(t, id, &len);
            loam_token found = loam_tokenizer_find(t, text, len);
            require(found == id || found == LOAM_TOKEN_NULL || found >= 0, "a token is not found");
        }
        require(loam_tokenizer_is_eog(t, id) == !!(loam_tokenizer_attributes(t, id) & LOAM_ATTR_EOG), "the end of generation");
        loam_tokenizer_is_control(t, id);
        loam_tokenizer_score(t, id);
    }
    for (int role = -1; role <= LOAM_TOKEN_ROLES; role++) {
        loam_token id = loam_tokenizer_special(t, (loam_token_role)role);
        require(id >= LOAM_TOKEN_NULL && id < loam_tokenizer_size(t), "a role is outside the vocabulary");
    }
    loam_tokenizer_suppressed(t, &len);
    loam_tokenizer_adds_bos(t);
    loam_tokenizer_adds_eos(t);
    loam_tokenizer_adds_sep(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static vocabulary v;
    bytes b = { data, data + size };
    loam_tokenizer *t;
    loam_error err;
    fill(&v, &b);
    if (tokenizer_new(&t, &v.view, &err) != LOAM_OK) {
        require(t == NULL && err.message[0], "a refusal without a message");
        return 0;
    }
    ask(t);
    text_view text = take(&b, SIZE_MAX);
    for (unsigned flags = 0; flags < 4; flags++) encode(t, text, flags);
    loam_tokenizer_free(t);
    return 0;
}
