/* cli_usage.c - the command line itself: exit codes, help, suggestions, refusals; every documented option of every command is
 * either taken or refused with its name, and none that is unknown is passed over. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

#define LOAM_COMMAND_DOCS LOAM_TEST_DATA "/../../../docs/commands"

static void expect(const char *const *arguments, int code, const char *part)
{
    command_result r = command_run(NULL, arguments);
    char line[512] = "";
    for (int i = 0; arguments[i]; i++) snprintf(line + strlen(line), sizeof line - strlen(line), "%s ", arguments[i]);
    if (r.code != code) fail_msg("loam %s: exit code %d, not %d: %s", line, r.code, code, r.err);
    const char *text = code ? r.err : r.out;
    if (!strstr(text, part)) fail_msg("loam %s: '%s' is not in: %s", line, part, text);
    command_free(&r);
}

#define EXPECT(code, part, ...) expect((const char *const[]){ __VA_ARGS__, NULL }, code, part)

static void informs(void **unused)
{
    (void)unused;
    EXPECT(0, "loam 0.", "version");
    EXPECT(0, "loam 0.", "--version");
    EXPECT(0, "perplexity", "help");
    EXPECT(0, "--top-n-sigma", "help", "run");
    EXPECT(0, "--top-n-sigma", "run", "--help");
    EXPECT(0, "--script", "help", "debug", "script");
    EXPECT(0, ".SS loam run", "help", "--man");
    EXPECT(0, "complete -o filenames", "help", "--completion", "bash");
    EXPECT(0, "#compdef loam", "help", "--completion", "zsh");
    EXPECT(0, "complete -c loam", "help", "--completion", "fish");
}

static void refuses(void **unused)
{
    (void)unused;
    EXPECT(2, "did you mean run?", "rum");
    EXPECT(2, "did you mean debug eval?", "debug", "evl");
    EXPECT(2, "eval, script", "debug");
    EXPECT(2, "did you mean --temp?", "run", "--tmp", "1");
    EXPECT(2, "did you mean --no-mmap?", "run", "--nommap");
    EXPECT(2, "--cases is an option of loam tokenize", "run", "--cases", "x");
    EXPECT(2, "--temp abc: must be a number", "run", "--temp", "abc");
    EXPECT(2, "--threads 4x: must be a whole number from 1 to 512", "run", "--threads", "4x");
    EXPECT(2, "--threads 0:", "run", "--threads=0");
    EXPECT(2, "--top-p -0.5:", "run", "--top-p", "-0.5");
    EXPECT(2, "--temp nan:", "run", "--temp", "nan");
    EXPECT(2, "did you mean q8_0?", "run", "-ctk", "q80");
    EXPECT(2, "q8_0", "run", "-ctk", "unheard");
    EXPECT(2, "must be one of bash|zsh|fish", "help", "--completion", "tcsh");
    EXPECT(2, "needs a value", "run", "-m");
    EXPECT(2, "given twice", "run", "-n", "1", "--predict", "2");
    EXPECT(2, "takes no value", "run", "--mlock=1");
    EXPECT(2, "unexpected argument 'word'", "run", "word");
    EXPECT(2, "missing arguments", "quantize", "a");
    EXPECT(2, "either -p or -f", "run", "-p", "a", "-f", "b");
    EXPECT(2, "-e is about -p", "run", "-e", "-f", "b");
    EXPECT(2, "either --display-prompt", "run", "-p", "a", "--display-prompt", "--no-display-prompt");
    EXPECT(2, "-m FILE is missing", "perplexity", "-f", "x");
    EXPECT(2, "-f FILE is missing", "perplexity", "-m", "x");
    EXPECT(2, "-m FILE is missing", "tokenize", "-p", "x");
    EXPECT(2, "--tokens FILE and -o FILE", "debug", "eval", "-m", "x");
    EXPECT(2, "encode or decode", "debug", "rows", "x", "y", "z");
    EXPECT(2, "must be one of tiny|0.5b|1b|8b|moe", "debug", "make-model", "--shape", "7b", "--type", "f32", "out");
    EXPECT(1, "no-such-file", "run", "-m", "no-such-file.gguf", "-p", "x");
    EXPECT(1, "cannot open", "perplexity", "-m", "no-such-file.gguf", "-f", "x");
}

/* Reads "  -t, --threads N ..." lines of `loam help COMMAND` and tries each option without a value, or with one where none
 * belongs. */
