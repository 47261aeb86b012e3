/* gemm.c - blocking, packing and sharing of gemm.h; the tiles are in ref/gemm.c and x86/. */
#include "kernels/gemm.h"

#include <string.h>

#define BLOCK_K 384   /* depth of panels at most: those of A stay in the first cache */
#define CODED_K 256   /* the same for coded rows along k: a multiple of every block of values */
#define BLOCK_N 384   /* columns of B packed at once: they stay in the second */
#define MAX_LANES 32  /* the widest tile */
#define GROUP 8       /* panels of A that are packed together */
#define GROUP_K 16    /* rows at a time, so that each line of memory is fetched once for all of them */
#define MAX_TILE (32 * 32)

typedef struct space {
    float *b, *a, *tile, *rows; /* packed B, a group of panels of A, an incomplete tile, decoded rows */
} space;

typedef struct span {
    int64_t first, last;
} span;

/* The part of the product that is at work: columns and depth. */
typedef struct chunk {
    int64_t n0, n, k0, k;
} chunk;

#define B_FLOATS ((size_t)BLOCK_K * (BLOCK_N + MAX_LANES) + GEMM_SPILL)
#define A_PANEL ((int64_t)BLOCK_K * MAX_LANES / 2 + GEMM_SPILL)
#define A_FLOATS ((size_t)GROUP * A_PANEL)
#define ROW_FLOATS ((size_t)MAX_LANES * BLOCK_K > BLOCK_N ? (size_t)MAX_LANES * BLOCK_K : (size_t)BLOCK_N)

size_t gemm_scratch(void) { return (B_FLOATS + A_FLOATS + MAX_TILE + ROW_FLOATS) * sizeof(float) + 256; }

