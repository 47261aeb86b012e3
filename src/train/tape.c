/* tape.c - see tape.h. Made in four passes: weights are bound and operations of inference taken out; what needs gradients is
 * found; the steps are listed; every buffer gets its place from its first and last step. */
#include "train/tape.h"

#include <string.h>

#include "base/mem.h"
#include "graph/gaps.h"

#define NEVER (-1)

/* What is known of a value while the list is made. */
typedef struct facts {
    bool used;             /* the root depends on it */
    bool needs;            /* it depends on a weight that learns */
    bool kept;             /* its result stays until its last reader; else it is made again */
    bool arrived;          /* something has been added to its gradient */
    int made[2];           /* step that makes it: forward, again */
    int last[2];           /* last step that reads it */
    int grad_first, grad_last;
} facts;

typedef struct maker {
    tape *t;
    graph *g;
    facts *f;
    size_t cap;
    bool failed;           /* out of memory */
} maker;

static bool is_source(const value *v) { return v->op == OP_INPUT || v->op == OP_WEIGHT; }

/* The record of a tensor of the caller: a weight, or its data as an activation. */
static const weight *record_of(const value *v) { return v->op == OP_WEIGHT ? v->p.w : v->op == OP_INPUT ? v->p.in.bound : NULL; }

static value *root_of(value *v)
{
    while (v->op == OP_VIEW) v = v->src[0];
    return v;
}

/* ---- binding ---- */

static bool is_strength(value *v)
{
    v = root_of(v);
    return v->op == OP_INPUT && v->p.in.input == INPUT_ADAPTERS;
}

/* The adapter in training has strength 1 everywhere. */
static value *without_strength(value *v)
{
    return v && v->op == OP_MUL && is_strength(v->src[1]) ? v->src[0] : v;
}

static bool float_product(const value *v)
{
    return (v->op == OP_MATMUL || v->op == OP_MATMUL_HEADS || v->op == OP_EXPERTS) && dtype_table[v->src[0]->type].act == ACT_F32;
}

static void bind_values(maker *m)
{
    for (int i = 0; i < m->g->n_values; i++) {
        value *v = m->g->values[i];
        if (v->op == OP_WEIGHT) {
            tape_weight w = m->t->spec.bind(m->t->spec.user, v->p.w);
            v->p.w = w.w;
            v->type = w.w->type;
            v->nb[0] = dtype_table[v->type].bytes;
            v->nb[1] = (int64_t)w.w->row_bytes;
            v->nb[2] = v->nb[1] * v->ne[1];
            v->nb[3] = v->nb[2] * v->ne[2];
            m->f[i].needs = w.grad != NULL;
        }
        if (v->op == OP_INPUT && v->p.in.bound) m->f[i].needs = m->t->spec.bind(m->t->spec.user, v->p.in.bound).grad != NULL;
        v->place = NULL; /* results stay in the arena */
        for (int s = 0; s < GRAPH_MAX_SRC; s++) v->src[s] = without_strength(v->src[s]);
        /* A weight that learns is made of floats and takes floats. */
        if (float_product(v) && v->src[1]->op == OP_ENCODE) v->src[1] = v->src[1]->src[0];
    }
}

static float *grad_of_weight(const maker *m, const value *v) { return m->t->spec.bind(m->t->spec.user, record_of(v)).grad; }

static void mark_used(maker *m)
{
    m->f[m->t->spec.root->id].used = true;
    for (int i = m->g->n_values - 1; i >= 0; i--)
        for (int s = 0; s < GRAPH_MAX_SRC && m->f[i].used; s++)
            if (m->g->values[i]->src[s]) m->f[m->g->values[i]->src[s]->id].used = true;
}

static loam_status mark_needs(maker *m, loam_error *err)
{
    for (int i = 0; i < m->g->n_values; i++) {
        const value *v = m->g->values[i];
        if (!m->f[i].used || is_source(v)) continue;
        bool any = false;
        for (int s = 0; s < GRAPH_MAX_SRC; s++) any = any || (v->src[s] && m->f[v->src[s]->id].needs);
        bool passes = v->op == OP_VIEW || v->op == OP_KV_WRITE || v->op == OP_ENCODE;
        if (any && !passes && !grad_exists(v->op))
            return fail(err, LOAM_E_UNSUPPORTED, "training: %s of block %d has no gradient: %s", op_name(v->op), v->layer, grad_reason(v->op));
        if (any && v->op == OP_ATTENTION && v->p.attn.rel_buckets)
            return fail(err, LOAM_E_UNSUPPORTED, "training: attention of block %d has a learned bias by distance, which has no gradient", v->layer);
        if (any && v->op == OP_COPY && (v->type != LOAM_F32 || v->src[0]->type != LOAM_F32))
            return fail(err, LOAM_E_UNSUPPORTED, "training: no gradient flows through a cast from %s to %s",
                        loam_type_name((int)v->src[0]->type), loam_type_name((int)v->type));
        m->f[i].needs = any;
    }
    return LOAM_OK;
}

