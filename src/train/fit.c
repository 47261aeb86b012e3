/* fit.c - the optimizer of one's own networks: a tape over a graph of tensors, the loss, the step. */
#include "train/fit.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mathd.h"
#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"
#include "kernels/learn.h"

loam_opt_rates loam_opt_rates_default(void *user)
{
    (void)user;
    return (loam_opt_rates){ .adamw = { 1e-3f, 0.9f, 0.999f, 1e-8f, 0.0f }, .sgd = { 1e-3f, 0.0f } };
}

loam_opt_rates loam_opt_rates_constant(void *user) { return user ? *(const loam_opt_rates *)user : loam_opt_rates_default(NULL); }

loam_opt_params loam_opt_defaults(loam_loss loss)
{
    return (loam_opt_params){
        .struct_size = sizeof(loam_opt_params), .loss = loss, .build = LOAM_BUILD_OPT, .period = 1, .rates = loam_opt_rates_default,
    };
}

/* ---- the loss: small networks, one thread, binary64 ---- */

static double row_loss(loam_opt *o, const float *y, int64_t i, float *dy)
{
    int64_t n = o->width;
    const float *label = o->labels ? o->labels + i * n : NULL;
    double rows = (double)o->n_points, all = rows * (double)n, sum = 0;
    switch (o->p.loss) {
    case LOAM_LOSS_SUM: case LOAM_LOSS_MEAN:
        for (int64_t k = 0; k < n; k++) {
            sum += y[k];
            if (dy) dy[k] = o->p.loss == LOAM_LOSS_SUM ? 1.0f : (float)(1.0 / all);
        }
        return o->p.loss == LOAM_LOSS_SUM ? sum : sum / all;
    case LOAM_LOSS_SQUARED_ERROR:
        for (int64_t k = 0; k < n; k++) {
            double d = (double)y[k] - label[k];
            sum += d * d;
            if (dy) dy[k] = (float)(2 * d / all);
        }
        return sum / all;
    case LOAM_LOSS_CROSS_ENTROPY: break;
    }
    double top = y[0], total = 0, weight_ = 0;
    int64_t best = 0, wanted = 0;
    for (int64_t k = 1; k < n; k++)
        if (y[k] > y[best]) best = k, top = y[k];
    for (int64_t k = 0; k < n; k++) {
        total += mathd_exp((double)y[k] - top);
        weight_ += label[k];
        if (label[k] > label[wanted]) wanted = k;
    }
    double lse = top + mathd_ln(total);
    for (int64_t k = 0; k < n; k++) {
        sum += label[k] * (lse - y[k]);
        if (dy) dy[k] = (float)((weight_ * mathd_exp((double)y[k] - lse) - label[k]) / rows);
    }
    o->pred[i] = (int32_t)best;
    o->n_correct += best == wanted;
    return sum / rows;
}

static void loss(void *user, worker *w, const float *x, float *dx)
{
    loam_opt *o = user;
    if (w->ith) return;
    o->loss = 0;
    o->n_correct = o->p.loss == LOAM_LOSS_CROSS_ENTROPY ? 0 : -1;
    memcpy(o->outputs, x, (size_t)(o->n_points * o->width) * 4);
    for (int64_t i = 0; i < o->n_points; i++) o->loss += row_loss(o, x + i * o->width, i, dx ? dx + i * o->width : NULL);
}

static tape_weight bind(void *user, const weight *w)
{
    loam_opt *o = user;
    for (size_t i = 0; i < o->p.n_parameters; i++)
        if (w == &o->parameters[i]->data->w) return (tape_weight){ w, o->p.build >= LOAM_BUILD_GRAD ? o->learners[i].grad : NULL };
    return (tape_weight){ w, NULL };
}

/* ---- a graph ---- */

/* A tape takes the results' own places away. */
static void restore_places(loam_graph *g)
{
    for (size_t i = 0; i < g->n_outputs; i++) g->outputs[i].v->place = g->outputs[i].place;
}

