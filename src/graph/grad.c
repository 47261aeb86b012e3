/* grad.c - see grad.h. */
#include "graph/grad.h"

#include <string.h>

static const char *const names[] = {
#define OP(NAME, least, most, shape, run, split, grad) #grad,
#include "graph/op.def"
#undef OP
};

bool grad_exists(op_kind op) { return strcmp(names[op], "none") != 0; }

const char *grad_reason(op_kind op)
{
    switch (op) {
    case OP_INPUT: case OP_WEIGHT: return "it is a source";
    case OP_VIEW: return "its gradient is a part of its input's";
    case OP_ROPE_TABLE: return "positions are not learned through angles";
    case OP_KV_WRITE: return "attention takes keys and values from where they come from";
    case OP_TUPLE: return "an operation of the caller with a gradient has at most six inputs";
    case OP_ENCODE: return "products take floats in training";
    default: return "the states of recurrent layers are not trained";
    }
}

static value *plain(value *x) { return x && x->op == OP_ENCODE ? x->src[0] : x; }

void grad_inputs(const value *v, value *in[GRAPH_MAX_SRC], unsigned *flow)
{
    memcpy(in, v->src, GRAPH_MAX_SRC * sizeof *in);
    *flow = 1u;
    switch (v->op) {
    case OP_ATTENTION:
        in[0] = v->src[0], in[1] = v->src[1]->src[0], in[2] = v->src[1]->src[1], in[3] = v->src[2];
        *flow = 15u;
        break;
    case OP_MATMUL: case OP_MATMUL_HEADS: case OP_EXPERTS:
        in[1] = plain(v->src[1]);
        *flow = 3u;
        break;
    case OP_ADD: case OP_MUL: case OP_GATE: case OP_CONCAT: case OP_EXPERT_ADD: case OP_EXPERT_SCALE: case OP_EXPERT_SUM:
    case OP_EXPERT_WEIGH: *flow = 3u; break;
    case OP_NORM: case OP_CONV2D: *flow = 7u; break;
    case OP_CUSTOM: *flow = v->p.custom->spec.gradient ? 63u : 0; break;
    default: break;
    }
}

unsigned grad_reads(const value *v, unsigned wanted)
{
    switch (v->op) {
    case OP_SOFTCAP: case OP_SOFTMAX: case OP_LOG_SOFTMAX: return GRAD_READS_RESULT;
    case OP_ATTENTION: return 7u | GRAD_READS_RESULT;
    case OP_CUSTOM: return 63u;
    case OP_CLAMP: case OP_NORM: case OP_POOL2D: return 1u;
    case OP_MUL: return (wanted & 1 ? 2u : 0) | (wanted & 2 ? 1u : 0);
    case OP_ROPE: return 2u;
    case OP_GATE: return 3u;
    case OP_MATMUL: case OP_MATMUL_HEADS: return (wanted & 1 ? 2u : 0) | (wanted & 2 ? 1u : 0);
    case OP_CONV2D: return wanted & 2 ? 1u : 0;
    case OP_EXPERTS: return (wanted & 1 ? 2u : 0) | 4u;
    case OP_EXPERT_SUM: case OP_EXPERT_WEIGH: return 3u;
    case OP_ROUTE: return 1u | GRAD_READS_RESULT;
    case OP_EXPERT_ADD: case OP_EXPERT_SCALE: return 5u;
    default: return 0;
    }
}

size_t grad_saved(const value *v) { return v->op == OP_ATTENTION ? (size_t)(v->ne[1] * v->ne[2]) * sizeof(float) : 0; }
