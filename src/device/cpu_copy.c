/* cpu_copy.c - copies between layouts and element types, and operations of the caller. */
#include <math.h>
#include <string.h>

#include "device/grad.h"

#define CHUNK 256 /* values converted at once: a multiple of every block */

/* ---- copies ---- */

/* n values of `size` bytes that lie `stride` apart, one after another. */
static void gather(char *to, const char *from, int64_t n, int64_t stride, size_t size)
{
    if (stride == (int64_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * size, from + i * stride, size);
}

static double integer_at(const char *p, loam_type type)
{
    int8_t a;
    int16_t b;
    int32_t c;
    int64_t d;
    double e;
    switch (type) {
    case LOAM_I8: memcpy(&a, p, 1); return a;
    case LOAM_I16: memcpy(&b, p, 2); return b;
    case LOAM_I32: memcpy(&c, p, 4); return c;
    case LOAM_I64: memcpy(&d, p, 8); return (double)d;
    default: memcpy(&e, p, 8); return e;
    }
}

static bool by_value(loam_type t) { return t == LOAM_I8 || t == LOAM_I16 || t == LOAM_I32 || t == LOAM_I64 || t == LOAM_F64; }

static int32_t to_integer(double x)
{
    if (isnan(x)) return 0;
    return x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)nearbyint(x);
}

/* n <= CHUNK values, whole blocks, from dense memory of one type to another. */
static void convert(const kernels *k, const void *from, loam_type type, void *to, loam_type wanted, int64_t n)
{
    float x[CHUNK];
    if (by_value(type)) {
        size_t size = (size_t)dtype_table[type].bytes;
        if (wanted == LOAM_I32) {
            for (int64_t i = 0; i < n; i++) {
                int32_t v = to_integer(integer_at((const char *)from + (size_t)i * size, type));
                memcpy((char *)to + i * 4, &v, 4);
            }
            return;
        }
        for (int64_t i = 0; i < n; i++) x[i] = (float)integer_at((const char *)from + (size_t)i * size, type);
    } else {
        k->decode[type](from, x, n);
    }
    if (wanted != LOAM_I32) {
        k->encode[wanted](x, to, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t v = to_integer(x[i]);
        memcpy((char *)to + i * 4, &v, 4);
    }
}

static void copy_row(const kernels *k, const copy_params *p, const char *from, char *to, loam_type wanted)
{
    const dtype_info *in = &dtype_table[p->type], *out = &dtype_table[wanted];
    if (p->type == wanted && in->values == 1) {
        gather(to, from, p->ne[0], p->nb[0], (size_t)in->bytes);
        return;
    }
    if (p->type == wanted) {
        gather(to, from, p->ne[0] / in->values, p->nb[0], (size_t)in->bytes);
        return;
    }
    char dense[CHUNK * 8];
    for (int64_t i = 0; i < p->ne[0]; i += CHUNK) {
        int64_t n = min64(CHUNK, p->ne[0] - i), blocks = n / in->values;
        const char *x = from + i / in->values * p->nb[0];
        bool is_dense = p->nb[0] == in->bytes;
        if (!is_dense) gather(dense, x, blocks, p->nb[0], (size_t)in->bytes);
        convert(k, is_dense ? x : dense, p->type, to + i / out->values * out->bytes, wanted, n);
    }
}

/* Byte in the source of row r of the copy. */
static int64_t row_offset(const copy_params *p, int64_t r)
{
    int64_t i = r % p->ne[1], j = r / p->ne[1] % p->ne[2], k = r / p->ne[1] / p->ne[2];
    return p->offset + i * p->nb[1] + j * p->nb[2] + k * p->nb[3];
}

void run_copy(const step *s, worker *w)
{
    const value *v = s->v;
    const copy_params *p = &v->p.copy;
    const char *from = value_data(v->src[0], w);
    char *to = value_data(v, w);
    range r = range_of(p->ne[1] * p->ne[2] * p->ne[3], 1, w->ith, w->nth);
    for (int64_t i = r.first; i < r.last; i++) copy_row(w->run->k, p, from + row_offset(p, i), to + i * v->nb[1], v->type);
}

/* Values that were repeated get the sum of what their copies got, in order: one thread. */
void grad_copy(const grad_step *g, worker *w)
{
    const copy_params *p = &g->v->p.copy;
    if (w->ith != 0) return;
    char *dx = (char *)g->dx[0];
    if (!grad_adds(g, 0)) memset(dx, 0, (size_t)value_bytes(g->in[0]));
    for (int64_t r = 0; r < p->ne[1] * p->ne[2] * p->ne[3]; r++) {
        const float *dy = g->dy + r * p->ne[0];
        char *to = dx + row_offset(p, r);
        for (int64_t i = 0; i < p->ne[0]; i++) *(float *)(to + i * p->nb[0]) += dy[i];
    }
}

/* ---- operations of the caller ---- */

/* Fills in[n ..] from the sources of v; returns their number. */
static int place_inputs(const value *v, const custom_op *op, loam_data *in, int n, const worker *w)
{
    for (int s = 0; s < GRAPH_MAX_SRC && n < op->n_in; s++) {
        const value *x = v->src[s];
        if (x && x->op == OP_TUPLE) {
            n = place_inputs(x, op, in, n, w);
        } else if (x) {
            in[n] = op->in[n];
            in[n].data = (char *)value_data(x, w) + op->offset[n];
            n++;
        }
    }
    return n;
}

/* What an operation in place finds in its result. */
static void copy_first(const value *v, const loam_data *in, char *to, const worker *w)
{
    copy_params p = { .type = in->type };
    memcpy(p.ne, in->ne, sizeof p.ne);
    memcpy(p.nb, in->nb, sizeof p.nb);
    range r = range_of(p.ne[1] * p.ne[2] * p.ne[3], 1, w->ith, w->nth);
    for (int64_t i = r.first; i < r.last; i++)
        copy_row(w->run->k, &p, (const char *)in->data + row_offset(&p, i), to + i * v->nb[1], v->type);
}

void run_custom(const step *s, worker *w)
{
    const value *v = s->v;
    const custom_op *op = v->p.custom;
    loam_data in[LOAM_MAX_CUSTOM_INPUTS], out = op->out;
    place_inputs(v, op, in, 0, w);
    out.data = value_data(v, w);
    if (op->spec.in_place) {
        copy_first(v, &in[0], out.data, w);
        worker_barrier(w);
    }
    loam_custom_task t = { &out, in, op->n_in, w->ith, op->spec.n_tasks > 0 ? op->spec.n_tasks : w->nth, op->spec.user };
    for (; t.task < t.n_tasks && !worker_stopped(w); t.task += w->nth)
        if (!op->spec.run(&t)) atomic_store(&w->run->stop, 1);
}

void grad_custom(const grad_step *g, worker *w)
{
    const custom_op *op = g->v->p.custom;
    if (w->ith != 0 || !op->spec.gradient) return;
    loam_data in[LOAM_MAX_CUSTOM_INPUTS], dy = op->out;
    place_inputs(g->v, op, in, 0, w);
    dy.data = (void *)(uintptr_t)g->dy;
    for (int i = 0; i < op->n_in; i++)
        if (g->dx[i] && !grad_adds(g, i)) memset(g->dx[i], 0, (size_t)value_bytes(g->in[i]));
    loam_custom_back b = { .dy = &dy, .in = in, .dx = g->dx, .n_in = op->n_in, .user = op->spec.user };
    op->spec.gradient(&b);
}