/* The tape gives its graph back to the tensors it came from. */
static void release_graph(loam_opt *o)
{
    if (!o->tape) return;
    restore_places(o->owner);
    o->owner->g = o->tape->g;
    memset(&o->tape->g, 0, sizeof o->tape->g);
    tape_free(o->tape);
    o->tape = NULL;
    o->owner = NULL;
}

static void release_batch(loam_opt *o)
{
    void *all[] = { o->inputs, o->outputs, o->labels, o->pred, o->pos, o->row };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) mem_free(all[i]);
    o->inputs = o->outputs = o->labels = NULL;
    o->pred = o->pos = o->row = NULL;
    os_release(o->memory.arena, (size_t)o->arena_bytes);
    os_release(o->memory.scratch, (size_t)o->scratch_bytes);
    os_release(o->memory.shared, (size_t)o->shared_bytes);
    o->memory = (tape_memory){ 0 };
}

static loam_status measure_batch(loam_opt *o, const loam_tensor *inputs, const loam_tensor *outputs, loam_error *err)
{
    if (inputs->type != LOAM_F32 && inputs->type != LOAM_I32) return fail(err, LOAM_E_ARG, "inputs are of type %s", loam_type_name((int)inputs->type));
    if (!inputs->data || inputs->is_view) return fail(err, LOAM_E_ARG, "inputs: '%s' was not made by loam_tensor_new", loam_tensor_name(inputs));
    if (outputs->type != LOAM_F32) return fail(err, LOAM_E_ARG, "outputs are of type %s", loam_type_name((int)outputs->type));
    int axis = inputs->n_axes > 0 ? inputs->n_axes - 1 : 0;
    o->n_points = inputs->ne[axis];
    o->n_inputs = compute_values(inputs);
    int64_t out = compute_values(outputs);
    if (o->n_points < 1 || out < 1 || out % o->n_points)
        return fail(err, LOAM_E_ARG, "%lld values of outputs for %lld points", (long long)out, (long long)o->n_points);
    o->width = out / o->n_points;
    return LOAM_OK;
}

static loam_status take_memory(loam_opt *o, loam_tensor *inputs, loam_error *err)
{
    const tape *t = o->tape;
    size_t out = (size_t)(o->n_points * o->width), tokens = 1;
    for (int i = 0; i < t->g.n_values; i++)
        if ((size_t)t->g.values[i]->ne[2] > tokens) tokens = (size_t)t->g.values[i]->ne[2];
    bool labelled = o->p.loss == LOAM_LOSS_CROSS_ENTROPY || o->p.loss == LOAM_LOSS_SQUARED_ERROR;
    o->arena_bytes = t->arena_bytes + 64, o->scratch_bytes = (uint64_t)o->n_threads * t->scratch_bytes + 64, o->shared_bytes = t->shared_bytes + 64;
    o->inputs = mem_zalloc_array((size_t)o->n_inputs, 4);
    o->outputs = mem_zalloc_array(out, 4);
    o->labels = labelled ? mem_zalloc_array(out, 4) : NULL;
    o->pred = mem_zalloc_array((size_t)o->n_points, sizeof *o->pred);
    o->pos = mem_zalloc_array(tokens, sizeof *o->pos);
    o->row = mem_zalloc_array(tokens, sizeof *o->row);
    o->memory = (tape_memory){ os_reserve((size_t)o->arena_bytes), os_reserve((size_t)o->scratch_bytes), os_reserve((size_t)o->shared_bytes) };
    if (!o->inputs || !o->outputs || (labelled && !o->labels) || !o->pred || !o->pos || !o->row || !o->memory.arena || !o->memory.scratch || !o->memory.shared)
        return fail_nomem(err, "a network that learns", o->arena_bytes + o->scratch_bytes + out * 8);
    for (size_t i = 0; i < tokens; i++) o->pos[i] = o->row[i] = (int32_t)i;
    inputs->data->w.data = o->inputs;
    return LOAM_OK;
}

