/* learn.h - learning the merges of a byte-level BPE vocabulary from text.
 *
 *   text ──► pieces (pre.c), each counted once ──► the most frequent pair of neighbours becomes a token, again and again
 *
 * The result does not depend on the order of the texts: of pairs that are equally frequent the one of the smaller ids wins. */
#ifndef LOAM_TOKENIZER_LEARN_H
#define LOAM_TOKENIZER_LEARN_H

#include "base/error.h"
#include "base/vocab.h"

typedef struct bpe_learner bpe_learner;

typedef struct bpe_merge {
    uint32_t left, right; /* symbols */
} bpe_merge;

/* pre: a name that tokenizer.ggml.pre may have; LOAM_E_ARG for others, and for those that do not use the byte alphabet. */
loam_status learner_new(bpe_learner **out, const char *pre, loam_error *err);
void learner_free(bpe_learner *l); /* NULL is fine */

/* Counts the pieces of a text. Memory grows with different pieces only. LOAM_E_NOMEM: part of the text may be counted. */
loam_status learner_add(bpe_learner *l, const char *text, size_t len, loam_error *err);

/* Learns until there are n_symbols (at least 256: the bytes are symbols 0 to 255) or no pair occurs min_count times. Called
 * once, after the last text. progress may be NULL; false from it stops with LOAM_E_ABORTED. */
typedef bool (*learner_progress)(void *user, uint64_t done, uint64_t total);
loam_status learner_learn(bpe_learner *l, uint32_t n_symbols, uint64_t min_count, learner_progress progress, void *user,
                          loam_error *err);

/* What was learned: the bytes of each symbol, and the merges by rank. They live as long as l. */
const text_view *learner_symbols(const bpe_learner *l, uint32_t *n);
const bpe_merge *learner_merges(const bpe_learner *l, uint32_t *n);
uint64_t learner_bytes(const bpe_learner *l); /* bytes of all texts */

#endif
