/* loam/quantize.h - writing a model file in other element types. UNSTABLE: the lower tier may change between minor versions.
 *
 *     loam_quantize_params p = loam_quantize_defaults();
 *     p.type = "q4_K_M";
 *     p.imatrix = im;                                  // optional: loam/imatrix.h
 *     if (loam_quantize_file("in.gguf", "out.gguf", &p, NULL, &err) != LOAM_OK) puts(err.message);
 */
#ifndef LOAM_QUANTIZE_H
#define LOAM_QUANTIZE_H

#include <stdbool.h>

#include "loam/budget.h"
#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of one tensor. Strings and sizes are valid during the call only. */
typedef struct loam_quantize_step {
    const char *name;
    const int64_t *ne; /* [4] */
    int from, to;      /* loam_type; equal: it is copied */
    bool fell_back;    /* its rows do not fit the blocks of the type that the rules chose: `to` has smaller ones */
    uint64_t bytes_before, bytes_after;
    uint64_t done, total; /* bytes of source tensors that are finished, and of all */
    bool weighted;        /* the importance matrix has column weights for it, and `to` uses them */
    bool lacks_weights;   /* `to` needs column weights that are not there: a dry run shows it, otherwise it is an error */
} loam_quantize_step;

/* Called before each tensor, and again while a large one is worked on (then with the same name). False stops the work. */
typedef bool (*loam_quantize_progress)(void *user, const loam_quantize_step *step);

/* All tensors whose name matches a pattern get a type: a POSIX extended regular expression, searched anywhere in the name. */
typedef struct loam_quantize_override {
    const char *pattern;
    int type;
} loam_quantize_override;

/* Get them from loam_quantize_defaults(), then change what you need. */
typedef struct loam_quantize_params {
    size_t struct_size;
    const char *type;      /* a mix or element type by name in any case ("q4_K_M", "Q8_0", "f16"), a general.file_type number, or
                                 "copy"; default "q8_0" */
    int32_t n_threads;     /* default 0: all CPUs of the process */
    bool pure;             /* the type of the name for all matrices, no mix (default false) */
    bool leave_output;     /* output.weight keeps its type (default false) */
    bool allow_requantize; /* a source that is quantized already is decoded and encoded again (default false: refused) */
    bool dry_run;          /* only call progress, write nothing (default false) */
    int output_type;       /* loam_type of output.weight; default -1: by the rules */
    int token_type;        /* loam_type of the token embeddings; default -1: by the rules */
    const loam_quantize_override *overrides; /* [n_overrides]; the first that matches counts */
    size_t n_overrides;
    loam_quantize_progress progress; /* default NULL */
    void *progress_user;
    const loam_imatrix *imatrix;     /* column weights for the encoders; default NULL */
    const char *imatrix_file;        /* its name, for the metadata of the file; default NULL */
    bool keep_split;                 /* of a split file as many parts are written, with the same tensors (default false: one file) */
    const loam_budget *budget;       /* types by this plan, made for the same file, in place of `type`; its own column weights are
                                        used where imatrix is NULL. Default NULL */
} loam_quantize_params;

LOAM_API loam_quantize_params loam_quantize_defaults(void);

typedef struct loam_quantize_result {
    uint64_t bytes_before, bytes_after; /* of all tensors */
    uint64_t values;
    uint32_t n_tensors, n_converted, n_fell_back;
} loam_quantize_result;

/* Reads the GGUF file `in` (of a split file the first part) and writes `out`, one file unless keep_split says so
 * (PREFIX-00001-of-0000N.gguf), with the tensors converted and the metadata kept. Uses all threads and memory for a few rows of a tensor, whatever the model's size. `out` appears when it is
 * whole; on failure nothing has changed. result may be NULL. Errors: ARG (an unknown type, with the nearest name; a type whose
 * blocks cannot hold a tensor's rows, or that needs an importance matrix where there is no entry for the tensor; a matrix of
 * another model; `out` is `in`; a field out of range), UNSUPPORTED (a quantized source without
 * allow_requantize), NUMERIC (a weight is NaN or infinite, or does not fit the type: tensor, row and column are named),
 * FORMAT, IO, NOMEM, ABORTED (by progress). */
LOAM_API loam_status loam_quantize_file(const char *in, const char *out, const loam_quantize_params *params,
                                        loam_quantize_result *result, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
