/* bench.c - `loam bench`: speed of reading a prompt (pp) and of writing (tg), and memory.
 *
 * Token ids are made up, the same in every run. A test is run once to warm up and -r times to be measured; the median counts.
 *     pp512          512 tokens in batches of -b; only the last one's logits are wanted
 *     tg64           64 tokens one by one, after a first one that is not counted
 *     tg64x8         8 sequences side by side; the speed is the sum
 *     tg64@d8192     the same with 8192 tokens already in the context
 * With --limits what bounds them is measured between the runs (limits.c), and each test says how much of it was reached. */
#include <stdlib.h>
#include <string.h>

#include "limits.h"
#include "session.h"

typedef struct bench {
    session s;
    const options *o;
    int32_t sequences, depth;
    int32_t *seq_ids;
    const int32_t **seq_lists;
    double *speeds; /* [repetitions] */
    int repetitions;
    limits limits;
} bench;

typedef struct result {
    char name[64];
    int64_t tokens;
    double median, least, most;
    bool writing;
} result;

static int32_t made_up(const bench *b, int64_t i)
{
    int32_t most = b->s.n_vocab < 30000 ? b->s.n_vocab : 30000;
    return most > 3 ? (int32_t)((i * 7919 + 17) % (most - 3)) + 3 : (int32_t)(i % most);
}

/* Puts n tokens behind each sequence in [0, count), one sequence after the other. 0 or a code of loam_decode. */
static int fill(bench *b, int32_t count, int64_t n, loam_error *err)
{
    int64_t most = loam_context_n_batch(b->s.ctx);
    int32_t *ids = need(malloc((size_t)most * sizeof *ids));
    const int32_t **lists = need(malloc((size_t)most * sizeof *lists));
    int code = 0;
    for (int32_t q = 0; q < count && code == 0; q++)
        for (int64_t at = 0; at < n && code == 0; at += most) {
            int64_t take = n - at < most ? n - at : most;
            for (int64_t i = 0; i < take; i++) {
                ids[i] = made_up(b, at + i);
                lists[i] = &b->seq_ids[q];
            }
            loam_batch batch = { .n_tokens = (int32_t)take, .token = ids, .seq_id = lists };
            code = loam_decode(b->s.ctx, &batch, err);
        }
    free(ids);
    free(lists);
    return code;
}

