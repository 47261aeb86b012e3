/* sequences.c - operations on whole sequences: all of them work on tables of pages; see memory.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "memory/internal.h"

static int32_t *slots_of(mem_group *g, int32_t page) { return g->slot_pos + (int64_t)page * PAGE_SLOTS; }

static int in_range(const int32_t *slots, int32_t p0, int32_t p1)
{
    int n = 0;
    for (int s = 0; s < PAGE_SLOTS; s++) n += slots[s] >= p0 && slots[s] < p1;
    return n;
}

static void clear_range(mem_group *g, int32_t page, int32_t p0, int32_t p1)
{
    const int32_t *slots = slots_of(g, page);
    for (int s = 0; s < PAGE_SLOTS; s++)
        if (slots[s] >= p0 && slots[s] < p1) mem_clear_slot(g, (int64_t)page * PAGE_SLOTS + s);
}

/* ---- what an operation needs and leaves, before anything changes ---- */

/* Pages that removing the range needs: one for each shared page of which the sequence keeps a part. */
static int separate_pages(mem_group *g, int seq, int32_t p0, int32_t p1)
{
    const mem_table *t = &g->tables[seq];
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        int hit = in_range(slots_of(g, t->pages[i]), p0, p1);
        n += hit > 0 && hit < g->pages[t->pages[i]].count && g->pages[t->pages[i]].owners > 1;
    }
    return n;
}

/* Largest position + 1 of the sequence inside or outside of the range. */
static int32_t end_in(mem_group *g, int seq, int32_t p0, int32_t p1, bool inside)
{
    const mem_table *t = &g->tables[seq];
    int32_t end = 0;
    if (inside && p0 <= 0 && p1 >= t->end) return t->end;
    for (int i = 0; i < t->n; i++)
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int32_t pos = slots_of(g, t->pages[i])[s];
            if (pos >= end && (pos >= p0 && pos < p1) == inside) end = pos + 1;
        }
    return end;
}

/* Whether the next token, at position end, finds all of its window where nothing below `kept` is there for sure. */
static bool has_window(const mem_group *g, int32_t kept, int32_t end)
{
    return g->window == 0 || kept == 0 || end == 0 || (int64_t)end + 1 - g->window >= kept;
}

/* The group that keeps the most: ends are read off there. */
static mem_group *fullest(memory *m)
{
    mem_group *best = m->n_groups ? &m->groups[0] : NULL;
    for (int i = 1; i < m->n_groups; i++)
        if (!m->groups[i].encode && (m->groups[i].window == 0 || (best->window > 0 && m->groups[i].window > best->window))) best = &m->groups[i];
    return best;
}

/* ---- removing ---- */

/* A page of which the sequence loses a part while others keep it becomes the sequence's own first. */
static void rm_from_group(memory *m, mem_group *g, int seq, int32_t p0, int32_t p1)
{
    mem_table *t = &g->tables[seq];
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        int32_t page = t->pages[i];
        int hit = in_range(slots_of(g, page), p0, p1);
        if (hit > 0 && hit == g->pages[page].count) {
            mem_drop_page(g, page);
            continue;
        }
        if (hit > 0 && g->pages[page].owners > 1) {
            int32_t own = mem_take_page(g);
            mem_copy_page(m, g, page, own, 0, INT32_MAX);
            mem_drop_page(g, page);
            page = own;
        }
        if (hit > 0) clear_range(g, page, p0, p1);
        t->pages[n++] = page;
    }
    t->n = n;
    mem_trim(g, t);
    if (t->end <= p1) t->end = mem_end_of(g, t->pages, t->n);
    if (t->n == 0) t->kept = 0;
}

/* Whether an operation on positions p0..p1 of sequences is one on this group. */
static bool takes_part(const mem_group *g, int32_t p0, int32_t p1) { return !g->encode || (p0 == 0 && p1 == INT32_MAX); }

/* Cutting off the end brings tokens back into the window: they must be there. */
static bool leaves_window(memory *m, int seq, int32_t p0, int32_t p1)
{
    mem_group *full = fullest(m);
    if (!full || p0 <= 0 || p1 < full->tables[seq].end) return true;
    int32_t end = end_in(full, seq, p0, p1, false);
    for (int i = 0; i < m->n_groups; i++) {
        const mem_group *g = &m->groups[i];
        if (!has_window(g, g->tables[seq].kept, end ? end : g->tables[seq].kept ? p0 : 0)) return false;
    }
    return true;
}

