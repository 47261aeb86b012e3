/* custom.c - operations of the caller, and the list of all operations. */
#include <string.h>

#include "base/mem.h"
#include "compute/compute.h"

#define G compute_graph(g)

_Static_assert(LOAM_MAX_CUSTOM_INPUTS == 64, "one mask of bits fits");

/* What the caller sees of an input; where a gradient flows, inputs are whole values. */
static value *view_input(loam_graph *g, loam_tensor *x, bool whole, loam_data *in, int64_t *offset)
{
    value *v = whole ? compute_flat(g, x) : compute_root(g, x);
    *in = (loam_data){ .type = x->type };
    memcpy(in->ne, x->ne, sizeof in->ne);
    memcpy(in->nb, x->nb, sizeof in->nb);
    *offset = whole ? 0 : x->offset;
    if (!whole) return v;
    int64_t stride = dtype_table[x->type].bytes;
    for (int i = 0; i < 4; i++) in->nb[i] = stride, stride *= x->ne[i];
    return v;
}

/* The type and extents of the result; false after a mistake. */
static bool result_of(loam_graph *g, const loam_custom *op, loam_tensor *const *in, int n, loam_tensor *out)
{
    if ((op->in_place || op->like_first) && n < 1) {
        compute_fail(g, "CUSTOM", "there is no first input that the result could be like");
        return false;
    }
    if (op->in_place || op->like_first) {
        *out = *in[0];
        return true;
    }
    *out = (loam_tensor){ .type = op->type, .n_axes = op->n_axes, .ne = { 1, 1, 1, 1 } };
    if (!dtype_get(op->type) || op->n_axes < 1 || op->n_axes > LOAM_MAX_AXES) {
        compute_fail(g, "CUSTOM", "type %d with %d axes (at most %d)", (int)op->type, op->n_axes, LOAM_MAX_AXES);
        return false;
    }
    for (int i = 0; i < op->n_axes; i++) out->ne[i] = op->ne[i];
    return true;
}

static custom_op *record(loam_graph *g, const loam_custom *op, int n)
{
    custom_op *c = compute_own(g, sizeof *c);
    if (!c) return NULL;
    size_t count = n ? (size_t)n : 1;
    c->in = compute_own(g, count * sizeof *c->in);
    c->offset = compute_own(g, count * sizeof *c->offset);
    c->spec = *op;
    c->n_in = n;
    size_t length = op->name ? strnlen(op->name, NAME_BYTES - 1) : 0;
    char *name = op->name ? compute_own(g, NAME_BYTES) : NULL;
    if (name) memcpy(name, op->name, length);
    c->spec.name = name;
    return c->in && c->offset && (name || !op->name) ? c : NULL;
}

/* Folds n values into at most six, by tuples. */
static int fold(loam_graph *g, value **v, int n)
{
    while (n > GRAPH_MAX_SRC) {
        int out = 0;
        for (int i = 0; i < n; i += GRAPH_MAX_SRC) {
            value *src[GRAPH_MAX_SRC] = { 0 };
            for (int k = 0; k < GRAPH_MAX_SRC && i + k < n; k++) src[k] = v[i + k];
            v[out++] = g_tuple(G, src);
        }
        n = out;
    }
    return n;
}

loam_tensor *loam_op_custom(loam_graph *g, const loam_custom *op, loam_tensor *const *inputs, int n)
{
    if (!g || G->error.code != LOAM_OK) return NULL;
    if (!op || !op->run || n < 0 || n > LOAM_MAX_CUSTOM_INPUTS || (n > 0 && !inputs) || (op->n_tasks < 1 && op->n_tasks != LOAM_TASKS_AS_THREADS)) {
        compute_fail(g, "CUSTOM", "no function, %d inputs (at most %d), or %d tasks", n, LOAM_MAX_CUSTOM_INPUTS, op ? op->n_tasks : 0);
        return NULL;
    }
    loam_tensor shape;
    if (!compute_all(g, "CUSTOM", inputs, n, n) || !result_of(g, op, inputs, n, &shape)) return NULL;
    if (op->gradient && n > GRAPH_MAX_SRC) {
        compute_fail(g, "CUSTOM", "%d inputs with a gradient, at most %d", n, GRAPH_MAX_SRC);
        return NULL;
    }
    compute_open(g);
    custom_op *c = record(g, op, n);
    if (!c) return NULL;
    value *v[LOAM_MAX_CUSTOM_INPUTS + GRAPH_MAX_SRC] = { 0 };
    for (int i = 0; i < n; i++) {
        if (op->gradient && inputs[i]->type != LOAM_F32) {
            compute_fail(g, "CUSTOM", "input %d is %s; a gradient needs f32", i, loam_type_name((int)inputs[i]->type));
            return NULL;
        }
        v[i] = view_input(g, inputs[i], op->gradient != NULL, &c->in[i], &c->offset[i]);
    }
    c->out.type = shape.type;
    memcpy(c->out.ne, shape.ne, sizeof shape.ne);
    for (int i = 0; i < 4; i++)
        if (shape.ne[i] < 1 || shape.ne[i] > INT32_MAX || (i == 0 && shape.ne[0] % dtype_table[shape.type].values)) {
            compute_fail(g, "CUSTOM", "extent %d of the result is %lld", i, (long long)shape.ne[i]);
            return NULL;
        }
    fold(g, v, n);
    loam_tensor *y = compute_result(g, g_custom(G, v, c), shape.n_axes, shape.ne);
    if (y) memcpy(c->out.nb, y->nb, sizeof y->nb);
    return y;
}

