/* state.c - saving the state of a sequence to memory and restoring it, both to memory that was touched before.
 *
 *   bench_state MODEL [tokens 4096] [rounds 7] */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/os.h"
#include "loam/context.h"

enum { BATCH = 512 };

static void check(bool ok, const loam_error *err)
{
    if (ok) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : 4096, rounds = argc > 3 ? strtol(argv[3], NULL, 10) : 7;
    if (argc < 2 || n < 1 || n > 1 << 20 || rounds < 1) {
        fprintf(stderr, "usage: bench_state MODEL [tokens] [rounds]\n");
        return 1;
    }
    loam_error err;
    loam_model *model;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = (uint32_t)n;
    check(loam_model_open(&model, argv[1], NULL, &err) == LOAM_OK, &err);
    check(loam_context_new(&ctx, model, &p, &err) == LOAM_OK, &err);
    for (long at = 0; at < n; at += BATCH) {
        int32_t ids[BATCH];
        long take = n - at < BATCH ? n - at : BATCH;
        for (long i = 0; i < take; i++) ids[i] = (int32_t)(3 + (at + i) * 7919 % 200);
        loam_batch b = { .n_tokens = (int32_t)take, .token = ids };
        check(loam_decode(ctx, &b, &err) == 0, &err);
    }
    size_t bytes = loam_state_size(ctx, 0), written;
    void *data = mem_alloc(bytes);
    if (!data) return 1;
    double save = 0, load = 0;
    for (long r = 0; r <= rounds; r++) { /* round 0 touches the memory */
        uint64_t t0 = os_now_ns();
        check(loam_state_save(ctx, 0, data, bytes, &written, &err) == LOAM_OK, &err);
        uint64_t t1 = os_now_ns();
        check(loam_state_load(ctx, 0, data, written, &err) == LOAM_OK, &err);
        uint64_t t2 = os_now_ns();
        double s = (double)bytes / (double)(t1 - t0), l = (double)bytes / (double)(t2 - t1);
        if (r && s > save) save = s;
        if (r && l > load) load = l;
    }
    printf("%ld tokens, %.1f MB: saved at %.2f GB/s, restored at %.2f GB/s\n", n, (double)bytes / 1e6, save, load);
    mem_free(data);
    loam_context_free(ctx);
    loam_model_free(model);
    return 0;
}
