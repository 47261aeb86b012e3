/* The public interface of GGUF files: a program that builds, writes, opens, reads, edits and streams one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "loam/gguf.h"

static const float numbers[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void build(const char *path)
{
    loam_gguf_builder *b;
    assert_int_equal(loam_gguf_builder_create(&b, NULL, true, NULL), LOAM_OK);
    loam_gguf_set_u32(b, "u32", 7);
    loam_gguf_set_i32(b, "i32", -7);
    loam_gguf_set_u64(b, "u64", UINT64_MAX);
    loam_gguf_set_f32(b, "f32", 0.25f);
    loam_gguf_set_bool(b, "bool", true);
    loam_gguf_set_text(b, "text", "words", 5);
    loam_gguf_set_array(b, "doubles", LOAM_GGUF_F64, (const double[]){ 0.1, -2 }, 2);
    loam_gguf_set_texts(b, "texts", (const char *const[]){ "one", "", "two" }, (const size_t[]){ 3, 0, 3 }, 3);
    loam_gguf_set_tensor(b, "t.weight", LOAM_F32, (const int64_t[4]){ 4, 2, 1, 1 }, numbers);
    assert_int_equal(loam_gguf_write(b, path, NULL, NULL), LOAM_OK);
    loam_gguf_builder_free(b);
}

static void read_back(void **state)
{
    char path[512];
    loam_gguf *f;
    loam_gguf_value v;
    loam_gguf_tensor t;
    int64_t i = 0;
    double x = 0;
    bool b = false;
    const char *text = NULL;
    size_t len = 0;
    (void)state;
    build(scratch_path(path, "public.gguf"));
    loam_gguf_params p = loam_gguf_defaults();
    p.use_mmap = false;
    assert_int_equal(loam_gguf_open(&f, path, &p, NULL), LOAM_OK);
    assert_int_equal(loam_gguf_n_keys(f), 8);
    assert_int_equal(loam_gguf_n_tensors(f), 1);
    assert_int_equal(loam_gguf_n_parts(f), 1);
    assert_int_equal(loam_gguf_version(f), 3);
    assert_int_equal(loam_gguf_alignment(f), 32);
    assert_int_equal(loam_gguf_bytes(f) % 32, 0);
    assert_true(loam_gguf_key_at(f, 1, &v) && v.key_len == 3 && memcmp(v.key, "i32", 3) == 0);
    assert_true(loam_gguf_int(&v, 0, &i) && i == -7);
    assert_false(loam_gguf_int(&v, 1, &i));
    assert_false(loam_gguf_float(&v, 0, &x));
    assert_false(loam_gguf_bool(&v, 0, &b));
    assert_true(loam_gguf_key_find(f, "u64", &v));
    assert_false(loam_gguf_int(&v, 0, &i));
    assert_int_equal(i, -7);
    assert_true(loam_gguf_key_find(f, "f32", &v) && loam_gguf_float(&v, 0, &x) && x == 0.25);
    assert_true(loam_gguf_key_find(f, "bool", &v) && loam_gguf_bool(&v, 0, &b) && b);
    assert_true(loam_gguf_key_find(f, "doubles", &v) && v.count == 2 && loam_gguf_float(&v, 0, &x) && x == 0.1);
    assert_true(loam_gguf_float(&v, 1, &x) && x == -2);
    assert_string_equal(loam_gguf_kind_name(v.item), "float64");
    assert_false(loam_gguf_key_find(f, "nowhere", &v));
    assert_false(loam_gguf_key_at(f, 8, &v));
    uint64_t cursor = 0;
    assert_true(loam_gguf_key_find(f, "text", &v) && loam_gguf_text(&v, &cursor, &text, &len));
    assert_true(len == 5 && memcmp(text, "words", 5) == 0 && v.count == 1);
    assert_false(loam_gguf_text(&v, &cursor, &text, &len));
    cursor = 0;
    assert_true(loam_gguf_key_find(f, "texts", &v));
    for (int k = 0; k < 3; k++) assert_true(loam_gguf_text(&v, &cursor, &text, &len) && len == (k == 1 ? 0 : 3));
    assert_false(loam_gguf_text(&v, &cursor, &text, &len));
    assert_true(loam_gguf_tensor_find(f, "t.weight", &t) && t.n_dims == 2 && t.ne[0] == 4 && t.ne[3] == 1 && t.bytes == 32);
    assert_memory_equal(t.data, numbers, 32);
    assert_true(loam_gguf_tensor_at(f, 0, &t));
    assert_false(loam_gguf_tensor_at(f, 1, &t));
    assert_false(loam_gguf_tensor_find(f, "t", &t));
    loam_gguf_free(f);
    remove(path);
}

static void edit_and_stream(void **state)
{
    char path[512], second[512];
    loam_gguf *f, *g;
    loam_gguf_builder *b;
    loam_gguf_writer *w;
    loam_gguf_value v;
    int64_t i = 0;
    loam_error err;
    (void)state;
    build(scratch_path(path, "public.gguf"));
    scratch_path(second, "second.gguf");
    assert_int_equal(loam_gguf_open(&f, path, NULL, NULL), LOAM_OK);
    assert_int_equal(loam_gguf_builder_create(&b, f, false, NULL), LOAM_OK);
    loam_gguf_set_u32(b, "u32", 8);
    assert_true(loam_gguf_key_find(f, "texts", &v));
    loam_gguf_set_value(b, "copied", &v);
    assert_true(loam_gguf_key_find(f, "text", &v));
    loam_gguf_set_value(b, "copied.text", &v);
    assert_true(loam_gguf_remove_key(b, "f32"));
    loam_gguf_set_tensor(b, "s.weight", LOAM_F16, (const int64_t[4]){ 8, 1, 1, 1 }, NULL);
    loam_gguf_set_tensor(b, "gone.weight", LOAM_F16, (const int64_t[4]){ 8, 1, 1, 1 }, NULL);
    assert_true(loam_gguf_remove_tensor(b, "gone.weight"));
    assert_int_equal(loam_gguf_writer_open(&w, b, second, NULL, &err), LOAM_OK);
    assert_string_equal(loam_gguf_writer_due(w), "s.weight");
    assert_int_equal(loam_gguf_writer_put(w, numbers, 6, &err), LOAM_OK);
    assert_int_equal(loam_gguf_writer_put(w, numbers, 10, &err), LOAM_OK);
    assert_null(loam_gguf_writer_due(w));
    assert_int_equal(loam_gguf_writer_close(w, &err), LOAM_OK);
    assert_int_equal(loam_gguf_open(&g, second, NULL, &err), LOAM_OK);
    assert_int_equal(loam_gguf_n_keys(g), 9);
    assert_true(loam_gguf_key_find(g, "u32", &v) && loam_gguf_int(&v, 0, &i) && i == 8);
    assert_true(loam_gguf_key_find(g, "copied", &v) && v.count == 3);
    assert_true(loam_gguf_key_find(g, "copied.text", &v) && v.bytes == 5);
    loam_gguf_free(g);
    assert_int_equal(loam_gguf_writer_open(&w, b, second, NULL, &err), LOAM_OK);
    loam_gguf_writer_cancel(w);
    loam_gguf_builder_free(b);
    loam_gguf_free(f);
    remove(path);
    remove(second);
}

static void refusals(void **state)
{
    loam_gguf *f;
    loam_gguf_builder *b;
    loam_gguf_writer *w;
    loam_error err;
    loam_gguf_params none = { 0 };
    loam_gguf_write_params no_size = { 0 };
    (void)state;
    assert_int_equal(loam_gguf_open(&f, "/no/such/file.gguf", NULL, &err), LOAM_E_IO);
    assert_null(f);
    assert_non_null(strstr(err.message, "/no/such/file.gguf"));
    assert_int_equal(loam_gguf_open(&f, "x", &none, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "loam_gguf_defaults"));
    assert_int_equal(loam_gguf_open_memory(&f, "GGUX", 4, &err), LOAM_E_FORMAT);
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    assert_int_equal(loam_gguf_write(b, "x", &no_size, &err), LOAM_E_ARG);
    loam_gguf_set_texts(b, "too.many", NULL, NULL, UINT64_MAX);
    assert_int_equal(loam_gguf_writer_open(&w, b, "never.gguf", NULL, &err), LOAM_E_NOMEM);
    assert_null(w);
    loam_gguf_builder_free(b);
    loam_gguf_free(NULL);
    loam_gguf_builder_free(NULL);
    loam_gguf_writer_cancel(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(read_back), cmocka_unit_test(edit_and_stream),
                                        cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
