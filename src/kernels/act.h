/* act.h - the 8-bit forms of activations, the second operand of products with quantized weights.
 *
 * A column of k values is a run of groups of 256; both forms have the same head, so that kernels share addressing:
 *
 *   offset 0    q[256]        levels, -127..127, in the order of k
 *          256  init32[8]     -128 * sum of each 32 levels   } a sum over weights stored as level + 128 starts here and
 *          288  init16[16]    -128 * sum of each 16 levels   } ends at the sum over the levels themselves
 *          352  A32:  d[8] scale of each 32, ds[8] = d * (float)(sum of the 32 levels)
 *               A256: d scale of all 256, sum32[8] and sum16[16] sums of levels, for the minima of K types
 *
 * Levels: a = largest magnitude of the 32 (or 256) values; d = a / 127, q = x * (127 / a) rounded to nearest even. Scales are
 * kept between 2^-87 and 2^93, so that a power of two may move between levels and scales without changing a bit of a
 * product: a < 2^-80 counts as all zeros (d = 0), and a value of 2^100 or more, an infinity or a NaN makes d a NaN, which
 * every product it takes part in then shows. A32 with k not a multiple of 256 (always of 32): the rest of the last
 * group is zeros. */
#ifndef LOAM_KERNELS_ACT_H
#define LOAM_KERNELS_ACT_H

#include <stddef.h>
#include <stdint.h>

#define ACT_GROUP 256
#define ACT_TINY 0x17800000u   /* bits of 2^-80 */
#define ACT_HUGE 0x71800000u   /* bits of 2^100 */
#define ACT_BAD 0x7FC00000u    /* bits of the NaN */

typedef struct act_a32 {
    int8_t q[256];
    int32_t init32[8], init16[16];
    float d[8], ds[8];
    uint8_t pad[32];
} act_a32;

typedef struct act_a256 {
    int8_t q[256];
    int32_t init32[8], init16[16];
    float d;
    int16_t sum32[8], sum16[16];
    uint8_t pad[44];
} act_a256;

_Static_assert(sizeof(act_a32) == 448 && sizeof(act_a256) == 448, "groups are whole cache lines");
_Static_assert(offsetof(act_a32, d) == 352 && offsetof(act_a256, d) == 352, "common head");

#endif
