/* mul.c - integer products with the matrix product of ARMv8.6 (SMMLA): 2 rows x 8 bytes times 2 columns x 8 bytes. One column
 * alone takes dot products. */
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define DOT(sum, a, b) vdotq_s32(sum, a, b)
#define DOTS_OF_PAIRS
#include "kernels/arm/dots.h"

/* The first, or last, 8 bytes of two vectors of 16, side by side. */
#define FIRST8(a, b) vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)))
#define LAST8(a, b) vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)))

static inline __attribute__((always_inline)) void dots(const int8_t *w, size_t step, const int8_t *const *x, const int cols, const int n,
                                                       int32x4_t *out)
{
    if (cols == 1) {
        out[0] = dots_of_column(w, step, x[0], n);
        return;
    }
    int32x4_t s[2] = { vdupq_n_s32(0), vdupq_n_s32(0) }; /* rows 2 r and 2 r + 1: row, column = 0 0, 0 1, 1 0, 1 1 */
    for (int i = 0; i < n; i += 16) {
        const int8x16_t x0 = vld1q_s8(x[0] + i), x1 = vld1q_s8(x[1] + i);
        for (int r = 0; r < 2; r++) {
            const int8x16_t a = vld1q_s8(w + (size_t)(2 * r) * step + i), b = vld1q_s8(w + (size_t)(2 * r + 1) * step + i);
            s[r] = vmmlaq_s32(s[r], FIRST8(a, b), FIRST8(x0, x1));
            s[r] = vmmlaq_s32(s[r], LAST8(a, b), LAST8(x0, x1));
        }
    }
    out[0] = vuzp1q_s32(s[0], s[1]);
    out[1] = vuzp2q_s32(s[0], s[1]);
}
#include "kernels/arm/mul_tmpl.h"

void kernels_i8mm_mul(kernels *k) { fill_mul(k); }
