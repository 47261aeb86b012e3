/* tensor_mistakes.c - what a caller of loam/tensor.h can do wrong is a status with a message that names the culprit; graphs stay
 * usable; every operation has a constructor or a reason; failing allocations; dumps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"

#include "loam/device.h"
#include "loam/tensor.h"

static loam_graph *new_graph(void)
{
    loam_graph *g;
    loam_error err;
    assert_int_equal(loam_graph_new(&g, &err), LOAM_OK);
    return g;
}

static loam_tensor *make(loam_graph *g, const char *name, int64_t a, int64_t b) { return loam_tensor_new(g, name, LOAM_F32, 2, (int64_t[]){ a, b }); }

/* The last constructor failed with ARG and a message that has `part`; the graph then goes on. */
static void expect_mistake(loam_graph *g, const loam_tensor *x, const char *part)
{
    loam_error err = { 0 };
    assert_null(x);
    assert_int_equal(loam_graph_check(g, &err), LOAM_E_ARG);
    if (!strstr(err.message, part)) fail_msg("'%s' is not in '%s'", part, err.message);
    loam_graph_forgive(g);
}

static void shapes_and_types(void **state)
{
    (void)state;
    loam_graph *g = new_graph(), *other = new_graph();
    loam_tensor *a = loam_tensor_axes(make(g, "a", 8, 5), "width, tokens"), *b = make(g, "b", 7, 5), *far = make(other, "far", 8, 5);
    loam_tensor *ids = loam_tensor_new(g, "ids", LOAM_I32, 1, (int64_t[]){ 3 }), *half = loam_tensor_new(g, "half", LOAM_F16, 2, (int64_t[]){ 8, 5 });
    expect_mistake(g, loam_op_add(g, a, b), "a [8 width, 5 tokens] f32");
    expect_mistake(g, loam_op_add(g, a, NULL), "input 1 is NULL");
    expect_mistake(g, loam_op_add(g, a, far), "another graph");
    expect_mistake(g, loam_op_add(g, half, a), "half [8, 5] f16 must be f32");
    expect_mistake(g, loam_op_matmul(g, b, a), "MATMUL");
    expect_mistake(g, loam_op_embed(g, a, b), "must be i32");
    expect_mistake(g, loam_op_concat(g, a, b, 1), "CONCAT");
    expect_mistake(g, loam_op_concat(g, a, a, 4), "CONCAT");
    expect_mistake(g, loam_op_gate(g, (loam_gate)77, a, NULL), "kind 77");
    expect_mistake(g, loam_op_gate(g, LOAM_GATE_SILU, a, b), "GATE");
    expect_mistake(g, loam_op_norm(g, a, NULL, NULL, NULL), "parameters are NULL");
    expect_mistake(g, loam_op_norm(g, a, b, NULL, &(loam_norm_params){ LOAM_NORM_RMS, 1e-5f, 3 }), "groups of 3");
    expect_mistake(g, loam_op_view(g, a, &(loam_window){ 2, { 8, 6 }, { 4, 32 }, 0 }), "beyond a");
    expect_mistake(g, loam_op_view(g, a, &(loam_window){ 2, { 8, 5 }, { 4, -32 }, 0 }), "stride -32");
    expect_mistake(g, loam_op_view(g, a, &(loam_window){ 2, { 8, 5 }, { 4, 32 }, INT64_MAX }), "offset");
    expect_mistake(g, loam_op_view(g, a, &(loam_window){ 5, { 1 }, { 4 }, 0 }), "5 axes");
    expect_mistake(g, loam_op_reshape(g, a, 2, (int64_t[]){ 3, -1 }), "RESHAPE");
    expect_mistake(g, loam_op_reshape(g, a, 3, (int64_t[]){ INT64_MAX, INT64_MAX, 4 }), "RESHAPE");
    expect_mistake(g, loam_op_permute(g, a, (int[]){ 0, 0, 1, 2 }), "order");
    expect_mistake(g, loam_op_slice(g, a, 1, 4, 2), "SLICE");
    expect_mistake(g, loam_op_slice(g, a, 1, INT64_MAX, 1), "SLICE");
    expect_mistake(g, loam_op_broadcast(g, a, 2, (int64_t[]){ 16, 5 }), "BROADCAST");
    expect_mistake(g, loam_op_cast(g, a, LOAM_Q4_K), "CAST");
    expect_mistake(g, loam_op_cast(g, a, LOAM_Q8_0), "blocks of q8_0");
    expect_mistake(g, loam_op_rope(g, a, a, 0, true), "ROPE");
    expect_mistake(g, loam_op_attention(g, (loam_tensor *[]){ a, b, b }, NULL, &(loam_attention_params){ 0 }), "ATTENTION");
    expect_mistake(g, loam_op_experts(g, a, a, ids), "EXPERTS");
    expect_mistake(g, loam_op_conv2d(g, a, b, NULL, &(loam_image){ .width = 3, .height = 3 }), "CONV2D");
    expect_mistake(g, loam_op_conv(g, a, loam_op_scale(g, b, 2), NULL), "data of its own");
    expect_mistake(g, loam_tensor_new(g, "x", (loam_type)99, 1, (int64_t[]){ 1 }), "type 99");
    expect_mistake(g, loam_tensor_new(g, "x", LOAM_F32, 5, (int64_t[]){ 1, 1, 1, 1, 1 }), "5 axes");
    expect_mistake(g, loam_tensor_new(g, "x", LOAM_F32, 2, (int64_t[]){ 1ll << 40, 1ll << 40 }), "extent 1");
    expect_mistake(g, loam_tensor_new(g, "x", LOAM_F32, 1, (int64_t[]){ 0 }), "extent 0");
    expect_mistake(g, loam_tensor_new(g, "x", LOAM_Q4_K, 1, (int64_t[]){ 100 }), "blocks of 256");
    expect_mistake(g, loam_op_custom(g, &(loam_custom){ .n_tasks = 1 }, &a, 1), "no function");
    expect_mistake(g, loam_op_sum(g, NULL), "NULL");
    loam_error err;
    loam_eval_params p = loam_eval_defaults();
    assert_null(loam_op_add(NULL, a, b));
    assert_int_equal(loam_graph_eval(NULL, NULL, &err), LOAM_E_ARG);
    assert_int_equal(loam_graph_eval(g, NULL, &err), LOAM_E_ARG); /* no output */
    loam_tensor *y = loam_graph_output(g, loam_op_embed(g, a, ids));
    assert_non_null(y);
    assert_int_equal(loam_graph_eval(g, NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "has no data"));
    float rows[40] = { 0 };
    int32_t bad[3] = { 0, 5, 1 };
    assert_int_equal(loam_tensor_bind(a, rows, 3, &err), LOAM_E_ARG);
    assert_int_equal(loam_tensor_bind(y, rows, sizeof rows, &err), LOAM_E_ARG);
    assert_int_equal(loam_tensor_bind(a, rows, sizeof rows, &err), LOAM_OK);
    assert_int_equal(loam_tensor_bind(ids, bad, sizeof bad, &err), LOAM_OK);
    assert_int_equal(loam_graph_eval(g, NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "index"));
    float out[24];
    assert_int_equal(loam_tensor_get(y, out, sizeof out, &err), LOAM_E_ARG);
    bad[1] = 4;
    p.n_threads = 1000;
    assert_int_equal(loam_graph_eval(g, &p, &err), LOAM_E_ARG);
    assert_int_equal(loam_graph_eval(g, NULL, &err), LOAM_OK);
    assert_int_equal(loam_tensor_get(y, out, sizeof out, &err), LOAM_OK);
    assert_int_equal(loam_tensor_get(y, out, 4, &err), LOAM_E_ARG);
    loam_graph_free(g);
    loam_graph_free(other);
}

