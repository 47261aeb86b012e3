/* mul.c - integer products with AVX2: panels of every type, and the entry into the table. */
#include "kernels/x86/avx2/mul.h"

#include "kernels/x86/mul_generic.h"

static const mul_shape shape = { .rows = LANES, .panels = 4, .chunk = 512, .columns = 32, .tile_panels = 1,
    .tile_columns = TILE_COLUMNS, .panel32 = sizeof(panel32), .panel256 = sizeof(panel256) };

/* Stores bytes as they are, or, for the SIGNED form, without their offset of 128. */
typedef struct store_sink {
    uint8_t *q;
    bool is_signed;
} store_sink;

INLINE void store_levels(void *sink, int block, const vi q[8])
{
    const store_sink *to = sink;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) STORE(to->q + 256 * block + 32 * i, to->is_signed ? XOR(q[i], BYTES(0x80)) : q[i]);
}

INLINE void panel32_run(const uint8_t *w, size_t s, int64_t pieces, panel32 *out, const traits t, levels_fn levels)
{
    for (; pieces > 0; pieces -= 8) {
        _Alignas(32) heads32 heads;
        const int blocks = pieces < 8 ? (int)pieces : 8;
        gather_heads(w, s, t, blocks, &heads);
        for (int i = 0; i < blocks; i++, w += t.bytes, out++) {
            store_sink to = { out->q, t.offset && !t.shift };
            levels(w, s, heads.high[i], store_levels, &to);
            STOREF(out->d, scale32(&heads, i, t));
            if (t.has_min) STOREF(out->m, min32(&heads, i));
        }
    }
}

INLINE void panel256_run(const uint8_t *w, size_t s, int64_t pieces, panel256 *out, const traits t, head_fn head,
                         levels_fn levels)
{
    for (; pieces > 0; pieces--, w += t.bytes, out++) {
        store_sink to = { out->q, t.offset && !t.shift };
        head(w, s, &out->head);
        levels(w, s, NULL, store_levels, &to);
    }
}

#define TYPE(suffix, core, block, super) \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const mul_type t = { &shape, NULL, panel_##suffix, core, (super) ? 256 : 32, block, super }; \
        mul_run(a, &t); \
    }
/* NAME, suffix, core, bytes, then the traits in their order: shift, offset, narrow, has_min, scale, high. */
#define TYPE32(NAME, suffix, core, block, ...) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel32_run(w, s, pieces, out, (const traits){ block, __VA_ARGS__ }, suffix##_levels); \
    } \
    TYPE(suffix, core, block, false)
#define TYPE256(NAME, suffix, core, block, ...) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel256_run(w, s, pieces, out, (const traits){ .bytes = block, __VA_ARGS__ }, suffix##_head, suffix##_levels); \
    } \
    TYPE(suffix, core, block, true)

#define FAST_TYPES(T32, T256) \
    T32(Q8_0, q8_0, avx2_core32_signed, 34, 0, true, false, false, SCALE_HALF, false) \
    T32(Q4_0, q4_0, avx2_core32_raw8_shift4, 18, 4, true, false, false, SCALE_HALF, false) \
    T32(Q4_1, q4_1, avx2_core32_raw8_min, 20, 0, false, false, true, SCALE_HALF_MIN, false) \
    T32(Q5_0, q5_0, avx2_core32_raw4_shift3, 22, 3, true, false, false, SCALE_HALF, true) \
    T32(Q5_1, q5_1, avx2_core32_raw4_min, 24, 0, false, false, true, SCALE_HALF_MIN, true) \
    T32(IQ4_NL, iq4_nl, avx2_core32_signed, 18, 0, true, false, false, SCALE_HALF, false) \
    T32(MXFP4, mxfp4, avx2_core32_signed, 17, 0, true, false, false, SCALE_E8M0, false) \
    T256(Q4_K, q4_K, avx2_core256_wide_raw8_min, 144, .has_min = true) \
    T256(Q5_K, q5_K, avx2_core256_wide_raw4_min, 176, .has_min = true) \
    T256(Q6_K, q6_K, avx2_core256_narrow_raw2_shift2, 210, .offset = true, .shift = 2) \
    T256(Q3_K, q3_K, avx2_core256_narrow_raw8_shift5, 110, .offset = true, .shift = 5) \
    T256(Q2_K, q2_K, avx2_core256_narrow_raw8_min, 84, .has_min = true) \
    T256(IQ4_XS, iq4_xs, avx2_core256_wide_signed, 136, .offset = true) \
    T256(TQ1_0, tq1_0, avx2_core256_wide_signed, 54, .offset = true) \
    T256(TQ2_0, tq2_0, avx2_core256_wide_signed, 66, .offset = true)

FAST_TYPES(TYPE32, TYPE256)

#define OTHER(NAME, width, sub, values_, block) \
    static void panel_##NAME(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel##width##_generic(w, s, pieces, out, &weight_forms[LOAM_##NAME], 0); \
    } \
    static void mul_##NAME(const mul_args *a) \
    { \
        static const mul_type t = { &shape, NULL, panel_##NAME, avx2_core##width##_##sub, values_, block, width == 256 }; \
        mul_run(a, &t); \
    }
#define avx2_core32_plain avx2_core32_signed
#define avx2_core256_wide avx2_core256_wide_signed
#define avx2_core256_narrow avx2_core256_narrow_signed
OTHER_TYPES(OTHER)

void kernels_avx2_mul(kernels *k)
{
#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;
#define FILL_OTHER(NAME, ...) k->mul[LOAM_##NAME] = mul_##NAME;
    FAST_TYPES(FILL, FILL)
    OTHER_TYPES(FILL_OTHER)
    avx2_act_encode(k);
    kernels_avx2_mulf(k);
}
