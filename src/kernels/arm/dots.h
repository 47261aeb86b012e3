/* dots.h - dots() of mul_tmpl.h row by row. Included after a definition of DOT(sum, a, b): 16 products added to 4 sums. */
static inline __attribute__((always_inline)) int32x4_t dots_of_column(const int8_t *w, size_t step, const int8_t *x, const int n)
{
    int32x4_t s[4];
    for (int r = 0; r < 4; r++) {
        s[r] = DOT(vdupq_n_s32(0), vld1q_s8(w + (size_t)r * step), vld1q_s8(x));
        if (n == 32) s[r] = DOT(s[r], vld1q_s8(w + (size_t)r * step + 16), vld1q_s8(x + 16));
    }
    return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}

#if !defined(DOTS_OF_PAIRS)
static inline __attribute__((always_inline)) void dots(const int8_t *w, size_t step, const int8_t *const *x, const int cols, const int n,
                                                       int32x4_t *out)
{
    for (int c = 0; c < cols; c++) out[c] = dots_of_column(w, step, x[c], n);
}
#endif
