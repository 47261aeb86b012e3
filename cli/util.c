/* util.c - see util.h: messages, memory, texts, and what the machine says about this process. */
#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void say(const options *o, const char *fmt, va_list args)
{
    fprintf(stderr, "loam %s: ", commands[o->command].name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int say_failed(const options *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(o, fmt, args);
    va_end(args);
    return EXIT_FAILED;
}

int say_usage(const options *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(o, fmt, args);
    va_end(args);
    fprintf(stderr, "See: loam help %s\n", commands[o->command].name);
    return EXIT_USAGE;
}

void say_note(const options *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(o, fmt, args);
    va_end(args);
}

int say_error(const options *o, const loam_error *err) { return say_failed(o, "%s", err->message); }

static void log_all(void *user, loam_log_level level, const char *text)
{
    (void)user;
    static const char *const names[] = { "debug: ", "", "warning: ", "error: " };
    fprintf(stderr, "%s%s\n", names[level], text);
}

static void log_warnings(void *user, loam_log_level level, const char *text)
{
    if (level >= LOAM_LOG_WARN) log_all(user, level, text);
}

void show_log(const options *o) { loam_set_log(opt_given(o, OPT_VERBOSE) ? log_all : log_warnings, NULL); }

int flush_output(const options *o, FILE *f, const char *name)
{
    if (fflush(f) == 0 && !ferror(f)) return EXIT_DONE;
    return say_failed(o, "%s: cannot write: %s", name, strerror(errno));
}

void *need(void *p)
{
    if (p) return p;
    fputs("loam: out of memory\n", stderr);
    exit(EXIT_FAILED);
}

void buffer_add(buffer *b, const void *data, size_t n)
{
    if (n >= SIZE_MAX / 4 - b->len) need(NULL);
    if (b->len + n + 1 > b->cap) {
        b->cap = 2 * (b->len + n + 1);
        b->data = need(realloc(b->data, b->cap));
    }
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = 0;
}

void buffer_free(buffer *b)
{
    free(b->data);
    *b = (buffer){ 0 };
}

bool read_file(const options *o, const char *path, buffer *out)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f) {
        say_failed(o, "%s: cannot open: %s", path, strerror(errno));
        return false;
    }
    char chunk[65536];
    size_t n;
    buffer_add(out, "", 0);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) buffer_add(out, chunk, n);
    bool ok = !ferror(f);
    if (!ok) say_failed(o, "%s: cannot read: %s", standard ? "standard input" : path, strerror(errno));
    if (!standard) fclose(f);
    return ok;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void unescape(buffer *b)
{
    static const char from[] = "ntr\\\"'", to[] = "\n\t\r\\\"'";
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        char c = b->data[i];
        if (c == '\\' && i + 1 < b->len) {
            const char *known = b->data[i + 1] ? strchr(from, b->data[i + 1]) : NULL;
            int hi = i + 3 < b->len ? hex_digit(b->data[i + 2]) : -1, lo = i + 3 < b->len ? hex_digit(b->data[i + 3]) : -1;
            if (known) {
                c = to[known - from];
                i++;
            } else if (b->data[i + 1] == 'x' && hi >= 0 && lo >= 0) {
                c = (char)(hi * 16 + lo);
                i += 3;
            }
        }
        b->data[n++] = c;
    }
    if (b->data) b->data[b->len = n] = 0;
}

bool parse_ids(const options *o, const char *name, const buffer *text, int32_t **ids, size_t *n)
{
    size_t cap = 0;
    int line = 1;
    *ids = NULL;
    *n = 0;
    for (const char *p = text->data, *end = p + text->len; p < end;) {
        if (*p == '\n') line++;
        if (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == ',') {
            p++;
            continue;
        }
        char *after;
        errno = 0;
        long long id = strtoll(p, &after, 10);
        if (after == p || errno || id < INT32_MIN || id > INT32_MAX || (after < end && !strchr(" \n\t\r,", *after))) {
            say_failed(o, "%s: line %d: '%.*s' is no token id", name, line, (int)strcspn(p, " \n\t\r,"), p);
            free(*ids);
            *ids = NULL;
            return false;
        }
        if (*n == cap) *ids = need(realloc(*ids, (cap = cap ? 2 * cap : 256) * sizeof **ids));
        (*ids)[(*n)++] = (int32_t)id;
        p = after;
    }
    return true;
}

/* ---- machine ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* The first call, at the start of main, takes the processor time used so far for the time since the start: nothing waited yet. */
uint64_t process_age_ns(void)
{
    static uint64_t start;
    if (!start) start = now_ns() - clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return now_ns() - start;
}

uint64_t resident_bytes(uint64_t *anonymous)
{
    uint64_t all = 0, anon = 0;
    unsigned long long kib;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmRSS: %llu kB", &kib) == 1) all = (uint64_t)kib * 1024;
        if (sscanf(line, "RssAnon: %llu kB", &kib) == 1) anon = (uint64_t)kib * 1024;
    }
    if (f) fclose(f);
    if (anonymous) *anonymous = anon;
    return all;
}

uint64_t peak_resident_bytes(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}
