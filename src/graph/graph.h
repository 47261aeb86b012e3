/* graph.h - a graph of operations on tensors: what a model's recipe is turned into.
 *
 * Constructors append a value to the graph and return it. They never fail loudly: the first mistake (wrong shape, missing
 * input, out of memory) is kept in graph.error, later constructors return NULL and accept NULL, and graph_check() reports
 * it once at the end. So a recipe reads as a list of formulas.
 *
 * Extents. ne[0] is contiguous. Activations are always [width, mid, tokens], mid being heads or experts or 1; below
 * [width, T] is short for [width, 1, T]. Floats unless said. A row is what one token has: width * mid values; where rows
 * are asked for, mid is folded in. Weights keep their type and are [in, out] or [in, out, experts or heads].
 * Nothing here allocates tensor data or runs anything: plan.h does. */
#ifndef LOAM_GRAPH_GRAPH_H
#define LOAM_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tensor/dtype.h"

typedef enum op_kind {
#define OP(NAME, ...) OP_##NAME,
#include "graph/op.def"
#undef OP
    OP_COUNT
} op_kind;

#define GRAPH_MAX_SRC 6

typedef struct value value;

/* A weight of a model, bound once: data stays where the file is mapped. */
typedef struct weight {
    const char *name;      /* in the file, for messages */
    loam_type type;
    int64_t ne[4];
    const void *data;
    uint64_t row_bytes;    /* of ne[0] values */
    value *from;           /* the matrix is a result of the graph: data is not read; else NULL */
    int device;            /* of a scheduler: whose buffer has its data; 0 where there is one device */
    bool far;              /* the data lies in that buffer: other devices must fetch it */
    bool steers;           /* operations go to where it lies */
    const struct weight *parts; /* the same rows in n_parts pieces, which products use in its place; NULL: none */
    int n_parts;
} weight;

typedef enum input_kind {
    INPUT_TOKENS,          /* I32 [1, T] ids */
    INPUT_EMBD,            /* F32 [D, T] rows given by the caller in place of ids */
    INPUT_POS,             /* I32 [1, T] positions */
    INPUT_OUT_ROWS,        /* I32 [1, n_out] which tokens' outputs are wanted */
    INPUT_ADAPTERS,        /* F32 [n_adapters, T] strength of each adapter for each token */
    INPUT_COUNT
} input_kind;

typedef enum output_kind { OUTPUT_LOGITS, OUTPUT_EMBD, OUTPUT_COUNT } output_kind;

typedef enum gate_kind { GATE_SILU, GATE_GELU, GATE_GELU_ERF, GATE_GELU_QUICK, GATE_RELU, GATE_RELU2, GATE_SIGMOID,
                         GATE_SOFTPLUS, GATE_EXP, GATE_TANH, GATE_OAI, GATE_XIELU,
                         GATE_GELU_HALF /* GELU of values rounded to F16, rounded to F16; x above 10, 0 below -10 */ } gate_kind;
typedef enum norm_kind { NORM_RMS, NORM_LAYER } norm_kind;
typedef enum rope_kind { ROPE_NORM, ROPE_NEOX, ROPE_MROPE, ROPE_IMROPE } rope_kind;
typedef enum window_kind { WINDOW_NONE, WINDOW_STANDARD, WINDOW_CHUNKED, WINDOW_SYMMETRIC } window_kind;
typedef enum router_kind { ROUTER_SOFTMAX, ROUTER_SIGMOID, ROUTER_TOP_SOFTMAX, ROUTER_SQRT_SOFTPLUS } router_kind;
/* What the top-k selection looks at. */
typedef enum select_kind { SELECT_PROBS, SELECT_LOGITS, SELECT_SIGMOID } select_kind;

/* Rotary angles of one kind of block (architectures: base, scaling, YaRN); filled by model/rope.c. */
typedef struct rope_params {
    rope_kind kind;
    int n_rot;                 /* rotated values of a head, even */
    float base;                /* frequency base */
    float freq_scale;          /* 1 / scaling factor */
    float ext_factor;          /* YaRN mix, 0 = off */
    float ramp_low, ramp_high; /* YaRN ramp in pairs */
    float magnitude;           /* multiplies cos and sin */
    int sections[4];           /* M-RoPE */
} rope_params;

