/* sched.c - devices, buffers, queues and the scheduler, through the public headers: the same bits on any number of CPU devices,
 * limits, copies counted, fetched weights, overlap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "loam/device.h"

enum { D = 64, T = 48, LAYERS = 6 };

static float weights[LAYERS][2][D * D], input[D * T], factors[D];

static void fill(void)
{
    uint32_t s = 5;
    float *all = &weights[0][0][0];
    for (size_t i = 0; i < sizeof weights / 4; i++) s = s * 1664525u + 1013904223u, all[i] = ((float)(s >> 8) / (1 << 24) - 0.5f) * 0.3f;
    for (size_t i = 0; i < D * T; i++) s = s * 1664525u + 1013904223u, input[i] = (float)(s >> 8) / (1 << 24) - 0.5f;
    for (int i = 0; i < D; i++) factors[i] = 1.0f + 0.01f * (float)i;
}

typedef struct net {
    loam_graph *g;
    loam_tensor *x, *w[LAYERS][2], *layer[LAYERS], *y;
} net;

static loam_tensor *data(loam_graph *g, const char *name, int64_t a, int64_t b, const float *p)
{
    loam_error err;
    loam_tensor *t = loam_tensor_new(g, name, LOAM_F32, 2, (int64_t[]){ a, b });
    assert_int_equal(loam_tensor_bind(t, p, loam_tensor_bytes(t), &err), LOAM_OK);
    return t;
}

/* x = x + down(silu(up(norm x))), LAYERS times. */
static net make_net(void)
{
    loam_error err;
    net n = { 0 };
    assert_int_equal(loam_graph_new(&n.g, &err), LOAM_OK);
    loam_tensor *x = n.x = data(n.g, "x", D, T, input), *f = data(n.g, "norm", D, 1, factors);
    for (int i = 0; i < LAYERS; i++) {
        n.w[i][0] = data(n.g, "up", D, D, weights[i][0]);
        n.w[i][1] = data(n.g, "down", D, D, weights[i][1]);
        loam_tensor *h = loam_op_norm(n.g, x, f, NULL, &(loam_norm_params){ LOAM_NORM_RMS, 1e-5f, 0 });
        h = loam_op_gate(n.g, LOAM_GATE_SILU, loam_op_matmul(n.g, n.w[i][0], h), NULL);
        x = n.layer[i] = loam_op_add(n.g, x, loam_op_matmul(n.g, n.w[i][1], h));
    }
    n.y = loam_graph_output(n.g, x);
    assert_int_equal(loam_graph_check(n.g, &err), LOAM_OK);
    return n;
}

static void expect(float *want)
{
    loam_error err;
    net n = make_net();
    assert_int_equal(loam_graph_eval(n.g, NULL, &err), LOAM_OK);
    assert_int_equal(loam_tensor_get(n.y, want, sizeof(float) * D * T, &err), LOAM_OK);
    loam_graph_free(n.g);
}

