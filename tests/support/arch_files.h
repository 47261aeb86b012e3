/* arch_files.h - tests over the tiny models with expected logits: tests/golden/data/arch and ../shared/golden/arch. */
#ifndef LOAM_TEST_ARCH_FILES_H
#define LOAM_TEST_ARCH_FILES_H

#include "loam/context.h"

#define ARCH_FILES 256

/* Names without ".gguf" in the folder, sorted; how many. */
int arch_list(const char *folder, char names[ARCH_FILES][64]);

typedef struct arch_expected {
    int32_t *ids;      /* [n] */
    float *logits;     /* [n * width]; embeddings where the model has no decoder */
    int n;
    size_t width;      /* n_vocab, or n_embd */
} arch_expected;

/* False when FOLDER/NAME has no ids, or not n rows of logits (of a model without a decoder: embeddings). */
bool arch_load(arch_expected *e, const char *folder, const char *name, const loam_model *m);
void arch_free(arch_expected *e);

/* Decodes the ids as one batch, which an encoder-decoder model has encoded before (F32 cache, one thread); NMSE of all logits, negative with a message where a step failed. */
double arch_distance(const loam_model *m, const arch_expected *e, loam_error *err);

#endif
