/* Getters: absent, found, wrong kind and out of range are four different answers. */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "file/gguf.h"
#include "raw.h"

enum { U8 = 0, I8 = 1, U16 = 2, I16 = 3, U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, U64 = 10, I64 = 11, F64 = 12 };

static raw bytes;
static gguf_file *f;

static void put_f32(raw *r, float v) { raw_bytes(r, &v, 4); }
static void put_f64(raw *r, double v) { raw_bytes(r, &v, 8); }

static int open_file(void **state)
{
    raw *r = &bytes;
    (void)state;
    raw_head(r, 0, 22);
    raw_key(r, "u8", U8); raw_u8(r, 200);
    raw_key(r, "i8", I8); raw_u8(r, 0x80);
    raw_key(r, "u16", U16); raw_bytes(r, "\xff\xff", 2);
    raw_key(r, "i16", I16); raw_bytes(r, "\xfe\xff", 2);
    raw_key_u32(r, "u32", UINT32_MAX);
    raw_key(r, "i32", I32); raw_u32(r, UINT32_MAX);
    raw_key(r, "u64", U64); raw_u64(r, UINT64_MAX);
    raw_key(r, "i64", I64); raw_u64(r, 1ull << 63);
    raw_key(r, "small64", U64); raw_u64(r, 12);
    raw_key(r, "f32", F32); put_f32(r, 1.5f);
    raw_key(r, "f64", F64); put_f64(r, -2.25);
    raw_key(r, "nan", F32); put_f32(r, NAN);
    raw_key(r, "yes", BOOL); raw_u8(r, 7);
    raw_key(r, "no", BOOL); raw_u8(r, 0);
    raw_key(r, "text", STRING); raw_text(r, "abc");
    raw_key(r, "nothing", STRING); raw_text(r, "");
    raw_key_array(r, "ints", I16, 3); raw_bytes(r, "\1\0\2\0\xff\xff", 6);
    raw_key_array(r, "wide", U64, 2); raw_u64(r, UINT64_MAX); raw_u64(r, 3);
    raw_key_array(r, "floats", F64, 2); put_f64(r, 0.5); put_f64(r, -4);
    raw_key_array(r, "bools", BOOL, 3); raw_bytes(r, "\1\0\2", 3);
    raw_key_array(r, "texts", STRING, 3); raw_text(r, "one"); raw_text(r, ""); raw_text(r, "three");
    raw_key_array(r, "none", STRING, 0);
    loam_error err;
    if (gguf_open_memory(&f, r->data, r->size, "keys.gguf", &err) == LOAM_OK) return 0;
    print_error("%s\n", err.message);
    return 1;
}

static int close_file(void **state)
{
    (void)state;
    gguf_close(f);
    return 0;
}

#define HAS(word) assert_non_null(strstr(err.message, word))

static void integers(void **state)
{
    static const struct {
        const char *key;
        int64_t value;
    } all[] = { { "u8", 200 },        { "i8", -128 }, { "u16", 65535 },     { "i16", -2 },
                { "u32", UINT32_MAX }, { "i32", -1 },  { "i64", INT64_MIN }, { "small64", 12 } };
    loam_error err;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t v = 77;
        assert_int_equal(gguf_get_i64(f, all[i].key, GGUF_REQUIRED, &v, &err), LOAM_OK);
        assert_int_equal(v, all[i].value);
    }
    int64_t v = 77;
    assert_int_equal(gguf_get_i64(f, "u64", GGUF_REQUIRED, &v, &err), LOAM_E_FORMAT);
    HAS("18446744073709551615");
    assert_int_equal(v, 77);
    uint64_t big = 0;
    assert_int_equal(gguf_get_u64(f, "u64", GGUF_REQUIRED, &big, &err), LOAM_OK);
    assert_true(big == UINT64_MAX);
    assert_int_equal(gguf_get_u64(f, "i16", GGUF_REQUIRED, &big, &err), LOAM_E_FORMAT);
    HAS("'i16' is -2");
    uint32_t small = 5;
    assert_int_equal(gguf_get_u32(f, "small64", GGUF_REQUIRED, &small, &err), LOAM_OK);
    assert_int_equal(small, 12);
    assert_int_equal(gguf_get_u32(f, "i8", GGUF_REQUIRED, &small, &err), LOAM_E_FORMAT);
    HAS("'i8' is -128; 0 to 4294967295 are allowed");
    assert_int_equal(gguf_get_u32(f, "f32", GGUF_REQUIRED, &small, &err), LOAM_E_FORMAT);
    HAS("'f32' is of kind float32; an integer is required");
    assert_int_equal(gguf_get_u32(f, "yes", GGUF_REQUIRED, &small, &err), LOAM_E_FORMAT);
    assert_int_equal(gguf_get_u32(f, "ints", GGUF_REQUIRED, &small, &err), LOAM_E_FORMAT);
    HAS("'ints' is an array of int16; an integer is required");
    assert_int_equal(gguf_get_int(f, "u8", GGUF_REQUIRED, (gguf_range){ 1, 199 }, &v, &err), LOAM_E_FORMAT);
    HAS("'u8' is 200; 1 to 199");
    assert_int_equal(gguf_get_int(f, "u8", GGUF_REQUIRED, (gguf_range){ 200, 200 }, &v, &err), LOAM_OK);
    assert_int_equal(small, 12);
}

