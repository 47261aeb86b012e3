/* model_shapes.c - shapes written in symbols, and every table of architectures read through them: each shape must follow from
 * the symbols that arch.h names. */
#include <string.h>

#include "model/arch.h"
#include "model/shape_expr.h"

#include "check.h"

static symbols table(void)
{
    symbols s = { { 0 } };
    for (int i = 0; i < SYMBOLS; i++) s.s[i] = i + 1; /* A 1, B 2, ... D 4, G 7, H 8, K 11 ... */
    return s;
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        { "D", 4 }, { "12", 12 }, { "HK", 88 }, { "HK+2GK", 88 + 154 }, { "D/2", 2 }, { "E/B", 2 },
        { "H(M-R+Z)", 8 * (13 - 18 + 26) },
        { "3HK", 264 }, { "HK-HR+HW", 88 - 144 + 184 }, { "2(F/2)", 6 }, { "(((A)))", 1 }, { "XN", 24 * 14 }, { "F/4", 1 },
    };
    symbols s = table();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t v = -1;
        assert_true(expr_value(cases[i].text, &s, &v));
        if (v != cases[i].value) fail_msg("%s is %lld, expected %lld", cases[i].text, (long long)v, (long long)cases[i].value);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "+", "D+", "d", "D,", "(D", "D)", "D/0", "D/(A-A)", "A-B",
                                       "D D", "((((((D))))))", "D%2" };
    symbols s = table();
    int64_t v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (expr_value(bad[i], &s, &v)) fail_msg("'%s' was taken as %lld", bad[i], (long long)v);
    SYM(s, D) = INT64_MAX;
    assert_false(expr_value("DD", &s, &v));
    assert_false(expr_value("D+D", &s, &v));
    assert_false(expr_value("A-D-D-D", &s, &v));
    assert_true(expr_value("D", &s, &v));
}

static void shapes(void **state)
{
    (void)state;
    symbols s = table();
    int64_t ne[4];
    int n;
    assert_true(expr_shape("D,HK+2GK", &s, ne, &n));
    assert_int_equal(n, 2);
    assert_int_equal(ne[0], 4);
    assert_int_equal(ne[1], 242);
    assert_int_equal(ne[2], 1);
    assert_true(expr_shape("A,B,C,D", &s, ne, &n));
    assert_int_equal(n, 4);
    assert_false(expr_shape("A,B,C,D,E", &s, ne, &n));
    assert_false(expr_shape("A,,B", &s, ne, &n));
    assert_false(expr_shape("A-B,D", &s, ne, &n));
}

/* Every shape of every architecture is of the grammar and positive for ordinary sizes. */
static void tables(void **state)
{
    (void)state;
    symbols s = { { 0 } };
    for (int i = 0; i < SYMBOLS; i++) s.s[i] = 8;
    const arch_spec *a;
    for (int i = 0; (a = arch_at(i)); i++) {
        int64_t ne[4], v;
        int n;
        for (const tensor_rule *r = a->tensors; r && r->slot != T_NONE; r++)
            if (r->shape && !expr_shape(r->shape, &s, ne, &n)) fail_msg("%s: shape '%s'", a->name, r->shape);
        const char *widths[] = { a->experts.width, a->experts.x_default, a->shared.width, a->shared.s_default };
        for (int w = 0; w < 4; w++)
            if (widths[w] && (!expr_value(widths[w], &s, &v) || v <= 0)) fail_msg("%s: width '%s'", a->name, widths[w]);
        for (int j = 0; j < i; j++) assert_string_not_equal(arch_at(j)->name, a->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test(refusals), cmocka_unit_test(shapes), cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
