/* lora.c - `loam lora merge BASE ADAPTER OUT`: a model whose weights have the adapter's additions in them,
 *
 *     W' = W + strength * alpha / rank * B A        (token_embd.weight: row' = row + ... B a, a the token's row of A)
 *
 * computed row by row in floats and stored in the type that the weight had. The base file is not changed. */
#include <stdlib.h>
#include <string.h>

#include "loam/adapter.h"
#include "loam/gguf.h"
#include "loam/quant.h"
#include "session.h"

typedef struct merger {
    const options *o;
    loam_gguf *base, *adapter;
    loam_gguf_writer *writer;
    float strength, alpha;
    int changed;
} merger;

/* A factor matrix as floats: rows of ne[0] values. */
typedef struct factor {
    float *data;
    int64_t width, rows, mats;
} factor;

static bool load_factor(const merger *m, const char *stem, const char *suffix, factor *f)
{
    char name[96];
    loam_gguf_tensor t;
    loam_error err;
    snprintf(name, sizeof name, "%s%s", stem, suffix);
    *f = (factor){ 0 };
    if (!loam_gguf_tensor_find(m->adapter, name, &t)) return false;
    *f = (factor){ .width = t.ne[0], .rows = t.ne[1], .mats = t.ne[2] };
    f->data = need(malloc((size_t)(t.ne[0] * t.ne[1] * t.ne[2]) * sizeof(float) + 1));
    loam_rows shape = { .type = t.type, .rows = t.ne[1] * t.ne[2], .n = t.ne[0] };
    if (loam_quant_decode(&shape, t.data, t.bytes, f->data, &err) == LOAM_OK) return true;
    free(f->data);
    f->data = NULL;
    return false;
}

/* row += scale * sum over r of left[r] * right row r; right is [rank][n] for matrices. */
static void add_row(float *row, int64_t n, const float *left, const float *right, int64_t rank, float scale)
{
    for (int64_t r = 0; r < rank; r++) {
        float s = scale * left[r];
        for (int64_t i = 0; i < n; i++) row[i] += s * right[r * n + i];
    }
}

/* The token's row: row[d] += scale * sum over r of b[d][r] * a[r]. */
static void add_table_row(float *row, int64_t n, const float *a, const float *b, int64_t rank, float scale)
{
    for (int64_t d = 0; d < n; d++) {
        float sum = 0;
        for (int64_t r = 0; r < rank; r++) sum += b[d * rank + r] * a[r];
        row[d] += scale * sum;
    }
}

static int merge_rows(merger *m, const loam_gguf_tensor *t, const factor *a, const factor *b)
{
    bool table = strcmp(t->name, "token_embd.weight") == 0;
    int64_t n = t->ne[0], rows = t->ne[1] * t->ne[2], rank = b->width;
    float scale = m->alpha != 0 ? m->strength * m->alpha / (float)rank : m->strength;
    loam_rows one = { .type = t->type, .rows = 1, .n = n };
    uint64_t bytes;
    loam_error err;
    if (loam_quant_bytes(&one, &bytes, &err) != LOAM_OK) return say_error(m->o, &err);
    float *row = need(malloc((size_t)n * sizeof *row + 1));
    uint8_t *out = need(malloc(bytes + 1));
    loam_status status = LOAM_OK;
    for (int64_t i = 0; i < rows && status == LOAM_OK; i++) {
        int64_t mat = i / t->ne[1], in = i % t->ne[1];
        status = loam_quant_decode(&one, (const uint8_t *)t->data + (uint64_t)i * bytes, bytes, row, &err);
        if (status != LOAM_OK) break;
        if (table) add_table_row(row, n, a->data + i * rank, b->data, rank, scale);
        else add_row(row, n, b->data + (mat * t->ne[1] + in) * rank, a->data + mat * rank * n, rank, scale);
        status = loam_quant_encode(&one, row, NULL, out, bytes, &err);
        if (status == LOAM_OK) status = loam_gguf_writer_put(m->writer, out, bytes, &err);
    }
    free(row);
    free(out);
    m->changed++;
    return status == LOAM_OK ? EXIT_DONE : say_failed(m->o, "%s: %s", t->name, err.message);
}

static int merge_tensor(merger *m, const loam_gguf_tensor *t)
{
    factor a, b;
    loam_error err;
    if (!load_factor(m, t->name, ".lora_a", &a)) {
        if (t->bytes == 0 || loam_gguf_writer_put(m->writer, t->data, t->bytes, &err) == LOAM_OK) return EXIT_DONE;
        return say_error(m->o, &err);
    }
    int code = load_factor(m, t->name, ".lora_b", &b) ? EXIT_DONE : say_failed(m->o, "%s has no lora_b", t->name);
    if (code == EXIT_DONE && loam_quant_weight_need(t->type) == LOAM_WEIGHTS_REQUIRED)
        code = say_failed(m->o, "%s: rows of type %s cannot be written without an importance matrix; merge into the unquantized model", t->name,
                          loam_type_name(t->type));
    if (code == EXIT_DONE) code = merge_rows(m, t, &a, &b);
    free(a.data);
    free(b.data);
    return code;
}

static int write_merged(merger *m, const char *path)
{
    loam_gguf_builder *builder = NULL;
    loam_error err;
    loam_gguf_tensor t;
    loam_status status = loam_gguf_builder_create(&builder, m->base, true, &err);
    /* Every tensor comes through the writer, whole or merged. */
    for (uint32_t i = 0; status == LOAM_OK && loam_gguf_tensor_at(m->base, i, &t); i++) loam_gguf_set_tensor(builder, t.name, t.type, t.ne, NULL);
    if (status == LOAM_OK) status = loam_gguf_writer_open(&m->writer, builder, path, NULL, &err);
    int code = status == LOAM_OK ? EXIT_DONE : say_error(m->o, &err);
    progress bar;
    uint32_t n = loam_gguf_n_tensors(m->base);
    progress_begin(&bar, "merging", n);
    for (uint32_t i = 0; i < n && code == EXIT_DONE && loam_gguf_tensor_at(m->base, i, &t); i++) {
        code = merge_tensor(m, &t);
        progress_at(&bar, i + 1);
    }
    progress_end(&bar);
    if (code != EXIT_DONE) loam_gguf_writer_cancel(m->writer);
    else if (loam_gguf_writer_close(m->writer, &err) != LOAM_OK) code = say_error(m->o, &err);
    loam_gguf_builder_free(builder);
    return code;
}

int cmd_lora_merge(const options *o)
{
    merger m = { .o = o, .strength = (float)opt_num(o, OPT_STRENGTH) };
    loam_error err;
    loam_model *model = NULL;
    loam_adapter *checked = NULL;
    show_log(o);
    /* The library's own check of the pair says what does not fit. */
    loam_status status = loam_model_open(&model, o->words[0], NULL, &err);
    if (status == LOAM_OK) status = loam_adapter_open(&checked, model, o->words[1], &err);
    if (status == LOAM_OK) m.alpha = loam_adapter_alpha(checked);
    if (status == LOAM_OK) status = loam_gguf_open(&m.base, o->words[0], NULL, &err);
    if (status == LOAM_OK) status = loam_gguf_open_adapter(&m.adapter, o->words[1], m.base, &err);
    int code = status == LOAM_OK ? write_merged(&m, o->words[2]) : say_error(o, &err);
    if (code == EXIT_DONE) printf("%d of %u tensors changed\n", m.changed, loam_gguf_n_tensors(m.base));
    loam_gguf_free(m.adapter);
    loam_gguf_free(m.base);
    loam_adapter_free(checked);
    loam_model_free(model);
    return code;
}
