/* gemm.h - products of matrices of floats for training: C (+)= A B, in all forms, packed into panels.
 *
 *   A [m x k] floats, any of its two strides 1       B [k x n] floats or any element type, rows along n or along k
 *
 *        columns of B, BLOCK_N at a time                  a tile of C: MR x NR sums in registers
 *        ┌────────┬────────┐                                     NR
 *   k    │ packed │        │  BLOCK_K deep                   ┌─────────┐
 *        └────────┴────────┘                              MR │ += a  b │   for each k, one step of each sum
 *                                                            └─────────┘
 *
 * Written order: an element of C is one chain of fused multiply-adds over ascending k, which begins with +0 or, with add,
 * with what is there. It depends neither on tiles nor on threads nor on the instruction set; and a sum that is taken in
 * several calls with add gives the bits of one call: gradients of many small batches are those of the big one. */
#ifndef LOAM_KERNELS_GEMM_H
#define LOAM_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef struct gemm_args {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;  /* element (i, p) at a[i * a_row + p * a_col]; one of the strides is 1 */
    const void *b;
    loam_type b_type;      /* block types need rows of whole blocks */
    int64_t b_stride;      /* bytes from row to row of what is stored */
    bool b_turned;         /* a stored row has the n-th column of B, k values; else the p-th row, n values */
    float *c;
    int64_t c_stride;      /* floats from row to row */
    bool add;
} gemm_args;

/* What an instruction set brings: the tile and the two ways of packing a panel of `width` lanes, k deep, [k][width].
 * Panels are written in whole vectors: GEMM_SPILL floats behind their end may be overwritten. */
struct gemm_kernel {
    int mr, nr;
    void (*tile)(int64_t k, const float *a, const float *b, float *c, int64_t c_stride, bool add);
    /* lanes are rows of src, contiguous along k; of the missing lanes (rows < width) anything is written */
    void (*turn)(const float *src, int64_t stride, int rows, int64_t k, float *panel, int width);
    /* lanes are contiguous in src, one row for each k; missing lanes become 0 */
    void (*lay)(const float *src, int64_t stride, int lanes, int64_t k, float *panel, int width);
};

#define GEMM_SPILL 16

size_t gemm_scratch(void); /* bytes for one thread, 64-byte aligned */

/* The part of thread ith of nth; no thread waits for another. nth 1: all of it. */
void gemm(const kernels *k, const gemm_args *g, int ith, int nth, void *scratch);

#endif
