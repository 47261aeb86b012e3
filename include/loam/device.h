/* loam/device.h - devices, buffers, and the scheduler that spreads a graph over devices. UNSTABLE: the lower tier may change
 * between minor versions.
 *
 *     loam_devices *set;
 *     loam_devices_open(&set, "cpu:2:64M", &err);                 // two CPU devices of 64 MiB each
 *     loam_sched *s;
 *     loam_sched_new(&s, set, NULL, &err);
 *     loam_sched_pin(s, hidden, 1, &err);                         // this value is made on device 1
 *     loam_sched_alloc(s, graph, &err);
 *     loam_sched_compute(s, &err);
 *     loam_sched_get(s, y, out, bytes, &err);
 *
 * The CPU can present itself as several devices, each with memory of its own and a limit on it: what crosses from one to
 * another is copied, as it would be between two cards. Results are the same bits on any number of CPU devices. */
#ifndef LOAM_DEVICE_H
#define LOAM_DEVICE_H

#include "loam/pool.h"
#include "loam/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */

typedef struct loam_devices loam_devices;
typedef struct loam_device loam_device;

typedef enum loam_device_kind {
    LOAM_DEVICE_CPU, LOAM_DEVICE_GPU, LOAM_DEVICE_INTEGRATED, LOAM_DEVICE_ACCELERATOR
} loam_device_kind;

typedef struct loam_device_info {
    const char *name;              /* "CPU0", "BLAS"; lives as long as the set */
    const char *description;
    loam_device_kind kind;
    uint64_t memory_free, memory_total; /* bytes that can still be taken, and in all */
    bool async;                    /* work is queued: the caller goes on meanwhile */
    bool host_buffers;             /* its buffers can be read and written as memory */
    bool events;                   /* others can wait for a point in its queue */
    bool mapped_files;             /* it can read weights where a file is mapped */
} loam_device_info;

/* A set of devices in order of priority. spec: entries separated by commas,
 *   cpu          the CPU as one device; cpu:N or cpu:N:LIMIT: as N (1 .. 8) with LIMIT bytes each (K, M, G: powers of 1024)
 *   blas         an accelerator of large products of floats through OpenBLAS; shares the memory of the first CPU device
 * There is always a CPU; it is added where spec names none, and NULL is "cpu". Errors: ARG (spec), UNSUPPORTED (there is no
 * OpenBLAS library), NOMEM. */
LOAM_API loam_status loam_devices_open(loam_devices **out, const char *spec, loam_error *err);
LOAM_API void loam_devices_free(loam_devices *set); /* buffers, schedulers and models on it must be gone; NULL is fine */
LOAM_API int loam_devices_count(const loam_devices *set);
LOAM_API loam_device *loam_devices_at(const loam_devices *set, int i); /* NULL out of range */
LOAM_API void loam_device_get_info(const loam_device *device, loam_device_info *out);
/* Whether the device has code for the operation that makes x. */
LOAM_API bool loam_device_supports(const loam_device *device, const loam_tensor *x);
/* Whether it pays to bring far weights of that operation to the device: products with many columns. */
LOAM_API bool loam_device_worth_offloading(const loam_device *device, const loam_tensor *x);

/* ---- buffers ---- */

typedef struct loam_buffer_type loam_buffer_type; /* owned by its device */
typedef struct loam_buffer loam_buffer;
typedef enum loam_usage { LOAM_USAGE_ANY, LOAM_USAGE_WEIGHTS, LOAM_USAGE_COMPUTE } loam_usage;

LOAM_API const loam_buffer_type *loam_device_buffer_type(const loam_device *device);
/* For what the host reads often (outputs): memory of the host that the device reaches quickly. */
LOAM_API const loam_buffer_type *loam_device_host_buffer_type(const loam_device *device);
LOAM_API size_t loam_buffer_type_alignment(const loam_buffer_type *type);
LOAM_API uint64_t loam_buffer_type_max_size(const loam_buffer_type *type);
LOAM_API uint64_t loam_buffer_type_tensor_bytes(const loam_buffer_type *type, const loam_tensor *x); /* with padding */
LOAM_API bool loam_buffer_type_is_host(const loam_buffer_type *type);
LOAM_API loam_device *loam_buffer_type_device(const loam_buffer_type *type);

