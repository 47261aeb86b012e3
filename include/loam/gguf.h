/* loam/gguf.h - reading, editing and writing GGUF files. UNSTABLE: the lower tier may change between minor versions.
 *
 *   loam_gguf           an opened file: metadata keys and tensors, checked when it was opened, immutable, free to share
 *   loam_gguf_builder   what a new file will hold: from nothing, or from an opened file with changes
 *   loam_gguf_writer    streams a new file, tensor by tensor, with little memory
 *
 * Any bytes may be opened: what is malformed is refused with a message that names the key, tensor or byte. Files are
 * little-endian, version 2 or 3; big-endian files are refused. */
#ifndef LOAM_GGUF_H
#define LOAM_GGUF_H

#include <stdbool.h>

#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_gguf loam_gguf;
typedef struct loam_gguf_builder loam_gguf_builder;
typedef struct loam_gguf_writer loam_gguf_writer;

/* ---- opening ---- */

/* Get them from loam_gguf_defaults(), then change what you need. */
typedef struct loam_gguf_params {
    size_t struct_size; /* set by loam_gguf_defaults() */
    bool use_mmap;      /* map the file (default true); false reads it into memory: immune to truncation by others */
    bool one_part;      /* open one part of a split file by itself (default false: the first part opens them all) */
} loam_gguf_params;

LOAM_API loam_gguf_params loam_gguf_defaults(void);

/* Opens a Hugging Face folder (config.json, safetensors, tokenizer files) as the directory that a conversion to GGUF would give,
 * or a file; of a split file the first part, PREFIX-00001-of-0000N.gguf, whose fellows are found by name. On success
 * *out owns it, on failure *out is NULL. params NULL: the defaults. Costs milliseconds: tensor data is not read.
 * Errors: IO (path or part cannot be opened), FORMAT (malformed), UNSUPPORTED (version, byte order, removed element type),
 * ARG (not the first part: the message names it), NOMEM. */
LOAM_API loam_status loam_gguf_open(loam_gguf **out, const char *path, const loam_gguf_params *params, loam_error *err);

/* The same over `size` bytes at data, which must stay as they are until loam_gguf_free. Other parts are not looked for. */
LOAM_API loam_status loam_gguf_open_memory(loam_gguf **out, const void *data, size_t size, loam_error *err);

/* Opens a LoRA adapter for the model in `base`: a GGUF file, or a folder of PEFT (adapter_config.json,
 * adapter_model.safetensors) whose tensors are named and ordered as base's. Errors as loam_gguf_open. */
LOAM_API loam_status loam_gguf_open_adapter(loam_gguf **out, const char *path, const loam_gguf *base, loam_error *err);

/* Closes the file; everything that was handed out of it becomes invalid. NULL is fine. */
LOAM_API void loam_gguf_free(loam_gguf *file);

LOAM_API uint32_t loam_gguf_n_keys(const loam_gguf *file);
LOAM_API uint32_t loam_gguf_n_tensors(const loam_gguf *file); /* of all parts */
LOAM_API uint32_t loam_gguf_n_parts(const loam_gguf *file);   /* 1 where it is not split */
LOAM_API uint32_t loam_gguf_version(const loam_gguf *file);
LOAM_API uint32_t loam_gguf_alignment(const loam_gguf *file); /* of tensor data, bytes; a power of two */
LOAM_API uint64_t loam_gguf_bytes(const loam_gguf *file);     /* of all parts */

/* ---- metadata ---- */

/* Kinds of values, numbered as in the file. */
typedef enum loam_gguf_kind {
    LOAM_GGUF_U8 = 0,
    LOAM_GGUF_I8 = 1,
    LOAM_GGUF_U16 = 2,
    LOAM_GGUF_I16 = 3,
    LOAM_GGUF_U32 = 4,
    LOAM_GGUF_I32 = 5,
    LOAM_GGUF_F32 = 6,
    LOAM_GGUF_BOOL = 7,
    LOAM_GGUF_STRING = 8,
    LOAM_GGUF_ARRAY = 9,
    LOAM_GGUF_U64 = 10,
    LOAM_GGUF_I64 = 11,
    LOAM_GGUF_F64 = 12
} loam_gguf_kind;

