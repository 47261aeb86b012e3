/* grad_table.c - the tables of the gradients of the CPU device. */
#include "device/grad.h"

static const grad_fn gradients[] = {
#define OP(NAME, least, most, shape, run, split, grad) grad_##grad,
#include "graph/op.def"
#undef OP
};

void grad_none(const grad_step *g, worker *w)
{
    (void)g;
    (void)w;
}

grad_fn cpu_gradient(op_kind op) { return grad_exists(op) ? gradients[op] : NULL; }

static void nothing(const step *s, worker *w)
{
    (void)s;
    (void)w;
}

run_fn cpu_learn(op_kind op)
{
    switch (op) {
    case OP_MATMUL: return learn_matmul;
    case OP_MATMUL_HEADS: return learn_matmul_heads;
    case OP_ATTENTION: return learn_attention;
    case OP_DROPOUT: return learn_dropout;
    case OP_KV_WRITE: return nothing;
    default: return NULL;
    }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t cpu_grad_scratch(const value *v, int n_tokens)
{
    switch (v->op) {
    case OP_MATMUL: case OP_MATMUL_HEADS: return larger(gemm_scratch(), mul_scratch(v->src[0]->ne[0]) + 64);
    case OP_ATTENTION: return learn_attention_scratch(&v->p.attn, n_tokens);
    case OP_EXPERTS: return grad_experts_scratch(v);
    case OP_ROPE: return (size_t)(v->src[1]->ne[0] + v->ne[0]) * sizeof(float);
    default: return 0;
    }
}

/* NORM: mean and factor of every run; EXPERTS: lists and the gradients of all pairs. */
size_t cpu_grad_shared(const value *v)
{
    if (v->op == OP_NORM) return (size_t)(row_values(v) / v->p.norm.group * v->ne[2]) * 2 * sizeof(float);
    if (v->op == OP_EXPERTS) return grad_experts_shared(v);
    return 0;
}
