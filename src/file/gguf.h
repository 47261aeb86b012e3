/* gguf.h - reading GGUF files: an immutable directory of metadata keys and tensors over mapped bytes.
 *
 *   gguf_file ── keys:    name, kind, bytes in the file       ── gguf_get_*, gguf_array, gguf_strings
 *             ── tensors: name, type, ne[4], data in the file ── gguf_tensor_find
 *             ── parts:   a split file owns its other parts; their tensors are in the one table. The shards of a folder are
 *                         the parts from 1 on
 *
 * Opening checks everything that can be checked without reading tensor data: counts, lengths, kinds, duplicates, extents.
 * What it hands out afterwards is safe to use as it stands. Nothing here aborts, and every message names the file and the
 * key, tensor or byte. A gguf_file may be read by several threads at once. */
#ifndef LOAM_FILE_GGUF_H
#define LOAM_FILE_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loam/status.h"
#include "base/limits.h"
#include "base/vocab.h"
#include "loam/tensor.h"

typedef struct gguf_file gguf_file;

/* ---- opening ---- */

#define GGUF_READ 1u /* read the file into memory in place of mapping it */
#define GGUF_PART 2u /* open this file alone, also where it is one part of a split file */
#define GGUF_LAZY 4u /* of a folder: values that do not lie in its files as they are wait for gguf_hold */
#define GGUF_FINE 8u /* of a folder: scaled 8-bit floats become F32, whatever type its config names */

/* Opens a file, and with the first part of a split file all its parts; or a Hugging Face folder (hf.h), whose tensors and keys
 * are those of the file that a conversion would give. On failure *out is NULL. */
loam_status gguf_open(gguf_file **out, const char *path, unsigned flags, loam_error *err);
/* The same over bytes that the caller keeps until gguf_close. Never looks for other parts. label names it in messages. */
loam_status gguf_open_memory(gguf_file **out, const void *data, size_t size, const char *label, loam_error *err);
void gguf_close(gguf_file *f); /* NULL is fine */

const char *gguf_path(const gguf_file *f);
uint32_t gguf_version(const gguf_file *f);
uint32_t gguf_alignment(const gguf_file *f);
uint64_t gguf_file_bytes(const gguf_file *f); /* of all parts */
uint32_t gguf_part_count(const gguf_file *f); /* 1 for a file that is not split */
const char *gguf_part_path(const gguf_file *f, uint32_t part);
bool gguf_lock(const gguf_file *f); /* mlock of all parts; false where refused */

/* ---- keys ---- */

/* Kinds of values, numbered as in the file. */
typedef enum gguf_kind {
    GGUF_U8 = 0,
    GGUF_I8 = 1,
    GGUF_U16 = 2,
    GGUF_I16 = 3,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_F32 = 6,
    GGUF_BOOL = 7,
    GGUF_STRING = 8,
    GGUF_ARRAY = 9,
    GGUF_U64 = 10,
    GGUF_I64 = 11,
    GGUF_F64 = 12
} gguf_kind;

#define GGUF_KIND_LIMIT 13

/* Name of a kind ("uint32"); "unknown" outside the enum. */
const char *gguf_kind_name(unsigned kind);
/* Bytes of a scalar of that kind; 0 for strings, arrays and unknown kinds. */
unsigned gguf_kind_bytes(unsigned kind);

typedef struct gguf_key {
    const char *name; /* not terminated */
    uint32_t name_len;
    gguf_kind kind;
    gguf_kind item;      /* of an array: its elements; else equal to kind */
    uint64_t count;      /* of an array: elements; of a string: bytes; else 1 */
    const uint8_t *data; /* the scalar, the text, or the elements back to back; little-endian, unaligned */
    uint64_t bytes;      /* at data */
    uint64_t at;         /* offset of the pair in the file */
} gguf_key;

uint32_t gguf_key_count(const gguf_file *f);
const gguf_key *gguf_key_at(const gguf_file *f, uint32_t i);         /* NULL beyond the last */
const gguf_key *gguf_key_find(const gguf_file *f, const char *name); /* NULL where absent */

/* Getters. Where the key is absent, GGUF_OPTIONAL leaves *value as it is (the caller's default) and gives LOAM_OK, and
 * GGUF_REQUIRED fails. A key of the wrong kind, or out of range, always fails; the message names the key and both kinds.
 * Integers are taken from any integer kind where the value fits; floats, bools and strings strictly (float64 narrows). */
