/* learn.c - row kernels of training: learn_tmpl.h. */
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/learn_tmpl.h"

static learn_kernels own; /* written once, while the tables are built */

void kernels_avx512_learn(kernels *k) { fill_learn(&own, k); }
