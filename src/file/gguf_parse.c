/* gguf_parse.c - reads header, metadata and tensor table of GGUF files, versions 2 and 3, little-endian.
 *
 *   "GGUF" version n_tensors n_keys | pairs ... | tensor entries ... | pad | tensor data, each padded
 *
 * Refuses, by name: other magics and versions, big-endian files, counts and lengths beyond the bytes that are left or
 * beyond limits.h, empty, doubled or NUL-bearing names, arrays of arrays, unknown kinds and types, shapes that overflow or
 * do not fit their blocks, misplaced or overlapping tensors, data beyond the end of the file. Memory is taken only in
 * proportion to bytes that are there. A file cut within the padding after its last tensor is whole. */
#include <string.h>

#include "base/mem.h"
#include "file/gguf_impl.h"
#include "base/reader.h"
#include "tensor/dtype.h"

#define MIN_PAIR_BYTES  14u /* length, one byte of name, kind, one byte of value */
#define MIN_ENTRY_BYTES 24u /* length, no name, no sizes, type, offset */
#define METADATA_BYTES  (1u << 30)

static const uint8_t kind_bytes[GGUF_KIND_LIMIT] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 }; /* 0: string, array */

const char *gguf_kind_name(unsigned kind)
{
    static const char *const names[GGUF_KIND_LIMIT] = { "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                                        "bool",  "string", "array",  "uint64", "int64",  "float64" };
    return kind < GGUF_KIND_LIMIT ? names[kind] : "unknown";
}

unsigned gguf_kind_bytes(unsigned kind) { return kind < GGUF_KIND_LIMIT ? kind_bytes[kind] : 0; }

/* Bytes of the UTF-8 sequence at s, 0 where it is malformed. */
static size_t utf8_step(const uint8_t *s, size_t left)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
               : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
               : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                             : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return n;
}

quoted gguf_quote(const char *name, size_t len)
{
    quoted q;
    size_t to = 0, from = 0;
    while (from < len && to < 60) {
        const uint8_t *s = (const uint8_t *)name + from;
        size_t n = utf8_step(s, len - from);
        if (n == 0 || s[0] < 0x20 || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0)) {
            q.text[to++] = '?';
            from += n ? n : 1;
        } else {
            memcpy(q.text + to, s, n);
            to += n;
            from += n;
        }
    }
    memcpy(q.text + to, from < len ? "..." : "", from < len ? 4 : 1);
    return q;
}

/* ---- header ---- */

/* What the first bytes of a file that is not GGUF look like. */
static loam_status refuse_magic(const gguf_file *f, loam_error *err)
{
    static const struct {
        const char *start, *text;
    } known[] = {
        { "lmgg", "a model file from before GGUF" },
        { "tjgg", "a model file from before GGUF" },
        { "fmgg", "a model file from before GGUF" },
        { "algg", "an adapter file from before GGUF" },
        { "version https://git-lfs", "a Git LFS pointer, not the file itself" },
        { "<", "a web page or XML text, not a model" },
        { "PK", "a zip archive (a PyTorch checkpoint?)" },
        { "{", "a JSON text" },
        { "\0\0\0\0", "zero bytes: an interrupted download?" },
        { "\x80\x02", "a pickle" },
    };
    static const uint8_t lengths[] = { 4, 4, 4, 4, 23, 1, 2, 1, 4, 2 };
    _Static_assert(sizeof lengths == sizeof known / sizeof *known, "one length for each");
    for (size_t i = 0; i < sizeof lengths; i++)
        if (f->size >= lengths[i] && memcmp(f->data, known[i].start, lengths[i]) == 0)
            return fail_at(err, LOAM_E_FORMAT, 0, "%s: not a GGUF file but %s", f->label, known[i].text);
    return fail_at(err, LOAM_E_FORMAT, 0, "%s: not a GGUF file (it does not begin with \"GGUF\")", f->label);
}