bool memory_may_rm(memory *m, int seq, int32_t p0, int32_t p1)
{
    if (p0 >= p1) return true;
    if (!mem_states_may_rm(m, seq, p0, p1) || !leaves_window(m, seq, p0, p1)) return false;
    for (int i = 0; i < m->n_groups; i++)
        if (takes_part(&m->groups[i], p0, p1) && separate_pages(&m->groups[i], seq, p0, p1) > m->groups[i].n_free) return false;
    return true;
}

bool memory_seq_rm(memory *m, int seq, int32_t p0, int32_t p1)
{
    if (p0 >= p1) return true;
    if (!memory_may_rm(m, seq, p0, p1)) return false;
    mem_states_rm(m, seq, p0, p1);
    for (int i = 0; i < m->n_groups; i++)
        if (takes_part(&m->groups[i], p0, p1)) rm_from_group(m, &m->groups[i], seq, p0, p1);
    return true;
}

/* ---- tokens that can be computed again ---- */

static const mem_group *fullest_of(const memory *m) { return fullest((memory *)(uintptr_t)m); }

bool memory_is_far(const memory *m, int seq)
{
    const mem_group *g = fullest_of(m);
    return g && g->tables[seq].n > 0 && g->pages[g->tables[seq].pages[0]].far;
}

bool memory_slot_far(const memory *m, int group, int32_t slot) { return m->groups[group].pages[slot / PAGE_SLOTS].far; }

int64_t memory_list(const memory *m, int seq, memory_cached *out, int64_t max)
{
    const mem_group *g = fullest_of(m);
    int64_t n = 0;
    if (!g || g->tables[seq].kept > 0) return -1;
    for (int i = 0; i < g->tables[seq].n; i++)
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int64_t from = (int64_t)g->tables[seq].pages[i] * PAGE_SLOTS + s, to = n;
            if (g->slot_pos[from] < 0 || n++ >= max) continue;
            for (; to > 0 && out[to - 1].pos > g->slot_pos[from]; to--) out[to] = out[to - 1];
            out[to] = (memory_cached){ g->slot_pos[from], g->ids[from] };
        }
    return n;
}

/* ---- copying ---- */

typedef struct span {
    int src, dst;
    int32_t p0, p1;
} span;

/* Room for what dst gets, and a window that is whole afterwards; what dst has in the range goes. */
static loam_status may_copy(memory *m, mem_group *g, const span *c)
{
    const mem_table *from = &g->tables[c->src];
    mem_table *to = &g->tables[c->dst];
    int parts = separate_pages(g, c->dst, c->p0, c->p1);
    for (int i = 0; i < from->n; i++) {
        int hit = in_range(slots_of(g, from->pages[i]), c->p0, c->p1);
        parts += hit > 0 && hit < g->pages[from->pages[i]].count;
    }
    if (parts > g->n_free) return LOAM_E_FULL;
    if (g->window > 0) {
        mem_group *full = fullest(m);
        int32_t rest = end_in(full, c->dst, c->p0, c->p1, false), part = end_in(full, c->src, c->p0, c->p1, true);
        int32_t kept = from->kept > c->p0 && part > 0 ? from->kept : 0;
        if (rest > 0 && to->kept > kept) kept = to->kept;
        if (!has_window(g, kept, rest > part ? rest : part)) return LOAM_E_UNSUPPORTED;
    }
    size_t need = (size_t)to->n + (size_t)from->n;
    return mem_grow(&to->pages, &to->cap, need ? need : 1, sizeof *to->pages, 2 * (size_t)g->n_pages + 1) ? LOAM_OK : LOAM_E_NOMEM;
}

/* Shares whole pages, copies the parts of others. */
static void cp_in_group(memory *m, mem_group *g, const span *c)
{
    const mem_table *from = &g->tables[c->src];
    mem_table *to = &g->tables[c->dst];
    int32_t part = end_in(g, c->src, c->p0, c->p1, true);
    for (int i = 0; i < from->n; i++) {
        int32_t page = from->pages[i];
        int hit = in_range(slots_of(g, page), c->p0, c->p1);
        if (hit == 0) continue;
        int32_t give = page;
        if (hit == g->pages[page].count) {
            g->pages[page].owners++;
        } else {
            give = mem_take_page(g);
            mem_copy_page(m, g, page, give, c->p0, c->p1);
        }
        to->pages[to->n++] = give;
    }
    if (part > 0 && from->kept > c->p0 && from->kept > to->kept) to->kept = from->kept;
    if (part > to->end) to->end = part;
}

