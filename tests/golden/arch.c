/* arch.c - every architecture with expected logits: opens the model, decodes its tokens as one batch with an F32 cache and
 * compares the logits of all positions, of encoders the embeddings. Files: tests/golden/data/arch, and ../shared/golden/arch where it is. */
#include <stdio.h>
#include <string.h>

#include "arch_files.h"
#include "data.h"

#include "check.h"

#define LIMIT 1e-6
#define LIMIT_T5 1e-5

/* False when the file is of a supported architecture and does not give its logits. */
static bool check_file(const char *folder, const char *name, int *supported)
{
    char path[600];
    loam_error err = { 0 };
    loam_model *m;
    snprintf(path, sizeof path, "%s/%.63s.gguf", folder, name);
    loam_status s = loam_model_open(&m, path, NULL, &err);
    if (s == LOAM_E_UNSUPPORTED) {
        const char *reason = strstr(err.message, "architecture");
        printf("  %-26s refused: %s\n", name, reason ? reason : err.message);
        return strstr(err.message, "is not supported yet") != NULL;
    }
    if (s != LOAM_OK) {
        printf("  %-26s FAILED: %s\n", name, err.message);
        return false;
    }
    arch_expected e;
    double d = -1, limit = loam_model_decoder_start(m) >= 0 ? LIMIT_T5 : LIMIT;
    if (!loam_model_has_decoder(m) && loam_model_n_labels(m) > 0) { /* has no expected rows: only scores of sequences */
        loam_model_free(m);
        return true;
    }
    if (arch_load(&e, folder, name, m)) d = arch_distance(m, &e, &err);
    else snprintf(err.message, sizeof err.message, "expected data is missing");
    printf("  %-26s %-16s nmse %.2e%s%s\n", name, loam_model_architecture(m), d, d < 0 ? " " : d > limit ? " TOO FAR" : "",
           d < 0 ? err.message : "");
    arch_free(&e);
    loam_model_free(m);
    ++*supported;
    return d >= 0 && d <= limit;
}

static void check_folder(const char *folder)
{
    static char names[ARCH_FILES][64];
    int n = arch_list(folder, names), bad = 0, supported = 0;
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
