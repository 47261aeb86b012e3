/* gguf_write.h - making GGUF files: a builder collects keys and tensors, a writer streams them.
 *
 *   gguf_builder_create ─ set, remove, copy ... ─ gguf_writer_open ─ gguf_writer_put (tensor by tensor) ─ gguf_writer_close
 *
 * The builder remembers its first failure (no memory, a bad name), ignores calls after it, and gguf_writer_open reports it:
 * so a list of keys is written without a check after each. Files are version 3, little-endian. Tensor
 * data is padded to the alignment, after the last tensor too; trailing sizes of 1 are dropped, except of tensors that
 * are taken from a file as they are: so a file that is read and written again is the same, byte for byte. */
#ifndef LOAM_FILE_GGUF_WRITE_H
#define LOAM_FILE_GGUF_WRITE_H

#include "file/gguf.h"

typedef struct gguf_builder gguf_builder;
typedef struct gguf_writer gguf_writer;

/* ---- what the file will hold ---- */

#define GGUF_TAKE_KEYS    1u
#define GGUF_TAKE_TENSORS 2u

/* A builder that begins with the keys and/or tensors of `from` (NULL: empty); split.* keys are left out, unless `from` is one
 * part of a split file that was opened alone, which so stays that part. What is taken is
 * not copied: `from` must outlive the builder and its writer. */
loam_status gguf_builder_create(gguf_builder **out, const gguf_file *from, unsigned take, loam_error *err);
void gguf_builder_free(gguf_builder *b); /* NULL is fine */

/* Setting a key that is there replaces it in its place. Names and values are copied. */
/* One value of a kind that is neither string nor array, in the machine's layout. */
void gguf_set_scalar(gguf_builder *b, const char *key, gguf_kind kind, const void *value);
void gguf_set_u16(gguf_builder *b, const char *key, uint16_t v);
void gguf_set_u32(gguf_builder *b, const char *key, uint32_t v);
void gguf_set_i32(gguf_builder *b, const char *key, int32_t v);
void gguf_set_u64(gguf_builder *b, const char *key, uint64_t v);
void gguf_set_i64(gguf_builder *b, const char *key, int64_t v);
void gguf_set_f32(gguf_builder *b, const char *key, float v);
void gguf_set_bool(gguf_builder *b, const char *key, bool v);
void gguf_set_text(gguf_builder *b, const char *key, const char *text, size_t len);
void gguf_set_word(gguf_builder *b, const char *key, const char *text); /* up to its zero byte */
/* count elements of a kind that is neither string nor array, in the machine's layout. */
void gguf_set_array(gguf_builder *b, const char *key, gguf_kind item, const void *items, uint64_t count);
/* texts NULL with a count: the caller had no memory for them, and the builder fails with that. */
void gguf_set_texts(gguf_builder *b, const char *key, const text_view *texts, uint64_t count);
/* Copies the value of a key of an opened file. */
void gguf_set_key(gguf_builder *b, const char *key, const gguf_key *k);
bool gguf_remove(gguf_builder *b, const char *key); /* false: it was not there */

/* Adds a tensor at the end, or replaces the one of that name in its place. data may be NULL: then the bytes are given to the
 * writer by gguf_writer_put; else they must outlive the writer. ne has LIMIT_DIMS sizes. */
void gguf_put_tensor(gguf_builder *b, const char *name, loam_type type, const int64_t *ne, const void *data);
bool gguf_remove_tensor(gguf_builder *b, const char *name);

/* ---- writing ---- */

typedef struct gguf_write_options {
    uint64_t part_bytes;   /* split so that the tensors of a part stay within this (one tensor at least); 0: do not split */
    uint32_t part_tensors; /* the same by number of tensors */
    const uint32_t *parts; /* [n_parts] tensors of each part, which may be none; in place of the other two */
    uint32_t n_parts;      /* 0: parts are not given */
    uint32_t *written;     /* becomes the number of parts; may be NULL */
} gguf_write_options;

/* "PREFIX-00001-of-0000N.gguf" for path "PREFIX.gguf" and part 0 of n, for mem_free; path itself where n is 1. NULL: no memory. */
char *gguf_part_name(const char *path, size_t part, size_t n);

/* Writes the metadata to a temporary file beside path. Split parts are named PREFIX-00001-of-0000N.gguf after
 * path without ".gguf"; where one part is enough, path is used as it is. options may be NULL. */
loam_status gguf_writer_open(gguf_writer **out, const gguf_builder *b, const char *path, const gguf_write_options *options,
                             loam_error *err);
/* The next bytes of the tensor whose turn it is, in the builder's order; a tensor may come in many pieces, a piece may not
 * cross its end. */
loam_status gguf_writer_put(gguf_writer *w, const void *data, uint64_t bytes, loam_error *err);
/* The tensor whose turn it is; NULL when all are there. Tensors without values have no turn. */
const char *gguf_writer_turn(const gguf_writer *w);
/* Ends the file: fails where data is missing. Frees the writer in any case; on failure no file appears. */
loam_status gguf_writer_close(gguf_writer *w, loam_error *err);
void gguf_writer_cancel(gguf_writer *w); /* gives up; NULL is fine */

/* All in one, for builders whose tensors all have data. */
loam_status gguf_write(const gguf_builder *b, const char *path, const gguf_write_options *options, loam_error *err);

#endif
