/* cache_rotation.c - caches of block types whose rows go through a Hadamard transform: closer to the exact logits with few
 * bits, moved keys are where computed ones are, states are bound to it. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "models.h"

#include "base/mem.h"
#include "kernels/kernels.h"
#include "loam/context.h"
#include "loam/debug.h"

enum { N = 150 };

static loam_model *model;

static int open_model(void **state)
{
    (void)state;
    model = tiny_model("q8_0", 7);
    return model ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    loam_model_free(model);
    return 0;
}

static loam_context *fresh(loam_type k, loam_type v, int32_t rotation)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 512, p.n_threads = 2, p.type_k = k, p.type_v = v, p.cache_rotation = rotation, p.n_seq_max = 2;
    if (loam_context_new(&ctx, model, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

/* Feeds n made-up tokens that count from `first` on. */
static void feed(loam_context *ctx, int first, int n)
{
    loam_error err;
    int32_t ids[N];
    for (int i = 0; i < n; i++) ids[i] = 300 + (first + i) * 37 % 3000;
    loam_batch b = { .n_tokens = n, .token = ids };
    if (loam_decode(ctx, &b, &err) != 0) fail_msg("%s", err.message);
}

static double distance(const loam_context *a, const loam_context *b)
{
    return nmse(loam_logits(a, -1), loam_logits(b, -1), (size_t)loam_model_n_vocab(model));
}

/* The transform of a row that it has transformed is the row; a lone value becomes many of one size. */
static void transform_undoes_itself(void **state)
{
    (void)state;
    for (int s = 0; kernels_set_name(s); s++) {
        const kernels *k = kernels_for(kernels_set_name(s)), *ref = kernels_for("ref");
        if (!k) continue;
        for (int block = 1; block <= 256; block *= 2) {
            float x[768], y[768], z[768];
            for (int i = 0; i < 768; i++) x[i] = y[i] = z[i] = (float)(i * 7919 % 1009) / 1009.0f - 0.3f;
            ref->hadamard(y, 768, block);
            k->hadamard(z, 768, block);
            assert_memory_equal(y, z, sizeof y);
            k->hadamard(z, 768, block);
            for (int i = 0; i < 768; i++) assert_true(fabsf(z[i] - x[i]) < 1e-5f);
        }
        float one[64] = { [5] = 8.0f };
        k->hadamard(one, 64, 64);
        for (int i = 0; i < 64; i++) assert_true(fabsf(one[i]) == 1.0f);
    }
}

/* Only the rounding changes: logits stay near those of an exact cache for every type. */
static void results_stay_near(void **state)
{
    (void)state;
    static const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_Q8_0, LOAM_Q5_1, LOAM_Q5_0, LOAM_Q4_1, LOAM_Q4_0, LOAM_IQ4_NL };
    static const double most[] = { 0, 2e-3, 5e-3, 5e-2, 5e-2, 0.2, 0.2, 0.2 };
    loam_context *exact = fresh(LOAM_F32, LOAM_F32, LOAM_ROTATION_OFF);
    feed(exact, 0, N);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        loam_context *ctx = fresh(types[i], types[i], LOAM_ROTATION_ON);
        feed(ctx, 0, N);
        double e = distance(ctx, exact);
        print_message("%s: %.2e\n", loam_type_name((int)types[i]), e);
        assert_true(e <= most[i]);
        loam_context_free(ctx);
    }
    loam_context_free(exact);
}

/* Keys that moved back by 40 places give what tokens give that were computed there, but for the rounding of their layer. */
static void moved_keys_are_turned(void **state)
{
    (void)state;
    loam_error err;
    for (int32_t rotation = LOAM_ROTATION_OFF; rotation <= LOAM_ROTATION_ON; rotation++) {
        loam_context *a = fresh(LOAM_Q8_0, LOAM_Q8_0, rotation), *b = fresh(LOAM_Q8_0, LOAM_Q8_0, rotation);
        feed(a, 0, 100);
        assert_int_equal(loam_memory_seq_add(a, 0, -1, -1, 40, &err), LOAM_OK);
        feed(a, 100, 1);
        assert_int_equal(loam_memory_seq_pos_max(a, 0), 140);
        feed(b, 0, 101);
        double e = distance(a, b); /* rotary positions are relative */
        print_message("rotation %d: %.2e\n", (int)rotation, e);
        assert_true(e < 2e-3);
        loam_context_free(a);
        loam_context_free(b);
    }
}

static void states_are_bound_to_it(void **state)
{
    (void)state;
    loam_error err;
    loam_context *on = fresh(LOAM_Q8_0, LOAM_Q8_0, LOAM_ROTATION_ON), *off = fresh(LOAM_Q8_0, LOAM_Q8_0, LOAM_ROTATION_OFF),
                 *again = fresh(LOAM_Q8_0, LOAM_Q8_0, LOAM_ROTATION_ON);
    feed(on, 0, 100);
    size_t n = loam_state_size(on, -1), written;
    void *data = mem_alloc(n);
    assert_int_equal(loam_state_save(on, -1, data, n, &written, &err), LOAM_OK);
    assert_int_equal(loam_state_load(off, -1, data, written, &err), LOAM_E_ARG);
    assert_int_equal(loam_memory_seq_pos_max(off, 0), -1);
    assert_int_equal(loam_state_load(again, -1, data, written, &err), LOAM_OK);
    feed(on, 100, 1);
    feed(again, 100, 1);
    assert_memory_equal(loam_logits(on, -1), loam_logits(again, -1), (size_t)loam_model_n_vocab(model) * sizeof(float));
    mem_free(data);
    loam_context_free(on);
    loam_context_free(off);
    loam_context_free(again);
}

static void a_bad_setting_is_refused(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.cache_rotation = 3;
    assert_int_equal(loam_context_new(&ctx, model, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "cache_rotation"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(transform_undoes_itself), cmocka_unit_test(results_stay_near),
                                        cmocka_unit_test(moved_keys_are_turned), cmocka_unit_test(states_are_bound_to_it),
                                        cmocka_unit_test(a_bad_setting_is_refused) };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
