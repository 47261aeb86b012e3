/* os_linux.c - see os.h. Linux only; another system gets a file of its own. */
#include "base/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- files ---- */

static loam_status read_whole(os_file *f, int fd, const char *path, loam_error *err)
{
    if (f->size > SIZE_MAX / 2) return fail(err, LOAM_E_UNSUPPORTED, "%s: larger than the address space", path);
    uint8_t *data = mem_alloc((size_t)f->size);
    if (!data) return fail_nomem(err, path, f->size);
    size_t done = 0;
    while (done < f->size) {
        ssize_t n = read(fd, data + done, (size_t)f->size - done > (1u << 30) ? (1u << 30) : (size_t)f->size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int sys = n < 0 ? errno : EIO;
            mem_free(data);
            return fail_sys(err, sys, "%s: cannot read", path);
        }
        done += (size_t)n;
    }
    f->data = data;
    return LOAM_OK;
}

loam_status os_file_open(os_file *f, const char *path, bool use_map, loam_error *err)
{
    memset(f, 0, sizeof *f);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not wait */
    if (fd < 0) return fail_sys(err, errno, "%s: cannot open", path);
    struct stat st;
    loam_status status = LOAM_OK;
    if (fstat(fd, &st) != 0) status = fail_sys(err, errno, "%s: cannot stat", path);
    else if (S_ISDIR(st.st_mode)) status = fail_sys(err, EISDIR, "%s", path);
    else if (!S_ISREG(st.st_mode)) status = fail(err, LOAM_E_IO, "%s: not a regular file", path);
    else f->size = (uint64_t)st.st_size;
    if (status == LOAM_OK && f->size > 0) {
        void *p = MAP_FAILED;
        if (use_map && f->size <= SIZE_MAX / 2) p = mmap(NULL, (size_t)f->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            f->data = p;
            f->mapped = true;
        } else {
            if (use_map) log_at(LOAM_LOG_WARN, "%s: cannot be mapped, reading it instead", path);
            status = read_whole(f, fd, path, err);
        }
    }
    close(fd);
    if (status != LOAM_OK) memset(f, 0, sizeof *f);
    return status;
}

void os_file_close(os_file *f)
{
    if (f->mapped) munmap((void *)(uintptr_t)f->data, (size_t)f->size);
    else mem_free((void *)(uintptr_t)f->data);
    memset(f, 0, sizeof *f);
}

bool os_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool os_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool os_file_lock(const os_file *f) { return f->size == 0 || mlock(f->data, (size_t)f->size) == 0; }

void os_file_prefetch(const os_file *f, uint64_t offset, uint64_t bytes)
{
    if (!f->mapped || offset >= f->size) return;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset / page * page;
    if (bytes > f->size - offset) bytes = f->size - offset;
    madvise((void *)(uintptr_t)(f->data + from), (size_t)(offset - from + bytes), MADV_WILLNEED);
}

bool os_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

loam_status os_make_folder(const char *path, loam_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return LOAM_OK;
    return fail_sys(err, errno, "%s: the folder cannot be made", path);
}

loam_status os_check_target(const char *path, loam_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return LOAM_OK;
    if (S_ISDIR(st.st_mode)) return fail_sys(err, EISDIR, "%s", path);
    return fail(err, LOAM_E_IO, "%s: exists and is not a regular file; it is left alone", path);
}

loam_status os_follow_link(const char *path, char **out, loam_error *err)
{
    char target[PATH_MAX];
    struct stat st;
    *out = NULL;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        if (!realpath(path, target)) return fail_sys(err, errno, "%s: the link leads nowhere", path);
        path = target;
    }
    *out = mem_strdup(path, strlen(path));
    return *out ? LOAM_OK : fail_nomem(err, "a path", strlen(path) + 1);
}

loam_status os_replace(const char *from, const char *to, loam_error *err)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_sys(err, errno, "%s: cannot open", from);
    int bad = fsync(fd) != 0 ? errno : 0;
    close(fd);
    if (bad) return fail_sys(err, bad, "%s: cannot sync", from);
    if (rename(from, to) != 0) return fail_sys(err, errno, "%s: cannot rename to %s", from, to);
    return LOAM_OK;
}