/* dst gets the encoding of src in place of its own; the room is there. */
static void cp_encoding(mem_group *g, int src, int dst)
{
    mem_table *from = &g->tables[src], *to = &g->tables[dst];
    for (int i = 0; i < from->n; i++) g->pages[from->pages[i]].owners++;
    while (to->n > 0) mem_drop_page(g, to->pages[--to->n]);
    for (int i = 0; i < from->n; i++) to->pages[to->n++] = from->pages[i];
}

loam_status memory_seq_cp(memory *m, int src, int dst, int32_t p0, int32_t p1)
{
    if (src == dst || p0 >= p1) return LOAM_OK;
    span c = { src, dst, p0, p1 };
    mem_group *full = fullest(m);
    if (full && memory_is_far(m, src) != memory_is_far(m, dst) && end_in(full, dst, p0, p1, false) > 0 && end_in(full, src, p0, p1, true) > 0)
        return LOAM_E_UNSUPPORTED;
    for (int i = 0; i < m->n_groups; i++) {
        loam_status status = takes_part(&m->groups[i], p0, p1) ? may_copy(m, &m->groups[i], &c) : LOAM_OK;
        if (status != LOAM_OK) return status;
    }
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        if (g->encode && takes_part(g, p0, p1)) cp_encoding(g, src, dst);
        if (g->encode) continue;
        rm_from_group(m, g, dst, p0, p1);
        cp_in_group(m, g, &c);
    }
    mem_states_cp(m, src, dst);
    return LOAM_OK;
}

void memory_seq_keep(memory *m, int seq)
{
    for (int s = 0; s < m->n_seq_max; s++)
        if (s != seq) memory_seq_rm(m, s, 0, INT32_MAX);
}

void memory_clear(memory *m) { memory_seq_keep(m, -1); }

/* ---- positions: with states beside pages only those that both have, of groups those that all have ---- */

int32_t memory_pos_min(const memory *m, int seq)
{
    int32_t start = -1, state = mem_states_pos(m, seq);
    for (int i = 0; i < m->n_groups; i++) {
        const mem_group *g = &m->groups[i];
        int32_t first = g->encode ? -1 : mem_start_of(g, g->tables[seq].pages, g->tables[seq].n);
        if (first > start) start = first;
    }
    if (memory_has_states(m)) return state > start ? state : start;
    return start <= memory_pos_max(m, seq) ? start : -1; /* no position is in all layers: after a copy of what a window gave back */
}

int32_t memory_pos_max(const memory *m, int seq)
{
    int32_t end = INT32_MAX, state = mem_states_pos(m, seq);
    for (int i = 0; i < m->n_groups; i++)
        if (!m->groups[i].encode && m->groups[i].tables[seq].end < end) end = m->groups[i].tables[seq].end;
    if (memory_has_states(m) && state + 1 < end) end = state + 1;
    return end == INT32_MAX ? -1 : end - 1;
}

bool memory_same_ends(const memory *m, int a, int b)
{
    return memory_pos_max(m, a) == memory_pos_max(m, b) && memory_pos_min(m, a) == memory_pos_min(m, b);
}

/* ---- moving ---- */

static int32_t moved_position(int32_t pos, int32_t add, int32_t div)
{
    int64_t to = ((int64_t)pos + add) / div;
    return (int64_t)pos + add < 0 ? -1 : to > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)to;
}

static void move_slot(mem_group *g, int64_t at, int32_t add, int32_t div)
{
    int32_t old = g->slot_pos[at], pos = moved_position(old, add, div);
    if (pos < 0) {
        mem_clear_slot(g, at);
        return;
    }
    g->slot_pos[at] = pos;
    g->shift[at] += pos - old;
    g->shifted = true;
}

/* What was given back below the range stays where it was, what was in the range moves along. */
static int32_t moved_kept(const mem_table *t, int32_t p0, int32_t p1, int32_t add, int32_t div)
{
    if (t->kept <= p0 || t->kept > p1) return t->kept;
    int32_t moved = moved_position(t->kept - 1, add, div) + 1;
    return moved > p0 ? moved : p0;
}