static void absent(void **state)
{
    loam_error err;
    int64_t i = 1;
    uint32_t u = 2;
    uint64_t w = 3;
    float x = 4;
    bool b = true;
    text_view t = { "default", 7 };
    gguf_array a;
    (void)state;
    assert_int_equal(gguf_get_i64(f, "x", GGUF_OPTIONAL, &i, &err), LOAM_OK);
    assert_int_equal(gguf_get_u32(f, "x", GGUF_OPTIONAL, &u, &err), LOAM_OK);
    assert_int_equal(gguf_get_u64(f, "x", GGUF_OPTIONAL, &w, &err), LOAM_OK);
    assert_int_equal(gguf_get_f32(f, "x", GGUF_OPTIONAL, &x, &err), LOAM_OK);
    assert_int_equal(gguf_get_bool(f, "x", GGUF_OPTIONAL, &b, &err), LOAM_OK);
    assert_int_equal(gguf_get_text(f, "x", GGUF_OPTIONAL, &t, &err), LOAM_OK);
    assert_true(i == 1 && u == 2 && w == 3 && x == 4 && b && t.len == 7);
    assert_int_equal(gguf_get_array(f, "x", GGUF_OPTIONAL, GGUF_INTS, &a, &err), LOAM_OK);
    assert_true(a.count == 0 && !a.data);
    assert_int_equal(gguf_get_i64(f, "no.such.key", GGUF_REQUIRED, &i, &err), LOAM_E_FORMAT);
    HAS("keys.gguf: key 'no.such.key' is missing");
    assert_int_equal(gguf_get_f32(f, "no.such.key", GGUF_REQUIRED, &x, NULL), LOAM_E_FORMAT);
    assert_int_equal(gguf_get_bool(f, "no.such.key", GGUF_REQUIRED, &b, NULL), LOAM_E_FORMAT);
    assert_int_equal(gguf_get_text(f, "no.such.key", GGUF_REQUIRED, &t, NULL), LOAM_E_FORMAT);
    assert_int_equal(gguf_get_array(f, "no.such.key", GGUF_REQUIRED, GGUF_BOOLS, &a, NULL), LOAM_E_FORMAT);
}

static void others(void **state)
{
    loam_error err;
    float x = 0;
    bool b = false;
    text_view t = { NULL, 0 };
    (void)state;
    assert_int_equal(gguf_get_f32(f, "f32", GGUF_REQUIRED, &x, &err), LOAM_OK);
    assert_true(x == 1.5f);
    assert_int_equal(gguf_get_f32(f, "f64", GGUF_REQUIRED, &x, &err), LOAM_OK);
    assert_true(x == -2.25f);
    assert_int_equal(gguf_get_f32(f, "nan", GGUF_REQUIRED, &x, &err), LOAM_E_FORMAT);
    HAS("'nan' is not a number");
    assert_int_equal(gguf_get_f32(f, "u8", GGUF_OPTIONAL, &x, &err), LOAM_E_FORMAT);
    HAS("'u8' is of kind uint8; a float is required");
    assert_int_equal(gguf_get_bool(f, "yes", GGUF_REQUIRED, &b, &err), LOAM_OK);
    assert_true(b);
    assert_int_equal(gguf_get_bool(f, "no", GGUF_REQUIRED, &b, &err), LOAM_OK);
    assert_false(b);
    assert_int_equal(gguf_get_bool(f, "u8", GGUF_REQUIRED, &b, &err), LOAM_E_FORMAT);
    HAS("a bool is required");
    assert_int_equal(gguf_get_text(f, "text", GGUF_REQUIRED, &t, &err), LOAM_OK);
    assert_int_equal(t.len, 3);
    assert_memory_equal(t.data, "abc", 3);
    assert_int_equal(gguf_get_text(f, "nothing", GGUF_REQUIRED, &t, &err), LOAM_OK);
    assert_true(t.len == 0 && t.data);
    assert_int_equal(gguf_get_text(f, "texts", GGUF_REQUIRED, &t, &err), LOAM_E_FORMAT);
    HAS("'texts' is an array of string; a string is required");
}

