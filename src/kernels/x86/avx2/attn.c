/* attn.c - attention with AVX2: attn_tmpl.h. */
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/attn_blocks.h"
#include "kernels/x86/attn_tmpl.h"
#include "kernels/x86/attn_fill.h"

static row_decode_fn decoder(loam_type t) { return kernels_for("avx2")->decode[t]; }

void kernels_avx2_attn(kernels *k)
{
    k->attn = attn;
    k->attn_merge = attn_merge;
}
