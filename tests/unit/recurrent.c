/* recurrent.c - recurrent and hybrid models through the public interface: the same bits whatever the threads, the cut of the
 * prompt and the company; aborts change nothing; copies and saved states go on as the original does. Models: tests/golden/data/arch,
 * and ../shared/golden/arch where it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch_files.h"
#include "check.h"
#include "data.h"

#include "base/mem.h"
#include "loam/context.h"

#define N_TOKENS 48

static int32_t token_at(int i, int32_t n_vocab) { return (int32_t)(((uint64_t)i * 2654435761u + 17) % (uint64_t)n_vocab); }

static loam_context *context_of(const loam_model *m, int threads, int ubatch)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 512, p.n_batch = 512, p.n_ubatch = (uint32_t)ubatch, p.n_seq_max = 3;
    p.n_threads = p.n_threads_batch = threads;
    p.type_k = p.type_v = LOAM_F32;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

typedef struct setting {
    int threads, ubatch, batch, others;
} setting;

static const setting settings[] = {
    { 2, 512, 512, 0 }, { 3, 512, 512, 0 }, { 1, 7, 512, 0 }, { 2, 512, 7, 0 }, { 2, 512, 1, 0 }, { 2, 512, 512, 1 }, { 2, 5, 512, 1 },
};

/* All logits of sequence 2, with sequences 0 and 1 mixed in where `others`. */
static void decode_all(const loam_model *m, const setting *s, float *out)
{
    loam_error err;
    loam_context *ctx = context_of(m, s->threads, s->ubatch);
    int32_t v = loam_model_n_vocab(m), ids[512], pos[512], q[3] = { 0, 1, 2 };
    const int32_t *seq[512];
    int8_t want[512];
    for (int first = 0; first < N_TOKENS; first += s->batch) {
        int n = 0, end = first + s->batch < N_TOKENS ? first + s->batch : N_TOKENS, mine[512];
        for (int i = first; i < end; i++) {
            for (int o = 0; s->others && o < 2; o++) {
                if (i % (o + 2) != 0) continue;
                ids[n] = token_at(1000 * (o + 1) + i, v), pos[n] = i / (o + 2), seq[n] = &q[o], want[n] = 0, n++;
            }
            mine[i - first] = n;
            ids[n] = token_at(i, v), pos[n] = i, seq[n] = &q[2], want[n] = 1, n++;
        }
        loam_batch b = { .n_tokens = n, .token = ids, .pos = pos, .seq_id = seq, .logits = want };
        if (loam_decode(ctx, &b, &err) != 0) fail_msg("%s", err.message);
        for (int i = first; i < end; i++) memcpy(out + (size_t)i * (size_t)v, loam_logits(ctx, mine[i - first]), (size_t)v * 4);
    }
    loam_context_free(ctx);
}

static int decode_on(loam_context *ctx, int32_t seq, int first, int n, loam_error *err)
{
    int32_t ids[N_TOKENS], v = loam_model_n_vocab(loam_context_model(ctx));
    const int32_t *seqs[N_TOKENS];
    for (int i = 0; i < n; i++) ids[i] = token_at(first + i, v), seqs[i] = &seq;
    loam_batch b = { .n_tokens = n, .token = ids, .seq_id = seqs };
    return loam_decode(ctx, &b, err);
}

/* ---- checks of one model; law: logits of the tokens, one after the other ---- */

static int same_bits(const loam_model *m, const char *name, const float *law)
{
    size_t bytes = (size_t)N_TOKENS * (size_t)loam_model_n_vocab(m) * 4;
    float *got = mem_alloc(bytes);
    int bad = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        decode_all(m, s, got);
        if (memcmp(law, got, bytes) == 0) continue;
        print_message("%s: threads %d, ubatch %d, batch %d, others %d: differs\n", name, s->threads, s->ubatch, s->batch, s->others);
        bad++;
    }
    mem_free(got);
    return bad;
}

static bool row_is(const loam_context *ctx, const float *law, int token)
{
    size_t v = (size_t)loam_model_n_vocab(loam_context_model(ctx));
    return memcmp(loam_logits(ctx, -1), law + (size_t)token * v, v * 4) == 0;
}

