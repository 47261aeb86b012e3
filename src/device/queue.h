/* queue.h - a queue of jobs on a thread of its own, and events to wait for. One thread adds jobs. */
#ifndef LOAM_DEVICE_QUEUE_H
#define LOAM_DEVICE_QUEUE_H

#include "base/error.h"
#include "loam/device.h"

typedef struct queue_job {
    void (*run)(void *arg);
    void *arg;
} queue_job;

/* Waits while the queue is full. */
void queue_add(loam_queue *q, queue_job job);
/* Happens n times; waits until it has happened at least `n` times in all. */
void event_happen(loam_event *e);
void event_wait(const loam_event *e, uint32_t n);
uint32_t event_expect(loam_event *e); /* one more will happen: its number */

#endif
