/* place.c - a model on several devices: which device has which block, and its weights there.
 *
 * Device 0 is at home: it reads the weights where the file is mapped, and keeps what belongs to no block. The weights of
 * blocks on another device are copied into its memory when the model is opened.
 *
 *   layer    blocks are dealt out in order, in the proportions of tensor_split
 *   row      matrices of blocks are cut into rows instead; a product is made of its parts on all devices
 *
 * Overrides ("REGEX=DEVICE", POSIX extended) move single tensors; the first that matches counts. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/set.h"
#include "model/model_impl.h"

#define ROWS_UNIT 16 /* parts begin at multiples of it, as the parts of threads do */

struct model_places {
    loam_devices *set;
    int n_cpus;
    int8_t *layer_device;          /* [n_layer] */
    uint8_t *memory[LIMIT_DEVICES];
    uint64_t bytes[LIMIT_DEVICES], used[LIMIT_DEVICES];
    weight *parts;                 /* of matrices that are cut into rows: n_cpus each */
    size_t n_parts;
};

loam_devices *model_devices(const loam_model *m) { return m->places ? m->places->set : NULL; }

int model_device_of_layer(const loam_model *m, int layer)
{
    return m->places && layer >= 0 && layer < m->hp.n_layer ? m->places->layer_device[layer] : -1;
}

/* Share of device d of `n` devices in everything; NULL: equal shares. */
static double share(const loam_model_params *p, int d, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p->tensor_split ? (double)p->tensor_split[i] : 1;
    return (p->tensor_split ? (double)p->tensor_split[d] : 1) / sum;
}

static loam_status check(const loam_model_params *p, int n, loam_error *err)
{
    double sum = 0;
    for (int i = 0; i < n && p->tensor_split; i++) {
        if (!(p->tensor_split[i] >= 0.0f && p->tensor_split[i] < 1e30f)) return fail(err, LOAM_E_ARG, "tensor_split: share %d is not a number from 0", i);
        sum += (double)p->tensor_split[i];
    }
    if (p->tensor_split && !(sum > 0)) return fail(err, LOAM_E_ARG, "tensor_split: no device has a share");
    if (p->split_mode < LOAM_SPLIT_LAYER || p->split_mode > LOAM_SPLIT_ROW) return fail(err, LOAM_E_ARG, "split_mode: %d is not a loam_split_mode", p->split_mode);
    return LOAM_OK;
}

/* With n_gpu_layers the last blocks go to the devices behind the first; without, all devices get blocks. */
static void deal_layers(const loam_model *m, model_places *pl, const loam_model_params *p)
{
    int n = m->hp.n_layer, home = 0, first = 0;
    if (p->n_gpu_layers >= 0) home = p->n_gpu_layers < n ? n - p->n_gpu_layers : 0, first = pl->n_cpus > 1;
    double total = 0, reached = 0;
    for (int d = first; d < pl->n_cpus; d++) total += share(p, d, pl->n_cpus);
    if (total <= 0) home = n;
    int d = first;
    for (int i = home; i < n; i++) {
        double place = (i - home + 0.5) / (n - home) * total;
        while (d < pl->n_cpus - 1 && place > reached + share(p, d, pl->n_cpus)) reached += share(p, d++, pl->n_cpus);
        pl->layer_device[i] = (int8_t)d;
    }
}

static int layer_of(const char *name)
{
    const char *at = strncmp(name, "blk.", 4) == 0 ? name + 4 : strncmp(name, "dec.blk.", 8) == 0 ? name + 8 : NULL;
    int n = at && *at >= '0' && *at <= '9' ? 0 : -1;
    for (; at && *at >= '0' && *at <= '9' && n < LIMIT_LAYERS; at++) n = 10 * n + *at - '0';
    return n;
}

/* ---- overrides ---- */

typedef struct override {
    regex_t regex;
    int device;
} override;

static void free_overrides(override *o, size_t n)
{
    for (size_t i = 0; i < n; i++) regfree(&o[i].regex);
    mem_free(o);
}

static int device_named(const model_places *pl, const char *name)
{
    for (int i = 0; i < pl->n_cpus; i++)
        if (strcasecmp(pl->set->at[i].name, name) == 0) return i;
    return name[0] >= '0' && name[0] <= '9' && name[1] == 0 && name[0] - '0' < pl->n_cpus ? name[0] - '0' : -1;
}

static loam_status read_overrides(const model_places *pl, const loam_model_params *p, override **out, loam_error *err)
{
    override *o = mem_zalloc_array(p->n_overrides + 1, sizeof *o);
    if (!o) return fail_nomem(err, "overrides", p->n_overrides * sizeof *o);
    for (size_t i = 0; i < p->n_overrides; i++) {
        const char *text = p->overrides[i], *equals = text ? strrchr(text, '=') : NULL;
        char pattern[256];
        size_t n = equals ? (size_t)(equals - text) : 0;
        int d = equals ? device_named(pl, equals + 1) : -1, code = REG_BADPAT;
        if (n > 0 && n < sizeof pattern && d >= 0) {
            memcpy(pattern, text, n);
            pattern[n] = 0;
            code = regcomp(&o[i].regex, pattern, REG_EXTENDED | REG_NOSUB);
        }
        if (code != 0) {
            free_overrides(o, i);
            return fail(err, LOAM_E_ARG, "override '%.200s': not REGEX=DEVICE with a device of the set", text ? text : "(null)");
        }
        o[i].device = d;
    }
    *out = o;
    return LOAM_OK;
}

