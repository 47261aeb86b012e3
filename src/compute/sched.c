/* sched.c - the scheduler of loam/device.h: graphs of tensors on a set of devices.
 *
 * A lane is everything that one computation needs: a schedule with memory of its own, inputs, keys and states. Without
 * `parallel` there is one. With it, computation n takes lane n mod 4, and each device works off the splits of all lanes in
 * the order in which they were queued; a split waits for the one before it of its own lane:
 *
 *     CPU0   | run 0 split 0 | run 1 split 0 | run 2 split 0 |
 *     CPU1                   | run 0 split 1 | run 1 split 1 | run 2 split 1 |
 */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "compute/compute.h"
#include "device/queue.h"
#include "device/sched.h"
#include "graph/gaps.h"

#define TRACE_KEPT 4096

/* An input of a lane: where its data is read from in a computation. */
typedef struct lane_input {
    const weight *leaf;
    weight w;
    uint8_t *copy;                 /* of a computation that was queued; NULL: not yet */
    uint64_t bytes;
} lane_input;

typedef struct lane {
    loam_sched *s;
    sched_plan *p;
    lane_input **inputs;           /* addresses stay */
    size_t n_inputs, cap_inputs;
    uint8_t *side;
    uint64_t side_bytes;
    kv_view view;
    plan_run runs[LIMIT_DEVICES];  /* one a device: they may work at the same time for several lanes */
    loam_event *split_done;        /* happens after every split, in order */
    uint32_t before;               /* times it had happened before the computation */
    _Atomic int status;            /* the first failure of the computation */
    const loam_tensor *y;
    void *out;
    int run;
} lane;

typedef struct split_job {
    lane *l;
    int split;
} split_job;

struct loam_sched {
    loam_devices *set;
    loam_sched_params p;
    pool *threads[LIMIT_DEVICES];
    loam_queue *queues[LIMIT_DEVICES];
    loam_graph *g;
    int n_values;                  /* of the graph when it was allocated */
    lane lanes[LOAM_SCHED_COPIES];
    int n_lanes, last;             /* last: lane of the last computation, -1 none */
    int n_runs;
    split_job *jobs;               /* [n_lanes][n_splits] */
    loam_sched_trace trace[TRACE_KEPT];
    _Atomic size_t n_trace;
    loam_status failure;           /* of computations since the last synchronize */
};

loam_sched_params loam_sched_defaults(void)
{
    return (loam_sched_params){ .struct_size = sizeof(loam_sched_params), .graph_size = 65536, .op_offload = true };
}

/* ---- life ---- */

static void free_lane(lane *l)
{
    sched_plan_free(l->p);
    for (size_t i = 0; i < l->n_inputs; i++) {
        os_release(l->inputs[i]->copy, (size_t)l->inputs[i]->bytes);
        mem_free(l->inputs[i]);
    }
    mem_free(l->inputs);
    os_release(l->side, (size_t)l->side_bytes);
    loam_event_free(l->split_done);
    memset(l, 0, sizeof *l);
}

static void wait_all(loam_sched *s)
{
    for (int d = 0; d < s->set->n; d++) loam_queue_synchronize(s->queues[d]);
}

static void drop(loam_sched *s)
{
    wait_all(s);
    for (int i = 0; i < s->n_lanes; i++) free_lane(&s->lanes[i]);
    mem_free(s->jobs);
    s->jobs = NULL;
    s->n_lanes = 0;
    s->last = -1;
    s->g = NULL;
}

void loam_sched_free(loam_sched *s)
{
    if (!s) return;
    drop(s);
    for (int d = 0; d < s->set->n; d++) {
        loam_queue_free(s->queues[d]);
        pool_free(s->threads[d]);
    }
    mem_free(s);
}