static loam_status take_graph(loam_opt *o, loam_graph *g, loam_tensor *inputs, loam_tensor *outputs, loam_error *err)
{
    loam_status status = loam_graph_check(g, err);
    if (status == LOAM_OK && (inputs->g != g || outputs->g != g)) status = fail(err, LOAM_E_ARG, "inputs or outputs are of another graph");
    if (status == LOAM_OK) status = measure_batch(o, inputs, outputs, err);
    if (status != LOAM_OK) return status;
    compute_open(g);
    value *root = compute_flat(g, outputs);
    status = loam_graph_check(g, err);
    if (status != LOAM_OK) return status;
    tape_spec spec = { .dev = device_cpu(), .n_threads = o->n_threads, .root = root, .bind = bind, .loss = loss, .user = o };
    graph *inner = compute_graph(g), copy = *inner;
    copy.n_tokens = 1;
    for (int i = 0; i < copy.n_values; i++)
        if (copy.values[i]->ne[2] > copy.n_tokens) copy.n_tokens = (int)copy.values[i]->ne[2];
    o->root = root;
    status = tape_try(&o->tape, &copy, &spec, err);
    if (status != LOAM_OK) {
        restore_places(g);
        return status;
    }
    memset(inner, 0, sizeof *inner);
    o->owner = g;
    return take_memory(o, inputs, err);
}

/* ---- life ---- */

static loam_status check(const loam_opt_params *p, loam_error *err)
{
    if (p->struct_size != sizeof *p) return fail(err, LOAM_E_ARG, "loam_opt_params: struct_size %zu is unknown", p->struct_size);
    bool some = p->graph || p->inputs || p->outputs, all = p->graph && p->inputs && p->outputs;
    if (some && !all) return fail(err, LOAM_E_ARG, "graph, inputs and outputs: all of them (static) or none (dynamic)");
    if (p->loss < LOAM_LOSS_MEAN || p->loss > LOAM_LOSS_SQUARED_ERROR) return fail(err, LOAM_E_ARG, "loss: %d is not a loam_loss", (int)p->loss);
    if (p->build != LOAM_BUILD_FORWARD && p->build != LOAM_BUILD_GRAD && p->build != LOAM_BUILD_OPT) return fail(err, LOAM_E_ARG, "build: %d is not a loam_build", (int)p->build);
    if (p->period < 1) return fail(err, LOAM_E_ARG, "period: %d, must be at least 1", p->period);
    if (p->optimizer != LOAM_ADAMW && p->optimizer != LOAM_SGD) return fail(err, LOAM_E_UNSUPPORTED, "optimizer %d: networks learn by AdamW or SGD", (int)p->optimizer);
    if (!p->rates) return fail(err, LOAM_E_ARG, "rates is NULL");
    if (p->n_threads < 0 || p->n_threads > LIMIT_THREADS) return fail(err, LOAM_E_ARG, "n_threads: %d", p->n_threads);
    if (p->n_parameters && !p->parameters) return fail(err, LOAM_E_ARG, "parameters is NULL");
    for (size_t i = 0; i < p->n_parameters; i++) {
        const loam_tensor *x = p->parameters[i];
        if (!x || !x->data || x->is_view || x->type != LOAM_F32 || !x->data->w.data)
            return fail(err, LOAM_E_ARG, "parameter %zu is not a bound f32 tensor made by loam_tensor_new", i);
    }
    return p->n_parameters || p->build == LOAM_BUILD_FORWARD ? LOAM_OK : fail(err, LOAM_E_ARG, "nothing would learn: n_parameters is 0");
}

static loam_status make_learners(loam_opt *o, loam_error *err)
{
    size_t n = o->p.n_parameters;
    o->learners = mem_zalloc_array(n, sizeof *o->learners);
    o->parameters = mem_zalloc_array(n, sizeof *o->parameters);
    if (!o->learners || !o->parameters) return fail_nomem(err, "an optimizer", n * sizeof *o->learners);
    for (size_t i = 0; i < n; i++) {
        learner *l = &o->learners[i];
        o->parameters[i] = o->p.parameters[i];
        l->n = compute_values(o->parameters[i]);
        l->grad = mem_zalloc_array((size_t)l->n, 4);
        l->m = mem_zalloc_array((size_t)l->n, 4);
        l->v = mem_zalloc_array((size_t)l->n, 4);
        if (!l->grad || !l->m || !l->v) return fail_nomem(err, "an optimizer", (uint64_t)l->n * 12);
    }
    return LOAM_OK;
}

