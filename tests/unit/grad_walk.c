/* grad_walk.c - walks op.def: every row with a gradient is held against central differences, alone and in its forms; a row
 * without one must say why. A new row that no case here has fails the test.
 *
 * A case builds a graph on a few tensors that learn. The loss is the sum of the results times fixed numbers, taken in
 * binary64; each tensor is moved up and down at some places. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "device/cpu.h"
#include "train/tape.h"

#define TOKENS 70            /* more than a tile of attention */
#define TENSORS 8
#define PLACES 10

typedef struct net {
    graph g;
    weight w[TENSORS];
    float *data[TENSORS], *grad[TENSORS];
    char names[TENSORS][16];
    int n, tokens;
    float *r;                /* what results are multiplied with */
    double loss;
    value *root;
} net;

static dice d;

static const weight *tensor(net *t, int64_t a, int64_t b, int64_t c, int64_t e)
{
    int64_t n = a * b * c * e;
    weight *w = &t->w[t->n];
    snprintf(t->names[t->n], sizeof t->names[0], "tensor %d", t->n);
    t->data[t->n] = malloc((size_t)n * 4);
    t->grad[t->n] = calloc((size_t)n, 4);
    for (int64_t i = 0; i < n; i++) t->data[t->n][i] = dice_normal(&d) * 0.7f;
    *w = (weight){ .name = t->names[t->n], .type = LOAM_F32, .ne = { a, b, c, e }, .data = t->data[t->n], .row_bytes = (uint64_t)a * 4 };
    t->n++;
    return w;
}

/* An activation [width, mid, tokens] that learns. */
static value *input(net *t, int64_t width, int64_t mid) { return g_scale(&t->g, g_weight(&t->g, tensor(t, width, mid, t->tokens, 1)), 1.25f); }

/* ---- cases: what stands in `form` counts up until a case gives NULL ---- */

typedef value *(*case_fn)(net *t, int form);

static value *case_embed(net *t, int form) { return form ? NULL : g_embed(&t->g, tensor(t, 6, 9, 1, 1), g_input(&t->g, INPUT_TOKENS, 1)); }

static value *case_select(net *t, int form) { return form ? NULL : g_select(&t->g, input(t, 5, 1), g_input(&t->g, INPUT_OUT_ROWS, 1)); }

static value *two(net *t, int form, value *(*f)(graph *, value *, value *))
{
    value *a = input(t, 6, 3);
    switch (form) {
    case 0: return f(&t->g, a, input(t, 6, 3));
    case 1: return f(&t->g, a, g_weight(&t->g, tensor(t, 18, 1, 1, 1)));
    case 2: return f(&t->g, a, g_weight(&t->g, tensor(t, 1, 1, 1, 1)));
    case 3: return f(&t->g, a, input(t, 1, 1));
    case 4: return f(&t->g, a, a);
    case 5: return f(&t->g, g_view(&t->g, input(t, 8, 3), 1, 6, 3), g_view(&t->g, input(t, 30, 1), 2, 6, 3));
    case 6: return f(&t->g, g_view(&t->g, input(t, 8, 3), 1, 6, 3), g_weight(&t->g, tensor(t, 18, 1, 1, 1)));
    default: return NULL;
    }
}

static value *case_add(net *t, int form) { return two(t, form, g_add); }
static value *case_mul(net *t, int form) { return two(t, form, g_mul); }
static value *case_scale(net *t, int form) { return form ? NULL : g_scale(&t->g, g_view(&t->g, input(t, 9, 2), 2, 5, 2), -0.7f); }
static value *case_clamp(net *t, int form) { return form ? NULL : g_clamp(&t->g, input(t, 6, 1), -0.5f, 0.8f); }
static value *case_softcap(net *t, int form) { return form ? NULL : g_softcap(&t->g, input(t, 6, 1), 0.9f); }

