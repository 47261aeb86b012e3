/* mul_types.c - the types with fast integer products, their kernels and the entry into the table. */
#include "kernels/x86/avx512vnni/mul_panel.h"

#include "kernels/x86/mul_generic.h"

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

#define FAST_TYPES(T32, T256) \
    T32(Q8_0, q8_0, vnni_core32_plain, 34, 0, true, false, false, SCALE_HALF, false) \
    T32(Q4_0, q4_0, vnni_core32_plain, 18, 4, true, false, false, SCALE_HALF, false) \
    T32(Q4_1, q4_1, vnni_core32_min, 20, 0, false, false, true, SCALE_HALF_MIN, false) \
    T32(Q5_0, q5_0, vnni_core32_plain, 22, 3, true, false, false, SCALE_HALF, true) \
    T32(Q5_1, q5_1, vnni_core32_min, 24, 0, false, false, true, SCALE_HALF_MIN, true) \
    T32(IQ4_NL, iq4_nl, vnni_core32_plain, 18, 0, true, false, false, SCALE_HALF, false) \
    T32(MXFP4, mxfp4, vnni_core32_plain, 17, 0, true, false, false, SCALE_E8M0, false) \
    T256(Q4_K, q4_K, vnni_core256_wide_min, 144, 0, false, false, true) \
    T256(Q5_K, q5_K, vnni_core256_wide_min, 176, 0, false, false, true) \
    T256(Q6_K, q6_K, vnni_core256_narrow_offset, 210, 2, true, true, false) \
    T256(Q3_K, q3_K, vnni_core256_narrow_offset, 110, 5, true, true, false) \
    T256(Q2_K, q2_K, vnni_core256_narrow_min, 84, 0, false, true, true) \
    T256(IQ4_XS, iq4_xs, vnni_core256_wide_offset, 136, 0, true, false, false) \
    T256(TQ1_0, tq1_0, vnni_core256_wide_offset, 54, 0, true, false, false) \
    T256(TQ2_0, tq2_0, vnni_core256_wide_offset, 66, 0, true, false, false)

FAST_TYPES(TYPE32, TYPE256)

/* ---- the other types: panels only ------------------------------------------------------------------------------------ */

#define OTHER(NAME, width, sub, values_, block) \
    static void panel_##NAME(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel##width##_generic(w, s, pieces, out, &weight_forms[LOAM_##NAME], 0x80); \
    } \
    static void mul_##NAME(const mul_args *a) \
    { \
        static const mul_type t = { &shape, NULL, panel_##NAME, vnni_core##width##_##sub, values_, block, width == 256 }; \
        mul_run(a, &t); \
    }
#define vnni_core256_wide vnni_core256_wide_offset
#define vnni_core256_narrow vnni_core256_narrow_offset
OTHER_TYPES(OTHER)

void kernels_avx512vnni_mul(kernels *k)
{
#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;
#define FILL_OTHER(NAME, ...) k->mul[LOAM_##NAME] = mul_##NAME;
    FAST_TYPES(FILL, FILL)
    OTHER_TYPES(FILL_OTHER)
}