static loam_status settle(loam_sched *s, const loam_sched_params *given, loam_error *err)
{
    s->p = loam_sched_defaults();
    if (given) {
        if (given->struct_size < sizeof s->p.struct_size || given->struct_size > 4096)
            return fail(err, LOAM_E_ARG, "scheduler: struct_size %zu; start from loam_sched_defaults()", given->struct_size);
        memcpy(&s->p, given, given->struct_size < sizeof s->p ? given->struct_size : sizeof s->p);
    }
    if (s->p.graph_size < 1) return fail(err, LOAM_E_ARG, "graph_size: %d", s->p.graph_size);
    if (s->p.n_threads == 0) s->p.n_threads = s->p.pool ? pool_threads(s->p.pool) : os_cpu_count();
    if (s->p.n_threads < 1 || s->p.n_threads > LIMIT_THREADS)
        return fail(err, LOAM_E_ARG, "n_threads: %d is not within 1 .. %d", s->p.n_threads, LIMIT_THREADS);
    if (s->p.pool && s->p.n_threads > pool_threads(s->p.pool)) s->p.n_threads = pool_threads(s->p.pool);
    return LOAM_OK;
}

loam_status loam_sched_new(loam_sched **out, loam_devices *set, const loam_sched_params *params, loam_error *err)
{
    if (!out || !set) return fail(err, LOAM_E_ARG, "loam_sched_new: %s is NULL", out ? "the set" : "out");
    *out = NULL;
    loam_sched *s = mem_zalloc(sizeof *s);
    if (!s) return fail_nomem(err, "a scheduler", sizeof *s);
    s->set = set;
    s->last = -1;
    loam_status status = settle(s, params, err);
    for (int d = 0; d < set->n && status == LOAM_OK && !s->p.pool && s->p.n_threads > 1; d++) status = pool_new(&s->threads[d], s->p.n_threads, err);
    for (int d = 0; d < set->n && status == LOAM_OK; d++) status = loam_queue_new(&s->queues[d], &set->at[d], err);
    if (status != LOAM_OK) {
        loam_sched_free(s);
        return status;
    }
    *out = s;
    return LOAM_OK;
}

/* ---- a graph gets its places ---- */

loam_status loam_sched_pin(loam_sched *s, loam_tensor *x, int device_, loam_error *err)
{
    if (!s || !x) return fail(err, LOAM_E_ARG, "loam_sched_pin: %s is NULL", s ? "the tensor" : "the scheduler");
    if (device_ < -1 || device_ >= s->set->n) return fail(err, LOAM_E_ARG, "there is no device %d", device_);
    int64_t offset;
    value *v = x->v ? compute_memory(x->v, &offset) : NULL;
    if (!v || v->op == OP_INPUT) return fail(err, LOAM_E_ARG, "%s: nothing computes it", loam_tensor_name(x));
    v->device = device_;
    return LOAM_OK;
}

/* The lane's own record of a leaf. */
static lane_input *input_of(lane *l, const weight *w)
{
    for (size_t i = 0; i < l->n_inputs; i++)
        if (l->inputs[i]->leaf == w) return l->inputs[i];
    lane_input *x = mem_zalloc(sizeof *x);
    if (!x || !mem_grow(&l->inputs, &l->cap_inputs, l->n_inputs + 1, sizeof *l->inputs, INT32_MAX)) {
        mem_free(x);
        return NULL;
    }
    x->leaf = w;
    x->w = *w;
    x->bytes = w->row_bytes * (uint64_t)(w->ne[1] * w->ne[2] * w->ne[3]);
    return l->inputs[l->n_inputs++] = x;
}

static bool is_place(const sched_plan *p, const weight *w)
{
    for (size_t i = 0; i < p->n_places; i++)
        if (&p->places[i]->w == w) return true;
    return false;
}

/* Inputs that are no places of the schedule and lie in no buffer are read through the lane. */
static bool redirect(lane *l)
{
    for (int s = 0; s < l->p->n_splits; s++) {
        graph *g = &l->p->splits[s].p->g;
        for (int i = 0; i < g->n_values; i++) {
            value *v = g->values[i];
            const weight **w = v->op == OP_WEIGHT ? &v->p.w : v->op == OP_INPUT && v->p.in.bound ? &v->p.in.bound : NULL;
            if (!w || (*w)->far || is_place(l->p, *w)) continue;
            lane_input *x = input_of(l, *w);
            if (!x) return false;
            *w = &x->w;
        }
    }
    return true;
}

