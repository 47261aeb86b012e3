/* pool.c - what a barrier and a run of the thread pool cost. Usage: bench_pool [threads] */
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "base/pool.h"

enum { BARRIERS = 200000, RUNS = 100000 };

static void barriers(void *arg, int ith, int nth)
{
    (void)nth;
    for (int i = 0; i < BARRIERS; i++) pool_barrier(arg, ith);
}

static void nothing(void *arg, int ith, int nth)
{
    (void)arg;
    (void)ith;
    (void)nth;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : os_cpu_count();
    loam_error err;
    pool *p;
    if (pool_new(&p, n, &err) != LOAM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int repeat = 0; repeat < 3; repeat++) {
        uint64_t t0 = os_now_ns();
        pool_run(p, barriers, p);
        uint64_t t1 = os_now_ns();
        for (int i = 0; i < RUNS; i++) pool_run(p, nothing, NULL);
        uint64_t t2 = os_now_ns();
        printf("%d threads: barrier %.0f ns, run %.0f ns\n", n, (double)(t1 - t0) / BARRIERS, (double)(t2 - t1) / RUNS);
    }
    pool_free(p);
    return 0;
}
