/* states.c - recurrent states in the memory: cells, sharing, transactions, and random batches against a plain model in which
 * each sequence carries its own history. */
#include <limits.h>
#include <string.h>

#include "check.h"

#include "data.h"
#include "memory/internal.h"

#define N_SEQ 4
#define N_BATCH 64

/* Two recurrent layers; with pages beside them where `hybrid`. */
static memory *fresh_with(bool hybrid, int n_rs_seq)
{
    memory_layer layers[2] = { { .present = hybrid, .n_kv_head = 1, .k_dim = 8, .v_dim = 8, .r_row = 3, .s_row = 5 },
                               { .r_row = 3 } };
    memory_params p = { .layers = layers, .n_layer = 2, .n_ctx = 512, .n_ctx_seq = 512, .n_seq_max = N_SEQ, .n_batch = N_BATCH,
                        .k_type = LOAM_F32, .v_type = LOAM_F32, .n_rs_seq = n_rs_seq };
    memory *m = NULL;
    loam_error err;
    assert_int_equal(memory_new(&m, &p, &err), LOAM_OK);
    return m;
}

static memory *fresh(bool hybrid) { return fresh_with(hybrid, 0); }

/* What a mixer does, in small: the state becomes 3 * state + id of the token. */
static void compute(const kv_view *view, const int32_t *ids)
{
    for (int r = 0; r < view->n_state_runs; r++) {
        const state_run *run = &view->state_runs[r];
        for (int l = 0; l < 2; l++) {
            const state_layer *x = &view->states[l];
            float *to = x->r + run->to * x->r_row;
            for (int64_t i = 0; i < x->r_row; i++) {
                float s = run->from < 0 ? 0.0f : x->r[run->from * x->r_row + i];
                for (int t = 0; t < run->count; t++) s = (float)(((int)s * 3 + ids[run->tokens[t]]) % 100003);
                to[i] = s;
            }
        }
    }
}

static void check_state(const memory *m, int seq, int want)
{
    int32_t cell = m->states.tail[seq];
    if (want < 0) {
        assert_int_equal(cell, -1);
        return;
    }
    assert_true(cell >= 0);
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < 3; i++) assert_int_equal((int)m->states.layers[l].r[cell * 3 + i], want);
}

static void decode(memory *m, const int32_t *seqs, const int32_t *pos, const int32_t *ids, int n, int step)
{
    const kv_view *view;
    memory_begin(m);
    for (int i = 0; i < n; i++) {
        memory_token t = { pos[i], &seqs[i], 1 };
        assert_int_equal(memory_add(m, &t), LOAM_OK);
    }
    for (int at = 0; at < n; at += step) {
        int count = n - at < step ? n - at : step;
        assert_int_equal(memory_view(m, at, count, pos + at, &view), LOAM_OK);
        compute(view, ids + at);
    }
}

static void decode_one(memory *m, int seq, int pos, int n)
{
    int32_t seqs[N_BATCH], positions[N_BATCH], ids[N_BATCH];
    for (int i = 0; i < n; i++) seqs[i] = seq, positions[i] = pos + i, ids[i] = pos + i + 1;
    decode(m, seqs, positions, ids, n, N_BATCH);
    memory_commit(m);
}

static int cells_in_use(const memory *m)
{
    int n = 0;
    for (int i = 0; i < m->states.n_cells; i++) n += m->states.cells[i].owners > 0;
    return n;
}

/* ---- answers ---- */

