/* Bad GGUF files: each must give its status and a message that names the culprit, and must be harmless. */
#include <stdio.h>

#include "check.h"
#include "data.h"
#include "file/gguf.h"
#include "raw.h"

enum { U8 = 0, F32 = 6, STRING = 8, ARRAY = 9, U64 = 10 };
#define NE(...) ((const int64_t[]){ __VA_ARGS__ })
#define HUGE_COUNT UINT64_MAX

static void empty(raw *r) { r->size = 0; }
static void magic_only(raw *r) { r->size = 0; raw_bytes(r, "GGUF", 4); }
static void ggml_magic(raw *r) { r->size = 0; raw_bytes(r, "tjgg", 4); raw_zeros(r, 60); }
static void lfs_pointer(raw *r) { r->size = 0; raw_bytes(r, "version https://git-lfs.github.com/spec/v1\n", 43); }
static void html_page(raw *r) { r->size = 0; raw_bytes(r, "<!DOCTYPE html><html>", 21); }
static void zeros(raw *r) { r->size = 0; raw_zeros(r, 4096); }
static void noise(raw *r) { r->size = 0; raw_bytes(r, "\x01\x93 something else entirely", 26); }
static void header_cut(raw *r) { raw_head(r, 0, 0); r->size = 20; }
static void version_1(raw *r) { raw_head(r, 0, 0); r->data[4] = 1; }
static void version_4(raw *r) { raw_head(r, 0, 0); r->data[4] = 4; }
static void version_0(raw *r) { raw_head(r, 0, 0); r->data[4] = 0; }
static void big_endian(raw *r) { raw_head(r, 0, 0); memcpy(r->data + 4, "\0\0\0\3", 4); }

/* CVE-2024-23605, HO-04 d */
static void keys_2_60(raw *r) { raw_head(r, 0, 1ull << 60); raw_zeros(r, 200); }
static void keys_wrap(raw *r) { raw_head(r, 0, UINT64_MAX / 56 + 2); raw_zeros(r, 200); }
static void keys_negative(raw *r) { raw_head(r, 0, HUGE_COUNT); raw_zeros(r, 200); }
static void keys_more_than_bytes(raw *r) { raw_head(r, 0, 100); raw_key_u32(r, "a", 1); }
static void keys_few_missing(raw *r) { raw_head(r, 0, 2); raw_key_u32(r, "first.key", 1); raw_zeros(r, 8); }
/* CVE-2024-21836, HO-04 e */
static void tensors_negative(raw *r) { raw_head(r, HUGE_COUNT, 0); raw_zeros(r, 200); }
static void tensors_2_61(raw *r) { raw_head(r, 1ull << 61, 0); raw_zeros(r, 200); }

/* HO-01 */
static void key_empty(raw *r) { raw_head(r, 0, 1); raw_key_u32(r, "", 1); raw_u8(r, 0); }
static void key_nul(raw *r) { raw_head(r, 0, 1); raw_u64(r, 3); raw_bytes(r, "a\0b", 3); raw_u32(r, 4); raw_u32(r, 0); }
/* CVE-2024-23496 */
static void key_wrap(raw *r) { raw_head(r, 0, 1); raw_u64(r, UINT64_MAX); raw_zeros(r, 64); }
static void key_long(raw *r) { raw_head(r, 0, 1); raw_u64(r, 65536 - 100); raw_zeros(r, 200); }
static void key_too_long(raw *r) { raw_head(r, 0, 1); raw_u64(r, 70000); raw_zeros(r, 200); }
static void key_twice(raw *r) { raw_head(r, 0, 2); raw_key_u32(r, "same.key", 1); raw_key_u32(r, "same.key", 2); }
static void kind_13(raw *r) { raw_head(r, 0, 1); raw_key(r, "odd.kind", 13); raw_u64(r, 0); }
static void kind_minus_1(raw *r) { raw_head(r, 0, 1); raw_key(r, "odd.kind", UINT32_MAX); raw_u64(r, 0); }
static void key_escape(raw *r) { raw_head(r, 0, 1); raw_key(r, "\x1b[2Jx\xff\xc2\x85\xc3\xa9", 13); raw_u64(r, 0); }

