/* shape.c - see shape.h. Messages name the axis and both extents. */
#include "graph/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

static bool no(char *why, size_t n, const char *fmt, ...) LOAM_PRINTF(3, 4);
static bool no(char *why, size_t n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, n, fmt, args);
    va_end(args);
    return false;
}

#define LL(x) ((long long)(x))

static void set(value *v, int64_t a, int64_t b, int64_t c)
{
    v->ne[0] = a, v->ne[1] = b, v->ne[2] = c, v->ne[3] = 1;
}

static int64_t row_of(const value *v) { return v->ne[0] * v->ne[1]; }

/* One token's values lie in one run. */
static bool whole_rows(const value *v) { return v->ne[1] == 1 || v->nb[1] == v->ne[0] * v->nb[0]; }

static bool is_float(const value *v, const char *what, char *why, size_t n)
{
    return v->type == LOAM_F32 || no(why, n, "%s is %s, must be f32", what, loam_type_name((int)v->type));
}

static bool is_index(const value *v, const char *what, char *why, size_t n)
{
    return v->type == LOAM_I32 || no(why, n, "%s is %s, must be i32", what, loam_type_name((int)v->type));
}

bool shape_given(value *v, char *why, size_t n)
{
    for (int i = 0; i < 4; i++)
        if (v->ne[i] < 0) return no(why, n, "extent %d is negative", i);
    return true;
}

bool shape_copy(value *v, char *why, size_t n)
{
    const copy_params *p = &v->p.copy;
    int64_t block = dtype_table[v->type].values;
    if (p->ne[0] % block) return no(why, n, "rows of %lld values are not made of blocks of %s", LL(p->ne[0]), loam_type_name((int)v->type));
    set(v, p->ne[0], p->ne[1], p->ne[2] * p->ne[3]);
    return true;
}

bool shape_custom(value *v, char *why, size_t n)
{
    const loam_data *d = &v->p.custom->out;
    (void)why;
    (void)n;
    v->type = d->type;
    set(v, d->ne[0], d->ne[1], d->ne[2] * d->ne[3]);
    return true;
}

bool shape_view(value *v, char *why, size_t n) { return shape_given(v, why, n); }

bool shape_embed(value *v, char *why, size_t n)
{
    const value *w = v->src[0], *ids = v->src[1];
    if (!is_index(ids, "index", why, n)) return false;
    set(v, w->ne[0], 1, ids->ne[2]);
    return true;
}

bool shape_select(value *v, char *why, size_t n)
{
    if (!is_index(v->src[1], "index", why, n)) return false;
    set(v, v->src[0]->ne[0], v->src[0]->ne[1], v->src[1]->ne[2]);
    v->type = v->src[0]->type;
    return whole_rows(v->src[0]) || no(why, n, "rows of the input are not contiguous");
}

bool shape_same(value *v, char *why, size_t n)
{
    const value *x = v->src[0];
    if (!is_float(x, "input", why, n)) return false;
    set(v, x->ne[0], x->ne[1], x->ne[2]);
    return true;
}

bool shape_broadcast(value *v, char *why, size_t n)
{
    const value *a = v->src[0], *b = v->src[1];
    if (!shape_same(v, why, n) || !is_float(b, "second input", why, n)) return false;
    bool weight_row = b->op == OP_WEIGHT && b->ne[1] == 1 && b->ne[2] == 1 && (b->ne[0] == row_of(a) || b->ne[0] == 1);
    bool same = b->op != OP_WEIGHT && row_of(b) == row_of(a) && b->ne[2] == a->ne[2];
    bool per_token = b->op != OP_WEIGHT && row_of(b) == 1 && b->ne[2] == a->ne[2];
    return weight_row || same || per_token ||
           no(why, n, "rows of %lld x %lld do not fit rows of %lld x %lld", LL(row_of(b)), LL(b->ne[2]), LL(row_of(a)),
              LL(a->ne[2]));
}

bool shape_gate(value *v, char *why, size_t n)
{
    const value *up = v->src[1];
    if (!shape_same(v, why, n)) return false;
    return !up || (row_of(up) == row_of(v) && up->ne[2] == v->ne[2]) ||
           no(why, n, "gate row has %lld values, up row %lld", LL(row_of(v)), LL(row_of(up)));
}

