/* tensor.c - graphs and their tensors: life, names, facts, data of the caller. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "compute/compute.h"

typedef struct owned {
    struct owned *next;
    _Alignas(16) char bytes[];
} owned;

loam_status loam_graph_new(loam_graph **out, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_graph_new: out is NULL");
    loam_graph *g = *out = mem_zalloc(sizeof *g);
    if (!g) return fail_nomem(err, "a graph", sizeof *g);
    graph_init(&g->g, 0, 0);
    return LOAM_OK;
}

void loam_graph_free(loam_graph *g)
{
    if (!g) return;
    if (g->p) plan_free(g->p);
    else graph_free(&g->g);
    for (owned *o = g->owned; o;) {
        owned *next = o->next;
        mem_free(o);
        o = next;
    }
    pool_free(g->threads);
    mem_free(g->outputs);
    mem_free(g->sides);
    os_release(g->output_data, (size_t)g->output_bytes);
    os_release(g->arena, (size_t)g->arena_bytes);
    os_release(g->scratch, (size_t)g->scratch_bytes);
    os_release(g->shared, (size_t)g->shared_bytes);
    os_release(g->side_data, (size_t)g->side_bytes);
    mem_free(g);
}

graph *compute_graph(loam_graph *g) { return g->p ? &g->p->g : &g->g; }

void compute_open(loam_graph *g)
{
    g->evaluated = false;
    if (!g->p) return;
    g->g = g->p->g;
    memset(&g->p->g, 0, sizeof g->p->g);
    plan_free(g->p);
    g->p = NULL;
    for (int i = 0; i < g->g.n_values; i++) g->g.values[i]->buffer = -1, g->g.values[i]->replicated = false;
}

loam_status loam_graph_check(const loam_graph *g, loam_error *err)
{
    if (!g) return fail(err, LOAM_E_ARG, "the graph is NULL");
    return graph_check(g->p ? &g->p->g : &g->g, err);
}

void loam_graph_forgive(loam_graph *g)
{
    if (g) compute_graph(g)->error.code = LOAM_OK;
}

void *compute_own(loam_graph *g, size_t bytes)
{
    owned *o = mem_zalloc(sizeof *o + bytes);
    if (!o) {
        graph_fail(compute_graph(g), LOAM_E_NOMEM, "out of memory: %zu bytes of a graph", bytes);
        return NULL;
    }
    o->next = g->owned;
    g->owned = o;
    return o->bytes;
}

/* ---- mistakes ---- */

void compute_fail(loam_graph *g, const char *op, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    graph_fail(compute_graph(g), LOAM_E_ARG, "%s: %s", op, text);
}

bool compute_check(loam_graph *g, const loam_tensor *x, const char *op, const char *what)
{
    if (!g || compute_graph(g)->error.code != LOAM_OK) return false;
    if (!x) compute_fail(g, op, "%s is NULL", what);
    else if (x->g != g) compute_fail(g, op, "%s is a tensor of another graph", what);
    return compute_graph(g)->error.code == LOAM_OK;
}

bool compute_all(loam_graph *g, const char *op, loam_tensor *const *x, int n, int least)
{
    for (int i = 0; i < n; i++) {
        char what[24];
        snprintf(what, sizeof what, "input %d", i);
        if ((x[i] || i < least) && !compute_check(g, x[i], op, what)) return false;
    }
    if (g) compute_open(g);
    return g && compute_graph(g)->error.code == LOAM_OK;
}

/* Axis i of a list of names separated by commas, without blanks around it. */
static const char *axis_name(const char *names, int i, int *n)
{
    const char *at = names;
    for (; i > 0 && at; i--) at = (at = strchr(at, ',')) ? at + 1 : NULL;
    *n = 0;
    if (!at) return "";
    at += strspn(at, " ");
    *n = (int)strcspn(at, ",");
    while (*n > 0 && at[*n - 1] == ' ') (*n)--;
    return at;
}

