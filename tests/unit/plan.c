/* plan.c - graphs become plans: results against naive loops, whatever the number of threads; barriers; shape errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "base/mem.h"
#include "device/cpu.h"

#define D 64
#define F 160

typedef struct net {
    float norm[D], up[F * D], gate[F * D], down[D * F], bias[D];
    weight w_norm, w_up, w_gate, w_down, w_bias;
} net;

static uint32_t random_state = 7;

static float random_value(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) / (float)(1 << 24) - 0.5f;
}

static weight matrix(const char *name, float *data, int64_t in, int64_t out)
{
    for (int64_t i = 0; i < in * out; i++) data[i] = random_value();
    return (weight){ .name = name, .type = LOAM_F32, .ne = { in, out, 1, 1 }, .data = data, .row_bytes = (uint64_t)in * 4 };
}

static net *make_net(void)
{
    net *n = mem_alloc(sizeof *n);
    n->w_norm = matrix("norm", n->norm, D, 1);
    n->w_up = matrix("up", n->up, D, F);
    n->w_gate = matrix("gate", n->gate, D, F);
    n->w_down = matrix("down", n->down, F, D);
    n->w_bias = matrix("bias", n->bias, D, 1);
    return n;
}

/* x = x + down(silu(gate h) * up h) + bias, h = norm(x), `layers` times. */
static void build(graph *g, const net *n, int layers)
{
    value *x = g_input(g, INPUT_EMBD, D);
    for (int i = 0; i < layers; i++) {
        g->layer = i;
        value *h = g_norm(g, x, &n->w_norm, NULL, (norm_params){ NORM_RMS, 1e-5f, 0 });
        value *a = g_gate(g, GATE_SILU, g_matmul(g, &n->w_gate, h), g_matmul(g, &n->w_up, h));
        x = g_add(g, x, g_add(g, g_matmul(g, &n->w_down, a), g_weight(g, &n->w_bias)));
    }
    g_output(g, OUTPUT_EMBD, x);
}

static void naive(const net *n, float *x, int layers)
{
    for (int l = 0; l < layers; l++) {
        double sum = 0, h[D], a[F];
        for (int i = 0; i < D; i++) sum += (double)x[i] * x[i];
        for (int i = 0; i < D; i++) h[i] = x[i] / sqrt(sum / D + 1e-5) * n->norm[i];
        for (int j = 0; j < F; j++) {
            double g = 0, u = 0;
            for (int i = 0; i < D; i++) g += h[i] * n->gate[j * D + i], u += h[i] * n->up[j * D + i];
            a[j] = g / (1 + exp(-g)) * u;
        }
        for (int i = 0; i < D; i++) {
            double y = n->bias[i];
            for (int j = 0; j < F; j++) y += a[j] * n->down[i * F + j];
            x[i] = (float)(x[i] + y);
        }
    }
}

static void run_net(const net *n, const float *in, float *out, int tokens, int threads, int layers)
{
    graph g;
    plan *p;
    loam_error err;
    graph_init(&g, tokens, tokens);
    build(&g, n, layers);
    assert_int_equal(plan_new(&p, &g, device_cpu(), 8, &err), LOAM_OK);
    size_t scratch, shared;
    plan_scratch(p, threads, 1, &scratch, &shared);
    pool *threads_ = NULL;
    assert_int_equal(pool_new(&threads_, threads, &err), LOAM_OK);
    plan_run r = { .p = p, .k = kernels_get(), .threads = threads_, .n_threads = pool_threads(threads_) };
    r.arena = mem_alloc((size_t)p->arena_bytes + 64);
    r.scratch = mem_alloc(scratch * (size_t)threads + 64);
    r.scratch_stride = scratch;
    r.inputs[INPUT_EMBD] = in;
    r.outputs[OUTPUT_EMBD] = out;
    for (int i = 0; i < 3; i++) assert_int_equal(plan_execute(&r), LOAM_OK);
    assert_true(p->n_barriers <= (tokens == 1 ? 3 : 5) * layers);
    mem_free(r.arena);
    mem_free(r.scratch);
    pool_free(threads_);
    plan_free(p);
}

