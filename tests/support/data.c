/* data.c - see data.h. */
#include "data.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    if (n < 0 || n == LONG_MAX || fseek(f, 0, SEEK_SET) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (f) fclose(f);
        return NULL;
    }
    char *data = malloc((size_t)n + 1);
    size_t got = data ? fread(data, 1, (size_t)n, f) : 0;
    fclose(f);
    if (got != (size_t)n) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        return NULL;
    }
    data[n] = 0;
    if (size) *size = (size_t)n;
    return data;
}

float *slurp_f32(const char *path, size_t *count)
{
    size_t size;
    char *data = slurp(path, &size);
    if (data && size % sizeof(float) != 0) {
        fprintf(stderr, "%s: %zu bytes are not a whole number of floats\n", path, size);
        free(data);
        return NULL;
    }
    if (data) *count = size / sizeof(float);
    return (float *)(void *)data;
}

int32_t *slurp_ids(const char *path, size_t *count)
{
    size_t size, n = 0;
    char *text = slurp(path, &size);
    int32_t *ids = text ? malloc((size / 2 + 1) * sizeof *ids) : NULL;
    for (char *at = text; ids;) {
        char *end;
        long id = strtol(at, &end, 10);
        if (end == at) break;
        ids[n++] = (int32_t)id;
        at = end;
    }
    free(text);
    *count = n;
    return ids;
}

const char *golden_path(char out[512], const char *rel)
{
    snprintf(out, 512, "%s/%s", LOAM_TEST_DATA, rel);
    return out;
}

bool shared_path(char out[512], const char *rel)
{
    snprintf(out, 512, "%s/%s", LOAM_SHARED_DIR, rel);
    if (access(out, R_OK) == 0) return true;
    printf("SKIP: ../shared/%s is absent\n", rel);
    return false;
}

const char *scratch_path(char out[512], const char *name)
{
    const char *folder = getenv("TMPDIR");
    snprintf(out, 512, "%s/loam-test-%ld-%s", folder && *folder ? folder : "/tmp", (long)getpid(), name);
    return out;
}

bool spill(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(data, 1, size, f) == size;
    return fclose(f) == 0 && ok;
}

double nmse(const float *a, const float *b, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        error += d * d;
        power += (double)b[i] * (double)b[i];
    }
    if (!isfinite(error)) return INFINITY;
    return power > 0 ? error / power : error > 0 ? INFINITY : 0;
}

double max_abs_diff(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = isnan(d) ? INFINITY : d;
    }
    return most;
}

/* SplitMix64. */
uint64_t dice_u64(dice *d)
{
    uint64_t z = d->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint32_t dice_below(dice *d, uint32_t n) { return (uint32_t)((dice_u64(d) >> 32) * n >> 32); }

float dice_uniform(dice *d) { return (float)(dice_u64(d) >> 40) * 0x1p-24f; }

float dice_normal(dice *d)
{
    float sum = -6;
    for (int i = 0; i < 12; i++) sum += dice_uniform(d);
    return sum;
}
