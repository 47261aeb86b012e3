/* soak.c - many sequences generate together while requests come, are cancelled, are stopped in the middle of a step, and run
 * out of room.
 *
 *     build/test_unit_soak [SECONDS]      without an argument a fixed number of steps
 *
 * A request is one of a few prompts and a length; the most likely token follows. The same prompt always gives the same text,
 * whatever else is going on: every finished or cancelled text is compared with the first one of its prompt. Memory is flat: the bytes
 * on the heap after the first quarter are never exceeded by more than a hundredth, and nothing is left at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "loam/context.h"
#include "loam/debug.h"

#define SEQUENCES 200
#define PROMPTS 24
#define LONGEST 80
#define COMMON 40            /* tokens of a beginning that half of the prompts share, kept by the last sequence */
#define N_BATCH 600

typedef struct request {
    bool active, fed;
    int prompt, target;      /* tokens to write */
    int n;                   /* written */
    int32_t text[LONGEST];
    int32_t pos;
} request;

typedef struct soak {
    loam_context *ctx;
    dice d;
    request r[SEQUENCES];
    int32_t law[PROMPTS][LONGEST];
    int known[PROMPTS];
    long steps, finished, cancelled, stopped, full, tokens;
    int left;                /* polls until the decode is stopped, -1: never */
    /* the batch */
    int32_t n, ids[N_BATCH], pos[N_BATCH], seqs[N_BATCH], from[SEQUENCES], last[SEQUENCES];
    const int32_t *seq[N_BATCH];
    int8_t want[N_BATCH];
} soak;

static bool poll_stop(void *user)
{
    soak *s = user;
    return s->left >= 0 && s->left-- == 0;
}

static bool shares(int prompt) { return prompt % 2 == 0; }
static int prompt_length(int prompt) { return 1 + prompt * 7 % 30; }
static int32_t prompt_id(int prompt, int i) { return 300 + (prompt * 131 + i * 17 + 5) % 3000; }
static int32_t common_id(int i) { return 300 + i * 29 % 2000; }

/* Compares with the first text of the prompt, or becomes it. */
static void check_text(soak *s, const request *r)
{
    int both = r->n < s->known[r->prompt] ? r->n : s->known[r->prompt];
    if (memcmp(r->text, s->law[r->prompt], (size_t)both * sizeof *r->text) != 0)
        fail_msg("step %ld: prompt %d gives another text than before", s->steps, r->prompt);
    if (r->n > both) {
        memcpy(s->law[r->prompt], r->text, (size_t)r->n * sizeof *r->text);
        s->known[r->prompt] = r->n;
    }
}

static void end_request(soak *s, int q, bool cancelled)
{
    check_text(s, &s->r[q]);
    if (cancelled) s->cancelled++;
    else s->finished++;
    s->r[q].active = false;
    assert_true(loam_memory_seq_rm(s->ctx, q, -1, -1));
}

static void begin_request(soak *s, int q)
{
    loam_error err;
    request *r = &s->r[q];
    *r = (request){ .active = true, .prompt = (int)dice_below(&s->d, PROMPTS), .target = 1 + (int)dice_below(&s->d, LONGEST) };
    if (!shares(r->prompt)) return;
    if (loam_memory_seq_cp(s->ctx, SEQUENCES, q, -1, -1, &err) != LOAM_OK) fail_msg("%s", err.message);
    r->pos = COMMON;
}

static void add(soak *s, int q, int32_t id, bool want)
{
    s->ids[s->n] = id;
    s->seqs[s->n] = q;
    s->seq[s->n] = &s->seqs[s->n];
    s->want[s->n] = want;
    s->n++;
}

static void compose(soak *s)
{
    s->n = 0;
    int first = (int)dice_below(&s->d, SEQUENCES);
    for (int k = 0; k < SEQUENCES; k++) {
        int q = (first + k) % SEQUENCES;
        request *r = &s->r[q];
        s->last[q] = -1;
        int need = r->active ? r->fed ? 1 : prompt_length(r->prompt) : 0;
        if (need == 0 || s->n + need > N_BATCH) continue;
        if (r->fed) add(s, q, r->text[r->n - 1], true);
        else for (int i = 0; i < need; i++) add(s, q, prompt_id(r->prompt, i), i + 1 == need);
        s->last[q] = s->n - 1;
    }
}

