/* memory.c - construction, and batches as transactions; see memory.h. */
#include "memory/memory.h"

#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "memory/internal.h"
#include "tensor/dtype.h"

/* ---- geometry ---- */

/* Block of the Hadamard transform of heads of this width; 0 for types that keep every value by itself. */
static int rotation_of(bool wanted, loam_type type, int dim) { return wanted && dtype_table[type].values > 1 ? dim & -dim : 0; }

static loam_status shape_of(page_shape *s, const memory_params *p, const memory_layer *l, loam_error *err)
{
    uint64_t k_row, v_row;
    loam_type k_type = l->encode ? LOAM_F32 : p->k_type, v_type = l->encode ? LOAM_F32 : p->v_type;
    *s = (page_shape){ .k_type = k_type, .v_type = v_type, .n_kv_head = l->n_kv_head, .k_dim = l->k_dim, .v_dim = l->v_dim,
                        .k_rotated = rotation_of(p->k_rotated, k_type, l->k_dim), .v_rotated = rotation_of(p->v_rotated, v_type, l->v_dim) };
    if (!dtype_row_bytes(k_type, l->k_dim, &k_row))
        return fail(err, LOAM_E_ARG, "cache type %s: key heads of %d values are not a multiple of its block", loam_type_name((int)p->k_type), l->k_dim);
    if (!dtype_row_bytes(v_type, l->v_dim, &v_row))
        return fail(err, LOAM_E_ARG, "cache type %s: value heads of %d values are not a multiple of its block", loam_type_name((int)p->v_type), l->v_dim);
    s->k_head_bytes = k_row * PAGE_SLOTS;
    s->v_head_bytes = v_row * PAGE_SLOTS;
    s->page_bytes = (uint64_t)l->n_kv_head * (s->k_head_bytes + s->v_head_bytes);
    return LOAM_OK;
}

/* Pages of a group: room for every token, and one page that is only partly filled for each sequence. */
static int64_t pages_of(const memory_params *p, int window, bool encode)
{
    int64_t tokens = encode ? p->n_encode : p->n_ctx + p->n_replay;
    if (window > 0) {
        int64_t need = (int64_t)window * p->n_seq_max + p->n_batch + 2 * PAGE_SLOTS * (int64_t)p->n_seq_max;
        if (need < tokens) tokens = need;
    }
    return (tokens + PAGE_SLOTS - 1) / PAGE_SLOTS + (int64_t)p->n_seq_max * (encode ? 2 : 1) + 1;
}

static uint64_t aligned(uint64_t n) { return (n + 4095) & ~(uint64_t)4095; }

loam_status memory_estimate(const memory_params *p, uint64_t *bytes, loam_error *err)
{
    *bytes = 0;
    for (int i = 0; i < p->n_layer; i++) {
        if (!add_ok(*bytes, mem_states_bytes(p, &p->layers[i]), bytes) || *bytes > SIZE_MAX / 2)
            return fail(err, LOAM_E_NOMEM, "recurrent states of %d sequences do not fit the address space", p->n_seq_max);
        if (!p->layers[i].present) continue;
        page_shape s;
        loam_status status = shape_of(&s, p, &p->layers[i], err);
        if (status != LOAM_OK) return status;
        uint64_t need;
        if (!mul_ok(s.page_bytes, (uint64_t)pages_of(p, p->layers[i].window, p->layers[i].encode), &need) || need > SIZE_MAX / 2 ||
            !add_ok(*bytes, aligned(need), bytes))
            return fail(err, LOAM_E_NOMEM, "a cache of %lld tokens does not fit the address space", (long long)p->n_ctx);
    }
    return LOAM_OK;
}

/* ---- construction ---- */

