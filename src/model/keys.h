/* keys.h - reading the metadata of one architecture: "ARCH.key" through a reader whose first failure sticks.
 *
 * A key that the architecture's `required` list names must be there; every other one has a default. */
#ifndef LOAM_MODEL_KEYS_H
#define LOAM_MODEL_KEYS_H

#include "file/gguf.h"
#include "model/arch.h"

typedef struct keys {
    const gguf_file *file;
    const arch_spec *spec;
    loam_error *err;
    loam_status status;     /* first failure */
    char name[160];         /* full name of the key asked for last */
} keys;

/* Full name of a key; valid until the next call. A leading '/' means a key without the architecture's prefix. */
const char *key_name(keys *k, const char *key);
bool key_present(keys *k, const char *key);

int64_t key_int(keys *k, const char *key, int64_t otherwise, int64_t max);     /* in 0..max */
int64_t key_int_needed(keys *k, const char *key, int64_t max);                 /* in 1..max */
float key_float(keys *k, const char *key, float otherwise);                    /* finite */
float key_float_needed(keys *k, const char *key);
bool key_bool(keys *k, const char *key, bool otherwise);
/* An integer for all blocks or an array of one a block; each in 0..max. otherwise < 0: the key must be there. */
void key_per_block(keys *k, const char *key, int64_t otherwise, int64_t max, int64_t *values, int n);
/* A float for all blocks or an array of one a block; must be there. */
void key_floats_per_block(keys *k, const char *key, float *values, int n);
/* Flags of blocks from an array of integers or bools; false when the key is absent or not an array. */
bool key_flags(keys *k, const char *key, bool *values, int n);
/* Keeps the first failure, with the full name of the key asked for last. */
void key_fail(keys *k, loam_status code, const char *fmt, ...) LOAM_PRINTF(3, 4);

#endif
