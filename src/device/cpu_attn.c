/* cpu_attn.c - writing keys and values to the cache, and attention over pages.
 *
 * An item is one tile of tokens with one key-value head; the query heads that share it are columns of the same kernel call,
 * so each page is read once for all of them. A tile holds tokens of one run (tokens that see the same pages), or of several
 * runs whose pages begin alike. Pages are taken by their place in the tables, ascending:
 *
 *   place            0    1    2    3              kernel calls
 *   sequence 0      [4]  [7]  [9]                  place 0: page 4 for 0, 1, 2     place 2: page 9 for 0; 3 for 1, 2
 *   sequence 1      [4]  [7]  [3]  [5]             place 1: page 7 for 0, 1, 2     place 3: page 5 for 1; 6 for 2
 *   sequence 2      [4]  [7]  [3]  [6]
 *
 * so that what sequences share is read once, and each query still merges its pages in ascending order. Where there are fewer
 * items than threads (generation with few key-value heads), pages are dealt out instead and merged afterwards: the same
 * partial results in the same order, so the same bits. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "device/cpu.h"

#define TILE_QUERIES 64    /* of one run: enough to pay for turning a page into floats, small enough to balance threads */
#define SHARED_QUERIES 512 /* of runs that share pages */

/* ---- cache ---- */

static int float_bytes(loam_type type) { return type == LOAM_F32 ? 4 : type == LOAM_F16 || type == LOAM_BF16 ? 2 : 0; }

static void store_key(const kernels *k, loam_type type, const float *x, int dim, int slot, uint8_t *head)
{
    int size = float_bytes(type);
    if (!size) {
        k->encode[type](x, head + (uint64_t)slot * (uint64_t)(dim / dtype_table[type].values * dtype_table[type].bytes), dim);
        return;
    }
    for (int d = 0; d < dim; d += 64) {
        int n = dim - d < 64 ? dim - d : 64;
        uint8_t row[64 * 4];
        k->encode[type](x + d, row, n);
        uint8_t *to = head + ((uint64_t)d * PAGE_SLOTS + (uint64_t)slot) * (uint64_t)size;
        for (int i = 0; i < n; i++) memcpy(to + (uint64_t)i * PAGE_SLOTS * (uint64_t)size, row + i * size, (size_t)size);
    }
}

static void store_value(const kernels *k, const page_shape *s, const float *x, int slot, uint8_t *head)
{
    k->encode[s->v_type](x, head + s->v_head_bytes / PAGE_SLOTS * (uint64_t)slot, s->v_dim);
}

/* A head as the cache keeps it; in the thread's scratch where it is turned. */
static const float *rotated(const worker *w, const float *x, int dim, int block)
{
    if (!block) return x;
    float *y = (float *)(void *)w->scratch;
    memcpy(y, x, (size_t)dim * sizeof *y);
    w->run->k->hadamard(y, dim, block);
    return y;
}

void run_kv_write(const step *s, worker *w)
{
    const value *v = s->v, *key = v->src[0], *val = v->src[1];
    const kernels *k = w->run->k;
    const kv_layer *layer = &w->run->kv->layers[v->p.kv.layer];
    const kv_group *group = &w->run->kv->groups[layer->group];
    const page_shape *shape = &layer->shape;
    part p = part_of(s, w);
    range heads = s->heads ? range_of(s->heads, 1, w->ith, w->nth) : (range){ 0, shape->n_kv_head };
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int32_t i = group->first_slot[t]; i < group->first_slot[t + 1]; i++) {
            int32_t page = group->slots[i] / PAGE_SLOTS, slot = group->slots[i] % PAGE_SLOTS;
            for (int h = (int)heads.first; h < heads.last; h++) {
                page_head at = page_head_at(shape, layer->pages, page, h);
                const float *x = rotated(w, row_at(key, w, t, (int64_t)h * shape->k_dim), shape->k_dim, shape->k_rotated);
                store_key(k, shape->k_type, x, shape->k_dim, slot, (uint8_t *)(uintptr_t)at.k);
                x = rotated(w, row_at(val, w, t, (int64_t)h * shape->v_dim), shape->v_dim, shape->v_rotated);
                store_value(k, shape, x, slot, (uint8_t *)(uintptr_t)at.v);
            }
        }
}

