/* atomic.c - see atomic.h. */
#include "base/atomic.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"

struct atomic_file {
    FILE *stream; /* NULL once finished */
    char *path, *temporary;
    bool committed;
};

/* "x": never through a link that somebody else put there; a left-over of a process with our number is removed first. */
static FILE *create(const char *path)
{
    FILE *f = fopen(path, "wbxe");
    if (!f && errno == EEXIST && remove(path) == 0) f = fopen(path, "wbxe");
    return f;
}

loam_status atomic_open(atomic_file **out, const char *path, loam_error *err)
{
    *out = NULL;
    loam_status target = os_check_target(path, err);
    if (target != LOAM_OK) return target;
    atomic_file *a = mem_zalloc(sizeof *a);
    if (!a) return fail_nomem(err, "a file to write", sizeof *a);
    loam_status followed = os_follow_link(path, &a->path, err);
    size_t room = a->path ? strlen(a->path) + 32 : 0;
    a->temporary = a->path ? mem_alloc(room) : NULL;
    if (!a->temporary) {
        atomic_free(a);
        return followed != LOAM_OK ? followed : fail_nomem(err, "a file to write", room);
    }
    snprintf(a->temporary, room, "%s.tmp-%llu", a->path, (unsigned long long)os_process_id());
    a->stream = create(a->temporary);
    if (!a->stream) {
        loam_status s = fail_sys(err, errno, "%s: cannot create", a->temporary);
        a->committed = true;
        atomic_free(a);
        return s;
    }
    *out = a;
    return LOAM_OK;
}

loam_status atomic_write(atomic_file *a, const void *data, size_t bytes, loam_error *err)
{
    if (bytes == 0 || fwrite(data, 1, bytes, a->stream) == bytes) return LOAM_OK;
    return fail_sys(err, errno, "%s: cannot write", a->temporary);
}

loam_status atomic_finish(atomic_file *a, loam_error *err)
{
    if (!a->stream) return LOAM_OK;
    FILE *f = a->stream;
    a->stream = NULL;
    return fclose(f) == 0 ? LOAM_OK : fail_sys(err, errno, "%s: cannot write", a->temporary);
}

loam_status atomic_commit(atomic_file *a, loam_error *err)
{
    loam_status s = os_replace(a->temporary, a->path, err);
    a->committed = s == LOAM_OK;
    return s;
}

void atomic_free(atomic_file *a)
{
    if (!a) return;
    if (a->stream) fclose(a->stream);
    if (a->temporary && a->path && !a->committed) remove(a->temporary);
    mem_free(a->path);
    mem_free(a->temporary);
    mem_free(a);
}
