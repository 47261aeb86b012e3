/* encoder.c - blocks with norms behind their branches, the two stacks of T5, and what comes behind pooling.
 *
 *   T5    encoder  x + A(N x), x + F(N x), ... N ─► rows ─► keys and values of every decoder block, kept as cross layers
 *         decoder  x + A(N x), x + C(N x, kept rows), x + F(N x), ... N ─► logits
 *
 * Cache layers of T5 with L blocks: 0..L-1 decoder, L..2L-1 encoder, 2L..3L-1 cross attention. */
#include <stdio.h>

#include "model/build.h"

value *build_post_norm_block(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->t;
    value *a = build_attention(b, x);
    if (!a) return NULL;
    x = build_narrow(b, x);
    value *f = build_norm(b, g_add(g, x, a), &t[T_ATTN_OUTPUT_NORM]);
    if (t[T_ATTN_NORM_2].w) f = build_norm(b, g_add(g, f, x), &t[T_ATTN_NORM_2]);
    value *y = b->l->ffn == FFN_EXPERTS ? build_experts(b, f, f) : build_dense(b, f);
    return build_norm(b, g_add(g, f, y), &t[T_LAYER_OUTPUT_NORM]);
}

/* ---- T5 ---- */

static value *heads(builder *b, value *x, int64_t width, int64_t n) { return g_view(b->g, x, 0, width, n); }

static void enter_block(builder *b, const block_weights *blocks, int il)
{
    b->il = il;
    b->g->layer = il;
    b->l = &b->h->layers[il];
    b->t = blocks[il].t;
    b->n_head = b->l->n_head, b->n_kv = b->l->n_head_kv;
}

static value *leave_block(builder *b, value *x)
{
    if (x && b->p->control && b->p->control[b->il].data) x = g_add(b->g, x, g_weight(b->g, &b->p->control[b->il]));
    return g_name(x, "block");
}

static attention_params scores(const builder *b, int layer)
{
    return (attention_params){ .layer = layer, .n_head = (int)b->n_head, .n_kv_head = (int)b->n_kv, .k_dim = (int)b->k,
                               .v_dim = (int)b->w, .scale = 1.0f };
}

/* The heads' outputs as rows through attn_o. `first` is block 0 of the stack, whose bias blocks without one share. */
static value *self_attention(builder *b, value *h, int layer, const bound *first, value **written)
{
    graph *g = b->g;
    const bound *t = b->t;
    const weight *bias = t[T_ATTN_REL_B].w ? t[T_ATTN_REL_B].w : first[T_ATTN_REL_B].w;
    value *q = heads(b, build_linear(b, &t[T_ATTN_Q], h), b->k, b->n_head);
    value *k = heads(b, build_linear(b, &t[T_ATTN_K], h), b->k, b->n_kv), *v = heads(b, build_linear(b, &t[T_ATTN_V], h), b->w, b->n_kv);
    attention_params p = scores(b, layer);
    p.causal = !b->p->encode && b->p->causal;
    p.rel_buckets = bias ? (int)SYM(b->h->sym, B) : 0;
    p.rel_both_ways = b->p->encode;
    *written = g_kv_write(g, k, v, layer);
    return build_linear(b, &t[T_ATTN_O], heads(b, g_attention(g, q, *written, bias, &p), b->n_head * b->w, 1));
}

/* Reads what an encode has left in the cross layer; `written` only gives the operation a second input. */
static value *cross_attention(builder *b, value *h, value *written)
{
    const bound *t = b->t;
    value *q = heads(b, build_linear(b, &t[T_CROSS_ATTN_Q], h), b->k, b->n_head);
    attention_params p = scores(b, 2 * b->h->n_layer + b->il);
    return build_linear(b, &t[T_CROSS_ATTN_O], heads(b, g_attention(b->g, q, written, NULL, &p), b->n_head * b->w, 1));
}

static value *t5_encoder(builder *b, value *x, const block_weights *blocks, int first_layer)
{
    graph *g = b->g;
    value *written;
    for (int il = 0; il < b->h->n_layer && x; il++) {
        enter_block(b, blocks, il);
        x = g_add(g, x, self_attention(b, build_norm(b, x, &b->t[T_ATTN_NORM]), first_layer + il, blocks[0].t, &written));
        x = g_add(g, x, build_dense(b, build_norm(b, x, &b->t[T_FFN_NORM])));
        x = leave_block(b, x);
    }
    g->layer = -1;
    return g_name(build_norm(b, x, &b->m->globals.t[T_ENC_OUTPUT_NORM]), "final norm");
}

/* Keys and values of every decoder block, made once from the encoder's rows. */
static void keep_cross(builder *b, value *rows)
{
    for (int il = 0; il < b->h->n_decoder; il++) {
        enter_block(b, b->m->blocks, il);
        value *k = heads(b, build_linear(b, &b->t[T_CROSS_ATTN_K], rows), b->k, b->n_kv);
        value *v = heads(b, build_linear(b, &b->t[T_CROSS_ATTN_V], rows), b->w, b->n_kv);
        g_kv_write(b->g, k, v, 2 * b->h->n_layer + il);
    }
    b->g->layer = -1;
}

value *build_t5_decoder(builder *b, value *x)
{
    graph *g = b->g;
    const block_weights *blocks = b->m->blocks;
    value *written;
    for (int il = 0; il < b->h->n_decoder && x; il++) {
        enter_block(b, blocks, il);
        x = g_add(g, x, self_attention(b, build_norm(b, x, &b->t[T_ATTN_NORM]), il, blocks[0].t, &written));
        x = g_add(g, x, cross_attention(b, build_norm(b, x, &b->t[T_CROSS_ATTN_NORM]), written));
        if (il == b->h->n_decoder - 1 && b->p->n_outputs < b->p->n_tokens)
            x = b->p->n_outputs ? g_select(g, x, g_input(g, INPUT_OUT_ROWS, 1)) : NULL;
        if (x) x = leave_block(b, g_add(g, x, build_dense(b, build_norm(b, x, &b->t[T_FFN_NORM]))));
    }
    g->layer = -1;
    return x;
}

