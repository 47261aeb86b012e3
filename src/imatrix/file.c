/* file.c - importance matrices in files.
 *
 *   GGUF:   general.type = "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size; for each weight NAME
 *           NAME.in_sum2 F32 {columns, matrices} and NAME.counts F32 {1, matrices} (or {1, 1}: the same for all)
 *   older:  i32 entries; each: i32 length, name, i32 calls, i32 n, n x f32 (mean square times calls, all matrices in one run);
 *           then, where they follow, i32 chunks, i32 length, name of the data set
 *
 * Refused by name: half an entry, other types or shapes, sums and counts that are negative or not finite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/reader.h"
#include "file/gguf_write.h"
#include "imatrix/imatrix.h"

#define SUMS   ".in_sum2"
#define COUNTS ".counts"

/* ---- reading: GGUF ---- */

/* "NAME" of "NAME.suffix"; false where the suffix is another. */
static bool stem(const char *name, const char *suffix, char out[LIMIT_NAME_BYTES + 1])
{
    size_t len = strlen(name), tail = strlen(suffix);
    if (len <= tail || strcmp(name + len - tail, suffix) != 0) return false;
    snprintf(out, LIMIT_NAME_BYTES + 1, "%.*s", (int)(len - tail), name);
    return true;
}

static const gguf_tensor *other_half(const gguf_file *f, const char *name, const char *suffix)
{
    char full[LIMIT_NAME_BYTES + 16];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    return gguf_tensor_find(f, full);
}

static loam_status check_tensor(const gguf_tensor *t, loam_error *err)
{
    if (t->type != LOAM_F32) return fail(err, LOAM_E_FORMAT, "tensor %s: %s where f32 is expected", t->name, loam_type_name(t->type));
    const uint8_t *p = t->data;
    for (int64_t i = 0; i < gguf_values(t); i++) {
        float x = lef32(p + 4 * i);
        if (!(x >= 0) || !isfinite(x))
            return fail(err, LOAM_E_NUMERIC, "tensor %s: column %lld of matrix %lld is %g", t->name, (long long)(i % t->ne[0]),
                        (long long)(i / t->ne[0]), (double)x);
    }
    return LOAM_OK;
}

static loam_status read_entry(loam_imatrix *im, const char *name, const gguf_tensor *sums, const gguf_tensor *counts, loam_error *err)
{
    int64_t mats = sums->ne[1] * sums->ne[2] * sums->ne[3], n_counts = gguf_values(counts);
    imatrix_entry *e;
    loam_status status = check_tensor(sums, err);
    if (status == LOAM_OK) status = check_tensor(counts, err);
    if (status != LOAM_OK) return status;
    if (gguf_values(sums) == 0 || (n_counts != mats && n_counts != 1))
        return fail(err, LOAM_E_FORMAT, "tensor %s: %lld counts for %lld matrices of %lld columns", counts->name, (long long)n_counts,
                    (long long)mats, (long long)sums->ne[0]);
    status = imatrix_entry_of(im, name, (imatrix_shape){ sums->ne[0], mats, n_counts }, &e, err);
    if (status != LOAM_OK) return status;
    for (int64_t i = 0; i < gguf_values(sums); i++) e->sums[i] = lef32((const uint8_t *)sums->data + 4 * i);
    for (int64_t i = 0; i < n_counts; i++) {
        double count = rint((double)lef32((const uint8_t *)counts->data + 4 * i));
        if (count > 1e15) return fail(err, LOAM_E_NUMERIC, "tensor %s: a count of %g", counts->name, count);
        e->counts[i] = (int64_t)count;
    }
    return LOAM_OK;
}

static loam_status read_keys(loam_imatrix *im, const gguf_file *f, loam_error *err)
{
    text_view type = { "", 0 }, name;
    uint32_t chunks = 0, size = 0;
    gguf_array sets;
    loam_status status = gguf_get_text(f, "general.type", GGUF_OPTIONAL, &type, err);
    if (status == LOAM_OK && (type.len != 7 || memcmp(type.data, "imatrix", 7) != 0))
        status = fail(err, LOAM_E_FORMAT, "general.type is '%.*s': this is no importance matrix", type.len > 40 ? 40 : (int)type.len, type.data);
    if (status == LOAM_OK) status = gguf_get_u32(f, "imatrix.chunk_count", GGUF_REQUIRED, &chunks, err);
    if (status == LOAM_OK) status = gguf_get_u32(f, "imatrix.chunk_size", GGUF_REQUIRED, &size, err);
    if (status == LOAM_OK) status = gguf_get_array(f, "imatrix.datasets", GGUF_REQUIRED, GGUF_STRINGS, &sets, err);
    if (status != LOAM_OK) return status;
    if (size == 0) return fail(err, LOAM_E_FORMAT, "imatrix.chunk_size is 0");
    im->chunk_size = size;
    gguf_strings it = gguf_strings_of(&sets);
    while (gguf_next(&it, &name) && status == LOAM_OK) {
        char *text = mem_strdup(name.data, name.len);
        status = text ? loam_imatrix_add_dataset(im, text, err) : fail_nomem(err, "the name of a data set", name.len);
        mem_free(text);
    }
    return status;
}

