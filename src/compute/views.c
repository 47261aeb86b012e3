/* views.c - windows on tensors, and tensors in the form that operations want. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "compute/compute.h"

/* ---- the forms that operations want ---- */

value *compute_root(loam_graph *g, loam_tensor *x)
{
    if (x->v) return x->v;
    if (x->data->activation) return x->data->activation;
    compute_open(g);
    x->data->activation = g_bound(compute_graph(g), &x->data->w);
    return x->data->activation;
}

static value *copied(loam_graph *g, loam_tensor *x, loam_type type)
{
    copy_params p = { .offset = x->offset, .type = x->type };
    memcpy(p.ne, x->ne, sizeof p.ne);
    memcpy(p.nb, x->nb, sizeof p.nb);
    return g_copy(compute_graph(g), compute_root(g, x), &p, type);
}

static value *shaped(loam_graph *g, loam_tensor *x, const int64_t ne[4])
{
    bool whole = compute_contiguous(x);
    value *v = whole ? compute_root(g, x) : copied(g, x, x->type);
    int64_t offset = whole ? x->offset : 0;
    if (!v || (offset == 0 && v->op != OP_VIEW && memcmp(v->ne, ne, sizeof v->ne) == 0)) return v;
    return g_recut(compute_graph(g), v, offset, ne);
}

value *compute_rows(loam_graph *g, loam_tensor *x, int64_t n0, int64_t n1, int64_t n2)
{
    return shaped(g, x, (const int64_t[4]){ n0, n1, n2, 1 });
}

value *compute_flat(loam_graph *g, loam_tensor *x) { return compute_rows(g, x, x->ne[0], 1, x->ne[1] * x->ne[2] * x->ne[3]); }

const weight *compute_weight(loam_graph *g, loam_tensor *x)
{
    if (!x) return NULL;
    bool whole = compute_contiguous(x);
    if (x->data && whole && x->offset == 0) {
        bool same = memcmp(x->ne, x->data->w.ne, sizeof x->ne) == 0;
        if (same) return &x->data->w;
    }
    weight *w = compute_own(g, sizeof *w);
    if (!w) return NULL;
    *w = (weight){ .name = loam_tensor_name(x), .type = x->type };
    memcpy(w->ne, x->ne, sizeof w->ne);
    w->from = shaped(g, x, x->ne);
    return w->from ? w : NULL;
}

/* ---- views ---- */

/* One byte behind the last value that x reaches in its memory, from the memory's begin. */
static bool reach(const loam_tensor *x, uint64_t *end)
{
    const dtype_info *t = &dtype_table[x->type];
    uint64_t at = (uint64_t)x->offset + (uint64_t)t->bytes, far;
    for (int i = 0; i < 4; i++) {
        int64_t extent = i ? x->ne[i] : x->ne[i] / t->values;
        if (!mul_ok((uint64_t)(extent - 1), (uint64_t)x->nb[i], &far) || !add_ok(at, far, &at)) return false;
    }
    *end = at;
    return true;
}

static bool fits(loam_graph *g, loam_tensor *y, const loam_tensor *x, const char *op)
{
    uint64_t mine, theirs;
    char text[200];
    if (reach(y, &mine) && reach(x, &theirs) && mine <= theirs) return true;
    compute_fail(g, op, "the window reaches beyond %s", compute_show(x, text, sizeof text));
    return false;
}

