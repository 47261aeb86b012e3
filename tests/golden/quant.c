/* quant.c - every codec against the published blocks: 12 rows x 512 values of different kinds (normal, small, cosine, zero,
 * outliers, constant, positive, tiny, huge, ternary, heavy-tailed), with and without column weights.
 * Decoding is bit-exact (a hash of the decoded rows); encoding gives the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "quant/quant.h"

#include <cmocka.h> /* last: it has a macro named fail */

#define ROWS 12
#define COLS 512

static float input[ROWS * COLS], weights[COLS], decoded[ROWS * COLS];
static uint8_t expected[ROWS * COLS * 4], encoded[ROWS * COLS * 4];

static size_t read_file(const char *name, void *to, size_t limit)
{
    char path[512];
    snprintf(path, sizeof path, LOAM_TEST_DATA "/quant/%s", name);
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    size_t n = fread(to, 1, limit, f);
    fclose(f);
    return n;
}

static int load(void **state)
{
    (void)state;
    return read_file("input.f32", input, sizeof input) == sizeof input &&
           read_file("imatrix.f32", weights, sizeof weights) == sizeof weights ? 0 : -1;
}

static void check_decoder(const loam_rows *shape, const char *stem, unsigned long long hash)
{
    loam_error err;
    assert_int_equal(quant_decode_rows(shape, expected, decoded, &err), LOAM_OK);
    if (XXH64(decoded, sizeof decoded, 0) != hash) fail_msg("%s: decoded rows differ", stem);
}

static int different_rows(const char *stem, size_t row_bytes)
{
    int bad = 0;
    for (int r = 0; r < ROWS; r++) {
        if (memcmp(encoded + row_bytes * (size_t)r, expected + row_bytes * (size_t)r, row_bytes) == 0) continue;
        size_t at = row_bytes * (size_t)r;
        while (encoded[at] == expected[at]) at++;
        print_message("%s: row %d differs from byte %zu on\n", stem, r, at - row_bytes * (size_t)r);
        bad++;
    }
    return bad;
}

static void test_golden(void **state)
{
    (void)state;
    char text[8192] = { 0 };
    assert_true(read_file("decoded.txt", text, sizeof text - 1) > 0);
    int files = 0, bad = 0;
    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        else next = line + strlen(line);
        char stem[64], type_name[64], file[80];
        unsigned long long hash;
        if (*line == '#' || sscanf(line, "%63s %llx", stem, &hash) != 2) continue;
        snprintf(type_name, sizeof type_name, "%s", stem);
        char *dot = strchr(type_name, '.');
        if (dot) *dot = 0;
        loam_rows shape = { loam_type_from_name(type_name), ROWS, COLS };
        assert_true(shape.type >= 0);
        uint64_t bytes;
        assert_int_equal(loam_quant_bytes(&shape, &bytes, NULL), LOAM_OK);
        snprintf(file, sizeof file, "%s.bin", stem);
        assert_int_equal(read_file(file, expected, sizeof expected), bytes);
        check_decoder(&shape, stem, hash);
        loam_error err;
        memset(encoded, 0xAA, sizeof encoded);
        loam_status status = quant_encode_rows(&shape, input, dot ? weights : NULL, encoded, &err);
        if (status) print_message("%s: %s\n", stem, err.message);
        bad += status || different_rows(stem, bytes / ROWS);
        files++;
    }
    assert_int_equal(files, 51);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_golden) };
    return cmocka_run_group_tests(tests, load, NULL);
}