static void constructors(void **state)
{
    (void)state;
    assert_null(loam_op_name(-1));
    assert_null(loam_op_constructor(loam_n_ops()));
    for (int i = 0; i < loam_n_ops(); i++) {
        const char *how = loam_op_constructor(i);
        if (!how || (how[0] != '(' && strncmp(how, "loam_", 5) != 0)) fail_msg("%s has no public constructor and no reason", loam_op_name(i));
    }
}

static bool stop_at_once(void *user)
{
    (void)user;
    return true;
}

typedef struct seen {
    int asked, shown;
    bool stop;
} seen;

static bool look(void *user, const loam_tensor *x, const loam_data *d, uint64_t ns, bool ask)
{
    seen *s = user;
    (void)ns;
    assert_true(ask == (d->data == NULL));
    assert_non_null(loam_tensor_name(x));
    if (ask) return s->asked++, true;
    s->shown++;
    return !s->stop;
}

static void callbacks(void **state)
{
    (void)state;
    loam_error err;
    float v[40];
    for (int i = 0; i < 40; i++) v[i] = (float)i;
    loam_graph *g = new_graph();
    loam_tensor *a = make(g, "a", 8, 5);
    loam_graph_output(g, loam_op_scale(g, loam_op_softmax(g, loam_op_scale(g, a, 2)), 3));
    assert_int_equal(loam_tensor_bind(a, v, sizeof v, &err), LOAM_OK);
    loam_eval_params p = loam_eval_defaults();
    p.abort = stop_at_once;
    assert_int_equal(loam_graph_eval(g, &p, &err), LOAM_E_ABORTED);
    seen s = { 0 };
    p = loam_eval_defaults();
    p.observe = look, p.observe_user = &s;
    assert_int_equal(loam_graph_eval(g, &p, &err), LOAM_OK);
    assert_int_equal(s.asked, 3);
    assert_int_equal(s.shown, 3);
    s.stop = true;
    assert_int_equal(loam_graph_eval(g, &p, &err), LOAM_E_ABORTED);
    loam_graph_use use;
    assert_int_equal(loam_graph_measure(g, 2, &use, &err), LOAM_OK);
    assert_int_equal(use.n_steps, 3);
    loam_graph_free(g);
}