/* ---- what is kept ---- */

static bool is_cheap(op_kind op) { return op == OP_NORM || op == OP_GATE || op == OP_SCALE || op == OP_DROPOUT || op == OP_SOFTCAP; }

static void choose_kept(maker *m)
{
    for (int i = 0; i < m->g->n_values; i++) {
        const value *v = m->g->values[i];
        m->f[i].kept = m->t->spec.recompute ? v->layer < 0 : !is_cheap(v->op);
    }
    m->f[root_of(m->t->spec.root)->id].kept = true;
    for (int i = 0; i < m->g->n_values && m->t->spec.recompute; i++)
        for (int s = 0; s < GRAPH_MAX_SRC; s++) {
            value *x = m->g->values[i]->src[s];
            if (x && x->layer != m->g->values[i]->layer) m->f[root_of(x)->id].kept = true;
        }
}

/* ---- the list ---- */

static tape_step *add_step(maker *m, tape_kind kind, value *v)
{
    if (!mem_grow(&m->t->steps, &m->cap, (size_t)m->t->n_steps + 1, sizeof *m->t->steps, INT32_MAX)) {
        m->failed = true;
        return NULL;
    }
    tape_step *s = &m->t->steps[m->t->n_steps++];
    *s = (tape_step){ .kind = kind, .v = v, .at = NEVER, .dy = NEVER };
    for (int i = 0; i < GRAPH_MAX_SRC; i++) s->dx[i] = NEVER;
    return s;
}

static bool has_run(const value *v) { return !is_source(v) && v->op != OP_VIEW && v->op != OP_KV_WRITE; }

static void read_now(maker *m, value *x)
{
    x = root_of(x);
    if (!has_run(x)) return;
    facts *f = &m->f[x->id];
    int which = f->made[1] != NEVER;
    f->last[which] = m->t->n_steps - 1;
}

static void read_sources(maker *m, const value *v)
{
    for (int s = 0; s < GRAPH_MAX_SRC; s++) {
        value *x = v->src[s];
        if (!x) continue;
        if (x->op == OP_KV_WRITE) read_sources(m, x);
        else read_now(m, x);
    }
}

static void run_step(maker *m, value *v)
{
    const device *dev = m->t->spec.dev;
    tape_step *s = add_step(m, TAPE_RUN, v);
    if (!s) return;
    run_fn other = dev->learn(v->op);
    s->run = other ? other : dev->kernel(v->op);
    facts *f = &m->f[v->id];
    int which = f->made[0] != NEVER;
    f->made[which] = f->last[which] = m->t->n_steps - 1;
    read_sources(m, v);
}

/* The result must be there for the next step: made again where it was thrown away. */
static void require(maker *m, value *x)
{
    x = root_of(x);
    if (!has_run(x) || m->f[x->id].kept || m->f[x->id].made[1] != NEVER) return;
    for (int s = 0; s < GRAPH_MAX_SRC; s++) {
        value *y = x->src[s];
        if (!y) continue;
        if (y->op != OP_KV_WRITE) require(m, y);
        else require(m, y->src[0]), require(m, y->src[1]);
    }
    run_step(m, x);
}

static bool whole_view(const value *v)
{
    const value *x = v->src[0];
    return v->p.view.offset == 0 && v->ne[0] * v->ne[1] * v->ne[2] == x->ne[0] * x->ne[1] * x->ne[2] && x->op != OP_VIEW;
}

/* Makes the gradient of x ready to be written or added to; true where something is there already. */
static bool arrive(maker *m, value *x)
{
    value *root = root_of(x);
    facts *f = &m->f[root->id];
    if (f->arrived) return true;
    f->arrived = true;
    if (x != root && !whole_view(x)) {
        add_step(m, TAPE_ZERO, root);
        f->grad_first = m->t->n_steps - 1;
        return true;
    }
    f->grad_first = m->t->n_steps; /* the step that comes next */
    return false;
}

