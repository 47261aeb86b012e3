/* plan.c - see plan.h. */
#include "graph/plan.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "graph/gaps.h"

#define BUFFER_ALIGN 64
#define EXTERNAL(kind) (-2 - (int64_t)(kind)) /* value.buffer of an output that the context owns */

static const split_kind op_split[] = {
#define OP(NAME, least, most, shape, run, split, grad) SPLIT_##split,
#include "graph/op.def"
#undef OP
};

/* ---- partitions ---- */

range range_of(int64_t n, int64_t unit, int ith, int nth)
{
    int64_t units = (n + unit - 1) / unit;
    range r = { units * ith / nth * unit, units * (ith + 1) / nth * unit };
    if (r.first > n) r.first = n;
    if (r.last > n) r.last = n;
    return r;
}

/* Which part of a value a thread writes in a step. */
typedef struct signature {
    split_kind split;
    int64_t extent;
    int heads;              /* ROWS: in so many units, whatever their width */
} signature;

static bool agree(signature a, signature b)
{
    if (a.split != b.split || a.split == SPLIT_OWN || a.split == SPLIT_COPY || a.heads != b.heads) return false;
    return a.heads || a.extent == b.extent;
}

/* ---- buffers ---- */

typedef struct planner {
    graph *g;
    plan *p;
    value **roots;          /* by id: the value whose memory a value uses (views and in-place results) */
    int *phase;             /* by root id: phase that wrote it last, -1 never */
    signature *wrote;       /* by root id */
    int *read_phase;        /* by root id: phase that read it last */
    signature *read;        /* by root id; OWN when several partitions read it in that phase */
    gaps free;              /* now */
    gap *pending;           /* free after the next barrier */
    size_t n_pending, cap_pending;
    int now;                /* current phase */
    int n_threads;          /* most threads of a run */
} planner;

/* Bytes of one copy of a value. */
static uint64_t padded(const value *v) { return ((uint64_t)value_bytes(v) + BUFFER_ALIGN - 1) & ~(uint64_t)(BUFFER_ALIGN - 1); }

static bool is_output(const graph *g, const value *v, output_kind *kind)
{
    for (int i = 0; i < OUTPUT_COUNT; i++)
        if (g->outputs[i] == v) {
            *kind = (output_kind)i;
            return true;
        }
    return false;
}

/* ---- life times ---- */

static bool has_step(const value *v) { return op_split[v->op] != SPLIT_NONE; }

static bool is_product(op_kind op) { return op == OP_MATMUL || op == OP_MATMUL_HEADS || op == OP_EXPERTS; }

/* Marks the values that an output, the cache or a watcher needs; only those become steps. */
static void mark_used(graph *g)
{
    for (int i = 0; i < g->n_values; i++) g->values[i]->last_use = -1;
    for (int i = 0; i < OUTPUT_COUNT; i++)
        if (g->outputs[i]) g->outputs[i]->last_use = INT_MAX;
    for (int i = g->n_values - 1; i >= 0; i--) {
        value *v = g->values[i];
        bool shown = g->watched && is_product(v->op);
        if ((shown || op_has_effect(v->op)) && v->last_use < 0) v->last_use = v->id; /* an effect, not only a value */
        if (v->place && v->last_use < 0) v->last_use = v->id;
        if (v->last_use < 0) continue;
        value *floats = shown && v->src[1]->op == OP_ENCODE ? v->src[1]->src[0] : NULL;
        if (floats && floats->last_use < v->id) floats->last_use = v->id;
        for (int s = 0; s < GRAPH_MAX_SRC; s++)
            if (v->src[s] && v->src[s]->last_use < v->id) v->src[s]->last_use = v->id;
    }
    /* Views and tuples keep alive what they stand for. */
    for (int i = g->n_values - 1; i >= 0; i--) {
        value *v = g->values[i];
        if (v->op != OP_VIEW && v->op != OP_TUPLE) continue;
        for (int s = 0; s < GRAPH_MAX_SRC; s++)
            if (v->src[s] && v->last_use > v->src[s]->last_use) v->src[s]->last_use = v->last_use;
    }
}

/* ---- copies for every thread ----
 * With few tokens a norm, an encoding or a table of angles takes less time than a meeting of the threads: each thread then
 * makes the whole result for itself, and its readers need no barrier. */

static bool copied(const planner *pl, const value *v)
{
    output_kind kind;
    if (v->ne[2] > FEW_TOKENS || v->heads || is_output(pl->g, v, &kind) || v->place) return false;
    return v->op == OP_NORM || v->op == OP_ENCODE || v->op == OP_ROPE_TABLE;
}

static uint64_t buffer_bytes(const planner *pl, const value *v) { return v->replicated ? padded(v) * (uint64_t)pl->n_threads : padded(v); }

/* ---- barriers ---- */

