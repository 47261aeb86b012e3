/* pool.c - the thread pool: sums across barriers, too many threads, life times, lending, rounding modes. */
#include <fenv.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/os.h"
#include "base/pool.h"
#include "check.h"
#include "fault.h"

enum { MOST = 16 };

/* Every round each thread adds its number into its slot, and after the barrier checks everybody's slot. */
typedef struct rounds {
    pool *p;
    int n_rounds;
    long slot[MOST * 16]; /* plain memory: the barrier must make it visible */
    atomic_int wrong, threads;
} rounds;

static void count_rounds(void *arg, int ith, int nth)
{
    rounds *r = arg;
    atomic_fetch_add(&r->threads, 1);
    for (int i = 1; i <= r->n_rounds; i++) {
        r->slot[ith * 16] += ith + 1;
        pool_barrier(r->p, ith);
        for (int t = 0; t < nth; t++)
            if (r->slot[t * 16] != (long)(t + 1) * i) atomic_fetch_add(&r->wrong, 1);
        pool_barrier(r->p, ith);
    }
}

static void check_rounds(pool *p, int n, int n_rounds)
{
    rounds r = { .p = p, .n_rounds = n_rounds };
    assert_int_equal(pool_run_n(p, n, count_rounds, &r), LOAM_OK);
    assert_int_equal(atomic_load(&r.threads), n);
    assert_int_equal(atomic_load(&r.wrong), 0);
}

static pool *new_pool(int n)
{
    loam_error err;
    pool *p;
    assert_int_equal(pool_new(&p, n, &err), LOAM_OK);
    assert_int_equal(pool_threads(p), n);
    return p;
}

static void test_barriers(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        pool *p = new_pool(n);
        check_rounds(p, n, 20000 / n);
        pool_free(p);
    }
}

/* More threads than CPUs: with spinning this would take minutes. */
static void test_oversubscribed(void **state)
{
    (void)state;
    int n = os_cpu_count() * 4 < MOST ? os_cpu_count() * 4 : MOST;
    pool *p = new_pool(n);
    check_rounds(p, n, 1000);
    pool_free(p);
}

static void test_fewer_threads_than_the_pool(void **state)
{
    (void)state;
    pool *p = new_pool(4);
    for (int i = 0; i < 500; i++) check_rounds(p, 1 + i % 4, 3);
    rounds r = { .p = p, .n_rounds = 2 };
    assert_int_equal(pool_run_n(p, 100, count_rounds, &r), LOAM_OK); /* no more than there are */
    assert_int_equal(atomic_load(&r.threads), 4);
    pool_free(p);
}

static void test_start_and_stop(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        pool *p = new_pool(1 + i % 5);
        for (int k = 0; k < i % 3; k++) check_rounds(p, pool_threads(p), 2);
        pool_free(p);
    }
    pool_free(NULL);
}

typedef struct loan {
    pool *p;
    loam_status status;
} loan;

static void lend(void *arg)
{
    loan *l = arg;
    rounds r = { .p = l->p, .n_rounds = 50 };
    l->status = pool_run(l->p, count_rounds, &r);
    if (atomic_load(&r.wrong)) l->status = LOAM_E_NUMERIC;
}

/* Users on several threads, one after the other. */
static void test_lending(void **state)
{
    (void)state;
    loan l = { .p = new_pool(3) };
    for (int i = 0; i < 50; i++) {
        l.status = LOAM_E_ARG;
        os_thread *t = os_thread_start(lend, &l);
        assert_non_null(t);
        os_thread_join(t);
        assert_int_equal(l.status, LOAM_OK);
        check_rounds(l.p, 3, 5);
    }
    pool_free(l.p);
}

static void run_inside(void *arg, int ith, int nth)
{
    (void)nth;
    rounds *r = arg;
    if (pool_run(r->p, run_inside, arg) != LOAM_E_ARG) atomic_fetch_add(&r->wrong, 1);
    pool_barrier(r->p, ith);
}

static void test_refusals(void **state)
{
    (void)state;
    rounds r = { .p = new_pool(2) };
    assert_int_equal(pool_run(r.p, run_inside, &r), LOAM_OK);
    assert_int_equal(atomic_load(&r.wrong), 0);
    assert_int_equal(pool_run_n(r.p, 0, count_rounds, &r), LOAM_E_ARG);
    check_rounds(r.p, 2, 10);
    pool_free(r.p);

    loam_error err;
    pool *p;
    static const int bad[] = { 0, -1, LIMIT_THREADS + 1, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pool_new(&p, bad[i], &err), LOAM_E_ARG);
        assert_null(p);
    }
}

static void look_at_rounding(void *arg, int ith, int nth)
{
    (void)ith;
    (void)nth;
    rounds *r = arg;
    volatile float one = 1.0f, three = 3.0f, tiny = 0x1p-140f;
    bool ok = fegetround() == FE_TONEAREST && one / three == 0x1.555556p-2f && tiny * 0.5f != 0.0f;
    if (!ok) atomic_fetch_add(&r->wrong, 1);
    fesetround(FE_UPWARD);
}

/* Whatever mode the caller or the last run left behind, a run sees the default; the caller gets its own back. */
static void test_rounding_mode(void **state)
{
    (void)state;
    rounds r = { .p = new_pool(2) };
    fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040u); /* flush to zero, denormals are zero */
#endif
    for (int i = 0; i < 10; i++) assert_int_equal(pool_run(r.p, look_at_rounding, &r), LOAM_OK);
#if defined(__x86_64__)
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode);
    assert_int_equal(after & 0x8040u, 0x8040u);
#endif
    assert_int_equal(fegetround(), FE_DOWNWARD);
    fesetround(FE_TONEAREST);
    assert_int_equal(atomic_load(&r.wrong), 0);
    pool_free(r.p);
}

static void test_no_pool(void **state)
{
    (void)state;
    rounds r = { .n_rounds = 3 };
    assert_int_equal(pool_run(NULL, count_rounds, &r), LOAM_OK);
    assert_int_equal(atomic_load(&r.threads), 1);
    assert_int_equal(atomic_load(&r.wrong), 0);
    assert_int_equal(pool_threads(NULL), 1);
}

/* A thread that cannot be started makes the pool smaller; no memory for the pool is a status. */
static loam_status make_and_run(void *arg, loam_error *err)
{
    (void)arg;
    pool *p;
    loam_status status = pool_new(&p, 4, err);
    if (status != LOAM_OK) return status;
    check_rounds(p, pool_threads(p), 10);
    pool_free(p);
    return LOAM_OK;
}

static void test_failing_starts(void **state)
{
    (void)state;
    assert_int_equal(fault_loop("pool", make_and_run, NULL), 4);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barriers), cmocka_unit_test(test_oversubscribed),
        cmocka_unit_test(test_fewer_threads_than_the_pool), cmocka_unit_test(test_start_and_stop),
        cmocka_unit_test(test_lending), cmocka_unit_test(test_refusals), cmocka_unit_test(test_rounding_mode),
        cmocka_unit_test(test_no_pool), cmocka_unit_test(test_failing_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