/* Bytes of a view in its root. */
static int64_t offset_of(const value *v)
{
    int64_t offset = 0;
    for (; v->op == OP_VIEW; v = v->src[0]) offset += v->p.view.offset;
    return offset;
}

static void grad_step_of(maker *m, value *v)
{
    value *in[GRAPH_MAX_SRC];
    unsigned flow, wanted = 0, add = 0;
    grad_inputs(v, in, &flow);
    for (int i = 0; i < GRAPH_MAX_SRC; i++)
        if (in[i] && (flow >> i & 1) && m->f[in[i]->id].needs) wanted |= 1u << i;
    unsigned reads = grad_reads(v, wanted);
    for (int i = 0; i < GRAPH_MAX_SRC; i++)
        if (in[i] && (reads >> i & 1)) require(m, in[i]);
    if (reads & GRAD_READS_RESULT) require(m, v);
    for (int i = 0; i < GRAPH_MAX_SRC; i++)
        if (wanted >> i & 1) {
            bool there = record_of(root_of(in[i])) || arrive(m, in[i]);
            add |= (unsigned)there << i;
        }
    tape_step *s = add_step(m, TAPE_GRAD, v);
    if (!s) return;
    s->gradient = m->t->spec.dev->gradient(v->op);
    s->add = add;
    for (int i = 0; i < GRAPH_MAX_SRC; i++) {
        if (in[i] && (reads >> i & 1)) read_now(m, in[i]);
        if (!(wanted >> i & 1)) continue;
        value *root = root_of(in[i]);
        if (record_of(root)) s->dx[i] = -2, s->weight_grad[i] = grad_of_weight(m, root) + offset_of(in[i]) / 4;
        else s->dx[i] = 0;
    }
    if (reads & GRAD_READS_RESULT) read_now(m, v);
    m->f[v->id].grad_last = m->t->n_steps - 1;
}

/* grad_first of a value whose first contribution was planned for a step that inserted others before it. */
static void settle_first(maker *m)
{
    for (int i = 0; i < m->t->n_steps; i++) {
        tape_step *s = &m->t->steps[i];
        if (s->kind != TAPE_GRAD) continue;
        value *in[GRAPH_MAX_SRC];
        unsigned flow;
        grad_inputs(s->v, in, &flow);
        for (int k = 0; k < GRAPH_MAX_SRC; k++)
            if (s->dx[k] == 0 && !(s->add >> k & 1)) m->f[root_of(in[k])->id].grad_first = i;
    }
}

static void list_steps(maker *m)
{
    graph *g = m->g;
    value *root = root_of(m->t->spec.root);
    for (int i = 0; i < g->n_values; i++)
        if (m->f[i].used && has_run(g->values[i])) run_step(m, g->values[i]);
    add_step(m, TAPE_LOSS, m->t->spec.root);
    m->t->n_forward = m->t->n_steps;
    read_now(m, root);
    if (!m->f[root->id].needs) return;
    m->f[root->id].arrived = true;
    m->f[root->id].grad_first = m->t->n_steps - 1;
    for (int i = root->id; i >= 0 && !m->failed; i--) {
        value *v = g->values[i];
        if (m->f[i].arrived && has_run(v)) grad_step_of(m, v);
    }
    settle_first(m);
}

/* ---- places ---- */

static uint64_t result_bytes(const value *v) { return mem_padded((uint64_t)value_bytes(v)) + mem_padded(grad_saved(v)) + 64; }
static uint64_t grad_bytes(const value *v) { return mem_padded((uint64_t)value_bytes(v)) + 64; }

/* Frees what is read last in step i. Walks all values: a list by last step would save time that nobody waits for. */
typedef struct ending {
    int step;
    gap where;
} ending;

