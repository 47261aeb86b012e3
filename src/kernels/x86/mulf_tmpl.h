/* mulf_tmpl.h - products with F32, F16, BF16 weights in registers, compiled once per instruction set: same bits as
 * ref/mulf.c. Included after a vec_*.h; defines fill_mulf().
 *
 * A tile is ROWS x COLS sums of 16 lanes that stay in registers over all of k; each is folded at the end.
 *
 *   few columns    tiles over the weights in their own type: bound by memory, a row is read once
 *   many columns   MULF_ROWS weight rows at a time are turned into floats, MULF_K values of k at a time, and met with up
 *                  to MULF_COLS columns while all of it is in the second cache; the sums wait in scratch between blocks
 *                  of k. A block of a tile of columns stays in the first cache while the panel passes by.
 *
 * Scratch: panel [tile of rows][MULF_K / 16][rows of the tile][16] floats, sums [MULF_COLS][MULF_ROWS][16] floats. */
#include "kernels/kernels.h"
#include "kernels/ref/mul.h"

typedef nf tile_sums[TILE_ROWS][TILE_COLS][N_PARTS];

VEC nf load_as(loam_type type, const uint8_t *p, size_t i)
{
    if (type == LOAM_F16) return n_load_f16(p + 2 * i);
    if (type == LOAM_BF16) return n_load_bf16(p + 2 * i);
    return n_load((const float *)(const void *)p + i);
}

/* Sixteen values of which `n` are there; the others are 0. */
VEC vf load_first_as(loam_type type, const uint8_t *p, size_t i, int n)
{
    if (type == LOAM_F32) return v_load_first((const float *)(const void *)p + i, n);
    uint16_t t[16] = { 0 };
    memcpy(t, p + 2 * i, (size_t)n * 2);
    return type == LOAM_F16 ? v_load_f16(t) : v_load_bf16(t);
}

/* Rows of w and columns of x, strides in bytes. */
typedef struct tile_args {
    const uint8_t *w, *x;
    size_t w_stride, x_stride;
} tile_args;

/* What a tile is; always constants, so that the loops unroll. Sixteen values of a row of w are followed by the next
 * sixteen w_step values later: 16 in the file's layout, more in a panel. */
typedef struct tile_form {
    loam_type type;
    int rows, cols;
    size_t w_step;
} tile_form;

VEC const float *column(const tile_args *t, int c) { return (const float *)(const void *)(t->x + (size_t)c * t->x_stride); }

VEC void tile_steps(tile_sums sums, const tile_args *t, int64_t k, const tile_form form)
{
    for (int64_t i = 0; i + 16 <= k; i += 16)
        UNROLL(4) for (int part = 0; part < N_PARTS; part++) {
            size_t at = (size_t)i + (size_t)part * N_LANES, w_at = (size_t)i / 16 * form.w_step + (size_t)part * N_LANES;
            nf w[TILE_ROWS];
            UNROLL(4) for (int r = 0; r < form.rows; r++) w[r] = load_as(form.type, t->w + (size_t)r * t->w_stride, w_at);
            if (form.w_step != 16 && part == 0) /* a panel streams from the second cache */
                UNROLL(4) for (int r = 0; r < form.rows; r++)
                    __builtin_prefetch(t->w + 4 * w_at + r * 64 + 1024, 0, 3);
            UNROLL(6) for (int c = 0; c < form.cols; c++) {
                nf x = n_load(column(t, c) + at);
                if (form.rows > 1) HOLD(x);
                UNROLL(4) for (int r = 0; r < form.rows; r++) sums[r][c][part] = n_fma(w[r], x, sums[r][c][part]);
            }
        }
}

/* The last k % 16 values: lanes beyond keep their sums untouched (adding 0 could turn -0 into +0). */
VEC void tile_tail(tile_sums sums, const tile_args *t, int64_t k, const tile_form form)
{
    int n = (int)(k % 16);
    if (n == 0) return;
    size_t at = (size_t)(k - n), w_at = at / 16 * form.w_step;
    UNROLL(4) for (int r = 0; r < form.rows; r++) {
        vf w = load_first_as(form.type, t->w + (size_t)r * t->w_stride, w_at, n);
        UNROLL(6) for (int c = 0; c < form.cols; c++) {
            vf old = v_of_parts(sums[r][c]);
            v_to_parts(sums[r][c], v_select(v_first(n), v_fma(w, v_load_first(column(t, c) + at, n), old), old));
        }
    }
}

VEC void tile_clear(tile_sums sums, const tile_form form)
{
    UNROLL(4) for (int r = 0; r < form.rows; r++)
        UNROLL(6) for (int c = 0; c < form.cols; c++) v_to_parts(sums[r][c], v_zero());
}

