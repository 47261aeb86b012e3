/* mul.c - every product of quantized weights, of every instruction set that this machine runs, against the reference.
 *
 * The reference is held against the decoders and double arithmetic; the other sets must give its bits, whatever the
 * shape of the call and however it is split. Inputs are drawn from a seed that is printed; LOAM_SEED=n repeats it. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/mem.h"
#include "blocks.h"
#include "check.h"
#include "kernels/act.h"
#include "kernels/kernels.h"
#include "kernels/ref/mul.h"
#include "quant/quant.h"

static uint64_t seed, state;

/* A crash in a kernel is the failure of its case, not the end of the run. */
static sigjmp_buf crash;
static void on_crash(int sig) { siglongjmp(crash, sig); }

static bool has_product(int type) { return weight_forms[type].unpack256 || weight_forms[type].unpack32; }
static bool is_super(int type) { return weight_forms[type].unpack256 != NULL; }
static int64_t row_values(int type) { return dtype_table[type].values > 32 ? dtype_table[type].values : 32; }

/* ---- unpackers against decoders ---------------------------------------------------------------------------------- */

static void check_unpacked(int type, const uint8_t *row, const float *want, int64_t k)
{
    weight256 s;
    weight32 b;
    for (int64_t i = 0; i < k; i++) {
        double have;
        if (is_super(type)) {
            if (i % 256 == 0) weight_forms[type].unpack256(row, i / 256, &s);
            have = (double)s.d * s.scale[i % 256 / 16] * s.level[i % 256] - (double)s.dmin * s.min[i % 256 / 16];
        } else {
            if (i % 32 == 0) weight_forms[type].unpack32(row, i / 32, &b);
            have = (double)b.d[i % 32 / 16] * b.level[i % 32] + (double)b.m;
        }
        if (isnan(have) || !isfinite(want[i])) continue;
        const double slack = is_super(type) ? fabs((double)s.dmin * s.min[i % 256 / 16]) : fabs((double)b.m);
        if (fabs(have - want[i]) > 1e-7 * (fabs((double)want[i]) + slack)) fail_msg("%s value %d: %.9g, decoder %.9g",
            dtype_table[type].name, (int)i, have, want[i]);
    }
}

static void unpackers_agree_with_decoders(void **unused)
{
    (void)unused;
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        if (!has_product(type)) continue;
        const int64_t k = 64 * 256;
        const size_t bytes = (size_t)(k / dtype_table[type].values * dtype_table[type].bytes);
        uint8_t *row = mem_alloc(bytes);
        float *want = mem_alloc_array((size_t)k, sizeof *want);
        assert_true(row && want);
        for (int shape = 0; shape < BLOCKS_SHAPES; shape++) {
            blocks_fill((loam_type)type, (blocks_shape)shape, row, bytes, &state);
            quant_table[type].decode(row, want, k);
            check_unpacked(type, row, want, k);
        }
        mem_free(row);
        mem_free(want);
    }
}

/* ---- activations ------------------------------------------------------------------------------------------------- */