/* HO-04 a: a string of 2^40 bytes in 200 */
static void string_2_40(raw *r) { raw_head(r, 0, 1); raw_key(r, "long.text", STRING); raw_u64(r, 1ull << 40); raw_zeros(r, 150); }
static void string_max(raw *r) { raw_head(r, 0, 1); raw_key(r, "long.text", STRING); raw_u64(r, UINT64_MAX); raw_zeros(r, 150); }
/* CVE-2024-41130, -32878 */
static void string_at_end(raw *r) { raw_head(r, 0, 2); raw_key_u32(r, "a", 1); raw_key(r, "cut.text", STRING); raw_u32(r, 0); }
static void scalar_at_end(raw *r) { raw_head(r, 0, 1); raw_key(r, "cut.number", U64); raw_u32(r, 0); }
static void kind_at_end(raw *r) { raw_head(r, 0, 1); raw_text(r, "cut.kind.and.value"); raw_u8(r, 4); }

/* CVE-2024-21825, HO-04 b, c */
static void array_2_61(raw *r) { raw_head(r, 0, 1); raw_key_array(r, "big.array", U64, 1ull << 61); raw_zeros(r, 100); }
static void array_2_30(raw *r) { raw_head(r, 0, 1); raw_key_array(r, "big.array", U8, 1u << 30); raw_zeros(r, 100); }
static void array_strings(raw *r) { raw_head(r, 0, 1); raw_key_array(r, "big.array", STRING, 1ull << 32); raw_zeros(r, 100); }
static void array_strings_all(raw *r) { raw_head(r, 0, 1); raw_key_array(r, "big.array", STRING, HUGE_COUNT); raw_zeros(r, 100); }
static void array_string_cut(raw *r)
{
    raw_head(r, 0, 1);
    raw_key_array(r, "cut.array", STRING, 2);
    raw_text(r, "ab");
    raw_u64(r, 99);
}
static void array_string_wrap(raw *r)
{
    raw_head(r, 0, 1);
    raw_key_array(r, "cut.array", STRING, 2);
    raw_u64(r, UINT64_MAX - 7);
    raw_zeros(r, 64);
}
static void array_cut(raw *r) { raw_head(r, 0, 1); raw_text(r, "cut.array"); raw_u32(r, ARRAY); raw_u32(r, U8); raw_u32(r, 0); }
/* HO-05 */
static void array_nested(raw *r)
{
    raw_head(r, 0, 1);
    raw_key(r, "nested.array", ARRAY);
    for (int i = 0; i < 5000; i++) {
        raw_u32(r, ARRAY);
        raw_u64(r, 1);
    }
}
static void array_item_99(raw *r) { raw_head(r, 0, 1); raw_key_array(r, "odd.array", 99, 1); raw_u64(r, 0); }

/* HO-03 */
static void alignment(raw *r, uint32_t a)
{
    raw_head(r, 1, 1);
    raw_key_u32(r, "general.alignment", a);
    raw_tensor(r, "t", 1, NE(8), F32 - 6, 0);
    raw_pad(r, a && a <= 4096 ? a : 32);
    raw_zeros(r, 64);
}
static void align_0(raw *r) { alignment(r, 0); }
static void align_1(raw *r) { alignment(r, 1); }
static void align_3(raw *r) { alignment(r, 3); }
static void align_32(raw *r) { alignment(r, 32); }
static void align_2_20(raw *r) { alignment(r, 1u << 20); }
static void align_2_30(raw *r) { alignment(r, 1u << 30); }
static void align_2_31(raw *r) { alignment(r, 1u << 31); }
static void align_u64(raw *r) { raw_head(r, 0, 1); raw_key(r, "general.alignment", U64); raw_u64(r, 32); }
static void align_text(raw *r) { raw_head(r, 0, 1); raw_key(r, "general.alignment", STRING); raw_text(r, "32"); }
static void align_64_laid_32(raw *r)
{
    raw_head(r, 2, 1);
    raw_key_u32(r, "general.alignment", 64);
    raw_tensor(r, "first", 1, NE(8), 0, 0);
    raw_tensor(r, "second", 1, NE(8), 0, 32);
    raw_pad(r, 64);
    raw_zeros(r, 128);
}

