/* hparams_moe.c - experts: widths, routing, and which blocks have them. */
#include <stdio.h>

#include "base/limits.h"
#include "model/hparams_parts.h"

/* A default width written in symbols. */
static int64_t or_expr(const hparams *h, int64_t v, const char *expr)
{
    int64_t d = 0;
    if (!v && expr && !expr_value(expr, &h->sym, &d)) d = 0;
    return v ? v : d;
}

static void read_router(hparams *h, keys *k)
{
    const expert_recipe *e = &h->spec->experts;
    h->router = e->router;
    if (e->router_from != ROUTER_FIXED) {
        static const router_kind kinds[] = { ROUTER_SOFTMAX, ROUTER_SIGMOID, ROUTER_TOP_SOFTMAX, ROUTER_SQRT_SOFTPLUS };
        int64_t kind = key_int(k, "expert_gating_func", 0, INT32_MAX);
        h->router_given = kind != 0;
        if (kind > 4 || (kind == 0 && e->router_from == ROUTER_KEY))
            key_fail(k, LOAM_E_UNSUPPORTED, "is %lld, known are 1 (softmax), 2 (sigmoid), 3 (softmax of the selected), 4",
                     (long long)kind);
        else if (kind) h->router = kinds[kind - 1];
    }
    h->normalise = e->normalise == ALWAYS || (e->normalise == BY_KEY && key_bool(k, "expert_weights_norm", false));
    h->expert_scale = e->scale_key ? key_float(k, "expert_weights_scale", 0) : 1;
    if (h->expert_scale == 0) h->expert_scale = 1;
    h->n_group = (int)key_int(k, "expert_group_count", 0, LIMIT_EXPERTS);
    h->n_group_used = (int)key_int(k, "expert_group_used_count", 0, LIMIT_EXPERTS);
    if (h->n_group <= 1) return;
    if (S(E) % h->n_group || h->n_group_used < 1 || h->n_group_used > h->n_group)
        key_fail(k, LOAM_E_FORMAT, "is %d: %lld experts in %d groups do not work", h->n_group_used, (long long)S(E), h->n_group);
    else if (S(U) > S(E) / h->n_group * h->n_group_used)
        key_fail(k, LOAM_E_FORMAT, "is %d: fewer experts are left than the %lld that are used", h->n_group_used, (long long)S(U));
}

/* A number that files may state block by block: blocks with experts agree on it, the others have 0. */
static int64_t agreed(const hparams *h, keys *k, const char *key, int64_t max)
{
    int64_t v[LIMIT_LAYERS], one = 0;
    key_per_block(k, key, 0, max, v, h->n_layer);
    for (int i = 0; i < h->n_layer && k->status == LOAM_OK; i++) {
        if (v[i] && one && v[i] != one) key_fail(k, LOAM_E_UNSUPPORTED, "differs from block to block");
        if (v[i]) one = v[i];
    }
    return one;
}

void hparams_experts(hparams *h, keys *k)
{
    const expert_recipe *e = &h->spec->experts;
    const shared_expert_recipe *s = &h->spec->shared;
    if (s->s_default || s->width) {
        S(N) = key_int(k, "expert_shared_count", 0, LIMIT_EXPERTS);
        S(S) = key_int(k, "expert_shared_feed_forward_length", 0, LIMIT_WIDTH);
    }
    if (e->blocks == EXPERTS_NOWHERE) return;
    S(E) = key_int(k, "expert_count", 0, LIMIT_EXPERTS);
    if (!S(E) && e->blocks != EXPERTS_IF_ANY && e->blocks != EXPERTS_DEAD && e->blocks != EXPERTS_WHERE_STORED)
        key_fail(k, LOAM_E_FORMAT, "must be positive");
    S(X) = agreed(h, k, "expert_feed_forward_length", LIMIT_WIDTH);
    if (!S(E) || k->status != LOAM_OK) return;
    S(U) = agreed(h, k, "expert_used_count", S(E));
    if (!S(U)) key_fail(k, LOAM_E_FORMAT, "must not be 0");
    S(X) = or_expr(h, S(X), e->x_default);
    S(S) = or_expr(h, S(S), s->s_default);
    if (e->chunks) {
        S(J) = or_else(key_int(k, "expert_chunk_feed_forward_length", 0, LIMIT_WIDTH), S(K));
        S(B) = key_int_needed(k, "experts_per_group", LIMIT_EXPERTS);
        h->group_scale = key_float(k, "expert_group_scale", 1);
        if (S(E) % S(B)) key_fail(k, LOAM_E_FORMAT, "is missing or %lld does not divide %lld experts", (long long)S(B),
                                  (long long)S(E));
    }
    read_router(h, k);
}

void hparams_place_experts(hparams *h, keys *k)
{
    expert_blocks where = h->spec->experts.blocks;
    bool leading = where == EXPERTS_AFTER_LEADING || where == EXPERTS_AFTER_LEADING_EVERY_STEP;
    bool steps = where == EXPERTS_EVERY_STEP || where == EXPERTS_AFTER_LEADING_EVERY_STEP;
    int64_t lead = leading ? key_int(k, "leading_dense_block_count", 0, LIMIT_LAYERS) : 0;
    int64_t step = steps ? key_int(k, "interleave_moe_layer_step", 0, LIMIT_LAYERS) : 0;
    int64_t every = where == EXPERTS_SECOND_OF ? key_int(k, "moe_every_n_layers", 0, LIMIT_LAYERS) : 0;
    for (int i = 0; i < h->n_layer; i++) {
        layer_facts *l = &h->layers[i];
        bool on_step = step > 0 && (i + 1) % step == 0;
        bool stored = false;
        char name[64];
        switch (where) {
        case EXPERTS_NOWHERE: break;
        case EXPERTS_IF_ANY: case EXPERTS_DEAD: stored = S(E) > 0; break;
        case EXPERTS_EVERYWHERE: stored = true; break;
        case EXPERTS_AFTER_LEADING: case EXPERTS_AFTER_LEADING_EVERY_STEP: stored = i >= lead; break;
        case EXPERTS_EVERY_STEP: stored = on_step; break;
        case EXPERTS_SECOND_OF: stored = every > 0 && i % every == 1; break;
        case EXPERTS_WHERE_STORED:
            snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
            stored = gguf_tensor_find(k->file, name) != NULL;
            break;
        }
        l->expert_tensors = stored;
        l->ffn = stored ? FFN_EXPERTS : FFN_DENSE;
        if (stored && (where == EXPERTS_DEAD || (where == EXPERTS_AFTER_LEADING_EVERY_STEP && !on_step))) l->ffn = FFN_IDENTITY;
    }
}