/* Reads magic, version and the two counts. */
static loam_status parse_header(gguf_file *f, reader *r, uint64_t *n_tensors, uint64_t *n_keys, loam_error *err)
{
    if (f->size == 0) return fail_at(err, LOAM_E_FORMAT, 0, "%s: the file is empty", f->label);
    const uint8_t *magic = reader_take(r, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0) return refuse_magic(f, err);
    f->version = reader_u32(r);
    *n_tensors = reader_u64(r);
    *n_keys = reader_u64(r);
    if (r->failed) return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: the file ends within the 24-byte header", f->label);
    if (f->version != 0 && (f->version & 0xFFFF) == 0)
        return fail_at(err, LOAM_E_UNSUPPORTED, 4, "%s: a big-endian GGUF file; convert it to little-endian", f->label);
    if (f->version != 2 && f->version != 3)
        return fail_at(err, LOAM_E_UNSUPPORTED, 4, "%s: GGUF version %u; versions 2 and 3 are read", f->label, f->version);
    if (*n_keys > LIMIT_KEYS || *n_keys > reader_left(r) / MIN_PAIR_BYTES)
        return fail_at(err, LOAM_E_FORMAT, 16, "%s: %llu metadata keys do not fit a file of %llu bytes (at most %u)", f->label,
                       (unsigned long long)*n_keys, (unsigned long long)f->size, LIMIT_KEYS);
    if (*n_tensors > LIMIT_TENSORS || *n_tensors > reader_left(r) / MIN_ENTRY_BYTES)
        return fail_at(err, LOAM_E_FORMAT, 8, "%s: %llu tensors do not fit a file of %llu bytes (at most %u)", f->label,
                       (unsigned long long)*n_tensors, (unsigned long long)f->size, LIMIT_TENSORS);
    return LOAM_OK;
}

/* ---- keys ---- */

/* Made when a message needs it, not before: names are many. */
static quoted quote_key(const gguf_key *k) { return gguf_quote(k->name, k->name_len); }

static loam_status key_short(const gguf_file *f, const reader *r, const gguf_key *k, loam_error *err)
{
    return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: key '%s': %llu bytes wanted, %llu left in the file", f->label,
                   quote_key(k).text, (unsigned long long)r->wanted, (unsigned long long)reader_left(r));
}

/* Walks n strings without keeping them; false where one is too long for the file or the limit. */
static bool skip_strings(reader *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t len = reader_u64(r);
        if (!reader_take(r, len)) return false;
        if (len > LIMIT_STRING_BYTES) return false;
    }
    return true;
}

static loam_status parse_array(const gguf_file *f, reader *r, gguf_key *k, loam_error *err)
{
    uint64_t at = r->pos;
    uint32_t item = reader_u32(r);
    k->count = reader_u64(r);
    if (r->failed) return key_short(f, r, k, err);
    if (item == GGUF_ARRAY)
        return fail_at(err, LOAM_E_FORMAT, at, "%s: key '%s': an array of arrays", f->label, quote_key(k).text);
    if (item >= GGUF_KIND_LIMIT)
        return fail_at(err, LOAM_E_FORMAT, at, "%s: key '%s': unknown element kind %u", f->label, quote_key(k).text, item);
    k->item = (gguf_kind)item;
    uint64_t least = item == GGUF_STRING ? 8 : kind_bytes[item];
    if (k->count > LIMIT_ARRAY_ITEMS || k->count > reader_left(r) / least)
        return fail_at(err, LOAM_E_FORMAT, at + 4, "%s: key '%s': %llu elements of kind %s, %llu bytes left in the file",
                       f->label, quote_key(k).text, (unsigned long long)k->count, gguf_kind_name(item),
                       (unsigned long long)reader_left(r));
    k->data = r->data + r->pos;
    uint64_t start = r->pos;
    if (item != GGUF_STRING) reader_take(r, k->count * least);
    else if (!skip_strings(r, k->count) && !r->failed)
        return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: key '%s': a string of over %u bytes", f->label, quote_key(k).text,
                       LIMIT_STRING_BYTES);
    if (r->failed) return key_short(f, r, k, err);
    k->bytes = r->pos - start;
    return LOAM_OK;
}