/* ---- machine ---- */

/* First line of a small file; false where it cannot be read. */
static bool first_line(const char *path, char *line, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, (int)n, f) != NULL;
    fclose(f);
    return ok;
}

uint64_t os_process_id(void) { return (uint64_t)getpid(); }

int os_cpu_count(void)
{
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    else n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    char line[64];
    long long quota, period;
    if (first_line("/sys/fs/cgroup/cpu.max", line, sizeof line) && sscanf(line, "%lld %lld", &quota, &period) == 2 && period > 0) {
        long long whole = (quota + period - 1) / period;
        if (whole >= 1 && whole < n) n = (int)whole;
    }
    return n < 1 ? 1 : n;
}

uint64_t os_memory_available(void)
{
    uint64_t free_bytes = UINT64_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    if (f) {
        char line[128];
        unsigned long long kib;
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) free_bytes = (uint64_t)kib * 1024;
        fclose(f);
    }
    char line[64];
    unsigned long long most, used;
    if (first_line("/sys/fs/cgroup/memory.max", line, sizeof line) && sscanf(line, "%llu", &most) == 1 &&
        first_line("/sys/fs/cgroup/memory.current", line, sizeof line) && sscanf(line, "%llu", &used) == 1) {
        uint64_t left = most > used ? most - used : 0;
        if (left < free_bytes) free_bytes = left;
    }
    struct rlimit lim;
    if (getrlimit(RLIMIT_AS, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < free_bytes) free_bytes = lim.rlim_cur;
    return free_bytes;
}

uint64_t os_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t os_random_u64(void)
{
    uint64_t v;
    if (getrandom(&v, sizeof v, 0) != (ssize_t)sizeof v) v = os_now_ns() * 0x9E3779B97F4A7C15u;
    return v;
}

const char *os_error_text(int sys, char *text, size_t size) { return strerror_r(sys, text, size); }

/* ---- large memory ---- */

void *os_reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

void os_release(void *p, size_t bytes)
{
    if (p) munmap(p, bytes);
}

/* ---- threads ---- */

struct os_thread {
    pthread_t id;
    void (*fn)(void *);
    void *arg;
};

static void *thread_main(void *p)
{
    os_thread *t = p;
    t->fn(t->arg);
    return NULL;
}

/* Signals of the process are for the threads of the program: a worker's stack is small and its system calls are ours. What
 * a fault of the thread itself raises stays open. */
static void ignore_signals(sigset_t *set)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF };
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(set, faults[i]);
}

os_thread *os_thread_start(void (*fn)(void *), void *arg)
{
    os_thread *t = mem_alloc(sizeof *t);
    if (!t) return NULL;
    t->fn = fn;
    t->arg = arg;
    pthread_attr_t attr;
    bool ok = pthread_attr_init(&attr) == 0;
    if (ok) {
        size_t stack = 256 * 1024;
        if (stack < (size_t)PTHREAD_STACK_MIN) stack = (size_t)PTHREAD_STACK_MIN;
        pthread_attr_setstacksize(&attr, stack);
        sigset_t blocked, before;
        ignore_signals(&blocked);
        pthread_sigmask(SIG_SETMASK, &blocked, &before);
        ok = pthread_create(&t->id, &attr, thread_main, t) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attr);
    }
    if (ok) return t;
    mem_free(t);
    return NULL;
}

void os_thread_join(os_thread *t)
{
    if (!t) return;
    pthread_join(t->id, NULL);
    mem_free(t);
}

uint64_t os_thread_id(void) { return (uint64_t)syscall(SYS_gettid); }

void os_futex_wait(const uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void os_futex_wake_all(const uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

void os_yield(void) { sched_yield(); }

void *os_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void *os_library_symbol(void *library, const char *name) { return dlsym(library, name); }
void os_library_close(void *library) { dlclose(library); }
