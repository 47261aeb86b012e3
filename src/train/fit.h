/* fit.h - what dataset.c, fit.c (one evaluation), fit_result.c and fit_loop.c share. */
#ifndef LOAM_TRAIN_FIT_H
#define LOAM_TRAIN_FIT_H

#include "base/error.h"
#include "compute/compute.h"
#include "loam/train.h"
#include "train/tape.h"

struct loam_dataset {
    loam_dataset_params p;
    int64_t n_shards;
    void *data, *labels;
    int64_t *order;            /* [n_shards] */
};

void dataset_shuffle(loam_dataset *ds, int64_t n, uint64_t *state);

struct loam_opt_result {
    int64_t n, n_batches;
    double sum, squares;       /* of the batches' losses */
    bool total;                /* the loss is a sum over batches, not a mean */
    int64_t n_correct;         /* -1: no predictions */
    int32_t *pred;
    size_t n_pred, cap_pred;
};

loam_status result_add(loam_opt_result *r, const loam_opt *opt, loam_error *err);

/* A parameter with what learning keeps of it. */
typedef struct learner {
    float *grad, *m, *v;
    int64_t n;
} learner;

struct loam_opt {
    loam_opt_params p;
    bool is_static;
    learner *learners;         /* [p.n_parameters] */
    loam_tensor **parameters;  /* of the current graph */
    pool *threads;
    int n_threads;
    loam_graph *owner;         /* whose graph the tape has */
    tape *tape;
    tape_memory memory;
    uint64_t arena_bytes, scratch_bytes, shared_bytes;
    value *root;               /* outputs */
    float *inputs, *outputs, *labels;
    int32_t *pred, *pos, *row;
    int64_t n_points, width, n_inputs; /* of a batch; values of an output row; of all inputs */
    bool backward, allocated, evaluated;
    double loss;
    int64_t n_correct;
    int64_t steps, evaluations; /* of the optimizer; with gradients since the last step */
    uint64_t random;
};

#endif
