/* mix.h - which element type each tensor of a model gets under a named mix ("Q4_K_M").
 *
 *   name --mix_find--> mix        tensors + model facts + options --mix_plan--> a type for each tensor
 *
 * The rules look at the name of a tensor (attention value, feed-forward down, ...), its layer, the number of experts and
 * of heads, and at row lengths: a row that a type's block does not divide falls back to a type with smaller blocks. */
#ifndef LOAM_QUANT_MIX_H
#define LOAM_QUANT_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loam/tensor.h"

#define MIX_QUANTIZATION_VERSION 2u /* general.quantization_version of files with quantized tensors */

typedef enum mix_id {
#define MIX(NAME, text, file_type, type) MIX_##NAME,
#include "quant/mix.def"
#undef MIX
    MIX_COPY, /* every tensor keeps its type, the file its file_type */
    MIX_COUNT
} mix_id;

typedef struct mix_info {
    mix_id id;
    const char *name;
    int file_type;   /* -1 for COPY */
    int type;        /* the default element type; -1 for COPY */
} mix_info;

/* The mixes in the order of mix.def, then COPY; NULL beyond. */
const mix_info *mix_at(int i);

/* A mix by name in any case of letters (Q3_K, Q4_K and Q5_K stand for their _M), or by file_type number.
 * LOAM_E_ARG names the nearest name. */
loam_status mix_find(const char *name, const mix_info **mix, loam_error *err);

/* Facts about the model. */
typedef struct mix_model {
    const char *arch;       /* general.architecture */
    int64_t n_layer;        /* blocks in the file, extra prediction layers included */
    int64_t n_head, n_head_kv; /* of layer 0 */
    int64_t n_expert;       /* 0 for a dense model */
} mix_model;

typedef struct mix_tensor {
    const char *name;
    int64_t ne[4];          /* row length first; unused dimensions are 1 */
    int type;               /* as it is stored now */
    bool has_weights;       /* the importance matrix has an entry for it */
} mix_tensor;

/* A type for all tensors whose name matches a pattern: a POSIX extended regular expression that is searched anywhere in the
 * name, in any case of letters; \d, \w, \s and (?: ) are understood too. */
typedef struct mix_override {
    const char *pattern;
    int type;
} mix_override;

typedef struct mix_options {
    const mix_info *mix;
    bool pure;              /* the default type for all, no rules */
    bool leave_output;      /* output.weight keeps its type */
    bool keep_order;        /* visit the tensors in the order given, else by layer, then by name */
    bool has_matrix;        /* an importance matrix was given */
    bool dry_run;           /* a missing matrix entry is no error */
    int output_type;        /* type of output.weight (and of the embedding where it is the output too); -1: by the rules */
    int token_type;         /* type of the token embeddings; -1: by the rules */
    const int *types;       /* a type for each tensor given, -1: by the rules; NULL: no such list. With fall-backs */
    const mix_override *overrides; /* the first that matches counts */
    size_t n_overrides;
} mix_options;

typedef struct mix_choice {
    size_t tensor;          /* index in the tensors given; choices are in visiting order, the order of the data in the file */
    int type;               /* the type to store; equal to the tensor's own: it is copied */
    bool fell_back;         /* the row length did not fit the type that the rules chose */
    bool use_weights;       /* the matrix has an entry, and it is to be used */
    bool lacks_weights;     /* it should have had one: dry runs only, otherwise an error */
} mix_choice;

/* Fills choices[n] for tensors[n]. Errors name the tensor or pattern: LOAM_E_ARG for a bad pattern or type, a type whose
 * block does not divide the row and that has no fall-back, or a type that needs an importance matrix where there is none. */
loam_status mix_plan(const mix_options *options, const mix_model *model, const mix_tensor *tensors, size_t n,
                     mix_choice *choices, loam_error *err);

/* Whether a tensor is ever quantized (norms, biases, routers, small vectors and the like are not). */
bool mix_is_quantized(const mix_tensor *tensor);

#endif
