/* mul.c - integer products with AVX-512 VNNI: the loops over strips, chunks of k and tiles of columns, and the table.
 *
 *   many columns:  for each 96 rows, for each chunk of 2048 values: unpack 6 panels (L2); then, 32 columns at a time,
 *                  3 panels are multiplied with tiles of 4 columns; sums rest in y between chunks
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

/* Parts of nearly equal size: 5 in parts of at most 4 are 3 + 2. */
static int part_size(int total, int most)
{
    const int parts = (total + most - 1) / most;
    return (total + parts - 1) / parts;
}

/* What the next tile will read and write: the first panels of a block bring the activations. */
static void prefetch_tile(const tile *t, int panels, int cols, int64_t groups)
{
    const int64_t bytes = groups * (int64_t)sizeof(act_a32);
    for (int c = 0; c < cols; c++) {
        for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch((const char *)t->x + (size_t)c * t->x_stride + i, _MM_HINT_T0);
        for (int p = 0; p < panels; p++) _mm_prefetch((const char *)(t->y + (size_t)c * t->y_stride + 16 * p), _MM_HINT_T0);
    }
}

/* The panels of one chunk with all columns. */
static void multiply_panels(const mul_args *a, const vnni_type *t, const tile *first, int panels)
{
    const size_t bytes = (size_t)first->pieces * (t->super ? sizeof(panel256) : sizeof(panel32));
    const int step = part_size(panels, TILE_PANELS);
    const int64_t groups = t->super ? first->pieces : (first->pieces + 7) / 8;
    for (int block = 0; block < a->cols; block += COLUMNS) {
        const int end = a->cols - block < COLUMNS ? a->cols : block + COLUMNS, width = part_size(end - block, TILE_COLUMNS);
        for (int p = 0; p < panels; p += step) {
            const int n = panels - p < step ? panels - p : step;
            for (int c = block; c < end; c += width) {
                const int cols = end - c < width ? end - c : width;
                tile one = *first;
                one.panel = (const uint8_t *)first->panel + (size_t)p * bytes;
                one.x += (size_t)c * a->x_stride;
                one.y += (size_t)c * a->y_stride + 16 * p;
                if (p + n < panels) one.last_rows = 0xFFFF;
                tile then = one;
                then.x += (size_t)cols * a->x_stride;
                then.y += (size_t)cols * a->y_stride;
                prefetch_tile(&then, n, a->cols - c - cols < width ? a->cols - c - cols : width, p == 0 ? groups : 0);
                t->core[n - 1][cols - 1](&one);
            }
        }
    }
}

/* Brings the next chunk of a strip into the second-level cache: the following one of its rows, or the first one of the
 * rows that take its place. */
static void prefetch_strip(const mul_args *a, const vnni_type *t, int row, int64_t k)
{
    if (k >= a->k) {
        k = 0;
        row += 16 * PANELS;
    }
    const size_t from = chunk_bytes(t, k), bytes = chunk_bytes(t, a->k - k < CHUNK ? a->k - k : CHUNK);
    for (int r = row; r < row + 16 && r < a->rows; r++)
        for (size_t i = 0; i < bytes; i += 64)
            _mm_prefetch((const char *)a->w + (size_t)r * a->w_stride + from + i, _MM_HINT_T1);
}

/* One chunk of a block of strips. */
static void many_columns(const mul_args *a, const vnni_type *t, int row, int64_t k)
{
    const int64_t values = a->k - k < CHUNK ? a->k - k : CHUNK;
    tile first = { .panel = a->scratch, .x = column_at(a, 0, k), .x_stride = a->x_stride,
        .pieces = values / (t->super ? 256 : 32), .y = a->y + row, .y_stride = a->y_stride, .resume = k > 0 };
    uint8_t *panel = a->scratch;
    int n = 0;
    for (; n < PANELS && row + 16 * n < a->rows; n++) {
        const source w = strip_at(a, row + 16 * n, chunk_bytes(t, k), chunk_bytes(t, values));
        prefetch_strip(a, t, row + 16 * n, k + values);
        t->panel(w.w, w.stride, first.pieces, panel);
        panel += (size_t)first.pieces * (t->super ? sizeof(panel256) : sizeof(panel32));
        first.last_rows = w.rows;
    }
    multiply_panels(a, t, &first, n);
}

void vnni_mul(const mul_args *a, const vnni_type *t)
{
    if (a->cols <= FEW && t->few[0]) {
        few_columns(a, t, 0, a->cols);
        return;
    }
    for (int row = 0; row < a->rows; row += 16 * PANELS)
        for (int64_t k = 0; k < a->k; k += CHUNK) many_columns(a, t, row, k);
}