static loam_status group_init(mem_group *g, const memory_params *p, int window, bool encode, loam_error *err)
{
    int64_t n = pages_of(p, window, encode);
    g->window = window;
    g->encode = encode;
    g->n_pages = (int32_t)n;
    g->max_tokens = window > 0 || encode ? INT64_MAX : p->n_ctx;
    g->pages = mem_zalloc_array((size_t)n, sizeof *g->pages);
    g->free_pages = mem_alloc_array((size_t)n, sizeof *g->free_pages);
    g->slot_pos = mem_alloc_array((size_t)n * PAGE_SLOTS, sizeof *g->slot_pos);
    g->shift = mem_zalloc_array((size_t)n * PAGE_SLOTS, sizeof *g->shift);
    g->token = mem_zalloc_array((size_t)n * PAGE_SLOTS, sizeof *g->token);
    if (p->n_replay > 0) g->ids = mem_zalloc_array((size_t)n * PAGE_SLOTS, sizeof *g->ids);
    g->tables = mem_zalloc_array((size_t)p->n_seq_max, sizeof *g->tables);
    g->undo = mem_zalloc_array((size_t)p->n_seq_max, sizeof *g->undo);
    g->first_slot = mem_zalloc_array((size_t)p->n_batch + 1, sizeof *g->first_slot);
    g->runs = mem_alloc_array((size_t)p->n_batch, sizeof *g->runs);
    if (!g->pages || !g->free_pages || (p->n_replay > 0 && !g->ids) || !g->slot_pos || !g->shift || !g->token || !g->tables || !g->undo || !g->first_slot || !g->runs)
        return fail_nomem(err, "the tables of the cache", (uint64_t)n * PAGE_SLOTS * 8);
    for (int64_t i = 0; i < n * PAGE_SLOTS; i++) g->slot_pos[i] = -1;
    for (int64_t i = 0; i < n; i++) g->free_pages[g->n_free++] = (int32_t)(n - 1 - i);
    return LOAM_OK;
}

static int group_with(const memory *m, const memory_layer *l)
{
    for (int i = 0; i < m->n_groups; i++)
        if (m->groups[i].window == l->window && m->groups[i].encode == l->encode) return i;
    return -1;
}

static loam_status make_groups(memory *m, const memory_params *p, loam_error *err)
{
    m->groups = mem_zalloc_array((size_t)p->n_layer + 1, sizeof *m->groups);
    m->view_groups = mem_zalloc_array((size_t)p->n_layer + 1, sizeof *m->view_groups);
    m->layers = mem_zalloc_array((size_t)p->n_layer + 1, sizeof *m->layers);
    if (!m->groups || !m->layers || !m->view_groups) return fail_nomem(err, "the cache", (uint64_t)p->n_layer * sizeof(kv_layer));
    for (int n = 0; n < 2 * p->n_layer; n++) { /* those that decode first */
        const memory_layer *l = &p->layers[n % p->n_layer];
        if (!l->present || l->encode != (n >= p->n_layer) || group_with(m, l) >= 0) continue;
        loam_status status = group_init(&m->groups[m->n_groups++], p, l->window, l->encode, err);
        if (status != LOAM_OK) return status;
    }
    if (m->n_groups == 0 && m->states.n_cells == 0) return group_init(&m->groups[m->n_groups++], p, 0, false, err);
    return LOAM_OK;
}

static loam_status place_layers(memory *m, const memory_params *p, loam_error *err)
{
    uint8_t *at = m->data;
    for (int i = 0; i < p->n_layer; i++) {
        at = mem_states_place(m, p, i, at);
        if (!p->layers[i].present) continue;
        kv_layer *l = &m->layers[i];
        loam_status status = shape_of(&l->shape, p, &p->layers[i], err);
        if (status != LOAM_OK) return status;
        l->group = group_with(m, &p->layers[i]);
        l->pages = at;
        at += aligned(l->shape.page_bytes * (uint64_t)m->groups[l->group].n_pages);
    }
    return LOAM_OK;
}

loam_status memory_new(memory **out, const memory_params *p, loam_error *err)
{
    *out = NULL;
    memory *m = mem_zalloc(sizeof *m);
    if (!m) return fail_nomem(err, "the cache", sizeof *m);
    m->n_layer = p->n_layer;
    m->n_seq_max = p->n_seq_max;
    m->n_batch = p->n_batch;
    m->n_ctx_seq = p->n_ctx_seq;
    loam_status status = memory_estimate(p, &m->bytes, err);
    if (status == LOAM_OK) status = mem_states_init(m, p, err);
    if (status == LOAM_OK) status = make_groups(m, p, err);
    if (status == LOAM_OK && m->bytes > 0) {
        m->data = os_reserve((size_t)m->bytes);
        if (!m->data) status = fail_nomem(err, "keys and values", m->bytes);
    }
    if (status == LOAM_OK) status = place_layers(m, p, err);
    m->lead = mem_alloc_array((size_t)p->n_batch, sizeof *m->lead);
    m->pos = mem_alloc_array((size_t)p->n_batch, sizeof *m->pos);
    if (status == LOAM_OK && (!m->lead || !m->pos)) status = fail_nomem(err, "a batch", (uint64_t)p->n_batch * 8);
    if (status != LOAM_OK) {
        memory_free(m);
        return status;
    }
    *out = m;
    return LOAM_OK;
}

