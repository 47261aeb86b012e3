/* table.h - the two hash tables of a tokenizer: text to symbol, and pair of symbols to merge.
 *
 * A *symbol* is a byte string with a number: ids below n_tokens are tokens, those above are the further parts and results of
 * merges. Texts of up to 8 bytes (most) lie inside their slot, so that looking one up touches one cache line; longer ones keep
 * a 64-bit hash there and are compared at keys[id].
 *
 *   slot:  head (the text, or its hash) | len | id        pair slot:  left | right | rank | result
 *
 * Both use open addressing with linear probing and a secret multiplier, so that a file cannot choose its collisions. */
#ifndef LOAM_TOKENIZER_TABLE_H
#define LOAM_TOKENIZER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/vocab.h"

#define TABLE_NONE     UINT32_MAX
#define TABLE_VERBATIM 0x80000000u /* or-ed to a length: a second name space (text outside the byte alphabet) */

typedef struct table_slot {
    uint64_t head;
    uint32_t len;
    uint32_t id; /* TABLE_NONE: free */
} table_slot;

typedef struct table {
    table_slot *slots;
    size_t size; /* slots, a power of two */
    size_t count;
    unsigned shift; /* 64 - log2(size) */
    uint64_t secret;
} table;

bool table_init(table *t, size_t expected, uint64_t secret); /* false: out of memory */
void table_free(table *t);                                   /* also of a zeroed table */

/* The first 8 bytes of a text of at most 8 bytes, padded with zeros. */
static inline uint64_t table_pack(const char *s, size_t n)
{
    if (n >= 4) {
        uint32_t a, b;
        memcpy(&a, s, 4);
        memcpy(&b, s + n - 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        a = __builtin_bswap32(a);
        b = __builtin_bswap32(b);
#endif
        return a | ((uint64_t)b >> (8 * (8 - n))) << 32;
    }
    if (n == 0) return 0;
    return (uint64_t)(unsigned char)s[0] | (uint64_t)(unsigned char)s[n / 2] << (8 * (n / 2)) |
           (uint64_t)(unsigned char)s[n - 1] << (8 * (n - 1));
}

uint64_t table_long_hash(const table *t, const char *s, size_t n);

/* What a slot holds of a text. */
typedef struct table_key {
    uint64_t head;
    uint32_t len;
} table_key;

/* space is 0 or TABLE_VERBATIM; n is below 2^31. */
static inline table_key table_key_of(const table *t, const char *s, size_t n, uint32_t space)
{
    return (table_key){ n <= 8 ? table_pack(s, n) : table_long_hash(t, s, n), (uint32_t)n | space };
}

static inline size_t table_home(const table *t, table_key k)
{
    return (size_t)(((k.head ^ k.head >> 32) + k.len * 0x9E3779B97F4A7C15u) * t->secret >> t->shift);
}

static inline void table_prefetch(const table *t, table_key k) { __builtin_prefetch(&t->slots[table_home(t, k)]); }

/* The slot of a text of n bytes with this key, or the free one where it belongs; keys[] are the texts by id. */
static inline table_slot *table_slot_of(const table *t, const text_view *keys, table_key k, const char *s, size_t n)
{
    for (size_t i = table_home(t, k);; i = (i + 1) & (t->size - 1)) {
        table_slot *x = &t->slots[i];
        if (x->id == TABLE_NONE || (x->head == k.head && x->len == k.len && (n <= 8 || memcmp(keys[x->id].data, s, n) == 0)))
            return x;
    }
}

/* The id of a text with this key; TABLE_NONE where absent. */
static inline uint32_t table_find(const table *t, const text_view *keys, table_key k, const char *s, size_t n)
{
    return table_slot_of(t, keys, k, s, n)->id;
}

static inline uint32_t table_get(const table *t, const text_view *keys, const char *s, size_t n, uint32_t space)
{
    return table_find(t, keys, table_key_of(t, s, n, space), s, n);
}

/* Adds a text with its id unless it is there; *id gets the id it has now. False: out of memory. */
bool table_put(table *t, const text_view *keys, table_key k, const char *s, size_t n, uint32_t *id);

/* ---- pairs ---- */

typedef struct pair_slot {
    uint32_t left, right;
    uint32_t rank;
    uint32_t result; /* TABLE_NONE: free */
} pair_slot;

typedef struct pair_table {
    pair_slot *slots;
    size_t size;
    unsigned shift;
    uint64_t secret;
} pair_table;

/* Room for `pairs` pairs; more must not be put. */
bool pair_init(pair_table *t, size_t pairs, uint64_t secret);
void pair_free(pair_table *t);
void pair_put(pair_table *t, pair_slot merge); /* a pair that is there already keeps what it has */

static inline size_t pair_home(const pair_table *t, uint32_t left, uint32_t right)
{
    uint64_t x = (uint64_t)left << 32 | right;
    return (size_t)((x ^ x >> 29) * t->secret >> t->shift);
}

static inline void pair_prefetch(const pair_table *t, uint32_t left, uint32_t right)
{
    __builtin_prefetch(&t->slots[pair_home(t, left, right)], 1);
}

/* The merge of two symbols, or NULL. */
static inline const pair_slot *pair_get(const pair_table *t, uint32_t left, uint32_t right)
{
    for (size_t i = pair_home(t, left, right);; i = (i + 1) & (t->size - 1)) {
        const pair_slot *x = &t->slots[i];
        if (x->result == TABLE_NONE) return NULL;
        if (x->left == left && x->right == right) return x;
    }
}

#endif
