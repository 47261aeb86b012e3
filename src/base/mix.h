/* mix.h - the mixing of SplitMix64 (Steele, Lea and Flood, 2014): all random choices of Loam come from it, so that they are the
 * same on every machine. A generator is a counter that grows by MIX64_STEP, mixed. */
#ifndef LOAM_BASE_MIX_H
#define LOAM_BASE_MIX_H

#include <stdint.h>

#define MIX64_STEP 0x9E3779B97F4A7C15u

static inline uint64_t mix64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

#endif
