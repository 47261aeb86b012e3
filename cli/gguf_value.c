/* gguf_value.c - reads metadata values from the command line; see gguf_value.h. Refuses numbers that do not fit their kind,
 * elements of several kinds in one array, and arrays in arrays. */
#include "gguf_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds ---- */

static const struct {
    const char *name;
    int kind;
} short_names[] = {
    { "u8", LOAM_GGUF_U8 },     { "i8", LOAM_GGUF_I8 },       { "u16", LOAM_GGUF_U16 }, { "i16", LOAM_GGUF_I16 },
    { "u32", LOAM_GGUF_U32 },   { "i32", LOAM_GGUF_I32 },     { "u64", LOAM_GGUF_U64 }, { "i64", LOAM_GGUF_I64 },
    { "f32", LOAM_GGUF_F32 },   { "f64", LOAM_GGUF_F64 },     { "str", LOAM_GGUF_STRING }, { "float", LOAM_GGUF_F32 },
    { "double", LOAM_GGUF_F64 }, { "boolean", LOAM_GGUF_BOOL },
};

bool value_type_of_name(const char *name, value_type *type)
{
    char word[32];
    size_t n = strlen(name);
    type->array = n > 2 && strcmp(name + n - 2, "[]") == 0;
    if (type->array) n -= 2;
    if (n >= sizeof word) return false;
    memcpy(word, name, n);
    word[n] = 0;
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++)
        if (strcmp(word, short_names[i].name) == 0) return type->kind = short_names[i].kind, true;
    for (int kind = 0; kind <= LOAM_GGUF_F64; kind++)
        if (kind != LOAM_GGUF_ARRAY && strcmp(word, loam_gguf_kind_name(kind)) == 0) return type->kind = kind, true;
    return false;
}

/* A number of any kind, bounds of the integer kinds. */
typedef struct kind_range {
    int64_t lo;
    uint64_t hi;
    unsigned bytes;
} kind_range;

static kind_range range_of(int kind)
{
    switch (kind) {
    case LOAM_GGUF_U8: return (kind_range){ 0, UINT8_MAX, 1 };
    case LOAM_GGUF_I8: return (kind_range){ INT8_MIN, INT8_MAX, 1 };
    case LOAM_GGUF_U16: return (kind_range){ 0, UINT16_MAX, 2 };
    case LOAM_GGUF_I16: return (kind_range){ INT16_MIN, INT16_MAX, 2 };
    case LOAM_GGUF_U32: return (kind_range){ 0, UINT32_MAX, 4 };
    case LOAM_GGUF_I32: return (kind_range){ INT32_MIN, INT32_MAX, 4 };
    case LOAM_GGUF_U64: return (kind_range){ 0, UINT64_MAX, 8 };
    case LOAM_GGUF_I64: return (kind_range){ INT64_MIN, INT64_MAX, 8 };
    case LOAM_GGUF_F32: return (kind_range){ 0, 0, 4 };
    case LOAM_GGUF_F64: return (kind_range){ 0, 0, 8 };
    case LOAM_GGUF_BOOL: return (kind_range){ 0, 1, 1 };
    default: return (kind_range){ 0, 0, 0 };
    }
}

static bool read_whole(const char *text, kind_range range, uint64_t *bits)
{
    char *end;
    bool negative = *text == '-';
    if (!(text[negative] >= '0' && text[negative] <= '9')) return false;
    errno = 0;
    if (negative) {
        long long v = strtoll(text, &end, 10);
        *bits = (uint64_t)v;
        return errno == 0 && !*end && v >= range.lo;
    }
    *bits = strtoull(text, &end, 10);
    return errno == 0 && !*end && *bits <= range.hi;
}

/* One value to out, which has 8 bytes, as the file has it (little-endian). */
static bool read_scalar(int kind, const char *text, void *out)
{
    kind_range range = range_of(kind);
    uint64_t bits;
    if (kind == LOAM_GGUF_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        *(uint8_t *)out = *text == 't';
        return true;
    }
    if (kind == LOAM_GGUF_F32 || kind == LOAM_GGUF_F64) {
        char *end;
        double v = strtod(text, &end);
        float narrow = (float)v;
        if (end == text || *end || *text == ' ' || (kind == LOAM_GGUF_F32 && isinf(narrow) && !isinf(v))) return false;
        if (kind == LOAM_GGUF_F32) memcpy(out, &narrow, sizeof narrow);
        else memcpy(out, &v, sizeof v);
        return true;
    }
    if (!read_whole(text, range, &bits)) return false;
    memcpy(out, &bits, range.bytes);
    return true;
}

static int first_that_holds(const char *text, const int *kinds, int n)
{
    uint64_t scrap;
    for (int i = 0; i < n; i++)
        if (read_scalar(kinds[i], text, &scrap)) return kinds[i];
    return LOAM_GGUF_STRING;
}

static int looks_like(const char *text)
{
    static const int kinds[] = { LOAM_GGUF_U32, LOAM_GGUF_I32, LOAM_GGUF_U64, LOAM_GGUF_I64, LOAM_GGUF_F32, LOAM_GGUF_F64 };
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return LOAM_GGUF_BOOL;
    return first_that_holds(text, kinds, sizeof kinds / sizeof *kinds);
}

/* ---- arrays ---- */

