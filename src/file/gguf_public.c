/* gguf_public.c - include/loam/gguf.h over the reader and writer of this folder: the same objects under public names. */
#include "loam/gguf.h"

#include <string.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base/error.h"
#include "base/mem.h"
#include "file/gguf_write.h"
#include "file/hf.h"
#include "base/reader.h"

_Static_assert(LOAM_GGUF_F64 == (int)GGUF_F64 && LOAM_GGUF_ARRAY == (int)GGUF_ARRAY, "both enums number as the file does");

static const gguf_file *in(const loam_gguf *f) { return (const gguf_file *)f; }
static gguf_builder *builder_of(loam_gguf_builder *b) { return (gguf_builder *)b; }

/* ---- reading ---- */

loam_gguf_params loam_gguf_defaults(void)
{
    return (loam_gguf_params){ .struct_size = sizeof(loam_gguf_params), .use_mmap = true };
}

loam_status loam_gguf_open(loam_gguf **out, const char *path, const loam_gguf_params *params, loam_error *err)
{
    *out = NULL;
    loam_gguf_params p = loam_gguf_defaults();
    if (params && params->struct_size < sizeof p)
        return fail(err, LOAM_E_ARG, "loam_gguf_open: begin with loam_gguf_defaults() (struct_size is %zu)", params->struct_size);
    if (params) p = *params;
    gguf_file *f;
    loam_status s = gguf_open(&f, path, (p.use_mmap ? 0 : GGUF_READ) | (p.one_part ? GGUF_PART : 0), err);
    *out = (loam_gguf *)f;
    return s;
}

loam_status loam_gguf_open_adapter(loam_gguf **out, const char *path, const loam_gguf *base, loam_error *err)
{
    gguf_file *f = NULL;
    *out = NULL;
    if (!path || !base) return fail(err, LOAM_E_ARG, "loam_gguf_open_adapter: %s is NULL", path ? "base" : "path");
    loam_status s = hf_open_adapter(&f, path, in(base), err);
    *out = (loam_gguf *)f;
    return s;
}

loam_status loam_gguf_open_memory(loam_gguf **out, const void *data, size_t size, loam_error *err)
{
    gguf_file *f;
    loam_status s = gguf_open_memory(&f, data, size, "memory", err);
    *out = (loam_gguf *)f;
    return s;
}

void loam_gguf_free(loam_gguf *file) { gguf_close((gguf_file *)file); }
uint32_t loam_gguf_n_keys(const loam_gguf *file) { return gguf_key_count(in(file)); }
uint32_t loam_gguf_n_tensors(const loam_gguf *file) { return gguf_tensor_count(in(file)); }
uint32_t loam_gguf_n_parts(const loam_gguf *file) { return gguf_part_count(in(file)); }
uint32_t loam_gguf_version(const loam_gguf *file) { return gguf_version(in(file)); }
uint32_t loam_gguf_alignment(const loam_gguf *file) { return gguf_alignment(in(file)); }
uint64_t loam_gguf_bytes(const loam_gguf *file) { return gguf_file_bytes(in(file)); }
const char *loam_gguf_kind_name(int kind) { return gguf_kind_name((unsigned)kind); }

static bool show_key(const gguf_key *k, loam_gguf_value *v)
{
    if (!k) return false;
    *v = (loam_gguf_value){ .key = k->name,
                            .key_len = k->name_len,
                            .kind = (int)k->kind,
                            .item = (int)k->item,
                            .count = k->kind == GGUF_ARRAY ? k->count : 1,
                            .data = k->data,
                            .bytes = k->bytes };
    return true;
}

bool loam_gguf_key_at(const loam_gguf *file, uint32_t index, loam_gguf_value *value)
{
    return show_key(gguf_key_at(in(file), index), value);
}

bool loam_gguf_key_find(const loam_gguf *file, const char *key, loam_gguf_value *value)
{
    return show_key(gguf_key_find(in(file), key), value);
}

/* The value as an array, which a scalar is one of, if element i exists and is of that class. */
static bool element(const loam_gguf_value *v, uint64_t i, gguf_class cls, gguf_array *a)
{
    *a = (gguf_array){ .item = (gguf_kind)v->item, .count = v->count, .data = v->data, .bytes = v->bytes };
    return i < v->count && gguf_in_class(a->item, cls);
}

