/* dump.c - see dump.h. */
#include "memory/dump.h"

#include <limits.h>
#include <string.h>
#include <xxhash.h>

#include "base/limits.h"
#include "base/mem.h"
#include "memory/internal.h"

/* used, positions, twins; with two sets of rotary factors also which one, and the ids of the tokens. */
#define PAGE_BASE (4 + PAGE_SLOTS * 4 + 8)
static size_t page_record(const mem_group *g) { return PAGE_BASE + (g->ids ? 4 + PAGE_SLOTS * 4 : 0); }

/* ---- writing ---- */

typedef struct sink {
    dump_write_fn write;
    void *user;
    bool ok;
} sink;

static void put(sink *s, const void *data, size_t n) { s->ok = s->ok && s->write(s->user, data, n); }

static void put_u32(sink *s, uint32_t x)
{
    uint8_t b[4] = { (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24) };
    put(s, b, 4);
}

/* Pages of the wanted sequences, each once: list[i] is a page, index_of[page] its place (or -1). */
typedef struct page_list {
    int32_t *list, *index_of;
    int n;
} page_list;

static bool collect(const memory *m, const mem_group *g, int seq, page_list *l)
{
    l->list = mem_alloc_array((size_t)g->n_pages * 2, sizeof *l->list);
    if (!l->list) return false;
    l->index_of = l->list + g->n_pages;
    l->n = 0;
    for (int32_t p = 0; p < g->n_pages; p++) l->index_of[p] = -1;
    for (int q = seq < 0 ? 0 : seq; q < (seq < 0 ? m->n_seq_max : seq + 1); q++)
        for (int i = 0; i < g->tables[q].n; i++) {
            int32_t p = g->tables[q].pages[i];
            if (l->index_of[p] >= 0) continue;
            l->index_of[p] = l->n;
            l->list[l->n++] = p;
        }
    return true;
}

static void put_tables(sink *s, const memory *m, const mem_group *g, int seq, const page_list *l)
{
    put_u32(s, (uint32_t)l->n);
    put_u32(s, seq < 0 ? (uint32_t)m->n_seq_max : 1);
    for (int q = seq < 0 ? 0 : seq; q < (seq < 0 ? m->n_seq_max : seq + 1); q++) {
        put_u32(s, (uint32_t)q);
        put_u32(s, (uint32_t)g->tables[q].n);
        for (int i = 0; i < g->tables[q].n; i++) put_u32(s, (uint32_t)l->index_of[g->tables[q].pages[i]]);
    }
    for (int i = 0; i < l->n; i++) {
        const mem_page *p = &g->pages[l->list[i]];
        put_u32(s, (uint32_t)p->used);
        for (int at = 0; at < PAGE_SLOTS; at++) put_u32(s, (uint32_t)g->slot_pos[(int64_t)l->list[i] * PAGE_SLOTS + at]);
        /* A sequence by itself owns all its tokens. */
        uint64_t twins = seq < 0 ? p->twins : 0;
        put_u32(s, (uint32_t)twins);
        put_u32(s, (uint32_t)(twins >> 32));
        if (!g->ids) continue;
        put_u32(s, p->far);
        for (int at = 0; at < PAGE_SLOTS; at++) put_u32(s, (uint32_t)g->ids[(int64_t)l->list[i] * PAGE_SLOTS + at]);
    }
}

static void put_pages(sink *s, const memory *m, int group, const page_list *l)
{
    for (int i = 0; i < m->n_layer; i++) {
        const kv_layer *layer = &m->layers[i];
        if (!layer->pages || layer->group != group) continue;
        for (int p = 0; p < l->n; p++)
            put(s, layer->pages + (uint64_t)l->list[p] * layer->shape.page_bytes, (size_t)layer->shape.page_bytes);
    }
}

/* Cells of the wanted sequences, each once, in the order of the sequences. */
static int32_t collect_cells(const memory *m, int first, int last, int32_t *cells, int32_t *index_of)
{
    int32_t n = 0;
    for (int q = first; q < last; q++) {
        int32_t cell = m->states.tail[q], at = 0;
        while (at < n && cells[at] != cell) at++;
        index_of[q - first] = cell < 0 ? -1 : at;
        if (cell >= 0 && at == n) cells[n++] = cell;
    }
    return n;
}

