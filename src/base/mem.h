/* mem.h - all of Loam's heap memory, through the allocator hook of loam/status.h.
 *
 * Each block remembers its size in a small head, so that callers free by pointer alone. Blocks are aligned to 64 bytes
 * (one cache line, one AVX-512 register). Nothing here aborts: NULL means that there is no memory. */
#ifndef LOAM_BASE_MEM_H
#define LOAM_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_ALIGN 64

void *mem_alloc(size_t bytes);                            /* contents undefined; bytes 0 gives a valid block */
void *mem_zalloc(size_t bytes);                           /* zeroed */
void *mem_alloc_array(size_t count, size_t size);         /* NULL also when the product overflows */
void *mem_zalloc_array(size_t count, size_t size);
void *mem_resize(void *p, size_t bytes);                  /* as realloc; on NULL the old block is untouched */
size_t mem_size(const void *p);                           /* bytes that a block takes with its head; NULL: 0 */
void mem_free(void *p);                                   /* NULL is fine */
char *mem_strdup(const char *s, size_t len);              /* copy of len bytes plus a terminator */

/* Makes room for `need` elements in a growing array: *items (elements of `size` bytes, capacity *cap) at least doubles,
 * never beyond `max` elements. False when out of memory or above max; then nothing changed. */
bool mem_grow(void *items, size_t *cap, size_t need, size_t size, size_t max);

/* Checked arithmetic on sizes read from files: true on success, *out undefined on overflow. */
static inline bool add_ok(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool mul_ok(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
/* bytes rounded up to a multiple of MEM_ALIGN; they come from sizes that were checked. */
static inline uint64_t mem_padded(uint64_t bytes) { return (bytes + MEM_ALIGN - 1) & ~(uint64_t)(MEM_ALIGN - 1); }
/* a rounded up to a multiple of align (a power of two). */
static inline bool pad_ok(uint64_t a, uint64_t align, uint64_t *out)
{
    uint64_t t;
    if (!add_ok(a, align - 1, &t)) return false;
    *out = t & ~(align - 1);
    return true;
}

#endif
