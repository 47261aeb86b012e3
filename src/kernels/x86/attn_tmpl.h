/* attn_tmpl.h - attention over one page in registers, compiled once per instruction set: same bits as ref/attn.c.
 * Included after a vec_*.h and an attn_blocks.h; defines attn() and attn_merge().
 *
 * Both products of attention have one form: sums[query][column] = sum over i of a[query][i] * b[i][column],
 *
 *   scores   a = queries          i = dimensions, ascending   b = keys [k_dim][64]     columns = slots
 *   values   a = probabilities    i = slots, ascending        b = values [64][v_dim]   columns = dimensions
 *
 * so one tile body (QUERIES x VECTORS registers of sums) does both. Few queries read the page in its own type, as they
 * are bound by memory; many queries first turn the page into floats in scratch, once. */
#include <float.h>

#include "kernels/kernels.h"
#include "kernels/ref/attn.h"
#include "kernels/ref/mathf.h"
#include "kernels/x86/mathv.h"

/* What is fetched while something else is computed: `step` bytes with every row. NULL: nothing. */
typedef struct fetch {
    const uint8_t *p;
    size_t step;
} fetch;

/* A matrix whose rows are `stride` elements apart: of a float type, or of levels with scales (attn_blocks.h). */
typedef struct page_matrix {
    enum matrix_kind { AS_F32, AS_F16, AS_BF16, AS_KEY_LEVELS, AS_VALUE_LEVELS } kind;
    const uint8_t *data;
    size_t stride, col;      /* col: first column that is looked at */
    level_page levels;
    fetch ahead;             /* comes along while the rows are used */
} page_matrix;

/* Rows of floats, one per query. */
typedef struct query_rows {
    float *p;
    size_t stride;
} query_rows;

/* How many sums a tile has; always constants, so that the loops unroll. */
typedef struct tile_form {
    int queries, vectors;
} tile_form;
typedef nf tile_sums[TILE_QUERIES][TILE_VECTORS];

/* N_LANES values of row i from column m.col + v * N_LANES on. */
VEC nf load_row(page_matrix m, size_t i, size_t v)
{
    size_t col = m.col + v * N_LANES;
    const uint8_t *p = m.data;
    switch (m.kind) {
    case AS_F16: return n_load_f16(p + 2 * (i * m.stride + col));
    case AS_BF16: return n_load_bf16(p + 2 * (i * m.stride + col));
    case AS_KEY_LEVELS:
        p = m.levels.q + col / 16 * m.levels.row + i * 16 + col % 16;
        return n_mul(n_of_i8(p), n_load(m.levels.d + i / 32 * PAGE_SLOTS + col));
    case AS_VALUE_LEVELS:
        p = m.levels.q + i * m.levels.row + col / 32 * m.levels.block + col % 32;
        return n_mul(n_of_i8(p), n_set(m.levels.d[i * m.stride / 32 + col / 32]));
    default: return n_load((const float *)(const void *)p + i * m.stride + col);
    }
}

VEC page_matrix from_column(page_matrix m, size_t col)
{
    m.col = col;
    return m;
}

VEC void fetch_row(fetch f, size_t i)
{
    if (!f.p) return;
    const char *at = (const char *)f.p + i * f.step;
    __builtin_prefetch(at, 0, 3);
    if (f.step > 64) __builtin_prefetch(at + 64, 0, 3);
}

/* Adds row i of b, times a[query][i], for the queries whose flag in `who` is set. */
VEC void tile_step(tile_sums sums, query_rows a, page_matrix b, size_t i, unsigned who, const tile_form form)
{
    nf row[TILE_VECTORS];
    UNROLL(4) for (int v = 0; v < form.vectors; v++) row[v] = load_row(b, i, (size_t)v);
    UNROLL(6) for (int q = 0; q < form.queries; q++) {
        if (!(who >> q & 1)) continue;
        nf f = n_set(a.p[(size_t)q * a.stride + i]);
        if (form.vectors > 1) HOLD(f);
        UNROLL(4) for (int v = 0; v < form.vectors; v++) sums[q][v] = n_fma(f, row[v], sums[q][v]);
    }
}
#define EVERY (~0u)

VEC void tile_clear(tile_sums sums, const tile_form form)
{
    UNROLL(6) for (int q = 0; q < form.queries; q++)
        UNROLL(4) for (int v = 0; v < form.vectors; v++) sums[q][v] = n_zero();
}

