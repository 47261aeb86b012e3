/* set.c - sets of devices from a text, their memory, and buffers of it. */
#include "device/set.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "device/cpu.h"

#define BUFFER_ALIGN 64
#define MOST_CPUS 8

struct loam_buffer {
    const loam_buffer_type *type;
    uint8_t *base;
    uint64_t bytes;
    loam_usage usage;
};

/* ---- the text ---- */

static loam_device *add(loam_devices *set, loam_device_kind kind, const device *code)
{
    loam_device *d = &set->at[set->n];
    d->index = d->domain = set->n++;
    d->kind = kind;
    d->code = code;
    d->description = code->description;
    d->memory = d;
    d->plain.device = d->host.device = d;
    return d;
}

static bool number(const char **at, const char *end, uint64_t *n)
{
    const char *p = *at;
    for (*n = 0; p < end && *p >= '0' && *p <= '9'; p++)
        if (!mul_ok(*n, 10, n) || !add_ok(*n, (uint64_t)(*p - '0'), n)) return false;
    bool any = p > *at;
    *at = p;
    return any;
}

/* "64M" */
static bool size_of(const char **at, const char *end, uint64_t *bytes)
{
    if (!number(at, end, bytes)) return false;
    const char *units = "KMG", *u = *at < end ? strchr(units, **at & ~32) : NULL;
    if (!u || !**at) return true;
    ++*at;
    return mul_ok(*bytes, 1ull << (10 * (u - units + 1)), bytes);
}

/* cpu[:N[:LIMIT]] behind "cpu". */
static bool add_cpus(loam_devices *set, const char *at, const char *end)
{
    uint64_t n = 1, limit = 0;
    if (at < end && *at == ':' && (++at, !number(&at, end, &n))) return false;
    if (at < end && *at == ':' && (++at, !size_of(&at, end, &limit) || limit == 0)) return false;
    if (at != end || n < 1 || n > MOST_CPUS || set->n + (int)n > LIMIT_DEVICES) return false;
    for (uint64_t i = 0; i < n; i++) add(set, LOAM_DEVICE_CPU, device_cpu())->limit = limit;
    return true;
}

static loam_status add_entry(loam_devices *set, const char *at, const char *end, bool *blas, loam_error *err)
{
    size_t n = (size_t)(end - at);
    if (n == 4 && memcmp(at, "blas", 4) == 0 && !*blas) {
        *blas = true;
        return LOAM_OK;
    }
    if (n >= 3 && memcmp(at, "cpu", 3) == 0 && add_cpus(set, at + 3, end)) return LOAM_OK;
    return fail(err, LOAM_E_ARG, "devices: '%.*s' is no cpu[:N[:LIMIT]] with N within 1 .. %d, and not blas", (int)(n < 64 ? n : 64), at, MOST_CPUS);
}