loam_status loam_opt_new(loam_opt **out, const loam_opt_params *params, loam_error *err)
{
    if (!out || !params) return fail(err, LOAM_E_ARG, "loam_opt_new: %s is NULL", out ? "params" : "out");
    *out = NULL;
    loam_status status = check(params, err);
    if (status != LOAM_OK) return status;
    loam_opt *o = mem_zalloc(sizeof *o);
    if (!o) return fail_nomem(err, "an optimizer", sizeof *o);
    o->p = *params;
    o->is_static = params->graph != NULL;
    o->random = params->seed;
    o->n_threads = params->n_threads ? params->n_threads : os_cpu_count();
    status = make_learners(o, err);
    if (status == LOAM_OK && o->n_threads > 1) status = pool_new(&o->threads, o->n_threads, err);
    if (status == LOAM_OK && o->threads) o->n_threads = pool_threads(o->threads);
    if (status == LOAM_OK && o->is_static) status = take_graph(o, params->graph, params->inputs, params->outputs, err);
    if (status != LOAM_OK) {
        loam_opt_free(o);
        return status;
    }
    *out = o;
    return LOAM_OK;
}

void loam_opt_free(loam_opt *o)
{
    if (!o) return;
    release_graph(o);
    release_batch(o);
    for (size_t i = 0; o->learners && i < o->p.n_parameters; i++) {
        mem_free(o->learners[i].grad);
        mem_free(o->learners[i].m);
        mem_free(o->learners[i].v);
    }
    mem_free(o->learners);
    mem_free(o->parameters);
    pool_free(o->threads);
    mem_free(o);
}

void loam_opt_reset(loam_opt *o, bool optimizer)
{
    if (!o) return;
    for (size_t i = 0; i < o->p.n_parameters; i++) {
        learner *l = &o->learners[i];
        memset(l->grad, 0, (size_t)l->n * 4);
        if (optimizer) memset(l->m, 0, (size_t)l->n * 4), memset(l->v, 0, (size_t)l->n * 4);
    }
    o->evaluations = 0;
    if (optimizer) o->steps = 0;
}

bool loam_opt_is_static(const loam_opt *o) { return o && o->is_static; }
float *loam_opt_inputs(loam_opt *o) { return o ? o->inputs : NULL; }
const float *loam_opt_outputs(loam_opt *o) { return o && o->evaluated ? o->outputs : NULL; }
float *loam_opt_labels(loam_opt *o) { return o ? o->labels : NULL; }
double loam_opt_loss(const loam_opt *o) { return o ? o->loss : 0; }
const int32_t *loam_opt_pred(const loam_opt *o) { return o && o->evaluated && o->n_correct >= 0 ? o->pred : NULL; }
int64_t loam_opt_n_correct(const loam_opt *o) { return o && o->evaluated ? o->n_correct : -1; }

const float *loam_opt_grad(const loam_opt *o, const loam_tensor *x)
{
    for (size_t i = 0; o && o->p.build >= LOAM_BUILD_GRAD && i < o->p.n_parameters; i++)
        if (o->parameters[i] == x) return o->learners[i].grad;
    return NULL;
}

/* ---- one evaluation ---- */

