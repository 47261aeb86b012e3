/* imatrix.c - any bytes as an importance matrix (both forms): what is refused comes with a message; what is accepted has finite
 * weights, can be added to itself, and is the same after it was written and read again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/mem.h"
#include "imatrix/imatrix.h"

static void demand(bool ok)
{
    if (!ok) __builtin_trap();
}

static void use_entry(const loam_imatrix *im, const loam_imatrix_entry *e)
{
    float *w;
    loam_error err = { .code = LOAM_OK };
    demand(e->n > 0 && e->n_mats > 0 && (e->n_counts == 1 || e->n_counts == e->n_mats) && imatrix_find(im, e->name));
    loam_status status = imatrix_weights(im, e->name, e->n, e->n_mats, &w, &err);
    demand(status == LOAM_OK || (!w && err.message[0]));
    for (int64_t i = 0; status == LOAM_OK && i < e->n * e->n_mats; i++) demand(w[i] >= 0 && w[i] <= 1e20f);
    mem_free(w);
    demand(imatrix_weights(im, e->name, e->n + 1, e->n_mats, &w, NULL) == LOAM_E_ARG);
}

static void round_trip(const loam_imatrix *im)
{
    char path[512];
    const char *folder = env_get("TMPDIR");
    loam_imatrix *again;
    loam_error err;
    snprintf(path, sizeof path, "%s/loam-fuzz-im-%ld", folder ? folder : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    if (loam_imatrix_save(im, path, &err) != LOAM_OK) return; /* names that a GGUF file cannot have */
    if (loam_imatrix_open(&again, path, &err) == LOAM_OK) demand(loam_imatrix_n_entries(again) == loam_imatrix_n_entries(im));
    else demand(err.code == LOAM_E_NUMERIC); /* sums beyond the floats of a file */
    loam_imatrix_free(again);
    remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    loam_imatrix *im;
    loam_imatrix_entry e;
    loam_error err = { .code = LOAM_OK };
    if (imatrix_open_memory(&im, data, size, "input", &err) != LOAM_OK) {
        demand(!im && err.code != LOAM_OK && err.message[0]);
        return 0;
    }
    for (size_t i = 0; loam_imatrix_entry_at(im, i, &e); i++) use_entry(im, &e);
    round_trip(im);
    demand(loam_imatrix_merge(im, im, &err) == LOAM_OK || err.code == LOAM_E_NOMEM);
    loam_imatrix_free(im);
    return 0;
}
