/* mul_types.h - what the lists of types share: the shape of the loops, and the kernels and table entry of one type. */
#ifndef LOAM_KERNELS_AVX512VNNI_MUL_TYPES_H
#define LOAM_KERNELS_AVX512VNNI_MUL_TYPES_H

#include "kernels/x86/avx512vnni/mul_panel.h"

static const mul_shape shape = { .rows = LANES, .few = FEW, .panels = 6, .chunk = MUL_CHUNK, .columns = 32,
    .tile_panels = TILE_PANELS, .tile_columns = TILE_COLUMNS, .panel32 = sizeof(panel32), .panel256 = sizeof(panel256) };
_Static_assert(6 * (MUL_CHUNK / 256) * sizeof(panel256) + MUL_TAIL <= MUL_SCRATCH, "scratch");
_Static_assert(6 * (MUL_CHUNK / 32) * sizeof(panel32) + MUL_TAIL <= MUL_SCRATCH, "scratch");

#define PANEL(suffix, run, ...) \
    static void panel_##suffix(const uint8_t *w, size_t s, int64_t pieces, void *out) { run(w, s, pieces, out, __VA_ARGS__); }

/* few: an array of kernels for few columns, or NULL. */
#define MUL(suffix, few, core, values, block, super) \
    static void mul_##suffix(const mul_args *a) \
    { \
        static const mul_type t = { &shape, few, panel_##suffix, vnni_##core, values, block, super }; \
        mul_run(a, &t); \
    }

#define FILL(NAME, suffix, ...) k->mul[LOAM_##NAME] = mul_##suffix;

/* Each fills its types. */
void vnni_fill_32(kernels *k);
void vnni_fill_256(kernels *k);

#endif