static value *case_gate(net *t, int form)
{
    static const gate_kind kinds[] = { GATE_SILU, GATE_GELU, GATE_GELU_ERF, GATE_GELU_QUICK, GATE_RELU, GATE_RELU2, GATE_SIGMOID, GATE_SOFTPLUS,
                                       GATE_EXP, GATE_TANH };
    if (form < 20) return g_gate(&t->g, kinds[form / 2], input(t, 6, 2), form % 2 ? input(t, 6, 2) : NULL);
    if (form == 20) return g_gate(&t->g, GATE_OAI, input(t, 6, 1), input(t, 6, 1));
    if (form == 21) return g_gate_xielu(&t->g, input(t, 6, 1), (float[4]){ 0.8f, 0.6f, 0.5f, -1e-6f });
    if (form == 22) return g_gate(&t->g, GATE_SILU, g_view(&t->g, input(t, 12, 1), 0, 6, 1), g_view(&t->g, input(t, 12, 1), 6, 6, 1));
    return NULL;
}

static value *case_norm(net *t, int form)
{
    if (form >= 12) return NULL;
    bool w = form % 2, b = form / 2 % 2;
    int group = form >= 8 ? 6 : 0;
    return g_norm(&t->g, input(t, 6, 3), w ? tensor(t, form >= 10 ? 6 : 18, 1, 1, 1) : NULL, b ? tensor(t, form >= 10 ? 6 : 18, 1, 1, 1) : NULL,
                  (norm_params){ form / 4 % 2 ? NORM_LAYER : NORM_RMS, 1e-4f, group });
}

static value *case_concat(net *t, int form) { return form > 1 ? NULL : g_concat(&t->g, input(t, 5, 3), input(t, 4, form ? 1 : 3)); }

static value *case_temperature(net *t, int form)
{
    return form ? NULL : g_temperature(&t->g, input(t, 5, 2), g_input(&t->g, INPUT_POS, 1), 0.3f, 4, 1);
}

static value *case_rope(net *t, int form)
{
    if (form > 3) return NULL;
    rope_params p = { .kind = form & 1 ? ROPE_NEOX : ROPE_NORM, .n_rot = 6, .base = 100, .freq_scale = 1, .magnitude = 1.1f };
    value *x = form & 2 ? g_view(&t->g, input(t, 30, 1), 3, 8, 3) : input(t, 8, 3);
    return g_rope(&t->g, x, g_rope_table(&t->g, g_input(&t->g, INPUT_POS, 1), &p, NULL), 1, form & 1);
}

static value *case_matmul(net *t, int form)
{
    if (form > 1) return NULL;
    return g_matmul(&t->g, tensor(t, 6, 5, 1, 1), form ? g_view(&t->g, input(t, 9, 1), 2, 6, 1) : input(t, 3, 2));
}

static value *case_matmul_heads(net *t, int form) { return form ? NULL : g_matmul_heads(&t->g, tensor(t, 4, 5, 3, 1), input(t, 4, 3)); }

static value *case_attention(net *t, int form)
{
    attention_params p = { .n_head = 4, .n_kv_head = 2, .k_dim = 6, .v_dim = 5, .scale = 0.5f, .causal = form != 1, .window_size = 7 };
    if (form == 2) p.window = WINDOW_STANDARD;
    if (form == 3) p.window = WINDOW_CHUNKED;
    if (form == 4) p.window = WINDOW_SYMMETRIC, p.causal = false;
    if (form == 5) p.softcap = 1.5f;
    if (form == 6) p.alibi_max_bias = 2;
    if (form > 8) return NULL;
    value *q = input(t, 6, 4), *k = input(t, 6, 2), *v = input(t, 5, 2);
    if (form == 8) { /* one fused product, as models have it */
        value *x = input(t, 6 * 6 + 5 * 2, 1);
        q = g_view(&t->g, x, 0, 6, 4), k = g_view(&t->g, x, 24, 6, 2), v = g_view(&t->g, x, 36, 5, 2);
    }
    return g_attention(&t->g, q, g_kv_write(&t->g, k, v, 0), form == 7 ? tensor(t, 4, 1, 1, 1) : NULL, &p);
}

