/* trie.c - see trie.h. Bounded by 2^32 - 2 nodes; refuses only for lack of memory. */
#include "tokenizer/trie.h"

#include <string.h>

#include "base/mem.h"

static size_t home(const trie *t, uint32_t parent, uint32_t byte)
{
    return (size_t)(((uint64_t)parent << 8 | byte) * t->secret >> t->shift);
}

static trie_edge *edge_of(const trie *t, uint32_t parent, uint32_t byte)
{
    for (size_t i = home(t, parent, byte);; i = (i + 1) & (t->size - 1)) {
        trie_edge *e = &t->edges[i];
        if (e->parent == TRIE_NONE || (e->parent == parent && e->byte == byte)) return e;
    }
}

/* The node behind one byte; parent TRIE_NONE is the root. */
static uint32_t child(const trie *t, uint32_t parent, unsigned char byte)
{
    if (parent == TRIE_NONE) return t->first[byte];
    const trie_edge *e = edge_of(t, parent, byte);
    return e->parent == TRIE_NONE ? TRIE_NONE : e->node;
}

static bool alloc_edges(trie *t, size_t size, unsigned shift)
{
    t->edges = mem_alloc_array(size, sizeof *t->edges);
    if (!t->edges) return false;
    memset(t->edges, 0xFF, size * sizeof *t->edges);
    t->size = size;
    t->shift = shift;
    return true;
}

bool trie_init(trie *t, const text_view *texts, size_t expected, uint64_t secret)
{
    size_t size = 64;
    unsigned shift = 58;
    while (size / 2 < expected && size <= SIZE_MAX / 64) {
        size *= 2;
        shift--;
    }
    *t = (trie){ .texts = texts, .secret = secret | 1 };
    memset(t->first, 0xFF, sizeof t->first);
    return alloc_edges(t, size, shift);
}

void trie_free(trie *t)
{
    mem_free(t->edges);
    mem_free(t->nodes);
    *t = (trie){ 0 };
}

static bool grow(trie *t)
{
    trie bigger = *t;
    if (t->size > SIZE_MAX / 64 || !alloc_edges(&bigger, t->size * 2, t->shift - 1)) return false;
    for (size_t i = 0; i < t->size; i++)
        if (t->edges[i].parent != TRIE_NONE) *edge_of(&bigger, t->edges[i].parent, t->edges[i].byte) = t->edges[i];
    mem_free(t->edges);
    *t = bigger;
    return true;
}

/* Hangs a new node for text `number` below parent; depth counts the bytes up to and with the new edge. */
static bool hang(trie *t, uint32_t parent, unsigned char byte, uint32_t number, size_t depth)
{
    if (!mem_grow(&t->nodes, &t->cap_nodes, t->n_nodes + 1, sizeof *t->nodes, UINT32_MAX - 1)) return false;
    if (t->n_nodes >= t->size / 3 * 2 && !grow(t)) return false;
    uint32_t node = (uint32_t)t->n_nodes++;
    t->nodes[node] = (trie_node){ number, t->texts[number].len > depth };
    if (parent == TRIE_NONE) t->first[byte] = node;
    else *edge_of(t, parent, byte) = (trie_edge){ parent, byte, node };
    return true;
}

bool trie_put(trie *t, uint32_t number, uint32_t *old)
{
    text_view s = t->texts[number];
    uint32_t at = TRIE_NONE;
    *old = TRIE_NONE;
    for (size_t depth = 0; depth < s.len;) {
        uint32_t next = child(t, at, (unsigned char)s.data[depth]);
        if (next == TRIE_NONE) return hang(t, at, (unsigned char)s.data[depth], number, depth + 1);
        at = next;
        depth++;
        uint32_t there = t->nodes[at].value;
        if (t->nodes[at].tail) { /* move the text that ends its branch here one byte down */
            if (!hang(t, at, (unsigned char)t->texts[there].data[depth], there, depth + 1)) return false;
            t->nodes[at] = (trie_node){ TRIE_NONE, false };
        }
        if (depth < s.len) continue;
        *old = t->nodes[at].value;
        if (*old == TRIE_NONE) t->nodes[at].value = number;
    }
    return true;
}

void trie_replace(trie *t, uint32_t number)
{
    text_view s = t->texts[number];
    uint32_t at = TRIE_NONE;
    for (size_t depth = 0; depth < s.len; depth++) {
        uint32_t next = child(t, at, (unsigned char)s.data[depth]);
        if (next == TRIE_NONE) return;
        at = next;
    }
    if (at != TRIE_NONE) t->nodes[at].value = number;
}

bool trie_next(trie_walk *w)
{
    while (!w->over) {
        if (w->depth == w->n) break;
        w->node = child(w->t, w->node, (unsigned char)w->s[w->depth]);
        if (w->node == TRIE_NONE) break;
        w->depth++;
        const trie_node *x = &w->t->nodes[w->node];
        if (x->value == TRIE_NONE) continue;
        const text_view *text = &w->t->texts[x->value];
        w->over = x->tail;
        if (x->tail
            && (text->len > w->n || memcmp(text->data + w->depth, w->s + w->depth, text->len - w->depth) != 0)) break;
        w->value = x->value;
        w->len = text->len;
        return true;
    }
    w->over = true;
    return false;
}

uint32_t trie_longest(const trie *t, const char *s, size_t n, size_t *len)
{
    trie_walk w = trie_at(t, s, n);
    while (trie_next(&w)) { }
    *len = w.len;
    return w.value;
}

size_t trie_prefix(const trie *t, const char *s, size_t n)
{
    uint32_t at = TRIE_NONE;
    for (size_t depth = 0; depth < n;) {
        at = child(t, at, (unsigned char)s[depth]);
        if (at == TRIE_NONE) return depth;
        depth++;
        if (!t->nodes[at].tail) continue;
        text_view text = t->texts[t->nodes[at].value];
        while (depth < n && depth < text.len && text.data[depth] == s[depth]) depth++;
        return depth;
    }
    return n;
}
