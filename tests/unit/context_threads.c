/* context_threads.c - a context per thread, all on one model and one lent pool: they take turns, and each gets the bits of a
 * context that is alone. One of them is stopped from another thread now and then. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"

#include "base/os.h"
#include "loam/context.h"
#include "loam/debug.h"

#define THREADS 4
#define ROUNDS 6
#define TOKENS 24

static loam_model *model;
static loam_pool *shared;

typedef struct user {
    int number;
    atomic_bool stop;       /* set by the main thread */
    float logits[4096];
    int stops;
    char trouble[400];
} user;

static bool asked_to_stop(void *arg)
{
    user *u = arg;
    return atomic_exchange(&u->stop, false);
}

static int feed(loam_context *ctx, int number, int first, int n, loam_error *err)
{
    int32_t ids[TOKENS];
    for (int i = 0; i < n; i++) ids[i] = 300 + (number * 37 + (first + i) * 11) % 3000;
    loam_batch b = { .n_tokens = n, .token = ids };
    return loam_decode(ctx, &b, err);
}

/* A prompt, then token by token; whatever is stopped is done again. */
static bool run_text(user *u, loam_context *ctx, loam_error *err)
{
    loam_memory_clear(ctx);
    for (int at = 0, n; at < TOKENS; at += n) {
        n = at == 0 ? TOKENS - 8 : 1;
        int code;
        while ((code = feed(ctx, u->number, at, n, err)) == 2) u->stops++;
        if (code) return false;
    }
    memcpy(u->logits, loam_logits(ctx, -1), (size_t)loam_model_n_vocab(model) * sizeof(float));
    return true;
}

static loam_status make(loam_context **ctx, user *u, loam_pool *pool, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 8, p.n_threads = 2, p.pool = pool, p.abort = asked_to_stop, p.abort_user = u;
    return loam_context_new(ctx, model, &p, err);
}

static void work(void *arg)
{
    user *u = arg;
    loam_error err = { .code = LOAM_OK };
    loam_context *ctx = NULL;
    bool fine = make(&ctx, u, shared, &err) == LOAM_OK;
    for (int i = 0; i < ROUNDS && fine; i++) fine = run_text(u, ctx, &err);
    if (fine) fine = loam_context_warm_up(ctx, &err) == LOAM_OK || err.code == LOAM_E_ABORTED;
    if (!fine) memcpy(u->trouble, err.message, sizeof err.message);
    loam_context_free(ctx);
}

static void threads_share_a_pool(void **state)
{
    (void)state;
    static user users[THREADS], alone;
    loam_error err;
    os_thread *threads[THREADS];
    char path[512];
    scratch_path(path, "threads.gguf");
    assert_int_equal(loam_debug_make_model(path, "tiny", "q8_0", 8, &err), LOAM_OK);
    assert_int_equal(loam_model_open(&model, path, NULL, &err), LOAM_OK);
    unlink(path);
    assert_int_equal(loam_pool_new(&shared, 2, &err), LOAM_OK);
    for (int i = 0; i < THREADS; i++) {
        users[i].number = i;
        threads[i] = os_thread_start(work, &users[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < 50; i++) {
        atomic_store(&users[1].stop, true);
        os_yield();
    }
    for (int i = 0; i < THREADS; i++) os_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++) {
        loam_context *ctx;
        if (users[i].trouble[0]) fail_msg("thread %d: %s", i, users[i].trouble);
        alone.number = i;
        assert_int_equal(make(&ctx, &alone, NULL, &err), LOAM_OK);
        assert_true(run_text(&alone, ctx, &err));
        assert_memory_equal(alone.logits, users[i].logits, (size_t)loam_model_n_vocab(model) * sizeof(float));
        loam_context_free(ctx);
    }
    loam_pool_free(shared);
    loam_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads_share_a_pool) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
