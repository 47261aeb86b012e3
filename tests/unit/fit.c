/* fit.c - the fitting interface: closed forms of a network of one weight, regression, classification, a small network of images,
 * data sets, dynamic graphs, refusals.
 *
 * The closed forms: points 0 .. 5, y = x + w with w = 3. The losses of the six batches are 3, 4, ... 8: their sum 33, with the
 * uncertainty sqrt(3.5). By AdamW with rate 1 each step takes 1 off w, whatever the gradient: losses 3, 3, 3, 3, 3, 3, sum 18. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "loam/train.h"

static loam_error err;
#define OK(call) do { if ((call) != LOAM_OK) fail_msg("%s", err.message); } while (0)
#define N 6

typedef struct one {
    loam_graph *g;
    loam_tensor *x, *w, *y;
    float weight;
} one;

static void make_one(one *o, int64_t batch)
{
    OK(loam_graph_new(&o->g, &err));
    o->x = loam_tensor_new(o->g, "x", LOAM_F32, 2, (int64_t[]){ 1, batch });
    o->w = loam_tensor_new(o->g, "w", LOAM_F32, 1, (int64_t[]){ 1 });
    o->weight = 3;
    OK(loam_tensor_bind(o->w, &o->weight, 4, &err));
    o->y = loam_op_scale(o->g, loam_op_add(o->g, o->x, o->w), 1.0f);
    OK(loam_graph_check(o->g, &err));
}

static loam_opt_rates rate_one(void *user)
{
    (void)user;
    loam_opt_rates r = loam_opt_rates_default(NULL);
    r.adamw.alpha = 1;
    r.sgd.alpha = 0.5f;
    return r;
}

static loam_dataset *numbers(int64_t shard)
{
    loam_dataset *ds;
    OK(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_F32, 1, 0, N, shard }, &err));
    for (int i = 0; i < N; i++) ((float *)loam_dataset_data(ds))[i] = (float)i;
    return ds;
}

static loam_opt_params params_of(const one *o, loam_loss loss)
{
    loam_opt_params p = loam_opt_defaults(loss);
    p.graph = o->g, p.inputs = o->x, p.outputs = o->y, p.parameters = &o->w, p.n_parameters = 1, p.rates = rate_one, p.n_threads = 2;
    return p;
}

static void near(double a, double b) { if (!(fabs(a - b) <= 1e-6 * (1 + fabs(b)))) fail_msg("%.9g is not %.9g", a, b); }

static void test_closed_forms(void **state)
{
    (void)state;
    one o;
    make_one(&o, 1);
    loam_dataset *ds = numbers(1);
    loam_opt_params p = params_of(&o, LOAM_LOSS_SUM);
    loam_opt *opt;
    loam_opt_result *r;
    double loss, unc;
    OK(loam_opt_new(&opt, &p, &err));
    OK(loam_opt_result_new(&r, &err));
    loam_opt_result_loss(r, &loss, &unc);
    assert_true(loss == 0 && isnan(unc) && loam_opt_is_static(opt));
    OK(loam_opt_epoch(opt, ds, &(loam_epoch){ .eval = r, .split = 0 }, &err)); /* only evaluated */
    loam_opt_result_loss(r, &loss, &unc);
    near(loss, 33), near(unc, sqrt(3.5));
    assert_true(o.weight == 3 && loam_opt_result_n(r) == N);
    loam_opt_result_reset(r);
    OK(loam_opt_epoch(opt, ds, &(loam_epoch){ .train = r, .split = -1 }, &err));
    loam_opt_result_loss(r, &loss, &unc);
    near(loss, 18), near(unc, 0), near(o.weight, -3);
    loam_opt_free(opt);

    /* Gradients of a sum: 1 a point; build GRAD takes no step. */
    p.build = LOAM_BUILD_GRAD;
    OK(loam_opt_new(&opt, &p, &err));
    loam_opt_result_reset(r);
    OK(loam_opt_epoch(opt, ds, &(loam_epoch){ .train = r, .split = 4, .eval = r }, &err));
    near(*loam_opt_grad(opt, o.w), 4), near(o.weight, -3);
    loam_opt_reset(opt, false);
    near(*loam_opt_grad(opt, o.w), 0);
    loam_opt_free(opt);

    /* Means: accumulated over a period they are the mean of the whole. */
    p = params_of(&o, LOAM_LOSS_MEAN);
    p.period = 3, p.optimizer = LOAM_SGD;
    OK(loam_opt_new(&opt, &p, &err));
    loam_opt_result_reset(r);
    OK(loam_opt_epoch(opt, ds, &(loam_epoch){ .train = r, .split = -1 }, &err));
    loam_opt_result_loss(r, &loss, &unc);
    near(loss, (0 + 1 + 2 - 9 + 3 + 4 + 5 - 10.5) / 6), near(o.weight, -4); /* two steps of rate 0.5 and gradient 1 */
    loam_opt_free(opt);
    loam_opt_result_free(r);
    loam_dataset_free(ds);
    loam_graph_free(o.g);
}

