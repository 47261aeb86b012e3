/* cli_models.c - the command with real small models beside the project: expected greedy texts, perplexities, seeds, prompts
 * from every source, token ids there and back, what does not fit. Skipped where the models are absent. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "command.h"
#include "data.h"

/* The string value after "key": in JSON text, unescaped (ASCII and \n \" \\ \uXXXX below 0x800 are enough here). NULL where
 * absent. */
static const char *json_value(const char *json, const char *key, char *out, size_t size)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": \"", key);
    const char *p = strstr(json, quoted);
    if (!p) return NULL;
    size_t n = 0;
    for (p += strlen(quoted); *p && *p != '"' && n + 4 < size; p++) {
        if (*p != '\\') {
            out[n++] = *p;
            continue;
        }
        p++;
        if (*p == 'u') {
            unsigned c = (unsigned)strtoul((char[]){ p[1], p[2], p[3], p[4], 0 }, NULL, 16);
            if (c >= 0x800) {
                out[n++] = (char)(0xE0 | c >> 12);
                out[n++] = (char)(0x80 | (c >> 6 & 0x3F));
            } else if (c >= 0x80) {
                out[n++] = (char)(0xC0 | c >> 6);
            }
            out[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3F) : c);
            p += 4;
        } else {
            out[n++] = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p == 'r' ? '\r' : *p;
        }
    }
    out[n] = 0;
    return p;
}

static void greedy_texts(void **unused)
{
    (void)unused;
    char path[512], file[512], rel[256], model[64], prompt[4096], count[16];
    static char want[65536];
    SHARED_OR_SKIP(path, "models/expected-greedy.json");
    char *json = slurp(path, NULL);
    int cases = 0;
    assert_non_null(json);
    for (const char *p = json; (p = json_value(p, "model", model, sizeof model)); cases++) {
        assert_non_null(json_value(p, "prompt", prompt, sizeof prompt));
        snprintf(count, sizeof count, "%d", atoi(strstr(p, "\"n\": ") + 5));
        p = json_value(p, "greedy_text", want, sizeof want - 1);
        assert_non_null(p);
        snprintf(rel, sizeof rel, "models/%s", model);
        if (!shared_path(file, rel)) continue;
        command_result r = command("run", "-m", file, "-p", prompt, "-n", count, "--temp", "0", "--no-perf");
        size_t len = strlen(want);
        if (r.code) fail_msg("%s, '%s': %s", model, prompt, r.err);
        if (r.out_len != len + 1 || memcmp(r.out, want, len) != 0 || r.out[len] != '\n')
            fail_msg("%s, '%s':\n%s\nis not\n%s", model, prompt, r.out, want);
        command_free(&r);
    }
    free(json);
    print_message("%d texts, letter for letter\n", cases);
    assert_true(cases > 2);
}

static void perplexities(void **unused)
{
    (void)unused;
    static const struct {
        const char *model, *ctx;
        double want;
    } cases[] = {
        { "models/stories260K-f32.gguf", "128", 7.316 },
        { "models/stories3M-f32.gguf", "512", 11.957 },
        { "models/chat3M-f32.gguf", "256", 15.282 },
    };
    char model[512], text[512];
    SHARED_OR_SKIP(text, "models/tinystories-sample.txt");
    for (int i = 0; i < 3; i++) {
        SHARED_OR_SKIP(model, cases[i].model);
        command_result r = command("perplexity", "-m", model, "-f", text, "-c", cases[i].ctx, "--json");
        const char *p = r.code ? NULL : strstr(r.out, "\"perplexity\": ");
        if (!p) fail_msg("%s: %s", cases[i].model, r.err);
        double got = strtod(p + 14, NULL);
        print_message("%s: %.4f, expected %.3f\n", cases[i].model, got, cases[i].want);
        assert_true(fabs(got / cases[i].want - 1) < 0.001);
        command_free(&r);
    }
}

/* Two runs write the same bytes. */
static void same_output(const char *const *a, const char *const *b, const char *input_of_b)
{
    command_result x = command_run(NULL, a), y = command_run(input_of_b, b);
    if (x.code || y.code) fail_msg("%s%s", x.err, y.err);
    if (x.out_len != y.out_len || memcmp(x.out, y.out, x.out_len) != 0) fail_msg("'%s' is not '%s'", x.out, y.out);
    command_free(&x);
    command_free(&y);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void prompts(void **unused)
{
    (void)unused;
    char m[512], file[512];
    SHARED_OR_SKIP(m, "models/stories260K-f32.gguf");
    const char *const *plain = LIST("run", "-m", m, "-p", "Once upon a time", "-n", "12", "--temp", "0");
    scratch_path(file, "prompt.txt");
    assert_true(spill(file, "Once upon a time", 16));
    same_output(plain, LIST("run", "-m", m, "-f", file, "-n", "12", "--temp", "0"), NULL);
    same_output(plain, LIST("run", "-m", m, "-f", "-", "-n", "12", "--temp", "0"), "Once upon a time");
    same_output(plain, LIST("run", "-m", m, "-n", "12", "--temp", "0"), "Once upon a time\n");
    same_output(plain, LIST("run", "-m", m, "-e", "-p", "Once\\x20upon a time", "-n", "12", "--temp", "0", "--no-display-prompt"),
                NULL);
    same_output(plain,
                LIST("run", "-m", m, "-p", "Once upon a time", "-n", "12", "--top-k", "1", "-t", "1", "-b", "2", "-ub", "1"),
                NULL);
    remove(file);
    command_result r = command("run", "-m", m, "-p", "a\\nb", "-n", "0", "--display-prompt");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "a\\nb\n");
    command_free(&r);
}

