/* loam/loam.h - all of Loam's stable interface.
 *
 *   file --model.h--> model --context.h--> logits
 *
 * The lower tier (tensor.h, quant.h) is unstable and comes only with what needs it. */
#ifndef LOAM_LOAM_H
#define LOAM_LOAM_H

#include "loam/context.h"
#include "loam/model.h"
#include "loam/status.h"

#endif
