/* state.c - recurrent states with NEON: state_tmpl.h. */
#include "kernels/arm/vec_neon.h"
#include "kernels/x86/state_tmpl.h"

void kernels_neon_state(kernels *k) { fill_states(k); }
