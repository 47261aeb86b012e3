/* loam/tensor.h - element types, tensors, graphs of operations and their evaluation; operations of the caller.
 * UNSTABLE: the lower tier may change between minor versions. */
#ifndef LOAM_TENSOR_H
#define LOAM_TENSOR_H

#include <stdbool.h>

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in GGUF files. */
typedef enum loam_type {
    LOAM_F32 = 0, LOAM_F16 = 1, LOAM_Q4_0 = 2, LOAM_Q4_1 = 3, LOAM_Q5_0 = 6, LOAM_Q5_1 = 7, LOAM_Q8_0 = 8, LOAM_Q8_1 = 9,
    LOAM_Q2_K = 10, LOAM_Q3_K = 11, LOAM_Q4_K = 12, LOAM_Q5_K = 13, LOAM_Q6_K = 14, LOAM_Q8_K = 15,
    LOAM_IQ2_XXS = 16, LOAM_IQ2_XS = 17, LOAM_IQ3_XXS = 18, LOAM_IQ1_S = 19, LOAM_IQ4_NL = 20, LOAM_IQ3_S = 21,
    LOAM_IQ2_S = 22, LOAM_IQ4_XS = 23, LOAM_I8 = 24, LOAM_I16 = 25, LOAM_I32 = 26, LOAM_I64 = 27, LOAM_F64 = 28,
    LOAM_IQ1_M = 29, LOAM_BF16 = 30, LOAM_TQ1_0 = 34, LOAM_TQ2_0 = 35, LOAM_MXFP4 = 39, LOAM_NVFP4 = 40,
    LOAM_Q1_0 = 41, LOAM_Q2_0 = 42
} loam_type;

#define LOAM_TYPE_LIMIT 43 /* one above the largest id */

/* Name of a type as the field writes it ("q4_K"); NULL for an id that is not in use. */
LOAM_API const char *loam_type_name(int type);
/* The type of that name, in any case of letters; -1 where there is none. */
LOAM_API int loam_type_from_name(const char *name);
/* Values and bytes of one block; 0 for an id that is not in use. */
LOAM_API int loam_type_block_values(int type);
LOAM_API int loam_type_block_bytes(int type);

/* ---- data and operations of the caller ---- */

/* Values in memory: element (i, j, k, l) lies at data + i nb[0] + j nb[1] + k nb[2] + l nb[3]. */
typedef struct loam_data {
    loam_type type;
    int64_t ne[4];
    int64_t nb[4];                 /* bytes; block types: nb[0] is of a block */
    void *data;
} loam_data;

/* A task of an operation of the caller: task `task` of n_tasks makes its part of `out`. Tasks run at the same time. */
typedef struct loam_custom_task {
    const loam_data *out;          /* contiguous */
    const loam_data *in;           /* [n_in] as they lie, views with their strides; not to be written */
    int n_in;
    int task, n_tasks;
    void *user;
} loam_custom_task;
typedef bool (*loam_custom_fn)(const loam_custom_task *task); /* false: stop the evaluation (ABORTED) */

/* The gradient, in training: adds to dx[i] (floats, contiguous, extents of in[i]; NULL: not wanted) what dy, the gradient of the
 * result, makes of it. Called once, on one thread. */
typedef struct loam_custom_back {
    const loam_data *dy, *in;
    float *const *dx;              /* [n_in] */
    int n_in;
    void *user;
} loam_custom_back;
typedef void (*loam_custom_grad_fn)(const loam_custom_back *b);

#define LOAM_TASKS_AS_THREADS (-1)
#define LOAM_MAX_CUSTOM_INPUTS 64

typedef struct loam_custom {
    const char *name;              /* copied; NULL = "CUSTOM" */
    loam_custom_fn run;
    loam_custom_grad_fn gradient;  /* NULL: nothing flows back. Needs inputs of F32, at most 6 */
    void *user;
    int n_tasks;                   /* > 0, or LOAM_TASKS_AS_THREADS */
    bool in_place;                 /* the result is as the first input, whose values stand in `out` when run is called */
    bool like_first;               /* the result has the first input's type and shape, and the next three are ignored */
    loam_type type;
    int n_axes;
    int64_t ne[4];
} loam_custom;

