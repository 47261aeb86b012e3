/* state.c - the state of a training run in a file.
 *
 *   "LOAMTRAI"  u32 version  u64 fingerprint of the model  u64 settings  i64 updates  u32 tensors
 *   for each tensor:  u32 length, name  u64 values  u32 parts (1 first moment, 2 second, 4 both in 8 bits)
 *                     values, first moment, second moment
 *   u64 length, bytes of the caller                                        u64 XXH64 of all before
 *
 * Little-endian, as the machine has its floats. Everything is checked before anything is taken over. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <string.h>

#include "base/atomic.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/reader.h"
#include "train/trainer.h"

#define VERSION 1
#define PART_FIRST 1u
#define PART_SECOND 2u
#define PART_SMALL 4u

static const char magic[8] = { 'L', 'O', 'A', 'M', 'T', 'R', 'A', 'I' };

/* What must be the same for the run to go on with the same bits, beside tensors and model. */
static uint64_t settings_of(const loam_trainer *t)
{
    const loam_trainer_params *p = &t->p;
    float f[] = { p->beta1, p->beta2, p->eps, p->momentum, p->muon_rate, p->weight_decay, p->clip_norm, p->label_smoothing,
                  p->lora_alpha, p->lora_dropout };
    uint64_t n[] = { (uint64_t)p->optimizer, p->nesterov, p->decay_all, p->small_state, p->bf16, p->seed, (uint64_t)p->lora_rank };
    return XXH64(n, sizeof n, XXH64(f, sizeof f, 0));
}

static uint32_t parts_of(const param *p) { return p->m8 ? PART_SMALL : (p->m ? PART_FIRST : 0) | (p->v ? PART_SECOND : 0); }

/* ---- writing ---- */

typedef struct out {
    atomic_file *file;
    XXH64_state_t hash;
    loam_status status;
    loam_error *err;
} out;

static void put(out *o, const void *data, size_t n)
{
    if (o->status != LOAM_OK || n == 0) return;
    XXH64_update(&o->hash, data, n);
    o->status = atomic_write(o->file, data, n, o->err);
}

static void put_int(out *o, uint64_t x, int bytes)
{
    uint8_t le[8];
    for (int i = 0; i < 8; i++) le[i] = (uint8_t)(x >> 8 * i);
    put(o, le, (size_t)bytes);
}

static void put_param(out *o, const param *p)
{
    put_int(o, strlen(p->name), 4);
    put(o, p->name, strlen(p->name));
    put_int(o, p->n, 8);
    put_int(o, parts_of(p), 4);
    put(o, p->data, (size_t)p->n * 4);
    if (p->m8) put(o, p->m8, moments8_bytes(p->n)), put(o, p->v8, moments8_bytes(p->n));
    if (p->m) put(o, p->m, (size_t)p->n * 4);
    if (p->v) put(o, p->v, (size_t)p->n * 4);
}

loam_status loam_trainer_save(loam_trainer *t, const char *path, const void *extra, size_t extra_size, loam_error *err)
{
    if (!t || !path || (extra_size && !extra)) return fail(err, LOAM_E_ARG, "loam_trainer_save: %s is NULL", !t ? "trainer" : !path ? "path" : "extra");
    if (t->weight > 0) return fail(err, LOAM_E_ARG, "a state is saved after an update: gradients have been accumulated since the last one");
    out o = { .err = err };
    o.status = atomic_open(&o.file, path, err);
    if (o.status != LOAM_OK) return o.status;
    XXH64_reset(&o.hash, 0);
    put(&o, magic, sizeof magic);
    put_int(&o, VERSION, 4);
    put_int(&o, model_fingerprint(t->model), 8);
    put_int(&o, settings_of(t), 8);
    put_int(&o, (uint64_t)t->updates, 8);
    put_int(&o, t->n_params, 4);
    for (size_t i = 0; i < t->n_params; i++) put_param(&o, &t->params[i]);
    put_int(&o, extra_size, 8);
    put(&o, extra, extra_size);
    put_int(&o, XXH64_digest(&o.hash), 8);
    if (o.status == LOAM_OK) o.status = atomic_finish(o.file, err);
    if (o.status == LOAM_OK) o.status = atomic_commit(o.file, err);
    atomic_free(o.file);
    return o.status;
}

/* ---- reading ---- */

