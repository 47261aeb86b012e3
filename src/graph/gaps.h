/* gaps.h - places in an arena: takes the smallest free gap that is large enough, else grows. */
#ifndef LOAM_GRAPH_GAPS_H
#define LOAM_GRAPH_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gap {
    uint64_t at, bytes;
} gap;

typedef struct gaps {
    gap *items;          /* free, ascending, never adjacent */
    size_t n, cap;
    uint64_t end;        /* bytes of the arena so far */
} gaps;

uint64_t gaps_take(gaps *g, uint64_t bytes);
bool gaps_give(gaps *g, gap x); /* false: out of memory */
void gaps_free(gaps *g);

#endif
