/* state.c - recurrent states with AVX-512: state_tmpl.h. */
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/state_tmpl.h"

void kernels_avx512_state(kernels *k) { fill_states(k); }
