/* shared_prefix.c - a step of many sequences behind one prefix: pages shared, against a copy of the prefix for each.
 *
 *   bench_shared_prefix MODEL [sequences 32] [prefix 8192] [rounds 5]
 *
 * Both contexts step in turn; medians. Attention alone is timed by an observed step, whose other operations are not
 * shown. Bytes are those of keys and values that a step reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "loam/context.h"
#include "median.h"

enum { MAX_ROUNDS = 99, MAX_SEQUENCES = 256 };

typedef struct timing {
    loam_context *ctx;
    double step[MAX_ROUNDS], attention[MAX_ROUNDS];
    uint64_t bytes;
} timing;

static void check(bool ok, const loam_error *err)
{
    if (ok) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static loam_context *fresh(const loam_model *model, int sequences, int64_t tokens)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = (uint32_t)tokens;
    p.n_seq_max = (uint32_t)sequences;
    check(loam_context_new(&ctx, model, &p, &err) == LOAM_OK, &err);
    return ctx;
}

static void read_prefix(loam_context *ctx, int n)
{
    loam_error err;
    int32_t ids[2048];
    for (int at = 0; at < n; at += 2048) {
        int take = n - at < 2048 ? n - at : 2048;
        for (int i = 0; i < take; i++) ids[i] = 3 + (at + i) * 7919 % 29000;
        loam_batch b = { .n_tokens = take, .token = ids };
        check(loam_decode(ctx, &b, &err) == 0, &err);
    }
}

/* Gives every sequence its own copy of sequence 0 of `from`. */
static void copy_to_all(loam_context *from, loam_context *to, int sequences)
{
    loam_error err;
    size_t size = loam_state_size(from, 0), written;
    void *data = mem_alloc(size);
    if (!data) exit(1);
    check(loam_state_save(from, 0, data, size, &written, &err) == LOAM_OK, &err);
    for (int q = 0; q < sequences; q++) check(loam_state_load(to, q, data, written, &err) == LOAM_OK, &err);
    mem_free(data);
}

static double step(loam_context *ctx, int sequences, int round)
{
    loam_error err;
    int32_t ids[MAX_SEQUENCES], seqs[MAX_SEQUENCES];
    const int32_t *lists[MAX_SEQUENCES];
    int8_t wanted[MAX_SEQUENCES];
    for (int q = 0; q < sequences; q++) ids[q] = 3 + round * 31 + q, seqs[q] = q, lists[q] = &seqs[q], wanted[q] = 1;
    loam_batch b = { .n_tokens = sequences, .token = ids, .seq_id = lists, .logits = wanted };
    uint64_t start = os_now_ns();
    check(loam_decode(ctx, &b, &err) == 0, &err);
    return (double)(os_now_ns() - start) / 1e6;
}

static bool add_attention(void *user, const loam_node *node, bool ask)
{
    if (ask) return strcmp(node->op, "ATTENTION") == 0;
    *(double *)user += (double)node->ns / 1e6;
    return true;
}

static void one_round(timing *t, int sequences, int round)
{
    uint64_t before = loam_context_perf(t->ctx).cache_bytes;
    t->step[round] = step(t->ctx, sequences, 2 * round);
    t->bytes = loam_context_perf(t->ctx).cache_bytes - before;
    t->attention[round] = 0;
    loam_context_set_observer(t->ctx, add_attention, &t->attention[round]);
    step(t->ctx, sequences, 2 * round + 1);
    loam_context_set_observer(t->ctx, NULL, NULL);
}

int main(int argc, char **argv)
{
    int sequences = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 32, prefix = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 8192;
    int rounds = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 5, tail = 2 * rounds + 2;
    if (argc < 2 || sequences < 1 || sequences > MAX_SEQUENCES || prefix < 1 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_shared_prefix MODEL [sequences] [prefix] [rounds]\n");
        return 1;
    }
    loam_error err;
    loam_model *model;
    check(loam_model_open(&model, argv[1], NULL, &err) == LOAM_OK, &err);
    timing t[2] = { { .ctx = fresh(model, sequences, prefix + (int64_t)sequences * (tail + 64)) },
                    { .ctx = fresh(model, sequences, (int64_t)sequences * (prefix + tail)) } };
    read_prefix(t[0].ctx, prefix);
    copy_to_all(t[0].ctx, t[1].ctx, sequences);
    for (int q = 1; q < sequences; q++) check(loam_memory_seq_cp(t[0].ctx, 0, q, -1, -1, &err) == LOAM_OK, &err);
    for (int i = 0; i < 2; i++) step(t[i].ctx, sequences, 0);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < 2; i++) one_round(&t[i], sequences, r);
    double whole[2], attention[2];
    for (int i = 0; i < 2; i++) {
        whole[i] = median(t[i].step, rounds);
        attention[i] = median(t[i].attention, rounds);
        printf("%-7s step %8.2f ms, attention %8.2f ms, keys and values read %9.2f MB\n", i ? "copies" : "shared", whole[i],
               attention[i], (double)t[i].bytes / 1e6);
        loam_context_free(t[i].ctx);
    }
    printf("ratio   step %8.2f,    attention %8.2f\n", whole[1] / whole[0], attention[1] / attention[0]);
    loam_model_free(model);
    return 0;
}
