/* kerncheck.c - see kerncheck.h. */
#include "kerncheck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/os.h"

#define MARGIN 256
#define POISON 0xA5

static uint64_t state;

uint64_t check_seed(void)
{
    const char *text = getenv("LOAM_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : os_random_u64() & 0xFFFFFFFF;
    state = seed;
    printf("seed %llu\n", (unsigned long long)seed);
    return seed;
}

uint32_t check_u32(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t z = state ^ state >> 29;
    return (uint32_t)(z * 0x9E3779B97F4A7C15u >> 32);
}

int check_below(int n) { return (int)((uint64_t)check_u32() * (uint64_t)n >> 32); }

static float unit(void) { return (float)check_u32() * 0x1p-31f - 1.0f; }

float check_float(shape s)
{
    static const float odd[] = { 0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 3.4e38f, -3.4e38f, 1e-45f, -1e-40f, 1.2e-38f,
                                 88.8f, -87.4f, 65504.0f, 65520.0f, 6e-8f, 2.9e-8f };
    switch (s) {
    case SHAPE_NORMAL: return unit() + unit() + unit();
    case SHAPE_ZEROS: return check_below(8) ? (check_below(2) ? 0.0f : -0.0f) : unit();
    case SHAPE_DENORMAL: return unit() * (check_below(2) ? 1e-38f : 1e-41f);
    case SHAPE_HUGE: return unit() * (check_below(2) ? 1e19f : 1e30f);
    default: break;
    }
    if (check_below(4) == 0) return odd[check_below((int)(sizeof odd / sizeof odd[0]))];
    return check_below(2) ? f32_of_bits(check_u32()) : unit() * 10.0f;
}

void check_fill(float *x, int64_t n, shape s)
{
    for (int64_t i = 0; i < n; i++) {
        float f = check_float(s);
        memcpy((uint8_t *)x + 4 * i, &f, 4);
    }
}

bool check_same(const float *a, const float *b, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        float fa, fb;
        memcpy(&fa, (const uint8_t *)a + 4 * i, 4);
        memcpy(&fb, (const uint8_t *)b + 4 * i, 4);
        if (bits_of_f32(fa) == bits_of_f32(fb) || (fa != fa && fb != fb)) continue;
        printf("%s: element %lld of %lld: expected %a (%g), got %a (%g)\n", what, (long long)i, (long long)n, (double)fa,
               (double)fa, (double)fb, (double)fb);
        return false;
    }
    return true;
}

guard guard_new(size_t bytes, size_t shift)
{
    guard g = { mem_alloc(bytes + shift + 2 * MARGIN), NULL, bytes, shift };
    memset(g.base, POISON, bytes + shift + 2 * MARGIN);
    g.p = g.base + MARGIN + shift;
    return g;
}

float *guard_floats(guard *g) { return (float *)(void *)g->p; }

bool guard_ok(const guard *g, const char *what)
{
    for (size_t i = 0; i < MARGIN; i++) {
        size_t before = MARGIN - 1 - i;
        if (g->base[g->shift + before] != POISON) {
            printf("%s: wrote %zu bytes before its block\n", what, i + 1);
            return false;
        }
        if (g->p[g->bytes + i] != POISON) {
            printf("%s: wrote %zu bytes after its block\n", what, i + 1);
            return false;
        }
    }
    return true;
}

void guard_free(guard *g) { mem_free(g->base); }

void check_sets(void (*fn)(const kernels *ref, const kernels *k))
{
    const kernels *ref = kernels_for("ref");
    for (int i = 0; kernels_set_name(i); i++) {
        const kernels *k = kernels_for(kernels_set_name(i));
        if (!k) {
            printf("%s: not on this machine\n", kernels_set_name(i));
            continue;
        }
        printf("%s\n", k->name);
        fn(ref, k);
    }
}
