/* tok_vocabularies.c - the ids that real vocabularies give, text for text: every NAME.gguf of golden/tokenizers with its public
 * cases (NAME.inp, NAME.out) and the common ones (cases.jsonl, NAME.ids.txt), and the worked examples that need them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokenizer/tokenizer.h"
#include "vocab_gguf.h"

#define FOLDER LOAM_SHARED_DIR "/golden/tokenizers/"

static const char *const names[] = { "bert-bge",  "command-r", "deepseek-coder", "falcon", "gemma-4", "gpt-2",    "llama-bpe",
                                     "llama-spm", "mpt",       "nomic-bert-moe", "phi-3",  "qwen2",   "starcoder" };

static char *slurp(const char *name, const char *suffix, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, FOLDER "%s%s", name, suffix);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    assert_int_equal(fread(data, 1, *size, f), *size);
    data[*size] = 0;
    fclose(f);
    return data;
}

/* One line of ids; returns the place behind it. */
static const char *read_ids(const char *p, int32_t *ids, size_t *n)
{
    for (*n = 0; *p && *p != '\n';) {
        char *end;
        ids[(*n)++] = (int32_t)strtol(p, &end, 10);
        for (p = end; *p == ' ';) p++;
    }
    return *p ? p + 1 : p;
}

static void print_ids(const char *what, const int32_t *ids, size_t n)
{
    print_error("  %s", what);
    for (size_t i = 0; i < n; i++) print_error(" %d", ids[i]);
    print_error("\n");
}

/* False, with what differs, when the text does not give these ids. */
static bool same(const loam_tokenizer *t, const char *text, size_t len, unsigned flags, const int32_t *want, size_t n_want)
{
    loam_error err;
    loam_token *ids;
    size_t n;
    if (loam_tokenizer_encode_all(t, text, len, flags, &ids, &n, &err) != LOAM_OK) {
        print_error("%s\n", err.message);
        return false;
    }
    bool equal = n == n_want && memcmp(ids, want, n * sizeof *ids) == 0;
    if (!equal) {
        print_error("text '%.*s'\n", (int)len, text);
        print_ids("expected", want, n_want);
        print_ids("received", ids, n);
    }
    loam_tokens_free(ids);
    return equal;
}

static unsigned hex4(const char *p)
{
    char digits[5] = { p[0], p[1], p[2], p[3], 0 };
    return (unsigned)strtoul(digits, NULL, 16);
}

/* The string behind {"text": " in a line of JSON, without its escapes; returns the place behind the line. */
static const char *read_case(const char *p, char *out, size_t *n)
{
    p = strchr(strchr(p, ':'), '"') + 1;
    for (*n = 0; *p != '"'; p++) {
        if (*p != '\\') {
            out[(*n)++] = *p;
            continue;
        }
        p++;
        if (*p == 'u') {
            uint32_t cp = hex4(p + 1);
            p += 4;
            if (cp >= 0xD800 && cp < 0xDC00 && p[1] == '\\') {
                cp = 0x10000 + ((cp - 0xD800) << 10) + (hex4(p + 3) - 0xDC00);
                p += 6;
            }
            *n += uni_encode(cp, out + *n);
        } else {
            static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
            const char *k = strchr(from, *p);
            out[(*n)++] = k ? to[k - from] : *p;
        }
    }
    p = strchr(p, '\n');
    return p ? p + 1 : "";
}

static int public_cases(const loam_tokenizer *t, const char *name, int *count)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    static int32_t ids[65536];
    size_t size, n;
    int wrong = 0;
    char *inp = slurp(name, ".inp", &size), *out = inp ? slurp(name, ".out", &n) : NULL;
    const char *text = inp, *line = out;
    while (out && text < inp + size) {
        const char *end = memmem(text, size - (size_t)(text - inp), mark, strlen(mark));
        if (!end) end = inp + size;
        line = read_ids(line, ids, &n);
        wrong += !same(t, text, (size_t)(end - text), 0, ids, n);
        ++*count;
        text = end + strlen(mark) > inp + size ? inp + size : end + strlen(mark);
    }
    free(inp);
    free(out);
    return wrong;
}

static int common_cases(const loam_tokenizer *t, const char *name, int *count)
{
    static int32_t ids[65536];
    static char text[65536];
    size_t n, len;
    int wrong = 0;
    char *cases = slurp("cases", ".jsonl", &n), *out = slurp(name, ".ids.txt", &n);
    const char *line = out;
    for (const char *p = cases; *p; ++*count) {
        p = read_case(p, text, &len);
        line = read_ids(line, ids, &n);
        wrong += !same(t, text, len, 0, ids, n);
    }
    free(cases);
    free(out);
    return wrong;
}

static void test_ids(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        vocab_gguf v;
        loam_tokenizer *t;
        loam_error err;
        snprintf(path, sizeof path, FOLDER "%s.gguf", names[i]);
        assert_true(vocab_gguf_open(&v, path));
        if (tokenizer_new(&t, &v.view, &err) != LOAM_OK) {
            print_error("%s\n", err.message);
            wrong += err.code != LOAM_E_UNSUPPORTED;
        } else {
            int n_public = 0, n_common = 0;
            int bad_public = public_cases(t, names[i], &n_public), bad_common = common_cases(t, names[i], &n_common);
            print_message("%-15s %d of %d public cases, %d of %d common cases\n", names[i], n_public - bad_public, n_public,
                          n_common - bad_common, n_common);
            wrong += bad_public + bad_common;
            loam_tokenizer_free(t);
        }
        vocab_gguf_close(&v);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ids) };
    if (access(FOLDER, R_OK) != 0) {
        puts("SKIP: " FOLDER " is not there");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
