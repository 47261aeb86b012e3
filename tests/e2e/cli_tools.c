/* cli_tools.c - the tools for work on the engine, and quantize and inspect, from the outside: logits do not depend on threads,
 * batches or micro-batches; scripts of a context give the expected outputs and log; rows there and back; a quantized model
 * still predicts. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

static void done(command_result r)
{
    if (r.code) fail_msg("%d: %s", r.code, r.err);
    command_free(&r);
}

/* A model of its own, so that this runs without anything beside the project. */
static void make_model(char path[512], const char *type)
{
    scratch_path(path, "tiny.gguf");
    done(command("debug", "make-model", "--shape", "tiny", "--type", type, path));
}

static void same_bits(void **unused)
{
    (void)unused;
    char m[512], ids[512], out[512];
    static const char *const ways[][6] = {
        { "1", "512", "512" }, { "2", "512", "512" }, { "2", "7", "7" }, { "1", "1", "1" }, { "2", "64", "3" },
    };
    static const char *const types[] = { "f32", "f16", "bf16", "q8_0", "q4_0", "q4_K_M", "q6_K" };
    scratch_path(ids, "ids.txt");
    scratch_path(out, "out.f32");
    char text[600] = "";
    for (int i = 0; i < 50; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "%d\n", (i * 7919 + 17) % 4000 + 3);
    assert_true(spill(ids, text, strlen(text)));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        make_model(m, types[t]);
        float *first = NULL;
        size_t n_first = 0;
        for (int w = 0; w < 5; w++) {
            size_t n;
            done(command("debug", "eval", "-m", m, "--tokens", ids, "-o", out, "-t", ways[w][0], "-b", ways[w][1], "-ub",
                         ways[w][2]));
            float *logits = slurp_f32(out, &n);
            assert_non_null(logits);
            assert_int_equal(n, 50 * 4096);
            if (!first) {
                first = logits;
                n_first = n;
                continue;
            }
            if (memcmp(first, logits, n_first * sizeof *first) != 0)
                fail_msg("%s: -t %s -b %s -ub %s gives other bits (NMSE %g)", types[t], ways[w][0], ways[w][1], ways[w][2],
                         nmse(logits, first, n));
            free(logits);
        }
        free(first);
    }
    remove(m);
    remove(ids);
    remove(out);
}

static void scripts(void **unused)
{
    (void)unused;
    static const char *const models[] = { "llama-dense", "gemma3-dense", "gpt-oss-moe" };
    static const char *const names[] = {
        "s01_copy_diverge",   "s02_remove_tail", "s03_context_shift", "s05_mixed_batch", "s06_shared_tokens",
        "s07_token_by_token", "s10_yarn",        "s11_linear",        "s12_freqbase",    "s13_errors",
        "s18_window_limited", "s19_memory_full", "s20_bad_batch",     "s21_ubatches",    "s22_streams",
    };
    char out[512], log[512], script[512], model[512], want[512], rel[256];
    scratch_path(out, "out.f32");
    scratch_path(log, "log.txt");
    int compared = 0;
    for (size_t m = 0; m < 3; m++)
        for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
            snprintf(rel, sizeof rel, "arch/%s.gguf", models[m]);
            snprintf(want, sizeof want, "golden/%s", rel);
            SHARED_OR_SKIP(model, want);
            snprintf(rel, sizeof rel, "golden/context/%s.txt", names[s]);
            SHARED_OR_SKIP(script, rel);
            snprintf(rel, sizeof rel, "golden/context/%s.%s.f32", models[m], names[s]);
            snprintf(want, sizeof want, "%s/%s", LOAM_SHARED_DIR, rel);
            if (access(want, R_OK) != 0) continue; /* not every model has every script */
            done(command("debug", "script", "-m", model, "--script", script, "-o", out, "--log", log));
            size_t n, n_want;
            float *got = slurp_f32(out, &n), *expected = slurp_f32(want, &n_want);
            assert_true(got && expected);
            if (n != n_want || nmse(got, expected, n) > 1e-6)
                fail_msg("%s %s: %zu of %zu values, NMSE %g", models[m], names[s], n, n_want,
                         n == n_want ? nmse(got, expected, n) : 0);
            free(got);
            free(expected);
            snprintf(rel, sizeof rel, "golden/context/%s.%s.out.txt", models[m], names[s]);
            SHARED_OR_SKIP(want, rel);
            char *told = slurp(log, NULL), *expected_log = slurp(want, NULL);
            assert_string_equal(told, expected_log);
            free(told);
            free(expected_log);
            compared++;
        }
    print_message("%d scripts compared\n", compared);
    assert_true(compared > 20);
    remove(out);
    remove(log);
}

