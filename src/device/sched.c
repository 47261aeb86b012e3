/* sched.c - see sched.h. */
#include "device/sched.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "graph/gaps.h"

typedef struct builder {
    sched_plan *p;
    const graph *g;
    bool *used;                    /* [n_values] */
    value **clone;                 /* [n_values] in the split that is being built */
    int *split_of;                 /* [n_values] */
    graph part;                    /* of that split */
    int split;
    loam_error *err;
    loam_status status;
} builder;

static bool is_source(const value *v) { return v->op == OP_INPUT || v->op == OP_WEIGHT; }
static bool computes(const value *v) { return !is_source(v) && v->op != OP_VIEW && v->op != OP_TUPLE; }
static int domain_of(const sched_plan *p, int d) { return p->rules.set->at[d].domain; }

static int output_of(const graph *g, const value *v)
{
    for (int i = 0; i < OUTPUT_COUNT; i++)
        if (g->outputs[i] == v) return i;
    return -1;
}

/* ---- which device ---- */

static void mark(builder *b)
{
    const graph *g = b->g;
    for (int i = g->n_values - 1; i >= 0; i--) {
        const value *v = g->values[i];
        if (output_of(g, v) >= 0 || v->place || op_has_effect(v->op)) b->used[i] = true;
        for (int s = 0; s < GRAPH_MAX_SRC && b->used[i]; s++)
            if (v->src[s]) b->used[v->src[s]->id] = true;
    }
}

static const weight *weight_of(const value *v)
{
    for (int s = 0; s < GRAPH_MAX_SRC; s++)
        if (v->src[s] && v->src[s]->op == OP_WEIGHT) return v->src[s]->p.w;
    return NULL;
}

static int computed_input(const sched_plan *p, const value *v)
{
    for (int s = 0; s < GRAPH_MAX_SRC; s++) {
        const value *x = v->src[s];
        while (x && x->op == OP_VIEW) x = x->src[0];
        if (x && p->device_of[x->id] >= 0) return p->device_of[x->id];
    }
    return -1;
}

static int wish(const sched_plan *p, const value *v)
{
    const loam_devices *set = p->rules.set;
    if (v->device >= 0 && v->device < set->n) return v->device;
    for (int i = 0; i < set->n; i++)
        if (set->at[i].kind == LOAM_DEVICE_ACCELERATOR && device_worth(&set->at[i], v)) return i;
    const weight *w = weight_of(v);
    bool product = v->op == OP_MATMUL || v->op == OP_MATMUL_HEADS || v->op == OP_EXPERTS || v->op == OP_EMBED;
    if (w && w->steers && w->device > 0 && p->rules.op_offload)
        for (int i = 0; i < w->device && i < set->n; i++)
            if (device_worth(&set->at[i], v)) return i;
    if (w && w->steers && product && w->device < set->n) return w->device;
    int d = p->rules.place ? p->rules.place(p->rules.user, v) : -1;
    if (d >= 0 && d < set->n) return d;
    if (w && w->steers && w->device < set->n) return w->device;
    d = computed_input(p, v);
    return d >= 0 && set->at[d].kind != LOAM_DEVICE_ACCELERATOR ? d : d >= 0 ? set->at[d].domain : 0;
}

static loam_status assign(builder *b)
{
    sched_plan *p = b->p;
    const loam_devices *set = p->rules.set;
    for (int i = 0; i < b->g->n_values; i++) {
        const value *v = b->g->values[i];
        p->device_of[i] = -1;
        if (!b->used[i] || !computes(v)) continue;
        int d = wish(p, v);
        for (int k = 0; k < set->n && !device_supports(&set->at[d], v); k++)
            if (device_supports(&set->at[k], v)) d = k;
        if (!device_supports(&set->at[d], v)) return fail(b->err, LOAM_E_UNSUPPORTED, "no device has code for %s", op_name(v->op));
        p->device_of[i] = d;
    }
    return LOAM_OK;
}

/* ---- splits ---- */

static void failed(builder *b, const char *what) { b->status = fail_nomem(b->err, what, sizeof(sched_place)); }

static sched_place *find(const sched_plan *p, const void *what, int domain)
{
    for (size_t i = p->n_places; i-- > 0;)
        if (p->places[i]->what == what && p->places[i]->domain == domain) return p->places[i];
    return NULL;
}

