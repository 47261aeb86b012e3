/* gaps.c - see gaps.h. */
#include "graph/gaps.h"

#include <string.h>

#include "base/mem.h"

bool gaps_give(gaps *g, gap x)
{
    if (!mem_grow(&g->items, &g->cap, g->n + 1, sizeof *g->items, SIZE_MAX / sizeof *g->items)) return false;
    size_t i = g->n;
    while (i > 0 && g->items[i - 1].at > x.at) i--;
    memmove(g->items + i + 1, g->items + i, (g->n - i) * sizeof *g->items);
    g->items[i] = x;
    g->n++;
    if (i + 1 < g->n && g->items[i].at + g->items[i].bytes == g->items[i + 1].at) {
        g->items[i].bytes += g->items[i + 1].bytes;
        memmove(g->items + i + 1, g->items + i + 2, (g->n - i - 2) * sizeof *g->items);
        g->n--;
    }
    if (i > 0 && g->items[i - 1].at + g->items[i - 1].bytes == g->items[i].at) {
        g->items[i - 1].bytes += g->items[i].bytes;
        memmove(g->items + i, g->items + i + 1, (g->n - i - 1) * sizeof *g->items);
        g->n--;
    }
    return true;
}

uint64_t gaps_take(gaps *g, uint64_t bytes)
{
    size_t best = g->n;
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].bytes >= bytes && (best == g->n || g->items[i].bytes < g->items[best].bytes)) best = i;
    if (best == g->n) {
        uint64_t at = g->end;
        g->end += bytes;
        return at;
    }
    uint64_t at = g->items[best].at;
    g->items[best].at += bytes;
    g->items[best].bytes -= bytes;
    if (g->items[best].bytes == 0) {
        memmove(g->items + best, g->items + best + 1, (g->n - best - 1) * sizeof *g->items);
        g->n--;
    }
    return at;
}

void gaps_free(gaps *g)
{
    mem_free(g->items);
    *g = (gaps){ 0 };
}
