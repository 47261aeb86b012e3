/* rope_sets.c - models with two sets of rotary factors: a sequence takes the short ones while it is no longer than the original
 * context and the long ones beyond, whatever the context was made for and however it was cut into batches. "Right" is a cold
 * run, the same tokens in one batch in a fresh context, and where one set is meant, a model that has only that one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "base/mem.h"
#include "context/context.h"
#include "graph/graph.h"
#include "loam/adapter.h"
#include "loam/gguf.h"
#include "model/rope.h"

#define ORIGINAL 32
#define PAIRS 4

/* Two sets, the same with a magnitude of its own, and models whose sets are both the short or both the long one. */
static loam_model *two, *loud, *only_short, *only_long;

/* minicpm3 of the golden data (8 rotary dimensions) with these factors; magnitude 0: the file has none. */
static loam_model *open_with(float near, float far, float magnitude)
{
    char from[512], path[512];
    float s[PAIRS], l[PAIRS];
    int64_t ne[4] = { PAIRS, 1, 1, 1 };
    loam_error err;
    loam_gguf *g;
    loam_gguf_builder *b;
    loam_model *m;
    for (int i = 0; i < PAIRS; i++) s[i] = near, l[i] = far;
    scratch_path(path, "rope_sets.gguf");
    assert_int_equal(loam_gguf_open(&g, golden_path(from, "arch/minicpm3.gguf"), NULL, &err), LOAM_OK);
    assert_int_equal(loam_gguf_builder_create(&b, g, true, &err), LOAM_OK);
    loam_gguf_set_u32(b, "minicpm3.rope.scaling.original_context_length", ORIGINAL);
    loam_gguf_set_u32(b, "minicpm3.context_length", 4 * ORIGINAL);
    if (magnitude > 0) loam_gguf_set_f32(b, "minicpm3.rope.scaling.attn_factor", magnitude);
    else loam_gguf_remove_key(b, "minicpm3.rope.scaling.attn_factor");
    loam_gguf_set_tensor(b, "rope_factors_short.weight", LOAM_F32, ne, s);
    loam_gguf_set_tensor(b, "rope_factors_long.weight", LOAM_F32, ne, l);
    if (loam_gguf_write(b, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
    loam_gguf_free(g);
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    unlink(path);
    return m;
}

static loam_context *make(const loam_model *m, uint32_t n_ctx, uint32_t n_ubatch)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = n_ctx, p.n_seq_max = 3, p.n_threads = 1, p.n_ubatch = n_ubatch, p.type_k = p.type_v = LOAM_F32;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static int32_t id_at(const loam_model *m, int i) { return (i * 37 + 11) % loam_model_n_vocab(m); }

/* Tokens first .. first + n of the text at the end of a sequence, `chunk` at once. */
static int feed(loam_context *ctx, int32_t seq, const int part[2], int chunk, loam_error *err)
{
    int32_t ids[512];
    const int32_t *seqs[512];
    for (int at = part[0]; at < part[1]; at += chunk) {
        int n = part[1] - at < chunk ? part[1] - at : chunk;
        for (int i = 0; i < n; i++) ids[i] = id_at(loam_context_model(ctx), at + i), seqs[i] = &seq;
        loam_batch b = { .n_tokens = n, .token = ids, .seq_id = seqs };
        int code = loam_decode(ctx, &b, err);
        if (code) return code;
    }
    return 0;
}

static void must(loam_context *ctx, int32_t seq, int first, int end, int chunk)
{
    loam_error err;
    if (feed(ctx, seq, (int[2]){ first, end }, chunk, &err)) fail_msg("%s", err.message);
}

/* How far the last logits are from those of the first n tokens in one go, by model m. */
static double from_cold(const loam_context *ctx, const loam_model *m, int n)
{
    loam_context *cold = make(m, 256, 256);
    must(cold, 0, 0, n, n);
    double far = nmse(loam_logits(ctx, -1), loam_logits(cold, -1), (size_t)loam_model_n_vocab(m));
    loam_context_free(cold);
    return far;
}

#define COLD(ctx, m, n) do { double d_ = from_cold(ctx, m, n); if (!(d_ < 1e-9)) fail_msg("%g away from %s at %d", d_, #m, n); } while (0)
#define NOT_COLD(ctx, m, n) assert_true(from_cold(ctx, m, n) > 1e-6)

static int set_up(void **state)
{
    (void)state;
    two = open_with(1, 4, 0), loud = open_with(1, 4, 1.5f), only_short = open_with(1, 1, 0), only_long = open_with(4, 4, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loam_model_free(two);
    loam_model_free(loud);
    loam_model_free(only_short);
    loam_model_free(only_long);
    return 0;
}

/* Angle of pair 0 at position 10 is 10 / factor; the magnitude is the usual one unless the file has its own. */
static void angles_and_magnitude(void **state)
{
    (void)state;
    for (int far = 0; far < 2; far++) {
        build_params p = { .rope_long = far, .rope_scaling = -1, .yarn_ext_factor = -1, .yarn_attn_factor = -1, .yarn_beta_fast = -1,
                           .yarn_beta_slow = -1 };
        rope_setup s;
        rope_resolve(two, &p, &s);
        assert_float_equal(10 / ((const float *)s.factors->data)[0], far ? 2.5 : 10, 0);
        assert_float_equal(s.full.magnitude, 1.1832, 1e-4);
        rope_resolve(loud, &p, &s);
        assert_float_equal(s.full.magnitude, 1.5, 1e-6);
    }
    assert_int_equal(model_rope_short(two), ORIGINAL);
}

static void short_prompts_do_not_see_the_context(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 32, 128, 1024 };
    float first[4096];
    size_t n = (size_t)loam_model_n_vocab(two);
    assert_true(n <= 4096);
    for (int i = 0; i < 3; i++) {
        loam_context *ctx = make(two, sizes[i], 64);
        must(ctx, 0, 0, 10, 10);
        if (i == 0) memcpy(first, loam_logits(ctx, -1), n * sizeof *first);
        assert_memory_equal(first, loam_logits(ctx, -1), n * sizeof *first);
        COLD(ctx, only_short, 10);
        NOT_COLD(ctx, only_long, 10);
        loam_context_free(ctx);
    }
}

static void one_go_is_chunks(void **state)
{
    (void)state;
    static const int steps[] = { 40, 8, 1, 13, 32 };
    for (int i = 0; i < 5; i++) {
        loam_context *ctx = make(two, 128, 16);
        must(ctx, 0, 0, 32, steps[i]);
        COLD(ctx, only_short, 32);
        loam_memory_clear(ctx);
        must(ctx, 0, 0, 40, steps[i]);
        COLD(ctx, only_long, 40);
        COLD(ctx, two, 40);
        assert_int_equal(loam_memory_n_tokens(ctx), 40);
        loam_context_free(ctx);
    }
}

static void generation_crosses(void **state)
{
    (void)state;
    loam_context *ctx = make(two, 128, 64);
    must(ctx, 0, 0, 20, 20);
    for (int at = 20; at < 45; at++) {
        must(ctx, 0, at, at + 1, 1);
        if (at < 32) COLD(ctx, only_short, at + 1);
        else COLD(ctx, only_long, at + 1);
        assert_int_equal(loam_memory_seq_pos_max(ctx, 0), at);
    }
    loam_context_free(ctx);
}

/* Copies that are shared, cut and moved; sequences of both sets in one batch. */
static void sequences(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = make(two, 256, 64);
    must(ctx, 0, 0, 20, 20);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
    must(ctx, 0, 20, 40, 5);
    COLD(ctx, only_long, 40);
    must(ctx, 1, 20, 25, 5); /* the other owner keeps the short ones */
    COLD(ctx, only_short, 25);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, 10, 20, &err), LOAM_E_UNSUPPORTED);
    must(ctx, 1, 25, 26, 1);
    COLD(ctx, only_short, 26);
    assert_true(loam_memory_seq_rm(ctx, 0, 16, -1)); /* below the crossing: back to the short ones */
    must(ctx, 0, 16, 18, 1);
    COLD(ctx, only_short, 18);
    must(ctx, 0, 18, 50, 32);
    COLD(ctx, only_long, 50);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 2, 0, 12, &err), LOAM_OK); /* a beginning with the long ones */
    must(ctx, 2, 12, 14, 2);
    COLD(ctx, only_short, 14);
    static const int32_t q0 = 0, q2 = 2;
    const int32_t *seqs[4] = { &q0, &q2, &q0, &q2 };
    int32_t ids[4] = { id_at(two, 50), id_at(two, 14), id_at(two, 51), id_at(two, 15) };
    loam_batch b = { .n_tokens = 4, .token = ids, .seq_id = seqs, .logits = (const int8_t[]){ 0, 0, 1, 1 } };
    assert_int_equal(loam_decode(ctx, &b, &err), 0);
    COLD(ctx, only_short, 16);
    must(ctx, 0, 52, 53, 1);
    COLD(ctx, only_long, 53);
    static const int32_t both[2] = { 0, 1 };
    const int32_t *joined[1] = { both };
    assert_true(loam_memory_seq_rm(ctx, 0, -1, -1) && loam_memory_seq_rm(ctx, 1, -1, -1));
    must(ctx, 0, 0, 30, 30);
    assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
    for (int at = 30; at < 35; at++) { /* tokens of both cross together */
        ids[0] = id_at(two, at);
        loam_batch j = { .n_tokens = 1, .token = ids, .n_seq_id = (const int32_t[]){ 2 }, .seq_id = joined };
        if (loam_decode(ctx, &j, &err)) fail_msg("%s", err.message);
    }
    COLD(ctx, only_long, 35);
    must(ctx, 1, 35, 36, 1);
    COLD(ctx, only_long, 36);
    loam_context_free(ctx);
}