static loam_sched *scheduler(loam_devices **set, const char *spec, bool parallel)
{
    loam_error err;
    loam_sched *s;
    loam_sched_params p = loam_sched_defaults();
    p.parallel = parallel;
    p.n_threads = 2;
    if (loam_devices_open(set, spec, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_sched_new(&s, *set, &p, &err), LOAM_OK);
    return s;
}

static void the_set(void **state)
{
    (void)state;
    loam_error err;
    loam_devices *set;
    loam_device_info info;
    assert_int_equal(loam_devices_open(&set, "cpu:3:8M", &err), LOAM_OK);
    assert_int_equal(loam_devices_count(set), 3);
    loam_device_get_info(loam_devices_at(set, 2), &info);
    assert_string_equal(info.name, "CPU2");
    assert_int_equal(info.memory_total, 8 << 20);
    assert_int_equal(info.kind, LOAM_DEVICE_CPU);
    assert_true(info.host_buffers && info.events && info.async && info.mapped_files);
    assert_null(loam_devices_at(set, 3));
    loam_devices_free(set);
    static const char *const bad[] = { "gpu", "cpu:0", "cpu:9", "cpu:2:", "cpu:2:0", "cpu:2:99999999999G", "cpu:2x", "", "cpu,", "cpu:-1", "blas,blas" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(loam_devices_open(&set, bad[i], &err), LOAM_E_ARG);
        assert_null(set);
        assert_non_null(strstr(err.message, "devices:"));
    }
}

static void layers_over_devices(void **state)
{
    (void)state;
    loam_error err;
    float want[D * T], got[D * T];
    expect(want);
    for (int n = 1; n <= 3; n++) {
        char spec[16];
        snprintf(spec, sizeof spec, "cpu:%d", n);
        loam_devices *set;
        loam_sched *s = scheduler(&set, spec, false);
        net a = make_net();
        for (int i = 0; i < LAYERS; i++) assert_int_equal(loam_sched_pin(s, a.layer[i], i * n / LAYERS, &err), LOAM_OK);
        /* Pinning an end of a layer leaves its beginning where its input is; so the rest of the layer is pinned by its weights. */
        loam_buffer *b[3] = { 0 };
        for (int d = 0; d < n; d++) {
            assert_int_equal(loam_buffer_new(&b[d], loam_device_buffer_type(loam_devices_at(set, d)), sizeof weights, &err), LOAM_OK);
            loam_buffer_set_usage(b[d], LOAM_USAGE_WEIGHTS);
        }
        for (int i = 0; i < LAYERS; i++)
            for (int k = 0; k < 2; k++) {
                loam_place to = { b[i * n / LAYERS], (uint64_t)(2 * i + k) * sizeof weights[0][0] };
                assert_int_equal(loam_buffer_set(to, weights[i][k], sizeof weights[i][k], &err), LOAM_OK);
                assert_int_equal(loam_tensor_bind_buffer(a.w[i][k], to.buffer, to.offset, &err), LOAM_OK);
            }
        /* 48 columns would fetch the weights: that is for another test. */
        loam_sched_params p = loam_sched_defaults();
        p.op_offload = false;
        loam_sched_free(s);
        assert_int_equal(loam_sched_new(&s, set, &p, &err), LOAM_OK);
        if (loam_sched_alloc(s, a.g, &err) != LOAM_OK) fail_msg("%s", err.message);
        assert_int_equal(loam_sched_device_of(s, a.layer[LAYERS - 1]), n - 1);
        /* From device to device go the residual stream and its norm. */
        assert_int_equal(loam_sched_n_splits(s), n);
        assert_int_equal(loam_sched_n_copies(s), 2 * (n - 1));
        int copies = 0, ops = 0;
        loam_split split;
        for (int i = 0; loam_sched_split(s, i, &split); i++) copies += split.n_copies, ops += split.n_ops;
        assert_int_equal(copies, loam_sched_n_copies(s));
        assert_int_equal(ops, 5 * LAYERS);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(loam_sched_compute(s, &err), LOAM_OK);
            memset(got, 0, sizeof got);
            assert_int_equal(loam_sched_get(s, a.y, got, sizeof got, &err), LOAM_OK);
            assert_memory_equal(want, got, sizeof got);
        }
        loam_sched_free(s);
        loam_graph_free(a.g);
        for (int d = 0; d < n; d++) loam_buffer_free(b[d]);
        loam_devices_free(set);
    }
}

static void far_weights(void **state)
{
    (void)state;
    loam_error err;
    float want[D * T], got[D * T];
    expect(want);
    loam_devices *set;
    loam_sched *s = scheduler(&set, "cpu:2", false);
    net a = make_net();
    loam_buffer *b;
    assert_int_equal(loam_buffer_new(&b, loam_device_buffer_type(loam_devices_at(set, 1)), sizeof weights, &err), LOAM_OK);
    loam_buffer_set_usage(b, LOAM_USAGE_WEIGHTS);
    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 2; k++) {
            uint64_t at = (uint64_t)(2 * i + k) * sizeof weights[0][0];
            assert_int_equal(loam_buffer_set((loam_place){ b, at }, weights[i][k], sizeof weights[i][k], &err), LOAM_OK);
            assert_int_equal(loam_tensor_bind_buffer(a.w[i][k], b, at, &err), LOAM_OK);
        }
    assert_true(loam_device_worth_offloading(loam_devices_at(set, 0), a.y) == false);
    assert_int_equal(loam_sched_alloc(s, a.g, &err), LOAM_OK);
    assert_int_equal(loam_sched_n_splits(s), 1); /* everything on device 0, with twelve matrices fetched */
    assert_int_equal(loam_sched_n_copies(s), 2 * LAYERS);
    assert_int_equal(loam_sched_compute(s, &err), LOAM_OK);
    assert_int_equal(loam_sched_get(s, a.y, got, sizeof got, &err), LOAM_OK);
    assert_memory_equal(want, got, sizeof got);
    loam_sched_free(s);
    loam_graph_free(a.g);
    loam_buffer_free(b);
    loam_devices_free(set);
}

