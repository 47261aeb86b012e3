/* row.c - row kernels with AVX2: row_tmpl.h. */
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/row_tmpl.h"
#include "kernels/x86/attn_fill.h"

void kernels_avx2_row(kernels *k)
{
    fill_rows(k);
    kernels_avx2_attn(k);
}