typedef struct text {
    char *at;
    size_t n;
} text;

static bool append(void *user, const char *p, size_t n)
{
    text *t = user;
    t->at = realloc(t->at, t->n + n + 1);
    memcpy(t->at + t->n, p, n);
    t->n += n;
    t->at[t->n] = 0;
    return true;
}

static bool refuse(void *user, const char *p, size_t n)
{
    (void)user, (void)p, (void)n;
    return false;
}

static void dumps(void **state)
{
    (void)state;
    loam_error err;
    loam_graph *g = new_graph();
    loam_tensor *a = make(g, "a<b>&\"c\"", 8, 5);
    loam_graph_output(g, loam_op_add(g, a, loam_op_softmax(g, a)));
    static const char *const part[] = { "%2 = SOFTMAX(%1) [8 x 5 f32] SOFTMAX", "v1 -> v2;", "</svg>" };
    for (int form = 0; form < 3; form++) {
        text t = { 0 };
        assert_int_equal(loam_graph_dump(g, (loam_dump)form, append, &t, &err), LOAM_OK);
        if (!strstr(t.at, part[form])) fail_msg("no '%s' in\n%s", part[form], t.at);
        if (form > 0) assert_null(strstr(t.at, "a<b>"));
        free(t.at);
        assert_int_equal(loam_graph_dump(g, (loam_dump)form, refuse, NULL, &err), LOAM_E_ABORTED);
    }
    assert_int_equal(loam_graph_dump(g, (loam_dump)9, append, NULL, &err), LOAM_E_ARG);
    loam_graph_free(g);
}

/* A small network, evaluated and scheduled: gives back all it took, also when an allocation fails. */
static loam_status whole_life(void *arg, loam_error *err)
{
    float *v = arg, out[40];
    loam_graph *g = NULL;
    loam_devices *set = NULL;
    loam_sched *s = NULL;
    loam_sched_params sp = loam_sched_defaults();
    loam_eval_params ep = loam_eval_defaults();
    sp.n_threads = ep.n_threads = 1;
    loam_status status = loam_graph_new(&g, err);
    if (status != LOAM_OK) return status;
    loam_tensor *a = make(g, "a", 8, 5), *y = loam_op_add(g, loam_op_softmax(g, a), loam_op_contiguous(g, loam_op_broadcast(g, loam_op_sum(g, a), 2, (int64_t[]){ 8, 5 })));
    loam_graph_output(g, y);
    status = loam_graph_check(g, err);
    if (status == LOAM_OK) status = loam_tensor_bind(a, v, 160, err);
    if (status == LOAM_OK) status = loam_graph_eval(g, &ep, err);
    if (status == LOAM_OK) status = loam_tensor_get(y, out, sizeof out, err);
    if (status == LOAM_OK) status = loam_devices_open(&set, "cpu:2", err);
    if (status == LOAM_OK) status = loam_sched_new(&s, set, &sp, err);
    if (status == LOAM_OK) status = loam_sched_pin(s, y, 1, err);
    if (status == LOAM_OK) status = loam_sched_alloc(s, g, err);
    if (status == LOAM_OK) status = loam_sched_compute(s, err);
    loam_sched_free(s);
    loam_devices_free(set);
    loam_graph_free(g);
    return status;
}

static void failing_allocations(void **state)
{
    (void)state;
    float v[40] = { 1, 2, 3 };
    assert_true(fault_loop("a graph and its schedule", whole_life, v) > 20);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_types), cmocka_unit_test(constructors), cmocka_unit_test(callbacks), cmocka_unit_test(dumps),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