const char *compute_show(const loam_tensor *x, char *text, size_t n)
{
    size_t at = (size_t)snprintf(text, n, "%s [", loam_tensor_name(x));
    for (int i = 0; i < x->n_axes && at < n; i++) {
        int len;
        const char *name = axis_name(x->axes, i, &len);
        at += (size_t)snprintf(text + at, n - at, "%s%lld%s%.*s", i ? ", " : "", (long long)x->ne[i], len ? " " : "", len, name);
    }
    if (at < n) snprintf(text + at, n - at, "] %s", loam_type_name((int)x->type));
    return text;
}

/* ---- tensors ---- */

static loam_tensor *add_tensor(loam_graph *g)
{
    loam_tensor *x = compute_own(g, sizeof *x);
    if (!x) return NULL;
    x->g = g;
    x->next = g->tensors;
    g->tensors = x;
    g->n_tensors++;
    return x;
}

/* Strides of a contiguous tensor. */
static void lay_out(loam_tensor *x)
{
    const dtype_info *t = &dtype_table[x->type];
    x->nb[0] = t->bytes;
    x->nb[1] = x->ne[0] / t->values * t->bytes;
    x->nb[2] = x->nb[1] * x->ne[1];
    x->nb[3] = x->nb[2] * x->ne[2];
}

/* Number of axes and extents; what is not given is 1. False with a mistake noted. */
static bool set_extents(loam_graph *g, loam_tensor *x, const char *op, int n_axes, const int64_t *ne)
{
    uint64_t bytes = (uint64_t)dtype_table[x->type].bytes;
    int block = dtype_table[x->type].values;
    if (n_axes < 1 || n_axes > LOAM_MAX_AXES || !ne) {
        compute_fail(g, op, ne ? "%d axes; there are 1 to %d" : "extents are NULL (%d axes, at most %d)", n_axes, LOAM_MAX_AXES);
        return false;
    }
    x->n_axes = n_axes;
    for (int i = 0; i < 4; i++) {
        x->ne[i] = i < n_axes ? ne[i] : 1;
        if (x->ne[i] < 1 || !mul_ok(bytes, (uint64_t)x->ne[i], &bytes) || bytes > (uint64_t)LIMIT_TENSOR_BYTES) {
            compute_fail(g, op, "extent %d is %lld", i, (long long)x->ne[i]);
            return false;
        }
    }
    if (x->ne[0] % block) {
        compute_fail(g, op, "rows of %lld values are not made of blocks of %d (%s)", (long long)x->ne[0], block,
                     loam_type_name((int)x->type));
        return false;
    }
    return true;
}

loam_tensor *loam_tensor_new(loam_graph *g, const char *name, loam_type type, int n_axes, const int64_t *ne)
{
    if (!g || compute_graph(g)->error.code != LOAM_OK) return NULL;
    if (!dtype_get(type)) {
        compute_fail(g, "loam_tensor_new", "%s: type %d is not in use", name ? name : "?", (int)type);
        return NULL;
    }
    compute_open(g);
    loam_tensor *x = add_tensor(g);
    leaf *l = x ? compute_own(g, sizeof *l) : NULL;
    if (!l) return NULL;
    x->type = type;
    x->data = l;
    loam_tensor_set_name(x, name ? name : "tensor");
    if (!set_extents(g, x, x->name, n_axes, ne)) return NULL;
    lay_out(x);
    l->w = (weight){ .name = x->name, .type = type, .row_bytes = (uint64_t)x->nb[1] };
    memcpy(l->w.ne, x->ne, sizeof x->ne);
    return x;
}

loam_tensor *compute_result(loam_graph *g, value *v, int n_axes, const int64_t *ne)
{
    loam_tensor *x = v ? add_tensor(g) : NULL;
    if (!x) return NULL;
    x->v = v;
    x->type = v->type;
    if (!set_extents(g, x, op_name(v->op), n_axes, ne)) return NULL;
    lay_out(x);
    return x;
}

