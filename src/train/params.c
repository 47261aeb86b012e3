/* params.c - the tensors that learn: found in the graph of the model, copied to floats, with gradients and state.
 *
 * What learns is what gradients flow to in the model's graph and what the filter takes; a matrix of any type becomes floats.
 * With adapters the model's weights stay, and a pair A, B stands beside each target. */
#include <string.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/mix.h"
#include "quant/quant.h"
#include "train/trainer.h"

/* ---- what a graph has ---- */

typedef struct finder {
    loam_trainer *t;
    size_t cap;
    bool *hit;                 /* by target: some tensor has it */
} finder;

static bool known(const loam_trainer *t, const weight *w)
{
    for (size_t i = 0; i < t->n_params; i++)
        if (t->params[i].base == w) return true;
    return false;
}

static const char *own_name(const char *name)
{
    static const struct { const char *other, *own; } names[] = {
        { "q_proj", "attn_q" }, { "k_proj", "attn_k" }, { "v_proj", "attn_v" }, { "o_proj", "attn_output" },
        { "gate_proj", "ffn_gate" }, { "up_proj", "ffn_up" }, { "down_proj", "ffn_down" }, { "qkv_proj", "attn_qkv" },
        { "gate_up_proj", "ffn_up" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].other, name) == 0) return names[i].own;
    return name;
}

/* blk.N.TARGET.weight */
static bool has_target(const char *name, const char *target)
{
    const char *own = own_name(target), *part = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    size_t n = strlen(own);
    return part && strncmp(part + 1, own, n) == 0 && strcmp(part + 1 + n, ".weight") == 0;
}

static bool is_target(finder *f, const char *name)
{
    const loam_trainer_params *p = &f->t->p;
    if (!p->lora_targets) return true;
    bool any = false;
    for (size_t i = 0; i < p->n_lora_targets; i++)
        if (has_target(name, p->lora_targets[i])) any = f->hit[i] = true;
    return any;
}

static param *add_param(finder *f)
{
    loam_trainer *t = f->t;
    if (!mem_grow(&t->params, &f->cap, t->n_params + 1, sizeof *t->params, 1u << 24)) return NULL;
    param *p = &t->params[t->n_params++];
    *p = (param){ 0 };
    return p;
}

static void set_shape(param *p, const int64_t ne[4])
{
    p->w.type = LOAM_F32;
    memcpy(p->w.ne, ne, sizeof p->w.ne);
    p->w.row_bytes = (uint64_t)ne[0] * 4;
    p->n = (uint64_t)(ne[0] * ne[1] * ne[2] * ne[3]);
}