static loam_status parse_name(const gguf_file *f, reader *r, uint32_t i, gguf_key *k, loam_error *err)
{
    k->at = r->pos;
    uint64_t len = reader_u64(r);
    if (!r->failed && len == 0) return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key %u is empty", f->label, i);
    if (!r->failed && len > LIMIT_KEY_BYTES)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: the name of key %u has %llu bytes (at most %u)", f->label, i,
                       (unsigned long long)len, LIMIT_KEY_BYTES);
    k->name = (const char *)reader_take(r, len);
    if (!k->name)
        return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: the name of key %u: %llu bytes wanted, %llu left in the file", f->label,
                       i, (unsigned long long)r->wanted, (unsigned long long)reader_left(r));
    k->name_len = (uint32_t)len;
    if (memchr(k->name, 0, len))
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key %u '%s' has a zero byte in its name", f->label, i,
                       gguf_quote(k->name, len).text);
    return LOAM_OK;
}

static loam_status parse_key(const gguf_file *f, reader *r, uint32_t i, gguf_key *k, loam_error *err)
{
    loam_status s = parse_name(f, r, i, k, err);
    if (s != LOAM_OK) return s;
    uint64_t at = r->pos;
    uint32_t kind = reader_u32(r);
    if (r->failed) return key_short(f, r, k, err);
    if (kind >= GGUF_KIND_LIMIT)
        return fail_at(err, LOAM_E_FORMAT, at, "%s: key '%s': unknown value kind %u", f->label, quote_key(k).text, kind);
    k->kind = k->item = (gguf_kind)kind;
    k->count = 1;
    if (kind == GGUF_ARRAY) return parse_array(f, r, k, err);
    k->bytes = kind_bytes[kind];
    if (kind == GGUF_STRING) {
        k->bytes = k->count = reader_u64(r);
        if (!r->failed && k->bytes <= reader_left(r) && k->bytes > LIMIT_STRING_BYTES)
            return fail_at(err, LOAM_E_FORMAT, at + 4, "%s: key '%s': a string of %llu bytes (at most %u)", f->label,
                           quote_key(k).text, (unsigned long long)k->bytes, LIMIT_STRING_BYTES);
    }
    k->data = reader_take(r, k->bytes);
    return k->data ? LOAM_OK : key_short(f, r, k, err);
}

static loam_status metadata_too_long(const gguf_file *f, uint64_t at, loam_error *err)
{
    return fail_at(err, LOAM_E_FORMAT, at, "%s: over %u bytes of metadata", f->label, METADATA_BYTES);
}

static loam_status parse_keys(gguf_file *f, reader *r, uint32_t n, loam_error *err)
{
    f->keys = mem_alloc_array(n, sizeof *f->keys);
    if (!f->keys || !map_init(&f->key_index, n)) return fail_nomem(err, "metadata keys", (uint64_t)n * sizeof *f->keys);
    for (uint32_t i = 0; i < n; i++) {
        gguf_key *k = &f->keys[i];
        loam_status s = parse_key(f, r, i, k, err);
        if (s != LOAM_OK) return s;
        uint32_t old;
        if (!map_put(&f->key_index, k->name, k->name_len, i, &old)) return fail_nomem(err, "the index of keys", (uint64_t)n * 32);
        if (old != MAP_NONE)
            return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' occurs twice, as key %u and %u", f->label, quote_key(k).text,
                           old, i);
        if (r->pos > METADATA_BYTES) return metadata_too_long(f, k->at, err);
        f->n_keys = i + 1;
    }
    return LOAM_OK;
}

/* ---- tensors ---- */

static quoted quote_tensor(const gguf_tensor *t) { return gguf_quote(t->name, strlen(t->name)); }

static loam_status read_alignment(gguf_file *f, loam_error *err)
{
    f->alignment = 32;
    const gguf_key *k = gguf_key_find(f, "general.alignment");
    if (!k) return LOAM_OK;
    if (k->kind != GGUF_U32)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key 'general.alignment' is of kind %s; uint32 is required", f->label,
                       gguf_kind_name(k->kind));
    f->alignment = le32(k->data);
    if (f->alignment == 0 || (f->alignment & (f->alignment - 1)) != 0 || f->alignment > LIMIT_ALIGNMENT)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key 'general.alignment': %u is not allowed (a power of two up to %u)",
                       f->label, f->alignment, LIMIT_ALIGNMENT);
    return LOAM_OK;
}

