/* cpu.c - the table of the CPU device. */
#include "device/cpu.h"
#include "device/grad.h"

static const run_fn runs[] = {
#define OP(NAME, least, most, shape, run, ...) run_##run,
#include "graph/op.def"
#undef OP
};

/* Sources and views need no code. */
void run_none(const step *s, worker *w)
{
    (void)s;
    (void)w;
}

part part_of(const step *s, const worker *w)
{
    const value *v = s->v;
    part p = { 0, v->ne[2], 0, row_values(v) };
    range r;
    if (s->split == SPLIT_COPY) return p;
    if (s->heads) {
        r = range_of(s->heads, 1, w->ith, w->nth);
        p.c0 = p.c1 / s->heads * r.first, p.c1 = p.c1 / s->heads * r.last;
    } else if (s->split == SPLIT_ROWS) {
        r = range_of(p.c1, ROW_UNIT, w->ith, w->nth);
        p.c0 = r.first, p.c1 = r.last;
    } else {
        r = range_of(p.t1, 1, w->ith, w->nth);
        p.t0 = r.first, p.t1 = r.last;
    }
    return p;
}

static run_fn kernel(op_kind op) { return op >= 0 && op < OP_COUNT ? runs[op] : NULL; }

static size_t scratch(const value *v, int n_threads)
{
    (void)n_threads;
    switch (v->op) {
    case OP_MATMUL:
    case OP_MATMUL_HEADS:
    case OP_EXPERTS: return mul_scratch(v->src[0]->ne[0]) + 64;
    case OP_KV_WRITE: return (size_t)max64(v->src[0]->ne[0], v->src[1]->ne[0]) * sizeof(float);
    case OP_ATTENTION: return cpu_attention_scratch(v);
    case OP_CONV: return (size_t)(v->src[1]->ne[0] * v->ne[0]) * sizeof(float);
    default: return 0;
    }
}

/* EXPERTS: rows of the step sorted by expert, and one count per expert. */
static size_t shared(const value *v, int n_threads, int64_t max_pages)
{
    (void)n_threads;
    if (v->op == OP_EXPERTS) return (size_t)(v->ne[1] * v->ne[2] + v->src[0]->ne[2] + 1) * sizeof(int32_t);
    if (v->op == OP_ATTENTION) return cpu_attention_shared(v, max_pages);
    return 0;
}

const device *device_cpu(void)
{
    static const device cpu = {
        "cpu", "CPU", kernel, scratch, shared, cpu_learn, cpu_gradient, cpu_grad_scratch, cpu_grad_shared,
    };
    return &cpu;
}
