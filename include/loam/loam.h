/* loam/loam.h - all of Loam's stable interface, in the order in which a text goes through it.
 *
 *   model.h      file -> model               tokenizer.h  text <-> ids
 *   context.h    model, ids -> logits        sampler.h    logits -> id
 *   adapter.h    low-rank adapters and control vectors for a context
 *   pool.h       threads that contexts share
 *   train.h      model, ids -> a model or an adapter that has learned; networks of one's own
 *
 * Statuses, errors, the allocator and the log are in status.h. The lower tier (tensor.h, quant.h, debug.h) is unstable; of it
 * only what these need comes along. */
#ifndef LOAM_LOAM_H
#define LOAM_LOAM_H

#include "loam/adapter.h"
#include "loam/context.h"
#include "loam/model.h"
#include "loam/pool.h"
#include "loam/sampler.h"
#include "loam/status.h"
#include "loam/tokenizer.h"
#include "loam/train.h"

#endif
