/* check.h - cmocka with the headers it needs. Its `fail()` macro gives way to Loam's fail(); use fail_msg(). */
#ifndef LOAM_TEST_CHECK_H
#define LOAM_TEST_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail
#undef fail_msg
#define fail_msg(...) do { print_error("ERROR: " __VA_ARGS__); print_error("\n"); _fail(__FILE__, __LINE__); } while (0)

#endif
