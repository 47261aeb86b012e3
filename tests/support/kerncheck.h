/* kerncheck.h - what kernel tests share: a printed and settable seed, shaped inputs, buffers with poisoned margins, and
 * equality of bits (any NaN equals any NaN: its payload depends on the order of operands).
 *
 * LOAM_TEST_SEED=number repeats a run. */
#ifndef LOAM_TESTS_KERNCHECK_H
#define LOAM_TESTS_KERNCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

typedef enum shape { SHAPE_NORMAL, SHAPE_ZEROS, SHAPE_DENORMAL, SHAPE_HUGE, SHAPE_MIXED, SHAPE_COUNT } shape;

uint64_t check_seed(void);                           /* prints it; seeds the generator */
uint32_t check_u32(void);
int check_below(int n);                              /* 0 .. n - 1 */
float check_float(shape s);                          /* MIXED has everything, infinities and NaN too */
void check_fill(float *x, int64_t n, shape s);
bool check_same(const float *a, const float *b, int64_t n, const char *what); /* false: prints the first difference */

/* A block of `bytes` between poisoned margins, `shift` bytes off a 64-byte boundary. */
typedef struct guard {
    uint8_t *base, *p;
    size_t bytes, shift;
} guard;
guard guard_new(size_t bytes, size_t shift);
float *guard_floats(guard *g);                       /* the block */
bool guard_ok(const guard *g, const char *what);     /* margins untouched */
void guard_free(guard *g);

/* Runs fn for every set that this machine has, reference first. */
void check_sets(void (*fn)(const kernels *ref, const kernels *k));

#endif
