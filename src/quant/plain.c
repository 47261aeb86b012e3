/* plain.c - element types of one value: floats and integers.
 *
 * Integers hold tables of indexes and the like. They decode to the nearest float and encode to the nearest integer of
 * their range, ties to even, NaN to 0. */
#include <math.h>

#include "quant/bytes.h"
#include "quant/quant.h"

void decode_f32(const void *in, float *out, int64_t n) { memcpy(out, in, (size_t)n * sizeof *out); }

void encode_f32(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    memcpy(out, in, (size_t)n * sizeof *in);
}

void decode_f16(const void *in, float *out, int64_t n)
{
    const uint8_t *p = in;
    for (int64_t i = 0; i < n; i++) out[i] = get_f16(p + 2 * i);
}

void encode_f16(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *p = out;
    for (int64_t i = 0; i < n; i++) put_f16(p + 2 * i, in[i]);
}

void decode_bf16(const void *in, float *out, int64_t n)
{
    const uint8_t *p = in;
    for (int64_t i = 0; i < n; i++) out[i] = bf16_to_f32(get_u16(p + 2 * i));
}

void encode_bf16(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *p = out;
    for (int64_t i = 0; i < n; i++) put_u16(p + 2 * i, f32_to_bf16(in[i]));
}

void decode_f64(const void *in, float *out, int64_t n)
{
    const uint8_t *p = in;
    for (int64_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, p + 8 * i, sizeof v);
        out[i] = (float)v;
    }
}

void encode_f64(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *p = out;
    for (int64_t i = 0; i < n; i++) {
        double v = in[i];
        memcpy(p + 8 * i, &v, sizeof v);
    }
}

#define INTEGER(type, MIN, MAX, codec)                                                 \
    void decode_##codec(const void *in, float *out, int64_t n)                         \
    {                                                                                  \
        const uint8_t *p = in;                                                         \
        for (int64_t i = 0; i < n; i++) {                                              \
            type v;                                                                    \
            memcpy(&v, p + sizeof v * (size_t)i, sizeof v);                            \
            out[i] = (float)v;                                                         \
        }                                                                              \
    }                                                                                  \
    void encode_##codec(const float *in, void *out, int64_t n, const float *weights)   \
    {                                                                                  \
        (void)weights;                                                                 \
        uint8_t *p = out;                                                              \
        for (int64_t i = 0; i < n; i++) {                                              \
            float r = rintf(in[i]);                                                    \
            type v = r >= (float)MAX ? MAX : r <= (float)MIN ? MIN : r == r ? (type)r : 0; \
            memcpy(p + sizeof v * (size_t)i, &v, sizeof v);                            \
        }                                                                              \
    }
INTEGER(int8_t, INT8_MIN, INT8_MAX, i8)
INTEGER(int16_t, INT16_MIN, INT16_MAX, i16)
INTEGER(int32_t, INT32_MIN, INT32_MAX, i32)
INTEGER(int64_t, INT64_MIN, INT64_MAX, i64)
