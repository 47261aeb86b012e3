/* vocab_gguf.h - the vocabulary of a GGUF file, read by the shortest way. For tests of the tokenizer only. */
#ifndef LOAM_TEST_VOCAB_GGUF_H
#define LOAM_TEST_VOCAB_GGUF_H

#include "base/os.h"
#include "base/vocab.h"

#define VOCAB_GGUF_KEYS 128

typedef struct vocab_gguf_key {
    text_view name;
    uint64_t type;
    const uint8_t *value;
} vocab_gguf_key;

typedef struct vocab_gguf {
    vocab_gguf_key keys[VOCAB_GGUF_KEYS];
    size_t n_keys;
    vocab_view view;
    os_file file;
    void *memory;
} vocab_gguf;

bool vocab_gguf_open(vocab_gguf *v, const char *path); /* false with a line on stderr */
void vocab_gguf_close(vocab_gguf *v);

#endif