loam_tensor *loam_op_view(loam_graph *g, loam_tensor *x, const loam_window *w)
{
    if (!compute_check(g, x, "VIEW", "input")) return NULL;
    const dtype_info *t = &dtype_table[x->type];
    if (!w || w->n_axes < 1 || w->n_axes > LOAM_MAX_AXES) {
        compute_fail(g, "VIEW", w ? "%d axes; there are 1 to %d" : "the window is NULL (%d axes, at most %d)", w ? w->n_axes : 0, LOAM_MAX_AXES);
        return NULL;
    }
    loam_tensor *y = compute_view(g, x);
    if (!y) return NULL;
    y->n_axes = w->n_axes;
    y->axes[0] = 0;
    if (w->offset < 0 || w->offset % t->bytes || w->offset > LIMIT_TENSOR_BYTES || w->ne[0] % t->values) {
        compute_fail(g, "VIEW", "offset %lld and rows of %lld do not fit values of %s", (long long)w->offset, (long long)w->ne[0], t->name);
        return NULL;
    }
    y->offset = x->offset + w->offset;
    for (int i = 0; i < 4; i++) {
        y->ne[i] = i < w->n_axes ? w->ne[i] : 1;
        y->nb[i] = i == 0 ? x->nb[0] : i < w->n_axes ? w->nb[i] : y->nb[i - 1] * (i == 1 ? y->ne[0] / t->values : y->ne[i - 1]);
        if (y->ne[i] < 1 || y->ne[i] > LIMIT_TENSOR_BYTES || y->nb[i] < 0 || y->nb[i] > LIMIT_TENSOR_BYTES || y->nb[i] % t->bytes) {
            compute_fail(g, "VIEW", "axis %d: extent %lld, stride %lld of values of %d bytes", i, (long long)y->ne[i], (long long)y->nb[i], t->bytes);
            return NULL;
        }
    }
    return fits(g, y, x, "VIEW") ? y : NULL;
}

/* Extents with -1 filled in; false with a mistake noted where they do not hold all values of x. */
static bool resolve(loam_graph *g, const loam_tensor *x, int n_axes, const int64_t *ne, int64_t out[4])
{
    char text[200];
    int64_t product = 1, open = -1;
    bool good = ne && n_axes >= 1 && n_axes <= LOAM_MAX_AXES;
    for (int i = 0; i < 4 && good; i++) {
        out[i] = i < n_axes ? ne[i] : 1;
        if (out[i] == -1 && open < 0) open = i;
        else good = out[i] > 0 && out[i] <= compute_values(x) && (product *= out[i]) <= compute_values(x);
    }
    if (good && open >= 0 && compute_values(x) % product == 0) out[open] = compute_values(x) / product, product = compute_values(x);
    if (good && product == compute_values(x) && out[0] % dtype_table[x->type].values == 0) return true;
    compute_fail(g, "RESHAPE", "%d axes do not hold the %lld values of %s", n_axes, (long long)compute_values(x), compute_show(x, text, sizeof text));
    return false;
}

loam_tensor *loam_op_reshape(loam_graph *g, loam_tensor *x, int n_axes, const int64_t *ne)
{
    int64_t shape[4];
    if (!compute_check(g, x, "RESHAPE", "input") || !resolve(g, x, n_axes, ne, shape)) return NULL;
    x = loam_op_contiguous(g, x);
    loam_tensor *y = x ? compute_view(g, x) : NULL;
    if (!y) return NULL;
    const dtype_info *t = &dtype_table[x->type];
    y->n_axes = n_axes;
    y->axes[0] = 0;
    memcpy(y->ne, shape, sizeof shape);
    y->nb[0] = t->bytes;
    y->nb[1] = y->ne[0] / t->values * t->bytes;
    y->nb[2] = y->nb[1] * y->ne[1];
    y->nb[3] = y->nb[2] * y->ne[2];
    return y;
}

