/* mul_core.c - the integer GEMM: up to 3 panels of 16 rows times up to 4 columns, in the written orders of kernels.h.
 *
 * Each activation dword is loaded once for 3 panels and each weight register once for 4 columns: 7 loads for 12 products.
 * 12 sums in flight hide the latency of vpdpbusd. */
#include "kernels/x86/avx512vnni/mul_few.h"

INLINE const uint8_t *column(const tile *t, int c) { return t->x + (size_t)c * t->x_stride; }
INLINE float *y_at(const tile *t, int p, int c) { return t->y + (size_t)c * t->y_stride + 16 * p; }
INLINE int rows_of(const tile *t, int p, int panels) { return p + 1 < panels ? LANES : t->last_rows; }

#define EACH_PANEL _Pragma("GCC unroll 3") for (int p = 0; p < panels; p++)
#define EACH_COLUMN _Pragma("GCC unroll 4") for (int c = 0; c < cols; c++)

/* sums[p][c] += 4 * width values from byte `at` of the group of the columns and from w of the panels on. */
INLINE void multiply(const tile *t, const uint8_t *const w[TILE_PANELS], size_t at, int width, int panels, int cols,
                     __m512i sums[TILE_PANELS][TILE_COLUMNS])
{
#pragma GCC unroll 8
    for (int i = 0; i < width; i++) {
        __m512i q[TILE_PANELS];
        EACH_PANEL q[p] = _mm512_load_si512(w[p] + 64 * i);
        EACH_COLUMN {
            const __m512i x = broadcast(column(t, c) + at + 4 * i);
            EACH_PANEL sums[p][c] = _mm512_dpbusd_epi32(sums[p][c], q[p], x);
        }
    }
}

/* The running state of core32. */
typedef struct sums32 {
    const panel32 *w;
    size_t group, i;             /* offset of the activation group, block in it */
    __m512 acc[TILE_PANELS][TILE_COLUMNS];
} sums32;

/* One step: half -1 is all 32 values of the block; 0 and 1 are 16 of a split type. */
INLINE void step32(const tile *t, sums32 *s, int half, bool has_min, int panels, int cols)
{
    const panel32 *w = s->w;
    const size_t group = s->group, i = s->i;
    const size_t next = (size_t)t->pieces;   /* from one panel to the next */
    const int width = half < 0 ? 8 : 4, from = half > 0 ? 4 : 0;
    __m512i sums[TILE_PANELS][TILE_COLUMNS];
    __m512 d[TILE_PANELS], m[TILE_PANELS];
    const uint8_t *q[TILE_PANELS];
    EACH_PANEL q[p] = w[(size_t)p * next].q + 64 * from;
    EACH_COLUMN {
        const act_a32 *x = (const act_a32 *)(column(t, c) + group);
        const int32_t *init = half < 0 ? &x->init32[i] : &x->init16[2 * i + (size_t)half];
        const __m512i first = has_min ? _mm512_setzero_si512() : broadcast(init);
        EACH_PANEL sums[p][c] = first;
    }
    multiply(t, q, group + 32 * i + (size_t)(4 * from), width, panels, cols, sums);
    EACH_PANEL d[p] = _mm512_load_ps(half > 0 ? w[(size_t)p * next].m : w[(size_t)p * next].d);
    EACH_PANEL m[p] = has_min ? _mm512_load_ps(w[(size_t)p * next].m) : d[p];
    EACH_COLUMN {
        const act_a32 *x = (const act_a32 *)(column(t, c) + group);
        const __m512 dx = _mm512_set1_ps(x->d[i]);
        EACH_PANEL s->acc[p][c] = _mm512_fmadd_ps(_mm512_mul_ps(d[p], dx), _mm512_cvtepi32_ps(sums[p][c]), s->acc[p][c]);
        if (!has_min) continue;
        const __m512 ds = _mm512_set1_ps(x->ds[i]);
        EACH_PANEL s->acc[p][c] = _mm512_fmadd_ps(m[p], ds, s->acc[p][c]);
    }
}

/* Panel bytes have offset 128, or none where the type has minima. */
INLINE void core32(const tile *t, bool has_min, bool split, int panels, int cols)
{
    sums32 s;
    EACH_PANEL EACH_COLUMN s.acc[p][c] = y_start(y_at(t, p, c), rows_of(t, p, panels), t->resume);
    s.w = t->panel;
    for (int64_t b = 0; b < t->pieces; b++, s.w++) {
        s.group = (size_t)(b / 8) * sizeof(act_a32);
        s.i = (size_t)(b % 8);
        if (split) {
            step32(t, &s, 0, has_min, panels, cols);
            step32(t, &s, 1, has_min, panels, cols);
        } else step32(t, &s, -1, has_min, panels, cols);
    }
    EACH_PANEL EACH_COLUMN y_store(y_at(t, p, c), rows_of(t, p, panels), s.acc[p][c]);
}

