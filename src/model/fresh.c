/* fresh.c - see fresh.h. The list of tensors comes from binding (bind.c), which knows what every architecture needs: a file with
 * the keys and the token embeddings alone is opened, and what is missed is written down. */
#include "model/fresh.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/random_blocks.h"

loam_status wish_add(wishes *w, const char *name, const int64_t *ne, int n, loam_error *err)
{
    wish x = { .n = n };
    if (strlen(name) > LIMIT_NAME_BYTES) return fail(err, LOAM_E_FORMAT, "tensor name '%.80s' is too long", name);
    if (!mem_grow(&w->items, &w->cap, w->n + 1, sizeof *w->items, LIMIT_TENSORS))
        return fail_nomem(err, "the list of tensors", (w->n + 1) * sizeof *w->items);
    snprintf(x.name, sizeof x.name, "%s", name);
    memcpy(x.ne, ne, sizeof x.ne);
    w->items[w->n++] = x;
    return LOAM_OK;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* Deviation of a tensor's values around *mean. */
static float deviation(const wish *t, int n_layer, float *mean)
{
    bool vector = t->n == 1 || ends_in(t->name, "_norm.weight");
    *mean = vector && ends_in(t->name, ".weight") ? 1 : 0;
    if (vector) return 0;
    if (strcmp(t->name, "token_embd.weight") == 0 || strcmp(t->name, "position_embd.weight") == 0) return 0.02f;
    float d = 0.577f / sqrtf((float)t->ne[0]);
    bool ends_branch = ends_in(t->name, ".attn_output.weight") || strstr(t->name, ".ffn_down");
    return ends_branch ? d / sqrtf(2 * (float)n_layer) : d;
}

#define CHUNK 65536

static loam_status put_tensor(gguf_writer *w, const wish *t, int n_layer, uint64_t *seed, loam_error *err)
{
    float mean, d = deviation(t, n_layer, &mean), *v = mem_alloc(CHUNK * sizeof *v);
    if (!v) return fail_nomem(err, "a piece of a tensor", CHUNK * sizeof *v);
    loam_status s = LOAM_OK;
    for (int64_t left = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3], n; left > 0 && s == LOAM_OK; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        if (d > 0) random_blocks(LOAM_F32, d, (uint8_t *)v, (size_t)n, seed);
        for (int64_t i = 0; d == 0 && i < n; i++) v[i] = mean;
        s = gguf_writer_put(w, v, (uint64_t)n * sizeof *v, err);
    }
    mem_free(v);
    return s;
}

static loam_status write_tensors(gguf_builder *b, const wishes *w, const fresh_shape *shape, const char *path, loam_error *err)
{
    gguf_writer *writer;
    uint64_t seed = shape->seed;
    for (size_t i = 0; i < w->n; i++) gguf_put_tensor(b, w->items[i].name, LOAM_F32, w->items[i].ne, NULL);
    loam_status s = gguf_writer_open(&writer, b, path, NULL, err);
    if (s != LOAM_OK) return s;
    for (size_t i = 0; i < w->n && s == LOAM_OK; i++) s = put_tensor(writer, &w->items[i], shape->n_layer, &seed, err);
    if (s == LOAM_OK) return gguf_writer_close(writer, err);
    gguf_writer_cancel(writer);
    return s;
}

/* A model that could not be trained here fills no disk. */
static loam_status check_size(const wishes *w, uint64_t most, loam_error *err)
{
    uint64_t sum = 0, n;
    for (size_t i = 0; i < w->n; i++) {
        const int64_t *ne = w->items[i].ne;
        if (!mul_ok((uint64_t)ne[0], (uint64_t)ne[1], &n) || !mul_ok(n, (uint64_t)ne[2], &n) || !mul_ok(n, (uint64_t)ne[3], &n) || !add_ok(sum, n, &sum))
            sum = UINT64_MAX / 2;
        if (sum > UINT64_MAX / 64) break;
    }
    if (sum <= most) return LOAM_OK;
    return fail(err, LOAM_E_NOMEM, "the model has %.3g M weights; the machine has %.0f MB left, enough for %.3g M", (double)sum / 1e6,
                (double)most * 16 / 1e6, (double)most / 1e6);
}

static loam_status fresh_write(gguf_builder *b, const fresh_shape *shape, const char *path, wishes *w, loam_error *err)
{
    const int64_t table[4] = { shape->n_embd, shape->n_vocab, 1, 1 };
    loam_status s = wish_add(w, "token_embd.weight", table, 2, err);
    if (s == LOAM_OK) s = check_size(w, shape->max_values, err);
    if (s == LOAM_OK) s = write_tensors(b, w, shape, path, err);
    if (s == LOAM_OK) s = model_wishes(path, w, err);
    if (s == LOAM_OK) s = check_size(w, shape->max_values, err);
    bool has_output = false;
    for (size_t i = 0; i < w->n; i++) has_output = has_output || strcmp(w->items[i].name, "output.weight") == 0;
    if (s == LOAM_OK && !shape->tied && !has_output) s = wish_add(w, "output.weight", table, 2, err);
    return s == LOAM_OK ? write_tensors(b, w, shape, path, err) : s;
}

loam_status model_fresh_write(gguf_builder *b, const fresh_shape *shape, const char *path, loam_error *err)
{
    wishes w = { 0 };
    loam_status s = fresh_write(b, shape, path, &w, err);
    if (s != LOAM_OK) remove(path);
    mem_free(w.items);
    return s;
}