static void limits(void **state)
{
    (void)state;
    loam_error err;
    loam_devices *set;
    loam_buffer *b;
    loam_sched *s = scheduler(&set, "cpu:2:64K", false);
    assert_int_equal(loam_buffer_new(&b, loam_device_buffer_type(loam_devices_at(set, 1)), 100 << 10, &err), LOAM_E_NOMEM);
    assert_non_null(strstr(err.message, "CPU1"));
    assert_int_equal(loam_buffer_new(&b, loam_device_buffer_type(loam_devices_at(set, 0)), 60 << 10, &err), LOAM_OK);
    net a = make_net();
    assert_int_equal(loam_sched_alloc(s, a.g, &err), LOAM_E_NOMEM);
    assert_non_null(strstr(err.message, "CPU0"));
    assert_int_equal(loam_sched_compute(s, &err), LOAM_E_ARG);
    loam_buffer_free(b);
    loam_device_info info;
    loam_device_get_info(loam_devices_at(set, 0), &info);
    assert_int_equal(info.memory_free, 64 << 10); /* what failed has given everything back */
    loam_sched_free(s);
    loam_graph_free(a.g);
    loam_devices_free(set);
}

/* Half of the layers each; the second device works on one computation while the first is at the next. */
static void pipeline(void **state)
{
    (void)state;
    loam_error err;
    enum { RUNS = 24 };
    static float out[RUNS][D * T];
    float want[D * T];
    loam_devices *set;
    loam_sched *s = scheduler(&set, "cpu:2", true);
    net a = make_net();
    for (int i = 0; i < LAYERS; i++) assert_int_equal(loam_sched_pin(s, a.layer[i], i >= LAYERS / 2, &err), LOAM_OK);
    assert_int_equal(loam_sched_alloc(s, a.g, &err), LOAM_OK);
    assert_int_equal(loam_sched_n_pipeline_copies(s), LOAM_SCHED_COPIES);
    static float x[D * T];
    loam_tensor_bind(a.x, x, sizeof x, &err);
    for (int i = 0; i < RUNS; i++) {
        for (int k = 0; k < D * T; k++) x[k] = input[k] * (float)(1 + i % 3); /* changed while earlier ones are on their way */
        assert_int_equal(loam_sched_compute_async(s, a.y, out[i], sizeof out[i], &err), LOAM_OK);
    }
    assert_int_equal(loam_sched_synchronize(s, &err), LOAM_OK);
    expect(want);
    for (int i = 0; i < RUNS; i++) assert_memory_equal(out[i], out[i % 3], sizeof out[i]);
    assert_memory_equal(out[0], want, sizeof want);
    static loam_sched_trace t[256];
    size_t n = loam_sched_take_trace(s, t, 256);
    int overlaps = 0;
    assert_int_equal(n, RUNS * loam_sched_n_splits(s));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            overlaps += t[i].device == 0 && t[k].device == 1 && t[i].begin_ns < t[k].end_ns && t[k].begin_ns < t[i].end_ns && t[i].run != t[k].run;
    print_message("%d splits of different computations overlapped on the two devices\n", overlaps);
    assert_true(overlaps > 0);
    loam_sched_free(s);
    loam_graph_free(a.g);
    loam_devices_free(set);
}