static loam_status make_lane(loam_sched *s, lane *l, loam_graph *g, loam_error *err)
{
    sched_rules rules = { .set = s->set, .n_threads = s->p.n_threads, .op_offload = s->p.op_offload, .max_pages = compute_most_pages(g) };
    l->s = s;
    loam_status status = sched_plan_new(&l->p, compute_graph(g), &rules, err);
    if (status == LOAM_OK && !redirect(l)) status = fail_nomem(err, "inputs of a schedule", sizeof(lane_input));
    if (status == LOAM_OK) status = sched_plan_take(l->p, err);
    if (status == LOAM_OK) status = loam_event_new(&l->split_done, &s->set->at[0], err);
    if (status != LOAM_OK || !g->n_sides) return status;
    uint64_t bytes = compute_lay_sides(g, NULL, NULL);
    l->side = os_reserve((size_t)bytes);
    l->side_bytes = bytes;
    return l->side ? LOAM_OK : fail_nomem(err, "keys, values and states", bytes);
}

loam_status loam_sched_alloc(loam_sched *s, loam_graph *g, loam_error *err)
{
    if (!s || !g) return fail(err, LOAM_E_ARG, "loam_sched_alloc: %s is NULL", s ? "the graph" : "the scheduler");
    loam_status status = compute_check_graph(g, err);
    if (status != LOAM_OK) return status;
    int n = compute_graph(g)->n_values;
    if (n > s->p.graph_size) return fail(err, LOAM_E_ARG, "the graph has %d values, the scheduler is for %d", n, s->p.graph_size);
    drop(s);
    int n_lanes = s->p.parallel ? LOAM_SCHED_COPIES : 1;
    for (s->n_lanes = 0; s->n_lanes < n_lanes && status == LOAM_OK; s->n_lanes++) status = make_lane(s, &s->lanes[s->n_lanes], g, err);
    size_t n_splits = status == LOAM_OK ? (size_t)s->lanes[0].p->n_splits : 0;
    if (status == LOAM_OK && !(s->jobs = mem_zalloc_array((size_t)n_lanes * n_splits + 1, sizeof *s->jobs)))
        status = fail_nomem(err, "jobs of a scheduler", n_splits * sizeof *s->jobs);
    if (status != LOAM_OK) {
        drop(s);
        return status;
    }
    s->g = g;
    s->n_values = n;
    return LOAM_OK;
}

/* Buffers are made to fit: a worst case that fits now will fit then, and its memory is given back at once. */
loam_status loam_sched_reserve(loam_sched *s, loam_graph *g, loam_error *err)
{
    loam_status status = loam_sched_alloc(s, g, err);
    if (status == LOAM_OK) drop(s);
    return status;
}

void loam_sched_reset(loam_sched *s)
{
    if (!s) return;
    graph *g = s->g ? compute_graph(s->g) : NULL;
    for (int i = 0; g && i < g->n_values; i++) g->values[i]->device = -1;
    drop(s);
}

/* ---- computations ---- */


static bool watch(void *user, const value *v, worker *w, bool ask, uint64_t ns)
{
    loam_sched *s = user;
    const loam_tensor *x = compute_tensor_of(s->g, compute_graph(s->g)->values[v->uid]);
    if (!x) return false;
    loam_data d = { .type = x->type, .data = ask ? NULL : value_data(v, w) };
    memcpy(d.ne, x->ne, sizeof d.ne);
    memcpy(d.nb, x->nb, sizeof d.nb);
    return s->p.observe(s->p.observe_user, x, &d, ns, ask);
}

static plan_run *run_of(lane *l, int d)
{
    loam_sched *s = l->s;
    plan_run *r = &l->runs[d];
    *r = (plan_run){
        .k = kernels_get(), .threads = s->p.pool ? s->p.pool : s->threads[d], .n_threads = s->p.n_threads, .kv = &l->view,
        .abort = s->p.abort, .abort_user = s->p.abort_user, .observe = s->p.observe ? watch : NULL, .observe_user = s,
    };
    if (r->threads && r->n_threads > pool_threads(r->threads)) r->n_threads = pool_threads(r->threads);
    return r;
}