/* ---- graphs of tensors ----
 *
 *     loam_graph *g;
 *     loam_graph_new(&g, &err);
 *     loam_tensor *x = loam_tensor_new(g, "x", LOAM_F32, 2, (int64_t[]){ 64, 10 });      // 10 rows of 64
 *     loam_tensor *w = loam_tensor_new(g, "w", LOAM_Q8_0, 2, (int64_t[]){ 64, 32 });
 *     loam_tensor *y = loam_op_gate(g, LOAM_GATE_SILU, loam_op_matmul(g, w, x), NULL);
 *     loam_graph_output(g, y);
 *     loam_tensor_bind(w, weights, bytes, &err);  loam_tensor_bind(x, rows, bytes, &err);
 *     loam_graph_eval(g, NULL, &err);
 *     loam_tensor_get(y, out, bytes, &err);
 *
 * Axes. ne[0] is contiguous in a fresh tensor; up to four axes, those not given are 1. Activations are floats (F32) unless
 * said; weights of products and tables of look-ups may have any type. Shapes below are written [ne0, ne1, ...]; "..." are
 * axes that pass through.
 *
 * Mistakes. Constructors never fail loudly: the first mistake (a shape, a type, a NULL, a tensor of another graph) is kept
 * with its message, they return NULL from then on and accept NULL, and loam_graph_check(), loam_graph_eval() and the like
 * report it. So a network reads as a list of formulas. A cycle cannot be written down: a tensor exists before it is used.
 *
 * A graph belongs to one thread at a time. It may be evaluated any number of times, with other data bound, and may grow
 * between evaluations. Tensors live as long as their graph. */

typedef struct loam_graph loam_graph;
typedef struct loam_tensor loam_tensor;
struct loam_pool;   /* loam/pool.h */

#define LOAM_MAX_AXES 4

LOAM_API loam_status loam_graph_new(loam_graph **out, loam_error *err); /* NOMEM */
LOAM_API void loam_graph_free(loam_graph *g);                           /* NULL is fine */
/* The first mistake of the constructors. */
LOAM_API loam_status loam_graph_check(const loam_graph *g, loam_error *err);
/* Forgets the first mistake: constructors work again. Tensors made before it are as they were. */
LOAM_API void loam_graph_forgive(loam_graph *g);

/* ---- tensors with data of the caller's: inputs and weights ---- */

/* name is copied (at most 63 bytes) and stands in messages. Rows of block types must be made of whole blocks. */
LOAM_API loam_tensor *loam_tensor_new(loam_graph *g, const char *name, loam_type type, int n_axes, const int64_t *ne);
/* Names of the axes for messages, separated by commas: "width, heads, tokens". Returns x. */
LOAM_API loam_tensor *loam_tensor_axes(loam_tensor *x, const char *names);
/* Where the data lies: contiguous, `bytes` must be loam_tensor_bytes(). It is read by evaluations, not copied: the caller
 * keeps it until the last one, and may change it between two. Errors: ARG (not made by loam_tensor_new, another size). */
LOAM_API loam_status loam_tensor_bind(loam_tensor *x, const void *data, size_t bytes, loam_error *err);

/* ---- facts ---- */

LOAM_API loam_type loam_tensor_type(const loam_tensor *x);
LOAM_API const char *loam_tensor_name(const loam_tensor *x);        /* of the operation where none was given */
LOAM_API loam_tensor *loam_tensor_set_name(loam_tensor *x, const char *name); /* returns x */
LOAM_API int loam_tensor_n_axes(const loam_tensor *x);
LOAM_API int64_t loam_tensor_ne(const loam_tensor *x, int axis);    /* extent; 0 for an axis out of 0 .. 3 */
LOAM_API int64_t loam_tensor_nb(const loam_tensor *x, int axis);    /* stride in bytes */
LOAM_API size_t loam_tensor_bytes(const loam_tensor *x);            /* of a contiguous tensor of its type and extents */
LOAM_API bool loam_tensor_is_contiguous(const loam_tensor *x);
/* The operation that makes it ("MATMUL"), "WEIGHT" for a tensor with data, "VIEW" for a view. */
LOAM_API const char *loam_tensor_op(const loam_tensor *x);

/* ---- views: nothing is copied ---- */

