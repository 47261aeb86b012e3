/* reader.h - the one cursor through which every foreign byte of Loam goes.
 *
 *   data            pos                    end
 *    |===============|----------------------|     bytes left: end - pos
 *
 * A read beyond `end` sets a sticky failure: the cursor stays where it is, remembers how many bytes were wanted, and every later
 * read gives zeros. So a parser reads a whole record and asks once whether it was there. Values are little-endian and
 * are copied byte by byte: nothing is cast, nothing needs to be aligned. */
#ifndef LOAM_BASE_READER_H
#define LOAM_BASE_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct reader {
    const uint8_t *data;
    uint64_t pos, end;
    uint64_t wanted; /* of the read that failed */
    bool failed;
} reader;

static inline uint64_t reader_left(const reader *r) { return r->end - r->pos; }

/* The next n bytes, or NULL. A zero-byte read that succeeds gives a non-NULL pointer, also at the end. */
static inline const uint8_t *reader_take(reader *r, uint64_t n)
{
    if (r->failed) return NULL;
    if (n > r->end - r->pos) {
        r->failed = true;
        r->wanted = n;
        return NULL;
    }
    const uint8_t *p = r->data + r->pos;
    r->pos += n;
    return p;
}

static inline uint16_t le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t le32(const uint8_t *p) { return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16; }
static inline uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32; }

static inline float lef32(const uint8_t *p)
{
    uint32_t bits = le32(p);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline double lef64(const uint8_t *p)
{
    uint64_t bits = le64(p);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint32_t reader_u32(reader *r)
{
    const uint8_t *p = reader_take(r, 4);
    return p ? le32(p) : 0;
}

static inline uint64_t reader_u64(reader *r)
{
    const uint8_t *p = reader_take(r, 8);
    return p ? le64(p) : 0;
}

#endif
