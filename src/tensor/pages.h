/* pages.h - how attention kernels see the keys and values of one sequence in one layer: a table of pages.
 *
 * A page holds PAGE_SLOTS tokens of one sequence, in the order in which they were added; a page is also the chunk of 64
 * keys of the written order of attention. Inside a page, for each key-value head:
 *
 *   keys, float types (F32, F16, BF16):  [k_dim][PAGE_SLOTS]   transposed: for each dimension the 64 slots, so that a
 *                                                             product of one query with 64 keys has no horizontal sum
 *   keys, block types (Q8_0, ...):       [PAGE_SLOTS][row]     one encoded row of k_dim values per slot
 *   values, every type:                  [PAGE_SLOTS][row]     one row of v_dim values per slot
 *
 * Slots that hold no token are zero bytes or old data of the same type; they are always masked. */
#ifndef LOAM_TENSOR_PAGES_H
#define LOAM_TENSOR_PAGES_H

#include <stdint.h>

#include "loam/tensor.h"

#define PAGE_SLOTS 64

/* One key-value head of one page. */
typedef struct page_head {
    const void *k, *v;
} page_head;

/* Geometry of the cache of one layer; the same for all its pages. */
typedef struct page_shape {
    loam_type k_type, v_type;
    int n_kv_head, k_dim, v_dim;
    uint64_t k_head_bytes, v_head_bytes; /* of one head of one page */
    uint64_t page_bytes;                 /* keys of all heads, then values of all heads */
} page_shape;

#endif
