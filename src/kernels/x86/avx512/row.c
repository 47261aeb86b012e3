/* row.c - row kernels with AVX-512: row_tmpl.h. */
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/row_tmpl.h"
#include "kernels/x86/attn_fill.h"

void kernels_avx512_row(kernels *k)
{
    fill_rows(k);
    kernels_avx512_attn(k);
}
