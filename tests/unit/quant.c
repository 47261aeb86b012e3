/* quant.c - own tests of the codecs: small floats over all codes, types without published files, round trips, and what
 * is refused. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "loam/quant.h"
#include "quant/bytes.h"
#include "quant/quant.h"
#include "quant/search.h"

#include <cmocka.h> /* last: it has a macro named fail */

static uint64_t seed = 42;

static uint32_t random_u32(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

/* Roughly normal with deviation 1. */
static float random_normal(void)
{
    float sum = 0.0f;
    for (int k = 0; k < 12; k++) sum += (float)random_u32() * 0x1p-32f;
    return sum - 6.0f;
}

/* ---- small floats ------------------------------------------------------------------------------------------------ */

static double f16_value(unsigned h)
{
    int e = (int)(h >> 10 & 31), f = (int)(h & 1023);
    double v = e == 0 ? ldexp(f, -24) : e == 31 ? (f ? NAN : INFINITY) : ldexp(1024 + f, e - 25);
    return h & 0x8000 ? -v : v;
}

static void test_f16_codes(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float y = f16_to_f32((uint16_t)h);
        double want = f16_value(h);
        if (isnan(want)) {
            assert_true(isnan(y));
            assert_int_equal(f32_to_f16(y), (h & 0x8000) | 0x7E00);
            continue;
        }
        assert_true((double)y == want && !signbit(y) == !signbit(want));
        assert_int_equal(f32_to_f16(y), h);
    }
}

/* The code must be the nearest, of two equally near ones the even one. */
static void check_f16(uint32_t u)
{
    float x = f32_of_bits(u);
    if (isnan(x)) return;
    unsigned h = f32_to_f16(x) & 0x7FFF;
    double a = fabs((double)x), limit = 65520.0;
    if (a >= limit) {
        assert_int_equal(h, 0x7C00);
        return;
    }
    assert_true(h < 0x7C00);
    double e = fabs(f16_value(h) - a), up = h == 0x7BFF ? INFINITY : fabs(f16_value(h + 1) - a);
    double down = h ? fabs(f16_value(h - 1) - a) : INFINITY;
    if (e > up || e > down || ((e == up || e == down) && (h & 1))) fail_msg("f16 of %08x is %04x", u, h);
}

static void test_rounding_sweep(void **state)
{
    (void)state;
    for (uint64_t u = 0; u < 0x100000000u; u += 9973) check_f16((uint32_t)u);
    for (unsigned h = 0; h < 0x7C00; h++) {
        uint32_t middle = bits_of_f32((float)((f16_value(h) + (h == 0x7BFF ? 65536.0 : f16_value(h + 1))) / 2));
        for (int k = -1; k <= 1; k++) check_f16(middle + (uint32_t)k);
    }
    for (uint64_t u = 0; u < 0x100000000u; u += 9973) {
        float x = f32_of_bits((uint32_t)u);
        uint16_t h = f32_to_bf16(x);
        if (isnan(x)) {
            assert_true(isnan(bf16_to_f32(h)));
            continue;
        }
        uint32_t low = (uint32_t)u & 0xFFFF, down = (uint32_t)(u >> 16);
        assert_int_equal(h, down + (low > 0x8000 || (low == 0x8000 && (down & 1))));
    }
}

static void test_one_byte_floats(void **state)
{
    (void)state;
    for (int b = 0; b < 256; b++) {
        assert_true((double)e8m0_half((uint8_t)b) == ldexp(1.0, b - 128));
        int e = b >> 3 & 15, f = b & 7;
        double want = b == 0 || b == 0x7F ? 0.0 : e ? ldexp(8 + f, e - 11) : ldexp(f, -10);
        assert_true((double)ue4m3_half((uint8_t)b) == want);
    }
    for (int b = 0; b < 0x78; b++) assert_int_equal(ue4m3_of_f32(2.0f * ue4m3_half((uint8_t)b)), b);
    assert_int_equal(ue4m3_of_f32(247.9f), 0x77);
    assert_int_equal(ue4m3_of_f32(248.0f), 0x7E);
    assert_int_equal(ue4m3_of_f32(1e30f), 0x7E);
    assert_int_equal(ue4m3_of_f32(-1.0f), 0);
    assert_int_equal(ue4m3_of_f32(NAN), 0);
}