static void removals(void **state)
{
    (void)state;
    memory *m = fresh(false);
    decode_one(m, 0, 0, 10);
    assert_int_equal(memory_pos_min(m, 0), 9);
    assert_int_equal(memory_pos_max(m, 0), 9);
    assert_true(memory_seq_rm(m, 0, 4, 6));        /* does not contain the last token: nothing to do */
    assert_false(memory_seq_rm(m, 0, 5, INT32_MAX)); /* cannot go back to 4 */
    assert_false(memory_seq_rm(m, 0, 9, 10));
    assert_true(memory_seq_rm(m, 0, 0, 5));
    assert_true(memory_seq_rm(m, 0, 12, INT32_MAX));
    assert_int_equal(memory_pos_max(m, 0), 9);
    assert_true(memory_seq_rm(m, 0, 0, 10));       /* all of it */
    assert_int_equal(memory_pos_max(m, 0), -1);
    assert_true(memory_seq_rm(m, 0, 0, INT32_MAX));
    assert_int_equal(cells_in_use(m), 0);
    memory_free(m);
}

static void sequences(void **state)
{
    (void)state;
    memory *m = fresh(false);
    decode_one(m, 0, 0, 10);
    assert_int_equal(memory_seq_cp(m, 0, 1, 3, 5), LOAM_OK); /* the range has no meaning for a state */
    assert_int_equal(memory_pos_max(m, 1), 9);
    assert_int_equal(cells_in_use(m), 1);
    memory_seq_move(m, 0, (int32_t[]){ 0, INT32_MAX }, 5, 1);
    assert_int_equal(memory_pos_max(m, 0), 14);
    assert_int_equal(memory_pos_max(m, 1), 14);    /* one cell */
    decode_one(m, 1, 15, 2);
    assert_int_equal(memory_pos_max(m, 0), 14);
    assert_int_equal(memory_pos_max(m, 1), 16);
    assert_int_equal(cells_in_use(m), 2);
    memory_seq_move(m, 0, (int32_t[]){ 0, INT32_MAX }, 0, 2);
    assert_int_equal(memory_pos_max(m, 0), 7);
    memory_seq_keep(m, 1);
    assert_int_equal(memory_pos_max(m, 0), -1);
    assert_true(memory_seq_rm(m, 1, 0, INT32_MAX));
    decode_one(m, 1, 3, 4);
    assert_int_equal(memory_pos_max(m, 1), 6);
    assert_int_equal(memory_seq_cp(m, 0, 1, 0, INT32_MAX), LOAM_OK); /* a copy of nothing is nothing */
    assert_int_equal(memory_pos_max(m, 1), -1);
    decode_one(m, 2, 0, 3);
    memory_seq_move(m, 2, (int32_t[]){ 0, INT32_MAX }, -5, 1);
    assert_int_equal(memory_pos_max(m, 2), -1);
    memory_clear(m);
    assert_int_equal(cells_in_use(m), 0);
    memory_free(m);
}

static void hybrid(void **state)
{
    (void)state;
    memory *m = fresh(true);
    decode_one(m, 0, 0, 10);
    assert_int_equal(memory_pos_min(m, 0), 9);
    assert_int_equal(memory_pos_max(m, 0), 9);
    assert_true(memory_seq_rm(m, 0, 4, 6));
    assert_int_equal(m->groups[0].n_tokens, 8);    /* the pages have lost two, the state is as it was */
    assert_false(memory_seq_rm(m, 0, 5, INT32_MAX));
    assert_int_equal(m->groups[0].n_tokens, 8);
    assert_true(memory_seq_rm(m, 0, 0, 5));
    assert_int_equal(memory_seq_cp(m, 0, 1, 3, 5), LOAM_OK);
    assert_int_equal(memory_pos_min(m, 1), 9);     /* none of 3..5 is left to copy */
    assert_int_equal(memory_pos_max(m, 1), -1);
    memory_seq_move(m, 0, (int32_t[]){ 0, INT32_MAX }, 5, 1);
    assert_int_equal(memory_pos_max(m, 0), 14);
    assert_int_equal(memory_pos_min(m, 1), 14);
    assert_int_equal(memory_pos_max(m, 1), -1);
    memory_free(m);
}

/* ---- batches ---- */

