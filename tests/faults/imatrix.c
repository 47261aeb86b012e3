/* imatrix.c - counting, adding up, writing and reading importance matrices, comparing with a base, and planning types, while
 * allocations fail, one after the other: no crash, no leak, nothing half done. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "loam/debug.h"
#include "loam/evaluate.h"
#include "loam/quantize.h"

static char model[512], matrix[512], base[512];
static loam_model *m;
static loam_context *ctx;

/* Counts two batches, merges, writes, reads. */
static loam_status whole_way(void *arg, loam_error *err)
{
    const int32_t ids[6] = { 5, 6, 7, 8, 9, 10 };
    loam_imatrix *im = NULL, *read = NULL;
    loam_batch batch = { .n_tokens = 6, .token = ids };
    (void)arg;
    remove(matrix);
    loam_memory_clear(ctx);
    loam_status status = loam_imatrix_new(&im, err);
    if (status == LOAM_OK) status = loam_imatrix_add_dataset(im, "text", err);
    for (int i = 0; i < 2 && status == LOAM_OK; i++) {
        size_t before = loam_imatrix_n_entries(im);
        if (loam_imatrix_decode(im, ctx, &batch, err)) {
            status = err->code;
            assert_int_equal(loam_imatrix_n_entries(im), before);
        }
    }
    if (status == LOAM_OK) status = loam_imatrix_save(im, matrix, err);
    if (status == LOAM_OK) status = loam_imatrix_open(&read, matrix, err);
    if (status == LOAM_OK) status = loam_imatrix_merge(read, im, err);
    if (status == LOAM_OK) assert_int_equal(loam_imatrix_n_entries(read), 28);
    loam_imatrix_free(im);
    loam_imatrix_free(read);
    return status;
}

static loam_status compare(void *arg, loam_error *err)
{
    const int32_t tokens[4] = { 0, 1, 2, 1 };
    const float logits[3] = { 1, 2, 3 };
    float row[3];
    loam_kl_text t = { 4, 3, 1, tokens };
    loam_kl_writer *w = NULL;
    loam_kl_base *b = NULL;
    loam_kl *kl = NULL;
    loam_kl_summary s;
    (void)arg;
    remove(base);
    loam_status status = loam_kl_writer_open(&w, base, &t, err);
    if (status == LOAM_OK) status = loam_kl_writer_put(w, logits, err);
    if (status == LOAM_OK) status = loam_kl_writer_close(w, err);
    else loam_kl_writer_cancel(w);
    if (status == LOAM_OK) status = loam_kl_base_open(&b, base, err);
    if (status == LOAM_OK) status = loam_kl_new(&kl, 3, err);
    if (status == LOAM_OK && loam_kl_base_row(b, 0, row)) status = loam_kl_add(kl, row, logits, 1, err);
    if (status == LOAM_OK) status = loam_kl_summarize(kl, &s, err);
    loam_kl_base_free(b);
    loam_kl_free(kl);
    return status;
}

static loam_status plan(void *arg, loam_error *err)
{
    static const char text[] = "ab cd ef gh ij kl mn op qr st uv wx yz ab cd ef gh ij kl mn op";
    loam_budget_params p = loam_budget_defaults();
    loam_budget *b = NULL;
    (void)arg;
    p.bits = 8, p.text = text, p.text_len = sizeof text - 1, p.n_ctx = 16, p.n_tokens = 16, p.n_threads = 1, p.n_rounds = 0;
    loam_status status = loam_budget_plan(&b, model, &p, err);
    assert_int_equal(b != NULL, status == LOAM_OK);
    loam_budget_free(b);
    return status;
}

static void counting(void **unused)
{
    (void)unused;
    loam_error err;
    if (whole_way(NULL, &err) != LOAM_OK) fail_msg("%s", err.message); /* plans and outputs of the context are there from now on */
    assert_true(fault_loop("imatrix", whole_way, NULL) > 50);
}

static void comparing(void **unused)
{
    (void)unused;
    assert_true(fault_loop("kl", compare, NULL) > 5);
}

/* A plan allocates thousands of times: some of them fail. */
static void planning(void **unused)
{
    (void)unused;
    loam_error err;
    fault_arm(0, false);
    assert_int_equal(plan(NULL, &err), LOAM_OK);
    long points = fault_count(), tried = 0;
    for (long n = 1; n <= points; n += n < 40 ? 13 : points / 10 + 1, tried++) {
        long live = fault_live();
        fault_arm(n, false);
        err.code = LOAM_OK;
        loam_status status = plan(NULL, &err);
        bool hit = fault_hit();
        fault_arm(0, false);
        if (status != LOAM_OK && (status != LOAM_E_NOMEM || !hit)) fail_msg("point %ld: %d, %s", n, status, err.message);
        assert_int_equal(fault_live(), live);
    }
    print_message("plan: %ld of %ld points\n", tried, points);
    assert_true(points > 100);
}

int main(void)
{
    fault_install();
    loam_error err;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_threads = 1;
    scratch_path(model, "model.gguf");
    scratch_path(matrix, "matrix.gguf");
    scratch_path(base, "base.kl");
    if (loam_debug_make_model(model, "tiny", "f32", 1, &err) != LOAM_OK || loam_model_open(&m, model, NULL, &err) != LOAM_OK ||
        loam_context_new(&ctx, m, &p, &err) != LOAM_OK) return 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(counting), cmocka_unit_test(comparing), cmocka_unit_test(planning) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    loam_context_free(ctx);
    loam_model_free(m);
    remove(model);
    remove(matrix);
    remove(base);
    return failed;
}