static int32_t likeliest(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static void take(soak *s)
{
    int32_t n_vocab = loam_model_n_vocab(loam_context_model(s->ctx));
    for (int q = 0; q < SEQUENCES; q++) {
        request *r = &s->r[q];
        if (!r->active || s->last[q] < 0) continue;
        r->pos += r->fed ? 1 : prompt_length(r->prompt);
        r->fed = true;
        const float *logits = loam_logits(s->ctx, s->last[q]);
        assert_non_null(logits);
        r->text[r->n++] = likeliest(logits, n_vocab);
        s->tokens++;
        if (r->n == r->target) end_request(s, q, false);
    }
}

static void step(soak *s)
{
    loam_error err;
    s->steps++;
    for (int q = 0; q < SEQUENCES; q++) {
        if (s->r[q].active && dice_below(&s->d, 300) == 0) end_request(s, q, true);
        if (!s->r[q].active && dice_below(&s->d, 4) == 0) begin_request(s, q);
    }
    compose(s);
    if (s->n == 0) return;
    s->left = dice_below(&s->d, 12) == 0 ? (int)dice_below(&s->d, 60) : -1;
    loam_batch b = { .n_tokens = s->n, .token = s->ids, .seq_id = s->seq, .logits = s->want };
    int code = loam_decode(s->ctx, &b, &err);
    if (code == 0) take(s);
    else if (code == 2) s->stopped++;
    else if (code == 1) {
        s->full++;
        for (int i = 0; i < 20; i++) {
            int q = (int)dice_below(&s->d, SEQUENCES);
            if (s->r[q].active) end_request(s, q, true);
        }
    } else fail_msg("step %ld: %d: %s", s->steps, code, err.message);
    for (int q = 0; q < SEQUENCES; q++)
        if (loam_memory_seq_pos_max(s->ctx, q) != s->r[q].pos - 1 && s->r[q].active)
            fail_msg("step %ld: sequence %d ends at %d in place of %d", s->steps, q, loam_memory_seq_pos_max(s->ctx, q), s->r[q].pos - 1);
}

static int seconds; /* 0: a fixed number of steps */

static void flat_and_complete(void **state)
{
    (void)state;
    static soak s;
    char path[512];
    loam_error err;
    loam_model *m;
    long before = fault_live();
    scratch_path(path, "soak.gguf");
    if (loam_debug_make_model(path, "tiny", "q8_0", 4, &err) != LOAM_OK || loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    unlink(path);
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 8192, p.n_batch = N_BATCH, p.n_ubatch = 256, p.n_seq_max = SEQUENCES + 1, p.n_threads = 2;
    p.abort = poll_stop, p.abort_user = &s;
    if (loam_context_new(&s.ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    s.d = (dice){ 11 };
    s.left = -1;
    int32_t common[COMMON], keeper = SEQUENCES;
    const int32_t *seq[COMMON];
    for (int i = 0; i < COMMON; i++) common[i] = common_id(i), seq[i] = &keeper;
    loam_batch b = { .n_tokens = COMMON, .token = common, .seq_id = seq };
    assert_int_equal(loam_decode(s.ctx, &b, &err), 0);
    time_t start = time(NULL);
    long settled = 0, most = 0, fixed = 160;
    for (long done = 0; seconds ? time(NULL) - start < seconds : done < fixed; done++) {
        step(&s);
        bool early = seconds ? (time(NULL) - start) * 4 < seconds : done * 4 < fixed;
        long now = fault_bytes();
        if (early) settled = now > settled ? now : settled;
        most = now > most ? now : most;
    }
    print_message("%ld steps, %ld tokens, %ld texts finished, %ld cancelled, %ld steps stopped, %ld full; heap %ld bytes after a quarter, at most %ld\n",
                  s.steps, s.tokens, s.finished, s.cancelled, s.stopped, s.full, settled, most);
    assert_true(most * 100 <= settled * 101);
    assert_true(s.finished > 100 && s.cancelled > 10 && s.stopped > 0);
    loam_context_free(s.ctx);
    loam_model_free(m);
    assert_int_equal(fault_live(), before);
}

int main(int argc, char **argv)
{
    if (argc > 1) seconds = (int)strtol(argv[1], NULL, 10);
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(flat_and_complete) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
