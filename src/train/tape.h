/* tape.h - a graph as a list of steps of training: forward, loss, backward, with buffers by life time.
 *
 *   value 0 .. n        forward steps, in the graph's order
 *   root                the loss reads it and leaves its gradient
 *   value n .. 0        again those results that were not kept, and gradients, in reverse order
 *
 * A result is kept only while something reads it, in either direction. Results that cost little (norms, activations) are
 * thrown away and made again before the gradient that reads them; with `recompute` all of a block are, except what the
 * next block reads. Gradients live from their first contribution to the step that passes them on. All threads meet before
 * every step; no result depends on their number. */
#ifndef LOAM_TRAIN_TAPE_H
#define LOAM_TRAIN_TAPE_H

#include "graph/grad.h"

/* A weight as training has it. */
typedef struct tape_weight {
    const weight *w;   /* what products read */
    float *grad;       /* [ne] to which gradients are added; NULL: frozen */
} tape_weight;

typedef struct tape_spec {
    const device *dev;
    int n_threads;
    bool recompute;
    value *root;
    /* The training form of a weight of the graph. */
    tape_weight (*bind)(void *user, const weight *w);
    /* Reads root's data x and, where dx is not NULL, writes its gradient: on all threads, may use worker_barrier. */
    void (*loss)(void *user, worker *w, const float *x, float *dx);
    void *user;
    size_t loss_scratch, loss_shared; /* bytes: of a thread, of all */
} tape_spec;

typedef enum tape_kind { TAPE_RUN, TAPE_LOSS, TAPE_ZERO, TAPE_GRAD } tape_kind;

typedef struct tape_step {
    tape_kind kind;
    value *v;
    run_fn run;
    grad_fn gradient;
    int64_t at;                      /* RUN: where the result goes; ZERO, LOSS: the gradient, -1 none */
    int64_t dy, dx[GRAPH_MAX_SRC];   /* GRAD: places in the arena; -1: not wanted, -2: in weight_grad */
    float *weight_grad[GRAPH_MAX_SRC];
    unsigned add;
} tape_step;

typedef struct tape {
    graph g;
    tape_spec spec;
    tape_step *steps;
    int n_steps, n_forward;          /* n_forward: steps up to the loss, which is included */
    uint64_t arena_bytes;
    size_t scratch_bytes, shared_bytes;
    void **saved;                    /* by value id */
    int64_t *grad_at;                /* by value id: place of the gradient, -1 none */
} tape;

/* Takes over the graph (also on failure). LOAM_E_UNSUPPORTED names an operation without a gradient on the way of one. */
loam_status tape_new(tape **out, graph *g, const tape_spec *spec, loam_error *err);
/* As tape_new, but on failure the graph is still the caller's; on success forget it. */
loam_status tape_try(tape **out, graph *g, const tape_spec *spec, loam_error *err);
void tape_free(tape *t);

/* Memory for a run: arena of arena_bytes, scratch of n_threads * scratch_bytes, shared of shared_bytes, 64-byte aligned. */
typedef struct tape_memory {
    uint8_t *arena, *scratch, *shared;
} tape_memory;

typedef struct tape_input {
    const void *inputs[INPUT_COUNT];
    grad_view view;                  /* saved is filled in */
} tape_input;

/* Forward and loss; with backward also the gradients. */
loam_status tape_run(tape *t, pool *threads, const tape_memory *m, const tape_input *in, bool backward);

#endif
