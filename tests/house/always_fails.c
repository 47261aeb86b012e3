/* always_fails.c - must fail: it checks that a failing test reaches the runner's verdict. */
#include "check.h"

static void test_fails(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_fails) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