VEC void tile_store(tile_sums sums, query_rows out, const tile_form form)
{
    UNROLL(6) for (int q = 0; q < form.queries; q++)
        UNROLL(4) for (int v = 0; v < form.vectors; v++) n_store(out.p + (size_t)q * out.stride + v * N_LANES, sums[q][v]);
}

VEC void score_columns(query_rows query, size_t k_dim, page_matrix keys, query_rows scores, const tile_form form)
{
    tile_sums sums;
    tile_clear(sums, form);
    for (size_t d = 0; d < k_dim; d++) {
        fetch_row(keys.ahead, d);
        tile_step(sums, query, keys, d, EVERY, form);
    }
    tile_store(sums, (query_rows){ scores.p + keys.col, scores.stride }, form);
}

#define SCORE_COLUMNS (TILE_VECTORS * N_LANES)

/* scores[q][n] of some queries, for the slots up to the last that anybody sees; n is PAGE_SLOTS or half of it. */
VEC void tile_scores(const attn_args *a, int first, page_matrix keys, query_rows scores, size_t n, const int queries)
{
    const query_rows query = { (float *)(uintptr_t)(a->q + (size_t)first * a->q_stride), a->q_stride };
    size_t k_dim = (size_t)a->k_dim;
    if (n < SCORE_COLUMNS) {
        score_columns(query, k_dim, keys, scores, (tile_form){ queries, TILE_VECTORS / 2 });
        return;
    }
    for (size_t col = 0; col < n; col += SCORE_COLUMNS) {
        score_columns(query, k_dim, from_column(keys, col), scores, (tile_form){ queries, TILE_VECTORS });
        keys.ahead.p = NULL;
    }
}

/* Slots that every query of a tile sees go in long runs; where only some see a slot, only those sums are touched. */
typedef struct tile_slots {
    uint64_t some, all;
    const uint64_t *visible;
} tile_slots;

VEC void tile_values_at(float *p, tile_slots slots, page_matrix values, query_rows out, const tile_form form)
{
    const query_rows rows = { p, PAGE_SLOTS };
    tile_sums sums;
    tile_clear(sums, form);
    for (uint64_t left = slots.some; left;) {
        int s = __builtin_ctzll(left);
        if (slots.all >> s & 1) {
            uint64_t after = ~(slots.all >> s);
            int end = after ? s + __builtin_ctzll(after) : PAGE_SLOTS;
            if (end > PAGE_SLOTS) end = PAGE_SLOTS;
            for (; s < end; s++) {
                fetch_row(values.ahead, (size_t)s);
                tile_step(sums, rows, values, (size_t)s, EVERY, form);
            }
            left = end < PAGE_SLOTS ? left & (UINT64_MAX << end) : 0;
        } else {
            unsigned who = 0;
            for (int q = 0; q < form.queries; q++) who |= (unsigned)(slots.visible[q] >> s & 1) << q;
            tile_step(sums, rows, values, (size_t)s, who, form);
            left &= left - 1;
        }
    }
    tile_store(sums, out, form);
}

/* out[q][dim], dim a multiple of 16. */
VEC void tile_values(float *p, tile_slots slots, page_matrix values, int dim, query_rows out, const int queries)
{
    size_t col = 0, n = (size_t)dim;
    for (; col + TILE_VECTORS * N_LANES <= n; col += TILE_VECTORS * N_LANES) {
        tile_values_at(p, slots, from_column(values, col), (query_rows){ out.p + col, out.stride },
                       (tile_form){ queries, TILE_VECTORS });
        if (values.ahead.p) values.ahead.p += PAGE_SLOTS * values.ahead.step;
    }
    values.ahead.p = NULL;
    for (; col < n; col += N_LANES)
        tile_values_at(p, slots, from_column(values, col), (query_rows){ out.p + col, out.stride }, (tile_form){ queries, 1 });
}

/* ---- from scores to probabilities ---- */

VEC vm visible_lanes(uint64_t visible, int v) { return v_bits((uint32_t)(visible >> 16 * v) & 0xFFFF); }

static void normalize(const attn_args *a, int q, float *p)
{
    uint64_t visible = a->visible[q];
    vf x[4], top = v_set(-FLT_MAX), cap = v_set(a->softcap);
    UNROLL(4) for (int v = 0; v < 4; v++) {
        x[v] = v_load(p + 16 * v);
        if (a->softcap != 0.0f) x[v] = v_mul(cap, v_tanh(v_div(x[v], cap)));
        if (a->bias) x[v] = v_add(x[v], v_load(a->bias + (size_t)q * PAGE_SLOTS + 16 * v));
        top = v_select(visible_lanes(visible, v), v_max(x[v], top), top);
    }
    float max = v_fold_max(top);
    vf m = v_set(max), sum = v_zero();
    UNROLL(4) for (int v = 0; v < 4; v++) {
        x[v] = v_keep(visible_lanes(visible, v), v_exp(v_sub(x[v], m)));
        v_store(p + 16 * v, x[v]);
        sum = v_add(sum, x[v]);
    }
    a->m[q] = visible ? max : -INFINITY;
    a->s[q] = v_fold(sum);
}

