/* mul_types.c - the types with fast integer products, their kernels and the entry into the table. */
#include <string.h>

#include "kernels/x86/avx512vnni/mul_panel.h"

static const mul_shape shape = { .rows = 16, .few = FEW, .panels = 6, .chunk = MUL_CHUNK, .columns = 32,
    .tile_panels = TILE_PANELS, .tile_columns = TILE_COLUMNS, .panel32 = sizeof(panel32), .panel256 = sizeof(panel256) };
_Static_assert(6 * (MUL_CHUNK / 256) * sizeof(panel256) + MUL_TAIL <= MUL_SCRATCH, "scratch");
_Static_assert(6 * (MUL_CHUNK / 32) * sizeof(panel32) + MUL_TAIL <= MUL_SCRATCH, "scratch");

/* NAME, suffix, core, bytes, then the traits in their order: shift, offset,
 * narrow, has_min, scale, high. */
#define TYPE32(NAME, suffix, core_, block, ...) \
    static const traits traits_##suffix = { block, __VA_ARGS__ }; \
    FEW_KERNELS(suffix, few32_run, traits_##suffix, suffix##_levels) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel32_run(w, s, pieces, out, traits_##suffix, suffix##_levels); \
    } \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const few_fn few[FEW] = { FEW_NAMES(suffix) }; \
        static const mul_type t = { &shape, few, panel_##suffix, core_, 32, block, false }; \
        mul_run(a, &t); \
    }
#define TYPE256(NAME, suffix, core_, block, ...) \
    static const traits traits_##suffix = { block, __VA_ARGS__ }; \
    FEW_KERNELS(suffix, few256_run, traits_##suffix, suffix##_head, suffix##_levels) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel256_run(w, s, pieces, out, traits_##suffix, suffix##_head, suffix##_levels); \
    } \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const few_fn few[FEW] = { FEW_NAMES(suffix) }; \
        static const mul_type t = { &shape, few, panel_##suffix, core_, 256, block, true }; \
        mul_run(a, &t); \
    }

#define q5_K_head q4_K_head

#define FAST_TYPES(T32, T256) \
    T32(Q8_0, q8_0, core32_plain, 34, 0, true, false, false, SCALE_HALF, false) \
    T32(Q4_0, q4_0, core32_plain, 18, 4, true, false, false, SCALE_HALF, false) \
    T32(Q4_1, q4_1, core32_min, 20, 0, false, false, true, SCALE_HALF_MIN, false) \
    T32(Q5_0, q5_0, core32_plain, 22, 3, true, false, false, SCALE_HALF, true) \
    T32(Q5_1, q5_1, core32_min, 24, 0, false, false, true, SCALE_HALF_MIN, true) \
    T32(IQ4_NL, iq4_nl, core32_plain, 18, 0, true, false, false, SCALE_HALF, false) \
    T32(MXFP4, mxfp4, core32_plain, 17, 0, true, false, false, SCALE_E8M0, false) \
    T256(Q4_K, q4_K, core256_wide_min, 144, 0, false, false, true) \
    T256(Q5_K, q5_K, core256_wide_min, 176, 0, false, false, true) \
    T256(Q6_K, q6_K, core256_narrow_offset, 210, 2, true, true, false) \
    T256(Q3_K, q3_K, core256_narrow_offset, 110, 5, true, true, false) \
    T256(Q2_K, q2_K, core256_narrow_min, 84, 0, false, true, true) \
    T256(IQ4_XS, iq4_xs, core256_wide_offset, 136, 0, true, false, false) \
    T256(TQ1_0, tq1_0, core256_wide_offset, 54, 0, true, false, false) \
    T256(TQ2_0, tq2_0, core256_wide_offset, 66, 0, true, false, false)

FAST_TYPES(TYPE32, TYPE256)

/* ---- the other types, through their portable unpackers (ref/mul.h): panels only ---------------------------------------- */

/* Row r of a panel: dword t of the levels goes to lane r of register t. */
static void put_levels(uint8_t *panel, int r, const int8_t *level, int n)
{
    for (int t = 0; t < n / 4; t++) {
        uint32_t v;
        memcpy(&v, level + 4 * t, 4);
        v ^= 0x80808080u;
        memcpy(panel + 64 * t + 4 * r, &v, 4);
    }
}

static void panel256_generic(const uint8_t *w, size_t s, int64_t pieces, panel256 *out, const weight_form *form)
{
    weight256 u;
    for (int r = 0; r < 16; r++)
        for (int64_t i = 0; i < pieces; i++) {
            form->unpack256(w + (size_t)r * s, i, &u);
            put_levels(out[i].q, r, u.level, 256);
            for (int v = 0; v < 256; v += form->sub) out[i].head.scale[v / form->sub][r] = (float)u.scale[v / 16];
            out[i].head.d[r] = u.d;
        }
}

static void panel32_generic(const uint8_t *w, size_t s, int64_t pieces, panel32 *out, const weight_form *form)
{
    weight32 u;
    for (int r = 0; r < 16; r++)
        for (int64_t i = 0; i < pieces; i++) {
            form->unpack32(w + (size_t)r * s, i, &u);
            put_levels(out[i].q, r, u.level, 32);
            out[i].d[r] = u.d[0];
            out[i].m[r] = u.d[1];
        }
}

#define GENERIC(NAME, core_, width, values, block) \
    static void panel_##NAME(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel##width##_generic(w, s, pieces, out, &weight_forms[LOAM_##NAME]); \
    } \
    static void mul_##NAME(const mul_args *a) \
    { \
        static const mul_type t = { &shape, NULL, panel_##NAME, core_, values, block, width == 256 }; \
        mul_run(a, &t); \
    }

/* NAME, core, 32 or 256, values and bytes of a block */
#define OTHER_TYPES(T) \
    T(NVFP4, core32_split, 32, 64, 36) \
    T(Q1_0, core32_plain, 32, 128, 18) \
    T(Q2_0, core32_plain, 32, 64, 18) \
    T(IQ2_XXS, core256_wide_offset, 256, 256, 66) \
    T(IQ2_XS, core256_narrow_offset, 256, 256, 74) \
    T(IQ2_S, core256_narrow_offset, 256, 256, 82) \
    T(IQ3_XXS, core256_wide_offset, 256, 256, 98) \
    T(IQ3_S, core256_wide_offset, 256, 256, 110) \
    T(IQ1_S, core256_wide_offset, 256, 256, 50) \
    T(IQ1_M, core256_narrow_offset, 256, 256, 56)

OTHER_TYPES(GENERIC)

void kernels_avx512vnni_mul(kernels *k)
{
#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;
#define FILL_OTHER(NAME, ...) k->mul[LOAM_##NAME] = mul_##NAME;
    FAST_TYPES(FILL, FILL)
    OTHER_TYPES(FILL_OTHER)
}
