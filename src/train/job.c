/* job.c - opening a training run: description, model, data, trainer, checkpoint.
 *
 * A checkpoint is the trainer's state with these numbers of ours behind it (64 bits each, as the machine has them):
 *     version | tokens | best loss (its bits) | validations since | position of the data ... */
#include "train/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"

#define VERSION 1
#define OURS    4

/* ---- data ---- */

static loam_data_params data_params(const loam_job *j)
{
    loam_data_params p = loam_data_defaults();
    p.format = (loam_data_format)j->c.format;
    p.split = (loam_data_split)j->c.split;
    p.too_long = (loam_data_long)j->c.too_long;
    p.n_ctx = j->n_ctx;
    p.seed = (uint64_t)j->c.seed;
    p.shuffle = j->c.shuffle;
    p.hold_out = j->c.hold_out;
    return p;
}

static loam_status open_data(loam_job *j, loam_error *err)
{
    const loam_tokenizer *t = loam_model_tokenizer(j->model);
    loam_data_params p = data_params(j);
    int64_t labels, bytes;
    loam_status s = loam_data_open(&j->train, j->c.train, j->c.n_train, t, &p, err);
    if (s != LOAM_OK || (!j->c.n_valid && j->c.hold_out == 0)) return s;
    p.endless = p.shuffle = false;
    p.held_out = j->c.hold_out > 0;
    if (j->c.n_valid) s = loam_data_open(&j->valid, j->c.valid, j->c.n_valid, t, &p, err);
    else s = loam_data_open(&j->valid, j->c.train, j->c.n_train, t, &p, err);
    if (s == LOAM_OK) s = loam_data_count(j->valid, NULL, &labels, &bytes, err);
    if (s == LOAM_OK && !labels) s = fail(err, LOAM_E_FORMAT, "the validation data have nothing to predict");
    if (s == LOAM_OK && bytes) j->bits_factor = (double)labels / (double)bytes / 0.69314718055994531;
    return s;
}

static loam_status count_steps(loam_job *j, loam_error *err)
{
    j->steps = j->c.steps;
    if (j->steps) return LOAM_OK;
    int64_t tokens, per_step = j->c.rows * j->c.accumulate * j->n_ctx;
    loam_status s = loam_data_count(j->train, &tokens, NULL, NULL, err);
    if (s != LOAM_OK) return s;
    double steps = ceil(j->c.epochs * (double)tokens / (double)per_step);
    j->steps = steps < 1 ? 1 : steps > 1e15 ? (int64_t)1e15 : (int64_t)steps;
    return LOAM_OK;
}

/* ---- trainer ---- */

static loam_status open_trainer(loam_job *j, loam_error *err)
{
    const job_config *c = &j->c;
    loam_trainer_params p = loam_trainer_defaults();
    p.n_threads = (int32_t)c->threads;
    p.optimizer = (loam_optimizer)c->optimizer;
    p.beta1 = (float)c->beta1;
    p.beta2 = (float)c->beta2;
    p.eps = (float)c->eps;
    p.momentum = (float)c->momentum;
    p.nesterov = c->nesterov;
    p.muon_rate = (float)c->muon_rate;
    p.weight_decay = (float)c->weight_decay;
    p.decay_all = c->decay_all;
    p.clip_norm = (float)c->clip;
    p.label_smoothing = (float)c->label_smoothing;
    p.small_state = c->small_state;
    p.recompute = c->recompute;
    p.bf16 = c->bf16;
    p.seed = (uint64_t)c->seed;
    p.lora_rank = (int32_t)c->lora_rank;
    p.lora_alpha = (float)c->lora_alpha;
    p.lora_dropout = (float)c->lora_dropout;
    p.lora_targets = c->n_targets ? c->targets : NULL;
    p.n_lora_targets = c->n_targets;
    loam_status s = loam_trainer_estimate(j->model, &p, (int32_t)(c->rows * j->n_ctx), &j->memory, err);
    if (s != LOAM_OK) return s;
    if (j->memory.total > j->memory.available)
        return fail(err, LOAM_E_NOMEM, "this run needs %.0f MB, and the machine has %.0f MB left; lower batch.rows or batch.n_ctx, or set recompute",
                    (double)j->memory.total / 1e6, (double)j->memory.available / 1e6);
    j->schedule = (loam_schedule){ (loam_decay)c->schedule, c->rate, c->floor, c->warmup, j->steps, c->decay };
    return loam_trainer_new(&j->trainer, j->model, &p, err);
}

/* ---- checkpoint ---- */

