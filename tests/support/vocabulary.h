/* vocabulary.h - small vocabularies learned on the spot, for tests that need a real tokenizer. */
#ifndef LOAM_TEST_VOCABULARY_H
#define LOAM_TEST_VOCABULARY_H

#include "loam/model.h"
#include "loam/tokenizer.h"

/* Learns from text and writes a vocabulary file; chat: with <|im_start|> and <|im_end|>. Fails the running test. */
void vocabulary_file(const char *path, const char *text, int32_t n_vocab, bool chat);
/* The same, opened; loam_model_tokenizer has it. */
loam_model *vocabulary_open(const char *text, int32_t n_vocab, bool chat);

#endif
