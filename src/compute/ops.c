/* ops.c - constructors: arithmetic, norms, joins, products, look-ups, images. */
#include <string.h>

#include "base/mem.h"
#include "compute/compute.h"

#define G compute_graph(g)
#define SHOW_BYTES 200

static bool floats(loam_graph *g, const char *op, const loam_tensor *x)
{
    char text[SHOW_BYTES];
    if (!x || x->type == LOAM_F32) return true;
    compute_fail(g, op, "%s must be f32", compute_show(x, text, sizeof text));
    return false;
}

static void mismatch(loam_graph *g, const char *op, const loam_tensor *a, const loam_tensor *b)
{
    char first[SHOW_BYTES / 2], second[SHOW_BYTES / 2];
    compute_fail(g, op, "%s does not fit %s", compute_show(b, second, sizeof second), compute_show(a, first, sizeof first));
}

static bool same_extents(const loam_tensor *a, const loam_tensor *b) { return memcmp(a->ne, b->ne, sizeof a->ne) == 0; }
static int64_t rows_of(const loam_tensor *x) { return x->ne[1] * x->ne[2] * x->ne[3]; }

/* ---- arithmetic ---- */

/* The second operand in the cheapest form that src/graph repeats; whole: the first operand, which has the result's extents. */
static value *second_operand(loam_graph *g, const loam_tensor *whole, loam_tensor *b)
{
    if (same_extents(whole, b)) return compute_flat(g, b);
    bool row = rows_of(b) == 1 && (b->ne[0] == whole->ne[0] || b->ne[0] == 1);
    if (row && b->data && !b->is_view) return g_weight(G, &b->data->w);
    bool one_each = b->ne[0] == 1 && rows_of(b) == rows_of(whole);
    if (one_each) return compute_rows(g, b, 1, 1, rows_of(b));
    b = loam_op_broadcast(g, b, 4, whole->ne);
    return b ? compute_flat(g, b) : NULL;
}

static loam_tensor *binary(loam_graph *g, const char *op, loam_tensor *a, loam_tensor *b, value *(*make)(graph *, value *, value *))
{
    if (!compute_all(g, op, (loam_tensor *[]){ a, b }, 2, 2) || !floats(g, op, a) || !floats(g, op, b)) return NULL;
    int64_t ne[4];
    int n_axes = a->n_axes > b->n_axes ? a->n_axes : b->n_axes;
    for (int i = 0; i < 4; i++) {
        if (a->ne[i] != b->ne[i] && a->ne[i] != 1 && b->ne[i] != 1) {
            mismatch(g, op, a, b);
            return NULL;
        }
        ne[i] = a->ne[i] > b->ne[i] ? a->ne[i] : b->ne[i];
    }
    if (memcmp(a->ne, ne, sizeof ne) != 0 && memcmp(b->ne, ne, sizeof ne) == 0) {
        loam_tensor *t = a; /* both operations are commutative, bit for bit */
        a = b, b = t;
    }
    if (memcmp(a->ne, ne, sizeof ne) != 0 && !(a = loam_op_broadcast(g, a, n_axes, ne))) return NULL;
    value *x = compute_flat(g, a), *y = second_operand(g, a, b);
    return y ? compute_result(g, make(G, x, y), n_axes, ne) : NULL;
}

loam_tensor *loam_op_add(loam_graph *g, loam_tensor *a, loam_tensor *b) { return binary(g, "ADD", a, b, g_add); }
loam_tensor *loam_op_mul(loam_graph *g, loam_tensor *a, loam_tensor *b) { return binary(g, "MUL", a, b, g_mul); }
loam_tensor *loam_op_sub(loam_graph *g, loam_tensor *a, loam_tensor *b) { return loam_op_add(g, a, loam_op_scale(g, b, -1.0f)); }

/* x as rows, for an operation that gives as many values; NULL after a mistake. */
static value *input(loam_graph *g, const char *op, loam_tensor *x)
{
    return compute_all(g, op, &x, 1, 1) && floats(g, op, x) ? compute_flat(g, x) : NULL;
}

loam_tensor *loam_op_scale(loam_graph *g, loam_tensor *x, float s)
{
    value *v = input(g, "SCALE", x);
    return v ? compute_like(g, g_scale(G, v, s), x) : NULL;
}