loam_status loam_devices_open(loam_devices **out, const char *spec, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_devices_open: out is NULL");
    *out = NULL;
    loam_devices *set = mem_zalloc(sizeof *set);
    if (!set) return fail_nomem(err, "a set of devices", sizeof *set);
    bool blas = false;
    loam_status status = LOAM_OK;
    for (const char *at = spec; at && status == LOAM_OK; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        status = add_entry(set, at, at + strcspn(at, ","), &blas, err);
    if (status == LOAM_OK && set->n == 0) add(set, LOAM_DEVICE_CPU, device_cpu());
    int cpus = set->n;
    for (int i = 0; i < cpus; i++) {
        if (cpus == 1) memcpy(set->at[i].name, "CPU", 4);
        else snprintf(set->at[i].name, sizeof set->at[i].name, "CPU%d", i);
    }
    if (status == LOAM_OK && blas) status = set->n < LIMIT_DEVICES ? blas_open(set, err) : fail(err, LOAM_E_ARG, "devices: more than %d", LIMIT_DEVICES);
    if (status == LOAM_OK && blas) {
        loam_device *d = add(set, LOAM_DEVICE_ACCELERATOR, blas_code(set));
        memcpy(d->name, "BLAS", 5);
        d->domain = 0;
        d->memory = &set->at[0];
    }
    if (status != LOAM_OK) {
        loam_devices_free(set);
        return status;
    }
    *out = set;
    return LOAM_OK;
}

void loam_devices_free(loam_devices *set)
{
    if (!set) return;
    blas_close(set);
    mem_free(set);
}

int loam_devices_count(const loam_devices *set) { return set ? set->n : 0; }

loam_device *loam_devices_at(const loam_devices *set, int i)
{
    return set && i >= 0 && i < set->n ? (loam_device *)(uintptr_t)&set->at[i] : NULL;
}

/* ---- memory ---- */

static uint64_t left_of(const loam_device *d)
{
    uint64_t machine = os_memory_available(), used = atomic_load(&d->memory->used);
    if (!d->memory->limit) return machine;
    uint64_t own = d->memory->limit > used ? d->memory->limit - used : 0;
    return own < machine ? own : machine;
}

loam_status device_charge(loam_device *d, uint64_t bytes, const char *what, loam_error *err)
{
    uint64_t left = left_of(d);
    if (bytes > left)
        return fail(err, LOAM_E_NOMEM, "device %s: %s need %llu bytes, it has %llu left", d->memory->name, what, (unsigned long long)bytes,
                    (unsigned long long)left);
    atomic_fetch_add(&d->memory->used, bytes);
    return LOAM_OK;
}

void device_refund(loam_device *d, uint64_t bytes) { atomic_fetch_sub(&d->memory->used, bytes); }

loam_status device_take(loam_device *d, uint64_t bytes, const char *what, uint8_t **out, loam_error *err)
{
    *out = NULL;
    loam_status status = device_charge(d, bytes, what, err);
    if (status != LOAM_OK || bytes == 0) return status;
    *out = bytes <= SIZE_MAX / 2 ? os_reserve((size_t)bytes) : NULL;
    if (*out) return LOAM_OK;
    device_refund(d, bytes);
    return fail_nomem(err, what, bytes);
}

void device_give(loam_device *d, uint8_t *p, uint64_t bytes)
{
    if (!p) return;
    os_release(p, (size_t)bytes);
    device_refund(d, bytes);
}

/* ---- facts ---- */

void loam_device_get_info(const loam_device *d, loam_device_info *out)
{
    if (!d || !out) return;
    uint64_t left = left_of(d);
    *out = (loam_device_info){
        .name = d->name, .description = d->description, .kind = d->kind, .memory_free = left,
        .memory_total = d->memory->limit ? d->memory->limit : left + atomic_load(&d->memory->used),
        .async = true, .host_buffers = true, .events = true, .mapped_files = true,
    };
}

bool device_supports(const loam_device *d, const value *v)
{
    if (!d->code->kernel(v->op)) return false;
    return d->kind != LOAM_DEVICE_ACCELERATOR || blas_supports(v);
}

bool device_worth(const loam_device *d, const value *v)
{
    bool product = v->op == OP_MATMUL || v->op == OP_MATMUL_HEADS || v->op == OP_EXPERTS;
    return product && v->ne[2] >= OFFLOAD_COLUMNS && device_supports(d, v);
}

/* ---- buffers ---- */

const loam_buffer_type *loam_device_buffer_type(const loam_device *d) { return d ? &d->plain : NULL; }
const loam_buffer_type *loam_device_host_buffer_type(const loam_device *d) { return d ? &d->host : NULL; }
size_t loam_buffer_type_alignment(const loam_buffer_type *t) { return t ? BUFFER_ALIGN : 0; }
uint64_t loam_buffer_type_max_size(const loam_buffer_type *t)
{
    if (!t) return 0;
    return t->device->memory->limit ? t->device->memory->limit : SIZE_MAX / 2;
}
bool loam_buffer_type_is_host(const loam_buffer_type *t) { return t != NULL; }
loam_device *loam_buffer_type_device(const loam_buffer_type *t) { return t ? t->device : NULL; }

uint64_t loam_buffer_type_tensor_bytes(const loam_buffer_type *t, const loam_tensor *x)
{
    uint64_t n = t && x ? loam_tensor_bytes(x) : 0;
    return (n + BUFFER_ALIGN - 1) & ~(uint64_t)(BUFFER_ALIGN - 1);
}

loam_status loam_buffer_new(loam_buffer **out, const loam_buffer_type *type, uint64_t bytes, loam_error *err)
{
    if (!out || !type) return fail(err, LOAM_E_ARG, "loam_buffer_new: %s is NULL", out ? "the type" : "out");
    *out = NULL;
    if (bytes == 0) return fail(err, LOAM_E_ARG, "loam_buffer_new: no bytes");
    loam_buffer *b = mem_zalloc(sizeof *b);
    if (!b) return fail_nomem(err, "a buffer", sizeof *b);
    loam_status status = device_take(type->device, bytes, "a buffer", &b->base, err);
    if (status != LOAM_OK) {
        mem_free(b);
        return status;
    }
    b->type = type;
    b->bytes = bytes;
    *out = b;
    return LOAM_OK;
}

void loam_buffer_free(loam_buffer *b)
{
    if (!b) return;
    device_give(b->type->device, b->base, b->bytes);
    mem_free(b);
}

uint64_t loam_buffer_size(const loam_buffer *b) { return b ? b->bytes : 0; }
const loam_buffer_type *loam_buffer_get_type(const loam_buffer *b) { return b ? b->type : NULL; }
void *loam_buffer_base(const loam_buffer *b) { return b ? b->base : NULL; }
loam_usage loam_buffer_get_usage(const loam_buffer *b) { return b ? b->usage : LOAM_USAGE_ANY; }

void loam_buffer_clear(loam_buffer *b, uint8_t byte)
{
    if (b) memset(b->base, byte, (size_t)b->bytes);
}

void loam_buffer_set_usage(loam_buffer *b, loam_usage usage)
{
    if (b) b->usage = usage;
}

loam_status loam_buffer_init_tensor(loam_buffer *b, const loam_tensor *x, uint64_t offset, loam_error *err)
{
    if (!b || !x) return fail(err, LOAM_E_ARG, "loam_buffer_init_tensor: %s is NULL", b ? "the tensor" : "the buffer");
    uint64_t bytes = loam_tensor_bytes(x);
    if (offset % BUFFER_ALIGN || offset > b->bytes || bytes > b->bytes - offset)
        return fail(err, LOAM_E_ARG, "%s: %llu bytes at %llu do not lie in a buffer of %llu (places are multiples of %d)", loam_tensor_name(x),
                    (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)b->bytes, BUFFER_ALIGN);
    return LOAM_OK;
}

static loam_status check_place(loam_place p, uint64_t bytes, const void *data, loam_error *err)
{
    if (!p.buffer || !data) return fail(err, LOAM_E_ARG, "%s is NULL", p.buffer ? "data" : "the buffer");
    if (p.offset <= p.buffer->bytes && bytes <= p.buffer->bytes - p.offset) return LOAM_OK;
    return fail(err, LOAM_E_ARG, "%llu bytes at %llu do not lie in a buffer of %llu", (unsigned long long)bytes, (unsigned long long)p.offset,
                (unsigned long long)p.buffer->bytes);
}

loam_status loam_buffer_set(loam_place to, const void *data, size_t bytes, loam_error *err)
{
    loam_status status = check_place(to, bytes, data, err);
    if (status == LOAM_OK) memcpy(to.buffer->base + to.offset, data, bytes);
    return status;
}

loam_status loam_buffer_get(loam_place from, void *data, size_t bytes, loam_error *err)
{
    loam_status status = check_place(from, bytes, data, err);
    if (status == LOAM_OK) memcpy(data, from.buffer->base + from.offset, bytes);
    return status;
}

loam_status loam_buffer_copy(loam_place to, loam_place from, uint64_t bytes, loam_error *err)
{
    loam_status status = check_place(to, bytes, "", err);
    if (status == LOAM_OK) status = check_place(from, bytes, "", err);
    if (status == LOAM_OK) memmove(to.buffer->base + to.offset, from.buffer->base + from.offset, (size_t)bytes);
    return status;
}
