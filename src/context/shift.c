/* shift.c - turns the cached keys of moved tokens to their new positions. Rotations add up, so a key is turned by the
 * difference. What to turn is read off the plan: each key that is written to the cache comes from a ROPE operation, perhaps
 * through a norm or a join; its table has the angles' parameters. Values have no position and stay. */
#include <string.h>

#include "base/mem.h"
#include "context/context.h"
#include "device/cpu.h"

/* How the keys of one layer were rotated. */
typedef struct key_turn {
    const value *table;      /* ROPE_TABLE; NULL: keys without positions */
    int offset;              /* first rotated value of a head */
    bool neox;
} key_turn;

static bool find_turn(const value *v, int offset, key_turn *t)
{
    switch (v ? v->op : OP_INPUT) {
    case OP_ROPE: *t = (key_turn){ v->src[1], offset + v->p.turn.offset, v->p.turn.neox }; return true;
    case OP_CONCAT: return find_turn(v->src[1], offset + (int)v->src[0]->ne[0], t) || find_turn(v->src[0], offset, t);
    case OP_NORM: case OP_VIEW: case OP_CLAMP: case OP_SCALE: return find_turn(v->src[0], offset, t);
    default: return false;
    }
}

typedef struct turner {
    loam_context *ctx;
    const plan *p;           /* for the slot's set of rotary factors */
    const plan *near, *far;  /* the same where there is one set */
    float *row, *table;      /* one head; one row of cosines and sines */
    int group;
    int32_t shift;
    const value *made;       /* table that `table` holds for `shift` */
} turner;

/* Cosines and sines for a position that is the shift, by the operation itself. */
static void make_table(turner *t, const value *table, int32_t shift)
{
    if (t->made == table && t->shift == shift) return;
    value pos = { .op = OP_INPUT, .type = LOAM_I32, .ne = { 1, 1, 1, 1 }, .p.in.input = INPUT_POS };
    value one = *table;
    one.src[0] = &pos;
    one.ne[2] = 1;
    one.buffer = 0;
    one.p.rope.magnitude = 1.0f;
    plan_run run = { .p = t->p, .k = t->ctx->k, .arena = (uint8_t *)t->table, .inputs = { [INPUT_POS] = &shift } };
    worker w = { .ith = 0, .nth = 1, .run = &run };
    step s = { .v = &one, .split = SPLIT_TOKENS };
    run_rope_table(&s, &w);
    t->made = table;
    t->shift = shift;
}

static uint8_t *key_at(const kv_layer *l, int32_t slot, int head)
{
    return (uint8_t *)(uintptr_t)page_head_at(&l->shape, l->pages, slot / PAGE_SLOTS, head).k;
}

static void move_key(const kernels *k, const kv_layer *l, int32_t slot, int head, float *row, bool store)
{
    const dtype_info *d = &dtype_table[l->shape.k_type];
    uint8_t *at = key_at(l, slot, head);
    int in = slot % PAGE_SLOTS, dim = l->shape.k_dim;
    if (d->values > 1) {
        uint8_t *block = at + (size_t)in * (size_t)(dim / d->values * d->bytes);
        if (store) k->encode[l->shape.k_type](row, block, dim);
        else k->decode[l->shape.k_type](block, row, dim);
        return;
    }
    for (int i = 0; i < dim; i++) {
        uint8_t *x = at + ((size_t)i * PAGE_SLOTS + (size_t)in) * (size_t)d->bytes;
        if (store) k->encode[l->shape.k_type](row + i, x, 1);
        else k->decode[l->shape.k_type](x, row + i, 1);
    }
}

static void turn_slot(void *user, int group, int32_t slot, int32_t shift)
{
    turner *t = user;
    const kv_layer *layers = memory_layers(t->ctx->mem);
    t->p = memory_slot_far(t->ctx->mem, group, slot) ? t->far : t->near;
    for (int i = 0; i < t->p->n_steps; i++) {
        const value *v = t->p->steps[i].v;
        key_turn how;
        if (v->op != OP_KV_WRITE || layers[v->p.kv.layer].group != group || !find_turn(v->src[0], 0, &how)) continue;
        const kv_layer *l = &layers[v->p.kv.layer];
        int pairs = how.table->p.rope.n_rot / 2;
        make_table(t, how.table, shift);
        for (int h = 0; h < l->shape.n_kv_head; h++) {
            move_key(t->ctx->k, l, slot, h, t->row, false);
            if (l->shape.k_rotated) t->ctx->k->hadamard(t->row, l->shape.k_dim, l->shape.k_rotated);
            t->ctx->k->rope(t->row + how.offset, t->table, t->table + pairs, pairs, how.neox);
            if (l->shape.k_rotated) t->ctx->k->hadamard(t->row, l->shape.k_dim, l->shape.k_rotated);
            move_key(t->ctx->k, l, slot, h, t->row, true);
        }
    }
}

loam_status context_apply_shifts(loam_context *ctx, loam_error *err)
{
    if (!memory_has_shifts(ctx->mem)) return LOAM_OK;
    plan *near, *far = NULL;
    loam_status status = context_plan(ctx, (plan_shape){ .kind = PLAN_DECODE, .n_tokens = 1, .n_outputs = 1 }, &near, err);
    if (status == LOAM_OK && replay_can(ctx)) status = context_plan(ctx, (plan_shape){ .kind = PLAN_DECODE, .n_tokens = 1, .n_outputs = 1, .far = true }, &far, err);
    if (status != LOAM_OK) return status;
    int widest = 64;
    for (int i = 0; i < model_n_cache(ctx->model); i++)
        if (ctx->layers[i].k_dim > widest) widest = ctx->layers[i].k_dim;
    float *rows = mem_alloc_array(2, (size_t)widest * sizeof *rows);
    if (!rows) return fail_nomem(err, "turning keys", (uint64_t)widest * 8);
    turner t = { .ctx = ctx, .near = near, .far = far ? far : near, .row = rows, .table = rows + widest };
    memory_take_shifts(ctx->mem, turn_slot, &t);
    mem_free(rows);
    return LOAM_OK;
}
