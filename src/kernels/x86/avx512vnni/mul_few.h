/* mul_few.h - products of a strip with 1 to FEW columns, straight from the file's layout. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_FEW_H
#define LOAM_KERNELS_AVX512VNNI_MUL_FEW_H

#include "kernels/x86/avx512vnni/mul.h"

INLINE __m512i start(const int32_t *init, const traits t)
{
    if (!t.offset) return _mm512_setzero_si512();
    return t.shift ? _mm512_srai_epi32(broadcast(init), (unsigned)t.shift) : broadcast(init);
}

/* One column: `width` registers times the activations at v, on top of `first`. Up to 3 columns two sums run side by
 * side, for latency. */
INLINE __m512i dot(__m512i first, const __m512i *q, const int8_t *v, int width, int columns)
{
    const bool two = columns <= 3;
    __m512i a = first, b = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < width; i++) {
        if (two && i % 2) b = _mm512_dpbusd_epi32(b, q[i], broadcast(v + 4 * i));
        else a = _mm512_dpbusd_epi32(a, q[i], broadcast(v + 4 * i));
    }
    return two ? _mm512_add_epi32(a, b) : a;
}

INLINE void prefetch(const uint8_t *p, int bytes)
{
    for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *)p + i, _MM_HINT_T1);
}

/* ---- A32 --------------------------------------------------------------------------------------------------------- */

typedef struct few32 {
    const uint8_t *x;
    size_t x_stride;
    traits t;
    int n, block;                /* columns; block of the group */
    __m512i p[FEW];
} few32;

INLINE void few32_sink(void *sink, int block, const __m512i q[8])
{
    (void)block;
    few32 *f = sink;
#pragma GCC unroll 8
    for (int c = 0; c < f->n; c++) {
        const act_a32 *x = (const act_a32 *)(f->x + (size_t)c * f->x_stride);
        f->p[c] = dot(start(&x->init32[f->block], f->t), q, x->q + 32 * f->block, 8, f->n);
    }
}

INLINE void few32_run(const strip *s, const traits t, levels_fn levels, int n)
{
    __m512 acc[FEW];
    for (int c = 0; c < n; c++) acc[c] = y_start(s->y + (size_t)c * s->y_stride, s->rows, s->resume);
    few32 f = { .x = s->x, .x_stride = s->x_stride, .t = t, .n = n };
    const uint8_t *w = s->w, *next = s->next;
    for (int64_t left = s->pieces; left > 0; left -= 8, f.x += sizeof(act_a32)) {
        _Alignas(64) heads32 heads;
        const int blocks = left < 8 ? (int)left : 8;
        if (blocks == 8) gather_heads(w, s->stride, t, 8, &heads);
        else gather_heads(w, s->stride, t, blocks, &heads);
        for (int i = 0; i < blocks; i++, w += t.bytes, next += 16 * t.bytes) {
            prefetch(next, 16 * t.bytes);
            f.block = i;
            levels(w, s->stride, heads.high[i], few32_sink, &f);
            const __m512 d = scale32(&heads, i, t), m = t.has_min ? min32(&heads, i) : d;
#pragma GCC unroll 8
            for (int c = 0; c < n; c++) {
                const act_a32 *x = (const act_a32 *)(f.x + (size_t)c * f.x_stride);
                acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x->d[i])), _mm512_cvtepi32_ps(f.p[c]), acc[c]);
                if (t.has_min) acc[c] = _mm512_fmadd_ps(m, _mm512_set1_ps(x->ds[i]), acc[c]);
            }
        }
    }
    for (int c = 0; c < n; c++) y_store(s->y + (size_t)c * s->y_stride, s->rows, acc[c]);
}

/* ---- A256 -------------------------------------------------------------------------------------------------------- */

typedef struct few256 {
    const uint8_t *x;
    size_t x_stride;
    const head256 *head;
    traits t;
    int n;
    __m512 sum[FEW];
} few256;