static void note(loam_sched *s, loam_sched_trace t)
{
    size_t i = atomic_fetch_add(&s->n_trace, 1);
    if (i < TRACE_KEPT) s->trace[i] = t;
}

static void run_one(lane *l, int split)
{
    int d = l->p->splits[split].device;
    uint64_t begin = os_now_ns();
    if (atomic_load(&l->status) == LOAM_OK) {
        loam_status status = sched_run_split(l->p, split, run_of(l, d));
        if (status != LOAM_OK) atomic_store(&l->status, status);
    }
    note(l->s, (loam_sched_trace){ d, split, l->run, begin, os_now_ns() });
}

static const void *data_of(const lane *l, const loam_tensor *x)
{
    int64_t offset = 0;
    const value *v = x->v ? compute_memory(x->v, &offset) : NULL;
    const void *base = !v ? x->data->w.data : v->op == OP_INPUT ? v->p.in.bound->data : sched_data(l->p, v);
    return base ? (const char *)base + offset + x->offset : NULL;
}

static void run_job(void *arg)
{
    split_job *j = arg;
    lane *l = j->l;
    event_wait(l->split_done, l->before + (uint32_t)j->split);
    run_one(l, j->split);
    if (j->split == l->p->n_splits - 1 && l->out && atomic_load(&l->status) == LOAM_OK) compute_gather(l->y, data_of(l, l->y), l->out);
    event_happen(l->split_done);
}

/* Inputs of a computation: read where they are bound, or copied. */
static loam_status take_inputs(lane *l, bool copies, loam_error *err)
{
    for (size_t i = 0; i < l->n_inputs; i++) {
        lane_input *x = l->inputs[i];
        if (!x->leaf->data) return fail(err, LOAM_E_ARG, "%s has no data (loam_tensor_bind)", x->leaf->name);
        x->w.data = x->leaf->data;
        if (!copies) continue;
        if (!x->copy && !(x->copy = os_reserve((size_t)x->bytes))) return fail_nomem(err, "a copy of an input", x->bytes);
        memcpy(x->copy, x->leaf->data, (size_t)x->bytes);
        x->w.data = x->copy;
    }
    if (l->s->g->n_sides) compute_lay_sides(l->s->g, l->side, &l->view);
    return LOAM_OK;
}

static loam_status check_ready(loam_sched *s, loam_error *err)
{
    if (!s || !s->g) return fail(err, LOAM_E_ARG, s ? "no graph was allocated (loam_sched_alloc)" : "the scheduler is NULL");
    if (compute_graph(s->g)->n_values != s->n_values) return fail(err, LOAM_E_ARG, "the graph has grown since loam_sched_alloc");
    return LOAM_OK;
}

static loam_status explain(loam_status status, loam_error *err)
{
    switch (status) {
    case LOAM_OK: return LOAM_OK;
    case LOAM_E_ABORTED: return fail(err, status, "a callback stopped the computation");
    case LOAM_E_ARG: return fail(err, status, "an index is out of the range of the rows");
    default: return fail(err, status, "the computation failed");
    }
}

loam_status loam_sched_compute(loam_sched *s, loam_error *err)
{
    loam_status status = check_ready(s, err);
    if (status != LOAM_OK) return status;
    wait_all(s);
    lane *l = &s->lanes[0];
    status = take_inputs(l, false, err);
    if (status != LOAM_OK) return status;
    atomic_store(&l->status, LOAM_OK);
    l->run = s->n_runs++;
    for (int i = 0; i < l->p->n_splits; i++) run_one(l, i);
    s->last = 0;
    return explain((loam_status)atomic_load(&l->status), err);
}

/* Waits for the last computation of a lane and keeps its failure. */
static void finish_lane(loam_sched *s, lane *l)
{
    loam_event_synchronize(l->split_done);
    loam_status status = (loam_status)atomic_exchange(&l->status, LOAM_OK);
    if (s->failure == LOAM_OK) s->failure = status;
}