/* ---- a tile of queries ---- */

typedef struct tile_page {
    page_matrix keys, values;      /* values has at least attn_pad(v_dim) columns */
} tile_page;

/* out is attn_pad(v_dim) wide where v_dim is odd (rows in scratch). */
VEC void tile_typed(const attn_args *a, int first, const tile_page *page, query_rows out, const enum matrix_kind kind,
                    const int queries)
{
    tile_slots slots = { 0, UINT64_MAX, a->visible + first };
    for (int q = 0; q < queries; q++) {
        slots.some |= slots.visible[q];
        slots.all &= slots.visible[q];
    }
    _Alignas(64) float p[TILE_QUERIES * PAGE_SLOTS];
    page_matrix keys = page->keys, values = page->values;
    keys.kind = kind, values.kind = kind == AS_KEY_LEVELS ? AS_VALUE_LEVELS : kind;
    bool half = slots.some <= UINT32_MAX;
    if (half) memset(p, 0, sizeof p);
    if (slots.some) tile_scores(a, first, keys, (query_rows){ p, PAGE_SLOTS }, half ? 32 : 64, queries);
    for (int q = 0; q < queries; q++) normalize(a, first + q, p + q * PAGE_SLOTS);
    tile_values(p, slots, values, (int)attn_pad(a->v_dim), out, queries);
}

#define TILE(n) \
    static __attribute__((noinline)) void tile_##n(const attn_args *a, int first, const tile_page *page, query_rows out) \
    { \
        switch (page->keys.kind) { \
        case AS_F16: tile_typed(a, first, page, out, AS_F16, n); break; \
        case AS_BF16: tile_typed(a, first, page, out, AS_BF16, n); break; \
        case AS_KEY_LEVELS: tile_typed(a, first, page, out, AS_KEY_LEVELS, n); break; \
        default: tile_typed(a, first, page, out, AS_F32, n); break; \
        } \
    }
TILE(1)
TILE(2)
TILE(3)
#if TILE_QUERIES > 3
TILE(4)
TILE(5)
TILE(6)
#endif

typedef void (*tile_fn)(const attn_args *a, int first, const tile_page *page, query_rows out);
static const tile_fn tiles[TILE_QUERIES] = { tile_1, tile_2, tile_3,
#if TILE_QUERIES > 3
                                             tile_4, tile_5, tile_6
#endif
};

/* ---- pages ---- */

static row_decode_fn decoder(loam_type t);

static bool is_float(loam_type t) { return dtype_table[t].values == 1; }

static page_matrix typed(loam_type t, const void *data, size_t stride)
{
    return (page_matrix){ .kind = t == LOAM_F16 ? AS_F16 : t == LOAM_BF16 ? AS_BF16 : AS_F32, .data = data, .stride = stride };
}

static page_matrix float_keys(const attn_args *a, uint64_t some, float *out)
{
    if (a->k_type == LOAM_F32) return typed(LOAM_F32, a->page.k, PAGE_SLOTS);
    if (is_float(a->k_type)) decoder(a->k_type)(a->page.k, out, (int64_t)a->k_dim * PAGE_SLOTS);
    else block_keys(a, some, out);
    return typed(LOAM_F32, out, PAGE_SLOTS);
}

static page_matrix float_values(const attn_args *a, uint64_t some, float *out)
{
    size_t stride = attn_pad(a->v_dim), bytes = (size_t)a->v_dim * dtype_table[a->v_type].bytes;
    if (a->v_type == LOAM_F32 && a->v_dim % 16 == 0) return typed(LOAM_F32, a->page.v, stride);
    if (!is_float(a->v_type)) {
        block_values(a, some, out);
        return typed(LOAM_F32, out, stride);
    }
    for (; some; some &= some - 1) {
        size_t s = (size_t)__builtin_ctzll(some);
        float *row = out + s * stride;
        decoder(a->v_type)((const uint8_t *)a->page.v + s * bytes, row, a->v_dim);
        memset(row + a->v_dim, 0, (stride - (size_t)a->v_dim) * sizeof *row);
    }
    return typed(LOAM_F32, out, stride);
}

