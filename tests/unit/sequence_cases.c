/* sequence_cases.c - sequences in known trouble spots: parts copied and removed with any ids and ranges, ends removed below a
 * limited window, keys turned where only some dimensions rotate, how far a window reaches, states of long texts for short ones,
 * states in smaller, larger and scattered contexts. What "right" means is everywhere a cold run: the same tokens in a
 * fresh context. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"

#include "context/context.h"
#include "loam/context.h"
#include "loam/gguf.h"

static loam_model *open_golden(const char *name)
{
    char rel[64], path[512];
    loam_model *m;
    loam_error err;
    snprintf(rel, sizeof rel, "arch/%s.gguf", name);
    golden_path(path, rel);
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    return m;
}

static loam_context *make(const loam_model *m, bool unified, bool window_full, uint32_t n_rs_seq)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = unified ? 256 : 1024, p.n_seq_max = 4, p.n_threads = 1, p.type_k = p.type_v = LOAM_F32;
    p.unified = unified, p.window_full = window_full, p.n_rs_seq = n_rs_seq;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static int32_t id_at(const loam_context *ctx, int i) { return (i * 37 + 11) % loam_model_n_vocab(loam_context_model(ctx)); }

/* Tokens first .. first + n of the text at the end of a sequence, in batches of 16. */
static int feed(loam_context *ctx, int32_t seq, int first, int n)
{
    loam_error err;
    for (int at = 0; at < n; at += 16) {
        int32_t ids[16];
        const int32_t *seqs[16];
        int take = n - at < 16 ? n - at : 16;
        for (int i = 0; i < take; i++) ids[i] = id_at(ctx, first + at + i), seqs[i] = &seq;
        loam_batch b = { .n_tokens = take, .token = ids, .seq_id = seqs };
        int code = loam_decode(ctx, &b, &err);
        if (code) return code;
    }
    return 0;
}

/* The last logits against those of tokens 0 .. n of the text in a fresh context. */
static void expect_cold(loam_context *ctx, int n)
{
    const loam_model *m = loam_context_model(ctx);
    loam_context *cold = make(m, true, true, 0);
    assert_int_equal(feed(cold, 0, 0, n), 0);
    double far = nmse(loam_logits(ctx, -1), loam_logits(cold, -1), (size_t)loam_model_n_vocab(m));
    loam_context_free(cold);
    if (!(far < 1e-9)) fail_msg("%g away from the cold run of %d tokens", far, n);
}

/* ---- copies and removals with any ids and ranges ---- */

static void any_copy_and_removal(const char *name, bool unified)
{
    loam_model *m = open_golden(name);
    loam_context *ctx = make(m, unified, true, 0);
    loam_error err;
    bool state = memory_has_states(ctx->mem);
    assert_int_equal(feed(ctx, 0, 0, 10), 0);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, 2, 6, &err), LOAM_OK); /* a state is copied as a whole */
    if (!state) assert_true(loam_memory_seq_pos_min(ctx, 1) == 2 && loam_memory_seq_pos_max(ctx, 1) == 5);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 0, -1, -1, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 4, -1, -1, &err), LOAM_E_ARG);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, -1, -1, -1, &err), LOAM_E_ARG);
    assert_int_equal(loam_memory_seq_cp(ctx, -1, 0, -1, -1, &err), LOAM_E_ARG);
    assert_true(loam_memory_seq_rm(ctx, 0, 5, 3));
    assert_true(loam_memory_seq_rm(ctx, 0, 7, 7));
    assert_int_equal(feed(ctx, 1, 10, 3), 0);
    expect_cold(ctx, 13);
    bool tail = loam_memory_seq_rm(ctx, 0, 8, 1000);
    assert_true(tail == !state);
    assert_int_equal(feed(ctx, 0, state ? 10 : 8, 4), 0);
    expect_cold(ctx, state ? 14 : 12);
    assert_false(loam_memory_seq_rm(ctx, 4, -1, -1));
    assert_false(loam_memory_seq_rm(ctx, -2, -1, -1));
    if (!state) {
        assert_true(loam_memory_seq_rm(ctx, -1, 3, 5));
        assert_true(loam_memory_n_tokens(ctx) >= 11 && loam_memory_n_tokens(ctx) <= 21); /* 10 and 11, some of them shared */
    }
    assert_int_equal(loam_memory_seq_rm(ctx, -1, -1, -1), !state); /* states go one by one */
    for (int q = 0; q < 4 && state; q++) assert_true(loam_memory_seq_rm(ctx, q, -1, -1));
    for (int q = 0; q < 4; q++) assert_int_equal(loam_memory_seq_pos_max(ctx, q), -1);
    assert_int_equal(feed(ctx, 3, 0, 20), 0);
    expect_cold(ctx, 20);
    loam_context_free(ctx);
    loam_model_free(m);
}