static void seeds(void **unused)
{
    (void)unused;
    char m[512];
    SHARED_OR_SKIP(m, "models/stories260K-f32.gguf");
    const char *const *seven = LIST("run", "-m", m, "-p", "The", "-n", "40", "--temp", "1", "-s", "7");
    same_output(seven, LIST("run", "-m", m, "-p", "The", "-n", "40", "--temp", "1", "--seed", "7", "--no-mmap", "-t", "2"), NULL);
    command_result a = command_run(NULL, seven), b = command("run", "-m", m, "-p", "The", "-n", "40", "--temp", "1", "-s", "8");
    assert_string_not_equal(a.out, b.out);
    command_free(&a);
    command_free(&b);
    a = command("run", "-m", m, "-p", "The", "-n", "40", "--temp", "1", "-v"); /* a seed of its own, told */
    const char *told = strstr(a.err, "seed ");
    assert_non_null(told);
    char seed[16];
    snprintf(seed, sizeof seed, "%lu", strtoul(told + 5, NULL, 10));
    b = command("run", "-m", m, "-p", "The", "-n", "40", "--temp", "1", "-s", seed);
    assert_string_equal(a.out, b.out);
    command_free(&a);
    command_free(&b);
}

static void ids_and_back(void **unused)
{
    (void)unused;
    char m[512], file[512];
    SHARED_OR_SKIP(m, "models/stories3M-f32.gguf");
    const char *text = "Hello, w\xC3\xB6rld! \xF0\x9F\x98\x80  two spaces";
    command_result ids = command("tokenize", "-m", m, "-p", text);
    assert_int_equal(ids.code, 0);
    command_result back = command_run(ids.out, LIST("detokenize", "-m", m));
    assert_int_equal(back.code, 0);
    assert_int_equal(back.out_len, strlen(text) + 1);
    assert_memory_equal(back.out, text, strlen(text));
    command_free(&back);
    scratch_path(file, "cases.jsonl");
    const char *cases =
        "{\"x\": [1, {\"text\": 2}], \"text\": \"Hello, w\\u00f6rld! \\ud83d\\ude00  two spaces\"}\n\n{\"text\": \"\"}\n";
    assert_true(spill(file, cases, strlen(cases)));
    back = command("tokenize", "-m", m, "--cases", file);
    assert_int_equal(back.code, 0);
    const char *without_bos = strchr(ids.out, ' ') + 1;
    assert_memory_equal(back.out, without_bos, strlen(without_bos));
    assert_string_equal(back.out + strlen(without_bos), "\n");
    command_free(&back);
    assert_true(spill(file, "{\"text\": 5}", 11));
    back = command("tokenize", "-m", m, "--cases", file);
    assert_int_equal(back.code, 1);
    assert_non_null(strstr(back.err, "line 1"));
    command_free(&back);
    back = command("detokenize", "-m", m, "5", "4x");
    assert_int_equal(back.code, 1);
    assert_non_null(strstr(back.err, "4x"));
    command_free(&back);
    back = command("detokenize", "-m", m, "5", "99999999");
    assert_int_equal(back.code, 1);
    assert_non_null(strstr(back.err, "99999999"));
    command_free(&back);
    command_free(&ids);
    remove(file);
}

static void limits(void **unused)
{
    (void)unused;
    char m[512];
    SHARED_OR_SKIP(m, "models/stories260K-f32.gguf");
    static char words[4096] = "";
    for (int i = 0; i < 300; i++) snprintf(words + strlen(words), sizeof words - strlen(words), "word ");
    command_result r = command("run", "-m", m, "-p", words, "-n", "4");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "the context 128"));
    command_free(&r);
    r = command("run", "-m", m, "-p", "Once", "--ignore-eos", "--temp", "0", "-n", "400"); /* stops at the end of the context */
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "is full"));
    command_free(&r);
    r = command("run", "-m", m, "-p", "Once", "-l", "512+1");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "0 to 511"));
    command_free(&r);
    r = command("run", "-m", m, "-p", "Once", "--samplers", "top_k;nucleus");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "'nucleus'"));
    command_free(&r);
    r = command("run", "-m", m, "-p", "Once", "--mirostat", "2", "--top-k", "5");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "--top-k"));
    command_free(&r);
    r = command("perplexity", "-m", m, "-f", "/dev/null", "-c", "64");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "two chunks"));
    command_free(&r);
}

static void bench_json(void **unused)
{
    (void)unused;
    char m[512];
    SHARED_OR_SKIP(m, "models/stories260K-f32.gguf");
    command_result r =
        command("bench", "-m", m, "-p", "32", "-n", "8", "-r", "2", "-d", "16", "-s", "3", "--first-token", "8", "--limits",
                "--json");
    assert_int_equal(r.code, 0);
    static const char *const keys[] = {
        "\"model\"",          "\"type\"",         "\"threads\"",      "\"load_ms\"",   "\"first_token_ms\"", "\"peak_rss_bytes\"",
        "\"anon_rss_bytes\"", "\"cache_bytes\"",  "\"buffer_bytes\"", "\"tests\"",     "\"pp32@d16\"",       "\"tg8x3@d16\"",
        "\"tokens\": 24",     "\"tok_s_median\"", "\"tok_s_min\"",    "\"tok_s_max\"",  "\"int_gmac_s\"",     "\"float_gmac_s\"",
        "\"read_gb_s\"",      "\"reads\": 10",    "\"prompt_tok_s\"", "\"gen_tok_s\"",  "\"limit_share\"",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strstr(r.out, keys[i])) fail_msg("%s is not in %s", keys[i], r.out);
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_texts), cmocka_unit_test(perplexities), cmocka_unit_test(prompts),    cmocka_unit_test(seeds),
        cmocka_unit_test(ids_and_back), cmocka_unit_test(limits),       cmocka_unit_test(bench_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
