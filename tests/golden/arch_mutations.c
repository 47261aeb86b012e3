/* arch_mutations.c - the mutation table: each trait of each recipe is switched off in turn, which must move the logits of
 * the model's file far from the expected ones. A trait whose mutation goes unnoticed is one that nothing checks. */
#include <stdio.h>
#include <string.h>

#include "arch_files.h"
#include "data.h"
#include "model/testing.h"

#include "check.h"

#define LEAST 1e-3

/* What a file cannot show as clearly, and why. */
static const struct {
    const char *name;
    trait trait;   /* TRAIT_COUNT: any */
    double least;
    const char *why;
} weak[] = {
    { "grok-moe", TRAIT_COUNT, 2e-6, "the embedding, times 78, outweighs every branch" },
    { "gemma2-dense", TRAIT_SCORE_CAP, 1e-6, "scores stay far below the cap of 50" },
    { "llama4-moe", TRAIT_WINDOW, 0, "chunks of 8192 positions, 48 tokens" },
    { "llama4-moe", TRAIT_WINDOW_SIZE, 0, "chunks of 8192 positions, 48 tokens" },
    { "llama4-moe", TRAIT_TEMPERATURE, 0, "starts at position 8191" },
    { "modern-bert", TRAIT_ACTIVATION, -1, "the other activation needs a matrix that the file does not have: refused" },
    { "t5", TRAIT_SCORE_SCALE, 1e-7, "scores are small beside the position bias" },
    { "smallthinker-moe", TRAIT_WINDOW, 0, "a window of 4096 positions, 48 tokens" },
    { "smallthinker-moe", TRAIT_WINDOW_SIZE, 0, "a window of 4096 positions, 48 tokens" },
};

static double least_of(const char *name, trait t, const char **why)
{
    *why = "";
    for (size_t i = 0; i < sizeof weak / sizeof *weak; i++)
        if (!strcmp(weak[i].name, name) && (weak[i].trait == t || weak[i].trait == TRAIT_COUNT)) {
            *why = weak[i].why;
            return weak[i].least;
        }
    return LEAST;
}

static bool mutate_file(const char *folder, const char *name, int seen[TRAIT_COUNT], double least[TRAIT_COUNT])
{
    char path[600];
    loam_error err = { 0 };
    loam_model *m;
    bool good = true;
    snprintf(path, sizeof path, "%s/%.63s.gguf", folder, name);
    for (trait t = 0; t < TRAIT_COUNT; t++) {
        if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) return err.code == LOAM_E_UNSUPPORTED;
        arch_expected e;
        if (model_mutate(m, t) && arch_load(&e, folder, name, m)) {
            double d = arch_distance(m, &e, &err);
            const char *why;
            bool noticed = d >= least_of(name, t, &why);
            if (!noticed || d < LEAST)
                printf("  %-26s %-40s nmse %.2e %s\n", name, trait_name(t), d, d < 0 ? err.message : noticed ? why : "UNNOTICED");
            good &= noticed;
            if (d >= LEAST && (!seen[t]++ || d < least[t])) least[t] = d;
            arch_free(&e);
        }
        loam_model_free(m);
    }
    return good;
}

static void check_folder(const char *folder)
{
    static char names[ARCH_FILES][64];
    int seen[TRAIT_COUNT] = { 0 }, n = arch_list(folder, names), bad = 0;
    double least[TRAIT_COUNT] = { 0 };
    for (int i = 0; i < n; i++) bad += !mutate_file(folder, names[i], seen, least);
    printf("  %-40s files  smallest nmse\n", "mutation");
    for (trait t = 0; t < TRAIT_COUNT; t++)
        if (seen[t]) printf("  %-40s %5d  %.1e\n", trait_name(t), seen[t], least[t]);
    assert_int_equal(bad, 0);
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
