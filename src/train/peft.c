/* peft.c - an adapter as Hugging Face's PEFT stores it: a folder with
 *
 *   adapter_config.json         rank, alpha, the matrices
 *   adapter_model.safetensors   length of the header (8 bytes) | header in JSON | values in F32
 *
 * Names: blk.3.attn_q.weight.lora_a becomes base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight. Refused: a matrix
 * that has no such name (of the families whose modules are named as in llama's). Both files are written whole, the
 * configuration last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/mem.h"
#include "base/os.h"
#include "train/job.h"

static const struct {
    const char *ours, *theirs;
} modules[] = {
    { "attn_q", "self_attn.q_proj" },      { "attn_k", "self_attn.k_proj" },  { "attn_v", "self_attn.v_proj" },
    { "attn_output", "self_attn.o_proj" }, { "ffn_gate", "mlp.gate_proj" },   { "ffn_up", "mlp.up_proj" },
    { "ffn_down", "mlp.down_proj" },
};

typedef struct out_text {
    char *data;
    size_t len, cap;
    bool failed;
} out_text;

static void put(out_text *o, const char *s)
{
    size_t n = strlen(s);
    if (o->failed || !mem_grow(&o->data, &o->cap, o->len + n + 1, 1, SIZE_MAX / 4)) {
        o->failed = true;
        return;
    }
    memcpy(o->data + o->len, s, n + 1);
    o->len += n;
}

/* "blk.3.attn_q.weight.lora_a" to block 3, module 0, 'a'. */
static bool parse(const char *name, long *block, size_t *module, char *which)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0) return false;
    *block = strtol(name + 4, &end, 10);
    if (*end++ != '.') return false;
    for (*module = 0; *module < sizeof modules / sizeof *modules; ++*module) {
        size_t n = strlen(modules[*module].ours);
        if (strncmp(end, modules[*module].ours, n) || strncmp(end + n, ".weight.lora_", 13)) continue;
        *which = end[n + 13];
        return true;
    }
    return false;
}

static loam_status make_header(const loam_trainer *t, out_text *o, bool used[8], loam_error *err)
{
    uint64_t at = 0;
    loam_train_tensor x;
    put(o, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; loam_trainer_tensor(t, i, &x); i++) {
        char entry[384], which;
        long block;
        size_t m;
        if (!parse(x.name, &block, &m, &which)) return fail(err, LOAM_E_UNSUPPORTED, "PEFT: there is no module for %.80s", x.name);
        used[m] = true;
        snprintf(entry, sizeof entry,
                 ",\"base_model.model.model.layers.%ld.%s.lora_%c.weight\":{\"dtype\":\"F32\",\"shape\":[%lld,%lld],\"data_offsets\":[%llu,%llu]}",
                 block, modules[m].theirs, which == 'a' ? 'A' : 'B', (long long)x.ne[1], (long long)x.ne[0], (unsigned long long)at,
                 (unsigned long long)(at + x.n * 4));
        put(o, entry);
        at += x.n * 4;
    }
    put(o, "}");
    while (!o->failed && o->len % 8) put(o, " ");
    return o->failed ? fail_nomem(err, "the header of an adapter", o->len) : LOAM_OK;
}

static loam_status finish(atomic_file *f, loam_status s, loam_error *err)
{
    if (s == LOAM_OK) s = atomic_finish(f, err);
    if (s == LOAM_OK) s = atomic_commit(f, err);
    atomic_free(f);
    return s;
}

static loam_status write_tensors(const loam_trainer *t, const out_text *header, const char *path, loam_error *err)
{
    atomic_file *f;
    loam_status s = atomic_open(&f, path, err);
    if (s != LOAM_OK) return s;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header->len >> 8 * i);
    s = atomic_write(f, length, sizeof length, err);
    if (s == LOAM_OK) s = atomic_write(f, header->data, header->len, err);
    loam_train_tensor x;
    for (size_t i = 0; s == LOAM_OK && loam_trainer_tensor(t, i, &x); i++) s = atomic_write(f, x.data, (size_t)x.n * 4, err);
    return finish(f, s, err);
}

static loam_status write_config(const job_config *c, const bool *used, const char *path, loam_error *err)
{
    out_text o = { 0 };
    char line[160];
    atomic_file *f;
    /* Thousandths: no text of a float depends on the locale. */
    long long alpha = (long long)(c->lora_alpha * 1000 + 0.5), dropout = (long long)(c->lora_dropout * 1000000 + 0.5);
    put(&o, "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n  \"bias\": \"none\",\n  \"inference_mode\": true,\n");
    snprintf(line, sizeof line, "  \"r\": %lld,\n  \"lora_alpha\": %lld.%03lld,\n  \"lora_dropout\": 0.%06lld,\n", (long long)c->lora_rank,
             alpha / 1000, alpha % 1000, dropout);
    put(&o, line);
    put(&o, "  \"target_modules\": [");
    bool comma = false;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (!used[i]) continue;
        snprintf(line, sizeof line, "%s\"%s\"", comma ? ", " : "", strchr(modules[i].theirs, '.') + 1);
        put(&o, line);
        comma = true;
    }
    put(&o, "]\n}\n");
    loam_status s = o.failed ? fail_nomem(err, "the configuration of an adapter", o.len) : atomic_open(&f, path, err);
    if (s == LOAM_OK) s = finish(f, atomic_write(f, o.data, o.len, err), err);
    mem_free(o.data);
    return s;
}

loam_status peft_write(const loam_trainer *t, const job_config *c, const char *folder, loam_error *err)
{
    char path[4096];
    bool used[8] = { false };
    out_text header = { 0 };
    if (strlen(folder) > sizeof path - 64) return fail(err, LOAM_E_ARG, "the name of the folder is too long");
    loam_status s = make_header(t, &header, used, err);
    if (s == LOAM_OK) s = os_make_folder(folder, err);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    if (s == LOAM_OK) s = write_tensors(t, &header, path, err);
    mem_free(header.data);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    return s == LOAM_OK ? write_config(c, used, path, err) : s;
}
