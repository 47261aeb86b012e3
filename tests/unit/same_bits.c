/* same_bits.c - promise 2: a token's logits do not depend on threads, on how the prompt is cut, or on other sequences.
 * Random models of every weight type; the law is one thread, one batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#include "base/mem.h"
#include "loam/context.h"
#include "loam/debug.h"

#define N_TOKENS 75 /* more than a page, not a multiple of any tile */

typedef struct setting {
    int threads, ubatch, batch, others;
} setting;

static const setting settings[] = {
    { 2, 512, 512, 0 }, { 3, 512, 512, 0 }, { 1, 7, 512, 0 }, { 2, 512, 7, 0 }, { 2, 512, 1, 0 }, { 2, 512, 512, 1 }, { 2, 13, 512, 1 },
};

static int32_t token_at(int i) { return (int32_t)(((uint64_t)i * 2654435761u + 17) % 4000); }

/* Decodes the tokens on the last sequence, with other sequences of other lengths mixed in, and keeps all logits. */
static void decode_all(const loam_model *m, const setting *s, loam_type cache, float *out)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 512, p.n_batch = 512, p.n_ubatch = (uint32_t)s->ubatch, p.n_seq_max = 3;
    p.n_threads = p.n_threads_batch = s->threads;
    p.type_k = p.type_v = cache;
    assert_int_equal(loam_context_new(&ctx, m, &p, &err), LOAM_OK);
    size_t n_vocab = (size_t)loam_model_n_vocab(m);
    int32_t ids[512], pos[512], q[3] = { 0, 1, 2 };
    const int32_t *seq[512];
    int8_t want[512];
    for (int first = 0; first < N_TOKENS; first += s->batch) {
        int n = 0, end = first + s->batch < N_TOKENS ? first + s->batch : N_TOKENS, mine[512];
        for (int i = first; i < end; i++) {
            for (int o = 0; s->others && o < 2; o++) {
                if (i % (o + 2) != 0) continue;
                ids[n] = token_at(1000 * (o + 1) + i), pos[n] = i / (o + 2), seq[n] = &q[o], want[n] = 0, n++;
            }
            mine[i - first] = n;
            ids[n] = token_at(i), pos[n] = i, seq[n] = &q[2], want[n] = 1, n++;
        }
        loam_batch b = { .n_tokens = n, .token = ids, .pos = pos, .seq_id = seq, .logits = want };
        int code = loam_decode(ctx, &b, &err);
        if (code != 0) fail_msg("decode: %d %s", code, err.message);
        for (int i = first; i < end; i++) memcpy(out + (size_t)i * n_vocab, loam_logits(ctx, mine[i - first]), n_vocab * 4);
    }
    loam_context_free(ctx);
}

static int differences(const loam_model *m, loam_type cache, const char *type)
{
    size_t bytes = (size_t)N_TOKENS * (size_t)loam_model_n_vocab(m) * 4;
    float *law = mem_alloc(bytes), *got = mem_alloc(bytes);
    int bad = 0;
    setting one = { 1, 512, 512, 0 };
    decode_all(m, &one, cache, law);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const setting *s = &settings[i];
        decode_all(m, s, cache, got);
        if (memcmp(law, got, bytes) == 0) continue;
        size_t at = 0;
        while (memcmp(law + at, got + at, 4) == 0) at++;
        print_message("%s, cache %s: threads %d, ubatch %d, batch %d, others %d: differs from token %zu on\n", type, loam_type_name((int)cache),
                      s->threads, s->ubatch, s->batch, s->others, at / (size_t)loam_model_n_vocab(m));
        bad++;
    }
    mem_free(law);
    mem_free(got);
    return bad;
}

static int with_type(const char *type, bool all_caches)
{
    char path[256];
    loam_error err;
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/loam-same-bits-%d.gguf", dir ? dir : "/tmp", (int)getpid());
    if (loam_debug_make_model(path, "tiny", type, 5, &err) != LOAM_OK) fail_msg("%s: %s", type, err.message);
    loam_model *m;
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s: %s", type, err.message);
    int bad = differences(m, LOAM_F16, type);
    static const loam_type caches[] = { LOAM_F32, LOAM_BF16, LOAM_Q8_0, LOAM_Q4_0 };
    for (int i = 0; all_caches && i < 4; i++) bad += differences(m, caches[i], type);
    loam_model_free(m);
    unlink(path);
    return bad;
}

static void every_type(void **state)
{
    (void)state;
    static const char *types[] = { "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K",
                                   "q4_K_M", "iq4_nl", "iq4_xs", "mxfp4" };
    int bad = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) bad += with_type(types[i], strcmp(types[i], "q4_K_M") == 0);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
