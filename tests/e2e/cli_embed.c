/* cli_embed.c - `loam embed` and `loam rerank` as programs: a vector a text, lengths, forms of output, what does not fit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

#include "loam/context.h"
#include "loam/gguf.h"

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

/* ---- a classifier with words: the scores are those of the ids [CLS] query [SEP] document [SEP] ---- */

static bool write_ranker(const char *from, const char *to)
{
    static const char *const words[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "\xe2\x96\x81" "red", "\xe2\x96\x81" "fish", "\xe2\x96\x81" "swim",
                                         "\xe2\x96\x81" "the", "s", "ming", "\xe2\x96\x81" "sky", "\xe2\x96\x81" "is" };
    static char made_up[128][16];
    const char *tokens[128];
    size_t lens[128];
    loam_gguf *f;
    loam_gguf_builder *b = NULL;
    loam_error err;
    for (int i = 0; i < 128; i++) {
        snprintf(made_up[i], sizeof made_up[i], "\xe2\x96\x81zz%d", i);
        tokens[i] = i < 12 ? words[i] : made_up[i];
        lens[i] = strlen(tokens[i]);
    }
    if (loam_gguf_open(&f, from, NULL, &err) != LOAM_OK || loam_gguf_builder_create(&b, f, true, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_set_text(b, "tokenizer.ggml.model", "bert", 4);
    loam_gguf_set_texts(b, "tokenizer.ggml.tokens", tokens, lens, 128);
    loam_gguf_set_u32(b, "tokenizer.ggml.unknown_token_id", 1);
    loam_gguf_set_u32(b, "tokenizer.ggml.bos_token_id", 2);
    loam_gguf_set_u32(b, "tokenizer.ggml.cls_token_id", 2);
    loam_gguf_set_u32(b, "tokenizer.ggml.seperator_token_id", 3);
    bool fine = loam_gguf_write(b, to, NULL, &err) == LOAM_OK;
    loam_gguf_builder_free(b);
    loam_gguf_free(f);
    return fine;
}

static float score_of(const char *path, const int32_t *ids, int n)
{
    loam_model *m;
    loam_context *ctx;
    loam_error err;
    loam_context_params p = loam_context_defaults();
    p.n_threads = 1, p.embeddings = true, p.pooling = LOAM_POOLING_RANK;
    if (loam_model_open(&m, path, NULL, &err) || loam_context_new(&ctx, m, &p, &err)) fail_msg("%s", err.message);
    loam_batch b = { .n_tokens = n, .token = ids };
    assert_int_equal(loam_encode(ctx, &b, &err), 0);
    float score = loam_embeddings_seq(ctx, 0)[0];
    loam_context_free(ctx);
    loam_model_free(m);
    return score;
}

static void documents_in_order(void **state)
{
    (void)state;
    char from[512], path[512];
    SHARED_OR_SKIP(from, "golden/arch/bert-rank.gguf");
    scratch_path(path, "ranker.gguf");
    assert_true(write_ranker(from, path));
    static const int32_t pairs[3][16] = { { 2, 4, 5, 8, 3, 7, 5, 6, 3 }, { 2, 4, 5, 8, 3, 10, 3 }, { 2, 4, 5, 8, 3, 7, 10, 11, 4, 3 } };
    static const int lengths[3] = { 9, 7, 10 };
    float want[3];
    for (int i = 0; i < 3; i++) want[i] = score_of(path, pairs[i], lengths[i]);
    static const char *arguments[] = { "rerank", "-m", NULL, "-q", "Red fishs", "-f", "-", "-t", "1", NULL };
    arguments[2] = path;
    command_result r = command_run("the fish swim\nsky\nthe sky is red\n", arguments);
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    double last = 1e30;
    const char *at = r.out;
    for (int k = 0; k < 3; k++) {
        char *end;
        double score = strtod(at, &end);
        long index = strtol(end, &end, 10);
        assert_true(index >= 0 && index < 3 && score <= last);
        if (fabs(score - (double)want[index]) > 2e-6) fail_msg("document %ld: %g in place of %g", index, score, (double)want[index]);
        last = score;
        at = strchr(end, '\n') + 1;
    }
    command_free(&r);
    unlink(path);
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
        cmocka_unit_test(a_line_a_text), cmocka_unit_test(refusals), cmocka_unit_test(documents_in_order), cmocka_unit_test(no_text), cmocka_unit_test(eval_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
