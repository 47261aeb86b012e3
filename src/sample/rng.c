/* rng.c - SplitMix64: a counter that advances by an odd constant, mixed into 64 output bits (Steele, Lea and Flood, 2014). The
 * state starts at the seed, so that every seed has its own place in the cycle of 2^64. Same draws on every machine. */
#include "sample/sample.h"

double smp_uniform(loam_sampler *s)
{
    uint64_t x = s->rng += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53;
}
