/* gguf_build.h - the builder's inside, shared by gguf_build.c and gguf_write.c. */
#ifndef LOAM_FILE_GGUF_BUILD_H
#define LOAM_FILE_GGUF_BUILD_H

#include "base/error.h"
#include "base/map.h"
#include "file/gguf_write.h"

typedef struct build_key {
    const char *name;
    uint32_t name_len;
    gguf_kind kind, item;
    uint64_t count, bytes;
    const uint8_t *data;
    void *owned_name, *owned_data; /* NULL where they lie in the source file */
    bool removed;
} build_key;

typedef struct build_tensor {
    const char *name;
    char *owned_name; /* NULL where it lies in the source file */
    loam_type type;
    int n_dims; /* sizes that are written */
    int64_t ne[LIMIT_DIMS];
    uint64_t bytes;
    const void *data;
    bool removed;
} build_tensor;

struct gguf_builder {
    build_key *keys;
    size_t n_keys, key_cap;
    map key_index;
    build_tensor *tensors;
    size_t n_tensors, tensor_cap;
    map tensor_index;
    loam_error error; /* the first failure; code LOAM_OK while there is none */
};

/* Is this one of the keys that say which part of a split file a file is? */
bool gguf_is_split_key(const char *name, size_t len);

#endif