static loam_status read_gguf(loam_imatrix *im, const gguf_file *f, loam_error *err)
{
    loam_status status = read_keys(im, f, err);
    for (uint32_t i = 0; i < gguf_tensor_count(f) && status == LOAM_OK; i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        char name[LIMIT_NAME_BYTES + 1];
        bool sums = stem(t->name, SUMS, name), counts = !sums && stem(t->name, COUNTS, name);
        const gguf_tensor *other = sums || counts ? other_half(f, name, sums ? COUNTS : SUMS) : NULL;
        if (!sums && !counts) status = fail(err, LOAM_E_FORMAT, "tensor %s belongs in no importance matrix", t->name);
        else if (!other) status = fail(err, LOAM_E_FORMAT, "tensor %s has no %s beside it", t->name, sums ? COUNTS : SUMS);
        else if (sums) status = read_entry(im, name, t, other, err);
    }
    return status;
}

/* ---- reading: the older form ---- */

/* A text with an i32 length before it; NULL where it is not there or too long. */
static char *read_text(reader *r, loam_status *status, loam_error *err)
{
    uint64_t at = r->pos;
    uint32_t len = reader_u32(r);
    const uint8_t *p = len <= LIMIT_STRING_BYTES ? reader_take(r, len) : NULL;
    char *text = p ? mem_strdup((const char *)p, len) : NULL;
    if (!p) *status = fail_at(err, LOAM_E_FORMAT, at, "a name of %u bytes at byte %llu reaches beyond the end of the file", len, (unsigned long long)at);
    else if (!text) *status = fail_nomem(err, "a name", len);
    return text;
}

static loam_status read_old_entry(loam_imatrix *im, reader *r, loam_error *err)
{
    loam_status status = LOAM_OK;
    imatrix_entry *e;
    char *name = read_text(r, &status, err);
    if (!name) return status;
    uint32_t calls = reader_u32(r), n = reader_u32(r);
    const uint8_t *p = reader_take(r, (uint64_t)n * 4);
    if (!p || n == 0 || !*name || (int32_t)calls < 0 || strlen(name) > LIMIT_NAME_BYTES || map_get(&im->index, name, strlen(name)) != MAP_NONE)
        status = fail_at(err, LOAM_E_FORMAT, r->pos, "entry '%.63s' is cut off, empty, there twice or has a bad name", name);
    if (status == LOAM_OK) status = imatrix_entry_of(im, name, (imatrix_shape){ n, 1, 1 }, &e, err);
    for (uint32_t i = 0; i < n && status == LOAM_OK; i++) {
        float x = lef32(p + 4 * (uint64_t)i);
        if (!(x >= 0) || !isfinite(x)) status = fail(err, LOAM_E_NUMERIC, "tensor %.63s: column %u is %g", name, i, (double)x);
        else e->sums[i] = (double)x * (calls ? im->chunk_size : 1);
    }
    if (status == LOAM_OK) e->counts[0] = calls ? (int64_t)calls * im->chunk_size : 1;
    mem_free(name);
    return status;
}

/* Calls are taken to be chunks of the default size, so that the file can be added to others. */
static loam_status read_old(loam_imatrix *im, reader *r, loam_error *err)
{
    uint32_t n = reader_u32(r);
    loam_status status = LOAM_OK;
    if (n == 0 || n > LIMIT_TENSORS || n > reader_left(r) / 16)
        return fail(err, LOAM_E_FORMAT, "this is no importance matrix: neither GGUF nor the older form");
    while (n-- > 0 && status == LOAM_OK) status = read_old_entry(im, r, err);
    if (status != LOAM_OK || reader_left(r) < 8) return status;
    reader_u32(r); /* chunks: they follow from the counts */
    char *name = read_text(r, &status, err);
    if (name) status = loam_imatrix_add_dataset(im, name, err);
    mem_free(name);
    return status;
}

