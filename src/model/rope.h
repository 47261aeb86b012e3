/* rope.h - rotary parameters of the two kinds of block, from what the file says and what the context overrides. */
#ifndef LOAM_MODEL_ROPE_H
#define LOAM_MODEL_ROPE_H

#include "model/model_impl.h"

typedef struct rope_setup {
    rope_params full, window; /* blocks without and with a sliding window */
    double attn_factor;       /* af: magnitude without the YaRN part 1 + 0.1 ln s */
    double ln_s;              /* ln of the scaling factor s = 1 / freq_scale, of full blocks */
    double log_multiplier;    /* l */
    const weight *factors;    /* angle divisors, or NULL */
} rope_setup;

void rope_resolve(const loam_model *m, const build_params *p, rope_setup *out);

#endif