static signature choose_split(const planner *pl, const value *v)
{
    if (v->replicated) return (signature){ SPLIT_COPY, 0, 0 };
    int64_t row = v->ne[0] * v->ne[1];
    signature tokens = { SPLIT_TOKENS, v->ne[2], 0 }, rows = { SPLIT_ROWS, row, v->heads };
    if (v->heads) return rows;
    switch (op_split[v->op]) {
    case SPLIT_TOKENS: return tokens;
    case SPLIT_ROWS: return rows;
    case SPLIT_ANY: break;
    default: return (signature){ SPLIT_OWN, 0, 0 };
    }
    const value *x = pl->roots[v->src[0]->id];
    bool whole = v->src[0]->op != OP_VIEW;
    if (x && !v->src[0]->recut && pl->phase[x->id] == pl->now && (agree(pl->wrote[x->id], tokens) || (whole && agree(pl->wrote[x->id], rows))))
        return pl->wrote[x->id];
    return v->ne[2] >= 8 ? tokens : rows;
}

/* Whether a step with this partition may read src without a barrier. */
static bool may_read(const planner *pl, const value *v, const value *src, signature sig)
{
    const value *root = pl->roots[src->id];
    if (!root || pl->phase[root->id] != pl->now || root->replicated) return true;
    if (src->recut || !agree(pl->wrote[root->id], sig)) return false;
    if (sig.heads) return v->heads && src->ne[0] * src->ne[1] == root->ne[0] * root->ne[1];
    if (sig.split == SPLIT_ROWS) return op_split[v->op] == SPLIT_ANY && src->op != OP_VIEW;
    return v->op != OP_SELECT;
}

static void note_read(planner *pl, const value *src, signature sig)
{
    for (int s = 0; s < GRAPH_MAX_SRC && src->op == OP_TUPLE; s++)
        if (src->src[s]) note_read(pl, src->src[s], sig);
    const value *root = pl->roots[src->id];
    if (!root) return;
    if (src->recut || (pl->read_phase[root->id] == pl->now && !agree(pl->read[root->id], sig))) sig.split = SPLIT_OWN;
    pl->read_phase[root->id] = pl->now;
    pl->read[root->id] = sig;
}

static bool meet(planner *pl)
{
    pl->now++;
    for (size_t i = 0; i < pl->n_pending; i++)
        if (!gaps_give(&pl->free, pl->pending[i])) return false;
    pl->n_pending = 0;
    return true;
}

/* ---- places ---- */

static bool in_place_op(op_kind op)
{
    return op_split[op] == SPLIT_ANY || op == OP_ROPE || op == OP_TEMPERATURE || op == OP_EXPERT_ADD || op == OP_EXPERT_SCALE;
}

/* The input whose memory the result may take over: it dies here and nobody else reads it in this phase otherwise. */
static value *reusable(const planner *pl, const value *v, signature sig)
{
    if (!in_place_op(v->op)) return NULL;
    for (int s = 0; s < 2; s++) {
        value *x = v->src[s];
        if (!x || x->op == OP_VIEW || x->op == OP_WEIGHT || x->op == OP_INPUT || x->last_use != v->id) continue;
        value *root = pl->roots[x->id];
        if (!root || root->buffer < 0 || root->replicated || v->replicated || root->last_use != v->id || value_bytes(x) != value_bytes(v) || x->type != v->type) continue;
        if (s == 1 && (v->op != OP_ADD && v->op != OP_MUL && v->op != OP_GATE)) continue;
        if (pl->read_phase[root->id] == pl->now && !agree(pl->read[root->id], sig)) continue;
        if (v->src[0] && v->src[1] && pl->roots[v->src[0]->id] == pl->roots[v->src[1]->id]) continue;
        return root;
    }
    return NULL;
}

static bool place(planner *pl, value *v, signature sig)
{
    output_kind kind;
    if (is_output(pl->g, v, &kind)) {
        v->buffer = EXTERNAL(kind);
        pl->roots[v->id] = v;
        return true;
    }
    if (v->place) {
        pl->roots[v->id] = v;
        return true;
    }
    value *old = reusable(pl, v, sig);
    if (old) {
        v->buffer = old->buffer;
        pl->roots[v->id] = old;
        old->last_use = v->last_use;
        return true;
    }
    pl->roots[v->id] = v;
    v->buffer = (int64_t)gaps_take(&pl->free, buffer_bytes(pl, v));
    return true;
}

/* Gives back the buffers of inputs x.. that die with step v. */
static bool release(planner *pl, const value *v, value *const src[GRAPH_MAX_SRC])
{
    for (int s = 0; s < GRAPH_MAX_SRC; s++) {
        if (!src[s]) continue;
        if (src[s]->op == OP_TUPLE && !release(pl, v, src[s]->src)) return false;
        value *root = pl->roots[src[s]->id];
        if (!root || root->buffer < 0 || root->last_use != v->id) continue;
        if (pl->roots[v->id] == root) continue;
        if (!mem_grow(&pl->pending, &pl->cap_pending, pl->n_pending + 1, sizeof *pl->pending, SIZE_MAX / sizeof *pl->pending)) return false;
        pl->pending[pl->n_pending++] = (gap){ (uint64_t)root->buffer, buffer_bytes(pl, root) };
        root->last_use = -1; /* once only, also when it is read through two inputs */
    }
    return true;
}

