/* median.h - the middle of several timings. */
#ifndef LOAM_BENCH_MEDIAN_H
#define LOAM_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts v. */
static inline double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}

#endif
