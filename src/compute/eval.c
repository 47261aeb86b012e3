/* eval.c - evaluation: a plan, buffers, one run; outputs.
 *
 * Outputs have places of their own, so that they stay until the next evaluation. Attention keeps its keys and values in pages
 * as a context does, recurrent operations have one state that begins as zeros: both are made anew for every evaluation. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "compute/compute.h"
#include "device/cpu.h"

loam_eval_params loam_eval_defaults(void) { return (loam_eval_params){ .struct_size = sizeof(loam_eval_params) }; }

/* ---- outputs ---- */

/* The result or source whose memory v looks at; *offset in it. */
value *compute_memory(value *v, int64_t *offset)
{
    for (*offset = 0; v->op == OP_VIEW; v = v->src[0]) *offset += v->p.view.offset;
    return v;
}

loam_tensor *loam_graph_output(loam_graph *g, loam_tensor *x)
{
    if (!compute_check(g, x, "output", "the tensor")) return NULL;
    int64_t offset;
    value *root = compute_root(g, x), *v = root ? compute_memory(root, &offset) : NULL;
    g->wanted = true;
    if (!v || v->op == OP_INPUT || v->place) return x;
    compute_open(g);
    weight *place = compute_own(g, sizeof *place);
    if (!place || !mem_grow(&g->outputs, &g->cap_outputs, g->n_outputs + 1, sizeof *g->outputs, INT32_MAX)) {
        graph_fail(compute_graph(g), LOAM_E_NOMEM, "out of memory: outputs of a graph");
        return NULL;
    }
    g->outputs[g->n_outputs++] = (kept){ .v = v, .place = place };
    v->place = place;
    return x;
}

bool compute_data(const loam_tensor *x, loam_data *out)
{
    int64_t offset = 0;
    const void *base = NULL;
    if (x->v) {
        const value *v = compute_memory(x->v, &offset);
        if (v->op == OP_INPUT) base = v->p.in.bound->data;
        else if (v->place && x->g->evaluated) base = v->place->data;
    } else {
        base = x->data->w.data;
    }
    if (!base) return false;
    *out = (loam_data){ .type = x->type, .data = (char *)(uintptr_t)base + offset + x->offset };
    memcpy(out->ne, x->ne, sizeof out->ne);
    memcpy(out->nb, x->nb, sizeof out->nb);
    return true;
}

bool loam_tensor_data(const loam_tensor *x, loam_data *out) { return x && out && compute_data(x, out); }

void compute_gather(const loam_tensor *x, const void *from, void *out)
{
    if (compute_contiguous(x)) {
        memcpy(out, from, loam_tensor_bytes(x));
        return;
    }
    size_t unit = (size_t)dtype_table[x->type].bytes;
    int64_t units = x->ne[0] / dtype_table[x->type].values;
    char *to = out;
    for (int64_t l = 0; l < x->ne[3]; l++)
        for (int64_t k = 0; k < x->ne[2]; k++)
            for (int64_t j = 0; j < x->ne[1]; j++)
                for (int64_t i = 0; i < units; i++, to += unit)
                    memcpy(to, (const char *)from + i * x->nb[0] + j * x->nb[1] + k * x->nb[2] + l * x->nb[3], unit);
}

loam_status loam_tensor_get(const loam_tensor *x, void *out, size_t bytes, loam_error *err)
{
    loam_data d;
    if (!x || !out) return fail(err, LOAM_E_ARG, "loam_tensor_get: %s is NULL", x ? "out" : "the tensor");
    if (bytes != loam_tensor_bytes(x)) return fail(err, LOAM_E_ARG, "%s: room for %zu bytes, it has %zu", loam_tensor_name(x), bytes, loam_tensor_bytes(x));
    if (!compute_data(x, &d)) return fail(err, LOAM_E_ARG, "%s is no output that was evaluated", loam_tensor_name(x));
    compute_gather(x, d.data, out);
    return LOAM_OK;
}

/* ---- buffers ---- */

static loam_status renew(uint8_t **p, uint64_t *have, uint64_t need, const char *what, loam_error *err)
{
    if (need <= *have) return LOAM_OK;
    uint64_t left = os_memory_available();
    uint8_t *fresh = need <= left && need <= SIZE_MAX / 2 ? os_reserve((size_t)need) : NULL;
    if (!fresh) return fail_nomem(err, what, need);
    os_release(*p, (size_t)*have);
    *p = fresh;
    *have = need;
    return LOAM_OK;
}