static void documented_options(void **unused)
{
    (void)unused;
    const char *const names[] = { "run", "inspect", "tokenize", "detokenize", "quantize", "perplexity", "bench" };
    int tried = 0;
    for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
        command_result help = command("help", names[c]);
        assert_int_equal(help.code, 0);
        char *rest = help.out;
        for (char *line; (line = strsep(&rest, "\n"));) {
            if (strncmp(line, "  -", 3) != 0) continue;
            char option[64] = "", extra[80], *p = line + 2;
            size_t n = strcspn(p, ", ");
            for (; p[n] == ','; n = strcspn(p, ", ")) p += n + 2; /* the last name: the long one */
            snprintf(option, sizeof option, "%.*s", (int)n, p);
            bool has_value = p[n] == ' ' && p[n + 1] && p[n + 1] != ' ';
            if (strcmp(option, "--help") == 0) continue;
            snprintf(extra, sizeof extra, "%s=x", option);
            if (has_value) EXPECT(2, option, names[c], option);
            else EXPECT(2, option, names[c], extra);
            snprintf(extra, sizeof extra, "%sx", option);
            EXPECT(2, "unknown option", names[c], extra);
            tried++;
        }
        command_free(&help);
    }
    print_message("%d options tried\n", tried);
    assert_true(tried > 60);
}

/* docs/commands is what the command says of itself; scripts/command-docs writes it. */
static void written_down(void **unused)
{
    (void)unused;
    command_result all = command("help");
    int pages = 0;
    char *rest = all.out;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char name[64], path[1024], first[32], second[32] = "";
        char *end = strncmp(line, "  ", 2) == 0 && line[2] != ' ' ? strstr(line + 2, "  ") : NULL;
        if (!end || end[1] == 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - line - 2), line + 2);
        assert_true(sscanf(name, "%31s %31s", first, second) >= 1);
        command_result r = second[0] ? command("help", first, second) : command("help", first);
        assert_int_equal(r.code, 0);
        snprintf(path, sizeof path, "%s/%s%s%s.txt", LOAM_COMMAND_DOCS, first, second[0] ? "-" : "", second);
        char *text = slurp(path, NULL);
        if (!text || strcmp(text, r.out) != 0) fail_msg("%s is out of date: run scripts/command-docs", path);
        free(text);
        command_free(&r);
        pages++;
    }
    assert_true(pages > 10);
    command_free(&all);
}

/* No -m: LOAM_MODEL counts; where there is no model and none can be fetched, it is said how to give one. */
static void without_a_model(void **unused)
{
    (void)unused;
    char folder[512];
    scratch_path(folder, "no-cache");
    setenv("LOAM_MODEL", "/nowhere/model.gguf", 1);
    EXPECT(1, "/nowhere/model.gguf", "run", "-p", "x");
    unsetenv("LOAM_MODEL");
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("PATH", "/nowhere", 1);
    command_result r = command("run", "-m", "gemma-3-270m", "-p", "x", "-n", "1"); /* not in the cache, and there is no way to fetch it */
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "Gemma Terms of Use"));
    command_free(&r);
    r = command("run", "-n", "40", "--temp", "0"); /* the repository's own model, and its own prompt */
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "no prompt is given"));
    assert_true(r.out_len > 60);
    command_free(&r);
    char inside[1100];
    snprintf(inside, sizeof inside, "%s/loam/parts", folder);
    rmdir(inside);
    snprintf(inside, sizeof inside, "%s/loam", folder);
    rmdir(inside);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(informs),
        cmocka_unit_test(refuses),
        cmocka_unit_test(documented_options), cmocka_unit_test(written_down),
        cmocka_unit_test(without_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
