/* context.c - decode is all or nothing: bad batches, a full cache, an abort, failing allocations leave every sequence as it
 * was, and what follows gives the bits of an undisturbed run. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "models.h"
#include "fault.h"

#include "base/mem.h"
#include "loam/context.h"
#include "loam/debug.h"

static loam_model *model;

static int open_model(void **state)
{
    (void)state;
    model = tiny_model("q8_0", 3);
    return model ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    loam_model_free(model);
    return 0;
}

static int32_t ids[512];

static loam_context *fresh(uint32_t n_ctx)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = n_ctx, p.n_batch = 300, p.n_ubatch = 32, p.n_seq_max = 4, p.n_threads = 2;
    if (loam_context_new(&ctx, model, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 512; i++) ids[i] = 300 + i * 7 % 3000;
    return ctx;
}

static int feed(loam_context *ctx, int32_t seq, int first, int n, loam_error *err)
{
    static int32_t q;
    static const int32_t *seqs[512];
    q = seq;
    for (int i = 0; i < n; i++) seqs[i] = &q;
    loam_batch b = { .n_tokens = n, .token = ids + first, .seq_id = seqs };
    return loam_decode(ctx, &b, err);
}

/* Logits after ids[0 .. n) on an undisturbed context. */
static void reference(int n, float *out)
{
    loam_error err;
    loam_context *ctx = fresh(512);
    assert_int_equal(feed(ctx, 0, 0, n, &err), 0);
    memcpy(out, loam_logits(ctx, -1), (size_t)loam_model_n_vocab(model) * 4);
    loam_context_free(ctx);
}

static void expect_bits(const loam_context *ctx, int n)
{
    size_t bytes = (size_t)loam_model_n_vocab(model) * 4;
    float *want = mem_alloc(bytes);
    reference(n, want);
    assert_memory_equal(loam_logits(ctx, -1), want, bytes);
    mem_free(want);
}

static void bad_batches_change_nothing(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = fresh(512);
    assert_int_equal(feed(ctx, 0, 0, 40, &err), 0);
    int32_t id = 5, bad_id = 4096, pos = 40, gap = 42, old = 39, one = 1, two = 2, five = 5, far = 4;
    int32_t same[2] = { 1, 1 }, joined[2] = { 0, 1 };
    float embd[4] = { 0 };
    const int32_t *far_seq = &far, *same_seq = same, *joined_seq = joined;
    struct {
        loam_batch b;
        const char *says;
    } cases[] = {
        { { .n_tokens = 0, .token = &id }, "n_tokens" },
        { { .n_tokens = -3, .token = &id }, "n_tokens" },
        { { .n_tokens = 301, .token = ids }, "n_batch" },
        { { .n_tokens = 1 }, "neither" },
        { { .n_tokens = 1, .token = &id, .embd = embd }, "both" },
        { { .n_tokens = 1, .token = &bad_id }, "4096" },
        { { .n_tokens = 1, .token = &id, .pos = &gap }, "42" },
        { { .n_tokens = 1, .token = &id, .pos = &old }, "39" },
        { { .n_tokens = 1, .token = &id, .pos = &pos, .n_seq_id = &one, .seq_id = &far_seq }, "sequence 4" },
        { { .n_tokens = 1, .token = &id, .n_seq_id = &five, .seq_id = &same_seq }, "5 sequences" },
        { { .n_tokens = 1, .token = &id, .n_seq_id = &two, .seq_id = &same_seq }, "twice" },
        { { .n_tokens = 1, .token = &id, .n_seq_id = &two, .seq_id = &joined_seq }, "joins" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(loam_decode(ctx, &cases[i].b, &err), -1);
        if (!strstr(err.message, cases[i].says)) fail_msg("case %zu says: %s", i, err.message);
        assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 39);
        assert_int_equal(loam_memory_seq_pos_max(ctx, 1), -1);
    }
    assert_int_equal(loam_decode(NULL, &cases[0].b, &err), -1);
    assert_int_equal(feed(ctx, 0, 40, 30, &err), 0);
    expect_bits(ctx, 70);
    loam_context_free(ctx);
}

static void a_full_cache_changes_nothing(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = fresh(256);
    assert_int_equal(feed(ctx, 0, 0, 150, &err), 0);
    assert_int_equal(feed(ctx, 1, 0, 110, &err), 1);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 1), -1);
    assert_int_equal(feed(ctx, 0, 150, 106, &err), 0);
    assert_int_equal(feed(ctx, 0, 256, 1, &err), 1);
    expect_bits(ctx, 256);
    loam_context_free(ctx);
}

typedef struct countdown {
    int left;
} countdown;

static bool stop_at_zero(void *user)
{
    countdown *c = user;
    return --c->left < 0;
}

static void an_abort_changes_nothing(void **state)
{
    (void)state;
    loam_error err;
    for (int polls = 0; polls < 400; polls += 29) {
        loam_context *ctx = fresh(512);
        assert_int_equal(feed(ctx, 0, 0, 50, &err), 0);
        assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
        countdown c = { polls };
        loam_context_set_abort(ctx, stop_at_zero, &c);
        int code = feed(ctx, 1, 50, 100, &err);
        assert_true(code == 2 || (code == 0 && polls > 0));
        loam_context_set_abort(ctx, NULL, NULL);
        assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 49);
        if (code == 2) {
            assert_int_equal(loam_memory_seq_pos_max(ctx, 1), 49);
            assert_int_equal(feed(ctx, 1, 50, 100, &err), 0);
        }
        expect_bits(ctx, 150);
        assert_int_equal(feed(ctx, 0, 50, 9, &err), 0);
        expect_bits(ctx, 59);
        loam_context_free(ctx);
    }
}

