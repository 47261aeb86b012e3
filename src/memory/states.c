/* states.c - recurrent states: cells that sequences point to, copied by sharing, and batches that write to fresh ones.
 *
 *   tail   sequence 0 -> cell 2   sequence 1 -> cell 2   (copied: two owners)
 *   work   sequence 0 -> cell 5                          (the open batch read cell 2 and left its result in cell 5)
 *   commit: tail of sequence 0 becomes 5, cell 2 has one owner. Roll back: cell 5 is free again.
 *
 * A sequence has at most its cell and that of the open batch, so twice n_seq_max cells are always enough and a batch never
 * fails here. A token of several sequences follows the state of the first; all of them share what it leaves. */
#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "memory/internal.h"

#define CELLS(p) (2 * (uint64_t)(p)->n_seq_max)

static uint64_t aligned(uint64_t n) { return (n + 4095) & ~(uint64_t)4095; }

/* ---- construction ---- */

uint64_t mem_states_bytes(const memory_params *p, const memory_layer *l)
{
    uint64_t r, s;
    if (!mul_ok((uint64_t)l->r_row, CELLS(p) * sizeof(float), &r) || !mul_ok((uint64_t)l->s_row, CELLS(p) * sizeof(float), &s) ||
        r > SIZE_MAX / 4 || s > SIZE_MAX / 4)
        return SIZE_MAX / 2 + 1;
    return aligned(r) + aligned(s);
}

loam_status mem_states_init(memory *m, const memory_params *p, loam_error *err)
{
    mem_states *s = &m->states;
    bool any = false;
    for (int i = 0; i < p->n_layer; i++) any = any || p->layers[i].r_row > 0 || p->layers[i].s_row > 0;
    s->layers = mem_zalloc_array((size_t)p->n_layer + 1, sizeof *s->layers);
    if (!s->layers) return fail_nomem(err, "recurrent states", (uint64_t)p->n_layer * sizeof *s->layers);
    if (!any) return LOAM_OK;
    size_t n_seq = (size_t)p->n_seq_max, n_batch = (size_t)p->n_batch;
    s->n_cells = (int)CELLS(p);
    s->cells = mem_zalloc_array((size_t)s->n_cells, sizeof *s->cells);
    s->tail = mem_alloc_array(n_seq, sizeof *s->tail);
    s->work = mem_alloc_array(n_seq, sizeof *s->work);
    s->seqs = mem_alloc_array(n_batch, sizeof *s->seqs);
    s->n_seqs = mem_alloc_array(n_batch, sizeof *s->n_seqs);
    s->run_of = mem_alloc_array(n_batch, sizeof *s->run_of);
    s->tokens = mem_alloc_array(n_batch, sizeof *s->tokens);
    s->runs = mem_alloc_array(n_batch, sizeof *s->runs);
    if (!s->cells || !s->tail || !s->work || !s->seqs || !s->n_seqs || !s->run_of || !s->tokens || !s->runs)
        return fail_nomem(err, "the tables of recurrent states", (uint64_t)n_batch * sizeof(state_run));
    for (size_t i = 0; i < n_seq; i++) s->tail[i] = s->work[i] = -1;
    return LOAM_OK;
}

uint8_t *mem_states_place(memory *m, const memory_params *p, int layer, uint8_t *at)
{
    const memory_layer *l = &p->layers[layer];
    state_layer *s = &m->states.layers[layer];
    uint64_t r = (uint64_t)l->r_row * CELLS(p) * sizeof(float), st = (uint64_t)l->s_row * CELLS(p) * sizeof(float);
    *s = (state_layer){ .r = r ? (float *)(void *)at : NULL, .s = st ? (float *)(void *)(at + aligned(r)) : NULL,
                        .r_row = l->r_row, .s_row = l->s_row };
    return at + aligned(r) + aligned(st);
}

void mem_states_free(memory *m)
{
    mem_states *s = &m->states;
    mem_free(s->layers);
    mem_free(s->cells);
    mem_free(s->tail);
    mem_free(s->work);
    mem_free(s->seqs);
    mem_free(s->n_seqs);
    mem_free(s->run_of);
    mem_free(s->tokens);
    mem_free(s->runs);
}

bool memory_has_states(const memory *m) { return m->states.n_cells > 0; }

/* ---- cells ---- */

int32_t mem_take_cell(mem_states *s)
{
    int32_t c = 0;
    while (s->cells[c].owners > 0) c++;
    s->cells[c] = (mem_cell){ .owners = 1, .pos = -1, .run = -1 };
    return c;
}

void mem_drop_cell(mem_states *s, int32_t cell)
{
    if (cell >= 0) s->cells[cell].owners--;
}

/* ---- a batch ---- */

void mem_states_begin(memory *m)
{
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) m->states.work[q] = -1;
}

void mem_states_add(memory *m, const memory_token *t)
{
    if (!memory_has_states(m)) return;
    m->states.seqs[m->n_added] = t->seqs;
    m->states.n_seqs[m->n_added] = t->n_seqs;
}

