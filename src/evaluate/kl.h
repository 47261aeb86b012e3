/* kl.h - one row of a comparison, for those that keep their own sums. */
#ifndef LOAM_EVALUATE_KL_H
#define LOAM_EVALUATE_KL_H

#include <stdint.h>

#include "loam/evaluate.h"

typedef struct kl_row {
    double kld;               /* sum of p_b (ln p_b - ln p_q) over the tokens with ln p_b above -16 */
    double log_p, base_log_p; /* of the token that comes */
    bool same_top, finite;    /* finite: all logits are, and the sum */
} kl_row;

kl_row kl_compare(const float *base_log_p, const float *logits, int32_t n, int32_t next);
/* ln of the sum of exp; NaN or infinite where a logit is. */
double kl_log_sum(const float *logits, int32_t n, float *most);

#endif