void memory_free(memory *m)
{
    if (!m) return;
    for (int i = 0; m->groups && i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int s = 0; g->tables && s < m->n_seq_max; s++) mem_free(g->tables[s].pages);
        for (int s = 0; g->undo && s < m->n_seq_max; s++) mem_free(g->undo[s].former.pages);
        mem_free(g->pages);
        mem_free(g->free_pages);
        mem_free(g->slot_pos);
        mem_free(g->shift);
        mem_free(g->token);
        mem_free(g->ids);
        mem_free(g->tables);
        mem_free(g->undo);
        mem_free(g->slots);
        mem_free(g->first_slot);
        mem_free(g->runs);
    }
    if (m->data) os_release(m->data, (size_t)m->bytes);
    mem_states_free(m);
    mem_free(m->groups);
    mem_free(m->view_groups);
    mem_free(m->layers);
    mem_free(m->lead);
    mem_free(m->pos);
    mem_free(m);
}

uint64_t memory_bytes(const memory *m) { return m->bytes; }

uint64_t memory_table_bytes(const memory *m)
{
    uint64_t n = mem_size(m) + mem_size(m->groups) + mem_size(m->view_groups) + mem_size(m->layers) + mem_size(m->lead) +
                 mem_size(m->pos) + mem_states_table_bytes(m);
    for (int i = 0; i < m->n_groups; i++) {
        const mem_group *g = &m->groups[i];
        n += mem_size(g->pages) + mem_size(g->free_pages) + mem_size(g->slot_pos) + mem_size(g->shift) + mem_size(g->token) + mem_size(g->ids) + mem_size(g->tables) +
             mem_size(g->undo) + mem_size(g->slots) + mem_size(g->first_slot) + mem_size(g->runs);
        for (int s = 0; s < m->n_seq_max; s++) n += mem_size(g->tables[s].pages) + mem_size(g->undo[s].former.pages);
    }
    return n;
}

int64_t memory_n_tokens(const memory *m)
{
    int64_t most = 0;
    for (int i = 0; i < m->n_groups; i++)
        if (m->groups[i].n_tokens > most) most = m->groups[i].n_tokens;
    return most;
}

int64_t memory_max_pages(const memory *m)
{
    int64_t most = 1;
    for (int i = 0; i < m->n_groups; i++)
        if (m->groups[i].n_pages > most) most = m->groups[i].n_pages;
    return most;
}

const kv_layer *memory_layers(const memory *m) { return m->layers; }

/* ---- pages ---- */

int32_t mem_take_page(mem_group *g)
{
    if (g->n_free == 0) return -1;
    int32_t page = g->free_pages[--g->n_free];
    g->pages[page] = (mem_page){ .owners = 1 };
    return page;
}

void mem_clear_slot(mem_group *g, int64_t at)
{
    if (g->slot_pos[at] < 0) return;
    mem_page *page = &g->pages[at / PAGE_SLOTS];
    uint64_t bit = (uint64_t)1 << at % PAGE_SLOTS;
    if (!(page->twins & bit)) g->n_tokens--;
    page->twins &= ~bit;
    page->count--;
    g->slot_pos[at] = -1;
    g->shift[at] = 0;
}

static void clear_slots(mem_group *g, int32_t page, int from)
{
    for (int s = from; s < PAGE_SLOTS; s++) mem_clear_slot(g, (int64_t)page * PAGE_SLOTS + s);
}

void mem_drop_page(mem_group *g, int32_t page)
{
    if (--g->pages[page].owners > 0) return;
    clear_slots(g, page, 0);
    g->free_pages[g->n_free++] = page;
}

bool mem_table_push(mem_table *t, int32_t page, int32_t max)
{
    if (!mem_grow(&t->pages, &t->cap, (size_t)t->n + 1, sizeof *t->pages, (size_t)max + 1)) return false;
    t->pages[t->n++] = page;
    return true;
}

