/* row_codec.c - rows of the element types as the kernels read and write them: src/quant, whose codecs are the law.
 * Every type that has a decoder gets one; encoders only those that a cache may have, all without column weights. */
#include "kernels/kernels.h"
#include "kernels/ref/row.h"
#include "quant/quant.h"

#define CACHE_TYPES(X) \
    X(F32, f32) X(F16, f16) X(BF16, bf16) X(Q8_0, q8_0) X(Q5_1, q5_1) X(Q5_0, q5_0) X(Q4_1, q4_1) X(Q4_0, q4_0) X(IQ4_NL, iq4_nl)

#define ENCODE(NAME, codec) \
    static void encode_row_##codec(const float *in, void *out, int64_t n) { quant_table[LOAM_##NAME].encode(in, out, n, NULL); }
CACHE_TYPES(ENCODE)

void kernels_ref_codec(kernels *k)
{
    for (int t = 0; t < LOAM_TYPE_LIMIT; t++) k->decode[t] = quant_table[t].decode;
#define FILL(NAME, codec) \
    if (quant_table[LOAM_##NAME].encode) k->encode[LOAM_##NAME] = encode_row_##codec;
    CACHE_TYPES(FILL)
}
