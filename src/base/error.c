/* error.c - statuses, error records and the log sink. Prints nothing by itself and never ends the process. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"

static struct {
    loam_log_fn fn;
    void *user;
} sink;

const char *loam_status_text(loam_status status)
{
    switch (status) {
    case LOAM_OK: return "success";
    case LOAM_E_ARG: return "invalid argument";
    case LOAM_E_NOMEM: return "out of memory";
    case LOAM_E_IO: return "input/output error";
    case LOAM_E_FORMAT: return "malformed data";
    case LOAM_E_UNSUPPORTED: return "not supported";
    case LOAM_E_FULL: return "no room left";
    case LOAM_E_ABORTED: return "aborted";
    case LOAM_E_NUMERIC: return "result is not finite";
    }
    return "unknown status";
}

const char *loam_version(void) { return LOAM_VERSION; }

void loam_set_log(loam_log_fn fn, void *user)
{
    sink.fn = fn;
    sink.user = user;
}

void log_at(loam_log_level level, const char *fmt, ...)
{
    if (!sink.fn) return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sink.fn(sink.user, level, text);
}

static void fill(loam_error *err, loam_status code, int sys, uint64_t offset, const char *fmt, va_list args)
{
    err->code = code;
    err->sys = sys;
    err->offset = offset;
    vsnprintf(err->message, sizeof err->message, fmt, args);
}

loam_status fail(loam_error *err, loam_status code, const char *fmt, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, fmt);
    fill(err, code, 0, LOAM_NO_OFFSET, fmt, args);
    va_end(args);
    return code;
}

loam_status fail_at(loam_error *err, loam_status code, uint64_t offset, const char *fmt, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, fmt);
    fill(err, code, 0, offset, fmt, args);
    va_end(args);
    size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, " (byte %llu)", (unsigned long long)offset);
    return code;
}

loam_status fail_sys(loam_error *err, int sys, const char *fmt, ...)
{
    if (!err) return LOAM_E_IO;
    va_list args;
    va_start(args, fmt);
    fill(err, LOAM_E_IO, sys, LOAM_NO_OFFSET, fmt, args);
    va_end(args);
    char text[96];
    size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, ": %s", os_error_text(sys, text, sizeof text));
    return LOAM_E_IO;
}

loam_status fail_nomem(loam_error *err, const char *what, uint64_t bytes)
{
    return fail(err, LOAM_E_NOMEM, "out of memory: %llu bytes for %s", (unsigned long long)bytes, what);
}

static void LOAM_PRINTF(2, 3) fill_text(loam_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
}

loam_status fail_prefix(loam_error *err, loam_status code, const char *fmt, ...)
{
    if (!err) return code;
    char text[sizeof err->message], prefix[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    memcpy(text, err->message, sizeof text);
    fill_text(err, "%s: %s", prefix, text);
    return code;
}
