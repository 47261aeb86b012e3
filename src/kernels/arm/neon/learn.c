/* learn.c - row kernels of training with NEON: learn_tmpl.h. */
#include "kernels/arm/vec_neon.h"
#include "kernels/x86/learn_tmpl.h"

static learn_kernels own; /* written once, while the tables are built */

void kernels_neon_learn(kernels *k) { fill_learn(&own, k); }
