/* random_blocks.h - random but valid blocks of every element type, without encoding anything. */
#ifndef LOAM_MODEL_RANDOM_BLOCKS_H
#define LOAM_MODEL_RANDOM_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mix.h"
#include "loam/tensor.h"

static inline uint64_t random_next(uint64_t *state)
{
    return mix64(*state += MIX64_STEP);
}

/* Whether blocks of that type can be made. */
bool random_blocks_can(loam_type type);

/* Fills n_blocks whole blocks with values of about that standard deviation and a mean near 0. */
void random_blocks(loam_type type, float deviation, uint8_t *out, size_t n_blocks, uint64_t *state);

#endif
