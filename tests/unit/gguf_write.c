/* Writing: builders, edits, streams, split files, and what a failed write leaves behind (nothing). */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "data.h"
#include "file/gguf_write.h"

#define NE(...) ((const int64_t[LIMIT_DIMS]){ __VA_ARGS__ })

static float values[64];

/* Three keys, three tensors; the empty one has no data. */
static gguf_builder *small(void)
{
    gguf_builder *b;
    assert_int_equal(gguf_builder_create(&b, NULL, 0, NULL), LOAM_OK);
    gguf_set_text(b, "general.architecture", "llama", 5);
    gguf_set_u32(b, "llama.block_count", 3);
    gguf_set_f32(b, "llama.scale", 0.5f);
    for (int i = 0; i < 64; i++) values[i] = (float)i;
    gguf_put_tensor(b, "a.weight", LOAM_F32, NE(5, 3, 1, 1), values);
    gguf_put_tensor(b, "empty.weight", LOAM_F32, NE(5, 0, 1, 1), NULL);
    gguf_put_tensor(b, "b.weight", LOAM_F32, NE(7, 1, 1, 1), values + 20);
    return b;
}

static gguf_file *reopen(const char *path)
{
    gguf_file *f;
    loam_error err;
    if (gguf_open(&f, path, 0, &err) != LOAM_OK) fail_msg("%s", err.message);
    return f;
}

static void scratch_folder(char out[512], const char *name)
{
    scratch_path(out, name);
    assert_int_equal(mkdir(out, 0700), 0);
}

static int files_in(const char *folder)
{
    char pattern[600];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    int n = glob(pattern, 0, NULL, &g) == 0 ? (int)g.gl_pathc : 0;
    globfree(&g);
    return n;
}

static void from_scratch(void **state)
{
    char path[512];
    (void)state;
    gguf_builder *b = small();
    scratch_path(path, "small.gguf");
    gguf_set_bool(b, "flag", true);
    gguf_set_u16(b, "u16", 65535);
    gguf_set_i32(b, "i32", -5);
    gguf_set_u64(b, "u64", UINT64_MAX);
    gguf_set_i64(b, "i64", INT64_MIN);
    gguf_set_array(b, "ints", GGUF_I32, (const int32_t[]){ 1, -2, 3 }, 3);
    gguf_set_texts(b, "texts", (const text_view[]){ { "x", 1 }, { NULL, 0 }, { "yz", 2 } }, 3);
    assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
    gguf_builder_free(b);
    gguf_file *f = reopen(path);
    assert_int_equal(gguf_version(f), 3);
    assert_int_equal(gguf_alignment(f), 32);
    assert_int_equal(gguf_key_count(f), 10);
    assert_int_equal(gguf_tensor_count(f), 3);
    assert_int_equal(gguf_file_bytes(f) % 32, 0);
    const gguf_tensor *t = gguf_tensor_find(f, "b.weight");
    assert_int_equal(t->n_dims, 1);
    assert_int_equal(t->bytes, 28);
    assert_memory_equal(t->data, values + 20, 28);
    assert_null(gguf_tensor_find(f, "empty.weight")->data);
    gguf_array a;
    text_view s;
    int64_t v;
    assert_int_equal(gguf_get_array(f, "ints", GGUF_REQUIRED, GGUF_INTS, &a, NULL), LOAM_OK);
    assert_true(a.count == 3 && gguf_int_at(&a, 1) == -2);
    assert_int_equal(gguf_get_array(f, "texts", GGUF_REQUIRED, GGUF_STRINGS, &a, NULL), LOAM_OK);
    gguf_strings it = gguf_strings_of(&a);
    assert_true(gguf_next(&it, &s) && gguf_next(&it, &s) && s.len == 0 && gguf_next(&it, &s) && s.len == 2);
    assert_int_equal(gguf_get_i64(f, "i64", GGUF_REQUIRED, &v, NULL), LOAM_OK);
    assert_true(v == INT64_MIN);
    gguf_close(f);
    remove(path);
}

