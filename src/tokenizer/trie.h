/* trie.h - all texts of a set that begin at a place of a text, shortest first. Built once, then read only.
 *
 *   root ──'a'──► node 1 ──'b'──► node 2        edges: hash table (parent, byte) -> node
 *                                   value: a text's number, or a text whose rest is its tail
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

typedef struct trie_edge {
    uint32_t parent; /* TRIE_NONE: free */
    uint32_t byte;
    uint32_t node;
} trie_edge;

typedef struct trie_node {
    uint32_t value; /* number of the text that ends here, TRIE_NONE without */
    bool tail;      /* value's text goes on behind this node, which then has no edges */
} trie_node;

typedef struct trie {
    const text_view *texts; /* by number */
    trie_edge *edges;
    size_t size;     /* slots of edges, a power of two */
    unsigned shift;
    uint64_t secret;
    trie_node *nodes;
    size_t n_nodes, cap_nodes;
    uint32_t first[256]; /* nodes below the root, TRIE_NONE without */
} trie;

bool trie_init(trie *t, const text_view *texts, size_t expected, uint64_t secret); /* false: out of memory */
void trie_free(trie *t);
/* Adds the text with this number; the empty text is not added. *old gets the number of an equal text that was there
 * (it stays; TRIE_NONE without). False: out of memory. */
bool trie_put(trie *t, uint32_t number, uint32_t *old);
/* Gives the place of an equal text, which trie_put has met, to another number. */
void trie_replace(trie *t, uint32_t number);

/* A walk along a text: `trie_walk w = trie_at(t, s, n); while (trie_next(&w)) use(w.value, w.len);` */
typedef struct trie_walk {
    const trie *t;
    const char *s;
    size_t n;       /* bytes at s */
    size_t depth;   /* bytes walked */
    uint32_t node;  /* TRIE_NONE: at the root */
    bool over;
    uint32_t value; /* of the last match */
    size_t len;     /* its length */
} trie_walk;

static inline trie_walk trie_at(const trie *t, const char *s, size_t n)
{
    return (trie_walk){ .t = t, .s = s, .n = n, .node = TRIE_NONE, .value = TRIE_NONE };
}
bool trie_next(trie_walk *w);

/* The longest text at s: its number and *len, or TRIE_NONE. */
uint32_t trie_longest(const trie *t, const char *s, size_t n, size_t *len);
/* The number of bytes at s that are a prefix of some text. */
size_t trie_prefix(const trie *t, const char *s, size_t n);

#endif