/* ---- opening ---- */

loam_status imatrix_open_memory(loam_imatrix **out, const void *data, size_t size, const char *label, loam_error *err)
{
    *out = NULL;
    loam_imatrix *im;
    gguf_file *f = NULL;
    reader r = { .data = data, .end = size };
    loam_status status = loam_imatrix_new(&im, err);
    if (status != LOAM_OK) return status;
    bool is_gguf = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    if (is_gguf) status = gguf_open_memory(&f, data, size, label, err);
    if (status == LOAM_OK) {
        status = is_gguf ? read_gguf(im, f, err) : read_old(im, &r, err);
        if (status != LOAM_OK) fail_prefix(err, status, "%s", label);
    }
    gguf_close(f);
    if (status == LOAM_OK) *out = im;
    else loam_imatrix_free(im);
    return status;
}

loam_status loam_imatrix_open(loam_imatrix **out, const char *path, loam_error *err)
{
    os_file f;
    *out = NULL;
    loam_status status = os_file_open(&f, path, true, err);
    if (status != LOAM_OK) return status;
    status = imatrix_open_memory(out, f.data, f.size, path, err);
    os_file_close(&f);
    return status;
}

/* ---- writing ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const imatrix_entry *const *)a)->name, (*(const imatrix_entry *const *)b)->name);
}

/* Puts sums and counts as floats into data; their number. */
static size_t put_entry(gguf_builder *b, const imatrix_entry *e, float *data)
{
    char name[LIMIT_NAME_BYTES + 64];
    size_t n = (size_t)(e->n * e->n_mats);
    int64_t sums[4] = { e->n, e->n_mats, 1, 1 }, counts[4] = { 1, e->n_counts, 1, 1 };
    for (size_t i = 0; i < n; i++) data[i] = (float)e->sums[i];
    for (int64_t i = 0; i < e->n_counts; i++) data[n + (size_t)i] = (float)e->counts[i];
    snprintf(name, sizeof name, "%s%s", e->name, SUMS);
    gguf_put_tensor(b, name, LOAM_F32, sums, data);
    snprintf(name, sizeof name, "%s%s", e->name, COUNTS);
    gguf_put_tensor(b, name, LOAM_F32, counts, data + n);
    return n + (size_t)e->n_counts;
}

static void put_keys(gguf_builder *b, const loam_imatrix *im)
{
    text_view *names = mem_alloc_array(im->n_datasets, sizeof *names);
    for (size_t i = 0; names && i < im->n_datasets; i++) names[i] = (text_view){ im->datasets[i], strlen(im->datasets[i]) };
    gguf_set_text(b, "general.type", "imatrix", 7);
    gguf_set_texts(b, "imatrix.datasets", names, im->n_datasets);
    gguf_set_u32(b, "imatrix.chunk_count", loam_imatrix_chunk_count(im));
    gguf_set_u32(b, "imatrix.chunk_size", im->chunk_size);
    mem_free(names);
}

loam_status loam_imatrix_save(const loam_imatrix *im, const char *path, loam_error *err)
{
    gguf_builder *b = NULL;
    size_t n = 0, values = 0, at = 0;
    const imatrix_entry **list = mem_alloc_array(im->n, sizeof *list);
    for (size_t i = 0; list && i < im->n; i++) {
        const imatrix_entry *e = imatrix_find(im, im->entries[i].name);
        if (!e) continue;
        list[n++] = e;
        values += (size_t)(e->n * e->n_mats + e->n_counts);
    }
    float *data = mem_alloc_array(values, sizeof *data);
    loam_status status = LOAM_OK;
    if (!list || !data) status = fail_nomem(err, "an importance matrix to write", values * sizeof *data);
    else if (n == 0) status = fail(err, LOAM_E_ARG, "%s: the importance matrix is empty: nothing was counted", path);
    if (status == LOAM_OK) status = gguf_builder_create(&b, NULL, 0, err);
    if (status == LOAM_OK) {
        qsort(list, n, sizeof *list, by_name);
        put_keys(b, im);
        for (size_t i = 0; i < n; i++) at += put_entry(b, list[i], data + at);
        status = gguf_write(b, path, NULL, err);
    }
    gguf_builder_free(b);
    mem_free(list);
    mem_free(data);
    return status;
}
