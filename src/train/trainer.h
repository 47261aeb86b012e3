/* trainer.h - what the files of src/train share.
 *
 *   params.c    which tensors learn: copies, gradients, optimizer state     optim.c  the update
 *   head.c      the output matrix with the loss, in pieces of the batch      state.c  saving and loading
 *   trainer.c   the public calls, batches                                     save.c   models and adapters as files
 *   tape.c      the list of steps                                            schedule.c  learning rates */
#ifndef LOAM_TRAIN_TRAINER_H
#define LOAM_TRAIN_TRAINER_H

#include "base/pool.h"
#include "loam/train.h"
#include "model/model.h"
#include "train/tape.h"

/* A tensor that learns. */
typedef struct param {
    char name[72];
    const weight *base;        /* the model's; of an adapter the matrix beside which it stands */
    weight w;                  /* F32, data is `data` */
    weight w16;                /* BF16 copy that products read; data NULL: none */
    float *data, *grad;
    uint64_t n;
    bool decays, matrix;       /* takes weight decay; Muon applies */
    float *m, *v;              /* moments (AdamW), momentum (SGD, Muon: m); NULL where not needed */
    uint8_t *m8, *v8;          /* 8-bit moments in place of them: levels, then scales (optim8.c) */
} param;

typedef struct head_op {       /* what follows the product, in order */
    op_kind op;                /* SCALE, ADD, SOFTCAP */
    float a;
    const weight *bias;
    float *bias_grad;
} head_op;

#define HEAD_OPS 8

typedef struct head {
    tape_weight w;             /* [width, classes] */
    int64_t width, classes;
    head_op ops[HEAD_OPS];
    int n_ops;
    int piece;                 /* rows at a time */
    float smoothing;
    /* the batch: */
    const int32_t *rows, *labels; /* [n] tokens with targets, ascending, and the targets */
    const float *weights;
    int n;
    float *losses;             /* [n] */
    uint8_t *correct;          /* [n] */
    int64_t n_tokens;
} head;

struct loam_trainer {
    const loam_model *model;
    loam_trainer_params p;
    param *params;
    size_t n_params;
    adapter_pair *pairs;       /* [n_params / 2] with lora_rank */
    graph_adapter adapter;
    pool *threads;
    int n_threads;
    /* the plan for the last shape of a batch, and its memory */
    tape *tape;
    int tape_tokens;
    uint8_t *arena, *scratch, *shared;
    uint64_t arena_bytes, scratch_bytes, shared_bytes;
    head head;
    /* the batch */
    int32_t *rows, *labels, *pos, *row_number;
    float *weights, *losses, *ones;
    uint8_t *correct;
    grad_run *runs;
    int n_runs;
    size_t batch_cap;
    /* since the last update */
    double weight;
    int64_t tokens;
    int64_t updates;
};

/* params.c */
loam_status params_make(loam_trainer *t, loam_error *err);  /* names and shapes; no memory for values */
loam_status params_alloc(loam_trainer *t, loam_error *err); /* values, gradients, state */
void params_free(loam_trainer *t);
void params_memory(const loam_trainer *t, loam_train_memory *out);
tape_weight params_bind(void *trainer, const weight *w);
void params_round(loam_trainer *t); /* BF16 copies after an update */

/* head.c */
/* Finds the product behind the logits of the graph and what follows it; *root is what the product reads. */
loam_status head_find(loam_trainer *t, graph *g, value **root, loam_error *err);
void head_loss(void *trainer, worker *w, const float *x, float *dx);
size_t head_scratch(const head *h);
size_t head_shared(const head *h);

/* optim.c */
loam_status optim_step(loam_trainer *t, double rate, loam_update *info, loam_error *err);
void optim_zero(loam_trainer *t);

/* optim8.c: moments in 8 bits. */
typedef enum moment_kind { MOMENT_FIRST, MOMENT_SECOND } moment_kind;
typedef struct moments8 {      /* values [first, first + count) of n, one block; number: of the update */
    uint64_t n, first;
    int count;
    uint64_t number;
} moments8;
uint64_t moments8_bytes(uint64_t n);
void moments8_read(const uint8_t *from, const moments8 *q, moment_kind kind, float *out);
void moments8_write(uint8_t *to, const moments8 *q, moment_kind kind, const float *in);

/* How the model's graph is built for a micro-batch. */
build_params trainer_build_params(const loam_trainer *t, int n_tokens);

loam_status trainer_check(const loam_trainer_params *p, loam_error *err);

#endif