static void bad_scripts(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "D 0 0 0 4\nSING 3\n", "line 2: SING 3: unknown line" },
        { "D 0 0 600 4\n", "stream" },
        { "D 0,x 0 0 4\n", "sequences" },
        { "RM 0 1\n", "arguments" },
        { "D 0 0 0 4\nNCTX 64\n", "before the first call" },
        { "LORA x\n", "file strength" },
        { "B 0:0:0\n", "q:p:t0:n" },
        { "NCTX many\n", "number" },
    };
    char m[512], script[512], out[512];
    make_model(m, "f32");
    scratch_path(script, "script.txt");
    scratch_path(out, "out.f32");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(spill(script, cases[i].text, strlen(cases[i].text)));
        command_result r = command("debug", "script", "-m", m, "--script", script, "-o", out);
        if (r.code != 1 || !strstr(r.err, cases[i].part)) fail_msg("%d, '%s' has no '%s'", r.code, r.err, cases[i].part);
        command_free(&r);
    }
    remove(m);
    remove(script);
    remove(out);
}

static void rows(void **unused)
{
    (void)unused;
    char in[512], blocks[512], back[512];
    float x[6 * 64], *y;
    size_t n;
    for (int i = 0; i < 6 * 64; i++) x[i] = sinf((float)i) * (float)(1 + i / 64);
    scratch_path(in, "in.f32");
    scratch_path(blocks, "blocks.bin");
    scratch_path(back, "back.f32");
    assert_true(spill(in, x, sizeof x));
    done(command("debug", "rows", "encode", "--type", "Q8_0", "--cols", "64", in, blocks));
    done(command("debug", "rows", "decode", "--type", "q8_0", "--cols", "64", blocks, back));
    y = slurp_f32(back, &n);
    assert_int_equal(n, 6 * 64);
    assert_true(nmse(y, x, n) < 1e-4);
    free(y);
    command_result r = command("debug", "rows", "encode", "--type", "q8_0", "--cols", "63", in, blocks);
    assert_int_equal(r.code, 1);
    command_free(&r);
    remove(in);
    remove(blocks);
    remove(back);
}

static double measured(const char *model, const char *text, const char *ctx)
{
    command_result r = command("perplexity", "-m", model, "-f", text, "-c", ctx, "--json");
    const char *p = r.code ? NULL : strstr(r.out, "\"perplexity\": ");
    if (!p) fail_msg("%s: %s", model, r.err);
    double got = strtod(p + 14, NULL);
    command_free(&r);
    return got;
}

/* Perplexities after `loam quantize`, within half a percent of those of the formats' home tools. */
static void quantized(void **unused)
{
    (void)unused;
    static const struct {
        const char *type;
        double small, large;
    } cases[] = {
        { "f16", 7.317, 0 },  { "Q8_0", 7.328, 11.990 }, { "q5_1", 7.455, 0 },   { "q5_0", 7.433, 12.527 },
        { "q4_1", 7.764, 0 }, { "q4_0", 7.889, 14.176 }, { "iq4_nl", 7.729, 0 }, /* 0: not measured here, for time */
    };
    char text[512], m[512], out[512];
    SHARED_OR_SKIP(text, "models/tinystories-sample.txt");
    scratch_path(out, "quantized.gguf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int large = 0; large < 2; large++) {
            if (large && cases[i].large == 0) continue;
            SHARED_OR_SKIP(m, large ? "models/stories3M-f32.gguf" : "models/stories260K-f32.gguf");
            done(command("quantize", m, out, cases[i].type));
            double got = measured(out, text, large ? "512" : "128"), want = large ? cases[i].large : cases[i].small;
            print_message("%s %s: %.4f, expected %.3f (%+.2f %%)\n", large ? "3M" : "260K", cases[i].type, got, want,
                          (got / want - 1) * 100);
            assert_true(fabs(got / want - 1) < 0.005);
        }
    command_result r = command("quantize", out, out, "q8_0");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "is the file that is read"));
    command_free(&r);
    r = command("quantize", m, out, "q4_k_x", "--dry-run");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "Q4_K_"));
    command_free(&r);
    r = command("quantize", m, "/nowhere/out.gguf", "q4_k_m", "--dry-run");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "blk.0.attn_v.weight"));
    command_free(&r);
    remove(out);
}

static void inspects(void **unused)
{
    (void)unused;
    char m[512];
    make_model(m, "q4_0");
    command_result r = command("inspect", m);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "general.architecture"));
    assert_non_null(strstr(r.out, "blk.3.ffn_down.weight"));
    command_free(&r);
    r = command("inspect", "-m", m, "--json");
    assert_int_equal(r.code, 0);
    assert_int_equal(r.out[0], '{');
    assert_non_null(strstr(r.out, "\"llama.block_count\": 4"));
    assert_non_null(strstr(r.out, "\"item\": \"string\""));
    command_free(&r);
    assert_int_equal(truncate(m, 5000), 0);
    r = command("inspect", m);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "tiny.gguf"));
    command_free(&r);
    remove(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(scripts),   cmocka_unit_test(bad_scripts),
        cmocka_unit_test(rows),      cmocka_unit_test(quantized), cmocka_unit_test(inspects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
