/* testing.c - see testing.h. */
#include "model/testing.h"

#include "model/model_impl.h"

static const char *const names[] = {
#define TRAIT(NAME, what) what,
#include "model/traits.def"
#undef TRAIT
};

const char *trait_name(trait t) { return t >= 0 && t < TRAIT_COUNT ? names[t] : "?"; }

/* Takes tensor s out of every block; true when one had it. */
static bool drop(loam_model *m, slot s)
{
    bool had = false;
    for (int i = 0; i < m->hp.n_layer; i++) {
        had |= m->blocks[i].t[s].w != NULL;
        m->blocks[i].t[s].w = NULL;
    }
    return had;
}

static bool drop_biases(loam_model *m)
{
    bool had = false;
    for (int i = 0; i < m->hp.n_layer; i++)
        for (int s = 0; s < T_COUNT; s++) {
            had |= m->blocks[i].t[s].b != NULL;
            m->blocks[i].t[s].b = NULL;
        }
    return had;
}

static bool swap_gates(loam_model *m)
{
    bool had = false;
    for (int i = 0; i < m->hp.n_layer; i++) {
        bound *t = m->blocks[i].t;
        static const slot pairs[][2] = {
            { T_FFN_GATE, T_FFN_UP }, { T_FFN_GATE_EXPS, T_FFN_UP_EXPS }, { T_FFN_GATE_SHEXP, T_FFN_UP_SHEXP },
        };
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
            bound *a = &t[pairs[p][0]], *b = &t[pairs[p][1]], c = *a;
            if (!a->w || !b->w) continue;
            *a = *b, *b = c;
            had = true;
        }
    }
    return had;
}

/* Sets a number and says whether it had another value. */
static bool set(float *x, float v)
{
    bool other = *x != v;
    *x = v;
    return other;
}

static bool for_layers(loam_model *m, trait t)
{
    bool had = false;
    for (int i = 0; i < m->hp.n_layer; i++) {
        layer_facts *l = &m->hp.layers[i];
        bool *flag = t == TRAIT_WINDOW ? &l->window : &l->rotary, want = t == TRAIT_ROTARY_SKIP;
        had |= *flag != want;
        *flag = want;
    }
    return had;
}

static bool mutate_rotary(loam_model *m, trait t)
{
    rope_facts *r = &m->hp.rope;
    if (r->none) return false;
    switch (t) {
    case TRAIT_ROTARY_PAIRS: r->kind = r->kind == ROPE_NORM ? ROPE_NEOX : ROPE_NORM; return true;
    case TRAIT_ROTARY_SCALING: {
        bool had = (r->factor != 1 && r->scaling != ROPE_SCALING_NONE) || r->magnitude != 1;
        r->scaling = ROPE_SCALING_NONE;
        r->factor = r->magnitude = 1;
        return had;
    }
    case TRAIT_ROTARY_FACTORS: {
        bool had = m->spec.rope.factors && (m->globals.t[T_ROPE_FREQS].w || m->globals.t[T_ROPE_SHORT].w);
        m->spec.rope.factors = false;
        return had;
    }
    default: return for_layers(m, t);
    }
}

static bool mutate_window(loam_model *m, trait t)
{
    bool any = false;
    for (int i = 0; i < m->hp.n_layer; i++) any |= m->hp.layers[i].window;
    if (!any) return false;
    if (t == TRAIT_WINDOW) return for_layers(m, t);
    if (t == TRAIT_WINDOW_SIZE) return m->hp.window_size-- > 1;
    rope_facts *r = &m->hp.rope;
    bool scaled = m->spec.rope.window == WINDOW_BASE_10000 && r->factor != 1;
    m->spec.rope.window = WINDOW_BASE_SAME;
    return (r->base_window != r->base || scaled) && !r->none;
}