typedef enum gguf_want { GGUF_OPTIONAL, GGUF_REQUIRED } gguf_want;
typedef struct gguf_range {
    int64_t min, max; /* both included */
} gguf_range;

loam_status gguf_get_int(const gguf_file *f, const char *key, gguf_want want, gguf_range range, int64_t *value, loam_error *err);
loam_status gguf_get_u32(const gguf_file *f, const char *key, gguf_want want, uint32_t *value, loam_error *err);
loam_status gguf_get_i64(const gguf_file *f, const char *key, gguf_want want, int64_t *value, loam_error *err);
loam_status gguf_get_u64(const gguf_file *f, const char *key, gguf_want want, uint64_t *value, loam_error *err);
loam_status gguf_get_f32(const gguf_file *f, const char *key, gguf_want want, float *value, loam_error *err);
loam_status gguf_get_bool(const gguf_file *f, const char *key, gguf_want want, bool *value, loam_error *err);
loam_status gguf_get_text(const gguf_file *f, const char *key, gguf_want want, text_view *value, loam_error *err);

/* ---- arrays ---- */

typedef enum gguf_class { GGUF_INTS, GGUF_FLOATS, GGUF_BOOLS, GGUF_STRINGS } gguf_class;

typedef struct gguf_array {
    gguf_kind item;
    uint64_t count;
    const uint8_t *data;
    uint64_t bytes;
} gguf_array;

bool gguf_in_class(gguf_kind item, gguf_class cls);

/* The array of that key and class; absent and optional: count 0 and data NULL. */
loam_status gguf_get_array(const gguf_file *f, const char *key, gguf_want want, gguf_class cls, gguf_array *a, loam_error *err);
/* Element i < count of an array of the matching class. Integers above INT64_MAX read as INT64_MAX. */
int64_t gguf_int_at(const gguf_array *a, uint64_t i);
float gguf_f32_at(const gguf_array *a, uint64_t i);
bool gguf_bool_at(const gguf_array *a, uint64_t i);

/* A per-block integer: fills values[0..n) from an integer (all the same) or from an array of at least n integers. */
loam_status gguf_get_per_block(const gguf_file *f, const char *key, gguf_want want, uint32_t *values, uint32_t n,
                               loam_error *err);

/* Walks an array of strings in order. `gguf_strings it = gguf_strings_of(&a); text_view s; while (gguf_next(&it, &s)) ...` */
typedef struct gguf_strings {
    const uint8_t *next;
    uint64_t left;
} gguf_strings;

gguf_strings gguf_strings_of(const gguf_array *a);
bool gguf_next(gguf_strings *it, text_view *s);

/* ---- tensors ---- */

typedef struct gguf_tensor {
    char name[LIMIT_NAME_BYTES + 1];
    loam_type type;
    int n_dims;             /* 1..4, as stored (0 reads as 1) */
    int64_t ne[LIMIT_DIMS]; /* sizes, ne[0] contiguous; 1 beyond n_dims; each >= 0 */
    const void *data;       /* first byte; NULL for a tensor without values */
    uint64_t bytes;
    uint64_t offset; /* of data in its part */
    uint64_t at;     /* of its entry in its part */
    uint32_t part;
} gguf_tensor;

uint32_t gguf_tensor_count(const gguf_file *f);
const gguf_tensor *gguf_tensor_at(const gguf_file *f, uint32_t i);         /* in file order; NULL beyond the last */
const gguf_tensor *gguf_tensor_find(const gguf_file *f, const char *name); /* NULL where absent */
void gguf_prefetch(const gguf_file *f, const gguf_tensor *t);              /* a hint: its data will be read soon */

/* Gives tensor i its data where it waits for it (GGUF_LAZY), until gguf_let_go. Nothing to do for other tensors. */
loam_status gguf_hold(gguf_file *f, uint32_t i, loam_error *err);
void gguf_let_go(gguf_file *f, uint32_t i);

/* Number of values; never overflows for a tensor of an opened file. */
static inline int64_t gguf_values(const gguf_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

/* ---- vocabulary ---- */

typedef struct gguf_vocab {
    vocab_view view; /* what a tokenizer is built from; its text lies in the file, its arrays in `memory` */
    void *memory;
} gguf_vocab;

/* Checks the kinds and lengths of the tokenizer's arrays and fills the view. A file without tokens gives n_tokens 0. The
 * view lives until gguf_vocab_free or gguf_close, whichever comes first. */
loam_status gguf_vocab_view(gguf_vocab *v, const gguf_file *f, loam_error *err);
void gguf_vocab_free(gguf_vocab *v);

#endif
