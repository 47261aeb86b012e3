/* json.c - a writer of JSON to a stream, and a reader that finds one string in one object. The reader keeps to the grammar of
 * RFC 8259 and refuses nesting beyond 64. */
#include <math.h>
#include <string.h>

#include "util.h"

/* ---- writing ---- */

void json_begin(json *j, FILE *f) { *j = (json){ .f = f }; }

static void write_text(FILE *f, const char *text, size_t len);

static void before(json *j, const char *key)
{
    if (j->comma[j->depth]) fputs(",", j->f);
    if (j->depth > 0 && !j->one_line) fprintf(j->f, "\n%*s", 2 * j->depth, "");
    j->comma[j->depth] = true;
    if (!key) return;
    write_text(j->f, key, strlen(key));
    fputs(": ", j->f);
}

void json_open(json *j, const char *key, char bracket)
{
    before(j, key);
    fputc(bracket, j->f);
    j->comma[++j->depth] = false;
}

void json_close(json *j, char bracket)
{
    bool any = j->comma[j->depth--];
    if (any && !j->one_line) fprintf(j->f, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->f);
    if (j->depth == 0) fputc('\n', j->f);
}

/* Length of the UTF-8 character at p, 0 where there is none (RFC 3629). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    unsigned char c = p[0];
    size_t n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

static void write_text(FILE *f, const char *text, size_t len)
{
    fputc('"', f);
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = utf8_length((const unsigned char *)text + i, len - i);
        if (n == 0) fputs("\xEF\xBF\xBD", f);
        else if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c == '\n') fputs("\\n", f);
        else if (c == '\t') fputs("\\t", f);
        else if (c == '\r') fputs("\\r", f);
        else if (c < 0x20 || c == 0x7F) fprintf(f, "\\u%04x", c);
        else fwrite(text + i, 1, n, f);
        i += n ? n : 1;
    }
    fputc('"', f);
}

void json_text(json *j, const char *key, const char *text, size_t len)
{
    before(j, key);
    write_text(j->f, text, len);
}

void json_string(json *j, const char *key, const char *text)
{
    if (text) json_text(j, key, text, strlen(text));
    else json_null(j, key);
}

void json_int(json *j, const char *key, int64_t v)
{
    before(j, key);
    fprintf(j->f, "%lld", (long long)v);
}

void json_num(json *j, const char *key, double v)
{
    before(j, key);
    if (isfinite(v)) fprintf(j->f, "%.9g", v);
    else fputs("null", j->f);
}

void json_bool(json *j, const char *key, bool v)
{
    before(j, key);
    fputs(v ? "true" : "false", j->f);
}

void json_null(json *j, const char *key)
{
    before(j, key);
    fputs("null", j->f);
}

/* ---- reading ---- */

#define DEPTH_MAX 64

typedef struct reader {
    const char *p, *end, *why;
} reader;

static bool wrong(reader *r, const char *why)
{
    if (!r->why) r->why = why;
    return false;
}

static void skip_space(reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p) r->p++;
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->p >= r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static void add_utf8(buffer *b, uint32_t c)
{
    char u[4];
    size_t n = 0;
    if (c < 0x80) {
        u[n++] = (char)c;
    } else if (c < 0x800) {
        u[n++] = (char)(0xC0 | c >> 6);
        u[n++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        u[n++] = (char)(0xE0 | c >> 12);
        u[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        u[n++] = (char)(0x80 | (c & 0x3F));
    } else {
        u[n++] = (char)(0xF0 | c >> 18);
        u[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        u[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        u[n++] = (char)(0x80 | (c & 0x3F));
    }
    buffer_add(b, u, n);
}

/* Four hexadecimal digits; -1 where they are not. */
static int32_t hex4(reader *r)
{
    int32_t v = 0;
    if (r->end - r->p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = *r->p++;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* After "\u". A surrogate without its partner becomes U+FFFD. */
static bool read_code_point(reader *r, buffer *out)
{
    int32_t c = hex4(r);
    if (c < 0) return wrong(r, "a \\u escape needs four hexadecimal digits");
    if (c >= 0xD800 && c < 0xDC00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
        reader ahead = { r->p + 2, r->end, NULL };
        int32_t low = hex4(&ahead);
        if (low >= 0xDC00 && low < 0xE000) {
            r->p = ahead.p;
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    add_utf8(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : (uint32_t)c);
    return true;
}

static bool read_string(reader *r, buffer *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (!take(r, '"')) return wrong(r, "a string is missing");
    buffer_add(out, "", 0);
    while (r->p < r->end && *r->p != '"') {
        if ((unsigned char)*r->p < 0x20) return wrong(r, "a control character inside a string");
        if (*r->p != '\\') {
            buffer_add(out, r->p++, 1);
            continue;
        }
        if (++r->p >= r->end) break;
        char c = *r->p++;
        const char *known = c ? strchr(from, c) : NULL;
        if (c == 'u') {
            if (!read_code_point(r, out)) return false;
        } else if (known) {
            buffer_add(out, &to[known - from], 1);
        } else {
            return wrong(r, "an unknown escape");
        }
    }
    return take(r, '"') || wrong(r, "a string does not end");
}

static bool skip_value(reader *r, int depth)
{
    skip_space(r);
    if (depth > DEPTH_MAX) return wrong(r, "nesting is too deep");
    if (r->p >= r->end) return wrong(r, "a value is missing");
    buffer scrap = { 0 };
    bool ok = true, object = *r->p == '{';
    if (*r->p == '"') {
        ok = read_string(r, &scrap);
    } else if (object || *r->p == '[') {
        char close = object ? '}' : ']';
        r->p++;
        for (bool first = true; ok && !take(r, close); first = false) {
            ok = first || take(r, ',') || wrong(r, "a comma is missing");
            if (ok && object) ok = read_string(r, &scrap) && (take(r, ':') || wrong(r, "a colon is missing"));
            ok = ok && skip_value(r, depth + 1);
        }
    } else {
        const char *start = r->p;
        while (r->p < r->end && *r->p && strchr("+-.0123456789aeflnrstuE", *r->p)) r->p++;
        ok = r->p > start || wrong(r, "a value is missing");
    }
    buffer_free(&scrap);
    return ok;
}

bool json_read_string(const char **p, const char *end, buffer *out, const char **why)
{
    reader r = { *p, end, NULL };
    skip_space(&r);
    bool ok = read_string(&r, out);
    *p = r.p;
    *why = r.why;
    return ok;
}

bool json_find_text(const char *text, size_t len, const char *key, buffer *out, const char **why)
{
    reader r = { text, text + len, NULL };
    bool found = false, ok = take(&r, '{') || wrong(&r, "not an object");
    for (bool first = true; ok && !take(&r, '}'); first = false) {
        buffer name = { 0 };
        ok = first || take(&r, ',') || wrong(&r, "a comma is missing");
        ok = ok && read_string(&r, &name) && (take(&r, ':') || wrong(&r, "a colon is missing"));
        bool wanted = ok && name.len == strlen(key) && memcmp(name.data, key, name.len) == 0;
        buffer_free(&name);
        if (!ok) break;
        if (wanted && !found) ok = found = read_string(&r, out);
        else ok = skip_value(&r, 1);
    }
    if (ok && !found) wrong(&r, "it has no such string");
    *why = r.why;
    return ok && found;
}