/* ---- types without published files --------------------------------------------------------------------------------- */

static void test_plain_types(void **state)
{
    (void)state;
    const float x[6] = { 0.5f, -1.5f, 200.0f, -3e9f, 1e20f, NAN };
    float y[6];
    int8_t i8[6];
    int16_t i16[6];
    int32_t i32[6];
    int64_t i64[6];
    double f64[6];
    encode_i8(x, i8, 6, NULL);
    const int8_t want8[6] = { 0, -2, 127, -128, 127, 0 };
    assert_memory_equal(i8, want8, sizeof i8);
    encode_i16(x, i16, 6, NULL);
    const int16_t want16[6] = { 0, -2, 200, -32768, 32767, 0 };
    assert_memory_equal(i16, want16, sizeof i16);
    encode_i32(x, i32, 6, NULL);
    const int32_t want32[6] = { 0, -2, 200, INT32_MIN, INT32_MAX, 0 };
    assert_memory_equal(i32, want32, sizeof i32);
    encode_i64(x, i64, 6, NULL);
    const int64_t want64[6] = { 0, -2, 200, -3000000000, INT64_MAX, 0 };
    assert_memory_equal(i64, want64, sizeof i64);
    decode_i64(i64, y, 6);
    assert_true(y[3] == -3e9f && y[4] == 0x1p63f);
    decode_i8(i8, y, 6);
    assert_true(y[1] == -2.0f && y[3] == -128.0f);
    encode_f64(x, f64, 6, NULL);
    assert_true(f64[3] == -3e9 && isnan(f64[5]));
    f64[0] = 1.0 + 0x1p-30;
    decode_f64(f64, y, 6);
    assert_true(y[0] == 1.0f && y[4] == 1e20f);
}

static void test_activation_blocks(void **state)
{
    (void)state;
    float x[256], y[256];
    uint8_t q8_1[8 * 36], q8_0[8 * 34], q8_k[292], zero[292] = { 0 };
    for (int i = 0; i < 256; i++) x[i] = random_normal();
    encode_q8_1(x, q8_1, 256, NULL);
    encode_q8_0(x, q8_0, 256, NULL);
    for (int b = 0; b < 8; b++) {
        int sum = 0;
        float d = abs_max(x + 32 * b, 32) / 127.0f;
        assert_memory_equal(q8_1 + 36 * b + 4, q8_0 + 34 * b + 2, 32);
        assert_int_equal(get_u16(q8_1 + 36 * b), f32_to_f16(d));
        for (int v = 0; v < 32; v++) {
            int level = (int8_t)q8_1[36 * b + 4 + v];
            assert_int_equal(level, (int)roundf(x[32 * b + v] * (1.0f / d)));
            sum += level;
        }
        assert_int_equal(get_u16(q8_1 + 36 * b + 2), f32_to_f16((float)sum * d));
    }
    x[7] = 5.5f;
    encode_q8_k(x, q8_k, 256, NULL);
    assert_int_equal((int8_t)q8_k[4 + 7], -127);
    decode_q8_k(q8_k, y, 256);
    float step = 5.5f / 127.0f;
    for (int s = 0; s < 16; s++) {
        int sum = 0;
        for (int v = 16 * s; v < 16 * s + 16; v++) {
            assert_true(fabsf(y[v] - x[v]) <= step * 0.5001f);
            sum += (int8_t)q8_k[4 + v];
        }
        assert_int_equal((int16_t)get_u16(q8_k + 260 + 2 * s), sum);
    }
    memset(x, 0, sizeof x);
    memset(q8_k, 0xAA, sizeof q8_k);
    encode_q8_k(x, q8_k, 256, NULL);
    assert_memory_equal(q8_k, zero, sizeof zero);
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

/* What an exact encoder wrote decodes to values that it encodes to the same bytes. */
static void test_idempotent(void **state)
{
    (void)state;
    const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_BF16, LOAM_F64, LOAM_Q4_0, LOAM_Q5_0, LOAM_Q8_0, LOAM_TQ1_0,
                                LOAM_TQ2_0, LOAM_Q1_0, LOAM_Q2_0, LOAM_MXFP4, LOAM_NVFP4 };
    enum { N = 512 };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int trial = 0; trial < 50; trial++) {
            float x[N], y[N];
            uint8_t first[N * 8], second[N * 8];
            float scale = ldexpf(1.0f, (int)(random_u32() % 8));
            for (int i = 0; i < N; i++) x[i] = scale * random_normal();
            loam_rows shape = { types[t], 1, N };
            uint64_t bytes;
            assert_int_equal(loam_quant_bytes(&shape, &bytes, NULL), LOAM_OK);
            assert_int_equal(loam_quant_encode(&shape, x, NULL, first, bytes, NULL), LOAM_OK);
            assert_int_equal(loam_quant_decode(&shape, first, bytes, y, NULL), LOAM_OK);
            assert_int_equal(loam_quant_encode(&shape, y, NULL, second, bytes, NULL), LOAM_OK);
            if (memcmp(first, second, bytes)) fail_msg("%s is not idempotent", loam_type_name(types[t]));
        }
}

