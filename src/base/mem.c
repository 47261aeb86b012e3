/* mem.c - see mem.h. The head of a block (64 bytes, of which 16 are used) holds its size and where the raw block begins. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "loam/status.h"

typedef struct head {
    size_t bytes; /* of the caller */
    size_t shift; /* from the raw block to the caller's pointer */
} head;

static void *libc_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

static loam_allocator hook = { libc_resize, NULL };

void loam_set_allocator(const loam_allocator *allocator)
{
    hook = allocator ? *allocator : (loam_allocator){ libc_resize, NULL };
}

static head *head_of(void *p) { return (head *)((char *)p - sizeof(head)); }

#define SLACK (MEM_ALIGN + sizeof(head))

/* Places the head before the first aligned address of the raw block. */
static void *dress(char *raw, size_t bytes)
{
    uintptr_t at = ((uintptr_t)raw + sizeof(head) + MEM_ALIGN - 1) & ~(uintptr_t)(MEM_ALIGN - 1);
    head *h = head_of((void *)at);
    h->bytes = bytes;
    h->shift = at - (uintptr_t)raw;
    return (void *)at;
}

size_t mem_size(const void *p) { return p ? ((const head *)p)[-1].bytes + SLACK : 0; }

void *mem_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX / 2 - SLACK) return NULL;
    char *raw = hook.resize(hook.user, NULL, 0, bytes + SLACK);
    return raw ? dress(raw, bytes) : NULL;
}

void *mem_zalloc(size_t bytes)
{
    void *p = mem_alloc(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *mem_alloc_array(size_t count, size_t size)
{
    uint64_t bytes;
    return mul_ok(count, size, &bytes) && bytes <= SIZE_MAX ? mem_alloc((size_t)bytes) : NULL;
}

void *mem_zalloc_array(size_t count, size_t size)
{
    uint64_t bytes;
    return mul_ok(count, size, &bytes) && bytes <= SIZE_MAX ? mem_zalloc((size_t)bytes) : NULL;
}

void mem_free(void *p)
{
    if (!p) return;
    head h = *head_of(p);
    hook.resize(hook.user, (char *)p - h.shift, h.bytes + SLACK, 0);
}

void *mem_resize(void *p, size_t bytes)
{
    if (!p) return mem_alloc(bytes);
    void *q = mem_alloc(bytes);
    if (!q) return NULL;
    size_t old = head_of(p)->bytes;
    memcpy(q, p, old < bytes ? old : bytes);
    mem_free(p);
    return q;
}

char *mem_strdup(const char *s, size_t len)
{
    char *p = len < SIZE_MAX ? mem_alloc(len + 1) : NULL;
    if (!p) return NULL;
    if (len) memcpy(p, s, len);
    p[len] = 0;
    return p;
}

bool mem_grow(void *items, size_t *cap, size_t need, size_t size, size_t max)
{
    if (need <= *cap) return true;
    if (need > max) return false;
    size_t n = *cap ? *cap : 16;
    while (n < need) n = n > max / 2 ? max : n * 2;
    if (n > max) n = max;
    if (n < need || n > SIZE_MAX / size) return false;
    void *old;
    memcpy(&old, items, sizeof old);
    void *p = mem_resize(old, n * size);
    if (!p) return false;
    memcpy(items, &p, sizeof p);
    *cap = n;
    return true;
}