/* One tensor of that shape, type and offset, with 4 KB of data. */
static void one_tensor(raw *r, uint32_t n_dims, const int64_t *ne, uint32_t type, uint64_t offset)
{
    raw_head(r, 1, 0);
    raw_tensor(r, "the.tensor", n_dims, ne, type, offset);
    raw_pad(r, 32);
    raw_zeros(r, 4096);
}
/* CVE-2024-21802, gguf-tools#25 */
static void dims_5(raw *r) { one_tensor(r, 5, NE(1, 1, 1, 1, 1), 0, 0); }
static void dims_9(raw *r) { one_tensor(r, 9, NE(1, 1, 1, 1, 1, 1, 1, 1, 1), 0, 0); }
static void dims_all(raw *r) { raw_head(r, 1, 0); raw_text(r, "the.tensor"); raw_u32(r, UINT32_MAX); raw_zeros(r, 4096); }
/* HO-02 */
static void zero_1_0(raw *r) { one_tensor(r, 2, NE(1, 0), 0, 0); }
static void zero_0(raw *r) { one_tensor(r, 1, NE(0), 0, 0); }
static void zero_4031(raw *r) { one_tensor(r, 4, NE(4, 0, 3, 1), 0, 0); }
static void zero_dims(raw *r) { one_tensor(r, 0, NE(0), 0, 0); }
static void zero_huge(raw *r) { one_tensor(r, 4, NE(1ll << 40, 1ll << 40, 0, 1), 0, 0); }
static void ne_negative(raw *r) { one_tensor(r, 2, NE(4, -4), 0, 0); }
/* CVE-2026-33298, GGML_PAD: for plain, legacy and K types */
static void product_wraps(raw *r) { one_tensor(r, 4, NE(1ll << 32, 1ll << 32, 1, 1), 0, 0); }
static void product_wraps_q4(raw *r) { one_tensor(r, 4, NE(1ll << 31, 1ll << 31, 2, 1), 2, 0); }
static void product_wraps_q8(raw *r) { one_tensor(r, 4, NE(32, 1ll << 31, 1ll << 31, 1), 8, 0); }
static void product_wraps_k(raw *r) { one_tensor(r, 4, NE(256, 1ll << 30, 1ll << 30, 1), 12, 0); }
static void bytes_wrap(raw *r) { one_tensor(r, 1, NE(INT64_MAX - 2), 0, 0); }
static void bytes_wrap_f64(raw *r) { one_tensor(r, 2, NE(1ll << 31, 1ll << 31), 28, 0); }
static void pad_wraps(raw *r) { one_tensor(r, 1, NE(INT64_MAX - 2), 24, 0); }
static void block_rest(raw *r) { one_tensor(r, 1, NE(33), 2, 0); }
static void block_rest_k(raw *r) { one_tensor(r, 2, NE(128, 2), 12, 0); }
/* oss-sec V-02..V-06 */
static void type_max(raw *r) { one_tensor(r, 1, NE(32), UINT32_MAX, 0); }
static void type_43(raw *r) { one_tensor(r, 1, NE(32), 43, 0); }
static void type_4(raw *r) { one_tensor(r, 1, NE(32), 4, 0); }
static void type_31(raw *r) { one_tensor(r, 1, NE(32), 31, 0); }
/* CVE-2026-7482 */
static void beyond_end(raw *r) { one_tensor(r, 1, NE(2048), 0, 0); }
static void offset_beyond(raw *r) { one_tensor(r, 1, NE(8), 0, 1u << 20); }
static void offset_wraps(raw *r) { one_tensor(r, 1, NE(8), 0, UINT64_MAX - 31); }
static void offset_odd(raw *r) { one_tensor(r, 1, NE(8), 0, 4); }
static void name_twice(raw *r)
{
    raw_head(r, 2, 0);
    raw_tensor(r, "same.name", 1, NE(8), 0, 0);
    raw_tensor(r, "same.name", 1, NE(8), 0, 32);
    raw_pad(r, 32);
    raw_zeros(r, 64);
}
static void overlap(raw *r)
{
    raw_head(r, 2, 0);
    raw_tensor(r, "under", 1, NE(16), 0, 0);
    raw_tensor(r, "over", 1, NE(16), 0, 32);
    raw_pad(r, 32);
    raw_zeros(r, 128);
}
/* CVE-2025-53630, CVE-2026-27940: sizes that add up past the address space */
static void sum_wraps(raw *r)
{
    raw_head(r, 3, 0);
    raw_tensor(r, "first", 1, NE(1ll << 62), 24, 0);
    raw_tensor(r, "second", 1, NE(1ll << 62), 24, 1ull << 62);
    raw_tensor(r, "third", 2, NE(1ll << 61, 2), 24, 1ull << 63);
    raw_pad(r, 32);
    raw_zeros(r, 64);
}
static void name_nul(raw *r)
{
    raw_head(r, 1, 0);
    raw_u64(r, 3);
    raw_bytes(r, "x\0y", 3);
    raw_zeros(r, 64);
}
static void name_64(raw *r)
{
    raw_head(r, 1, 0);
    raw_tensor(r, "a123456789b123456789c123456789d123456789e123456789f123456789g123", 1, NE(1), 0, 0);
    raw_zeros(r, 64);
}
static void name_empty(raw *r) { raw_head(r, 1, 0); raw_tensor(r, "", 1, NE(1), 0, 0); raw_zeros(r, 64); }
static void name_wrap(raw *r) { raw_head(r, 1, 0); raw_u64(r, UINT64_MAX); raw_zeros(r, 64); }
static void entry_cut(raw *r) { raw_head(r, 1, 0); raw_text(r, "cut.tensor"); raw_u32(r, 2); raw_u64(r, 1); }
static void entry_missing(raw *r)
{
    raw_head(r, 2, 0);
    raw_tensor(r, "first.tensor", 1, NE(8), 0, 0);
    raw_zeros(r, 4);
}

