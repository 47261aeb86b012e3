/* collect.c - counting: the squares of what is multiplied with each weight while a context decodes.
 *
 *   product(weight w, x)  ──►  sums[j] += x[t][j]^2 for all tokens t;  counts += tokens
 *   experts               ──►  the same for each (token, rank) pair, to the sums of its expert
 *
 * What one decode counts is kept apart until it has succeeded. Products that share an input (query, key and value; gate and
 * up) add up its squares once. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "context/context.h"
#include "imatrix/imatrix.h"

typedef struct collector {
    loam_imatrix *im;
    const char *tied;      /* name of the table that serves as head, where that counts; or NULL */
    const value *input;    /* whose squares are in sums; NULL: none */
    int last_id;           /* of the product before: where ids go down another run has begun */
    double *sums;
    size_t cap;
    loam_error error;
} collector;

static bool counts(const collector *c, const value *v)
{
    if (v->op != OP_MATMUL && v->op != OP_MATMUL_HEADS && v->op != OP_EXPERTS) return false;
    const char *name = v->src[0]->op == OP_WEIGHT ? v->src[0]->p.w->name : "";
    if (strncmp(name, "blk.", 4) == 0) return true;
    return c->im->head && (strcmp(name, "output.weight") == 0 || (c->tied && strcmp(name, c->tied) == 0));
}

/* The input of a product in floats. */
static const value *floats_of(const value *v) { return v->src[1]->op == OP_ENCODE ? v->src[1]->src[0] : v->src[1]; }

static void add_squares(double *sums, const float *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) sums[j] += (double)x[j] * (double)x[j];
}

/* Rows of a value: token t, and row r of those it has. */
static const float *row(const value *x, const char *data, int64_t t, int64_t r)
{
    return (const float *)(const void *)(data + t * x->nb[2] + r * x->nb[1]);
}

/* sums [n_mats][n] over all tokens. */
static bool sum_input(collector *c, const value *v, worker *w)
{
    const value *m = v->src[0], *x = floats_of(v);
    size_t n = (size_t)(m->ne[0] * m->ne[2]);
    if (c->input == v->src[1] && v->id > c->last_id) return true;
    if (!mem_grow(&c->sums, &c->cap, n, sizeof *c->sums, SIZE_MAX / sizeof *c->sums)) return false;
    memset(c->sums, 0, n * sizeof *c->sums);
    const char *data = value_data(x, w);
    for (int64_t t = 0; t < x->ne[2]; t++)
        for (int64_t h = 0; h < m->ne[2]; h++) add_squares(c->sums + h * m->ne[0], row(x, data, t, h), m->ne[0]);
    c->input = v->src[1];
    return true;
}

static loam_status count_product(collector *c, const value *v, worker *w)
{
    const value *m = v->src[0];
    imatrix_entry *e;
    loam_status status = imatrix_entry_of(c->im->batch, m->p.w->name, (imatrix_shape){ m->ne[0], m->ne[2], 1 }, &e, &c->error);
    if (status != LOAM_OK) return status;
    if (!sum_input(c, v, w)) return fail_nomem(&c->error, "sums of squares", (uint64_t)(m->ne[0] * m->ne[2]) * sizeof(double));
    for (int64_t j = 0; j < m->ne[0] * m->ne[2]; j++) e->sums[j] += c->sums[j];
    e->counts[0] += floats_of(v)->ne[2];
    return LOAM_OK;
}

static loam_status count_experts(collector *c, const value *v, worker *w)
{
    const value *m = v->src[0], *x = floats_of(v), *routing = v->src[2];
    imatrix_entry *e;
    loam_status status = imatrix_entry_of(c->im->batch, m->p.w->name, (imatrix_shape){ m->ne[0], m->ne[2], m->ne[2] }, &e, &c->error);
    if (status != LOAM_OK) return status;
    const char *data = value_data(x, w), *chosen = value_data(routing, w);
    for (int64_t t = 0; t < x->ne[2]; t++) {
        const int32_t *experts = (const int32_t *)(const void *)(chosen + t * routing->nb[2]);
        for (int64_t u = 0; u < v->ne[1]; u++) {
            add_squares(e->sums + experts[u] * m->ne[0], row(x, data, t, x->ne[1] == 1 ? 0 : u), m->ne[0]);
            e->counts[experts[u]]++;
        }
    }
    return LOAM_OK;
}

static bool watch(void *user, const value *v, worker *w, bool ask, uint64_t ns)
{
    collector *c = user;
    (void)ns;
    if (!counts(c, v)) return false;
    if (ask) return true;
    loam_status status = v->op == OP_EXPERTS ? count_experts(c, v, w) : count_product(c, v, w);
    c->last_id = v->id;
    return status == LOAM_OK;
}

/* Nothing of the batch is left. */
static void forget(loam_imatrix *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        imatrix_entry *e = &batch->entries[i];
        memset(e->sums, 0, (size_t)(e->n * e->n_mats) * sizeof *e->sums);
        memset(e->counts, 0, (size_t)e->n_counts * sizeof *e->counts);
    }
}

static loam_status check_finite(const loam_imatrix *batch, loam_error *err)
{
    for (size_t i = 0; i < batch->n; i++) {
        const imatrix_entry *e = &batch->entries[i];
        for (int64_t j = 0; j < e->n * e->n_mats; j++)
            if (!isfinite(e->sums[j]))
                return fail(err, LOAM_E_NUMERIC, "tensor %.63s: column %lld of its input is not finite", e->name, (long long)(j % e->n));
    }
    return LOAM_OK;
}

int loam_imatrix_decode(loam_imatrix *im, loam_context *ctx, const loam_batch *batch, loam_error *err)
{
    collector c = { .im = im };
    loam_status status = LOAM_OK;
    if (!im || !ctx) {
        fail(err, LOAM_E_ARG, "loam_imatrix_decode: %s is NULL", im ? "context" : "matrix");
        return -1;
    }
    if (!im->batch) status = loam_imatrix_new(&im->batch, err);
    if (status != LOAM_OK) return -2;
    if (!model_weight(loam_context_model(ctx), "output.weight")) c.tied = "token_embd.weight";
    context_set_watch(ctx, watch, &c);
    int code = loam_decode(ctx, batch, err);
    context_set_watch(ctx, NULL, NULL);
    mem_free(c.sums);
    if (code == 2 && c.error.code != LOAM_OK) {
        if (err) *err = c.error;
        code = c.error.code == LOAM_E_NOMEM ? -2 : -3;
    }
    if (code == 0 && (status = check_finite(im->batch, err)) == LOAM_OK) status = loam_imatrix_merge(im, im->batch, err);
    if (status != LOAM_OK) code = status == LOAM_E_NOMEM ? -2 : -3;
    forget(im->batch);
    return code;
}
