/* codebooks.h - the codebooks of the IQ types.
 *
 * A grid entry of 8 (or 4) bytes holds its values from the least significant byte up. `_codes` hold the same entries as
 * digits of 2 bits (8 values) or 3 bits (4 values), ascending, for the encoders.
 *
 *   grid         entries  digits 0, 1, 2, ... are
 *   iq2xxs       256      8 25 43
 *   iq2xs        512      8 25 43
 *   iq2s         1024     8 25 43
 *   iq3xxs       256      4 12 20 28 36 44 52 62
 *   iq3s         512      1 3 5 7 9 11 13 15
 *   iq1s         2048     -1 0 1 (signed bytes)
 *
 * Signs: bit i of an 8-bit mask negates value i. Types that store 7 bits of it keep the number of negations even. */
#ifndef LOAM_QUANT_CODEBOOKS_H
#define LOAM_QUANT_CODEBOOKS_H

#include <stdint.h>

extern const uint64_t iq2xxs_grid[256], iq2xs_grid[512], iq2s_grid[1024], iq1s_grid[2048];
extern const uint32_t iq3xxs_grid[256], iq3s_grid[512];
extern const uint16_t iq2xxs_codes[256], iq2xs_codes[512], iq2s_codes[1024], iq1s_codes[2048];
extern const uint16_t iq3xxs_codes[256], iq3s_codes[512];

extern const int8_t iq4_levels[16];    /* IQ4_NL, IQ4_XS; ascending */
extern const int8_t e2m1_levels[16];   /* MXFP4, NVFP4: twice the value of the nibble */

/* The 8-bit mask whose low 7 bits are k (0..127) and that has an even number of ones. */
static inline uint8_t even_signs(unsigned k) { return (uint8_t)(k | (unsigned)__builtin_parity(k) << 7); }

#endif