bool shape_norm(value *v, char *why, size_t n)
{
    if (!shape_same(v, why, n)) return false;
    int64_t row = row_of(v), group = v->p.norm.group;
    if (group <= 0 || row % group) return no(why, n, "row of %lld values is not made of groups of %lld", LL(row), LL(group));
    for (int i = 1; i < 3; i++) {
        const value *w = v->src[i];
        if (w && (!is_float(w, "norm weight", why, n))) return false;
        int64_t have = w ? w->ne[0] * w->ne[1] * w->ne[2] : group;
        if (have != group && have != row) return no(why, n, "norm weight has %lld values for groups of %lld", LL(have),
                                                    LL(group));
    }
    return true;
}

bool shape_concat(value *v, char *why, size_t n)
{
    const value *a = v->src[0], *b = v->src[1];
    if (!is_float(a, "input", why, n) || !is_float(b, "input", why, n)) return false;
    if (a->ne[2] != b->ne[2] || (b->ne[1] != a->ne[1] && b->ne[1] != 1))
        return no(why, n, "[%lld x %lld] does not join [%lld x %lld]", LL(b->ne[1]), LL(b->ne[2]), LL(a->ne[1]), LL(a->ne[2]));
    set(v, a->ne[0] + b->ne[0], a->ne[1], a->ne[2]);
    return true;
}

bool shape_rope_table(value *v, char *why, size_t n)
{
    const rope_params *p = &v->p.rope;
    if (!is_index(v->src[0], "position", why, n)) return false;
    if (p->n_rot < 2 || p->n_rot % 2) return no(why, n, "rotated width %d is not even and positive", p->n_rot);
    const value *f = v->src[1];
    if (f && (f->type != LOAM_F32 || f->ne[0] < p->n_rot / 2)) return no(why, n, "%lld factors for %d pairs", LL(f->ne[0]),
                                                                         p->n_rot / 2);
    set(v, p->n_rot, 1, v->src[0]->ne[2]);
    return true;
}

bool shape_encode(value *v, char *why, size_t n)
{
    const value *x = v->src[0];
    if (!is_float(x, "input", why, n)) return false;
    int64_t block = v->p.encode.kind == ACT_A256 ? 256 : 32;
    if (x->ne[0] % block && row_of(x) % block) return no(why, n, "row of %lld values is not a multiple of %lld", LL(row_of(x)),
                                                         LL(block));
    /* Each mid row is encoded by itself where it can be; a row cut into heads is otherwise encoded as a whole. */
    bool by_mid = x->ne[0] % block == 0;
    if (!by_mid && !whole_rows(x)) return no(why, n, "rows are not contiguous");
    v->type = LOAM_I8;
    set(v, (int64_t)act_bytes(v->p.encode.kind, by_mid ? x->ne[0] : row_of(x)), by_mid ? x->ne[1] : 1, x->ne[2]);
    return true;
}

/* Values of one row that an encoded or plain activation stands for. */
static int64_t width_of(const value *x) { return x->op == OP_ENCODE ? row_of(x->src[0]) : row_of(x); }
static int64_t mid_width(const value *x) { return x->op == OP_ENCODE ? x->src[0]->ne[0] : x->ne[0]; }
static int64_t mids(const value *x) { return x->op == OP_ENCODE ? x->src[0]->ne[1] : x->ne[1]; }

bool shape_matmul(value *v, char *why, size_t n)
{
    const value *w = v->src[0], *x = v->src[1];
    if (w->ne[2] != 1) return no(why, n, "weight %s has three axes", w->name);
    if (w->ne[0] != width_of(x)) return no(why, n, "weight %s takes rows of %lld, the input has %lld", w->name, LL(w->ne[0]),
                                           LL(width_of(x)));
    if (x->op != OP_ENCODE && !whole_rows(x)) return no(why, n, "rows of the input are not contiguous");
    set(v, w->ne[1], 1, x->ne[2]);
    return true;
}