loam_status loam_opt_prepare(loam_opt *o, loam_graph *g, loam_tensor *inputs, loam_tensor *outputs, loam_tensor *const *parameters, loam_error *err)
{
    if (!o || !g || !inputs || !outputs || (o->p.n_parameters && !parameters)) return fail(err, LOAM_E_ARG, "loam_opt_prepare: an argument is NULL");
    if (o->is_static) return fail(err, LOAM_E_ARG, "loam_opt_prepare: the graph is static");
    for (size_t i = 0; i < o->p.n_parameters; i++) {
        const loam_tensor *x = parameters[i];
        if (!x || !x->data || x->is_view || x->type != LOAM_F32 || !x->data->w.data || compute_values(x) != o->learners[i].n)
            return fail(err, LOAM_E_ARG, "parameter %zu is not a bound f32 tensor of %lld values", i, (long long)o->learners[i].n);
    }
    release_graph(o);
    release_batch(o);
    o->allocated = o->evaluated = false;
    for (size_t i = 0; i < o->p.n_parameters; i++) o->parameters[i] = parameters[i];
    return take_graph(o, g, inputs, outputs, err);
}

loam_status loam_opt_alloc(loam_opt *o, bool backward, loam_error *err)
{
    if (!o || !o->tape) return fail(err, LOAM_E_ARG, "loam_opt_alloc: %s", o ? "no graph has been prepared" : "opt is NULL");
    if (o->allocated) return fail(err, LOAM_E_ARG, "loam_opt_alloc: the evaluation that was set up has not run");
    o->allocated = true;
    o->backward = backward && o->p.build >= LOAM_BUILD_GRAD;
    return LOAM_OK;
}

/* Gradients are means over the evaluations of a step; a sum stays a sum. */
static void step_of_optimizer(loam_opt *o)
{
    loam_opt_rates rates = o->p.rates(o->p.rates_user);
    const learn_kernels *k = kernels_get()->learn;
    double n = (double)++o->steps;
    float scale = o->p.loss == LOAM_LOSS_SUM ? 1.0f : 1.0f / (float)o->p.period;
    for (size_t i = 0; i < o->p.n_parameters; i++) {
        learner *l = &o->learners[i];
        float *p = (float *)(uintptr_t)o->parameters[i]->data->w.data;
        if (o->p.optimizer == LOAM_SGD) {
            k->sgd(&(sgd_args){ .p = p, .g = l->grad, .n = l->n, .g_scale = scale, .rate = rates.sgd.alpha, .decay = rates.sgd.wd });
        } else {
            double b1 = rates.adamw.beta1, b2 = rates.adamw.beta2;
            k->adamw(&(adamw_args){
                .p = p, .m = l->m, .v = l->v, .g = l->grad, .n = l->n, .g_scale = scale, .beta1 = rates.adamw.beta1, .beta2 = rates.adamw.beta2,
                .eps = rates.adamw.eps, .rate = (float)(rates.adamw.alpha / (1.0 - (b1 > 0 ? mathd_pow(b1, n) : 0.0))),
                .root = (float)(1.0 / sqrt(1.0 - (b2 > 0 ? mathd_pow(b2, n) : 0.0))), .keep = 1.0f - rates.adamw.alpha * rates.adamw.wd });
        }
        memset(l->grad, 0, (size_t)l->n * 4);
    }
    o->evaluations = 0;
}

loam_status loam_opt_eval(loam_opt *o, loam_opt_result *result, loam_error *err)
{
    if (!o || !o->allocated) return fail(err, LOAM_E_ARG, "loam_opt_eval: %s", o ? "loam_opt_alloc comes first" : "opt is NULL");
    o->allocated = false;
    grad_run run = { 0, o->tape->g.n_tokens };
    tape_input in = { .view = { .pos = o->pos, .runs = &run, .n_runs = 1, .row = o->row, .drop = o->backward, .seed = o->p.seed + (uint64_t)o->steps } };
    loam_status status = tape_run(o->tape, o->threads, &o->memory, &in, o->backward);
    if (status != LOAM_OK) return status;
    o->evaluated = true;
    if (!isfinite(o->loss)) {
        loam_opt_reset(o, false);
        return fail(err, LOAM_E_NUMERIC, "the loss is not finite");
    }
    if (result) status = result_add(result, o, err);
    if (status == LOAM_OK && o->backward && ++o->evaluations == o->p.period && o->p.build == LOAM_BUILD_OPT) step_of_optimizer(o);
    return status;
}
