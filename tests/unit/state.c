/* state.c - saved states: what follows a restore has the same bits; damaged, cut off and foreign states are refused and
 * change nothing; a restore works into other sizes where it fits. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"

#include "base/mem.h"
#include "loam/context.h"
#include "loam/debug.h"

static loam_model *model, *other;
static int32_t ids[600];

static loam_model *make(const char *type, uint64_t seed)
{
    char path[512];
    loam_error err;
    loam_model *m = NULL;
    scratch_path(path, "state.gguf");
    if (loam_debug_make_model(path, "tiny", type, seed, &err) == LOAM_OK) loam_model_open(&m, path, NULL, &err);
    unlink(path);
    return m;
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 600; i++) ids[i] = 260 + i * 31 % 3700;
    model = make("q8_0", 1);
    other = make("q4_0", 2);
    return model && other ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loam_model_free(model);
    loam_model_free(other);
    return 0;
}

static loam_context *fresh(const loam_model *m, uint32_t n_ctx, loam_type type)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = n_ctx, p.n_seq_max = 4, p.n_threads = 1, p.type_k = p.type_v = type;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static void feed(loam_context *ctx, int32_t seq, int first, int n)
{
    loam_error err;
    const int32_t *seqs[600];
    for (int i = 0; i < n; i++) seqs[i] = &seq;
    loam_batch b = { .n_tokens = n, .token = ids + first, .seq_id = seqs };
    int code = loam_decode(ctx, &b, &err);
    if (code) fail_msg("decode: %d %s", code, err.message);
}

static void same_next(loam_context *a, loam_context *b, int32_t seq_a, int32_t seq_b)
{
    feed(a, seq_a, 500, 5);
    feed(b, seq_b, 500, 5);
    assert_memory_equal(loam_logits(a, -1), loam_logits(b, -1), (size_t)loam_model_n_vocab(model) * 4);
}

static uint8_t *save(loam_context *ctx, int32_t seq, size_t *n)
{
    loam_error err;
    *n = loam_state_size(ctx, seq);
    assert_true(*n > 0);
    uint8_t *data = mem_alloc(*n);
    size_t written;
    if (loam_state_save(ctx, seq, data, *n, &written, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(written, *n);
    assert_int_equal(loam_state_save(ctx, seq, data, *n - 1, &written, &err), LOAM_E_ARG);
    assert_int_equal(loam_state_save(ctx, seq, data, *n, &written, &err), LOAM_OK);
    return data;
}

static void whole_contexts(void **state)
{
    (void)state;
    loam_error err;
    static const loam_type types[] = { LOAM_F16, LOAM_F32, LOAM_Q8_0 };
    for (int t = 0; t < 3; t++) {
        loam_context *a = fresh(model, 512, types[t]), *b = fresh(model, 768, types[t]);
        feed(a, 0, 0, 150);
        assert_int_equal(loam_memory_seq_cp(a, 0, 2, -1, 100, &err), LOAM_OK);
        feed(a, 2, 150, 7);
        size_t n;
        uint8_t *data = save(a, -1, &n);
        feed(b, 1, 0, 33);
        if (loam_state_load(b, -1, data, n, &err) != LOAM_OK) fail_msg("%s", err.message);
        assert_int_equal(loam_memory_seq_pos_max(b, 1), -1);
        for (int q = 0; q < 4; q += 2) same_next(a, b, q, q);
        mem_free(data);
        loam_context_free(a);
        loam_context_free(b);
    }
}

static void one_sequence(void **state)
{
    (void)state;
    loam_error err;
    loam_context *a = fresh(model, 512, LOAM_F16), *b = fresh(model, 256, LOAM_F16);
    feed(a, 1, 0, 90);
    assert_true(loam_memory_seq_rm(a, 1, 80, -1));
    size_t n, whole;
    uint8_t *data = save(a, 1, &n), *all = save(a, -1, &whole);
    feed(b, 0, 200, 20);
    feed(b, 3, 300, 70);
    if (loam_state_load(b, 3, data, n, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_memory_seq_pos_max(b, 3), 79);
    assert_int_equal(loam_memory_seq_pos_max(b, 0), 19);
    same_next(a, b, 1, 3);
    assert_int_equal(loam_state_load(b, -1, data, n, &err), LOAM_E_ARG);
    assert_int_equal(loam_state_load(b, 3, all, whole, &err), LOAM_E_ARG);
    assert_int_equal(loam_state_load(b, 4, data, n, &err), LOAM_E_ARG);
    assert_int_equal(loam_memory_seq_pos_max(b, 3), 84);
    mem_free(data);
    mem_free(all);
    loam_context_free(a);
    loam_context_free(b);
}

static void files(void **state)
{
    (void)state;
    loam_error err;
    char path[512];
    scratch_path(path, "state.bin");
    loam_context *a = fresh(model, 512, LOAM_F16), *b = fresh(model, 512, LOAM_F16);
    feed(a, 0, 0, 70);
    assert_int_equal(loam_state_save_file(a, 0, path, ids, 70, &err), LOAM_OK);
    int32_t got[80];
    loam_state_tokens few = { got, 69, 0 }, tokens = { got, 80, 0 };
    assert_int_equal(loam_state_load_file(b, 0, path, &few, &err), LOAM_E_ARG);
    if (loam_state_load_file(b, 0, path, &tokens, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(tokens.n, 70);
    assert_memory_equal(got, ids, 70 * 4);
    same_next(a, b, 0, 0);
    unlink(path);
    assert_int_equal(loam_state_load_file(b, 0, path, NULL, &err), LOAM_E_IO);
    assert_int_equal(loam_state_save_file(a, 0, "/nonexistent/folder/state", NULL, 0, &err), LOAM_E_IO);
    loam_context_free(a);
    loam_context_free(b);
}

/* Refused, and the context goes on as if nothing had been. */
static void refused(const uint8_t *data, size_t n, int32_t seq)
{
    loam_error err = { .code = LOAM_OK };
    loam_context *a = fresh(model, 256, LOAM_F16), *b = fresh(model, 256, LOAM_F16);
    feed(a, 0, 0, 40);
    feed(b, 0, 0, 40);
    assert_true(loam_state_load(b, seq, data, n, &err) < 0);
    assert_true(err.message[0] != 0);
    same_next(a, b, 0, 0);
    loam_context_free(a);
    loam_context_free(b);
}