static uint64_t place_outputs(loam_graph *g)
{
    uint64_t end = 0;
    for (size_t i = 0; i < g->n_outputs; i++) {
        g->outputs[i].at = end;
        end += mem_padded((uint64_t)value_bytes(g->outputs[i].v));
    }
    return end;
}

/* ---- keys, values and states ---- */

typedef struct cutter {
    uint8_t *base;         /* NULL: only measures */
    uint64_t at;
} cutter;

static void *cut(cutter *c, uint64_t bytes)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += mem_padded(bytes);
    return p;
}

static int64_t pages_of(const side *s) { return (s->n_k + PAGE_SLOTS - 1) / PAGE_SLOTS; }

/* Query i stands at position start + i; keys end where queries end. */
static void lay_pages(cutter *c, const side *s, kv_layer *layer, kv_group *group, int64_t start)
{
    int64_t n = pages_of(s);
    uint8_t *pages = cut(c, (uint64_t)n * s->shape.page_bytes);
    kv_run *run = cut(c, sizeof *run);
    int32_t *list = cut(c, (uint64_t)n * 4), *slots = cut(c, (uint64_t)s->n_k * 4), *first = cut(c, (uint64_t)(s->n_k + 1) * 4);
    int32_t *pos = cut(c, (uint64_t)n * PAGE_SLOTS * 4);
    if (!c->base) return;
    memset(pages, 0, (size_t)((uint64_t)n * s->shape.page_bytes));
    for (int64_t i = 0; i < n; i++) list[i] = (int32_t)i;
    for (int64_t i = 0; i < s->n_k; i++) slots[i] = first[i] = (int32_t)i;
    first[s->n_k] = (int32_t)s->n_k;
    for (int64_t i = 0; i < n * PAGE_SLOTS; i++) pos[i] = i < s->n_k ? (int32_t)(start + i - (s->n_k - s->n_q)) : -1;
    *run = (kv_run){ .first = 0, .count = (int)s->n_q, .pages = list, .n_pages = (int)n };
    *layer = (kv_layer){ .pages = pages, .shape = s->shape };
    *group = (kv_group){ .runs = run, .n_runs = 1, .slots = slots, .first_slot = first, .slot_pos = pos };
}

static void lay_state(cutter *c, const side *s, state_layer *layer)
{
    float *r = cut(c, (uint64_t)s->r_row * 4), *state = cut(c, (uint64_t)s->s_row * 4);
    if (c->base) *layer = (state_layer){ .r = r, .s = state, .r_row = s->r_row, .s_row = s->s_row };
}

/* Everything that the operations of a context find in its memory; measures where base is NULL. */
uint64_t compute_lay_sides(const loam_graph *g, uint8_t *base, kv_view *view)
{
    cutter c = { .base = base };
    size_t n = g->n_sides;
    int64_t start = 0, most = 0, recurrent = 0;
    for (size_t i = 0; i < n; i++) {
        const side *s = &g->sides[i];
        if (s->n_k - s->n_q > start) start = s->n_k - s->n_q;
        if (s->n_q > most) most = s->n_q;
        if (s->v->op != OP_ATTENTION) recurrent = s->n_q;
    }
    kv_layer *layers = cut(&c, n * sizeof *layers);
    kv_group *groups = cut(&c, n * sizeof *groups);
    state_layer *states = cut(&c, n * sizeof *states);
    state_run *run = cut(&c, sizeof *run);
    int32_t *pos = cut(&c, (uint64_t)most * 4), *tokens = cut(&c, (uint64_t)most * 4);
    for (size_t i = 0; i < n; i++) {
        if (g->sides[i].v->op == OP_ATTENTION) lay_pages(&c, &g->sides[i], base ? &layers[i] : NULL, base ? &groups[i] : NULL, start);
        else lay_state(&c, &g->sides[i], base ? &states[i] : NULL);
        if (base) layers[i].group = (int)i;
    }
    if (!base) return c.at;
    for (int64_t i = 0; i < most; i++) pos[i] = (int32_t)(start + i), tokens[i] = (int32_t)i;
    *run = (state_run){ .tokens = tokens, .count = (int)recurrent, .from = -1, .to = 0 };
    *view = (kv_view){ .layers = layers, .groups = groups, .pos = pos, .states = states, .state_runs = run, .n_state_runs = 1 };
    return c.at;
}

