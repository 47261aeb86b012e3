/* gguf_get.c - typed access to the metadata of an opened GGUF file: getters that tell "absent" from "wrong kind" from "out
 * of range" and name the key in each message. Offsets and lengths were checked when the file was opened. */
#include <math.h>
#include <string.h>

#include "file/gguf_impl.h"
#include "base/reader.h"

uint32_t gguf_key_count(const gguf_file *f) { return f->n_keys; }
const gguf_key *gguf_key_at(const gguf_file *f, uint32_t i) { return i < f->n_keys ? &f->keys[i] : NULL; }

const gguf_key *gguf_key_find(const gguf_file *f, const char *name)
{
    uint32_t i = map_get(&f->key_index, name, strlen(name));
    return i == MAP_NONE ? NULL : &f->keys[i];
}

static bool is_int(gguf_kind k) { return k <= GGUF_I32 || k == GGUF_U64 || k == GGUF_I64; }
static bool is_float(gguf_kind k) { return k == GGUF_F32 || k == GGUF_F64; }

/* Sign and magnitude hold every integer kind. */
typedef struct wide {
    bool negative;
    uint64_t magnitude;
} wide;

static wide read_int(gguf_kind kind, const uint8_t *p)
{
    int64_t v;
    switch (kind) {
    case GGUF_U8: v = p[0]; break;
    case GGUF_I8: v = (int8_t)p[0]; break;
    case GGUF_U16: v = le16(p); break;
    case GGUF_I16: v = (int16_t)le16(p); break;
    case GGUF_U32: v = le32(p); break;
    case GGUF_I32: v = (int32_t)le32(p); break;
    case GGUF_I64: v = (int64_t)le64(p); break;
    default: return (wide){ false, le64(p) };
    }
    return (wide){ v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v };
}

/* Finds the key. *k is NULL where it is absent and that is allowed. */
static loam_status find(const gguf_file *f, const char *key, gguf_want want, const gguf_key **k, loam_error *err)
{
    *k = gguf_key_find(f, key);
    if (*k || want == GGUF_OPTIONAL) return LOAM_OK;
    return fail(err, LOAM_E_FORMAT, "%s: key '%s' is missing", f->label, key);
}

static loam_status wrong_kind(const gguf_file *f, const char *key, const gguf_key *k, const char *wanted, loam_error *err)
{
    if (k->kind == GGUF_ARRAY)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' is an array of %s; %s is required", f->label, key,
                       gguf_kind_name(k->item), wanted);
    return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' is of kind %s; %s is required", f->label, key,
                   gguf_kind_name(k->kind), wanted);
}

static loam_status out_of_range(const gguf_file *f, const gguf_key *k, wide v, gguf_range range, loam_error *err)
{
    return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' is %s%llu; %lld to %lld are allowed", f->label,
                   gguf_quote(k->name, k->name_len).text, v.negative ? "-" : "", (unsigned long long)v.magnitude,
                   (long long)range.min, (long long)range.max);
}

static bool narrow(wide v, gguf_range range, int64_t *out)
{
    if (!v.negative && v.magnitude > INT64_MAX) return false;
    int64_t x = v.negative ? (int64_t)(0 - v.magnitude) : (int64_t)v.magnitude;
    *out = x;
    return x >= range.min && x <= range.max;
}

loam_status gguf_get_int(const gguf_file *f, const char *key, gguf_want want, gguf_range range, int64_t *value, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (!is_int(k->kind)) return wrong_kind(f, key, k, "an integer", err);
    wide v = read_int(k->kind, k->data);
    int64_t x;
    if (!narrow(v, range, &x)) return out_of_range(f, k, v, range, err);
    *value = x;
    return LOAM_OK;
}

loam_status gguf_get_u32(const gguf_file *f, const char *key, gguf_want want, uint32_t *value, loam_error *err)
{
    int64_t v = *value;
    loam_status s = gguf_get_int(f, key, want, (gguf_range){ 0, UINT32_MAX }, &v, err);
    if (s == LOAM_OK) *value = (uint32_t)v;
    return s;
}

loam_status gguf_get_i64(const gguf_file *f, const char *key, gguf_want want, int64_t *value, loam_error *err)
{
    return gguf_get_int(f, key, want, (gguf_range){ INT64_MIN, INT64_MAX }, value, err);
}

loam_status gguf_get_u64(const gguf_file *f, const char *key, gguf_want want, uint64_t *value, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (!is_int(k->kind)) return wrong_kind(f, key, k, "an integer", err);
    wide v = read_int(k->kind, k->data);
    if (v.negative)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' is -%llu; it may not be negative", f->label, key,
                       (unsigned long long)v.magnitude);
    *value = v.magnitude;
    return LOAM_OK;
}