static void activation_forms(void **unused)
{
    (void)unused;
    const kernels *ref = kernels_for("ref");
    for (unsigned n = 0; n < 200; n++) {
        const bool wide = n & 1;
        const int64_t k = wide ? 256 * (1 + n % 5) : 32 * (1 + n % 23);
        const act_kind kind = wide ? ACT_A256 : ACT_A32;
        const size_t bytes = act_bytes(kind, k);
        float *x = mem_alloc_array((size_t)k, sizeof *x);
        uint8_t *want = mem_alloc(bytes), *have = mem_alloc(bytes + 64);
        assert_true(x && want && have);
        blocks_column(x, k, n % BLOCKS_COLUMNS, &state);
        memset(want, 0, bytes); /* the forms have bytes that nobody writes */
        ref->act_encode[kind](x, want, k);
        for (int i = 0; kernels_set_name(i); i++) {
            const kernels *set = kernels_for(kernels_set_name(i));
            if (!set) continue;
            memset(have, 0, bytes);
            memset(have + bytes, 0xA5, 64);
            set->act_encode[kind](x, have, k);
            if (memcmp(have, want, bytes) != 0) fail_msg("activations %u of %d values differ: %s", n, (int)k, set->name);
            for (int j = 0; j < 64; j++) assert_int_equal(have[bytes + (size_t)j], 0xA5);
        }
        for (int64_t i = 0; i < k; i++) {
            const uint8_t *g = want + (size_t)(i / 256) * sizeof(act_a32);
            const float d = wide ? ((const act_a256 *)g)->d : ((const act_a32 *)g)->d[i % 256 / 32];
            const int q = ((const int8_t *)g)[i % 256];
            assert_true(q >= -127 && q <= 127);
            if (isfinite(d)) assert_true(fabs((double)d * q - x[i]) <= fabs((double)d) * 0.500001 + 0x1p-80);
        }
        mem_free(x);
        mem_free(want);
        mem_free(have);
    }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

typedef struct problem {
    int type, rows, cols;
    int64_t k;
    size_t w_stride, x_stride, y_stride;
    uint8_t *w_block, *w, *x;
    float *columns, *want, *have, *have_block;
    void *scratch;
} problem;

enum { MARGIN = 16, SKEW = 3 };   /* floats around y; w starts at an odd address */
static const uint32_t poison = 0x7FABCDEFu;

static void problem_open(problem *p, int type, blocks_shape shape, unsigned columns)
{
    const size_t row = (size_t)(p->k / dtype_table[type].values * dtype_table[type].bytes);
    const act_kind kind = dtype_table[type].act;
    p->type = type;
    p->w_stride = row + (p->rows % 3 == 0 ? (size_t)dtype_table[type].bytes : 0);
    p->x_stride = act_bytes(kind, p->k) + (p->cols % 2 ? 64 : 0);
    p->y_stride = (size_t)p->rows + MARGIN;
    /* Weights end where the block of memory ends: a read beyond them is seen by a sanitizer. */
    const size_t w_bytes = (size_t)p->rows * p->w_stride;
    p->w_block = mem_alloc(w_bytes + SKEW);
    p->w = p->w_block + SKEW;
    p->x = mem_zalloc((size_t)p->cols * p->x_stride);
    p->columns = mem_alloc_array((size_t)p->cols * (size_t)p->k, sizeof(float));
    const size_t y = (size_t)p->cols * p->y_stride + 2 * MARGIN;
    p->want = mem_alloc_array(y, sizeof(float));
    p->have = mem_alloc_array(y, sizeof(float));
    p->scratch = mem_alloc(mul_scratch(p->k));
    assert_true(p->w_block && p->x && p->columns && p->want && p->have && p->scratch);
    for (int r = 0; r < p->rows; r++) blocks_fill((loam_type)type, shape, p->w + (size_t)r * p->w_stride, row, &state);
    for (int c = 0; c < p->cols; c++) {
        float *x = p->columns + (size_t)c * (size_t)p->k;
        blocks_column(x, p->k, columns == BLOCKS_COLUMNS ? (unsigned)c % BLOCKS_COLUMNS : columns, &state);
        kernels_for("ref")->act_encode[kind](x, p->x + (size_t)c * p->x_stride, p->k);
    }
    for (size_t i = 0; i < y; i++) memcpy(&p->want[i], &poison, 4);
}

static void problem_close(problem *p)
{
    void *all[] = { p->w_block, p->x, p->columns, p->want, p->have, p->scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_free(all[i]);
}

static void run_part(const problem *p, const kernels *set, float *y, const int part[4])
{
    const mul_args a = { .w = p->w + (size_t)part[0] * p->w_stride, .w_stride = p->w_stride,
        .x = p->x + (size_t)part[2] * p->x_stride, .x_stride = p->x_stride,
        .y = y + MARGIN + (size_t)part[2] * p->y_stride + part[0], .y_stride = p->y_stride,
        .k = p->k, .rows = part[1], .cols = part[3], .scratch = p->scratch };
    set->mul[p->type](&a);
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, 4) == 0 || (isnan(a) && isnan(b));
}

/* Everything of y, margins included, is as in want. */
static void compare(const problem *p, const kernels *set, const char *how)
{
    const size_t y = (size_t)p->cols * p->y_stride + 2 * MARGIN;
    for (size_t i = 0; i < y; i++) {
        if (same(p->have[i], p->want[i])) continue;
        const long at = (long)i - MARGIN, c = at / (long)p->y_stride, r = at % (long)p->y_stride;
        fail_msg("%s %s (%s): k %d, %d rows, %d columns: row %ld column %ld is %a, reference %a (seed %llu)", set->name,
            dtype_table[p->type].name, how, (int)p->k, p->rows, p->cols, r, c, (double)p->have[i], (double)p->want[i],
            (unsigned long long)seed);
    }
}

static void reset(problem *p)
{
    const size_t y = (size_t)p->cols * p->y_stride + 2 * MARGIN;
    for (size_t i = 0; i < y; i++) memcpy(&p->have[i], &poison, 4);
}

static void check_set(problem *p, const kernels *set)
{
    const int whole[4] = { 0, p->rows, 0, p->cols };
    for (int i = 0; i < 4; i++) signal((const int[]){ SIGSEGV, SIGILL, SIGFPE, SIGBUS }[i], on_crash);
    const int caught = sigsetjmp(crash, 1);
    if (caught) fail_msg("%s %s: signal %d, k %d, %d rows, %d columns (seed %llu)", set->name, dtype_table[p->type].name,
        caught, (int)p->k, p->rows, p->cols, (unsigned long long)seed);
    reset(p);
    run_part(p, set, p->have, whole);
    compare(p, set, "whole");
    if (p->rows * p->cols == 1) return;
    reset(p);
    const int r = 1 + (int)(blocks_random(&state) % (uint64_t)p->rows), c = 1 + (int)(blocks_random(&state) % (uint64_t)p->cols);
    const int parts[4][4] = { { 0, r, 0, c }, { r, p->rows - r, 0, c }, { 0, r, c, p->cols - c }, { r, p->rows - r, c, p->cols - c } };
    for (int i = 0; i < 4; i++)
        if (parts[i][1] > 0 && parts[i][3] > 0) run_part(p, set, p->have, parts[i]);
    compare(p, set, "split");
}

/* The reference is a product: against decoded weights and activations in double arithmetic. */
static void check_reference(const problem *p)
{
    float *w = mem_alloc_array((size_t)p->k, sizeof *w);
    assert_non_null(w);
    for (int r = 0; r < p->rows; r++) {
        quant_table[p->type].decode(p->w + (size_t)r * p->w_stride, w, p->k);
        for (int c = 0; c < p->cols; c++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < p->k; i++) {
                const uint8_t *g = p->x + (size_t)c * p->x_stride + (size_t)(i / 256) * sizeof(act_a32);
                const float d = is_super(p->type) ? ((const act_a256 *)g)->d : ((const act_a32 *)g)->d[i % 256 / 32];
                const double term = (double)w[i] * d * ((const int8_t *)g)[i % 256];
                sum += term;
                size += fabs(term);
            }
            const double have = p->want[MARGIN + (size_t)c * p->y_stride + (size_t)r];
            /* The parts of a weight with a minimum are larger than their difference: 20 times at most in these blocks. */
            if (!(fabs(have - sum) <= 2e-5 * size + 1e-30))
                fail_msg("%s: row %d column %d is %.9g, exact %.9g", dtype_table[p->type].name, r, c, have, sum);
        }
    }
    mem_free(w);
}