/* A bias far larger than the logits chooses, so that no step chooses another expert; which tokens go where with the logits
 * choosing is checked on whole models (train.c). */
static value *case_experts(net *t, int form)
{
    if (form > 9) return NULL;
    graph *g = &t->g;
    route_params p = { .n_expert = 4, .n_used = 2, .n_group = 1, .n_group_used = 1, .router = (router_kind)(form % 4), .scale = 1.5f,
                       .normalise = form / 4 == 1, .divide = 1, .select = SELECT_LOGITS };
    value *spread = g_matmul(g, tensor(t, 4, 4, 1, 1), input(t, 4, 1)), *x = input(t, 6, 1);
    static const float choice[4] = { 0, 40, 20, 60 };
    static const weight bias = { .name = "choice", .type = LOAM_F32, .ne = { 4, 1, 1, 1 }, .data = choice, .row_bytes = 16 };
    value *routing = g_route(g, spread, &bias, &p);
    value *y = g_experts(g, tensor(t, 6, 5, 4, 1), form == 8 ? g_expert_weigh(g, x, routing) : x, routing);
    y = g_expert_add(g, y, tensor(t, 5, 4, 1, 1), routing);
    if (form != 8) y = g_expert_scale(g, y, tensor(t, 4, 1, 1, 1), routing);
    return form == 9 ? g_expert_sum(g, g_experts(g, tensor(t, 5, 3, 4, 1), y, routing), routing) : g_expert_sum(g, y, form == 8 ? NULL : routing);
}

static value *case_dropout(net *t, int form) { return form ? NULL : g_dropout(&t->g, input(t, 7, 2), 0.3f); }
static value *case_softmax(net *t, int form) { return form ? NULL : g_softmax(&t->g, input(t, 7, 2)); }
static value *case_log_softmax(net *t, int form) { return form ? NULL : g_log_softmax(&t->g, input(t, 7, 2)); }
static value *case_sum(net *t, int form) { return form ? NULL : g_sum(&t->g, g_mul(&t->g, input(t, 7, 2), input(t, 7, 2))); }

static value *case_conv2d(net *t, int form)
{
    if (form > 1) return NULL;
    image_params p = { 5, 4, 3, 2, 1 + form, 1, form, 1, 1 + form, 1, false };
    return g_conv2d(&t->g, input(t, 20, 2), tensor(t, 3, 2, 2, 3), form ? tensor(t, 3, 1, 1, 1) : NULL, &p);
}

static value *case_pool2d(net *t, int form)
{
    if (form > 3) return NULL;
    image_params p = { 6, 4, 2, 2, 2 - form / 2, 2, form / 2, 0, 1, 1, form % 2 };
    return g_pool2d(&t->g, input(t, 24, 2), &p);
}

/* Axes exchanged and cut; a row repeated. */
static value *case_copy(net *t, int form)
{
    if (form > 1) return NULL;
    copy_params p = { .offset = 4, .ne = { 3, 4, t->tokens, 1 }, .nb = { 24, 4, 6 * 3 * 4, 0 }, .type = LOAM_F32 };
    if (form) p = (copy_params){ .ne = { 6, 5, t->tokens, 1 }, .nb = { 4, 0, 6 * 3 * 4, 0 }, .type = LOAM_F32 };
    return g_copy(&t->g, input(t, 6, 3), &p, LOAM_F32);
}

static bool multiply(const loam_custom_task *k)
{
    const float *a = k->in[0].data, *b = k->in[1].data;
    int64_t n = k->out->ne[0] * k->out->ne[1] * k->out->ne[2];
    for (int64_t i = k->task; i < n; i += k->n_tasks) ((float *)k->out->data)[i] = a[i] * b[i];
    return true;
}

static void multiply_back(const loam_custom_back *b)
{
    int64_t n = b->dy->ne[0] * b->dy->ne[1] * b->dy->ne[2];
    const float *dy = b->dy->data, *x = b->in[0].data, *y = b->in[1].data;
    for (int64_t i = 0; i < n; i++) {
        if (b->dx[0]) b->dx[0][i] += dy[i] * y[i];
        if (b->dx[1]) b->dx[1][i] += dy[i] * x[i];
    }
}

