/* shared_prefix.c - sequences that share pages: attention reads each shared page once for all of them (counted), and every
 * sequence gets the bits that it gets alone. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "models.h"

#include "base/mem.h"
#include "loam/context.h"
#include "loam/debug.h"

enum { SEQUENCES = 32, PREFIX = 1024, TAIL = 96, MOST = PREFIX + TAIL };

static loam_model *model;

static int open_model(void **state)
{
    (void)state;
    model = tiny_model("q8_0", 5);
    return model ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    loam_model_free(model);
    return 0;
}

typedef struct setup {
    int sequences, threads;
    loam_type type;
} setup;

static loam_context *fresh(setup s)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = (uint32_t)(PREFIX + s.sequences * (TAIL + 64)), p.n_batch = PREFIX, p.n_seq_max = (uint32_t)s.sequences;
    p.n_threads = s.threads, p.type_k = p.type_v = s.type;
    if (loam_context_new(&ctx, model, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

/* Token at a place of a sequence's own part. */
static int32_t own_token(int seq, int place) { return 300 + (seq * 131 + place * 17) % 3000; }

static void read_prefix(loam_context *ctx, int n)
{
    loam_error err;
    int32_t ids[PREFIX];
    for (int i = 0; i < n; i++) ids[i] = 300 + i * 7 % 3000;
    loam_batch b = { .n_tokens = n, .token = ids };
    assert_int_equal(loam_decode(ctx, &b, &err), 0);
}

/* One token on each of the sequences first, first + 1, ... ; logits of all. */
static void step(loam_context *ctx, int first, int n, int place)
{
    loam_error err;
    int32_t ids[SEQUENCES], seqs[SEQUENCES];
    const int32_t *lists[SEQUENCES];
    int8_t wanted[SEQUENCES];
    for (int i = 0; i < n; i++) {
        int q = n - 1 - i; /* a batch need not be in the order of the sequences */
        ids[i] = own_token(first + q, place);
        seqs[i] = q;
        lists[i] = &seqs[i];
        wanted[i] = 1;
    }
    loam_batch b = { .n_tokens = n, .token = ids, .seq_id = lists, .logits = wanted };
    if (loam_decode(ctx, &b, &err) != 0) fail_msg("%s", err.message);
}

/* Sequences that start with the same prefix of n tokens, each with `tail` tokens of its own. */
static loam_context *side_by_side(setup s, int n, int tail)
{
    loam_error err;
    loam_context *ctx = fresh(s);
    read_prefix(ctx, n);
    for (int q = 1; q < s.sequences; q++) assert_int_equal(loam_memory_seq_cp(ctx, 0, q, -1, -1, &err), LOAM_OK);
    for (int i = 0; i < tail; i++) step(ctx, 0, s.sequences, i);
    return ctx;
}

static void same_bits_as_alone(void **state)
{
    (void)state;
    static const loam_type types[] = { LOAM_F16, LOAM_Q8_0 };
    size_t bytes = (size_t)loam_model_n_vocab(model) * sizeof(float);
    for (int t = 0; t < 2; t++)
        for (int threads = 1; threads <= 2; threads++)
            for (int n = 192; n <= 200; n += 8) {
                loam_context *all = side_by_side((setup){ SEQUENCES, threads, types[t] }, n, 3);
                for (int q = 0; q < SEQUENCES; q += 5) {
                    loam_context *one = fresh((setup){ 1, 1, types[t] });
                    read_prefix(one, n);
                    for (int i = 0; i < 3; i++) step(one, q, 1, i);
                    assert_memory_equal(loam_logits(all, SEQUENCES - 1 - q), loam_logits(one, 0), bytes);
                    loam_context_free(one);
                }
                loam_context_free(all);
            }
}

/* Branches of branches: the prefix of all, then one of each half. */
static void a_tree_is_shared_too(void **state)
{
    (void)state;
    loam_error err;
    size_t bytes = (size_t)loam_model_n_vocab(model) * sizeof(float);
    loam_context *all = fresh((setup){ 4, 2, LOAM_F16 });
    read_prefix(all, 128);
    assert_int_equal(loam_memory_seq_cp(all, 0, 1, -1, -1, &err), LOAM_OK);
    for (int i = 0; i < 70; i++) step(all, 0, 2, i);
    assert_int_equal(loam_memory_seq_cp(all, 0, 2, -1, -1, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_cp(all, 1, 3, -1, -1, &err), LOAM_OK);
    step(all, 0, 4, 70);
    for (int q = 0; q < 4; q++) {
        loam_context *one = fresh((setup){ 1, 1, LOAM_F16 });
        read_prefix(one, 128);
        for (int i = 0; i < 70; i++) step(one, q % 2, 1, i);
        step(one, q, 1, 70);
        assert_memory_equal(loam_logits(all, 3 - q), loam_logits(one, 0), bytes);
        loam_context_free(one);
    }
    loam_context_free(all);
}

static uint64_t bytes_of_step(loam_context *ctx, int sequences, int place)
{
    uint64_t before = loam_context_perf(ctx).cache_bytes;
    step(ctx, 0, sequences, place);
    return loam_context_perf(ctx).cache_bytes - before;
}

static void shared_pages_are_read_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        loam_context *alone = side_by_side((setup){ 1, threads, LOAM_F16 }, PREFIX - 1, 0);
        uint64_t prefix = bytes_of_step(alone, 1, 0), token = prefix / PREFIX;
        assert_true(prefix > 0 && prefix % PREFIX == 0);
        loam_context_free(alone);
        loam_context *ctx = side_by_side((setup){ SEQUENCES, threads, LOAM_F16 }, PREFIX, TAIL - 1);
        uint64_t read = bytes_of_step(ctx, SEQUENCES, TAIL - 1), least = prefix + (uint64_t)(SEQUENCES * TAIL) * token;
        printf("%d threads: %llu bytes, one prefix and all tails are %llu\n", threads, (unsigned long long)read, (unsigned long long)least);
        assert_true(read >= least && read * 10 <= least * 11);
        loam_context_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_bits_as_alone), cmocka_unit_test(a_tree_is_shared_too),
                                        cmocka_unit_test(shared_pages_are_read_once) };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
