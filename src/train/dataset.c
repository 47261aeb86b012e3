/* dataset.c - points and labels in shards, in an order that shuffling changes. */
#include <string.h>

#include "base/mem.h"
#include "base/mix.h"
#include "train/fit.h"

#define MOST_POINTS ((int64_t)1 << 40)

static bool is_plain(loam_type t) { return t == LOAM_F32 || t == LOAM_I32; }

loam_status loam_dataset_new(loam_dataset **out, const loam_dataset_params *p, loam_error *err)
{
    if (!out || !p) return fail(err, LOAM_E_ARG, "loam_dataset_new: %s is NULL", out ? "params" : "out");
    *out = NULL;
    if (!is_plain(p->type_data) || (p->ne_label && !is_plain(p->type_label))) return fail(err, LOAM_E_ARG, "a data set has values of f32 or i32");
    if (p->ne_data < 1 || p->ne_label < 0 || p->n < 1 || p->n > MOST_POINTS || p->n_shard < 1 || p->n % p->n_shard)
        return fail(err, LOAM_E_ARG, "a data set of %lld points in shards of %lld, %lld values and %lld labels each", (long long)p->n,
                    (long long)p->n_shard, (long long)p->ne_data, (long long)p->ne_label);
    uint64_t data, labels;
    if (!mul_ok((uint64_t)p->n, (uint64_t)p->ne_data, &data) || !mul_ok((uint64_t)p->n, (uint64_t)p->ne_label, &labels) ||
        data > SIZE_MAX / 8 || labels > SIZE_MAX / 8)
        return fail(err, LOAM_E_ARG, "a data set of %lld points is too large", (long long)p->n);
    loam_dataset *ds = mem_zalloc(sizeof *ds);
    if (!ds) return fail_nomem(err, "a data set", sizeof *ds);
    ds->p = *p;
    ds->n_shards = p->n / p->n_shard;
    ds->data = mem_zalloc_array((size_t)data, 4);
    ds->labels = labels ? mem_zalloc_array((size_t)labels, 4) : NULL;
    ds->order = mem_alloc_array((size_t)ds->n_shards, sizeof *ds->order);
    if (!ds->data || (labels && !ds->labels) || !ds->order) {
        loam_dataset_free(ds);
        return fail_nomem(err, "a data set", (data + labels) * 4);
    }
    for (int64_t i = 0; i < ds->n_shards; i++) ds->order[i] = i;
    *out = ds;
    return LOAM_OK;
}

void loam_dataset_free(loam_dataset *ds)
{
    if (!ds) return;
    mem_free(ds->data);
    mem_free(ds->labels);
    mem_free(ds->order);
    mem_free(ds);
}

int64_t loam_dataset_n(const loam_dataset *ds) { return ds ? ds->p.n : 0; }
void *loam_dataset_data(loam_dataset *ds) { return ds ? ds->data : NULL; }
void *loam_dataset_labels(loam_dataset *ds) { return ds ? ds->labels : NULL; }

loam_status loam_dataset_batch(const loam_dataset *ds, int64_t i, int64_t count, void *data, void *labels, loam_error *err)
{
    if (!ds || !data) return fail(err, LOAM_E_ARG, "loam_dataset_batch: %s is NULL", ds ? "data" : "the data set");
    const loam_dataset_params *p = &ds->p;
    if (count < 1 || count % p->n_shard) return fail(err, LOAM_E_ARG, "a batch of %lld points is not made of shards of %lld", (long long)count, (long long)p->n_shard);
    if (i < 0 || i >= p->n / count) return fail(err, LOAM_E_ARG, "batch %lld of %lld points: there are %lld points", (long long)i, (long long)count, (long long)p->n);
    if (labels && !ds->labels) return fail(err, LOAM_E_ARG, "the data set has no labels");
    size_t one = (size_t)(p->n_shard * p->ne_data) * 4, one_label = (size_t)(p->n_shard * p->ne_label) * 4;
    int64_t shards = count / p->n_shard;
    for (int64_t s = 0; s < shards; s++) {
        size_t from = (size_t)ds->order[i * shards + s];
        memcpy((char *)data + (size_t)s * one, (char *)ds->data + from * one, one);
        if (labels) memcpy((char *)labels + (size_t)s * one_label, (char *)ds->labels + from * one_label, one_label);
    }
    return LOAM_OK;
}

/* Fisher and Yates on the first shards. */
void dataset_shuffle(loam_dataset *ds, int64_t n, uint64_t *state)
{
    int64_t shards = n < 0 || n > ds->p.n ? ds->n_shards : n / ds->p.n_shard;
    for (int64_t i = shards - 1; i > 0; i--) {
        int64_t k = (int64_t)(mix64(*state += MIX64_STEP) % (uint64_t)(i + 1)), t = ds->order[i];
        ds->order[i] = ds->order[k];
        ds->order[k] = t;
    }
}