static float read_float(gguf_kind kind, const uint8_t *p) { return kind == GGUF_F32 ? lef32(p) : (float)lef64(p); }

loam_status gguf_get_f32(const gguf_file *f, const char *key, gguf_want want, float *value, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (!is_float(k->kind)) return wrong_kind(f, key, k, "a float", err);
    float v = read_float(k->kind, k->data);
    if (isnan(v)) return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' is not a number", f->label, key);
    *value = v;
    return LOAM_OK;
}

loam_status gguf_get_bool(const gguf_file *f, const char *key, gguf_want want, bool *value, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (k->kind != GGUF_BOOL) return wrong_kind(f, key, k, "a bool", err);
    *value = k->data[0] != 0;
    return LOAM_OK;
}

loam_status gguf_get_text(const gguf_file *f, const char *key, gguf_want want, text_view *value, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (k->kind != GGUF_STRING) return wrong_kind(f, key, k, "a string", err);
    *value = (text_view){ (const char *)k->data, (size_t)k->bytes };
    return LOAM_OK;
}

/* ---- arrays ---- */

bool gguf_in_class(gguf_kind item, gguf_class cls)
{
    switch (cls) {
    case GGUF_INTS: return is_int(item);
    case GGUF_FLOATS: return is_float(item);
    case GGUF_BOOLS: return item == GGUF_BOOL;
    case GGUF_STRINGS: return item == GGUF_STRING;
    }
    return false;
}

loam_status gguf_get_array(const gguf_file *f, const char *key, gguf_want want, gguf_class cls, gguf_array *a, loam_error *err)
{
    static const char *const wanted[] = { "an array of integers", "an array of floats", "an array of bools",
                                          "an array of strings" };
    const gguf_key *k;
    memset(a, 0, sizeof *a);
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (k->kind != GGUF_ARRAY || !gguf_in_class(k->item, cls)) return wrong_kind(f, key, k, wanted[cls], err);
    *a = (gguf_array){ .item = k->item, .count = k->count, .data = k->data, .bytes = k->bytes };
    return LOAM_OK;
}

int64_t gguf_int_at(const gguf_array *a, uint64_t i)
{
    wide v = read_int(a->item, a->data + i * (a->bytes / a->count));
    if (!v.negative && v.magnitude > INT64_MAX) return INT64_MAX;
    return v.negative ? (int64_t)(0 - v.magnitude) : (int64_t)v.magnitude;
}

float gguf_f32_at(const gguf_array *a, uint64_t i) { return read_float(a->item, a->data + i * (a->bytes / a->count)); }
bool gguf_bool_at(const gguf_array *a, uint64_t i) { return a->data[i] != 0; }

loam_status gguf_get_per_block(const gguf_file *f, const char *key, gguf_want want, uint32_t *values, uint32_t n, loam_error *err)
{
    const gguf_key *k;
    loam_status s = find(f, key, want, &k, err);
    if (s != LOAM_OK || !k) return s;
    if (k->kind != GGUF_ARRAY) {
        uint32_t v = 0;
        s = gguf_get_u32(f, key, want, &v, err);
        for (uint32_t i = 0; s == LOAM_OK && i < n; i++) values[i] = v;
        return s;
    }
    if (!is_int(k->item)) return wrong_kind(f, key, k, "an integer or an array of integers", err);
    if (k->count < n)
        return fail_at(err, LOAM_E_FORMAT, k->at, "%s: key '%s' has %llu elements; %u blocks need one each", f->label, key,
                       (unsigned long long)k->count, n);
    const gguf_range range = { 0, UINT32_MAX };
    uint64_t step = k->bytes / k->count;
    int64_t x;
    for (uint32_t i = 0; i < n; i++) {
        wide v = read_int(k->item, k->data + i * step);
        if (!narrow(v, range, &x)) return out_of_range(f, k, v, range, err);
    }
    for (uint32_t i = 0; i < n; i++) values[i] = (uint32_t)read_int(k->item, k->data + i * step).magnitude;
    return LOAM_OK;
}

gguf_strings gguf_strings_of(const gguf_array *a) { return (gguf_strings){ a->data, a->count }; }

bool gguf_next(gguf_strings *it, text_view *s)
{
    if (it->left == 0) return false;
    uint64_t len = le64(it->next);
    *s = (text_view){ (const char *)it->next + 8, (size_t)len };
    it->next += 8 + len;
    it->left--;
    return true;
}
