/* random_blocks.h - random but valid blocks of every element type, without encoding anything. */
#ifndef LOAM_MODEL_RANDOM_BLOCKS_H
#define LOAM_MODEL_RANDOM_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loam/tensor.h"

/* splitmix64: state steps by a constant, the output is a mix of it. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Whether blocks of that type can be made. */
bool random_blocks_can(loam_type type);

/* Fills n_blocks whole blocks with values of about that standard deviation and a mean near 0. */
void random_blocks(loam_type type, float deviation, uint8_t *out, size_t n_blocks, uint64_t *state);

#endif
