/* sched.h - spreads a graph over the devices of a set.
 *
 *   graph ──► each operation gets a device ──► splits: runs of operations of one device, each a graph and a plan of its own
 *
 *   split 0 (CPU0)      split 1 (CPU1)        split 2 (CPU0)
 *   embed .. block 3 ─► copy ─ block 4 .. ─► copy ─ head
 *
 * What a later split reads is a result with a place; where it is read in another memory domain it is copied to a place
 * there. Places are given by life time (gaps.h), the arena of a device is shared by its splits, which run one after another.
 *
 * Which device: 1. where the value is pinned; 2. an accelerator that does this product well; 3. a device of higher priority
 * that fetches far weights of a large product; 4. where its weights lie; 5. what `place` says; 6. where its first computed
 * input is; 7. device 0. A device that has no code for the operation is passed over. */
#ifndef LOAM_DEVICE_SCHED_H
#define LOAM_DEVICE_SCHED_H

#include "device/set.h"

typedef struct sched_rules {
    loam_devices *set;
    int n_threads;
    bool op_offload;
    int (*place)(void *user, const value *v); /* a device, or -1; NULL: nothing to say */
    void *user;
    int64_t max_pages;             /* of attention: for scratch */
} sched_rules;

/* Bytes that go from one domain to another before a split. */
typedef struct sched_copy {
    const weight *from;            /* data: where it lies at the time */
    weight *to;
    uint64_t bytes;
    int domain, from_domain;       /* from_domain -1: the caller's memory */
} sched_copy;

typedef struct sched_split {
    int device;
    plan *p;
    sched_copy *copies;
    size_t n_copies, cap_copies;
    size_t scratch;                /* of a thread */
} sched_split;

/* A place of a value in a domain, or of a weight that was fetched. */
typedef struct sched_place {
    const void *what;              /* value or weight of the original graph */
    int domain;
    weight w;                      /* what readers are bound to */
    uint64_t at, bytes;
    int first, last;               /* splits between which it is needed */
    bool mine;                     /* lies in the domain's memory of this schedule, at `at` */
    int output;                    /* >= 0: lies where the caller wants that output */
} sched_place;

typedef struct sched_plan {
    sched_rules rules;
    sched_split *splits;
    int n_splits, n_copies;
    sched_place **places;          /* addresses stay */
    size_t n_places, cap_places, cap_splits;
    int *device_of;                /* [n_values] of the original graph, -1: nothing to compute */
    int n_values;
    uint64_t need[LIMIT_DEVICES];  /* by domain: places and arena */
    uint64_t arena_at[LIMIT_DEVICES];
    uint8_t *memory[LIMIT_DEVICES];
    uint8_t *scratch[LIMIT_DEVICES], *shared[LIMIT_DEVICES]; /* by device */
    size_t scratch_stride[LIMIT_DEVICES], shared_bytes[LIMIT_DEVICES];
} sched_plan;

/* Takes nothing over: the graph must live as long as the plan. `out` is without memory until sched_plan_take. */
loam_status sched_plan_new(sched_plan **out, const graph *g, const sched_rules *rules, loam_error *err);
void sched_plan_free(sched_plan *p);
loam_status sched_plan_take(sched_plan *p, loam_error *err);

/* Runs split i: copies, then its plan, with everything of `run` but plan, arena and scratch. */
loam_status sched_run_split(sched_plan *p, int i, plan_run *run);
loam_status sched_run(sched_plan *p, plan_run *run);
/* Where a value of the original graph lies after a run; NULL: it was not kept. */
const void *sched_data(const sched_plan *p, const value *v);

#endif
