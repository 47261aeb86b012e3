/* safetensors.h - reading safetensors files: a directory of tensors over mapped bytes.
 *
 *   u64 n │ n bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} │ data
 *
 * Opening checks the header against the file: dtypes, shapes, lengths, names that occur twice, extents that overlap, leave
 * gaps, reach beyond the file or begin between two elements. What it hands out is safe to use as it stands, but need not be
 * aligned in memory where the header has an odd length. */
#ifndef LOAM_FILE_SAFETENSORS_H
#define LOAM_FILE_SAFETENSORS_H

#include "base/js.h"
#include "base/limits.h"
#include "base/os.h"

typedef enum st_dtype {
    ST_F64, ST_F32, ST_F16, ST_BF16, ST_F8_E4M3, ST_F8_E5M2,
    ST_I64, ST_I32, ST_I16, ST_I8, ST_U64, ST_U32, ST_U16, ST_U8, ST_BOOL
} st_dtype;

typedef struct st_tensor {
    text_view name; /* of the file */
    st_dtype dtype;
    int n_dims;                    /* 0: one value */
    int64_t shape[LIMIT_ST_DIMS];  /* outermost first */
    const uint8_t *data;
    uint64_t bytes;
    uint64_t offset;               /* of data in the file */
    uint32_t file;                 /* for the owner's use: which of several files */
} st_tensor;

typedef struct st_file {
    os_file file; /* empty where the bytes are the caller's */
    char *path;
    js *header;
    st_tensor *tensors; /* in the order of the data */
    size_t n_tensors;
} st_file;

loam_status st_open(st_file **out, const char *path, bool use_map, loam_error *err);
/* Over bytes that the caller keeps; label names them. */
loam_status st_open_memory(st_file **out, const void *data, size_t size, const char *label, loam_error *err);
void st_close(st_file *f); /* NULL is fine */

/* The text of a key of "__metadata__"; data NULL where absent. */
text_view st_metadata(const st_file *f, const char *key);

unsigned st_dtype_bytes(st_dtype t);

#endif