static loam_tensor *map(loam_graph *g, loam_custom_fn fn, loam_tensor *const *in, int n, const loam_custom *like)
{
    loam_custom op = *like;
    op.run = fn;
    op.like_first = true;
    return loam_op_custom(g, &op, in, n);
}

loam_tensor *loam_op_map1(loam_graph *g, loam_custom_fn fn, loam_tensor *a, int n_tasks, void *user)
{
    return map(g, fn, &a, 1, &(loam_custom){ .n_tasks = n_tasks, .user = user });
}

loam_tensor *loam_op_map2(loam_graph *g, loam_custom_fn fn, loam_tensor *const ab[2], int n_tasks, void *user)
{
    return map(g, fn, ab, 2, &(loam_custom){ .n_tasks = n_tasks, .user = user });
}

loam_tensor *loam_op_map3(loam_graph *g, loam_custom_fn fn, loam_tensor *const abc[3], int n_tasks, void *user)
{
    return map(g, fn, abc, 3, &(loam_custom){ .n_tasks = n_tasks, .user = user });
}

/* ---- the list ---- */

int loam_n_ops(void) { return OP_COUNT; }

const char *loam_op_name(int op) { return op >= 0 && op < OP_COUNT ? op_name((op_kind)op) : NULL; }

/* No default: a new row of op.def without a line here does not compile without a warning. */
const char *loam_op_constructor(int op)
{
    if (op < 0 || op >= OP_COUNT) return NULL;
    switch ((op_kind)op) {
    case OP_INPUT: case OP_WEIGHT: return "loam_tensor_new";
    case OP_VIEW: return "loam_op_view";
    case OP_EMBED: return "loam_op_embed";
    case OP_SELECT: return "loam_op_select";
    case OP_ADD: return "loam_op_add";
    case OP_MUL: return "loam_op_mul";
    case OP_SCALE: return "loam_op_scale";
    case OP_CLAMP: return "loam_op_clamp";
    case OP_SOFTCAP: return "loam_op_softcap";
    case OP_GATE: return "loam_op_gate";
    case OP_NORM: return "loam_op_norm";
    case OP_CONCAT: return "loam_op_concat";
    case OP_TEMPERATURE: return "loam_op_temperature";
    case OP_ROPE_TABLE: return "loam_op_rope_table";
    case OP_ROPE: return "loam_op_rope";
    case OP_ENCODE: return "(loam_op_matmul and its kin put it before products with block types)";
    case OP_MATMUL: case OP_MATMUL_HEADS: return "loam_op_matmul";
    case OP_KV_WRITE: return "(loam_op_attention puts keys and values into pages by it)";
    case OP_ATTENTION: return "loam_op_attention";
    case OP_ROUTE: return "loam_op_route";
    case OP_EXPERTS: return "loam_op_experts";
    case OP_EXPERT_ADD: return "loam_op_expert_add";
    case OP_EXPERT_SCALE: return "loam_op_expert_scale";
    case OP_EXPERT_SUM: return "loam_op_expert_sum";
    case OP_EXPERT_WEIGH: return "loam_op_expert_weigh";
    case OP_CONV: return "loam_op_conv";
    case OP_TOKEN_SHIFT: return "loam_op_token_shift";
    case OP_SCAN: return "loam_op_scan";
    case OP_DELTA: return "loam_op_delta";
    case OP_WKV6: return "loam_op_wkv6";
    case OP_WKV7: return "loam_op_wkv7";
    case OP_HEAD_DOT: return "loam_op_head_dot";
    case OP_DROPOUT: return "loam_op_dropout";
    case OP_SOFTMAX: return "loam_op_softmax";
    case OP_LOG_SOFTMAX: return "loam_op_log_softmax";
    case OP_SUM: return "loam_op_sum";
    case OP_CONV2D: return "loam_op_conv2d";
    case OP_POOL2D: return "loam_op_pool2d";
    case OP_COPY: return "loam_op_cast";
    case OP_TUPLE: return "(loam_op_custom makes it of more inputs than six)";
    case OP_CUSTOM: return "loam_op_custom";
    case OP_COUNT: break;
    }
    return NULL;
}