/* The error of normal data, per type: a table of what each must reach (normalised mean square error). */
static void test_error_of_normal_data(void **state)
{
    (void)state;
    static const struct { loam_type type; double nmse; } limits[] = {
        { LOAM_F16, 5e-8 },     { LOAM_BF16, 3e-6 },    { LOAM_Q8_0, 5e-5 },    { LOAM_Q8_1, 5e-5 },   { LOAM_Q8_K, 1e-4 },
        { LOAM_Q4_0, 0.011 },   { LOAM_Q4_1, 0.010 },   { LOAM_Q5_0, 0.003 },   { LOAM_Q5_1, 0.0025 }, { LOAM_Q2_K, 0.11 },
        { LOAM_Q3_K, 0.030 },   { LOAM_Q4_K, 0.0075 },  { LOAM_Q5_K, 0.0019 },  { LOAM_Q6_K, 0.0005 }, { LOAM_IQ4_NL, 0.009 },
        { LOAM_IQ4_XS, 0.009 }, { LOAM_IQ3_S, 0.03 },   { LOAM_IQ3_XXS, 0.06 }, { LOAM_IQ2_S, 0.09 },  { LOAM_IQ2_XS, 0.12 },
        { LOAM_IQ2_XXS, 0.15 }, { LOAM_IQ1_S, 0.40 },   { LOAM_IQ1_M, 0.40 },   { LOAM_MXFP4, 0.02 },  { LOAM_NVFP4, 0.015 },
    };
    enum { N = 2048 };
    static float x[N], y[N], w[N];
    static uint8_t block[N * 4];
    for (int i = 0; i < N; i++) {
        x[i] = random_normal();
        w[i] = 1.0f;
    }
    for (size_t t = 0; t < sizeof limits / sizeof limits[0]; t++)
        for (int weighted = 0; weighted < 2; weighted++) {
            loam_rows shape = { limits[t].type, 1, N };
            uint64_t bytes;
            loam_error err;
            if (!weighted && loam_quant_weight_need(shape.type) == LOAM_WEIGHTS_REQUIRED) continue;
            assert_int_equal(loam_quant_bytes(&shape, &bytes, NULL), LOAM_OK);
            assert_int_equal(loam_quant_encode(&shape, x, weighted ? w : NULL, block, bytes, &err), LOAM_OK);
            assert_int_equal(loam_quant_decode(&shape, block, bytes, y, &err), LOAM_OK);
            double e = 0, s = 0;
            for (int i = 0; i < N; i++) {
                e += (double)(x[i] - y[i]) * (x[i] - y[i]);
                s += (double)x[i] * x[i];
            }
            if (e / s > limits[t].nmse) fail_msg("%s: error %g above %g", loam_type_name(shape.type), e / s, limits[t].nmse);
        }
}

