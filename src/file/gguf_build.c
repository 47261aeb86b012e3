/* gguf_build.c - the list of keys and tensors of a file to be written; see gguf_write.h. Refuses empty, long and
 * NUL-bearing names, unknown types, shapes that overflow or do not fit their blocks. */
#include <string.h>

#include "base/mem.h"
#include "file/gguf_build.h"
#include "file/gguf_impl.h"
#include "tensor/dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");

static bool broken(const gguf_builder *b) { return b->error.code != LOAM_OK; }

void gguf_builder_free(gguf_builder *b)
{
    if (!b) return;
    for (size_t i = 0; i < b->n_keys; i++) {
        mem_free(b->keys[i].owned_name);
        mem_free(b->keys[i].owned_data);
    }
    for (size_t i = 0; i < b->n_tensors; i++) mem_free(b->tensors[i].owned_name);
    map_free(&b->key_index);
    map_free(&b->tensor_index);
    mem_free(b->keys);
    mem_free(b->tensors);
    mem_free(b);
}

/* ---- keys ---- */

/* The slot of a name, made if there is none; NULL on failure. A name that is copied stays with its slot for good. */
static build_key *key_slot(gguf_builder *b, const char *name, size_t len, bool copy)
{
    if (len == 0 || len > LIMIT_KEY_BYTES || memchr(name, 0, len)) {
        fail(&b->error, LOAM_E_ARG, "key '%s': a key has 1 to %u bytes, none of them zero", gguf_quote(name, len).text,
             LIMIT_KEY_BYTES);
        return NULL;
    }
    uint32_t i = map_get(&b->key_index, name, len);
    if (i != MAP_NONE) return &b->keys[i];
    char *owned = copy ? mem_strdup(name, len) : NULL;
    if ((copy && !owned) || !mem_grow(&b->keys, &b->key_cap, b->n_keys + 1, sizeof *b->keys, LIMIT_KEYS) ||
        !map_put(&b->key_index, copy ? owned : name, len, (uint32_t)b->n_keys, NULL)) {
        mem_free(owned);
        fail(&b->error, LOAM_E_NOMEM, "key '%s': out of memory, or over %u keys", gguf_quote(name, len).text, LIMIT_KEYS);
        return NULL;
    }
    build_key *k = &b->keys[b->n_keys++];
    *k = (build_key){ .name = copy ? owned : name, .name_len = (uint32_t)len, .owned_name = owned, .removed = true };
    return k;
}

/* Gives a key its value; data becomes the builder's. */
static void set_owned(gguf_builder *b, const char *key, build_key value, void *data)
{
    build_key *k = data ? key_slot(b, key, strlen(key), true) : NULL;
    if (!k) {
        if (!data) fail(&b->error, LOAM_E_NOMEM, "key '%s': out of memory: %llu bytes", key, (unsigned long long)value.bytes);
        mem_free(data);
        return;
    }
    mem_free(k->owned_data);
    k->kind = value.kind;
    k->item = value.item;
    k->count = value.count;
    k->bytes = value.bytes;
    k->data = k->owned_data = data;
    k->removed = false;
}

static void set_copy(gguf_builder *b, const char *key, build_key value, const void *data)
{
    if (broken(b)) return;
    set_owned(b, key, value, mem_strdup(data, (size_t)value.bytes));
}

void gguf_set_scalar(gguf_builder *b, const char *key, gguf_kind kind, const void *value)
{
    unsigned bytes = gguf_kind_bytes((unsigned)kind);
    if (broken(b)) return;
    if (bytes == 0) fail(&b->error, LOAM_E_ARG, "key '%s': a scalar cannot be of kind %s", key, gguf_kind_name((unsigned)kind));
    else set_copy(b, key, (build_key){ .kind = kind, .item = kind, .count = 1, .bytes = bytes }, value);
}

void gguf_set_u16(gguf_builder *b, const char *key, uint16_t v) { gguf_set_scalar(b, key, GGUF_U16, &v); }
void gguf_set_u32(gguf_builder *b, const char *key, uint32_t v) { gguf_set_scalar(b, key, GGUF_U32, &v); }
void gguf_set_i32(gguf_builder *b, const char *key, int32_t v) { gguf_set_scalar(b, key, GGUF_I32, &v); }
void gguf_set_u64(gguf_builder *b, const char *key, uint64_t v) { gguf_set_scalar(b, key, GGUF_U64, &v); }
void gguf_set_i64(gguf_builder *b, const char *key, int64_t v) { gguf_set_scalar(b, key, GGUF_I64, &v); }
void gguf_set_f32(gguf_builder *b, const char *key, float v) { gguf_set_scalar(b, key, GGUF_F32, &v); }