typedef struct shape_case {
    int rows, cols, pieces;        /* k is pieces times the type's least row */
    blocks_shape shape;
    unsigned columns;
} shape_case;

static const shape_case cases[] = {
    { 1, 1, 1, BLOCKS_NORMAL, 0 }, { 16, 1, 2, BLOCKS_NORMAL, 0 }, { 16, 2, 3, BLOCKS_NORMAL, 0 }, { 17, 3, 1, BLOCKS_NORMAL, 1 },
    { 5, 4, 9, BLOCKS_NORMAL, 0 }, { 33, 5, 2, BLOCKS_NORMAL, 0 }, { 48, 6, 4, BLOCKS_NORMAL, 5 }, { 31, 7, 3, BLOCKS_NORMAL, 0 },
    { 32, 8, 8, BLOCKS_NORMAL, 0 }, { 19, 9, 5, BLOCKS_NORMAL, 0 }, { 16, 16, 2, BLOCKS_NORMAL, 0 }, { 20, 17, 1, BLOCKS_NORMAL, 0 },
    { 35, 33, 2, BLOCKS_NORMAL, 0 }, { 3, 512, 1, BLOCKS_NORMAL, 0 }, { 18, 2, 19, BLOCKS_NORMAL, 0 }, { 18, 13, 19, BLOCKS_NORMAL, 0 },
    { 150, 21, 3, BLOCKS_NORMAL, 0 }, { 16, 1, 70, BLOCKS_NORMAL, 0 }, { 2, 11, 70, BLOCKS_NORMAL, 0 },
    { 17, 7, 2, BLOCKS_ZERO, BLOCKS_COLUMNS }, { 33, 7, 2, BLOCKS_DENORMAL, BLOCKS_COLUMNS }, { 17, 14, 2, BLOCKS_HUGE, BLOCKS_COLUMNS },
    { 33, 14, 2, BLOCKS_NONFINITE, BLOCKS_COLUMNS }, { 33, 21, 2, BLOCKS_RAW, BLOCKS_COLUMNS }, { 17, 3, 4, BLOCKS_RAW, BLOCKS_COLUMNS },
    { 17, 7, 2, BLOCKS_NORMAL, BLOCKS_COLUMNS },
};

static void products(void **unused)
{
    (void)unused;
    const kernels *ref = kernels_for("ref");
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        if (!has_product(type)) continue;
        for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
            problem p = { .rows = cases[n].rows, .cols = cases[n].cols, .k = cases[n].pieces * row_values(type) };
            problem_open(&p, type, cases[n].shape, cases[n].columns);
            const int whole[4] = { 0, p.rows, 0, p.cols };
            run_part(&p, ref, p.want, whole);
            if (cases[n].shape == BLOCKS_NORMAL && cases[n].columns < 2 && p.cols < 20) check_reference(&p);
            const kernels *last = NULL;
            for (int i = 0; kernels_set_name(i); i++) {
                const kernels *set = kernels_for(kernels_set_name(i));
                if (!set || (last && last->mul[type] == set->mul[type])) continue;
                check_set(&p, set);
                last = set;
            }
            problem_close(&p);
        }
    }
}

int main(void)
{
    const char *given = env_get("LOAM_SEED");
    seed = given ? strtoull(given, NULL, 10) : 20240229u;
    state = seed;
    printf("seed %llu, sets:", (unsigned long long)seed);
    for (int i = 0; kernels_set_name(i); i++)
        if (kernels_for(kernels_set_name(i))) printf(" %s", kernels_set_name(i));
    printf("\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpackers_agree_with_decoders),
        cmocka_unit_test(activation_forms),
        cmocka_unit_test(products),
    };
    return cmocka_run_group_tests_name("kern.mul", tests, NULL, NULL);
}
