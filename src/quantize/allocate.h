/* allocate.h - one option for each item so that the sum of costs is small and the sum of sizes within a limit. */
#ifndef LOAM_QUANTIZE_ALLOCATE_H
#define LOAM_QUANTIZE_ALLOCATE_H

#include <stdbool.h>
#include <stdint.h>

#define ALLOCATE_OPTIONS 32

typedef struct allocate_item {
    int n;                             /* 1 .. ALLOCATE_OPTIONS */
    uint64_t bytes[ALLOCATE_OPTIONS];  /* ascending */
    double cost[ALLOCATE_OPTIONS];     /* >= 0 */
    int chosen;                        /* out */
} allocate_item;

/* Sets chosen of every item. False where even the smallest options are larger than the limit; chosen is then 0 everywhere. */
bool allocate(allocate_item *items, int n, uint64_t limit);

uint64_t allocate_bytes(const allocate_item *items, int n); /* of what is chosen */
double allocate_cost(const allocate_item *items, int n);

#endif