void gguf_set_bool(gguf_builder *b, const char *key, bool v)
{
    uint8_t byte = v;
    gguf_set_scalar(b, key, GGUF_BOOL, &byte);
}

void gguf_set_text(gguf_builder *b, const char *key, const char *text, size_t len)
{
    set_copy(b, key, (build_key){ .kind = GGUF_STRING, .item = GGUF_STRING, .count = len, .bytes = len }, text);
}

void gguf_set_word(gguf_builder *b, const char *key, const char *text) { gguf_set_text(b, key, text, strlen(text)); }

void gguf_set_array(gguf_builder *b, const char *key, gguf_kind item, const void *items, uint64_t count)
{
    if (broken(b)) return;
    unsigned size = gguf_kind_bytes((unsigned)item);
    if (size == 0 || count > LIMIT_ARRAY_ITEMS) {
        fail(&b->error, LOAM_E_ARG, "key '%s': an array of %llu elements of kind %s", key, (unsigned long long)count,
             gguf_kind_name((unsigned)item));
        return;
    }
    set_copy(b, key, (build_key){ .kind = GGUF_ARRAY, .item = item, .count = count, .bytes = count * size }, items);
}

void gguf_set_texts(gguf_builder *b, const char *key, const text_view *texts, uint64_t count)
{
    if (broken(b)) return;
    if (!texts && count > 0) {
        fail_nomem(&b->error, key, count * sizeof *texts);
        return;
    }
    uint64_t bytes = 0;
    bool ok = count <= LIMIT_ARRAY_ITEMS;
    for (uint64_t i = 0; ok && i < count; i++) ok = texts[i].len <= LIMIT_STRING_BYTES && add_ok(bytes, 8 + texts[i].len, &bytes);
    if (!ok) {
        fail(&b->error, LOAM_E_ARG, "key '%s': over %u texts, or one of over %u bytes", key, LIMIT_ARRAY_ITEMS,
             LIMIT_STRING_BYTES);
        return;
    }
    uint8_t *data = bytes <= SIZE_MAX ? mem_alloc((size_t)bytes) : NULL, *p = data;
    for (uint64_t i = 0; data && i < count; i++) {
        uint64_t len = texts[i].len;
        memcpy(p, &len, 8);
        if (len) memcpy(p + 8, texts[i].data, len);
        p += 8 + len;
    }
    set_owned(b, key, (build_key){ .kind = GGUF_ARRAY, .item = GGUF_STRING, .count = count, .bytes = bytes }, data);
}

static void borrow_key(gguf_builder *b, const gguf_key *k)
{
    build_key *to = broken(b) ? NULL : key_slot(b, k->name, k->name_len, false);
    if (!to) return;
    mem_free(to->owned_data);
    to->owned_data = NULL;
    to->kind = k->kind;
    to->item = k->item;
    to->count = k->count;
    to->bytes = k->bytes;
    to->data = k->data;
    to->removed = false;
}

void gguf_set_key(gguf_builder *b, const char *key, const gguf_key *k)
{
    set_copy(b, key, (build_key){ .kind = k->kind, .item = k->item, .count = k->count, .bytes = k->bytes }, k->data);
}

bool gguf_remove(gguf_builder *b, const char *key)
{
    uint32_t i = map_get(&b->key_index, key, strlen(key));
    if (i == MAP_NONE || b->keys[i].removed) return false;
    b->keys[i].removed = true;
    return true;
}

/* ---- tensors ---- */

static bool shape_bytes(loam_type type, const int64_t *ne, uint64_t *bytes)
{
    if (!dtype_row_bytes(type, ne[0], bytes)) return false;
    uint64_t values = 1;
    for (int d = 0; d < LIMIT_DIMS; d++) {
        if (ne[d] < 0 || !mul_ok(values, (uint64_t)ne[d], &values) || values > INT64_MAX) return false;
        if (d > 0 && !mul_ok(*bytes, (uint64_t)ne[d], bytes)) return false;
    }
    return true;
}

