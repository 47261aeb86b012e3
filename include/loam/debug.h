/* loam/debug.h - tools for work on engines. UNSTABLE: the lower tier may change between minor versions. */
#ifndef LOAM_DEBUG_H
#define LOAM_DEBUG_H

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a model with random weights to path (a GGUF file, replaced whole): for benchmarks, where only shapes and types
 * matter. Weights have a standard deviation of 1/sqrt(row length), so that activations stay finite; the vocabulary is a
 * SentencePiece one of made-up pieces with <unk>, <s>, </s> and 256 byte tokens. The same arguments give the same bytes.
 *   shape  "tiny"  llama: 4 layers, 256 wide, 4/2 heads, 768, 4,096 tokens
 *          "0.5b"  qwen2: 24 layers, 896 wide, 14/2 heads, 4,864, 151,936 tokens, tied
 *          "1b"    llama: 16 layers, 2,048 wide, 32/8 heads of 64, 8,192, 128,256 tokens, tied
 *          "8b"    llama: 32 layers, 4,096 wide, 32/8 heads of 128, 14,336, 128,256 tokens
 *          "moe"   qwen3moe: 12 layers, 1,024 wide, 16/4 heads of 64, 32 experts of 512 of which 4 are used, 151,936 tokens, tied
 *   type   an element type ("q8_0") for every matrix, or a mix ("q4_K_M") in which some matrices get a better one; any case
 *          of letters. Rows that do not fit the blocks of a type get the type that the field uses instead.
 * Errors: LOAM_E_ARG for an unknown shape or type (the message lists what there is), LOAM_E_IO, LOAM_E_NOMEM. */
LOAM_API loam_status loam_debug_make_model(const char *path, const char *shape, const char *type, uint64_t seed, loam_error *err);

/* What bounds the speed of computing on this machine: the best that was measured so far. */
typedef struct loam_limits {
    const char *kernels; /* the set in use ("avx512vnni"), whose instructions the loops are made of; lives for ever */
    double int_macs;     /* multiply-adds of 8-bit integers per second, all threads together; 0: not known for this set */
    double float_macs;   /* the same of 32-bit floats */
    double read_bytes;   /* bytes per second of reading a mapping of the file from its start to its end */
    int32_t reads;       /* how many there were */
} loam_limits;

/* Measures once (loops of a few milliseconds, one read of the whole file after one that is not counted) and raises what it
 * finds higher in *best, which starts zeroed. Call it again between the runs that are compared with it, since other
 * programs slow down all of them. n_threads: 0 for the CPUs of this process; reading is shared out by the megabyte. A file
 * that fits into the caches is read at their speed. Errors: IO, NOMEM, ARG; *best is unchanged then. */
LOAM_API loam_status loam_debug_limits(const char *path, int32_t n_threads, loam_limits *best, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
