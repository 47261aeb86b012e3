/* grad.h - the backward pass: what the gradient of an operation sees.
 *
 * Training runs a graph as it is, keeps the values that gradients read, and then takes the operations in reverse order. The
 * gradient of an operation gets dy, the gradient of its result, and writes (or adds to) those of its inputs. The column
 * `gradient` of op.def names it; `none` stands where nothing flows back. The inputs of an operation, as gradients count
 * them, are its sources, with two exceptions: ATTENTION has q, k, v and the sinks (no cache stands between), and the products
 * read floats where inference reads an encoded form. */
#ifndef LOAM_GRAPH_GRAD_H
#define LOAM_GRAPH_GRAD_H

#include "graph/plan.h"

#define GRAD_READS_RESULT (1u << 31)

struct grad_step {
    const value *v;
    value *in[GRAPH_MAX_SRC];      /* grad_inputs */
    const float *dy;               /* laid out as v */
    float *dx[GRAPH_MAX_SRC];      /* laid out as in[i], NULL: not wanted; of a weight [ne] floats */
    unsigned add;                  /* bit i: add to dx[i]; else nothing is there yet. Always set for weights. */
    void *saved;                   /* grad_saved bytes, kept with the value from its forward step */
};

/* Tokens of the batch that see each other, in order. */
typedef struct grad_run {
    int first, count;
} grad_run;

/* What attention and dropout need to know about the batch. */
struct grad_view {
    const int32_t *pos;            /* [n_tokens] */
    const grad_run *runs;
    int n_runs;
    void **saved;                  /* by value id: what forward leaves for the gradient */
    bool drop;                     /* dropout acts */
    uint64_t seed;                 /* of dropout, another in every step */
    const int32_t *row;            /* [n_tokens] number of the token within the step: dropout does not depend on the cut */
};

/* The inputs of the gradient. *flow receives the bits of those that have one. */
void grad_inputs(const value *v, value *in[GRAPH_MAX_SRC], unsigned *flow);
/* Which inputs the gradient reads when the gradients `wanted` (bits) are: bit i, and GRAD_READS_RESULT. */
unsigned grad_reads(const value *v, unsigned wanted);
/* Bytes that the forward step leaves for the gradient. */
size_t grad_saved(const value *v);
/* False for the operations of op.def with `none`. */
bool grad_exists(op_kind op);
/* Why an operation has no gradient: for messages. */
const char *grad_reason(op_kind op);

/* Value c of the row of token t in the gradient of x, whose first float is at base. */
static inline float *grad_at(float *base, const value *x, int64_t t, int64_t c)
{
    char *p = (char *)base + t * x->nb[2];
    bool whole = x->ne[1] == 1 || x->nb[1] == x->ne[0] * x->nb[0];
    return (float *)(whole || x->ne[0] == 0 ? p + c * 4 : p + c / x->ne[0] * x->nb[1] + c % x->ne[0] * 4);
}

#endif