/* Strides nb[1 .. n_axes - 1] in bytes (nb[0] is that of x) and a first byte within x. May not reach beyond x. */
typedef struct loam_window {
    int n_axes;
    int64_t ne[LOAM_MAX_AXES];
    int64_t nb[LOAM_MAX_AXES];     /* multiples of the bytes of a value, >= 0 */
    int64_t offset;
} loam_window;
LOAM_API loam_tensor *loam_op_view(loam_graph *g, loam_tensor *x, const loam_window *w);
/* As many values in another shape; one extent may be -1. A tensor that is not contiguous is copied first. */
LOAM_API loam_tensor *loam_op_reshape(loam_graph *g, loam_tensor *x, int n_axes, const int64_t *ne);
/* Axis i of x becomes axis order[i] of the result; order has each of 0 .. 3 once. */
LOAM_API loam_tensor *loam_op_permute(loam_graph *g, loam_tensor *x, const int order[LOAM_MAX_AXES]);
LOAM_API loam_tensor *loam_op_transpose(loam_graph *g, loam_tensor *x);            /* axes 0 and 1 */
/* Values [first, first + count) of one axis. */
LOAM_API loam_tensor *loam_op_slice(loam_graph *g, loam_tensor *x, int axis, int64_t first, int64_t count);
/* Axes of extent 1 are repeated. */
LOAM_API loam_tensor *loam_op_broadcast(loam_graph *g, loam_tensor *x, int n_axes, const int64_t *ne);

/* ---- copies ---- */

LOAM_API loam_tensor *loam_op_contiguous(loam_graph *g, loam_tensor *x);           /* x itself where it is contiguous */
/* In another type. From every type to F32, F16, BF16, I32 (rounded to nearest even, NaN becomes 0, out of range the nearest
 * end) and the block types of caches (Q8_0, Q5_1, Q5_0, Q4_1, Q4_0, IQ4_NL); same type: as loam_op_contiguous. */
LOAM_API loam_tensor *loam_op_cast(loam_graph *g, loam_tensor *x, loam_type type);

/* ---- arithmetic: extents are equal, or 1 and repeated ---- */

LOAM_API loam_tensor *loam_op_add(loam_graph *g, loam_tensor *a, loam_tensor *b);
LOAM_API loam_tensor *loam_op_sub(loam_graph *g, loam_tensor *a, loam_tensor *b);
LOAM_API loam_tensor *loam_op_mul(loam_graph *g, loam_tensor *a, loam_tensor *b);
LOAM_API loam_tensor *loam_op_scale(loam_graph *g, loam_tensor *x, float s);
LOAM_API loam_tensor *loam_op_clamp(loam_graph *g, loam_tensor *x, float low, float high);
LOAM_API loam_tensor *loam_op_softcap(loam_graph *g, loam_tensor *x, float cap);   /* cap tanh(x / cap) */

typedef enum loam_gate {
    LOAM_GATE_SILU, LOAM_GATE_GELU /* by tanh */, LOAM_GATE_GELU_ERF, LOAM_GATE_GELU_QUICK, LOAM_GATE_RELU, LOAM_GATE_RELU2,
    LOAM_GATE_SIGMOID, LOAM_GATE_SOFTPLUS, LOAM_GATE_EXP, LOAM_GATE_TANH,
    LOAM_GATE_OAI,                 /* min(x, 7) sigmoid(1.702 min(x, 7)) (clamp(up, -7, 7) + 1); needs up */
    LOAM_GATE_XIELU,               /* loam_op_xielu */
    LOAM_GATE_GELU_HALF            /* GELU rounded to F16 twice; x above 10, 0 below -10 */
} loam_gate;
/* f(x) * up, or f(x) where up is NULL. up has the shape of x. */
LOAM_API loam_tensor *loam_op_gate(loam_graph *g, loam_gate kind, loam_tensor *x, loam_tensor *up);
/* xIELU with alpha_p, alpha_n, beta, eps: above 0 alpha_p x^2 + beta x, else alpha_n (exp(min(x, eps)) - 1 - x) + beta x. */
LOAM_API loam_tensor *loam_op_xielu(loam_graph *g, loam_tensor *x, const float p[4]);

