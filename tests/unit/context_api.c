/* context_api.c - what a context is made of, can be asked and told: rules of construction, estimate against what is really
 * taken, lent pools, numbers of threads, the causal switch, warming up, times, messages, contexts of a vocabulary. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "data.h"

#include "loam/context.h"
#include "loam/debug.h"

/* ---- an allocator on one mapping: what the process grows by beside it are reservations of the library ---- */

static struct {
    char *base;
    size_t used, size;
    size_t live;
} heap;

static void *resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    heap.live += new_size - old_size;
    if (new_size == 0 || (p && new_size <= old_size)) return new_size ? p : NULL;
    size_t at = (heap.used + 63) & ~(size_t)63;
    if (new_size > heap.size - at) return NULL;
    heap.used = at + new_size;
    if (p) memcpy(heap.base + at, p, old_size);
    return heap.base + at;
}

static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%llu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static loam_model *model, *vocabulary;

static int open_models(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    scratch_path(path, "context_api.gguf");
    if (loam_debug_make_model(path, "tiny", "q8_0", 3, &err) != LOAM_OK) return -1;
    loam_model_params p = loam_model_defaults();
    loam_status status = loam_model_open(&model, path, NULL, &err);
    p.vocab_only = true;
    if (status == LOAM_OK) status = loam_model_open(&vocabulary, path, &p, &err);
    unlink(path);
    return status == LOAM_OK ? 0 : -1;
}

static int close_models(void **state)
{
    (void)state;
    loam_model_free(model);
    loam_model_free(vocabulary);
    return 0;
}

