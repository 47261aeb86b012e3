/* internal.h - the structures of memory.c and sequences.c. */
#ifndef LOAM_MEMORY_INTERNAL_H
#define LOAM_MEMORY_INTERNAL_H

#include "memory/memory.h"

typedef struct mem_page {
    int32_t owners;          /* sequences that have it in their table; 0: free */
    int16_t used;            /* slots ever given out: the next token goes here */
    int16_t count;           /* slots that hold a token */
    uint64_t twins;          /* slots whose token is also in another page and counted there */
    bool seen;               /* by the operation under way */
    bool far;                /* keys made with the long rotary factors */
} mem_page;

/* The pages of a sequence. Of a limited window positions below `kept` may have been given back. */
typedef struct mem_table {
    int32_t *pages;
    int n;
    size_t cap;
    int32_t end;             /* largest position + 1, 0: empty */
    int32_t kept;
} mem_table;

/* What a sequence had before the batch. */
typedef struct mem_undo {
    bool touched;
    int n;
    int32_t last;            /* last page, -1: none */
    int16_t used;            /* of the last page */
    bool anew;               /* the batch gives the sequence other pages: those before are in `former` */
    mem_table former;
} mem_undo;

typedef struct mem_group {
    int window;              /* 0: keeps all */
    bool encode;
    int32_t n_pages;
    mem_page *pages;
    int32_t *free_pages;
    int32_t n_free;
    int32_t *slot_pos;       /* [n_pages * PAGE_SLOTS] */
    int32_t *shift;          /* the same: pending turn of the key */
    uint64_t *token;         /* the same: which token it is, the same number in every page that has a copy of it */
    int32_t *ids;            /* the same: id of the token, -1: none; NULL where they are not kept */
    bool shifted;
    mem_table *tables;       /* [n_seq_max] */
    mem_undo *undo;          /* [n_seq_max] */
    int64_t n_tokens, n_pending, max_tokens; /* visible; added by the open batch; limit of both */
    int64_t n_former;        /* visible ones that go when the open batch commits */
    /* the batch */
    int32_t *slots;
    size_t n_slots, cap_slots;
    int32_t *first_slot;     /* [n_batch + 1] */
    kv_run *runs;            /* [n_batch] */
} mem_group;

/* A recurrent state of all layers. */
typedef struct mem_cell {
    int32_t owners;          /* sequences and batches that point here; 0: free */
    int32_t pos;             /* of the last token */
    int32_t run;             /* open run of the step that writes here, -1: none */
} mem_cell;

/* Cells of all recurrent layers; n_cells 0: the model has none. */
typedef struct mem_states {
    state_layer *layers;     /* [n_layer] */
    mem_cell *cells;         /* [n_cells]: as many for an open batch as for the sequences */
    int n_cells;
    int32_t *tail;           /* [n_seq_max] cell of each sequence, -1: none */
    int32_t *work;           /* [n_seq_max] what the open batch has made of it, -1: not touched */
    int n_past;              /* n_rs_seq: earlier states that are kept */
    int32_t *past, *work_past; /* [n_seq_max][n_past] cells one, two, ... tokens before tail and work */
    int16_t *past_len, *work_past_len;
    bool *rootless;          /* [n_seq_max] the batch has given the sequence another's state: its own past is none */
    int32_t *left;           /* [n_batch] fewest tokens that follow in the batch in a sequence of the token */
    /* the batch */
    const int32_t **seqs;    /* [n_batch] sequences of each token */
    int32_t *n_seqs;
    int32_t *run_of;         /* [n_batch] */
    int32_t *tokens;         /* [n_batch] sorted by run */
    state_run *runs;         /* [n_batch] */
} mem_states;

struct memory {
    mem_group *groups;
    int n_groups;
    kv_layer *layers;
    void *data;              /* reserved address space of all pages */
    uint64_t bytes;
    int n_layer, n_seq_max, n_batch;
    int64_t n_ctx_seq;
    /* the batch */
    int n_added;
    int32_t *lead;           /* [n_batch] first sequence of each token */
    int32_t *pos;            /* [n_batch] */
    kv_group *view_groups;
    kv_view view;
    mem_states states;
    bool open, encoding;
    uint64_t n_numbered;     /* tokens that have got a number */
};

/* states.c */
uint64_t mem_states_bytes(const memory_params *p, const memory_layer *l);  /* of one layer */
loam_status mem_states_init(memory *m, const memory_params *p, loam_error *err);
uint8_t *mem_states_place(memory *m, const memory_params *p, int layer, uint8_t *at);
void mem_states_free(memory *m);
uint64_t mem_states_table_bytes(const memory *m);
void mem_states_begin(memory *m);
void mem_states_add(memory *m, const memory_token *t);                     /* token n_added */
void mem_states_view(memory *m, int first, int n);
void mem_states_commit(memory *m);
void mem_states_rollback(memory *m);
bool mem_states_may_rm(const memory *m, int seq, int32_t p0, int32_t p1);
void mem_states_rm(memory *m, int seq, int32_t p0, int32_t p1);            /* may_rm said yes */
void mem_states_cp(memory *m, int src, int dst);
void mem_states_move(memory *m, int seq, int32_t p0, int32_t p1, int32_t add, int32_t div);

int32_t mem_states_pos(const memory *m, int seq);                          /* -1: none */
int32_t mem_take_cell(mem_states *s);
void mem_drop_cell(mem_states *s, int32_t cell);

void mem_drop_page(mem_group *g, int32_t page);                            /* one owner less */
int32_t mem_take_page(mem_group *g);                                       /* -1: none free */
void mem_copy_page(memory *m, mem_group *g, int32_t from, int32_t to, int32_t p0, int32_t p1); /* slots with positions in range */
bool mem_table_push(mem_table *t, int32_t page, int32_t max);
void mem_clear_slot(mem_group *g, int64_t at);                             /* forgets the token of a slot, if any */
int32_t mem_end_of(const mem_group *g, const int32_t *pages, int n);       /* largest position in them + 1 */
int32_t mem_start_of(const mem_group *g, const int32_t *pages, int n);     /* smallest position, -1: none */
void mem_trim(mem_group *g, mem_table *t);                                 /* drops empty pages, lowers `used` of the last */

#endif
