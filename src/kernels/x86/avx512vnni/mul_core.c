/* mul_core.c - the integer GEMM: one panel of 16 rows times up to TILE columns, in the written orders of kernels.h. */
#include "kernels/x86/avx512vnni/mul_few.h"

/* Panel bytes have offset 128, or none where the type has minima. */
INLINE void core32(const tile *t, bool has_min, bool split, int n)
{
    __m512 acc[TILE];
#pragma GCC unroll 12
    for (int c = 0; c < n; c++) acc[c] = y_start(t->y + (size_t)c * t->y_stride, t->rows, t->resume);
    const panel32 *w = t->panel;
    for (int64_t b = 0; b < t->pieces; b++, w++) {
        const uint8_t *group = t->x + (size_t)(b / 8) * sizeof(act_a32);
        const int i = (int)(b % 8);
        const __m512 d = _mm512_load_ps(w->d), m = _mm512_load_ps(w->m);
#pragma GCC unroll 2
        for (int half = 0; half < (split ? 2 : 1); half++) {
            __m512i p[TILE];
            const int width = split ? 4 : 8;
#pragma GCC unroll 12
            for (int c = 0; c < n; c++) {
                const act_a32 *x = (const act_a32 *)(group + (size_t)c * t->x_stride);
                p[c] = has_min ? _mm512_setzero_si512() : broadcast(split ? &x->init16[2 * i + half] : &x->init32[i]);
            }
#pragma GCC unroll 8
            for (int j = 0; j < width; j++) {
                const __m512i q = _mm512_load_si512(w->q + 64 * (width * half + j));
#pragma GCC unroll 12
                for (int c = 0; c < n; c++)
                    p[c] = _mm512_dpbusd_epi32(p[c], q,
                        broadcast(group + (size_t)c * t->x_stride + 32 * i + 4 * (width * half + j)));
            }
#pragma GCC unroll 12
            for (int c = 0; c < n; c++) {
                const act_a32 *x = (const act_a32 *)(group + (size_t)c * t->x_stride);
                const __m512 scale = _mm512_mul_ps(half ? m : d, _mm512_set1_ps(x->d[i]));
                acc[c] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(p[c]), acc[c]);
                if (has_min) acc[c] = _mm512_fmadd_ps(m, _mm512_set1_ps(x->ds[i]), acc[c]);
            }
        }
    }
#pragma GCC unroll 12
    for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(t->y + (size_t)c * t->y_stride, t->rows, acc[c]);
}

/* The float sums stay in memory: the registers hold the integers. */
INLINE void core256(const tile *t, bool narrow, bool offset, bool has_min, int n)
{
    const traits k = { .narrow = narrow, .offset = offset, .has_min = has_min };
    _Alignas(64) float acc[TILE][16];
    for (int c = 0; c < n; c++) _mm512_store_ps(acc[c], y_start(t->y + (size_t)c * t->y_stride, t->rows, t->resume));
    const panel256 *w = t->panel;
    const uint8_t *group = t->x;
    for (int64_t b = 0; b < t->pieces; b++, w++, group += sizeof(act_a256)) {
        const int subs = narrow ? 16 : 8, width = narrow ? 4 : 8;
        __m512i sum[TILE];
#pragma GCC unroll 12
        for (int c = 0; c < n; c++) sum[c] = _mm512_setzero_si512();
        for (int j = 0; j < subs; j++) {
            __m512i p[TILE];
#pragma GCC unroll 12
            for (int c = 0; c < n; c++) {
                const act_a256 *x = (const act_a256 *)(group + (size_t)c * t->x_stride);
                p[c] = start(narrow ? &x->init16[j] : &x->init32[j], k);
            }
#pragma GCC unroll 8
            for (int i = 0; i < width; i++) {
                const __m512i q = _mm512_load_si512(w->q + 64 * (width * j + i));
#pragma GCC unroll 12
                for (int c = 0; c < n; c++)
                    p[c] = _mm512_dpbusd_epi32(p[c], q, broadcast(group + (size_t)c * t->x_stride + 4 * (width * j + i)));
            }
            const __m512i scale = _mm512_load_si512(w->head.scale[j]);
#pragma GCC unroll 12
            for (int c = 0; c < n; c++) sum[c] = _mm512_add_epi32(sum[c], _mm512_mullo_epi32(p[c], scale));
        }
#pragma GCC unroll 12
        for (int c = 0; c < n; c++) {
            const act_a256 *x = (const act_a256 *)(group + (size_t)c * t->x_stride);
            _mm512_store_ps(acc[c], steps256(&w->head, x, k, sum[c], _mm512_load_ps(acc[c])));
        }
    }
    for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(t->y + (size_t)c * t->y_stride, t->rows, _mm512_load_ps(acc[c]));
}

#define CORE_N(name, n, fn, ...) static void name##_##n(const tile *t) { fn(t, __VA_ARGS__, n); }
#define CORE(name, ...) \
    CORE_N(name, 1, __VA_ARGS__) CORE_N(name, 2, __VA_ARGS__) CORE_N(name, 3, __VA_ARGS__) CORE_N(name, 4, __VA_ARGS__) \
    CORE_N(name, 5, __VA_ARGS__) CORE_N(name, 6, __VA_ARGS__) CORE_N(name, 7, __VA_ARGS__) CORE_N(name, 8, __VA_ARGS__) \
    const core_fn name[TILE] = { name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8 };

CORE(core32_plain, core32, false, false)
CORE(core32_min, core32, true, false)
CORE(core32_split, core32, false, true)
CORE(core256_wide_min, core256, false, false, true)
CORE(core256_wide_offset, core256, false, true, false)
CORE(core256_narrow_min, core256, true, false, true)
CORE(core256_narrow_offset, core256, true, true, false)