/* The page in a form that the tiles read: as it is or as levels for few queries, which are bound by memory; as floats, once,
 * for many. */
static void make_page(const attn_args *a, uint64_t some, tile_page *page)
{
    float *keys = a->scratch, *values = keys + PAGE_SLOTS * attn_pad(a->k_dim);
    bool few = a->n_q <= 2 * TILE_QUERIES;
    if (few && a->k_type == a->v_type && is_float(a->k_type) && a->v_dim % 16 == 0) {
        page->keys = typed(a->k_type, a->page.k, PAGE_SLOTS);
        page->values = typed(a->v_type, a->page.v, (size_t)a->v_dim);
    } else if (few && has_levels(a->k_type) && has_levels(a->v_type)) {
        page->keys = (page_matrix){ .kind = AS_KEY_LEVELS, .stride = PAGE_SLOTS };
        page->values = (page_matrix){ .kind = AS_VALUE_LEVELS, .stride = (size_t)a->v_dim };
        level_keys(a, some, &page->keys.levels, keys);
        level_values(a, some, &page->values.levels, values);
    } else {
        page->keys = float_keys(a, some, keys);
        page->values = float_values(a, some, values);
    }
}

/* `bytes` at p spread over n rows. */
static fetch spread(const void *p, uint64_t bytes, size_t n)
{
    return n ? (fetch){ p, bytes / n } : (fetch){ NULL, 0 };
}

/* Memory is never left idle: values that are read as they lie come while scores are computed, and then the next keys; where
 * the page is turned into another form first, the whole next page comes meanwhile. */
static void plan_fetches(const attn_args *a, tile_page *page)
{
    uint64_t k_bytes = 0, v_bytes = 0;
    dtype_row_bytes(a->k_type, (int64_t)a->k_dim * PAGE_SLOTS, &k_bytes);
    dtype_row_bytes(a->v_type, (int64_t)a->v_dim * PAGE_SLOTS, &v_bytes);
    size_t k_dim = (size_t)a->k_dim, slots = (size_t)a->v_dim / (TILE_VECTORS * N_LANES) * PAGE_SLOTS;
    bool as_it_lies = page->values.data == a->page.v;
    page->keys.ahead = as_it_lies ? spread(a->page.v, v_bytes, k_dim) : spread(a->next.k, k_bytes, k_dim);
    page->values.ahead = as_it_lies ? spread(a->next.k, k_bytes, slots) : spread(a->next.v, v_bytes, slots);
}

static void attn(const attn_args *a)
{
    uint64_t some = 0;
    for (int q = 0; q < a->n_q; q++) some |= a->visible[q];
    float *rows = (float *)a->scratch + PAGE_SLOTS * (attn_pad(a->k_dim) + attn_pad(a->v_dim));
    bool even = a->v_dim % 16 == 0;
    tile_page page = { 0 };
    make_page(a, some, &page);
    plan_fetches(a, &page);
    int n_tiles = (a->n_q + TILE_QUERIES - 1) / TILE_QUERIES;
    for (int t = 0, first = 0; t < n_tiles; t++) {
        int n = (a->n_q - first) / (n_tiles - t); /* tiles of even size */
        float *o = a->o + (size_t)first * a->o_stride;
        tiles[n - 1](a, first, &page, even ? (query_rows){ o, a->o_stride } : (query_rows){ rows, attn_pad(a->v_dim) });
        for (int q = 0; q < n && !even; q++)
            memcpy(o + (size_t)q * a->o_stride, rows + (size_t)q * attn_pad(a->v_dim), (size_t)a->v_dim * sizeof *o);
        first += n;
        page.keys.ahead.p = page.values.ahead.p = NULL;
    }
}

static void attn_merge(attn_state into, attn_part part, int v_dim)
{
    if (part.m == -INFINITY) return;
    float max = part.m > *into.m ? part.m : *into.m, a = math_exp(*into.m - max), b = math_exp(part.m - max);
    *into.m = max;
    *into.s = fmaf(*into.s, a, part.s * b);
    int d = 0;
    vf va = v_set(a), vb = v_set(b);
    for (; d + 16 <= v_dim; d += 16) v_store(into.o + d, v_fma(v_load(into.o + d), va, v_mul(v_load(part.o + d), vb)));
    for (; d < v_dim; d++) into.o[d] = fmaf(into.o[d], a, part.o[d] * b);
}