/* Largest position + 1 after the move. */
static int32_t moved_end(mem_group *g, int seq, int32_t p0, int32_t p1, int32_t add, int32_t div)
{
    int32_t part = end_in(g, seq, p0, p1, true), rest = end_in(g, seq, p0, p1, false);
    if (part > 0) part = moved_position(part - 1, add, div) + 1;
    return part > rest ? part : rest;
}

typedef struct mover {
    mem_group *g;
    int32_t add, div;
    uint64_t *tokens;        /* ascending numbers of the tokens that moved */
    size_t n;
} mover;

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The tokens of the sequence's own pages. */
static void move_own(mover *v, const mem_table *t, int32_t p0, int32_t p1)
{
    for (int i = 0; i < v->g->n_pages; i++) v->g->pages[i].seen = false;
    for (int i = 0; i < t->n; i++) {
        v->g->pages[t->pages[i]].seen = true;
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int64_t at = (int64_t)t->pages[i] * PAGE_SLOTS + s;
            if (v->g->slot_pos[at] < p0 || v->g->slot_pos[at] >= p1) continue;
            v->tokens[v->n++] = v->g->token[at];
            move_slot(v->g, at, v->add, v->div);
        }
    }
    qsort(v->tokens, v->n, sizeof *v->tokens, by_number);
}

/* Copies of these tokens in pages that only others have. */
static void move_copies(mover *v, const mem_table *t)
{
    for (int i = 0; i < t->n; i++) {
        mem_page *page = &v->g->pages[t->pages[i]];
        for (int s = 0; s < PAGE_SLOTS && !page->seen; s++) {
            int64_t at = (int64_t)t->pages[i] * PAGE_SLOTS + s;
            if (v->g->slot_pos[at] >= 0 && bsearch(&v->g->token[at], v->tokens, v->n, sizeof *v->tokens, by_number))
                move_slot(v->g, at, v->add, v->div);
        }
        page->seen = true;
    }
}

static void move_in_group(memory *m, mover *v, int seq, int32_t p0, int32_t p1)
{
    mem_group *g = v->g;
    g->tables[seq].kept = moved_kept(&g->tables[seq], p0, p1, v->add, v->div);
    move_own(v, &g->tables[seq], p0, p1);
    for (int q = 0; q < m->n_seq_max && v->n > 0; q++) {
        mem_table *t = &g->tables[q];
        move_copies(v, t);
        mem_trim(g, t);
        t->end = mem_end_of(g, t->pages, t->n);
        if (t->n == 0) t->kept = 0;
    }
    v->n = 0;
}

loam_status memory_seq_move(memory *m, int seq, const int32_t range[2], int32_t add, int32_t div)
{
    mem_group *full = fullest(m);
    int32_t end = full ? moved_end(full, seq, range[0], range[1], add, div) : 0;
    size_t most = 0;
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        if (g->encode) continue;
        if (!has_window(g, moved_kept(&g->tables[seq], range[0], range[1], add, div), end)) return LOAM_E_UNSUPPORTED;
        if ((size_t)g->tables[seq].n > most) most = (size_t)g->tables[seq].n;
    }
    mover v = { .add = add, .div = div, .tokens = mem_alloc_array(most * PAGE_SLOTS + 1, sizeof *v.tokens) };
    if (!v.tokens) return LOAM_E_NOMEM;
    mem_states_move(m, seq, range[0], range[1], add, div);
    for (int i = 0; i < m->n_groups; i++) {
        v.g = &m->groups[i];
        if (!v.g->encode) move_in_group(m, &v, seq, range[0], range[1]);
    }
    mem_free(v.tokens);
    return LOAM_OK;
}

/* ---- shifts ---- */

bool memory_has_shifts(const memory *m)
{
    for (int i = 0; i < m->n_groups; i++)
        if (m->groups[i].shifted) return true;
    return false;
}

void memory_take_shifts(memory *m, memory_turn_fn turn, void *user)
{
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int32_t at = 0; g->shifted && at < g->n_pages * PAGE_SLOTS; at++)
            if (g->slot_pos[at] >= 0 && g->shift[at] != 0) {
                turn(user, i, at, g->shift[at]);
                g->shift[at] = 0;
            }
        g->shifted = false;
    }
}