bool loam_gguf_int(const loam_gguf_value *value, uint64_t i, int64_t *out)
{
    gguf_array a;
    if (!element(value, i, GGUF_INTS, &a)) return false;
    if (a.item == GGUF_U64 && le64(a.data + 8 * i) > INT64_MAX) return false;
    *out = gguf_int_at(&a, i);
    return true;
}

bool loam_gguf_float(const loam_gguf_value *value, uint64_t i, double *out)
{
    gguf_array a;
    if (!element(value, i, GGUF_FLOATS, &a)) return false;
    *out = a.item == GGUF_F64 ? lef64(a.data + 8 * i) : (double)lef32(a.data + 4 * i);
    return true;
}

bool loam_gguf_bool(const loam_gguf_value *value, uint64_t i, bool *out)
{
    gguf_array a;
    if (!element(value, i, GGUF_BOOLS, &a)) return false;
    *out = gguf_bool_at(&a, i);
    return true;
}

bool loam_gguf_text(const loam_gguf_value *value, uint64_t *cursor, const char **text, size_t *len)
{
    const uint8_t *data = value->data;
    if (value->item != (int)GGUF_STRING || *cursor >= value->bytes + (value->kind == (int)GGUF_STRING)) return false;
    if (value->kind == (int)GGUF_STRING) {
        *text = (const char *)data;
        *len = (size_t)value->bytes;
        *cursor = value->bytes + 1;
        return true;
    }
    *len = (size_t)le64(data + *cursor);
    *text = (const char *)data + *cursor + 8;
    *cursor += 8 + *len;
    return true;
}

static bool show_tensor(const gguf_tensor *t, loam_gguf_tensor *v)
{
    if (!t) return false;
    *v = (loam_gguf_tensor){ .name = t->name,
                             .type = (int)t->type,
                             .n_dims = t->n_dims,
                             .data = t->data,
                             .bytes = t->bytes,
                             .offset = t->offset,
                             .part = t->part };
    memcpy(v->ne, t->ne, sizeof v->ne);
    return true;
}

bool loam_gguf_tensor_at(const loam_gguf *file, uint32_t index, loam_gguf_tensor *tensor)
{
    return show_tensor(gguf_tensor_at(in(file), index), tensor);
}

bool loam_gguf_tensor_find(const loam_gguf *file, const char *name, loam_gguf_tensor *tensor)
{
    return show_tensor(gguf_tensor_find(in(file), name), tensor);
}

uint64_t loam_gguf_hash(const loam_gguf *file, uint32_t index)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    uint32_t first = index == LOAM_GGUF_ALL ? 0 : index, n = loam_gguf_n_tensors(file);
    for (uint32_t i = first; i < n && (i == first || index == LOAM_GGUF_ALL); i++) {
        const gguf_tensor *t = gguf_tensor_at(in(file), i);
        if (t->bytes) XXH64_update(&state, t->data, (size_t)t->bytes);
    }
    return XXH64_digest(&state);
}

/* ---- building ---- */

loam_status loam_gguf_builder_create(loam_gguf_builder **out, const loam_gguf *from, bool take_tensors, loam_error *err)
{
    gguf_builder *b;
    loam_status s = gguf_builder_create(&b, in(from), GGUF_TAKE_KEYS | (take_tensors ? GGUF_TAKE_TENSORS : 0), err);
    *out = (loam_gguf_builder *)b;
    return s;
}

void loam_gguf_builder_free(loam_gguf_builder *b) { gguf_builder_free(builder_of(b)); }
void loam_gguf_set_u32(loam_gguf_builder *b, const char *key, uint32_t v) { gguf_set_u32(builder_of(b), key, v); }
void loam_gguf_set_i32(loam_gguf_builder *b, const char *key, int32_t v) { gguf_set_i32(builder_of(b), key, v); }
void loam_gguf_set_u64(loam_gguf_builder *b, const char *key, uint64_t v) { gguf_set_u64(builder_of(b), key, v); }
void loam_gguf_set_f32(loam_gguf_builder *b, const char *key, float v) { gguf_set_f32(builder_of(b), key, v); }
void loam_gguf_set_bool(loam_gguf_builder *b, const char *key, bool v) { gguf_set_bool(builder_of(b), key, v); }

