/* build.c - the forward pass of any architecture as a graph: embedding, blocks, head. */
#include "model/build.h"

#include <string.h>

value *build_linear(builder *b, const bound *t, value *x)
{
    if (!t->w) return NULL;
    value *y = g_adapt(b->g, t->w, x, NULL, g_scale(b->g, g_matmul(b->g, t->w, x), t->scale));
    return g_add(b->g, y, g_weight(b->g, t->b));
}

value *build_norm(builder *b, value *x, const bound *t)
{
    return g_norm(b->g, x, t->w, t->b, (norm_params){ b->h->norm, b->h->eps, 0 });
}

value *build_narrow(builder *b, value *x)
{
    if (b->il != b->h->n_layer - 1 || b->p->n_outputs == b->p->n_tokens) return x;
    if (b->l->ffn == FFN_CHANNEL_MIX) return x; /* it needs all tokens: block() picks the rows */
    return g_select(b->g, x, g_input(b->g, INPUT_OUT_ROWS, 1));
}

value *build_angles(builder *b)
{
    if (!b->l->rotary) return NULL;
    value **table = b->l->window ? &b->rope_window : &b->rope_full;
    if (!*table) {
        int layer = b->g->layer;
        b->g->layer = -1;
        *table = g_rope_table(b->g, b->pos, b->l->window ? &b->rope.window : &b->rope.full, b->rope.factors);
        b->g->layer = layer;
    }
    return *table;
}

value *build_temperature(builder *b, value *q)
{
    const hparams *h = b->h;
    if (h->temperature == 0 || (b->a->attn.temperature == TEMPERATURE_NO_ROTARY && b->l->rotary)) return q;
    return g_temperature(b->g, q, b->pos, h->temperature, h->temperature_n, h->temperature_o);
}

/* ---- embedding ---- */

static value *embed(builder *b)
{
    const bound *t = b->m->globals.t;
    value *x;
    if (b->p->embd_input) {
        x = g_input(b->g, INPUT_EMBD, SYM(b->h->sym, D));
        if (!b->a->embedding_tokens_only) x = g_scale(b->g, x, b->h->embedding_scale);
    } else {
        const weight *table = t[T_TOKEN_EMBD].w ? t[T_TOKEN_EMBD].w : t[T_OUTPUT].w;
        value *ids = g_input(b->g, INPUT_TOKENS, 1);
        x = g_scale(b->g, g_adapt_rows(b->g, table, ids, g_embed(b->g, table, ids)), b->h->embedding_scale);
    }
    if (t[T_TOKEN_TYPES].w) x = g_add(b->g, x, g_weight(b->g, t[T_TOKEN_TYPES].w));
    if (t[T_POSITION_EMBD].w) x = g_add(b->g, x, g_embed(b->g, t[T_POSITION_EMBD].w, b->pos));
    if (t[T_TOKEN_EMBD_NORM].w) x = build_norm(b, x, &t[T_TOKEN_EMBD_NORM]);
    return g_name(x, "embedding");
}

/* ---- one block ---- */

/* What a branch goes through before it is added: its own norm, the residual scale. */
static value *finish_branch(builder *b, value *y, slot norm)
{
    if (norm != T_NONE && b->t[norm].w) y = build_norm(b, y, &b->t[norm]);
    return g_scale(b->g, y, b->h->residual_scale);
}

static slot ffn_after(const builder *b)
{
    const slot *after = b->a->ffn.after;
    return after[0] != T_NONE && b->t[after[0]].w ? after[0] : after[1];
}

/* Feed-forward on its normed input n; x is the block's input, which some routers read. */
static value *feed_forward(builder *b, value *n, value *x)
{
    value *y = NULL;
    switch (b->l->ffn) {
    case FFN_DENSE: y = build_dense(b, n); break;
    case FFN_IDENTITY: y = g_gate(b->g, GATE_SILU, n, NULL); break;
    case FFN_EXPERTS: y = build_experts(b, n, b->a->experts.router_reads_x ? x : n); break;
    case FFN_CHANNEL_MIX: y = build_channel_mix(b, n); break;
    case FFN_NONE: return NULL;
    }
    return finish_branch(b, y, ffn_after(b));
}

