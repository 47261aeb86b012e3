/* run.c - executes a plan: every thread walks the steps, all meet at the barriers. Allocates nothing. */
#include "base/os.h"
#include "graph/plan.h"

void *value_data(const value *v, const worker *w)
{
    const plan_run *r = w->run;
    switch (v->op) {
    case OP_WEIGHT: return (void *)(uintptr_t)v->p.w->data;
    case OP_INPUT: return (void *)(uintptr_t)(v->p.in.bound ? v->p.in.bound->data : r->inputs[v->p.in.input]);
    case OP_VIEW: return (char *)value_data(v->src[0], w) + v->p.view.offset;
    default: break;
    }
    if (v->place) return (void *)(uintptr_t)v->place->data;
    if (v->replicated) return r->arena + v->buffer + (int64_t)w->ith * ((value_bytes(v) + 63) & ~(int64_t)63);
    return v->buffer >= 0 ? r->arena + v->buffer : r->outputs[-2 - v->buffer];
}

bool worker_stopped(worker *w)
{
    plan_run *r = w->run;
    if (w->ith == 0 && r->abort && !atomic_load_explicit(&r->stop, memory_order_relaxed) && r->abort(r->abort_user))
        atomic_store_explicit(&r->stop, 1, memory_order_relaxed);
    return atomic_load_explicit(&r->stop, memory_order_relaxed) != 0;
}

void worker_barrier(worker *w)
{
    if (w->nth > 1) pool_barrier(w->run->threads, w->ith);
}

/* One step that is looked at: all threads meet before and after it. */
static void run_observed(const step *s, worker *w)
{
    plan_run *r = w->run;
    worker_barrier(w);
    bool show = w->ith == 0 && !worker_stopped(w) && r->observe(r->observe_user, s->v, w, true, 0);
    uint64_t start = os_now_ns();
    if (s->split == SPLIT_OWN || !worker_stopped(w)) s->run(s, w);
    worker_barrier(w);
    if (show && !worker_stopped(w) && !r->observe(r->observe_user, s->v, w, false, os_now_ns() - start)) atomic_store(&r->stop, 1);
    worker_barrier(w);
}

/* An aborted run still passes all barriers, so that no thread is left waiting. */
static void walk(void *arg, int ith, int nth)
{
    plan_run *r = arg;
    worker w = { .ith = ith, .nth = nth, .run = r, .scratch = r->scratch + (size_t)ith * r->scratch_stride };
    for (int i = 0; i < r->p->n_steps; i++) {
        const step *s = &r->p->steps[i];
        if (r->observe) {
            run_observed(s, &w);
            continue;
        }
        if (s->barrier) worker_barrier(&w);
        if (s->split == SPLIT_OWN || !worker_stopped(&w)) s->run(s, &w);
    }
}

loam_status plan_execute(plan_run *r)
{
    atomic_store(&r->stop, 0);
    atomic_store(&r->bad_index, 0);
    loam_status status = pool_run_n(r->threads, r->n_threads, walk, r);
    if (status != LOAM_OK) return status;
    if (atomic_load(&r->bad_index)) return LOAM_E_ARG;
    return atomic_load(&r->stop) ? LOAM_E_ABORTED : LOAM_OK;
}