VEC void tile_fold(tile_sums sums, float *y, size_t y_stride, const tile_form form)
{
    UNROLL(6) for (int c = 0; c < form.cols; c++) {
        float *to = y + (size_t)c * y_stride;
        if (form.rows == 4)
            v_store_fold4(to, v_fold4(v_of_parts(sums[0][c]), v_of_parts(sums[1][c]), v_of_parts(sums[2][c]),
                                      v_of_parts(sums[3][c])));
        else
            UNROLL(4) for (int r = 0; r < form.rows; r++) to[r] = v_fold(v_of_parts(sums[r][c]));
    }
}

/* ---- few columns ---- */

VEC void tile_whole(const mul_args *a, int row, int col, const tile_form form)
{
    tile_args t = { (const uint8_t *)a->w + (size_t)row * a->w_stride, (const uint8_t *)a->x + (size_t)col * a->x_stride,
                    a->w_stride, a->x_stride };
    tile_sums sums;
    tile_clear(sums, form);
    tile_steps(sums, &t, a->k, form);
    tile_tail(sums, &t, a->k, form);
    tile_fold(sums, a->y + (size_t)col * a->y_stride + row, a->y_stride, form);
}

VEC void columns_whole(const mul_args *a, int col, loam_type type, const int cols)
{
    int row = 0;
    for (; row + TILE_ROWS <= a->rows; row += TILE_ROWS) tile_whole(a, row, col, (tile_form){ type, TILE_ROWS, cols, 16 });
    for (; row < a->rows; row++) tile_whole(a, row, col, (tile_form){ type, 1, cols, 16 });
}

#define COLUMNS(type, TYPE, n) \
    static __attribute__((noinline)) void type##_columns_##n(const mul_args *a, int col) { columns_whole(a, col, TYPE, n); }
#if TILE_COLS == 6
#define ALL_COLUMNS(type, TYPE) \
    COLUMNS(type, TYPE, 1) COLUMNS(type, TYPE, 2) COLUMNS(type, TYPE, 3) COLUMNS(type, TYPE, 4) COLUMNS(type, TYPE, 5) \
    COLUMNS(type, TYPE, 6) \
    static const columns_fn type##_columns[] = { type##_columns_1, type##_columns_2, type##_columns_3, \
                                                 type##_columns_4, type##_columns_5, type##_columns_6 };
#else
#define ALL_COLUMNS(type, TYPE) \
    COLUMNS(type, TYPE, 1) COLUMNS(type, TYPE, 2) COLUMNS(type, TYPE, 3) \
    static const columns_fn type##_columns[] = { type##_columns_1, type##_columns_2, type##_columns_3 };
#endif
typedef void (*columns_fn)(const mul_args *a, int col);
ALL_COLUMNS(f32, LOAM_F32)
ALL_COLUMNS(f16, LOAM_F16)
ALL_COLUMNS(bf16, LOAM_BF16)

static void few_columns(const mul_args *a, const columns_fn *tiles)
{
    int n_tiles = (a->cols + TILE_COLS - 1) / TILE_COLS;
    for (int t = 0, col = 0; t < n_tiles; t++) {
        int n = (a->cols - col) / (n_tiles - t); /* tiles of even size */
        tiles[n - 1](a, col);
        col += n;
    }
}

/* ---- many columns ---- */

#define MULF_ROWS 64
#define MULF_K 1024
#define MULF_COLS 48

_Static_assert(MULF_ROWS % TILE_ROWS == 0 && MULF_COLS % TILE_COLS == 0 && MULF_K % 16 == 0, "whole tiles");
_Static_assert(sizeof(float) * (MULF_ROWS * MULF_K + MULF_COLS * MULF_ROWS * 16) <= MUL_SCRATCH, "scratch");

/* One block of k of one tile: the weights are floats of the panel, sums are those of the tile's first row and column. */
typedef struct block_args {
    tile_args t;
    int64_t k;         /* values of this block */
    bool first, last;
    float *sums;       /* [tile of columns][tile of rows][TILE_ROWS][TILE_COLS][16] */
    float *y;
    size_t y_stride;
} block_args;

VEC void tile_block(const block_args *b, const int rows, const int cols)
{
    const tile_form form = { LOAM_F32, rows, cols, (size_t)rows * 16 };
    tile_sums sums;
    if (b->first) tile_clear(sums, form);
    else
        UNROLL(4) for (int r = 0; r < rows; r++)
            UNROLL(6) for (int c = 0; c < cols; c++) v_to_parts(sums[r][c], v_load(b->sums + (r * TILE_COLS + c) * 16));
    tile_steps(sums, &b->t, b->k, form);
    tile_tail(sums, &b->t, b->k, form);
    if (b->last) tile_fold(sums, b->y, b->y_stride, form);
    else
        UNROLL(4) for (int r = 0; r < rows; r++)
            UNROLL(6) for (int c = 0; c < cols; c++) v_store(b->sums + (r * TILE_COLS + c) * 16, v_of_parts(sums[r][c]));
}

