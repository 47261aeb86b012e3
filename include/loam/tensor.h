/* loam/tensor.h - element types. UNSTABLE: the lower tier may change between minor versions. */
#ifndef LOAM_TENSOR_H
#define LOAM_TENSOR_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in GGUF files. */
typedef enum loam_type {
    LOAM_F32 = 0, LOAM_F16 = 1, LOAM_Q4_0 = 2, LOAM_Q4_1 = 3, LOAM_Q5_0 = 6, LOAM_Q5_1 = 7, LOAM_Q8_0 = 8, LOAM_Q8_1 = 9,
    LOAM_Q2_K = 10, LOAM_Q3_K = 11, LOAM_Q4_K = 12, LOAM_Q5_K = 13, LOAM_Q6_K = 14, LOAM_Q8_K = 15,
    LOAM_IQ2_XXS = 16, LOAM_IQ2_XS = 17, LOAM_IQ3_XXS = 18, LOAM_IQ1_S = 19, LOAM_IQ4_NL = 20, LOAM_IQ3_S = 21,
    LOAM_IQ2_S = 22, LOAM_IQ4_XS = 23, LOAM_I8 = 24, LOAM_I16 = 25, LOAM_I32 = 26, LOAM_I64 = 27, LOAM_F64 = 28,
    LOAM_IQ1_M = 29, LOAM_BF16 = 30, LOAM_TQ1_0 = 34, LOAM_TQ2_0 = 35, LOAM_MXFP4 = 39, LOAM_NVFP4 = 40,
    LOAM_Q1_0 = 41, LOAM_Q2_0 = 42
} loam_type;

#define LOAM_TYPE_LIMIT 43 /* one above the largest id */

/* Name of a type as the field writes it ("q4_K"); NULL for an id that is not in use. */
LOAM_API const char *loam_type_name(int type);
/* The type of that name, in any case of letters; -1 where there is none. */
LOAM_API int loam_type_from_name(const char *name);
/* Values and bytes of one block; 0 for an id that is not in use. */
LOAM_API int loam_type_block_values(int type);
LOAM_API int loam_type_block_bytes(int type);

#ifdef __cplusplus
}
#endif
#endif