/* ---- visibility ---- */

bool cpu_sees(const attention_params *p, int32_t a, int32_t b)
{
    if (b < 0 || (p->causal && b > a)) return false;
    switch (p->window) {
    case WINDOW_STANDARD: return (int64_t)a - b < p->window_size;
    case WINDOW_CHUNKED: return b >= a / p->window_size * p->window_size;
    case WINDOW_SYMMETRIC: return (a > b ? (int64_t)a - b : (int64_t)b - a) <= p->window_size / 2;
    default: return true;
    }
}

/* Least and largest position of a page; an empty slot makes the least one -1. */
typedef struct page_span {
    int32_t least, most;
} page_span;

static page_span span_of(const int32_t *slot_pos)
{
    page_span x = { slot_pos[0], slot_pos[0] };
    for (int s = 1; s < PAGE_SLOTS; s++) {
        x.least = slot_pos[s] < x.least ? slot_pos[s] : x.least;
        x.most = slot_pos[s] > x.most ? slot_pos[s] : x.most;
    }
    return x;
}

static uint64_t visible_slots(const attention_params *p, int32_t pos, page_span span, const int32_t *slot_pos)
{
    if (span.least >= 0 && cpu_sees(p, pos, span.least) && cpu_sees(p, pos, span.most)) return UINT64_MAX; /* what is seen is a range */
    uint64_t mask = 0;
    for (int s = 0; s < PAGE_SLOTS; s++) mask |= (uint64_t)cpu_sees(p, pos, slot_pos[s]) << s;
    return mask;
}

/* ---- ALiBi (Press et al. 2022) ---- */

float cpu_alibi_slope(const attention_params *p, int head)
{
    int low = 1;
    while (low * 2 <= p->n_head) low *= 2;

    float e = head < low ? p->alibi_max_bias / (float)low * (float)(head + 1)
                         : p->alibi_max_bias / (2.0f * (float)low) * (float)(2 * (head - low) + 1);
    return (float)mathd_exp(-(double)e * 0.69314718055994530942);
}

static void fill_bias(const attention_params *p, int first_head, int heads, int32_t pos, const int32_t *slot_pos, float *bias)
{
    for (int h = 0; h < heads; h++) {
        float slope = cpu_alibi_slope(p, first_head + h);
        for (int s = 0; s < PAGE_SLOTS; s++) {
            float d = (float)(pos > slot_pos[s] ? pos - slot_pos[s] : slot_pos[s] - pos);
            bias[h * PAGE_SLOTS + s] = slot_pos[s] < 0 ? 0.0f : -slope * d;
        }
    }
}

/* ---- relative positions (Raffel et al. 2020) ---- */

#define REL_FAR 128 /* distances from here on share the last bucket */

/* Buckets of the distances 0..REL_FAR: half of them one distance each, the others in equal steps of the logarithm. */
static void fill_buckets(int n, int16_t buckets[REL_FAR + 1])
{
    int exact = n / 2;
    double pace = (n - exact) / mathd_ln((double)REL_FAR / exact);
    for (int r = 0; r <= REL_FAR; r++) {
        int b = r < exact ? r : (int)(float)(exact + (double)(float)mathd_ln((double)r / exact) * pace);
        buckets[r] = (int16_t)(b < n - 1 ? b : n - 1);
    }
}

static int bucket_of(const attention_params *p, const int16_t *buckets, int32_t pos, int32_t key)
{
    int64_t r = (int64_t)key - pos;
    int base = p->rel_both_ways && r > 0 ? p->rel_buckets / 2 : 0;
    if (r < 0 || p->rel_both_ways) r = r < 0 ? -r : r;
    else r = 0;
    return base + buckets[r < REL_FAR ? r : REL_FAR];
}

/* ---- one item ---- */

