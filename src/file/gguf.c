/* gguf.c - opens and closes GGUF files and answers questions about them; what is in a file is read by gguf_parse.c, the
 * other parts of a split one are found by split.c, and folders are read by hf_open.c. Refuses devices and what cannot be read, by path. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/gguf_impl.h"
#include "file/gguf_write.h"
#include "file/hf.h"

/* ---- opening ---- */

#define LABEL_BYTES 160

gguf_file *gguf_new(const char *path)
{
    gguf_file *f = mem_zalloc(sizeof *f);
    if (!f) return NULL;
    size_t len = strlen(path);
    const char *tail = path;
    if (len > LABEL_BYTES) {
        tail = path + len - LABEL_BYTES;
        while (((uint8_t)*tail & 0xC0) == 0x80) tail++;
    }
    size_t room = strlen(tail) + 4;
    f->path = mem_strdup(path, len);
    f->label = mem_alloc(room);
    if (!f->path || !f->label) {
        gguf_close(f);
        return NULL;
    }
    snprintf(f->label, room, "%s%s", tail == path ? "" : "...", tail);
    return f;
}

static loam_status open_file(gguf_file *f, unsigned flags, loam_error *err)
{
    loam_status s = os_file_open(&f->file, f->path, !(flags & GGUF_READ), err);
    if (s != LOAM_OK) return s;
    f->data = f->file.data;
    f->size = f->file.size;
    s = gguf_parse(f, err);
    return s == LOAM_OK && !(flags & GGUF_PART) ? gguf_join_parts(f, flags, err) : s;
}

static loam_status open_folder(gguf_file *f, unsigned flags, loam_error *err)
{
    loam_status s = hf_open(f, flags, err);
    return s == LOAM_OK && !(flags & GGUF_LAZY) ? gguf_hold_all(f, err) : s;
}

loam_status gguf_open(gguf_file **out, const char *path, unsigned flags, loam_error *err)
{
    *out = NULL;
    if (!path) return fail(err, LOAM_E_ARG, "gguf_open: no path");
    gguf_file *f = gguf_new(path);
    if (!f) return fail_nomem(err, "a file handle", sizeof *f);
    loam_status s = os_is_folder(path) ? open_folder(f, flags, err) : open_file(f, flags, err);
    if (s != LOAM_OK) gguf_close(f);
    else *out = f;
    return s;
}

loam_status gguf_open_memory(gguf_file **out, const void *data, size_t size, const char *label, loam_error *err)
{
    *out = NULL;
    if (!data && size) return fail(err, LOAM_E_ARG, "gguf_open_memory: no data");
    gguf_file *f = gguf_new(label ? label : "memory");
    if (!f) return fail_nomem(err, "a file handle", sizeof *f);
    f->data = data;
    f->size = size;
    loam_status s = gguf_parse(f, err);
    if (s != LOAM_OK) gguf_close(f);
    else *out = f;
    return s;
}

void gguf_close(gguf_file *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->n_parts; i++) gguf_close(f->parts[i]);
    mem_free(f->parts);
    for (size_t i = 0; f->held && i < f->n_tensors; i++) mem_free(f->held[i]);
    mem_free(f->held);
    gguf_builder_free(f->built);
    hf_weights_free(f->weights);
    map_free(&f->key_index);
    map_free(&f->tensor_index);
    mem_free(f->keys);
    mem_free(f->tensors);
    mem_free(f->path);
    mem_free(f->label);
    os_file_close(&f->file);
    mem_free(f);
}

const char *gguf_path(const gguf_file *f) { return f->path; }
uint32_t gguf_version(const gguf_file *f) { return f->version; }
uint32_t gguf_alignment(const gguf_file *f) { return f->alignment; }
uint32_t gguf_part_count(const gguf_file *f) { return f->n_parts + 1; }

static const gguf_file *part_of(const gguf_file *f, uint32_t part)
{
    return part == 0 ? f : part <= f->n_parts ? f->parts[part - 1] : NULL;
}

const char *gguf_part_path(const gguf_file *f, uint32_t part)
{
    const gguf_file *p = part_of(f, part);
    return p ? p->path : NULL;
}

uint64_t gguf_file_bytes(const gguf_file *f)
{
    uint64_t n = f->size;
    for (uint32_t i = 0; i < f->n_parts; i++) n += f->parts[i]->size;
    return n;
}

bool gguf_lock(const gguf_file *f)
{
    bool ok = os_file_lock(&f->file);
    for (uint32_t i = 0; i < f->n_parts; i++) ok = os_file_lock(&f->parts[i]->file) && ok;
    return ok;
}

uint32_t gguf_tensor_count(const gguf_file *f) { return (uint32_t)f->n_tensors; }
const gguf_tensor *gguf_tensor_at(const gguf_file *f, uint32_t i) { return i < f->n_tensors ? &f->tensors[i] : NULL; }

const gguf_tensor *gguf_tensor_find(const gguf_file *f, const char *name)
{
    uint32_t i = map_get(&f->tensor_index, name, strlen(name));
    return i == MAP_NONE ? NULL : &f->tensors[i];
}

void gguf_prefetch(const gguf_file *f, const gguf_tensor *t)
{
    const gguf_file *p = part_of(f, t->part);
    if (p) os_file_prefetch(&p->file, t->offset, t->bytes);
}
