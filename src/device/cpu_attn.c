/* cpu_attn.c - writing keys and values to the cache, and attention over pages.
 *
 * An item is one tile of tokens of one run (tokens that see the same pages) with one key-value head; the query heads that
 * share it are columns of the same kernel call, so each page is read once for all of them. Pages are taken in ascending
 * order and merged in that order. Where there are fewer items than threads (generation with few key-value heads), pages
 * are dealt out instead and merged afterwards: the same partial results in the same order, so the same bits. */
#include <math.h>
#include <string.h>

#include "base/mathd.h"
#include "device/cpu.h"

#define TILE_QUERIES 64

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

void run_kv_write(const step *s, worker *w)
{
    const value *v = s->v, *key = v->src[0], *val = v->src[1];
    const kernels *k = w->run->k;
    const kv_layer *layer = &w->run->kv->layers[v->p.kv.layer];
    const kv_group *group = &w->run->kv->groups[layer->group];
    const page_shape *shape = &layer->shape;
    uint64_t v_row = shape->v_head_bytes / PAGE_SLOTS;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int32_t i = group->first_slot[t]; i < group->first_slot[t + 1]; i++) {
            int32_t page = group->slots[i] / PAGE_SLOTS, slot = group->slots[i] % PAGE_SLOTS;
            for (int h = 0; h < shape->n_kv_head; h++) {
                page_head at = page_head_at(shape, layer->pages, page, h);
                store_key(k, shape->k_type, row_at(key, w, t, (int64_t)h * shape->k_dim), shape->k_dim, slot, (uint8_t *)(uintptr_t)at.k);
                k->encode[shape->v_type](row_at(val, w, t, (int64_t)h * shape->v_dim),
                                         (uint8_t *)(uintptr_t)at.v + (uint64_t)slot * v_row, shape->v_dim);
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

static uint64_t visible_slots(const attention_params *p, int32_t pos, const int32_t *slot_pos)
{
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
    int heads;                     /* query heads of one key-value head */
    int tokens, n_q;
    const int32_t *pos;            /* of the tile's tokens */
    const float *rel;              /* relative bias [buckets][n_head], NULL: none */
    int16_t buckets[REL_FAR + 1];
} tile;

static int tile_tokens(const attention_params *p)
{
    int heads = p->n_head / p->n_kv_head;
    return heads >= TILE_QUERIES ? 1 : TILE_QUERIES / heads;
}

static size_t up64(size_t n) { return (n + 63) & ~(size_t)63; }

/* Cuts the thread's scratch into the arrays of a tile; returns the bytes used. base NULL only measures. */
static size_t lay_out_tile(tile *t, const attention_params *p, char *base)
{
    size_t n = (size_t)tile_tokens(p) * (size_t)(p->n_head / p->n_kv_head), at = 0;
#define TAKE(field, bytes) (t->field = base ? (void *)(base + at) : NULL, at += up64(bytes))
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
#undef TAKE
    t->heads = p->n_head / p->n_kv_head;
    return at;
}

size_t cpu_attention_scratch(const attention_params *p)
{
    tile t;
    return lay_out_tile(&t, p, NULL);
}

/* Partial results of every page for the one token of a generation step: m, s and o for each query head. */
size_t cpu_attention_shared(const value *v, int64_t max_pages)
{
    const attention_params *p = &v->p.attn;
    return v->ne[2] == 1 ? (size_t)max_pages * (size_t)p->n_head * (size_t)(p->v_dim + 2) * 4 : 0;
}

static void load_queries(tile *t, const value *q, const worker *w, const attention_params *p, int64_t first, int head)
{
    for (int i = 0; i < t->tokens; i++)
        for (int h = 0; h < t->heads; h++)
            w->run->k->scale(t->q + (size_t)(i * t->heads + h) * (size_t)p->k_dim,
                             row_at(q, w, first + i, (int64_t)(head * t->heads + h) * p->k_dim), p->scale, p->k_dim);
}

/* Bias of token i of the tile for the heads that share key-value head `head`. */
static void fill_relative(tile *t, const attention_params *p, int head, int i, const int32_t *slot_pos)
{
    float *to = t->bias + (size_t)i * (size_t)t->heads * PAGE_SLOTS;
    for (int s = 0; s < PAGE_SLOTS; s++) {
        int bucket = slot_pos[s] < 0 ? 0 : bucket_of(p, t->buckets, t->pos[i], slot_pos[s]); /* an empty slot is masked */
        const float *row = t->rel + (size_t)bucket * (size_t)p->n_head;
        for (int h = 0; h < t->heads; h++) to[h * PAGE_SLOTS + s] = row[head * t->heads + h];
    }
}

/* Partial results of the tile against one page; false when no query sees any slot. */
static bool one_page(tile *t, const attention_params *p, const worker *w, int head, int32_t page)
{
    const kv_layer *layer = &w->run->kv->layers[p->layer];
    const int32_t *slot_pos = w->run->kv->groups[layer->group].slot_pos + (int64_t)page * PAGE_SLOTS;
    uint64_t any = 0;
    for (int i = 0; i < t->tokens; i++) {
        uint64_t mask = visible_slots(p, t->pos[i], slot_pos);
        any |= mask;
        for (int h = 0; h < t->heads; h++) t->visible[i * t->heads + h] = mask;
    }
    if (!any) return false;
    bool biased = p->alibi_max_bias > 0.0f || t->rel;
    for (int i = 0; t->rel && i < t->tokens; i++)
        fill_relative(t, p, head, i, slot_pos);
    for (int i = 0; biased && !t->rel && i < t->tokens; i++)
        fill_bias(p, head * t->heads, t->heads, t->pos[i], slot_pos, t->bias + (size_t)i * (size_t)t->heads * PAGE_SLOTS);
    attn_args a = {
        .page = page_head_at(&layer->shape, layer->pages, page, head),
        .k_type = layer->shape.k_type, .v_type = layer->shape.v_type, .k_dim = p->k_dim, .v_dim = p->v_dim,
        .q = t->q, .q_stride = (size_t)p->k_dim, .n_q = t->n_q, .visible = t->visible,
        .softcap = p->softcap, .bias = biased ? t->bias : NULL,
        .m = t->m, .s = t->s, .o = t->o, .o_stride = (size_t)p->v_dim, .scratch = t->kernel,
    };
    w->run->k->attn(&a);
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
}

static const float *sinks_of(const value *v, const worker *w)
{
    return v->src[2] && !v->p.attn.rel_buckets ? value_data(v->src[2], w) : NULL;
}

static void run_item(const step *s, worker *w, tile *t, const kv_run *run, int64_t first, int head)
{
    const value *v = s->v;
    const attention_params *p = &v->p.attn;
    const kernels *k = w->run->k;
    t->tokens = (int)min64(tile_tokens(p), run->first + run->count - first);
    t->n_q = t->tokens * t->heads;
    t->pos = w->run->kv->pos + first;
    load_queries(t, v->src[0], w, p, first, head);
    clear_state(t, p);
    for (int i = 0; i < run->n_pages; i++) {
        if (!one_page(t, p, w, head, run->pages[i])) continue;
        for (int q = 0; q < t->n_q; q++)
            k->attn_merge(state_of(t, p, q), (attn_part){ t->m[q], t->s[q], t->o + (size_t)q * (size_t)p->v_dim }, p->v_dim);
    }
    const float *sinks = sinks_of(v, w);
    for (int q = 0; q < t->n_q; q++) {
        int h = head * t->heads + q % t->heads;
        if (sinks) add_sink(t, p, k, q, sinks[h]);
        finish_query(t, w, v, first + q / t->heads, q, h);
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
    t->tokens = 1, t->n_q = t->heads, t->pos = w->run->kv->pos + run->first;
    range r = range_of((int64_t)run->n_pages * p->n_kv_head, 1, w->ith, w->nth);
    for (int64_t i = r.first; i < r.last; i++) {
        int64_t page = i % run->n_pages;
        int head = (int)(i / run->n_pages);
        load_queries(t, v->src[0], w, p, run->first, head);
        bool any = one_page(t, p, w, head, run->pages[page]);
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
    lay_out_tile(&t, p, (char *)w->scratch);
    t.rel = v->src[2] && p->rel_buckets ? value_data(v->src[2], w) : NULL;
    if (t.rel) fill_buckets(p->rel_both_ways ? p->rel_buckets / 2 : p->rel_buckets, t.buckets);
    if (v->ne[2] == 1 && w->nth > 1 && p->n_kv_head < 2 * w->nth && group->runs[0].n_pages > 1 &&
        cpu_attention_shared(v, group->runs[0].n_pages) <= w->run->shared_bytes) {
        run_split(s, w, &t, &group->runs[0]);
        return;
    }
    int64_t item = 0, step_tokens = tile_tokens(p);
    for (int r = 0; r < group->n_runs; r++) {
        const kv_run *run = &group->runs[r];
        for (int64_t first = run->first; first < run->first + run->count; first += step_tokens)
            for (int head = 0; head < p->n_kv_head; head++, item++)
                if (item % w->nth == w->ith && !worker_stopped(w)) run_item(s, w, &t, run, first, head);
    }
}