/* Whether all owners of a cell of the batch are among the sequences. */
static bool owned_by(const mem_states *s, int32_t cell, const int32_t *seqs, int n)
{
    int mine = 0;
    for (int i = 0; i < n; i++) mine += s->work[seqs[i]] == cell;
    return s->cells[cell].owners == mine;
}

/* The run that takes a token of these sequences: that of the first one's cell where it can go on, else a new one. */
static int32_t run_for(mem_states *s, const int32_t *seqs, int n, int *n_runs)
{
    int32_t from = s->work[seqs[0]], to = from;
    if (to < 0 || !owned_by(s, to, seqs, n)) {
        if (to < 0) from = s->tail[seqs[0]];
        if (from >= 0) s->cells[from].run = -1; /* what is read now must not change before */
        if (from >= 0) s->cells[from].owners++;
        for (int i = 0; i < n; i++) {
            mem_drop_cell(s, s->work[seqs[i]]);
            s->work[seqs[i]] = -1;
        }
        to = mem_take_cell(s);
        mem_drop_cell(s, from);
        s->work[seqs[0]] = to;
    }
    for (int i = 1; i < n; i++) {
        s->cells[to].owners++;
        mem_drop_cell(s, s->work[seqs[i]]);
        s->work[seqs[i]] = to;
    }
    if (s->cells[to].run < 0) {
        s->runs[*n_runs] = (state_run){ .from = from, .to = to };
        s->cells[to].run = (*n_runs)++;
    }
    return s->cells[to].run;
}

void mem_states_view(memory *m, int first, int n)
{
    mem_states *s = &m->states;
    int n_runs = 0;
    m->view.states = s->layers;
    if (!memory_has_states(m)) return;
    for (int c = 0; c < s->n_cells; c++) s->cells[c].run = -1;
    for (int i = 0; i < n; i++) {
        s->run_of[i] = run_for(s, s->seqs[first + i], s->n_seqs[first + i], &n_runs);
        s->runs[s->run_of[i]].count++;
        s->cells[s->runs[s->run_of[i]].to].pos = m->pos[first + i];
    }
    int32_t *at = s->tokens;
    for (int r = 0; r < n_runs; r++) {
        s->runs[r].tokens = at;
        at += s->runs[r].count;
        s->runs[r].count = 0;
    }
    for (int i = 0; i < n; i++) {
        state_run *r = &s->runs[s->run_of[i]];
        s->tokens[r->tokens - s->tokens + r->count++] = i;
    }
    m->view.state_runs = s->runs;
    m->view.n_state_runs = n_runs;
}

void mem_states_commit(memory *m)
{
    mem_states *s = &m->states;
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) {
        if (s->work[q] < 0) continue;
        mem_drop_cell(s, s->tail[q]);
        s->tail[q] = s->work[q];
        s->work[q] = -1;
    }
}

void mem_states_rollback(memory *m)
{
    mem_states *s = &m->states;
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) {
        mem_drop_cell(s, s->work[q]);
        s->work[q] = -1;
    }
}

/* ---- sequences ---- */

int32_t mem_states_pos(const memory *m, int seq)
{
    const mem_states *s = &m->states;
    return memory_has_states(m) && s->tail[seq] >= 0 ? s->cells[s->tail[seq]].pos : -1;
}

/* A state is all of a sequence up to its position: it can go as a whole, or stay. */
bool mem_states_may_rm(const memory *m, int seq, int32_t p0, int32_t p1)
{
    int32_t pos = mem_states_pos(m, seq);
    return pos < 0 || p0 <= 0 || pos < p0 || pos >= p1;
}

void mem_states_rm(memory *m, int seq, int32_t p0, int32_t p1)
{
    int32_t pos = mem_states_pos(m, seq);
    if (pos < 0 || p0 > 0 || pos >= p1) return;
    mem_drop_cell(&m->states, m->states.tail[seq]);
    m->states.tail[seq] = -1;
}

void mem_states_cp(memory *m, int src, int dst)
{
    mem_states *s = &m->states;
    if (!memory_has_states(m)) return;
    if (s->tail[src] >= 0) s->cells[s->tail[src]].owners++;
    mem_drop_cell(s, s->tail[dst]);
    s->tail[dst] = s->tail[src];
}

/* Only the position moves; a state that would end before 0 is gone. */
void mem_states_move(memory *m, int seq, int32_t p0, int32_t p1, int32_t add, int32_t div)
{
    mem_states *s = &m->states;
    int32_t pos = mem_states_pos(m, seq), cell = pos < 0 ? -1 : s->tail[seq];
    if (pos < 0 || pos < p0 || pos >= p1) return;
    int64_t moved = ((int64_t)pos + add) / div;
    s->cells[cell].pos = moved > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)moved;
    for (int q = 0; (int64_t)pos + add < 0 && q < m->n_seq_max; q++)
        if (s->tail[q] == cell) {
            mem_drop_cell(s, cell);
            s->tail[q] = -1;
        }
}