static void copies_and_removals(void **state)
{
    (void)state;
    static const char *const names[] = { "internlm2", "gemma3-dense", "mamba2-dense", "lfm2-dense", "rwkv6" };
    for (int i = 0; i < 5; i++)
        for (int unified = 0; unified < 2; unified++) any_copy_and_removal(names[i], unified);
}

/* A token has one position for all that have it, wherever its copies lie: the example of 4 sequences, with diverged pages. */
static void shared_tokens_move_together(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_golden("internlm2");
    loam_context *ctx = make(m, true, true, 0);
    int32_t both[2] = { 0, 1 }, ids[6], two[6];
    const int32_t *seqs[6];
    for (int i = 0; i < 6; i++) ids[i] = id_at(ctx, i), two[i] = 2, seqs[i] = both;
    loam_batch b = { .n_tokens = 6, .token = ids, .n_seq_id = two, .seq_id = seqs };
    assert_int_equal(loam_decode(ctx, &b, &err), 0);
    assert_int_equal(feed(ctx, 0, 6, 2), 0);
    assert_int_equal(feed(ctx, 1, 6, 4), 0);
    assert_int_equal(loam_memory_seq_add(ctx, 0, 4, -1, 10, &err), LOAM_OK);
    assert_true(loam_memory_seq_pos_max(ctx, 0) == 17 && loam_memory_seq_pos_max(ctx, 1) == 15);
    assert_int_equal(loam_memory_seq_add(ctx, 0, 0, 4, -2, &err), LOAM_OK);
    assert_true(loam_memory_seq_rm(ctx, -1, 14, -1));
    assert_true(loam_memory_seq_pos_max(ctx, 0) == 1 && loam_memory_seq_pos_max(ctx, 1) == 9);
    assert_true(loam_memory_seq_pos_min(ctx, 0) == 0 && loam_memory_seq_pos_min(ctx, 1) == 0);
    assert_int_equal(loam_memory_seq_div(ctx, 1, 0, -1, 2, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 1), 4);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* ---- ends below a limited window ---- */

static void ends_below_the_window(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_golden("gemma3-dense");
    loam_context *ctx = make(m, true, false, 0);
    assert_int_equal(feed(ctx, 0, 0, 100), 0);
    assert_false(loam_memory_seq_rm(ctx, 0, 20, -1)); /* 5 .. 19 of the windowed layers are gone */
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 99);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, 0, 20, &err), LOAM_E_UNSUPPORTED);
    assert_int_equal(loam_memory_seq_add(ctx, 0, 60, -1, -50, &err), LOAM_E_UNSUPPORTED);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 1), -1);
    assert_true(loam_memory_seq_rm(ctx, 0, 96, -1)); /* inside what is kept */
    assert_int_equal(feed(ctx, 0, 96, 4), 0);
    expect_cold(ctx, 100);
    for (int round = 0; round < 50; round++) {
        assert_true(loam_memory_seq_rm(ctx, 0, 98, -1));
        assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 97);
        assert_int_equal(feed(ctx, 0, 98, 2), 0);
        assert_int_equal(loam_memory_n_tokens(ctx), 100);
    }
    expect_cold(ctx, 100);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
    assert_int_equal(feed(ctx, 1, 100, 8), 0);
    expect_cold(ctx, 108);
    assert_true(loam_memory_seq_rm(ctx, 0, -1, -1));
    assert_int_equal(feed(ctx, 0, 0, 30), 0);
    expect_cold(ctx, 30);
    loam_context_free(ctx);
    ctx = make(m, true, true, 0); /* all is kept: the end may go as far as wanted */
    assert_int_equal(feed(ctx, 0, 0, 100), 0);
    assert_true(loam_memory_seq_rm(ctx, 0, 20, -1));
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 19);
    assert_int_equal(feed(ctx, 0, 20, 5), 0);
    expect_cold(ctx, 25);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* ---- states ---- */

