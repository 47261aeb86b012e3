/* hadamard.h - the Hadamard transform of a row in blocks, in place; compiled once per instruction set: the additions are the
 * same ones in the same order everywhere, so the bits are too.
 *
 *   stage h = 1, 2, 4, ...: (x[i], x[i + h]) becomes (x[i] + x[i + h], x[i] - x[i + h])      then all times 1 / sqrt(block)
 *
 * The matrix is symmetric and orthonormal: the transform undoes itself. */
#ifndef LOAM_KERNELS_REF_HADAMARD_H
#define LOAM_KERNELS_REF_HADAMARD_H

#include <math.h>
#include <stdint.h>

static void hadamard(float *x, int64_t n, int64_t block)
{
    const float norm = 1.0f / sqrtf((float)block);
    for (int64_t h = 1; h < block; h *= 2)
        for (int64_t i = 0; i < n; i += 2 * h) {
            float *a = x + i, *b = a + h;
            for (int64_t j = 0; j < h; j++) {
                float sum = a[j] + b[j], difference = a[j] - b[j];
                a[j] = sum;
                b[j] = difference;
            }
        }
    for (int64_t i = 0; i < n; i++) x[i] *= norm;
}

#endif
