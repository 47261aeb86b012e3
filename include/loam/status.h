/* loam/status.h - status codes, the error record and the allocator hook that every part of Loam shares.
 *
 * Every fallible function returns a loam_status. It is 0 on success and negative on failure; a failed call leaves the
 * object it was called on as it was. Functions that take a `loam_error *` fill it on failure; the pointer may be NULL.
 */
#ifndef LOAM_STATUS_H
#define LOAM_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LOAM_API __attribute__((visibility("default")))
#else
#define LOAM_API
#endif

/* The values are stable. */
typedef enum loam_status {
    LOAM_OK = 0,
    LOAM_E_ARG = -1,         /* the caller broke the contract of the function */
    LOAM_E_NOMEM = -2,       /* an allocation failed, or the estimate does not fit the machine */
    LOAM_E_IO = -3,          /* the operating system refused; loam_error.sys holds errno */
    LOAM_E_FORMAT = -4,      /* a file or text is malformed; loam_error.offset is the byte where known */
    LOAM_E_UNSUPPORTED = -5, /* well formed, but Loam cannot do it (yet); the message names the feature */
    LOAM_E_FULL = -6,        /* a context, batch or queue has no room */
    LOAM_E_ABORTED = -7,     /* the abort callback asked to stop */
    LOAM_E_NUMERIC = -8      /* a result is not finite where it must be */
} loam_status;

#define LOAM_NO_OFFSET UINT64_MAX

/* Filled by a failed call. Plain data, no ownership. */
typedef struct loam_error {
    loam_status code;
    int sys;              /* errno, 0 where it does not apply */
    uint64_t offset;      /* byte in the file or text, LOAM_NO_OFFSET where unknown */
    char message[352];    /* one line of UTF-8, names the file, tensor, key or field; always terminated */
} loam_error;

/* A short constant English text for a status ("out of memory"); never NULL, also for unknown values. */
LOAM_API const char *loam_status_text(loam_status status);

/* Library version as "MAJOR.MINOR.PATCH"; constant storage. */
LOAM_API const char *loam_version(void);

/* Memory hook. `resize(user, p, old_size, new_size)` works like realloc: p NULL allocates, new_size 0 frees and returns
 * NULL; it may return NULL for lack of memory, then the old block is still valid. Blocks must be aligned to 16 bytes.
 * It may be called from several threads at once. */
typedef struct loam_allocator {
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
    void *user;
} loam_allocator;

/* Installs the hook for the whole process; NULL restores the C library's. Call it before anything else of Loam:
 * blocks must be freed by the allocator that made them. */
LOAM_API void loam_set_allocator(const loam_allocator *allocator);

/* Asked every few milliseconds while something is computed; true stops it. It must not call back into what is being
 * computed. */
typedef bool (*loam_abort_fn)(void *user);

/* Log levels, ascending in severity. */
typedef enum loam_log_level { LOAM_LOG_DEBUG = 0, LOAM_LOG_INFO = 1, LOAM_LOG_WARN = 2, LOAM_LOG_ERROR = 3 } loam_log_level;
typedef void (*loam_log_fn)(void *user, loam_log_level level, const char *text);

/* Installs the library's log sink (one line of text a call, without a newline). NULL, the default, is silence. */
LOAM_API void loam_set_log(loam_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
