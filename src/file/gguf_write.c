/* gguf_write.c - streams GGUF files, whole or split; see gguf_write.h.
 *
 * The layout is settled when the writer opens: which tensors go into which part, and where. Then metadata is written, and
 * tensor data follows in order with no more memory than the caller's piece. All parts keep temporary names until the last
 * one is whole, so that nobody ever opens half a file. */
#include <stdio.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base/mem.h"
#include "base/atomic.h"
#include "file/gguf_build.h"
#include "base/reader.h"

#define MARK_BYTES 64 /* of a tensor that tell one file from another */

typedef struct part {
    size_t first, end; /* tensors [first, end) of the list */
    atomic_file *file;
} part;

struct gguf_writer {
    const gguf_builder *b;
    const build_tensor **tensors; /* those that are kept, in order */
    size_t n_tensors;
    part *parts;
    size_t n_parts, part_cap, part; /* the one that is being written */
    char *path;
    uint32_t alignment;
    uint64_t mark; /* set_mark, where there are several parts */
    size_t turn;   /* tensor that is being written */
    uint64_t done; /* of its bytes */
};

/* ---- layout ---- */

static loam_status find_alignment(gguf_writer *w, loam_error *err)
{
    static const char key[] = "general.alignment";
    w->alignment = 32;
    uint32_t i = map_get(&w->b->key_index, key, sizeof key - 1);
    if (i == MAP_NONE || w->b->keys[i].removed) return LOAM_OK;
    const build_key *k = &w->b->keys[i];
    if (k->kind == GGUF_U32) w->alignment = le32(k->data);
    if (k->kind == GGUF_U32 && w->alignment && !(w->alignment & (w->alignment - 1)) && w->alignment <= LIMIT_ALIGNMENT)
        return LOAM_OK;
    return fail(err, LOAM_E_ARG, "key '%s' must be a uint32, a power of two up to %u", key, LIMIT_ALIGNMENT);
}

static uint64_t padding(uint64_t at, uint32_t alignment) { return (0 - at) & (alignment - 1); }

/* Parts as they were asked for. */
static loam_status take_parts(gguf_writer *w, const gguf_write_options *o, loam_error *err)
{
    w->parts = mem_zalloc_array(o->n_parts, sizeof *w->parts);
    if (!w->parts) return fail_nomem(err, "the parts of a file", o->n_parts * sizeof *w->parts);
    size_t at = 0;
    for (w->n_parts = 0; w->n_parts < o->n_parts; w->n_parts++) {
        size_t end = at + o->parts[w->n_parts];
        w->parts[w->n_parts] = (part){ .first = at, .end = end };
        at = end;
    }
    if (at == w->n_tensors && w->n_parts <= LIMIT_SPLITS) return LOAM_OK;
    return fail(err, LOAM_E_ARG, "%s: %zu parts with %zu tensors, there are %zu", w->path, w->n_parts, at, w->n_tensors);
}

/* Cuts the list of tensors into parts. */
static loam_status plan_parts(gguf_writer *w, const gguf_write_options *o, loam_error *err)
{
    if (o && o->n_parts) return take_parts(w, o, err);
    uint64_t most_bytes = o && o->part_bytes ? o->part_bytes : UINT64_MAX;
    size_t most_tensors = o && o->part_tensors ? o->part_tensors : SIZE_MAX, first = 0;
    while (first < w->n_tensors || w->n_parts == 0) {
        uint64_t bytes = 0;
        size_t end = first;
        for (; end < w->n_tensors && end - first < most_tensors; end++) {
            uint64_t next = bytes + w->tensors[end]->bytes + padding(w->tensors[end]->bytes, w->alignment);
            if (end > first && next > most_bytes) break;
            bytes = next;
        }
        if (!mem_grow(&w->parts, &w->part_cap, w->n_parts + 1, sizeof *w->parts, LIMIT_SPLITS))
            return fail(err, LOAM_E_NOMEM, "%s: out of memory, or over %u parts", w->path, LIMIT_SPLITS);
        w->parts[w->n_parts++] = (part){ .first = first, .end = end };
        first = end;
    }
    return LOAM_OK;
}