static int64_t *place_results(maker *m, gaps *free_space, ending *ends)
{
    tape *t = m->t;
    size_t n_ends = 0;
    for (int i = 0; i < t->n_steps; i++) {
        tape_step *s = &t->steps[i];
        facts *f = &m->f[s->v->id];
        if (s->kind == TAPE_RUN) {
            uint64_t bytes = result_bytes(s->v);
            s->at = (int64_t)gaps_take(free_space, bytes);
            ends[n_ends++] = (ending){ f->made[1] == i ? f->last[1] : f->last[0], { (uint64_t)s->at, bytes } };
        }
        /* gradients that begin here */
        value *fresh[GRAPH_MAX_SRC + 1];
        int n_fresh = 0;
        if (s->kind == TAPE_ZERO) fresh[n_fresh++] = s->v;
        if (s->kind == TAPE_LOSS && m->f[root_of(s->v)->id].arrived) fresh[n_fresh++] = root_of(s->v);
        if (s->kind == TAPE_GRAD) {
            value *in[GRAPH_MAX_SRC];
            unsigned flow;
            grad_inputs(s->v, in, &flow);
            for (int k = 0; k < GRAPH_MAX_SRC; k++)
                if (s->dx[k] == 0 && !(s->add >> k & 1)) fresh[n_fresh++] = root_of(in[k]);
        }
        for (int k = 0; k < n_fresh; k++) {
            uint64_t bytes = grad_bytes(fresh[k]);
            t->grad_at[fresh[k]->id] = (int64_t)gaps_take(free_space, bytes);
            ends[n_ends++] = (ending){ m->f[fresh[k]->id].grad_last, { (uint64_t)t->grad_at[fresh[k]->id], bytes } };
        }
        for (size_t e = 0; e < n_ends;) {
            if (ends[e].step > i) {
                e++;
                continue;
            }
            if (!gaps_give(free_space, ends[e].where)) m->failed = true;
            ends[e] = ends[--n_ends];
        }
    }
    return t->grad_at;
}

static int64_t place_of(const maker *m, const value *x)
{
    int64_t offset = offset_of(x);
    while (x->op == OP_VIEW) x = x->src[0];
    return m->t->grad_at[x->id] + offset;
}

