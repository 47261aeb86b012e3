/* vocab.h - the neutral view of a vocabulary: what a tokenizer is built from.
 *
 * `file` fills it from GGUF metadata (and later from tokenizer.json), tests fill it by hand. Text is pointer and length
 * into memory that outlives the tokenizer's construction; the tokenizer copies what it keeps, or keeps the pointers
 * where `borrow` says that the memory outlives the tokenizer too (a mapped file). */
#ifndef LOAM_BASE_VOCAB_H
#define LOAM_BASE_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_view {
    const char *data;
    size_t len;
} text_view;

/* A metadata value as the tokenizer needs it: tri-state flags and ids keep "absent" apart from every value. */
#define VOCAB_ABSENT (-1)

typedef struct vocab_view {
    const char *source;        /* file name for messages */
    text_view model;           /* tokenizer.ggml.model: "llama", "gpt2", "bert", "t5", "rwkv", "plamo2", ... */
    text_view pre;             /* tokenizer.ggml.pre; data NULL where absent */
    text_view architecture;    /* general.architecture (some defaults hang on it); data NULL where absent */
    text_view name;            /* general.name; data NULL where absent */
    const text_view *tokens;   /* [n_tokens] */
    const float *scores;       /* [n_tokens] or NULL */
    const int32_t *types;      /* [n_tokens] or NULL: tokenizer.ggml.token_type */
    uint32_t n_tokens;
    const text_view *merges;   /* [n_merges] or NULL */
    uint32_t n_merges;
    const int32_t *suppress;   /* [n_suppress] or NULL: tokenizer.ggml.suppress_tokens */
    uint32_t n_suppress;
    text_view charsmap;        /* tokenizer.ggml.precompiled_charsmap; data NULL where absent */
    bool borrow;
    void *keys;                /* opaque handle for get_int: the metadata of the file */
    /* Integer or bool key by full name ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"); VOCAB_ABSENT
     * where the file has no such key. */
    int64_t (*get_int)(void *keys, const char *key);
    /* String key by full name; data NULL where absent. */
    text_view (*get_text)(void *keys, const char *key);
} vocab_view;

#endif