static loam_status list_tensors(gguf_writer *w, loam_error *err)
{
    w->tensors = mem_alloc_array(w->b->n_tensors, sizeof *w->tensors);
    if (!w->tensors) return fail_nomem(err, "the list of tensors", w->b->n_tensors * sizeof *w->tensors);
    uint64_t total = 0;
    for (size_t i = 0; i < w->b->n_tensors; i++) {
        const build_tensor *t = &w->b->tensors[i];
        if (t->removed) continue;
        w->tensors[w->n_tensors++] = t;
        if (!add_ok(total, t->bytes, &total) || total > INT64_MAX / 2)
            return fail(err, LOAM_E_ARG, "%s: tensor '%s' makes the file too large", w->path, t->name);
    }
    return LOAM_OK;
}

/* ---- metadata ---- */

/* Output with a sticky failure and a position, for padding. */
typedef struct sink {
    atomic_file *file;
    uint64_t at;
    loam_status status;
    loam_error *err;
} sink;

static void emit(sink *s, const void *data, uint64_t bytes)
{
    if (s->status == LOAM_OK) s->status = atomic_write(s->file, data, (size_t)bytes, s->err);
    s->at += bytes;
}

static void emit_u32(sink *s, uint32_t v) { emit(s, &v, 4); }
static void emit_u64(sink *s, uint64_t v) { emit(s, &v, 8); }

static void emit_text(sink *s, const char *text, uint64_t len)
{
    emit_u64(s, len);
    emit(s, text, len);
}

static void emit_zeros(sink *s, uint64_t n)
{
    static const uint8_t zeros[256];
    for (; n > sizeof zeros; n -= sizeof zeros) emit(s, zeros, sizeof zeros);
    emit(s, zeros, n);
}

static void emit_key(sink *s, const build_key *k)
{
    emit_text(s, k->name, k->name_len);
    emit_u32(s, (uint32_t)k->kind);
    if (k->kind == GGUF_ARRAY) emit_u32(s, (uint32_t)k->item);
    if (k->kind == GGUF_ARRAY || k->kind == GGUF_STRING) emit_u64(s, k->count);
    emit(s, k->data, k->bytes);
}

/* A mark that all parts of one writing carry, so that parts of different files are not joined: a hash of the metadata, the
 * list of tensors and, where their data is known by now, its beginnings. */
static uint64_t set_mark(const gguf_writer *w)
{
    XXH64_state_t h;
    XXH64_reset(&h, w->n_parts);
    for (size_t i = 0; i < w->b->n_keys; i++) {
        const build_key *k = &w->b->keys[i];
        if (k->removed || gguf_is_split_key(k->name, k->name_len)) continue;
        XXH64_update(&h, k->name, k->name_len);
        XXH64_update(&h, k->data, (size_t)k->bytes);
    }
    for (size_t i = 0; i < w->n_tensors; i++) {
        const build_tensor *t = w->tensors[i];
        XXH64_update(&h, t->name, strlen(t->name));
        XXH64_update(&h, t->ne, sizeof t->ne);
        XXH64_update(&h, &t->type, sizeof t->type);
        if (t->data) XXH64_update(&h, t->data, t->bytes < MARK_BYTES ? (size_t)t->bytes : MARK_BYTES);
    }
    return XXH64_digest(&h);
}

