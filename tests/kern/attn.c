/* attn.c - attention over one page and the merge of pages: the reference against double precision, every set against the
 * reference, bit for bit, whatever the split in queries and whatever invisible slots hold. */
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

static const loam_type types[] = { LOAM_F32,  LOAM_F16,  LOAM_BF16, LOAM_Q8_0,  LOAM_Q5_1,
                                   LOAM_Q5_0, LOAM_Q4_1, LOAM_Q4_0, LOAM_IQ4_NL };
#define N_TYPES ((int)(sizeof types / sizeof types[0]))
#define N_FLOAT 3

typedef struct problem {
    attn_args args;
    guard k, v, q, m, s, o, scratch;
    uint64_t *visible;
    float *bias;
} problem;

typedef struct spec {
    loam_type k_type, v_type;
    int k_dim, v_dim, n_q;
    bool softcap, bias;
    int mask; /* 0 all visible, 1 causal, 2 random, 3 none or one */
} spec;

static uint64_t mask_of(int kind, int q)
{
    switch (kind) {
    case 0: return UINT64_MAX;
    case 1: return q >= 63 ? UINT64_MAX : ((uint64_t)2 << q) - 1;
    case 2: return (uint64_t)check_u32() << 32 | check_u32();
    default: return check_below(2) ? (uint64_t)1 << check_below(64) : 0;
    }
}

static size_t page_bytes(loam_type t, int dim)
{
    uint64_t bytes = 0;
    assert_true(dtype_row_bytes(t, (int64_t)dim * PAGE_SLOTS, &bytes));
    return (size_t)bytes;
}

/* Random rows of keys or values; transposed where the layout says so. */
static void fill_page(uint8_t *p, loam_type t, int dim, shape s)
{
    int64_t n = (int64_t)dim * PAGE_SLOTS;
    float *x = mem_alloc_array((size_t)n, sizeof *x);
    check_fill(x, n, s);
    kernels_for("ref")->encode[t](x, p, n);
    mem_free(x);
}

static problem problem_new(spec c, shape sk, shape sv)
{
    problem p = { 0 };
    size_t f = sizeof(float), q_stride = (size_t)(c.k_dim + check_below(9)), o_stride = (size_t)(c.v_dim + check_below(9));
    size_t n = (size_t)c.n_q;
    p.k = guard_new(page_bytes(c.k_type, c.k_dim), 0);
    p.v = guard_new(page_bytes(c.v_type, c.v_dim), 0);
    p.q = guard_new(f * q_stride * n, 4 * (size_t)check_below(16));
    p.m = guard_new(f * n, 4);
    p.s = guard_new(f * n, 8);
    p.o = guard_new(f * (n ? o_stride * (n - 1) + (size_t)c.v_dim : 0), 4 * (size_t)check_below(16));
    p.scratch = guard_new(attn_scratch(c.k_dim, c.v_dim), 0);
    p.visible = mem_alloc_array(n + 1, sizeof *p.visible);
    p.bias = mem_alloc_array(n * PAGE_SLOTS + 1, f);
    fill_page(p.k.p, c.k_type, c.k_dim, sk);
    fill_page(p.v.p, c.v_type, c.v_dim, sv);
    check_fill(guard_floats(&p.q), (int64_t)(q_stride * n), SHAPE_NORMAL);
    check_fill(p.bias, (int64_t)(n * PAGE_SLOTS), SHAPE_NORMAL);
    int first = check_below(64);
    for (int q = 0; q < c.n_q; q++) p.visible[q] = mask_of(c.mask, first + q);
    p.args = (attn_args){ .page = { p.k.p, p.v.p }, .k_type = c.k_type, .v_type = c.v_type, .k_dim = c.k_dim, .v_dim = c.v_dim,
                          .q = guard_floats(&p.q), .q_stride = q_stride, .n_q = c.n_q, .visible = p.visible,
                          .softcap = c.softcap ? 3.0f : 0.0f, .bias = c.bias ? p.bias : NULL, .m = guard_floats(&p.m),
                          .s = guard_floats(&p.s), .o = guard_floats(&p.o), .o_stride = o_stride, .scratch = p.scratch.p };
    return p;
}

static void problem_free(problem *p)
{
    guard *all[] = { &p->k, &p->v, &p->q, &p->m, &p->s, &p->o, &p->scratch };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) guard_free(all[i]);
    mem_free(p->visible);
    mem_free(p->bias);
}

static bool margins_ok(const problem *p, const char *what)
{
    return guard_ok(&p->m, what) && guard_ok(&p->s, what) && guard_ok(&p->o, what) && guard_ok(&p->scratch, what) &&
           guard_ok(&p->k, what) && guard_ok(&p->v, what);
}

