/* js.c - see js.h. Jansson is called from here only; without it (LOAM_JANSSON off) parsing is refused. Memory of documents comes
 * from jansson's allocator, not from the hook: it is short-lived, and the library's allocator is shared with the program. */
#include "base/js.h"

#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "base/os.h"

bool js_text_is(text_view t, const char *text) { return t.data && t.len == strlen(text) && memcmp(t.data, text, t.len) == 0; }

bool js_is(const js *v, const char *text)
{
    text_view t;
    return js_text(v, &t) && js_text_is(t, text);
}

bool js_int(const js *v, int64_t *x)
{
    double d;
    if (!js_number(v, &d) || d != floor(d) || fabs(d) > 9007199254740992.0) return false;
    *x = (int64_t)d;
    return true;
}

loam_status js_open(js **out, const char *path, loam_error *err)
{
    os_file f;
    *out = NULL;
    loam_status s = os_file_open(&f, path, true, err);
    if (s != LOAM_OK) return s;
    if (f.size > LIMIT_JSON_BYTES)
        s = fail(err, LOAM_E_FORMAT, "%s: %llu bytes of JSON (at most %u)", path, (unsigned long long)f.size, LIMIT_JSON_BYTES);
    else s = js_parse(out, (text_view){ f.data ? (const char *)f.data : "", (size_t)f.size }, 0, path, err);
    os_file_close(&f);
    return s;
}

#ifdef LOAM_JANSSON

#include <jansson.h>

loam_status js_parse(js **out, text_view text, unsigned flags, const char *label, loam_error *err)
{
    json_error_t e;
    size_t how = JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL | JSON_DECODE_ANY | (flags & JS_UNIQUE ? JSON_REJECT_DUPLICATES : 0);
    if (text.len >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0) text.data += 3, text.len -= 3; /* a byte order mark */
    *out = json_loadb(text.data, text.len, how, &e);
    if (*out) return LOAM_OK;
    if (json_error_code(&e) == json_error_out_of_memory) return fail(err, LOAM_E_NOMEM, "%s: out of memory", label);
    return fail_at(err, LOAM_E_FORMAT, e.position > 0 ? (uint64_t)e.position : 0, "%s: line %d, column %d: %s", label, e.line,
                   e.column, e.text);
}

void js_free(js *v) { json_decref(v); }
const js *js_get(const js *v, const char *key) { return json_object_get(v, key); }
const js *js_at(const js *v, size_t i) { return json_array_get(v, i); }
bool js_is_object(const js *v) { return json_is_object(v); }
bool js_is_array(const js *v) { return json_is_array(v); }
size_t js_count(const js *v) { return json_is_array(v) ? json_array_size(v) : json_object_size(v); }

bool js_text(const js *v, text_view *t)
{
    bool is = json_is_string(v);
    *t = is ? (text_view){ json_string_value(v), json_string_length(v) } : (text_view){ NULL, 0 };
    return is;
}

bool js_number(const js *v, double *x)
{
    if (!json_is_number(v)) return false;
    *x = json_number_value(v);
    return true;
}

bool js_bool(const js *v, bool *x)
{
    if (!json_is_boolean(v)) return false;
    *x = json_is_true(v);
    return true;
}

static js_member member_at(void *place)
{
    if (!place) return (js_member){ { NULL, 0 }, NULL, NULL };
    return (js_member){ { json_object_iter_key(place), json_object_iter_key_len(place) }, json_object_iter_value(place), place };
}

js_member js_first(const js *v) { return member_at(json_object_iter((json_t *)(uintptr_t)v)); }
js_member js_next(const js *v, js_member m) { return member_at(json_object_iter_next((json_t *)(uintptr_t)v, m.place)); }

#else

loam_status js_parse(js **out, text_view text, unsigned flags, const char *label, loam_error *err)
{
    (void)text, (void)flags;
    *out = NULL;
    return fail(err, LOAM_E_UNSUPPORTED, "%s: JSON; this build of Loam has no jansson (CMake option LOAM_JANSSON)", label);
}

void js_free(js *v) { (void)v; }
const js *js_get(const js *v, const char *key) { return (void)v, (void)key, NULL; }
const js *js_at(const js *v, size_t i) { return (void)v, (void)i, NULL; }
bool js_is_object(const js *v) { return (void)v, false; }
bool js_is_array(const js *v) { return (void)v, false; }
size_t js_count(const js *v) { return (void)v, (size_t)0; }
bool js_text(const js *v, text_view *t) { return (void)v, *t = (text_view){ NULL, 0 }, false; }
bool js_number(const js *v, double *x) { return (void)v, (void)x, false; }
bool js_bool(const js *v, bool *x) { return (void)v, (void)x, false; }
js_member js_first(const js *v) { return (void)v, (js_member){ { NULL, 0 }, NULL, NULL }; }
js_member js_next(const js *v, js_member m) { return (void)v, (void)m, (js_member){ { NULL, 0 }, NULL, NULL }; }

#endif
