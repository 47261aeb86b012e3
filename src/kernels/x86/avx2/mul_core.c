/* mul_core.c - the integer GEMM with AVX2: one panel of 8 rows times up to 4 columns, in the written orders of kernels.h. */
#include "kernels/x86/avx2/mul.h"

/* Constants of a form of panels. */
typedef struct form {
    int adds;                    /* RAW: products that are added in 16 bits; 0: SIGNED */
    int shift;                   /* RAW with an offset: 128 >> shift */
    bool offset, narrow, has_min, split;
} form;

INLINE const uint8_t *column(const tile *t, int c) { return t->x + (size_t)c * t->x_stride; }

INLINE vi broadcast(const void *p)
{
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

#define EACH_COLUMN _Pragma("GCC unroll 4") for (int c = 0; c < cols; c++)

/* sums[c] = first + `width` registers at w times the activations from byte `at` of the columns on. */
INLINE void multiply(const tile *t, const uint8_t *w, size_t at, int width, const form f, int cols, vi sums[TILE_COLUMNS])
{
    const vi ones = _mm256_set1_epi16(1);
    const int adds = f.adds > width ? width : f.adds ? f.adds : 1;
#pragma GCC unroll 8
    for (int i = 0; i < width; i += adds) {
        vi part[TILE_COLUMNS];
#pragma GCC unroll 8
        for (int j = i; j < i + adds; j++) {
            const vi q = LOAD(w + 32 * j), magnitude = f.adds ? q : _mm256_abs_epi8(q);
            EACH_COLUMN {
                const vi x = broadcast(column(t, c) + at + 4 * j);
                const vi product = _mm256_maddubs_epi16(magnitude, f.adds ? x : _mm256_sign_epi8(x, q));
                part[c] = j == i ? product : _mm256_add_epi16(part[c], product);
            }
        }
        EACH_COLUMN sums[c] = ADD32(sums[c], _mm256_madd_epi16(part[c], ones));
    }
}

INLINE vi start(const int32_t *init, const form f)
{
    return f.offset ? ARITHMETIC32(broadcast(init), f.shift) : ZERO_I;
}

/* Block b: half -1 is all of its 32 values; 0 and 1 are 16 of a split type. */
typedef struct piece32 {
    int64_t b;
    int half;
} piece32;

INLINE void step32(const tile *t, const panel32 *w, const piece32 p, const form f, int cols, vf acc[TILE_COLUMNS])
{
    const int half = p.half;
    const size_t group = (size_t)(p.b / 8) * sizeof(act_a32), i = (size_t)(p.b % 8);
    const int width = half < 0 ? 8 : 4, from = half > 0 ? 4 : 0;
    vi sums[TILE_COLUMNS];
    EACH_COLUMN sums[c] = start(&((const act_a32 *)(column(t, c) + group))->init32[i], f);
    multiply(t, w->q + 32 * from, group + 32 * i + (size_t)(4 * from), width, f, cols, sums);
    const vf d = LOADF(half > 0 ? w->m : w->d);
    EACH_COLUMN {
        const act_a32 *x = (const act_a32 *)(column(t, c) + group);
        acc[c] = FMA(MULF(d, FLOATS(x->d[i])), TO_FLOATS(sums[c]), acc[c]);
        if (f.has_min) acc[c] = FMA(LOADF(w->m), FLOATS(x->ds[i]), acc[c]);
    }
}

INLINE void core32(const tile *t, const form f, int cols)
{
    vf acc[TILE_COLUMNS];
    EACH_COLUMN acc[c] = y_start(t->y + (size_t)c * t->y_stride, t->last_rows, t->resume);
    const panel32 *w = t->panel;
    for (int64_t b = 0; b < t->pieces; b++, w++) {
        if (f.split) {
            step32(t, w, (piece32){ b, 0 }, f, cols, acc);
            step32(t, w, (piece32){ b, 1 }, f, cols, acc);
        } else step32(t, w, (piece32){ b, -1 }, f, cols, acc);
    }
    EACH_COLUMN y_store(t->y + (size_t)c * t->y_stride, t->last_rows, acc[c]);
}

/* The exact sum of minima times sums of activations. */
INLINE vi minima(const head256 *h, const act_a256 *x, const form f)
{
    vi sum = ZERO_I;
    for (int j = 0; j < (f.narrow ? 8 : 4); j++)
        sum = ADD32(sum, _mm256_madd_epi16(LOAD(h->min[j]), broadcast((f.narrow ? x->sum16 : x->sum32) + 2 * j)));
    return sum;
}

INLINE void core256(const tile *t, const form f, int cols)
{
    const int subs = f.narrow ? 16 : 8, width = f.narrow ? 4 : 8;
    vf acc[TILE_COLUMNS];
    EACH_COLUMN acc[c] = y_start(t->y + (size_t)c * t->y_stride, t->last_rows, t->resume);
    const panel256 *w = t->panel;
    size_t group = 0;
    for (int64_t b = 0; b < t->pieces; b++, w++, group += sizeof(act_a256)) {
        vf total[TILE_COLUMNS];
        EACH_COLUMN total[c] = ZERO_F;
#pragma GCC unroll 1
        for (int j = 0; j < subs; j++) {
            vi sums[TILE_COLUMNS];
            EACH_COLUMN {
                const act_a256 *x = (const act_a256 *)(column(t, c) + group);
                sums[c] = start(f.narrow ? &x->init16[j] : &x->init32[j], f);
            }
            multiply(t, w->q + 32 * width * j, group + (size_t)(4 * width * j), width, f, cols, sums);
            const vf scale = LOADF(w->head.scale[j]);
            EACH_COLUMN total[c] = FMA(scale, TO_FLOATS(sums[c]), total[c]);
        }
        EACH_COLUMN {
            const act_a256 *x = (const act_a256 *)(column(t, c) + group);
            const vf dx = FLOATS(x->d);
            acc[c] = FMA(MULF(LOADF(w->head.d), dx), total[c], acc[c]);
            if (f.has_min) acc[c] = FNMA(MULF(LOADF(w->head.dmin), dx), TO_FLOATS(minima(&w->head, x, f)), acc[c]);
        }
    }
    EACH_COLUMN y_store(t->y + (size_t)c * t->y_stride, t->last_rows, acc[c]);
}

/* name, core, then the form in its order: adds, shift, offset, narrow, has_min, split */
#define CORE_1(name, fn, cols, ...) static void name##_##cols(const tile *t) { fn(t, (const form){ __VA_ARGS__ }, cols); }
#define CORE(name, fn, ...) \
    CORE_1(name, fn, 1, __VA_ARGS__) CORE_1(name, fn, 2, __VA_ARGS__) \
    CORE_1(name, fn, 3, __VA_ARGS__) CORE_1(name, fn, 4, __VA_ARGS__) \
    const core_fn name[TILE_COLUMNS] = { name##_1, name##_2, name##_3, name##_4 };

CORE(avx2_core32_raw8_shift4, core32, 8, 4, true, false, false, false)
CORE(avx2_core32_raw4_shift3, core32, 4, 3, true, false, false, false)
CORE(avx2_core32_raw8_min, core32, 8, 0, false, false, true, false)
CORE(avx2_core32_raw4_min, core32, 4, 0, false, false, true, false)
CORE(avx2_core32_signed, core32, 0, 0, false, false, false, false)
CORE(avx2_core32_split, core32, 0, 0, false, false, false, true)
CORE(avx2_core256_wide_raw8_min, core256, 8, 0, false, false, true, false)
CORE(avx2_core256_wide_raw4_min, core256, 4, 0, false, false, true, false)
CORE(avx2_core256_narrow_raw8_min, core256, 8, 0, false, true, true, false)
CORE(avx2_core256_narrow_raw2_shift2, core256, 2, 2, true, true, false, false)
CORE(avx2_core256_narrow_raw8_shift5, core256, 8, 5, true, true, false, false)
CORE(avx2_core256_wide_signed, core256, 0, 0, false, false, false, false)
CORE(avx2_core256_narrow_signed, core256, 0, 0, false, true, false, false)