void mem_copy_page(memory *m, mem_group *g, int32_t from, int32_t to, int32_t p0, int32_t p1)
{
    int group = (int)(g - m->groups);
    for (int i = 0; i < m->n_layer; i++) {
        const kv_layer *l = &m->layers[i];
        if (l->pages && l->group == group)
            memcpy(l->pages + (uint64_t)to * l->shape.page_bytes, l->pages + (uint64_t)from * l->shape.page_bytes, (size_t)l->shape.page_bytes);
    }
    mem_page *page = &g->pages[to];
    page->far = g->pages[from].far;
    for (int s = 0; s < PAGE_SLOTS; s++) {
        int32_t pos = g->slot_pos[from * PAGE_SLOTS + s];
        if (pos < p0 || pos >= p1) continue;
        g->slot_pos[to * PAGE_SLOTS + s] = pos;
        g->shift[to * PAGE_SLOTS + s] = g->shift[from * PAGE_SLOTS + s];
        g->token[to * PAGE_SLOTS + s] = g->token[from * PAGE_SLOTS + s];
        if (g->ids) g->ids[to * PAGE_SLOTS + s] = g->ids[from * PAGE_SLOTS + s];
        page->count++;
        page->twins |= (uint64_t)1 << s;
        page->used = (int16_t)(s + 1);
    }
}

int32_t mem_end_of(const mem_group *g, const int32_t *pages, int n)
{
    int32_t end = 0;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int32_t pos = g->slot_pos[(int64_t)pages[i] * PAGE_SLOTS + s];
            end = pos >= end ? pos + 1 : end;
        }
    return end;
}

int32_t mem_start_of(const mem_group *g, const int32_t *pages, int n)
{
    int32_t start = -1;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < PAGE_SLOTS; s++) {
            int32_t pos = g->slot_pos[(int64_t)pages[i] * PAGE_SLOTS + s];
            if (pos >= 0 && (start < 0 || pos < start)) start = pos;
        }
    return start;
}

void mem_trim(mem_group *g, mem_table *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        int32_t page = t->pages[i];
        if (g->pages[page].count > 0) t->pages[n++] = page;
        else mem_drop_page(g, page);
    }
    t->n = n;
    if (n == 0) return;
    mem_page *last = &g->pages[t->pages[n - 1]];
    if (last->owners > 1) return;
    while (last->used > 0 && g->slot_pos[t->pages[n - 1] * PAGE_SLOTS + last->used - 1] < 0) last->used--;
}

/* ---- a batch ---- */

loam_status memory_begin(memory *m)
{
    for (int i = 0; i < m->n_groups; i++) {
        m->groups[i].n_slots = 0;
        m->groups[i].n_pending = m->groups[i].n_former = 0;
        m->groups[i].first_slot[0] = 0;
        memset(m->groups[i].undo, 0, (size_t)m->n_seq_max * sizeof(mem_undo));
    }
    mem_states_begin(m);
    m->n_added = 0;
    m->open = true;
    m->encoding = false;
    return LOAM_OK;
}

loam_status memory_begin_encode(memory *m)
{
    loam_status status = memory_begin(m);
    m->encoding = true;
    return status;
}

bool memory_encoded(const memory *m, int seq)
{
    for (int i = 0; i < m->n_groups; i++)
        if (m->groups[i].encode && m->groups[i].tables[seq].n > 0) return true;
    return false;
}

static void set_aside(mem_group *g, int seq)
{
    g->undo[seq] = (mem_undo){ .touched = true, .last = -1, .anew = true, .former = g->tables[seq] };
    g->tables[seq] = (mem_table){ 0 };
}

static void remember(mem_group *g, int seq)
{
    mem_undo *u = &g->undo[seq];
    if (u->touched) return;
    mem_table *t = &g->tables[seq];
    if (g->encode) {
        set_aside(g, seq);
        return;
    }
    *u = (mem_undo){ .touched = true, .n = t->n, .last = t->n ? t->pages[t->n - 1] : -1 };
    if (u->last >= 0) {
        u->used = g->pages[u->last].used;
        g->pages[u->last].owners++; /* the batch holds it until it ends */
    }
}

/* Owners of a page that are not the batch itself. */
static int real_owners(const memory *m, const mem_group *g, int32_t page)
{
    int held = 0;
    for (int s = 0; s < m->n_seq_max; s++) held += g->undo[s].touched && g->undo[s].last == page;
    return g->pages[page].owners - held;
}

static int32_t last_page(const mem_group *g, int seq)
{
    const mem_table *t = &g->tables[seq];
    return t->n ? t->pages[t->n - 1] : -1;
}

/* The page that takes the next token of these sequences (which all end in the same page): the page itself, or a copy where
 * others own it too, or a fresh one. */