/* Every bit pattern decodes; the data check finds what is not finite. */
static void test_random_blocks(void **state)
{
    (void)state;
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        if (!loam_type_name(type)) continue;
        int n = loam_type_block_values(type), bytes = loam_type_block_bytes(type);
        for (int trial = 0; trial < 3000; trial++) {
            uint8_t block[292];
            float y[256];
            for (int i = 0; i < bytes; i++) block[i] = (uint8_t)random_u32();
            quant_table[type].decode(block, y, n);
            loam_rows shape = { type, 1, n };
            bool finite = true;
            for (int v = 0; v < n; v++) finite &= isfinite(y[v]) != 0;
            loam_status status = loam_quant_check(&shape, block, (uint64_t)bytes, NULL);
            if (status == LOAM_OK && type != LOAM_F64 && type != LOAM_MXFP4 && type != LOAM_Q8_K) assert_true(finite);
            if (status != LOAM_OK) assert_int_equal(status, LOAM_E_NUMERIC);
        }
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    static float x[2 * 256], w[256], y[2 * 256];
    static uint8_t out[2 * 1024];
    loam_error err;
    for (int i = 0; i < 512; i++) x[i] = random_normal();
    for (int i = 0; i < 256; i++) w[i] = 1.0f;
    loam_rows q4 = { LOAM_Q4_K, 2, 256 };
    x[256 + 5] = NAN;
    assert_int_equal(loam_quant_encode(&q4, x, NULL, out, 288, &err), LOAM_E_NUMERIC);
    assert_non_null(strstr(err.message, "row 1, column 5"));
    x[256 + 5] = 0.0f;
    assert_int_equal(loam_quant_encode(&q4, x, NULL, out, 287, &err), LOAM_E_ARG);
    assert_int_equal(loam_quant_encode(&q4, x, NULL, out, 288, &err), LOAM_OK);
    w[9] = -1.0f;
    assert_int_equal(loam_quant_encode(&q4, x, w, out, 288, &err), LOAM_E_NUMERIC);
    assert_non_null(strstr(err.message, "column 9"));
    w[9] = INFINITY;
    assert_int_equal(loam_quant_encode(&q4, x, w, out, 288, &err), LOAM_E_NUMERIC);
    w[9] = 0.0f;
    assert_int_equal(loam_quant_encode(&q4, x, w, out, 288, &err), LOAM_OK);
    const int required[] = { LOAM_IQ2_XXS, LOAM_IQ2_XS, LOAM_IQ1_S };
    for (int k = 0; k < 3; k++) {
        loam_rows shape = { required[k], 1, 256 };
        assert_int_equal(loam_quant_encode(&shape, x, NULL, out, (uint64_t)loam_type_block_bytes(required[k]), &err), LOAM_E_ARG);
        assert_non_null(strstr(err.message, "importance matrix"));
    }
    loam_rows odd = { LOAM_Q8_0, 1, 33 }, unknown = { 4, 1, 32 }, negative = { LOAM_F32, -1, 4 }, none = { LOAM_Q8_0, 0, 32 };
    uint64_t bytes;
    assert_int_equal(loam_quant_bytes(&odd, &bytes, &err), LOAM_E_ARG);
    assert_int_equal(loam_quant_bytes(&unknown, &bytes, &err), LOAM_E_ARG);
    assert_int_equal(loam_quant_bytes(&negative, &bytes, &err), LOAM_E_ARG);
    assert_int_equal(loam_quant_bytes(NULL, &bytes, &err), LOAM_E_ARG);
    loam_rows huge = { LOAM_F32, INT64_MAX, INT64_MAX };
    assert_int_equal(loam_quant_bytes(&huge, &bytes, &err), LOAM_E_ARG);
    assert_int_equal(loam_quant_encode(&none, NULL, NULL, NULL, 0, &err), LOAM_OK);
    assert_int_equal(loam_quant_decode(&q4, NULL, 288, y, &err), LOAM_E_ARG);
    for (int i = 0; i < 32; i++) x[i] = 1e30f;
    const int narrow[] = { LOAM_F16,  LOAM_Q4_0,   LOAM_Q4_1,  LOAM_Q8_0, LOAM_Q6_K,
                           LOAM_Q4_K, LOAM_IQ4_XS, LOAM_IQ3_S, LOAM_IQ1_M };
    for (size_t k = 0; k < sizeof narrow / sizeof narrow[0]; k++) {
        loam_rows shape = { narrow[k], 1, 256 };
        assert_int_equal(loam_quant_bytes(&shape, &bytes, &err), LOAM_OK);
        assert_int_equal(loam_quant_encode(&shape, x, NULL, out, bytes, &err), LOAM_E_NUMERIC);
        assert_non_null(strstr(err.message, "too large"));
    }
    loam_rows mxfp4 = { LOAM_MXFP4, 1, 32 };
    assert_int_equal(loam_quant_encode(&mxfp4, x, NULL, out, 17, &err), LOAM_OK);
    loam_rows q8 = { LOAM_Q8_0, 1, 64 };
    memset(out, 0, 68);
    assert_int_equal(loam_quant_check(&q8, out, 68, &err), LOAM_OK);
    out[34] = 0x00, out[35] = 0x7C;
    assert_int_equal(loam_quant_check(&q8, out, 68, &err), LOAM_E_NUMERIC);
    assert_int_equal(err.offset, 34);
}