/* The float sums stay in memory: the registers hold the integers. */
INLINE void core256(const tile *t, bool narrow, bool offset, bool has_min, int panels, int cols)
{
    const traits k = { .narrow = narrow, .offset = offset, .has_min = has_min };
    const int subs = narrow ? 16 : 8, width = narrow ? 4 : 8;
    _Alignas(64) float acc[TILE_PANELS][TILE_COLUMNS][16];
    EACH_PANEL EACH_COLUMN _mm512_store_ps(acc[p][c], y_start(y_at(t, p, c), rows_of(t, p, panels), t->resume));
    const panel256 *w = t->panel;
    const size_t next = (size_t)t->pieces;
    size_t group = 0;
    for (int64_t b = 0; b < t->pieces; b++, w++, group += sizeof(act_a256)) {
        __m512 total[TILE_PANELS][TILE_COLUMNS];
        EACH_PANEL EACH_COLUMN total[p][c] = _mm512_setzero_ps();
#pragma GCC unroll 1
        for (int j = 0; j < subs; j++) {
            __m512i sums[TILE_PANELS][TILE_COLUMNS];
            const uint8_t *q[TILE_PANELS];
            EACH_PANEL q[p] = w[(size_t)p * next].q + 64 * width * j;
            EACH_COLUMN {
                const act_a256 *x = (const act_a256 *)(column(t, c) + group);
                const __m512i first = start(narrow ? &x->init16[j] : &x->init32[j], k);
                EACH_PANEL sums[p][c] = first;
            }
            multiply(t, q, group + (size_t)(4 * width * j), width, panels, cols, sums);
            EACH_PANEL {
                const __m512 scale = _mm512_load_ps(w[(size_t)p * next].head.scale[j]);
                EACH_COLUMN total[p][c] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sums[p][c]), total[p][c]);
            }
        }
        EACH_PANEL {
            const head256 *h = &w[(size_t)p * next].head;
            const __m512 d = _mm512_load_ps(h->d), dmin = _mm512_load_ps(h->dmin);
            EACH_COLUMN {
                const act_a256 *x = (const act_a256 *)(column(t, c) + group);
                const __m512 dx = _mm512_set1_ps(x->d);
                __m512 sum = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), total[p][c], _mm512_load_ps(acc[p][c]));
                if (has_min) sum = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, dx), _mm512_cvtepi32_ps(minima(h, x, k)), sum);
                _mm512_store_ps(acc[p][c], sum);
            }
        }
    }
    EACH_PANEL EACH_COLUMN y_store(y_at(t, p, c), rows_of(t, p, panels), _mm512_load_ps(acc[p][c]));
}

#define CORE_1(name, fn, panels, cols, ...) \
    static void name##_##panels##cols(const tile *t) { fn(t, __VA_ARGS__, panels, cols); }
#define CORE_4(name, fn, panels, ...) \
    CORE_1(name, fn, panels, 1, __VA_ARGS__) CORE_1(name, fn, panels, 2, __VA_ARGS__) \
    CORE_1(name, fn, panels, 3, __VA_ARGS__) CORE_1(name, fn, panels, 4, __VA_ARGS__)
#define CORE(name, fn, ...) \
    CORE_4(name, fn, 1, __VA_ARGS__) CORE_4(name, fn, 2, __VA_ARGS__) CORE_4(name, fn, 3, __VA_ARGS__) \
    const core_fn name[TILE_PANELS * TILE_COLUMNS] = { name##_11, name##_12, name##_13, name##_14, name##_21, name##_22, \
        name##_23, name##_24, name##_31, name##_32, name##_33, name##_34 };

CORE(vnni_core32_plain, core32, false, false)
CORE(vnni_core32_min, core32, true, false)
CORE(vnni_core32_split, core32, false, true)
CORE(vnni_core256_wide_min, core256, false, false, true)
CORE(vnni_core256_wide_offset, core256, false, true, false)
CORE(vnni_core256_narrow_min, core256, true, false, true)
CORE(vnni_core256_narrow_offset, core256, true, true, false)