static void put_states(sink *s, const memory *m, int seq)
{
    if (!memory_has_states(m)) return;
    int first = seq < 0 ? 0 : seq, last = seq < 0 ? m->n_seq_max : seq + 1;
    int32_t cells[LIMIT_SEQUENCES], index_of[LIMIT_SEQUENCES], n = collect_cells(m, first, last, cells, index_of);
    put_u32(s, (uint32_t)n);
    put_u32(s, (uint32_t)(last - first));
    for (int q = first; q < last; q++) {
        put_u32(s, (uint32_t)q);
        put_u32(s, (uint32_t)index_of[q - first]);
    }
    for (int32_t i = 0; i < n; i++) put_u32(s, (uint32_t)m->states.cells[cells[i]].pos);
    for (int l = 0; l < m->n_layer; l++)
        for (int32_t i = 0; i < n; i++) {
            const state_layer *x = &m->states.layers[l];
            if (x->r) put(s, x->r + cells[i] * x->r_row, (size_t)x->r_row * sizeof(float));
            if (x->s) put(s, x->s + cells[i] * x->s_row, (size_t)x->s_row * sizeof(float));
        }
}

loam_status memory_dump(const memory *m, int seq, dump_write_fn write, void *user)
{
    sink s = { write, user, true };
    page_list *lists = mem_zalloc_array((size_t)m->n_groups + 1, sizeof *lists);
    if (!lists) return LOAM_E_NOMEM;
    bool room = true;
    put_u32(&s, (uint32_t)m->n_groups);
    for (int i = 0; i < m->n_groups && s.ok; i++) {
        s.ok = room = collect(m, &m->groups[i], seq, &lists[i]);
        if (s.ok) put_tables(&s, m, &m->groups[i], seq, &lists[i]);
    }
    for (int i = 0; i < m->n_groups && s.ok; i++) put_pages(&s, m, i, &lists[i]);
    put_states(&s, m, seq);
    for (int i = 0; i < m->n_groups; i++) mem_free(lists[i].list);
    mem_free(lists);
    return !room ? LOAM_E_NOMEM : s.ok ? LOAM_OK : LOAM_E_IO;
}

/* ---- reading: check ---- */

typedef struct loaded_table {
    uint32_t seq, n;
    const uint8_t *indexes;
} loaded_table;

typedef struct loaded_group {
    uint32_t n_pages, n_tables;
    loaded_table *tables;
    const uint8_t *records;      /* n_pages, `record` bytes each */
    size_t record;
    int32_t *owners;             /* tables that have each page */
    int32_t *places;             /* page of the memory for each page of the stream */
} loaded_group;

static loam_status malformed(loam_error *err, const reader *r, const char *what)
{
    return fail_at(err, LOAM_E_FORMAT, r->pos, "state: %s", what);
}

static loam_status check_record(const uint8_t *p, const reader *r, loam_error *err)
{
    if (le32(p) > PAGE_SLOTS) return malformed(err, r, "a page uses more slots than it has");
    for (int s = 0; s < PAGE_SLOTS; s++) {
        int32_t pos = (int32_t)le32(p + 4 + 4 * s);
        if (pos < -1 || pos == INT32_MAX || (pos >= 0 && (uint32_t)s >= le32(p))) return malformed(err, r,
                                                                                                   "a position is out of range");
    }
    return LOAM_OK;
}

static loam_status read_tables(const memory *m, int seq, reader *r, loaded_group *l, loam_error *err)
{
    bool seen[256] = { false };
    for (uint32_t t = 0; t < l->n_tables; t++) {
        loaded_table *x = &l->tables[t];
        x->seq = reader_u32(r);
        x->n = reader_u32(r);
        x->indexes = r->failed || x->n > l->n_pages ? NULL : reader_take(r, (uint64_t)x->n * 4);
        if (!x->indexes) return malformed(err, r, "a table of pages is cut off or too long");
        if (seq < 0 && (x->seq >= (uint32_t)m->n_seq_max || seen[x->seq]))
            return x->n == 0 && x->seq < 256 ? LOAM_OK : fail(err, LOAM_E_FULL, "state: sequence %u, the context has %d",
                                                              x->seq, m->n_seq_max);
        if (seq < 0) seen[x->seq] = true;
        for (uint32_t i = 0; i < x->n; i++) {
            uint32_t page = le32(x->indexes + 4 * i);
            if (page >= l->n_pages) return malformed(err, r, "a table names a page that is not there");
            for (uint32_t j = 0; j < i; j++)
                if (le32(x->indexes + 4 * j) == page) return malformed(err, r, "a table names a page twice");
            l->owners[page]++;
        }
    }
    return LOAM_OK;
}

