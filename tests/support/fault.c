/* fault.c - see fault.h. A block carries its size in front, so that a wrong old_size is found. */
#include "fault.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MAGIC 0x6c6f616d626c6f63u

typedef struct mark {
    uint64_t magic;
    size_t size;
} mark;

static atomic_long live, bytes, count, fail_at_count;
static atomic_bool sticky_mode, hit;

static void die(const char *what)
{
    fprintf(stderr, "allocator contract: %s\n", what);
    abort();
}

static bool must_fail(void)
{
    long n = atomic_fetch_add(&count, 1) + 1, at = atomic_load(&fail_at_count);
    bool now = at > 0 && (n == at || (n > at && atomic_load(&sticky_mode)));
    if (now) atomic_store(&hit, true);
    return now;
}

static void *resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    mark *m = p ? (mark *)p - 1 : NULL;
    if (m && m->magic != MAGIC) die("not a block of this allocator, or freed twice");
    if (m && m->size != old_size) die("old_size differs from the size that was asked for");
    if (new_size == 0) {
        if (!m) return NULL;
        m->magic = 0;
        free(m);
        atomic_fetch_sub(&live, 1);
        atomic_fetch_sub(&bytes, (long)old_size);
        return NULL;
    }
    if (must_fail()) return NULL;
    mark *q = realloc(m, sizeof *q + new_size);
    if (!q) return NULL;
    if (!m) atomic_fetch_add(&live, 1);
    atomic_fetch_add(&bytes, (long)new_size - (long)old_size);
    q->magic = MAGIC;
    q->size = new_size;
    return q + 1;
}

void fault_install(void)
{
    static const loam_allocator allocator = { resize, NULL };
    loam_set_allocator(&allocator);
}

long fault_live(void) { return atomic_load(&live); }
long fault_bytes(void) { return atomic_load(&bytes); }
long fault_count(void) { return atomic_load(&count); }
bool fault_hit(void) { return atomic_load(&hit); }

void fault_arm(long n, bool sticky)
{
    atomic_store(&count, 0);
    atomic_store(&hit, false);
    atomic_store(&sticky_mode, sticky);
    atomic_store(&fail_at_count, n);
}

/* One run; true when it met a failure. */
static bool run_once(const char *what, fault_fn fn, void *arg, long n, bool sticky)
{
    loam_error err;
    memset(&err, 0, sizeof err);
    long before = fault_live();
    fault_arm(n, sticky);
    loam_status status = fn(arg, &err);
    bool met = fault_hit();
    fault_arm(0, false);
    if (fault_live() != before) fail_msg("%s: allocation %ld failed: %ld blocks leaked", what, n, fault_live() - before);
    if (!met && status != LOAM_OK) fail_msg("%s without a failure: %s (%s)", what, loam_status_text(status), err.message);
    if (met && status != LOAM_OK && status != LOAM_E_NOMEM)
        fail_msg("%s: allocation %ld failed: status is \"%s\" (%s)", what, n, loam_status_text(status), err.message);
    if (met && status == LOAM_E_NOMEM && !err.message[0]) fail_msg("%s: allocation %ld failed: no message", what, n);
    return met;
}

long fault_loop(const char *what, fault_fn fn, void *arg)
{
    long n = 1;
    while (run_once(what, fn, arg, n, false)) n++;
    for (long i = 1; i < n; i++) run_once(what, fn, arg, i, true);
    printf("%s: %ld failing allocations\n", what, n - 1);
    return n - 1;
}