typedef enum loam_norm { LOAM_NORM_RMS, LOAM_NORM_LAYER } loam_norm;
/* Over ne[0], or over runs of `group` values of it (0: the whole); then * w + b. w, b: [group] or [ne0], or NULL. */
typedef struct loam_norm_params {
    loam_norm kind;
    float eps;
    int group;
} loam_norm_params;
LOAM_API loam_tensor *loam_op_norm(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *b, const loam_norm_params *p);
LOAM_API loam_tensor *loam_op_softmax(loam_graph *g, loam_tensor *x);              /* over ne[0] */
LOAM_API loam_tensor *loam_op_log_softmax(loam_graph *g, loam_tensor *x);
LOAM_API loam_tensor *loam_op_sum(loam_graph *g, loam_tensor *x);                  /* over ne[0]: [1, ...] */
LOAM_API loam_tensor *loam_op_concat(loam_graph *g, loam_tensor *a, loam_tensor *b, int axis);
/* Parts `rate` of the values become 0 in training, the others grow by 1 / (1 - rate); x as it is otherwise. */
LOAM_API loam_tensor *loam_op_dropout(loam_graph *g, loam_tensor *x, float rate);

/* ---- products and look-ups ---- */

/* [K, M, H] times [K, N, B]: y[m, n, b] = sum over k of w[k, m, h] x[k, n, b]; B is a multiple of H, each w serves B / H in a
 * row. Two axes each: a plain matrix product. Products with block types round x to 8 bits per block. */
LOAM_API loam_tensor *loam_op_matmul(loam_graph *g, loam_tensor *w, loam_tensor *x);
LOAM_API loam_tensor *loam_op_embed(loam_graph *g, loam_tensor *table, loam_tensor *ids);  /* [D, n], I32 [T] -> [D, T] */
/* Picks along the last axis by I32 [T]; an index out of range fails the evaluation (ARG), here and in loam_op_embed. */
LOAM_API loam_tensor *loam_op_select(loam_graph *g, loam_tensor *x, loam_tensor *rows);

/* Images: [width * height, channels, images], rows of pixels one after another. */
typedef struct loam_image {
    int width, height;             /* of the input */
    int kernel_w, kernel_h;
    int stride_w, stride_h;        /* 0 = 1 */
    int pad_w, pad_h;              /* zeros; outside of a pooling's mean and maximum */
    int dilation_w, dilation_h;    /* of the convolution's taps; 0 = 1 */
    bool mean;                     /* pooling: the mean in place of the maximum */
} loam_image;
/* w [kernel_w, kernel_h, channels in, channels out], bias [channels out] or NULL; gives [pixels, channels out, images]. */
LOAM_API loam_tensor *loam_op_conv2d(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *bias, const loam_image *p);
LOAM_API loam_tensor *loam_op_pool2d(loam_graph *g, loam_tensor *x, const loam_image *p);

/* ---- transformers: [width, heads, tokens] ---- */

typedef struct loam_rope_params {
    int n_rot;                     /* rotated values of a head, even */
    float base;                    /* frequency base: 10000 */
    float freq_scale;              /* 1 / scaling factor; 0 = 1 */
    float ext_factor, ramp_low, ramp_high; /* YaRN (Peng et al. 2023): mix and ramp in pairs; 0 = off */
    float magnitude;               /* multiplies cosine and sine; 0 = 1 */
    int sections[4];               /* M-RoPE; zeros = one position for all pairs */
    bool interleaved;              /* sections alternate from pair to pair */
} loam_rope_params;
/* positions I32 [T], factors F32 [n_rot / 2] that divide the angles or NULL: [n_rot, T], cosines then sines. */
LOAM_API loam_tensor *loam_op_rope_table(loam_graph *g, loam_tensor *positions, loam_tensor *factors, const loam_rope_params *p);
/* Rotates values first .. first + n_rot of each head. neox: pairs are (i, i + n_rot / 2), else (2i, 2i + 1). */
LOAM_API loam_tensor *loam_op_rope(loam_graph *g, loam_tensor *x, loam_tensor *table, int first, bool neox);
/* x times 1 + t ln(1 + floor((position + o) / n)). */
LOAM_API loam_tensor *loam_op_temperature(loam_graph *g, loam_tensor *x, loam_tensor *positions, const float tno[3]);

