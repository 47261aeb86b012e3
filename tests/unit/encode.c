/* encode.c - encoders, T5 and pooling through the public calls: texts side by side give what they give alone, pooling agrees
 * with the rows, encodings are kept and replaced, what cannot work is refused and changes nothing. Models of ../shared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"

#include "loam/context.h"

#define N 12

static int32_t ids[64];

static loam_model *open_model(const char *name)
{
    char path[512], rel[128];
    loam_error err;
    loam_model *m = NULL;
    snprintf(rel, sizeof rel, "golden/arch/%s.gguf", name);
    if (!shared_path(path, rel)) return NULL;
    for (int i = 0; i < 64; i++) ids[i] = (i * 37 + 11) % 128;
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    return m;
}

static loam_context *fresh(const loam_model *m, loam_pooling pooling)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 40, p.n_seq_max = 4, p.n_threads = 1, p.type_k = p.type_v = LOAM_F32;
    p.embeddings = true, p.pooling = pooling;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

typedef struct group {
    int32_t seq;
    int first, n;
} group;

/* Encodes or decodes groups of ids, each for its sequence. */
static int feed(loam_context *ctx, bool encode, const group *g, int n_groups, loam_error *err)
{
    int32_t token[64], ones[64];
    const int32_t *seq[64];
    int8_t wanted[64];
    int n = 0;
    for (int i = 0; i < n_groups; i++)
        for (int t = 0; t < g[i].n; t++, n++) token[n] = ids[g[i].first + t], ones[n] = 1, seq[n] = &g[i].seq, wanted[n] = 1;
    loam_batch b = { .n_tokens = n, .token = token, .n_seq_id = ones, .seq_id = seq, .logits = wanted };
    return encode ? loam_encode(ctx, &b, err) : loam_decode(ctx, &b, err);
}

static void texts_side_by_side(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_model("bert-mean");
    if (!m) skip();
    assert_true(loam_model_has_encoder(m));
    assert_false(loam_model_has_decoder(m));
    assert_int_equal(loam_model_pooling(m), LOAM_POOLING_MEAN);
    loam_context *both = fresh(m, LOAM_POOLING_MODEL), *alone = fresh(m, LOAM_POOLING_MODEL);
    size_t width = (size_t)loam_n_pooled(both);
    const group pair[] = { { 2, 0, N }, { 1, 20, 7 } }, second = { 0, 20, 7 };
    assert_int_equal(feed(both, true, pair, 2, &err), 0);
    assert_int_equal(feed(alone, false, &second, 1, &err), 0); /* decode is the same */
    assert_memory_equal(loam_embeddings_seq(both, 1), loam_embeddings_seq(alone, 0), width * sizeof(float));
    assert_null(loam_embeddings_seq(both, 0));
    assert_null(loam_logits(both, 0));
    assert_int_equal(loam_memory_seq_pos_max(both, 1), -1); /* nothing is kept */
    loam_context_free(both);
    loam_context_free(alone);
    loam_model_free(m);
}

static void pooling_of_rows(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_model("bert-mean");
    if (!m) skip();
    const group g = { 0, 0, N };
    float rows[N][64], mean[64] = { 0 };
    loam_context *ctx = fresh(m, LOAM_POOLING_NONE);
    assert_int_equal(loam_model_n_embd(m), 64);
    assert_int_equal(feed(ctx, true, &g, 1, &err), 0);
    assert_null(loam_embeddings_seq(ctx, 0));
    for (int i = 0; i < N; i++) memcpy(rows[i], loam_embeddings(ctx, i), sizeof rows[i]);
    loam_context_free(ctx);
    for (int i = 0; i < N; i++)
        for (int d = 0; d < 64; d++) mean[d] += rows[i][d] / N;
    const float *want[] = { mean, rows[0], rows[N - 1] };
    for (int kind = LOAM_POOLING_MEAN; kind <= LOAM_POOLING_LAST; kind++) {
        ctx = fresh(m, (loam_pooling)kind);
        assert_int_equal(feed(ctx, true, &g, 1, &err), 0);
        double d = nmse(loam_embeddings_seq(ctx, 0), want[kind - 1], 64);
        if (d > 1e-12) fail_msg("pooling %d is off by %g", kind, d);
        loam_context_free(ctx);
    }
    loam_model_free(m);
}

static void scores(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    loam_model *m = open_model("bert-rank"), *plain = open_model("bert-mean");
    if (!m || !plain) skip();
    assert_int_equal(loam_model_n_labels(m), 1);
    ctx = fresh(m, LOAM_POOLING_MODEL);
    assert_int_equal(loam_context_pooling(ctx), LOAM_POOLING_RANK);
    const group g = { 3, 5, N };
    assert_int_equal(feed(ctx, true, &g, 1, &err), 0);
    assert_true(isfinite(loam_embeddings_seq(ctx, 3)[0]));
    loam_context_free(ctx);
    loam_context_params p = loam_context_defaults();
    p.pooling = LOAM_POOLING_RANK;
    assert_int_equal(loam_context_new(&ctx, plain, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "classifier"));
    p.pooling = (loam_pooling)9;
    assert_int_equal(loam_context_new(&ctx, plain, &p, &err), LOAM_E_ARG);
    loam_model_free(m);
    loam_model_free(plain);
}

