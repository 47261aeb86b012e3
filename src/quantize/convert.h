/* convert.h - a tensor of a file in another element type, some rows at a time on all threads. */
#ifndef LOAM_QUANTIZE_CONVERT_H
#define LOAM_QUANTIZE_CONVERT_H

#include "base/pool.h"
#include "file/gguf.h"

/* Gets the converted rows in order, and how many bytes of the source they stand for. What it returns ends the work. */
typedef loam_status (*convert_sink)(void *user, const void *data, uint64_t bytes, uint64_t source_bytes, loam_error *err);

typedef struct convert_job {
    const gguf_tensor *t;
    int to;
    const float *weights; /* [matrices][ne0] of the columns, or NULL */
    convert_sink sink;
    void *user;
} convert_job;

/* Needs memory for some megabytes of values. Errors name the tensor, and row and column of what does not fit. */
loam_status convert_tensor(const convert_job *job, pool *threads, loam_error *err);

/* Row `row` of the tensor to floats [ne0]; NUMERIC where a value is not finite. */
loam_status convert_read(const gguf_tensor *t, int64_t row, int64_t rows, float *out, loam_error *err);

#endif