void loam_gguf_set_scalar(loam_gguf_builder *b, const char *key, int kind, const void *value)
{
    gguf_set_scalar(builder_of(b), key, (gguf_kind)kind, value);
}

void loam_gguf_set_text(loam_gguf_builder *b, const char *key, const char *text, size_t len)
{
    gguf_set_text(builder_of(b), key, text, len);
}

void loam_gguf_set_array(loam_gguf_builder *b, const char *key, int item, const void *items, uint64_t count)
{
    gguf_set_array(builder_of(b), key, (gguf_kind)item, items, count);
}

void loam_gguf_set_texts(loam_gguf_builder *b, const char *key, const char *const *texts, const size_t *lens, uint64_t count)
{
    text_view *views = count <= SIZE_MAX ? mem_alloc_array((size_t)count, sizeof *views) : NULL;
    for (uint64_t i = 0; views && i < count; i++) views[i] = (text_view){ texts[i], lens[i] };
    gguf_set_texts(builder_of(b), key, views, count); /* without views: out of memory */
    mem_free(views);
}

void loam_gguf_set_value(loam_gguf_builder *b, const char *key, const loam_gguf_value *v)
{
    gguf_key k = { .kind = (gguf_kind)v->kind, .item = (gguf_kind)v->item, .data = v->data, .bytes = v->bytes };
    k.count = k.kind == GGUF_STRING ? v->bytes : v->count;
    gguf_set_key(builder_of(b), key, &k);
}

bool loam_gguf_remove_key(loam_gguf_builder *b, const char *key) { return gguf_remove(builder_of(b), key); }

void loam_gguf_set_tensor(loam_gguf_builder *b, const char *name, int type, const int64_t *ne, const void *data)
{
    gguf_put_tensor(builder_of(b), name, (loam_type)type, ne, data);
}

bool loam_gguf_remove_tensor(loam_gguf_builder *b, const char *name) { return gguf_remove_tensor(builder_of(b), name); }

/* ---- writing ---- */

loam_gguf_write_params loam_gguf_write_defaults(void)
{
    return (loam_gguf_write_params){ .struct_size = sizeof(loam_gguf_write_params) };
}

static loam_status options_of(const loam_gguf_write_params *p, gguf_write_options *o, loam_error *err)
{
    *o = (gguf_write_options){ 0 };
    if (!p) return LOAM_OK;
    if (p->struct_size < sizeof *p)
        return fail(err, LOAM_E_ARG, "GGUF output: begin with loam_gguf_write_defaults() (struct_size is %zu)", p->struct_size);
    *o = (gguf_write_options){ .part_bytes = p->part_bytes, .part_tensors = p->part_tensors, .written = p->written_parts };
    return LOAM_OK;
}

loam_status loam_gguf_write(const loam_gguf_builder *b, const char *path, const loam_gguf_write_params *params, loam_error *err)
{
    gguf_write_options o;
    loam_status s = options_of(params, &o, err);
    return s == LOAM_OK ? gguf_write((const gguf_builder *)b, path, &o, err) : s;
}

loam_status loam_gguf_writer_open(loam_gguf_writer **out, const loam_gguf_builder *b, const char *path,
                                  const loam_gguf_write_params *params, loam_error *err)
{
    gguf_write_options o;
    gguf_writer *w = NULL;
    loam_status s = options_of(params, &o, err);
    if (s == LOAM_OK) s = gguf_writer_open(&w, (const gguf_builder *)b, path, &o, err);
    *out = (loam_gguf_writer *)w;
    return s;
}

loam_status loam_gguf_writer_put(loam_gguf_writer *w, const void *data, uint64_t bytes, loam_error *err)
{
    return gguf_writer_put((gguf_writer *)w, data, bytes, err);
}

const char *loam_gguf_writer_due(const loam_gguf_writer *w) { return gguf_writer_turn((const gguf_writer *)w); }
loam_status loam_gguf_writer_close(loam_gguf_writer *w, loam_error *err) { return gguf_writer_close((gguf_writer *)w, err); }
void loam_gguf_writer_cancel(loam_gguf_writer *w) { gguf_writer_cancel((gguf_writer *)w); }
