/* safetensors.c - see safetensors.h. Every refusal names the file and the tensor. */
#include "file/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/reader.h"
#include "file/gguf_impl.h"

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[] = {
    [ST_F64] = { "F64", 8 }, [ST_F32] = { "F32", 4 }, [ST_F16] = { "F16", 2 }, [ST_BF16] = { "BF16", 2 },
    [ST_F8_E4M3] = { "F8_E4M3", 1 }, [ST_F8_E5M2] = { "F8_E5M2", 1 }, [ST_I64] = { "I64", 8 }, [ST_I32] = { "I32", 4 },
    [ST_I16] = { "I16", 2 }, [ST_I8] = { "I8", 1 }, [ST_U64] = { "U64", 8 }, [ST_U32] = { "U32", 4 }, [ST_U16] = { "U16", 2 },
    [ST_U8] = { "U8", 1 }, [ST_BOOL] = { "BOOL", 1 },
};

unsigned st_dtype_bytes(st_dtype t) { return dtypes[t].bytes; }

/* ---- one entry ---- */

static loam_status bad(const st_file *f, text_view name, const char *what, loam_error *err)
{
    return fail(err, LOAM_E_FORMAT, "%s: tensor '%s': %s", f->path, gguf_quote(name.data, name.len).text, what);
}

static loam_status read_dtype(const st_file *f, const js *entry, st_tensor *t, loam_error *err)
{
    text_view text;
    if (!js_text(js_get(entry, "dtype"), &text)) return bad(f, t->name, "has no dtype", err);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (js_text_is(text, dtypes[i].name)) {
            t->dtype = (st_dtype)i;
            return LOAM_OK;
        }
    return fail(err, LOAM_E_UNSUPPORTED, "%s: tensor '%s' has dtype '%s', which is not known", f->path,
                gguf_quote(t->name.data, t->name.len).text, gguf_quote(text.data, text.len).text);
}

/* The number of bytes that dtype and shape ask for. */
static loam_status read_shape(const st_file *f, const js *entry, st_tensor *t, uint64_t *bytes, loam_error *err)
{
    const js *shape = js_get(entry, "shape");
    if (!js_is_array(shape)) return bad(f, t->name, "has no shape", err);
    if (js_count(shape) > LIMIT_ST_DIMS) return bad(f, t->name, "has too many dimensions", err);
    t->n_dims = (int)js_count(shape);
    *bytes = dtypes[t->dtype].bytes;
    for (int i = 0; i < t->n_dims; i++) {
        if (!js_int(js_at(shape, (size_t)i), &t->shape[i]) || t->shape[i] < 0)
            return bad(f, t->name, "its shape has something that is not a size", err);
        if (!mul_ok(*bytes, (uint64_t)t->shape[i], bytes) || *bytes > INT64_MAX)
            return bad(f, t->name, "its shape has too many values", err);
    }
    return LOAM_OK;
}

static loam_status read_entry(const st_file *f, const js *entry, text_view data, st_tensor *t, loam_error *err)
{
    int64_t begin, end;
    uint64_t bytes = 0;
    if (!js_is_object(entry)) return bad(f, t->name, "its entry is not an object", err);
    loam_status s = read_dtype(f, entry, t, err);
    if (s == LOAM_OK) s = read_shape(f, entry, t, &bytes, err);
    if (s != LOAM_OK) return s;
    const js *offsets = js_get(entry, "data_offsets");
    if (js_count(offsets) != 2 || !js_int(js_at(offsets, 0), &begin) || !js_int(js_at(offsets, 1), &end) || begin < 0 || end < begin)
        return bad(f, t->name, "its data_offsets are not two offsets in order", err);
    if ((uint64_t)end > data.len)
        return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' reaches to byte %lld of the data, there are %zu", f->path,
                    gguf_quote(t->name.data, t->name.len).text, (long long)end, data.len);
    if ((uint64_t)(end - begin) != bytes)
        return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' has %lld bytes, dtype and shape ask for %llu", f->path,
                    gguf_quote(t->name.data, t->name.len).text, (long long)(end - begin), (unsigned long long)bytes);
    if (begin % dtypes[t->dtype].bytes) return bad(f, t->name, "begins between two elements (not aligned)", err);
    t->data = (const uint8_t *)data.data + begin;
    t->bytes = bytes;
    t->offset = (uint64_t)begin;
    return LOAM_OK;
}