static void place_gradients(maker *m)
{
    for (int i = 0; i < m->t->n_steps; i++) {
        tape_step *s = &m->t->steps[i];
        if (s->kind == TAPE_ZERO) s->at = m->t->grad_at[s->v->id];
        if (s->kind == TAPE_LOSS) s->at = m->f[root_of(s->v)->id].arrived ? place_of(m, s->v) : NEVER;
        if (s->kind != TAPE_GRAD) continue;
        value *in[GRAPH_MAX_SRC];
        unsigned flow;
        grad_inputs(s->v, in, &flow);
        s->dy = m->t->grad_at[s->v->id];
        for (int k = 0; k < GRAPH_MAX_SRC; k++)
            if (s->dx[k] == 0) s->dx[k] = place_of(m, in[k]);
    }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void measure(maker *m)
{
    tape *t = m->t;
    const device *dev = t->spec.dev;
    t->scratch_bytes = t->spec.loss_scratch, t->shared_bytes = t->spec.loss_shared;
    for (int i = 0; i < m->g->n_values; i++) {
        const value *v = m->g->values[i];
        if (!m->f[i].used) continue;
        if (v->op != OP_ATTENTION) t->scratch_bytes = larger(t->scratch_bytes, dev->scratch(v, t->spec.n_threads));
        t->scratch_bytes = larger(t->scratch_bytes, dev->grad_scratch(v, m->g->n_tokens));
        if (v->op != OP_ATTENTION) t->shared_bytes = larger(t->shared_bytes, dev->shared(v, t->spec.n_threads, 0));
        t->shared_bytes = larger(t->shared_bytes, dev->grad_shared(v));
    }
    t->scratch_bytes = mem_padded(t->scratch_bytes);
}

static loam_status make(maker *m, loam_error *err)
{
    size_t n = (size_t)m->g->n_values;
    m->f = mem_zalloc_array(n, sizeof *m->f);
    m->t->saved = mem_zalloc_array(n, sizeof *m->t->saved);
    m->t->grad_at = mem_zalloc_array(n, sizeof *m->t->grad_at);
    if (!m->f || !m->t->saved || !m->t->grad_at) return fail_nomem(err, "a training plan", n * sizeof *m->f);
    for (size_t i = 0; i < n; i++) {
        m->f[i].made[0] = m->f[i].made[1] = m->f[i].last[0] = m->f[i].last[1] = m->f[i].grad_last = NEVER;
        m->t->grad_at[i] = NEVER;
    }
    bind_values(m);
    mark_used(m);
    loam_status status = mark_needs(m, err);
    if (status != LOAM_OK) return status;
    choose_kept(m);
    list_steps(m);
    gaps space = { 0 };
    ending *ends = m->failed ? NULL : mem_alloc_array((size_t)m->t->n_steps * 2 + n, sizeof *ends);
    if (ends) place_results(m, &space, ends);
    else m->failed = true;
    if (!m->failed) place_gradients(m);
    m->t->arena_bytes = space.end;
    gaps_free(&space);
    mem_free(ends);
    measure(m);
    return m->failed ? fail_nomem(err, "a training plan", (uint64_t)m->t->n_steps * sizeof(tape_step)) : LOAM_OK;
}

loam_status tape_try(tape **out, graph *g, const tape_spec *spec, loam_error *err)
{
    *out = NULL;
    loam_status status = graph_check(g, err);
    if (status != LOAM_OK) return status;
    tape *t = mem_zalloc(sizeof *t);
    if (!t) return fail_nomem(err, "a training plan", sizeof *t);
    t->g = *g;
    t->spec = *spec;
    maker m = { .t = t, .g = &t->g };
    status = make(&m, err);
    mem_free(m.f);
    if (status == LOAM_OK) {
        *out = t;
        return LOAM_OK;
    }
    memset(&t->g, 0, sizeof t->g);
    tape_free(t);
    return status;
}

loam_status tape_new(tape **out, graph *g, const tape_spec *spec, loam_error *err)
{
    loam_status status = tape_try(out, g, spec, err);
    if (status != LOAM_OK) graph_free(g);
    else memset(g, 0, sizeof *g);
    return status;
}

void tape_free(tape *t)
{
    if (!t) return;
    graph_free(&t->g);
    mem_free(t->steps);
    mem_free(t->saved);
    mem_free(t->grad_at);
    mem_free(t);
}

/* ---- running ---- */

typedef struct tape_job {
    tape *t;
    plan_run run;
    int n_steps;
    bool backward;
} tape_job;

/* Where a result goes is set by the first thread before all meet: nobody reads that value in the step before. */
static void place_step(tape_job *j, const tape_step *s)
{
    if (s->kind != TAPE_RUN) return;
    s->v->buffer = s->at;
    if (grad_saved(s->v)) j->t->saved[s->v->id] = j->run.arena + s->at + mem_padded((uint64_t)value_bytes(s->v));
}

static float *in_arena(const tape_job *j, int64_t at) { return at < 0 ? NULL : (float *)(j->run.arena + at); }

static void take_gradient(tape_job *j, const tape_step *s, worker *w)
{
    grad_step g = { .v = s->v, .dy = in_arena(j, s->dy), .add = s->add, .saved = j->t->saved[s->v->id] };
    unsigned flow;
    grad_inputs(s->v, g.in, &flow);
    for (int i = 0; i < GRAPH_MAX_SRC; i++) g.dx[i] = s->dx[i] == -2 ? s->weight_grad[i] : in_arena(j, s->dx[i]);
    s->gradient(&g, w);
}

static void walk(void *arg, int ith, int nth)
{
    tape_job *j = arg;
    worker w = { .ith = ith, .nth = nth, .run = &j->run, .scratch = j->run.scratch + (size_t)ith * j->run.scratch_stride };
    for (int i = 0; i < j->n_steps; i++) {
        const tape_step *s = &j->t->steps[i];
        if (ith == 0) place_step(j, s);
        worker_barrier(&w);
        switch (s->kind) {
        case TAPE_RUN: s->run(&(step){ .v = s->v, .run = s->run, .split = SPLIT_TOKENS }, &w); break;
        case TAPE_LOSS:
            j->t->spec.loss(j->t->spec.user, &w, value_data(s->v, &w), j->backward ? in_arena(j, s->at) : NULL);
            break;
        case TAPE_ZERO: {
            range r = range_of(value_bytes(s->v), 64, ith, nth);
            memset(j->run.arena + s->at + r.first, 0, (size_t)(r.last - r.first));
            break;
        }
        case TAPE_GRAD: take_gradient(j, s, &w); break;
        }
    }
}

loam_status tape_run(tape *t, pool *threads, const tape_memory *m, const tape_input *in, bool backward)
{
    grad_view view = in->view;
    view.saved = t->saved;
    tape_job j = { .t = t, .n_steps = backward ? t->n_steps : t->n_forward, .backward = backward };
    j.run = (plan_run){
        .k = kernels_get(), .threads = threads, .n_threads = t->spec.n_threads, .arena = m->arena, .scratch = m->scratch,
        .scratch_stride = t->scratch_bytes, .shared = m->shared, .shared_bytes = t->shared_bytes, .grads = &view,
    };
    memcpy(j.run.inputs, in->inputs, sizeof j.run.inputs);
    return pool_run_n(threads, t->spec.n_threads, walk, &j);
}
