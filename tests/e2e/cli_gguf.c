/* cli_gguf.c - `loam gguf` from the outside: metadata set, removed and copied, files split and merged back to the same bytes,
 * sets with parts that are missing or strange refused by name, hashes. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"
#include "loam/gguf.h"

static char model[512], other[512], copy[512], prefix[512];

static void done(command_result r)
{
    if (r.code) fail_msg("%d: %s", r.code, r.err);
    command_free(&r);
}

static void refused(command_result r, int code, const char *part)
{
    if (r.code != code || !strstr(r.err, part)) fail_msg("code %d (%d), '%s' lacks '%s'", r.code, code, r.err, part);
    command_free(&r);
}

static bool same_files(const char *a, const char *b)
{
    size_t na, nb;
    char *pa = slurp(a, &na), *pb = slurp(b, &nb);
    bool same = pa && pb && na == nb && memcmp(pa, pb, na) == 0;
    free(pa);
    free(pb);
    return same;
}

static const char *part(char out[600], int i, int n)
{
    snprintf(out, 600, "%s-%05d-of-%05d.gguf", prefix, i, n);
    return out;
}

static int make(void **unused)
{
    (void)unused;
    done(command("debug", "make-model", "--shape", "tiny", "--type", "q8_0", scratch_path(model, "model.gguf")));
    done(command("debug", "make-model", "--shape", "tiny", "--type", "q4_0", scratch_path(other, "other.gguf")));
    scratch_path(copy, "copy.gguf");
    scratch_path(prefix, "part");
    return 0;
}

static int clear(void **unused)
{
    (void)unused;
    remove(model);
    remove(other);
    remove(copy);
    return 0;
}

static void values(void **unused)
{
    (void)unused;
    static const struct {
        const char *key, *value, *type, *shown;
        int kind, item;
    } cases[] = {
        { "general.name", "My model", NULL, "\"My model\"", LOAM_GGUF_STRING, LOAM_GGUF_STRING },
        { "x.whole", "5", NULL, "5", LOAM_GGUF_U32, LOAM_GGUF_U32 },
        { "x.whole", "7", NULL, "7", LOAM_GGUF_U32, LOAM_GGUF_U32 },
        { "x.negative", "-5", NULL, "-5", LOAM_GGUF_I32, LOAM_GGUF_I32 },
        { "x.float", "2.5", NULL, "2.5", LOAM_GGUF_F32, LOAM_GGUF_F32 },
        { "x.double", "0.1", "float64", "0.1", LOAM_GGUF_F64, LOAM_GGUF_F64 },
        { "x.float", "3", NULL, "3", LOAM_GGUF_F32, LOAM_GGUF_F32 },
        { "x.bool", "true", NULL, "true", LOAM_GGUF_BOOL, LOAM_GGUF_BOOL },
        { "x.text", "5", "string", "\"5\"", LOAM_GGUF_STRING, LOAM_GGUF_STRING },
        { "x.text", "[1]", NULL, "\"[1]\"", LOAM_GGUF_STRING, LOAM_GGUF_STRING },
        { "x.whole", "300", "u16", "300", LOAM_GGUF_U16, LOAM_GGUF_U16 },
        { "x.ints", "[1, 2,-3 ]", NULL, "int32[3] 1, 2, -3", LOAM_GGUF_ARRAY, LOAM_GGUF_I32 },
        { "x.ints", "4,5", NULL, "int32[2] 4, 5", LOAM_GGUF_ARRAY, LOAM_GGUF_I32 },
        { "x.bytes", "1,2,255", "uint8[]", "uint8[3] 1, 2, 255", LOAM_GGUF_ARRAY, LOAM_GGUF_U8 },
        { "x.floats", "[1, 2.5]", NULL, "float32[2] 1, 2.5", LOAM_GGUF_ARRAY, LOAM_GGUF_F32 },
        { "x.bools", "[true,false]", NULL, "bool[2] true, false", LOAM_GGUF_ARRAY, LOAM_GGUF_BOOL },
        { "x.texts", "[\"a, b\", \"c\\\"d\"]", NULL, "string[2] \"a, b\", \"c\\\"d\"", LOAM_GGUF_ARRAY, LOAM_GGUF_STRING },
        { "x.none", "[]", "float32[]", "float32[0]", LOAM_GGUF_ARRAY, LOAM_GGUF_F32 },
    };
    const char *file = model, *first = "-o", *second = copy;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *type = cases[i].type ? cases[i].type : "";
        const char *arguments[] = { "gguf", "set", file, cases[i].key, cases[i].value, first, second,
                                    cases[i].type ? "--type" : NULL, type, NULL };
        done(command_run(NULL, arguments));
        file = copy; /* from the second on, written to itself */
        loam_gguf *f;
        loam_gguf_value v;
        assert_int_equal(loam_gguf_open(&f, copy, NULL, NULL), LOAM_OK);
        assert_true(loam_gguf_key_find(f, cases[i].key, &v));
        assert_int_equal(v.kind, cases[i].kind);
        assert_int_equal(v.item, cases[i].item);
        loam_gguf_free(f);
        command_result r = command("inspect", copy);
        if (!strstr(r.out, cases[i].shown)) fail_msg("%s: '%s' is not shown", cases[i].key, cases[i].shown);
        command_free(&r);
    }
    refused(command("gguf", "set", copy, "x.bytes", "256"), 2, "'256' is no value of kind uint8");
    refused(command("gguf", "set", copy, "x.bytes", "[1"), 2, "a ] is missing");
    refused(command("gguf", "set", copy, "x.bytes", "[[1]]"), 2, "an array inside an array");
    refused(command("gguf", "set", copy, "x.new", "1", "--type", "word"), 2, "there is no kind 'word'");
    refused(command("gguf", "set", copy, "split.no", "1"), 2, "split.*");
    refused(command("gguf", "set", copy, "general.alignment", "48", "--type", "uint32"), 1, "power of two");
    refused(command("gguf", "rm", copy, "x.bytes", "x.nothing"), 1, "there is no key 'x.nothing'");
    done(command("gguf", "rm", copy, "x.*"));
    done(command("gguf", "cp", model, copy, "general.name"));
    assert_true(same_files(model, copy));
}