static value *case_custom(net *t, int form)
{
    static const loam_data whole = { LOAM_F32, { 6, 3, TOKENS, 1 }, { 4, 24, 72, 72 * TOKENS }, NULL };
    static loam_data in[2];
    static int64_t offset[2];
    static const custom_op op = { .spec = { .run = multiply, .gradient = multiply_back, .n_tasks = LOAM_TASKS_AS_THREADS },
                                  .out = { LOAM_F32, { 6, 3, TOKENS, 1 }, { 4, 24, 72, 72 * TOKENS }, NULL }, .in = in, .offset = offset,
                                  .n_in = 2 };
    if (form) return NULL;
    in[0] = in[1] = whole;
    value *src[GRAPH_MAX_SRC] = { input(t, 6, 3), input(t, 6, 3) };
    return g_custom(&t->g, src, &op);
}

/* One value with several readers, through views of its parts. */
static value *case_views(net *t, int form)
{
    if (form) return NULL;
    graph *g = &t->g;
    value *x = g_mul(g, input(t, 12, 1), input(t, 12, 1));
    value *a = g_view(g, x, 0, 5, 1), *b = g_view(g, x, 4, 5, 1), *c = g_view(g, x, 0, 4, 3);
    return g_concat(g, g_mul(g, a, b), g_view(g, g_norm(g, c, NULL, NULL, (norm_params){ NORM_RMS, 1e-3f, 4 }), 0, 12, 1));
}

static const case_fn cases[] = {
    case_embed, case_select, case_add, case_mul, case_scale, case_clamp, case_softcap, case_gate, case_norm, case_concat, case_temperature,
    case_rope, case_matmul, case_matmul_heads, case_attention, case_experts, case_dropout, case_softmax, case_log_softmax, case_sum,
    case_conv2d, case_pool2d, case_copy, case_custom, case_views,
};

/* ---- running one ---- */

static tape_weight bind(void *user, const weight *w)
{
    net *t = user;
    for (int i = 0; i < t->n; i++)
        if (w == &t->w[i]) return (tape_weight){ w, t->grad[i] };
    return (tape_weight){ w, NULL };
}

static void weighted_sum(void *user, worker *w, const float *x, float *dx)
{
    net *t = user;
    if (w->ith) return;
    int64_t n = t->root->ne[0] * t->root->ne[1] * t->root->ne[2];
    t->loss = 0;
    for (int64_t i = 0; i < n; i++) t->loss += (double)t->r[i] * (double)x[i];
    if (dx) memcpy(dx, t->r, (size_t)n * 4);
}

typedef struct machine {
    tape *t;
    pool *threads;
    tape_memory m;
    tape_input in;
} machine;

static double evaluate(net *t, machine *m, bool backward)
{
    assert_int_equal(tape_run(m->t, m->threads, &m->m, &m->in, backward), LOAM_OK);
    return t->loss;
}

static double slope_at(net *t, machine *m, int i, int64_t at, float h)
{
    float old = t->data[i][at], up = old + h, down = old - h;
    t->data[i][at] = up;
    double high = evaluate(t, m, false);
    t->data[i][at] = down;
    double low = evaluate(t, m, false);
    t->data[i][at] = old;
    return (high - low) / ((double)up - (double)down);
}

