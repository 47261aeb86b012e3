/* cpu.h - the CPU device: code for every operation of op.def. */
#ifndef LOAM_DEVICE_CPU_H
#define LOAM_DEVICE_CPU_H

#include "graph/plan.h"

const device *device_cpu(void);

/* ---- shared by the cpu_*.c files ---- */

#define OP(NAME, least, most, shape, run, ...) void run_##run(const step *s, worker *w);
#include "graph/op.def"
#undef OP

static inline int64_t row_values(const value *v) { return v->ne[0] * v->ne[1]; }
static inline bool row_whole(const value *v) { return v->ne[1] == 1 || v->nb[1] == v->ne[0] * v->nb[0]; }

/* Value c of the row of token t (c counts through the heads). */
static inline float *row_at(const value *v, const worker *w, int64_t t, int64_t c)
{
    char *p = (char *)value_data(v, w) + t * v->nb[2];
    if (row_whole(v) || v->ne[0] == 0) return (float *)(p + c * 4);
    return (float *)(p + c / v->ne[0] * v->nb[1] + c % v->ne[0] * 4);
}

/* The part of the result that this thread makes: tokens [t0, t1), values [c0, c1) of each row. */
typedef struct part {
    int64_t t0, t1, c0, c1;
} part;
part part_of(const step *s, const worker *w);

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Whether a token at position a sees one at position b (-1: an empty slot). */
bool cpu_sees(const attention_params *p, int32_t a, int32_t b);
/* ALiBi (Press et al. 2022): what is taken off the score for each position of distance. */
float cpu_alibi_slope(const attention_params *p, int head);
/* The experts of a token in a routing, and their weights. */
const int32_t *cpu_experts_at(const value *routing, const worker *w, int64_t t);
/* Sorts the (token, rank) pairs t * used + rank by expert: count[e] .. count[e + 1] are those of expert e in list. */
void cpu_sort_by_expert(const value *routing, const worker *w, int64_t n_expert, int32_t *count, int32_t *list);
/* Largest stretch of a row from value c on, up to end, in which x is one run of memory. */
static inline int64_t cpu_stretch(const value *x, int64_t c, int64_t end)
{
    return !x || row_whole(x) ? end : min64(end, (c / x->ne[0] + 1) * x->ne[0]);
}
/* Rows [r.first, r.last) of a product in pieces, between which an abort is noticed. a holds all but w, y and rows of a piece. */
void cpu_product(worker *w, mul_args a, mul_fn f, range r);

size_t cpu_attention_scratch(const value *v);
size_t cpu_attention_shared(const value *v, int64_t max_pages);

#endif
