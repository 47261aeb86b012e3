/* kl.c - any bytes as a base file of a comparison: refused with a message, or every row can be read and compared. */
#include <stdlib.h>

#include "loam/evaluate.h"

static void demand(bool ok)
{
    if (!ok) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    loam_kl_base *b;
    loam_kl *kl;
    loam_error err = { .code = LOAM_OK };
    if (loam_kl_base_open_memory(&b, data, size, &err) != LOAM_OK) {
        demand(!b && err.message[0]);
        return 0;
    }
    loam_kl_text t = loam_kl_base_text(b);
    for (int32_t i = 0; i < t.n_chunks * t.n_ctx; i++) demand(t.tokens[i] >= 0 && t.tokens[i] < t.n_vocab);
    float *row = malloc((size_t)t.n_vocab * sizeof *row);
    demand(row && loam_kl_new(&kl, t.n_vocab, &err) == LOAM_OK);
    int64_t n = 0, added = 0;
    for (; loam_kl_base_row(b, n, row); n++) added += loam_kl_add(kl, row, row, 0, NULL) == LOAM_OK;
    demand(n == (int64_t)t.n_chunks * loam_kl_rows(t.n_ctx));
    loam_kl_summary s;
    demand((loam_kl_summarize(kl, &s, &err) == LOAM_OK) == (added > 0));
    free(row);
    loam_kl_free(kl);
    loam_kl_base_free(b);
    return 0;
}