static void test_dynamic(void **state)
{
    (void)state;
    one o[2];
    loam_opt *opt = NULL;
    float weight = 3;
    for (int k = 0; k < 2; k++) {
        make_one(&o[k], k + 2);
        OK(loam_tensor_bind(o[k].w, &weight, 4, &err));
        if (k == 0) {
            loam_opt_params p = loam_opt_defaults(LOAM_LOSS_SUM);
            p.parameters = &o[0].w, p.n_parameters = 1, p.rates = rate_one, p.optimizer = LOAM_SGD;
            OK(loam_opt_new(&opt, &p, &err));
            assert_false(loam_opt_is_static(opt));
            assert_int_equal(loam_opt_alloc(opt, true, &err), LOAM_E_ARG);
        }
        OK(loam_opt_prepare(opt, o[k].g, o[k].x, o[k].y, &o[k].w, &err));
        OK(loam_opt_alloc(opt, true, &err));
        assert_int_equal(loam_opt_alloc(opt, true, &err), LOAM_E_ARG); /* once */
        for (int i = 0; i < k + 2; i++) loam_opt_inputs(opt)[i] = (float)i;
        OK(loam_opt_eval(opt, NULL, &err));
        near(loam_opt_loss(opt), k == 0 ? 7 : 9), near(weight, k == 0 ? 2 : 0.5); /* rate 0.5 times the points */
        near(loam_opt_outputs(opt)[k + 1], 4);
    }
    loam_opt_free(opt);
    for (int k = 0; k < 2; k++) loam_graph_free(o[k].g);
}

/* y = a x + b from noisy points. */
static void test_regression(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        loam_graph *g;
        loam_dataset *ds;
        float a = 0, b = 0;
        OK(loam_graph_new(&g, &err));
        loam_tensor *x = loam_tensor_new(g, "x", LOAM_F32, 2, (int64_t[]){ 1, 50 });
        loam_tensor *ta = loam_tensor_new(g, "a", LOAM_F32, 1, (int64_t[]){ 1 }), *tb = loam_tensor_new(g, "b", LOAM_F32, 1, (int64_t[]){ 1 });
        OK(loam_tensor_bind(ta, &a, 4, &err));
        OK(loam_tensor_bind(tb, &b, 4, &err));
        loam_tensor *y = loam_op_add(g, loam_op_mul(g, x, ta), tb);
        OK(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_F32, 1, 1, 200, 1 }, &err));
        dice d = { 9 };
        for (int i = 0; i < 200; i++) {
            float v = dice_uniform(&d) * 4 - 2;
            ((float *)loam_dataset_data(ds))[i] = v, ((float *)loam_dataset_labels(ds))[i] = 1.2f * v + 3.4f + 0.01f * dice_normal(&d);
        }
        loam_opt_rates rates = loam_opt_rates_default(NULL);
        rates.adamw.alpha = 0.1f, rates.sgd.alpha = 0.1f;
        loam_opt_params p = loam_opt_defaults(LOAM_LOSS_SQUARED_ERROR);
        loam_tensor *both[] = { ta, tb };
        p.graph = g, p.inputs = x, p.outputs = y, p.parameters = both, p.n_parameters = 2;
        p.optimizer = k ? LOAM_SGD : LOAM_ADAMW, p.rates = loam_opt_rates_constant, p.rates_user = &rates;
        OK(loam_opt_fit(&p, ds, &(loam_fit_params){ .n_epochs = 150, .n_logical = 50, .validation = 0.25 }, &err));
        printf("%s: %.4f x + %.4f\n", k ? "sgd" : "adamw", (double)a, (double)b);
        assert_true(fabsf(a - 1.2f) < 1e-2f && fabsf(b - 3.4f) < 1e-2f);
        loam_dataset_free(ds);
        loam_graph_free(g);
    }
}