/* ---- embeddings ---- */

/* Layers that turn a pooled row, or each row without pooling, into the embedding. */
static value *dense_layers(builder *b, value *x)
{
    const bound *t = b->m->globals.t;
    if (t[T_DENSE_2].w) x = g_matmul(b->g, t[T_DENSE_2].w, x);
    if (t[T_DENSE_3].w) x = g_matmul(b->g, t[T_DENSE_3].w, x);
    return x;
}

void build_t5_encode(builder *b, value *x)
{
    bool both = b->a->stack == STACK_ENCODER_DECODER;
    value *rows = t5_encoder(b, x, both ? b->m->encoder : b->m->blocks, both ? b->h->n_layer : 0);
    if (b->p->want_embd) g_output(b->g, OUTPUT_EMBD, rows);
    if (both) keep_cross(b, rows);
}

void build_embeddings(builder *b, value *x)
{
    const bound *t = b->m->globals.t;
    const bound *norm = t[T_ENC_OUTPUT_NORM].w ? &t[T_ENC_OUTPUT_NORM] : &t[T_OUTPUT_NORM];
    if (norm->w) x = g_name(build_norm(b, x, norm), "final norm");
    if (b->p->dense_rows) x = dense_layers(b, x);
    g_output(b->g, OUTPUT_EMBD, x);
}

static value *classify(builder *b, value *x)
{
    graph *g = b->g;
    const bound *t = b->m->globals.t;
    if (t[T_CLS].w) {
        x = g_gate(g, b->a->classifier.gelu ? GATE_GELU : GATE_TANH, build_linear(b, &t[T_CLS], x), NULL);
        if (t[T_CLS_NORM].w) x = g_norm(g, x, t[T_CLS_NORM].w, NULL, (norm_params){ NORM_LAYER, b->h->eps, 0 });
    }
    return t[T_CLS_OUTPUT].w ? build_linear(b, &t[T_CLS_OUTPUT], x) : x;
}

loam_status model_build_pooled(const loam_model *m, loam_pooling kind, int n_rows, graph *g, loam_error *err)
{
    build_params p = { .n_tokens = n_rows, .n_outputs = n_rows };
    builder b = { .m = m, .a = &m->spec, .h = &m->hp, .p = &p, .g = g, .il = -1 };
    value *x = g_input(g, INPUT_EMBD, SYM(m->hp.sym, D));
    g_output(g, OUTPUT_EMBD, kind == LOAM_POOLING_RANK ? classify(&b, x) : dense_layers(&b, x));
    return graph_check(g, err);
}

/* ---- facts ---- */

int model_pooled_width(const loam_model *m, loam_pooling kind)
{
    const bound *t = m->globals.t;
    if (kind == LOAM_POOLING_RANK) return t[T_CLS_OUTPUT].w ? (int)t[T_CLS_OUTPUT].w->ne[1] : t[T_CLS].w ? (int)t[T_CLS].w->ne[1] : 0;
    const bound *last = t[T_DENSE_3].w ? &t[T_DENSE_3] : &t[T_DENSE_2];
    return last->w ? (int)last->w->ne[1] : (int)SYM(m->hp.sym, D);
}

bool model_pools_with_weights(const loam_model *m, loam_pooling kind)
{
    const bound *t = m->globals.t;
    return kind == LOAM_POOLING_RANK || t[T_DENSE_2].w || t[T_DENSE_3].w;
}

loam_pooling model_rank_row(const loam_model *m) { return m->spec.classifier.from ? m->spec.classifier.from : LOAM_POOLING_CLS; }
bool model_rank_softmax(const loam_model *m) { return m->spec.classifier.softmax; }
bool model_keeps_nothing(const loam_model *m) { return m->spec.stack == STACK_WHOLE || m->spec.stack == STACK_ENCODER; }
bool model_has_cross(const loam_model *m) { return m->spec.stack == STACK_ENCODER_DECODER; }
int model_n_cache(const loam_model *m) { return m->hp.n_layer * (model_has_cross(m) ? 3 : 1); }

bool loam_model_has_encoder(const loam_model *m) { return m->spec.stack != STACK_DECODER; }
bool loam_model_has_decoder(const loam_model *m) { return m->spec.stack != STACK_ENCODER; }
int32_t loam_model_decoder_start(const loam_model *m) { return model_has_cross(m) ? m->hp.decoder_start : -1; }
loam_pooling loam_model_pooling(const loam_model *m) { return m->hp.pooling; }
int32_t loam_model_n_labels(const loam_model *m) { return model_pooled_width(m, LOAM_POOLING_RANK); }

const char *loam_model_label(const loam_model *m, int32_t i, size_t *len)
{
    char key[96];
    gguf_array a = { 0 };
    text_view s;
    snprintf(key, sizeof key, "%s.classifier.output_labels", m->architecture);
    if (i < 0 || gguf_get_array(m->file, key, GGUF_OPTIONAL, GGUF_STRINGS, &a, NULL) != LOAM_OK) return NULL;
    gguf_strings it = gguf_strings_of(&a);
    while (gguf_next(&it, &s))
        if (i-- == 0) {
            *len = s.len;
            return s.data;
        }
    return NULL;
}
