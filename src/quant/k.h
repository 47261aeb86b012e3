/* k.h - the packed sub-block scales of the K types, shared by decoders, encoders and kernels. */
#ifndef LOAM_QUANT_K_H
#define LOAM_QUANT_K_H

#include <stdint.h>

/* Q3_K: sixteen 6-bit scales in 12 bytes; the meaning of s is s - 32.
 *   byte j < 8:   low four bits of scale j | of scale j + 8
 *   byte 8 + i:   high two bits of scales i, 4 + i, 8 + i, 12 + i, from the low end up */
static inline int q3k_scale(const uint8_t *scales, int j)
{
    int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    return low | (scales[8 + j % 4] >> 2 * (j / 4) & 3) << 4;
}

/* Q4_K, Q5_K: eight 6-bit scales and eight 6-bit minima in 12 bytes.
 *   byte j < 4:   scale j        | high two bits of scale 4 + j
 *   byte 4 + j:   minimum j      | high two bits of minimum 4 + j
 *   byte 8 + j:   low four bits of scale 4 + j | of minimum 4 + j */
static inline void q4k_scale_min(const uint8_t *scales, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = scales[j] & 63;
        *min = scales[j + 4] & 63;
    } else {
        *scale = (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
        *min = scales[j + 4] >> 4 | scales[j] >> 6 << 4;
    }
}

#endif