typedef struct seen {
    int64_t last_epoch;
    int train, eval;
    double accuracy;
} seen;

static loam_opt_rates by_epoch(void *user)
{
    loam_opt_rates r = loam_opt_rates_default(NULL);
    r.adamw.alpha = *(const int64_t *)user < 15 ? 0.02f : 0.005f;
    return r;
}

static bool look(void *user, bool train, const loam_opt *opt, const loam_opt_result *result, const int64_t batch[2], int64_t start)
{
    seen *s = user;
    (void)opt, (void)start;
    train ? s->train++ : s->eval++;
    if (!train && batch[0] == batch[1]) loam_opt_result_accuracy(result, &s->accuracy, NULL);
    return true;
}

/* Images with a bright left or right half, or a bright middle: convolution, pooling, a matrix. */
static void test_images(void **state)
{
    (void)state;
    enum { W = 8, H = 6, CLASSES = 3, POINTS = 240, BATCH = 20 };
    loam_graph *g;
    loam_dataset *ds;
    dice d = { 21 };
    static float k1[3 * 3 * 1 * 4], b1[4], w2[(W / 2) * (H / 2) * 4 * CLASSES], b2[CLASSES];
    for (int i = 0; i < 36; i++) k1[i] = dice_normal(&d) * 0.3f;
    for (size_t i = 0; i < sizeof w2 / 4; i++) w2[i] = dice_normal(&d) * 0.1f;
    OK(loam_graph_new(&g, &err));
    loam_tensor *x = loam_tensor_new(g, "images", LOAM_F32, 3, (int64_t[]){ W * H, 1, BATCH });
    loam_tensor *t[4] = {
        loam_tensor_new(g, "k1", LOAM_F32, 4, (int64_t[]){ 3, 3, 1, 4 }), loam_tensor_new(g, "b1", LOAM_F32, 1, (int64_t[]){ 4 }),
        loam_tensor_new(g, "w2", LOAM_F32, 2, (int64_t[]){ W / 2 * H / 2 * 4, CLASSES }), loam_tensor_new(g, "b2", LOAM_F32, 1, (int64_t[]){ CLASSES }),
    };
    OK(loam_tensor_bind(t[0], k1, sizeof k1, &err));
    OK(loam_tensor_bind(t[1], b1, sizeof b1, &err));
    OK(loam_tensor_bind(t[2], w2, sizeof w2, &err));
    OK(loam_tensor_bind(t[3], b2, sizeof b2, &err));
    loam_image conv = { .width = W, .height = H, .kernel_w = 3, .kernel_h = 3, .pad_w = 1, .pad_h = 1 };
    loam_image pool = { .width = W, .height = H, .kernel_w = 2, .kernel_h = 2, .stride_w = 2, .stride_h = 2 };
    loam_tensor *h = loam_op_gate(g, LOAM_GATE_RELU, loam_op_conv2d(g, x, t[0], t[1], &conv), NULL);
    h = loam_op_reshape(g, loam_op_pool2d(g, h, &pool), 2, (int64_t[]){ W / 2 * H / 2 * 4, BATCH });
    loam_tensor *y = loam_op_add(g, loam_op_matmul(g, t[2], h), t[3]);
    OK(loam_graph_check(g, &err));
    OK(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_I32, W * H, 1, POINTS, 4 }, &err));
    for (int i = 0; i < POINTS; i++) {
        int c = (int)dice_below(&d, CLASSES), left = c == 0 ? 0 : c == 1 ? 4 : 2;
        float *image = (float *)loam_dataset_data(ds) + i * W * H;
        for (int p = 0; p < W * H; p++) image[p] = 0.3f * dice_normal(&d) + (p % W >= left && p % W < left + 4 ? 0.7f : 0.0f);
        ((int32_t *)loam_dataset_labels(ds))[i] = c;
    }
    loam_opt_params p = loam_opt_defaults(LOAM_LOSS_CROSS_ENTROPY);
    p.graph = g, p.inputs = x, p.outputs = y, p.parameters = t, p.n_parameters = 4, p.rates = by_epoch;
    seen s = { 0 };
    OK(loam_opt_fit(&p, ds, &(loam_fit_params){ .n_epochs = 20, .n_logical = 40, .validation = 0.2, .progress = look, .user = &s }, &err));
    printf("images: accuracy %.3f on points that were not learned\n", s.accuracy);
    assert_true(s.accuracy > 0.9 && s.train > s.eval);
    assert_int_equal(s.train + s.eval, 20 * 12);
    /* Afterwards the graph is evaluated as any other. */
    float *one_batch = calloc(W * H * BATCH, 4), out[CLASSES * BATCH];
    OK(loam_tensor_bind(x, one_batch, W * H * BATCH * 4, &err));
    loam_graph_output(g, y);
    OK(loam_graph_eval(g, NULL, &err));
    OK(loam_tensor_get(y, out, sizeof out, &err));
    assert_true(isfinite(out[0]));
    free(one_batch);
    loam_dataset_free(ds);
    loam_graph_free(g);
}

