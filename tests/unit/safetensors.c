/* safetensors.c - the reader of safetensors files: what it hands out, and each kind of damage refused with the tensor's name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "file/safetensors.h"

#include "check.h"

/* A file of that header and so many bytes of data; for free(). */
static uint8_t *make(const char *header, size_t data, size_t *size)
{
    uint64_t n = strlen(header);
    *size = 8 + n + data;
    uint8_t *bytes = calloc(1, *size + 1);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < data; i++) bytes[8 + n + i] = (uint8_t)i;
    return bytes;
}

static loam_status open_made(const char *header, size_t data, loam_error *err)
{
    size_t size;
    st_file *f;
    uint8_t *bytes = make(header, data, &size);
    loam_status s = st_open_memory(&f, bytes, size, "made", err);
    if (s != LOAM_OK) assert_null(f);
    st_close(f);
    free(bytes);
    return s;
}

static void reads(void **state)
{
    (void)state;
    size_t size;
    st_file *f;
    loam_error err;
    uint8_t *bytes = make("{\"__metadata__\": {\"format\": \"pt\"}, \"b\": {\"dtype\": \"BF16\", \"shape\": [2, 3], \"data_offsets\": [4, 16]},"
                          " \"a\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [0, 4]},"
                          " \"empty\": {\"dtype\": \"I64\", \"shape\": [0, 7], \"data_offsets\": [16, 16]}}   ", 16, &size);
    assert_int_equal(st_open_memory(&f, bytes, size, "made", &err), LOAM_OK);
    assert_int_equal(f->n_tensors, 3);
    assert_true(js_text_is(f->tensors[0].name, "a") && js_text_is(f->tensors[1].name, "b"));
    assert_int_equal(f->tensors[0].n_dims, 0);
    assert_int_equal(f->tensors[1].n_dims, 2);
    assert_int_equal(f->tensors[1].shape[1], 3);
    assert_int_equal(f->tensors[1].data[0], 4);
    assert_int_equal(f->tensors[1].bytes, 12);
    assert_int_equal(f->tensors[2].bytes, 0);
    assert_true(js_text_is(st_metadata(f, "format"), "pt"));
    assert_null(st_metadata(f, "other").data);
    st_close(f);
    for (size_t n = 0; n < size; n++) { /* cut anywhere, it is refused */
        uint8_t *exact = malloc(n + 1);
        memcpy(exact, bytes, n);
        assert_int_equal(st_open_memory(&f, exact, n, "cut", &err), LOAM_E_FORMAT);
        free(exact);
    }
    free(bytes);
}

#define A "\"weight.a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": "

static const struct {
    const char *header;
    size_t data;
    loam_status status;
    const char *says;
} damaged[] = {
    { "{" A "[0, 8]}}", 8, LOAM_OK, NULL },
    { "{" A "[0, 9]}}", 9, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[0, 4]}}", 4, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[0, 8]}}", 4, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[8, 0]}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[-8, 0]}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[1e300, 1e300]}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[0.5, 8.5]}}", 9, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[0]}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{" A "\"0, 8\"}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{" A "[0, 8]}}", 12, LOAM_E_FORMAT, "behind the last" },
    { "{" A "[4, 12]}}", 12, LOAM_E_FORMAT, "gap" },
    { "{" A "[0, 8]}, \"z\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [4, 12]}}", 12, LOAM_E_FORMAT, "'z': overlaps" },
    { "{" A "[0, 8]}, \"z\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}", 8, LOAM_E_FORMAT, "overlaps" },
    { "{\"h\": {\"dtype\": \"I8\", \"shape\": [1], \"data_offsets\": [0, 1]}, " A "[1, 9]}}", 9, LOAM_E_FORMAT, "not aligned" },
    { "{" A "[0, 8]}, " A "[0, 8]}}", 8, LOAM_E_FORMAT, "weight.a" },
    { "{\"x\": {\"dtype\": \"F4\", \"shape\": [2], \"data_offsets\": [0, 1]}}", 1, LOAM_E_UNSUPPORTED, "F4" },
    { "{\"x\": {\"shape\": [2], \"data_offsets\": [0, 1]}}", 1, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": {\"dtype\": \"I8\", \"shape\": 2, \"data_offsets\": [0, 2]}}", 2, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": {\"dtype\": \"I8\", \"shape\": [-1], \"data_offsets\": [0, 2]}}", 2, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": {\"dtype\": \"I8\", \"shape\": [1.5], \"data_offsets\": [0, 2]}}", 2, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": {\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296, 4], \"data_offsets\": [0, 0]}}", 0, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": {\"dtype\": \"I8\", \"shape\": [1,1,1,1,1,1,1,1,1], \"data_offsets\": [0, 1]}}", 1, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": []}", 0, LOAM_E_FORMAT, "'x'" },
    { "{\"x\": ", 0, LOAM_E_FORMAT, "line 1" },
    { "[]", 0, LOAM_E_FORMAT, "JSON object" },
    { "", 0, LOAM_E_FORMAT, "JSON object" },
    { "{}", 0, LOAM_OK, NULL },
    { "{\"\\u0000\": 1}", 0, LOAM_E_FORMAT, "" },
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        loam_error err = { 0 };
        loam_status s = open_made(damaged[i].header, damaged[i].data, &err);
        if (s != damaged[i].status) fail_msg("%s: status %d (%s)", damaged[i].header, (int)s, err.message);
        if (damaged[i].says && !strstr(err.message, damaged[i].says)) fail_msg("%s: '%s'", damaged[i].header, err.message);
        if (damaged[i].says) assert_non_null(strstr(err.message, "made"));
    }
}

/* Nesting without end must not overflow a stack. */
static void deep(void **state)
{
    (void)state;
    char *text = malloc(200001);
    loam_error err;
    memset(text, '[', 200000);
    text[200000] = 0;
    memcpy(text, "{\"x\":", 5);
    assert_int_equal(open_made(text, 0, &err), LOAM_E_FORMAT);
    free(text);
    st_file *f;
    uint8_t huge[16] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, '{' };
    assert_int_equal(st_open_memory(&f, huge, sizeof huge, "made", &err), LOAM_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(reads), cmocka_unit_test(refuses), cmocka_unit_test(deep) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