loam_tensor *loam_op_clamp(loam_graph *g, loam_tensor *x, float low, float high)
{
    value *v = input(g, "CLAMP", x);
    if (v && !(low <= high)) compute_fail(g, "CLAMP", "%g is not below %g", (double)low, (double)high);
    return v ? compute_like(g, g_clamp(G, v, low, high), x) : NULL;
}

loam_tensor *loam_op_softcap(loam_graph *g, loam_tensor *x, float cap)
{
    value *v = input(g, "SOFTCAP", x);
    return v ? compute_like(g, g_softcap(G, v, cap), x) : NULL;
}

loam_tensor *loam_op_softmax(loam_graph *g, loam_tensor *x)
{
    value *v = input(g, "SOFTMAX", x);
    return v ? compute_like(g, g_softmax(G, v), x) : NULL;
}

loam_tensor *loam_op_log_softmax(loam_graph *g, loam_tensor *x)
{
    value *v = input(g, "LOG_SOFTMAX", x);
    return v ? compute_like(g, g_log_softmax(G, v), x) : NULL;
}

loam_tensor *loam_op_dropout(loam_graph *g, loam_tensor *x, float rate)
{
    value *v = input(g, "DROPOUT", x);
    if (v && !(rate >= 0.0f && rate < 1.0f)) compute_fail(g, "DROPOUT", "a rate of %g is not within 0 .. below 1", (double)rate);
    return v ? compute_like(g, g_dropout(G, v, rate), x) : NULL;
}

loam_tensor *loam_op_sum(loam_graph *g, loam_tensor *x)
{
    value *v = input(g, "SUM", x);
    return v ? compute_result(g, g_sum(G, v), x->n_axes, (const int64_t[4]){ 1, x->ne[1], x->ne[2], x->ne[3] }) : NULL;
}

/* ---- gates ---- */

_Static_assert((int)LOAM_GATE_SILU == (int)GATE_SILU && (int)LOAM_GATE_GELU == (int)GATE_GELU &&
               (int)LOAM_GATE_RELU2 == (int)GATE_RELU2 && (int)LOAM_GATE_TANH == (int)GATE_TANH && (int)LOAM_GATE_OAI == (int)GATE_OAI &&
               (int)LOAM_GATE_GELU_HALF == (int)GATE_GELU_HALF, "public and internal gates are numbered alike");

loam_tensor *loam_op_gate(loam_graph *g, loam_gate kind, loam_tensor *x, loam_tensor *up)
{
    if (!compute_all(g, "GATE", (loam_tensor *[]){ x, up }, 2, 1) || !floats(g, "GATE", x) || !floats(g, "GATE", up)) return NULL;
    if ((int)kind < 0 || kind > LOAM_GATE_GELU_HALF || kind == LOAM_GATE_XIELU || (kind == LOAM_GATE_OAI && !up)) {
        compute_fail(g, "GATE", kind == LOAM_GATE_OAI ? "kind %d needs a second input" : "there is no kind %d (loam_op_xielu has parameters)", (int)kind);
        return NULL;
    }
    if (up && !same_extents(x, up)) {
        mismatch(g, "GATE", x, up);
        return NULL;
    }
    value *v = compute_flat(g, x), *u = up ? compute_flat(g, up) : NULL;
    return compute_like(g, g_gate(G, (gate_kind)kind, v, u), x);
}

loam_tensor *loam_op_xielu(loam_graph *g, loam_tensor *x, const float p[4])
{
    value *v = input(g, "GATE", x);
    if (v && !p) compute_fail(g, "GATE", "the parameters of xIELU are NULL");
    return v && p ? compute_like(g, g_gate_xielu(G, v, p), x) : NULL;
}

/* ---- norms and joins ---- */

loam_tensor *loam_op_norm(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *b, const loam_norm_params *p)
{
    if (!compute_all(g, "NORM", (loam_tensor *[]){ x, w, b }, 3, 1) || !floats(g, "NORM", x)) return NULL;
    if (!p || p->group < 0 || p->group > x->ne[0] || x->ne[0] > INT32_MAX || (p->kind != LOAM_NORM_RMS && p->kind != LOAM_NORM_LAYER)) {
        compute_fail(g, "NORM", p ? "group %d of rows of %lld, kind %d" : "parameters are NULL", p ? p->group : 0, (long long)x->ne[0], p ? (int)p->kind : 0);
        return NULL;
    }
    norm_params n = { p->kind == LOAM_NORM_RMS ? NORM_RMS : NORM_LAYER, p->eps, p->group };
    value *v = compute_flat(g, x);
    const weight *scale = compute_weight(g, w), *shift = compute_weight(g, b);
    return compute_like(g, g_norm(G, v, scale, shift, n), x);
}