typedef struct loam_attention_params {
    float scale;                   /* of q.k; 0 = 1 / sqrt(width) */
    float softcap;                 /* 0 = off */
    bool causal;                   /* query i of n sees keys up to i + (keys - n) */
    int window;                    /* > 0: only the last `window` keys */
    float alibi;                   /* largest bias (Press et al. 2022), 0 = off */
    loam_type type_k, type_v;      /* keys and values are rounded to these: F32 (0), F16, BF16, Q8_0 ... */
} loam_attention_params;
/* q [K, H, n], k [K, G, m], v [V, G, m], sinks [H] or NULL; H is a multiple of G; gives [V, H, n]. In training n = m. */
LOAM_API loam_tensor *loam_op_attention(loam_graph *g, loam_tensor *const qkv[3], loam_tensor *sinks, const loam_attention_params *p);

typedef enum loam_router {
    LOAM_ROUTER_SOFTMAX, LOAM_ROUTER_SIGMOID, LOAM_ROUTER_TOP_SOFTMAX, LOAM_ROUTER_SQRT_SOFTPLUS
} loam_router;
typedef struct loam_routing {
    int n_used;                    /* experts of a token */
    int n_group, n_group_used;     /* experts come in groups of which the best are looked at; 0 = one group */
    loam_router router;
    bool normalise;                /* weights of a token are divided by their sum */
    float scale;                   /* of the weights; 0 = 1 */
} loam_routing;
/* logits [experts, T], bias [experts] (for the choice only) or NULL: a routing, I32 [2 n_used, T]: experts, then the bits of
 * their weights. Only as the last argument of the following. */
LOAM_API loam_tensor *loam_op_route(loam_graph *g, loam_tensor *logits, loam_tensor *bias, const loam_routing *p);
/* w [in, out, experts]; x [in, T] or [in, n_used, T] -> [out, n_used, T]. */
LOAM_API loam_tensor *loam_op_experts(loam_graph *g, loam_tensor *w, loam_tensor *x, loam_tensor *routing);
/* bias [out, experts], scale [experts]. */
LOAM_API loam_tensor *loam_op_expert_add(loam_graph *g, loam_tensor *y, loam_tensor *bias, loam_tensor *routing);
LOAM_API loam_tensor *loam_op_expert_scale(loam_graph *g, loam_tensor *y, loam_tensor *scale, loam_tensor *routing);
/* Sum over the experts of a token of weight * y, in rank order; routing NULL: of y. [out, n_used, T] -> [out, T]. */
LOAM_API loam_tensor *loam_op_expert_sum(loam_graph *g, loam_tensor *y, loam_tensor *routing);
LOAM_API loam_tensor *loam_op_expert_weigh(loam_graph *g, loam_tensor *x, loam_tensor *routing); /* [in, T] -> [in, n_used, T] */

/* ---- recurrent layers: tokens are one sequence; the state is zero before the first ---- */

/* Causal convolution of each channel: w [taps, channels], bias [channels] or NULL, x [channels, T]. w and bias have data. */
LOAM_API loam_tensor *loam_op_conv(loam_graph *g, loam_tensor *x, loam_tensor *w, loam_tensor *bias);
LOAM_API loam_tensor *loam_op_token_shift(loam_graph *g, loam_tensor *x);          /* the previous row minus this one */
/* Mamba: s = exp(dt a) s + dt x b; y = s c + d x. x [P, heads, T], b, c [N, groups, T]; dt [heads, T], a, d [heads], or with one
 * head dt [P, T], a [N, P], d [P]. a and d have data. */
typedef struct loam_scan {
    loam_tensor *x, *dt, *b, *c, *a, *d;
} loam_scan;
LOAM_API loam_tensor *loam_op_scan(loam_graph *g, const loam_scan *in);
/* Gated delta rule (Yang et al. 2024): q, k [N, key heads, T], v [P, heads, T], decay [1 or N, heads, T], beta [1, heads, T].
 * spread: head h reads key head h / (heads / key heads), else h mod key heads. */
typedef struct loam_delta {
    loam_tensor *q, *k, *v, *decay, *beta;
    bool spread;
} loam_delta;
LOAM_API loam_tensor *loam_op_delta(loam_graph *g, const loam_delta *in);
/* RWKV 6: all [N, heads, T], bonus [N, heads] with data, or NULL. RWKV 7: all [N, heads, T]. */
typedef struct loam_wkv6 {
    loam_tensor *r, *k, *v, *w, *bonus;
} loam_wkv6;
typedef struct loam_wkv7 {
    loam_tensor *r, *w, *k, *v, *kk, *ka;
} loam_wkv7;
LOAM_API loam_tensor *loam_op_wkv6(loam_graph *g, const loam_wkv6 *in);
LOAM_API loam_tensor *loam_op_wkv7(loam_graph *g, const loam_wkv7 *in);
LOAM_API loam_tensor *loam_op_head_dot(loam_graph *g, loam_tensor *a, loam_tensor *b, loam_tensor *v); /* per head: (a . b) v */

