/* save.c - what was learned as files: the model with its new weights, or the adapter alone. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/gguf_write.h"
#include "quant/quant.h"
#include "train/trainer.h"

static const param *find(const loam_trainer *t, const char *name)
{
    for (size_t i = 0; i < t->n_params; i++)
        if (strcmp(t->params[i].base->name, name) == 0) return &t->params[i];
    return NULL;
}

/* Row r of the new weight: what was learned, or base + alpha / rank B A. */
static void new_row(const loam_trainer *t, const param *p, int64_t r, float *row)
{
    int64_t n = p->base->ne[0];
    if (t->p.lora_rank == 0) {
        memcpy(row, p->data + r * n, (size_t)n * 4);
        return;
    }
    const weight *w = p->base;
    const param *b = p + 1;
    int64_t rank = t->p.lora_rank, plane = r / w->ne[1];
    float scale = t->p.lora_alpha / (float)rank;
    quant_table[w->type].decode((const char *)w->data + (uint64_t)r * w->row_bytes, row, n);
    const float *factors = b->data + r * rank, *a = p->data + plane * rank * n;
    for (int64_t k = 0; k < rank; k++)
        for (int64_t i = 0; i < n; i++) row[i] += scale * factors[k] * a[k * n + i];
}

static loam_type type_of(const param *p, loam_type wanted) { return p->base->ne[1] > 1 ? wanted : LOAM_F32; }

static loam_status put_rows(const loam_trainer *t, const param *p, loam_type type, gguf_writer *w, loam_error *err)
{
    int64_t n = p->base->ne[0];
    uint64_t bytes;
    if (!dtype_row_bytes(type, n, &bytes)) return fail(err, LOAM_E_ARG, "%s: rows of %lld values", p->base->name, (long long)n);
    float *row = mem_alloc_array((size_t)n, 4);
    void *coded = mem_alloc((size_t)bytes);
    loam_status status = row && coded ? LOAM_OK : fail_nomem(err, "a row", (uint64_t)n * 4);
    int64_t rows = p->base->ne[1] * p->base->ne[2] * p->base->ne[3];
    for (int64_t r = 0; r < rows && status == LOAM_OK; r++) {
        new_row(t, p, r, row);
        quant_table[type].encode(row, coded, n, NULL);
        status = gguf_writer_put(w, coded, bytes, err);
    }
    mem_free(row);
    mem_free(coded);
    return status;
}

/* Everything in the order of the builder: what learned row by row, the rest as it lies in the file. */
static loam_status put_all(const loam_trainer *t, loam_type type, gguf_writer *w, loam_error *err)
{
    const gguf_file *f = model_file(t->model);
    loam_status status = LOAM_OK;
    for (const char *name; status == LOAM_OK && (name = gguf_writer_turn(w)) != NULL;) {
        const param *p = find(t, name);
        const gguf_tensor *x = gguf_tensor_find(f, name);
        if (p) status = put_rows(t, p, type_of(p, type), w, err);
        else status = gguf_writer_put(w, x->data, x->bytes, err);
    }
    return status;
}

static uint32_t file_type(loam_type t) { return t == LOAM_F16 ? 1 : t == LOAM_BF16 ? 32 : 0; }

loam_status loam_trainer_save_model(const loam_trainer *t, const char *path, loam_type type, loam_error *err)
{
    if (!t || !path) return fail(err, LOAM_E_ARG, "loam_trainer_save_model: %s is NULL", t ? "path" : "trainer");
    if (type != LOAM_F32 && type != LOAM_F16 && type != LOAM_BF16)
        return fail(err, LOAM_E_ARG, "a trained model is written as f32, f16 or bf16 (quantize it afterwards), not as type %d", (int)type);
    gguf_builder *b;
    gguf_writer *w = NULL;
    loam_status status = gguf_builder_create(&b, model_file(t->model), GGUF_TAKE_KEYS, err);
    if (status != LOAM_OK) return status;
    if (gguf_key_find(model_file(t->model), "general.file_type")) gguf_set_u32(b, "general.file_type", file_type(type));
    for (uint32_t i = 0; i < gguf_tensor_count(model_file(t->model)); i++) {
        const gguf_tensor *x = gguf_tensor_at(model_file(t->model), i);
        const param *p = find(t, x->name);
        gguf_put_tensor(b, x->name, p ? type_of(p, type) : x->type, x->ne, NULL);
    }
    status = gguf_writer_open(&w, b, path, NULL, err);
    if (status == LOAM_OK) {
        status = put_all(t, type, w, err);
        if (status == LOAM_OK) status = gguf_writer_close(w, err);
        else gguf_writer_cancel(w);
    }
    gguf_builder_free(b);
    return status;
}

loam_status loam_trainer_save_adapter(const loam_trainer *t, const char *path, loam_error *err)
{
    if (!t || !path) return fail(err, LOAM_E_ARG, "loam_trainer_save_adapter: %s is NULL", t ? "path" : "trainer");
    if (t->p.lora_rank == 0) return fail(err, LOAM_E_ARG, "the trainer has no adapter: lora_rank is 0");
    gguf_builder *b;
    loam_status status = gguf_builder_create(&b, NULL, 0, err);
    if (status != LOAM_OK) return status;
    const char *arch = loam_model_architecture(t->model);
    gguf_set_text(b, "general.type", "adapter", 7);
    gguf_set_text(b, "general.architecture", arch, strlen(arch));
    gguf_set_text(b, "adapter.type", "lora", 4);
    gguf_set_f32(b, "adapter.lora.alpha", t->p.lora_alpha);
    for (size_t i = 0; i < t->n_params; i++) gguf_put_tensor(b, t->params[i].name, LOAM_F32, t->params[i].w.ne, t->params[i].data);
    status = gguf_write(b, path, NULL, err);
    gguf_builder_free(b);
    return status;
}
