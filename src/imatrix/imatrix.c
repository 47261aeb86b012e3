/* imatrix.c - see imatrix.h: entries, adding up, column weights. */
#include "imatrix/imatrix.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

loam_status loam_imatrix_new(loam_imatrix **out, loam_error *err)
{
    loam_imatrix *im = mem_zalloc(sizeof *im);
    if (im && !map_init(&im->index, 64)) {
        mem_free(im);
        im = NULL;
    }
    *out = im;
    if (!im) return fail_nomem(err, "an importance matrix", sizeof *im);
    im->chunk_size = 512;
    return LOAM_OK;
}

void loam_imatrix_free(loam_imatrix *im)
{
    if (!im) return;
    loam_imatrix_free(im->batch);
    for (size_t i = 0; i < im->n; i++) {
        mem_free(im->entries[i].name);
        mem_free(im->entries[i].sums);
        mem_free(im->entries[i].counts);
    }
    for (size_t i = 0; i < im->n_datasets; i++) mem_free(im->datasets[i]);
    mem_free(im->entries);
    mem_free(im->datasets);
    map_free(&im->index);
    mem_free(im);
}

/* ---- entries ---- */

static bool met(const imatrix_entry *e)
{
    for (int64_t i = 0; i < e->n_counts; i++)
        if (e->counts[i] > 0) return true;
    return false;
}

const imatrix_entry *imatrix_find(const loam_imatrix *im, const char *name)
{
    uint32_t i = map_get(&im->index, name, strlen(name));
    return i == MAP_NONE || !met(&im->entries[i]) ? NULL : &im->entries[i];
}

/* An entry without sums, or with sums for all matrices in one run (older files), takes the finer shape. */
static loam_status reshape(imatrix_entry *e, imatrix_shape s, loam_error *err)
{
    bool same = e->n == s.n && e->n_mats == s.n_mats, run = e->n_mats == 1 && s.n_mats > 1 && e->n / s.n_mats == s.n && e->n % s.n_mats == 0;
    if (!same && !run)
        return fail(err, LOAM_E_ARG, "importance matrix: %.63s has %lld x %lld sums here and %lld x %lld there", e->name,
                    (long long)e->n_mats, (long long)e->n, (long long)s.n_mats, (long long)s.n);
    if (e->n_counts < s.n_counts) {
        int64_t *counts = mem_alloc_array((size_t)s.n_counts, sizeof *counts);
        if (!counts) return fail_nomem(err, "an importance matrix", (uint64_t)s.n_counts * sizeof *counts);
        for (int64_t i = 0; i < s.n_counts; i++) counts[i] = e->counts[0];
        mem_free(e->counts);
        e->counts = counts;
        e->n_counts = s.n_counts;
    }
    e->n = s.n;
    e->n_mats = s.n_mats;
    return LOAM_OK;
}

loam_status imatrix_entry_of(loam_imatrix *im, const char *name, imatrix_shape s, imatrix_entry **out, loam_error *err)
{
    size_t len = strlen(name);
    uint64_t values = 0;
    uint32_t i = map_get(&im->index, name, len);
    if (i != MAP_NONE) {
        *out = &im->entries[i];
        return reshape(*out, s, err);
    }
    if (s.n < 1 || s.n_mats < 1 || !mul_ok((uint64_t)s.n, (uint64_t)s.n_mats, &values))
        return fail(err, LOAM_E_ARG, "importance matrix: %.63s has %lld x %lld sums", name, (long long)s.n_mats, (long long)s.n);
    if (!mem_grow(&im->entries, &im->cap, im->n + 1, sizeof *im->entries, LIMIT_TENSORS))
        return fail_nomem(err, "an importance matrix", (im->n + 1) * sizeof *im->entries);
    imatrix_entry e = { mem_strdup(name, len), s.n, s.n_mats, s.n_counts, mem_zalloc_array(values, sizeof *e.sums),
                        mem_zalloc_array((size_t)s.n_counts, sizeof *e.counts) };
    uint32_t old;
    if (!e.name || !e.sums || !e.counts || !map_put(&im->index, e.name, len, (uint32_t)im->n, &old)) {
        mem_free(e.name);
        mem_free(e.sums);
        mem_free(e.counts);
        return fail_nomem(err, "an importance matrix", values * sizeof *e.sums);
    }
    im->entries[im->n] = e;
    *out = &im->entries[im->n++];
    return LOAM_OK;
}

size_t loam_imatrix_n_entries(const loam_imatrix *im)
{
    size_t n = 0;
    for (size_t i = 0; i < im->n; i++) n += met(&im->entries[i]);
    return n;
}

bool loam_imatrix_entry_at(const loam_imatrix *im, size_t i, loam_imatrix_entry *out)
{
    for (size_t k = 0; k < im->n; k++) {
        const imatrix_entry *e = &im->entries[k];
        if (!met(e) || i-- > 0) continue;
        *out = (loam_imatrix_entry){ e->name, e->n, e->n_mats, e->n_counts, e->sums, e->counts };
        return true;
    }
    return false;
}

/* ---- facts ---- */

void loam_imatrix_set_head(loam_imatrix *im, bool on) { im->head = on; }

void loam_imatrix_set_chunk_size(loam_imatrix *im, uint32_t tokens) { im->chunk_size = tokens ? tokens : 1; }

uint32_t loam_imatrix_chunk_size(const loam_imatrix *im) { return im->chunk_size; }

