/* data.h - what tests read and compare: files, the data beside the project, random numbers, distances. */
#ifndef LOAM_TEST_DATA_H
#define LOAM_TEST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files: contents belong to the caller, free() them; NULL with a line on stderr where they cannot be read ---- */

char *slurp(const char *path, size_t *size);           /* any file, plus a zero byte at the end; size may be NULL */
float *slurp_f32(const char *path, size_t *count);     /* raw little-endian floats */
int32_t *slurp_ids(const char *path, size_t *count);   /* one decimal id a line */

/* The path of a file that the repository has: tests/golden/data/REL. Storage of the caller, at least 512 bytes. */
const char *golden_path(char out[512], const char *rel);

/* The path of ../shared/REL. False, with one line "SKIP: ..." on stdout, where it does not exist. */
bool shared_path(char out[512], const char *rel);

/* Inside a cmocka test: char path[512]; SHARED_OR_SKIP(path, "models/stories260K-f32.gguf"); */
#define SHARED_OR_SKIP(out, rel) do { if (!shared_path(out, rel)) skip(); } while (0)

/* A path for a scratch file of this process (under TMPDIR or /tmp), and a file with these bytes there. The test
 * removes it. */
const char *scratch_path(char out[512], const char *name);
bool spill(const char *path, const void *data, size_t size);

/* ---- numbers ---- */

/* sum (a - b)^2 / sum b^2, b is what is expected. Infinite when a value of a is not finite, or when b is all zero and a
 * is not. */
double nmse(const float *a, const float *b, size_t n);
double max_abs_diff(const float *a, const float *b, size_t n);

/* The same numbers on every machine. Seed with any value. */
typedef struct dice {
    uint64_t state;
} dice;
uint64_t dice_u64(dice *d);
uint32_t dice_below(dice *d, uint32_t n);   /* 0 .. n - 1 */
float dice_uniform(dice *d);                /* 0 <= x < 1 */
float dice_normal(dice *d);                 /* mean 0, variance 1 (sum of twelve uniforms) */

#endif
