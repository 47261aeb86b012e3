/* mul_generic.h - panels of the types that have no vector unpacker, through their portable ones (ref/mul.h). */
#ifndef LOAM_KERNELS_X86_MUL_GENERIC_H
#define LOAM_KERNELS_X86_MUL_GENERIC_H

#include <string.h>

#include "kernels/ref/mul.h"
#include "kernels/x86/mul_levels.h"

/* T(NAME, 32 or 256, form of the core, values and bytes of a block) */
#define OTHER_TYPES(T) \
    T(NVFP4, 32, split, 64, 36) \
    T(Q1_0, 32, plain, 128, 18) \
    T(Q2_0, 32, plain, 64, 18) \
    T(IQ2_XXS, 256, wide, 256, 66) \
    T(IQ2_XS, 256, narrow, 256, 74) \
    T(IQ2_S, 256, narrow, 256, 82) \
    T(IQ3_XXS, 256, wide, 256, 98) \
    T(IQ3_S, 256, wide, 256, 110) \
    T(IQ1_S, 256, wide, 256, 50) \
    T(IQ1_M, 256, narrow, 256, 56)

/* Row r of a panel: dword t of the levels goes to lane r of register t. flip: 0x80 for bytes with an offset of 128. */
static void put_levels(uint8_t *panel, int r, const int8_t *level, int n, uint8_t flip)
{
    for (int t = 0; t < n / 4; t++) {
        uint32_t v;
        memcpy(&v, level + 4 * t, 4);
        v ^= 0x01010101u * flip;
        memcpy(panel + 4 * LANES * t + 4 * r, &v, 4);
    }
}

static void panel256_generic(const uint8_t *w, size_t s, int64_t pieces, panel256 *out, const weight_form *form, uint8_t flip)
{
    weight256 u;
    for (int r = 0; r < LANES; r++)
        for (int64_t i = 0; i < pieces; i++) {
            form->unpack256(w + (size_t)r * s, i, &u);
            put_levels(out[i].q, r, u.level, 256, flip);
            for (int v = 0; v < 256; v += form->sub) out[i].head.scale[v / form->sub][r] = (float)u.scale[v / 16];
            out[i].head.d[r] = u.d;
        }
}

static void panel32_generic(const uint8_t *w, size_t s, int64_t pieces, panel32 *out, const weight_form *form, uint8_t flip)
{
    weight32 u;
    for (int r = 0; r < LANES; r++)
        for (int64_t i = 0; i < pieces; i++) {
            form->unpack32(w + (size_t)r * s, i, &u);
            put_levels(out[i].q, r, u.level, 32, flip);
            out[i].d[r] = u.d[0];
            out[i].m[r] = u.d[1];
        }
}

#endif
