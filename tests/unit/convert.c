/* convert.c - F16 and BF16 to and from floats, on every instruction set and in the scalar path of the processor: all 65,536
 * halves, the floats around every rounding boundary and a sweep of all floats, against a rounding in double precision. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "check.h"
#include "kernels/kernels.h"
#include "loam/convert.h"

typedef struct format {
    const char *name;
    loam_type type;
    int fraction, bias; /* bits of the fraction, bias of the exponent */
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
} format;

static const format formats[] = {
    { "f16", LOAM_F16, 10, 15, f16_to_f32, f32_to_f16 },
    { "bf16", LOAM_BF16, 7, 127, bf16_to_f32, f32_to_bf16 },
};

static uint32_t infinity_of(const format *f) { return (0x7FFFu >> f->fraction) << f->fraction; }

/* The value of a pattern, from the definition of the format. */
static double exact(const format *f, uint16_t h)
{
    int e = (h & 0x7FFF) >> f->fraction, top = 0x7FFF >> f->fraction;
    uint32_t m = h & ((1u << f->fraction) - 1);
    double v = e == top ? (m ? NAN : INFINITY) : ldexp(e ? m + (1u << f->fraction) : m, (e ? e : 1) - f->bias - f->fraction);
    return h & 0x8000 ? -v : v;
}

/* The pattern nearest to x, by bisection over the magnitudes. */
static uint16_t nearest(const format *f, float x)
{
    uint32_t u = bits_of_f32(x), sign = u >> 16 & 0x8000;
    if (isnan(x)) return (uint16_t)(f->type == LOAM_F16 ? sign | 0x7E00 : u >> 16 | 0x40);
    double a = fabs((double)x);
    uint32_t lo = 0, hi = infinity_of(f);
    /* Infinity stands where the next number would be. */
    double beyond = ldexp(1.0, f->bias + 1);
    if (isinf(x)) return (uint16_t)(sign | hi);
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (exact(f, (uint16_t)mid) <= a) lo = mid;
        else hi = mid;
    }
    double down = a - exact(f, (uint16_t)lo), up = (hi == infinity_of(f) ? beyond : exact(f, (uint16_t)hi)) - a;
    return (uint16_t)(sign | (down < up || (down == up && lo % 2 == 0) ? lo : hi));
}

#define BLOCK 4099 /* odd, so that every set has a rest */

static void check_narrow(const format *f, const kernels *k, const float *x, size_t n)
{
    uint16_t got[BLOCK];
    k->encode[f->type](x, got, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        uint16_t want = nearest(f, x[i]), scalar = f->narrow(x[i]);
        if (got[i] != want || scalar != want)
            fail_msg("%s %s: %a gives %04x, scalar %04x; %04x is right", k->name, f->name, (double)x[i], got[i], scalar, want);
    }
}

static void check_widen(const format *f, const kernels *k)
{
    enum { ALL = 65536 };
    uint16_t *in = malloc(ALL * sizeof *in);
    float *out = malloc(ALL * sizeof *out);
    assert_true(in && out);
    for (int i = 0; i < ALL; i++) in[i] = (uint16_t)i;
    for (int from = 0; from < ALL; from += BLOCK) k->decode[f->type](in + from, out + from, from + BLOCK < ALL ? BLOCK : ALL - from);
    for (int i = 0; i < ALL; i++) {
        double want = exact(f, in[i]);
        float scalar = f->widen(in[i]);
        bool right = isnan(want) ? isnan(out[i]) && isnan(scalar) : (double)out[i] == want && (double)scalar == want;
        right = right && !signbit(out[i]) == !(i & 0x8000) && !signbit(scalar) == !(i & 0x8000);
        if (!right) fail_msg("%s %s: %04x gives %a, scalar %a", k->name, f->name, i, (double)out[i], (double)scalar);
    }
    /* And back: every pattern is its own nearest, but for the payloads of NaN. */
    for (int from = 0; from < ALL; from += BLOCK) check_narrow(f, k, out + from, from + BLOCK < ALL ? BLOCK : (size_t)(ALL - from));
    free(in);
    free(out);
}

/* The floats at, just below and just above the middle between neighbours. */
static void boundaries(const format *f, const kernels *k)
{
    float x[BLOCK];
    size_t n = 0;
    for (uint32_t h = 0; h < infinity_of(f); h++) {
        float a = (float)exact(f, (uint16_t)h), b = (float)exact(f, (uint16_t)(h + 1));
        double middle = isinf(b) ? (double)a + ((double)a - exact(f, (uint16_t)(h - 1))) / 2 : ((double)a + (double)b) / 2;
        uint32_t u = bits_of_f32((float)middle), sign = h & 1 ? 0x80000000 : 0;
        for (int d = -1; d <= 1; d++) x[n++] = f32_of_bits((u + (uint32_t)d) | sign);
        if (n + 3 <= BLOCK && h + 1 < infinity_of(f)) continue;
        check_narrow(f, k, x, n);
        n = 0;
    }
}

static void sweep(const format *f, const kernels *k)
{
    float x[BLOCK];
    size_t n = 0;
    for (uint64_t u = 7; u <= UINT32_MAX; u += 8191) {
        x[n++] = f32_of_bits((uint32_t)u);
        if (n < BLOCK) continue;
        check_narrow(f, k, x, n);
        n = 0;
    }
    check_narrow(f, k, x, n);
}

static void every_set(void **unused)
{
    (void)unused;
    const char *name;
    for (int i = 0; (name = kernels_set_name(i)); i++) {
        const kernels *k = kernels_for(name);
        if (!k) {
            printf("%s: not on this machine\n", name);
            continue;
        }
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            check_widen(&formats[f], k);
            boundaries(&formats[f], k);
            sweep(&formats[f], k);
        }
        printf("%s: all halves, boundaries and a sweep\n", name);
    }
}

static void public_names(void **unused)
{
    (void)unused;
    static const float x[5] = { 0.1f, -65520.0f, 1e-7f, 3.5f, -0.0f };
    uint16_t h[5];
    float back[5];
    loam_f32_to_f16(x, h, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(h[i], nearest(&formats[0], x[i]));
    loam_f16_to_f32(h, back, 5);
    for (int i = 0; i < 5; i++) assert_true((double)back[i] == exact(&formats[0], h[i]));
    loam_f32_to_bf16(x, h, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(h[i], nearest(&formats[1], x[i]));
    loam_bf16_to_f32(h, back, 5);
    for (int i = 0; i < 5; i++) assert_true((double)back[i] == exact(&formats[1], h[i]));
    loam_f32_to_f16(NULL, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_set), cmocka_unit_test(public_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