static void rollback(void **state)
{
    (void)state;
    memory *m = fresh(false);
    decode_one(m, 0, 0, 10);
    assert_int_equal(memory_seq_cp(m, 0, 1, 0, INT32_MAX), LOAM_OK);
    int before = (int)m->states.layers[0].r[m->states.tail[0] * 3];
    int32_t seqs[] = { 0, 1, 2, 0, 1, 2 }, pos[] = { 10, 10, 0, 11, 11, 1 }, ids[] = { 7, 8, 9, 10, 11, 12 };
    decode(m, seqs, pos, ids, 6, 4);
    memory_rollback(m);
    check_state(m, 0, before);
    check_state(m, 1, before);
    check_state(m, 2, -1);
    assert_int_equal(memory_pos_max(m, 0), 9);
    assert_int_equal(cells_in_use(m), 1);
    decode(m, seqs, pos, ids, 6, 1);
    memory_commit(m);
    check_state(m, 0, (before * 3 + 7) % 100003 * 3 % 100003 + 10);
    assert_int_equal(cells_in_use(m), 3);
    memory_free(m);
}

/* A token of several sequences: all follow the first one's state, and part again afterwards, within one batch too. */
static void joined(void **state)
{
    (void)state;
    for (int step = 1; step <= 6; step++) {
        memory *m = fresh(false);
        static const int32_t both[] = { 1, 0 }, zero = 0, one = 1;
        const memory_token tokens[] = { { 0, both, 2 }, { 1, &zero, 1 }, { 1, &one, 1 }, { 2, &one, 1 }, { 2, &zero, 1 },
                                        { 3, both, 2 } };
        int32_t pos[] = { 0, 1, 1, 2, 2, 3 }, ids[] = { 1, 2, 3, 4, 5, 6 };
        const kv_view *view;
        memory_begin(m);
        for (int i = 0; i < 6; i++) assert_int_equal(memory_add(m, &tokens[i]), LOAM_OK);
        for (int at = 0; at < 6; at += step) {
            assert_int_equal(memory_view(m, at, 6 - at < step ? 6 - at : step, pos + at, &view), LOAM_OK);
            compute(view, ids + at);
        }
        memory_commit(m);
        check_state(m, 0, ((1 * 3 + 3) * 3 + 4) * 3 + 6); /* sequence 1 comes first in the last token */
        check_state(m, 1, ((1 * 3 + 3) * 3 + 4) * 3 + 6);
        assert_int_equal(cells_in_use(m), 1);
        memory_free(m);
    }
}

static void taken_back(void **state)
{
    (void)state;
    memory *m = fresh_with(true, 3);
    decode_one(m, 0, 0, 10);                         /* value after position p: v(p) = 3 v(p - 1) + p + 1 */
    int v[16];
    for (int p = 0; p < 16; p++) v[p] = ((p ? v[p - 1] : 0) * 3 + p + 1) % 100003;
    assert_false(memory_seq_rm(m, 0, 6, INT32_MAX)); /* four tokens */
    check_state(m, 0, v[9]);
    assert_true(memory_seq_rm(m, 0, 8, INT32_MAX));
    check_state(m, 0, v[7]);
    assert_int_equal(memory_pos_max(m, 0), 7);
    assert_int_equal(m->groups[0].n_tokens, 8);
    assert_true(memory_seq_rm(m, 0, 7, INT32_MAX));  /* again, by what is left */
    check_state(m, 0, v[6]);
    assert_false(memory_seq_rm(m, 0, 6, INT32_MAX));
    decode_one(m, 0, 7, 1);
    decode_one(m, 0, 8, 1);                          /* states of earlier batches stay */
    assert_int_equal(memory_seq_cp(m, 0, 1, 0, INT32_MAX), LOAM_OK);
    assert_true(memory_seq_rm(m, 0, 7, INT32_MAX));
    check_state(m, 0, v[6]);
    check_state(m, 1, v[8]);
    assert_true(memory_seq_rm(m, 1, 8, INT32_MAX));
    check_state(m, 1, v[7]);
    memory_seq_move(m, 1, (int32_t[]){ 0, INT32_MAX }, 5, 1);
    assert_false(memory_seq_rm(m, 1, 12, INT32_MAX)); /* moved: no way back */
    memory_clear(m);
    assert_int_equal(cells_in_use(m), 0);
    memory_free(m);
}