static int overridden(const override *o, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (regexec(&o[i].regex, name, 0, NULL, 0) == 0) return o[i].device;
    return -1;
}

/* ---- weights ---- */

static uint64_t bytes_of(const weight *w) { return w->row_bytes * (uint64_t)(w->ne[1] * w->ne[2] * w->ne[3]); }
static bool cut_in_rows(const loam_model_params *p, const weight *w)
{
    return p->split_mode == LOAM_SPLIT_ROW && layer_of(w->name) >= 0 && w->ne[1] >= 2 * ROWS_UNIT && w->ne[2] * w->ne[3] == 1;
}

static int64_t row_end(const loam_model_params *p, const weight *w, int d, int n)
{
    double sum = 0;
    for (int i = 0; i <= d; i++) sum += share(p, i, n);
    if (d == n - 1) return w->ne[1];
    int64_t end = (int64_t)(sum * (double)w->ne[1] + 0.5) / ROWS_UNIT * ROWS_UNIT;
    return end < w->ne[1] ? end : w->ne[1];
}

/* Bytes of the data on device d, copied there; counted only while the device has no memory yet. */
static const void *put(model_places *pl, int d, const void *data, uint64_t bytes)
{
    uint64_t at = pl->used[d];
    pl->used[d] += mem_padded(bytes);
    if (!pl->memory[d]) return data;
    memcpy(pl->memory[d] + at, data, (size_t)bytes);
    return pl->memory[d] + at;
}

static void place_rows(model_places *pl, const loam_model_params *p, weight *w, weight *parts)
{
    int64_t first = 0;
    int n = 0;
    for (int d = 0; d < pl->n_cpus; d++) {
        int64_t end = row_end(p, w, d, pl->n_cpus);
        if (end <= first) continue;
        const char *data = (const char *)w->data + (uint64_t)first * w->row_bytes;
        weight *x = &parts[n++];
        *x = *w;
        x->ne[1] = end - first;
        x->data = d == 0 ? data : put(pl, d, data, (uint64_t)(end - first) * w->row_bytes);
        x->device = d;
        x->far = x->steers = true;
        x->parts = NULL;
        first = end;
    }
    w->parts = parts;
    w->n_parts = n;
}

/* One walk over all weights: how much each device gets, then, with memory, the copies. */
static void walk(loam_model *m, model_places *pl, const loam_model_params *p, const override *o)
{
    size_t part = 0;
    bool real = pl->parts != NULL;
    memset(pl->used, 0, sizeof pl->used);
    for (uint32_t i = 0; i < gguf_tensor_count(m->file); i++) {
        weight *w = &m->weights[i];
        if (!w->data) continue;
        int d = overridden(o, p->n_overrides, w->name), layer = layer_of(w->name);
        if (d < 0 && cut_in_rows(p, w)) {
            weight scratch[LIMIT_DEVICES], copy = *w;
            place_rows(pl, p, real ? w : &copy, real ? pl->parts + part : scratch);
            part += (size_t)pl->n_cpus;
            continue;
        }
        if (d < 0) d = layer >= 0 && layer < m->hp.n_layer && p->split_mode == LOAM_SPLIT_LAYER ? pl->layer_device[layer] : 0;
        const void *data = d == 0 ? w->data : put(pl, d, w->data, bytes_of(w));
        if (real) w->data = data, w->device = d, w->far = w->steers = true;
    }
    pl->n_parts = part;
}

loam_status model_place(loam_model *m, const loam_model_params *p, loam_error *err)
{
    if (!p->devices || loam_devices_count(p->devices) < 2) return LOAM_OK;
    model_places *pl = m->places = mem_zalloc(sizeof *pl);
    if (!pl) return fail_nomem(err, "the places of a model", sizeof *pl);
    pl->set = p->devices;
    for (int i = 0; i < pl->set->n; i++) pl->n_cpus += pl->set->at[i].kind == LOAM_DEVICE_CPU;
    pl->layer_device = mem_zalloc_array((size_t)m->hp.n_layer + 1, 1);
    if (!pl->layer_device) return fail_nomem(err, "the places of a model", (uint64_t)m->hp.n_layer);
    override *o = NULL;
    loam_status status = check(p, pl->n_cpus, err);
    if (status == LOAM_OK) status = read_overrides(pl, p, &o, err);
    if (status != LOAM_OK) return status;
    if (p->split_mode == LOAM_SPLIT_LAYER) deal_layers(m, pl, p);
    walk(m, pl, p, o);
    for (int d = 1; d < pl->n_cpus && status == LOAM_OK; d++) {
        pl->bytes[d] = pl->used[d];
        status = device_take(&pl->set->at[d], pl->bytes[d], "weights", &pl->memory[d], err);
    }
    weight *parts = status == LOAM_OK ? mem_zalloc_array(pl->n_parts + 1, sizeof *parts) : NULL;
    if (status == LOAM_OK && !parts) status = fail_nomem(err, "parts of weights", pl->n_parts * sizeof *parts);
    if (status == LOAM_OK) {
        pl->parts = parts;
        walk(m, pl, p, o);
    }
    free_overrides(o, p->n_overrides);
    return status;
}

void model_unplace(loam_model *m)
{
    model_places *pl = m->places;
    if (!pl) return;
    for (int d = 1; d < pl->n_cpus; d++) device_give(&pl->set->at[d], pl->memory[d], pl->bytes[d]);
    mem_free(pl->parts);
    mem_free(pl->layer_device);
    mem_free(pl);
}