typedef struct attention_params {
    int layer;
    int n_head, n_kv_head, k_dim, v_dim;
    float scale;               /* multiplies q.k (before a soft cap of `softcap`) */
    float softcap;             /* 0 = off */
    bool causal;
    window_kind window;
    int window_size;
    float alibi_max_bias;      /* 0 = off */
    int rel_buckets;           /* > 0: the third input is no sink but a bias [n_head, rel_buckets] by relative position (T5) */
    bool rel_both_ways;        /* half of the buckets for later positions */
} attention_params;

typedef struct route_params {
    int n_expert, n_used, n_group, n_group_used;
    router_kind router;
    select_kind select;
    bool normalise;            /* divide by max(sum, 6.103515625e-5) */
    float scale;               /* 1 = none */
    int divide;                /* chunk experts: selected index is divided by this; 1 = none */
} route_params;

/* An operation that carries a state from token to token (tensor/pages.h). */
typedef struct state_params {
    int layer;
    int64_t at;                /* CONV, TOKEN_SHIFT: first float of the layer's r row that is its own */
    int64_t first;             /* CONV: channel of the weights that belongs to the first channel of x */
    bool spread;               /* DELTA: value head h reads key head h / (value heads / key heads), else h mod key heads */
} state_params;
/* Images: a row holds channels (ne[1]) of height x width values (ne[0], rows of pixels one after another). */
typedef struct image_params {
    int width, height;         /* of the input */
    int kernel_w, kernel_h, stride_w, stride_h, pad_w, pad_h; /* padding: zeros; outside of a pooling's mean and maximum */
    int dilation_w, dilation_h; /* of the convolution's taps; 1 = none */
    bool mean;                 /* POOL2D: the mean in place of the maximum */
} image_params;

typedef struct norm_params {
    norm_kind kind;
    float eps;
    int group;                 /* values normalised together; 0 = the whole row */
} norm_params;

/* Values of the source that a copy picks: first byte, extents, strides in bytes (0 repeats), up to four axes. */
typedef struct copy_params {
    int64_t offset, ne[4], nb[4];
    loam_type type;            /* of the source */
} copy_params;

/* An operation of the caller. in[i] and offset[i] say where input i lies in the memory of its value: the values are the sources, in
 * order, tuples taken apart. */
typedef struct custom_op {
    loam_custom spec;
    loam_data out, *in;        /* [n_in] extents, strides */
    int64_t *offset;           /* [n_in] */
    int n_in;
} custom_op;

struct value {
    op_kind op;
    loam_type type;
    int64_t ne[4];
    int64_t nb[4];             /* strides in bytes; nb[0] = bytes of one value (block types: of a row in nb[1]) */
    value *src[GRAPH_MAX_SRC];
    value *encoded[ACT_NONE];  /* its activation forms, made once and shared by all products */
    int layer;                 /* block it belongs to, -1 outside */
    const char *name;          /* static text or the weight's name */
    union {
        struct { input_kind input; const weight *bound; } in; /* bound: the data of that record in place of an input */
        const weight *w;
        struct { int64_t offset; } view;                       /* bytes into src[0] */
        copy_params copy;
        const custom_op *custom;
        struct { float a, b; } f;                              /* SCALE a; CLAMP a..b; SOFTCAP a */
        struct { gate_kind kind; float p[4]; } gate;           /* XIELU: alpha_p, alpha_n, beta, eps */
        norm_params norm;
        struct { float t, n, o; } temp;                        /* factor 1 + t * ln(1 + floor((pos + o) / n)) */
        rope_params rope;                                      /* ROPE_TABLE */
        struct { int offset; bool neox; } turn;                /* ROPE: first rotated value of each head */
        struct { act_kind kind; } encode;
        struct { int layer; } kv;
        attention_params attn;
        route_params route;
        state_params state;
        struct { float rate; } dropout;                        /* part of the values that becomes 0 in training */
        image_params image;
    } p;
    bool recut;                /* a view that cuts its values into other rows and tokens than its source */
    const weight *place;       /* where the result goes in place of a buffer of the plan; NULL: a buffer */
    int device;                /* pinned to this device of the scheduler; -1: it chooses */
    /* set by the planner */
    int uid;                   /* the same for the copies of a value in the parts of a graph */
    int id;                    /* index in graph order */
    int last_use;              /* step that reads it last */
    int64_t buffer;            /* offset in the plan's arena, -1 = none */
    bool replicated;           /* every thread has a copy of its own */
    int heads;                 /* > 0: rows are cut into so many equal units, one or more for each thread */
};

/* Low-rank additions to weights (LoRA, Hu et al. 2021): where W is multiplied with x, adapter i adds strength_i * B (A x). */
typedef struct adapter_pair {
    const weight *base, *a, *b;
    float scale;               /* alpha / rank, or 1 */
    float dropout;             /* of x before A, in training */
} adapter_pair;