static void results_and_threads(void **state)
{
    (void)state;
    net *n = make_net();
    static const int sizes[] = { 1, 2, 7, 8, 33 };
    for (int s = 0; s < 5; s++) {
        int tokens = sizes[s];
        float *in = mem_alloc_array((size_t)tokens * D, 4), *one = mem_alloc_array((size_t)tokens * D, 4), *many = mem_alloc_array((size_t)tokens * D, 4);
        for (int i = 0; i < tokens * D; i++) in[i] = random_value();
        run_net(n, in, one, tokens, 1, 3);
        for (int threads = 2; threads < 6; threads++) {
            run_net(n, in, many, tokens, threads, 3);
            assert_memory_equal(one, many, (size_t)tokens * D * 4);
        }
        for (int t = 0; t < tokens; t++) {
            float x[D];
            memcpy(x, in + t * D, sizeof x);
            naive(n, x, 3);
            for (int i = 0; i < D; i++) assert_true(fabsf(x[i] - one[t * D + i]) <= 1e-4f * (1 + fabsf(x[i])));
        }
        mem_free(in);
        mem_free(one);
        mem_free(many);
    }
    mem_free(n);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    net *n = make_net();
    graph g;
    plan *p;
    loam_error err;
    graph_init(&g, 4, 4);
    g.layer = 5;
    value *x = g_input(&g, INPUT_EMBD, D);
    g_output(&g, OUTPUT_EMBD, g_add(&g, x, g_matmul(&g, &n->w_down, x)));
    assert_int_equal(plan_new(&p, &g, device_cpu(), 8, &err), LOAM_E_ARG);
    assert_null(p);
    assert_non_null(strstr(err.message, "down"));
    assert_non_null(strstr(err.message, "block 5"));
    mem_free(n);
}

/* Barriers of `layers` blocks of a decoder with grouped heads: 4 query heads on 2 key-value heads of 16 values. */
static int barriers_of_decoder(net *n, int tokens, int threads, int layers)
{
    static float data[D * D];
    weight w_q = { .name = "q", .type = LOAM_F32, .ne = { D, D, 1, 1 }, .data = data, .row_bytes = D * 4 }, w_k = w_q;
    w_k.ne[1] = D / 2;
    rope_params angles = { .n_rot = 16, .base = 1e4f, .freq_scale = 1, .magnitude = 1 };
    attention_params attn = { .n_head = 4, .n_kv_head = 2, .k_dim = 16, .v_dim = 16, .scale = 0.25f, .causal = true };
    loam_error err;
    graph g;
    plan *p;
    graph_init(&g, tokens, tokens);
    value *x = g_input(&g, INPUT_EMBD, D), *table = g_rope_table(&g, g_input(&g, INPUT_POS, 1), &angles, NULL);
    for (int i = 0; i < layers; i++) {
        g.layer = attn.layer = i;
        value *h = g_norm(&g, x, &n->w_norm, NULL, (norm_params){ NORM_RMS, 1e-5f, 0 });
        value *q = g_matmul(&g, &w_q, h), *k = g_matmul(&g, &w_k, h), *v = g_matmul(&g, &w_k, h);
        q = g_rope(&g, g_view(&g, q, 0, 16, 4), table, 0, true);
        k = g_rope(&g, g_view(&g, k, 0, 16, 2), table, 0, true);
        value *written = g_kv_write(&g, k, g_view(&g, v, 0, 16, 2), i);
        value *y = g_view(&g, g_attention(&g, q, written, NULL, &attn), 0, D, 1);
        x = g_add(&g, x, g_matmul(&g, &w_q, y));
        h = g_norm(&g, x, &n->w_norm, NULL, (norm_params){ NORM_RMS, 1e-5f, 0 });
        value *a = g_gate(&g, GATE_SILU, g_matmul(&g, &n->w_gate, h), g_matmul(&g, &n->w_up, h));
        x = g_add(&g, x, g_matmul(&g, &n->w_down, a));
    }
    g_output(&g, OUTPUT_EMBD, x);
    if (plan_new(&p, &g, device_cpu(), threads, &err) != LOAM_OK) fail_msg("%s", err.message);
    int barriers = p->n_barriers;
    plan_free(p);
    return barriers;
}

