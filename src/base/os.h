/* os.h - everything that asks the operating system for something. One implementation file per system (os_linux.c). */
#ifndef LOAM_BASE_OS_H
#define LOAM_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ---- files ---- */

typedef struct os_file {
    const uint8_t *data; /* whole file, read-only; NULL for an empty one */
    uint64_t size;
    bool mapped;         /* false: read into heap memory */
} os_file;

/* Opens a regular file. use_map false reads it into memory instead (immune to truncation by others); where mapping fails,
 * reading is the fall-back, with one log line. Directories and devices are refused. */
loam_status os_file_open(os_file *f, const char *path, bool use_map, loam_error *err);
void os_file_close(os_file *f);
bool os_is_folder(const char *path);
bool os_is_file(const char *path);                       /* a regular file, by whatever links */
bool os_file_lock(const os_file *f);                     /* mlock; false where refused */
void os_file_prefetch(const os_file *f, uint64_t offset, uint64_t bytes); /* a hint only */

/* True where both paths lead to the same existing file, by whatever links. */
bool os_same_file(const char *a, const char *b);

/* Makes a folder; one that is there is fine. */
loam_status os_make_folder(const char *path, loam_error *err);

/* LOAM_OK where path does not exist or is a regular file that may be replaced; IO where it is a folder, a device, a pipe. */
loam_status os_check_target(const char *path, loam_error *err);

/* The path that a symbolic link leads to, whether or not it exists yet; a copy of path itself where that is no link. For
 * mem_free(). IO: a link that leads nowhere; NOMEM. */
loam_status os_follow_link(const char *path, char **out, loam_error *err);

/* Atomic replacement: write into "PATH.tmp-PID", then os_replace renames it over PATH after a sync. */
loam_status os_replace(const char *from, const char *to, loam_error *err);

/* ---- machine ---- */

uint64_t os_process_id(void);          /* for names of temporary files */
int os_cpu_count(void);                /* CPUs this process may run on: affinity and control-group quota, at least 1 */
uint64_t os_memory_available(void);    /* bytes that can still be had: machine and control group; UINT64_MAX unknown */
uint64_t os_now_ns(void);              /* monotonic */
uint64_t os_random_u64(void);          /* from the system's generator */
const char *os_error_text(int sys, char *text, size_t size); /* of an errno; uses text or constant memory */

/* ---- large memory ---- */

/* Zeroed address space that takes memory page by page at first touch; NULL where refused. For caches and buffers of many
 * megabytes, where clearing by hand would cost seconds. Huge pages are asked for; a refusal is silent. */
void *os_reserve(size_t bytes);
void os_release(void *p, size_t bytes);

/* ---- libraries that are used where they are there ---- */

void *os_library_open(const char *name);      /* NULL: there is none, or it does not load */
void *os_library_symbol(void *library, const char *name); /* NULL: it has no such symbol */
void os_library_close(void *library);

/* ---- threads ---- */

typedef struct os_thread os_thread;
/* Starts a thread with a stack of at most 256 KB. NULL: refused (limit or memory). */
os_thread *os_thread_start(void (*fn)(void *), void *arg);
void os_thread_join(os_thread *t);
uint64_t os_thread_id(void);           /* of the calling thread; never 0, no other living thread has it */
void os_futex_wait(const uint32_t *word, uint32_t expected); /* returns when woken, or when *word != expected */
void os_futex_wake_all(const uint32_t *word);
void os_yield(void);

#endif
