/* trie.h - all texts of a set that begin at a place of a text, shortest first. Built at once, then read only.
 *
 *   node:  label | value | children: n nodes in a row from `child`, by rising label
 *   root ──'a'──► node ──'b'──► node        value: the text that ends here
 *
 * A branch that holds one text only is not spelled out: its first node carries the text, and the rest (the tail) is compared
 * with the text itself. So there are little more nodes than texts. The texts are the caller's and outlive the trie. */
#ifndef LOAM_TOKENIZER_TRIE_H
#define LOAM_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vocab.h"

#define TRIE_NONE UINT32_MAX

typedef struct trie_node {
    uint32_t value; /* number of the text that ends here, TRIE_NONE without */
    uint32_t child; /* index of the first */
    uint16_t n_children;
    bool tail; /* value's text goes on behind this node, which then has no children */
} trie_node;

typedef struct trie {
    const text_view *texts; /* by number */
    trie_node *nodes;       /* nodes[0] is the root */
    uint8_t *labels;        /* [node]: the byte that leads to it */
    size_t n_nodes, cap_nodes, cap_labels;
    uint32_t first[256]; /* nodes below the root, TRIE_NONE without */
} trie;

/* Builds the trie of the texts with the numbers list[0..n), which is used as scratch. Of equal texts the first in the list
 * stays; empty ones are left out. False: out of memory. */
bool trie_build(trie *t, const text_view *texts, uint32_t *list, size_t n);
void trie_free(trie *t);

/* A walk along a text: `trie_walk w = trie_at(t, s, n); while (trie_next(&w)) use(w.value, w.len);` */
typedef struct trie_walk {
    const trie *t;
    const char *s;
    size_t n;     /* bytes at s */
    size_t depth; /* bytes walked */
    uint32_t node;
    bool over;
    uint32_t value; /* of the last match */
    size_t len;     /* its length */
} trie_walk;

static inline trie_walk trie_at(const trie *t, const char *s, size_t n)
{
    return (trie_walk){ .t = t, .s = s, .n = n, .over = t->n_nodes == 0, .value = TRIE_NONE };
}
bool trie_next(trie_walk *w);

/* The longest text at s: its number and *len, or TRIE_NONE. */
uint32_t trie_longest(const trie *t, const char *s, size_t n, size_t *len);
/* The number of bytes at s that are a prefix of some text. */
size_t trie_prefix(const trie *t, const char *s, size_t n);

#endif