static sched_place *add_place(builder *b, const void *what, int domain, uint64_t bytes)
{
    sched_plan *p = b->p;
    sched_place *x = mem_zalloc(sizeof *x);
    if (!x || !mem_grow(&p->places, &p->cap_places, p->n_places + 1, sizeof *p->places, INT32_MAX)) {
        mem_free(x);
        failed(b, "a place of a schedule");
        return NULL;
    }
    *x = (sched_place){ .what = what, .domain = domain, .bytes = bytes, .first = b->split, .last = b->split, .mine = true, .output = -1 };
    return p->places[p->n_places++] = x;
}

/* x is brought to `domain` before this split; a place there, or NULL. */
static sched_place *bring(builder *b, const void *what, const weight *from, int from_domain, uint64_t bytes, int domain)
{
    sched_place *x = add_place(b, what, domain, bytes);
    sched_split *s = &b->p->splits[b->split];
    if (!x || !mem_grow(&s->copies, &s->cap_copies, s->n_copies + 1, sizeof *s->copies, INT32_MAX)) {
        failed(b, "a copy of a schedule");
        return NULL;
    }
    s->copies[s->n_copies++] = (sched_copy){ from, &x->w, bytes, domain, from_domain };
    b->p->n_copies++;
    return x;
}

static value *adopt(builder *b, const value *v)
{
    value *c = graph_adopt(&b->part, v);
    if (!c) failed(b, "a part of a graph");
    else b->clone[v->id] = c;
    return c;
}

/* A computed value of an earlier split, as an input of this one. */
static value *import(builder *b, const value *v)
{
    int domain = domain_of(b->p, b->p->splits[b->split].device), made_in = domain_of(b->p, b->p->device_of[v->id]);
    sched_place *made = find(b->p, v, made_in), *here = find(b->p, v, domain);
    if (!made) return NULL; /* cannot be: the places of an earlier split are noted when it is built */
    if (!here) here = bring(b, v, &made->w, made_in, (uint64_t)value_bytes(v), domain);
    value *c = here ? adopt(b, v) : NULL;
    if (!c) return NULL;
    made->last = made->last > b->split ? made->last : b->split;
    here->last = b->split;
    here->w.name = v->name;
    c->op = OP_INPUT;
    memset(&c->p, 0, sizeof c->p);
    memset(c->src, 0, sizeof c->src);
    c->p.in.bound = &here->w;
    c->place = NULL;
    return c;
}

/* Weights that lie in another domain are fetched. */
static const weight *near(builder *b, const weight *w, const value *v)
{
    const loam_devices *set = b->p->rules.set;
    int domain = domain_of(b->p, b->p->splits[b->split].device), lies = w->device < set->n ? set->at[w->device].domain : 0;
    if (domain == lies || !w->far) return w;
    sched_place *x = find(b->p, w, domain);
    if (!x) x = bring(b, w, w, lies, (uint64_t)v->nb[3] * (uint64_t)v->ne[3], domain);
    if (!x) return NULL;
    const void *data = x->w.data;
    x->w = *w;
    x->w.data = data;
    x->last = b->split;
    return &x->w;
}

static value *clone_of(builder *b, const value *v)
{
    if (b->status != LOAM_OK || b->clone[v->id]) return b->clone[v->id];
    if (computes(v) && b->split_of[v->id] != b->split) return import(b, v);
    value *src[GRAPH_MAX_SRC] = { 0 };
    for (int s = 0; s < GRAPH_MAX_SRC; s++)
        if (v->src[s] && !(src[s] = clone_of(b, v->src[s]))) return NULL;
    value *c = adopt(b, v);
    if (!c) return NULL;
    memcpy(c->src, src, sizeof src);
    if (v->op == OP_WEIGHT && !(c->p.w = near(b, v->p.w, v))) return NULL;
    if (v->op == OP_INPUT && v->p.in.bound && !(c->p.in.bound = near(b, v->p.in.bound, v))) return NULL;
    return c;
}

/* Whether a later split reads v, through whatever views. */
static void mark_readers(const builder *b, bool *crosses)
{
    for (int i = 0; i < b->g->n_values; i++) {
        const value *v = b->g->values[i];
        if (!b->used[i] || !computes(v)) continue;
        for (int s = 0; s < GRAPH_MAX_SRC; s++) {
            const value *stack[64];
            int n = 0;
            if (v->src[s]) stack[n++] = v->src[s];
            while (n > 0) {
                const value *x = stack[--n];
                if (computes(x) && b->split_of[x->id] != b->split_of[i]) crosses[x->id] = true;
                for (int k = 0; k < GRAPH_MAX_SRC && (x->op == OP_VIEW || x->op == OP_TUPLE) && n < 64; k++)
                    if (x->src[k]) stack[n++] = x->src[k];
            }
        }
    }
}

