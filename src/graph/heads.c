/* heads.c - steps of few tokens whose attention is cut by heads.
 *
 *   W_q ── norm ── rotary ──────────────┐
 *   W_k ── norm ── rotary ──┐           ▼
 *   W_v ────────────────── cache ── attention
 *
 * Where the key-value heads divide evenly, each thread computes its heads' rows of the three products, turns them, writes them to
 * the cache and attends with them: it reads nothing that another thread wrote, so no barrier stands between. A path that
 * contains anything else leaves the whole attention as it is. */
#include "graph/plan.h"

static int64_t row_of(const value *v) { return v->ne[0] * v->ne[1]; }

static bool by_itself(const value *v, int64_t unit)
{
    switch (v->op) {
    case OP_VIEW: return !v->recut && v->p.view.offset == 0 && row_of(v) == row_of(v->src[0]);
    case OP_ROPE: return unit % v->ne[0] == 0;
    case OP_NORM: return unit % v->p.norm.group == 0;
    case OP_ADD: return v->src[1]->op == OP_WEIGHT && row_of(v->src[1]) == row_of(v);
    default: return false;
    }
}

/* Follows the rows of queries, keys or values to their product. True when every step on the way keeps the heads apart. */
static bool follow(value *v, int heads, bool mark)
{
    int64_t row = row_of(v);
    if (row % heads) return false;
    for (; v->op != OP_MATMUL; v = v->src[0]) {
        if (!by_itself(v, row / heads)) return false;
        if (mark) v->heads = heads;
    }
    if (mark) v->heads = heads;
    return row_of(v) == row;
}

void plan_mark_heads(graph *g, int n_threads)
{
    for (int i = 0; i < g->n_values; i++) {
        value *a = g->values[i], *written = a->src[1];
        int heads = a->op == OP_ATTENTION ? a->p.attn.n_kv_head : 0;
        if (!heads || a->ne[2] > FEW_TOKENS || heads % n_threads || written->op != OP_KV_WRITE) continue;
        value *rows[] = { a->src[0], written->src[0], written->src[1] };
        bool apart = true;
        for (int r = 0; r < 3 && apart; r++) apart = follow(rows[r], heads, false);
        for (int r = 0; r < 3 && apart; r++) follow(rows[r], heads, true);
        if (apart) a->heads = written->heads = heads;
    }
}