/* One tensor: checked, and copied where `take` says so. */
static loam_status read_param(reader *r, param *p, const char *path, bool take, loam_error *err)
{
    uint32_t len = reader_u32(r);
    const char *name = (const char *)reader_take(r, len);
    uint64_t n = reader_u64(r);
    uint32_t parts = reader_u32(r);
    if (!name || len != strlen(p->name) || memcmp(name, p->name, len) != 0)
        return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: tensor '%.*s' where the trainer has '%s'", path, name ? (int)(len < 80 ? len : 80) : 0, name ? name : "", p->name);
    if (n != p->n || parts != parts_of(p))
        return fail_at(err, LOAM_E_FORMAT, r->pos, "%s: tensor '%s' has %llu values and state %u, the trainer %llu and %u", path, p->name,
                       (unsigned long long)n, parts, (unsigned long long)p->n, parts_of(p));
    struct { void *to; uint64_t bytes; } pieces[] = {
        { p->data, n * 4 }, { p->m8, p->m8 ? moments8_bytes(n) : 0 }, { p->v8, p->v8 ? moments8_bytes(n) : 0 },
        { p->m, p->m ? n * 4 : 0 }, { p->v, p->v ? n * 4 : 0 },
    };
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        const void *from = reader_take(r, pieces[i].bytes);
        if (from && take && pieces[i].bytes) memcpy(pieces[i].to, from, (size_t)pieces[i].bytes);
    }
    return r->failed ? fail_at(err, LOAM_E_FORMAT, r->pos, "%s: ends in tensor '%s'", path, p->name) : LOAM_OK;
}

typedef struct found {
    int64_t updates;
    const void *extra;
    uint64_t extra_size;
} found;

static loam_status read_state(loam_trainer *t, reader r, const char *path, bool take, found *f, loam_error *err)
{
    const void *m = reader_take(&r, sizeof magic);
    uint32_t version = reader_u32(&r);
    uint64_t fingerprint = reader_u64(&r), settings = reader_u64(&r);
    f->updates = (int64_t)reader_u64(&r);
    uint32_t n = reader_u32(&r);
    if (!m || memcmp(m, magic, sizeof magic) != 0) return fail(err, LOAM_E_FORMAT, "%s: not the state of a training run", path);
    if (version != VERSION) return fail(err, LOAM_E_UNSUPPORTED, "%s: version %u of a training state", path, version);
    if (fingerprint != model_fingerprint(t->model)) return fail(err, LOAM_E_FORMAT, "%s: the state of another model", path);
    if (settings != settings_of(t)) return fail(err, LOAM_E_FORMAT, "%s: the state of a run with another optimizer or other parameters", path);
    if (n != t->n_params || f->updates < 0) return fail(err, LOAM_E_FORMAT, "%s: %u tensors learn there, %zu here", path, n, t->n_params);
    for (uint32_t i = 0; i < n; i++) {
        loam_status status = read_param(&r, &t->params[i], path, take, err);
        if (status != LOAM_OK) return status;
    }
    f->extra_size = reader_u64(&r);
    f->extra = reader_take(&r, f->extra_size);
    return f->extra && reader_left(&r) == 0 ? LOAM_OK : fail_at(err, LOAM_E_FORMAT, r.pos, "%s: does not end where it should", path);
}

static loam_status load(loam_trainer *t, const os_file *file, const char *path, found *f, void **extra, loam_error *err)
{
    if (file->size < sizeof magic + 8) return fail(err, LOAM_E_FORMAT, "%s: not the state of a training run", path);
    reader r = { .data = file->data, .end = file->size - 8 };
    if (memcmp(file->data, magic, sizeof magic) == 0 && XXH64(file->data, (size_t)r.end, 0) != le64(file->data + r.end))
        return fail(err, LOAM_E_FORMAT, "%s: damaged: the checksum does not fit", path);
    loam_status status = read_state(t, r, path, false, f, err);
    if (status != LOAM_OK) return status;
    if (extra) {
        *extra = mem_alloc((size_t)f->extra_size);
        if (!*extra) return fail_nomem(err, "a training state", f->extra_size);
        memcpy(*extra, f->extra, (size_t)f->extra_size);
    }
    read_state(t, r, path, true, f, NULL);
    t->updates = f->updates;
    params_round(t);
    optim_zero(t);
    return LOAM_OK;
}

loam_status loam_trainer_load(loam_trainer *t, const char *path, void **extra, size_t *extra_size, loam_error *err)
{
    if (!t || !path) return fail(err, LOAM_E_ARG, "loam_trainer_load: %s is NULL", t ? "path" : "trainer");
    if (extra) *extra = NULL;
    os_file file;
    found f = { 0 };
    loam_status status = os_file_open(&file, path, true, err);
    if (status != LOAM_OK) return status;
    status = load(t, &file, path, &f, extra, err);
    os_file_close(&file);
    if (extra_size) *extra_size = status == LOAM_OK ? (size_t)f.extra_size : 0;
    return status;
}

void loam_train_free(void *p) { mem_free(p); }