static loam_status entry_short(const gguf_file *f, const reader *r, uint32_t i, const gguf_tensor *t, loam_error *err)
{
    return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: tensor %u '%s': %llu bytes wanted, %llu left in the file", f->label, i,
                   quote_tensor(t).text, (unsigned long long)r->wanted, (unsigned long long)reader_left(r));
}

static loam_status parse_tensor_name(const gguf_file *f, reader *r, uint32_t i, gguf_tensor *t, loam_error *err)
{
    t->at = r->pos;
    t->name[0] = 0;
    uint64_t len = reader_u64(r);
    if (!r->failed && (len == 0 || len > LIMIT_NAME_BYTES))
        return fail_at(err, LOAM_E_FORMAT, t->at, "%s: the name of tensor %u has %llu bytes (1 to %u are allowed)", f->label, i,
                       (unsigned long long)len, LIMIT_NAME_BYTES);
    const uint8_t *name = reader_take(r, len);
    if (!name)
        return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: the name of tensor %u: %llu bytes wanted, %llu left in the file",
                       f->label, i, (unsigned long long)r->wanted, (unsigned long long)reader_left(r));
    if (memchr(name, 0, len))
        return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor %u '%s' has a zero byte in its name", f->label, i,
                       gguf_quote((const char *)name, len).text);
    memcpy(t->name, name, len);
    t->name[len] = 0;
    return LOAM_OK;
}

/* Sizes and type to bytes, each step checked. */
static loam_status check_shape(const gguf_file *f, gguf_tensor *t, uint32_t type, loam_error *err)
{
    const dtype_info *d = dtype_get((int64_t)type);
    if (!d) {
        bool removed = type < LOAM_TYPE_LIMIT;
        return fail_at(err, removed ? LOAM_E_UNSUPPORTED : LOAM_E_FORMAT, t->at, "%s: tensor '%s': element type %u is %s",
                       f->label, quote_tensor(t).text, type, removed ? "one that was removed from the format" : "not known");
    }
    t->type = (loam_type)type;
    uint64_t values = 1;
    bool empty = false;
    for (int i = 0; i < LIMIT_DIMS; i++) {
        if (t->ne[i] < 0)
            return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': size %d is %lld", f->label, quote_tensor(t).text, i,
                           (long long)t->ne[i]);
        if (t->ne[i] == 0) empty = true;
        else if (!mul_ok(values, (uint64_t)t->ne[i], &values) || values > INT64_MAX)
            return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': the product of its sizes overflows", f->label,
                           quote_tensor(t).text);
    }
    if (t->ne[0] % d->values != 0)
        return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': rows of %lld values do not fit %s blocks of %d", f->label,
                       quote_tensor(t).text, (long long)t->ne[0], d->name, d->values);
    if (!mul_ok(values / (uint64_t)d->values, (uint64_t)d->bytes, &t->bytes))
        return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': its size in bytes overflows", f->label, quote_tensor(t).text);
    if (empty) t->bytes = 0;
    return LOAM_OK;
}

static loam_status parse_tensor(const gguf_file *f, reader *r, uint32_t i, gguf_tensor *t, loam_error *err)
{
    loam_status s = parse_tensor_name(f, r, i, t, err);
    if (s != LOAM_OK) return s;
    uint32_t n_dims = reader_u32(r);
    if (!r->failed && n_dims > LIMIT_DIMS)
        return fail_at(err, LOAM_E_FORMAT, r->pos - 4, "%s: tensor '%s': %u dimensions (at most %d)", f->label,
                       quote_tensor(t).text, n_dims, LIMIT_DIMS);
    t->n_dims = n_dims ? (int)n_dims : 1;
    for (uint32_t d = 0; d < LIMIT_DIMS; d++) t->ne[d] = d < n_dims ? (int64_t)reader_u64(r) : 1;
    uint32_t type = reader_u32(r);
    t->offset = reader_u64(r);
    if (r->failed) return entry_short(f, r, i, t, err);
    t->part = 0;
    t->data = NULL;
    return check_shape(f, t, type, err);
}

