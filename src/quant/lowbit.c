/* lowbit.c - blocks of one or two bits a value and one scale: Q1_0 and Q2_0.
 *
 *   Q1_0  18 B, 128 values   d:f16 | bits[16]        value v: bit v%8 of byte v/8;         y = bit ? d : -d
 *   Q2_0  18 B, 64 values    d:f16 | two bits[16]    value v: bits 2(v%4) of byte v/4;     y = (q - 1) d */
#include "quant/bytes.h"
#include "quant/quant.h"
#include "quant/search.h"

void decode_q1_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 128, b += 18) {
        float d = get_f16(b);
        for (int v = 0; v < 128; v++) out[i + v] = b[2 + v / 8] >> v % 8 & 1 ? d : -d;
    }
}

void decode_q2_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 64, b += 18) {
        float d = get_f16(b);
        for (int v = 0; v < 64; v++) out[i + v] = (float)((b[2 + v / 4] >> 2 * (v % 4) & 3) - 1) * d;
    }
}

/* d is the mean magnitude, summed in index order. */
void encode_q1_0(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 128, b += 18) {
        float sum = 0.0f;
        memset(b + 2, 0, 16);
        for (int v = 0; v < 128; v++) {
            sum += fabsf(in[i + v]);
            b[2 + v / 8] |= (uint8_t)((in[i + v] >= 0.0f) << v % 8);
        }
        put_f16(b, sum / 128.0f);
    }
}

/* d is the largest magnitude, so the fourth level, 2d, is never written. */
void encode_q2_0(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 64, b += 18) {
        float d = abs_max(in + i, 64), id = inverse_or_zero(d);
        put_f16(b, id == 0.0f ? 0.0f : d);
        memset(b + 2, 0, 16);
        for (int v = 0; v < 64; v++) {
            int q = to_level(round_away(in[i + v] * id), -1, 2) + 1;
            b[2 + v / 4] |= (uint8_t)(q << 2 * (v % 4));
        }
    }
}