typedef struct elements {
    buffer *list; /* texts */
    size_t n, cap;
    bool strings; /* one of them was in quotes */
} elements;

static void elements_free(elements *e)
{
    for (size_t i = 0; i < e->n; i++) buffer_free(&e->list[i]);
    free(e->list);
}

static buffer *next_element(elements *e)
{
    if (e->n == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 16;
        e->list = need(realloc(e->list, e->cap * sizeof *e->list));
    }
    buffer *b = &e->list[e->n++];
    *b = (buffer){ 0 };
    buffer_add(b, "", 0);
    return b;
}

static const char *over_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    return p;
}

/* One element up to a comma or the end; *why stays NULL where all is well. */
static const char *take_element(const char *p, bool brackets, elements *e, const char **why)
{
    buffer *b = next_element(e);
    if (*p == '"') {
        if (!json_read_string(&p, p + strlen(p), b, why)) return p;
        e->strings = true;
        return over_space(p);
    }
    size_t n = strcspn(p, brackets ? ",]" : ",");
    if (*p == '[') *why = "an array inside an array";
    else if (n == 0 && brackets) *why = "an element is missing";
    size_t kept = n;
    while (kept && (p[kept - 1] == ' ' || p[kept - 1] == '\t')) kept--;
    buffer_add(b, p, kept);
    p += n;
    return over_space(p);
}

static const char *read_elements(const char *text, elements *e)
{
    const char *p = over_space(text), *why = NULL;
    bool brackets = *p == '[';
    if (brackets) p = over_space(p + 1);
    if (brackets ? *p == ']' : !*p) return brackets && *over_space(p + 1) ? "text after the array" : NULL;
    for (;;) {
        p = take_element(p, brackets, e, &why);
        if (why) return why;
        if (*p != ',') break;
        p = over_space(p + 1);
    }
    if (!brackets) return *p ? "a comma is missing" : NULL;
    if (*p != ']') return "a ] is missing";
    return *over_space(p + 1) ? "text after the array" : NULL;
}

static int looks_like_all(const elements *e)
{
    static const int kinds[] = { LOAM_GGUF_BOOL, LOAM_GGUF_I32, LOAM_GGUF_I64, LOAM_GGUF_U64, LOAM_GGUF_F32, LOAM_GGUF_F64 };
    uint64_t scrap;
    if (e->strings) return LOAM_GGUF_STRING;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t i = 0;
        while (i < e->n && read_scalar(kinds[k], e->list[i].data, &scrap) &&
               (kinds[k] != LOAM_GGUF_BOOL || strchr("tf", e->list[i].data[0])))
            i++;
        if (i == e->n) return e->n ? kinds[k] : LOAM_GGUF_STRING;
    }
    return LOAM_GGUF_STRING;
}

static void set_strings(loam_gguf_builder *builder, const char *key, const elements *e)
{
    const char **texts = need(malloc(e->n * sizeof *texts + 1));
    size_t *lens = need(malloc(e->n * sizeof *lens + 1));
    for (size_t i = 0; i < e->n; i++) texts[i] = e->list[i].data, lens[i] = e->list[i].len;
    loam_gguf_set_texts(builder, key, texts, lens, e->n);
    free(texts);
    free(lens);
}

static int bad_value(const options *o, const char *key, const char *text, int kind)
{
    return say_usage(o, "%s: '%s' is no value of kind %s", key, text, loam_gguf_kind_name(kind));
}

static int set_numbers(const options *o, loam_gguf_builder *builder, const char *key, const elements *e, int kind)
{
    unsigned bytes = range_of(kind).bytes;
    uint8_t *items = need(malloc(e->n * bytes + 8)), one[8];
    int code = EXIT_DONE;
    for (size_t i = 0; code == EXIT_DONE && i < e->n; i++) {
        if (!read_scalar(kind, e->list[i].data, one)) code = bad_value(o, key, e->list[i].data, kind);
        else memcpy(items + i * bytes, one, bytes);
    }
    if (code == EXIT_DONE) loam_gguf_set_array(builder, key, kind, items, e->n);
    free(items);
    return code;
}

static int set_array(const options *o, loam_gguf_builder *builder, const char *key, const char *text, int kind)
{
    elements e = { 0 };
    const char *why = read_elements(text, &e);
    int code = EXIT_DONE;
    if (kind < 0) kind = looks_like_all(&e);
    if (why) code = say_usage(o, "%s: '%s': %s", key, text, why);
    else if (kind == LOAM_GGUF_STRING) set_strings(builder, key, &e);
    else if (e.strings) code = say_usage(o, "%s: '%s': a string in an array of %s", key, text, loam_gguf_kind_name(kind));
    else code = set_numbers(o, builder, key, &e, kind);
    elements_free(&e);
    return code;
}

int value_set(const options *o, loam_gguf_builder *builder, const char *key, const char *text, value_type type)
{
    uint64_t bits;
    if (type.array || (type.kind != LOAM_GGUF_STRING && *text == '[')) return set_array(o, builder, key, text, type.kind);
    int kind = type.kind >= 0 ? type.kind : looks_like(text);
    if (kind == LOAM_GGUF_STRING) loam_gguf_set_text(builder, key, text, strlen(text));
    else if (read_scalar(kind, text, &bits)) loam_gguf_set_scalar(builder, key, kind, &bits);
    else return bad_value(o, key, text, kind);
    return EXIT_DONE;
}