loam_tensor *loam_op_permute(loam_graph *g, loam_tensor *x, const int order[LOAM_MAX_AXES])
{
    if (!compute_check(g, x, "PERMUTE", "input")) return NULL;
    unsigned seen = 0;
    for (int i = 0; order && i < 4; i++)
        if (order[i] >= 0 && order[i] < 4) seen |= 1u << order[i];
    if (seen != 15u) {
        compute_fail(g, "PERMUTE", "the order does not have each of 0 .. 3 once");
        return NULL;
    }
    if (dtype_table[x->type].values != 1 && order[0] != 0) {
        compute_fail(g, "PERMUTE", "rows of %s cannot be taken apart", loam_type_name((int)x->type));
        return NULL;
    }
    loam_tensor *y = compute_view(g, x);
    if (!y) return NULL;
    y->axes[0] = 0;
    y->n_axes = 1;
    for (int i = 0; i < 4; i++) {
        y->ne[order[i]] = x->ne[i];
        y->nb[order[i]] = x->nb[i];
        if (i < x->n_axes && order[i] + 1 > y->n_axes) y->n_axes = order[i] + 1;
    }
    return y;
}

loam_tensor *loam_op_transpose(loam_graph *g, loam_tensor *x) { return loam_op_permute(g, x, (const int[4]){ 1, 0, 2, 3 }); }

loam_tensor *loam_op_slice(loam_graph *g, loam_tensor *x, int axis, int64_t first, int64_t count)
{
    char text[200];
    if (!compute_check(g, x, "SLICE", "input")) return NULL;
    int64_t block = axis == 0 ? dtype_table[x->type].values : 1;
    if (axis < 0 || axis >= LOAM_MAX_AXES || first < 0 || count < 1 || first > x->ne[axis] || count > x->ne[axis] - first || first % block ||
        count % block) {
        compute_fail(g, "SLICE", "%lld values from %lld of axis %d are not in %s", (long long)count, (long long)first, axis,
                     compute_show(x, text, sizeof text));
        return NULL;
    }
    loam_tensor *y = compute_view(g, x);
    if (!y) return NULL;
    y->ne[axis] = count;
    y->offset += first / block * x->nb[axis];
    return y;
}

loam_tensor *loam_op_broadcast(loam_graph *g, loam_tensor *x, int n_axes, const int64_t *ne)
{
    char text[200];
    if (!compute_check(g, x, "BROADCAST", "input")) return NULL;
    bool good = ne && n_axes >= 1 && n_axes <= LOAM_MAX_AXES && (dtype_table[x->type].values == 1 || (n_axes > 0 && ne[0] == x->ne[0]));
    int64_t total = 1;
    for (int i = 0; i < 4 && good; i++) {
        int64_t want = i < n_axes ? ne[i] : 1;
        good = want >= 1 && want <= LIMIT_TENSOR_BYTES / 8 / total && (x->ne[i] == want || x->ne[i] == 1);
        if (good) total *= want;
    }
    if (!good) {
        compute_fail(g, "BROADCAST", "%s is not repeated to the wanted extents", compute_show(x, text, sizeof text));
        return NULL;
    }
    loam_tensor *y = compute_view(g, x);
    if (!y) return NULL;
    y->n_axes = n_axes;
    for (int i = 0; i < 4; i++) {
        int64_t want = i < n_axes ? ne[i] : 1;
        if (x->ne[i] != want) y->nb[i] = 0;
        y->ne[i] = want;
    }
    return y;
}

/* ---- copies ---- */

loam_tensor *loam_op_contiguous(loam_graph *g, loam_tensor *x)
{
    if (!compute_check(g, x, "COPY", "input")) return NULL;
    if (compute_contiguous(x)) return x;
    compute_open(g);
    return compute_like(g, copied(g, x, x->type), x);
}

static bool can_be_made(loam_type t) { return t == LOAM_I32 || dtype_caches(t); }

loam_tensor *loam_op_cast(loam_graph *g, loam_tensor *x, loam_type type)
{
    if (!compute_check(g, x, "CAST", "input")) return NULL;
    if (type == x->type) return loam_op_contiguous(g, x);
    if (!dtype_get(type) || !can_be_made(type)) {
        const char *name = loam_type_name((int)type);
        compute_fail(g, "CAST", "no tensor is made of type %s", name ? name : "?");
        return NULL;
    }
    compute_open(g);
    return compute_like(g, copied(g, x, type), x);
}
