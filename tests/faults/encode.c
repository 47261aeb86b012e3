/* encode.c - every allocation of encoding, pooling and cross attention fails in turn: no crash, no leak, and what was encoded
 * before a failed call is still there. Models of ../shared. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "loam/context.h"

#define N 10

static char path[512];
static const int32_t ids[N] = { 3, 14, 15, 92, 65, 35, 89, 79, 32, 38 };

static loam_status status_of(int code, const loam_error *err) { return code == 0 ? LOAM_OK : code == -2 ? LOAM_E_NOMEM : err->code; }

static loam_status context_of(const loam_model *m, loam_context **ctx, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 16, p.n_threads = 1, p.n_seq_max = 2, p.embeddings = true;
    return loam_context_new(ctx, m, &p, err);
}

/* Encodes ids [first, N), then decodes all where the model has a decoder. */
static loam_status encode_and_decode(loam_context *ctx, int first, loam_error *err)
{
    loam_batch source = { .n_tokens = N - first, .token = ids + first }, target = { .n_tokens = N, .token = ids };
    loam_status status = status_of(loam_encode(ctx, &source, err), err);
    if (status != LOAM_OK || !loam_model_has_decoder(loam_context_model(ctx))) return status;
    loam_memory_seq_rm(ctx, 0, 0, 1000);
    return status_of(loam_decode(ctx, &target, err), err);
}

static loam_status whole_way(void *arg, loam_error *err)
{
    (void)arg;
    loam_model *m = NULL;
    loam_context *ctx = NULL;
    loam_status status = loam_model_open(&m, path, NULL, err);
    if (status == LOAM_OK) status = context_of(m, &ctx, err);
    if (status == LOAM_OK) status = encode_and_decode(ctx, 0, err);
    loam_context_free(ctx);
    loam_model_free(m);
    return status;
}

static void from_file_to_rows(void **state)
{
    (void)state;
    static const char *const names[] = { "golden/arch/bert-mean.gguf", "golden/arch/bert-rank.gguf", "golden/arch/t5.gguf" };
    for (int i = 0; i < 3; i++) {
        SHARED_OR_SKIP(path, names[i]);
        assert_true(fault_loop(names[i], whole_way, NULL) > 10);
    }
}

/* One call on a context that holds an encoding; the allocation n fails. */
static void earlier_encodings_stay(void **state)
{
    (void)state;
    SHARED_OR_SKIP(path, "golden/arch/t5.gguf");
    loam_error err;
    loam_model *m;
    loam_context *ctx;
    static float law[128];
    loam_batch again = { .n_tokens = 4, .token = ids }, target = { .n_tokens = N, .token = ids };
    assert_int_equal(loam_model_open(&m, path, NULL, &err), LOAM_OK);
    for (long n = 1, hit = 1; hit; n++) {
        assert_int_equal(context_of(m, &ctx, &err), LOAM_OK);
        assert_int_equal(encode_and_decode(ctx, 2, &err), LOAM_OK);
        if (n == 1) memcpy(law, loam_logits(ctx, -1), sizeof law);
        fault_arm(n, false);
        int code = loam_encode(ctx, &again, &err);
        hit = fault_hit();
        fault_arm(0, false);
        if (code != 0) {
            assert_int_equal(code, -2);
            assert_true(loam_memory_seq_rm(ctx, 0, 0, 1000));
            assert_int_equal(loam_decode(ctx, &target, &err), 0);
            assert_memory_equal(law, loam_logits(ctx, -1), sizeof law);
        }
        loam_context_free(ctx);
    }
    loam_model_free(m);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(from_file_to_rows), cmocka_unit_test(earlier_encodings_stay) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