typedef struct tile {
    float *q, *m, *s, *o;          /* queries; partial results of one page */
    float *M, *S, *O;              /* merged so far */
    float *bias;
    uint64_t *visible;
    void *kernel;                  /* scratch of the attention kernel */
    int32_t *token, *pos;          /* of the step; their positions */
    const kv_run **run;            /* whose pages each token sees */
    int heads;                     /* query heads of one key-value head */
    int head;                      /* key-value head whose queries are loaded */
    int tokens, n_q;
    uint64_t bytes;                /* of keys and values that were read */
    const float *rel;              /* relative bias [buckets][n_head], NULL: none */
    int16_t buckets[REL_FAR + 1];
} tile;

static int tokens_for(const attention_params *p, int queries)
{
    int heads = p->n_head / p->n_kv_head;
    return heads >= queries ? 1 : queries / heads;
}

/* Most tokens of a tile in a step of n tokens: of one run, and of runs that share pages, whose tiles are made smaller where
 * there would be fewer of them than threads. */
static int tile_tokens(const attention_params *p) { return tokens_for(p, TILE_QUERIES); }

static int shared_tokens(const attention_params *p, int64_t n, int nth)
{
    int64_t most = min64(tokens_for(p, SHARED_QUERIES), (n * p->n_kv_head + nth - 1) / nth);
    return (int)max64(most, tile_tokens(p));
}

/* Cuts the thread's scratch into the arrays of a tile; returns the bytes used. base NULL only measures. */
static size_t lay_out_tile(tile *t, const value *v, char *base)
{
    const attention_params *p = &v->p.attn;
    size_t tokens = (size_t)min64(shared_tokens(p, v->ne[2], 1), v->ne[2]), n = tokens * (size_t)(p->n_head / p->n_kv_head), at = 0;
#define TAKE(field, bytes) (t->field = base ? (void *)(base + at) : NULL, at += mem_padded(bytes))
    TAKE(q, n * (size_t)p->k_dim * 4);
    TAKE(m, n * 4);
    TAKE(s, n * 4);
    TAKE(o, n * (size_t)p->v_dim * 4);
    TAKE(M, n * 4);
    TAKE(S, n * 4);
    TAKE(O, n * (size_t)p->v_dim * 4);
    TAKE(bias, n * PAGE_SLOTS * 4);
    TAKE(visible, n * 8);
    TAKE(kernel, attn_scratch(p->k_dim, p->v_dim));
    TAKE(token, tokens * sizeof *t->token);
    TAKE(pos, tokens * sizeof *t->pos);
    TAKE(run, tokens * sizeof *t->run);
#undef TAKE
    t->heads = p->n_head / p->n_kv_head;
    return at;
}

size_t cpu_attention_scratch(const value *v)
{
    tile t;
    return lay_out_tile(&t, v, NULL);
}

/* Partial results of every page for the one token of a generation step: m, s and o for each query head. */
size_t cpu_attention_shared(const value *v, int64_t max_pages)
{
    const attention_params *p = &v->p.attn;
    return v->ne[2] == 1 ? (size_t)max_pages * (size_t)p->n_head * (size_t)(p->v_dim + 2) * 4 : 0;
}

static void clear_tile(tile *t) { t->tokens = t->n_q = 0; }

static void add_tokens(tile *t, const worker *w, const kv_run *run, int first, int count)
{
    for (int i = 0; i < count; i++) {
        t->token[t->tokens] = first + i;
        t->pos[t->tokens] = w->run->kv->pos[first + i];
        t->run[t->tokens++] = run;
    }
    t->n_q = t->tokens * t->heads;
}

static void load_queries(tile *t, const value *q, const worker *w, const attention_params *p, int head)
{
    t->head = head;
    for (int i = 0; i < t->tokens; i++)
        for (int h = 0; h < t->heads; h++)
            w->run->k->scale(t->q + (size_t)(i * t->heads + h) * (size_t)p->k_dim,
                             row_at(q, w, t->token[i], (int64_t)(head * t->heads + h) * p->k_dim), p->scale, p->k_dim);
    int block = w->run->kv->layers[p->layer].shape.k_rotated;
    if (block) w->run->k->hadamard(t->q, (int64_t)t->n_q * p->k_dim, block);
}

