/* mul.c - integer products with AVX-512 VNNI: the loops over strips, chunks of k and tiles of columns, and the table.
 *
 *   many columns:  for each 128 rows, for each chunk of 2048 values: unpack 8 panels (L2), then for each tile of
 *                  columns (L1) the core multiplies it with the 8 panels; sums rest in y between chunks
 *   few columns:   each strip of 16 rows runs over all of k
 * Rows beyond the last multiple of 16 are first copied, chunk by chunk, into a strip whose other rows are zeros. */
#include <string.h>

#include "kernels/ref/mul.h"
#include "kernels/x86/avx512vnni/mul_panel.h"

/* Scratch: panels, then the copied strip. */
enum { PANEL_BYTES = (CHUNK / 32) * (int)sizeof(panel32), TAIL_BYTES = 16 * (CHUNK / 32) * 36 };
_Static_assert(PANELS * PANEL_BYTES + TAIL_BYTES <= MUL_SCRATCH, "scratch");
_Static_assert(PANELS * (CHUNK / 256) * sizeof(panel256) + TAIL_BYTES <= MUL_SCRATCH, "scratch");

/* The part of the rows from `row` on that a chunk is made of; a short strip is copied. */
typedef struct source {
    const uint8_t *w;
    size_t stride;
    __mmask16 rows;
} source;

static source strip_at(const mul_args *a, int row, size_t from, size_t bytes)
{
    const uint8_t *w = (const uint8_t *)a->w + (size_t)row * a->w_stride + from;
    const int rows = a->rows - row;
    if (rows >= 16) return (source){ w, a->w_stride, 0xFFFF };
    uint8_t *copy = (uint8_t *)a->scratch + MUL_SCRATCH - TAIL_BYTES;
    for (int r = 0; r < 16; r++) {
        if (r < rows) memcpy(copy + (size_t)r * bytes, w + (size_t)r * a->w_stride, bytes);
        else memset(copy + (size_t)r * bytes, 0, bytes);
    }
    return (source){ copy, bytes, (__mmask16)((1u << rows) - 1) };
}

static size_t chunk_bytes(const vnni_type *t, int64_t values) { return (size_t)(values / t->values * t->bytes); }
static const uint8_t *column_at(const mul_args *a, int col, int64_t k)
{
    return (const uint8_t *)a->x + (size_t)col * a->x_stride + (size_t)(k / ACT_GROUP) * sizeof(act_a32);
}

static void few_columns(const mul_args *a, const vnni_type *t, int col, int cols)
{
    const int piece = t->super ? 256 : 32;
    for (int row = 0; row < a->rows; row += 16) {
        const int64_t step = a->rows - row >= 16 ? a->k : CHUNK;
        for (int64_t k = 0; k < a->k; k += step) {
            const int64_t values = a->k - k < step ? a->k - k : step;
            const source w = strip_at(a, row, chunk_bytes(t, k), chunk_bytes(t, values));
            const strip s = { .w = w.w, .next = w.w + 16 * w.stride, .stride = w.stride, .x = column_at(a, col, k),
                .x_stride = a->x_stride, .pieces = values / piece, .y = a->y + (size_t)col * a->y_stride + row,
                .y_stride = a->y_stride, .rows = w.rows, .resume = k > 0 };
            t->few[cols - 1](&s);
        }
    }
}

/* One chunk of up to PANELS strips with all columns. */
static void many_columns(const mul_args *a, const vnni_type *t, int row, int64_t k, int64_t values)
{
    const int64_t pieces = values / (t->super ? 256 : 32);
    const size_t bytes = (size_t)pieces * (t->super ? sizeof(panel256) : sizeof(panel32));
    uint8_t *panels = a->scratch;
    __mmask16 rows[PANELS];
    int n = 0;
    for (; n < PANELS && row + 16 * n < a->rows; n++) {
        const source w = strip_at(a, row + 16 * n, chunk_bytes(t, k), chunk_bytes(t, values));
        t->panel(w.w, w.stride, pieces, panels + (size_t)n * bytes);
        rows[n] = w.rows;
    }
    /* Tiles of nearly equal width: 9 columns are 5 + 4. */
    const int tiles = (a->cols + TILE - 1) / TILE;
    for (int i = 0, col = 0; i < tiles; i++) {
        const int cols = a->cols / tiles + (i < a->cols % tiles);
        for (int p = 0; p < n; p++) {
            const tile one = { .panel = panels + (size_t)p * bytes, .x = column_at(a, col, k), .x_stride = a->x_stride,
                .pieces = pieces, .y = a->y + (size_t)col * a->y_stride + row + 16 * p, .y_stride = a->y_stride,
                .rows = rows[p], .resume = k > 0 };
            t->core[cols - 1](&one);
        }
        col += cols;
    }
}

void vnni_mul(const mul_args *a, const vnni_type *t)
{
    if (a->cols <= FEW && t->few[0]) {
        few_columns(a, t, 0, a->cols);
        return;
    }
    for (int row = 0; row < a->rows; row += 16 * PANELS)
        for (int64_t k = 0; k < a->k; k += CHUNK) many_columns(a, t, row, k, a->k - k < CHUNK ? a->k - k : CHUNK);
}