static void bad_states(void **state)
{
    (void)state;
    loam_context *a = fresh(model, 512, LOAM_F16), *foreign = fresh(other, 512, LOAM_F16), *typed = fresh(model, 512, LOAM_F32);
    loam_context *big = fresh(model, 512, LOAM_F16);
    feed(a, 0, 0, 70);
    feed(foreign, 0, 0, 9);
    feed(typed, 0, 0, 9);
    feed(big, 0, 0, 400);
    size_t n, m;
    uint8_t *data = save(a, -1, &n);
    refused(data, 0, -1);
    for (size_t cut = 1; cut < n; cut = cut * 3 / 2 + 7) refused(data, cut, -1);
    for (size_t at = 0; at < n; at = at * 2 + 5) {
        data[at] ^= 0x10;
        refused(data, n, -1);
        data[at] ^= 0x10;
    }
    mem_free(data);
    data = save(foreign, -1, &m);
    refused(data, m, -1);
    mem_free(data);
    data = save(typed, -1, &m);
    refused(data, m, -1);
    mem_free(data);
    data = save(big, -1, &m);
    refused(data, m, -1);
    mem_free(data);
    loam_context_free(a);
    loam_context_free(foreign);
    loam_context_free(typed);
    loam_context_free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_contexts), cmocka_unit_test(one_sequence), cmocka_unit_test(files), cmocka_unit_test(bad_states),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
