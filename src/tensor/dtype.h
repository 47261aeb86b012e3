/* dtype.h - facts about element types, all from dtype.def. */
#ifndef LOAM_TENSOR_DTYPE_H
#define LOAM_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loam/tensor.h"

/* What the activations of a product are converted to (dtype.def, column `activation`). */
typedef enum act_kind { ACT_F32, ACT_A32, ACT_A256, ACT_NONE } act_kind;
typedef enum weight_need { WEIGHT_IGNORED, WEIGHT_OPTIONAL, WEIGHT_ASKED, WEIGHT_REQUIRED } weight_need;

typedef struct dtype_info {
    const char *name;     /* NULL: the id is not in use */
    int values, bytes;    /* of one block */
    act_kind act;
    weight_need need;
} dtype_info;

extern const dtype_info dtype_table[LOAM_TYPE_LIMIT];

/* NULL for an unknown id, whatever its value. */
const dtype_info *dtype_get(int64_t id);

/* Whether keys and values can be kept in it: the types that kernels encode at run time. */
bool dtype_caches(loam_type type);

/* Bytes of a row of n values. False when n is negative or not a multiple of the block, or on overflow. */
bool dtype_row_bytes(loam_type type, int64_t n, uint64_t *bytes);

#endif
