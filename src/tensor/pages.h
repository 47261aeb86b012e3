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
 * Rotated rows went through a Hadamard transform before they were encoded, in blocks of the largest power of two that divides
 * the head: it spreads large values over the block. Queries are turned as keys are, results are turned back.
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
    int k_rotated, v_rotated;            /* block of the Hadamard transform of rows; 0: none */
    uint64_t k_head_bytes, v_head_bytes; /* of one head of one page */
    uint64_t page_bytes;                 /* keys of all heads, then values of all heads */
} page_shape;

static inline page_head page_head_at(const page_shape *s, const uint8_t *pages, int64_t page, int head)
{
    const uint8_t *p = pages + (uint64_t)page * s->page_bytes;
    return (page_head){ p + (uint64_t)head * s->k_head_bytes,
                        p + (uint64_t)s->n_kv_head * s->k_head_bytes + (uint64_t)head * s->v_head_bytes };
}

/* ---- what one step of a context reads and writes: filled by src/memory, used by the attention operations ---- */

/* The cache of one layer. Layers of one group share pages' numbers, positions and tables. */
typedef struct kv_layer {
    uint8_t *pages;              /* page p at pages + p * shape.page_bytes; NULL: the layer has no cache */
    page_shape shape;
    int group;
} kv_layer;

/* Consecutive tokens of the step that see the same pages. */
typedef struct kv_run {
    int first, count;
    const int32_t *pages;        /* in the order of the sequence */
    int n_pages;
} kv_run;

/* A token's key and value go to every slot in slots[first_slot[i] .. first_slot[i + 1]); slot = page * PAGE_SLOTS + place. */
typedef struct kv_group {
    const kv_run *runs;          /* those whose tables begin alike are neighbours */
    int n_runs;
    const int32_t *slots;
    const int32_t *first_slot;   /* [n_tokens + 1] */
    const int32_t *slot_pos;     /* position of the token in each slot, -1: empty */
} kv_group;

/* ---- recurrent states: one row of floats per cell, two kinds of row per layer ----
 *
 *   r  what a token mixer remembers of the last inputs: windows of convolutions [taps - 1][channels], token shifts [width]
 *   s  the state proper, rows of heads */
typedef struct state_layer {
    float *r, *s;                /* cell c at r + c * r_row, s + c * s_row; NULL: none */
    int64_t r_row, s_row;        /* floats */
} state_layer;

/* Tokens of the step that continue one state, in order. It is read from cell `from` (-1: zeros) and left in cell `to`, which
 * may be the same. Runs are worked off in their order: a later one may start from what an earlier one left. */
typedef struct state_run {
    const int32_t *tokens;
    int count;
    int32_t from, to;
} state_run;

typedef struct kv_view {
    const kv_layer *layers;
    const kv_group *groups;
    const int32_t *pos;          /* [n_tokens] positions of the step's tokens */
    const state_layer *states;   /* [layers] */
    const state_run *state_runs; /* every token of the step is in one, where the model has states */
    int n_state_runs;
} kv_view;

#endif