/* A copy of the results of a call. */
typedef struct results {
    float *m, *s, *o;
} results;

static results results_of(const problem *p)
{
    results r = { mem_alloc(p->m.bytes), mem_alloc(p->s.bytes), mem_alloc(p->o.bytes) };
    memcpy(r.m, p->m.p, p->m.bytes);
    memcpy(r.s, p->s.p, p->s.bytes);
    memcpy(r.o, p->o.p, p->o.bytes);
    return r;
}

static void results_free(results *r)
{
    mem_free(r->m);
    mem_free(r->s);
    mem_free(r->o);
}

static bool results_same(const results *r, const problem *p, const char *what)
{
    const attn_args *a = &p->args;
    if (!check_same(r->m, a->m, a->n_q, what) || !check_same(r->s, a->s, a->n_q, what)) return false;
    for (int q = 0; q < a->n_q; q++)
        if (!check_same(r->o + (size_t)q * a->o_stride, a->o + (size_t)q * a->o_stride, a->v_dim, what)) return false;
    return margins_ok(p, what);
}

static void clear_results(problem *p)
{
    memset(p->m.p, 0x5A, p->m.bytes);
    memset(p->s.p, 0x5A, p->s.bytes);
    memset(p->o.p, 0x5A, p->o.bytes);
}

/* ---- the reference ---- */

/* Softmax over three pages in double; the merged pages must agree within some roundings. */
static void test_reference(void **state)
{
    (void)state;
    enum { DIM = 48, PAGES = 3, N = PAGES * PAGE_SLOTS };
    const kernels *k = kernels_for("ref");
    float keys[PAGES][DIM * PAGE_SLOTS], values[PAGES][PAGE_SLOTS * DIM], q[DIM], bias[PAGES][PAGE_SLOTS];
    float M = -INFINITY, S = 0.0f, O[DIM] = { 0 };
    check_fill(q, DIM, SHAPE_NORMAL);
    check_fill(keys[0], (int64_t)PAGES * DIM * PAGE_SLOTS, SHAPE_NORMAL);
    check_fill(values[0], (int64_t)PAGES * DIM * PAGE_SLOTS, SHAPE_NORMAL);
    check_fill(bias[0], (int64_t)PAGES * PAGE_SLOTS, SHAPE_NORMAL);
    uint64_t visible[PAGES] = { 0x123456789ABCDEF0u, 0, UINT64_MAX >> 20 };
    void *scratch = mem_alloc(attn_scratch(DIM, DIM));
    for (int i = 0; i < PAGES; i++) {
        float m, s, o[DIM];
        attn_args a = { .page = { keys[i], values[i] }, .k_type = LOAM_F32, .v_type = LOAM_F32, .k_dim = DIM, .v_dim = DIM,
                        .q = q, .q_stride = DIM, .n_q = 1, .visible = &visible[i], .softcap = 5.0f,
                        .bias = bias[i], .m = &m, .s = &s,
                        .o = o, .o_stride = DIM, .scratch = scratch };
        k->attn(&a);
        if (!visible[i]) assert_true(m == -INFINITY && s == 0.0f && o[0] == 0.0f && o[DIM - 1] == 0.0f);
        k->attn_merge((attn_state){ &M, &S, O }, (attn_part){ m, s, o }, DIM);
    }
    double sum = 0, out[DIM] = { 0 };
    for (int j = 0; j < N; j++) {
        if (!(visible[j / 64] >> j % 64 & 1)) continue;
        double score = 0;
        for (int d = 0; d < DIM; d++) score += (double)q[d] * keys[j / 64][d * PAGE_SLOTS + j % 64];
        double p = exp(5 * tanh(score / 5) + bias[j / 64][j % 64]);
        sum += p;
        for (int d = 0; d < DIM; d++) out[d] += p * values[j / 64][j % 64 * DIM + d];
    }
    for (int d = 0; d < DIM; d++) assert_true(fabs(O[d] / S - out[d] / sum) < 1e-5);
    mem_free(scratch);
}

/* ---- every set ---- */