int64_t compute_most_pages(const loam_graph *g)
{
    int64_t n = 1;
    for (size_t i = 0; i < g->n_sides; i++)
        if (pages_of(&g->sides[i]) > n) n = pages_of(&g->sides[i]);
    return n;
}

/* ---- plan and run ---- */

loam_status compute_check_graph(loam_graph *g, loam_error *err)
{
    loam_status status = loam_graph_check(g, err);
    if (status != LOAM_OK) return status;
    return g->wanted ? LOAM_OK : fail(err, LOAM_E_ARG, "the graph has no output (loam_graph_output)");
}

static loam_status prepare(loam_graph *g, int n_threads, loam_error *err)
{
    loam_status status = compute_check_graph(g, err);
    if (status != LOAM_OK) return status;
    if (g->p && g->plan_threads < n_threads) compute_open(g);
    if (!g->p) status = plan_try(&g->p, &g->g, device_cpu(), n_threads, err);
    else return LOAM_OK;
    if (status == LOAM_OK) g->plan_threads = n_threads;
    return status;
}

const loam_tensor *compute_tensor_of(const loam_graph *g, const value *v)
{
    for (const loam_tensor *x = g->tensors; x; x = x->next)
        if (x->v == v && !x->is_view) return x;
    return NULL;
}

/* Every source that is read has data. */
static loam_status check_bound(loam_graph *g, loam_error *err)
{
    const graph *all = compute_graph(g);
    for (int i = 0; i < all->n_values; i++) {
        const value *v = all->values[i];
        const weight *w = v->op == OP_WEIGHT ? v->p.w : v->op == OP_INPUT ? v->p.in.bound : NULL;
        if (w && v->last_use >= 0 && !w->data) return fail(err, LOAM_E_ARG, "%s has no data (loam_tensor_bind)", w->name);
    }
    return LOAM_OK;
}

typedef struct watcher {
    const loam_graph *g;
    const loam_eval_params *p;
} watcher;

static bool watch(void *user, const value *v, worker *w, bool ask, uint64_t ns)
{
    watcher *a = user;
    const loam_tensor *x = compute_tensor_of(a->g, v);
    if (!x) return false; /* an operation that Loam put in: asked about, not shown */
    loam_data d = { .type = x->type, .data = ask ? NULL : value_data(v, w) };
    memcpy(d.ne, x->ne, sizeof d.ne);
    memcpy(d.nb, x->nb, sizeof d.nb);
    return a->p->observe(a->p->observe_user, x, &d, ns, ask);
}

static loam_status settle(const loam_eval_params *given, loam_eval_params *p, loam_error *err)
{
    *p = loam_eval_defaults();
    if (given) {
        if (given->struct_size < sizeof p->struct_size || given->struct_size > 4096)
            return fail(err, LOAM_E_ARG, "evaluation: struct_size %zu; start from loam_eval_defaults()", given->struct_size);
        memcpy(p, given, given->struct_size < sizeof *p ? given->struct_size : sizeof *p);
    }
    if (p->n_threads == 0) p->n_threads = p->pool ? pool_threads(p->pool) : os_cpu_count();
    if (p->n_threads < 1 || p->n_threads > LIMIT_THREADS) return fail(err, LOAM_E_ARG, "n_threads: %d is not within 1 .. %d", p->n_threads, LIMIT_THREADS);
    if (p->pool && p->n_threads > pool_threads(p->pool)) p->n_threads = pool_threads(p->pool);
    return LOAM_OK;
}

/* The graph's own threads, at least n. */
static loam_status threads_for(loam_graph *g, int n, loam_error *err)
{
    if (n == 1 || (g->threads && pool_threads(g->threads) >= n)) return LOAM_OK;
    pool *fresh;
    loam_status status = pool_new(&fresh, n, err);
    if (status != LOAM_OK) return status;
    pool_free(g->threads);
    g->threads = fresh;
    return LOAM_OK;
}