loam_status loam_sched_compute_async(loam_sched *s, const loam_tensor *y, void *out, size_t bytes, loam_error *err)
{
    loam_status status = check_ready(s, err);
    if (status != LOAM_OK) return status;
    if (out && (!y || y->g != s->g || bytes != loam_tensor_bytes(y)))
        return fail(err, LOAM_E_ARG, "the output is of another graph, or has not %zu bytes", bytes);
    lane *l = &s->lanes[s->n_runs % s->n_lanes];
    finish_lane(s, l);
    if (out && !data_of(l, y)) return fail(err, LOAM_E_ARG, "%s is no output (loam_graph_output)", loam_tensor_name(y));
    status = take_inputs(l, true, err);
    if (status != LOAM_OK) return status;
    l->y = y, l->out = out;
    l->run = s->n_runs++;
    split_job *jobs = s->jobs + (size_t)(l - s->lanes) * (size_t)l->p->n_splits;
    for (int i = 0; i < l->p->n_splits; i++) {
        uint32_t number = event_expect(l->split_done);
        if (i == 0) l->before = number - 1;
        jobs[i] = (split_job){ l, i };
    }
    for (int i = 0; i < l->p->n_splits; i++) queue_add(s->queues[l->p->splits[i].device], (queue_job){ run_job, &jobs[i] });
    s->last = (int)(l - s->lanes);
    return LOAM_OK;
}

loam_status loam_sched_synchronize(loam_sched *s, loam_error *err)
{
    if (!s) return fail(err, LOAM_E_ARG, "the scheduler is NULL");
    wait_all(s);
    for (int i = 0; i < s->n_lanes; i++) finish_lane(s, &s->lanes[i]);
    loam_status status = s->failure;
    s->failure = LOAM_OK;
    return explain(status, err);
}

loam_status loam_sched_get(loam_sched *s, const loam_tensor *x, void *out, size_t bytes, loam_error *err)
{
    loam_status status = check_ready(s, err);
    if (status != LOAM_OK) return status;
    if (!x || !out || x->g != s->g || bytes != loam_tensor_bytes(x))
        return fail(err, LOAM_E_ARG, "the tensor or the room for it is NULL, it is of another graph, or has not %zu bytes", bytes);
    wait_all(s);
    const void *data = s->last >= 0 ? data_of(&s->lanes[s->last], x) : NULL;
    if (!data) return fail(err, LOAM_E_ARG, "%s is no output that was computed", loam_tensor_name(x));
    compute_gather(x, data, out);
    return LOAM_OK;
}

/* ---- queries ---- */

static const sched_plan *plan_of(const loam_sched *s) { return s && s->n_lanes ? s->lanes[0].p : NULL; }

int loam_sched_n_splits(const loam_sched *s) { return plan_of(s) ? plan_of(s)->n_splits : 0; }
int loam_sched_n_copies(const loam_sched *s) { return plan_of(s) ? plan_of(s)->n_copies : 0; }
int loam_sched_n_pipeline_copies(const loam_sched *s) { return s && s->p.parallel ? LOAM_SCHED_COPIES : 1; }

int loam_sched_device_of(const loam_sched *s, const loam_tensor *x)
{
    const sched_plan *p = plan_of(s);
    int64_t offset;
    const value *v = p && x && x->g == s->g && x->v ? compute_memory(x->v, &offset) : NULL;
    return v && v->id < p->n_values ? p->device_of[v->id] : -1;
}

uint64_t loam_sched_buffer_bytes(const loam_sched *s, int device_)
{
    const sched_plan *p = plan_of(s);
    return p && device_ >= 0 && device_ < s->set->n ? p->need[device_] * (uint64_t)s->n_lanes : 0;
}

bool loam_sched_split(const loam_sched *s, int i, loam_split *out)
{
    const sched_plan *p = plan_of(s);
    if (!p || !out || i < 0 || i >= p->n_splits) return false;
    const sched_split *x = &p->splits[i];
    *out = (loam_split){ x->device, x->p->n_steps, (int)x->n_copies, x->p->n_steps ? op_name(x->p->steps[0].v->op) : "" };
    return true;
}

size_t loam_sched_take_trace(loam_sched *s, loam_sched_trace *out, size_t cap)
{
    if (!s) return 0;
    wait_all(s);
    size_t n = atomic_exchange(&s->n_trace, 0);
    if (n > TRACE_KEPT) n = TRACE_KEPT;
    if (out) memcpy(out, s->trace, (n < cap ? n : cap) * sizeof *out);
    return n;
}

