/* js.h - JSON values, read through jansson.
 *
 * A document is parsed whole and then asked. Every question takes NULL and values of other kinds, and answers "absent": so a
 * path through a foreign document is written without a check at each step. Text may hold NUL bytes. Integers beyond 2^53 are
 * rounded (all numbers are doubles); js_int takes whole numbers only. A library built without jansson refuses to parse. */
#ifndef LOAM_BASE_JS_H
#define LOAM_BASE_JS_H

#include "base/error.h"
#include "base/vocab.h"

typedef struct json_t js; /* jansson's */

#define JS_UNIQUE 1u /* a key that occurs twice in an object is an error */

/* Parses a whole text; label names it in messages, which give the byte. *out is freed with js_free. */
loam_status js_parse(js **out, text_view text, unsigned flags, const char *label, loam_error *err);
/* Parses a file of at most LIMIT_JSON_BYTES. */
loam_status js_open(js **out, const char *path, loam_error *err);
void js_free(js *v); /* NULL is fine */

const js *js_get(const js *v, const char *key);     /* member of an object */
const js *js_at(const js *v, size_t i);             /* element of an array */
size_t js_count(const js *v);                       /* elements or members; 0 for other kinds */
bool js_is_object(const js *v);
bool js_is_array(const js *v);
bool js_text(const js *v, text_view *t);            /* false, and *t empty with data NULL, for other kinds */
bool js_number(const js *v, double *x);
bool js_int(const js *v, int64_t *x);
bool js_bool(const js *v, bool *x);                 /* also false for other kinds, with *x unchanged */
bool js_is(const js *v, const char *text);          /* the string equals text */
bool js_text_is(text_view t, const char *text);

/* Walks the members of an object in their order in the text:
 *     for (js_member m = js_first(v); m.value; m = js_next(v, m)) ... */
typedef struct js_member {
    text_view key;
    const js *value; /* NULL behind the last */
    void *place;
} js_member;
js_member js_first(const js *v);
js_member js_next(const js *v, js_member m);

#endif
