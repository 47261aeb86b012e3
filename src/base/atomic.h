/* atomic.h - files that appear whole or not at all: written as PATH.tmp-PID, synced and renamed at the end. */
#ifndef LOAM_BASE_ATOMIC_H
#define LOAM_BASE_ATOMIC_H

#include <stddef.h>

#include "loam/status.h"

typedef struct atomic_file atomic_file;

loam_status atomic_open(atomic_file **out, const char *path, loam_error *err);
loam_status atomic_write(atomic_file *a, const void *data, size_t bytes, loam_error *err);
loam_status atomic_finish(atomic_file *a, loam_error *err); /* flushes and closes; the file still has its temporary name */
loam_status atomic_commit(atomic_file *a, loam_error *err); /* after atomic_finish: gives it its name, replacing an old file */
void atomic_free(atomic_file *a);                           /* removes what was not committed; NULL is fine */

#endif