/* The slot of a name, made if there is none; NULL on failure. */
static build_tensor *tensor_slot(gguf_builder *b, const char *name, bool copy)
{
    size_t len = strlen(name);
    uint32_t i = map_get(&b->tensor_index, name, len);
    if (i != MAP_NONE) return &b->tensors[i];
    char *owned = copy ? mem_strdup(name, len) : NULL;
    if ((copy && !owned) || !mem_grow(&b->tensors, &b->tensor_cap, b->n_tensors + 1, sizeof *b->tensors, LIMIT_TENSORS) ||
        !map_put(&b->tensor_index, copy ? owned : name, len, (uint32_t)b->n_tensors, NULL)) {
        mem_free(owned);
        fail(&b->error, LOAM_E_NOMEM, "tensor '%s': out of memory, or over %u tensors", name, LIMIT_TENSORS);
        return NULL;
    }
    build_tensor *t = &b->tensors[b->n_tensors++];
    *t = (build_tensor){ .name = copy ? owned : name, .owned_name = owned };
    return t;
}

static void put_tensor(gguf_builder *b, const char *name, bool copy, build_tensor value)
{
    size_t len = strlen(name);
    if (broken(b)) return;
    if (len == 0 || len > LIMIT_NAME_BYTES) {
        fail(&b->error, LOAM_E_ARG, "tensor '%s': a name has 1 to %u bytes", gguf_quote(name, len).text, LIMIT_NAME_BYTES);
        return;
    }
    if (!shape_bytes(value.type, value.ne, &value.bytes)) {
        fail(&b->error, LOAM_E_ARG, "tensor '%s': %lld x %lld x %lld x %lld values of type %d cannot be stored", name,
             (long long)value.ne[0], (long long)value.ne[1], (long long)value.ne[2], (long long)value.ne[3], (int)value.type);
        return;
    }
    build_tensor *t = tensor_slot(b, name, copy);
    if (!t) return;
    value.name = t->name;
    value.owned_name = t->owned_name;
    *t = value;
}

void gguf_put_tensor(gguf_builder *b, const char *name, loam_type type, const int64_t *ne, const void *data)
{
    build_tensor t = { .type = type, .data = data, .n_dims = LIMIT_DIMS };
    while (t.n_dims > 1 && ne[t.n_dims - 1] == 1) t.n_dims--;
    memcpy(t.ne, ne, sizeof t.ne);
    put_tensor(b, name, true, t);
}

bool gguf_remove_tensor(gguf_builder *b, const char *name)
{
    uint32_t i = map_get(&b->tensor_index, name, strlen(name));
    if (i == MAP_NONE || b->tensors[i].removed) return false;
    b->tensors[i].removed = true;
    return true;
}

/* ---- the builder ---- */

bool gguf_is_split_key(const char *name, size_t len) { return len > 6 && memcmp(name, "split.", 6) == 0; }

/* A part that was opened alone stays one. */
static bool lone_part(const gguf_file *f)
{
    uint32_t count = 0;
    return f && gguf_part_count(f) == 1 && gguf_get_u32(f, "split.count", GGUF_OPTIONAL, &count, NULL) == LOAM_OK && count > 1;
}

loam_status gguf_builder_create(gguf_builder **out, const gguf_file *from, unsigned take, loam_error *err)
{
    *out = NULL;
    gguf_builder *b = mem_zalloc(sizeof *b);
    if (!b || !map_init(&b->key_index, 64) || !map_init(&b->tensor_index, 64)) {
        gguf_builder_free(b);
        return fail_nomem(err, "a file builder", sizeof *b);
    }
    bool keep_split = lone_part(from);
    for (uint32_t i = 0; from && (take & GGUF_TAKE_KEYS) && i < gguf_key_count(from); i++) {
        const gguf_key *k = gguf_key_at(from, i);
        if (keep_split || !gguf_is_split_key(k->name, k->name_len)) borrow_key(b, k);
    }
    for (uint32_t i = 0; from && (take & GGUF_TAKE_TENSORS) && i < gguf_tensor_count(from); i++) {
        const gguf_tensor *t = gguf_tensor_at(from, i);
        build_tensor copy = { .type = t->type, .data = t->data, .n_dims = t->n_dims };
        memcpy(copy.ne, t->ne, sizeof copy.ne);
        put_tensor(b, t->name, false, copy);
    }
    if (broken(b)) {
        if (err) *err = b->error;
        loam_status s = b->error.code;
        gguf_builder_free(b);
        return s;
    }
    *out = b;
    return LOAM_OK;
}