static loam_status open_page(memory *m, mem_group *g, const int32_t *seqs, int n, int32_t *out)
{
    int32_t page = last_page(g, seqs[0]);
    if (page >= 0 && g->pages[page].used < PAGE_SLOTS) {
        if (real_owners(m, g, page) == n) {
            *out = page;
            return LOAM_OK;
        }
        int32_t copy = mem_take_page(g);
        if (copy < 0) return LOAM_E_FULL;
        mem_copy_page(m, g, page, copy, 0, INT32_MAX);
        g->pages[copy].owners = n;
        for (int i = 0; i < n; i++) {
            g->tables[seqs[i]].pages[g->tables[seqs[i]].n - 1] = copy;
            g->pages[page].owners--;
        }
        *out = copy;
        return LOAM_OK;
    }
    int32_t fresh = mem_take_page(g);
    if (fresh < 0) return LOAM_E_FULL;
    for (int i = 0; i < n; i++)
        if (!mem_table_push(&g->tables[seqs[i]], fresh, g->n_pages)) {
            for (int j = 0; j < i; j++) g->tables[seqs[j]].n--;
            mem_drop_page(g, fresh);
            return LOAM_E_NOMEM;
        }
    g->pages[fresh].owners = n;
    *out = fresh;
    return LOAM_OK;
}

static loam_status add_to_group(memory *m, mem_group *g, const memory_token *t)
{
    if (g->n_tokens - g->n_former + g->n_pending + 1 > g->max_tokens) return LOAM_E_FULL;
    bool done[LIMIT_SEQUENCES] = { false };
    for (int i = 0; i < t->n_seqs; i++) remember(g, t->seqs[i]);
    for (int i = 0; i < t->n_seqs; i++) {
        if (done[i]) continue;
        int32_t same[LIMIT_SEQUENCES], page;
        int n = 0;
        for (int j = i; j < t->n_seqs; j++)
            if (!done[j] && last_page(g, t->seqs[j]) == last_page(g, t->seqs[i])) same[n++] = t->seqs[j], done[j] = true;
        loam_status status = open_page(m, g, same, n, &page);
        if (status != LOAM_OK) return status;
        if (!mem_grow(&g->slots, &g->cap_slots, g->n_slots + 1, sizeof *g->slots, SIZE_MAX / sizeof *g->slots)) return LOAM_E_NOMEM;
        g->slots[g->n_slots++] = page * PAGE_SLOTS + g->pages[page].used++;
    }
    g->n_pending++;
    g->first_slot[m->n_added + 1] = (int32_t)g->n_slots;
    return LOAM_OK;
}

loam_status memory_add(memory *m, const memory_token *t)
{
    for (int i = 0; i < m->n_groups; i++) {
        if (m->groups[i].encode != m->encoding) continue;
        loam_status status = add_to_group(m, &m->groups[i], t);
        if (status != LOAM_OK) return status;
    }
    mem_states_add(m, t);
    m->lead[m->n_added] = t->seqs[0];
    m->pos[m->n_added] = t->pos;
    m->n_added++;
    return LOAM_OK;
}

void memory_mark(memory *m, int32_t id, bool far)
{
    int t = m->n_added - 1;
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int32_t s = g->first_slot[t]; g->ids && g->encode == m->encoding && s < g->first_slot[t + 1]; s++) {
            g->ids[g->slots[s]] = id;
            g->pages[g->slots[s] / PAGE_SLOTS].far = far;
        }
    }
}

void memory_restart(memory *m, int seq)
{
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        if (g->encode) continue;
        for (int p = 0; p < g->tables[seq].n; p++) {
            const mem_page *page = &g->pages[g->tables[seq].pages[p]];
            if (page->owners == 1) g->n_former += page->count - __builtin_popcountll(page->twins);
        }
        set_aside(g, seq);
    }
}

void memory_rollback(memory *m)
{
    if (!m->open) return;
    mem_states_rollback(m);
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int s = 0; s < m->n_seq_max; s++) {
            mem_undo *u = &g->undo[s];
            mem_table *t = &g->tables[s];
            if (!u->touched) continue;
            while (t->n > u->n) mem_drop_page(g, t->pages[--t->n]);
            if (u->anew) {
                mem_free(t->pages);
                *t = u->former;
                u->former = (mem_table){ 0 };
            }
            if (u->last < 0) continue;
            if (t->pages[u->n - 1] != u->last) {
                mem_drop_page(g, t->pages[u->n - 1]);
                t->pages[u->n - 1] = u->last; /* the batch's hold becomes the sequence's again */
            } else {
                clear_slots(g, u->last, u->used);
                g->pages[u->last].used = u->used;
                g->pages[u->last].owners--;
            }
        }
        g->n_pending = g->n_former = 0;
    }
    m->open = false;
}

