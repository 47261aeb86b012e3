/* fp4.c - blocks of E2M1 floats: MXFP4 and NVFP4. y = level(nibble) * half the scale; the levels are doubled.
 *
 *   MXFP4  17 B, 32 values   e:E8M0 | nibbles[16]            byte j: value j (low), value j + 16 (high)
 *   NVFP4  36 B, 64 values   d:UE4M3[4] | nibbles[4][8]      sub-block s of 16 values: byte j: value 16 s + j (low),
 *                                                            value 16 s + 8 + j (high) */
#include "quant/bytes.h"
#include "quant/codebooks.h"
#include "quant/quant.h"
#include "quant/search.h"

/* n values of one scale: byte j holds value j and value j + n/2. */
static void decode_nibbles(const uint8_t *nibbles, float scale, float *out, int n)
{
    for (int j = 0; j < n / 2; j++) {
        out[j] = (float)e2m1_levels[nibbles[j] & 15] * scale;
        out[j + n / 2] = (float)e2m1_levels[nibbles[j] >> 4] * scale;
    }
}

/* The nearest level for each value; a value in the middle goes to the smaller magnitude, and nibble 8, the second zero, is
 * never written. The middles are exact in binary32. */
static void encode_nibbles(const float *x, float scale, uint8_t *nibbles, int n)
{
    static const float middles[7] = { 0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f };
    float level[32] = { 0 };
    for (int k = 0; k < 7 && scale > 0.0f; k++) {
        float middle = middles[k] * scale;
        for (int j = 0; j < n; j++) level[j] += fabsf(x[j]) > middle ? 1.0f : 0.0f;
    }
    uint8_t q[32];
    for (int j = 0; j < n; j++) q[j] = (uint8_t)((int)level[j] + (level[j] > 0.0f && x[j] < 0.0f ? 8 : 0));
    for (int j = 0; j < n / 2; j++) nibbles[j] = (uint8_t)(q[j] | q[j + n / 2] << 4);
}

void decode_mxfp4(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 32, b += 17) decode_nibbles(b + 1, e8m0_half(b[0]), out + i, 32);
}

void decode_nvfp4(const void *in, float *out, int64_t n)
{
    const uint8_t *b = in;
    for (int64_t i = 0; i < n; i += 64, b += 36)
        for (int s = 0; s < 4; s++) decode_nibbles(b + 4 + 8 * s, ue4m3_half(b[s]), out + i + 16 * s, 16);
}

/* The integer part of a binary32 logarithm: just below a power of two 2^p a rounded logarithm reaches p. `steps` is the
 * number of floats below 2^p for which it does; the published files follow it. a is normal and positive. */
static int floor_log2(float a)
{
    static const uint8_t steps[8] = { 0, 1, 2, 5, 11, 22, 44, 44 };
    uint32_t u = bits_of_f32(a);
    int e = (int)(u >> 23) - 127, p = e + 1;
    /* p = -1..2 are exact, 3..4 and -3..-2 lose one float, 5..8 and -7..-4 two, and so on for each doubling. */
    int k = 0, span = p > 0 ? (p - 1) / 2 : -p / 2;
    while (span > 0) {
        k++;
        span >>= 1;
    }
    uint32_t below = (u | 0x7FFFFF) + 1 - u;
    return below <= steps[k] ? p : e;
}

/* Two binades of the scale are left to the levels, whose largest is 6: magnitudes above 6 scales saturate. */
void encode_mxfp4(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 32, b += 17) {
        float a = abs_max(in + i, 32);
        b[0] = a >= 0x1p-125f ? (uint8_t)(floor_log2(a) + 125) : 0;
        encode_nibbles(in + i, e8m0_half(b[0]), b + 1, 32);
    }
}

void encode_nvfp4(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 64, b += 36)
        for (int s = 0; s < 4; s++) {
            b[s] = ue4m3_of_f32(abs_max(in + i + 16 * s, 16) / 6.0f);
            encode_nibbles(in + i + 16 * s, ue4m3_half(b[s]), b + 4 + 8 * s, 16);
        }
}