/* A sequence has keys of one set of rotary factors. */
static loam_status check_factors(const reader *r, const loaded_group *l, loam_error *err)
{
    for (uint32_t t = 0; t < l->n_tables; t++)
        for (uint32_t i = 0; i < l->tables[t].n; i++) {
            uint32_t far = le32(l->records + le32(l->tables[t].indexes + 4 * i) * l->record + PAGE_BASE);
            if (far > 1 || far != le32(l->records + le32(l->tables[t].indexes) * l->record + PAGE_BASE))
                return malformed(err, r, "a sequence mixes rotary factors");
        }
    return LOAM_OK;
}

static loam_status read_group(const memory *m, const mem_group *g, int seq, reader *r, loaded_group *l, loam_error *err)
{
    l->n_pages = reader_u32(r);
    l->n_tables = reader_u32(r);
    if (r->failed) return malformed(err, r, "cut off");
    if (l->n_pages > (uint32_t)g->n_pages) return fail(err, LOAM_E_FULL, "state: %u pages, the context has %d", l->n_pages,
                                                       g->n_pages);
    if (l->n_tables > 256 || (seq >= 0 && l->n_tables != 1)) return malformed(err, r, "wrong number of sequences");
    l->tables = mem_zalloc_array((size_t)l->n_tables + 1, sizeof *l->tables);
    l->owners = mem_zalloc_array((size_t)l->n_pages + 1, sizeof *l->owners);
    l->places = mem_zalloc_array((size_t)l->n_pages + 1, sizeof *l->places);
    if (!l->tables || !l->owners || !l->places) return fail_nomem(err, "a state", (uint64_t)l->n_pages * 8);
    loam_status status = read_tables(m, seq, r, l, err);
    if (status != LOAM_OK) return status;
    l->record = page_record(g);
    l->records = reader_take(r, (uint64_t)l->n_pages * l->record);
    if (!l->records) return malformed(err, r, "pages are cut off");
    for (uint32_t i = 0; i < l->n_pages && status == LOAM_OK; i++) {
        status = check_record(l->records + (size_t)i * l->record, r, err);
        if (status == LOAM_OK && l->owners[i] == 0) status = malformed(err, r, "a page belongs to no sequence");
    }
    return status == LOAM_OK && g->ids ? check_factors(r, l, err) : status;
}

/* Room, in pages and in tokens, once the sequences that are replaced are gone. */
static loam_status check_room(const mem_group *g, int seq, const loaded_group *l, loam_error *err)
{
    int64_t pages = seq < 0 ? g->n_pages : g->n_free, tokens = g->max_tokens - (seq < 0 ? 0 : g->n_tokens), need = 0;
    for (int i = 0; seq >= 0 && i < g->tables[seq].n; i++) {
        const mem_page *p = &g->pages[g->tables[seq].pages[i]];
        if (p->owners > 1) continue;
        pages++;
        tokens += p->count - __builtin_popcountll(p->twins);
    }
    for (uint32_t i = 0; i < l->n_pages; i++) {
        const uint8_t *record = l->records + (size_t)i * l->record;
        uint64_t twins = le64(record + 4 + PAGE_SLOTS * 4);
        for (int s = 0; s < PAGE_SLOTS; s++) need += (int32_t)le32(record + 4 + 4 * s) >= 0 && !(twins >> s & 1);
    }
    if (l->n_pages <= pages && need <= tokens) return LOAM_OK;
    return fail(err, LOAM_E_FULL, "state: %lld tokens in %u pages, the context has room for %lld in %lld", (long long)need,
                l->n_pages,
                (long long)tokens, (long long)pages);
}

/* ---- reading: apply; nothing can fail any more but the growth of a table, which is done first ---- */

static loam_status grow_tables(mem_group *g, int seq, const loaded_group *l)
{
    for (uint32_t t = 0; t < l->n_tables; t++) {
        mem_table *to = &g->tables[seq < 0 ? (int)l->tables[t].seq : seq];
        if (l->tables[t].n && !mem_grow(&to->pages, &to->cap, l->tables[t].n, sizeof *to->pages,
                                        (size_t)g->n_pages + 1)) return LOAM_E_NOMEM;
    }
    return LOAM_OK;
}

