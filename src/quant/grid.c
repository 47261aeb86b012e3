/* grid.c - builds the neighbour lists of the codebooks. */
#include "quant/grid.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "quant/codebooks.h"

static const struct grid_rule {
    const uint16_t *codes;
    int entries, digits, near;  /* near: how many of the smallest distances count as neighbours */
} rules[] = {
    { iq2xxs_codes, 256, 8, 2 }, { iq2xs_codes, 512, 8, 2 }, { iq2s_codes, 1024, 8, 1 },
    { iq3xxs_codes, 256, 4, 2 }, { iq3s_codes, 512, 4, 3 },  { iq1s_codes, 2048, 8, 3 },
};
#define N_GRIDS ((int)(sizeof rules / sizeof rules[0]))
#define MAX_ENTRIES 2048
#define MAX_DISTANCE (8 * 4 + 4 * 49) /* more than any sum of squared digit differences */

static _Atomic(grid_index *) built[N_GRIDS];
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

static int grid_of(loam_type type)
{
    switch (type) {
    case LOAM_IQ2_XXS: return 0;
    case LOAM_IQ2_XS: return 1;
    case LOAM_IQ2_S: return 2;
    case LOAM_IQ3_XXS: return 3;
    case LOAM_IQ3_S: return 4;
    case LOAM_IQ1_S: case LOAM_IQ1_M: return 5;
    default: return -1;
    }
}

static int digit_of(const struct grid_rule *r, int code, int i) { return r->digits == 8 ? code >> 2 * i & 3 : code >> 3 * i & 7; }

/* The distances of a point to all entries, and the entries up to the largest that counts. */
typedef struct neighbours {
    uint8_t digit[8][MAX_ENTRIES];   /* of all entries, element by element */
    uint8_t distance[MAX_ENTRIES];
    int count, limit;
} neighbours;

static void measure(const struct grid_rule *r, const int *point, neighbours *nb)
{
    memset(nb->distance, 0, sizeof nb->distance);
    for (int i = 0; i < r->digits; i++)
        for (int e = 0; e < r->entries; e++) {
            int d = nb->digit[i][e] - point[i];
            nb->distance[e] = (uint8_t)(nb->distance[e] + d * d);
        }
    int histogram[MAX_DISTANCE] = { 0 }, distinct = 0;
    for (int e = 0; e < r->entries; e++) histogram[nb->distance[e]]++;
    nb->count = 0;
    for (int d = 0; d < MAX_DISTANCE && distinct < r->near; d++)
        if (histogram[d]) {
            nb->count += histogram[d];
            nb->limit = d;
            distinct++;
        }
}

/* Writes the list of the last measured point from chunk `at` on. */
static void write_list(const struct grid_rule *r, const neighbours *nb, grid_index *g, int at)
{
    int n = 0, chunks = (nb->count + GRID_CHUNK - 1) / GRID_CHUNK;
    uint16_t *list = g->list + at * GRID_CHUNK, *codes = g->list_codes + at * GRID_CHUNK;
    for (int d = 0; d <= nb->limit; d++)
        for (int e = 0; e < r->entries; e++)
            if (nb->distance[e] == d) list[n++] = (uint16_t)e;
    while (n < chunks * GRID_CHUNK) list[n++] = list[0];
    for (int k = 0; k < n; k++) codes[k] = r->codes[list[k]];
}

/* Visits all points: without lists to write it counts their chunks, which it returns. */
static int visit_points(const struct grid_rule *r, grid_index *g, neighbours *nb, bool write)
{
    const int points = r->digits == 8 ? GRID_POINTS : 4096;
    int at = 0;
    for (int p = 0; p < points; p++) {
        int point[8], rest = p;
        for (int i = 0; i < r->digits; i++, rest /= g->base) point[i] = rest % g->base;
        if (g->place[p] >= 0) continue;
        measure(r, point, nb);
        if (write) {
            g->place[p] = -1 - at;
            g->chunks[p] = (uint16_t)((nb->count + GRID_CHUNK - 1) / GRID_CHUNK);
            write_list(r, nb, g, at);
        }
        at += (nb->count + GRID_CHUNK - 1) / GRID_CHUNK;
    }
    return at;
}

static void fill_entries(const struct grid_rule *r, grid_index *g, neighbours *nb)
{
    for (int p = 0; p < GRID_POINTS; p++) g->place[p] = -1;
    for (int e = 0; e < r->entries; e++) {
        int point = 0;
        for (int i = r->digits - 1; i >= 0; i--) {
            int digit = digit_of(r, r->codes[e], i);
            point = point * g->base + digit;
            nb->digit[i][e] = (uint8_t)digit;
            g->entry[e][i] = (int8_t)(r->codes == iq1s_codes ? digit - 1 : 2 * digit + 1);
        }
        g->place[point] = e;
    }
}

static void grid_free(grid_index *g)
{
    if (!g) return;
    mem_free(g->entry);
    mem_free(g->list);
    mem_free(g->list_codes);
    mem_free(g);
}

static grid_index *build(const struct grid_rule *r)
{
    grid_index *g = mem_zalloc(sizeof *g);
    neighbours *nb = mem_zalloc(sizeof *nb);
    bool ok = g && nb;
    if (ok) {
        g->digits = r->digits;
        g->base = r->digits == 8 ? 3 : 8;
        g->bits = r->digits == 8 ? 2 : 3;
        g->codes = r->codes;
        ok = (g->entry = mem_zalloc_array((size_t)r->entries, sizeof *g->entry)) != NULL;
    }
    if (ok) {
        fill_entries(r, g, nb);
        size_t chunks = (size_t)visit_points(r, g, nb, false);
        g->list = mem_alloc_array(chunks * GRID_CHUNK, sizeof *g->list);
        g->list_codes = mem_alloc_array(chunks * GRID_CHUNK, sizeof *g->list_codes);
        ok = g->list && g->list_codes;
    }
    if (ok) visit_points(r, g, nb, true);
    mem_free(nb);
    if (ok) return g;
    grid_free(g);
    return NULL;
}

loam_status grid_prepare(loam_type type, loam_error *err)
{
    int k = grid_of(type);
    if (k < 0 || atomic_load_explicit(&built[k], memory_order_acquire)) return LOAM_OK;
    pthread_mutex_lock(&building);
    grid_index *g = atomic_load_explicit(&built[k], memory_order_relaxed);
    if (!g) {
        g = build(&rules[k]);
        if (g) atomic_store_explicit(&built[k], g, memory_order_release);
    }
    pthread_mutex_unlock(&building);
    return g ? LOAM_OK : fail_nomem(err, "the codebook of an IQ type", sizeof *g);
}

const grid_index *grid_get(loam_type type) { return atomic_load_explicit(&built[grid_of(type)], memory_order_acquire); }