static loam_status add_whole(finder *f, const weight *w, loam_error *err)
{
    const loam_trainer_params *tp = &f->t->p;
    if (tp->filter && !tp->filter(tp->filter_user, w->name)) return LOAM_OK;
    param *p = add_param(f);
    if (!p) return fail_nomem(err, "the list of what learns", sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", w->name);
    p->base = w;
    set_shape(p, w->ne);
    bool table = strcmp(w->name, "token_embd.weight") == 0;
    p->matrix = w->ne[1] > 1 && !table && strncmp(w->name, "blk.", 4) == 0;
    p->decays = tp->decay_all || (w->ne[1] > 1 && !table);
    return LOAM_OK;
}

static loam_status add_pair(finder *f, const weight *w, loam_error *err)
{
    if (!is_target(f, w->name)) return LOAM_OK;
    int64_t r = f->t->p.lora_rank;
    for (int half = 0; half < 2; half++) {
        param *p = add_param(f);
        if (!p) return fail_nomem(err, "the list of what learns", sizeof *p);
        snprintf(p->name, sizeof p->name, "%s.lora_%c", w->name, half ? 'b' : 'a');
        p->base = w;
        set_shape(p, half ? (int64_t[4]){ r, w->ne[1], w->ne[2], 1 } : (int64_t[4]){ w->ne[0], r, w->ne[2], 1 });
        p->matrix = p->decays = true;
    }
    return LOAM_OK;
}

/* Only tensors of the file, and only where a gradient flows. */
static loam_status take_weight(finder *f, const value *v, value *x, loam_error *err)
{
    loam_trainer *t = f->t;
    const weight *w = x->p.w;
    if (known(t, w) || model_weight(t->model, w->name) != w) return LOAM_OK;
    if (t->p.lora_rank == 0) return add_whole(f, w, err);
    bool product = (v->op == OP_MATMUL || v->op == OP_EXPERTS) && v->layer >= 0;
    return product ? add_pair(f, w, err) : LOAM_OK;
}

static loam_status find(finder *f, const graph *g, loam_error *err)
{
    for (int i = 0; i < g->n_values; i++) {
        const value *v = g->values[i];
        value *in[GRAPH_MAX_SRC];
        unsigned flow;
        if (!grad_exists(v->op)) continue;
        grad_inputs(v, in, &flow);
        for (int s = 0; s < GRAPH_MAX_SRC; s++) {
            loam_status status = in[s] && (flow >> s & 1) && in[s]->op == OP_WEIGHT ? take_weight(f, v, in[s], err) : LOAM_OK;
            if (status != LOAM_OK) return status;
        }
    }
    return LOAM_OK;
}

static loam_status check_found(const finder *f, loam_error *err)
{
    const loam_trainer_params *p = &f->t->p;
    for (size_t i = 0; p->lora_rank > 0 && p->lora_targets && i < p->n_lora_targets; i++)
        if (!f->hit[i]) return fail(err, LOAM_E_ARG, "lora_targets: no block of the model has a matrix '%s'", p->lora_targets[i]);
    if (f->t->n_params == 0) return fail(err, LOAM_E_ARG, "nothing would learn: the filter takes no tensor of the model");
    return LOAM_OK;
}

static loam_status make_pairs(loam_trainer *t, loam_error *err)
{
    size_t n = t->n_params / 2;
    t->pairs = mem_zalloc_array(n, sizeof *t->pairs);
    if (!t->pairs) return fail_nomem(err, "an adapter", n * sizeof *t->pairs);
    for (size_t i = 0; i < n; i++) {
        param *a = &t->params[2 * i];
        t->pairs[i] = (adapter_pair){ a->base, &a->w, &a[1].w, t->p.lora_alpha / (float)t->p.lora_rank, t->p.lora_dropout };
    }
    t->adapter = (graph_adapter){ t->pairs, (int)n };
    return LOAM_OK;
}

loam_status params_make(loam_trainer *t, loam_error *err)
{
    graph g;
    graph_init(&g, 2, 2);
    build_params b = trainer_build_params(t, 2);
    b.adapters = NULL, b.n_adapters = 0;
    loam_status status = model_build(t->model, &b, &g, err);
    size_t n = t->p.n_lora_targets;
    finder f = { .t = t, .hit = mem_zalloc(n + 1) };
    if (status == LOAM_OK && !f.hit) status = fail_nomem(err, "targets", n);
    if (status == LOAM_OK) status = find(&f, &g, err);
    if (status == LOAM_OK) status = check_found(&f, err);
    for (size_t i = 0; i < t->n_params; i++) t->params[i].w.name = t->params[i].name; /* the list has stopped growing */
    if (status == LOAM_OK && t->p.lora_rank > 0) status = make_pairs(t, err);
    mem_free(f.hit);
    graph_free(&g);
    return status;
}

/* ---- values ---- */

/* Uniform between -1 and 1, from the seed, the tensor's name and the index. */
static float unit(uint64_t seed, uint64_t i)
{
    uint64_t x = mix64(seed + (i + 1) * MIX64_STEP);
    return (float)((int64_t)(x >> 40) - (1 << 23)) * (1.0f / (1 << 23));
}

/* A: uniform with bound 1 / sqrt(in), B: zeros (Hu et al. 2021, as the field draws them). */
static void draw(const loam_trainer *t, param *p)
{
    if (p->name[strlen(p->name) - 1] == 'b') return;
    uint64_t seed = t->p.seed;
    for (const char *c = p->name; *c; c++) seed = (seed ^ (uint8_t)*c) * 0x100000001B3ull;
    float bound = 1.0f / __builtin_sqrtf((float)p->w.ne[0]);
    for (uint64_t i = 0; i < p->n; i++) p->data[i] = unit(seed, i) * bound;
}

static loam_status fill(loam_trainer *t, param *p, loam_error *err)
{
    if (t->p.lora_rank > 0) {
        draw(t, p);
        return LOAM_OK;
    }
    const weight *w = p->base;
    quant_decode_fn decode = quant_table[w->type].decode;
    if (!decode || dtype_table[w->type].act == ACT_NONE)
        return fail(err, LOAM_E_UNSUPPORTED, "training: tensor '%s' is of type %s", w->name, loam_type_name((int)w->type));
    for (int64_t r = 0; r < w->ne[1] * w->ne[2] * w->ne[3]; r++)
        decode((const char *)w->data + (uint64_t)r * w->row_bytes, p->data + r * w->ne[0], w->ne[0]);
    return LOAM_OK;
}

static bool needs_first(const loam_trainer *t) { return t->p.optimizer != LOAM_SGD || t->p.momentum != 0.0f; }
static bool needs_second(const loam_trainer *t, const param *p)
{
    return t->p.optimizer == LOAM_ADAMW || (t->p.optimizer == LOAM_MUON && !p->matrix);
}
static bool is_small(const loam_trainer *t, const param *p) { return t->p.small_state && t->p.optimizer == LOAM_ADAMW && p->n >= 4096; }

void params_memory(const loam_trainer *t, loam_train_memory *out)
{
    for (size_t i = 0; i < t->n_params; i++) {
        const param *p = &t->params[i];
        uint64_t bytes = p->n * 4;
        out->n_trainable += p->n;
        out->weights += bytes + (t->p.bf16 && p->matrix ? p->n * 2 : 0);
        out->gradients += bytes;
        if (is_small(t, p)) out->state += 2 * moments8_bytes(p->n);
        else out->state += (needs_first(t) ? bytes : 0) + (needs_second(t, p) ? bytes : 0);
    }
}

static loam_status alloc_one(loam_trainer *t, param *p, loam_error *err)
{
    bool small = is_small(t, p), rounded = t->p.bf16 && p->matrix;
    size_t n = (size_t)p->n;
    p->data = mem_zalloc_array(n, 4);
    p->grad = mem_zalloc_array(n, 4);
    p->w.data = p->data;
    if (small) p->m8 = mem_zalloc(moments8_bytes(n)), p->v8 = mem_zalloc(moments8_bytes(n));
    else {
        if (needs_first(t)) p->m = mem_zalloc_array(n, 4);
        if (needs_second(t, p)) p->v = mem_zalloc_array(n, 4);
    }
    bool whole = p->data && p->grad && (small ? p->m8 && p->v8 : (p->m || !needs_first(t)) && (p->v || !needs_second(t, p)));
    if (whole && rounded) {
        p->w16 = p->w;
        p->w16.type = LOAM_BF16;
        p->w16.row_bytes = (uint64_t)p->w.ne[0] * 2;
        p->w16.data = mem_alloc_array(n, 2);
        whole = p->w16.data != NULL;
    }
    return whole ? fill(t, p, err) : fail_nomem(err, p->name, p->n * 16);
}

loam_status params_alloc(loam_trainer *t, loam_error *err)
{
    for (size_t i = 0; i < t->n_params; i++) {
        loam_status status = alloc_one(t, &t->params[i], err);
        if (status != LOAM_OK) return status;
    }
    params_round(t);
    return LOAM_OK;
}

void params_round(loam_trainer *t)
{
    for (size_t i = 0; i < t->n_params; i++) {
        param *p = &t->params[i];
        if (p->w16.data) kernels_get()->encode[LOAM_BF16](p->data, (void *)(uintptr_t)p->w16.data, (int64_t)p->n);
    }
}

void params_free(loam_trainer *t)
{
    for (size_t i = 0; i < t->n_params; i++) {
        param *p = &t->params[i];
        mem_free(p->data);
        mem_free(p->grad);
        mem_free(p->m);
        mem_free(p->v);
        mem_free(p->m8);
        mem_free(p->v8);
        mem_free((void *)(uintptr_t)p->w16.data);
    }
    mem_free(t->params);
    mem_free(t->pairs);
    t->params = NULL;
    t->pairs = NULL;
    t->n_params = 0;
}

/* Adapters are asked for by their own weights, whole tensors by the model's. */
tape_weight params_bind(void *trainer, const weight *w)
{
    loam_trainer *t = trainer;
    for (size_t i = 0; i < t->n_params; i++) {
        param *p = &t->params[i];
        if (w == &p->w || w == &p->w16 || (t->p.lora_rank == 0 && w == p->base)) return (tape_weight){ p->w16.data ? &p->w16 : &p->w, p->grad };
    }
    return (tape_weight){ w, NULL };
}
