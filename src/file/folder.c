/* folder.c - a directory that was put together from a folder's files behaves as an opened GGUF file: keys and tensors are those
 * of a builder, the shards are its parts, and values that no file holds as they are needed are computed, all when opening or
 * tensor by tensor (GGUF_LAZY). Computed values are private memory; what is needed is held against what the machine has. */
#include <string.h>

#include "base/mem.h"
#include "file/gguf_build.h"
#include "file/hf_impl.h"

static loam_status take_keys(gguf_file *f, loam_error *err)
{
    const gguf_builder *b = f->built;
    f->keys = mem_alloc_array(b->n_keys + 1, sizeof *f->keys);
    if (!f->keys || !map_init(&f->key_index, b->n_keys)) return fail_nomem(err, "the table of keys", b->n_keys * sizeof *f->keys);
    for (size_t i = 0; i < b->n_keys; i++) {
        const build_key *k = &b->keys[i];
        if (k->removed) continue;
        f->keys[f->n_keys] = (gguf_key){ .name = k->name, .name_len = k->name_len, .kind = k->kind, .item = k->item,
                                         .count = k->count, .data = k->data, .bytes = k->bytes };
        if (!map_put(&f->key_index, k->name, k->name_len, f->n_keys++, NULL)) return fail_nomem(err, "the table of keys", 0);
    }
    return LOAM_OK;
}

/* Each shard becomes a part that owns its mapping. */
static loam_status take_shards(gguf_file *f, loam_error *err)
{
    hf_weights *w = f->weights;
    f->parts = mem_zalloc_array(w->n_shards + 1, sizeof *f->parts);
    if (!f->parts) return fail_nomem(err, "the table of parts", w->n_shards * sizeof *f->parts);
    for (uint32_t i = 0; i < w->n_shards; i++) {
        gguf_file *part = gguf_new(w->shards[i]->path);
        if (!part) return fail_nomem(err, "a file handle", sizeof *part);
        part->file = w->shards[i]->file;
        part->data = part->file.data;
        part->size = part->file.size;
        w->shards[i]->file = (os_file){ 0 };
        f->parts[f->n_parts++] = part;
    }
    return LOAM_OK;
}

static void find_part(const gguf_file *f, gguf_tensor *t)
{
    for (uint32_t i = 0; t->data && i < f->n_parts; i++) {
        uintptr_t at = (uintptr_t)t->data, begin = (uintptr_t)f->parts[i]->data;
        if (at < begin || at - begin >= f->parts[i]->size) continue;
        t->part = i + 1;
        t->offset = at - begin;
    }
}

static loam_status take_tensors(gguf_file *f, loam_error *err)
{
    const gguf_builder *b = f->built;
    f->tensors = mem_zalloc_array(b->n_tensors + 1, sizeof *f->tensors);
    f->held = mem_zalloc_array(b->n_tensors + 1, sizeof *f->held);
    if (!f->tensors || !f->held) return fail_nomem(err, "the table of tensors", b->n_tensors * sizeof *f->tensors);
    for (size_t i = 0; i < b->n_tensors; i++) {
        const build_tensor *from = &b->tensors[i];
        gguf_tensor *t = &f->tensors[f->n_tensors++];
        *t = (gguf_tensor){ .type = from->type, .n_dims = from->n_dims, .data = from->bytes ? from->data : NULL, .bytes = from->bytes };
        memcpy(t->ne, from->ne, sizeof t->ne);
        memcpy(t->name, from->name, strlen(from->name) + 1);
        find_part(f, t);
    }
    return gguf_index_tensors(f, err);
}

loam_status gguf_adopt(gguf_file *f, loam_error *err)
{
    const loam_error *built = &f->built->error;
    if (built->code != LOAM_OK) return fail(err, built->code, "%s: %s", f->label, built->message);
    f->version = 3;
    f->alignment = 32;
    loam_status s = take_keys(f, err);
    if (s == LOAM_OK) s = take_shards(f, err);
    return s == LOAM_OK ? take_tensors(f, err) : s;
}

loam_status gguf_hold(gguf_file *f, uint32_t i, loam_error *err)
{
    gguf_tensor *t = &f->tensors[i];
    if (!f->weights || t->data || t->bytes == 0) return LOAM_OK;
    void *data = mem_alloc((size_t)t->bytes);
    if (!data) return fail_nomem(err, t->name, t->bytes);
    loam_status s = hf_fill(f->weights, i, data, err);
    if (s != LOAM_OK) {
        mem_free(data);
        return s;
    }
    t->data = f->held[i] = data;
    return LOAM_OK;
}

void gguf_let_go(gguf_file *f, uint32_t i)
{
    if (!f->held || !f->held[i]) return;
    mem_free(f->held[i]);
    f->held[i] = NULL;
    f->tensors[i].data = NULL;
}

loam_status gguf_hold_all(gguf_file *f, loam_error *err)
{
    uint64_t need = 0, have = os_memory_available();
    for (size_t i = 0; i < f->n_tensors; i++)
        if (!f->tensors[i].data) need += f->tensors[i].bytes;
    if (need > have)
        return fail(err, LOAM_E_NOMEM, "%s: %llu MB of its tensors have to be put into another order, and %llu MB are free; convert it "
                    "to a GGUF file, which is mapped", f->label, (unsigned long long)(need >> 20), (unsigned long long)(have >> 20));
    loam_status s = LOAM_OK;
    for (uint32_t i = 0; i < f->n_tensors && s == LOAM_OK; i++) s = gguf_hold(f, i, err);
    return s;
}
