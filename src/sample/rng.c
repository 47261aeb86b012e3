/* rng.c - SplitMix64: a counter that advances by an odd constant, mixed into 64 output bits (Steele, Lea and Flood, 2014). The
 * state starts at the seed, so that every seed has its own place in the cycle of 2^64. Same draws on every machine. */
#include "base/mix.h"
#include "sample/sample.h"

double smp_uniform(loam_sampler *s)
{
    return (double)(mix64(s->rng += MIX64_STEP) >> 11) * 0x1p-53;
}