uint32_t loam_imatrix_chunk_count(const loam_imatrix *im)
{
    int64_t most = 0;
    for (size_t i = 0; i < im->n; i++)
        for (int64_t k = 0; k < im->entries[i].n_counts; k++) most = im->entries[i].counts[k] > most ? im->entries[i].counts[k] : most;
    most /= im->chunk_size;
    return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

loam_status loam_imatrix_add_dataset(loam_imatrix *im, const char *name, loam_error *err)
{
    for (size_t i = 0; i < im->n_datasets; i++)
        if (strcmp(im->datasets[i], name) == 0) return LOAM_OK;
    char *copy = mem_strdup(name, strlen(name));
    if (!copy || !mem_grow(&im->datasets, &im->cap_datasets, im->n_datasets + 1, sizeof *im->datasets, LIMIT_KEYS)) {
        mem_free(copy);
        return fail_nomem(err, "the name of a data set", strlen(name));
    }
    im->datasets[im->n_datasets++] = copy;
    return LOAM_OK;
}

/* ---- adding up ---- */

static void add_entry(imatrix_entry *e, const imatrix_entry *from)
{
    for (int64_t i = 0; i < e->n * e->n_mats; i++) e->sums[i] += from->sums[i];
    for (int64_t i = 0; i < e->n_counts; i++) e->counts[i] += from->counts[from->n_counts == 1 ? 0 : i];
}

/* Everything that can fail comes first; what it leaves behind are entries without counts, which nobody sees. */
loam_status loam_imatrix_merge(loam_imatrix *im, const loam_imatrix *from, loam_error *err)
{
    loam_status status = LOAM_OK;
    imatrix_entry *e = NULL;
    size_t datasets = im->n_datasets;
    for (size_t i = 0; i < from->n && status == LOAM_OK; i++) {
        const imatrix_entry *f = &from->entries[i];
        uint32_t k = map_get(&im->index, f->name, strlen(f->name));
        const imatrix_entry *have = k == MAP_NONE ? NULL : &im->entries[k];
        bool finer = have && have->n_mats > f->n_mats && f->n == have->n * have->n_mats;
        imatrix_shape shape = { finer ? have->n : f->n, finer ? have->n_mats : f->n_mats, f->n_counts };
        status = imatrix_entry_of(im, f->name, shape, &e, err);
    }
    for (size_t i = 0; i < from->n_datasets && status == LOAM_OK; i++) status = loam_imatrix_add_dataset(im, from->datasets[i], err);
    if (status != LOAM_OK) {
        while (im->n_datasets > datasets) mem_free(im->datasets[--im->n_datasets]);
        return status;
    }
    for (size_t i = 0; i < from->n; i++)
        add_entry(&im->entries[map_get(&im->index, from->entries[i].name, strlen(from->entries[i].name))], &from->entries[i]);
    return LOAM_OK;
}

/* ---- column weights ---- */

static float weight_of(const imatrix_entry *e, int64_t n, int64_t n_mats, int64_t i)
{
    int64_t count = e->counts[e->n_counts == n_mats ? i / n : 0];
    return count ? (float)(e->sums[i] / (double)count) : 1.0f;
}

loam_status imatrix_check(const loam_imatrix *im, const char *name, int64_t n, int64_t n_mats, loam_error *err)
{
    const imatrix_entry *e = imatrix_find(im, name);
    if (!e) return LOAM_OK;
    bool fits = e->n_mats == n_mats ? e->n == n : e->n_mats == 1 && n_mats > 0 && e->n / n_mats == n && e->n % n_mats == 0;
    if (!fits)
        return fail(err, LOAM_E_ARG, "tensor %.63s has %lld x %lld columns, its entry in the importance matrix %lld x %lld", name,
                    (long long)n_mats, (long long)n, (long long)e->n_mats, (long long)e->n);
    for (int64_t i = 0; i < n_mats * n; i++)
        if (!(weight_of(e, n, n_mats, i) <= 1e20f)) /* what encoders take */
            return fail(err, LOAM_E_NUMERIC, "tensor %.63s: the weight of column %lld in the importance matrix is too large", name,
                        (long long)(i % n));
    return LOAM_OK;
}

loam_status imatrix_weights(const loam_imatrix *im, const char *name, int64_t n, int64_t n_mats, float **out, loam_error *err)
{
    const imatrix_entry *e = imatrix_find(im, name);
    int64_t unmet = 0, one = -1;
    *out = NULL;
    loam_status status = imatrix_check(im, name, n, n_mats, err);
    if (!e || status != LOAM_OK) return status;
    float *w = mem_alloc_array((size_t)n_mats, (size_t)n * sizeof *w);
    if (!w) return fail_nomem(err, "column weights", (uint64_t)(n_mats * n) * sizeof *w);
    for (int64_t i = 0; i < n_mats * n; i++) w[i] = weight_of(e, n, n_mats, i);
    for (int64_t m = 0; m < n_mats && e->n_counts == n_mats; m++)
        if (e->counts[m] == 0) unmet++, one = m;
    if (unmet)
        log_at(LOAM_LOG_WARN, "tensor %.63s: %lld of %lld matrices (number %lld for one) were never met by the importance matrix; they "
               "get neutral weights", name, (long long)unmet, (long long)n_mats, (long long)one);
    *out = w;
    return LOAM_OK;
}