/* Values with a place: those that other splits read, and outputs. */
static void place_result(builder *b, const value *v, value *c, bool crosses)
{
    int output = output_of(b->g, v);
    if (output >= 0) b->part.outputs[output] = c;
    if (!v->place && !crosses) return;
    sched_place *x = add_place(b, v, domain_of(b->p, b->p->splits[b->split].device), (uint64_t)value_bytes(v));
    if (!x) return;
    x->output = output;
    x->mine = output < 0;
    if (v->place) x->last = INT_MAX;
    if (output < 0) c->place = &x->w;
}

static loam_status build_split(builder *b, const bool *crosses)
{
    sched_split *s = &b->p->splits[b->split];
    const graph *g = b->g;
    memset(b->clone, 0, (size_t)g->n_values * sizeof *b->clone);
    graph_init(&b->part, g->n_tokens, g->n_outputs);
    for (int i = 0; i < g->n_values && b->status == LOAM_OK; i++) {
        const value *v = g->values[i];
        if (!b->used[i] || !computes(v) || b->split_of[i] != b->split) continue;
        value *c = clone_of(b, v);
        if (c) place_result(b, v, c, crosses[i]);
    }
    if (b->status == LOAM_OK) b->status = plan_try(&s->p, &b->part, b->p->rules.set->at[s->device].code, b->p->rules.n_threads, b->err);
    graph_free(&b->part);
    return b->status;
}

static loam_status cut(builder *b)
{
    sched_plan *p = b->p;
    int now = -1;
    for (int i = 0; i < b->g->n_values; i++) {
        if (p->device_of[i] < 0) continue;
        if (p->device_of[i] != now) {
            if (!mem_grow(&p->splits, &p->cap_splits, (size_t)p->n_splits + 1, sizeof *p->splits, INT32_MAX))
                return fail_nomem(b->err, "a schedule", sizeof *p->splits);
            now = p->device_of[i];
            p->splits[p->n_splits++] = (sched_split){ .device = now };
        }
        b->split_of[i] = p->n_splits - 1;
    }
    return LOAM_OK;
}

/* ---- memory ---- */

/* Gives every place an address by its life time, and each device its arena behind. */
static loam_status lay_out(sched_plan *p, loam_error *err)
{
    const loam_devices *set = p->rules.set;
    for (int d = 0; d < set->n; d++) {
        gaps free = { 0 };
        uint64_t arena = 0;
        bool good = true;
        for (int s = 0; s < p->n_splits && good; s++) {
            for (size_t i = 0; i < p->n_places; i++) {
                sched_place *x = p->places[i];
                if (x->domain == d && x->mine && x->first == s) x->at = gaps_take(&free, mem_padded(x->bytes ? x->bytes : 1));
            }
            for (size_t i = 0; i < p->n_places && good; i++) {
                sched_place *x = p->places[i];
                if (x->domain == d && x->mine && x->last == s) good = gaps_give(&free, (gap){ x->at, mem_padded(x->bytes ? x->bytes : 1) });
            }
            if (set->at[p->splits[s].device].domain == d && p->splits[s].p->arena_bytes > arena) arena = p->splits[s].p->arena_bytes;
        }
        p->arena_at[d] = mem_padded(free.end);
        p->need[d] = mem_padded(free.end) + mem_padded(arena);
        gaps_free(&free);
        if (!good) return fail_nomem(err, "a schedule", sizeof(gap));
    }
    for (int s = 0; s < p->n_splits; s++) {
        size_t scratch, shared;
        int d = p->splits[s].device;
        plan_scratch(p->splits[s].p, p->rules.n_threads, p->rules.max_pages, &scratch, &shared);
        if (scratch > p->scratch_stride[d]) p->scratch_stride[d] = scratch;
        if (shared > p->shared_bytes[d]) p->shared_bytes[d] = shared;
    }
    return LOAM_OK;
}

