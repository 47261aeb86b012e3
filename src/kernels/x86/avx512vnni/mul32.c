/* mul32.c - VNNI products of the types with blocks of 32 values (activation form A32). */
#include "kernels/x86/avx512vnni/mul_types.h"

#include "kernels/x86/mul_long.h"

/* NAME, suffix, core, bytes, then the traits in their order: shift, offset, narrow, has_min, scale, high. */
#define TYPES(T) \
    T(Q8_0, q8_0, core32_plain, 34, 0, true, false, false, SCALE_HALF, false) \
    T(Q4_0, q4_0, core32_plain, 18, 4, true, false, false, SCALE_HALF, false) \
    T(Q4_1, q4_1, core32_min, 20, 0, false, false, true, SCALE_HALF_MIN, false) \
    T(Q5_0, q5_0, core32_plain, 22, 3, true, false, false, SCALE_HALF, true) \
    T(Q5_1, q5_1, core32_min, 24, 0, false, false, true, SCALE_HALF_MIN, true) \
    T(IQ4_NL, iq4_nl, core32_plain, 18, 0, true, false, false, SCALE_HALF, false) \
    T(MXFP4, mxfp4, core32_plain, 17, 0, true, false, false, SCALE_E8M0, false)

#define TYPE(NAME, suffix, core, block, ...) \
    static const traits traits_##suffix = { block, __VA_ARGS__ }; \
    FEW_KERNELS(suffix, few32_run, traits_##suffix, suffix##_levels) \
    PANEL(suffix, panel32_run, traits_##suffix, suffix##_levels) \
    MUL(suffix, few_##suffix, core, 32, block, false)
TYPES(TYPE)

/* Blocks of several pieces: panels only. */
#define LONG(NAME, suffix, core, values, block) \
    PANEL(suffix, long_panel, (const long_type){ values, block, suffix##_row, suffix##_scales }, 0x80) \
    MUL(suffix, NULL, core32_##core, values, block, false)
LONG_TYPES(LONG)

void vnni_fill_32(kernels *k)
{
    TYPES(FILL)
    LONG_TYPES(FILL)
}
