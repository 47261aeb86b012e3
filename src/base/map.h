/* map.h - hash map from byte strings to 32-bit values, open addressing, xxHash. Keys are not copied: the caller keeps
 * their bytes alive. No removal: every user builds once and reads many times. */
#ifndef LOAM_BASE_MAP_H
#define LOAM_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

typedef struct map_slot {
    const char *key;
    uint32_t len;
    uint32_t value; /* MAP_NONE: the slot is free */
    uint32_t hash;
} map_slot;

typedef struct map {
    map_slot *slots;
    uint64_t seed; /* random: no file can choose names that all fall into one place */
    size_t mask;  /* slots - 1 */
    size_t count; /* used slots */
} map;

bool map_init(map *m, size_t expected);                                         /* false: out of memory */
void map_free(map *m);                                                          /* also of a zeroed map */
uint32_t map_get(const map *m, const char *key, size_t len);                    /* MAP_NONE where absent */
/* Inserts; an existing key keeps its value, which *old receives (MAP_NONE when it was new). False: out of memory.
 * value must not be MAP_NONE, len at most UINT32_MAX. */
bool map_put(map *m, const char *key, size_t len, uint32_t value, uint32_t *old);

#endif