static void apply_group(memory *m, mem_group *g, int seq, loaded_group *l)
{
    for (uint32_t i = 0; i < l->n_pages; i++) {
        const uint8_t *record = l->records + (size_t)i * l->record;
        int32_t page = l->places[i] = mem_take_page(g);
        mem_page *p = &g->pages[page];
        p->owners = l->owners[i];
        p->used = (int16_t)le32(record);
        uint64_t twins = le64(record + 4 + PAGE_SLOTS * 4);
        p->far = g->ids && le32(record + PAGE_BASE) != 0;
        for (int s = 0; s < PAGE_SLOTS; s++) {
            if (g->ids) g->ids[(int64_t)page * PAGE_SLOTS + s] = (int32_t)le32(record + PAGE_BASE + 4 + 4 * s);
            int32_t pos = (int32_t)le32(record + 4 + 4 * s);
            g->slot_pos[(int64_t)page * PAGE_SLOTS + s] = pos;
            if (pos < 0) continue;
            g->token[(int64_t)page * PAGE_SLOTS + s] = m->n_numbered++;
            p->count++;
            if (twins >> s & 1) p->twins |= (uint64_t)1 << s;
            else g->n_tokens++;
        }
    }
    for (uint32_t t = 0; t < l->n_tables; t++) {
        if (l->tables[t].n == 0) continue;
        mem_table *to = &g->tables[seq < 0 ? (int)l->tables[t].seq : seq];
        to->n = (int)l->tables[t].n;
        for (int i = 0; i < to->n; i++) to->pages[i] = l->places[le32(l->tables[t].indexes + 4 * i)];
        to->end = mem_end_of(g, to->pages, to->n);
        to->kept = g->window > 0 ? mem_start_of(g, to->pages, to->n) : 0; /* at most that much was given back */
    }
}

static uint64_t bytes_of_pages(const memory *m, const loaded_group *groups)
{
    uint64_t total = 0;
    for (int i = 0; i < m->n_layer; i++)
        if (m->layers[i].pages) total += m->layers[i].shape.page_bytes * groups[m->layers[i].group].n_pages;
    return total;
}

static void copy_pages(memory *m, const loaded_group *groups, const uint8_t *data)
{
    for (int group = 0; group < m->n_groups; group++)
        for (int i = 0; i < m->n_layer; i++) {
            const kv_layer *layer = &m->layers[i];
            if (!layer->pages || layer->group != group) continue;
            for (uint32_t p = 0; p < groups[group].n_pages; p++, data += layer->shape.page_bytes)
                memcpy(layer->pages + (uint64_t)groups[group].places[p] * layer->shape.page_bytes, data,
                       (size_t)layer->shape.page_bytes);
        }
}

/* ---- reading: recurrent states ---- */

typedef struct loaded_states {
    uint32_t n_cells;
    int32_t index_of[LIMIT_SEQUENCES]; /* cell of each sequence of the memory, -1: none; [0] where one sequence is read */
    const uint8_t *positions;
    const uint8_t *rows;
} loaded_states;

static uint64_t bytes_of_cell(const memory *m)
{
    uint64_t total = 0;
    for (int i = 0; i < m->n_layer; i++) total += (uint64_t)(m->states.layers[i].r_row + m->states.layers[i].s_row) * sizeof(float);
    return total;
}

static loam_status read_states(const memory *m, int seq, reader *r, loaded_states *l, loam_error *err)
{
    if (!memory_has_states(m)) return LOAM_OK;
    for (int q = 0; q < LIMIT_SEQUENCES; q++) l->index_of[q] = -1;
    l->n_cells = reader_u32(r);
    uint32_t n_tables = reader_u32(r);
    if (r->failed || l->n_cells > LIMIT_SEQUENCES || n_tables > LIMIT_SEQUENCES || (seq >= 0 && (n_tables != 1 ||
                                                                                                 l->n_cells > 1)))
        return malformed(err, r, "wrong number of recurrent states");
    bool owned[LIMIT_SEQUENCES] = { false };
    for (uint32_t t = 0; t < n_tables; t++) {
        uint32_t q = reader_u32(r), cell = reader_u32(r);
        if (r->failed || (cell != UINT32_MAX && cell >= l->n_cells)) return malformed(err, r, "a recurrent state is not there");
        if (cell == UINT32_MAX) continue;
        if (seq < 0 && q >= (uint32_t)m->n_seq_max)
            return fail(err, LOAM_E_FULL, "state: sequence %u, the context has %d", q, m->n_seq_max);
        int32_t *at = &l->index_of[seq < 0 ? q : 0];
        if (*at >= 0) return malformed(err, r, "a sequence has two recurrent states");
        *at = (int32_t)cell;
        owned[cell] = true;
    }
    l->positions = reader_take(r, (uint64_t)l->n_cells * 4);
    l->rows = l->positions ? reader_take(r, bytes_of_cell(m) * l->n_cells) : NULL;
    if (!l->rows) return malformed(err, r, "recurrent states are cut off");
    for (uint32_t i = 0; i < l->n_cells; i++) {
        int32_t pos = (int32_t)le32(l->positions + 4 * i);
        if (!owned[i] || pos < 0 || pos == INT32_MAX) return malformed(err, r,
                                                                       "a recurrent state has no sequence or a bad position");
    }
    return LOAM_OK;
}