/* Extreme finite rows encode to something that decodes to finite values. */
static void test_extremes(void **state)
{
    (void)state;
    const float values[] = { 0.0f, -0.0f, FLT_MIN, 1e-40f, -1e-45f, 1e-20f, -1000.0f, 3.0f };
    static float x[256], w[256], y[256];
    static uint8_t out[2048];
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        if (!loam_type_name(type)) continue;
        for (int trial = 0; trial < 200; trial++) {
            for (int i = 0; i < 256; i++) {
                x[i] = values[trial < 8 ? trial : (int)(random_u32() % 8)];
                w[i] = random_u32() % 3 ? (float)(random_u32() % 100) : 0.0f;
            }
            loam_rows shape = { type, 1, 256 };
            uint64_t bytes;
            loam_error err;
            bool weighted = trial % 2 || loam_quant_weight_need(type) == LOAM_WEIGHTS_REQUIRED;
            assert_int_equal(loam_quant_bytes(&shape, &bytes, NULL), LOAM_OK);
            if (loam_quant_encode(&shape, x, weighted ? w : NULL, out, bytes, &err))
                fail_msg("%s trial %d: %s", loam_type_name(type), trial, err.message);
            assert_int_equal(loam_quant_decode(&shape, out, bytes, y, &err), LOAM_OK);
            for (int i = 0; i < 256; i++) assert_true(isfinite(y[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_codes),         cmocka_unit_test(test_rounding_sweep),
        cmocka_unit_test(test_one_byte_floats),   cmocka_unit_test(test_plain_types),
        cmocka_unit_test(test_activation_blocks), cmocka_unit_test(test_idempotent),
        cmocka_unit_test(test_error_of_normal_data), cmocka_unit_test(test_random_blocks),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
