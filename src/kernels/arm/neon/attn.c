/* attn.c - attention with NEON: attn_tmpl.h. */
#include "kernels/arm/vec_neon.h"
#include "kernels/arm/attn_blocks.h"
#include "kernels/x86/attn_tmpl.h"

static row_decode_fn decoder(loam_type t) { return kernels_for("neon")->decode[t]; }

void kernels_neon_attn(kernels *k)
{
    k->attn = attn;
    k->attn_merge = attn_merge;
}