/* A state of 20 tokens for prompts that share less: at least one token is computed anew, and the logits are the cold run's. */
static void long_states_for_short_prompts(void **state)
{
    (void)state;
    loam_error err;
    static char blob[1 << 20];
    size_t n, none;
    loam_model *m = open_golden("internlm2");
    loam_context *ctx = make(m, true, true, 0);
    assert_int_equal(loam_state_save(ctx, 0, blob, sizeof blob, &none, &err), LOAM_OK);
    assert_int_equal(loam_state_load(ctx, 1, blob, none, &err), LOAM_OK); /* nothing is something to save, too */
    assert_int_equal(loam_memory_seq_pos_max(ctx, 1), -1);
    assert_int_equal(feed(ctx, 0, 0, 20), 0);
    assert_int_equal(loam_state_save(ctx, 0, blob, sizeof blob, &n, &err), LOAM_OK);
    static const int lengths[] = { 8, 20, 19, 1 };
    for (int i = 0; i < 4; i++) {
        loam_memory_clear(ctx);
        assert_int_equal(loam_state_load(ctx, 0, blob, n, &err), LOAM_OK);
        assert_null(loam_logits(ctx, -1)); /* old outputs are not those of this state */
        assert_true(loam_memory_seq_rm(ctx, 0, lengths[i] - 1, -1));
        assert_int_equal(feed(ctx, 0, lengths[i] - 1, 1), 0);
        expect_cold(ctx, lengths[i]);
    }
    loam_context_free(ctx);
    loam_model_free(m);
}

static loam_context *sized(const loam_model *m, uint32_t n_ctx, uint32_t n_seq)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = n_ctx, p.n_seq_max = n_seq, p.n_threads = 1, p.type_k = p.type_v = LOAM_F32;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

/* Into contexts of other sizes, and into one whose pages are taken here and there. */
static void states_fit_where_there_is_room(void **state)
{
    (void)state;
    loam_error err;
    static char whole[1 << 22], one[1 << 21];
    size_t n_whole, n_one;
    static const char *const names[] = { "internlm2", "gemma3-dense", "lfm2-dense" };
    for (int k = 0; k < 3; k++) {
        loam_model *m = open_golden(names[k]);
        loam_context *from = sized(m, 512, 4), *larger = sized(m, 1024, 9), *smaller = sized(m, 256, 4);
        assert_int_equal(feed(from, 0, 0, 150), 0);
        assert_int_equal(loam_memory_seq_cp(from, 0, 3, -1, -1, &err), LOAM_OK);
        assert_int_equal(feed(from, 3, 150, 20), 0);
        assert_int_equal(feed(from, 1, 0, 120), 0);
        assert_int_equal(loam_state_save(from, -1, whole, sizeof whole, &n_whole, &err), LOAM_OK);
        assert_int_equal(loam_state_save(from, 3, one, sizeof one, &n_one, &err), LOAM_OK);
        assert_int_equal(loam_state_load(larger, -1, whole, n_whole, &err), LOAM_OK);
        assert_int_equal(feed(larger, 3, 170, 3), 0);
        expect_cold(larger, 173);
        assert_int_equal(feed(larger, 1, 120, 3), 0);
        expect_cold(larger, 123);
        assert_int_equal(feed(smaller, 0, 0, 10), 0);
        assert_int_equal(loam_state_load(smaller, -1, whole, n_whole, &err), LOAM_E_FULL); /* 290 tokens */
        assert_int_equal(loam_memory_seq_pos_max(smaller, 0), 9);
        assert_int_equal(loam_state_load(smaller, 2, one, n_one, &err), LOAM_OK);
        assert_int_equal(feed(smaller, 2, 170, 3), 0);
        expect_cold(smaller, 173);
        assert_int_equal(feed(smaller, 0, 10, 3), 0);
        expect_cold(smaller, 13);
        /* Scattered: sequences grow by turns, then every second one goes. */
        loam_memory_clear(larger);
        for (int round = 0; round < 12; round++)
            for (int q = 0; q < 8; q++) assert_int_equal(feed(larger, q, 10 * round, 10), 0);
        for (int q = 0; q < 8; q += 2) assert_true(loam_memory_seq_rm(larger, q, -1, -1));
        assert_int_equal(loam_state_load(larger, 8, one, n_one, &err), LOAM_OK);
        assert_int_equal(loam_state_load(larger, 4, one, n_one, &err), LOAM_OK);
        assert_int_equal(feed(larger, 8, 170, 2), 0);
        expect_cold(larger, 172);
        assert_int_equal(feed(larger, 4, 170, 3), 0);
        expect_cold(larger, 173);
        for (int q = 1; q < 8; q += 2) {
            assert_int_equal(feed(larger, q, 120, 1), 0);
            expect_cold(larger, 121);
        }
        loam_context_free(from);
        loam_context_free(larger);
        loam_context_free(smaller);
        loam_model_free(m);
    }
}

