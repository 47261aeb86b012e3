/* row.c - row kernels with NEON: row_tmpl.h. */
#include "kernels/arm/vec_neon.h"
#include "kernels/x86/row_tmpl.h"

void kernels_neon_row(kernels *k) { fill_rows(k); }
