/* empty.c - keeps the support library non-empty. */
typedef int loam_test_support_is_not_empty;