/* ---- random schedules ---- */

#define MOST_POS 2600

typedef struct plain {
    int value[N_SEQ][MOST_POS], pos[N_SEQ]; /* value after each position; pos -1: none */
    int kept[N_SEQ];                        /* earlier states that must be there */
} plain;

static void random_batch(memory *m, plain *p, plain *next, int n_past, dice *d)
{
    int32_t seqs[N_BATCH], pos[N_BATCH], ids[N_BATCH];
    int n = 1 + (int)dice_below(d, dice_below(d, 3) ? 5 : N_BATCH);
    *next = *p;
    for (int i = 0; i < n; i++) {
        int q = (int)dice_below(d, N_SEQ);
        seqs[i] = q;
        ids[i] = (int32_t)dice_below(d, 1000);
        next->kept[q] += next->pos[q]++ >= 0;
        if (next->kept[q] > n_past) next->kept[q] = n_past;
        pos[i] = next->pos[q];
        next->value[q][pos[i]] = ((pos[i] == 0 ? 0 : next->value[q][pos[i] - 1]) * 3 + ids[i]) % 100003;
    }
    decode(m, seqs, pos, ids, n, 1 + (int)dice_below(d, N_BATCH));
    if (dice_below(d, 4) == 0) {
        memory_rollback(m);
        return;
    }
    memory_commit(m);
    *p = *next;
}

static void random_step(memory *m, plain *p, plain *next, int n_past, dice *d)
{
    int a = (int)dice_below(d, N_SEQ), b = (int)dice_below(d, N_SEQ), back = 1 + (int)dice_below(d, 5);
    switch (dice_below(d, 6)) {
    case 0:
        assert_int_equal(memory_seq_cp(m, a, b, 0, INT32_MAX), LOAM_OK);
        memcpy(p->value[b], p->value[a], sizeof p->value[b]);
        p->pos[b] = p->pos[a], p->kept[b] = p->kept[a];
        break;
    case 1:
        if (dice_below(d, 3)) break;
        assert_true(memory_seq_rm(m, a, 0, INT32_MAX));
        p->pos[a] = -1, p->kept[a] = 0;
        break;
    case 2:
        if (p->pos[a] < back) break;
        assert_int_equal(memory_seq_rm(m, a, p->pos[a] - back + 1, INT32_MAX), back <= p->kept[a]);
        if (back <= p->kept[a]) p->pos[a] -= back, p->kept[a] -= back;
        break;
    default: random_batch(m, p, next, n_past, d);
    }
}

static void random_schedules(void **state)
{
    (void)state;
    dice d = { 20240611 };
    static plain p, next;
    for (int round = 0; round < 200; round++) {
        int n_past = round % 4;
        memory *m = fresh_with(false, n_past);
        for (int q = 0; q < N_SEQ; q++) p.pos[q] = -1, p.kept[q] = 0;
        for (int i = 0; i < 40; i++) {
            random_step(m, &p, &next, n_past, &d);
            for (int q = 0; q < N_SEQ; q++) {
                assert_int_equal(memory_pos_max(m, q), p.pos[q]);
                check_state(m, q, p.pos[q] < 0 ? -1 : p.value[q][p.pos[q]]);
            }
            assert_true(cells_in_use(m) <= N_SEQ * (1 + n_past));
        }
        memory_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(removals), cmocka_unit_test(sequences), cmocka_unit_test(hybrid),
                                        cmocka_unit_test(rollback),
                                        cmocka_unit_test(joined), cmocka_unit_test(taken_back),
                                        cmocka_unit_test(random_schedules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
