/* memory.c - pages, tables and transactions of the cache, against a plain list of tokens per sequence. */
#include <limits.h>
#include <string.h>

#include "check.h"

#include "base/mem.h"
#include "memory/internal.h"

#define N_SEQ 4
#define N_CTX 512

static memory *fresh(int window, int n_seq)
{
    memory_layer layers[2] = { { true, 2, 8, 8, 0 }, { true, 2, 8, 8, window } };
    memory_params p = { layers, 2, N_CTX, N_CTX, n_seq, N_CTX, LOAM_F32, LOAM_F32 };
    memory *m = NULL;
    loam_error err;
    assert_int_equal(memory_new(&m, &p, &err), LOAM_OK);
    return m;
}

static loam_status add(memory *m, int pos, const int32_t *seqs, int n)
{
    memory_token t = { pos, seqs, n };
    return memory_add(m, &t);
}

static void commit_tokens(memory *m, int seq, int pos, int n)
{
    int32_t q = seq, positions[N_CTX];
    const kv_view *view;
    memory_begin(m);
    for (int i = 0; i < n; i++) {
        positions[i] = pos + i;
        assert_int_equal(add(m, pos + i, &q, 1), LOAM_OK);
    }
    assert_int_equal(memory_view(m, 0, n, positions, &view), LOAM_OK);
    memory_commit(m);
}

static int count_tokens(const memory *m, int seq)
{
    int n = 0;
    const mem_table *t = &m->groups[0].tables[seq];
    for (int i = 0; i < t->n; i++) n += m->groups[0].pages[t->pages[i]].count;
    return n;
}

static void copies_share_pages(void **state)
{
    (void)state;
    memory *m = fresh(0, N_SEQ);
    commit_tokens(m, 0, 0, 100);
    int32_t free_before = m->groups[0].n_free;
    assert_int_equal(memory_seq_cp(m, 0, 1, 0, INT32_MAX), LOAM_OK);
    assert_int_equal(m->groups[0].n_free, free_before);
    assert_int_equal(memory_pos_max(m, 1), 99);
    commit_tokens(m, 1, 100, 1); /* copies the shared last page */
    assert_int_equal(m->groups[0].n_free, free_before - 1);
    assert_int_equal(m->groups[0].n_tokens, 101);
    assert_int_equal(memory_pos_max(m, 0), 99);
    assert_int_equal(memory_pos_max(m, 1), 100);
    memory_seq_rm(m, 0, 0, INT32_MAX);
    assert_int_equal(count_tokens(m, 1), 101);
    memory_clear(m);
    assert_int_equal(m->groups[0].n_free, m->groups[0].n_pages);
    assert_int_equal(m->groups[0].n_tokens, 0);
    memory_free(m);
}

static void rollback_restores(void **state)
{
    (void)state;
    memory *m = fresh(0, N_SEQ);
    commit_tokens(m, 0, 0, 70);
    assert_int_equal(memory_seq_cp(m, 0, 1, 0, INT32_MAX), LOAM_OK);
    int32_t free_before = m->groups[0].n_free;
    int32_t both[] = { 0, 1 }, one = 1, positions[200];
    const kv_view *view;
    memory_begin(m);
    assert_int_equal(add(m, 70, both, 2), LOAM_OK);
    for (int i = 1; i < 200; i++) assert_int_equal(add(m, 70 + i, &one, 1), LOAM_OK);
    for (int i = 0; i < 200; i++) positions[i] = 70 + i;
    assert_int_equal(memory_view(m, 0, 100, positions, &view), LOAM_OK);
    memory_rollback(m);
    assert_int_equal(m->groups[0].n_free, free_before);
    assert_int_equal(m->groups[0].n_tokens, 70);
    for (int q = 0; q < 2; q++) {
        assert_int_equal(count_tokens(m, q), 70);
        assert_int_equal(memory_pos_max(m, q), 69);
    }
    memory_free(m);
}

static void full_is_refused(void **state)
{
    (void)state;
    memory *m = fresh(0, N_SEQ);
    commit_tokens(m, 0, 0, 500);
    int32_t one = 1;
    memory_begin(m);
    for (int i = 0; i < 12; i++) assert_int_equal(add(m, i, &one, 1), LOAM_OK);
    assert_int_equal(add(m, 12, &one, 1), LOAM_E_FULL);
    memory_rollback(m);
    assert_int_equal(memory_pos_max(m, 1), -1);
    commit_tokens(m, 1, 0, 12);
    memory_free(m);
}

static void windows_are_given_back(void **state)
{
    (void)state;
    memory *m = fresh(64, 1);
    for (int i = 0; i < 400; i += 20) commit_tokens(m, 0, i, 20);
    assert_int_equal(m->n_groups, 2);
    assert_int_equal(m->groups[0].tables[0].n, 7);
    assert_true(m->groups[1].tables[0].n <= 3);
    assert_int_equal(memory_pos_max(m, 0), 399);
    assert_true(memory_pos_min(m, 0) <= 400 - 64 + 1);
    memory_free(m);
}

/* Random operations against a plain model: sets of positions per sequence. */
static void random_schedules(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    for (int round = 0; round < 60; round++) {
        memory *m = fresh(0, N_SEQ);
        static bool has[N_SEQ][4096];
        memset(has, 0, sizeof has);
        for (int step = 0; step < 200; step++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t r = (uint32_t)(seed >> 33);
            int q = r % N_SEQ, what = r / 7 % 6, a = r / 101 % 300, b = a + (int)(r / 3001 % 200);
            int last = memory_pos_max(m, q);
            if (what < 3) {
                int n = 1 + r / 11 % 40;
                int32_t seq = q, positions[64];
                const kv_view *view;
                loam_status status = memory_begin(m);
                for (int i = 0; i < n && status == LOAM_OK; i++) positions[i] = last + 1 + i, status = add(m, last + 1 + i, &seq, 1);
                if (status == LOAM_OK && r % 5) {
                    memory_view(m, 0, n, positions, &view);
                    memory_commit(m);
                    for (int i = 0; i < n; i++) has[q][last + 1 + i] = true;
                } else {
                    if (status == LOAM_OK && n > 1) memory_view(m, 0, n / 2, positions, &view);
                    memory_rollback(m);
                }
            } else if (what == 3) {
                if (memory_seq_rm(m, q, a, b))
                    for (int i = a; i < b; i++) has[q][i] = false;
            } else if (what == 4) {
                int to = (q + 1) % N_SEQ;
                memory_seq_rm(m, to, 0, INT32_MAX);
                memset(has[to], 0, sizeof has[to]);
                if (memory_seq_cp(m, q, to, a, b) == LOAM_OK)
                    for (int i = a; i < b; i++) has[to][i] = has[q][i];
            } else if (r % 40 == 0) {
                memory_seq_keep(m, q);
                for (int s = 0; s < N_SEQ; s++)
                    if (s != q) memset(has[s], 0, sizeof has[s]);
            }
            for (int s = 0; s < N_SEQ; s++) {
                int n = 0, most = -1;
                for (int i = 0; i < 4096; i++)
                    if (has[s][i]) n++, most = i;
                assert_int_equal(count_tokens(m, s), n);
                assert_int_equal(memory_pos_max(m, s), most);
            }
        }
        memory_clear(m);
        assert_int_equal(m->groups[0].n_free, m->groups[0].n_pages);
        memory_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_share_pages), cmocka_unit_test(rollback_restores), cmocka_unit_test(full_is_refused),
        cmocka_unit_test(windows_are_given_back), cmocka_unit_test(random_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
