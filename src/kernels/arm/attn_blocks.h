/* attn_blocks.h - pages of block types for attention: decoded by the reference, once a page, whatever the number of queries.
 * The counterpart of kernels/x86/attn_blocks.h, which can also read levels as they are. Included after vec_neon.h. */
#ifndef LOAM_KERNELS_ATTN_BLOCKS_H
#define LOAM_KERNELS_ATTN_BLOCKS_H

#include "base/limits.h"
#include "kernels/kernels.h"
#include "quant/quant.h"

typedef struct level_page {
    const uint8_t *q;
    const float *d;
    size_t row, block;
} level_page;

VEC bool has_levels(loam_type t) { return (void)t, false; }
VEC size_t level_at(size_t i) { return i; }
static void level_keys(const attn_args *a, uint64_t seen, level_page *out, float *scratch)
{
    (void)a, (void)seen, (void)scratch;
    *out = (level_page){ 0 };
}
static void level_values(const attn_args *a, uint64_t seen, level_page *out, float *scratch) { level_keys(a, seen, out, scratch); }

/* Blocks lie slot by slot; keys are wanted with their slots side by side. */
static void block_keys(const attn_args *a, uint64_t seen, float *out)
{
    const int64_t values = dtype_table[a->k_type].values;
    const size_t bytes = dtype_table[a->k_type].bytes, n = (size_t)(a->k_dim / values);
    for (; seen; seen &= seen - 1) {
        size_t s = (size_t)__builtin_ctzll(seen);
        for (size_t b = 0; b < n; b++) {
            float block[256];
            quant_table[a->k_type].decode((const uint8_t *)a->page.k + (s * n + b) * bytes, block, values);
            for (int64_t i = 0; i < values; i++) out[((size_t)i + b * (size_t)values) * PAGE_SLOTS + s] = block[i];
        }
    }
}

static void block_values(const attn_args *a, uint64_t seen, float *out)
{
    size_t row = (size_t)(a->v_dim / dtype_table[a->v_type].values) * dtype_table[a->v_type].bytes;
    for (; seen; seen &= seen - 1) {
        size_t s = (size_t)__builtin_ctzll(seen);
        quant_table[a->v_type].decode((const uint8_t *)a->page.v + s * row, out + s * (size_t)a->v_dim, a->v_dim);
    }
}

#endif