static double check_tensors(net *t, machine *m)
{
    double worst = 0;
    evaluate(t, m, true);
    for (int i = 0; i < t->n; i++) {
        int64_t n = t->w[i].ne[0] * t->w[i].ne[1] * t->w[i].ne[2] * t->w[i].ne[3];
        double off = 0, size = 0;
        int seen = 0;
        for (int k = 0; k < PLACES; k++) {
            int64_t at = dice_below(&d, (uint32_t)n);
            double wide = slope_at(t, m, i, at, 4e-3f), slope = slope_at(t, m, i, at, 2e-3f), g = t->grad[i][at];
            if (fabs(wide - slope) > 0.02 * fabs(slope) + 0.02) continue; /* a jump or an edge is near: another expert, another maximum */
            seen++;
            off += (slope - g) * (slope - g), size += slope * slope;
        }
        if (2 * seen < PLACES) fail_msg("%s: jumps at %d of %d places", t->names[i], PLACES - seen, PLACES);
        double e = sqrt(off) / (sqrt(size) + 0.1);
        if (e > worst) worst = e;
    }
    return worst;
}

static bool run_case(case_fn f, int form, bool *covered, int threads)
{
    static int32_t ids[TOKENS], pos[TOKENS], picked[TOKENS], row[TOKENS];
    static const grad_run runs[] = { { 0, 3 }, { 3, 67 } };
    net t = { .tokens = TOKENS };
    loam_error err;
    d.state = 77 + (uint64_t)form;
    graph_init(&t.g, TOKENS, 40);
    t.root = f(&t, form);
    if (!t.root && t.g.error.code == LOAM_OK) {
        for (int i = 0; i < t.n; i++) free(t.data[i]), free(t.grad[i]);
        graph_free(&t.g);
        return false;
    }
    if (graph_check(&t.g, &err) != LOAM_OK) fail_msg("%s", err.message);
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 5 % 9, pos[i] = i < 3 ? i : i - 3, picked[i] = (i * 3 + 1) % TOKENS, row[i] = i;
    for (int i = 0; i < t.g.n_values; i++) covered[t.g.values[i]->op] = true;
    t.r = malloc((size_t)value_bytes(t.root));
    for (int64_t i = 0; i < value_bytes(t.root) / 4; i++) t.r[i] = dice_normal(&d);
    tape_spec spec = { .dev = device_cpu(), .n_threads = threads, .recompute = threads == 2, .root = t.root, .bind = bind, .loss = weighted_sum, .user = &t };
    const char *name = op_name(t.root->op);
    machine m = { 0 };
    if (tape_new(&m.t, &t.g, &spec, &err) != LOAM_OK) fail_msg("%s: %s", name, err.message);
    assert_int_equal(pool_new(&m.threads, threads, &err), LOAM_OK);
    size_t scratch = m.t->scratch_bytes * (size_t)threads;
    m.m = (tape_memory){ aligned_alloc(64, m.t->arena_bytes + 64), aligned_alloc(64, scratch + 64), aligned_alloc(64, (m.t->shared_bytes + 127) & ~(size_t)63) };
    m.in = (tape_input){ .view = { .pos = pos, .runs = runs, .n_runs = 2, .row = row, .drop = true, .seed = 9 } };
    m.in.inputs[INPUT_TOKENS] = ids, m.in.inputs[INPUT_POS] = pos, m.in.inputs[INPUT_OUT_ROWS] = picked;
    double worst = check_tensors(&t, &m);
    if (worst > 5e-3 || threads == 1) printf("%-14s form %2d: %.2e\n", name, form, worst);
    assert_true(worst <= 5e-3);
    tape_free(m.t);
    pool_free(m.threads);
    free(m.m.arena), free(m.m.scratch), free(m.m.shared), free(t.r);
    for (int i = 0; i < t.n; i++) free(t.data[i]), free(t.grad[i]);
    return true;
}

static void test_walk(void **state)
{
    (void)state;
    bool covered[OP_COUNT] = { false };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int form = 0; run_case(cases[i], form, covered, 1); form++) run_case(cases[i], form, covered, 2);
    int n = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        if (grad_exists((op_kind)op) && !covered[op]) fail_msg("%s has a gradient but no case here", op_name((op_kind)op));
        if (!grad_exists((op_kind)op)) printf("%-14s no gradient: %s\n", op_name((op_kind)op), grad_reason((op_kind)op));
        n += grad_exists((op_kind)op);
    }
    printf("%d of %d operations have a gradient\n", n, OP_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_walk) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
