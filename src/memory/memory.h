/* memory.h - one memory for all sequences: pages of PAGE_SLOTS tokens, a table of pages for each sequence.
 *
 *   group (full attention | one window)          sequence 0: [3][7][1]      page 7: owners 2, 64 tokens
 *     layers' pages, positions, free pages       sequence 1: [3][7][9]      page 9: owners 1, 12 tokens
 *
 * Copying a sequence shares its pages. A token is added to the last page of its sequence; where that page belongs to
 * others too, it is copied first. A batch is a transaction: begin, add every token, compute, then commit or roll back; a
 * rolled-back batch leaves every table as it was. Groups differ only in their policy: pages of a limited window are given
 * back at commit once no later token can see them.
 *
 * Recurrent layers keep one state per sequence in place of pages (states.c): a sequence points to a cell that holds the
 * state after its last token and that token's position. A batch reads a cell and leaves its result in a fresh one, so
 * rolling back is forgetting the fresh one. Copies share a cell. The states after the last n_rs_seq tokens before are kept,
 * as cells too; a removal of the end that leads to one of them takes the state back, any other that cuts it is refused.
 *
 * Layers that encode keep the last encoding of each sequence, apart from the tokens that are decoded: a batch is one or the
 * other. An encoding is put into fresh pages, so that rolling it back brings back the one before. Removing, keeping, copying
 * a whole sequence takes its encoding along; parts of sequences and moved positions leave it alone.
 *
 * Where the model has two sets of rotary factors (n_replay > 0), a page also knows the ids of its tokens and which set its keys
 * were made with, one set for all pages of a sequence. A batch may begin a sequence anew (memory_restart) and add its tokens
 * again: the former pages are set aside until it ends, as those of an encoding are.
 *
 * Positions inside a sequence need not be in order or without gaps: kernels look at the position of every slot. */
#ifndef LOAM_MEMORY_MEMORY_H
#define LOAM_MEMORY_MEMORY_H

#include <stdbool.h>

#include "base/error.h"
#include "tensor/pages.h"

typedef struct memory_layer {
    bool present;
    int n_kv_head, k_dim, v_dim;
    int window;              /* standard window in tokens when the cache of this layer is limited to it; 0: keeps all */
    bool encode;             /* belongs to what is encoded: F32, replaced by the next encoding of a sequence */
    int64_t r_row, s_row;    /* floats of a recurrent state; both 0: none */
} memory_layer;

typedef struct memory_params {
    const memory_layer *layers;
    int n_layer;
    int64_t n_ctx;           /* tokens of all sequences */
    int64_t n_ctx_seq;       /* tokens of one sequence */
    int n_seq_max, n_batch;
    loam_type k_type, v_type;
    bool k_rotated, v_rotated; /* rows of block types go through a Hadamard transform (tensor/pages.h) */
    int n_rs_seq;            /* tokens by which a recurrent state can be taken back */
    int64_t n_encode;        /* tokens of layers that encode, of all sequences with those of an open batch */
    int64_t n_replay;        /* room for tokens that a batch adds again, beside n_ctx; 0: ids of tokens are not kept */
} memory_params;

typedef struct memory memory;

/* Bytes of keys and values; the address space is reserved at once, pages of the system come with first use. */
loam_status memory_estimate(const memory_params *p, uint64_t *bytes, loam_error *err);
loam_status memory_new(memory **out, const memory_params *p, loam_error *err);
void memory_free(memory *m);
uint64_t memory_bytes(const memory *m);
uint64_t memory_table_bytes(const memory *m);  /* of everything else: heap */
int64_t memory_n_tokens(const memory *m);      /* in pages, shared ones once */
int64_t memory_max_pages(const memory *m);     /* of one sequence in one group */

/* ---- a batch ---- */

typedef struct memory_token {
    int32_t pos;
    const int32_t *seqs;     /* first id decides what it sees */
    int n_seqs;
} memory_token;

loam_status memory_begin(memory *m);
/* The batch is an encoding: its tokens take the place of what was encoded for their sequences, and go to no other layer. */
loam_status memory_begin_encode(memory *m);
bool memory_encoded(const memory *m, int seq); /* something is */
/* LOAM_E_FULL: no room; LOAM_E_NOMEM. In both cases roll back. */
loam_status memory_add(memory *m, const memory_token *t);
/* Of the token added last: its id (-1: it has none), and whether its keys are made with the long rotary factors. */
void memory_mark(memory *m, int32_t id, bool far);
/* The open batch begins the sequence anew, before it has added to it. */
void memory_restart(memory *m, int seq);
void memory_rollback(memory *m);
void memory_commit(memory *m);
/* Makes tokens [first, first + n) of the batch visible and describes the step for the kernels; pos: their positions.
 * Valid until the next call. */
loam_status memory_view(memory *m, int first, int n, const int32_t *pos, const kv_view **view);

/* ---- sequences; ranges [p0, p1) with 0 <= p0, p1 = INT32_MAX as open end ---- */

bool memory_has_states(const memory *m);
/* False, and nothing changed, when a page that others share would have to be copied and none is free, or when the range ends a
 * recurrent state without containing its beginning, or when it cuts off an end so far back that tokens which a limited window
 * would need again have been given back. */
bool memory_seq_rm(memory *m, int seq, int32_t p0, int32_t p1);
bool memory_may_rm(memory *m, int seq, int32_t p0, int32_t p1); /* what it would say */
/* dst gets the tokens of src in the range in place of its own there, and its whole state whatever the range. LOAM_E_FULL;
 * LOAM_E_UNSUPPORTED: the window of dst would not be whole, or it would mix rotary factors; LOAM_E_NOMEM. Nothing has changed
 * then. */
loam_status memory_seq_cp(memory *m, int src, int dst, int32_t p0, int32_t p1);
void memory_seq_keep(memory *m, int seq);
void memory_clear(memory *m);
int32_t memory_pos_min(const memory *m, int seq);
int32_t memory_pos_max(const memory *m, int seq);
/* Whether a and b hold the same positions at their ends: sequences that one token may join. */
bool memory_same_ends(const memory *m, int a, int b);

typedef struct memory_cached {
    int32_t pos, id;
} memory_cached;
/* The tokens of a sequence by ascending position, where n_replay > 0; how many there are, of which at most max are listed. -1:
 * some were given back. */
int64_t memory_list(const memory *m, int seq, memory_cached *out, int64_t max);
bool memory_is_far(const memory *m, int seq);                 /* its keys are made with the long rotary factors */
bool memory_slot_far(const memory *m, int group, int32_t slot);

/* Changes positions of a sequence in the range: pos = (pos + add) / div. A token has one position: it moves for all sequences
 * that have it, also where its page was copied for one of them. LOAM_E_NOMEM;
 * LOAM_E_UNSUPPORTED (tokens that a window would need again are gone); then
 * nothing changed. */
loam_status memory_seq_move(memory *m, int seq, const int32_t range[2], int32_t add, int32_t div);
bool memory_has_shifts(const memory *m);
/* Calls turn for every slot whose key is out of place, once per group, then forgets the shifts. */
typedef void (*memory_turn_fn)(void *user, int group, int32_t slot, int32_t shift);
void memory_take_shifts(memory *m, memory_turn_fn turn, void *user);

const kv_layer *memory_layers(const memory *m);

#endif
