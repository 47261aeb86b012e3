/* build.h - the builder's state, shared by the files that build one part each:
 *
 *   build.c  embedding, order of the branches of a block, head        attn.c  attention     latent.c  latent attention
 *   encoder.c  post-norm blocks, T5, embeddings
 *   ffn.c    dense feed-forward and shared expert                      moe.c   experts
 *   recurrent.c  the recurrent mixers but RWKV's                       rwkv.c  those */
#ifndef LOAM_MODEL_BUILD_H
#define LOAM_MODEL_BUILD_H

#include "model/model_impl.h"
#include "model/rope.h"

typedef struct builder {
    const loam_model *m;
    const arch_spec *a;
    const hparams *h;
    const build_params *p;
    graph *g;
    value *pos;
    value *rope_full, *rope_window; /* tables of angles, made when first needed */
    rope_setup rope;
    int il;                         /* current block */
    const layer_facts *l;           /* its facts */
    const bound *t;                 /* its weights */
    int64_t n_head, n_kv, k, w, n_rot; /* its H, G, K, W, R */
    value *v_first;                 /* RWKV 7: values of the first block */
} builder;

/* y = scale * W x + bias, each part where it is stored; NULL without a weight. */
value *build_linear(builder *b, const bound *t, value *x);
/* The norm of the architecture with the weight and bias of t. */
value *build_norm(builder *b, value *x, const bound *t);
/* In the last block only rows whose outputs are wanted go on: picks them. Elsewhere x itself. */
value *build_narrow(builder *b, value *x);
/* Angles for the current block; NULL where it does not rotate. */
value *build_angles(builder *b);
/* q after rotary with the attention temperature, where the architecture has one. */
value *build_temperature(builder *b, value *q);

/* Branches: all give the rows that go on. NULL from attention: the cache is written and nothing else is wanted. */
value *build_attention(builder *b, value *h);
value *build_latent_attention(builder *b, value *h);
/* Scores, window and softmax: q [k_dim, H, T]; the heads' outputs, narrowed. Writes k, v first. */
value *build_heads(builder *b, value *q, value *k, value *v);

/* encoder.c */
value *build_post_norm_block(builder *b, value *x);
value *build_t5_decoder(builder *b, value *x);
void build_t5_encode(builder *b, value *x);
void build_embeddings(builder *b, value *x); /* of a model without a head */
value *build_recurrent(builder *b, value *h);
/* Each kind: NULL when only the state was wanted. */
value *build_mamba(builder *b, value *h);
value *build_mamba2(builder *b, value *h);
value *build_plamo(builder *b, value *h);
value *build_short_conv(builder *b, value *h);
value *build_delta(builder *b, value *h);
value *build_rwkv6(builder *b, value *h);
value *build_rwkv7(builder *b, value *h);
value *build_channel_mix(builder *b, value *h);
/* The rest of a mixer from its states' output on: NULL in the last block without outputs, else the wanted rows. */
value *build_after_state(builder *b, value *y);

value *build_dense(builder *b, value *x);
value *build_shared(builder *b, value *x);
/* x: normed input of the block's feed-forward; router_in: what the router reads. */
value *build_experts(builder *b, value *x, value *router_in);

#endif