typedef struct bad_file {
    const char *name;
    void (*build)(raw *r);
    loam_status status;
    const char *words[3]; /* in the message */
} bad_file;

#define F LOAM_E_FORMAT
#define U LOAM_E_UNSUPPORTED
static const bad_file bad_files[] = {
    { "empty file", empty, F, { "empty" } },
    { "magic only", magic_only, F, { "header", "byte 4" } },
    { "old magic", ggml_magic, F, { "before GGUF" } },
    { "Git LFS pointer", lfs_pointer, F, { "Git LFS" } },
    { "web page", html_page, F, { "web page" } },
    { "zeros", zeros, F, { "interrupted download" } },
    { "noise", noise, F, { "not a GGUF file" } },
    { "header cut", header_cut, F, { "header" } },
    { "version 1", version_1, U, { "version 1" } },
    { "version 4", version_4, U, { "version 4" } },
    { "version 0", version_0, U, { "version 0" } },
    { "big-endian", big_endian, U, { "big-endian" } },
    { "2^60 keys", keys_2_60, F, { "1152921504606846976 metadata keys", "byte 16" } },
    { "key table wraps", keys_wrap, F, { "metadata keys" } },
    { "-1 keys", keys_negative, F, { "18446744073709551615 metadata keys" } },
    { "more keys than bytes", keys_more_than_bytes, F, { "100 metadata keys" } },
    { "second key missing", keys_few_missing, F, { "key 1" } },
    { "-1 tensors", tensors_negative, F, { "18446744073709551615 tensors", "byte 8" } },
    { "2^61 tensors", tensors_2_61, F, { "2305843009213693952 tensors" } },
    { "empty key", key_empty, F, { "key 0 is empty", "byte 24" } },
    { "zero byte in key", key_nul, F, { "key 0", "zero byte" } },
    { "key length -1", key_wrap, F, { "key 0", "18446744073709551615 bytes" } },
    { "key longer than file", key_long, F, { "key 0", "65436 bytes wanted" } },
    { "key longer than limit", key_too_long, F, { "key 0", "70000 bytes", "65535" } },
    { "doubled key", key_twice, F, { "'same.key' occurs twice" } },
    { "kind 13", kind_13, F, { "'odd.kind'", "unknown value kind 13" } },
    { "kind -1", kind_minus_1, F, { "'odd.kind'", "4294967295" } },
    { "terminal codes in key", key_escape, F, { "'?[2Jx??\xc3\xa9'" } },
    { "string of 2^40", string_2_40, F, { "'long.text'", "1099511627776 bytes wanted" } },
    { "string of -1", string_max, F, { "'long.text'", "18446744073709551615 bytes" } },
    { "string length cut", string_at_end, F, { "'cut.text'", "8 bytes wanted, 4 left" } },
    { "scalar cut", scalar_at_end, F, { "'cut.number'", "8 bytes wanted, 4 left" } },
    { "kind cut", kind_at_end, F, { "'cut.kind.and.value'", "4 bytes wanted, 1 left" } },
    { "array of 2^61", array_2_61, F, { "'big.array'", "2305843009213693952 elements of kind uint64" } },
    { "array of 2^30", array_2_30, F, { "'big.array'", "1073741824 elements" } },
    { "2^32 strings", array_strings, F, { "'big.array'", "4294967296 elements of kind string" } },
    { "-1 strings", array_strings_all, F, { "'big.array'", "18446744073709551615 elements" } },
    { "string in array cut", array_string_cut, F, { "'cut.array'", "99 bytes wanted" } },
    { "string in array wraps", array_string_wrap, F, { "'cut.array'", "18446744073709551608 bytes wanted" } },
    { "array head cut", array_cut, F, { "'cut.array'" } },
    { "nested arrays", array_nested, F, { "'nested.array'", "array of arrays" } },
    { "array of kind 99", array_item_99, F, { "'odd.array'", "unknown element kind 99" } },
    { "alignment 0", align_0, F, { "'general.alignment'", "0 is not allowed" } },
    { "alignment 3", align_3, F, { "'general.alignment'", "3 is not allowed" } },
    { "alignment 2^20", align_2_20, F, { "'general.alignment'", "1048576 is not allowed", "65536" } },
    { "alignment 2^30", align_2_30, F, { "1073741824 is not allowed" } },
    { "alignment 2^31", align_2_31, F, { "2147483648 is not allowed" } },
    { "alignment u64", align_u64, F, { "'general.alignment'", "uint64", "uint32" } },
    { "alignment text", align_text, F, { "'general.alignment'", "string", "uint32" } },
    { "offsets for 32, alignment 64", align_64_laid_32, F, { "'second'", "32", "alignment 64" } },
    { "5 dimensions", dims_5, F, { "'the.tensor'", "5 dimensions" } },
    { "9 dimensions", dims_9, F, { "'the.tensor'", "9 dimensions" } },
    { "2^32 dimensions", dims_all, F, { "'the.tensor'", "4294967295 dimensions" } },
    { "2^40 x 2^40 x 0", zero_huge, F, { "'the.tensor'", "product" } },
    { "negative size", ne_negative, F, { "'the.tensor'", "size 1 is -4" } },
    { "product wraps, f32", product_wraps, F, { "'the.tensor'", "product" } },
    { "product wraps, q4_0", product_wraps_q4, F, { "'the.tensor'", "product" } },
    { "product wraps, q8_0", product_wraps_q8, F, { "'the.tensor'", "product" } },
    { "product wraps, q4_K", product_wraps_k, F, { "'the.tensor'", "product" } },
    { "bytes wrap", bytes_wrap, F, { "'the.tensor'", "overflow" } },
    { "bytes wrap, f64", bytes_wrap_f64, F, { "'the.tensor'", "overflow" } },
    { "padding wraps", pad_wraps, F, { "'the.tensor'", "ends at byte" } },
    { "half a block", block_rest, F, { "'the.tensor'", "rows of 33 values", "q4_0 blocks of 32" } },
    { "half a super-block", block_rest_k, F, { "'the.tensor'", "rows of 128 values", "q4_K" } },
    { "type -1", type_max, F, { "'the.tensor'", "element type 4294967295" } },
    { "type 43", type_43, F, { "'the.tensor'", "element type 43" } },
    { "removed type 4", type_4, U, { "'the.tensor'", "element type 4", "removed" } },
    { "removed type 31", type_31, U, { "'the.tensor'", "element type 31", "removed" } },
    { "data beyond end", beyond_end, F, { "'the.tensor'", "ends at byte 8288", "the file has 4192" } },
    { "offset beyond end", offset_beyond, F, { "'the.tensor'", "the file has" } },
    { "offset wraps", offset_wraps, F, { "'the.tensor'", "overflows" } },
    { "odd offset", offset_odd, F, { "'the.tensor'", "offset 4", "alignment 32" } },
    { "doubled tensor", name_twice, F, { "'same.name' occurs twice" } },
    { "overlapping tensors", overlap, F, { "'over'", "begins before the end" } },
    { "sum of sizes wraps", sum_wraps, F, { "'first'", "the file has" } },
    { "zero byte in name", name_nul, F, { "tensor 0", "zero byte" } },
    { "name of 64", name_64, F, { "tensor 0", "64 bytes" } },
    { "empty name", name_empty, F, { "tensor 0", "0 bytes" } },
    { "name length -1", name_wrap, F, { "tensor 0", "18446744073709551615 bytes" } },
    { "entry cut", entry_cut, F, { "'cut.tensor'", "8 bytes wanted, 0 left" } },
    { "second entry missing", entry_missing, F, { "name of tensor 1", "8 bytes wanted, 4 left" } },
};

