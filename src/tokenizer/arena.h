/* arena.h - bytes that are given out one after the other and freed all at once. Pointers stay valid. */
#ifndef LOAM_TOKENIZER_ARENA_H
#define LOAM_TOKENIZER_ARENA_H

#include <string.h>

#include "base/mem.h"

typedef struct arena_block {
    struct arena_block *before;
} arena_block;

typedef struct arena {
    arena_block *last;
    char *next;
    size_t left;
} arena;

static inline char *arena_take(arena *a, size_t bytes)
{
    if (bytes > a->left) {
        size_t size = bytes > 65536 ? bytes : 65536;
        arena_block *b = size < SIZE_MAX / 2 ? mem_alloc(sizeof *b + size) : NULL;
        if (!b) return NULL;
        b->before = a->last;
        a->last = b;
        a->next = (char *)(b + 1);
        a->left = size;
    }
    char *p = a->next;
    a->next += bytes;
    a->left -= bytes;
    return p;
}

/* Gives back the last bytes of what was taken last. */
static inline void arena_return(arena *a, size_t bytes)
{
    a->next -= bytes;
    a->left += bytes;
}

static inline char *arena_copy(arena *a, const char *s, size_t n)
{
    char *p = arena_take(a, n);
    if (p && n) memcpy(p, s, n);
    return p;
}

static inline void arena_free(arena *a)
{
    while (a->last) {
        arena_block *b = a->last;
        a->last = b->before;
        mem_free(b);
    }
    *a = (arena){ 0 };
}

#endif