bool shape_matmul_heads(value *v, char *why, size_t n)
{
    const value *w = v->src[0], *x = v->src[1];
    if (w->ne[0] != mid_width(x) || w->ne[2] != mids(x))
        return no(why, n, "weight %s is %lld wide for %lld heads, the input %lld for %lld", w->name, LL(w->ne[0]), LL(w->ne[2]),
                  LL(mid_width(x)), LL(mids(x)));
    if (x->op == OP_ENCODE && x->ne[1] != mids(x)) return no(why, n, "heads of %lld values cannot be encoded one by one",
                                                             LL(mid_width(x)));
    set(v, w->ne[1], w->ne[2], x->ne[2]);
    return true;
}

bool shape_kv_write(value *v, char *why, size_t n)
{
    const value *k = v->src[0], *x = v->src[1];
    if (k->ne[1] != x->ne[1] || k->ne[2] != x->ne[2]) return no(why, n, "%lld key heads, %lld value heads", LL(k->ne[1]),
                                                                LL(x->ne[1]));
    set(v, 0, 1, k->ne[2]);
    return true;
}

bool shape_attention(value *v, char *why, size_t n)
{
    const value *q = v->src[0], *s = v->src[2];
    const attention_params *p = &v->p.attn;
    if (q->ne[0] != p->k_dim || q->ne[1] != p->n_head)
        return no(why, n, "queries are %lld x %lld, expected %d x %d", LL(q->ne[0]), LL(q->ne[1]), p->k_dim, p->n_head);
    if (p->n_kv_head < 1 || p->n_head % p->n_kv_head) return no(why, n, "%d heads do not share %d key heads evenly", p->n_head,
                                                                p->n_kv_head);
    if (s && (s->type != LOAM_F32 || s->ne[1] != (p->rel_buckets ? p->rel_buckets : 1)))
        return no(why, n, "%lld rows of biases for %d buckets", LL(s->ne[1]), p->rel_buckets);
    if (s && s->ne[0] != p->n_head) return no(why, n, "%lld sinks for %d heads", LL(s->ne[0]), p->n_head);
    set(v, p->v_dim, p->n_head, q->ne[2]);
    return true;
}

bool shape_route(value *v, char *why, size_t n)
{
    const route_params *p = &v->p.route;
    if (!is_float(v->src[0], "router logits", why, n)) return false;
    if (row_of(v->src[0]) != p->n_expert) return no(why, n, "%lld logits for %d experts", LL(row_of(v->src[0])), p->n_expert);
    if (p->n_used < 1 || p->n_used > p->n_expert) return no(why, n, "%d of %d experts", p->n_used, p->n_expert);
    if (p->n_group > 1 && (p->n_expert % p->n_group || p->n_group_used < 1 || p->n_group_used > p->n_group))
        return no(why, n, "%d experts in %d groups of which %d are used", p->n_expert, p->n_group, p->n_group_used);
    if (v->src[1] && v->src[1]->ne[0] != p->n_expert) return no(why, n, "%lld biases for %d experts", LL(v->src[1]->ne[0]),
                                                                p->n_expert);
    v->type = LOAM_I32;
    set(v, 2 * p->n_used, 1, v->src[0]->ne[2]);
    return true;
}

static int64_t used_of(const value *routing) { return routing->ne[0] / 2; }

bool shape_experts(value *v, char *why, size_t n)
{
    const value *w = v->src[0], *x = v->src[1], *r = v->src[2];
    int64_t m = mids(x);
    if (r->op != OP_ROUTE) return no(why, n, "third input is not a routing");
    if (w->ne[0] != mid_width(x)) return no(why, n, "weight %s takes rows of %lld, the input has %lld", w->name, LL(w->ne[0]),
                                            LL(mid_width(x)));
    if (m != 1 && m != used_of(r)) return no(why, n, "input has %lld rows a token, %lld experts are used", LL(m), LL(used_of(r)));
    if (x->op == OP_ENCODE && x->ne[1] != m) return no(why, n, "rows of %lld values cannot be encoded", LL(mid_width(x)));
    set(v, w->ne[1], used_of(r), x->ne[2]);
    return true;
}