loam_tensor *loam_op_concat(loam_graph *g, loam_tensor *a, loam_tensor *b, int axis)
{
    if (!compute_all(g, "CONCAT", (loam_tensor *[]){ a, b }, 2, 2) || !floats(g, "CONCAT", a) || !floats(g, "CONCAT", b)) return NULL;
    int64_t ne[4], inner = 1, outer = 1;
    bool good = axis >= 0 && axis < LOAM_MAX_AXES;
    for (int i = 0; i < 4 && good; i++) {
        good = i == axis || a->ne[i] == b->ne[i];
        ne[i] = i == axis ? a->ne[i] + b->ne[i] : a->ne[i];
        if (i < axis) inner *= a->ne[i];
        if (i > axis) outer *= a->ne[i];
    }
    if (!good) {
        mismatch(g, "CONCAT", a, b);
        return NULL;
    }
    value *x = compute_rows(g, a, inner * a->ne[axis], 1, outer), *y = compute_rows(g, b, inner * b->ne[axis], 1, outer);
    int n_axes = a->n_axes > axis ? a->n_axes : axis + 1;
    return compute_result(g, g_concat(G, x, y), n_axes, ne);
}

/* ---- products ---- */

/* One small product a head: [K, H, T] each, tokens being the columns of x. */
static loam_tensor *by_heads(loam_graph *g, loam_tensor *w, loam_tensor *x)
{
    int64_t heads = w->ne[2] * w->ne[3], shared = x->ne[2] / w->ne[2], n = x->ne[1], batch = x->ne[3];
    /* [K, n, shared, heads] -> [K, heads, n, shared] */
    loam_tensor *y = loam_op_reshape(g, x, 4, (const int64_t[]){ x->ne[0], n, shared, heads });
    y = loam_op_permute(g, y, (const int[4]){ 0, 2, 3, 1 });
    value *columns = y ? compute_rows(g, y, x->ne[0], heads, n * shared) : NULL;
    loam_tensor *square = loam_op_reshape(g, w, 3, (const int64_t[]){ w->ne[0], w->ne[1], heads });
    const weight *m = compute_weight(g, square);
    if (!columns || !m) return NULL;
    y = compute_result(g, g_matmul_heads(G, m, columns), 4, (const int64_t[]){ w->ne[1], heads, n, shared });
    y = y ? loam_op_permute(g, y, (const int[4]){ 0, 3, 1, 2 }) : NULL;
    return y ? loam_op_reshape(g, y, x->n_axes, (const int64_t[]){ w->ne[1], n, x->ne[2], batch }) : NULL;
}

loam_tensor *loam_op_matmul(loam_graph *g, loam_tensor *w, loam_tensor *x)
{
    if (!compute_all(g, "MATMUL", (loam_tensor *[]){ w, x }, 2, 2) || !floats(g, "MATMUL", x)) return NULL;
    bool plain = w->ne[2] == 1 && w->ne[3] == 1;
    if (w->ne[0] != x->ne[0] || (!plain && (x->ne[2] % w->ne[2] || x->ne[3] != w->ne[3]))) {
        mismatch(g, "MATMUL", w, x);
        return NULL;
    }
    if (!plain) return by_heads(g, w, x);
    const weight *m = compute_weight(g, w);
    value *v = compute_flat(g, x);
    return m && v ? compute_result(g, g_matmul(G, m, v), x->n_axes, (const int64_t[4]){ w->ne[1], x->ne[1], x->ne[2], x->ne[3] }) : NULL;
}

/* ---- look-ups ---- */

static bool indexes(loam_graph *g, const char *op, const loam_tensor *ids)
{
    char text[SHOW_BYTES];
    if (ids->type == LOAM_I32) return true;
    compute_fail(g, op, "%s must be i32", compute_show(ids, text, sizeof text));
    return false;
}