static void queues_and_places(void **state)
{
    (void)state;
    loam_error err;
    loam_devices *set;
    assert_int_equal(loam_devices_open(&set, "cpu:2", &err), LOAM_OK);
    loam_buffer *a, *b;
    loam_queue *p, *q;
    loam_event *e;
    assert_int_equal(loam_buffer_new(&a, loam_device_buffer_type(loam_devices_at(set, 0)), 4096, &err), LOAM_OK);
    assert_int_equal(loam_buffer_new(&b, loam_device_host_buffer_type(loam_devices_at(set, 1)), 4096, &err), LOAM_OK);
    assert_int_equal(loam_queue_new(&p, loam_devices_at(set, 0), &err), LOAM_OK);
    assert_int_equal(loam_queue_new(&q, loam_devices_at(set, 1), &err), LOAM_OK);
    assert_int_equal(loam_event_new(&e, loam_devices_at(set, 0), &err), LOAM_OK);
    char text[] = "from one to the other", got[sizeof text] = "";
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(loam_queue_set(p, (loam_place){ a, 64 }, text, sizeof text, &err), LOAM_OK);
        loam_event_record(e, p);
        loam_queue_wait(q, e);
        assert_int_equal(loam_queue_copy(q, (loam_place){ b, 0 }, (loam_place){ a, 64 }, sizeof text, &err), LOAM_OK);
        assert_int_equal(loam_queue_get(q, (loam_place){ b, 0 }, got, sizeof got, &err), LOAM_OK);
        loam_queue_synchronize(q);
        assert_string_equal(got, text);
        text[i % 4] = (char)('a' + i % 26);
    }
    loam_event_synchronize(e);
    assert_int_equal(loam_queue_set(p, (loam_place){ a, 4090 }, text, sizeof text, &err), LOAM_E_ARG);
    assert_int_equal(loam_queue_set(p, (loam_place){ NULL, 0 }, text, sizeof text, &err), LOAM_E_ARG);
    assert_int_equal(loam_buffer_get((loam_place){ a, UINT64_MAX }, got, 2, &err), LOAM_E_ARG);
    const loam_buffer_type *type = loam_buffer_get_type(a);
    assert_int_equal(loam_buffer_type_alignment(type), 64);
    assert_true(loam_buffer_type_max_size(type) > 1u << 30);
    assert_true(loam_buffer_type_is_host(type));
    assert_ptr_equal(loam_buffer_type_device(type), loam_devices_at(set, 0));
    loam_graph *g;
    assert_int_equal(loam_graph_new(&g, &err), LOAM_OK);
    loam_tensor *t = loam_tensor_new(g, "t", LOAM_F32, 1, (int64_t[]){ 33 });
    assert_int_equal(loam_buffer_type_tensor_bytes(type, t), 192);
    assert_int_equal(loam_buffer_init_tensor(a, t, 4, &err), LOAM_E_ARG);
    assert_int_equal(loam_tensor_bind_buffer(t, a, 4032, &err), LOAM_E_ARG);
    assert_int_equal(loam_tensor_bind_buffer(t, a, 128, &err), LOAM_OK);
    loam_graph_free(g);
    loam_buffer_clear(a, 7);
    assert_int_equal(((uint8_t *)loam_buffer_base(a))[4095], 7);
    loam_event_free(e);
    loam_queue_free(p);
    loam_queue_free(q);
    loam_buffer_free(a);
    loam_buffer_free(b);
    loam_devices_free(set);

    loam_places *r;
    uint64_t x, y, z;
    assert_int_equal(loam_places_new(&r, 48, &err), LOAM_E_ARG);
    assert_int_equal(loam_places_new(&r, 64, &err), LOAM_OK);
    assert_int_equal(loam_places_take(r, 100, &x, &err), LOAM_OK);
    assert_int_equal(loam_places_take(r, 64, &y, &err), LOAM_OK);
    assert_int_equal(loam_places_give(r, x, 100, &err), LOAM_OK);
    assert_int_equal(loam_places_give(r, x, 100, &err), LOAM_E_ARG);
    assert_int_equal(loam_places_give(r, 4096, 100, &err), LOAM_E_ARG);
    assert_int_equal(loam_places_take(r, 128, &z, &err), LOAM_OK);
    assert_int_equal(z, x);
    assert_int_equal(loam_places_size(r), 192);
    assert_int_equal(loam_places_take(r, UINT64_MAX, &z, &err), LOAM_E_ARG);
    loam_places_free(r);
}

static void blas(void **state)
{
    (void)state;
    loam_error err;
    loam_devices *set;
    if (loam_devices_open(&set, "cpu,blas", &err) == LOAM_E_UNSUPPORTED) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    loam_device_info info;
    loam_device_get_info(loam_devices_at(set, 1), &info);
    assert_int_equal(info.kind, LOAM_DEVICE_ACCELERATOR);
    float want[D * T], got[D * T];
    expect(want);
    loam_sched *s;
    net a = make_net();
    assert_int_equal(loam_sched_new(&s, set, NULL, &err), LOAM_OK);
    assert_int_equal(loam_sched_alloc(s, a.g, &err), LOAM_OK);
    assert_int_equal(loam_sched_n_splits(s), 4 * LAYERS + 1);
    assert_int_equal(loam_sched_n_copies(s), 0); /* it shares the memory of the CPU */
    assert_int_equal(loam_sched_compute(s, &err), LOAM_OK);
    assert_int_equal(loam_sched_get(s, a.y, got, sizeof got, &err), LOAM_OK);
    double wrong = 0, all = 0;
    for (int i = 0; i < D * T; i++) wrong += ((double)got[i] - want[i]) * ((double)got[i] - want[i]), all += (double)want[i] * want[i];
    print_message("blas: normalised mean squared error %g\n", wrong / all);
    assert_true(wrong / all <= 1e-10);
    loam_sched_free(s);
    loam_graph_free(a.g);
    loam_devices_free(set);
}

int main(void)
{
    fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_set), cmocka_unit_test(layers_over_devices), cmocka_unit_test(far_weights), cmocka_unit_test(limits),
        cmocka_unit_test(pipeline), cmocka_unit_test(queues_and_places), cmocka_unit_test(blas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