/* Zeroed memory of a device. NOMEM names the device, with what is wanted and what is left. */
LOAM_API loam_status loam_buffer_new(loam_buffer **out, const loam_buffer_type *type, uint64_t bytes, loam_error *err);
LOAM_API void loam_buffer_free(loam_buffer *buffer); /* no tensor may be bound to it; NULL is fine */
LOAM_API uint64_t loam_buffer_size(const loam_buffer *buffer);
LOAM_API const loam_buffer_type *loam_buffer_get_type(const loam_buffer *buffer);
LOAM_API void *loam_buffer_base(const loam_buffer *buffer);      /* NULL where it is no memory of the host */
LOAM_API void loam_buffer_clear(loam_buffer *buffer, uint8_t byte);
LOAM_API void loam_buffer_set_usage(loam_buffer *buffer, loam_usage usage); /* WEIGHTS: operations go to where they lie */
LOAM_API loam_usage loam_buffer_get_usage(const loam_buffer *buffer);
/* What a device needs to know about a tensor in one of its buffers before it is used; called by loam_tensor_bind_buffer. */
LOAM_API loam_status loam_buffer_init_tensor(loam_buffer *buffer, const loam_tensor *x, uint64_t offset, loam_error *err);
/* The data of x, a tensor of loam_tensor_new, lies in the buffer from byte `offset` on, a multiple of the alignment. */
LOAM_API loam_status loam_tensor_bind_buffer(loam_tensor *x, loam_buffer *buffer, uint64_t offset, loam_error *err);

/* Bytes into and out of a buffer, and between buffers of any devices. ARG: out of range. */
typedef struct loam_place {
    loam_buffer *buffer;
    uint64_t offset;
} loam_place;
LOAM_API loam_status loam_buffer_set(loam_place to, const void *data, size_t bytes, loam_error *err);
LOAM_API loam_status loam_buffer_get(loam_place from, void *data, size_t bytes, loam_error *err);
LOAM_API loam_status loam_buffer_copy(loam_place to, loam_place from, uint64_t bytes, loam_error *err);

/* ---- queues and events ----
 * A queue works its jobs off in order on a thread of its own. Memory that a job names must live until it is done. */

typedef struct loam_queue loam_queue;
typedef struct loam_event loam_event;

LOAM_API loam_status loam_queue_new(loam_queue **out, loam_device *device, loam_error *err);
LOAM_API void loam_queue_free(loam_queue *q);       /* after all its jobs; NULL is fine */
LOAM_API loam_status loam_queue_set(loam_queue *q, loam_place to, const void *data, size_t bytes, loam_error *err);
LOAM_API loam_status loam_queue_get(loam_queue *q, loam_place from, void *data, size_t bytes, loam_error *err);
LOAM_API loam_status loam_queue_copy(loam_queue *q, loam_place to, loam_place from, uint64_t bytes, loam_error *err);
LOAM_API void loam_queue_synchronize(loam_queue *q);
LOAM_API loam_status loam_event_new(loam_event **out, loam_device *device, loam_error *err);
LOAM_API void loam_event_free(loam_event *e);       /* nobody may wait for it; NULL is fine */
LOAM_API void loam_event_record(loam_event *e, loam_queue *q);   /* e happens when the jobs of q so far are done */
LOAM_API void loam_event_synchronize(loam_event *e);             /* returns when it has; at once where none was recorded */
LOAM_API void loam_queue_wait(loam_queue *q, loam_event *e);     /* later jobs of q wait for it */

/* ---- the scheduler ---- */

typedef struct loam_sched loam_sched;

/* Get them from loam_sched_defaults(), then change what you need. */
typedef struct loam_sched_params {
    size_t struct_size;
    int32_t graph_size;            /* most values of a graph; default 65536 */
    int32_t n_threads;             /* of each device; 0 (default): the CPUs of this process */
    loam_pool *pool;               /* lent to all devices, which then take turns; NULL (default): a pool each */
    bool parallel;                 /* several computations on their way at once, one behind the other (default false) */
    bool op_offload;               /* a device of higher priority fetches far weights for large batches (default true) */
    loam_abort_fn abort;           /* asked by every device that computes; NULL (default): never */
    void *abort_user;
    loam_tensor_observe_fn observe; /* every operation of every device, as in loam_eval_params; NULL (default): nobody */
    void *observe_user;
} loam_sched_params;
LOAM_API loam_sched_params loam_sched_defaults(void);

