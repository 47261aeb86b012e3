/* raw.h - writing bytes by hand, for files that no writer would make. */
#ifndef LOAM_TEST_RAW_H
#define LOAM_TEST_RAW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct raw {
    uint8_t data[1 << 16]; /* enough for every hand-made file; more is dropped */
    size_t size;
} raw;

static inline void raw_bytes(raw *r, const void *p, size_t n)
{
    if (n > sizeof r->data - r->size) n = sizeof r->data - r->size;
    memcpy(r->data + r->size, p, n);
    r->size += n;
}

static inline void raw_u8(raw *r, uint8_t v) { raw_bytes(r, &v, 1); }
static inline void raw_u32(raw *r, uint32_t v) { raw_bytes(r, &v, 4); }
static inline void raw_u64(raw *r, uint64_t v) { raw_bytes(r, &v, 8); }

static inline void raw_text(raw *r, const char *s)
{
    raw_u64(r, strlen(s));
    raw_bytes(r, s, strlen(s));
}

static inline void raw_zeros(raw *r, size_t n)
{
    while (n-- > 0) raw_u8(r, 0);
}

/* Zeros up to a multiple of align. */
static inline void raw_pad(raw *r, size_t align) { raw_zeros(r, (align - r->size % align) % align); }

/* The beginning of a GGUF file. */
static inline void raw_head(raw *r, uint64_t n_tensors, uint64_t n_keys)
{
    r->size = 0;
    raw_bytes(r, "GGUF", 4);
    raw_u32(r, 3);
    raw_u64(r, n_tensors);
    raw_u64(r, n_keys);
}

static inline void raw_key(raw *r, const char *name, uint32_t kind)
{
    raw_text(r, name);
    raw_u32(r, kind);
}

static inline void raw_key_u32(raw *r, const char *name, uint32_t v)
{
    raw_key(r, name, 4);
    raw_u32(r, v);
}

static inline void raw_key_array(raw *r, const char *name, uint32_t item, uint64_t count)
{
    raw_key(r, name, 9);
    raw_u32(r, item);
    raw_u64(r, count);
}

/* A tensor entry; n_dims sizes are read from ne. */
static inline void raw_tensor(raw *r, const char *name, uint32_t n_dims, const int64_t *ne, uint32_t type, uint64_t offset)
{
    raw_text(r, name);
    raw_u32(r, n_dims);
    for (uint32_t i = 0; i < n_dims && i < 16; i++) raw_u64(r, (uint64_t)ne[i]);
    raw_u32(r, type);
    raw_u64(r, offset);
}

#endif
