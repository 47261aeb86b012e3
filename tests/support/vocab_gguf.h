/* vocab_gguf.h - the vocabulary of a GGUF file, read by the shortest way. For tests of the tokenizer only. */
#ifndef LOAM_TEST_VOCAB_GGUF_H
#define LOAM_TEST_VOCAB_GGUF_H

#include "base/os.h"
#include "base/vocab.h"

typedef struct vocab_gguf {
    vocab_view view;
    os_file file;
    void *memory;
} vocab_gguf;

bool vocab_gguf_open(vocab_gguf *v, const char *path); /* false with a line on stderr */
void vocab_gguf_close(vocab_gguf *v);

#endif
