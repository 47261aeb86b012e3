/* compute.h - public graphs over src/graph: what the files of src/compute share, and what training reads.
 *
 *   loam_tensor ── a window (extents, strides, offset) on the memory of ──► value ── of ──► graph
 *
 * A view is a tensor, not a value. An operation asks for its inputs in the form that src/graph wants (rows and tokens,
 * contiguous); a tensor that is contiguous is cut anew without a copy, any other is copied first. */
#ifndef LOAM_COMPUTE_COMPUTE_H
#define LOAM_COMPUTE_COMPUTE_H

#include "base/pool.h"
#include "graph/plan.h"
#include "loam/tensor.h"

#define NAME_BYTES 64

/* Data of the caller. */
typedef struct leaf {
    weight w;              /* w.data NULL: not bound yet */
    value *activation;     /* made on first use */
} leaf;

struct loam_tensor {
    loam_graph *g;
    loam_tensor *next;     /* all tensors of the graph, the latest first */
    value *v;              /* whose memory it looks at; NULL for data of the caller that no operation has read yet */
    leaf *data;            /* that memory is the caller's; else NULL */
    loam_type type;
    int n_axes;
    int64_t ne[4], nb[4], offset;
    bool is_view;
    char name[NAME_BYTES]; /* empty: the operation's */
    char axes[NAME_BYTES]; /* empty: none */
};

/* A result that is kept. */
typedef struct kept {
    value *v;
    weight *place;         /* the value's place: its data is set when buffers are made */
    uint64_t at;           /* in the outputs */
} kept;

/* Keys and values of an attention, or the state of a recurrent operation. */
typedef struct side {
    value *v;              /* ATTENTION or an operation with a state */
    int64_t n_q, n_k;      /* ATTENTION: queries, keys */
    page_shape shape;
    int64_t r_row, s_row;  /* states */
} side;

struct loam_graph {
    graph g;               /* empty while a plan has it */
    plan *p;               /* NULL: to be made */
    int plan_threads;
    loam_tensor *tensors;
    int n_tensors;
    void *owned;           /* chain of blocks that live as long as the graph */
    kept *outputs;
    size_t n_outputs, cap_outputs;
    side *sides;
    size_t n_sides, cap_sides;
    bool wanted;           /* an output was named, be it data of the caller */
    bool evaluated;
    pool *threads;         /* its own */
    uint8_t *output_data, *arena, *scratch, *shared, *side_data;
    uint64_t output_bytes, arena_bytes, scratch_bytes, shared_bytes, side_bytes;
    kv_view view;          /* of the sides; arrays in side_data */
};

/* The graph of values, whoever has it now. */
graph *compute_graph(loam_graph *g);
/* Before the graph grows: takes it back from a plan. */
void compute_open(loam_graph *g);

/* Memory of the graph's life time, zeroed; NULL after noting the lack of memory. */
void *compute_own(loam_graph *g, size_t bytes);

/* x is a tensor of g, and g has not failed; notes the mistake otherwise. `op` and `what` for the message. */
bool compute_check(loam_graph *g, const loam_tensor *x, const char *op, const char *what);
/* The same for several; NULL entries behind `least` are fine. */
bool compute_all(loam_graph *g, const char *op, loam_tensor *const *x, int n, int least);
void compute_fail(loam_graph *g, const char *op, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* "name [64 width, 10 tokens] f32" for messages; uses text. */
const char *compute_show(const loam_tensor *x, char *text, size_t n);

static inline int64_t compute_values(const loam_tensor *x) { return x->ne[0] * x->ne[1] * x->ne[2] * x->ne[3]; }
bool compute_contiguous(const loam_tensor *x);
/* x as a value of exactly these extents (of the same product), contiguous. */
value *compute_rows(loam_graph *g, loam_tensor *x, int64_t n0, int64_t n1, int64_t n2);
/* As [ne0, 1, everything else]: for operations on rows. */
value *compute_flat(loam_graph *g, loam_tensor *x);
/* As a matrix that operations take as a weight, with the extents of x: the caller's data, or a result. NULL for NULL. */
const weight *compute_weight(loam_graph *g, loam_tensor *x);
/* The memory that x looks at. */
value *compute_root(loam_graph *g, loam_tensor *x);

/* A tensor for the result v, with these extents (of the same product as v's). NULL for NULL. */
loam_tensor *compute_result(loam_graph *g, value *v, int n_axes, const int64_t *ne);
/* The same with the extents of x. */
loam_tensor *compute_like(loam_graph *g, value *v, const loam_tensor *x);
/* A view: as x but for what is changed afterwards. */
loam_tensor *compute_view(loam_graph *g, const loam_tensor *x);

loam_status compute_note_side(loam_graph *g, side s);

/* ---- what evaluation and scheduler share ---- */

/* The result or source whose memory v looks at; *offset in it. */
value *compute_memory(value *v, int64_t *offset);
/* The values of x, whose memory begins at `from`, one after another. */
void compute_gather(const loam_tensor *x, const void *from, void *out);
/* What the operations of a context find in its memory; base NULL: only measures. Returns bytes. */
uint64_t compute_lay_sides(const loam_graph *g, uint8_t *base, kv_view *view);
int64_t compute_most_pages(const loam_graph *g);
loam_status compute_check_graph(loam_graph *g, loam_error *err);
const loam_tensor *compute_tensor_of(const loam_graph *g, const value *v);

/* The values of x: where they lie now. False before an evaluation, and where they are not kept. */
bool compute_data(const loam_tensor *x, loam_data *out);

#endif