static void check_bad(const bad_file *c, loam_status got, const loam_error *err)
{
    if (got != c->status) fail_msg("%s: status %d in place of %d (%s)", c->name, got, c->status, got ? err->message : "opened");
    for (int i = 0; i < 3 && c->words[i]; i++)
        if (!strstr(err->message, c->words[i])) fail_msg("%s: no \"%s\" in \"%s\"", c->name, c->words[i], err->message);
    if (!strstr(err->message, "bad.gguf")) fail_msg("%s: no file name in \"%s\"", c->name, err->message);
}

static raw bytes;

static void every_bad_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        gguf_file *f;
        loam_error err;
        bad_files[i].build(&bytes);
        uint8_t *exact = malloc(bytes.size + 1); /* so that a sanitizer sees a read beyond the end */
        memcpy(exact, bytes.data, bytes.size);
        loam_status s = gguf_open_memory(&f, exact, bytes.size, "bad.gguf", &err);
        free(exact);
        assert_null(f);
        check_bad(&bad_files[i], s, &err);
    }
    printf("%zu bad files\n", sizeof bad_files / sizeof *bad_files);
}

/* The same from disk, mapped and read; afterwards a good file opens. */
static void every_bad_file_on_disk(void **state)
{
    char path[512];
    (void)state;
    scratch_path(path, "bad.gguf");
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++)
        for (unsigned flags = 0; flags <= GGUF_READ; flags++) {
            gguf_file *f;
            loam_error err;
            bad_files[i].build(&bytes);
            assert_true(spill(path, bytes.data, bytes.size));
            check_bad(&bad_files[i], gguf_open(&f, path, flags, &err), &err);
        }
    gguf_file *f;
    align_32(&bytes);
    assert_true(spill(path, bytes.data, bytes.size));
    assert_int_equal(gguf_open(&f, path, 0, NULL), LOAM_OK);
    gguf_close(f);
    remove(path);
}

