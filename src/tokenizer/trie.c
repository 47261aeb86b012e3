/* trie.c - see trie.h. Building is a radix sort from the first byte on, level by level: a node is a range of the list whose
 * texts agree up to its depth; sorting the range by the next byte makes its children. Bounded by the bytes of the texts.
 *
 *   list   [ a  ab  abc  b  bcd ]     root 0..5  ->  'a' 0..3  'b' 3..5  ->  ... */
#include "tokenizer/trie.h"

#include <string.h>

#include "base/mem.h"

#define SMALL_RANGE 12 /* texts; below, sorting by insertion is faster than counting */

/* Until it is reached, a node keeps its range in `value` (first) and `child` (end). */
static bool add_node(trie *t, uint8_t label, uint32_t first, uint32_t end)
{
    if (!mem_grow(&t->nodes, &t->cap_nodes, t->n_nodes + 1, sizeof *t->nodes, UINT32_MAX - 1) ||
        !mem_grow(&t->labels, &t->cap_labels, t->n_nodes + 1, 1, UINT32_MAX - 1))
        return false;
    t->labels[t->n_nodes] = label;
    t->nodes[t->n_nodes++] = (trie_node){ .value = first, .child = end };
    return true;
}

static uint8_t byte_at(const trie *t, uint32_t number, size_t depth) { return (uint8_t)t->texts[number].data[depth]; }

static bool children_small(trie *t, uint32_t *list, uint32_t first, uint32_t end, size_t depth)
{
    uint8_t bytes[SMALL_RANGE];
    uint32_t n = end - first;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number = list[first + i], k = i;
        uint8_t byte = byte_at(t, number, depth);
        for (; k > 0 && bytes[k - 1] > byte; k--) {
            bytes[k] = bytes[k - 1];
            list[first + k] = list[first + k - 1];
        }
        bytes[k] = byte;
        list[first + k] = number;
    }
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && bytes[j] == bytes[i];) j++;
        if (!add_node(t, bytes[i], first + i, first + j)) return false;
    }
    return true;
}

static bool children_large(trie *t, uint32_t *list, uint32_t *scratch, uint32_t first, uint32_t end, size_t depth)
{
    uint32_t start[257] = { 0 };
    for (uint32_t i = first; i < end; i++) start[byte_at(t, list[i], depth) + 1]++;
    for (unsigned b = 0; b < 256; b++) {
        uint32_t count = start[b + 1];
        start[b + 1] += start[b];
        if (count && !add_node(t, (uint8_t)b, first + start[b], first + start[b + 1])) return false;
    }
    for (uint32_t i = first; i < end; i++) scratch[start[byte_at(t, list[i], depth)]++] = list[i];
    memcpy(list + first, scratch, (end - first) * sizeof *list);
    return true;
}

/* Turns a node's range into its value and its children. */
static bool settle(trie *t, uint32_t index, uint32_t *list, uint32_t *scratch, size_t depth)
{
    uint32_t first = t->nodes[index].value, end = t->nodes[index].child, value = TRIE_NONE, rest = first;
    if (end - first == 1 && depth > 0) {
        t->nodes[index] = (trie_node){ .value = list[first], .tail = t->texts[list[first]].len > depth };
        return true;
    }
    for (uint32_t i = first; i < end; i++) { /* texts that end here leave the list; the first of them is the value */
        if (t->texts[list[i]].len > depth) list[rest++] = list[i];
        else if (value == TRIE_NONE) value = list[i];
    }
    uint32_t child = (uint32_t)t->n_nodes;
    bool ok = rest - first < SMALL_RANGE ? children_small(t, list, first, rest, depth)
                                         : children_large(t, list, scratch, first, rest, depth);
    t->nodes[index] = (trie_node){ .value = value, .child = child, .n_children = (uint16_t)(t->n_nodes - child) };
    return ok;
}

bool trie_build(trie *t, const text_view *texts, uint32_t *list, size_t n)
{
    *t = (trie){ .texts = texts };
    memset(t->first, 0xFF, sizeof t->first);
    uint32_t *scratch = mem_alloc_array(n, sizeof *scratch);
    bool ok = scratch && n < UINT32_MAX && add_node(t, 0, 0, (uint32_t)n);
    size_t depth = 0;
    for (size_t i = 0, level_end = 1; ok && i < t->n_nodes; i++) {
        if (i == level_end) {
            depth++;
            level_end = t->n_nodes;
        }
        ok = settle(t, (uint32_t)i, list, scratch, depth);
    }
    mem_free(scratch);
    if (!ok) {
        trie_free(t);
        return false;
    }
    t->nodes[0].value = TRIE_NONE;
    for (uint32_t k = 0; k < t->nodes[0].n_children; k++) t->first[t->labels[t->nodes[0].child + k]] = t->nodes[0].child + k;
    return true;
}

void trie_free(trie *t)
{
    mem_free(t->nodes);
    mem_free(t->labels);
    *t = (trie){ 0 };
}

/* The node behind one byte; TRIE_NONE without. */
static uint32_t child_of(const trie *t, uint32_t node, char byte)
{
    if (node == 0) return t->first[(uint8_t)byte];
    const trie_node *x = &t->nodes[node];
    const uint8_t *labels = t->labels + x->child;
    if (x->n_children <= 8) {
        for (unsigned i = 0; i < x->n_children; i++)
            if (labels[i] == (uint8_t)byte) return x->child + i;
        return TRIE_NONE;
    }
    const uint8_t *p = memchr(labels, (uint8_t)byte, x->n_children);
    return p ? x->child + (uint32_t)(p - labels) : TRIE_NONE;
}

bool trie_next(trie_walk *w)
{
    while (!w->over && w->depth < w->n) {
        uint32_t node = child_of(w->t, w->node, w->s[w->depth]);
        if (node == TRIE_NONE) break;
        w->node = node;
        w->depth++;
        const trie_node *x = &w->t->nodes[node];
        if (x->value == TRIE_NONE) continue;
        const text_view *text = &w->t->texts[x->value];
        w->over = x->tail;
        if (x->tail && (text->len > w->n || memcmp(text->data + w->depth, w->s + w->depth, text->len - w->depth) != 0)) break;
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
    while (trie_next(&w)) {
    }
    *len = w.len;
    return w.value;
}

size_t trie_prefix(const trie *t, const char *s, size_t n)
{
    uint32_t node = 0;
    size_t depth = 0;
    while (t->n_nodes && depth < n) {
        uint32_t next = child_of(t, node, s[depth]);
        if (next == TRIE_NONE) break;
        node = next;
        depth++;
        if (!t->nodes[node].tail) continue;
        const text_view *text = &t->texts[t->nodes[node].value];
        while (depth < n && depth < text->len && text->data[depth] == s[depth]) depth++;
        break;
    }
    return depth;
}