static void emit_split_keys(sink *s, const gguf_writer *w)
{
    uint16_t no = (uint16_t)w->part, count = (uint16_t)w->n_parts;
    int32_t tensors = (int32_t)w->n_tensors;
    emit_key(s, &(build_key){ .name = "split.no", .name_len = 8, .kind = GGUF_U16, .bytes = 2, .data = (void *)&no });
    emit_key(s, &(build_key){ .name = "split.count", .name_len = 11, .kind = GGUF_U16, .bytes = 2, .data = (void *)&count });
    emit_key(
        s, &(build_key){ .name = "split.tensors.count", .name_len = 19, .kind = GGUF_I32, .bytes = 4, .data = (void *)&tensors });
    emit_key(s, &(build_key){ .name = "split.set", .name_len = 9, .kind = GGUF_U64, .bytes = 8, .data = (void *)&w->mark });
}

/* Part 0 has all keys; the others only what their own layout needs. */
static bool in_part(const gguf_writer *w, const build_key *k)
{
    if (k->removed || (w->n_parts > 1 && gguf_is_split_key(k->name, k->name_len))) return false; /* the writer has its own */
    return w->part == 0 || (k->name_len == 17 && memcmp(k->name, "general.alignment", 17) == 0);
}

static void emit_entry(sink *s, const build_tensor *t, uint64_t offset)
{
    emit_text(s, t->name, strlen(t->name));
    emit_u32(s, (uint32_t)t->n_dims);
    for (int d = 0; d < t->n_dims; d++) emit_u64(s, (uint64_t)t->ne[d]);
    emit_u32(s, (uint32_t)t->type);
    emit_u64(s, offset);
}

static loam_status emit_metadata(gguf_writer *w, loam_error *err)
{
    const part *p = &w->parts[w->part];
    sink s = { .file = p->file, .err = err };
    uint64_t n_keys = w->n_parts > 1 ? 4 : 0, offset = 0;
    for (size_t i = 0; i < w->b->n_keys; i++) n_keys += in_part(w, &w->b->keys[i]);
    emit(&s, "GGUF", 4);
    emit_u32(&s, 3);
    emit_u64(&s, p->end - p->first);
    emit_u64(&s, n_keys);
    for (size_t i = 0; i < w->b->n_keys; i++)
        if (in_part(w, &w->b->keys[i])) emit_key(&s, &w->b->keys[i]);
    if (w->n_parts > 1) emit_split_keys(&s, w);
    for (size_t i = p->first; i < p->end; i++) {
        const build_tensor *t = w->tensors[i];
        emit_entry(&s, t, offset);
        offset += t->bytes + padding(t->bytes, w->alignment);
    }
    emit_zeros(&s, padding(s.at, w->alignment));
    return s.status;
}

/* ---- data ---- */

char *gguf_part_name(const char *path, size_t number, size_t n)
{
    size_t len = strlen(path), room = len + 32;
    if (n == 1) return mem_strdup(path, len);
    char *name = mem_alloc(room);
    if (len > 5 && strcmp(path + len - 5, ".gguf") == 0) len -= 5;
    if (name) snprintf(name, room, "%.*s-%05zu-of-%05zu.gguf", (int)len, path, number + 1, n);
    return name;
}

static loam_status open_part(gguf_writer *w, loam_error *err)
{
    char *name = gguf_part_name(w->path, w->part, w->n_parts);
    if (!name) return fail_nomem(err, "a file name", strlen(w->path));
    loam_status s = atomic_open(&w->parts[w->part].file, name, err);
    mem_free(name);
    return s == LOAM_OK ? emit_metadata(w, err) : s;
}

/* Steps over tensors and parts that need no more bytes, so that `turn` is one that does (or none is left). */
static loam_status advance(gguf_writer *w, loam_error *err)
{
    for (;;) {
        part *p = &w->parts[w->part];
        while (w->turn < p->end && w->done == w->tensors[w->turn]->bytes) {
            sink s = { .file = p->file, .err = err };
            emit_zeros(&s, padding(w->done, w->alignment));
            if (s.status != LOAM_OK) return s.status;
            w->turn++;
            w->done = 0;
        }
        if (w->turn < p->end || w->part + 1 == w->n_parts) return LOAM_OK;
        loam_status s = atomic_finish(p->file, err);
        if (s != LOAM_OK) return s;
        w->part++;
        s = open_part(w, err);
        if (s != LOAM_OK) return s;
    }
}

