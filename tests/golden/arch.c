/* arch.c - every architecture with expected logits: opens the model, decodes its tokens as one batch with an F32 cache and
 * compares the logits of all positions. Files: tests/golden/data/arch, and ../shared/golden/arch where it is. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loam/context.h"

#include "data.h"

#include "check.h"

#define MOST_FILES 256
#define LIMIT 1e-6

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Names without ".gguf" in the folder, sorted. */
static int list(const char *folder, char (*names)[64])
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < MOST_FILES;) {
        size_t len = strlen(e->d_name);
        if (len > 5 && len < 64 && !strcmp(e->d_name + len - 5, ".gguf")) snprintf(names[n++], 64, "%.*s", (int)(len - 5), e->d_name);
    }
    if (d) closedir(d);
    qsort(names, (size_t)n, sizeof *names, compare_names);
    return n;
}

/* NMSE of all logits; negative with a message where a step failed. */
static double run(const loam_model *m, const int32_t *ids, int n, const float *expected, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256;
    p.type_k = p.type_v = LOAM_F32;
    p.n_threads = 1;
    loam_context *ctx;
    if (loam_context_new(&ctx, m, &p, err) != LOAM_OK) return -1;
    int8_t all[256];
    memset(all, 1, sizeof all);
    loam_batch batch = { .n_tokens = n, .token = ids, .logits = all };
    double worst = -1;
    if (loam_decode(ctx, &batch, err) == 0) {
        size_t n_vocab = (size_t)loam_model_n_vocab(m);
        float *got = malloc((size_t)n * n_vocab * sizeof *got);
        assert_non_null(got);
        for (int i = 0; i < n; i++) memcpy(got + (size_t)i * n_vocab, loam_logits(ctx, i), n_vocab * sizeof *got);
        worst = nmse(got, expected, (size_t)n * n_vocab);
        free(got);
    }
    loam_context_free(ctx);
    return worst;
}

/* False when the file is of a supported architecture and does not give its logits. */
static bool check_file(const char *folder, const char *name, int *supported)
{
    char path[600];
    loam_error err = { 0 };
    loam_model *m;
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    loam_status s = loam_model_open(&m, path, NULL, &err);
    if (s == LOAM_E_UNSUPPORTED) {
        printf("  %-26s refused: %s\n", name, strstr(err.message, "architecture") ? strstr(err.message, "architecture") : err.message);
        return strstr(err.message, "is not supported yet") != NULL;
    }
    if (s != LOAM_OK) {
        printf("  %-26s FAILED: %s\n", name, err.message);
        return false;
    }
    size_t n = 0, count = 0;
    snprintf(path, sizeof path, "%s/%s.tokens.txt", folder, name);
    int32_t *ids = slurp_ids(path, &n);
    snprintf(path, sizeof path, "%s/%s.logits.f32", folder, name);
    float *expected = slurp_f32(path, &count);
    double d = -1;
    if (!ids || !expected || count != n * (size_t)loam_model_n_vocab(m)) snprintf(err.message, sizeof err.message, "expected data is missing");
    else d = run(m, ids, (int)n, expected, &err);
    printf("  %-26s %-16s nmse %.2e%s%s\n", name, loam_model_architecture(m), d, d < 0 ? " " : d > LIMIT ? " TOO FAR" : "", d < 0 ? err.message : "");
    free(ids);
    free(expected);
    loam_model_free(m);
    ++*supported;
    return d >= 0 && d <= LIMIT;
}

static void check_folder(const char *folder)
{
    static char names[MOST_FILES][64];
    int n = list(folder, names), bad = 0, supported = 0;
    for (int i = 0; i < n; i++) bad += !check_file(folder, names[i], &supported);
    printf("  %d of %d files run, %d wrong\n", supported, n, bad);
    assert_int_equal(bad, 0);
    assert_true(supported > 0);
}

static void own_files(void **state)
{
    (void)state;
    char folder[512];
    check_folder(golden_path(folder, "arch"));
}

static void shared_files(void **state)
{
    (void)state;
    char folder[512];
    SHARED_OR_SKIP(folder, "golden/arch");
    check_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(own_files), cmocka_unit_test(shared_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