/* A moved key is turned by the factors that it was made with. */
static void moves(void **state)
{
    (void)state;
    loam_error err;
    for (int far = 0; far < 2; far++) {
        loam_context *a = make(two, 256, 64), *b = make(far ? only_long : only_short, 256, 64);
        loam_context *both[2] = { a, b };
        for (int i = 0; i < 2; i++) {
            must(both[i], 0, 0, far ? 50 : 20, 50);
            assert_true(loam_memory_seq_rm(both[i], 0, 4, 8));
            assert_int_equal(loam_memory_seq_add(both[i], 0, 8, -1, -4, &err), LOAM_OK);
            must(both[i], 0, 60, 62, 2);
        }
        assert_true(nmse(loam_logits(a, -1), loam_logits(b, -1), (size_t)loam_model_n_vocab(two)) < 1e-9);
        loam_context_free(a);
        loam_context_free(b);
    }
}

static void states(void **state)
{
    (void)state;
    loam_error err;
    static uint8_t data[4 << 20];
    for (int n = 20; n <= 50; n += 30) {
        loam_context *ctx = make(two, 256, 64), *other = make(two, 512, 64);
        size_t size;
        must(ctx, 0, 0, n, n);
        if (loam_state_save(ctx, 0, data, sizeof data, &size, &err) != LOAM_OK) fail_msg("%s", err.message);
        if (loam_state_load(other, 2, data, size, &err) != LOAM_OK) fail_msg("%s", err.message);
        must(other, 2, n, n + 1, 1);
        COLD(other, two, n + 1);
        must(other, 2, n + 1, n + 20, 19); /* the ids have come along */
        COLD(other, only_long, n + 20);
        loam_context_free(ctx);
        loam_context_free(other);
    }
}

