/* map.c - see map.h. Load factor at most one half; linear probing. */
#include "base/map.h"

#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "base/os.h"

static uint32_t hash_of(const map *m, const char *key, size_t len) { return (uint32_t)XXH3_64bits_withSeed(key, len, m->seed); }

static map_slot *new_slots(size_t n)
{
    map_slot *s = mem_zalloc_array(n, sizeof *s);
    for (size_t i = 0; s && i < n; i++) s[i].value = MAP_NONE;
    return s;
}

bool map_init(map *m, size_t expected)
{
    size_t n = 16;
    while (n < SIZE_MAX / 4 && n < expected * 2) n *= 2;
    m->slots = new_slots(n);
    m->seed = os_random_u64();
    m->mask = n - 1;
    m->count = 0;
    return m->slots != NULL;
}

void map_free(map *m)
{
    mem_free(m->slots);
    memset(m, 0, sizeof *m);
}

/* The slot that holds the key, or the free one where it belongs. */
static map_slot *find(const map *m, const char *key, size_t len, uint32_t hash)
{
    for (size_t i = hash & m->mask;; i = (i + 1) & m->mask) {
        map_slot *s = &m->slots[i];
        if (s->value == MAP_NONE) return s;
        if (s->hash == hash && s->len == len && memcmp(s->key, key, len) == 0) return s;
    }
}

uint32_t map_get(const map *m, const char *key, size_t len)
{
    return m->slots ? find(m, key, len, hash_of(m, key, len))->value : MAP_NONE;
}

static bool grow(map *m)
{
    map bigger = { .seed = m->seed, .mask = (m->mask + 1) * 2 - 1, .count = m->count };
    bigger.slots = new_slots(bigger.mask + 1);
    if (!bigger.slots) return false;
    for (size_t i = 0; i <= m->mask; i++) {
        const map_slot *s = &m->slots[i];
        if (s->value != MAP_NONE) *find(&bigger, s->key, s->len, s->hash) = *s;
    }
    mem_free(m->slots);
    *m = bigger;
    return true;
}

bool map_put(map *m, const char *key, size_t len, uint32_t value, uint32_t *old)
{
    if ((m->count + 1) * 2 > m->mask + 1 && !grow(m)) return false;
    uint32_t hash = hash_of(m, key, len);
    map_slot *s = find(m, key, len, hash);
    if (old) *old = s->value;
    if (s->value != MAP_NONE) return true;
    *s = (map_slot){ .key = key, .len = (uint32_t)len, .value = value, .hash = hash };
    m->count++;
    return true;
}