/* Name of a kind ("uint32"); "unknown" outside the enum. */
LOAM_API const char *loam_gguf_kind_name(int kind);

/* A key and its value; points into the file. */
typedef struct loam_gguf_value {
    const char *key; /* key_len bytes, no terminator */
    size_t key_len;
    int kind;         /* a loam_gguf_kind */
    int item;         /* kind of the elements of an array; equal to kind otherwise */
    uint64_t count;   /* elements of an array; 1 otherwise */
    const void *data; /* as it lies in the file: little-endian, unaligned; strings with their 8-byte lengths only in arrays */
    uint64_t bytes;   /* at data */
} loam_gguf_value;

/* The key of that index (in file order) or name; false where there is none. A split file has the keys of its first part. */
LOAM_API bool loam_gguf_key_at(const loam_gguf *file, uint32_t index, loam_gguf_value *value);
LOAM_API bool loam_gguf_key_find(const loam_gguf *file, const char *key, loam_gguf_value *value);

/* Element i of a value (a scalar has element 0 only) as C has it. False, and *out as it was, where i is not below count, or
 * the kind is another: integers are any of the eight integer kinds where the value fits, floats either kind of float. */
LOAM_API bool loam_gguf_int(const loam_gguf_value *value, uint64_t i, int64_t *out);
LOAM_API bool loam_gguf_float(const loam_gguf_value *value, uint64_t i, double *out);
LOAM_API bool loam_gguf_bool(const loam_gguf_value *value, uint64_t i, bool *out);

/* The strings of a value one after another: *cursor is 0 for the first, and moves on. False after the last one, and for
 * other kinds. *text has *len bytes without terminator. */
LOAM_API bool loam_gguf_text(const loam_gguf_value *value, uint64_t *cursor, const char **text, size_t *len);

/* ---- tensors ---- */

typedef struct loam_gguf_tensor {
    const char *name; /* terminated, at most 63 bytes */
    int type;         /* a loam_type */
    int n_dims;       /* 1..4 */
    int64_t ne[4];    /* sizes, ne[0] is the contiguous one; 1 beyond n_dims */
    const void *data; /* bytes bytes; NULL where the tensor has no values */
    uint64_t bytes;
    uint64_t offset; /* of data in its part */
    uint32_t part;   /* from 0 */
} loam_gguf_tensor;

/* The tensor of that index (in file order) or name; false where there is none. */
LOAM_API bool loam_gguf_tensor_at(const loam_gguf *file, uint32_t index, loam_gguf_tensor *tensor);
LOAM_API bool loam_gguf_tensor_find(const loam_gguf *file, const char *name, loam_gguf_tensor *tensor);

/* XXH64 (seed 0) of the data of the tensor of that index, or of all tensors one after another in file order where it is
 * LOAM_GGUF_ALL. Names, shapes, metadata and padding do not count, so a file that was split, merged or given other
 * metadata has the same hashes. An index beyond the last gives the hash of no bytes. Reads the data. */
#define LOAM_GGUF_ALL UINT32_MAX
LOAM_API uint64_t loam_gguf_hash(const loam_gguf *file, uint32_t index);

/* ---- a new file ---- */

/* A builder that begins with the keys (without split.*) and, if take_tensors, the tensors of `from`; NULL: empty. `from`
 * must outlive the builder and its writer. A part of a split file that was opened by itself (one_part) keeps its split.*
 * keys, so that its metadata can be edited in its place. Errors: NOMEM. */
LOAM_API loam_status loam_gguf_builder_create(loam_gguf_builder **out, const loam_gguf *from, bool take_tensors, loam_error *err);
LOAM_API void loam_gguf_builder_free(loam_gguf_builder *builder); /* NULL is fine */

/* Set keys and tensors. A key or tensor that is there is replaced in its place, others are appended. Names, values and
 * texts are copied. The first failure (no memory, a bad name, a shape that does not fit its type) is remembered, later
 * calls do nothing, and loam_gguf_write or loam_gguf_writer_open reports it. */
