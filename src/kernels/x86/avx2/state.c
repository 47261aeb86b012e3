/* state.c - recurrent states with AVX2: state_tmpl.h. */
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/state_tmpl.h"

void kernels_avx2_state(kernels *k) { fill_states(k); }
