/* pool.c - see pool.h.
 *
 * Two words carry everything. Bit 0 of a word says that somebody sleeps on it; a poster swaps in the next value and
 * makes the system call only when the bit was set.
 *
 *   job    |  generation: 21 bits  |  threads of the run: 10 bits, 0 = end  |  asleep |
 *   round  |  barriers passed: 31 bits                                      |  asleep |
 *
 * The number of threads is part of the job word because a worker that is left out of a run reads nothing else: it may
 * still be looking when the next run is being written. The others cannot fall behind: a run ends with their arrival. */
#include "base/pool.h"

#include <fenv.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"

#define ASLEEP 1u
#define JOB_THREADS(word) ((int)((word) >> 1 & 1023u))
#define JOB_WORD(generation, n) ((uint32_t)(generation) << 11 | (uint32_t)(n) << 1)
_Static_assert(LIMIT_THREADS <= 1023, "the job word has 10 bits for the number of threads");

#define SPIN_NS 100000u       /* longer than any phase of a step is uneven, short against the cost of a token */
#define YIELDS 16              /* lets the other threads of a crowded CPU arrive: a sixth of the cost of sleeping at once */
#define RECHECK_NS 1000000000u

typedef struct worker {
    pool *owner;
    int ith;
    os_thread *thread;
    _Atomic uint64_t id;                  /* os_thread_id() of the thread; 0 before it runs */
} worker;

struct loam_pool {
    alignas(64) _Atomic uint32_t job;
    alignas(64) _Atomic uint32_t arrived; /* threads at the barrier that is being gathered */
    _Atomic uint32_t round;               /* same cache line: the last thread to arrive owns it already */
    alignas(64) pool_fn fn;               /* of the run; written before the job word */
    void *arg;
    int active;
    _Atomic uint32_t spin_ns;             /* 0: more threads than CPUs */
    _Atomic uint32_t turn;                /* TURN_... */
    _Atomic uint64_t holder;              /* thread whose turn it is */
    uint32_t generation;
    uint64_t checked_ns;                  /* when the number of CPUs was looked at */
    int cpus;
    int n_threads;                        /* with the caller */
    worker workers[];                     /* [n_threads - 1] */
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/* Returns the word as soon as it differs from `old` (both without the bit). */
static uint32_t wait_change(_Atomic uint32_t *word, uint32_t old, uint32_t spin_ns)
{
    uint32_t v;
    uint64_t end = 0;
    while (spin_ns) {
        for (int i = 0; i < 64; i++) {
            v = atomic_load_explicit(word, memory_order_acquire) & ~ASLEEP;
            if (v != old) return v;
            relax();
        }
        uint64_t now = os_now_ns();
        if (!end) end = now + spin_ns;
        if (now >= end) break;
    }
    for (int i = 0; i < YIELDS; i++) {
        v = atomic_load_explicit(word, memory_order_acquire) & ~ASLEEP;
        if (v != old) return v;
        os_yield();
    }
    for (;;) {
        v = atomic_load_explicit(word, memory_order_acquire);
        if ((v & ~ASLEEP) != old) return v & ~ASLEEP;
        if (!(v & ASLEEP) && !atomic_compare_exchange_strong(word, &v, old | ASLEEP)) continue;
        os_futex_wait((const uint32_t *)word, old | ASLEEP);
    }
}

static void post(_Atomic uint32_t *word, uint32_t next)
{
    if (atomic_exchange(word, next) & ASLEEP) os_futex_wake_all((const uint32_t *)word);
}

/* True for the last thread, which opens the barrier. The others must look at nothing of the run after they are counted:
 * its end may be all that the caller waits for. */
static bool arrive(pool *p)
{
    uint32_t active = (uint32_t)p->active;
    if (atomic_fetch_add(&p->arrived, 1) + 1 < active) return false;
    atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
    post(&p->round, (atomic_load_explicit(&p->round, memory_order_relaxed) & ~ASLEEP) + 2);
    return true;
}

void pool_barrier(pool *p, int ith)
{
    (void)ith;
    if (!p || p->active == 1) return;
    uint32_t seen = atomic_load_explicit(&p->round, memory_order_acquire) & ~ASLEEP;
    if (!arrive(p)) wait_change(&p->round, seen, atomic_load_explicit(&p->spin_ns, memory_order_relaxed));
}

static void work(void *arg)
{
    worker *w = arg;
    pool *p = w->owner;
    uint32_t seen = 0;
    atomic_store(&w->id, os_thread_id());
    for (;;) {
        seen = wait_change(&p->job, seen, atomic_load_explicit(&p->spin_ns, memory_order_relaxed));
        int n = JOB_THREADS(seen);
        if (n == 0) return;
        if (w->ith >= n) continue;
        fesetenv(FE_DFL_ENV);
        p->fn(p->arg, w->ith, n);
        arrive(p);
    }
}

/* Looks at the machine now and then, and decides whether the n threads of the next run may spin. */
static void set_spin(pool *p, int n)
{
    uint64_t now = os_now_ns();
    if (!p->cpus || now - p->checked_ns >= RECHECK_NS) {
        p->cpus = os_cpu_count();
        p->checked_ns = now;
    }
    atomic_store_explicit(&p->spin_ns, n <= p->cpus ? SPIN_NS : 0, memory_order_relaxed);
}

loam_status pool_new(pool **out, int n_threads, loam_error *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > LIMIT_THREADS)
        return fail(err, LOAM_E_ARG, "%d threads: 1 to %d are possible", n_threads, LIMIT_THREADS);
    size_t bytes = sizeof(pool) + (size_t)(n_threads - 1) * sizeof(worker);
    pool *p = mem_zalloc(bytes);
    if (!p) return fail_nomem(err, "a thread pool", bytes);
    set_spin(p, n_threads);
    p->active = 1;
    p->n_threads = 1;
    for (int i = 1; i < n_threads; i++) {
        worker *w = &p->workers[i - 1];
        w->owner = p;
        w->ith = i;
        w->thread = os_thread_start(work, w);
        if (!w->thread) {
            log_at(LOAM_LOG_WARN, "the system started %d of %d threads", i, n_threads);
            break;
        }
        p->n_threads = i + 1;
    }
    *out = p;
    return LOAM_OK;
}

