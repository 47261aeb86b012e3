/* ternary.c - blocks of three levels: TQ1_0 and TQ2_0, 256 values with one scale. y = (digit - 1) d, digit 0..2.
 *
 *   TQ1_0  54 B   digits[48] | digits[4] | d:f16       a byte is a base-3 fraction t/243 scaled to 256, rounded up
 *     bytes 0..31:   five digits; digit n of byte m is value m + 32 n            (0..159)
 *     bytes 32..47:  five digits; digit n of byte 32 + m is value 160 + m + 16 n (160..239)
 *     bytes 48..51:  four digits; digit n of byte 48 + j is value 240 + j + 4 n  (240..255)
 *   TQ2_0  66 B   two bits[64] | d:f16                 value 128 h + 32 k + l: bits 2k of byte 32 h + l */
#include "quant/bytes.h"
#include "quant/quant.h"
#include "quant/search.h"

/* The three runs of digits of TQ1_0. */
static const struct digit_run {
    int byte, bytes, value, digits;
} runs[3] = { { 0, 32, 0, 5 }, { 32, 16, 160, 5 }, { 48, 4, 240, 4 } };

void decode_tq1_0(const void *in, float *out, int64_t n)
{
    static const uint8_t pow3[5] = { 1, 3, 9, 27, 81 };
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 54) {
        float d = get_f16(b + 52);
        for (const struct digit_run *r = runs; r < runs + 3; r++)
            for (int k = 0; k < r->digits; k++)
                for (int m = 0; m < r->bytes; m++) {
                    int digit = (uint8_t)(b[r->byte + m] * pow3[k]) * 3 >> 8;
                    out[i + r->value + r->bytes * k + m] = (float)(digit - 1) * d;
                }
    }
}

void decode_tq2_0(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 256, b += 66) {
        float d = get_f16(b + 64);
        for (int v = 0; v < 256; v++) {
            int q = b[32 * (v / 128) + v % 32] >> 2 * (v % 128 / 32) & 3;
            out[i + v] = (float)(q - 1) * d;
        }
    }
}

/* Digits of one block; returns d. */
static float digits_of(const float *x, uint8_t digit[256])
{
    float d = abs_max(x, 256), id = inverse_or_zero(d);
    for (int v = 0; v < 256; v++) digit[v] = (uint8_t)(to_level(round_away(x[v] * id), -1, 1) + 1);
    return id == 0.0f ? 0.0f : d;
}

void encode_tq1_0(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 54) {
        uint8_t digit[256];
        put_f16(b + 52, digits_of(in + i, digit));
        for (const struct digit_run *r = runs; r < runs + 3; r++)
            for (int m = 0; m < r->bytes; m++) {
                int t = 0;
                for (int k = 0; k < 5; k++) t = 3 * t + (k < r->digits ? digit[r->value + r->bytes * k + m] : 0);
                b[r->byte + m] = (uint8_t)((256 * t + 242) / 243);
            }
    }
}

void encode_tq2_0(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 66) {
        uint8_t digit[256];
        put_f16(b + 64, digits_of(in + i, digit));
        for (int m = 0; m < 64; m++) {
            const uint8_t *q = digit + 128 * (m / 32) + m % 32;
            b[m] = (uint8_t)((q[0] & 3) | (q[32] & 3) << 2 | (q[64] & 3) << 4 | (q[96] & 3) << 6);
        }
    }
}