/* The set must outlive it. */
LOAM_API loam_status loam_sched_new(loam_sched **out, loam_devices *set, const loam_sched_params *params, loam_error *err);
LOAM_API void loam_sched_free(loam_sched *s); /* waits; NULL is fine */
/* The operation that makes x runs on device `device`; -1: the scheduler chooses again. Holds for the graph of x. */
LOAM_API loam_status loam_sched_pin(loam_sched *s, loam_tensor *x, int device, loam_error *err);
/* Shows that the worst graph fits: gives it its places and the memory back. LOAM_E_NOMEM names the device that is too small. */
LOAM_API loam_status loam_sched_reserve(loam_sched *s, loam_graph *g, loam_error *err);
/* Splits the graph and gives every value a place. The graph may be computed any number of times until the next alloc; it must
 * live and not grow until then. Errors: as loam_graph_eval, NOMEM (names the device), UNSUPPORTED (no device has the code). */
LOAM_API loam_status loam_sched_alloc(loam_sched *s, loam_graph *g, loam_error *err);
/* Computes; inputs are read from where they are bound. */
LOAM_API loam_status loam_sched_compute(loam_sched *s, loam_error *err);
/* Queues a computation: inputs that are not in buffers of usage WEIGHTS are copied at once and may then be changed. With
 * `parallel` up to LOAM_SCHED_COPIES are on their way. `out` (may be NULL) receives `bytes` of the output y when it is done. */
#define LOAM_SCHED_COPIES 4
LOAM_API loam_status loam_sched_compute_async(loam_sched *s, const loam_tensor *y, void *out, size_t bytes, loam_error *err);
/* Waits for all computations; the first failure of one of them. */
LOAM_API loam_status loam_sched_synchronize(loam_sched *s, loam_error *err);
/* An output of the last computation. */
LOAM_API loam_status loam_sched_get(loam_sched *s, const loam_tensor *x, void *out, size_t bytes, loam_error *err);
/* Forgets the graph and the pins. */
LOAM_API void loam_sched_reset(loam_sched *s);

/* ---- queries, of the allocated graph ---- */

LOAM_API int loam_sched_n_splits(const loam_sched *s);
LOAM_API int loam_sched_n_copies(const loam_sched *s);          /* values copied from device to device in a computation */
LOAM_API int loam_sched_n_pipeline_copies(const loam_sched *s); /* computations that can be on their way; 1 without parallel */
LOAM_API int loam_sched_device_of(const loam_sched *s, const loam_tensor *x); /* -1: nothing computes it */
LOAM_API uint64_t loam_sched_buffer_bytes(const loam_sched *s, int device);   /* of intermediate results there */

typedef struct loam_split {
    int device, n_ops, n_copies;   /* n_copies: values brought before it */
    const char *first_op;          /* its first operation */
} loam_split;
LOAM_API bool loam_sched_split(const loam_sched *s, int i, loam_split *out);

/* What happened when, of the computations since the last call; for looking at overlap. Returns how many there are; at most
 * `cap` are written. Times in nanoseconds of a clock that only goes on. */
typedef struct loam_sched_trace {
    int device, split, run;
    uint64_t begin_ns, end_ns;
} loam_sched_trace;
LOAM_API size_t loam_sched_take_trace(loam_sched *s, loam_sched_trace *out, size_t cap);

/* ---- the allocator of places by life time, as the scheduler uses it ---- */

typedef struct loam_places loam_places;
LOAM_API loam_status loam_places_new(loam_places **out, size_t alignment, loam_error *err);   /* a power of two */
LOAM_API void loam_places_free(loam_places *p);
LOAM_API loam_status loam_places_take(loam_places *p, uint64_t bytes, uint64_t *at, loam_error *err);
LOAM_API loam_status loam_places_give(loam_places *p, uint64_t at, uint64_t bytes, loam_error *err);
LOAM_API uint64_t loam_places_size(const loam_places *p);                                     /* bytes reached so far */

#ifdef __cplusplus
}
#endif
#endif