/* Bias of token i of the tile for the heads that share the key-value head. */
static void fill_relative(tile *t, const attention_params *p, int i, const int32_t *slot_pos)
{
    float *to = t->bias + (size_t)i * (size_t)t->heads * PAGE_SLOTS;
    for (int s = 0; s < PAGE_SLOTS; s++) {
        int bucket = slot_pos[s] < 0 ? 0 : bucket_of(p, t->buckets, t->pos[i], slot_pos[s]); /* an empty slot is masked */
        const float *row = t->rel + (size_t)bucket * (size_t)p->n_head;
        for (int h = 0; h < t->heads; h++) to[h * PAGE_SLOTS + s] = row[t->head * t->heads + h];
    }
}

/* Some tokens of a tile. */
typedef struct tile_part {
    int first, count;
} tile_part;

static void fill_biases(tile *t, const attention_params *p, tile_part c, const int32_t *slot_pos)
{
    for (int i = c.first; i < c.first + c.count; i++) {
        if (t->rel) fill_relative(t, p, i, slot_pos);
        else fill_bias(p, t->head * t->heads, t->heads, t->pos[i], slot_pos, t->bias + (size_t)i * (size_t)t->heads * PAGE_SLOTS);
    }
}

/* Bytes that a kernel reads: keys by half pages up to the last that somebody sees, and the values that somebody sees. */
static uint64_t bytes_read(const page_shape *s, uint64_t seen)
{
    uint64_t keys = seen > UINT32_MAX ? s->k_head_bytes : s->k_head_bytes / 2;
    return keys + s->v_head_bytes / PAGE_SLOTS * (uint64_t)__builtin_popcountll(seen);
}

/* Partial results of tokens of the tile against page[0]; page[1] is likely the next where `more`. False when no query sees any
 * slot. */
static bool one_page(tile *t, const value *v, const worker *w, const int32_t *page, bool more, tile_part c)
{
    const attention_params *p = &v->p.attn;
    const kv_layer *layer = &w->run->kv->layers[p->layer];
    const int32_t *slot_pos = w->run->kv->groups[layer->group].slot_pos + (int64_t)page[0] * PAGE_SLOTS;
    page_span span = span_of(slot_pos);
    uint64_t any = 0;
    for (int i = c.first; i < c.first + c.count; i++) {
        uint64_t mask = visible_slots(p, t->pos[i], span, slot_pos);
        any |= mask;
        for (int h = 0; h < t->heads; h++) t->visible[i * t->heads + h] = mask;
    }
    if (!any) return false;
    bool biased = p->alibi_max_bias > 0.0f || t->rel;
    if (biased) fill_biases(t, p, c, slot_pos);
    size_t q = (size_t)c.first * (size_t)t->heads;
    attn_args a = {
        .page = page_head_at(&layer->shape, layer->pages, page[0], t->head),
        .next = more ? page_head_at(&layer->shape, layer->pages, page[1], t->head) : (page_head){ NULL, NULL },
        .k_type = layer->shape.k_type, .v_type = layer->shape.v_type, .k_dim = p->k_dim, .v_dim = p->v_dim,
        .q = t->q + q * (size_t)p->k_dim, .q_stride = (size_t)p->k_dim, .n_q = c.count * t->heads, .visible = t->visible + q,
        .softcap = p->softcap, .bias = biased ? t->bias + q * PAGE_SLOTS : NULL,
        .m = t->m + q, .s = t->s + q, .o = t->o + q * (size_t)p->v_dim, .o_stride = (size_t)p->v_dim, .scratch = t->kernel,
    };
    w->run->k->attn(&a);
    t->bytes += bytes_read(&layer->shape, any);
    return true;
}

static attn_state state_of(const tile *t, const attention_params *p, int i)
{
    return (attn_state){ &t->M[i], &t->S[i], t->O + (size_t)i * (size_t)p->v_dim };
}

