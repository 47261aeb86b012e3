/* keys.c - see keys.h. The typed getters of file/gguf.h check kinds and ranges; here come names, defaults and finiteness. */
#include "model/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *key_name(keys *k, const char *key)
{
    if (*key == '/') snprintf(k->name, sizeof k->name, "%s", key + 1);
    else snprintf(k->name, sizeof k->name, "%s.%s", k->spec->name, key);
    return k->name;
}

void key_fail(keys *k, loam_status code, const char *fmt, ...)
{
    if (k->status != LOAM_OK) return;
    char why[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    k->status = fail(k->err, code, "%s: %s %s", gguf_path(k->file), k->name, why);
}

bool key_present(keys *k, const char *key) { return gguf_key_find(k->file, key_name(k, key)) != NULL; }

/* Whether the space-separated list `words` has `word`. */
static bool listed(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return true;
    return false;
}

static gguf_want want_of(const keys *k, const char *key)
{
    return listed(k->spec->required, key) ? GGUF_REQUIRED : GGUF_OPTIONAL;
}

static int64_t get_int(keys *k, const char *key, gguf_want want, gguf_range range, int64_t otherwise)
{
    int64_t v[1] = { otherwise };
    if (k->status != LOAM_OK) return otherwise;
    const gguf_key *found = gguf_key_find(k->file, key_name(k, key));
    if (!found || found->kind != GGUF_ARRAY) {
        k->status = gguf_get_int(k->file, k->name, want, range, v, k->err);
        return k->status == LOAM_OK ? v[0] : otherwise;
    }
    /* an array where one value is expected: block 0 decides */
    key_per_block(k, key, otherwise, range.max, v, 1);
    if (v[0] < range.min) key_fail(k, LOAM_E_FORMAT, "must not be 0");
    return v[0];
}

int64_t key_int(keys *k, const char *key, int64_t otherwise, int64_t max)
{
    return get_int(k, key, want_of(k, key), (gguf_range) { 0, max }, otherwise);
}

int64_t key_int_needed(keys *k, const char *key, int64_t max)
{
    return get_int(k, key, GGUF_REQUIRED, (gguf_range) { 1, max }, 1);
}

static float get_float(keys *k, const char *key, gguf_want want, float otherwise)
{
    float v = otherwise;
    if (k->status != LOAM_OK) return otherwise;
    k->status = gguf_get_f32(k->file, key_name(k, key), want, &v, k->err);
    if (k->status != LOAM_OK) return otherwise;
    if (!__builtin_isfinite(v)) key_fail(k, LOAM_E_FORMAT, "is not a finite number");
    return v;
}

float key_float(keys *k, const char *key, float otherwise) { return get_float(k, key, want_of(k, key), otherwise); }

float key_float_needed(keys *k, const char *key) { return get_float(k, key, GGUF_REQUIRED, 0); }

bool key_bool(keys *k, const char *key, bool otherwise)
{
    bool v = otherwise;
    if (k->status == LOAM_OK) k->status = gguf_get_bool(k->file, key_name(k, key), want_of(k, key), &v, k->err);
    return v;
}

void key_per_block(keys *k, const char *key, int64_t otherwise, int64_t max, int64_t *values, int n)
{
    for (int i = 0; i < n; i++) values[i] = otherwise;
    if (k->status != LOAM_OK) return;
    const gguf_key *found = gguf_key_find(k->file, key_name(k, key));
    if (!found || found->kind != GGUF_ARRAY) {
        gguf_want want = otherwise < 0 ? GGUF_REQUIRED : want_of(k, key);
        k->status = gguf_get_int(k->file, k->name, want, (gguf_range) { 0, max }, values, k->err);
        for (int i = 1; i < n; i++) values[i] = values[0];
        return;
    }
    gguf_array a;
    k->status = gguf_get_array(k->file, k->name, GGUF_REQUIRED, GGUF_INTS, &a, k->err);
    if (k->status != LOAM_OK) return;
    if (a.count < (uint64_t)n) {
        key_fail(k, LOAM_E_FORMAT, "has %llu values for %d blocks", (unsigned long long)a.count, n);
        return;
    }
    for (int i = 0; i < n && k->status == LOAM_OK; i++) {
        values[i] = gguf_int_at(&a, (uint64_t)i);
        if (values[i] < 0 || values[i] > max)
            key_fail(k, LOAM_E_FORMAT, "has %lld for block %d, allowed are 0 to %lld", (long long)values[i], i, (long long)max);
    }
}

void key_floats_per_block(keys *k, const char *key, float *values, int n)
{
    if (k->status != LOAM_OK) return;
    const gguf_key *found = gguf_key_find(k->file, key_name(k, key));
    if (!found || found->kind != GGUF_ARRAY) {
        float v = key_float_needed(k, key);
        for (int i = 0; i < n; i++) values[i] = v;
        return;
    }
    gguf_array a;
    k->status = gguf_get_array(k->file, k->name, GGUF_REQUIRED, GGUF_FLOATS, &a, k->err);
    if (k->status != LOAM_OK) return;
    if (a.count < (uint64_t)n)
        key_fail(k, LOAM_E_FORMAT, "has %llu values for %d blocks", (unsigned long long)a.count, n);
    for (int i = 0; i < n && k->status == LOAM_OK; i++) {
        values[i] = gguf_f32_at(&a, (uint64_t)i);
        if (!__builtin_isfinite(values[i])) key_fail(k, LOAM_E_FORMAT, "is not a finite number for block %d", i);
    }
}

bool key_flags(keys *k, const char *key, bool *values, int n)
{
    if (k->status != LOAM_OK) return false;
    const gguf_key *found = gguf_key_find(k->file, key_name(k, key));
    if (!found || found->kind != GGUF_ARRAY) return false;
    gguf_array a;
    bool bools = found->item == GGUF_BOOL;
    k->status = gguf_get_array(k->file, k->name, GGUF_REQUIRED, bools ? GGUF_BOOLS : GGUF_INTS, &a, k->err);
    if (k->status != LOAM_OK) return false;
    if (a.count < (uint64_t)n) {
        key_fail(k, LOAM_E_FORMAT, "has %llu values for %d blocks", (unsigned long long)a.count, n);
        return false;
    }
    for (int i = 0; i < n; i++) values[i] = bools ? gguf_bool_at(&a, (uint64_t)i) : gguf_int_at(&a, (uint64_t)i) != 0;
    return true;
}
