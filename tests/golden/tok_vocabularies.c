/* tok_vocabularies.c - the ids that real vocabularies give, text for text: every NAME.gguf of golden/tokenizers with its public
 * cases (NAME.inp, NAME.out) and the common ones (cases.jsonl, NAME.ids.txt), and the worked examples that need them. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/gguf.h"
#include "toy.h"

#define FOLDER LOAM_SHARED_DIR "/golden/tokenizers/"

static const char *const names[] = { "bert-bge",  "command-r", "deepseek-coder", "falcon", "gemma-4", "gpt-2",    "llama-bpe",
                                     "llama-spm", "mpt",       "nomic-bert-moe", "phi-3",  "qwen2",   "starcoder" };

static char *read_file(const char *name, const char *suffix, size_t *size)
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
    char *inp = read_file(name, ".inp", &size), *out = inp ? read_file(name, ".out", &n) : NULL;
    const char *text = inp, *line = out;
    while (out && text <= inp + size && (text < inp + size || *line)) {
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
    char *cases = read_file("cases", ".jsonl", &n), *out = read_file(name, ".ids.txt", &n);
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

/* The tokenizer of a file. Its texts lie in the mapped file, so both are opened and closed together. */
typedef struct vocabulary {
    gguf_file *file;
    loam_tokenizer *t;
} vocabulary;

static void open_vocabulary(vocabulary *v, const char *name)
{
    char path[4096];
    gguf_vocab view;
    loam_error err;
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    loam_status st = gguf_open(&v->file, path, 0, &err);
    if (st == LOAM_OK) st = gguf_vocab_view(&view, v->file, &err);
    if (st == LOAM_OK) st = tokenizer_new(&v->t, &view.view, &err);
    if (st != LOAM_OK) fail_msg("%s", err.message);
    gguf_vocab_free(&view);
}

static void close_vocabulary(vocabulary *v)
{
    loam_tokenizer_free(v->t);
    gguf_close(v->file);
}

static void test_ids(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        vocabulary v;
        int n_public = 0, n_common = 0;
        open_vocabulary(&v, names[i]);
        int bad_public = public_cases(v.t, names[i], &n_public), bad_common = common_cases(v.t, names[i], &n_common);
        print_message("%-15s %d of %d public cases, %d of %d common cases\n", names[i], n_public - bad_public, n_public,
                      n_common - bad_common, n_common);
        wrong += bad_public + bad_common;
        close_vocabulary(&v);
    }
    assert_int_equal(wrong, 0);
}

#define BOTH (LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL)

static void test_spm(void **state)
{
    vocabulary v;
    (void)state;
    open_vocabulary(&v, "llama-spm");
    CHECK(v.t, "Hello world", 0, 15043, 3186);
    CHECK(v.t, " Hello", 0, 29871, 15043);
    CHECK(v.t, "\xF0\x9F\x9A\x80", 0, 29871, 243, 162, 157, 131);
    CHECK(v.t, "</s>", 0, 1533, 29879, 29958);
    CHECK(v.t, "a</s>b", BOTH, 1, 263, 2, 289);
    CHECK(v.t, "<s>Hello", BOTH, 1, 1, 15043);
    CHECK(v.t, "\xFF\xC3\x28", 0, 29871, 258, 198, 43);
    CHECK(v.t, "", BOTH, 1);
    CHECK_TEXT(v.t, "Hello world", 0, 15043, 3186);
    CHECK_TEXT(v.t, " Hello world", 0, 1, 15043, 3186);
    CHECK_TEXT(v.t, "<s> Hello world", LOAM_DECODE_SPECIAL, 1, 15043, 3186);
    CHECK_TEXT(v.t, " Hello world", LOAM_DECODE_REMOVE_SPECIAL, 1, 15043, 3186);
    CHECK_TEXT(v.t, " Hello world", LOAM_DECODE_REMOVE_SPECIAL | LOAM_DECODE_SPECIAL, 1, 15043, 3186);
    assert_int_equal(loam_tokenizer_special(v.t, LOAM_TOKEN_BOS), 1);
    assert_int_equal(loam_tokenizer_special(v.t, LOAM_TOKEN_EOS), 2);
    assert_int_equal(loam_tokenizer_special(v.t, LOAM_TOKEN_NEWLINE), 13);
    assert_true(loam_tokenizer_is_eog(v.t, 2));
    assert_false(loam_tokenizer_is_eog(v.t, 1));
    close_vocabulary(&v);
    open_vocabulary(&v, "phi-3");
    CHECK(v.t, "<|user|>\n Hi<|end|>\n<|assistant|>", BOTH, 1, 32010, 6324, 32007, 32001);
    CHECK(v.t, "</s>  x", 0, 1533, 29879, 29958, 29871, 921);
    CHECK_TEXT(v.t, "<|user|> Hi<|end|>", LOAM_DECODE_SPECIAL, 32010, 6324, 32007);
    close_vocabulary(&v);
}