static space cut(void *scratch)
{
    float *p = scratch;
    return (space){ p, p + B_FLOATS, p + B_FLOATS + A_FLOATS, p + B_FLOATS + A_FLOATS + MAX_TILE };
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The chunk's part of B as panels of nr lanes, each k deep. */
static void pack_b(const kernels *ks, const gemm_args *g, const space *s, const chunk *at)
{
    int64_t n0 = at->n0, n = at->n, k0 = at->k0, k = at->k;
    const gemm_kernel *t = ks->gemm;
    const dtype_info *type = &dtype_table[g->b_type];
    bool plain = g->b_type == LOAM_F32;
    int nr = t->nr;
    if (g->b_turned) {
        for (int64_t j = 0; j < n; j += nr) {
            int lanes = (int)least(nr, n - j);
            const char *from = (const char *)g->b + (n0 + j) * g->b_stride + k0 / type->values * type->bytes;
            float *panel = s->b + j * k;
            if (plain) {
                t->turn((const float *)from, g->b_stride / 4, lanes, k, panel, nr);
                continue;
            }
            for (int i = 0; i < lanes; i++) ks->decode[g->b_type](from + i * g->b_stride, s->rows + i * BLOCK_K, k);
            t->turn(s->rows, BLOCK_K, lanes, k, panel, nr);
        }
        return;
    }
    const char *from = (const char *)g->b + k0 * g->b_stride + n0 / type->values * type->bytes;
    if (plain) {
        for (int64_t j = 0; j < n; j += nr)
            t->lay((const float *)from + j, g->b_stride / 4, (int)least(nr, n - j), k, s->b + j * k, nr);
        return;
    }
    for (int64_t p = 0; p < k; p++) {
        ks->decode[g->b_type](from + p * g->b_stride, s->rows, n);
        for (int64_t j = 0; j < n; j += nr) {
            float *to = s->b + j * k + p * nr;
            int64_t have = least(nr, n - j);
            memcpy(to, s->rows + j, (size_t)have * 4);
            memset(to + have, 0, (size_t)(nr - have) * 4);
        }
    }
}

/* Rows [i, last) of A as panels, A_PANEL floats apart. */
static void pack_a(const gemm_kernel *t, const gemm_args *g, float *panels, span rows, const chunk *at)
{
    const float *from = g->a + rows.first * g->a_row + at->k0 * g->a_col;
    int64_t n = rows.last - rows.first;
    if (g->a_col == 1) {
        for (int64_t i = 0; i < n; i += t->mr) t->turn(from + i * g->a_row, g->a_row, (int)least(t->mr, n - i), at->k, panels + i / t->mr * A_PANEL, t->mr);
        return;
    }
    for (int64_t p = 0; p < at->k; p += GROUP_K)
        for (int64_t i = 0; i < n; i += t->mr)
            t->lay(from + p * g->a_col + i, g->a_col, (int)least(t->mr, n - i), least(GROUP_K, at->k - p), panels + i / t->mr * A_PANEL + p * t->mr, t->mr);
}

typedef struct corner {
    float *c;
    int64_t rows, cols, stride;
} corner;

/* A tile at the edge goes through a whole one. */
static void edge_tile(const gemm_kernel *t, float *whole, int64_t k, const float *const ab[2], const corner *e, bool add)
{
    for (int64_t r = 0; r < e->rows && add; r++) memcpy(whole + r * t->nr, e->c + r * e->stride, (size_t)e->cols * 4);
    t->tile(k, ab[0], ab[1], whole, t->nr, add);
    for (int64_t r = 0; r < e->rows; r++) memcpy(e->c + r * e->stride, whole + r * t->nr, (size_t)e->cols * 4);
}

static span share(int64_t n, int64_t unit, int ith, int nth)
{
    int64_t units = (n + unit - 1) / unit;
    return (span){ least(n, units * ith / nth * unit), least(n, units * (ith + 1) / nth * unit) };
}

/* All tiles of a group of rows in the chunk's columns. */
static void tiles(const gemm_kernel *t, const gemm_args *g, const space *s, span rows, const chunk *at)
{
    bool add = g->add || at->k0 > 0;
    for (int64_t i = rows.first; i < rows.last; i += t->mr) {
        const float *a = s->a + (i - rows.first) / t->mr * A_PANEL;
        for (int64_t j = 0; j < at->n; j += t->nr) {
            const float *b = s->b + j * at->k;
            corner e = { g->c + i * g->c_stride + at->n0 + j, least(t->mr, rows.last - i), least(t->nr, at->n - j), g->c_stride };
            if (e.rows == t->mr && e.cols == t->nr) t->tile(at->k, a, b, e.c, g->c_stride, add);
            else edge_tile(t, s->tile, at->k, (const float *const[2]){ a, b }, &e, add);
        }
    }
}

/* Panels of equal depth: a shallow one has to load and store its sums as often as a deep one. */
static int64_t depth_of(const gemm_args *g)
{
    if (g->b_turned && dtype_table[g->b_type].values > 1) return CODED_K;
    int64_t panels = (g->k + BLOCK_K - 1) / BLOCK_K, even = (g->k + panels - 1) / panels;
    return (even + 15) / 16 * 16;
}

static void block(const kernels *ks, const gemm_args *g, const space *s, span rows, span cols)
{
    const gemm_kernel *t = ks->gemm;
    int64_t depth = g->k > 0 ? depth_of(g) : 1;
    for (int64_t n0 = cols.first; n0 < cols.last; n0 += BLOCK_N)
        for (int64_t k0 = 0; k0 < g->k; k0 += depth) {
            chunk at = { n0, least(BLOCK_N, cols.last - n0), k0, least(depth, g->k - k0) };
            pack_b(ks, g, s, &at);
            for (int64_t i = rows.first; i < rows.last; i += GROUP * t->mr) {
                span group = { i, least(rows.last, i + GROUP * t->mr) };
                pack_a(t, g, s->a, group, &at);
                tiles(t, g, s, group, &at);
            }
        }
}

/* Threads form a grid over C; of all grids the one that packs least twice. Stored blocks are not cut. */
void gemm(const kernels *ks, const gemm_args *g, int ith, int nth, void *scratch)
{
    if (g->k == 0 && !g->add)
        for (int64_t i = 0; ith == 0 && i < g->m; i++) memset(g->c + i * g->c_stride, 0, (size_t)g->n * 4);
    int64_t best = INT64_MAX;
    int down = 1;
    bool blocks = g->b_type != LOAM_F32;
    for (int d = 1; d <= nth; d++) {
        if (nth % d) continue;
        /* Decoding B costs much more than packing it. */
        int64_t cost = g->m / d + (blocks ? 4 : 1) * (g->n / (nth / d));
        if (cost < best) best = cost, down = d;
    }
    int across = nth / down;
    int64_t unit = g->b_turned || !blocks ? ks->gemm->nr : 256;
    span rows = share(g->m, ks->gemm->mr, ith / across, down), cols = share(g->n, unit, ith % across, across);
    space s = cut(scratch);
    block(ks, g, &s, rows, cols);
}