/* Generation meets four times a block where heads divide evenly, six times elsewhere. */
static void barriers_of_generation(void **state)
{
    (void)state;
    net *n = make_net();
    for (int threads = 1; threads <= 3; threads++)
        for (int tokens = 1; tokens <= 5; tokens++) {
            int barriers = barriers_of_decoder(n, tokens, threads, 10);
            print_message("%d tokens, %d threads: %d barriers in 10 blocks\n", tokens, threads, barriers);
            assert_true(barriers <= (tokens > 4 ? 80 : threads == 3 ? 60 : 40));
        }
    mem_free(n);
}

/* ---- aborts ---- */

static _Atomic int64_t largest_piece, n_pieces;
static int n_polls, stop_after;

static bool poll(void *user)
{
    (void)user;
    return ++n_polls > stop_after;
}

/* Stands for a product: only notes how much work one call is. */
static void noting_mul(const mul_args *a)
{
    int64_t products = a->k * a->rows * a->cols;
    if (products > largest_piece) largest_piece = products;
    n_pieces++;
}

/* One product of k values a row; all rows, `tokens` columns; polls until stop. */
static loam_status run_product(int64_t k, int64_t rows, int tokens, int stop)
{
    static float data[1];
    weight m = { .name = "wide", .type = LOAM_F32, .ne = { k, rows, 1, 1 }, .data = data, .row_bytes = (uint64_t)k * 4 };
    loam_error err;
    graph g;
    plan *p;
    graph_init(&g, tokens, tokens);
    g_output(&g, OUTPUT_EMBD, g_matmul(&g, &m, g_input(&g, INPUT_EMBD, k)));
    assert_int_equal(plan_new(&p, &g, device_cpu(), 2, &err), LOAM_OK);
    kernels table = *kernels_get();
    table.mul[LOAM_F32] = noting_mul;
    pool *threads = NULL;
    assert_int_equal(pool_new(&threads, 2, &err), LOAM_OK);
    plan_run r = { .p = p, .k = &table, .threads = threads, .n_threads = 2, .abort = poll };
    r.arena = mem_alloc((size_t)p->arena_bytes + 64);
    r.inputs[INPUT_EMBD] = data; /* nobody looks at it */
    r.outputs[OUTPUT_EMBD] = data;
    largest_piece = n_pieces = 0;
    n_polls = 0;
    stop_after = stop;
    loam_status status = plan_execute(&r);
    mem_free(r.arena);
    pool_free(threads);
    plan_free(p);
    return status;
}

/* Between two looks at the abort no thread does more than 2^27 multiply-adds (three milliseconds of the slowest type),
 * whatever the shape; the first thread asks the callback at least once for each of its pieces. */
static void products_poll(void **state)
{
    (void)state;
    static const struct { int64_t k, rows; int tokens; } shapes[] = { { 2048, 8192, 1 }, { 2048, 151936, 1 }, { 2048, 8192, 512 },
                                                                      { 14336, 4096, 512 }, { 28672, 8192, 2048 }, { 64, 64, 4096 } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        assert_int_equal(run_product(shapes[i].k, shapes[i].rows, shapes[i].tokens, INT32_MAX), LOAM_OK);
        int64_t all = shapes[i].k * shapes[i].rows * shapes[i].tokens, pieces = n_pieces;
        print_message("%lld x %lld, %d columns: %lld pieces of at most %lld products, %d polls\n", (long long)shapes[i].rows,
                      (long long)shapes[i].k, shapes[i].tokens, (long long)pieces, (long long)largest_piece, n_polls);
        assert_true(largest_piece <= (int64_t)128 << 20);
        assert_true(pieces * largest_piece >= all && n_polls >= (pieces - 1) / 2);
        if (pieces < 8) continue;
        assert_int_equal(run_product(shapes[i].k, shapes[i].rows, shapes[i].tokens, 2), LOAM_E_ABORTED);
        assert_true(n_pieces < pieces); /* it ended early */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(results_and_threads), cmocka_unit_test(mistakes_are_named),
                                        cmocka_unit_test(barriers_of_generation),
                                        cmocka_unit_test(products_poll) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
