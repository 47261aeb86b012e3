/* table.c - see table.h. At most two thirds of the slots are used. */
#include "tokenizer/table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

/* Slots for n entries: a power of two, at least 3n/2. 0 where that overflows. */
static size_t slots_for(size_t n, unsigned *shift)
{
    size_t size = 16;
    *shift = 60;
    while (size / 3 * 2 < n) {
        if (size > SIZE_MAX / 64) return 0;
        size *= 2;
        (*shift)--;
    }
    return size;
}

static bool alloc_slots(table *t, size_t expected)
{
    t->size = slots_for(expected, &t->shift);
    t->slots = t->size ? mem_alloc_array(t->size, sizeof *t->slots) : NULL;
    if (!t->slots) return false;
    memset(t->slots, 0xFF, t->size * sizeof *t->slots); /* id: TABLE_NONE */
    return true;
}

bool table_init(table *t, size_t expected, uint64_t secret)
{
    *t = (table){ .secret = secret | 1 };
    return alloc_slots(t, expected);
}

void table_free(table *t)
{
    mem_free(t->slots);
    *t = (table){ 0 };
}

uint64_t table_long_hash(const table *t, const char *s, size_t n) { return XXH3_64bits_withSeed(s, n, t->secret); }

static bool grow(table *t)
{
    table bigger = { .secret = t->secret, .count = t->count };
    if (!alloc_slots(&bigger, t->size)) return false;
    for (size_t k = 0; k < t->size; k++) {
        const table_slot *x = &t->slots[k];
        if (x->id == TABLE_NONE) continue;
        size_t i = table_home(&bigger, (table_key){ x->head, x->len });
        while (bigger.slots[i].id != TABLE_NONE) i = (i + 1) & (bigger.size - 1);
        bigger.slots[i] = *x;
    }
    mem_free(t->slots);
    *t = bigger;
    return true;
}

bool table_put(table *t, const text_view *keys, table_key k, const char *s, size_t n, uint32_t *id)
{
    if (t->count >= t->size / 3 * 2 && !grow(t)) return false;
    table_slot *x = table_slot_of(t, keys, k, s, n);
    if (x->id == TABLE_NONE) {
        *x = (table_slot){ k.head, k.len, *id };
        t->count++;
    }
    *id = x->id;
    return true;
}

bool pair_init(pair_table *t, size_t pairs, uint64_t secret)
{
    *t = (pair_table){ .secret = secret | 1 };
    t->size = slots_for(pairs, &t->shift);
    t->slots = t->size ? mem_alloc_array(t->size, sizeof *t->slots) : NULL;
    if (!t->slots) return false;
    memset(t->slots, 0xFF, t->size * sizeof *t->slots); /* result: TABLE_NONE */
    return true;
}

void pair_free(pair_table *t)
{
    mem_free(t->slots);
    *t = (pair_table){ 0 };
}

void pair_put(pair_table *t, pair_slot merge)
{
    size_t i = pair_home(t, merge.left, merge.right);
    for (; t->slots[i].result != TABLE_NONE; i = (i + 1) & (t->size - 1))
        if (t->slots[i].left == merge.left && t->slots[i].right == merge.right) return;
    t->slots[i] = merge;
}