static loam_status add_step(planner *pl, value *v, loam_error *err)
{
    plan *p = pl->p;
    run_fn run = p->dev->kernel(v->op);
    if (!run) return fail(err, LOAM_E_UNSUPPORTED, "device %s cannot run %s (block %d)", p->dev->name, op_name(v->op), v->layer);
    v->replicated = copied(pl, v);
    signature sig = choose_split(pl, v);
    bool barrier = sig.split == SPLIT_OWN && p->n_steps > 0;
    for (int s = 0; s < GRAPH_MAX_SRC && !barrier; s++) barrier = v->src[s] && !may_read(pl, v, v->src[s], sig);
    if (barrier) {
        if (!meet(pl)) return fail_nomem(err, "a plan", pl->n_pending * sizeof(gap));
        sig = choose_split(pl, v);
        p->n_barriers++;
    }
    for (int s = 0; s < GRAPH_MAX_SRC; s++)
        if (v->src[s]) note_read(pl, v->src[s], sig);
    place(pl, v, sig);
    const value *root = pl->roots[v->id];
    pl->phase[root->id] = pl->now;
    pl->wrote[root->id] = sig;
    p->steps[p->n_steps++] = (step){ .v = v, .run = run, .split = sig.split, .heads = sig.heads, .barrier = barrier };
    return release(pl, v, v->src) ? LOAM_OK : fail_nomem(err, "a plan", sizeof(gap));
}

static loam_status make_steps(planner *pl, loam_error *err)
{
    graph *g = pl->g;
    size_t n = (size_t)g->n_values;
    pl->roots = mem_zalloc_array(n, sizeof *pl->roots);
    pl->phase = mem_alloc_array(n, sizeof *pl->phase);
    pl->wrote = mem_zalloc_array(n, sizeof *pl->wrote);
    pl->read_phase = mem_alloc_array(n, sizeof *pl->read_phase);
    pl->read = mem_zalloc_array(n, sizeof *pl->read);
    pl->p->steps = mem_zalloc_array(n, sizeof *pl->p->steps);
    if (!pl->roots || !pl->phase || !pl->wrote || !pl->read_phase || !pl->read || !pl->p->steps) return fail_nomem(err, "a plan", n * 64);
    for (size_t i = 0; i < n; i++) pl->phase[i] = pl->read_phase[i] = -1;
    mark_used(g);
    plan_mark_heads(g, pl->n_threads);
    for (int i = 0; i < g->n_values; i++) {
        value *v = g->values[i];
        if (v->last_use < 0) continue;
        if (v->op == OP_VIEW) pl->roots[v->id] = pl->roots[v->src[0]->id];
        if (!has_step(v)) continue;
        loam_status status = add_step(pl, v, err);
        if (status != LOAM_OK) return status;
    }
    pl->p->arena_bytes = pl->free.end;
    return LOAM_OK;
}

loam_status plan_try(plan **out, graph *g, const device *dev, int n_threads, loam_error *err)
{
    *out = NULL;
    loam_status status = graph_check(g, err);
    if (status != LOAM_OK) return status;
    plan *p = mem_zalloc(sizeof *p);
    if (!p) return fail_nomem(err, "a plan", sizeof *p);
    p->dev = dev;
    planner pl = { .g = g, .p = p, .n_threads = n_threads };
    status = make_steps(&pl, err);
    mem_free(pl.roots);
    mem_free(pl.phase);
    mem_free(pl.wrote);
    mem_free(pl.read_phase);
    mem_free(pl.read);
    gaps_free(&pl.free);
    mem_free(pl.pending);
    if (status != LOAM_OK) {
        mem_free(p->steps);
        mem_free(p);
        return status;
    }
    p->g = *g;
    memset(g, 0, sizeof *g);
    *out = p;
    return LOAM_OK;
}

loam_status plan_new(plan **out, graph *g, const device *dev, int n_threads, loam_error *err)
{
    loam_status status = plan_try(out, g, dev, n_threads, err);
    if (status != LOAM_OK) graph_free(g);
    return status;
}

uint64_t plan_bytes(const plan *p) { return p ? mem_size(p) + mem_size(p->steps) + graph_bytes(&p->g) : 0; }

void plan_free(plan *p)
{
    if (!p) return;
    graph_free(&p->g);
    mem_free(p->steps);
    mem_free(p);
}

void plan_scratch(const plan *p, int n_threads, int64_t max_pages, size_t *scratch, size_t *shared)
{
    *scratch = *shared = 0;
    for (int i = 0; i < p->n_steps; i++) {
        size_t a = p->dev->scratch(p->steps[i].v, n_threads), b = p->dev->shared(p->steps[i].v, n_threads, max_pages);
        if (a > *scratch) *scratch = a;
        if (b > *shared) *shared = b;
    }
    *scratch = (*scratch + 63) & ~(size_t)63;
}