static void test_datasets(void **state)
{
    (void)state;
    loam_dataset *ds;
    assert_int_equal(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_F32, 1, 0, 6, 4 }, &err), LOAM_E_ARG);
    assert_int_equal(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F16, LOAM_F32, 1, 0, 6, 1 }, &err), LOAM_E_ARG);
    OK(loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_I32, LOAM_F32, 2, 1, 12, 3 }, &err));
    for (int i = 0; i < 24; i++) ((int32_t *)loam_dataset_data(ds))[i] = i;
    int32_t batch[12];
    float labels[6];
    OK(loam_dataset_batch(ds, 1, 6, batch, labels, &err));
    assert_true(batch[0] == 12 && batch[11] == 23);
    assert_int_equal(loam_dataset_batch(ds, 2, 6, batch, labels, &err), LOAM_E_ARG);
    assert_int_equal(loam_dataset_batch(ds, 0, 4, batch, labels, &err), LOAM_E_ARG);
    one o;
    make_one(&o, 1);
    loam_opt_params p = params_of(&o, LOAM_LOSS_SUM);
    loam_opt *opt;
    OK(loam_opt_new(&opt, &p, &err));
    bool moved = false;
    for (int k = 0; k < 20; k++) { /* the first half is shuffled among itself, in shards of three points */
        OK(loam_opt_shuffle(opt, ds, 6, &err));
        OK(loam_dataset_batch(ds, 0, 3, batch, NULL, &err));
        assert_true((batch[0] == 0 || batch[0] == 6) && batch[5] == batch[0] + 5);
        moved = moved || batch[0] == 6;
        OK(loam_dataset_batch(ds, 2, 3, batch, NULL, &err));
        assert_int_equal(batch[0], 12);
    }
    assert_true(moved);
    loam_epoch e = { .split = -1 };
    assert_int_equal(loam_opt_epoch(opt, ds, &e, &err), LOAM_E_ARG); /* points of two values */
    loam_opt_free(opt);
    p.period = 0;
    assert_int_equal(loam_opt_new(&opt, &p, &err), LOAM_E_ARG);
    p = params_of(&o, LOAM_LOSS_SUM);
    p.n_parameters = 0;
    assert_int_equal(loam_opt_new(&opt, &p, &err), LOAM_E_ARG);
    loam_dataset_free(ds);
    loam_graph_free(o.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms), cmocka_unit_test(test_dynamic), cmocka_unit_test(test_regression),
        cmocka_unit_test(test_images), cmocka_unit_test(test_datasets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