loam_tensor *loam_op_embed(loam_graph *g, loam_tensor *table, loam_tensor *ids)
{
    char text[SHOW_BYTES];
    if (!compute_all(g, "EMBED", (loam_tensor *[]){ table, ids }, 2, 2) || !indexes(g, "EMBED", ids)) return NULL;
    if (table->ne[2] * table->ne[3] != 1 || ids->ne[3] != 1 || ids->n_axes > 3 || dtype_table[table->type].act == ACT_NONE) {
        compute_fail(g, "EMBED", "%s is no table", compute_show(table, text, sizeof text));
        return NULL;
    }
    const weight *w = compute_weight(g, table);
    value *v = compute_rows(g, ids, 1, 1, compute_values(ids));
    if (!w || !v) return NULL;
    return compute_result(g, g_embed(G, w, v), ids->n_axes + 1, (const int64_t[4]){ table->ne[0], ids->ne[0], ids->ne[1], ids->ne[2] });
}

loam_tensor *loam_op_select(loam_graph *g, loam_tensor *x, loam_tensor *rows)
{
    char text[SHOW_BYTES];
    if (!compute_all(g, "SELECT", (loam_tensor *[]){ x, rows }, 2, 2) || !indexes(g, "SELECT", rows)) return NULL;
    if ((x->type != LOAM_F32 && x->type != LOAM_I32) || rows_of(rows) != 1) {
        compute_fail(g, "SELECT", "%s must be f32 or i32, and the rows one axis", compute_show(x, text, sizeof text));
        return NULL;
    }
    int last = x->n_axes - 1;
    int64_t ne[4] = { x->ne[0], x->ne[1], x->ne[2], x->ne[3] }, each = compute_values(x) / x->ne[last];
    ne[last] = rows->ne[0];
    value *v = compute_rows(g, x, each, 1, x->ne[last]), *r = compute_rows(g, rows, 1, 1, rows->ne[0]);
    return v && r ? compute_result(g, g_select(G, v, r), x->n_axes, ne) : NULL;
}

/* ---- images ---- */

static image_params image_of(const loam_image *p)
{
    return (image_params){
        .width = p->width, .height = p->height, .kernel_w = p->kernel_w, .kernel_h = p->kernel_h,
        .stride_w = p->stride_w ? p->stride_w : 1, .stride_h = p->stride_h ? p->stride_h : 1, .pad_w = p->pad_w, .pad_h = p->pad_h,
        .dilation_w = p->dilation_w ? p->dilation_w : 1, .dilation_h = p->dilation_h ? p->dilation_h : 1, .mean = p->mean,
    };
}

static value *images(loam_graph *g, const char *op, loam_tensor *x, const loam_image *p)
{
    if (!p) compute_fail(g, op, "parameters are NULL");
    return p && floats(g, op, x) ? compute_rows(g, x, x->ne[0], x->ne[1], x->ne[2] * x->ne[3]) : NULL;
}

loam_tensor *loam_op_conv2d(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *bias, const loam_image *p)
{
    if (!compute_all(g, "CONV2D", (loam_tensor *[]){ x, w, bias }, 3, 2)) return NULL;
    value *v = images(g, "CONV2D", x, p);
    const weight *taps = compute_weight(g, w), *b = compute_weight(g, bias);
    image_params image = v ? image_of(p) : (image_params){ 0 };
    value *y = v ? g_conv2d(G, v, taps, b, &image) : NULL;
    return y ? compute_result(g, y, x->n_axes > 3 ? 4 : 3, (const int64_t[4]){ y->ne[0], y->ne[1], x->ne[2], x->ne[3] }) : NULL;
}

loam_tensor *loam_op_pool2d(loam_graph *g, loam_tensor *x, const loam_image *p)
{
    if (!compute_all(g, "POOL2D", &x, 1, 1)) return NULL;
    value *v = images(g, "POOL2D", x, p);
    image_params image = v ? image_of(p) : (image_params){ 0 };
    value *y = v ? g_pool2d(G, v, &image) : NULL;
    return y ? compute_result(g, y, x->n_axes, (const int64_t[4]){ y->ne[0], y->ne[1], x->ne[2], x->ne[3] }) : NULL;
}
