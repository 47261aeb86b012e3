/* observe.c - shows the steps of a decode to the caller's observer, as plain records. */
#include "context/context.h"

void context_set_watch(loam_context *ctx, context_watch_fn fn, void *user)
{
    ctx->watch = fn;
    ctx->watch_user = user;
}

static void fill(loam_node *n, const value *v, const worker *w, bool with_data)
{
    *n = (loam_node){ .op = op_name(v->op), .name = v->name, .layer = v->layer, .id = v->uid, .type = v->type };
    for (int i = 0; i < 4; i++) n->ne[i] = v->ne[i], n->nb[i] = v->nb[i];
    if (with_data) n->data = value_data(v, w);
}

bool context_observe(void *user, const value *v, worker *w, bool ask, uint64_t ns)
{
    loam_context *ctx = user;
    loam_node node, src[GRAPH_MAX_SRC];
    const loam_node *list[GRAPH_MAX_SRC];
    int n = 0;
    for (int i = 0; i < GRAPH_MAX_SRC; i++) {
        if (!v->src[i]) continue;
        fill(&src[n], v->src[i], w, !ask);
        list[n] = &src[n];
        n++;
    }
    fill(&node, v, w, !ask);
    node.ns = ns;
    node.n_src = n;
    node.src = list;
    return ctx->p.observe(ctx->p.observe_user, &node, ask);
}
