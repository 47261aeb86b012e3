/* Pre-tokenizers: pieces of texts that tell the splitters apart, names, and that pieces always cover a text. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "tokenizer/pre.h"

/* The pieces of a text, joined by '|', must be these. */
static void splits(const char *names, const char *text, const char *want)
{
    char list[128], *save = NULL, got[4096];
    snprintf(list, sizeof list, "%s", names);
    for (char *name = strtok_r(list, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        const pre_row *row = pre_find(name, strlen(name));
        glyph g[1024];
        bool same;
        size_t count = uni_glyphs(text, strlen(text), ' ', g, &same), n = 0, from, to;
        pre_walk w;
        assert_non_null(row);
        pre_start(&w, row, g, count);
        while (pre_next(&w, &from, &to)) {
            if (n) got[n++] = '|';
            for (; from < to; from++) n += uni_encode(glyph_cp(g[from]), got + n);
        }
        got[n] = 0;
        if (strcmp(got, want) != 0) fail_msg("%s: '%s' gives '%s', not '%s'", name, text, got, want);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    splits("gpt-2 mpt trillion", " Hello  world", " Hello| | world");
    splits("gpt-2", "don't I'LL", "don|'t| I|'|LL");
    splits("gpt-2", " 's \t", " '|s| \t");
    splits("llama-bpe dbrx glm4 lfm2", "1234567", "123|456|7");
    splits("llama-bpe", "I'LL", "I|'LL");
    splits("llama-bpe", "a\n\n\nb", "a|\n\n\n|b");
    splits("llama-bpe qwen2",
           "e\xCC\x81"
           "a",
           "e|\xCC\x81"
           "a");
    splits("qwen2 stablelm2 llada-moe", "x\r\n\r\n  y", "x|\r\n\r\n| | y");
    splits("laguna", "a \n b", "a| |\n| b");
    splits("deepseek-coder", "x = 12\n", "x| = |1|2|\n");
    splits("deepseek-llm", "\xC3\xA9t\xC3\xA9!? 12\xE4\xBD\xA0  ", "\xC3\xA9|t|\xC3\xA9|!?| |12|\xE4\xBD\xA0|  ");
    splits("falcon", "a+b=1234", "a|+|b|=|123|4");
    splits("default", "a+b 12345", "a|+|b| |123|45");
    splits("starcoder command-r", "x1234 = [5]", "x|1|2|3|4| =| [|5|]");
    splits("afmoe tiny_aya cohere2moe", "ab  1234567", "ab| | |1|234|567");
    splits("afmoe", "  123", " | |123");
    splits("kimi-k2",
           "\xE6\xB1\x89\xE5\xAD\x97"
           "Abc\xE2\x80\x99s don'LL",
           "\xE6\xB1\x89\xE5\xAD\x97|Abc|\xE2\x80\x99s| don'LL");
    splits("deepseek-v3 hunyuan-dense", "abc1234 #include \xE6\x97\xA5\xE6\x9C\xACx",
           "abc|123|4| #|include| |\xE6\x97\xA5\xE6\x9C\xAC|x");
    splits("tekken",
           "HTTPServer \xC3\xA9"
           "Cole I'm",
           "HTTPServer| \xC3\xA9"
           "Cole| I|'m");
    splits("gpt-4o llama4", "HTTPServer's 12345 a/b//\n", "HTTPServer's| |123|45| a|/b|//\n");
    splits("granite-embed-multi-97m",
           "NA\xCC\x88"
           "Ive HTTP",
           "NA\xCC\x88"
           "Ive| HTTP");
    splits("exaone-moe", "the big cat, 12", "the big cat|,| |1|2");
    splits("superbpe", "x1234567 12\xC2\xB2", "x|1|234|567| |12\xC2\xB2");
    splits("qwen35", "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87",
           "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87");
    splits("qwen2", "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87",
           "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8|\xE0\xA5\x8D\xE0\xA4\xA4|\xE0\xA5\x87");
    splits("jais-2", "a       b", "a|    |  | b");
    splits("youtu",
           "camelCase \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E"
           "12",
           "camelCase| |\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E|1|2");
    splits("spark2_5", "!!\n\n 1234", "!!|\n|\n| |1|2|3|4");
    splits("chameleon", "  a\t12!?", "  |a|\t|1|2|!|?");
    splits("chameleon", "<sentinel:12><sentinel:>IMGIMGABZ", "<|sentinel|:|1|2|>|<|sentinel|:|>|IMGIMGABZ");
    splits("bloom poro-chat", "a (b), c!", "a| (|b|),| c|!");
    splits("viking", "a1b", "a|1|b");
    splits("seed-coder", "!!\n\n", "!!|\n\n");
    splits("minicpm5", "ab12345", "ab|123|45");
    splits("ufakzeka", "I'm", "I|'m");
    splits("gemma4 sarvam-moe granite-embed-multi-311m", "a b\n\nc", "a b|\n\n|c");
    splits("whitespace", "a b  c", "a| |b|  |c");
}

static void test_names(void **state)
{
    (void)state;
    assert_ptr_equal(pre_find("", 0), pre_find("default", 7));
    assert_null(pre_find("llama", 5));
    assert_null(pre_find("gpt-2 ", 6));
    assert_null(pre_find("gpt", 3));
    assert_non_null(pre_find("exaone4", 7));
    assert_true(pre_find("llama-bpe", 9)->flags == (PRE_IGNORE_MERGES | PRE_BOS));
    assert_true(pre_find("kimi-k2", 7)->flags == PRE_NOCLEAN);
}

/* One name of every row. */
static const char *const rows[] = { "default",
                                    "gpt-2",
                                    "jina-v1-en",
                                    "trillion",
                                    "starcoder",
                                    "command-r",
                                    "falcon",
                                    "llama3",
                                    "dbrx",
                                    "glm4",
                                    "minicpm5",
                                    "jais-2",
                                    "qwen2",
                                    "stablelm2",
                                    "laguna",
                                    "qwen35",
                                    "ufakzeka",
                                    "seed-coder",
                                    "exaone-moe",
                                    "deepseek-llm",
                                    "deepseek-coder",
                                    "deepseek-v3",
                                    "spark2_5",
                                    "youtu",
                                    "afmoe",
                                    "tiny_aya",
                                    "tekken",
                                    "gpt-4o",
                                    "granite-embed-multi-97m",
                                    "kimi-k2",
                                    "superbpe",
                                    "bloom",
                                    "poro-chat",
                                    "viking",
                                    "chameleon",
                                    "gemma4",
                                    "sarvam-moe",
                                    "whitespace" };

static void covers(const char *name, const glyph *g, size_t n)
{
    pre_walk w;
    size_t at = 0, from, to;
    pre_start(&w, pre_find(name, strlen(name)), g, n);
    while (pre_next(&w, &from, &to)) {
        if (from != at || to <= from || to > n) fail_msg("%s: piece %zu..%zu behind %zu of %zu", name, from, to, at, n);
        at = to;
    }
    assert_int_equal(at, n);
}

static void test_cover(void **state)
{
    static const uint32_t pool[] = { 'a',    'B',    's',   'l',    '\'',    ' ',   ' ',    '\n',   '\r',    '\t',
                                     '1',    '2',    '.',   '/',    '<',     '_',   0,      0xE9,   0x301,   0x3000,
                                     0x4E2D, 0xAC00, 0x664, 0x2026, 0x1F680, 0x378, 0xD800, 0xFFFD, 0x10FFFF };
    glyph g[64];
    dice d = { 1 };
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (int k = 0; k < 3000; k++) {
            size_t n = dice_below(&d, 64);
            for (size_t i = 0; i < n; i++) g[i] = uni_glyph(pool[dice_below(&d, sizeof pool / sizeof *pool)]);
            covers(rows[row], g, n);
        }
}

/* Runs that a careless scanner would walk again and again. A quadratic one would take hours. */
static void test_long_runs(void **state)
{
    static const uint32_t units[][2] = { { ' ', ' ' },      { '7', '7' },  { 'a', 'a' },  { 'A', 'A' }, { '\n', '\n' },
                                         { ' ', '\n' },     { '\'', 's' }, { 'A', 0xE9 }, { '!', '!' }, { 'a', ' ' },
                                         { 0x4E2D, 0x301 }, { '1', ' ' },  { ' ', 'x' } };
    size_t n = 300000;
    glyph *g = malloc(n * sizeof *g);
    (void)state;
    assert_non_null(g);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        for (size_t i = 0; i < n; i++) g[i] = uni_glyph(units[u][i % 2]);
        g[n - 1] = uni_glyph(u % 2 ? 'b' : units[u][1]);
        for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) covers(rows[row], g, n);
    }
    free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces), cmocka_unit_test(test_names), cmocka_unit_test(test_cover),
                                        cmocka_unit_test(test_long_runs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