loam_status sched_plan_take(sched_plan *p, loam_error *err)
{
    loam_status status = LOAM_OK;
    for (int d = 0; d < p->rules.set->n && status == LOAM_OK; d++) {
        loam_device *dev = &p->rules.set->at[d];
        size_t scratch = p->scratch_stride[d] * (size_t)p->rules.n_threads;
        if (p->need[d] && !p->memory[d]) status = device_take(dev, p->need[d], "intermediate results", &p->memory[d], err);
        if (status == LOAM_OK && scratch && !p->scratch[d]) status = device_take(dev, scratch, "scratch of the threads", &p->scratch[d], err);
        if (status == LOAM_OK && p->shared_bytes[d] && !p->shared[d]) status = device_take(dev, p->shared_bytes[d], "shared scratch", &p->shared[d], err);
    }
    for (size_t i = 0; i < p->n_places && status == LOAM_OK; i++)
        if (p->places[i]->mine) p->places[i]->w.data = p->memory[p->places[i]->domain] + p->places[i]->at;
    return status;
}

loam_status sched_plan_new(sched_plan **out, const graph *g, const sched_rules *rules, loam_error *err)
{
    *out = NULL;
    loam_status status = graph_check(g, err);
    if (status != LOAM_OK) return status;
    size_t n = (size_t)g->n_values + 1;
    sched_plan *p = mem_zalloc(sizeof *p);
    if (!p) return fail_nomem(err, "a schedule", sizeof *p);
    p->rules = *rules;
    p->n_values = g->n_values;
    p->device_of = mem_alloc_array(n, sizeof *p->device_of);
    builder b = { .p = p, .g = g, .err = err };
    b.used = mem_zalloc_array(n, sizeof *b.used);
    b.clone = mem_zalloc_array(n, sizeof *b.clone);
    b.split_of = mem_zalloc_array(n, sizeof *b.split_of);
    bool *crosses = mem_zalloc_array(n, sizeof *crosses);
    if (!p->device_of || !b.used || !b.clone || !b.split_of || !crosses) status = fail_nomem(err, "a schedule", n * 24);
    if (status == LOAM_OK) {
        mark(&b);
        status = assign(&b);
    }
    if (status == LOAM_OK) status = cut(&b);
    if (status == LOAM_OK) mark_readers(&b, crosses);
    for (b.split = 0; b.split < p->n_splits && status == LOAM_OK; b.split++) status = build_split(&b, crosses);
    if (status == LOAM_OK) status = lay_out(p, err);
    mem_free(b.used);
    mem_free(b.clone);
    mem_free(b.split_of);
    mem_free(crosses);
    if (status != LOAM_OK) {
        sched_plan_free(p);
        return status;
    }
    *out = p;
    return LOAM_OK;
}

void sched_plan_free(sched_plan *p)
{
    if (!p) return;
    for (int i = 0; i < p->n_splits; i++) {
        plan_free(p->splits[i].p);
        mem_free(p->splits[i].copies);
    }
    for (size_t i = 0; i < p->n_places; i++) mem_free(p->places[i]);
    for (int d = 0; d < p->rules.set->n; d++) {
        loam_device *dev = &p->rules.set->at[d];
        device_give(dev, p->memory[d], p->need[d]);
        device_give(dev, p->scratch[d], p->scratch_stride[d] * (size_t)p->rules.n_threads);
        device_give(dev, p->shared[d], p->shared_bytes[d]);
    }
    mem_free(p->places);
    mem_free(p->splits);
    mem_free(p->device_of);
    mem_free(p);
}

/* ---- runs ---- */

loam_status sched_run_split(sched_plan *p, int i, plan_run *run)
{
    const sched_split *s = &p->splits[i];
    int d = s->device, domain = domain_of(p, d);
    for (size_t k = 0; k < s->n_copies; k++)
        memcpy((void *)(uintptr_t)s->copies[k].to->data, s->copies[k].from->data, (size_t)s->copies[k].bytes);
    run->p = s->p;
    run->arena = p->memory[domain] ? p->memory[domain] + p->arena_at[domain] : NULL;
    run->scratch = p->scratch[d];
    run->scratch_stride = p->scratch_stride[d];
    run->shared = p->shared[d];
    run->shared_bytes = p->shared_bytes[d];
    return plan_execute(run);
}

loam_status sched_run(sched_plan *p, plan_run *run)
{
    loam_status status = LOAM_OK;
    for (size_t i = 0; i < p->n_places; i++)
        if (p->places[i]->output >= 0) p->places[i]->w.data = run->outputs[p->places[i]->output];
    for (int i = 0; i < p->n_splits && status == LOAM_OK; i++) status = sched_run_split(p, i, run);
    return status;
}

const void *sched_data(const sched_plan *p, const value *v)
{
    const sched_place *x = v->id < p->n_values && p->device_of[v->id] >= 0 ? find(p, v, domain_of(p, p->device_of[v->id])) : NULL;
    return x ? x->w.data : NULL;
}
