/* toy.h - small vocabularies made by hand, for tests of the tokenizers. */
#ifndef LOAM_TEST_TOY_H
#define LOAM_TEST_TOY_H

#include "tokenizer/tokenizer.h"

/* Token types as files write them. */
enum { TOY_NORMAL = 1, TOY_UNKNOWN = 2, TOY_CONTROL = 3, TOY_USER = 4, TOY_UNUSED = 5, TOY_BYTE = 6 };

#define TOY_TOKENS 1024
#define TOY_KEYS   16

typedef struct toy {
    vocab_view view;
    text_view tokens[TOY_TOKENS];
    float scores[TOY_TOKENS];
    int32_t types[TOY_TOKENS];
    text_view merges[TOY_TOKENS];
    struct {
        const char *key;
        int64_t value;
    } keys[TOY_KEYS];
    size_t n_keys;
    char text[65536]; /* copies of all texts */
    size_t n_text;
} toy;

/* An empty vocabulary of a kind; pre may be NULL. Must be called first. */
void toy_begin(toy *v, const char *model, const char *pre);
int32_t toy_add_n(toy *v, const char *text, size_t n, int type, float score); /* returns the id */
int32_t toy_add(toy *v, const char *text, int type, float score);
void toy_merge(toy *v, const char *merge);
void toy_key(toy *v, const char *key, int64_t value); /* without "tokenizer.ggml."; key must be a literal */
void toy_hex_bytes(toy *v);                           /* the 256 tokens <0x00> to <0xFF> */
void toy_bytes(toy *v); /* the 256 characters of the byte alphabet, ids 0 to 255 when called first */

/* The tokenizer; fails the running test where it cannot be made. */
loam_tokenizer *toy_make(const toy *v);

/* The ids of a text must be those of a list that ends with -1; prints both and fails the running test where they differ. */
void check_ids(const loam_tokenizer *t, const char *text, size_t n, unsigned flags, const int32_t *want);
#define CHECK(t, text, flags, ...) check_ids(t, text, sizeof(text) - 1, flags, (const int32_t[]){ __VA_ARGS__, -1 })
#define CHECK_NONE(t, text, flags) check_ids(t, text, sizeof(text) - 1, flags, (const int32_t[]){ -1 })
/* The decoded text of ids that end with -1 must be this. */
void check_text(const loam_tokenizer *t, const int32_t *ids, unsigned flags, const char *want);
#define CHECK_TEXT(t, want, flags, ...) check_text(t, (const int32_t[]){ __VA_ARGS__, -1 }, flags, want)

#endif
