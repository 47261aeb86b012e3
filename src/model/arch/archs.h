/* archs.h - the families of arch/; each array ends with an entry without a name. */
#ifndef LOAM_MODEL_ARCH_ARCHS_H
#define LOAM_MODEL_ARCH_ARCHS_H

#include "model/arch.h"

extern const arch_spec archs_llama[], archs_qwen[], archs_gemma[], archs_gpt[], archs_dense[], archs_moe[], archs_deepseek[];
extern const arch_spec archs_recurrent[], archs_hybrid[], archs_diffusion[], archs_encoders[];

/* ---- pieces that several families write the same way ---- */

/* Optional biases on all matrices but q, k, v. */
#define OUTPUT_BIAS_MAYBE NEEDS(ATTN_OUTPUT, .bias = MAY_BIAS)
#define FFN_BIASES_MAYBE NEEDS(FFN_GATE, .bias = MAY_BIAS), NEEDS(FFN_UP, .bias = MAY_BIAS), NEEDS(FFN_DOWN, .bias = MAY_BIAS)
/* Biases that files may have and the forward pass does not add. */
#define OUTPUT_BIAS_UNUSED NEEDS(ATTN_OUTPUT, .bias = UNUSED_BIAS)
#define FFN_BIASES_UNUSED NEEDS(FFN_GATE, .bias = UNUSED_BIAS), NEEDS(FFN_UP, .bias = UNUSED_BIAS), \
                          NEEDS(FFN_DOWN, .bias = UNUSED_BIAS)
/* Rotary factors: one set, or one for long and one for short contexts. */
#define ROPE_FACTORS MAYBE(ROPE_FREQS), MAYBE(ROPE_LONG), MAYBE(ROPE_SHORT)
/* The head must be stored. */
#define OWN_HEAD NEEDS(OUTPUT)
/* The token table is the head, always. */
#define TIED_HEAD WITHOUT(OUTPUT)
/* One norm weight for all heads of q, one for those of k. */
#define HEAD_NORMS NEEDS(ATTN_Q_NORM), NEEDS(ATTN_K_NORM)
/* Norms over the whole rows of q and k. */
#define ROW_NORMS NEEDS(ATTN_Q_NORM, .shape = "HK"), NEEDS(ATTN_K_NORM, .shape = "GK")
/* LayerNorms with bias. */
#define NORM_BIASES NEEDS(OUTPUT_NORM, .bias = BIAS), NEEDS(ATTN_NORM, .bias = BIAS), NEEDS(FFN_NORM, .bias = BIAS)
/* Norms of both branches before they are added. */
#define AFTER_NORMS NEEDS(POST_ATTENTION_NORM), NEEDS(POST_FFW_NORM)

/* The most common routing: softmax over all experts, the chosen weights made to sum to 1. */
#define SOFTMAX_ROUTING .router = ROUTER_SOFTMAX, .normalise = ALWAYS, .activation = GATE_SILU
/* Routing by the file's keys: function, normalisation, factor. */
#define KEYED_ROUTING(OTHERWISE) .router = OTHERWISE, .router_from = ROUTER_KEY_OR_FIXED, .normalise = BY_KEY, \
                                 .scale_key = true, .activation = GATE_SILU
/* The same where the file must name the function. */
#define GIVEN_ROUTING .router_from = ROUTER_KEY, .normalise = BY_KEY, .scale_key = true, .activation = GATE_SILU

#endif
