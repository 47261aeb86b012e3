/* plan.h - an ordered list of steps with buffers, made once per shape class (tokens, outputs) and kept.
 *
 * A step runs one operation on all threads. The planner decides where threads must meet: a step needs a barrier before it
 * only if it reads, in another partition, what the current phase (the steps since the last barrier) has written, or writes
 * where the phase still reads. Buffers live from their writer to their last reader; a buffer freed in a phase is used
 * again only after the next barrier. Elementwise results take the place of an input that dies there. */
#ifndef LOAM_GRAPH_PLAN_H
#define LOAM_GRAPH_PLAN_H

#include <stdatomic.h>

#include "base/pool.h"
#include "graph/graph.h"
#include "kernels/kernels.h"
#include "tensor/pages.h"

/* COPY: every thread makes the whole result for itself. */
typedef enum split_kind { SPLIT_NONE, SPLIT_TOKENS, SPLIT_ROWS, SPLIT_ANY, SPLIT_OWN, SPLIT_COPY } split_kind;

typedef struct step step;
typedef struct worker worker;
typedef void (*run_fn)(const step *s, worker *w);

struct step {
    const value *v;
    run_fn run;
    split_kind split;      /* TOKENS, ROWS, OWN or COPY */
    int heads;             /* ROWS: cut into so many equal units; 0: into units of ROW_UNIT values */
    bool barrier;          /* all threads meet before it */
};

typedef struct grad_step grad_step;
typedef struct grad_view grad_view;
typedef void (*grad_fn)(const grad_step *g, worker *w);

/* A device runs steps; plan_new asks it for the code of each operation. */
typedef struct device {
    const char *name, *description;
    run_fn (*kernel)(op_kind op);                       /* NULL: cannot run it */
    size_t (*scratch)(const value *v, int n_threads);   /* bytes that one thread needs for this operation */
    size_t (*shared)(const value *v, int n_threads, int64_t max_pages); /* bytes shared by all threads for it */
    /* In training (graph/grad.h): the forward step where it is another one (else NULL), the gradient, and what both need. */
    run_fn (*learn)(op_kind op);
    grad_fn (*gradient)(op_kind op);
    size_t (*grad_scratch)(const value *v, int n_tokens);
    size_t (*grad_shared)(const value *v);
} device;

typedef struct plan {
    graph g;
    step *steps;
    int n_steps, n_barriers;
    uint64_t arena_bytes;
    const device *dev;
} plan;

/* Everything a run needs besides the plan; owned by the context. */
typedef struct plan_run {
    const plan *p;
    const kernels *k;
    pool *threads;
    int n_threads;                    /* of this run */
    uint8_t *arena;
    uint8_t *scratch;                 /* scratch_stride bytes for each thread */
    size_t scratch_stride;
    uint8_t *shared;                  /* for operations that meet inside */
    size_t shared_bytes;
    const void *inputs[INPUT_COUNT];
    void *outputs[OUTPUT_COUNT];
    const kv_view *kv;
    bool (*abort)(void *user);        /* NULL: never; polled by the first thread */
    void *abort_user;
    atomic_int stop;                  /* set when abort, the observer or an operation of the caller said so */
    _Atomic uint64_t cache_bytes;     /* of keys and values that attention has read */
    atomic_int bad_index;             /* 1 + id of a look-up that was given an index out of range; its row is zeros */
    /* Called by the first thread before (ask) and after a step, while all others wait; NULL: none. */
    bool (*observe)(void *user, const value *v, worker *w, bool ask, uint64_t ns);
    void *observe_user;
    const grad_view *grads;           /* in training, else NULL */
} plan_run;

struct worker {
    int ith, nth;
    plan_run *run;
    uint8_t *scratch;
};

/* Takes over the graph (also on failure). On success *out owns the plan, for runs of at most n_threads threads. */
loam_status plan_new(plan **out, graph *g, const device *dev, int n_threads, loam_error *err);
/* The same, but on failure the graph stays the caller's. */
loam_status plan_try(plan **out, graph *g, const device *dev, int n_threads, loam_error *err);
void plan_free(plan *p);
uint64_t plan_bytes(const plan *p); /* on the heap: steps and graph; NULL: 0 */
/* Largest scratch of one thread and largest shared space for this plan. */
void plan_scratch(const plan *p, int n_threads, int64_t max_pages, size_t *scratch, size_t *shared);
/* LOAM_OK, LOAM_E_ABORTED, or LOAM_E_ARG with bad_index set. Allocates nothing. */
loam_status plan_execute(plan_run *r);

/* Steps of so few tokens are made with few barriers: threads repeat what is short, and attention is cut by heads. */
#define FEW_TOKENS 4
/* Marks (value.heads) what each thread can do for its own heads without a barrier. */
void plan_mark_heads(graph *g, int n_threads);

/* ---- for the code of operations ---- */

/* Where a value's data lies in this run. */
void *value_data(const value *v, const worker *w);
/* True when the run is being aborted; the first thread polls the callback. Call it every few milliseconds of work. */
bool worker_stopped(worker *w);
void worker_barrier(worker *w);

typedef struct range {
    int64_t first, last;   /* half-open */
} range;
/* Part ith of nth of n items, cut at multiples of unit. The same for the same arguments everywhere: partitions agree. */
range range_of(int64_t n, int64_t unit, int ith, int nth);
/* Partition of rows: one unit for all operations, so that ROWS steps of equal width agree. */
#define ROW_UNIT 16

#endif
