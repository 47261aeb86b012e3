/* models.c - see models.h. */
#include "models.h"

#include <stdio.h>
#include <unistd.h>

#include "data.h"

#include "loam/debug.h"

loam_model *tiny_model(const char *type, uint64_t seed)
{
    char path[512];
    loam_error err;
    loam_model *model = NULL;
    scratch_path(path, "tiny.gguf");
    loam_status status = loam_debug_make_model(path, "tiny", type, seed, &err);
    if (status == LOAM_OK) status = loam_model_open(&model, path, NULL, &err);
    if (status != LOAM_OK) fprintf(stderr, "%s\n", err.message);
    unlink(path);
    return model;
}
