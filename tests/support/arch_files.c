/* arch_files.c - see arch_files.h. */
#include "arch_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

int arch_list(const char *folder, char names[ARCH_FILES][64])
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && n < ARCH_FILES;) {
        size_t len = strlen(e->d_name);
        if (len <= 5 || len >= 64 || strcmp(e->d_name + len - 5, ".gguf")) continue;
        char tokens[600];
        snprintf(tokens, sizeof tokens, "%s/%.*s.tokens.txt", folder, (int)(len - 5), e->d_name);
        if (access(tokens, R_OK) == 0) snprintf(names[n++], 64, "%.*s", (int)(len - 5), e->d_name);
    }
    if (d) closedir(d);
    qsort(names, (size_t)n, sizeof *names, compare_names);
    return n;
}

bool arch_load(arch_expected *e, const char *folder, const char *name, const loam_model *m)
{
    bool logits = loam_model_has_decoder(m);
    char path[700];
    size_t n = 0, count = 0;
    snprintf(path, sizeof path, "%s/%s.tokens.txt", folder, name);
    e->ids = slurp_ids(path, &n);
    snprintf(path, sizeof path, "%s/%s.%s.f32", folder, name, logits ? "logits" : "embd");
    e->logits = slurp_f32(path, &count);
    e->n = (int)n;
    e->width = (size_t)(logits ? loam_model_n_vocab(m) : loam_model_n_embd(m));
    return e->ids && e->logits && n > 0 && count == n * e->width;
}

void arch_free(arch_expected *e)
{
    free(e->ids);
    free(e->logits);
}

double arch_distance(const loam_model *m, const arch_expected *e, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256;
    p.type_k = p.type_v = LOAM_F32;
    p.n_threads = 1;
    loam_context *ctx;
    if (loam_context_new(&ctx, m, &p, err) != LOAM_OK) return -1;
    size_t n = (size_t)e->n, width = e->width;
    int8_t *all = malloc(n);
    float *got = malloc(n * width * sizeof *got);
    loam_batch batch = { .n_tokens = e->n, .token = e->ids, .logits = all };
    double d = -1;
    if (all && got) {
        memset(all, 1, n);
        bool both = loam_model_has_encoder(m) && loam_model_decoder_start(m) >= 0;
        if ((!both || loam_encode(ctx, &batch, err) == 0) && loam_decode(ctx, &batch, err) == 0) {
            bool logits = loam_model_has_decoder(m);
            for (int32_t i = 0; i < e->n; i++)
                memcpy(got + (size_t)i * width, logits ? loam_logits(ctx, i) : loam_embeddings(ctx, i), width * sizeof *got);
            d = nmse(got, e->logits, n * width);
        }
    }
    free(all);
    free(got);
    loam_context_free(ctx);
    return d;
}
