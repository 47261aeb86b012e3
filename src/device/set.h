/* set.h - a set of devices: what each can do, and the memory it has left.
 *
 * Devices of one memory domain read each other's memory: an accelerator shares that of the first CPU device. What crosses
 * domains is copied. */
#ifndef LOAM_DEVICE_SET_H
#define LOAM_DEVICE_SET_H

#include <stdatomic.h>

#include "base/limits.h"
#include "graph/plan.h"
#include "loam/device.h"

struct loam_buffer_type {
    loam_device *device;
};

struct loam_device {
    int index, domain;             /* domain: index of the device whose memory it uses */
    char name[16];
    const char *description;
    loam_device_kind kind;
    const device *code;
    uint64_t limit;                /* bytes of memory; 0: what the machine has */
    _Atomic uint64_t used;         /* of a domain: in its first device */
    loam_device *memory;           /* the device of its domain */
    loam_buffer_type plain, host;
};

struct loam_devices {
    int n;
    loam_device at[LIMIT_DEVICES];
    struct blas *blas;             /* NULL where it is not in use */
};

/* Zeroed memory of the device's domain; NOMEM names the device and `what`. */
loam_status device_take(loam_device *d, uint64_t bytes, const char *what, uint8_t **out, loam_error *err);
void device_give(loam_device *d, uint8_t *p, uint64_t bytes);
/* The same accounting for memory that is somebody else's (the cache of a context). */
loam_status device_charge(loam_device *d, uint64_t bytes, const char *what, loam_error *err);
void device_refund(loam_device *d, uint64_t bytes);

bool device_supports(const loam_device *d, const value *v);
/* Columns from which on far weights are fetched. */
#define OFFLOAD_COLUMNS 32
bool device_worth(const loam_device *d, const value *v);

/* blas.c: loads the library. */
loam_status blas_open(loam_devices *set, loam_error *err);
void blas_close(loam_devices *set);
const device *blas_code(const loam_devices *set);
bool blas_supports(const value *v);

#endif
