/* loam/job.h - a whole training run: a model from nothing, or a model that is tuned, by a description in JSON.
 * UNSTABLE: the lower tier may change between minor versions.
 *
 *   loam_job_open (reads the description, opens model and data, takes up a checkpoint) ─► loam_job_run ─► files
 *
 * docs/training.md lists the keys. A run that is stopped or killed and begun again with the same description goes on from its
 * last checkpoint, and ends with the same bits as if nothing had happened. A job belongs to one thread. */
#ifndef LOAM_JOB_H
#define LOAM_JOB_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_job loam_job;

/* Reads a description: `len` bytes of JSON; label names it in messages. fresh_start: an old checkpoint is not looked for.
 * Relative paths in it are relative to the working folder. On failure *out is NULL: FORMAT (no JSON; an unknown key, with the
 * nearest known one; a value of the wrong kind or out of range; bad data, a damaged or foreign checkpoint), NOMEM (also when the
 * machine has less memory than the estimate: both numbers are in the message), IO, UNSUPPORTED. */
LOAM_API loam_status loam_job_open(loam_job **out, const char *text, size_t len, const char *label, bool fresh_start, loam_error *err);
LOAM_API void loam_job_free(loam_job *job); /* NULL is fine */

typedef struct loam_job_facts {
    const char *model;        /* "llama 3.1 M F32": for people */
    uint64_t n_params, n_trainable;
    uint64_t memory, memory_available; /* bytes of weights that learn, gradients, optimizer and work; what the machine has left */
    int64_t n_train, n_valid; /* documents */
    int64_t steps, step_tokens;
    int64_t resumed;          /* the step after which a checkpoint was taken up; 0: from the beginning */
    const char *log;          /* the description's "log"; NULL without */
} loam_job_facts;

LOAM_API loam_job_facts loam_job_describe(const loam_job *job);

typedef enum loam_job_event_kind {
    LOAM_JOB_STEP = 0,    /* an update was made, or skipped */
    LOAM_JOB_VALID = 1,   /* the validation data were gone through */
    LOAM_JOB_SAVED = 2,   /* a checkpoint was written: path */
    LOAM_JOB_WRITTEN = 3, /* an output was written: path */
    LOAM_JOB_EARLY = 4    /* no improvement for `patience` validations: the run ends */
} loam_job_event_kind;

typedef struct loam_job_event {
    loam_job_event_kind kind;
    int64_t step, steps, epoch; /* updates so far, of how many; whole passes over the data */
    double loss;                /* STEP: mean of the step's targets; VALID: of the validation data (natural logarithm) */
    double bits_per_byte;       /* VALID; 0 where unknown */
    double rate, norm;          /* STEP: learning rate, length of the gradient before clipping */
    bool skipped;               /* STEP: a gradient was not finite, nothing was changed */
    bool best;                  /* VALID: the lowest so far */
    int64_t tokens;             /* targets learned from so far, earlier runs included */
    double tokens_per_second, seconds, seconds_left; /* of this run */
    const char *path;           /* SAVED, WRITTEN */
} loam_job_event;

/* Called in the middle of the run. False: save a checkpoint and stop. */
typedef bool (*loam_job_watch)(void *user, const loam_job_event *event);

/* Runs to the end. Errors: NUMERIC (the loss is not finite, or gradients were not for many steps: the step is named, and the
 * last checkpoint is as it was), ABORTED (watch said so; the message names the checkpoint, or the output that was written), IO, NOMEM, FORMAT. */
LOAM_API loam_status loam_job_run(loam_job *job, loam_job_watch watch, void *user, loam_error *err);

#ifdef __cplusplus
}
#endif
#endif