/* Without an error record the same statuses come back. */
static void no_error_record(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        gguf_file *f;
        bad_files[i].build(&bytes);
        assert_int_equal(gguf_open_memory(&f, bytes.data, bytes.size, "bad.gguf", NULL), bad_files[i].status);
    }
}

/* An allocator that remembers the most bytes that were alive. */
static size_t alive, most_alive;

static void *counting(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    alive += new_size - (p ? old_size : 0);
    if (alive > most_alive) most_alive = alive;
    if (new_size > 0) return realloc(p, new_size);
    free(p);
    return NULL;
}

/* HO-04: lengths do not drive allocation. */
static void memory_stays_small(void **state)
{
    (void)state;
    loam_set_allocator(&(loam_allocator){ counting, NULL });
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        gguf_file *f;
        bad_files[i].build(&bytes);
        gguf_open_memory(&f, bytes.data, bytes.size, "bad.gguf", NULL);
        assert_int_equal(alive, 0);
    }
    loam_set_allocator(NULL);
    printf("at most %zu bytes for a bad file\n", most_alive);
    assert_true(most_alive > 0 && most_alive < 1u << 20);
}

/* Odd, but whole: these open. */
static void odd_good_files(void **state)
{
    static void (*const good[])(raw *) = { zero_1_0, zero_0, zero_4031, zero_dims, align_1, align_32 };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        gguf_file *f;
        loam_error err;
        good[i](&bytes);
        if (gguf_open_memory(&f, bytes.data, bytes.size, "good.gguf", &err) != LOAM_OK)
            fail_msg("good file %zu: %s", i, err.message);
        const gguf_tensor *t = gguf_tensor_at(f, 0);
        assert_non_null(t);
        if (i < 3) {
            assert_null(t->data);
            assert_int_equal(t->bytes, 0);
            assert_int_equal(gguf_values(t), 0);
        }
        if (i == 3) assert_int_equal(gguf_values(t), 1);
        gguf_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_bad_file), cmocka_unit_test(every_bad_file_on_disk),
                                        cmocka_unit_test(no_error_record), cmocka_unit_test(memory_stays_small),
                                        cmocka_unit_test(odd_good_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