static void refusals(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_model("bert-mean"), *decoder = open_model("qwen3-dense");
    if (!m || !decoder) skip();
    loam_context *ctx = fresh(m, LOAM_POOLING_MODEL), *causal = fresh(decoder, LOAM_POOLING_NONE);
    const group g = { 0, 0, N }, long_one = { 0, 0, 41 }, stranger = { 7, 0, 2 };
    assert_int_equal(feed(causal, true, &g, 1, &err), -1);
    assert_non_null(strstr(err.message, "no encoder"));
    assert_int_equal(feed(ctx, true, &g, 1, &err), 0);
    float before[64];
    memcpy(before, loam_embeddings_seq(ctx, 0), sizeof before);
    assert_int_equal(feed(ctx, true, &long_one, 1, &err), -1); /* n_ubatch is 40 */
    assert_int_equal(feed(ctx, true, &stranger, 1, &err), -1);
    assert_int_equal(loam_encode(NULL, NULL, &err), -1);
    assert_memory_equal(before, loam_embeddings_seq(ctx, 0), sizeof before);
    loam_context_free(ctx);
    loam_context_free(causal);
    loam_model_free(m);
    loam_model_free(decoder);
}

static void copy_logits(loam_context *ctx, float *out, int n)
{
    for (int i = 0; i < n; i++) memcpy(out + i * 128, loam_logits(ctx, i), 128 * sizeof *out);
}

static bool always(void *user)
{
    (void)user;
    return true;
}

/* What was encoded belongs to its sequence: it is replaced, copied, saved and brought back with it. */
static void kept_encodings(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_model("t5");
    if (!m) skip();
    assert_int_equal(loam_model_decoder_start(m), 0);
    loam_context *ctx = fresh(m, LOAM_POOLING_NONE);
    static float a[8 * 128], b[8 * 128], got[8 * 128];
    const group first[] = { { 0, 0, N }, { 1, 20, 9 } }, zero = { 0, 40, 8 }, one = { 1, 40, 8 }, two = { 2, 40, 8 };
    assert_int_equal(feed(ctx, false, &zero, 1, &err), -1);
    assert_non_null(strstr(err.message, "nothing was encoded"));
    assert_int_equal(feed(ctx, true, first, 2, &err), 0);
    assert_null(loam_logits(ctx, 0));
    assert_non_null(loam_embeddings(ctx, N));
    assert_int_equal(feed(ctx, false, &zero, 1, &err), 0);
    copy_logits(ctx, a, 8);
    assert_int_equal(feed(ctx, false, &one, 1, &err), 0);
    copy_logits(ctx, b, 8);
    assert_true(memcmp(a, b, sizeof a) != 0);
    /* an aborted encoding leaves the one before; decoded tokens can be cut back without losing it */
    loam_context_set_abort(ctx, always, NULL);
    const group other = { 0, 30, 5 };
    assert_int_equal(feed(ctx, true, &other, 1, &err), 2);
    loam_context_set_abort(ctx, NULL, NULL);
    assert_true(loam_memory_seq_rm(ctx, 0, 0, 100));
    assert_int_equal(feed(ctx, false, &zero, 1, &err), 0);
    copy_logits(ctx, got, 8);
    assert_memory_equal(got, a, sizeof a);
    /* a copy of the sequence takes it along, and so does a saved state */
    assert_int_equal(loam_memory_seq_cp(ctx, 1, 2, -1, -1, &err), LOAM_OK);
    assert_true(loam_memory_seq_rm(ctx, 2, 0, 100));
    size_t size = loam_state_size(ctx, -1), written = 0;
    void *saved = malloc(size);
    assert_int_equal(loam_state_save(ctx, -1, saved, size, &written, &err), LOAM_OK);
    loam_memory_clear(ctx);
    assert_int_equal(feed(ctx, false, &two, 1, &err), -1);
    assert_int_equal(loam_state_load(ctx, -1, saved, written, &err), LOAM_OK);
    assert_int_equal(feed(ctx, false, &two, 1, &err), 0);
    copy_logits(ctx, got, 8);
    assert_memory_equal(got, b, sizeof b);
    free(saved);
    /* a new encoding takes the place of the old one */
    assert_int_equal(feed(ctx, true, (group[]){ { 0, 20, 9 } }, 1, &err), 0);
    assert_true(loam_memory_seq_rm(ctx, 0, 0, 100));
    assert_int_equal(feed(ctx, false, &zero, 1, &err), 0);
    copy_logits(ctx, got, 8);
    assert_memory_equal(got, b, sizeof b);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* A prompt in pieces and one token at a time gives the bits of one batch. */
static void pieces_of_t5(void **state)
{
    (void)state;
    loam_error err;
    loam_model *m = open_model("t5");
    if (!m) skip();
    loam_context *ctx = fresh(m, LOAM_POOLING_NONE);
    static float a[N * 128], b[N * 128];
    const group source = { 0, 0, 30 }, whole = { 0, 30, N };
    assert_int_equal(feed(ctx, true, &source, 1, &err), 0);
    assert_int_equal(feed(ctx, false, &whole, 1, &err), 0);
    copy_logits(ctx, a, N);
    assert_true(loam_memory_seq_rm(ctx, 0, 0, 100));
    for (int i = 0; i < N; i++) {
        assert_int_equal(feed(ctx, false, (group[]){ { 0, 30 + i, 1 } }, 1, &err), 0);
        copy_logits(ctx, b + i * 128, 1);
    }
    assert_memory_equal(a, b, sizeof a);
    loam_context_free(ctx);
    loam_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_side_by_side), cmocka_unit_test(pooling_of_rows), cmocka_unit_test(scores),
        cmocka_unit_test(refusals),
        cmocka_unit_test(kept_encodings), cmocka_unit_test(pieces_of_t5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