/* Turns offsets within the data section into offsets within the file, and checks them against each other and the file. */
static loam_status place_tensors(gguf_file *f, uint64_t metadata_end, loam_error *err)
{
    uint64_t start, previous_end;
    if (!pad_ok(metadata_end, f->alignment, &start)) return metadata_too_long(f, metadata_end, err);
    previous_end = start;
    for (size_t i = 0; i < f->n_tensors; i++) {
        gguf_tensor *t = &f->tensors[i];
        uint64_t end;
        if (t->offset % f->alignment != 0)
            return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': offset %llu is not a multiple of the alignment %u",
                           f->label, quote_tensor(t).text, (unsigned long long)t->offset, f->alignment);
        if (!add_ok(t->offset, start, &t->offset) || !add_ok(t->offset, t->bytes, &end))
            return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s': its end overflows", f->label, quote_tensor(t).text);
        if (t->bytes == 0) continue;
        if (end > f->size)
            return fail_at(err, LOAM_E_FORMAT, t->at,
                           "%s: tensor '%s' ends at byte %llu but the file has %llu: was it cut short?", f->label,
                           quote_tensor(t).text, (unsigned long long)end, (unsigned long long)f->size);
        if (t->offset < previous_end)
            return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s' begins before the end of the tensor that precedes it",
                           f->label, quote_tensor(t).text);
        previous_end = end;
        t->data = f->data + t->offset;
    }
    return LOAM_OK;
}

static loam_status parse_tensors(gguf_file *f, reader *r, uint32_t n, loam_error *err)
{
    f->tensors = mem_alloc_array(n, sizeof *f->tensors);
    if (!f->tensors) return fail_nomem(err, "the table of tensors", (uint64_t)n * sizeof *f->tensors);
    f->tensor_cap = n;
    for (uint32_t i = 0; i < n; i++) {
        loam_status s = parse_tensor(f, r, i, &f->tensors[i], err);
        if (s != LOAM_OK) return s;
        if (r->pos > METADATA_BYTES) return metadata_too_long(f, f->tensors[i].at, err);
        f->n_tensors = i + 1;
    }
    return place_tensors(f, r->pos, err);
}

loam_status gguf_index_tensors(gguf_file *f, loam_error *err)
{
    map_free(&f->tensor_index);
    if (!map_init(&f->tensor_index, f->n_tensors)) return fail_nomem(err, "the index of tensors", f->n_tensors * 32);
    for (size_t i = 0; i < f->n_tensors; i++) {
        gguf_tensor *t = &f->tensors[i];
        uint32_t old;
        if (!map_put(&f->tensor_index, t->name, strlen(t->name), (uint32_t)i, &old))
            return fail_nomem(err, "the index of tensors", f->n_tensors * 32);
        if (old == MAP_NONE) continue;
        if (f->tensors[old].part != t->part)
            return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' is in part %u and in part %u", f->label, quote_tensor(t).text,
                        f->tensors[old].part + 1, t->part + 1);
        return fail_at(err, LOAM_E_FORMAT, t->at, "%s: tensor '%s' occurs twice, as tensor %u and %zu", f->label,
                       quote_tensor(t).text, old, i);
    }
    return LOAM_OK;
}

loam_status gguf_parse(gguf_file *f, loam_error *err)
{
    reader r = { .data = f->data, .end = f->size };
    uint64_t n_tensors = 0, n_keys = 0;
    loam_status s = parse_header(f, &r, &n_tensors, &n_keys, err);
    if (s == LOAM_OK) s = parse_keys(f, &r, (uint32_t)n_keys, err);
    if (s == LOAM_OK) s = read_alignment(f, err);
    if (s == LOAM_OK) s = parse_tensors(f, &r, (uint32_t)n_tensors, err);
    return s == LOAM_OK ? gguf_index_tensors(f, err) : s;
}
