/* optim.c - the update: the length of the gradient, clipping, one step of the optimizer.
 *
 * Tensors are cut into pieces of PIECE values, dealt out to the threads; sums of pieces are added in their order, so that
 * nothing depends on the number of threads. First all gradients are looked at: one that is not finite, and nothing changes. */
#include <math.h>
#include <string.h>
#include <stdio.h>

#include "base/mathd.h"
#include "base/mem.h"
#include "kernels/learn.h"
#include "train/muon.h"
#include "train/trainer.h"

#define PIECE 65536
#define SMALL 256          /* values of a block of 8-bit moments */

typedef struct slice {
    param *p;
    uint64_t first, n;
} slice;

typedef struct update_job {
    loam_trainer *t;
    const kernels *k;
    slice *slices;
    double *squares;
    size_t n;
    float scale;           /* of the gradients: clipping over the weight of the targets */
    double rate;
    int64_t number;        /* of this update */
} update_job;

static loam_status cut(update_job *j, loam_error *err)
{
    const loam_trainer *t = j->t;
    size_t n = 0;
    for (size_t i = 0; i < t->n_params; i++) n += (size_t)((t->params[i].n + PIECE - 1) / PIECE);
    j->slices = mem_alloc_array(n, sizeof *j->slices);
    j->squares = mem_alloc_array(n, sizeof *j->squares);
    if (!j->slices || !j->squares) return fail_nomem(err, "an update", n * sizeof *j->slices);
    for (size_t i = 0; i < t->n_params; i++)
        for (uint64_t at = 0; at < t->params[i].n; at += PIECE) {
            uint64_t left = t->params[i].n - at;
            j->slices[j->n++] = (slice){ &t->params[i], at, left < PIECE ? left : PIECE };
        }
    return LOAM_OK;
}

static void measure(void *arg, int ith, int nth)
{
    update_job *j = arg;
    for (size_t i = (size_t)ith; i < j->n; i += (size_t)nth)
        j->squares[i] = j->k->learn->square_sum(j->slices[i].p->grad + j->slices[i].first, (int64_t)j->slices[i].n);
}

/* ---- one piece ---- */

static double power(double x, int64_t n) { return mathd_exp((double)n * mathd_ln(x)); }

static adamw_args adamw_of(const update_job *j, const param *p)
{
    const loam_trainer_params *tp = &j->t->p;
    double b1 = tp->beta1, b2 = tp->beta2;
    return (adamw_args){
        .g_scale = j->scale, .beta1 = tp->beta1, .beta2 = tp->beta2, .eps = tp->eps,
        .rate = (float)(j->rate / (b1 > 0 ? 1.0 - power(b1, j->number) : 1.0)),
        .root = (float)(1.0 / __builtin_sqrt(b2 > 0 ? 1.0 - power(b2, j->number) : 1.0)),
        .keep = p->decays ? (float)(1.0 - j->rate * tp->weight_decay) : 1.0f,
    };
}

/* Moments come out of their blocks, take the step and go back. */
static void small_adamw(const update_job *j, const slice *s, adamw_args *a)
{
    param *p = s->p;
    float m[SMALL], v[SMALL];
    for (uint64_t at = s->first; at < s->first + s->n; at += SMALL) {
        uint64_t left = s->first + s->n - at;
        moments8 q = { p->n, at, left < SMALL ? (int)left : SMALL, (uint64_t)j->number };
        moments8_read(p->m8, &q, MOMENT_FIRST, m);
        moments8_read(p->v8, &q, MOMENT_SECOND, v);
        a->p = p->data + at, a->g = p->grad + at, a->m = m, a->v = v, a->n = q.count;
        j->k->learn->adamw(a);
        moments8_write(p->m8, &q, MOMENT_FIRST, m);
        moments8_write(p->v8, &q, MOMENT_SECOND, v);
    }
}