/* One token more on every sequence. */
static int step(bench *b, int64_t at, loam_error *err)
{
    int32_t ids[256];
    int8_t wanted[256];
    for (int32_t q = 0; q < b->sequences; q++) {
        ids[q] = made_up(b, at * 31 + q);
        wanted[q] = 1;
    }
    loam_batch batch = { .n_tokens = b->sequences, .token = ids, .seq_id = b->seq_lists, .logits = wanted };
    return loam_decode(b->s.ctx, &batch, err);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(bench *b, result *r)
{
    qsort(b->speeds, (size_t)b->repetitions, sizeof *b->speeds, by_size);
    r->median = b->speeds[b->repetitions / 2];
    r->least = b->speeds[0];
    r->most = b->speeds[b->repetitions - 1];
}

/* Brings the context to its depth: cuts off what the last run added where the model can, else reads the depth again. */
static int to_depth(bench *b, bool writing, loam_error *err)
{
    int32_t count = writing ? b->sequences : 1;
    bool kept = b->depth > 0;
    for (int32_t q = 0; q < count && kept; q++)
        kept = loam_memory_seq_pos_max(b->s.ctx, q) >= b->depth - 1 && loam_memory_seq_rm(b->s.ctx, q, b->depth, -1);
    if (kept) return 0;
    loam_memory_clear(b->s.ctx);
    return fill(b, count, b->depth, err);
}

/* Runs one test; generation where `writing`. An exit code. */
static int test(bench *b, bool writing, int64_t n, progress *bar, result *r)
{
    loam_error err;
    char depth[24] = "", side[16] = "";
    if (b->depth) snprintf(depth, sizeof depth, "@d%d", b->depth);
    if (writing && b->sequences > 1) snprintf(side, sizeof side, "x%d", b->sequences);
    snprintf(r->name, sizeof r->name, "%s%lld%s%s", writing ? "tg" : "pp", (long long)n, side, depth);
    r->tokens = writing ? n * b->sequences : n;
    r->writing = writing;
    for (int i = 0; i <= b->repetitions; i++) { /* run 0 warms up */
        if (opt_given(b->o, OPT_LIMITS) && limits_measure(&b->limits, b->o) != EXIT_DONE) return EXIT_FAILED;
        int code = to_depth(b, writing, &err);
        if (code == 0 && writing) code = step(b, 0, &err);
        uint64_t start = now_ns();
        if (code == 0 && !writing) code = fill(b, 1, n, &err);
        for (int64_t k = 1; k <= n && writing && code == 0; k++) code = step(b, k, &err);
        double seconds = (double)(now_ns() - start) / 1e9;
        if (code == 2) return say_failed(b->o, "stopped");
        if (code) return say_error(b->o, &err);
        if (i) b->speeds[i - 1] = (double)r->tokens / (seconds > 0 ? seconds : 1e-9);
        progress_at(bar, (uint64_t)i + 1);
    }
    summarize(b, r);
    return EXIT_DONE;
}

/* The share of its limit that a test reached, NAN where that is not known. */
static double share_of(const bench *b, const result *r)
{
    return r->writing ? limits_share_writing(&b->limits, r->median, b->sequences) : limits_share_reading(&b->limits, r->median);
}

static void print_json(const bench *b, const result *tests, int n_tests, double first_token_ms)
{
    uint64_t anonymous;
    loam_memory_use use;
    json j;
    resident_bytes(&anonymous);
    loam_context_memory_use(b->s.ctx, &use);
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "model", opt_text(b->o, OPT_MODEL));
    json_string(&j, "type", loam_model_description(b->s.model));
    json_int(&j, "threads", loam_context_n_threads(b->s.ctx));
    json_num(&j, "load_ms", (double)b->s.load_ns / 1e6);
    if (first_token_ms >= 0) json_num(&j, "first_token_ms", first_token_ms);
    else json_null(&j, "first_token_ms");
    json_int(&j, "peak_rss_bytes", (int64_t)peak_resident_bytes());
    json_int(&j, "anon_rss_bytes", (int64_t)anonymous);
    json_int(&j, "cache_bytes", (int64_t)use.cache);
    json_int(&j, "buffer_bytes", (int64_t)(use.buffers + use.outputs));
    if (opt_given(b->o, OPT_LIMITS)) limits_json(&b->limits, &j);
    json_open(&j, "tests", '[');
    for (int i = 0; i < n_tests; i++) {
        json_open(&j, NULL, '{');
        json_string(&j, "name", tests[i].name);
        json_int(&j, "tokens", tests[i].tokens);
        json_num(&j, "tok_s_median", tests[i].median);
        json_num(&j, "tok_s_min", tests[i].least);
        json_num(&j, "tok_s_max", tests[i].most);
        if (opt_given(b->o, OPT_LIMITS)) json_num(&j, "limit_share", share_of(b, &tests[i]));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static void print_table(const bench *b, const result *tests, int n_tests, double first_token_ms)
{
    uint64_t anonymous;
    loam_memory_use use;
    resident_bytes(&anonymous);
    loam_context_memory_use(b->s.ctx, &use);
    printf("%s, %d threads, loaded in %.1f ms", loam_model_description(b->s.model), loam_context_n_threads(b->s.ctx),
           (double)b->s.load_ns / 1e6);
    if (first_token_ms >= 0) printf(", first token after %.1f ms", first_token_ms);
    printf("\nmemory: cache %.1f MB, buffers %.1f MB, anonymous %.1f MB, resident at most %.1f MB\n",
           (double)use.cache / 1e6, (double)(use.buffers + use.outputs) / 1e6, (double)anonymous / 1e6,
           (double)peak_resident_bytes() / 1e6);
    bool shares = opt_given(b->o, OPT_LIMITS);
    if (shares) limits_print(&b->limits);
    printf("\n%-20s %10s %10s %10s%s\n", "test", "tokens/s", "least", "most", shares ? "   of limit" : "");
    for (int i = 0; i < n_tests; i++) {
        double share = share_of(b, &tests[i]);
        printf("%-20s %10.2f %10.2f %10.2f", tests[i].name, tests[i].median, tests[i].least, tests[i].most);
        if (shares && share == share) printf(" %8.1f %%", 100 * share);
        else if (shares) printf(" %10s", "-");
        putchar('\n');
    }
}

static int prepare(bench *b, const options *o)
{
    int64_t pp = opt_int(o, OPT_BENCH_PROMPT), tg = opt_int(o, OPT_BENCH_GEN),
            first = opt_given(o, OPT_FIRST_TOKEN) ? opt_int(o, OPT_FIRST_TOKEN) : 0;
    b->o = o;
    b->sequences = (int32_t)opt_int(o, OPT_SEQUENCES);
    b->depth = (int32_t)opt_int(o, OPT_DEPTH);
    b->repetitions = (int)opt_int(o, OPT_REPEAT);
    b->speeds = need(malloc((size_t)b->repetitions * sizeof *b->speeds));
    b->seq_ids = need(malloc((size_t)b->sequences * sizeof *b->seq_ids));
    b->seq_lists = need(malloc((size_t)b->sequences * sizeof *b->seq_lists));
    for (int32_t q = 0; q < b->sequences; q++) {
        b->seq_ids[q] = q;
        b->seq_lists[q] = &b->seq_ids[q];
    }
    int code = session_open(&b->s, o, false);
    if (code == EXIT_DONE && opt_given(o, OPT_LIMITS)) code = limits_begin(&b->limits, o);
    if (code != EXIT_DONE) return code;
    int64_t reading = b->depth + pp, writing = b->sequences * (b->depth + tg + 1);
    int64_t n_ctx = reading > writing ? reading : writing;
    if (n_ctx <= first) n_ctx = first + 1;
    if (n_ctx > UINT32_MAX) return say_failed(o, "a context of %lld tokens is too large", (long long)n_ctx);
    loam_context_params p = session_params(&b->s, o);
    p.n_ctx = (uint32_t)n_ctx;
    p.n_seq_max = (uint32_t)b->sequences;
    return session_context(&b->s, o, &p);
}

/* Milliseconds from the start of the process to the first token chosen after n tokens; an exit code. */
static int first_token(bench *b, int64_t n, double *ms)
{
    loam_error err;
    int code = fill(b, 1, n, &err);
    if (code) return say_error(b->o, &err);
    const float *logits = loam_logits(b->s.ctx, -1);
    int32_t best = 0;
    for (int32_t i = 1; logits && i < b->s.n_vocab; i++) best = logits[i] > logits[best] ? i : best;
    if (!logits || !(logits[best] == logits[best])) return say_failed(b->o, "the model's logits are not finite");
    *ms = (double)process_age_ns() / 1e6;
    return EXIT_DONE;
}

int cmd_bench(const options *o)
{
    bench b = { 0 };
    result tests[2];
    int n_tests = 0, code = prepare(&b, o);
    double first_ms = -1;
    progress bar;
    catch_interrupt();
    if (code == EXIT_DONE && opt_given(o, OPT_FIRST_TOKEN)) code = first_token(&b, opt_int(o, OPT_FIRST_TOKEN), &first_ms);
    for (int writing = 0; writing < 2 && code == EXIT_DONE; writing++) {
        int64_t n = opt_int(o, writing ? OPT_BENCH_GEN : OPT_BENCH_PROMPT);
        if (n == 0) continue;
        progress_begin(&bar, writing ? "writing" : "reading", (uint64_t)b.repetitions + 1);
        code = test(&b, writing, n, &bar, &tests[n_tests++]);
        progress_end(&bar);
    }
    while (code == EXIT_DONE && opt_given(o, OPT_LIMITS) && b.limits.best.reads < LIMITS_READS) code = limits_measure(&b.limits, o);
    if (code == EXIT_DONE && opt_given(o, OPT_JSON)) print_json(&b, tests, n_tests, first_ms);
    else if (code == EXIT_DONE) print_table(&b, tests, n_tests, first_ms);
    limits_end(&b.limits);
    session_close(&b.s);
    free(b.speeds);
    free(b.seq_ids);
    free(b.seq_lists);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}