static value *ffn_input(builder *b, value *f)
{
    if (b->a->ffn.raw_input) return f;
    slot s = b->a->ffn.input_norm != T_NONE ? b->a->ffn.input_norm : T_FFN_NORM;
    return build_norm(b, f, &b->t[s]);
}

static bool is_parallel(const builder *b)
{
    switch (b->a->form) {
    case PARALLEL: return true;
    case PARALLEL_WITHOUT_NORM: return !b->t[T_FFN_NORM].w;
    case SEQUENTIAL: case POST_NORM: case PARALLEL_BY_KEY: case DENSE_PLUS_EXPERTS: break;
    }
    return false;
}

/* Attention, a recurrent mixer, or their sum; NULL where nothing behind them is wanted. */
static value *mix(builder *b, value *in)
{
    if (b->l->mixer == MIXER_RECURRENT) return build_recurrent(b, in);
    value *a = b->a->latent == LATENT_NONE ? build_attention(b, in) : build_latent_attention(b, in);
    if (b->l->mixer != MIXER_BOTH) return a;
    value *r = build_recurrent(b, in);
    return a ? g_add(b->g, a, r) : NULL;
}

/* All rows go through a channel mix; the wanted ones go on. */
static value *after_channel_mix(builder *b, value *x)
{
    bool last = b->il == b->h->n_layer - 1;
    if (last && b->p->n_outputs == 0) return NULL;
    return last && b->p->n_outputs != b->p->n_tokens ? g_select(b->g, x, g_input(b->g, INPUT_OUT_ROWS, 1)) : x;
}

/* The residual stream after the block; NULL where nothing behind its attention is wanted. */
static value *block(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->t;
    slot second = b->a->attn.second_norm;
    if (b->a->form == POST_NORM) return build_post_norm_block(b, x);
    value *n1 = b->a->attn.raw_input || (b->a->attn.norm_maybe && !t[T_ATTN_NORM].w) ? x : build_norm(b, x, &t[T_ATTN_NORM]);
    value *in = second != T_NONE && t[second].w ? build_norm(b, x, &t[second]) : n1;
    if (b->l->mixer == MIXER_NONE) {
        if (b->il == b->h->n_layer - 1 && b->p->n_outputs == 0) return NULL;
        return g_add(g, build_narrow(b, x), feed_forward(b, build_narrow(b, n1), x));
    }
    value *a = mix(b, in);
    if (!a) return NULL;
    a = finish_branch(b, a, b->a->attn.after);
    x = build_narrow(b, x);
    value *f = g_name(g_add(g, x, a), "after attention");
    if (b->l->ffn == FFN_NONE) return f;
    if (b->l->ffn == FFN_CHANNEL_MIX) return after_channel_mix(b, g_add(g, f, feed_forward(b, ffn_input(b, f), x)));
    if (is_parallel(b)) return g_add(g, f, feed_forward(b, build_narrow(b, n1), x));
    if (b->a->form == PARALLEL_BY_KEY && b->h->use_parallel_residual) return g_add(g, f, feed_forward(b, ffn_input(b, x), x));
    if (b->a->form == DENSE_PLUS_EXPERTS) {
        value *dense = g_add(g, f, build_dense(b, ffn_input(b, f)));
        return g_add(g, dense, feed_forward(b, build_norm(b, x, &t[T_FFN_NORM_EXPS]), x));
    }
    return g_add(g, f, feed_forward(b, ffn_input(b, f), x));
}

/* deci: blocks without feed-forward are skipped whole; without heads they are a feed-forward alone; without key-value heads
 * attention is one matrix, without bias. */
static value *odd_block(builder *b, value *x)
{
    graph *g = b->g;
    if (!b->l->n_ff) return build_narrow(b, x);
    if (b->l->n_head && b->l->n_head_kv) return block(b, x);
    if (b->l->n_head) {
        value *in = build_narrow(b, build_norm(b, x, &b->t[T_ATTN_NORM]));
        value *a = g_adapt(g, b->t[T_ATTN_OUTPUT].w, in, NULL, g_matmul(g, b->t[T_ATTN_OUTPUT].w, in));
        value *f = g_add(g, build_narrow(b, x), a);
        return g_add(g, f, feed_forward(b, ffn_input(b, f), x));
    }
    x = build_narrow(b, x);
    return g_add(g, x, feed_forward(b, ffn_input(b, x), x));
}