static loam_status make_buffers(loam_graph *g, int n, size_t *scratch, loam_error *err)
{
    size_t shared;
    plan_scratch(g->p, n, compute_most_pages(g), scratch, &shared);
    uint64_t outputs = place_outputs(g);
    loam_status status = renew(&g->output_data, &g->output_bytes, outputs, "outputs of a graph", err);
    if (status == LOAM_OK) status = renew(&g->arena, &g->arena_bytes, g->p->arena_bytes, "results of a graph", err);
    if (status == LOAM_OK) status = renew(&g->scratch, &g->scratch_bytes, *scratch * (uint64_t)n, "scratch of the threads", err);
    if (status == LOAM_OK) status = renew(&g->shared, &g->shared_bytes, shared, "shared scratch", err);
    if (status == LOAM_OK && g->n_sides) status = renew(&g->side_data, &g->side_bytes, compute_lay_sides(g, NULL, NULL), "keys, values and states", err);
    for (size_t i = 0; i < g->n_outputs && status == LOAM_OK; i++) g->outputs[i].place->data = g->output_data + g->outputs[i].at;
    return status;
}

static loam_status explain(const loam_graph *g, loam_status status, int bad_index, loam_error *err)
{
    if (status == LOAM_E_ABORTED) return fail(err, status, "a callback stopped the evaluation");
    if (status != LOAM_E_ARG || !bad_index) return fail(err, status, "the threads are in use");
    const value *v = g->p->g.values[bad_index - 1];
    const loam_tensor *x = compute_tensor_of(g, v);
    return fail(err, LOAM_E_ARG, "%s: an index is out of the range of the rows", x ? loam_tensor_name(x) : op_name(v->op));
}

loam_status loam_graph_eval(loam_graph *g, const loam_eval_params *params, loam_error *err)
{
    loam_eval_params p;
    size_t scratch;
    if (!g) return fail(err, LOAM_E_ARG, "the graph is NULL");
    loam_status status = settle(params, &p, err);
    if (status == LOAM_OK && !p.pool) status = threads_for(g, p.n_threads, err);
    if (status == LOAM_OK && !p.pool && g->threads && p.n_threads > pool_threads(g->threads)) p.n_threads = pool_threads(g->threads);
    if (status == LOAM_OK) status = prepare(g, p.n_threads, err);
    if (status == LOAM_OK) status = check_bound(g, err);
    if (status == LOAM_OK) g->evaluated = false;
    if (status == LOAM_OK) status = make_buffers(g, p.n_threads, &scratch, err);
    if (status != LOAM_OK) return status;
    if (g->n_sides) compute_lay_sides(g, g->side_data, &g->view);
    watcher a = { g, &p };
    plan_run run = {
        .p = g->p, .k = kernels_get(), .threads = p.pool ? p.pool : g->threads, .n_threads = p.n_threads, .arena = g->arena,
        .scratch = g->scratch, .scratch_stride = scratch, .shared = g->shared, .shared_bytes = (size_t)g->shared_bytes,
        .kv = &g->view, .abort = p.abort, .abort_user = p.abort_user, .observe = p.observe ? watch : NULL, .observe_user = &a,
    };
    status = plan_execute(&run);
    if (status != LOAM_OK) return explain(g, status, atomic_load(&run.bad_index), err);
    g->evaluated = true;
    return LOAM_OK;
}

loam_status loam_graph_measure(loam_graph *g, int32_t n_threads, loam_graph_use *out, loam_error *err)
{
    if (!g || !out) return fail(err, LOAM_E_ARG, "loam_graph_measure: %s is NULL", g ? "out" : "the graph");
    if (n_threads < 1 || n_threads > LIMIT_THREADS) return fail(err, LOAM_E_ARG, "n_threads: %d is not within 1 .. %d", n_threads, LIMIT_THREADS);
    loam_status status = prepare(g, n_threads, err);
    if (status != LOAM_OK) return status;
    size_t scratch, shared;
    plan_scratch(g->p, n_threads, compute_most_pages(g), &scratch, &shared);
    *out = (loam_graph_use){
        .arena = g->p->arena_bytes, .scratch = scratch * (uint64_t)n_threads + shared + (g->n_sides ? compute_lay_sides(g, NULL, NULL) : 0),
        .outputs = place_outputs(g), .n_tensors = g->n_tensors, .n_steps = g->p->n_steps, .n_barriers = g->p->n_barriers,
    };
    return LOAM_OK;
}
