/* attn_tmpl.h - attention over one page in registers, compiled once per instruction set: same bits as ref/attn.c.
 * Included after a vec_*.h; defines attn() and attn_merge().
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

/* A matrix of a float type whose rows are `stride` elements apart. */
typedef struct page_matrix {
    loam_type type;
    const uint8_t *data;
    size_t stride;
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

VEC nf load_as(loam_type type, const uint8_t *p, size_t i)
{
    if (type == LOAM_F16) return n_load_f16(p + 2 * i);
    if (type == LOAM_BF16) return n_load_bf16(p + 2 * i);
    return n_load((const float *)(const void *)p + i);
}

VEC page_matrix from_column(page_matrix m, size_t col)
{
    m.data += col * (m.type == LOAM_F32 ? 4 : 2);
    return m;
}

/* Adds row i of b, times a[query][i], for the queries whose flag in `who` is set. */
VEC void tile_step(tile_sums sums, query_rows a, page_matrix b, size_t i, unsigned who, const tile_form form)
{
    nf row[TILE_VECTORS];
    UNROLL(4) for (int v = 0; v < form.vectors; v++) row[v] = load_as(b.type, b.data, i * b.stride + (size_t)v * N_LANES);
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

/* scores[q][64] of some queries. ahead: 16-bit values to fetch meanwhile (memory runs on while this computes), or NULL. */
VEC void tile_scores(const attn_args *a, int first, page_matrix keys, const uint8_t *ahead, float *scores, const int queries)
{
    const query_rows query = { (float *)(uintptr_t)(a->q + (size_t)first * a->q_stride), a->q_stride };
    const tile_form form = { queries, TILE_VECTORS };
    for (size_t col = 0; col < PAGE_SLOTS; col += TILE_VECTORS * N_LANES) {
        tile_sums sums;
        tile_clear(sums, form);
        for (size_t d = 0; d < (size_t)a->k_dim; d++) {
            if (ahead && col == 0) { /* the keys come soon, the values after them */
                const char *k = (const char *)keys.data + (d + 16) * 128, *v = (const char *)ahead + d * 128;
                _mm_prefetch(k, _MM_HINT_T0);
                _mm_prefetch(k + 64, _MM_HINT_T0);
                _mm_prefetch(v, _MM_HINT_T1);
                _mm_prefetch(v + 64, _MM_HINT_T1);
            }
            tile_step(sums, query, from_column(keys, col), d, EVERY, form);
        }
        tile_store(sums, (query_rows){ scores + col, PAGE_SLOTS }, form);
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
            for (; s < end; s++) tile_step(sums, rows, values, (size_t)s, EVERY, form);
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
    for (; col + TILE_VECTORS * N_LANES <= n; col += TILE_VECTORS * N_LANES)
        tile_values_at(p, slots, from_column(values, col), (query_rows){ out.p + col, out.stride },
                       (tile_form){ queries, TILE_VECTORS });
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

/* values has at least attn_pad(v_dim) columns; out is that wide where v_dim is odd (rows in scratch). */
VEC void tile_typed(const attn_args *a, int first, page_matrix keys, page_matrix values, query_rows out, const int queries)
{
    tile_slots slots = { 0, UINT64_MAX, a->visible + first };
    for (int q = 0; q < queries; q++) {
        slots.some |= slots.visible[q];
        slots.all &= slots.visible[q];
    }
    _Alignas(64) float p[TILE_QUERIES * PAGE_SLOTS];
    if (slots.some) tile_scores(a, first, keys, keys.type == LOAM_F32 ? NULL : values.data, p, queries);
    else memset(p, 0, sizeof p);
    for (int q = 0; q < queries; q++) normalize(a, first + q, p + q * PAGE_SLOTS);
    tile_values(p, slots, values, (int)attn_pad(a->v_dim), out, queries);
}

VEC page_matrix as(loam_type type, page_matrix m) { return (page_matrix){ type, m.data, m.stride }; }

#define TILE(n) \
    static __attribute__((noinline)) void tile_##n(const attn_args *a, int first, page_matrix keys, page_matrix values, \
                                                   query_rows out) \
    { \
        if (keys.type == LOAM_F16) tile_typed(a, first, as(LOAM_F16, keys), as(LOAM_F16, values), out, n); \
        else if (keys.type == LOAM_BF16) tile_typed(a, first, as(LOAM_BF16, keys), as(LOAM_BF16, values), out, n); \
        else tile_typed(a, first, as(LOAM_F32, keys), as(LOAM_F32, values), out, n); \
    }
TILE(1)
TILE(2)
TILE(3)
#if TILE_QUERIES > 3
TILE(4)
TILE(5)
TILE(6)
#endif

typedef void (*tile_fn)(const attn_args *a, int first, page_matrix keys, page_matrix values, query_rows out);
static const tile_fn tiles[TILE_QUERIES] = { tile_1, tile_2, tile_3,
#if TILE_QUERIES > 3
                                             tile_4, tile_5, tile_6
#endif
};

/* ---- pages as floats ---- */

static row_decode_fn decoder(loam_type t);

static size_t row_bytes(loam_type t, int dim)
{
    uint64_t bytes = 0;
    dtype_row_bytes(t, dim, &bytes);
    return (size_t)bytes;
}

static page_matrix float_keys(const attn_args *a, float *out, float *rows)
{
    page_matrix m = { LOAM_F32, (const uint8_t *)out, PAGE_SLOTS };
    row_decode_fn decode = decoder(a->k_type);
    if (dtype_table[a->k_type].values == 1) {
        decode(a->page.k, out, (int64_t)a->k_dim * PAGE_SLOTS);
        return m;
    }
    size_t bytes = row_bytes(a->k_type, a->k_dim);
    for (int s = 0; s < PAGE_SLOTS; s += 16) {
        for (int i = 0; i < 16; i++)
            decode((const uint8_t *)a->page.k + (size_t)(s + i) * bytes, rows + (size_t)i * (size_t)a->k_dim, a->k_dim);
        for (int d = 0; d < a->k_dim; d += 16) /* block types have at least 32 values */
            v_transpose(rows + d, (size_t)a->k_dim, out + (size_t)d * PAGE_SLOTS + s, PAGE_SLOTS);
    }
    return m;
}

static page_matrix float_values(const attn_args *a, float *out, uint64_t some)
{
    size_t bytes = row_bytes(a->v_type, a->v_dim), stride = attn_pad(a->v_dim);
    row_decode_fn decode = decoder(a->v_type);
    for (; some; some &= some - 1) {
        int s = __builtin_ctzll(some);
        float *row = out + (size_t)s * stride;
        decode((const uint8_t *)a->page.v + (size_t)s * bytes, row, a->v_dim);
        memset(row + a->v_dim, 0, (stride - (size_t)a->v_dim) * sizeof *row);
    }
    return (page_matrix){ LOAM_F32, (const uint8_t *)out, stride };
}

static void attn(const attn_args *a)
{
    float *keys_at = a->scratch, *values_at = keys_at + PAGE_SLOTS * attn_pad(a->k_dim);
    float *rows = values_at + PAGE_SLOTS * attn_pad(a->v_dim);
    bool even = a->v_dim % 16 == 0;
    bool floats = a->k_type == a->v_type && dtype_table[a->k_type].values == 1;
    bool direct = floats && even && (a->n_q <= 2 * TILE_QUERIES || a->k_type == LOAM_F32);
    page_matrix keys = { a->k_type, a->page.k, PAGE_SLOTS }, values = { a->v_type, a->page.v, (size_t)a->v_dim };
    if (!direct) {
        uint64_t some = 0;
        for (int q = 0; q < a->n_q; q++) some |= a->visible[q];
        if (some && a->k_type != LOAM_F32) keys = float_keys(a, keys_at, rows);
        if (a->v_type != LOAM_F32 || !even) values = float_values(a, values_at, some);
        keys.type = values.type = LOAM_F32;
    }
    int n_tiles = (a->n_q + TILE_QUERIES - 1) / TILE_QUERIES;
    for (int t = 0, first = 0; t < n_tiles; t++) {
        int n = (a->n_q - first) / (n_tiles - t); /* tiles of even size */
        float *o = a->o + (size_t)first * a->o_stride;
        tiles[n - 1](a, first, keys, values, even ? (query_rows){ o, a->o_stride } : (query_rows){ rows, attn_pad(a->v_dim) });
        for (int q = 0; q < n && !even; q++)
            memcpy(o + (size_t)q * a->o_stride, rows + (size_t)q * attn_pad(a->v_dim), (size_t)a->v_dim * sizeof *o);
        first += n;
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