bool shape_expert_row(value *v, char *why, size_t n)
{
    const value *w = v->src[1];
    if (!shape_same(v, why, n) || !is_float(w, "weight", why, n)) return false;
    int64_t width = v->op == OP_EXPERT_ADD ? w->ne[0] : v->ne[0];
    return width == v->ne[0] || no(why, n, "expert rows of %lld for outputs of %lld", LL(width), LL(v->ne[0]));
}

bool shape_expert_sum(value *v, char *why, size_t n)
{
    const value *y = v->src[0];
    if (!is_float(y, "input", why, n)) return false;
    if (v->src[1] && y->ne[1] != used_of(v->src[1])) return no(why, n, "%lld outputs for %lld experts", LL(y->ne[1]),
                                                               LL(used_of(v->src[1])));
    set(v, y->ne[0], 1, y->ne[2]);
    return true;
}

bool shape_expert_weigh(value *v, char *why, size_t n)
{
    const value *x = v->src[0];
    if (!is_float(x, "input", why, n)) return false;
    set(v, row_of(x), used_of(v->src[1]), x->ne[2]);
    return true;
}

/* ---- recurrent states ---- */

static int64_t all_of(const value *w) { return w->ne[0] * w->ne[1] * w->ne[2]; }

static bool floats_in(const value *v, char *why, size_t n)
{
    for (int i = 0; i < GRAPH_MAX_SRC; i++) {
        const value *x = v->src[i];
        if (x && !is_float(x, x->name, why, n)) return false;
        if (x && x->op != OP_WEIGHT && x->ne[2] != v->src[0]->ne[2]) return no(why, n, "inputs have different numbers of tokens");
    }
    return true;
}

bool shape_conv(value *v, char *why, size_t n)
{
    const value *x = v->src[0], *w = v->src[1], *b = v->src[2];
    if (!floats_in(v, why, n)) return false;
    int64_t channels = all_of(w) / (w->ne[0] ? w->ne[0] : 1), last = v->p.state.first + row_of(x);
    if (w->ne[0] < 1 || w->ne[0] > 64) return no(why, n, "%lld taps; 1 to 64 are supported", LL(w->ne[0]));
    if (last > channels || (b && last > all_of(b))) return no(why, n, "weights for %lld channels, %lld are needed",
                                                              LL(channels), LL(last));
    set(v, row_of(x), 1, x->ne[2]);
    return true;
}

bool shape_scan(value *v, char *why, size_t n)
{
    const value *x = v->src[0], *dt = v->src[1], *b = v->src[2], *c = v->src[3], *a = v->src[4], *d = v->src[5];
    if (!floats_in(v, why, n)) return false;
    int64_t heads = x->ne[1], rows = row_of(x), states = b->ne[0];
    bool each = all_of(a) == states * rows && row_of(dt) == rows && all_of(d) == rows && heads == 1;
    bool shared = all_of(a) == heads && row_of(dt) == heads && all_of(d) == heads;
    if (!each && !shared) return no(why, n, "%lld steps and %lld decays for %lld rows of %lld states", LL(row_of(dt)),
                                    LL(all_of(a)), LL(rows), LL(states));
    if (c->ne[0] != states || c->ne[1] != b->ne[1] || b->ne[1] < 1 || heads % b->ne[1])
        return no(why, n, "%lld heads do not share %lld groups evenly", LL(heads), LL(b->ne[1]));
    set(v, x->ne[0], x->ne[1], x->ne[2]);
    return true;
}

bool shape_delta(value *v, char *why, size_t n)
{
    const value *x = v->src[0], *q = v->src[1], *k = v->src[2], *decay = v->src[3], *beta = v->src[4];
    if (!floats_in(v, why, n)) return false;
    int64_t heads = x->ne[1], keys = q->ne[0];
    if (k->ne[0] != keys || k->ne[1] != q->ne[1] || q->ne[1] < 1 || heads % q->ne[1])
        return no(why, n, "%lld value heads do not share %lld key heads evenly", LL(heads), LL(k->ne[1]));
    if (row_of(beta) != heads || (row_of(decay) != heads && row_of(decay) != heads * keys))
        return no(why, n, "%lld decays and %lld betas for %lld heads", LL(row_of(decay)), LL(row_of(beta)), LL(heads));
    set(v, x->ne[0], x->ne[1], x->ne[2]);
    return true;
}