typedef struct stopper {
    int left;
} stopper;

static bool stop(void *user) { return ((stopper *)user)->left-- <= 0; }

/* Whatever stops a crossing, the sequence is as it was and the same batch works afterwards. */
static void crossing_is_all_or_nothing(void **state)
{
    (void)state;
    loam_error err;
    int stopped = 0;
    for (int at = 0; at < 100; at += 7) {
        loam_context *ctx = make(two, 256, 8);
        stopper s = { at };
        must(ctx, 0, 0, 30, 30);
        int64_t had = loam_memory_n_tokens(ctx);
        loam_context_set_abort(ctx, stop, &s);
        int code = feed(ctx, 0, (int[2]){ 30, 36 }, 6, &err);
        stopped += code == 2;
        loam_context_set_abort(ctx, NULL, NULL);
        if (code == 0) {
            loam_context_free(ctx);
            break;
        }
        assert_true(loam_memory_n_tokens(ctx) == had && loam_memory_seq_pos_max(ctx, 0) == 29);
        must(ctx, 0, 30, 31, 1);
        COLD(ctx, only_short, 31);
        must(ctx, 0, 31, 36, 5);
        COLD(ctx, only_long, 36);
        loam_context_free(ctx);
    }
    assert_true(stopped > 2);
    for (long n = 1; n < 400; n++) {
        loam_context *ctx = make(two, 256, 64);
        must(ctx, 0, 0, 30, 30);
        fault_arm(n, false);
        int code = feed(ctx, 0, (int[2]){ 30, 36 }, 6, &err);
        bool hit = fault_hit();
        fault_arm(0, false);
        if (hit && code) {
            assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 29);
            must(ctx, 0, 30, 31, 1);
            COLD(ctx, only_short, 31);
        } else {
            COLD(ctx, only_long, 36);
        }
        loam_context_free(ctx);
        if (!hit) break;
    }
}

