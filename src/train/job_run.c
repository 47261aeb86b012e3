/* job_run.c - the loop of a training run.
 *
 *   step:  accumulate x (forward, backward) ─ update ─ [validate ─ write the best] ─ [checkpoint]
 *
 * What a step does depends on the step's number and the checkpointed state alone, so a run may be cut anywhere. */
#include <math.h>
#include <string.h>

#include "base/os.h"
#include "train/job.h"

#define MOST_SKIPPED 20 /* updates in a row: the run has diverged */

typedef struct loop {
    loam_job *j;
    loam_job_watch watch;
    void *user;
    loam_error *err;
    uint64_t start_ns;
    int64_t start_step, start_tokens;
    bool stop;
} loop;

static void tell(loop *l, loam_job_event e)
{
    loam_job *j = l->j;
    double seconds = (double)(os_now_ns() - l->start_ns) / 1e9;
    int64_t done = j->step - l->start_step;
    e.step = j->step;
    e.steps = j->steps;
    e.epoch = loam_data_epoch(j->train);
    e.tokens = j->tokens;
    e.seconds = seconds;
    e.tokens_per_second = seconds > 0 ? (double)(j->tokens - l->start_tokens) / seconds : 0;
    e.seconds_left = done > 0 ? seconds / (double)done * (double)(j->steps - j->step) : 0;
    if (l->watch && !l->watch(l->user, &e)) l->stop = true;
}

/* Rows as a batch: what is masked has no label. */
static loam_train_batch batch_of(loam_job *j, const loam_data_rows *r)
{
    size_t n = (size_t)r->n_rows * (size_t)r->n_ctx;
    for (size_t i = 0; i < n; i++) j->labels[i] = r->mask[i] ? r->labels[i] : -1;
    return (loam_train_batch){ .n_tokens = n, .tokens = r->ids, .labels = j->labels, .documents = r->documents, .positions = r->positions };
}

static loam_status numeric(const loop *l, loam_status s)
{
    if (s != LOAM_E_NUMERIC) return s;
    return fail_prefix(l->err, s, "step %lld", (long long)l->j->step + 1);
}

/* One update. A batch without any target is passed over: another one is taken. */
static loam_status step(loop *l)
{
    loam_job *j = l->j;
    loam_train_loss sum = { 0 };
    loam_update info = { 0 };
    loam_status s = LOAM_OK;
    for (int64_t i = 0; (i < j->c.accumulate || sum.n_targets == 0) && s == LOAM_OK; i++) {
        loam_data_rows r;
        loam_train_loss loss = { 0 };
        s = loam_data_next(j->train, (int32_t)j->c.rows, &r, l->err);
        if (s != LOAM_OK) return s;
        loam_train_batch b = batch_of(j, &r);
        s = numeric(l, loam_trainer_accumulate(j->trainer, &b, &loss, l->err));
        sum.sum += loss.sum;
        sum.weight += loss.weight;
        sum.n_targets += loss.n_targets;
    }
    double rate = loam_schedule_rate(&j->schedule, j->step + 1);
    if (s == LOAM_OK) s = loam_trainer_update(j->trainer, rate, &info, l->err);
    if (s != LOAM_OK) return s;
    j->skipped = info.skipped ? j->skipped + 1 : 0;
    if (j->skipped >= MOST_SKIPPED)
        return fail(l->err, LOAM_E_NUMERIC, "step %lld: for %d batches the gradient was not finite, first in %s; the run has diverged",
                    (long long)j->step + 1, MOST_SKIPPED, info.tensor);
    if (!info.skipped) j->step++;
    j->tokens += sum.n_targets;
    tell(l, (loam_job_event){ .kind = LOAM_JOB_STEP, .loss = sum.sum / sum.weight, .rate = rate, .norm = info.norm, .skipped = info.skipped });
    return LOAM_OK;
}