/* Control vectors act behind every block; with one branch a block, behind feed-forwards only. */
static bool takes_control(const builder *b)
{
    if (!b->p->control || b->a->recurrent.kind == MAMBA_PLAMO) return false;
    return !b->a->recurrent.kind || b->a->recurrent.blocks != RECURRENT_OR_FFN || b->l->mixer == MIXER_NONE;
}

static value *blocks(builder *b, value *x)
{
    for (b->il = 0; b->il < b->h->n_layer && x; b->il++) {
        b->g->layer = b->il;
        b->l = &b->h->layers[b->il];
        b->t = b->m->blocks[b->il].t;
        b->n_head = b->l->n_head, b->n_kv = b->l->n_head_kv;
        x = b->a->block_kinds ? odd_block(b, x) : block(b, x);
        if (b->h->rescale_every && (b->il + 1) % b->h->rescale_every == 0) x = g_scale(b->g, x, 0.5f);
        if (x && takes_control(b) && b->p->control[b->il].data) x = g_add(b->g, x, g_weight(b->g, &b->p->control[b->il]));
        g_name(x, "block");
    }
    b->g->layer = -1;
    return x;
}

/* ---- head ---- */

static void head(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->m->globals.t;
    const hparams *h = b->h;
    slot last = model_has_cross(b->m) ? T_DEC_OUTPUT_NORM : t[T_LAST_NORM].w ? T_LAST_NORM : T_OUTPUT_NORM;
    value *n = g_name(build_norm(b, x, &t[last]), "final norm");
    if (b->p->want_embd) g_output(g, OUTPUT_EMBD, n);
    if (!b->p->want_logits) return;
    const bound *out = t[T_OUTPUT].w ? &t[T_OUTPUT] : &t[T_TOKEN_EMBD];
    /* A tied head takes no addition of the table: its pair has the shapes of a look-up. */
    value *in = g_scale(g, n, h->hidden_scale), *y = g_scale(g, g_matmul(g, out->w, in), out->scale);
    if (t[T_OUTPUT].w) y = g_adapt(g, out->w, in, NULL, y);
    y = g_scale(g, g_add(g, y, g_weight(g, t[T_OUTPUT].b)), h->logit_scale);
    g_output(g, OUTPUT_LOGITS, g_name(g_softcap(g, y, h->logit_cap), "logits"));
}

loam_status model_build(const loam_model *m, const build_params *p, graph *g, loam_error *err)
{
    if (m->vocab_only) return fail(err, LOAM_E_ARG, "%s was opened for its vocabulary only", gguf_path(m->file));
    if (p->n_outputs < 0 || p->n_outputs > p->n_tokens || p->n_tokens < 1)
        return fail(err, LOAM_E_ARG, "%d outputs of %d tokens", p->n_outputs, p->n_tokens);
    build_params inner = *p;
    builder b = { .m = m, .a = &m->spec, .h = &m->hp, .p = &inner, .g = g, .k = SYM(m->hp.sym, K), .w = SYM(m->hp.sym, W),
                  .n_rot = SYM(m->hp.sym, R), .il = -1 };
    if (p->watched) inner.n_outputs = p->n_tokens;
    g->watched = p->watched;
    g->adapters = p->adapters;
    g->n_adapters = p->n_adapters;
    rope_resolve(m, p, &b.rope);
    b.pos = g_input(g, INPUT_POS, 1);
    value *x = embed(&b);
    bool t5 = m->spec.ffn.kind == GEGLU_OR_RELU;
    if (t5 && p->encode) {
        build_t5_encode(&b, x);
        return graph_check(g, err);
    }
    x = t5 ? build_t5_decoder(&b, x) : blocks(&b, x);
    if (x && p->n_outputs != inner.n_outputs) x = p->n_outputs ? g_select(g, x, g_input(g, INPUT_OUT_ROWS, 1)) : NULL;
    if (x && m->spec.stack == STACK_ENCODER) build_embeddings(&b, x);
    else if (x && p->n_outputs > 0) head(&b, x);
    return graph_check(g, err);
}