static void step_slice(const update_job *j, const slice *s)
{
    const loam_trainer_params *tp = &j->t->p;
    param *p = s->p;
    if (tp->optimizer == LOAM_MUON && p->matrix) return;
    if (tp->optimizer == LOAM_SGD) {
        sgd_args a = {
            .p = p->data + s->first, .m = p->m ? p->m + s->first : NULL, .g = p->grad + s->first, .n = (int64_t)s->n,
            .g_scale = j->scale, .rate = (float)j->rate, .momentum = tp->momentum, .decay = p->decays ? tp->weight_decay : 0.0f,
            .nesterov = tp->nesterov,
        };
        j->k->learn->sgd(&a);
        return;
    }
    adamw_args a = adamw_of(j, p);
    if (p->m8) {
        small_adamw(j, s, &a);
        return;
    }
    a.p = p->data + s->first, a.m = p->m + s->first, a.v = p->v + s->first, a.g = p->grad + s->first, a.n = (int64_t)s->n;
    j->k->learn->adamw(&a);
}

static void step_all(void *arg, int ith, int nth)
{
    update_job *j = arg;
    for (size_t i = (size_t)ith; i < j->n; i += (size_t)nth) {
        const slice *s = &j->slices[i];
        step_slice(j, s);
        if (j->t->p.optimizer != LOAM_MUON || !s->p->matrix) memset(s->p->grad + s->first, 0, (size_t)s->n * 4);
    }
}

/* ---- all of it ---- */

/* Length of the gradient, of the mean loss; the name of the first tensor that is not finite. */
static double length(update_job *j, loam_update *info)
{
    double sum = 0.0;
    for (size_t i = 0; i < j->n; i++) {
        if (!isfinite(j->squares[i])) {
            info->skipped = true;
            snprintf(info->tensor, sizeof info->tensor, "%s", j->slices[i].p->name);
            return NAN;
        }
        sum += j->squares[i];
    }
    return __builtin_sqrt(sum) / j->t->weight;
}

void optim_zero(loam_trainer *t)
{
    for (size_t i = 0; i < t->n_params; i++) memset(t->params[i].grad, 0, (size_t)t->params[i].n * 4);
    t->weight = 0.0;
    t->tokens = 0;
}

static loam_status take_step(update_job *j, loam_error *err)
{
    loam_trainer *t = j->t;
    /* What can fail comes first: nothing has changed then. */
    muon_space space = { 0 };
    loam_status status = t->p.optimizer == LOAM_MUON ? muon_prepare(t, &space, err) : LOAM_OK;
    if (status == LOAM_OK) status = pool_run_n(t->threads, t->n_threads, step_all, j);
    if (status == LOAM_OK && t->p.optimizer == LOAM_MUON) status = muon_step(t, &space, j->scale, j->rate);
    muon_release(&space);
    if (status != LOAM_OK) return status;
    t->updates = j->number;
    params_round(t);
    optim_zero(t);
    return LOAM_OK;
}

loam_status optim_step(loam_trainer *t, double rate, loam_update *info, loam_error *err)
{
    update_job j = { .t = t, .k = kernels_get(), .rate = rate, .number = t->updates + 1 };
    *info = (loam_update){ .update = t->updates };
    if (t->weight <= 0.0) {
        if (t->tokens) optim_zero(t);
        return LOAM_OK;
    }
    loam_status status = cut(&j, err);
    if (status == LOAM_OK) status = pool_run_n(t->threads, t->n_threads, measure, &j);
    if (status == LOAM_OK) info->norm = length(&j, info);
    if (status == LOAM_OK && info->skipped) {
        optim_zero(t);
    } else if (status == LOAM_OK) {
        double clip = t->p.clip_norm > 0 && info->norm > t->p.clip_norm ? t->p.clip_norm / (info->norm + 1e-6) : 1.0;
        j.scale = (float)(clip / t->weight);
        status = take_step(&j, err);
        if (status == LOAM_OK) info->update = j.number;
    }
    mem_free(j.slices);
    mem_free(j.squares);
    return status;
}
