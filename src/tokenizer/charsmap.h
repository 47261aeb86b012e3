/* charsmap.h - the normalization table of unigram vocabularies: a double-array trie of byte strings with replacements.
 *
 *   u32 n | n bytes of u32 units | replacement strings, each ended by a zero byte        (little-endian) */
#ifndef LOAM_TOKENIZER_CHARSMAP_H
#define LOAM_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vocab.h"

typedef struct charsmap {
    const uint8_t *units; /* unaligned */
    size_t n_units;       /* 0: no table */
    const char *strings;
    size_t n_strings; /* bytes */
} charsmap;

/* Reads the head of a table. False where it is malformed. The bytes must outlive the charsmap. */
bool charsmap_open(charsmap *m, const char *data, size_t size);
/* The longest string at s that has a replacement: its length (0: none) and the replacement. */
size_t charsmap_match(const charsmap *m, const char *s, size_t n, text_view *replacement);

#endif
