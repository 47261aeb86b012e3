/* mul_run.c - the loops around fast integer products (mul_run.h). */
#include "kernels/ref/mul_run.h"

#include <string.h>

#include "kernels/act.h"
#include "kernels/ref/mul.h"

/* The part of the rows from `row` on that a chunk is made of; a short strip is copied. */
typedef struct source {
    const uint8_t *w;
    size_t stride;
    int rows;
} source;

static source strip_at(const mul_args *a, int height, int row, size_t from, size_t bytes)
{
    const uint8_t *w = (const uint8_t *)a->w + (size_t)row * a->w_stride + from;
    const int rows = a->rows - row;
    if (rows >= height) return (source){ w, a->w_stride, height };
    uint8_t *copy = (uint8_t *)a->scratch + MUL_SCRATCH - MUL_TAIL;
    for (int r = 0; r < height; r++) {
        if (r < rows) memcpy(copy + (size_t)r * bytes, w + (size_t)r * a->w_stride, bytes);
        else memset(copy + (size_t)r * bytes, 0, bytes);
    }
    return (source){ copy, bytes, rows };
}

static size_t chunk_bytes(const mul_type *t, int64_t values) { return (size_t)(values / t->values * t->bytes); }
static const uint8_t *column_at(const mul_args *a, int col, int64_t k)
{
    return (const uint8_t *)a->x + (size_t)col * a->x_stride + (size_t)(k / ACT_GROUP) * sizeof(act_a32);
}

static int piece(const mul_type *t) { return t->super ? 256 : 32; }
static size_t panel_bytes(const mul_type *t) { return t->super ? t->shape->panel256 : t->shape->panel32; }

static void few_columns(const mul_args *a, const mul_type *t)
{
    const int height = t->shape->rows;
    for (int row = 0; row < a->rows; row += height) {
        const int64_t step = a->rows - row >= height ? a->k : MUL_CHUNK;
        for (int64_t k = 0; k < a->k; k += step) {
            const int64_t values = a->k - k < step ? a->k - k : step;
            const source w = strip_at(a, height, row, chunk_bytes(t, k), chunk_bytes(t, values));
            const strip s = { .w = w.w, .next = w.w + (size_t)height * w.stride, .stride = w.stride, .x = column_at(a, 0, k),
                .x_stride = a->x_stride, .pieces = values / piece(t), .y = a->y + row,
                .y_stride = a->y_stride, .rows = w.rows, .resume = k > 0 };
            t->few[a->cols - 1](&s);
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
static void prefetch_tile(const tile *t, int rows, int cols, int64_t groups)
{
    const int64_t bytes = groups * (int64_t)sizeof(act_a32);
    for (int c = 0; c < cols; c++) {
        for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(t->x + (size_t)c * t->x_stride + i, 0, 3);
        for (int r = 0; r < rows; r += 16) __builtin_prefetch(t->y + (size_t)c * t->y_stride + r, 1, 3);
    }
}

/* The panels of one chunk with all columns. */
static void multiply_panels(const mul_args *a, const mul_type *t, const tile *first, int panels)
{
    const mul_shape *shape = t->shape;
    const size_t bytes = (size_t)first->pieces * panel_bytes(t);
    const int step = part_size(panels, shape->tile_panels);
    const int64_t groups = t->super ? first->pieces : (first->pieces + 7) / 8;
    for (int block = 0; block < a->cols; block += shape->columns) {
        const int end = a->cols - block < shape->columns ? a->cols : block + shape->columns;
        const int width = part_size(end - block, shape->tile_columns);
        for (int p = 0; p < panels; p += step) {
            const int n = panels - p < step ? panels - p : step;
            for (int c = block; c < end; c += width) {
                const int cols = end - c < width ? end - c : width;
                tile one = *first;
                one.panel = (const uint8_t *)first->panel + (size_t)p * bytes;
                one.x += (size_t)c * a->x_stride;
                one.y += (size_t)c * a->y_stride + shape->rows * p;
                if (p + n < panels) one.last_rows = shape->rows;
                tile then = one;
                then.x += (size_t)cols * a->x_stride;
                then.y += (size_t)cols * a->y_stride;
                prefetch_tile(&then, n * shape->rows, a->cols - c - cols < width ? a->cols - c - cols : width, p == 0 ? groups : 0);
                t->core[(n - 1) * shape->tile_columns + cols - 1](&one);
            }
        }
    }
}

/* Brings the next chunk of a strip into the second-level cache: the following one of its rows, or the first one of the
 * rows that take its place. */
static void prefetch_strip(const mul_args *a, const mul_type *t, int row, int64_t k)
{
    if (k >= a->k) {
        k = 0;
        row += t->shape->rows * t->shape->panels;
    }
    const size_t from = chunk_bytes(t, k), bytes = chunk_bytes(t, a->k - k < t->shape->chunk ? a->k - k : t->shape->chunk);
    for (int r = row; r < row + t->shape->rows && r < a->rows; r++)
        for (size_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const uint8_t *)a->w + (size_t)r * a->w_stride + from + i, 0, 2);
}

/* One chunk of a block of strips. */
static void many_columns(const mul_args *a, const mul_type *t, int row, int64_t k)
{
    const int height = t->shape->rows;
    const int64_t values = a->k - k < t->shape->chunk ? a->k - k : t->shape->chunk;
    tile first = { .panel = a->scratch, .x = column_at(a, 0, k), .x_stride = a->x_stride, .pieces = values / piece(t),
        .y = a->y + row, .y_stride = a->y_stride, .resume = k > 0 };
    uint8_t *panel = a->scratch;
    int n = 0;
    for (; n < t->shape->panels && row + height * n < a->rows; n++) {
        const source w = strip_at(a, height, row + height * n, chunk_bytes(t, k), chunk_bytes(t, values));
        prefetch_strip(a, t, row + height * n, k + values);
        t->panel(w.w, w.stride, first.pieces, panel);
        panel += (size_t)first.pieces * panel_bytes(t);
        first.last_rows = w.rows;
    }
    multiply_panels(a, t, &first, n);
}

void mul_run(const mul_args *a, const mul_type *t)
{
    if (t->few && a->cols <= t->shape->few) {
        few_columns(a, t);
        return;
    }
    for (int row = 0; row < a->rows; row += t->shape->rows * t->shape->panels)
        for (int64_t k = 0; k < a->k; k += t->shape->chunk) many_columns(a, t, row, k);
}
