/* devices.c - every tiny model of tests/golden/data/arch and ../shared/golden/arch on two and three CPU devices, by blocks, by rows and by pattern: the
 * logits have the same bits as on one device. Copies are counted, limits are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch_files.h"
#include "data.h"

#include "check.h"

#include "loam/debug.h"
#include "loam/device.h"

typedef struct spread {
    const char *spec;
    int32_t split_mode, n_gpu_layers;
    const char *pattern;
} spread;

static const spread ways[] = {
    { "cpu:2", LOAM_SPLIT_LAYER, -1, NULL }, { "cpu:3", LOAM_SPLIT_LAYER, -1, NULL }, { "cpu:2", LOAM_SPLIT_LAYER, 1, NULL },
    { "cpu:3", LOAM_SPLIT_ROW, -1, NULL },   { "cpu:2", LOAM_SPLIT_LAYER, 0, "(ffn_down|attn_q|ssm_out).*=CPU1" },
};

/* Logits (or embeddings) of all ids in one batch, then of the first id again in sequence 1; NULL after a failure. */
static float *run(const char *path, const spread *way, const arch_expected *e, loam_context_split *split, loam_error *err)
{
    loam_devices *set = NULL;
    loam_model *m = NULL;
    loam_context *ctx = NULL;
    loam_model_params p = loam_model_defaults();
    loam_context_params cp = loam_context_defaults();
    float *out = NULL;
    if (way && loam_devices_open(&set, way->spec, err) == LOAM_OK) {
        p.devices = set, p.split_mode = way->split_mode, p.n_gpu_layers = way->n_gpu_layers;
        if (way->pattern) p.overrides = &way->pattern, p.n_overrides = 1;
    }
    cp.n_threads = 2;
    cp.n_ctx = 512;
    bool good = loam_model_open(&m, path, &p, err) == LOAM_OK;
    cp.embeddings = good && !loam_model_has_decoder(m);
    good = good && loam_context_new(&ctx, m, &cp, err) == LOAM_OK;
    int8_t *wanted = malloc((size_t)e->n);
    memset(wanted, 1, (size_t)e->n);
    loam_batch b = { .n_tokens = e->n, .token = e->ids, .logits = wanted };
    if (good && loam_model_has_decoder(m) && loam_model_has_encoder(m) && loam_model_decoder_start(m) >= 0) good = loam_encode(ctx, &b, err) == 0;
    good = good && loam_decode(ctx, &b, err) == 0;
    if (good) {
        out = malloc((size_t)e->n * e->width * sizeof *out);
        for (int i = 0; i < e->n; i++)
            memcpy(out + (size_t)i * e->width, cp.embeddings ? loam_embeddings(ctx, i) : loam_logits(ctx, i), e->width * sizeof *out);
        loam_context_splits(ctx, split);
    }
    free(wanted);
    loam_context_free(ctx);
    loam_model_free(m);
    loam_devices_free(set);
    return out;
}

/* Ways that went wrong. */
static int check_model(const char *folder, const char *name)
{
    char path[600];
    loam_error err = { 0 };
    loam_model *m;
    snprintf(path, sizeof path, "%s/%.63s.gguf", folder, name);
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) return 0; /* golden.arch says which */
    arch_expected e;
    loam_context_split split = { 0 };
    bool usable = arch_load(&e, folder, name, m);
    loam_model_free(m);
    float *want = usable ? run(path, NULL, &e, &split, &err) : NULL;
    int bad = usable && !want;
    for (size_t i = 0; want && i < sizeof ways / sizeof *ways; i++) {
        float *got = run(path, &ways[i], &e, &split, &err);
        bool same = got && memcmp(got, want, (size_t)e.n * e.width * sizeof *want) == 0;
        if (!same) printf("  %-26s way %zu: %s\n", name, i, got ? "other bits" : err.message);
        bad += !same;
        free(got);
    }
    free(want);
    arch_free(&e);
    return bad;
}

static void same_bits(const char *folder)
{
    static char names[ARCH_FILES][64];
    int n = arch_list(folder, names), bad = 0;
    for (int i = 0; i < n; i++) bad += check_model(folder, names[i]);
    printf("  %d models, %d ways wrong\n", n, bad);
    assert_int_equal(bad, 0);
    assert_true(n > 0);
}

static void own_models(void **state)
{
    (void)state;
    same_bits(LOAM_TEST_DATA "/arch");
}

static void shared_models(void **state)
{
    (void)state;
    static char names[ARCH_FILES][64];
    if (arch_list(LOAM_SHARED_DIR "/golden/arch", names) == 0) {
        print_message("skipped: no %s/golden/arch\n", LOAM_SHARED_DIR);
        skip();
    }
    same_bits(LOAM_SHARED_DIR "/golden/arch");
}

/* A llama of four blocks: from device to device goes the residual stream, to each the table of rotary positions, and the
 * stream comes home for the head. */
static void copies_and_limits(void **state)
{
    (void)state;
    const char *path = "loam-devices-test.gguf";
    loam_error err;
    assert_int_equal(loam_debug_make_model(path, "tiny", "q8_0", 1, &err), LOAM_OK);
    int32_t ids[] = { 5, 6, 7, 8 };
    arch_expected e = { .ids = ids, .n = 4, .width = 4096 };
    for (int n = 2; n <= 4; n++) {
        char spec[16];
        snprintf(spec, sizeof spec, "cpu:%d", n);
        loam_context_split split = { 0 };
        float *y = run(path, &(spread){ spec, LOAM_SPLIT_LAYER, -1, NULL }, &e, &split, &err);
        assert_non_null(y);
        free(y);
        assert_int_equal(split.n_devices, n);
        assert_int_equal(split.n_splits, n + 1);
        assert_int_equal(split.n_copies, 2 * (n - 1) + 1);
    }
    loam_context_split split;
    assert_null(run(path, &(spread){ "cpu:2:1M", LOAM_SPLIT_LAYER, -1, NULL }, &e, &split, &err));
    assert_int_equal(err.code, LOAM_E_NOMEM);
    assert_non_null(strstr(err.message, "CPU1"));
    assert_null(run(path, &(spread){ "cpu:2", LOAM_SPLIT_LAYER, -1, "(=CPU1" }, &e, &split, &err));
    assert_int_equal(err.code, LOAM_E_ARG);
    assert_null(run(path, &(spread){ "cpu:2", LOAM_SPLIT_LAYER, -1, "ffn=CPU7" }, &e, &split, &err));
    assert_int_equal(err.code, LOAM_E_ARG);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(own_models), cmocka_unit_test(shared_models), cmocka_unit_test(copies_and_limits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
