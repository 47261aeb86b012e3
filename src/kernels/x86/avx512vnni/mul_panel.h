/* mul_panel.h - unpacking of 16 rows into panels, with the same unpackers as the kernels for few columns.
 *
 * Bytes with a smaller offset are shifted left until it is 128; the power of two is taken out of the scale. Scales of
 * activations have bounds (act.h), so that this changes no bit. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_PANEL_H
#define LOAM_KERNELS_AVX512VNNI_MUL_PANEL_H

#include "kernels/x86/avx512vnni/mul_few.h"

typedef struct store_sink {
    uint8_t *q;
    int shift;
} store_sink;

INLINE void store_levels(void *sink, int block, const __m512i q[8])
{
    const store_sink *to = sink;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        _mm512_store_si512(to->q + 512 * block + 64 * i, to->shift ? LEFT(q[i], (unsigned)to->shift) : q[i]);
}

INLINE __m512 unit(const traits t) { return _mm512_set1_ps(1.0f / (float)(1 << t.shift)); }

INLINE void panel32_run(const uint8_t *w, size_t s, int64_t pieces, panel32 *out, const traits t, levels_fn levels)
{
    for (; pieces > 0; pieces -= 8) {
        _Alignas(64) heads32 heads;
        const int blocks = pieces < 8 ? (int)pieces : 8;
        gather_heads(w, s, t, blocks, &heads);
        for (int i = 0; i < blocks; i++, w += t.bytes, out++) {
            store_sink to = { out->q, t.shift };
            levels(w, s, heads.high[i], store_levels, &to);
            _mm512_store_ps(out->d, _mm512_mul_ps(scale32(&heads, i, t), unit(t)));
            if (t.has_min) _mm512_store_ps(out->m, min32(&heads, i));
        }
    }
}

INLINE void panel256_run(const uint8_t *w, size_t s, int64_t pieces, panel256 *out, const traits t, head_fn head,
                         levels_fn levels)
{
    for (; pieces > 0; pieces--, w += t.bytes, out++) {
        store_sink to = { out->q, t.shift };
        head(w, s, &out->head);
        if (t.shift) _mm512_store_ps(out->head.d, _mm512_mul_ps(_mm512_load_ps(out->head.d), unit(t)));
        levels(w, s, NULL, store_levels, &to);
    }
}

#endif
