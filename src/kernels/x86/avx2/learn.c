/* learn.c - row kernels of training: learn_tmpl.h. */
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/learn_tmpl.h"

static learn_kernels own; /* written once, while the tables are built */

void kernels_avx2_learn(kernels *k) { fill_learn(&own, k); }
