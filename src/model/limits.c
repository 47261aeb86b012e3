/* limits.c - measures what bounds the speed of a model: multiply-adds and reading; see loam/debug.h.
 *
 * Pages of a file are 4 KiB ones, as they are for weights that are used in place. Each thread takes the next megabyte that
 * nobody has read yet. */
#include <stdatomic.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include "loam/debug.h"

enum { CHUNK = 1 << 20, LINE = 64, AHEAD = 2048 };

typedef struct probe {
    os_file file;
    const kernels *set;
    _Atomic uint64_t next;             /* chunk */
    _Atomic uint64_t sum;              /* of what was read: nobody may leave the reading out */
    double macs[LIMIT_THREADS][2];
} probe;

static void compute(void *arg, int ith, int nth)
{
    (void)nth;
    probe *p = arg;
    for (int floats = 0; floats < 2; floats++) p->macs[ith][floats] = kernels_peak(p->set, floats);
}

/* Adds up whole lines, the next page's already on their way; a tail shorter than a line is left out. */
static uint64_t read_lines(const uint8_t *data, uint64_t bytes)
{
    typedef uint64_t line __attribute__((vector_size(LINE), aligned(1), may_alias));
    line sum = { 0 };
    for (uint64_t i = 0; i + LINE <= bytes; i += LINE) {
        __builtin_prefetch(data + i + AHEAD);
        sum += *(const line *)(const void *)(data + i);
    }
    uint64_t all = 0;
    for (size_t i = 0; i < LINE / sizeof all; i++) all += sum[i];
    return all;
}

static void read_file(void *arg, int ith, int nth)
{
    (void)ith;
    (void)nth;
    probe *p = arg;
    for (uint64_t at; (at = atomic_fetch_add(&p->next, 1) * CHUNK) < p->file.size;) {
        uint64_t left = p->file.size - at;
        atomic_fetch_add(&p->sum, read_lines(p->file.data + at, left < CHUNK ? left : CHUNK));
    }
}

static loam_status measure(probe *p, pool *threads, loam_limits *best)
{
    loam_status s = pool_run(threads, compute, p);
    uint64_t took = 0;
    for (int i = 0; i < 2 && s == LOAM_OK; i++) { /* the first one brings the pages in */
        p->next = 0;
        uint64_t start = os_now_ns();
        s = pool_run(threads, read_file, p);
        took = os_now_ns() - start;
    }
    if (s != LOAM_OK) return s;
    double macs[2] = { 0, 0 }, read = (double)p->file.size * 1e9 / (double)(took ? took : 1);
    for (int i = 0; i < pool_threads(threads); i++)
        for (int floats = 0; floats < 2; floats++) macs[floats] += p->macs[i][floats];
    if (macs[0] > best->int_macs) best->int_macs = macs[0];
    if (macs[1] > best->float_macs) best->float_macs = macs[1];
    if (read > best->read_bytes) best->read_bytes = read;
    best->kernels = p->set->name;
    best->reads++;
    return LOAM_OK;
}

loam_status loam_debug_limits(const char *path, int32_t n_threads, loam_limits *best, loam_error *err)
{
    if (!path || !best) return fail(err, LOAM_E_ARG, "limits: a path and a place for the result are needed");
    if (n_threads == 0) n_threads = os_cpu_count();
    pool *threads;
    loam_status s = pool_new(&threads, n_threads, err);
    if (s != LOAM_OK) return s;
    probe *p = mem_zalloc(sizeof *p);
    s = p ? os_file_open(&p->file, path, true, err) : fail(err, LOAM_E_NOMEM, "limits: out of memory");
    if (s == LOAM_OK) {
        p->set = kernels_get();
        s = measure(p, threads, best);
        if (s != LOAM_OK) fail(err, s, "limits: the threads could not be started");
        os_file_close(&p->file);
    }
    mem_free(p);
    pool_free(threads);
    return s;
}
