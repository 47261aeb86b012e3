/* mul256.c - VNNI products of the super-block types (activation form A256), and the entry into the table. */
#include "kernels/x86/avx512vnni/mul_types.h"

#include "kernels/x86/mul_grid.h"

/* NAME, suffix, core, bytes, then the traits that are not zero. */
#define TYPES(T) \
    T(Q4_K, q4_K, core256_wide_min, 144, .has_min = true) \
    T(Q5_K, q5_K, core256_wide_min, 176, .has_min = true) \
    T(Q6_K, q6_K, core256_narrow_offset, 210, .shift = 2, .offset = true, .narrow = true) \
    T(Q3_K, q3_K, core256_narrow_offset, 110, .shift = 5, .offset = true, .narrow = true) \
    T(Q2_K, q2_K, core256_narrow_min, 84, .narrow = true, .has_min = true) \
    T(IQ4_XS, iq4_xs, core256_wide_offset, 136, .offset = true) \
    T(TQ1_0, tq1_0, core256_wide_offset, 54, .offset = true) \
    T(TQ2_0, tq2_0, core256_wide_offset, 66, .offset = true)

/* Codebook types: unpacking is so much of the work that panels serve few columns as well. */
#define GRID_TYPES(T) \
    T(IQ2_XXS, iq2_xxs, core256_wide_offset, 66, .offset = true) \
    T(IQ2_XS, iq2_xs, core256_narrow_offset, 74, .offset = true, .narrow = true) \
    T(IQ2_S, iq2_s, core256_narrow_offset, 82, .offset = true, .narrow = true) \
    T(IQ3_XXS, iq3_xxs, core256_wide_offset, 98, .offset = true) \
    T(IQ3_S, iq3_s, core256_wide_offset, 110, .offset = true) \
    T(IQ1_S, iq1_s, core256_wide_offset, 50, .offset = true) \
    T(IQ1_M, iq1_m, core256_narrow_offset, 56, .offset = true, .narrow = true)

#define TYPE(NAME, suffix, core, block, ...) \
    static const traits traits_##suffix = { .bytes = block, __VA_ARGS__ }; \
    FEW_KERNELS(suffix, few256_run, traits_##suffix, suffix##_head, suffix##_levels) \
    PANEL(suffix, panel256_run, traits_##suffix, suffix##_head, suffix##_levels) \
    MUL(suffix, few_##suffix, core, 256, block, true)
TYPES(TYPE)

#define GRID(NAME, suffix, core, block, ...) \
    PANEL(suffix, panel256_run, (const traits){ .bytes = block, __VA_ARGS__ }, suffix##_head, suffix##_levels) \
    MUL(suffix, NULL, core, 256, block, true)
GRID_TYPES(GRID)

void vnni_fill_256(kernels *k)
{
    TYPES(FILL)
    GRID_TYPES(FILL)
}

void kernels_avx512vnni_mul(kernels *k)
{
    vnni_fill_32(k);
    vnni_fill_256(k);
}
