/* states.c - recurrent states: cells that sequences point to, copied by sharing, and batches that write to fresh ones.
 *
 *   tail   sequence 0 -> cell 2   sequence 1 -> cell 2   (copied: two owners)
 *   work   sequence 0 -> cell 5                          (the open batch read cell 2 and left its result in cell 5)
 *   commit: tail of sequence 0 becomes 5, cell 2 has one owner. Roll back: cell 5 is free again.
 *
 * With n_past > 0 the states one, two, ... n_past tokens before stay, in order: the cell that a batch read is the newest of
 * them, and inside a batch the last tokens get cells of their own. Taking back tokens is pointing to an earlier cell.
 *
 * A sequence has at most 1 + n_past cells and as many in the open batch, so a batch never fails here. A token of several
 * sequences follows the state of the first; all of them share what it leaves. */
#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "memory/internal.h"

#define CELLS(p) (2 * (uint64_t)(p)->n_seq_max * (1 + (uint64_t)(p)->n_rs_seq))

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
    s->n_past = p->n_rs_seq;
    s->past = mem_alloc_array(n_seq * (size_t)s->n_past + 1, sizeof *s->past);
    s->work_past = mem_alloc_array(n_seq * (size_t)s->n_past + 1, sizeof *s->work_past);
    s->past_len = mem_zalloc_array(n_seq, sizeof *s->past_len);
    s->work_past_len = mem_zalloc_array(n_seq, sizeof *s->work_past_len);
    s->rootless = mem_zalloc_array(n_seq, sizeof *s->rootless);
    s->left = mem_alloc_array(n_batch, sizeof *s->left);
    if (!s->past || !s->work_past || !s->past_len || !s->work_past_len || !s->rootless || !s->left || !s->cells || !s->tail ||
        !s->work || !s->seqs || !s->n_seqs || !s->run_of || !s->tokens || !s->runs)
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
    mem_free(s->past);
    mem_free(s->work_past);
    mem_free(s->past_len);
    mem_free(s->work_past_len);
    mem_free(s->rootless);
    mem_free(s->left);
}

uint64_t mem_states_table_bytes(const memory *m)
{
    const mem_states *s = &m->states;
    const void *blocks[] = { s->layers, s->cells, s->tail, s->work, s->seqs, s->n_seqs, s->run_of, s->tokens, s->runs, s->past,
                             s->work_past, s->past_len, s->work_past_len, s->rootless, s->left };
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) n += mem_size(blocks[i]);
    return n;
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
    mem_states *s = &m->states;
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) {
        s->work[q] = -1;
        s->work_past_len[q] = 0;
        s->rootless[q] = false;
    }
}

/* Forgets what the batch has for a sequence. */
static void drop_work(mem_states *s, int q)
{
    mem_drop_cell(s, s->work[q]);
    for (int i = 0; i < s->work_past_len[q]; i++) mem_drop_cell(s, s->work_past[q * s->n_past + i]);
    s->work[q] = -1;
    s->work_past_len[q] = 0;
}

/* The newest of n cells moves to the front of a list of at most n_past; takes over its owner. */
static void push_past(mem_states *s, int32_t *list, int16_t *len, int32_t cell)
{
    if (*len == s->n_past) mem_drop_cell(s, list[--*len]);
    memmove(list + 1, list, (size_t)*len * sizeof *list);
    list[0] = cell;
    ++*len;
}

