/* model_faults.c - every allocation of opening a model and of building its graph fails in turn: the status is NOMEM, nothing
 * leaks, and the next open gives the same graph. */
#include <string.h>

#include "data.h"
#include "fault.h"
#include "model/model.h"

#include "check.h"

static loam_status open_and_close(void *path, loam_error *err)
{
    loam_model *m;
    loam_status s = loam_model_open(&m, path, NULL, err);
    loam_model_free(m);
    return s;
}

static loam_status build(void *model, loam_error *err)
{
    graph g;
    build_params p = { .n_tokens = 3, .n_outputs = 1, .want_logits = true, .want_embd = true, .causal = true,
                       .rope_scaling = -1, .yarn_ext_factor = -1, .yarn_attn_factor = -1, .yarn_beta_fast = -1,
                       .yarn_beta_slow = -1 };
    graph_init(&g, p.n_tokens, p.n_outputs);
    loam_status s = model_build(model, &p, &g, err);
    if (s == LOAM_OK) {
        assert_non_null(g.outputs[OUTPUT_LOGITS]);
        assert_non_null(g.outputs[OUTPUT_EMBD]);
        assert_int_equal(g.outputs[OUTPUT_LOGITS]->ne[0], loam_model_n_vocab(model));
        assert_int_equal(g.outputs[OUTPUT_LOGITS]->ne[2], 1);
    }
    graph_free(&g);
    return s;
}

static const char *const files[] = { "arch/gemma3-dense.gguf", "arch/gpt-oss-moe.gguf", "arch/minicpm3.gguf" };

static void opening(void **state)
{
    (void)state;
    char path[512];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        golden_path(path, files[i]);
        assert_true(fault_loop(files[i], open_and_close, path) > 5);
    }
}

static void building(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        loam_model *m;
        assert_int_equal(loam_model_open(&m, golden_path(path, files[i]), NULL, &err), LOAM_OK);
        uint64_t before = model_fingerprint(m);
        assert_true(fault_loop("build", build, m) > 0);
        assert_true(before == model_fingerprint(m));
        loam_model_free(m);
    }
}

/* Fingerprints tell models apart and do not depend on the run. */
static void fingerprints(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    uint64_t seen[3];
    for (int i = 0; i < 3; i++) {
        loam_model *m, *again;
        assert_int_equal(loam_model_open(&m, golden_path(path, files[i]), NULL, &err), LOAM_OK);
        assert_int_equal(loam_model_open(&again, path, NULL, &err), LOAM_OK);
        seen[i] = model_fingerprint(m);
        assert_true(seen[i] == model_fingerprint(again));
        for (int j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
        loam_model_free(m);
        loam_model_free(again);
    }
}

/* With no output wanted the last block ends at its cache write; without logits there is no head. */
static void cut_graphs(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    loam_model *m;
    graph g;
    assert_int_equal(loam_model_open(&m, golden_path(path, files[0]), NULL, &err), LOAM_OK);
    build_params p = { .n_tokens = 5, .n_outputs = 0, .want_logits = true, .causal = true,  .rope_scaling = -1,
                       .yarn_ext_factor = -1, .yarn_attn_factor = -1, .yarn_beta_fast = -1, .yarn_beta_slow = -1 };
    graph_init(&g, p.n_tokens, p.n_outputs);
    assert_int_equal(model_build(m, &p, &g, &err), LOAM_OK);
    assert_null(g.outputs[OUTPUT_LOGITS]);
    assert_int_equal(g.values[g.n_values - 1]->op, OP_KV_WRITE);
    graph_free(&g);

    p.n_outputs = 2;
    graph_init(&g, p.n_tokens, p.n_outputs);
    assert_int_equal(model_build(m, &p, &g, &err), LOAM_OK);
    assert_int_equal(g.outputs[OUTPUT_LOGITS]->ne[2], 2);
    for (int i = 0; i < g.n_values; i++) /* nothing of the last feed-forward is computed for rows that nobody wants */
        if (g.values[i]->layer == 3 && g.values[i]->op == OP_GATE) assert_int_equal(g.values[i]->ne[2], 2);
    graph_free(&g);

    p.n_outputs = 6;
    graph_init(&g, p.n_tokens, p.n_outputs);
    assert_int_equal(model_build(m, &p, &g, &err), LOAM_E_ARG);
    graph_free(&g);
    loam_model_free(m);
}

static void vocabulary_only(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    loam_model *m;
    graph g;
    loam_model_params mp = loam_model_defaults();
    build_params p = { .n_tokens = 1, .n_outputs = 1 };
    mp.vocab_only = true;
    assert_int_equal(loam_model_open(&m, golden_path(path, files[0]), &mp, &err), LOAM_OK);
    assert_int_equal(loam_model_n_vocab(m), 128);
    assert_int_equal(loam_model_n_layer(m), 0);
    graph_init(&g, 1, 1);
    assert_int_equal(model_build(m, &p, &g, &err), LOAM_E_ARG);
    graph_free(&g);
    loam_model_free(m);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening), cmocka_unit_test(building), cmocka_unit_test(fingerprints), cmocka_unit_test(cut_graphs),
        cmocka_unit_test(vocabulary_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