static void sequences_are_independent(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = fresh(512);
    assert_int_equal(feed(ctx, 2, 0, 90, &err), 0);
    assert_int_equal(loam_memory_seq_cp(ctx, 2, 0, 0, 70, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 69);
    assert_int_equal(feed(ctx, 0, 70, 5, &err), 0);
    expect_bits(ctx, 75);
    assert_true(loam_memory_seq_rm(ctx, 2, 60, -1));
    assert_int_equal(feed(ctx, 2, 60, 3, &err), 0);
    expect_bits(ctx, 63);
    assert_true(loam_memory_seq_keep(ctx, 0));
    assert_int_equal(loam_memory_seq_pos_max(ctx, 2), -1);
    assert_int_equal(feed(ctx, 0, 75, 1, &err), 0);
    expect_bits(ctx, 76);
    assert_false(loam_memory_seq_rm(ctx, 4, 0, -1));
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 9, -1, -1, &err), LOAM_E_ARG);
    loam_memory_clear(ctx);
    assert_int_equal(feed(ctx, 0, 0, 10, &err), 0);
    expect_bits(ctx, 10);
    loam_context_free(ctx);
}

typedef struct watcher {
    int asked, shown, stop_at;
    bool finite;
} watcher;

static bool watch(void *user, const loam_node *node, bool ask)
{
    watcher *w = user;
    if (ask) return ++w->asked, strcmp(node->op, "MATMUL") == 0;
    w->shown++;
    assert_int_equal(node->n_src, 2);
    assert_string_equal(node->src[0]->op, "WEIGHT");
    assert_true(node->ne[0] == node->src[0]->ne[1] && node->data && node->src[0]->data);
    for (int64_t i = 0; i < node->ne[0] * node->ne[2]; i++) w->finite = w->finite && ((const float *)node->data)[i] < 1e9f;
    return w->shown != w->stop_at;
}

static void observers_see_and_stop(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = fresh(512);
    watcher w = { .finite = true };
    loam_context_set_observer(ctx, watch, &w);
    assert_int_equal(feed(ctx, 0, 0, 20, &err), 0);
    expect_bits(ctx, 20);
    assert_true(w.finite && w.shown == 4 * 7 + 1 && w.asked > w.shown);
    w = (watcher){ .finite = true, .stop_at = 9 };
    assert_int_equal(feed(ctx, 0, 20, 20, &err), 2);
    assert_int_equal(w.shown, 9);
    loam_context_set_observer(ctx, NULL, NULL);
    assert_int_equal(feed(ctx, 0, 20, 20, &err), 0);
    expect_bits(ctx, 40);
    loam_context_free(ctx);
}

static void bad_parameters_are_named(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = NULL;
    struct {
        loam_context_params p;
        const char *says;
    } cases[10];
    for (int i = 0; i < 10; i++) cases[i].p = loam_context_defaults();
    cases[0].p.attention = (loam_attention)2, cases[0].says = "attention";
    cases[1].p.n_seq_max = 257, cases[1].says = "n_seq_max";
    cases[2].p.n_ctx = 1u << 30, cases[2].says = "n_ctx";
    cases[3].p.n_batch = cases[3].p.n_ubatch = 0, cases[3].says = "n_batch";
    cases[4].p.type_k = LOAM_Q4_K, cases[4].says = "type_k";
    cases[5].p.type_v = (loam_type)77, cases[5].says = "type_v";
    cases[6].p.n_threads = -1, cases[6].says = "n_threads";
    cases[7].p.n_threads_batch = 100000, cases[7].says = "n_threads_batch";
    cases[8].p.rope_scaling = 9, cases[8].says = "rope_scaling";
    cases[9].p.struct_size = 1, cases[9].says = "struct_size";
    for (int i = 0; i < 10; i++) {
        assert_int_equal(loam_context_new(&ctx, model, &cases[i].p, &err), LOAM_E_ARG);
        assert_null(ctx);
        if (!strstr(err.message, cases[i].says)) fail_msg("case %d says: %s", i, err.message);
    }
    assert_int_equal(loam_context_new(&ctx, NULL, NULL, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_new(NULL, model, NULL, &err), LOAM_E_ARG);
    loam_context_free(NULL);
    assert_null(loam_logits(NULL, 0));
}

static void an_estimate_is_what_is_taken(void **state)
{
    (void)state;
    loam_error err;
    loam_memory_use guess, real;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 512, p.n_batch = 300, p.n_ubatch = 32, p.n_seq_max = 4, p.n_threads = 2;
    assert_int_equal(loam_context_estimate(model, &p, &guess, &err), LOAM_OK);
    loam_context *ctx = fresh(512);
    assert_int_equal(feed(ctx, 0, 0, 100, &err), 0);
    assert_int_equal(feed(ctx, 0, 100, 1, &err), 0);
    loam_context_memory_use(ctx, &real);
    assert_int_equal(guess.cache, real.cache);
    assert_true(guess.buffers * 100 <= real.buffers * 102 && real.buffers * 100 <= guess.buffers * 102);
    assert_int_equal(guess.outputs, real.outputs);
    loam_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_batches_change_nothing), cmocka_unit_test(a_full_cache_changes_nothing), cmocka_unit_test(an_abort_changes_nothing),
        cmocka_unit_test(sequences_are_independent), cmocka_unit_test(observers_see_and_stop), cmocka_unit_test(bad_parameters_are_named), cmocka_unit_test(an_estimate_is_what_is_taken),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
