/* generate.c - every allocation on the way from a file to a sampled token fails in turn: open, context, tokenize, decode,
 * sample. No crash, no leak, the right status; and after each failure the same objects, used again, give the undisturbed bits. */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "loam/context.h"
#include "loam/debug.h"
#include "loam/sampler.h"
#include "loam/tokenizer.h"

#define TEXT "some words to begin with"
#define MOST_VOCAB 4096

static char path[512];
static loam_model *kept_model;
static float law[MOST_VOCAB];

static loam_status tokens_of(const loam_model *m, int32_t *ids, size_t *n, loam_error *err)
{
    return loam_tokenizer_encode(loam_model_tokenizer(m), TEXT, strlen(TEXT), LOAM_ENCODE_ADD_SPECIAL, ids, 64, n, err);
}

static loam_status context_of(const loam_model *m, loam_context **ctx, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 8, p.n_threads = 1, p.n_seq_max = 2;
    return loam_context_new(ctx, m, &p, err);
}

static loam_status decode_text(loam_context *ctx, loam_error *err)
{
    int32_t ids[64];
    size_t n = 0;
    loam_status status = tokens_of(loam_context_model(ctx), ids, &n, err);
    if (status != LOAM_OK) return status;
    loam_batch b = { .n_tokens = (int32_t)n, .token = ids };
    switch (loam_decode(ctx, &b, err)) {
    case 0: return LOAM_OK;
    case -2: return LOAM_E_NOMEM;
    default: return err->code;
    }
}

/* From nothing to a sampled token and back to nothing. */
static loam_status whole_way(void *arg, loam_error *err)
{
    (void)arg;
    loam_model *m = NULL;
    loam_context *ctx = NULL;
    loam_sampler *s = NULL;
    int32_t id;
    loam_sampler_params sp = loam_sampler_defaults();
    sp.seed = 7;
    loam_status status = loam_model_open(&m, path, NULL, err);
    if (status == LOAM_OK) status = context_of(m, &ctx, err);
    if (status == LOAM_OK) status = decode_text(ctx, err);
    if (status == LOAM_OK) status = loam_sampler_new(&s, &sp, err);
    if (status == LOAM_OK) status = loam_sampler_sample(s, loam_logits(ctx, -1), loam_model_n_vocab(m), &id, err);
    if (status == LOAM_OK) status = loam_sampler_accept(s, id, err);
    loam_sampler_free(s);
    loam_context_free(ctx);
    loam_model_free(m);
    return status;
}

/* A context that met a failure at its nth allocation is used again. False when no allocation failed. */
static bool decode_twice(long n)
{
    loam_error err;
    loam_context *ctx = NULL;
    fault_arm(n, false);
    loam_status status = context_of(kept_model, &ctx, &err);
    if (status == LOAM_OK) status = decode_text(ctx, &err);
    bool hit = fault_hit();
    fault_arm(0, false);
    if (!hit && status != LOAM_OK) fail_msg("without a failure: %s", err.message);
    if (ctx && status != LOAM_OK) {
        assert_int_equal(loam_memory_seq_pos_max(ctx, 0), -1);
        if (decode_text(ctx, &err) != LOAM_OK) fail_msg("after allocation %ld failed: %s", n, err.message);
    }
    if (ctx) assert_memory_equal(loam_logits(ctx, -1), law, (size_t)loam_model_n_vocab(kept_model) * 4);
    loam_context_free(ctx);
    return hit;
}

static int set_up(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    scratch_path(path, "generate.gguf");
    if (loam_debug_make_model(path, "tiny", "q4_K_M", 11, &err) != LOAM_OK) return -1;
    if (loam_model_open(&kept_model, path, NULL, &err) != LOAM_OK || loam_model_n_vocab(kept_model) > MOST_VOCAB) return -1;
    if (context_of(kept_model, &ctx, &err) != LOAM_OK || decode_text(ctx, &err) != LOAM_OK) return -1;
    memcpy(law, loam_logits(ctx, -1), (size_t)loam_model_n_vocab(kept_model) * 4);
    loam_context_free(ctx);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loam_model_free(kept_model);
    unlink(path);
    return 0;
}

static void from_file_to_token(void **state)
{
    (void)state;
    assert_true(fault_loop("open, context, tokenize, decode, sample", whole_way, NULL) > 20);
}

static void a_context_survives(void **state)
{
    (void)state;
    long n = 1, before = fault_live();
    while (decode_twice(n)) n++;
    assert_int_equal(fault_live(), before);
    print_message("decode, and decode again: %ld failing allocations\n", n - 1);
    assert_true(n > 10);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(from_file_to_token), cmocka_unit_test(a_context_survives) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
