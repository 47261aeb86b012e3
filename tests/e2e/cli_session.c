/* cli_session.c - `loam run --session`: what a session file holds is taken up, texts are those of an undisturbed run, foreign and
 * damaged files are left alone with a word; `loam lora merge` refuses what does not fit; pipes in place
 * of files. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

#include "loam/debug.h"

static char model[512], other[512], file[512];

static int set_up(void **state)
{
    (void)state;
    loam_error err;
    scratch_path(model, "session-a.gguf");
    scratch_path(other, "session-b.gguf");
    scratch_path(file, "session.state");
    return loam_debug_make_model(model, "tiny", "q8_0", 1, &err) || loam_debug_make_model(other, "tiny", "q4_0", 2, &err) ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(model);
    unlink(other);
    unlink(file);
    return 0;
}

static char *text_of(const char *m, const char *prompt, const char *session, const char *note)
{
    command_result r = session ? command("run", "-m", m, "-p", prompt, "-n", "12", "--temp", "0", "--no-perf", "--session", session)
                               : command("run", "-m", m, "-p", prompt, "-n", "12", "--temp", "0", "--no-perf");
    if (r.code != 0) fail_msg("exit %d: %s", r.code, r.err);
    if (note && !strstr(r.err, note)) fail_msg("no '%s' in '%s'", note, r.err);
    char *text = strdup(r.out);
    command_free(&r);
    return text;
}

static void same_text(const char *m, const char *prompt, const char *note)
{
    char *plain = text_of(m, prompt, NULL, NULL), *kept = text_of(m, prompt, file, note);
    assert_string_equal(plain, kept);
    free(plain);
    free(kept);
}

static void sessions(void **state)
{
    (void)state;
    unlink(file);
    same_text(model, "ab cd ef", NULL);
    same_text(model, "ab cd ef gh ij", NULL); /* takes up the beginning */
    same_text(model, "ab cd ef gh ij", NULL); /* all of it */
    same_text(model, "ab xy", NULL);          /* parts ways */
    same_text(other, "ab xy", "another model");
    assert_true(spill(file, "no state at all", 15));
    same_text(model, "ab xy", "not a state");
}

static void merges(void **state)
{
    (void)state;
    char out[512];
    scratch_path(out, "merged.gguf");
    command_result r = command("lora", "merge", model, other, out);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "general.type"));
    assert_int_not_equal(access(out, F_OK), 0);
    command_free(&r);
}

/* A pipe is neither waited for nor replaced, a missing set of kernels is told, -c is kept. */
static void odd_places(void **state)
{
    (void)state;
    char pipe_path[512];
    struct stat st;
    scratch_path(pipe_path, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    command_result r = command("run", "-m", pipe_path, "-p", "a");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "not a regular file"));
    command_free(&r);
    r = command("quantize", model, pipe_path, "q8_0", "--allow-requantize");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "left alone"));
    command_free(&r);
    assert_int_equal(stat(pipe_path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    unlink(pipe_path);
    r = command("run", "-m", model, "-p", "a", "-c", "8", "-n", "100", "--temp", "0");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "the context of 8 tokens is full"));
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sessions), cmocka_unit_test(merges), cmocka_unit_test(odd_places) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