static void count_left(memory *m)
{
    mem_states *s = &m->states;
    int32_t later[LIMIT_SEQUENCES] = { 0 };
    for (int i = m->n_added - 1; i >= 0; i--) {
        s->left[i] = INT32_MAX - 1;
        for (int j = 0; j < s->n_seqs[i]; j++) {
            int32_t n = later[s->seqs[i][j]]++;
            if (n < s->left[i]) s->left[i] = n;
        }
    }
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

/* The others of a token's sequences get the first one's state and what the batch has of its past. before: its cell of the
 * batch before the token. */
static void follow(mem_states *s, const int32_t *seqs, int n, int32_t before)
{
    int lead = seqs[0];
    for (int i = 1; i < n; i++) {
        int q = seqs[i];
        s->cells[s->work[lead]].owners++;
        for (int k = 0; k < s->work_past_len[lead]; k++) s->cells[s->work_past[lead * s->n_past + k]].owners++;
        bool together = s->work[q] == before && (before >= 0 || s->tail[q] == s->tail[lead]);
        drop_work(s, q);
        s->work[q] = s->work[lead];
        s->work_past_len[q] = s->work_past_len[lead];
        memcpy(s->work_past + q * s->n_past, s->work_past + lead * s->n_past, (size_t)s->work_past_len[lead] * sizeof *s->past);
        if (!together) s->rootless[q] = true;
    }
}

/* The run that takes a token of these sequences: that of the first one's cell where it can go on, else a new one. `left`
 * tokens follow it: the state before it may have to stay. */
static int32_t run_for(mem_states *s, const int32_t *seqs, int n, int32_t left, int *n_runs)
{
    int lead = seqs[0];
    int32_t to = s->work[lead], from = to < 0 ? s->tail[lead] : to, before = to;
    bool keep = to >= 0 && left < s->n_past;
    if (to < 0 || keep || !owned_by(s, to, seqs, n)) {
        if (from >= 0) s->cells[from].run = -1; /* what is read now must not change before */
        if (keep) push_past(s, s->work_past + lead * s->n_past, &s->work_past_len[lead], to);
        else if (to >= 0) mem_drop_cell(s, to);
        to = s->work[lead] = mem_take_cell(s);
    }
    follow(s, seqs, n, before);
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
    if (first == 0) count_left(m);
    for (int i = 0; i < n; i++) {
        s->run_of[i] = run_for(s, s->seqs[first + i], s->n_seqs[first + i], s->left[first + i], &n_runs);
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

/* The past of a sequence after the batch: that of the batch, then the state that it began with and those before. */
static void join_past(mem_states *s, int q)
{
    int32_t *old = s->past + q * s->n_past, *past = s->work_past + q * s->n_past;
    int n = s->work_past_len[q], n_old = s->past_len[q];
    for (int i = -1; i < n_old; i++) {
        int32_t cell = i < 0 ? s->tail[q] : old[i];
        if (cell >= 0 && !s->rootless[q] && n < s->n_past) past[n++] = cell;
        else mem_drop_cell(s, cell);
    }
    memcpy(old, past, (size_t)n * sizeof *old);
    s->past_len[q] = (int16_t)n;
}

void mem_states_commit(memory *m)
{
    mem_states *s = &m->states;
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) {
        if (s->work[q] < 0) continue;
        join_past(s, q);
        s->tail[q] = s->work[q];
        s->work[q] = -1;
        s->work_past_len[q] = 0;
    }
}

void mem_states_rollback(memory *m)
{
    for (int q = 0; memory_has_states(m) && q < m->n_seq_max; q++) drop_work(&m->states, q);
}

/* ---- sequences ---- */

int32_t mem_states_pos(const memory *m, int seq)
{
    const mem_states *s = &m->states;
    return memory_has_states(m) && s->tail[seq] >= 0 ? s->cells[s->tail[seq]].pos : -1;
}

/* Place in the past of the state that ends before p0, -1: there is none. Positions and distance must agree: after positions
 * were moved they need not. */
static int place_before(const memory *m, int seq, int32_t p0)
{
    const mem_states *s = &m->states;
    int32_t back = mem_states_pos(m, seq) - p0;
    if (back < 0 || back >= s->past_len[seq]) return -1;
    return s->cells[s->past[seq * s->n_past + back]].pos == p0 - 1 ? back : -1;
}

/* A state is all of a sequence up to its position: it can go as a whole, stay, or be taken back to one that was kept. */
bool mem_states_may_rm(const memory *m, int seq, int32_t p0, int32_t p1)
{
    int32_t pos = mem_states_pos(m, seq);
    return pos < 0 || p0 <= 0 || pos < p0 || pos >= p1 || place_before(m, seq, p0) >= 0;
}

static void forget_past(mem_states *s, int seq)
{
    for (int i = 0; i < s->past_len[seq]; i++) mem_drop_cell(s, s->past[seq * s->n_past + i]);
    s->past_len[seq] = 0;
}

void mem_states_rm(memory *m, int seq, int32_t p0, int32_t p1)
{
    mem_states *s = &m->states;
    int32_t pos = mem_states_pos(m, seq), *past = s->past ? s->past + seq * s->n_past : NULL;
    if (pos < p0 || pos >= p1 || pos < 0) return;
    int back = p0 > 0 ? place_before(m, seq, p0) : -1;
    mem_drop_cell(s, s->tail[seq]);
    s->tail[seq] = -1;
    if (back < 0) {
        forget_past(s, seq);
        return;
    }
    for (int i = 0; i < back; i++) mem_drop_cell(s, past[i]);
    s->tail[seq] = past[back];
    s->past_len[seq] = (int16_t)(s->past_len[seq] - back - 1);
    memmove(past, past + back + 1, (size_t)s->past_len[seq] * sizeof *past);
}

void mem_states_cp(memory *m, int src, int dst)
{
    mem_states *s = &m->states;
    if (!memory_has_states(m)) return;
    if (s->tail[src] >= 0) s->cells[s->tail[src]].owners++;
    for (int i = 0; i < s->past_len[src]; i++) s->cells[s->past[src * s->n_past + i]].owners++;
    mem_drop_cell(s, s->tail[dst]);
    forget_past(s, dst);
    s->tail[dst] = s->tail[src];
    s->past_len[dst] = s->past_len[src];
    memcpy(s->past + dst * s->n_past, s->past + src * s->n_past, (size_t)s->past_len[src] * sizeof *s->past);
}

/* Only the position moves, for all that share the cell; the way back is lost. A state that would end before 0 is gone. */
void mem_states_move(memory *m, int seq, int32_t p0, int32_t p1, int32_t add, int32_t div)
{
    mem_states *s = &m->states;
    int32_t pos = mem_states_pos(m, seq), cell = pos < 0 ? -1 : s->tail[seq];
    if (pos < 0 || pos < p0 || pos >= p1) return;
    int64_t moved = ((int64_t)pos + add) / div;
    forget_past(s, seq);
    s->cells[cell].pos = moved > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)moved;
    for (int q = 0; (int64_t)pos + add < 0 && q < m->n_seq_max; q++)
        if (s->tail[q] == cell) {
            forget_past(s, q);
            mem_drop_cell(s, cell);
            s->tail[q] = -1;
        }
}