void pool_free(pool *p)
{
    if (!p) return;
    post(&p->job, JOB_WORD(++p->generation, 0));
    for (int i = 1; i < p->n_threads; i++) os_thread_join(p->workers[i - 1].thread);
    mem_free(p);
}

int pool_threads(const pool *p) { return p ? p->n_threads : 1; }

static void run(pool *p, int n, pool_fn fn, void *arg)
{
    p->active = n;
    if (n == 1) {
        fn(arg, 0, 1);
        return;
    }
    set_spin(p, n);
    p->fn = fn;
    p->arg = arg;
    post(&p->job, JOB_WORD(++p->generation, n));
    fn(arg, 0, n);
    pool_barrier(p, 0);
    p->active = 1;
}

/* ---- turns: one run at a time ---- */

enum { TURN_FREE, TURN_TAKEN, TURN_AWAITED /* taken, and somebody sleeps on the word */ };

/* Whether the calling thread is part of a run of this pool: waiting for its end would be waiting for itself. */
static bool inside(pool *p)
{
    uint64_t id = os_thread_id();
    bool found = atomic_load(&p->holder) == id;
    for (int i = 1; i < p->n_threads; i++) found = found || atomic_load(&p->workers[i - 1].id) == id;
    return found;
}

static bool take_turn(pool *p)
{
    uint32_t seen = TURN_FREE;
    if (!atomic_compare_exchange_strong(&p->turn, &seen, TURN_TAKEN)) {
        if (inside(p)) return false;
        while (atomic_exchange(&p->turn, TURN_AWAITED) != TURN_FREE) os_futex_wait((const uint32_t *)&p->turn, TURN_AWAITED);
    }
    atomic_store(&p->holder, os_thread_id());
    return true;
}

static void give_turn(pool *p)
{
    atomic_store(&p->holder, 0);
    if (atomic_exchange(&p->turn, TURN_FREE) == TURN_AWAITED) os_futex_wake_all((const uint32_t *)&p->turn);
}

loam_status pool_run_n(pool *p, int n, pool_fn fn, void *arg)
{
    if (n < 1) return LOAM_E_ARG;
    if (n > pool_threads(p)) n = pool_threads(p);
    if (p && !take_turn(p)) return LOAM_E_ARG;
    fenv_t mode;
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    if (p) run(p, n, fn, arg);
    else fn(arg, 0, 1);
    fesetenv(&mode);
    if (p) give_turn(p);
    return LOAM_OK;
}

loam_status pool_run(pool *p, pool_fn fn, void *arg) { return pool_run_n(p, pool_threads(p), fn, arg); }

/* ---- public names ---- */

loam_status loam_pool_new(loam_pool **out, int32_t n_threads, loam_error *err)
{
    return out ? pool_new(out, n_threads, err) : fail(err, LOAM_E_ARG, "loam_pool_new: out is NULL");
}

void loam_pool_free(loam_pool *p) { pool_free(p); }
int32_t loam_pool_n_threads(const loam_pool *p) { return pool_threads(p); }