/* ---- operations of the caller ---- */

LOAM_API loam_tensor *loam_op_custom(loam_graph *g, const loam_custom *op, loam_tensor *const *inputs, int n_inputs);
/* The usual forms: as many inputs as the name says, a result of the first one's type and shape. */
LOAM_API loam_tensor *loam_op_map1(loam_graph *g, loam_custom_fn fn, loam_tensor *a, int n_tasks, void *user);
LOAM_API loam_tensor *loam_op_map2(loam_graph *g, loam_custom_fn fn, loam_tensor *const ab[2], int n_tasks, void *user);
LOAM_API loam_tensor *loam_op_map3(loam_graph *g, loam_custom_fn fn, loam_tensor *const abc[3], int n_tasks, void *user);

/* ---- evaluation ---- */

/* Keeps the result of x: it can be read after an evaluation. Returns x. */
LOAM_API loam_tensor *loam_graph_output(loam_graph *g, loam_tensor *x);

/* First called with ask = true before an operation: true to be shown its result. Then with ask = false and the data; false
 * stops the evaluation (ABORTED). `ns`: time of the operation on all threads. */
typedef bool (*loam_tensor_observe_fn)(void *user, const loam_tensor *x, const loam_data *data, uint64_t ns, bool ask);

/* Get them from loam_eval_defaults(), then change what you need. */
typedef struct loam_eval_params {
    size_t struct_size;
    int32_t n_threads;             /* 0 (default): the CPUs of this process */
    struct loam_pool *pool;        /* threads lent by the caller; NULL (default): the graph's own */
    loam_abort_fn abort;           /* NULL (default): never */
    void *abort_user;
    loam_tensor_observe_fn observe; /* NULL (default): nobody */
    void *observe_user;
} loam_eval_params;
LOAM_API loam_eval_params loam_eval_defaults(void);

/* Computes all outputs. params NULL: the defaults. Results do not depend on the number of threads. Errors: the first mistake
 * of the constructors; ARG (no output, a tensor without data, an index out of range, by name), NOMEM, ABORTED. */
LOAM_API loam_status loam_graph_eval(loam_graph *g, const loam_eval_params *params, loam_error *err);

/* Copies the values of an output, or of a view of one, of the last evaluation, contiguous; bytes is loam_tensor_bytes().
 * ARG where x is no output or was not evaluated. */
LOAM_API loam_status loam_tensor_get(const loam_tensor *x, void *out, size_t bytes, loam_error *err);
/* Where they lie until the next evaluation or change of the graph; false as loam_tensor_get. */
LOAM_API bool loam_tensor_data(const loam_tensor *x, loam_data *out);

/* What an evaluation takes. */
typedef struct loam_graph_use {
    uint64_t arena, scratch;       /* bytes of results in passing, of the threads */
    uint64_t outputs;              /* bytes of outputs */
    int32_t n_tensors, n_steps, n_barriers;
} loam_graph_use;
LOAM_API loam_status loam_graph_measure(loam_graph *g, int32_t n_threads, loam_graph_use *out, loam_error *err);

/* ---- looking at a graph ---- */

typedef enum loam_dump { LOAM_DUMP_TEXT, LOAM_DUMP_DOT, LOAM_DUMP_SVG } loam_dump;
typedef bool (*loam_dump_fn)(void *user, const char *text, size_t n); /* false stops */
/* TEXT: a line a value; DOT: for graphviz; SVG: a drawing in layers. Errors: ABORTED (the sink stopped), NOMEM. */
LOAM_API loam_status loam_graph_dump(const loam_graph *g, loam_dump form, loam_dump_fn sink, void *user, loam_error *err);

/* The operations of Loam, 0 .. loam_n_ops() - 1: their names ("MATMUL"), and how one is written: the name of its constructor, or,
 * in parentheses, why it has none. NULL out of range. */
LOAM_API int loam_n_ops(void);
LOAM_API const char *loam_op_name(int op);
LOAM_API const char *loam_op_constructor(int op);

#ifdef __cplusplus
}
#endif
#endif
