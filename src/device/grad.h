/* grad.h - gradients of the CPU device: code for the column `gradient` of op.def, and the forward steps that training does in
 * another way. Work is cut as in the forward pass: over tokens for gradients of activations, over columns for gradients of
 * weights, whose sums over tokens are taken in ascending order; so no result depends on the number of threads. */
#ifndef LOAM_DEVICE_GRAD_H
#define LOAM_DEVICE_GRAD_H

#include "device/cpu.h"
#include "graph/grad.h"
#include "kernels/gemm.h"
#include "kernels/learn.h"

#define OP(NAME, least, most, shape, run, split, grad) void grad_##grad(const grad_step *g, worker *w);
#include "graph/op.def"
#undef OP

run_fn cpu_learn(op_kind op);
grad_fn cpu_gradient(op_kind op);
size_t cpu_grad_scratch(const value *v, int n_tokens);
size_t cpu_grad_shared(const value *v);

/* Forward steps of training. */
void learn_matmul(const step *s, worker *w);
void learn_matmul_heads(const step *s, worker *w);
void learn_attention(const step *s, worker *w);
void learn_dropout(const step *s, worker *w);

size_t learn_attention_scratch(const attention_params *p, int n_tokens);
size_t grad_experts_scratch(const value *v);
size_t grad_experts_shared(const value *v);

static inline bool grad_adds(const grad_step *g, int i) { return (g->add >> i & 1) != 0; }

/* Row t of dy; results are never views. */
static inline const float *grad_dy(const grad_step *g, int64_t t) { return (const float *)((const char *)g->dy + t * g->v->nb[2]); }

/* Tokens and columns of this thread. */
static inline range grad_tokens(const grad_step *g, const worker *w) { return range_of(g->v->ne[2], 1, w->ith, w->nth); }
static inline range grad_columns(int64_t n, const worker *w) { return range_of(n, ROW_UNIT, w->ith, w->nth); }

/* The kernel forms of gradients of products: whether floats of this type are multiplied as they are. */
static inline bool is_float_weight(loam_type t) { return dtype_table[t].act == ACT_F32; }

#endif
