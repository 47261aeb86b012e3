/* Code points: classes, lower case and base letters of all of Unicode by checksum, lenient decoding, the byte alphabet. */
#include "check.h"

#include <string.h>

#include "tokenizer/unicode.h"

static uint32_t crc_add(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (crc = ~crc; n > 0; n--) {
        crc ^= *p++;
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xEDB88320u & -(crc & 1));
    }
    return ~crc;
}

static uint32_t crc_u32(uint32_t crc, uint32_t v)
{
    uint8_t bytes[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };
    return crc_add(crc, bytes, 4);
}

static void test_tables(void **state)
{
    uint32_t classes = 0, lower = 0, base = 0;
    int spaces = 0;
    (void)state;
    for (uint32_t cp = 0; cp <= UNI_MAX; cp++) {
        uint8_t class = (uint8_t)uni_class(cp);
        classes = crc_add(classes, &class, 1);
        lower = crc_u32(lower, uni_lower(cp));
        base = crc_u32(base, uni_base(cp));
        spaces += uni_space(cp);
    }
    assert_int_equal(classes, 0xA16D6AF8);
    assert_int_equal(lower, 0x51648037);
    assert_int_equal(base, 0x2C4E4EAF);
    assert_int_equal(spaces, 25);
    assert_int_equal(uni_class(0x110000), 1);
}

static void decodes(const char *s, uint32_t cp, size_t bytes)
{
    size_t used;
    assert_int_equal(uni_decode(s, strlen(s) ? strlen(s) : 1, &used), cp);
    assert_int_equal(used, bytes);
}

static void test_decoding(void **state)
{
    (void)state;
    decodes("", 0, 1);
    decodes("\xC3\xA9", 0xE9, 2);
    decodes("\xC0\x80", 0, 2);          /* overlong */
    decodes("\xED\xA0\x80", 0xD800, 3); /* surrogate */
    decodes("\xF4\x8F\xBF\xBF", 0x10FFFF, 4);
    decodes("\xF5\x80\x80\x80", UNI_BAD, 4); /* too large */
    decodes("\x80", UNI_BAD, 1);
    decodes("\xFF", UNI_BAD, 1);
    decodes("\xE2\x96", UNI_BAD, 1);
    decodes("\xE2(\x96", UNI_BAD, 1);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= UNI_MAX; cp++) {
        char text[4];
        size_t used, n = uni_encode(cp, text);
        assert_int_equal(uni_decode(text, n, &used), cp);
        assert_int_equal(used, n);
        assert_int_equal(glyph_bytes(uni_glyph(cp)), n);
        assert_int_equal(glyph_cp(uni_glyph(cp)), cp);
        if (cp < 128) {
            glyph g;
            bool same;
            assert_int_equal(uni_glyphs(text, 1, ' ', &g, &same), 1);
            assert_int_equal(g, uni_glyph(cp));
        }
    }
}

static void test_alphabet(void **state)
{
    char all[256], text[512], back[512];
    size_t n = 0;
    (void)state;
    for (int b = 0; b < 256; b++) {
        assert_int_equal(cp_to_byte(byte_to_cp((uint8_t)b)), b);
        all[b] = (char)b;
        n += uni_encode(byte_to_cp((uint8_t)b), text + n);
    }
    assert_int_equal(bytes_from_alphabet(text, n, back), 256);
    assert_memory_equal(all, back, 256);
    assert_int_equal(byte_to_cp(0x0A), 0x10A);
    assert_int_equal(byte_to_cp(0x20), 0x120);
    assert_int_equal(byte_to_cp(0x7F), 0x121);
    assert_int_equal(byte_to_cp(0xA0), 0x142);
    assert_int_equal(byte_to_cp(0xAD), 0x143);
    for (uint32_t cp = 0x144; cp < 0x3000; cp++) assert_int_equal(cp_to_byte(cp), -1);
    assert_int_equal(cp_to_byte(0x20), -1);
    assert_true(bytes_from_alphabet(" ", 1, back) == SIZE_MAX);
    assert_true(bytes_from_alphabet("\xC4", 1, back) == SIZE_MAX);
    assert_true(bytes_from_alphabet("\xC0\xA1", 2, back) == SIZE_MAX);
}

static void test_glyphs(void **state)
{
    glyph g[16];
    bool same;
    (void)state;
    assert_int_equal(uni_glyphs("a \xC3\xA9", 4, ' ', g, &same), 3);
    assert_true(same);
    assert_int_equal(uni_glyphs("a ", 2, 0x2581, g, &same), 2);
    assert_false(same);
    assert_int_equal(glyph_cp(g[1]), 0x2581);
    assert_int_equal(uni_glyphs("\xC0\xA0", 2, 0x2581, g, &same), 1); /* an overlong space stays one */
    assert_int_equal(glyph_cp(g[0]), ' ');
    assert_false(same);
    assert_int_equal(uni_glyphs("\xFFx", 2, ' ', g, &same), 2);
    assert_false(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tables), cmocka_unit_test(test_decoding),
                                        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_alphabet),
                                        cmocka_unit_test(test_glyphs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
