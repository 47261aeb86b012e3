/* k_encode.c - encoders of the K blocks; k.c draws them. */
#include "quant/bytes.h"
#include "quant/k.h"
#include "quant/quant.h"
#include "quant/search.h"

/* The signed maximum goes to level -127, so that no level needs -128. */
void encode_q8_k(const float *in, void *out, int64_t n, const float *weights)
{
    (void)weights;
    uint8_t *b = out;
    for (int64_t i = 0; i < n; i += 256, b += 292) {
        memset(b, 0, 292);
        float f = -127.0f / signed_max(in + i, 256);
        if (fabsf(f) > 3.402823466e38f) continue;
        put_u32(b, bits_of_f32(1.0f / f));
        for (int s = 0; s < 16; s++) {
            int sum = 0;
            for (int v = 16 * s; v < 16 * s + 16; v++) {
                int level = to_level(round_even(f * in[i + v]), -128, 127);
                b[4 + v] = (uint8_t)level;
                sum += level;
            }
            put_u16(b + 260 + 2 * s, (uint16_t)sum);
        }
    }
}
