/* codebooks.c - the codebooks of the IQ types, expanded at compile time from their compact form. */
#include "quant/codebooks.h"

#include "quant/codebooks.tab.h"

#define CODE(c) c,
#define DIGIT2(c, i) ((c) >> 2 * (i) & 3)
#define DIGIT3(c, i) ((c) >> 3 * (i) & 7)

/* Eight digits, each through LEVEL, into eight bytes. */
#define BYTE2(LEVEL, c, i) ((uint64_t)LEVEL(DIGIT2(c, i)) << 8 * (i))
#define EIGHT(LEVEL, c)                                                                       \
    (BYTE2(LEVEL, c, 0) | BYTE2(LEVEL, c, 1) | BYTE2(LEVEL, c, 2) | BYTE2(LEVEL, c, 3) |      \
     BYTE2(LEVEL, c, 4) | BYTE2(LEVEL, c, 5) | BYTE2(LEVEL, c, 6) | BYTE2(LEVEL, c, 7)),
#define BYTE3(LEVEL, c, i) ((uint32_t)LEVEL(DIGIT3(c, i)) << 8 * (i))
#define FOUR(LEVEL, c) (BYTE3(LEVEL, c, 0) | BYTE3(LEVEL, c, 1) | BYTE3(LEVEL, c, 2) | BYTE3(LEVEL, c, 3)),

#define LEVEL_IQ2(d) (8 + 17 * (d) + (d) / 2)
#define LEVEL_IQ1(d) (((d) + 255) & 255)
#define LEVEL_IQ3XXS(d) (4 + 8 * (d) + 2 * ((d) / 7))
#define LEVEL_IQ3S(d) (1 + 2 * (d))
#define ENTRY_IQ2(c) EIGHT(LEVEL_IQ2, c)
#define ENTRY_IQ1(c) EIGHT(LEVEL_IQ1, c)
#define ENTRY_IQ3XXS(c) FOUR(LEVEL_IQ3XXS, c)
#define ENTRY_IQ3S(c) FOUR(LEVEL_IQ3S, c)

const uint64_t iq2xxs_grid[256] = { IQ2XXS_CODES(ENTRY_IQ2) };
const uint64_t iq2xs_grid[512] = { IQ2XS_CODES(ENTRY_IQ2) };
const uint64_t iq2s_grid[1024] = { IQ2S_CODES(ENTRY_IQ2) };
const uint64_t iq1s_grid[2048] = { IQ1S_CODES(ENTRY_IQ1) };
const uint32_t iq3xxs_grid[256] = { IQ3XXS_CODES(ENTRY_IQ3XXS) };
const uint32_t iq3s_grid[512] = { IQ3S_CODES(ENTRY_IQ3S) };

const uint16_t iq2xxs_codes[256] = { IQ2XXS_CODES(CODE) };
const uint16_t iq2xs_codes[512] = { IQ2XS_CODES(CODE) };
const uint16_t iq2s_codes[1024] = { IQ2S_CODES(CODE) };
const uint16_t iq1s_codes[2048] = { IQ1S_CODES(CODE) };
const uint16_t iq3xxs_codes[256] = { IQ3XXS_CODES(CODE) };
const uint16_t iq3s_codes[512] = { IQ3S_CODES(CODE) };

const int8_t iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
const int8_t e2m1_levels[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
