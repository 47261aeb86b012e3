/* cli_embed.c - `loam embed` and `loam rerank` as programs: a vector a text, lengths, forms of output, what does not fit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

static char model[512];

static int set_up(void **state)
{
    (void)state;
    scratch_path(model, "embed.gguf");
    command_result r = command("debug", "make-model", model, "--shape", "tiny", "--type", "f32");
    int code = r.code;
    command_free(&r);
    return code;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(model);
    return 0;
}

/* Numbers of one line; *sum2: of their squares. */
static int numbers(const char **text, double *sum2)
{
    int n = 0;
    char *end;
    *sum2 = 0;
    for (; **text && **text != '\n'; n++) {
        double v = strtod(*text, &end);
        if (end == *text) break;
        *sum2 += v * v;
        *text = *end == ' ' ? end + 1 : end;
    }
    if (**text == '\n') ++*text;
    return n;
}

static void a_line_a_text(void **state)
{
    (void)state;
    static const char *const arguments[] = { "embed", "-m", model, "-f", "-", "--pooling", "mean", NULL };
    command_result r = command_run("one text\n\nanother\r\none text\n", arguments);
    if (r.code) fail_msg("%s", r.err);
    const char *lines[4], *p = r.out;
    int width = 0;
    for (int i = 0; i < 3; i++) {
        double sum2;
        lines[i] = p;
        int n = numbers(&p, &sum2);
        if (i == 0) width = n;
        assert_int_equal(n, width);
        assert_true(fabs(sum2 - 1) < 1e-5);
    }
    assert_int_equal(*p, 0);
    assert_true(width > 8);
    size_t len = (size_t)(lines[1] - lines[0]);
    assert_memory_equal(lines[0], lines[2], len);          /* the same text gives the same bits, wherever it stands */
    assert_true(memcmp(lines[0], lines[1], len) != 0);
    command_free(&r);
    r = command("embed", "-m", model, "-p", "one text", "--pooling", "last", "--normalize", "1", "--json");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\"embedding\""));
    command_free(&r);
}

static void refusals(void **state)
{
    (void)state;
    command_result r = command("embed", "-m", model);
    assert_int_equal(r.code, 2);
    command_free(&r);
    r = command("embed", "-m", model, "-p", "x", "--pooling", "most");
    assert_int_equal(r.code, 2);
    command_free(&r);
    r = command("rerank", "-m", model, "-q", "x");
    assert_int_equal(r.code, 2);
    command_free(&r);
    static const char *const arguments[] = { "rerank", "-m", model, "-q", "x", "-f", "-", NULL };
    r = command_run("one\ntwo\n", arguments);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "classifier"));
    command_free(&r);
}

/* A model without a decoder writes no text. */
static void no_text(void **state)
{
    (void)state;
    char path[512];
    SHARED_OR_SKIP(path, "golden/arch/bert-mean.gguf");
    command_result r = command("run", "-m", path, "-p", "x", "-n", "1");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "embeddings"));
    command_free(&r);
}

/* Rows of debug eval against the expected files. */
static void eval_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name, *option, *rows;
        double most;
    } cases[] = { { "bert-mean", "--embd", "embd", 1e-6 },
                  { "modern-bert", "--embd", "embd", 1e-6 },
                  { "t5", "--encode-first", "logits", 1e-5 } };
    char gguf[512], tokens[512], want[512], out[512], rel[128];
    scratch_path(out, "embed.f32");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(rel, sizeof rel, "golden/arch/%s.gguf", cases[i].name);
        SHARED_OR_SKIP(gguf, rel);
        snprintf(rel, sizeof rel, "golden/arch/%s.tokens.txt", cases[i].name);
        SHARED_OR_SKIP(tokens, rel);
        snprintf(rel, sizeof rel, "golden/arch/%s.%s.f32", cases[i].name, cases[i].rows);
        SHARED_OR_SKIP(want, rel);
        command_result r = command("debug", "eval", "-m", gguf, "--tokens", tokens, cases[i].option, "-o", out);
        if (r.code) fail_msg("%s", r.err);
        size_t n, m;
        float *a = slurp_f32(out, &n), *b = slurp_f32(want, &m);
        assert_true(a && b && n == m);
        double d = nmse(a, b, n);
        if (d > cases[i].most) fail_msg("%s: %g", cases[i].name, d);
        free(a);
        free(b);
        command_free(&r);
    }
    unlink(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_a_text), cmocka_unit_test(refusals), cmocka_unit_test(no_text), cmocka_unit_test(eval_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