static bool mutate_attention(loam_model *m, trait t)
{
    attention_recipe *a = &m->spec.attn;
    hparams *h = &m->hp;
    bool attends = false;
    for (int i = 0; i < h->n_layer; i++) attends |= h->layers[i].mixer == MIXER_ATTENTION || h->layers[i].mixer == MIXER_BOTH;
    if (!attends) return false;
    bool norms = a->head_norm == HEAD_NORM_UNIT || m->blocks[0].t[T_ATTN_Q_NORM].w;
    switch (t) {
    case TRAIT_ALIBI: return set(&h->alibi, 0);
    case TRAIT_CAUSAL: h->causal = !h->causal; return true;
    case TRAIT_SCORE_SCALE:
        a->scale = a->scale == SCORE_K ? SCORE_SQRT_K : SCORE_K;
        a->scale_only_layers = 0;
        return true;
    case TRAIT_SCORE_CAP: return set(&h->score_cap, 0);
    case TRAIT_SINKS: return drop(m, T_ATTN_SINKS);
    case TRAIT_TEMPERATURE: return set(&h->temperature, 0);
    case TRAIT_CLAMP: return set(&h->clamp, 0);
    case TRAIT_HEAD_NORM: a->head_norm = HEAD_NORM_NONE; return norms;
    case TRAIT_HEAD_NORM_PLACE:
        a->norm_after_rotary = !a->norm_after_rotary;
        return norms && !h->rope.none && a->head_norm != HEAD_NORM_UNIT;
    case TRAIT_OUTPUT_GATE: return drop(m, T_ATTN_GATE);
    case TRAIT_VALUE_SCALE: return set(&h->value_scale, 1);
    default: return false;
    }
}

static bool mutate_blocks(loam_model *m, trait t)
{
    arch_spec *a = &m->spec;
    hparams *h = &m->hp;
    bool had;
    switch (t) {
    case TRAIT_BIASES: return drop_biases(m);
    case TRAIT_NORM_KIND: h->norm = h->norm == NORM_RMS ? NORM_LAYER : NORM_RMS; return true;
    case TRAIT_AFTER_NORMS:
        had = a->attn.after != T_NONE || a->ffn.after[0] != T_NONE;
        a->attn.after = a->ffn.after[0] = a->ffn.after[1] = T_NONE;
        return had;
    case TRAIT_BLOCK_FORM:
        if (a->form == PARALLEL_BY_KEY) return h->use_parallel_residual = !h->use_parallel_residual, true;
        had = a->form == PARALLEL || (a->form == PARALLEL_WITHOUT_NORM && !m->blocks[0].t[T_FFN_NORM].w);
        a->form = SEQUENTIAL;
        a->ffn.input_norm = T_ATTN_NORM;
        return had;
    case TRAIT_ACTIVATION: {
        static const ffn_kind other[] = {
            [SWIGLU] = GEGLU, [GEGLU] = SWIGLU, [GELU] = RELU_SQUARED, [RELU_SQUARED] = GELU, [XIELU] = GELU,
            [SWIGLU_FUSED] = SWIGLU_FUSED, [CHANNEL_MIX] = CHANNEL_MIX, [NO_FFN] = NO_FFN,
        };
        had = other[a->ffn.kind] != a->ffn.kind || SYM(h->sym, E);
        a->ffn.kind = other[a->ffn.kind];
        a->experts.activation = a->experts.activation == GATE_GELU ? GATE_SILU : GATE_GELU;
        for (int i = 0; i < h->n_layer; i++)
            if (h->layers[i].ffn == FFN_DENSE || h->layers[i].ffn == FFN_EXPERTS) return had;
        return false;
    }
    case TRAIT_GATE: return swap_gates(m);
    default: return false;
    }
}

