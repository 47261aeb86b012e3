/* queue.c - see queue.h. A ring: the adder moves `tail`, the worker moves `head`, each sleeps on the other's word. */
#include "device/queue.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "device/set.h"

#define RING 256u

struct loam_event {
    _Atomic uint32_t happened;
    _Atomic uint32_t expected;     /* by those who record */
};

struct loam_queue {
    loam_device *device;
    os_thread *thread;
    _Atomic uint32_t head, tail;   /* jobs done; jobs added */
    queue_job ring[RING];
};

static void sleep_on(_Atomic uint32_t *word, uint32_t seen) { os_futex_wait((const uint32_t *)word, seen); }

static void move_on(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    os_futex_wake_all((const uint32_t *)word);
}

/* A job without a function ends the thread. */
static void work(void *arg)
{
    loam_queue *q = arg;
    for (;;) {
        uint32_t head = atomic_load(&q->head), tail;
        while ((tail = atomic_load(&q->tail)) == head) sleep_on(&q->tail, tail);
        queue_job job = q->ring[head % RING];
        if (job.run) job.run(job.arg);
        move_on(&q->head);
        if (!job.run) return;
    }
}

void queue_add(loam_queue *q, queue_job job)
{
    uint32_t tail = atomic_load(&q->tail), head;
    while (tail - (head = atomic_load(&q->head)) >= RING) sleep_on(&q->head, head);
    q->ring[tail % RING] = job;
    move_on(&q->tail);
}

loam_status loam_queue_new(loam_queue **out, loam_device *d, loam_error *err)
{
    if (!out || !d) return fail(err, LOAM_E_ARG, "loam_queue_new: %s is NULL", out ? "the device" : "out");
    loam_queue *q = *out = mem_zalloc(sizeof *q);
    if (!q) return fail_nomem(err, "a queue", sizeof *q);
    q->device = d;
    q->thread = os_thread_start(work, q);
    if (q->thread) return LOAM_OK;
    mem_free(q);
    *out = NULL;
    return fail(err, LOAM_E_NOMEM, "the system starts no thread for a queue of device %s", d->name);
}

void loam_queue_synchronize(loam_queue *q)
{
    if (!q) return;
    uint32_t tail = atomic_load(&q->tail), head;
    while ((head = atomic_load(&q->head)) != tail) sleep_on(&q->head, head);
}

void loam_queue_free(loam_queue *q)
{
    if (!q) return;
    queue_add(q, (queue_job){ NULL, NULL });
    os_thread_join(q->thread);
    mem_free(q);
}

/* ---- copies ---- */

typedef struct transfer {
    loam_place to, from;           /* one of the buffers is NULL: memory */
    void *memory;
    uint64_t bytes;
} transfer;

static void do_transfer(void *arg)
{
    transfer *t = arg;
    loam_error err; /* checked when it was queued */
    if (!t->from.buffer) loam_buffer_set(t->to, t->memory, (size_t)t->bytes, &err);
    else if (!t->to.buffer) loam_buffer_get(t->from, t->memory, (size_t)t->bytes, &err);
    else loam_buffer_copy(t->to, t->from, t->bytes, &err);
    mem_free(t);
}

static loam_status check_range(loam_place p, uint64_t bytes, loam_error *err)
{
    uint64_t size = loam_buffer_size(p.buffer);
    return p.offset <= size && bytes <= size - p.offset ? LOAM_OK : fail(err, LOAM_E_ARG, "%llu bytes at %llu do not lie in a buffer of %llu",
                                                                         (unsigned long long)bytes, (unsigned long long)p.offset, (unsigned long long)size);
}

static loam_status queue_transfer(loam_queue *q, const transfer *wanted, loam_error *err)
{
    if (!q || (!wanted->to.buffer && !wanted->from.buffer)) return fail(err, LOAM_E_ARG, "the %s is NULL", q ? "buffer" : "queue");
    if ((!wanted->to.buffer || !wanted->from.buffer) && !wanted->memory) return fail(err, LOAM_E_ARG, "data or a buffer is NULL");
    loam_status status = wanted->to.buffer ? check_range(wanted->to, wanted->bytes, err) : LOAM_OK;
    if (status == LOAM_OK && wanted->from.buffer) status = check_range(wanted->from, wanted->bytes, err);
    transfer *t = status == LOAM_OK ? mem_alloc(sizeof *t) : NULL;
    if (!t) return status != LOAM_OK ? status : fail_nomem(err, "a job of a queue", sizeof *t);
    *t = *wanted;
    queue_add(q, (queue_job){ do_transfer, t });
    return LOAM_OK;
}

loam_status loam_queue_set(loam_queue *q, loam_place to, const void *data, size_t bytes, loam_error *err)
{
    return queue_transfer(q, &(transfer){ .to = to, .memory = (void *)(uintptr_t)data, .bytes = bytes }, err);
}

loam_status loam_queue_get(loam_queue *q, loam_place from, void *data, size_t bytes, loam_error *err)
{
    return queue_transfer(q, &(transfer){ .from = from, .memory = data, .bytes = bytes }, err);
}

loam_status loam_queue_copy(loam_queue *q, loam_place to, loam_place from, uint64_t bytes, loam_error *err)
{
    if (!to.buffer || !from.buffer) return fail(err, LOAM_E_ARG, "a buffer is NULL");
    return queue_transfer(q, &(transfer){ .to = to, .from = from, .bytes = bytes }, err);
}

/* ---- events ---- */

loam_status loam_event_new(loam_event **out, loam_device *d, loam_error *err)
{
    if (!out || !d) return fail(err, LOAM_E_ARG, "loam_event_new: %s is NULL", out ? "the device" : "out");
    *out = mem_zalloc(sizeof **out);
    return *out ? LOAM_OK : fail_nomem(err, "an event", sizeof **out);
}

void loam_event_free(loam_event *e) { mem_free(e); }

void event_happen(loam_event *e) { move_on(&e->happened); }
uint32_t event_expect(loam_event *e) { return atomic_fetch_add(&e->expected, 1) + 1; }

void event_wait(const loam_event *e, uint32_t n)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)(uintptr_t)&e->happened;
    uint32_t seen;
    while ((int32_t)((seen = atomic_load(word)) - n) < 0) sleep_on(word, seen);
}

static void happen(void *arg) { event_happen(arg); }

void loam_event_record(loam_event *e, loam_queue *q)
{
    if (!e || !q) return;
    event_expect(e);
    queue_add(q, (queue_job){ happen, e });
}

void loam_event_synchronize(loam_event *e)
{
    if (e) event_wait(e, atomic_load(&((loam_event *)(uintptr_t)e)->expected));
}

/* The number is read when the job runs: an event recorded again meanwhile makes the queue wait for the later one. */
static void wait_for(void *arg)
{
    const loam_event *e = arg;
    event_wait(e, atomic_load(&((loam_event *)(uintptr_t)e)->expected));
}

void loam_queue_wait(loam_queue *q, loam_event *e)
{
    if (q && e && atomic_load(&e->expected)) queue_add(q, (queue_job){ wait_for, e });
}