/* Sub-block j: `width` registers. */
INLINE void few256_sub(few256 *f, int j, const __m512i *q, int width)
{
    const __m512 scale = _mm512_load_ps(f->head->scale[j]);
#pragma GCC unroll 8
    for (int c = 0; c < f->n; c++) {
        const act_a256 *x = (const act_a256 *)(f->x + (size_t)c * f->x_stride);
        const __m512i p = dot(start(f->t.narrow ? &x->init16[j] : &x->init32[j], f->t), q, x->q + 4 * width * j, width, f->n);
        f->sum[c] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(p), f->sum[c]);
    }
}

INLINE void few256_sink(void *sink, int block, const __m512i q[8])
{
    few256 *f = sink;
    if (f->t.narrow) {
        few256_sub(f, 2 * block, q, 4);
        few256_sub(f, 2 * block + 1, q + 4, 4);
    } else few256_sub(f, block, q, 8);
}

/* The exact sum of minima times sums of activations. */
INLINE __m512i minima(const head256 *h, const act_a256 *x, const traits t)
{
    __m512i sum = _mm512_setzero_si512();
    for (int j = 0; j < (t.narrow ? 8 : 4); j++)
        sum = _mm512_dpwssd_epi32(sum, _mm512_load_si512(h->min[j]), broadcast((t.narrow ? x->sum16 : x->sum32) + 2 * j));
    return sum;
}

INLINE void few256_run(const strip *s, const traits t, head_fn head, levels_fn levels, int n)
{
    __m512 acc[FEW];
    for (int c = 0; c < n; c++) acc[c] = y_start(s->y + (size_t)c * s->y_stride, s->rows, s->resume);
    _Alignas(64) head256 h;
    few256 f = { .x = s->x, .x_stride = s->x_stride, .head = &h, .t = t, .n = n };
    const uint8_t *w = s->w, *next = s->next;
    for (int64_t b = 0; b < s->pieces; b++, w += t.bytes, next += 16 * t.bytes, f.x += sizeof(act_a256)) {
        prefetch(next, 16 * t.bytes);
        head(w, s->stride, &h);
        for (int c = 0; c < n; c++) f.sum[c] = _mm512_setzero_ps();
        levels(w, s->stride, NULL, few256_sink, &f);
#pragma GCC unroll 8
        for (int c = 0; c < n; c++) {
            const act_a256 *x = (const act_a256 *)(f.x + (size_t)c * f.x_stride);
            const __m512 dx = _mm512_set1_ps(x->d);
            acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(h.d), dx), f.sum[c], acc[c]);
            if (!t.has_min) continue;
            acc[c] = _mm512_fnmadd_ps(_mm512_mul_ps(_mm512_load_ps(h.dmin), dx), _mm512_cvtepi32_ps(minima(&h, x, t)), acc[c]);
        }
    }
    for (int c = 0; c < n; c++) y_store(s->y + (size_t)c * s->y_stride, s->rows, acc[c]);
}

#define FEW_COLUMNS(suffix, n, run, ...) static void few##n##_##suffix(const strip *s) { run(s, __VA_ARGS__, n); }
#define FEW_KERNELS(suffix, ...) \
    FEW_COLUMNS(suffix, 1, __VA_ARGS__) FEW_COLUMNS(suffix, 2, __VA_ARGS__) FEW_COLUMNS(suffix, 3, __VA_ARGS__) \
    FEW_COLUMNS(suffix, 4, __VA_ARGS__) FEW_COLUMNS(suffix, 5, __VA_ARGS__) FEW_COLUMNS(suffix, 6, __VA_ARGS__) \
    FEW_COLUMNS(suffix, 7, __VA_ARGS__) FEW_COLUMNS(suffix, 8, __VA_ARGS__)
#define FEW_NAMES(suffix) \
    few1_##suffix, few2_##suffix, few3_##suffix, few4_##suffix, few5_##suffix, few6_##suffix, few7_##suffix, few8_##suffix

#endif
