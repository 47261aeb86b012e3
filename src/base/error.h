/* error.h - filling loam_error: the only way a failure gets its message. */
#ifndef LOAM_BASE_ERROR_H
#define LOAM_BASE_ERROR_H

#include "loam/status.h"

#if defined(__GNUC__)
#define LOAM_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define LOAM_PRINTF(f, a)
#endif

/* Writes code and message into err (which may be NULL) and returns code, so that a caller writes
 * `return fail(err, LOAM_E_ARG, "context %d: ...", n);`. sys becomes 0 and offset LOAM_NO_OFFSET. */
loam_status fail(loam_error *err, loam_status code, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* As fail, with the byte offset of the culprit. */
loam_status fail_at(loam_error *err, loam_status code, uint64_t offset, const char *fmt, ...) LOAM_PRINTF(4, 5);

/* As fail with LOAM_E_IO and the given errno, whose text is appended to the message. */
loam_status fail_sys(loam_error *err, int sys, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* LOAM_E_NOMEM with the number of bytes that were asked for and what they were for. */
loam_status fail_nomem(loam_error *err, const char *what, uint64_t bytes);

/* Puts "prefix: " before the message of an error that is already filled; returns its code. */
loam_status fail_prefix(loam_error *err, loam_status code, const char *fmt, ...) LOAM_PRINTF(3, 4);

/* Log through the library's sink. Cheap when silent. */
void log_at(loam_log_level level, const char *fmt, ...) LOAM_PRINTF(2, 3);

#endif