static loam_status validate(loop *l, double *loss)
{
    loam_job *j = l->j;
    loam_train_loss sum = { 0 }, one;
    loam_data_rows r;
    loam_status s = LOAM_OK;
    loam_data_rewind(j->valid);
    for (int64_t rows = 0; s == LOAM_OK && (!j->c.valid_rows || rows < j->c.valid_rows); rows += r.n_rows) {
        s = loam_data_next(j->valid, (int32_t)j->c.rows, &r, l->err);
        if (s != LOAM_OK || r.n_rows == 0) break;
        loam_train_batch b = batch_of(j, &r);
        s = numeric(l, loam_trainer_evaluate(j->trainer, &b, &one, l->err));
        if (s == LOAM_OK) sum.sum += one.sum, sum.weight += one.weight;
    }
    *loss = sum.weight > 0 ? sum.sum / sum.weight : INFINITY;
    return s;
}

static const char *first_output(const job_config *c) { return c->output ? c->output : c->adapter ? c->adapter : c->peft; }

static loam_status write_outputs(loop *l)
{
    loam_status s = job_write(l->j, l->err);
    if (s == LOAM_OK) tell(l, (loam_job_event){ .kind = LOAM_JOB_WRITTEN, .path = first_output(&l->j->c) });
    return s;
}

static loam_status validate_and_keep(loop *l)
{
    loam_job *j = l->j;
    double loss;
    loam_status s = validate(l, &loss);
    if (s != LOAM_OK) return s;
    bool best = loss < j->best;
    if (best) j->best = loss;
    j->since_best = best ? 0 : j->since_best + 1;
    tell(l, (loam_job_event){ .kind = LOAM_JOB_VALID, .loss = loss, .bits_per_byte = loss * j->bits_factor, .best = best });
    return best ? write_outputs(l) : LOAM_OK;
}

static loam_status save(loop *l)
{
    loam_status s = job_save(l->j, l->err);
    if (s == LOAM_OK && l->j->c.checkpoint) tell(l, (loam_job_event){ .kind = LOAM_JOB_SAVED, .path = l->j->c.checkpoint });
    return s;
}

static bool due(int64_t step, int64_t every, bool last) { return last || (every && step % every == 0); }
static bool out_of_patience(const loam_job *j) { return j->c.patience && j->since_best >= j->c.patience; }

/* Nothing is lost: the state goes into the checkpoint; without one, what was learned goes where the end of the run would put it. */
static loam_status stopped(loop *l)
{
    loam_job *j = l->j;
    const char *path = j->c.checkpoint ? j->c.checkpoint : first_output(&j->c);
    loam_status s = j->c.checkpoint ? job_save(j, l->err) : isinf(j->best) ? write_outputs(l) : LOAM_OK;
    if (s != LOAM_OK) return s;
    return fail(l->err, LOAM_E_ABORTED, j->c.checkpoint ? "stopped after step %lld; run it again to go on from %.200s" :
                "stopped after step %lld; what was learned is in %.200s", (long long)j->step, path);
}

static loam_status run(loop *l)
{
    loam_job *j = l->j;
    loam_status s = LOAM_OK;
    while (j->step < j->steps && !out_of_patience(j)) {
        int64_t before = j->step;
        s = step(l);
        if (s != LOAM_OK) return s;
        bool last = j->step == j->steps;
        if (j->step > before && j->valid && due(j->step, j->c.valid_every, last)) s = validate_and_keep(l);
        if (s != LOAM_OK) return s;
        if (l->stop) return stopped(l);
        if (j->step > before && due(j->step, j->c.save_every, last)) s = save(l);
        if (s != LOAM_OK) return s;
    }
    if (j->step < j->steps) tell(l, (loam_job_event){ .kind = LOAM_JOB_EARLY });
    return j->valid ? LOAM_OK : write_outputs(l);
}

loam_status loam_job_run(loam_job *j, loam_job_watch watch, void *user, loam_error *err)
{
    loop l = { .j = j, .watch = watch, .user = user, .err = err, .start_ns = os_now_ns(), .start_step = j->step, .start_tokens = j->tokens };
    return run(&l);
}
