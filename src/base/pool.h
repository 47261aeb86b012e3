/* pool.h - the thread pool. One caller and n - 1 workers run one function together, with barriers inside.
 *
 *   caller (thread 0)   pool_run ──► fn(arg, 0, n) ── barrier ── barrier ──► returns when all have
 *   worker 1 .. n - 1   waits    ──► fn(arg, i, n) ── barrier ── barrier ──► waits
 *
 * A waiting thread spins for some microseconds, gives way a few times, then sleeps. Where the process has fewer CPUs than
 * the run has threads (affinity, control-group quota; looked at again every second) nobody spins, so that threads do not
 * steal each other's time. Inside a run rounding and denormals are in the default mode on every thread; the caller's mode comes back at
 * the end. A pool may be lent to several users, also in different threads: a run waits until the one before has ended. A run from
 * inside a run of the same pool is refused. */
#ifndef LOAM_BASE_POOL_H
#define LOAM_BASE_POOL_H

#include "base/error.h"
#include "loam/pool.h"

typedef loam_pool pool;
typedef void (*pool_fn)(void *arg, int ith, int nth); /* 0 <= ith < nth; every thread reaches the same barriers */

/* A pool of n_threads (1 .. LIMIT_THREADS), the caller included. When the system refuses to start a thread the pool is
 * smaller, with a warning in the log: ask pool_threads. LOAM_E_ARG, LOAM_E_NOMEM; *out is NULL then. */
loam_status pool_new(pool **out, int n_threads, loam_error *err);
void pool_free(pool *p); /* not during a run; NULL is fine */

int pool_threads(const pool *p); /* most threads of a run */

/* fn on the first n threads (all of them where n is larger); returns when every one has returned. One thread needs no
 * pool: p may be NULL for n = 1. LOAM_E_ARG when n < 1 or from inside fn. */
loam_status pool_run_n(pool *p, int n, pool_fn fn, void *arg);
/* The same on all threads of the pool. */
loam_status pool_run(pool *p, pool_fn fn, void *arg);

/* Inside a run: returns when all its threads have come here; what they wrote before is visible to all afterwards. */
void pool_barrier(pool *p, int ith);

#endif