const char *gguf_writer_turn(const gguf_writer *w) { return w->turn < w->n_tensors ? w->tensors[w->turn]->name : NULL; }

loam_status gguf_writer_put(gguf_writer *w, const void *data, uint64_t bytes, loam_error *err)
{
    if (bytes == 0) return LOAM_OK;
    if (w->turn >= w->n_tensors)
        return fail(err, LOAM_E_ARG, "%s: %llu bytes after the last tensor", w->path, (unsigned long long)bytes);
    const build_tensor *t = w->tensors[w->turn];
    if (bytes > t->bytes - w->done)
        return fail(err, LOAM_E_ARG, "%s: tensor '%s': %llu bytes given, %llu wanted", w->path, t->name,
                    (unsigned long long)bytes, (unsigned long long)(t->bytes - w->done));
    loam_status s = atomic_write(w->parts[w->part].file, data, (size_t)bytes, err);
    if (s != LOAM_OK) return s;
    w->done += bytes;
    return advance(w, err);
}

/* ---- the writer ---- */

void gguf_writer_cancel(gguf_writer *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->n_parts; i++) atomic_free(w->parts[i].file);
    mem_free(w->parts);
    mem_free(w->tensors);
    mem_free(w->path);
    mem_free(w);
}

loam_status gguf_writer_open(gguf_writer **out, const gguf_builder *b, const char *path, const gguf_write_options *options,
                             loam_error *err)
{
    *out = NULL;
    if (b->error.code != LOAM_OK) {
        if (err) *err = b->error;
        return fail_prefix(err, b->error.code, "%s", path);
    }
    gguf_writer *w = mem_zalloc(sizeof *w);
    if (w) w->path = mem_strdup(path, strlen(path));
    if (!w || !w->path) {
        gguf_writer_cancel(w);
        return fail_nomem(err, "a file writer", sizeof *w);
    }
    w->b = b;
    loam_status s = find_alignment(w, err);
    if (s == LOAM_OK) s = list_tensors(w, err);
    if (s == LOAM_OK) s = plan_parts(w, options, err);
    if (s == LOAM_OK && w->n_parts > 1) w->mark = set_mark(w);
    if (s == LOAM_OK) s = open_part(w, err);
    if (s == LOAM_OK) s = advance(w, err);
    if (s == LOAM_OK && options && options->written) *options->written = (uint32_t)w->n_parts;
    if (s != LOAM_OK) gguf_writer_cancel(w);
    else *out = w;
    return s;
}

loam_status gguf_writer_close(gguf_writer *w, loam_error *err)
{
    loam_status s = LOAM_OK;
    if (w->turn < w->n_tensors)
        s = fail(err, LOAM_E_ARG, "%s: tensor '%s' lacks %llu bytes", w->path, w->tensors[w->turn]->name,
                 (unsigned long long)(w->tensors[w->turn]->bytes - w->done));
    if (s == LOAM_OK) s = atomic_finish(w->parts[w->part].file, err);
    for (size_t i = 0; s == LOAM_OK && i < w->n_parts; i++) s = atomic_commit(w->parts[i].file, err);
    gguf_writer_cancel(w);
    return s;
}

loam_status gguf_write(const gguf_builder *b, const char *path, const gguf_write_options *options, loam_error *err)
{
    gguf_writer *w;
    loam_status s = gguf_writer_open(&w, b, path, options, err);
    if (s != LOAM_OK) return s;
    while (s == LOAM_OK && w->turn < w->n_tensors) {
        const build_tensor *t = w->tensors[w->turn];
        s = t->data ? gguf_writer_put(w, t->data, t->bytes, err)
                    : fail(err, LOAM_E_ARG, "%s: tensor '%s' has no data", path, t->name);
    }
    if (s == LOAM_OK) return gguf_writer_close(w, err);
    gguf_writer_cancel(w);
    return s;
}