/* All inputs of one form; the bonus of RWKV 6 is a weight of one row. */
bool shape_wkv(value *v, char *why, size_t n)
{
    const value *x = v->src[0];
    if (!floats_in(v, why, n)) return false;
    for (int i = 1; i < GRAPH_MAX_SRC; i++) {
        const value *y = v->src[i];
        if (!y) continue;
        bool good = y->op == OP_WEIGHT ? all_of(y) == row_of(x) : y->ne[0] == x->ne[0] && y->ne[1] == x->ne[1];
        if (!good) return no(why, n, "input %d is %lld x %lld, not %lld x %lld", i, LL(y->ne[0]), LL(y->ne[1]), LL(x->ne[0]),
                             LL(x->ne[1]));
    }
    set(v, x->ne[0], x->ne[1], x->ne[2]);
    return true;
}

/* ---- general networks ---- */

bool shape_sum(value *v, char *why, size_t n)
{
    if (!is_float(v->src[0], "input", why, n)) return false;
    set(v, 1, 1, v->src[0]->ne[2]);
    return true;
}

/* Extent of the output along one axis; 0 where the kernel does not fit. */
static int64_t windows(int64_t extent, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t reach = (kernel - 1) * dilation + 1, room = extent + 2 * pad - reach;
    return room < 0 ? 0 : room / stride + 1;
}

static bool image_fits(value *v, int64_t channels, char *why, size_t n)
{
    const value *x = v->src[0];
    const image_params *p = &v->p.image;
    if (!is_float(x, "input", why, n)) return false;
    if (p->width < 1 || p->height < 1 || p->kernel_w < 1 || p->kernel_h < 1 || p->stride_w < 1 || p->stride_h < 1 || p->pad_w < 0 ||
        p->pad_h < 0 || p->dilation_w < 1 || p->dilation_h < 1 || p->width > 65536 || p->height > 65536)
        return no(why, n, "image of %d x %d, kernel of %d x %d, steps of %d x %d", p->width, p->height, p->kernel_w, p->kernel_h,
                  p->stride_w, p->stride_h);
    if (x->ne[0] != (int64_t)p->width * p->height) return no(why, n, "rows of %lld values are no image of %d x %d", LL(x->ne[0]),
                                                             p->width, p->height);
    int64_t w = windows(p->width, p->kernel_w, p->stride_w, p->pad_w, p->dilation_w);
    int64_t h = windows(p->height, p->kernel_h, p->stride_h, p->pad_h, p->dilation_h);
    if (w < 1 || h < 1) return no(why, n, "a kernel of %d x %d does not fit an image of %d x %d", p->kernel_w, p->kernel_h, p->width,
                                  p->height);
    set(v, w * h, channels, x->ne[2]);
    return true;
}

bool shape_conv2d(value *v, char *why, size_t n)
{
    const value *x = v->src[0], *w = v->src[1], *b = v->src[2];
    const image_params *p = &v->p.image;
    if (w->type != LOAM_F32 || w->ne[0] != p->kernel_w || w->ne[1] != p->kernel_h || w->ne[2] != x->ne[1])
        return no(why, n, "weight %s is %lld x %lld for %lld channels, expected %d x %d for %lld", w->name, LL(w->ne[0]),
                  LL(w->ne[1]), LL(w->ne[2]), p->kernel_w, p->kernel_h, LL(x->ne[1]));
    if (b && (b->type != LOAM_F32 || all_of(b) != w->ne[3])) return no(why, n, "%lld biases for %lld channels", LL(all_of(b)),
                                                                        LL(w->ne[3]));
    return image_fits(v, w->ne[3], why, n);
}

bool shape_pool2d(value *v, char *why, size_t n)
{
    const image_params *p = &v->p.image;
    if (p->dilation_w != 1 || p->dilation_h != 1) return no(why, n, "pooling has no dilation");
    if (p->pad_w >= p->kernel_w || p->pad_h >= p->kernel_h) return no(why, n, "padding of a pooling reaches a whole kernel");
    return image_fits(v, v->src[0]->ne[1], why, n);
}