/* Splits the model, gives the number of parts. */
static int split(const char *from, const char *option, const char *value)
{
    command_result r = command("gguf", "split", from, prefix, option, value);
    int n = 0;
    const char *of = strstr(r.out, "-of-");
    if (r.code || !of || sscanf(of, "-of-%d.gguf", &n) != 1) fail_msg("%d: %s%s", r.code, r.out, r.err);
    command_free(&r);
    return n;
}

static void remove_parts(int n)
{
    char path[600];
    for (int i = 1; i <= n; i++) remove(part(path, i, n));
}

static void there_and_back(void **unused)
{
    (void)unused;
    char path[600];
    static const char *const ways[][2] = { { "--max-tensors", "10" }, { "--max-tensors", "1" }, { "--max-size", "1M" }, { "--max-size", "300K" } };
    for (size_t w = 0; w < 4; w++) {
        int n = split(model, ways[w][0], ways[w][1]);
        assert_true(n > 3);
        done(command("gguf", "merge", part(path, 1, n), copy));
        assert_true(same_files(model, copy));
        remove_parts(n);
    }
    done(command("gguf", "split", model, prefix, "--max-size", "1G"));
    snprintf(path, sizeof path, "%s.gguf", prefix);
    assert_true(same_files(model, path));
    refused(command("gguf", "merge", path, copy), 1, "is not split");
    remove(path);
    refused(command("gguf", "split", model, prefix), 2, "either --max-size or --max-tensors");
    refused(command("gguf", "split", model, prefix, "--max-size", "10X"), 2, "10X");
}

static void strange_sets(void **unused)
{
    (void)unused;
    char a[600], b[600], kept[600];
    remove(copy);
    int n = split(other, "--max-tensors", "10");
    snprintf(kept, sizeof kept, "%s", scratch_path(b, "kept"));
    assert_int_equal(rename(part(a, 2, n), kept), 0);
    assert_int_equal(split(model, "--max-tensors", "10"), n);
    assert_int_equal(rename(part(a, 2, n), part(b, n + 1, n)), 0);
    refused(command("gguf", "merge", part(a, 1, n), copy), 1, part(b, 2, n));
    refused(command("gguf", "merge", part(a, 3, n), copy), 1, "open the first part");
    assert_int_equal(rename(kept, part(a, 2, n)), 0); /* of the other model: same names, same number */
    refused(command("gguf", "merge", part(a, 1, n), copy), 1, part(b, 2, n));
    assert_int_equal(rename(part(a, 3, n), part(b, 2, n)), 0);
    assert_int_equal(rename(part(a, n + 1, n), part(b, 3, n)), 0); /* two parts that changed places */
    refused(command("gguf", "merge", part(a, 1, n), copy), 1, part(b, 2, n));
    assert_int_not_equal(access(copy, F_OK), 0);
    remove_parts(n);
}

/* Metadata of a split file are edited in its first part, and stay a set with the others. */
static void edit_split(void **unused)
{
    (void)unused;
    char a[600];
    int n = split(model, "--max-tensors", "10");
    done(command("gguf", "set", part(a, 1, n), "general.name", "parts"));
    command_result r = command("inspect", "--json", a);
    assert_true(strstr(r.out, "\"parts\": 4") && strstr(r.out, "\"general.name\": \"parts\""));
    command_free(&r);
    refused(command("gguf", "set", part(a, 2, n), "general.name", "parts"), 1, "first part");
    done(command("gguf", "cp", model, part(a, 1, n), "general.*", "-o", copy));
    assert_true(same_files(model, copy));
    remove_parts(n);
}

static void hashes(void **unused)
{
    (void)unused;
    char a[600];
    int n = split(model, "--max-tensors", "10");
    const char *last[3];
    command_result r[3] = { command("gguf", "hash", "--json", model), command("gguf", "hash", "--json", part(a, 1, n)),
                            command("gguf", "hash", "--json", other) };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].code, 0);
        last[i] = strstr(r[i].out, "\"all\"");
        assert_non_null(last[i]);
    }
    assert_string_equal(r[0].out, r[1].out);
    assert_string_not_equal(last[0], last[2]);
    for (int i = 0; i < 3; i++) command_free(&r[i]);
    r[0] = command("gguf", "hash", "--hash", "sha256", model);
    assert_int_equal(r[0].code, 0);
    assert_non_null(strstr(r[0].out, ":output_norm.weight\n"));
    command_free(&r[0]);
    remove_parts(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(values), cmocka_unit_test(there_and_back), cmocka_unit_test(strange_sets),
                                        cmocka_unit_test(edit_split), cmocka_unit_test(hashes) };
    return cmocka_run_group_tests(tests, make, clear);
}