/* A cache that is full to the brim still crosses; one without room says so and changes nothing. */
static void full_caches(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = make(two, 256, 64);
    must(ctx, 1, 0, 226, 226);
    must(ctx, 0, 0, 30, 30);
    assert_int_equal(feed(ctx, 0, (int[2]){ 30, 36 }, 6, &err), 1);
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 29);
    assert_true(loam_memory_seq_rm(ctx, 1, 220, -1));
    must(ctx, 0, 30, 36, 6);
    COLD(ctx, only_long, 36);
    assert_int_equal(loam_memory_n_tokens(ctx), 256);
    loam_context_free(ctx);
}

static void refusals(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = make(two, 256, 64);
    size_t width = (size_t)loam_model_n_embd(two);
    float *rows = mem_zalloc_array(20 * width, sizeof *rows);
    for (size_t i = 0; i < 20 * width; i++) rows[i] = (float)(i % 17) / 17.0f;
    loam_batch b = { .n_tokens = 20, .embd = rows };
    assert_int_equal(loam_decode(ctx, &b, &err), 0);
    assert_int_equal(feed(ctx, 0, (int[2]){ 20, 40 }, 20, &err), -3);
    assert_non_null(strstr(err.message, "sequence 0"));
    assert_non_null(strstr(err.message, "no id"));
    assert_int_equal(loam_memory_seq_pos_max(ctx, 0), 19);
    must(ctx, 0, 20, 30, 10);
    loam_memory_clear(ctx);
    must(ctx, 0, 0, 20, 20);
    assert_int_equal(loam_memory_seq_div(ctx, 0, 0, -1, 2, &err), LOAM_OK);
    assert_int_equal(feed(ctx, 0, (int[2]){ 20, 50 }, 30, &err), -3);
    assert_non_null(strstr(err.message, "one position"));
    loam_memory_clear(ctx);
    must(ctx, 0, 0, 40, 40);
    COLD(ctx, only_long, 40);
    mem_free(rows);
    loam_context_free(ctx);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_and_magnitude), cmocka_unit_test(short_prompts_do_not_see_the_context),
        cmocka_unit_test(one_go_is_chunks), cmocka_unit_test(generation_crosses), cmocka_unit_test(sequences), cmocka_unit_test(moves),
        cmocka_unit_test(states), cmocka_unit_test(crossing_is_all_or_nothing), cmocka_unit_test(full_caches), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
