/* quant_search.c - the searches of the encoders: the same bits from the portable and the AVX2 form, the neighbour lists of
 * the codebooks, their construction under failing allocations and from several threads. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "quant/grid.h"
#include "quant/quant.h"
#include "quant/search.h"

#include <cmocka.h> /* last: it has a macro named fail */

static uint64_t seed = 42;

static uint32_t random_u32(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

/* Roughly normal with deviation 1. */
static float random_normal(void)
{
    float sum = 0.0f;
    for (int k = 0; k < 12; k++) sum += (float)random_u32() * 0x1p-32f;
    return sum - 6.0f;
}

#if defined(__x86_64__)
static void random_group(lane_group *in, int n)
{
    in->n = n;
    for (int l = 0; l < SEARCH_LANES; l++) {
        int kind = (int)(random_u32() % 6);
        for (int i = 0; i < n; i++) {
            float v = random_normal();
            in->x[i][l] = kind == 0 ? 0.0f : kind == 1 ? fabsf(v) : kind == 2 ? roundf(v) : kind == 3 ? v * 1e-17f : v;
            in->w[i][l] = kind == 4 && random_u32() % 2 ? 0.0f : fabsf(random_normal());
        }
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    if (!(cpu_features() & CPU_AVX2)) skip();
    static const min_rule rules[] = { { 3, 15, -0.5f, 0.1f, true }, { 15, 20, -1.0f, 0.1f, false },
                                      { 31, 36, -0.9f, 0.05f, false } };
    const int bytes_of_b = (int)sizeof(float) * SEARCH_LANES;
    for (int trial = 0; trial < 2000; trial++) {
        lane_group in;
        lane_fit a, b;
        int n = trial % 2 ? 16 : 32;
        random_group(&in, n);
        for (int k = 0; k < 6; k++) {
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            if (k < 3) {
                search_portable.fit_min(&in, &rules[k], &a);
                search_avx2.fit_min(&in, &rules[k], &b);
            } else if (k == 3) {
                search_portable.fit_sym(&in, 32, &a);
                search_avx2.fit_sym(&in, 32, &b);
            } else if (k == 4) {
                search_portable.fit_sym_descent(&in, 4, &a);
                search_avx2.fit_sym_descent(&in, 4, &b);
            } else {
                search_portable.fit_iq4(&in, &a);
                search_avx2.fit_iq4(&in, &b);
            }
            /* Zero groups may differ in the sign of zero levels nowhere: compare values. */
            for (int i = 0; i < n && k < 5; i++)
                for (int l = 0; l < SEARCH_LANES; l++) assert_true(a.q[i][l] == b.q[i][l]);
            assert_memory_equal(a.a, b.a, bytes_of_b);
            assert_memory_equal(a.b, b.b, bytes_of_b);
        }
    }
}

static void test_same_entries(void **state)
{
    (void)state;
    if (!(cpu_features() & CPU_AVX2)) skip();
    const loam_type types[] = { LOAM_IQ2_XXS, LOAM_IQ2_XS, LOAM_IQ2_S, LOAM_IQ3_XXS, LOAM_IQ3_S };
    for (int t = 0; t < 5; t++) {
        assert_int_equal(quant_prepare(types[t], NULL), LOAM_OK);
        const grid_index *index = grid_get(types[t]);
        for (int trial = 0; trial < 500; trial++) {
            grid_group a = { .n = 32 }, b;
            float g[GRID_TRIES];
            for (int i = 0; i < 32; i++) {
                a.x[i] = fabsf(random_normal());
                a.w[i] = fabsf(random_normal());
                a.root[i] = sqrtf(a.w[i]);
            }
            for (int k = 0; k < GRID_TRIES; k++) g[k] = (t < 3 ? 2.0f : 5.0f) + 0.1f * (float)k;
            b = a;
            search_portable.grid_search(index, &a, g, 19);
            search_avx2.grid_search(index, &b, g, 19);
            assert_true(a.a == b.a && a.off == b.off);
            search_portable.grid_choose(index, &a, a.off, a.a);
            search_avx2.grid_choose(index, &b, b.off, b.a);
            assert_true(a.a == b.a);
            assert_memory_equal(a.entry, b.entry, sizeof a.entry / 8 * (size_t)(32 / index->digits));
        }
    }
}
#endif

/* The neighbours found through the lists are those of a search over the whole codebook. */
static void test_neighbour_lists(void **state)
{
    (void)state;
    assert_int_equal(quant_prepare(LOAM_IQ3_S, NULL), LOAM_OK);
    const grid_index *index = grid_get(LOAM_IQ3_S);
    int absent = 0;
    for (int p = 0; p < 4096; p++) {
        if (index->place[p] >= 0) continue;
        absent++;
        int distances[3] = { -1, -1, -1 }, found = 0, count = 0;
        for (int d = 1; d < 200 && found < 3; d++) {
            int here = 0;
            for (int e = 0; e < 512; e++) {
                int sum = 0;
                for (int i = 0; i < 4; i++) {
                    int diff = (index->entry[e][i] - 1) / 2 - (p >> 3 * i & 7);
                    sum += diff * diff;
                }
                here += sum == d;
            }
            if (here) distances[found++] = d;
            count += here;
        }
        assert_int_equal(index->chunks[p], (count + 7) / 8);
        assert_true(distances[2] > distances[0]);
    }
    assert_int_equal(absent, 4096 - 512);
}

/* ---- memory and threads ------------------------------------------------------------------------------------------ */

static int allocations_left;

static void *failing_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    if (allocations_left-- <= 0) return NULL;
    return realloc(p, new_size);
}

/* Runs first, before any codebook is there: every allocation fails once, then it works. */
static void test_failing_allocations(void **state)
{
    (void)state;
    const loam_allocator hook = { failing_resize, NULL };
    loam_set_allocator(&hook);
    loam_status status = LOAM_E_NOMEM;
    int n = 0;
    for (; n < 50 && status == LOAM_E_NOMEM; n++) {
        loam_error err;
        allocations_left = n;
        status = quant_prepare(LOAM_IQ3_XXS, &err);
    }
    assert_int_equal(status, LOAM_OK);
    assert_true(n > 3);
    loam_set_allocator(NULL);
}

static void *prepare_all(void *arg)
{
    loam_status *status = arg;
    for (int type = 0; type < LOAM_TYPE_LIMIT && *status == LOAM_OK; type++)
        if (loam_type_name(type)) *status = quant_prepare((loam_type)type, NULL);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    loam_status status[4] = { LOAM_OK, LOAM_OK, LOAM_OK, LOAM_OK };
    for (int k = 0; k < 4; k++) assert_int_equal(pthread_create(&threads[k], NULL, prepare_all, &status[k]), 0);
    for (int k = 0; k < 4; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(status[k], LOAM_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocations), cmocka_unit_test(test_threads),
#if defined(__x86_64__)
        cmocka_unit_test(test_same_bits),           cmocka_unit_test(test_same_entries),
#endif
        cmocka_unit_test(test_neighbour_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