LOAM_API void loam_gguf_set_u32(loam_gguf_builder *builder, const char *key, uint32_t value);
LOAM_API void loam_gguf_set_i32(loam_gguf_builder *builder, const char *key, int32_t value);
LOAM_API void loam_gguf_set_u64(loam_gguf_builder *builder, const char *key, uint64_t value);
LOAM_API void loam_gguf_set_f32(loam_gguf_builder *builder, const char *key, float value);
LOAM_API void loam_gguf_set_bool(loam_gguf_builder *builder, const char *key, bool value);
LOAM_API void loam_gguf_set_text(loam_gguf_builder *builder, const char *key, const char *text, size_t len);
/* One value of any loam_gguf_kind other than string and array, as C has it (bool: one byte). */
LOAM_API void loam_gguf_set_scalar(loam_gguf_builder *builder, const char *key, int kind, const void *value);
/* count elements of a loam_gguf_kind other than string and array, as C has them. */
LOAM_API void loam_gguf_set_array(loam_gguf_builder *builder, const char *key, int item, const void *items, uint64_t count);
LOAM_API void loam_gguf_set_texts(loam_gguf_builder *builder, const char *key, const char *const *texts, const size_t *lens,
                                  uint64_t count);
/* Copies a value of an opened file under that key. */
LOAM_API void loam_gguf_set_value(loam_gguf_builder *builder, const char *key, const loam_gguf_value *value);
LOAM_API bool loam_gguf_remove_key(loam_gguf_builder *builder, const char *key); /* false: it was not there */

/* data: the tensor's bytes, which must outlive the writer; NULL where loam_gguf_writer_put brings them. ne: 4 sizes. */
LOAM_API void loam_gguf_set_tensor(loam_gguf_builder *builder, const char *name, int type, const int64_t *ne, const void *data);
LOAM_API bool loam_gguf_remove_tensor(loam_gguf_builder *builder, const char *name); /* false: it was not there */

/* ---- writing ---- */

/* Get them from loam_gguf_write_defaults(), then change what you need. */
typedef struct loam_gguf_write_params {
    size_t struct_size;    /* set by loam_gguf_write_defaults() */
    uint64_t part_bytes;   /* split so that the tensors of a part take at most this, but hold one at least; 0: do not split */
    uint32_t part_tensors; /* the same by number; 0: do not split */
    uint32_t *written_parts; /* set to the number of parts when the writer opens; may be NULL */
} loam_gguf_write_params;

LOAM_API loam_gguf_write_params loam_gguf_write_defaults(void);

/* Writes a file whose tensors all have data. It is written beside path under a temporary name and takes its place when it
 * is whole; on failure nothing changes. A split file's parts are named after path without ".gguf":
 * PREFIX-00001-of-0000N.gguf; where one part is enough, path is used as it is. params NULL: the defaults.
 * Errors: ARG (what the builder remembers, a tensor without data), IO, NOMEM. */
LOAM_API loam_status loam_gguf_write(const loam_gguf_builder *builder, const char *path, const loam_gguf_write_params *params,
                                     loam_error *err);

/* The same in steps: open, the data of every tensor in the builder's order (those with values), close. A tensor may come
 * in many pieces; a piece may not cross its end. The builder must outlive the writer. */
LOAM_API loam_status loam_gguf_writer_open(loam_gguf_writer **out, const loam_gguf_builder *builder, const char *path,
                                           const loam_gguf_write_params *params, loam_error *err);
LOAM_API loam_status loam_gguf_writer_put(loam_gguf_writer *writer, const void *data, uint64_t bytes, loam_error *err);
/* Name of the tensor whose data is due; NULL when all are there. */
LOAM_API const char *loam_gguf_writer_due(const loam_gguf_writer *writer);
/* Puts the file in its place; ARG where data is missing. Frees the writer in any case. */
LOAM_API loam_status loam_gguf_writer_close(loam_gguf_writer *writer, loam_error *err);
LOAM_API void loam_gguf_writer_cancel(loam_gguf_writer *writer); /* gives up, leaves nothing; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