typedef struct graph_adapter {
    const adapter_pair *pairs; /* at most one per base weight */
    int n_pairs;
} graph_adapter;

typedef struct graph {
    value **values;            /* in order of construction: a topological order */
    int n_values;
    size_t cap;
    void *blocks;              /* chain of node blocks */
    int n_tokens, n_outputs;
    int layer;                 /* current block, stamped on new values */
    const graph_adapter *adapters;
    int n_adapters;
    value *strengths[2];       /* of the adapters: for all tokens, for the wanted rows */
    value *inputs[INPUT_COUNT];
    value *outputs[OUTPUT_COUNT];
    bool watched;              /* somebody looks at products: each is computed, its input in floats is kept until it has been */
    loam_error error;          /* first mistake; code LOAM_OK when there is none */
} graph;

void graph_init(graph *g, int n_tokens, int n_outputs);
void graph_free(graph *g);
uint64_t graph_bytes(const graph *g); /* on the heap */
loam_status graph_check(const graph *g, loam_error *err);
/* A copy of v in g, whose sources the caller sets; NULL after noting the lack of memory. */
value *graph_adopt(graph *g, const value *v);
void graph_fail(graph *g, loam_status code, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* ---- constructors ---- */
value *g_input(graph *g, input_kind kind, int64_t width);          /* width: D for INPUT_EMBD, else 1; same value every time */
value *g_weight(graph *g, const weight *w);                        /* w NULL gives NULL (an absent optional weight) */
/* Part of a row, without copying. Where n1 = x->ne[1] and n0 <= x->ne[0]: values offset.. of each head; otherwise the row is
 * taken as one run, from value `offset`, cut into n1 pieces of n0. */
value *g_view(graph *g, value *x, int64_t offset, int64_t n0, int64_t n1);
/* The data of w as an activation, [ne[0], ne[1], ne[2]]: it may be another in every run. */
value *g_bound(graph *g, const weight *w);
/* The contiguous bytes of x from `offset` on as rows and tokens of another shape. */
value *g_recut(graph *g, value *x, int64_t offset, const int64_t ne[4]);
/* A contiguous copy of what p picks from x, in another element type: [ne[0], ne[1], ne[2] * ne[3]]. */
value *g_copy(graph *g, value *x, const copy_params *p, loam_type type);
/* Several values as one input of a custom operation. */
value *g_tuple(graph *g, value *const src[GRAPH_MAX_SRC]);
/* src: values or tuples; op must live as long as the graph. */
value *g_custom(graph *g, value *const src[GRAPH_MAX_SRC], const custom_op *op);
value *g_embed(graph *g, const weight *table, value *ids);         /* [D, T] */
value *g_select(graph *g, value *x, value *rows);                  /* [D, n_out] */
value *g_add(graph *g, value *a, value *b);                        /* b [width] or as a; b NULL gives a */
value *g_mul(graph *g, value *a, value *b);                        /* b [width], [1] per token, or as a; b NULL gives a */
value *g_scale(graph *g, value *x, float s);                       /* s 1 gives x */
value *g_clamp(graph *g, value *x, float lo, float hi);
value *g_softcap(graph *g, value *x, float cap);                   /* cap 0 gives x */
value *g_gate(graph *g, gate_kind kind, value *gate, value *up);   /* f(gate) * up; up NULL: f(gate) */
value *g_gate_xielu(graph *g, value *x, const float p[4]);
/* w: NULL, [group] shared by the runs, or the whole row. */
value *g_norm(graph *g, value *x, const weight *w, const weight *b, norm_params p);
value *g_dropout(graph *g, value *x, float rate);                  /* in training; else, and with rate 0, x */
value *g_softmax(graph *g, value *x);                              /* over ne[0] */
value *g_log_softmax(graph *g, value *x);
value *g_sum(graph *g, value *x);                                  /* of a row: [1, T] */
/* x [width * height, channels in, T], w [kernel_w, kernel_h, channels in, channels out], bias [channels out] or NULL; gives
 * [width * height of the output, channels out, T]. */
value *g_conv2d(graph *g, value *x, const weight *w, const weight *bias, const image_params *p);
value *g_pool2d(graph *g, value *x, const image_params *p);
value *g_concat(graph *g, value *a, value *b);                     /* along ne[0]; b's ne[1] may be 1 and is repeated */
value *g_temperature(graph *g, value *x, value *pos, float t, float n, float o);
value *g_rope_table(graph *g, value *pos, const rope_params *p, const weight *factors); /* [n_rot, T]: cos then sin */
value *g_rope(graph *g, value *x, value *table, int offset, bool neox);  /* x [K, heads, T] */
value *g_matmul(graph *g, const weight *w, value *x);              /* [out, T] */
value *g_matmul_heads(graph *g, const weight *w, value *x);        /* w [in, out, H], x [in, H, T] -> [out, H, T] */
value *g_kv_write(graph *g, value *k, value *v, int layer);        /* k [k_dim, G, T], v [v_dim, G, T]; gives a token for attention */
value *g_attention(graph *g, value *q, value *written, const weight *extra, const attention_params *p); /* [v_dim, H, T] */
                                                                      /* extra: sinks [H], or the relative bias */
value *g_route(graph *g, value *logits, const weight *bias, const route_params *p); /* routing: I32 [2 * n_used, T] */
value *g_experts(graph *g, const weight *w, value *x, value *routing); /* w [in, out, E]; x [in, T] or [in, U, T] -> [out, U, T] */
value *g_expert_add(graph *g, value *y, const weight *b, value *routing);   /* b [out, E] */
value *g_expert_scale(graph *g, value *y, const weight *s, value *routing); /* s [E] */
value *g_expert_sum(graph *g, value *y, value *routing);           /* sum over the experts of weight * y (routing NULL: of y), in
                                                                      rank order: [out, T] */
value *g_expert_weigh(graph *g, value *x, value *routing);         /* [in, T] -> [in, U, T]: weight * x (sigpost) */

/* Recurrent states. Every token continues the state of its sequence; [width, T] are rows of any form. */
/* Causal convolution of each channel with its own taps: w [taps, channels], bias [channels] or NULL; gives [channels, T]. */
value *g_conv(graph *g, value *x, const weight *w, const weight *bias, const state_params *p);
/* The previous token's row minus this one's; before the first token stands a row of zeros. */
value *g_token_shift(graph *g, value *x, const state_params *p);
/* Selective scan (Mamba): per head of P rows and N states a row: s = exp(dt a) s + dt x b; y = s c + d x. x [P, heads, T];
 * b, c [N, groups, T], a head reads group head / (heads / groups). dt, a, d: one per head (Mamba 2), or dt, d one per row
 * and a [N, rows] (Mamba 1). */
typedef struct scan_inputs {
    value *x, *dt, *b, *c;
    const weight *a, *d;
} scan_inputs;
value *g_scan(graph *g, const scan_inputs *in, const state_params *p);
/* Gated delta rule (Yang et al. 2024): q, k [N, key heads, T]; v [P, value heads, T]; decay [1 or N, value heads, T] in 0..1,
 * beta [1, value heads, T]; gives [P, value heads, T]. */
typedef struct delta_inputs {
    value *q, *k, *v, *decay, *beta;
} delta_inputs;
value *g_delta(graph *g, const delta_inputs *in, const state_params *p);
/* RWKV 6: all [N, heads, T]; bonus [N, heads] or NULL (the state is read after the token). */
typedef struct wkv6_inputs {
    value *r, *k, *v, *w;
    const weight *bonus;
} wkv6_inputs;
value *g_wkv6(graph *g, const wkv6_inputs *in, const state_params *p);
/* RWKV 7: all [N, heads, T]; kk the removed direction, ka what is put in its place. */
typedef struct wkv7_inputs {
    value *r, *w, *k, *v, *kk, *ka;
} wkv7_inputs;
value *g_wkv7(graph *g, const wkv7_inputs *in, const state_params *p);
value *g_head_dot(graph *g, value *a, value *b, value *v);         /* per head: (a . b) v; all [N, heads, T] */

/* y plus the additions of all adapters to the product of w with x (and routing, for experts; NULL otherwise). */
value *g_adapt(graph *g, const weight *w, value *x, value *routing, value *y);
/* The same for rows y of an embedding table that ids picked. */
value *g_adapt_rows(graph *g, const weight *table, value *ids, value *y);
void g_output(graph *g, output_kind kind, value *v);
/* Names the value in traces; returns it. `name` must be static text. */
value *g_name(value *v, const char *name);

/* ---- facts ---- */
const char *op_name(op_kind op);
bool op_has_effect(op_kind op);             /* changes the cache or a state: runs also when nobody reads its result */
int64_t value_bytes(const value *v);

#endif
