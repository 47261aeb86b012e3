/* gguf_impl.h - what the files of the GGUF reader share; nobody else includes it. */
#ifndef LOAM_FILE_GGUF_IMPL_H
#define LOAM_FILE_GGUF_IMPL_H

#include "base/error.h"
#include "base/map.h"
#include "base/os.h"
#include "file/gguf.h"

struct gguf_file {
    os_file file; /* empty where the bytes are the caller's */
    const uint8_t *data;
    uint64_t size;
    char *path;
    char *label; /* the path as messages show it: long ones lose their front */
    uint32_t version, alignment;
    gguf_key *keys;
    uint32_t n_keys;
    map key_index;
    gguf_tensor *tensors; /* of all parts */
    size_t n_tensors, tensor_cap;
    map tensor_index;
    gguf_file **parts; /* the other parts of a split file, in order; NULL otherwise */
    uint32_t n_parts;  /* entries of parts */
    /* of a folder (folder.c): what the directory was put together from */
    struct gguf_builder *built;
    struct hf_weights *weights;
    void **held; /* [n_tensors] values that were computed; NULL where they lie in a file */
};

/* A name from a file, made fit for a message: at most 63 bytes, control bytes and malformed UTF-8 shown as '?'. */
typedef struct quoted {
    char text[72];
} quoted;
quoted gguf_quote(const char *name, size_t len);

/* Reads header, keys and tensors of f->data into f (split.c calls gguf_open for each part). */
loam_status gguf_parse(gguf_file *f, loam_error *err);

/* Builds the index of tensor names; refuses duplicates. */
loam_status gguf_index_tensors(gguf_file *f, loam_error *err);

/* Where f is the first of several parts, opens the others and takes their tensors in. */
loam_status gguf_join_parts(gguf_file *f, unsigned flags, loam_error *err);

/* A file handle without contents; NULL without memory. */
gguf_file *gguf_new(const char *path);

/* Makes keys and tensors of f those of f->built, and the shards of f->weights its parts. */
loam_status gguf_adopt(gguf_file *f, loam_error *err);
/* Computes all values that do not lie in a file. */
loam_status gguf_hold_all(gguf_file *f, loam_error *err);

#endif