/* ---- devices and tensors ---- */

static const value *computed(const loam_tensor *x)
{
    int64_t offset;
    const value *v = x && x->v ? compute_memory(x->v, &offset) : NULL;
    return v && v->op != OP_INPUT ? v : NULL;
}

bool loam_device_supports(const loam_device *d, const loam_tensor *x) { return d && computed(x) && device_supports(d, computed(x)); }
bool loam_device_worth_offloading(const loam_device *d, const loam_tensor *x) { return d && computed(x) && device_worth(d, computed(x)); }

loam_status loam_tensor_bind_buffer(loam_tensor *x, loam_buffer *buffer, uint64_t offset, loam_error *err)
{
    if (!x || !buffer) return fail(err, LOAM_E_ARG, "loam_tensor_bind_buffer: %s is NULL", x ? "the buffer" : "the tensor");
    if (!x->data || x->is_view) return fail(err, LOAM_E_ARG, "%s: only tensors of loam_tensor_new have data of the caller", loam_tensor_name(x));
    loam_status status = loam_buffer_init_tensor(buffer, x, offset, err);
    if (status != LOAM_OK) return status;
    x->data->w.data = (const char *)loam_buffer_base(buffer) + offset;
    x->data->w.device = loam_buffer_type_device(loam_buffer_get_type(buffer))->index;
    x->data->w.far = true;
    x->data->w.steers = loam_buffer_get_usage(buffer) == LOAM_USAGE_WEIGHTS;
    return LOAM_OK;
}

/* ---- the allocator ---- */

struct loam_places {
    gaps free;
    size_t alignment;
};

loam_status loam_places_new(loam_places **out, size_t alignment, loam_error *err)
{
    if (!out || alignment == 0 || (alignment & (alignment - 1)) || alignment > LIMIT_ALIGNMENT)
        return fail(err, LOAM_E_ARG, "loam_places_new: out is NULL, or %zu is no power of two up to %u", alignment, LIMIT_ALIGNMENT);
    loam_places *p = *out = mem_zalloc(sizeof *p);
    if (!p) return fail_nomem(err, "an allocator of places", sizeof *p);
    p->alignment = alignment;
    return LOAM_OK;
}

void loam_places_free(loam_places *p)
{
    if (!p) return;
    gaps_free(&p->free);
    mem_free(p);
}

loam_status loam_places_take(loam_places *p, uint64_t bytes, uint64_t *at, loam_error *err)
{
    uint64_t end, padded;
    if (!p || !at) return fail(err, LOAM_E_ARG, "loam_places_take: %s is NULL", p ? "at" : "the allocator");
    if (!pad_ok(bytes ? bytes : 1, p->alignment, &padded) || !add_ok(p->free.end, padded, &end))
        return fail(err, LOAM_E_ARG, "%llu bytes are more than can be counted", (unsigned long long)bytes);
    *at = gaps_take(&p->free, padded);
    return LOAM_OK;
}

loam_status loam_places_give(loam_places *p, uint64_t at, uint64_t bytes, loam_error *err)
{
    uint64_t end, padded;
    if (!p || !pad_ok(bytes ? bytes : 1, p->alignment, &padded) || at % p->alignment || !add_ok(at, padded, &end) || end > p->free.end)
        return fail(err, LOAM_E_ARG, "no place of %llu bytes at %llu was taken", (unsigned long long)bytes, (unsigned long long)at);
    for (size_t i = 0; i < p->free.n; i++)
        if (at < p->free.items[i].at + p->free.items[i].bytes && p->free.items[i].at < end)
            return fail(err, LOAM_E_ARG, "the place of %llu bytes at %llu was given back before", (unsigned long long)bytes, (unsigned long long)at);
    return gaps_give(&p->free, (gap){ at, padded }) ? LOAM_OK : fail_nomem(err, "an allocator of places", sizeof(gap));
}

uint64_t loam_places_size(const loam_places *p) { return p ? p->free.end : 0; }
