/* job.h - the inside of loam_job.
 *
 *   job_config.c  description -> job_config     job_model.c  the model: from nothing, or a base
 *   job.c         opening, checkpoints           job_run.c    the loop      job_write.c  outputs   peft.c  adapters for others */
#ifndef LOAM_TRAIN_JOB_H
#define LOAM_TRAIN_JOB_H

#include "loam/data.h"
#include "loam/job.h"
#include "loam/model.h"
#include "loam/train.h"
#include "train/job_config.h"

struct loam_job {
    job_config c;
    loam_model *model;
    char *fresh;          /* path of the model's file where it was made for this run; else NULL */
    loam_data *train, *valid;
    loam_trainer *trainer;
    loam_train_memory memory;
    loam_schedule schedule;
    int32_t n_ctx;
    int64_t steps;
    double bits_factor;   /* from a validation loss to bits per byte; 0: unknown */
    int32_t *labels;      /* [tokens of a batch] with the masked ones taken out */

    int64_t step, tokens; /* so far */
    int64_t resumed;
    double best;          /* lowest validation loss; infinite before the first */
    int64_t since_best;   /* validations without improvement */
    int64_t skipped;      /* updates in a row */
};

/* job_model.c: opens the base, or makes and opens a model with random weights. */
loam_status job_open_model(loam_job *j, loam_error *err);

/* job.c */
loam_status job_save(loam_job *j, loam_error *err); /* the checkpoint, where the description names one */

/* job_write.c: every output of the description. watch may be NULL. */
loam_status job_write(loam_job *j, loam_error *err);

/* peft.c: an adapter as a folder for Hugging Face's PEFT: adapter_config.json, adapter_model.safetensors. */
loam_status peft_write(const loam_trainer *t, const job_config *c, const char *folder, loam_error *err);

#endif
