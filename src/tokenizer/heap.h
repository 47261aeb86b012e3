/* heap.h - a four-ary min-heap of 64-bit numbers. Users pack what orders first into the upper half. */
#ifndef LOAM_TOKENIZER_HEAP_H
#define LOAM_TOKENIZER_HEAP_H

#include "base/mem.h"

typedef struct heap {
    uint64_t *items;
    size_t n, cap;
} heap;

static inline bool heap_push(heap *h, uint64_t x)
{
    if (!mem_grow(&h->items, &h->cap, h->n + 1, sizeof *h->items, SIZE_MAX / 32)) return false;
    size_t i = h->n++;
    for (; i > 0 && h->items[(i - 1) / 4] > x; i = (i - 1) / 4) h->items[i] = h->items[(i - 1) / 4];
    h->items[i] = x;
    return true;
}

/* Removes and returns the smallest of n > 0 items. */
static inline uint64_t heap_pop(heap *h)
{
    uint64_t top = h->items[0], x = h->items[--h->n];
    size_t i = 0;
    for (;;) {
        size_t first = 4 * i + 1, end = first + 4 < h->n ? first + 4 : h->n, least = first;
        if (first >= h->n) break;
        for (size_t k = first + 1; k < end; k++)
            if (h->items[k] < h->items[least]) least = k;
        if (h->items[least] >= x) break;
        h->items[i] = h->items[least];
        i = least;
    }
    h->items[i] = x;
    return top;
}

#endif
