/* job_write.c - the outputs of a training run: a model, an adapter, an adapter for PEFT. Each appears whole or not at all. */
#include "train/job.h"

loam_status job_write(loam_job *j, loam_error *err)
{
    static const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_BF16 };
    const job_config *c = &j->c;
    loam_status s = LOAM_OK;
    if (c->output) s = loam_trainer_save_model(j->trainer, c->output, types[c->type], err);
    if (s == LOAM_OK && c->adapter) s = loam_trainer_save_adapter(j->trainer, c->adapter, err);
    return s == LOAM_OK && c->peft ? peft_write(j->trainer, c, c->peft, err) : s;
}