static bool stop_after(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

/* However far a batch came before it was aborted, the sequence goes on as if it had not been. */
static int aborts(const loam_model *m, const char *name, const float *law)
{
    loam_error err;
    loam_context *ctx = context_of(m, 2, 4);
    int bad = decode_on(ctx, 0, 0, 20, &err) != 0, stopped = 0;
    for (int polls = 0; polls < 400; polls = polls * 3 / 2 + 1) {
        int left = polls;
        loam_context_set_abort(ctx, stop_after, &left);
        stopped += decode_on(ctx, 0, 20, 12, &err) == 2;
        loam_context_set_abort(ctx, NULL, NULL);
        if (loam_memory_seq_pos_max(ctx, 0) != 19) break;
    }
    if (loam_memory_seq_pos_max(ctx, 0) == 19) bad += decode_on(ctx, 0, 20, 12, &err) != 0;
    bad += !row_is(ctx, law, 31) || stopped < 3;
    if (bad) print_message("%s: after %d aborts the sequence is another\n", name, stopped);
    loam_context_free(ctx);
    return bad;
}

static int copies_and_states(const loam_model *m, const char *name, const float *law)
{
    loam_error err;
    loam_context *ctx = context_of(m, 2, 512), *other = context_of(m, 1, 512);
    int bad = decode_on(ctx, 0, 0, 20, &err) != 0;
    bad += loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err) != LOAM_OK;
    bad += decode_on(ctx, 1, 100, 5, &err) != 0;   /* the copy goes its own way */
    size_t size = loam_state_size(ctx, 0);
    uint8_t *bytes = mem_alloc(size ? size : 1);
    size_t written = 0;
    bad += loam_state_save(ctx, 0, bytes, size, &written, &err) != LOAM_OK;
    bad += loam_state_load(other, 2, bytes, written, &err) != LOAM_OK;
    bad += decode_on(ctx, 0, 20, 1, &err) != 0 || !row_is(ctx, law, 20);
    bad += decode_on(other, 2, 20, 1, &err) != 0 || !row_is(other, law, 20);
    for (size_t cut = 0; cut < written; cut += 1 + written / 97)
        bad += loam_state_load(other, 2, bytes, cut, &err) == LOAM_OK;
    bad += decode_on(other, 2, 21, 1, &err) != 0 || !row_is(other, law, 21);
    if (bad) print_message("%s: a copy or a restored state is another\n", name);
    mem_free(bytes);
    loam_context_free(ctx);
    loam_context_free(other);
    return bad;
}

static int check_model(const char *folder, const char *name)
{
    char path[600];
    loam_error err = { 0 };
    loam_model *m;
    snprintf(path, sizeof path, "%s/%.63s.gguf", folder, name);
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s: %s", name, err.message);
    float *law = mem_alloc((size_t)N_TOKENS * (size_t)loam_model_n_vocab(m) * 4);
    decode_all(m, &(setting){ 1, 512, 1, 0 }, law);
    int bad = same_bits(m, name, law) + aborts(m, name, law) + copies_and_states(m, name, law);
    mem_free(law);
    loam_model_free(m);
    return bad;
}

static void own_models(void **state)
{
    (void)state;
    static const char *const names[] = { "lfm2-dense", "mamba2-dense", "rwkv6" };
    char folder[512];
    int bad = 0;
    for (size_t i = 0; i < 3; i++) bad += check_model(golden_path(folder, "arch"), names[i]);
    assert_int_equal(bad, 0);
}

static void shared_models(void **state)
{
    (void)state;
    static const char *const names[] = { "mamba-dense", "jamba-dense", "granitehybrid-dense", "nemotron_h-dense", "plamo2-dense", "lfm2moe-moe",
                                         "qwen35-dense", "qwen3next-moe" };
    char folder[512];
    int bad = 0;
    SHARED_OR_SKIP(folder, "golden/arch");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) bad += check_model(folder, names[i]);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(own_models), cmocka_unit_test(shared_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