static void one_spec(const kernels *ref, const kernels *k, spec c, shape s)
{
    char what[128];
    snprintf(what, sizeof what, "%s k %s %d v %s %d queries %d softcap %d bias %d mask %d shape %d", k->name,
             loam_type_name((int)c.k_type), c.k_dim, loam_type_name((int)c.v_type), c.v_dim, c.n_q, c.softcap, c.bias,
             c.mask, (int)s);
    problem p = problem_new(c, s, s);
    ref->attn(&p.args);
    results r = results_of(&p);
    clear_results(&p);
    k->attn(&p.args);
    assert_true(results_same(&r, &p, what));

    /* One query at a time, and in two parts. */
    int cut = c.n_q ? check_below(c.n_q) : 0;
    for (int turn = 0; turn < 2 && c.n_q <= 20; turn++) {
        clear_results(&p);
        for (int q = 0, n; q < c.n_q; q += n) {
            n = turn == 0 ? 1 : q == 0 && cut ? cut : c.n_q - q;
            attn_args a = p.args;
            a.q += (size_t)q * a.q_stride;
            a.visible += q;
            a.bias = a.bias ? a.bias + (size_t)q * PAGE_SLOTS : NULL;
            a.m += q;
            a.s += q;
            a.o += (size_t)q * a.o_stride;
            a.n_q = n;
            k->attn(&a);
        }
        assert_true(results_same(&r, &p, what));
    }
    results_free(&r);
    problem_free(&p);
}

static void set_sizes(const kernels *ref, const kernels *k)
{
    static const int dims[][2] = { { 64, 64 }, { 80, 80 }, { 96, 96 }, { 128, 128 }, { 192, 128 }, { 256, 256 }, { 576, 512 },
                                   { 1, 1 }, { 15, 17 }, { 33, 31 }, { 40, 24 }, { 100, 65 } };
    static const int queries[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 64 };
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        for (size_t n = 0; n < sizeof queries / sizeof queries[0]; n++)
            for (int mask = 0; mask < 4; mask++) {
                if (dims[d][0] > 200 && queries[n] > 8 && check_below(3)) continue; /* keeps the run short */
                spec c = { types[check_below(N_FLOAT)], types[check_below(N_FLOAT)], dims[d][0], dims[d][1], queries[n],
                           check_below(4) == 0, check_below(4) == 0, mask };
                one_spec(ref, k, c, check_below(3) ? SHAPE_NORMAL : (shape)check_below(SHAPE_COUNT));
            }
    for (int kt = 0; kt < N_TYPES; kt++)
        for (int vt = 0; vt < N_TYPES; vt++) {
            if (!ref->encode[types[kt]] || !ref->encode[types[vt]]) continue;
            spec c = { types[kt], types[vt], 64 + 32 * check_below(3), 64 + 32 * check_below(3), 1 + check_below(14), false,
                       false, check_below(4) };
            one_spec(ref, k, c, SHAPE_NORMAL);
        }
}

static void test_sets(void **state)
{
    (void)state;
    check_sets(set_sizes);
}

/* What invisible slots hold changes nothing, and what a later query sees does not reach an earlier one. */
static void set_invisible(const kernels *ref, const kernels *k)
{
    (void)ref;
    for (int turn = 0; turn < 60; turn++) {
        spec c = { types[turn % 3], types[turn / 3 % 3], 64, 16 * (1 + check_below(9)), 1 + check_below(14), false, false,
                   1 + turn % 3 };
        problem p = problem_new(c, SHAPE_NORMAL, SHAPE_NORMAL);
        k->attn(&p.args);
        results r = results_of(&p);
        int slot = check_below(PAGE_SLOTS), bytes = c.k_type == LOAM_F32 ? 4 : 2, v_bytes = c.v_type == LOAM_F32 ? 4 : 2;
        for (int d = 0; d < c.k_dim; d++) memset(p.k.p + (size_t)((d * PAGE_SLOTS + slot) * bytes), 0xFF, (size_t)bytes);
        memset(p.v.p + (size_t)(slot * c.v_dim * v_bytes), 0xFF, (size_t)(c.v_dim * v_bytes));
        clear_results(&p);
        k->attn(&p.args);
        for (int q = 0; q < c.n_q; q++) {
            const float *before = r.o + (size_t)q * p.args.o_stride, *after = p.args.o + (size_t)q * p.args.o_stride;
            if (p.visible[q] >> slot & 1) {
                assert_true(isnan(p.args.s[q]) && isnan(after[0]) && p.args.m[q] > -INFINITY);
            } else {
                assert_true(check_same(before, after, c.v_dim, "invisible slot"));
                assert_true(check_same(r.m + q, p.args.m + q, 1, "invisible slot"));
                assert_true(check_same(r.s + q, p.args.s + q, 1, "invisible slot"));
            }
        }
        results_free(&r);
        problem_free(&p);
    }
}

static void test_invisible(void **state)
{
    (void)state;
    check_sets(set_invisible);
}

int main(void)
{
    check_seed();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_reference), cmocka_unit_test(test_sets),
                                        cmocka_unit_test(test_invisible) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