static bool mutate_experts(loam_model *m, trait t)
{
    hparams *h = &m->hp;
    bool any = false;
    for (int i = 0; i < h->n_layer; i++) any |= h->layers[i].ffn == FFN_EXPERTS;
    if (!any) return false;
    switch (t) {
    case TRAIT_ROUTER: h->router = h->router == ROUTER_SIGMOID ? ROUTER_SOFTMAX : ROUTER_SIGMOID; return true;
    case TRAIT_TOP_K: return SYM(h->sym, U)-- > 1;
    case TRAIT_NORMALISE: h->normalise = !h->normalise; return h->router != ROUTER_TOP_SOFTMAX && !m->spec.experts.weigh_input;
    case TRAIT_GROUPS: {
        bool had = h->n_group > 1;
        h->n_group = 1;
        return had;
    }
    case TRAIT_SELECTION_BIAS: return drop(m, T_EXP_PROBS_B);
    case TRAIT_EXPERT_SCALE: return set(&h->expert_scale, 1);
    case TRAIT_SHARED_EXPERT: m->spec.shared.identity = false; return drop(m, T_FFN_UP_SHEXP);
    case TRAIT_CHUNKS: {
        bool had = m->spec.experts.chunks;
        m->spec.experts.chunks = false;
        return had;
    }
    case TRAIT_DENSE_BESIDE: {
        bool had = m->spec.experts.dense_too && m->blocks[0].t[T_FFN_UP].w;
        m->spec.experts.dense_too = false;
        return had;
    }
    default: return false;
    }
}

/* Takes a tensor outside the blocks away. */
static bool drop_global(loam_model *m, slot s)
{
    bool had = m->globals.t[s].w != NULL;
    m->globals.t[s] = (bound) { .scale = 1 };
    return had;
}

bool model_mutate(loam_model *m, trait t)
{
    hparams *h = &m->hp;
    switch (t) {
    case TRAIT_ROTARY: case TRAIT_ROTARY_PAIRS: case TRAIT_ROTARY_SCALING: case TRAIT_ROTARY_FACTORS: case TRAIT_ROTARY_SKIP:
        return mutate_rotary(m, t);
    case TRAIT_WINDOW: case TRAIT_WINDOW_SIZE: case TRAIT_WINDOW_BASE:
        return mutate_window(m, t);
    case TRAIT_ALIBI: case TRAIT_CAUSAL: case TRAIT_SCORE_SCALE: case TRAIT_SCORE_CAP: case TRAIT_SINKS: case TRAIT_TEMPERATURE:
    case TRAIT_CLAMP: case TRAIT_HEAD_NORM: case TRAIT_HEAD_NORM_PLACE: case TRAIT_OUTPUT_GATE: case TRAIT_VALUE_SCALE:
        return mutate_attention(m, t);
    case TRAIT_BIASES: case TRAIT_NORM_KIND: case TRAIT_AFTER_NORMS: case TRAIT_BLOCK_FORM: case TRAIT_ACTIVATION:
    case TRAIT_GATE:
        return mutate_blocks(m, t);
    case TRAIT_ROUTER: case TRAIT_TOP_K: case TRAIT_NORMALISE: case TRAIT_GROUPS: case TRAIT_SELECTION_BIAS:
    case TRAIT_EXPERT_SCALE: case TRAIT_SHARED_EXPERT: case TRAIT_CHUNKS: case TRAIT_DENSE_BESIDE:
        return mutate_experts(m, t);
    case TRAIT_POSITIONS: return drop_global(m, T_POSITION_EMBD);
    case TRAIT_EMBEDDING_NORM: return drop_global(m, T_TOKEN_EMBD_NORM);
    case TRAIT_TIED_HEAD: return m->globals.t[T_TOKEN_EMBD].w && drop_global(m, T_OUTPUT);
    case TRAIT_EMBEDDING_SCALE: return set(&h->embedding_scale, 1);
    case TRAIT_RESIDUAL_SCALE: return set(&h->residual_scale, 1);
    case TRAIT_HIDDEN_SCALE: return set(&h->hidden_scale, 1);
    case TRAIT_LOGIT_SCALE: return set(&h->logit_scale, 1);
    case TRAIT_LOGIT_CAP: return set(&h->logit_cap, 0);
    case TRAIT_COUNT: break;
    }
    return false;
}
