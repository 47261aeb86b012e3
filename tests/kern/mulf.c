/* mulf.c - products with F32, F16, BF16 weights: the reference against double precision, every set against the reference,
 * bit for bit, whatever the split in rows and columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kerncheck.h"

static const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_BF16 };
#define N_TYPES ((int)(sizeof types / sizeof types[0]))

/* A product with all its memory; y has y_stride floats a column and poisoned margins. */
typedef struct problem {
    loam_type type;
    int rows, cols;
    int64_t k;
    guard w, x, y;
    void *scratch;
    mul_args args;
} problem;

static problem problem_new(loam_type type, int rows, int cols, int64_t k)
{
    const dtype_info *t = dtype_get((int64_t)type);
    size_t shift = (size_t)check_below(8) * (size_t)t->bytes, row = (size_t)k * (size_t)t->bytes;
    problem p = { .type = type, .rows = rows, .cols = cols, .k = k };
    size_t x_stride = (4 * (size_t)k + 63) / 64 * 64, y_stride = (size_t)(rows + check_below(5));
    p.w = guard_new(row * (size_t)rows, shift);
    p.x = guard_new(x_stride * (size_t)cols, 0);
    p.y = guard_new(4 * (cols ? y_stride * (size_t)(cols - 1) + (size_t)rows : 0), 4 * (size_t)check_below(16));
    p.scratch = mem_alloc(mul_scratch(k));
    p.args = (mul_args){ .w = p.w.p, .w_stride = row, .x = p.x.p, .x_stride = x_stride, .y = guard_floats(&p.y),
                         .y_stride = y_stride, .k = k, .rows = rows, .cols = cols, .scratch = p.scratch };
    return p;
}

static void problem_fill(problem *p, shape sw, shape sx)
{
    int64_t n = p->k * p->rows;
    float *w = mem_alloc_array((size_t)n + 1, sizeof *w);
    check_fill(w, n, sw);
    kernels_for("ref")->encode[p->type](w, p->w.p, n);
    mem_free(w);
    memset(p->x.p, 0xFF, p->x.bytes); /* NaN in the padding: it must not be read into a result */
    for (int c = 0; c < p->cols; c++) check_fill((float *)(void *)(p->x.p + (size_t)c * p->args.x_stride), p->k, sx);
}

static void problem_free(problem *p)
{
    guard_free(&p->w);
    guard_free(&p->x);
    guard_free(&p->y);
    mem_free(p->scratch);
}

static bool problem_same(const problem *p, const float *expected, const char *what)
{
    for (int c = 0; c < p->cols; c++)
        if (!check_same(expected + (size_t)c * p->args.y_stride, p->args.y + (size_t)c * p->args.y_stride, p->rows, what))
            return false;
    return guard_ok(&p->y, what) && guard_ok(&p->w, what) && guard_ok(&p->x, what);
}

static void test_reference(void **state)
{
    (void)state;
    for (int t = 0; t < N_TYPES; t++) {
        problem p = problem_new(types[t], 5, 3, 1000);
        problem_fill(&p, SHAPE_NORMAL, SHAPE_NORMAL);
        kernels_for("ref")->mul[types[t]](&p.args);
        float w[5 * 1000];
        kernels_for("ref")->decode[types[t]](p.w.p, w, 5000);
        for (int c = 0; c < 3; c++)
            for (int r = 0; r < 5; r++) {
                const float *x = (const float *)(const void *)(p.x.p + (size_t)c * p.args.x_stride);
                double sum = 0, size = 0;
                for (int i = 0; i < 1000; i++) {
                    sum += (double)w[r * 1000 + i] * x[i];
                    size += fabs((double)w[r * 1000 + i] * x[i]);
                }
                /* 63 + 4 roundings on the longest path of a lane and the fold. */
                assert_true(fabs(p.args.y[(size_t)c * p.args.y_stride + r] - sum) <= size * 67 * 0x1p-24);
            }
        problem_free(&p);
    }
}

static void one_size(const kernels *ref, const kernels *k, problem *p, const char *what)
{
    size_t bytes = p->y.bytes;
    float *expected = mem_alloc(bytes + 4);
    ref->mul[p->type](&p->args);
    memcpy(expected, p->args.y, bytes);
    memset(p->y.p, 0x5A, bytes);
    k->mul[p->type](&p->args);
    assert_true(problem_same(p, expected, what));
    mem_free(expected);
}

static void set_sizes(const kernels *ref, const kernels *k)
{
    static const int ks[] = { 0, 1, 15, 16, 17, 31, 48, 64, 100, 513, 2060 }, rows[] = { 0, 1, 2, 3, 4, 5, 7, 8, 17, 33 };
    static const int cols[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 25, 50, 97 };
    char what[96];
    for (int t = 0; t < N_TYPES; t++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
                    if ((int64_t)ks[i] * rows[r] * cols[c] > 300000 && check_below(4)) continue; /* keeps the run short */
                    problem p = problem_new(types[t], rows[r], cols[c], ks[i]);
                    shape s = check_below(2) ? SHAPE_NORMAL : (shape)check_below(SHAPE_COUNT);
                    problem_fill(&p, s, check_below(2) ? s : SHAPE_NORMAL);
                    snprintf(what, sizeof what, "%s %s k %d rows %d cols %d shape %d", k->name, loam_type_name((int)types[t]),
                             ks[i], rows[r], cols[c], (int)s);
                    one_size(ref, k, &p, what);
                    problem_free(&p);
                }
}

static void test_sets(void **state)
{
    (void)state;
    check_sets(set_sizes);
}

/* The same product in pieces: rows and columns cut at random places. */
static void set_splits(const kernels *ref, const kernels *k)
{
    (void)ref;
    for (int t = 0; t < N_TYPES; t++)
        for (int turn = 0; turn < 20; turn++) {
            problem p = problem_new(types[t], 1 + check_below(40), 1 + check_below(70), 1 + check_below(700));
            problem_fill(&p, SHAPE_NORMAL, SHAPE_NORMAL);
            k->mul[p.type](&p.args);
            float *whole = mem_alloc(p.y.bytes);
            memcpy(whole, p.y.p, p.y.bytes);
            memset(p.y.p, 0x5A, p.y.bytes);
            for (int r0 = 0, r1; r0 < p.rows; r0 = r1) {
                r1 = r0 + 1 + check_below(p.rows - r0);
                for (int c0 = 0, c1; c0 < p.cols; c0 = c1) {
                    c1 = c0 + 1 + check_below(p.cols - c0);
                    mul_args a = p.args;
                    a.w = (const uint8_t *)a.w + (size_t)r0 * a.w_stride;
                    a.x = (const uint8_t *)a.x + (size_t)c0 * a.x_stride;
                    a.y += (size_t)c0 * a.y_stride + r0;
                    a.rows = r1 - r0;
                    a.cols = c1 - c0;
                    k->mul[p.type](&a);
                }
            }
            assert_true(problem_same(&p, whole, "split"));
            mem_free(whole);
            problem_free(&p);
        }
}

static void test_splits(void **state)
{
    (void)state;
    check_sets(set_splits);
}

int main(void)
{
    check_seed();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_reference), cmocka_unit_test(test_sets),
                                        cmocka_unit_test(test_splits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