typedef void (*block_fn)(const block_args *b);
#define BLOCK(cols) \
    static __attribute__((noinline)) void block_##cols(const block_args *b) { tile_block(b, TILE_ROWS, cols); } \
    static __attribute__((noinline)) void block_row_##cols(const block_args *b) { tile_block(b, 1, cols); }
BLOCK(1)
BLOCK(2)
BLOCK(3)
#if TILE_COLS == 6
BLOCK(4)
BLOCK(5)
BLOCK(6)
static const block_fn blocks[2][TILE_COLS] = { { block_row_1, block_row_2, block_row_3, block_row_4, block_row_5, block_row_6 },
                                               { block_1, block_2, block_3, block_4, block_5, block_6 } };
#else
static const block_fn blocks[2][TILE_COLS] = { { block_row_1, block_row_2, block_row_3 }, { block_1, block_2, block_3 } };
#endif

/* Rows of the next tile from `row` on: a full one while there are enough, else one. */
VEC int tile_rows(int row, int rows) { return rows - row >= TILE_ROWS ? TILE_ROWS : 1; }

/* Some rows and values of the weights. */
typedef struct panel_part {
    int row, rows;
    int64_t k0, n;
} panel_part;

VEC void fill_panel(const mul_args *a, const panel_part *part, loam_type type, float *panel)
{
    for (int r0 = 0, step; r0 < part->rows; r0 += step) {
        step = tile_rows(r0, part->rows);
        for (int r = 0; r < step; r++) {
            const uint8_t *w = (const uint8_t *)a->w + (size_t)(part->row + r0 + r) * a->w_stride;
            float *to = panel + (size_t)r0 * MULF_K + r * 16;
            int64_t i = 0;
            for (; i + 16 <= part->n; i += 16, to += step * 16)
                UNROLL(4) for (int p = 0; p < N_PARTS; p++)
                    n_store(to + p * N_LANES, load_as(type, w, (size_t)(part->k0 + i) + (size_t)p * N_LANES));
            if (i < part->n) v_store(to, load_first_as(type, w, (size_t)(part->k0 + i), (int)(part->n - i)));
        }
    }
}

/* One block of k of one panel against all tiles of some columns; b is filled for the first column. */
static void panel_block(const mul_args *a, const block_args *whole, int cols, int rows, const float *panel)
{
    int n_tiles = (cols + TILE_COLS - 1) / TILE_COLS;
    block_args b = *whole;
    for (int t = 0, c = 0; t < n_tiles; t++) {
        int n = (cols - c) / (n_tiles - t);
        b.t.x = whole->t.x + (size_t)c * a->x_stride;
        for (int r = 0, step; r < rows; r += step) {
            step = tile_rows(r, rows);
            b.t.w = (const uint8_t *)(panel + (size_t)r * MULF_K);
            b.sums = whole->sums + (t * MULF_ROWS + r) * TILE_COLS * 16;
            b.y = whole->y + (size_t)c * a->y_stride + r;
            blocks[step == TILE_ROWS][n - 1](&b);
        }
        c += n;
    }
}

VEC void many_columns(const mul_args *a, loam_type type)
{
    float *panel = a->scratch, *sums = panel + MULF_ROWS * MULF_K;
    int n_blocks = (a->cols + MULF_COLS - 1) / MULF_COLS;
    for (int t = 0, col = 0, cols; t < n_blocks; t++, col += cols) {
        cols = (a->cols - col) / (n_blocks - t);
        for (int row = 0; row < a->rows; row += MULF_ROWS) {
            int rows = a->rows - row < MULF_ROWS ? a->rows - row : MULF_ROWS;
            for (int64_t k0 = 0; k0 < a->k; k0 += MULF_K) {
                panel_part part = { row, rows, k0, a->k - k0 < MULF_K ? a->k - k0 : MULF_K };
                fill_panel(a, &part, type, panel);
                const uint8_t *x = (const uint8_t *)a->x + (size_t)col * a->x_stride + (size_t)k0 * sizeof(float);
                block_args b = { { NULL, x, 16 * sizeof(float), a->x_stride }, part.n, k0 == 0, k0 + part.n == a->k, sums,
                                 a->y + (size_t)col * a->y_stride + row, a->y_stride };
                panel_block(a, &b, cols, rows, panel);
            }
        }
    }
}

#define MUL(type, TYPE) \
    static void mul_##type(const mul_args *a) \
    { \
        if (a->cols > 2 * TILE_COLS && a->k > 0) many_columns(a, TYPE); \
        else few_columns(a, type##_columns); \
    }
MUL(f32, LOAM_F32)
MUL(f16, LOAM_F16)
MUL(bf16, LOAM_BF16)

static void fill_mulf(kernels *k)
{
    k->mul[LOAM_F32] = mul_f32;
    k->mul[LOAM_F16] = mul_f16;
    k->mul[LOAM_BF16] = mul_bf16;
}