static void edits(void **state)
{
    char path[512], second[512];
    (void)state;
    gguf_builder *b = small();
    scratch_path(path, "first.gguf");
    scratch_path(second, "second.gguf");
    assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
    gguf_builder_free(b);
    gguf_file *f = reopen(path);
    assert_int_equal(gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, NULL), LOAM_OK);
    gguf_set_u32(b, "llama.block_count", 9);
    assert_true(gguf_remove(b, "llama.scale"));
    assert_false(gguf_remove(b, "llama.scale"));
    assert_false(gguf_remove(b, "never.there"));
    gguf_set_key(b, "general.architecture", gguf_key_find(f, "general.architecture"));
    gguf_set_text(b, "general.name", "edited", 6);
    gguf_set_u32(b, "general.alignment", 64);
    assert_true(gguf_remove_tensor(b, "empty.weight"));
    assert_false(gguf_remove_tensor(b, "empty.weight"));
    gguf_put_tensor(b, "a.weight", LOAM_F32, NE(4, 1, 1, 1), values + 1);
    assert_int_equal(gguf_write(b, second, NULL, NULL), LOAM_OK);
    gguf_file *g = reopen(second);
    uint32_t n = 0;
    assert_int_equal(gguf_get_u32(g, "llama.block_count", GGUF_REQUIRED, &n, NULL), LOAM_OK);
    assert_int_equal(n, 9);
    assert_int_equal(gguf_alignment(g), 64);
    assert_null(gguf_key_find(g, "llama.scale"));
    assert_int_equal(gguf_key_count(g), 4);
    assert_int_equal(gguf_tensor_count(g), 2);
    assert_memory_equal(gguf_tensor_find(g, "a.weight")->data, values + 1, 16);
    assert_int_equal(gguf_tensor_find(g, "b.weight")->offset % 64, 0);
    gguf_close(g);
    gguf_builder_free(b);
    gguf_close(f);
    remove(path);
    remove(second);
}

/* The file being edited may be the file that is written: it is replaced when the new one is whole. */
static void in_place(void **state)
{
    char path[512];
    (void)state;
    gguf_builder *b = small();
    scratch_path(path, "place.gguf");
    assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
    gguf_builder_free(b);
    gguf_file *f = reopen(path);
    assert_int_equal(gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, NULL), LOAM_OK);
    gguf_set_text(b, "general.name", "new", 3);
    assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
    assert_memory_equal(gguf_tensor_find(f, "b.weight")->data, values + 20, 28);
    gguf_builder_free(b);
    gguf_close(f);
    f = reopen(path);
    assert_non_null(gguf_key_find(f, "general.name"));
    gguf_close(f);
    remove(path);
}