loam_status job_save(loam_job *j, loam_error *err)
{
    if (!j->c.checkpoint) return LOAM_OK;
    size_t n;
    loam_status s = loam_data_tell(j->train, NULL, 0, &n, NULL);
    int64_t *numbers = mem_alloc_array(n + OURS, sizeof *numbers);
    if (!numbers) return fail_nomem(err, "a checkpoint", (n + OURS) * sizeof *numbers);
    numbers[0] = VERSION;
    numbers[1] = j->tokens;
    memcpy(&numbers[2], &j->best, sizeof j->best);
    numbers[3] = j->since_best;
    s = loam_data_tell(j->train, numbers + OURS, n, &n, err);
    if (s == LOAM_OK) s = loam_trainer_save(j->trainer, j->c.checkpoint, numbers, (n + OURS) * sizeof *numbers, err);
    mem_free(numbers);
    return s;
}

static loam_status take_up(loam_job *j, loam_error *err)
{
    void *extra;
    size_t bytes;
    loam_status s = loam_trainer_load(j->trainer, j->c.checkpoint, &extra, &bytes, err);
    if (s != LOAM_OK) return s;
    const int64_t *numbers = extra;
    size_t n = bytes / sizeof *numbers;
    if (bytes % sizeof *numbers || n < OURS || numbers[0] != VERSION) s = fail(err, LOAM_E_FORMAT, "it is no checkpoint of a training run");
    else s = loam_data_seek(j->train, numbers + OURS, n - OURS, err);
    if (s == LOAM_OK) {
        j->tokens = numbers[1];
        memcpy(&j->best, &numbers[2], sizeof j->best);
        j->since_best = numbers[3];
        j->step = j->resumed = loam_trainer_updates(j->trainer);
    }
    loam_train_free(extra);
    return s;
}

static bool exists(const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (f) fclose(f);
    return f != NULL;
}

static loam_status open_all(loam_job *j, bool fresh_start, loam_error *err)
{
    loam_status s = job_open_model(j, err);
    if (s == LOAM_OK) s = open_data(j, err);
    if (s == LOAM_OK) s = count_steps(j, err);
    if (s == LOAM_OK && j->c.rows * j->n_ctx > INT32_MAX / 2) s = fail(err, LOAM_E_FORMAT, "\"batch.rows\" rows of %d tokens are too many", j->n_ctx);
    if (s == LOAM_OK) s = open_trainer(j, err);
    if (s != LOAM_OK) return s;
    size_t n = (size_t)(j->c.rows * j->n_ctx);
    j->labels = mem_alloc_array(n, sizeof *j->labels);
    if (!j->labels) return fail_nomem(err, "the labels of a batch", n * sizeof *j->labels);
    if (!j->c.checkpoint || fresh_start || !exists(j->c.checkpoint)) return LOAM_OK;
    s = take_up(j, err);
    return s == LOAM_OK ? s : fail_prefix(err, s, "checkpoint %.160s cannot be taken up (remove it, or begin anew)", j->c.checkpoint);
}

loam_status loam_job_open(loam_job **out, const char *text, size_t len, const char *label, bool fresh_start, loam_error *err)
{
    *out = NULL;
    loam_job *j = mem_zalloc(sizeof *j);
    if (!j) return fail_nomem(err, "a training run", sizeof *j);
    j->best = INFINITY;
    loam_status s = job_config_read(&j->c, text, len, label, err);
    if (s == LOAM_OK) s = open_all(j, fresh_start, err);
    if (s != LOAM_OK) loam_job_free(j);
    else *out = j;
    return s;
}

void loam_job_free(loam_job *j)
{
    if (!j) return;
    loam_trainer_free(j->trainer);
    loam_data_free(j->train);
    loam_data_free(j->valid);
    loam_model_free(j->model);
    if (j->fresh) remove(j->fresh);
    mem_free(j->fresh);
    mem_free(j->labels);
    job_config_free(&j->c);
    mem_free(j);
}

loam_job_facts loam_job_describe(const loam_job *j)
{
    return (loam_job_facts){
        .model = loam_model_description(j->model),
        .n_params = loam_model_n_params(j->model),
        .n_trainable = j->memory.n_trainable,
        .memory = j->memory.total,
        .memory_available = j->memory.available,
        .n_train = loam_data_n_documents(j->train),
        .n_valid = j->valid ? loam_data_n_documents(j->valid) : 0,
        .steps = j->steps,
        .step_tokens = j->c.rows * j->c.accumulate * j->n_ctx,
        .resumed = j->resumed,
        .log = j->c.log,
    };
}