static void arrays(void **state)
{
    loam_error err;
    gguf_array a;
    text_view t;
    (void)state;
    assert_int_equal(gguf_get_array(f, "ints", GGUF_REQUIRED, GGUF_INTS, &a, &err), LOAM_OK);
    assert_true(a.count == 3 && gguf_int_at(&a, 0) == 1 && gguf_int_at(&a, 1) == 2 && gguf_int_at(&a, 2) == -1);
    assert_int_equal(gguf_get_array(f, "wide", GGUF_REQUIRED, GGUF_INTS, &a, &err), LOAM_OK);
    assert_true(gguf_int_at(&a, 0) == INT64_MAX && gguf_int_at(&a, 1) == 3);
    assert_int_equal(gguf_get_array(f, "floats", GGUF_REQUIRED, GGUF_FLOATS, &a, &err), LOAM_OK);
    assert_true(gguf_f32_at(&a, 0) == 0.5f && gguf_f32_at(&a, 1) == -4);
    assert_int_equal(gguf_get_array(f, "bools", GGUF_REQUIRED, GGUF_BOOLS, &a, &err), LOAM_OK);
    assert_true(gguf_bool_at(&a, 0) && !gguf_bool_at(&a, 1) && gguf_bool_at(&a, 2));
    assert_int_equal(gguf_get_array(f, "texts", GGUF_REQUIRED, GGUF_STRINGS, &a, &err), LOAM_OK);
    gguf_strings it = gguf_strings_of(&a);
    assert_true(gguf_next(&it, &t) && t.len == 3 && memcmp(t.data, "one", 3) == 0);
    assert_true(gguf_next(&it, &t) && t.len == 0);
    assert_true(gguf_next(&it, &t) && t.len == 5 && memcmp(t.data, "three", 5) == 0);
    assert_false(gguf_next(&it, &t));
    assert_int_equal(gguf_get_array(f, "none", GGUF_REQUIRED, GGUF_STRINGS, &a, &err), LOAM_OK);
    it = gguf_strings_of(&a);
    assert_false(gguf_next(&it, &t));
    assert_int_equal(gguf_get_array(f, "ints", GGUF_OPTIONAL, GGUF_STRINGS, &a, &err), LOAM_E_FORMAT);
    HAS("'ints' is an array of int16; an array of strings is required");
    assert_int_equal(gguf_get_array(f, "text", GGUF_OPTIONAL, GGUF_BOOLS, &a, &err), LOAM_E_FORMAT);
    HAS("'text' is of kind string; an array of bools is required");
    assert_int_equal(gguf_get_array(f, "bools", GGUF_OPTIONAL, GGUF_FLOATS, &a, &err), LOAM_E_FORMAT);
}

static void per_block(void **state)
{
    loam_error err;
    uint32_t v[4] = { 9, 9, 9, 9 };
    (void)state;
    assert_int_equal(gguf_get_per_block(f, "x", GGUF_OPTIONAL, v, 4, &err), LOAM_OK);
    assert_int_equal(v[3], 9);
    assert_int_equal(gguf_get_per_block(f, "small64", GGUF_REQUIRED, v, 4, &err), LOAM_OK);
    assert_true(v[0] == 12 && v[3] == 12);
    assert_int_equal(gguf_get_per_block(f, "ints", GGUF_REQUIRED, v, 2, &err), LOAM_OK);
    assert_true(v[0] == 1 && v[1] == 2 && v[2] == 12);
    assert_int_equal(gguf_get_per_block(f, "ints", GGUF_REQUIRED, v, 3, &err), LOAM_E_FORMAT);
    HAS("'ints' is -1");
    assert_int_equal(v[0], 1);
    assert_int_equal(gguf_get_per_block(f, "ints", GGUF_REQUIRED, v, 4, &err), LOAM_E_FORMAT);
    HAS("'ints' has 3 elements; 4 blocks");
    assert_int_equal(gguf_get_per_block(f, "floats", GGUF_REQUIRED, v, 2, &err), LOAM_E_FORMAT);
    assert_int_equal(gguf_get_per_block(f, "i8", GGUF_REQUIRED, v, 2, &err), LOAM_E_FORMAT);
    assert_int_equal(v[1], 2);
}

static void keys_in_order(void **state)
{
    (void)state;
    assert_int_equal(gguf_key_count(f), 22);
    assert_null(gguf_key_at(f, 22));
    const gguf_key *k = gguf_key_at(f, 1);
    assert_true(k->name_len == 2 && memcmp(k->name, "i8", 2) == 0 && k->kind == GGUF_I8 && k->count == 1 && k->bytes == 1);
    assert_ptr_equal(gguf_key_find(f, "i8"), k);
    assert_null(gguf_key_find(f, "i"));
    assert_string_equal(gguf_kind_name(12), "float64");
    assert_string_equal(gguf_kind_name(13), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(integers), cmocka_unit_test(absent),    cmocka_unit_test(others),
                                        cmocka_unit_test(arrays),   cmocka_unit_test(per_block),
                                        cmocka_unit_test(keys_in_order) };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
