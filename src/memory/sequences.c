/* sequences.c - operations on whole sequences: all of them work on tables of pages; see memory.h. */
#include <limits.h>
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
}

/* Whether an operation on positions p0..p1 of sequences is one on this group. */
static bool takes_part(const mem_group *g, int32_t p0, int32_t p1) { return !g->encode || (p0 == 0 && p1 == INT32_MAX); }

bool memory_seq_rm(memory *m, int seq, int32_t p0, int32_t p1)
{
    if (!mem_states_may_rm(m, seq, p0, p1)) return false;
    for (int i = 0; i < m->n_groups; i++)
        if (takes_part(&m->groups[i], p0, p1) && separate_pages(&m->groups[i], seq, p0, p1) > m->groups[i].n_free) return false;
    mem_states_rm(m, seq, p0, p1);
    for (int i = 0; i < m->n_groups; i++)
        if (takes_part(&m->groups[i], p0, p1)) rm_from_group(m, &m->groups[i], seq, p0, p1);
    return true;
}

static bool table_has(const mem_table *t, int32_t page)
{
    for (int i = 0; i < t->n; i++)
        if (t->pages[i] == page) return true;
    return false;
}

/* Shares whole pages, copies the parts of others. Undone by the caller when it fails. */
static loam_status cp_in_group(memory *m, mem_group *g, int src, int dst, int32_t p0, int32_t p1)
{
    for (int i = 0; i < g->tables[src].n; i++) {
        int32_t page = g->tables[src].pages[i];
        int hit = in_range(slots_of(g, page), p0, p1);
        if (hit == 0 || table_has(&g->tables[dst], page)) continue;
        int32_t give = page;
        if (hit == g->pages[page].count) {
            g->pages[page].owners++;
        } else {
            give = mem_take_page(g);
            if (give < 0) return LOAM_E_FULL;
            mem_copy_page(m, g, page, give, p0, p1);
        }
        if (!mem_table_push(&g->tables[dst], give, g->n_pages)) {
            mem_drop_page(g, give);
            return LOAM_E_NOMEM;
        }
    }
    return LOAM_OK;
}

/* dst gets the encoding of src in place of its own; LOAM_E_NOMEM, and nothing changed. */
static loam_status cp_encoding(mem_group *g, int src, int dst)
{
    mem_table *from = &g->tables[src], *to = &g->tables[dst];
    if (from->n && !mem_grow(&to->pages, &to->cap, (size_t)from->n, sizeof *to->pages, (size_t)g->n_pages + 1)) return LOAM_E_NOMEM;
    for (int i = 0; i < from->n; i++) g->pages[from->pages[i]].owners++;
    while (to->n > 0) mem_drop_page(g, to->pages[--to->n]);
    for (int i = 0; i < from->n; i++) to->pages[to->n++] = from->pages[i];
    return LOAM_OK;
}

loam_status memory_seq_cp(memory *m, int src, int dst, int32_t p0, int32_t p1)
{
    if (src == dst) return LOAM_OK;
    int *before = mem_alloc_array((size_t)m->n_groups + 1, sizeof *before);
    if (!before) return LOAM_E_NOMEM;
    loam_status status = LOAM_OK;
    for (int i = 0; i < m->n_groups; i++) before[i] = m->groups[i].tables[dst].n;
    for (int i = 0; i < m->n_groups && status == LOAM_OK; i++)
        if (!m->groups[i].encode) status = cp_in_group(m, &m->groups[i], src, dst, p0, p1);
    for (int i = 0; i < m->n_groups && status == LOAM_OK; i++)
        if (m->groups[i].encode && takes_part(&m->groups[i], p0, p1)) status = cp_encoding(&m->groups[i], src, dst);
    for (int i = 0; i < m->n_groups && status != LOAM_OK; i++) {
        if (m->groups[i].encode) continue;
        mem_table *t = &m->groups[i].tables[dst];
        while (t->n > before[i]) mem_drop_page(&m->groups[i], t->pages[--t->n]);
    }
    mem_free(before);
    if (status == LOAM_OK) mem_states_cp(m, src, dst);
    return status;
}

void memory_seq_keep(memory *m, int seq)
{
    for (int s = 0; s < m->n_seq_max; s++)
        if (s != seq) memory_seq_rm(m, s, 0, INT32_MAX);
}

void memory_clear(memory *m) { memory_seq_keep(m, -1); }

static int32_t extreme(const memory *m, int seq, bool largest)
{
    if (m->n_groups == 0) return -1;
    /* Of the group with the shortest memory: the last one where there are several. */
    const mem_group *g = &m->groups[0];
    for (int i = 1; i < m->n_groups; i++)
        if (m->groups[i].window > 0) g = &m->groups[i];
    int32_t best = -1;
    for (int i = 0; i < g->tables[seq].n; i++)
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int32_t pos = g->slot_pos[(int64_t)g->tables[seq].pages[i] * PAGE_SLOTS + s];
            if (pos >= 0 && (best < 0 || (largest ? pos > best : pos < best))) best = pos;
        }
    return best;
}

/* With states beside pages: only positions that both have. */
int32_t memory_pos_min(const memory *m, int seq)
{
    int32_t pages = extreme(m, seq, false), state = mem_states_pos(m, seq);
    return memory_has_states(m) && state > pages ? state : pages;
}

int32_t memory_pos_max(const memory *m, int seq)
{
    int32_t pages = extreme(m, seq, true), state = mem_states_pos(m, seq);
    if (!memory_has_states(m)) return pages;
    return m->n_groups > 0 && pages < state ? pages : state;
}

bool memory_same_ends(const memory *m, int a, int b)
{
    return memory_pos_min(m, a) == memory_pos_min(m, b) && memory_pos_max(m, a) == memory_pos_max(m, b);
}

/* ---- shifts ---- */

static void move_slot(mem_group *g, int64_t at, int32_t add, int32_t div)
{
    int32_t old = g->slot_pos[at];
    int64_t pos = ((int64_t)old + add) / div;
    if ((int64_t)old + add < 0) {
        mem_clear_slot(g, at);
        return;
    }
    g->slot_pos[at] = pos > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)pos;
    g->shift[at] += g->slot_pos[at] - old;
    g->shifted = true;
}

void memory_seq_move(memory *m, int seq, int32_t p0, int32_t p1, int32_t add, int32_t div)
{
    mem_states_move(m, seq, p0, p1, add, div);
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int n = 0; n < g->tables[seq].n && !g->encode; n++)
            for (int s = 0; s < PAGE_SLOTS; s++) {
                int64_t at = (int64_t)g->tables[seq].pages[n] * PAGE_SLOTS + s;
                if (g->slot_pos[at] >= p0 && g->slot_pos[at] < p1) move_slot(g, at, add, div);
            }
        for (int q = 0; q < m->n_seq_max; q++) mem_trim(g, &g->tables[q]);
    }
}

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