static void test_bpe(void **state)
{
    vocabulary v;
    (void)state;
    open_vocabulary(&v, "gpt-2");
    CHECK(v.t, " Hello  world", 0, 18435, 220, 995);
    CHECK(v.t, "don't I'LL", 0, 9099, 470, 314, 6, 3069);
    CHECK(v.t, "\xFF", 0, 4210);
    CHECK(v.t, "hi<|endoftext|> there", BOTH, 5303, 50256, 612);
    CHECK_TEXT(v.t, "Hello,", 0, 15496, 837);
    CHECK_TEXT(v.t, "I'm", 0, 40, 705, 76);
    close_vocabulary(&v);
    open_vocabulary(&v, "llama-bpe");
    CHECK(v.t, "1234567", 0, 4513, 10961, 22);
    CHECK(v.t, "I'LL", 0, 40, 6, 4178);
    CHECK(v.t, "a\n\n\nb", 0, 64, 1432, 65);
    close_vocabulary(&v);
    open_vocabulary(&v, "qwen2");
    CHECK(v.t, "x\r\n\r\n  y", 0, 87, 871, 220, 379);
    assert_int_equal(loam_tokenizer_special(v.t, LOAM_TOKEN_EOT), loam_tokenizer_find(v.t, "<|im_end|>", 10));
    assert_true(loam_tokenizer_is_eog(v.t, loam_tokenizer_find(v.t, "<|endoftext|>", 13)));
    close_vocabulary(&v);
    open_vocabulary(&v, "deepseek-coder");
    CHECK(v.t, "x = 12\n", 0, 87, 1412, 16, 17, 185);
    close_vocabulary(&v);
    open_vocabulary(&v, "falcon");
    CHECK(v.t, "a+b=1234", 0, 76, 22, 77, 40, 10963, 31);
    close_vocabulary(&v);
    open_vocabulary(&v, "starcoder");
    CHECK(v.t, "x1234 = [5]", 0, 125, 54, 55, 56, 57, 299, 447, 58, 98);
    close_vocabulary(&v);
    open_vocabulary(&v, "mpt");
    CHECK(v.t, "Hello  world", 0, 12092, 50276, 10186);
    close_vocabulary(&v);
    open_vocabulary(&v, "gemma-4");
    CHECK(v.t, " Hello  world", 0, 26352, 138, 12392);
    CHECK(v.t, "\n\n\n", 0, 109);
    CHECK(v.t, "\xE2\x98\x83\xF0\x93\x80\x80", 0, 246690, 478, 385, 366, 366);
    CHECK(v.t, "<bos>Hi", BOTH, 2, 2, 10979);
    close_vocabulary(&v);
}

static void test_others(void **state)
{
    vocabulary v;
    (void)state;
    open_vocabulary(&v, "bert-bge");
    CHECK(v.t, "Hello, World!", 0, 7592, 1010, 2088, 999);
    CHECK(v.t, "Z\xC3\xBCrich na\xC3\xAFve", 0, 10204, 15743);
    CHECK(v.t, "\xED\x95\x9C\xEA\xB5\xAD", 0, 1469, 29991);
    CHECK(v.t, "unbelievablyzzz\xF0\x9F\x9A\x80", 0, 100);
    CHECK(v.t, "<b>$5</b>", 0, 1026, 1038, 1028, 1002, 1019, 1026, 1013, 1038, 1028);
    CHECK(v.t, "[MASK] x", 0, 1031, 7308, 1033, 1060);
    CHECK(v.t, "[MASK] x", BOTH, 101, 103, 1060, 102);
    CHECK_TEXT(v.t, " hello, world!", 0, 101, 7592, 1010, 2088, 999, 102);
    CHECK_TEXT(v.t, " hello, world![SEP]", LOAM_DECODE_REMOVE_SPECIAL | LOAM_DECODE_SPECIAL, 101, 7592, 1010, 2088, 999, 102);
    close_vocabulary(&v);
    open_vocabulary(&v, "nomic-bert-moe");
    CHECK(v.t, "  Hello   world  ", 0, 35378, 8999);
    CHECK(v.t, "\xEF\xAC\x81\xEF\xAC\x80\xE2\x91\xA0", 0, 809, 4902, 418);
    CHECK(v.t, "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 0, 6, 98449);
    CHECK(v.t, "\xF0\x9F\xA7\xBF\xF0\x93\x80\x80\xF0\x93\x80\x81x", 0, 6, 3, 425);
    CHECK_NONE(v.t, "\n", 0);
    CHECK(v.t, "Paris is <mask> town", BOTH, 0, 7270, 83, 250001, 59444, 2);
    close_vocabulary(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ids), cmocka_unit_test(test_spm), cmocka_unit_test(test_bpe),
                                        cmocka_unit_test(test_others) };
    if (access(FOLDER, R_OK) != 0) {
        puts("SKIP: " FOLDER " is not there");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