loam_tensor *compute_like(loam_graph *g, value *v, const loam_tensor *x)
{
    loam_tensor *y = compute_result(g, v, x->n_axes, x->ne);
    if (y) memcpy(y->axes, x->axes, sizeof y->axes);
    return y;
}

loam_tensor *compute_view(loam_graph *g, const loam_tensor *x)
{
    loam_tensor *y = add_tensor(g);
    if (!y) return NULL;
    loam_tensor *next = y->next;
    *y = *x;
    y->next = next;
    y->is_view = true;
    return y;
}

/* ---- names, facts ---- */

static void copy_text(char *to, const char *from)
{
    size_t n = from ? strlen(from) : 0;
    if (n >= NAME_BYTES) n = NAME_BYTES - 1;
    while (n > 0 && from && ((unsigned char)from[n] & 0xc0) == 0x80) n--; /* not within a character */
    if (n) memcpy(to, from, n);
    to[n] = 0;
}

loam_tensor *loam_tensor_set_name(loam_tensor *x, const char *name)
{
    if (x) copy_text(x->name, name);
    return x;
}

loam_tensor *loam_tensor_axes(loam_tensor *x, const char *names)
{
    if (x) copy_text(x->axes, names);
    return x;
}

loam_type loam_tensor_type(const loam_tensor *x) { return x ? x->type : LOAM_F32; }
const char *loam_tensor_op(const loam_tensor *x) { return !x ? "" : x->is_view ? "VIEW" : x->data ? "WEIGHT" : op_name(x->v->op); }
const char *loam_tensor_name(const loam_tensor *x) { return x && x->name[0] ? x->name : x && x->v && !x->is_view ? x->v->name : loam_tensor_op(x); }
int loam_tensor_n_axes(const loam_tensor *x) { return x ? x->n_axes : 0; }
int64_t loam_tensor_ne(const loam_tensor *x, int axis) { return x && axis >= 0 && axis < 4 ? x->ne[axis] : 0; }
int64_t loam_tensor_nb(const loam_tensor *x, int axis) { return x && axis >= 0 && axis < 4 ? x->nb[axis] : 0; }
bool loam_tensor_is_contiguous(const loam_tensor *x) { return x && compute_contiguous(x); }

size_t loam_tensor_bytes(const loam_tensor *x)
{
    if (!x) return 0;
    const dtype_info *t = &dtype_table[x->type];
    return (size_t)(x->ne[0] / t->values * t->bytes * x->ne[1] * x->ne[2] * x->ne[3]);
}

bool compute_contiguous(const loam_tensor *x)
{
    const dtype_info *t = &dtype_table[x->type];
    int64_t stride = t->bytes, n = x->ne[0] / t->values;
    for (int i = 0; i < 4; i++) {
        int64_t extent = i ? x->ne[i] : n;
        if (extent != 1 && x->nb[i] != stride) return false;
        stride *= extent;
    }
    return true;
}

/* ---- data of the caller ---- */

loam_status loam_tensor_bind(loam_tensor *x, const void *data, size_t bytes, loam_error *err)
{
    if (!x || !data) return fail(err, LOAM_E_ARG, "loam_tensor_bind: %s is NULL", x ? "data" : "the tensor");
    if (!x->data || x->is_view) return fail(err, LOAM_E_ARG, "%s: only tensors of loam_tensor_new have data of the caller", loam_tensor_name(x));
    if (bytes != loam_tensor_bytes(x))
        return fail(err, LOAM_E_ARG, "%s: %zu bytes of data for a tensor of %zu", x->name, bytes, loam_tensor_bytes(x));
    if ((uintptr_t)data % (x->type == LOAM_I64 || x->type == LOAM_F64 ? 8 : dtype_table[x->type].values > 1 ? 2 : (uintptr_t)x->nb[0]))
        return fail(err, LOAM_E_ARG, "%s: the data is not aligned to its values", x->name);
    x->data->w.data = data;
    x->data->w.device = 0;
    x->data->w.far = x->data->w.steers = false;
    return LOAM_OK;
}
