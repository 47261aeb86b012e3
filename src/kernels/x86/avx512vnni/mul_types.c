/* mul_types.c - the types with fast integer products, their kernels and the entry into the table. */
#include "kernels/x86/avx512vnni/mul_panel.h"

/* NAME, suffix, core, bytes, then the traits in their order: shift, offset, narrow, has_min. */
#define TYPE32(NAME, suffix, core_, block, ...) \
    static const traits traits_##suffix = { block, __VA_ARGS__ }; \
    FEW_KERNELS(suffix, few32_run, traits_##suffix, suffix##_levels) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) \
    { \
        panel32_run(w, s, pieces, out, traits_##suffix, suffix##_levels); \
    } \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const vnni_type t = { { FEW_NAMES(suffix) }, panel_##suffix, core_, 32, block, false }; \
        vnni_mul(a, &t); \
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
        static const vnni_type t = { { FEW_NAMES(suffix) }, panel_##suffix, core_, 256, block, true }; \
        vnni_mul(a, &t); \
    }

#define FAST_TYPES(T32, T256) \
    T32(Q8_0, q8_0, core32_plain, 34, 0, true, false, false) \
    T32(Q4_0, q4_0, core32_plain, 18, 4, true, false, false) \
    T32(Q4_1, q4_1, core32_min, 20, 0, false, false, true) \
    T256(Q4_K, q4_K, core256_wide_min, 144, 0, false, false, true) \
    T256(Q6_K, q6_K, core256_narrow_offset, 210, 2, true, true, false)

FAST_TYPES(TYPE32, TYPE256)

void kernels_avx512vnni_mul(kernels *k)
{
#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;
    FAST_TYPES(FILL, FILL)
}