static void clear_state(tile *t, const attention_params *p)
{
    for (int i = 0; i < t->n_q; i++) t->M[i] = -INFINITY, t->S[i] = 0.0f;
    memset(t->O, 0, (size_t)t->n_q * (size_t)p->v_dim * 4);
}

/* A sink takes part in the softmax with no value. The page buffer serves as the row of zeros. */
static void add_sink(tile *t, const attention_params *p, const kernels *k, int i, float sink)
{
    memset(t->o, 0, (size_t)p->v_dim * 4);
    k->attn_merge(state_of(t, p, i), (attn_part){ sink, 1.0f, t->o }, p->v_dim);
}

static void finish_query(const tile *t, const worker *w, const value *v, int64_t token, int i, int head)
{
    const attention_params *p = &v->p.attn;
    float *y = row_at(v, w, token, (int64_t)head * p->v_dim);
    w->run->k->scale(y, t->O + (size_t)i * (size_t)p->v_dim, t->S[i] > 0.0f ? 1.0f / t->S[i] : 0.0f, p->v_dim);
    int block = w->run->kv->layers[p->layer].shape.v_rotated;
    if (block) w->run->k->hadamard(y, p->v_dim, block);
}

static const float *sinks_of(const value *v, const worker *w)
{
    return v->src[2] && !v->p.attn.rel_buckets ? value_data(v->src[2], w) : NULL;
}

/* Tokens from `first` on that see the same page at this place of their tables; none where the first one's table ends. */
static tile_part same_page(const tile *t, int first, int place)
{
    tile_part c = { first, 1 };
    if (place >= t->run[first]->n_pages) return c;
    int32_t page = t->run[first]->pages[place];
    while (c.first + c.count < t->tokens) {
        const kv_run *next = t->run[c.first + c.count];
        if (next != t->run[first] && (place >= next->n_pages || next->pages[place] != page)) break;
        c.count++;
    }
    return c;
}

/* All tokens of the tile against the pages at one place of their tables. */
static void one_place(tile *t, const value *v, worker *w, int place)
{
    size_t v_dim = (size_t)v->p.attn.v_dim;
    for (tile_part c = { 0, 0 }; c.first < t->tokens; c.first += c.count) {
        c = same_page(t, c.first, place);
        const kv_run *run = t->run[c.first];
        if (place >= run->n_pages || !one_page(t, v, w, run->pages + place, place + 1 < run->n_pages, c)) continue;
        for (int q = c.first * t->heads; q < (c.first + c.count) * t->heads; q++)
            w->run->k->attn_merge(state_of(t, &v->p.attn, q), (attn_part){ t->m[q], t->s[q], t->o + (size_t)q * v_dim }, (int)v_dim);
    }
}

static void run_tile(const step *s, worker *w, tile *t, int head)
{
    const value *v = s->v;
    const attention_params *p = &v->p.attn;
    int most = 0;
    for (int i = 0; i < t->tokens; i++)
        if (t->run[i]->n_pages > most) most = t->run[i]->n_pages;
    load_queries(t, v->src[0], w, p, head);
    clear_state(t, p);
    for (int place = 0; place < most && !worker_stopped(w); place++) one_place(t, v, w, place);
    const float *sinks = sinks_of(v, w);
    for (int q = 0; q < t->n_q; q++) {
        int h = head * t->heads + q % t->heads;
        if (sinks) add_sink(t, p, w->run->k, q, sinks[h]);
        finish_query(t, w, v, t->token[q / t->heads], q, h);
    }
}

static bool begin_alike(const kv_run *a, const kv_run *b) { return a->n_pages && b->n_pages && a->pages[0] == b->pages[0]; }

/* Whether this thread does the item: the heads whose keys it wrote, else every nth. */
static bool is_mine(const step *s, const worker *w, int64_t item, int head)
{
    if (!s->heads) return item % w->nth == w->ith;
    range r = range_of(s->heads, 1, w->ith, w->nth);
    return r.first <= head && head < r.last;
}