/* Gives back the pages of a limited window that no later token of the sequence can see. */
static void evict(mem_group *g, mem_table *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++) {
        int32_t end = mem_end_of(g, &t->pages[i], 1);
        if (i + 1 == t->n || (int64_t)t->end + 1 - end < g->window) {
            t->pages[n++] = t->pages[i];
            continue;
        }
        mem_drop_page(g, t->pages[i]);
        t->kept = end > t->kept ? end : t->kept;
    }
    t->n = n;
}

void memory_commit(memory *m)
{
    mem_states_commit(m);
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int s = 0; s < m->n_seq_max; s++) {
            mem_undo *u = &g->undo[s];
            if (!u->touched) continue;
            if (u->last >= 0) mem_drop_page(g, u->last);
            mem_table *t = &g->tables[s];
            int before = u->n ? u->n - 1 : 0; /* pages that the batch left alone */
            int32_t end = mem_end_of(g, t->pages + before, t->n - before);
            t->end = end > t->end ? end : t->end;
            for (int p = 0; p < u->former.n; p++) mem_drop_page(g, u->former.pages[p]);
            mem_free(u->former.pages);
            u->former = (mem_table){ 0 };
            if (g->window > 0) evict(g, &g->tables[s]);
        }
        g->n_pending = g->n_former = 0;
    }
    m->open = false;
}

/* Whether a's table comes before b's: by the pages from the first on, so that tables that begin alike are neighbours. */
static bool before(const kv_run *a, const kv_run *b)
{
    int n = a->n_pages < b->n_pages ? a->n_pages : b->n_pages;
    for (int i = 0; i < n; i++)
        if (a->pages[i] != b->pages[i]) return a->pages[i] < b->pages[i];
    return a->n_pages < b->n_pages;
}

/* Brings runs that share pages together; equal ones stay in their order. */
static void sort_runs(kv_run *runs, int n)
{
    for (int i = 1; i < n; i++) {
        kv_run x = runs[i];
        int lo = 0, hi = i;
        while (lo < hi) {
            int mid = lo + (hi - lo) / 2;
            if (before(&x, &runs[mid])) hi = mid;
            else lo = mid + 1;
        }
        memmove(runs + lo + 1, runs + lo, (size_t)(i - lo) * sizeof *runs);
        runs[lo] = x;
    }
}

/* Consecutive tokens of one sequence that end in the same table form a run. */
static void make_runs(const memory *m, const mem_group *g, int first, int n, kv_group *out)
{
    int count = 0;
    bool shared = false;
    for (int i = 0; i < n; i++) {
        const mem_table *t = &g->tables[m->lead[first + i]];
        shared = shared || (t->n > 0 && g->pages[t->pages[0]].owners > 1);
        if (count > 0 && m->lead[first + i] == m->lead[first + i - 1]) g->runs[count - 1].count++;
        else g->runs[count++] = (kv_run){ .first = i, .count = 1, .pages = t->pages, .n_pages = t->n };
    }
    if (shared) sort_runs(g->runs, count);
    *out = (kv_group){ .runs = g->runs, .n_runs = count, .slots = g->slots, .first_slot = g->first_slot + first, .slot_pos = g->slot_pos };
}

loam_status memory_view(memory *m, int first, int n, const int32_t *pos, const kv_view **view)
{
    for (int i = 0; i < m->n_groups; i++) {
        mem_group *g = &m->groups[i];
        for (int t = first; t < first + n && g->encode == m->encoding; t++) {
            for (int32_t s = g->first_slot[t]; s < g->first_slot[t + 1]; s++) {
                mem_page *page = &g->pages[g->slots[s] / PAGE_SLOTS];
                g->slot_pos[g->slots[s]] = m->pos[t];
                g->token[g->slots[s]] = m->n_numbered + (uint64_t)(t - first);
                page->count++;
                if (s > g->first_slot[t]) page->twins |= (uint64_t)1 << g->slots[s] % PAGE_SLOTS;
            }
            g->n_tokens++;
            g->n_pending--;
        }
        make_runs(m, g, first, n, &m->view_groups[i]);
    }
    m->n_numbered += (uint64_t)n;
    m->view = (kv_view){ .layers = m->layers, .groups = m->view_groups, .pos = pos };
    mem_states_view(m, first, n);
    *view = &m->view;
    return LOAM_OK;
}