static loam_context *make(const loam_context_params *p)
{
    loam_error err;
    loam_context *ctx;
    if (loam_context_new(&ctx, model, p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static loam_context_params small(void)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 16, p.n_threads = 1, p.n_seq_max = 4;
    return p;
}

static size_t n_vocab(void) { return (size_t)loam_model_n_vocab(model); }

/* Tokens 300, 307, ... at the end of sequence 0; all outputs. */
static int feed(loam_context *ctx, int n, loam_error *err)
{
    int32_t ids[64];
    int8_t want[64];
    for (int i = 0; i < n; i++) ids[i] = 300 + 7 * i, want[i] = 1;
    loam_batch b = { .n_tokens = n, .token = ids, .logits = want };
    return loam_decode(ctx, &b, err);
}

static void must_feed(loam_context *ctx, int n)
{
    loam_error err;
    if (feed(ctx, n, &err) != 0) fail_msg("%s", err.message);
}

static void defaults_and_rules(void **state)
{
    (void)state;
    loam_context_params d = loam_context_defaults();
    assert_true(d.struct_size == sizeof d && d.n_ctx == 512 && d.n_batch == 2048 && d.n_ubatch == 512 && d.n_seq_max == 1);
    assert_true(d.n_rs_seq == 0 && d.rope_scaling == LOAM_ROPE_MODEL && d.pooling == LOAM_POOLING_MODEL && d.attention == LOAM_ATTENTION_MODEL);
    assert_true(d.rope_freq_base == 0 && d.rope_freq_scale == 0 && d.yarn_ext_factor == -1 && d.yarn_attn_factor == -1 && d.yarn_beta_fast == -1);
    assert_true(d.yarn_beta_slow == -1 && d.yarn_orig_ctx == 0 && d.type_k == LOAM_F16 && d.type_v == LOAM_F16 && !d.embeddings);
    assert_true(d.window_full && d.unified && !d.abort && !d.observe && !d.log && !d.pool && d.n_outputs_max == 0);
    loam_context_params p = d;
    p.n_threads = 1;
    loam_context *ctx = make(&p);
    assert_true(loam_context_n_ctx(ctx) == 512 && loam_context_n_batch(ctx) == 512 && loam_context_n_ubatch(ctx) == 512);
    assert_true(loam_context_n_seq_max(ctx) == 1 && loam_context_model(ctx) == model && loam_context_n_threads_batch(ctx) == 1);
    loam_context_free(ctx);
    p.n_ctx = 0, p.n_ubatch = 0, p.n_batch = 7, p.n_seq_max = 0;
    ctx = make(&p);
    loam_context_params s = loam_context_settings(ctx);
    assert_int_equal(s.n_ctx, (loam_model_n_ctx_train(model) + 255) / 256 * 256);
    assert_true(s.n_batch == 7 && s.n_ubatch == 7 && s.n_seq_max == 1 && s.n_outputs_max == 1);
    assert_true(s.attention == LOAM_ATTENTION_CAUSAL && s.pooling == LOAM_POOLING_NONE && s.struct_size == sizeof s);
    loam_context_free(ctx);
    p = small();
    p.unified = false, p.n_ctx = 1000;
    ctx = make(&p);
    assert_true(loam_context_n_ctx(ctx) == 1024 && loam_context_n_ctx_seq(ctx) == 256);
    loam_context_free(ctx);
    p.struct_size = offsetof(loam_context_params, pooling); /* of an older header */
    p.pooling = LOAM_POOLING_RANK;
    ctx = make(&p);
    assert_int_equal(loam_context_pooling(ctx), LOAM_POOLING_NONE);
    loam_context_free(ctx);
}

static uint64_t sum(const loam_memory_use *u) { return u->cache + u->buffers + u->outputs + u->tables; }

/* One thread: stacks are no part of an estimate. */
static void check_estimate(loam_context_params p)
{
    loam_error err;
    loam_memory_use guess, real;
    p.n_threads = 1;
    if (loam_context_estimate(model, &p, &guess, &err) != LOAM_OK) fail_msg("%s", err.message);
    size_t live = heap.live;
    uint64_t space = address_space();
    loam_context *ctx = make(&p);
    for (int i = 0; i < 4; i++) must_feed(ctx, i ? 1 : 60);
    uint64_t taken = (uint64_t)(heap.live - live) + address_space() - space;
    loam_context_memory_use(ctx, &real);
    print_message("estimate %llu (cache %llu, buffers %llu, outputs %llu, tables %llu), taken %llu, reported %llu\n",
                  (unsigned long long)sum(&guess), (unsigned long long)guess.cache, (unsigned long long)guess.buffers,
                  (unsigned long long)guess.outputs, (unsigned long long)guess.tables, (unsigned long long)taken,
                  (unsigned long long)sum(&real));
    assert_true(sum(&guess) * 100 >= taken * 98 && sum(&guess) * 100 <= taken * 102);
    assert_true(sum(&real) * 100 >= taken * 98 && sum(&real) * 100 <= taken * 102);
    assert_int_equal(guess.weights, loam_model_bytes(model));
    loam_context_free(ctx);
    assert_int_equal(heap.live, live);
}

static void an_estimate_is_what_is_taken(void **state)
{
    (void)state;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 8192, p.n_outputs_max = 64;
    check_estimate(p);
    p.n_seq_max = 16, p.n_ctx = 32768, p.type_k = LOAM_Q8_0, p.type_v = LOAM_Q4_0, p.embeddings = true, p.n_batch = 512;
    check_estimate(p);
    p.n_ctx = 16384, p.unified = false, p.n_ubatch = 64, p.pooling = LOAM_POOLING_MEAN;
    check_estimate(p);
}

static void pools_are_lent_and_taken_back(void **state)
{
    (void)state;
    loam_error err;
    loam_pool *one, *many;
    loam_context_params p = small();
    p.n_threads = 2, p.n_threads_batch = 3;
    loam_context *alone = make(&p), *a = make(&p);
    must_feed(alone, 40);
    assert_int_equal(loam_pool_new(&one, 2, &err), LOAM_OK);
    assert_int_equal(loam_pool_new(&many, 3, &err), LOAM_OK);
    assert_int_equal(loam_pool_n_threads(many), 3);
    assert_int_equal(loam_context_attach_pools(a, NULL, many, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_attach_pools(a, one, many, &err), LOAM_OK);
    p.pool = one;
    loam_context *b = make(&p);
    must_feed(a, 40);
    must_feed(b, 40);
    assert_memory_equal(loam_logits(a, -1), loam_logits(alone, -1), n_vocab() * 4);
    assert_memory_equal(loam_logits(b, -1), loam_logits(alone, -1), n_vocab() * 4);
    assert_ptr_equal(loam_context_settings(b).pool_batch, one);
    loam_context_detach_pools(a);
    loam_context_detach_pools(b);
    loam_pool_free(one);
    loam_pool_free(many);
    loam_context *all[] = { alone, a, b };
    for (int i = 0; i < 3; i++) must_feed(all[i], 1);
    assert_memory_equal(loam_logits(a, -1), loam_logits(alone, -1), n_vocab() * 4);
    assert_memory_equal(loam_logits(b, -1), loam_logits(alone, -1), n_vocab() * 4);
    for (int i = 0; i < 3; i++) loam_context_free(all[i]);
    assert_int_equal(loam_pool_new(&one, 0, &err), LOAM_E_ARG);
    assert_int_equal(loam_pool_new(NULL, 1, &err), LOAM_E_ARG);
    loam_pool_free(NULL);
}

static void threads_may_change(void **state)
{
    (void)state;
    loam_error err;
    loam_context_params p = small();
    loam_context *alone = make(&p), *ctx = make(&p);
    must_feed(alone, 30);
    for (int i = 0; i < 5; i++) {
        static const int counts[] = { 1, 4, 2, 7, 1 };
        assert_int_equal(loam_context_set_threads(ctx, counts[i], i == 2 ? 3 : 0, &err), LOAM_OK);
        assert_int_equal(loam_context_n_threads(ctx), counts[i]);
        assert_int_equal(loam_context_n_threads_batch(ctx), i == 2 ? 3 : counts[i]);
        loam_memory_clear(ctx);
        must_feed(ctx, 30);
        assert_memory_equal(loam_logits(ctx, -1), loam_logits(alone, -1), n_vocab() * 4);
    }
    assert_int_equal(loam_context_set_threads(ctx, -1, 0, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_set_threads(ctx, 1, 100000, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "n_threads_batch"));
    assert_int_equal(loam_context_n_threads(ctx), 1);
    loam_context_free(alone);
    loam_context_free(ctx);
}

static void the_causal_switch(void **state)
{
    (void)state;
    loam_error err;
    float first[4096], again[4096];
    loam_context_params p = small();
    loam_context *ctx = make(&p);
    must_feed(ctx, 1);
    memcpy(first, loam_logits(ctx, 0), n_vocab() * 4);
    loam_memory_clear(ctx);
    must_feed(ctx, 5);
    assert_memory_equal(loam_logits(ctx, 0), first, n_vocab() * 4); /* causal: later tokens do not matter */
    memcpy(again, loam_logits(ctx, 4), n_vocab() * 4);
    loam_memory_clear(ctx);
    loam_context_set_causal(ctx, false);
    assert_int_equal(loam_context_settings(ctx).attention, LOAM_ATTENTION_NON_CAUSAL);
    must_feed(ctx, 1);
    assert_memory_equal(loam_logits(ctx, 0), first, n_vocab() * 4); /* nothing follows */
    loam_memory_clear(ctx);
    must_feed(ctx, 5);
    assert_true(nmse(loam_logits(ctx, 0), first, n_vocab()) > 1e-4);
    assert_int_equal(feed(ctx, 17, &err), -1);
    assert_non_null(strstr(err.message, "n_ubatch"));
    loam_context_set_causal(ctx, true);
    loam_memory_clear(ctx);
    must_feed(ctx, 5);
    assert_memory_equal(loam_logits(ctx, 4), again, n_vocab() * 4);
    loam_context_free(ctx);
    p.attention = LOAM_ATTENTION_NON_CAUSAL;
    ctx = make(&p);
    must_feed(ctx, 5);
    assert_true(nmse(loam_logits(ctx, 0), first, n_vocab()) > 1e-4);
    loam_context_free(ctx);
}

static bool yes(void *user)
{
    (void)user;
    return true;
}

static void warming_up_changes_nothing(void **state)
{
    (void)state;
    loam_error err;
    loam_context_params p = small();
    p.n_threads = 2;
    loam_context *ctx = make(&p);
    must_feed(ctx, 9);
    float before[4096];
    memcpy(before, loam_logits(ctx, -1), n_vocab() * 4);
    assert_int_equal(loam_context_warm_up(ctx, &err), LOAM_OK);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 8);
    assert_memory_equal(loam_logits(ctx, -1), before, n_vocab() * 4);
    assert_int_equal(loam_context_perf(ctx).n_prompt, 9);
    loam_context_set_abort(ctx, yes, NULL);
    assert_int_equal(loam_context_warm_up(ctx, &err), LOAM_E_ABORTED);
    assert_int_equal(loam_context_warm_up(NULL, &err), LOAM_E_ARG);
    loam_context_free(ctx);
}

static void times_are_booked_right(void **state)
{
    (void)state;
    loam_error err;
    loam_context_params p = small();
    loam_context *ctx = make(&p);
    assert_true(loam_context_perf(ctx).load_ns > 0 && loam_context_perf(ctx).start_ns > 0);
    must_feed(ctx, 20);
    for (int i = 0; i < 5; i++) must_feed(ctx, 1); /* several in a row, nothing asked in between */
    int32_t ids[3] = { 300, 301, 302 }, seq[3] = { 1, 2, 3 };
    const int32_t *seqs[3] = { &seq[0], &seq[1], &seq[2] };
    loam_batch side = { .n_tokens = 3, .token = ids, .seq_id = seqs };
    assert_int_equal(loam_decode(ctx, &side, &err), 0);
    loam_perf f = loam_context_perf(ctx);
    assert_true(f.n_prompt == 20 && f.n_prompt_batches == 1 && f.n_gen == 8 && f.n_gen_batches == 6);
    assert_true(f.prompt_ns > 0 && f.gen_ns > 0);
    int64_t made = f.n_plans;
    for (int i = 0; i < 5; i++) must_feed(ctx, 1);
    assert_int_equal(loam_context_perf(ctx).n_plans, made);
    loam_context_perf_reset(ctx);
    f = loam_context_perf(ctx);
    assert_true(f.n_prompt == 0 && f.n_gen == 0 && f.gen_ns == 0 && f.load_ns > 0 && f.n_plans == 0);
    assert_int_equal(loam_memory_n_tokens(ctx), 33);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK); /* its one token gives way */
    assert_int_equal(loam_memory_n_tokens(ctx), 32);
    loam_context_free(ctx);
}

static void note(void *user, loam_log_level level, const char *text)
{
    (void)level;
    snprintf(user, 128, "%s", text);
}

static void messages_go_to_the_context(void **state)
{
    (void)state;
    char mine[128] = "", common[128] = "";
    loam_context_params p = small();
    p.n_ctx = (uint32_t)loam_model_n_ctx_train(model) + 256, p.log = note, p.log_user = mine;
    loam_set_log(note, common);
    loam_context_free(make(&p));
    assert_non_null(strstr(mine, "trained"));
    assert_string_equal(common, "");
    p.log = NULL;
    loam_context_free(make(&p));
    assert_non_null(strstr(common, "trained"));
    loam_set_log(NULL, NULL);
}

static void a_context_of_a_vocabulary(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    loam_memory_use use;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 0;
    assert_int_equal(loam_context_new(&ctx, vocabulary, &p, &err), LOAM_OK);
    assert_int_equal(feed(ctx, 1, &err), -1);
    assert_non_null(strstr(err.message, "vocabulary"));
    assert_true(loam_memory_seq_rm(ctx, 0, -1, -1));
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), -1);
    assert_false(loam_memory_can_shift(ctx));
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 0, -1, -1, &err), LOAM_OK);
    loam_memory_clear(ctx);
    assert_int_equal(loam_state_size(ctx, -1), 0);
    assert_null(loam_logits(ctx, -1));
    assert_int_equal(loam_context_warm_up(ctx, &err), LOAM_OK);
    assert_int_equal(loam_context_set_threads(ctx, 3, 0, &err), LOAM_OK);
    loam_context_memory_use(ctx, &use);
    assert_true(use.cache == 0 && use.buffers == 0);
    assert_int_equal(loam_context_estimate(vocabulary, &p, &use, &err), LOAM_OK);
    loam_context_free(ctx);
}

int main(void)
{
    heap.size = (size_t)1 << 31;
    heap.base = mmap(NULL, heap.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (heap.base == MAP_FAILED) return 1;
    static const loam_allocator allocator = { resize, NULL };
    loam_set_allocator(&allocator);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_rules), cmocka_unit_test(an_estimate_is_what_is_taken), cmocka_unit_test(pools_are_lent_and_taken_back),
        cmocka_unit_test(threads_may_change), cmocka_unit_test(the_causal_switch), cmocka_unit_test(warming_up_changes_nothing),
        cmocka_unit_test(times_are_booked_right), cmocka_unit_test(messages_go_to_the_context), cmocka_unit_test(a_context_of_a_vocabulary),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
