/* context.c - every script of ../shared/golden/context through `loam debug script`: what calls return, and all outputs.
 * Prints what it leaves out (families that are not there yet, by the command's own message) and skips where the folder is absent. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

typedef struct tally {
    int good, bad, left_out;
} tally;

static bool exists(const char *path) { return access(path, R_OK) == 0; }

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Recurrent and hybrid families are compared a little more loosely: the field rounds their GELUs and states otherwise. */
static double tolerance(const char *model)
{
    static const char *loose[] = { "mamba", "jamba", "lfm2", "rwkv", "falcon-h1", "granitehybrid", "nemotron_h", "plamo2", "qwen35", "qwen3next", "t5" };
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
        if (strncmp(model, loose[i], strlen(loose[i])) == 0) return 1e-5;
    return 1e-6;
}

static void compare(const char *stem, const char *outputs, const char *log, tally *t)
{
    char path[512], rel[256];
    size_t n_got, n_want;
    snprintf(rel, sizeof rel, "golden/context/%s.f32", stem);
    shared_path(path, rel);
    float *got = slurp_f32(outputs, &n_got), *want = slurp_f32(path, &n_want);
    snprintf(rel, sizeof rel, "golden/context/%s.out.txt", stem);
    shared_path(path, rel);
    char *lines = slurp(log, NULL), *expected = slurp(path, NULL);
    double d = got && want && n_got == n_want ? nmse(got, want, n_want) : 1e9;
    bool same = lines && expected && strcmp(lines, expected) == 0;
    if (d <= tolerance(stem) && same) {
        t->good++;
    } else {
        t->bad++;
        print_message("%s: NMSE %.3g, log %s\n", stem, d, same ? "equal" : "differs");
    }
    free(got);
    free(want);
    free(lines);
    free(expected);
}

/* stem: MODEL.sNN_name, for the script sNN_name.txt or sNN_name.MODEL.txt. */
static void run_script(const char *stem, tally *t)
{
    char model[512], script[512], rel[256], out[512], log[512];
    const char *dot = strchr(stem, '.');
    int len = (int)(dot - stem);
    snprintf(rel, sizeof rel, "golden/arch/%.*s.gguf", len, stem);
    shared_path(model, rel);
    snprintf(rel, sizeof rel, "golden/context/%s.txt", dot + 1);
    snprintf(script, sizeof script, "%s/%s", LOAM_SHARED_DIR, rel);
    if (!exists(script)) snprintf(script, sizeof script, "%s/golden/context/%s.%.*s.txt", LOAM_SHARED_DIR, dot + 1, len, stem);
    scratch_path(out, "script.f32");
    scratch_path(log, "script.log");
    command_result r = command("debug", "script", "-m", model, "--script", script, "-o", out, "--log", log);
    if (r.code == 0) {
        compare(stem, out, log, t);
    } else if (strstr(r.err, "not supported yet")) {
        t->left_out++;
        print_message("left out: %s: %.120s", stem, r.err);
    } else {
        t->bad++;
        print_message("%s: exit %d: %s", stem, r.code, r.err);
    }
    command_free(&r);
    unlink(out);
    unlink(log);
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void every_script(void **unused)
{
    (void)unused;
    char folder[512];
    SHARED_OR_SKIP(folder, "golden/context");
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, by_name);
    assert_true(n > 0);
    tally t = { 0 };
    for (int i = 0; i < n; i++) {
        char *name = entries[i]->d_name;
        if (ends_with(name, ".out.txt")) {
            name[strlen(name) - strlen(".out.txt")] = 0;
            run_script(name, &t);
        }
        free(entries[i]);
    }
    free(entries);
    print_message("scripts: %d agree, %d do not, %d left out\n", t.good, t.bad, t.left_out);
    assert_int_equal(t.bad, 0);
    assert_true(t.good >= 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_script) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