/* The sequences that are replaced have no state any more. */
static void apply_states(memory *m, int seq, const loaded_states *l)
{
    if (!memory_has_states(m)) return;
    mem_states *s = &m->states;
    int32_t cells[LIMIT_SEQUENCES];
    for (uint32_t i = 0; i < l->n_cells; i++) {
        cells[i] = mem_take_cell(s);
        s->cells[cells[i]].pos = (int32_t)le32(l->positions + 4 * i);
    }
    const uint8_t *at = l->rows;
    for (int layer = 0; layer < m->n_layer; layer++)
        for (uint32_t i = 0; i < l->n_cells; i++) {
            const state_layer *x = &s->layers[layer];
            size_t r = (size_t)x->r_row * sizeof(float), st = (size_t)x->s_row * sizeof(float);
            if (r) memcpy(x->r + cells[i] * x->r_row, at, r);
            if (st) memcpy(x->s + cells[i] * x->s_row, at + r, st);
            at += r + st;
        }
    for (int q = 0; q < (seq < 0 ? m->n_seq_max : 1); q++) {
        if (l->index_of[q] < 0) continue;
        s->tail[seq < 0 ? q : seq] = cells[l->index_of[q]];
        s->cells[cells[l->index_of[q]]].owners++;
    }
    for (uint32_t i = 0; i < l->n_cells; i++) mem_drop_cell(s, cells[i]);
}

loam_status memory_undump(memory *m, int seq, reader *r, loam_error *err)
{
    loaded_states states = { 0 };
    loaded_group *groups = mem_zalloc_array((size_t)m->n_groups + 1, sizeof *groups);
    if (!groups) return fail_nomem(err, "a state", (uint64_t)m->n_groups * sizeof *groups);
    loam_status status = reader_u32(r) == (uint32_t)m->n_groups ? LOAM_OK : malformed(err, r, "another number of cache groups");
    for (int i = 0; i < m->n_groups && status == LOAM_OK; i++) {
        status = read_group(m, &m->groups[i], seq, r, &groups[i], err);
        if (status == LOAM_OK) status = check_room(&m->groups[i], seq, &groups[i], err);
    }
    const uint8_t *data = status == LOAM_OK ? reader_take(r, bytes_of_pages(m, groups)) : NULL;
    if (status == LOAM_OK && !data) status = malformed(err, r, "keys and values are cut off");
    if (status == LOAM_OK) status = read_states(m, seq, r, &states, err);
    for (int i = 0; i < m->n_groups && status == LOAM_OK; i++)
        if (grow_tables(&m->groups[i], seq, &groups[i]) != LOAM_OK) status = fail_nomem(err, "the tables of the cache", 0);
    if (status == LOAM_OK) {
        if (seq < 0) memory_clear(m);
        else memory_seq_rm(m, seq, 0, INT32_MAX);
        for (int i = 0; i < m->n_groups; i++) apply_group(m, &m->groups[i], seq, &groups[i]);
        copy_pages(m, groups, data);
        apply_states(m, seq, &states);
    }
    for (int i = 0; i < m->n_groups; i++) {
        mem_free(groups[i].tables);
        mem_free(groups[i].owners);
        mem_free(groups[i].places);
    }
    mem_free(groups);
    return status;
}

uint64_t memory_geometry(const memory *m)
{
    uint64_t h = 0x4C4F414D;
    if (m->n_groups && m->groups[0].ids) h = ~h;
    for (int i = 0; i < m->n_layer; i++) {
        const kv_layer *l = &m->layers[i];
        int32_t facts[] = { l->pages != NULL, l->group, (int32_t)l->shape.k_type, (int32_t)l->shape.v_type, l->shape.n_kv_head,
                            l->shape.k_dim, l->shape.v_dim, l->shape.k_rotated, l->shape.v_rotated };
        h = XXH64(facts, sizeof facts, h);
        int64_t rows[] = { m->states.layers[i].r_row, m->states.layers[i].s_row };
        if (rows[0] || rows[1]) h = XXH64(rows, sizeof rows, h);
    }
    return h;
}
