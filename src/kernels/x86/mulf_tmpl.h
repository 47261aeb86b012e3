/* mulf_tmpl.h - products with F32, F16, BF16 weights in registers, compiled once per instruction set: same bits as
 * ref/mulf.c. Included after a vec_*.h; defines fill_mulf().
 *
 * A tile is ROWS x COLS sums of 16 lanes that stay in registers over all of k; each is folded at the end.
 *
 *   few columns    tiles over the weights in their own type: bound by memory, a row is read once
 *   many columns   16 weight rows at a time are turned into floats, MULF_K values of k at a time, and met with up to
 *                  MULF_COLS columns while they are in cache; the sums of 16 lanes wait in scratch between blocks of k
 *
 * Scratch (MULF_SCRATCH bytes): panel [MULF_ROWS][MULF_K] floats, sums [MULF_COLS][MULF_ROWS][16] floats. */
#include "kernels/kernels.h"
#include "kernels/ref/mathf.h"

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

VEC const float *column(const tile_args *t, int c) { return (const float *)(const void *)(t->x + (size_t)c * t->x_stride); }

VEC void tile_steps(tile_sums sums, const tile_args *t, loam_type type, int64_t k, const int rows, const int cols)
{
    for (int64_t i = 0; i + 16 <= k; i += 16)
        UNROLL(2) for (int part = 0; part < N_PARTS; part++) {
            size_t at = (size_t)i + (size_t)part * N_LANES;
            nf w[TILE_ROWS];
            UNROLL(4) for (int r = 0; r < rows; r++) w[r] = load_as(type, t->w + (size_t)r * t->w_stride, at);
            UNROLL(6) for (int c = 0; c < cols; c++) {
                nf x = n_load(column(t, c) + at);
                UNROLL(4) for (int r = 0; r < rows; r++) sums[r][c][part] = n_fma(w[r], x, sums[r][c][part]);
            }
        }
}

/* The last k % 16 values: lanes beyond keep their sums untouched (adding 0 could turn -0 into +0). */
VEC void tile_tail(tile_sums sums, const tile_args *t, loam_type type, int64_t k, const int rows, const int cols)
{
    int n = (int)(k % 16);
    if (n == 0) return;
    size_t at = (size_t)(k - n);
    UNROLL(4) for (int r = 0; r < rows; r++) {
        vf w = load_first_as(type, t->w + (size_t)r * t->w_stride, at, n);
        UNROLL(6) for (int c = 0; c < cols; c++) {
            vf old = v_of_parts(sums[r][c]);
            v_to_parts(sums[r][c], v_select(v_first(n), v_fma(w, v_load_first(column(t, c) + at, n), old), old));
        }
    }
}

VEC void tile_clear(tile_sums sums, const int rows, const int cols)
{
    UNROLL(4) for (int r = 0; r < rows; r++)
        UNROLL(6) for (int c = 0; c < cols; c++) v_to_parts(sums[r][c], v_zero());
}

VEC void tile_fold(tile_sums sums, float *y, size_t y_stride, const int rows, const int cols)
{
    UNROLL(6) for (int c = 0; c < cols; c++) {
        float *to = y + (size_t)c * y_stride;
        if (rows == 4)
            _mm_storeu_ps(to, v_fold4(v_of_parts(sums[0][c]), v_of_parts(sums[1][c]), v_of_parts(sums[2][c]), v_of_parts(sums[3][c])));
        else
            UNROLL(4) for (int r = 0; r < rows; r++) to[r] = v_fold(v_of_parts(sums[r][c]));
    }
}

/* ---- few columns ---- */

VEC void tile_whole(const mul_args *a, int row, int col, loam_type type, const int rows, const int cols)
{
    tile_args t = { (const uint8_t *)a->w + (size_t)row * a->w_stride, (const uint8_t *)a->x + (size_t)col * a->x_stride, a->w_stride,
                    a->x_stride };
    tile_sums sums;
    tile_clear(sums, rows, cols);
    tile_steps(sums, &t, type, a->k, rows, cols);
    tile_tail(sums, &t, type, a->k, rows, cols);
    tile_fold(sums, a->y + (size_t)col * a->y_stride + row, a->y_stride, rows, cols);
}

VEC void columns_whole(const mul_args *a, int col, loam_type type, const int cols)
{
    int row = 0;
    for (; row + TILE_ROWS <= a->rows; row += TILE_ROWS) tile_whole(a, row, col, type, TILE_ROWS, cols);
    for (; row < a->rows; row++) tile_whole(a, row, col, type, 1, cols);
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

static void mul_f32(const mul_args *a) { few_columns(a, f32_columns); }
static void mul_f16(const mul_args *a) { few_columns(a, f16_columns); }
static void mul_bf16(const mul_args *a) { few_columns(a, bf16_columns); }

static void fill_mulf(kernels *k)
{
    k->mul[LOAM_F32] = mul_f32;
    k->mul[LOAM_F16] = mul_f16;
    k->mul[LOAM_BF16] = mul_bf16;
}