/* ---- the header ---- */

static int by_offset(const void *a, const void *b)
{
    const st_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Data must be covered from the first byte to the last, each once. */
static loam_status check_extents(st_file *f, text_view data, loam_error *err)
{
    uint64_t at = 0;
    qsort(f->tensors, f->n_tensors, sizeof *f->tensors, by_offset);
    for (size_t i = 0; i < f->n_tensors; i++) {
        st_tensor *t = &f->tensors[i];
        if (t->offset < at) return bad(f, t->name, "overlaps another tensor", err);
        if (t->offset > at) return bad(f, t->name, "there is a gap before its data", err);
        at += t->bytes;
    }
    if (at != data.len)
        return fail(err, LOAM_E_FORMAT, "%s: %llu bytes behind the last tensor", f->path, (unsigned long long)(data.len - at));
    return LOAM_OK;
}

static loam_status read_header(st_file *f, const uint8_t *bytes, uint64_t size, loam_error *err)
{
    if (size < 8) return fail(err, LOAM_E_FORMAT, "%s: %llu bytes are no safetensors file", f->path, (unsigned long long)size);
    uint64_t n = le64(bytes);
    if (n > LIMIT_ST_HEADER || n > size - 8)
        return fail(err, LOAM_E_FORMAT, "%s: a header of %llu bytes in a file of %llu", f->path, (unsigned long long)n,
                    (unsigned long long)size);
    if (n == 0 || bytes[8] != '{') return fail_at(err, LOAM_E_FORMAT, 8, "%s: the header is not a JSON object", f->path);
    loam_status s = js_parse(&f->header, (text_view){ (const char *)bytes + 8, (size_t)n }, JS_UNIQUE, f->path, err);
    if (s != LOAM_OK) return s;
    if (js_count(f->header) > LIMIT_TENSORS) return fail(err, LOAM_E_FORMAT, "%s: over %u tensors", f->path, LIMIT_TENSORS);
    f->tensors = mem_zalloc_array(js_count(f->header) + 1, sizeof *f->tensors);
    if (!f->tensors) return fail_nomem(err, "the table of tensors", js_count(f->header) * sizeof *f->tensors);
    text_view data = { (const char *)bytes + 8 + n, (size_t)(size - 8 - n) };
    for (js_member m = js_first(f->header); m.value && s == LOAM_OK; m = js_next(f->header, m)) {
        if (js_text_is(m.key, "__metadata__")) continue;
        st_tensor *t = &f->tensors[f->n_tensors++];
        t->name = m.key;
        s = read_entry(f, m.value, data, t, err);
    }
    if (s == LOAM_OK) s = check_extents(f, data, err);
    for (size_t i = 0; i < f->n_tensors; i++) f->tensors[i].offset += 8 + n;
    return s;
}

/* ---- opening ---- */

static loam_status new_file(st_file **out, const char *path, loam_error *err)
{
    st_file *f = *out = mem_zalloc(sizeof *f);
    if (f) f->path = mem_strdup(path, strlen(path));
    return f && f->path ? LOAM_OK : fail_nomem(err, "a file handle", sizeof *f);
}

static loam_status finish(st_file **out, loam_status s)
{
    if (s == LOAM_OK) return s;
    st_close(*out);
    *out = NULL;
    return s;
}

loam_status st_open(st_file **out, const char *path, bool use_map, loam_error *err)
{
    loam_status s = new_file(out, path, err);
    if (s == LOAM_OK) s = os_file_open(&(*out)->file, path, use_map, err);
    if (s == LOAM_OK) s = read_header(*out, (*out)->file.data, (*out)->file.size, err);
    return finish(out, s);
}

loam_status st_open_memory(st_file **out, const void *data, size_t size, const char *label, loam_error *err)
{
    loam_status s = new_file(out, label, err);
    if (s == LOAM_OK) s = read_header(*out, data, size, err);
    return finish(out, s);
}

void st_close(st_file *f)
{
    if (!f) return;
    os_file_close(&f->file);
    js_free(f->header);
    mem_free(f->tensors);
    mem_free(f->path);
    mem_free(f);
}

text_view st_metadata(const st_file *f, const char *key)
{
    text_view t;
    js_text(js_get(js_get(f->header, "__metadata__"), key), &t);
    return t;
}
