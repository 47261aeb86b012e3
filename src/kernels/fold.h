/* fold.h - the written order of sums over a row, in plain C.
 *
 *   lane l (0..15) takes the elements l, l + 16, l + 32, ... in ascending order
 *   fold: halves are added, 16 -> 8 -> 4 -> 2 -> 1 (lane i plus lane i + half) */
#ifndef LOAM_KERNELS_FOLD_H
#define LOAM_KERNELS_FOLD_H

#define LANES 16

static inline float fold_lanes(const float lane[LANES])
{
    float t[LANES / 2];
    for (int i = 0; i < LANES / 2; i++) t[i] = lane[i] + lane[i + LANES / 2];
    for (int half = LANES / 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
}

#endif