static void in_pieces(void **state)
{
    char folder[512], path[600];
    gguf_writer *w;
    loam_error err;
    (void)state;
    scratch_folder(folder, "pieces");
    snprintf(path, sizeof path, "%s/x.gguf", folder);
    gguf_builder *b = small();
    assert_int_equal(gguf_writer_open(&w, b, path, NULL, &err), LOAM_OK);
    assert_string_equal(gguf_writer_turn(w), "a.weight");
    for (int i = 0; i < 15; i++) assert_int_equal(gguf_writer_put(w, values + i, 4, &err), LOAM_OK);
    assert_string_equal(gguf_writer_turn(w), "b.weight");
    assert_int_equal(gguf_writer_put(w, values, 29, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'b.weight': 29 bytes given, 28 wanted"));
    assert_int_equal(gguf_writer_put(w, values + 20, 28, &err), LOAM_OK);
    assert_null(gguf_writer_turn(w));
    assert_int_equal(gguf_writer_put(w, values, 1, &err), LOAM_E_ARG);
    assert_int_equal(gguf_writer_close(w, &err), LOAM_OK);
    gguf_file *f = reopen(path);
    assert_memory_equal(gguf_tensor_find(f, "a.weight")->data, values, 60);
    gguf_close(f);

    /* A file that lacks data, or is given up, leaves the old one and no other. */
    gguf_remove(b, "llama.scale");
    assert_int_equal(gguf_writer_open(&w, b, path, NULL, &err), LOAM_OK);
    assert_int_equal(gguf_writer_put(w, values, 60, &err), LOAM_OK);
    assert_int_equal(gguf_writer_close(w, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'b.weight' lacks 28 bytes"));
    assert_int_equal(gguf_writer_open(&w, b, path, NULL, &err), LOAM_OK);
    gguf_writer_cancel(w);
    gguf_put_tensor(b, "late.weight", LOAM_F32, NE(4, 1, 1, 1), NULL);
    assert_int_equal(gguf_write(b, path, NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'late.weight' has no data"));
    assert_int_equal(files_in(folder), 1);
    f = reopen(path);
    assert_non_null(gguf_key_find(f, "llama.scale"));
    gguf_close(f);
    gguf_builder_free(b);
    remove(path);
    remove(folder);
}

static void builder_failures(void **state)
{
    static const struct {
        const char *name;
        loam_type type;
        int64_t ne[LIMIT_DIMS];
    } bad[] = {
        { "t", LOAM_Q4_0, { 33, 1, 1, 1 } }, { "t", LOAM_F32, { -1, 1, 1, 1 } }, { "t", (loam_type)4, { 32, 1, 1, 1 } },
        { "t", LOAM_F32, { 1ll << 40, 1ll << 40, 1, 1 } }, { "t", LOAM_F64, { 1ll << 61, 1, 1, 1 } },
        { "", LOAM_F32, { 1, 1, 1, 1 } },
        { "a123456789b123456789c123456789d123456789e123456789f123456789g123", LOAM_F32, { 1, 1, 1, 1 } },
    };
    loam_error err;
    gguf_writer *w;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gguf_builder *b = small();
        gguf_put_tensor(b, bad[i].name, bad[i].type, bad[i].ne, values);
        gguf_set_u32(b, "after.the.failure", 1);
        assert_int_equal(gguf_writer_open(&w, b, "never.gguf", NULL, &err), LOAM_E_ARG);
        assert_non_null(strstr(err.message, "never.gguf: tensor '"));
        gguf_builder_free(b);
    }
    gguf_builder *b = small();
    gguf_set_u32(b, "", 1);
    assert_int_equal(gguf_write(b, "never.gguf", NULL, &err), LOAM_E_ARG);
    gguf_builder_free(b);
    b = small();
    gguf_set_array(b, "arr", GGUF_STRING, values, 1);
    assert_int_equal(gguf_write(b, "never.gguf", NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'arr'"));
    gguf_builder_free(b);
    b = small();
    gguf_set_u32(b, "general.alignment", 48);
    assert_int_equal(gguf_write(b, "never.gguf", NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "general.alignment"));
    gguf_builder_free(b);
    b = small();
    assert_int_equal(gguf_write(b, "/no/such/folder/x.gguf", NULL, &err), LOAM_E_IO);
    assert_non_null(strstr(err.message, "/no/such/folder/x.gguf"));
    gguf_builder_free(b);
}

/* ---- split files ---- */

/* Writes the small file in parts of one tensor each: three parts, in a folder of their own. */
static void write_split(char folder[512], char first[600])
{
    char path[600];
    scratch_folder(folder, "split");
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(first, 600, "%.500s/m-00001-of-00003.gguf", folder);
    gguf_builder *b = small();
    loam_error err;
    if (gguf_write(b, path, &(gguf_write_options){ .part_tensors = 1 }, &err) != LOAM_OK) fail_msg("%s", err.message);
    gguf_builder_free(b);
    assert_int_equal(files_in(folder), 3);
}

static void remove_all(const char *folder)
{
    char pattern[600];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, 0, NULL, &g) == 0)
        for (size_t i = 0; i < g.gl_pathc; i++) remove(g.gl_pathv[i]);
    globfree(&g);
    remove(folder);
}

static void expect(const char *path, loam_status status, const char *word1, const char *word2)
{
    gguf_file *f;
    loam_error err;
    err.message[0] = 0;
    loam_status s = gguf_open(&f, path, 0, &err);
    if (s != status || !strstr(err.message, word1) || !strstr(err.message, word2)) fail_msg("status %d: %s", s, err.message);
    assert_null(f);
}

static void split_opens(void **state)
{
    char folder[512], first[600];
    (void)state;
    write_split(folder, first);
    gguf_file *f = reopen(first);
    assert_int_equal(gguf_part_count(f), 3);
    assert_int_equal(gguf_tensor_count(f), 3);
    assert_string_equal(gguf_part_path(f, 2) + strlen(folder), "/m-00003-of-00003.gguf");
    assert_null(gguf_part_path(f, 3));
    const gguf_tensor *t = gguf_tensor_find(f, "b.weight");
    assert_int_equal(t->part, 2);
    assert_memory_equal(t->data, values + 20, 28);
    gguf_prefetch(f, t);

    /* Joined again it is the file that was never split. */
    char joined[600], whole[600];
    snprintf(joined, sizeof joined, "%s/joined.gguf", folder);
    snprintf(whole, sizeof whole, "%s/whole.gguf", folder);
    gguf_builder *b;
    assert_int_equal(gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, NULL), LOAM_OK);
    assert_int_equal(gguf_write(b, joined, NULL, NULL), LOAM_OK);
    gguf_builder_free(b);
    gguf_close(f);
    b = small();
    assert_int_equal(gguf_write(b, whole, &(gguf_write_options){ .part_bytes = 1 << 20 }, NULL), LOAM_OK);
    gguf_builder_free(b);
    size_t n, m;
    char *x = slurp(joined, &n), *y = slurp(whole, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    remove_all(folder);
}

static void split_by_bytes(void **state)
{
    char folder[512], path[600];
    (void)state;
    scratch_folder(folder, "bytes");
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    gguf_builder *b = small();
    gguf_put_tensor(b, "c.weight", LOAM_F32, NE(8, 1, 1, 1), values);
    assert_int_equal(gguf_write(b, path, &(gguf_write_options){ .part_bytes = 64 }, NULL), LOAM_OK);
    gguf_builder_free(b);
    snprintf(path, sizeof path, "%s/m-00001-of-00002.gguf", folder);
    gguf_file *f = reopen(path);
    assert_int_equal(gguf_part_count(f), 2);
    assert_int_equal(gguf_tensor_find(f, "c.weight")->part, 1);
    gguf_close(f);
    remove_all(folder);
}

/* HO-07 */
static void split_refusals(void **state)
{
    char folder[512], first[600], second[600], third[600], other[600], whole[600];
    (void)state;
    write_split(folder, first);
    snprintf(second, sizeof second, "%s/m-00002-of-00003.gguf", folder);
    snprintf(third, sizeof third, "%s/m-00003-of-00003.gguf", folder);
    expect(second, LOAM_E_ARG, "part 2 of 3; open the first part", first);

    gguf_file *alone;
    assert_int_equal(gguf_open(&alone, second, GGUF_PART, NULL), LOAM_OK);
    assert_int_equal(gguf_tensor_count(alone), 1);
    gguf_close(alone);

    snprintf(other, sizeof other, "%s/kept", folder);
    rename(second, other);
    expect(first, LOAM_E_IO, "part 2 of 3", second);
    /* Part 3 in place of part 2: it says so itself. */
    size_t n;
    char *bytes = slurp(third, &n);
    spill(second, bytes, n);
    expect(first, LOAM_E_FORMAT, second, "its keys say part 3 of 3; part 2 of 3 is required");
    free(bytes);
    /* Part 2 of a set whose number of tensors is another. */
    snprintf(whole, sizeof whole, "%s/m.gguf", folder);
    gguf_builder *b = small();
    gguf_put_tensor(b, "a.weight", LOAM_F32, NE(5, 3, 1, 1), values);
    gguf_put_tensor(b, "more.weight", LOAM_F32, NE(8, 1, 1, 1), values);
    assert_int_equal(gguf_write(b, whole, &(gguf_write_options){ .part_tensors = 2 }, NULL), LOAM_OK);
    snprintf(whole, sizeof whole, "%s/m-00002-of-00002.gguf", folder);
    rename(whole, second);
    expect(first, LOAM_E_FORMAT, "its keys say part 2 of 2; part 2 of 3 is required", second);
    gguf_builder_free(b);
    /* The name says 4 parts, the keys say 3. */
    snprintf(other, sizeof other, "%s/m-00001-of-00004.gguf", folder);
    bytes = slurp(first, &n);
    spill(other, bytes, n);
    expect(other, LOAM_E_FORMAT, "named part 1 of 4", "part 1 of 3");
    snprintf(other, sizeof other, "%s/renamed.gguf", folder);
    spill(other, bytes, n);
    expect(other, LOAM_E_FORMAT, "renamed.gguf: part 1 of 3", "PREFIX-00001-of-00003.gguf");
    free(bytes);
    remove_all(folder);
}

/* Writes part `no` of `count` by hand: the split keys and one tensor. */
static void hand_part(const char *folder, int no, int count, int total, const char *tensor)
{
    char path[600];
    gguf_builder *b;
    assert_int_equal(gguf_builder_create(&b, NULL, 0, NULL), LOAM_OK);
    gguf_set_u16(b, "split.no", (uint16_t)no);
    gguf_set_u16(b, "split.count", (uint16_t)count);
    gguf_set_i32(b, "split.tensors.count", total);
    gguf_put_tensor(b, tensor, LOAM_F32, NE(8, 1, 1, 1), values);
    snprintf(path, sizeof path, "%s/h-%05d-of-%05d.gguf", folder, no + 1, count);
    assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
    gguf_builder_free(b);
}

static void split_contents(void **state)
{
    char folder[512], first[600];
    (void)state;
    scratch_folder(folder, "hand");
    snprintf(first, sizeof first, "%s/h-00001-of-00002.gguf", folder);
    hand_part(folder, 0, 2, 2, "same.weight");
    hand_part(folder, 1, 2, 2, "same.weight");
    expect(first, LOAM_E_FORMAT, "'same.weight' is in part 1 and in part 2", first);
    hand_part(folder, 1, 2, 3, "other.weight");
    expect(first, LOAM_E_FORMAT, "'split.tensors.count' is 3, in the first part 2", "h-00002-of-00002.gguf");
    hand_part(folder, 0, 2, 3, "same.weight");
    expect(first, LOAM_E_FORMAT, "says 3 tensors, the parts hold 2", first);
    remove_all(folder);
}

/* ---- paths ---- */

/* HO-08: names in any script, composed and decomposed, and with a trailing space. */
static void odd_paths(void **state)
{
    static const char *const names[] = { "\305\275eljko", "\346\250\241\345\236\213 \303\251\360\237\231\202", "e\314\201 decomposed", "trailing " };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[512], path[600];
        scratch_folder(folder, names[i]);
        snprintf(path, sizeof path, "%s/m\xC3\xB6" "del.gguf ", folder);
        gguf_builder *b = small();
        assert_int_equal(gguf_write(b, path, NULL, NULL), LOAM_OK);
        gguf_builder_free(b);
        gguf_close(reopen(path));
        spill(path, "nothing", 7);
        expect(path, LOAM_E_FORMAT, path, "not a GGUF file");
        remove(path);
        expect(path, LOAM_E_IO, path, "cannot open");
        expect(folder, LOAM_E_IO, names[i], "");
        remove(folder);
    }
}

/* A path longer than a message keeps its end, and the message its culprit. */
static void long_path(void **state)
{
    char folder[512], path[1200];
    (void)state;
    scratch_folder(folder, "long");
    size_t n = (size_t)snprintf(path, sizeof path, "%s", folder);
    for (int i = 0; i < 500; i++) n += (size_t)snprintf(path + n, sizeof path - n, "/.");
    snprintf(path + n, sizeof path - n, "/tail.gguf");
    spill(path, "GGUFGGUF", 8);
    expect(path, LOAM_E_FORMAT, "...", "/tail.gguf: the file ends within the 24-byte header");
    remove(path);
    remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_scratch),   cmocka_unit_test(edits),          cmocka_unit_test(in_place),
        cmocka_unit_test(in_pieces),      cmocka_unit_test(builder_failures), cmocka_unit_test(split_opens),
        cmocka_unit_test(split_by_bytes), cmocka_unit_test(split_refusals), cmocka_unit_test(split_contents),
        cmocka_unit_test(odd_paths),      cmocka_unit_test(long_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