/* Tiles in the order of the runs; every thread takes its share of the items. */
static void run_tiles(const step *s, worker *w, tile *t, const kv_group *group)
{
    const attention_params *p = &s->v->p.attn;
    int most = tile_tokens(p), shared = shared_tokens(p, s->v->ne[2], w->nth);
    int64_t item = 0;
    for (int r = 0, done = 0; r < group->n_runs;) {
        clear_tile(t);
        const kv_run *first = &group->runs[r];
        while (r < group->n_runs && t->tokens < shared) {
            const kv_run *run = &group->runs[r];
            int n = (int)min64(run->count - done, (run == first ? most : shared) - t->tokens);
            if (run != first && (!begin_alike(first, run) || done + n < run->count)) break;
            add_tokens(t, w, run, run->first + done, n);
            done += n;
            if (done < run->count) break;
            r++, done = 0;
        }
        for (int head = 0; head < p->n_kv_head; head++, item++)
            if (is_mine(s, w, item, head) && !worker_stopped(w)) run_tile(s, w, t, head);
    }
}

/* ---- one token, pages dealt out ---- */

static float *partial_of(const attention_params *p, const worker *w, int64_t page_index, int head)
{
    return (float *)w->run->shared + (size_t)(page_index * p->n_head + head) * (size_t)(p->v_dim + 2);
}

static void run_split(const step *s, worker *w, tile *t, const kv_run *run)
{
    const value *v = s->v;
    const attention_params *p = &v->p.attn;
    const kernels *k = w->run->k;
    clear_tile(t);
    add_tokens(t, w, run, run->first, 1);
    int loaded = -1;
    range r = range_of((int64_t)run->n_pages * p->n_kv_head, 1, w->ith, w->nth);
    for (int64_t i = r.first; i < r.last; i++) {
        int64_t page = i % run->n_pages;
        int head = (int)(i / run->n_pages);
        if (head != loaded) load_queries(t, v->src[0], w, p, loaded = head);
        bool any = one_page(t, v, w, run->pages + page, page + 1 < run->n_pages, (tile_part){ 0, 1 });
        for (int h = 0; h < t->heads; h++) {
            float *to = partial_of(p, w, page, head * t->heads + h);
            to[0] = any ? t->m[h] : -INFINITY;
            to[1] = any ? t->s[h] : 0.0f;
            if (any) memcpy(to + 2, t->o + (size_t)h * (size_t)p->v_dim, (size_t)p->v_dim * 4);
        }
    }
    worker_barrier(w);
    const float *sinks = sinks_of(v, w);
    range heads = range_of(p->n_head, 1, w->ith, w->nth);
    for (int h = (int)heads.first; h < heads.last; h++) {
        clear_state(t, p);
        for (int i = 0; i < run->n_pages; i++) {
            const float *from = partial_of(p, w, i, h);
            if (from[0] != -INFINITY) k->attn_merge(state_of(t, p, 0), (attn_part){ from[0], from[1], from + 2 }, p->v_dim);
        }
        if (sinks) add_sink(t, p, k, 0, sinks[h]);
        finish_query(t, w, v, run->first, 0, h);
    }
}

void run_attention(const step *s, worker *w)
{
    const value *v = s->v;
    const attention_params *p = &v->p.attn;
    const kv_group *group = &w->run->kv->groups[w->run->kv->layers[p->layer].group];
    tile t;
    lay_out_tile(&t, v, (char *)w->scratch);
    t.bytes = 0;
    t.rel = v->src[2] && p->rel_buckets ? value_data(v->src[2], w) : NULL;
    if (t.rel) fill_buckets(p->rel_both_ways ? p->rel_buckets / 2 : p->rel_buckets, t.buckets);
    if (!s->heads && v->ne[2] == 1 && w->nth > 1 && p->n_kv_head < 2 * w->nth && group->runs[0].n_pages > 1 &&
        cpu_attention_shared(v, group->runs[0].n_pages) <= w->run->shared_bytes)
        run_split(s, w, &t, &group->runs[0]);
    else run_tiles(s, w, &t, group);
    atomic_fetch_add_explicit(&w->run->cache_bytes, t.bytes, memory_order_relaxed);
}