/* ---- turned keys of models that rotate a part of each head ---- */

/* Key row of a position of sequence 0 in layer 0, as floats. */
static void key_of(const loam_context *ctx, int32_t slot, float *out)
{
    const kv_layer *l = &memory_layers(ctx->mem)[0];
    for (int h = 0; h < l->shape.n_kv_head; h++) {
        const uint8_t *at = page_head_at(&l->shape, l->pages, slot / PAGE_SLOTS, h).k;
        for (int i = 0; i < l->shape.k_dim; i++)
            memcpy(&out[h * l->shape.k_dim + i], at + ((size_t)i * PAGE_SLOTS + (size_t)(slot % PAGE_SLOTS)) * 4, 4);
    }
}

static void turned_keys(const char *name, bool all)
{
    loam_error err;
    loam_model *m = open_golden(name);
    loam_context *ctx = make(m, true, true, 0), *there = make(m, true, true, 0);
    const page_shape *s = &memory_layers(ctx->mem)[0].shape;
    int width = s->n_kv_head * s->k_dim, kept = 0;
    float *before = malloc((size_t)width * sizeof *before), *after = malloc((size_t)width * sizeof *after), *want = malloc((size_t)width * sizeof *want);
    if (!loam_memory_can_shift(ctx)) fail_msg("%s cannot shift", name);
    assert_int_equal(feed(ctx, 0, 0, 32), 0);
    key_of(ctx, 20, before);
    assert_true(loam_memory_seq_rm(ctx, 0, 4, 8));
    assert_int_equal(loam_memory_seq_add(ctx, 0, 8, -1, -4, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 27);
    assert_int_equal(feed(ctx, 0, 32, 1), 0);
    key_of(ctx, 20, after);
    /* Layer 0 sees only the token itself: the same token first at position 16 gives the key that is expected. */
    int32_t id = id_at(ctx, 20);
    for (int i = 0; i < 17; i++) {
        loam_batch b = { .n_tokens = 1, .token = &id };
        assert_int_equal(loam_decode(there, &b, &err), 0);
    }
    key_of(there, 16, want);
    for (int i = 0; i < width; i++) {
        if (fabsf(after[i] - want[i]) > 1e-5f * (1 + fabsf(want[i]))) fail_msg("%s: value %d of a turned key is %g, should be %g", name, i, (double)after[i], (double)want[i]);
        kept += after[i] == before[i];
    }
    print_message("%s: %d of %d values of a turned key as they were\n", name, kept, width);
    if (all) assert_true(kept < width / 2);
    else assert_true(kept >= width / 4);
    free(before);
    free(after);
    free(want);
    loam_context_free(ctx);
    loam_context_free(there);
    loam_model_free(m);
}

static void only_what_rotates_turns(void **state)
{
    (void)state;
    turned_keys("internlm2", true);
    turned_keys("olmo", true);
    turned_keys("stablelm", false);
    turned_keys("minicpm3", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_removals), cmocka_unit_test(shared_tokens_move_together), cmocka_unit_test(ends_below_the_window), cmocka_unit_test(long_states_for_short_prompts),
        cmocka_unit_test(states_fit_where_there_is_room), cmocka_unit_test(only_what_rotates_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
