/* quantize.c - see loam/quantize.h.
 *
 *     file in ── plan: a type for each tensor ── for each tensor, for each piece of some rows:
 *                    threads: rows ── decode ── check ── encode ── piece of the output ── writer ── file out
 *
 * A tensor that keeps its type is copied byte for byte. Pieces hold whole rows and some megabytes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"
#include "file/gguf.h"
#include "file/gguf_write.h"
#include "imatrix/imatrix.h"
#include "loam/quantize.h"
#include "quant/mix.h"
#include "quant/quant.h"
#include "quantize/budget.h"
#include "quantize/convert.h"

#define COPY_BYTES   (8u << 20)

typedef struct work {
    const loam_quantize_params *p;
    gguf_file *in;
    gguf_builder *builder;
    gguf_writer *writer;
    pool *threads;
    mix_tensor *tensors;
    mix_choice *choices;
    size_t n;
    loam_quantize_result result;
    loam_quantize_step step;
} work;

loam_quantize_params loam_quantize_defaults(void)
{
    return (
        loam_quantize_params){ .struct_size = sizeof(loam_quantize_params), .type = "q8_0", .output_type = -1, .token_type = -1 };
}

/* ---- the plan ---- */

/* "llama" + "block_count" -> the integer at llama.block_count, of block 0 where it is a list; `fallback` where it is absent or
 * odd. */
static int64_t fact(const gguf_file *f, text_view arch, const char *name, int64_t fallback)
{
    char key[256];
    uint32_t value = 0;
    snprintf(key, sizeof key, "%.*s.%s", arch.len > 100 ? 100 : (int)arch.len, arch.data, name);
    if (!gguf_key_find(f, key) || gguf_get_per_block(f, key, GGUF_REQUIRED, &value, 1, NULL) != LOAM_OK) return fallback;
    return value;
}

loam_status quantize_mix_facts(const gguf_file *f, mix_facts *out, loam_error *err)
{
    text_view arch = { "", 0 };
    loam_status status = gguf_get_text(f, "general.architecture", GGUF_OPTIONAL, &arch, err);
    if (status != LOAM_OK) return status;
    snprintf(out->arch, sizeof out->arch, "%.*s", (int)(arch.len > 100 ? 100 : arch.len), arch.data);
    out->model = (mix_model){ .arch = out->arch, .n_layer = fact(f, arch, "block_count", 0),
                              .n_head = fact(f, arch, "attention.head_count", 0), .n_expert = fact(f, arch, "expert_count", 0) };
    out->model.n_head_kv = fact(f, arch, "attention.head_count_kv", out->model.n_head);
    return LOAM_OK;
}

/* The mix of the call. */
static loam_status find_mix(const work *w, const mix_info **mix, loam_error *err)
{
    if (!w->p->budget) return mix_find(w->p->type, mix, err);
    *mix = budget_nearest_mix(w->p->budget);
    return LOAM_OK;
}

/* An entry of another size belongs to another model, unless it is that of a table of embeddings, which goes without. */
static bool has_weights(const loam_imatrix *im, const gguf_tensor *t, loam_status *status, loam_error *err)
{
    if (!im || *status != LOAM_OK || !imatrix_find(im, t->name)) return false;
    loam_status fits = imatrix_check(im, t->name, t->ne[0], t->ne[2] * t->ne[3], err);
    if (fits != LOAM_OK && !(fits == LOAM_E_ARG && strstr(t->name, "token_embd.weight"))) *status = fits;
    return fits == LOAM_OK;
}

/* The matrix is one of this model: its entries are for tensors that are there. */
static loam_status check_matrix(const work *w, loam_error *err)
{
    const loam_imatrix *im = w->p->imatrix;
    size_t n = im ? loam_imatrix_n_entries(im) : 0, strange = 0;
    loam_imatrix_entry e, one = { 0 };
    for (size_t i = 0; i < n && loam_imatrix_entry_at(im, i, &e); i++)
        if (!gguf_tensor_find(w->in, e.name)) strange++, one = e;
    if (im && strange == n)
        return fail(err, LOAM_E_ARG, "the importance matrix has no entry for any tensor of %s%s%.63s", gguf_path(w->in),
                    n ? "; it knows " : ": it is empty", n ? one.name : "");
    if (strange)
        log_at(LOAM_LOG_WARN, "%zu of %zu entries of the importance matrix are for tensors that the model does not have, %.63s for one",
               strange, n, one.name);
    return LOAM_OK;
}

static loam_status make_plan(work *w, loam_error *err)
{
    const loam_quantize_params *p = w->p;
    mix_options o = { .pure = p->pure,
                      .leave_output = p->leave_output,
                      .keep_order = p->keep_split,
                      .has_matrix = p->imatrix != NULL,
                      .dry_run = p->dry_run,
                      .output_type = p->output_type,
                      .token_type = p->token_type,
                      .n_overrides = p->n_overrides };
    mix_facts facts;
    loam_status status = find_mix(w, &o.mix, err);
    if (status == LOAM_OK) status = quantize_mix_facts(w->in, &facts, err);
    if (status == LOAM_OK && p->budget && p->budget->n_tensors != gguf_tensor_count(w->in))
        status = fail(err, LOAM_E_ARG, "the budget was planned for another file than %s", gguf_path(w->in));
    if (status != LOAM_OK) return status;
    if (p->budget) o.types = p->budget->types;

    mix_override *overrides = mem_alloc_array(p->n_overrides, sizeof *overrides);
    w->n = gguf_tensor_count(w->in);
    w->tensors = mem_zalloc_array(w->n, sizeof *w->tensors);
    w->choices = mem_zalloc_array(w->n, sizeof *w->choices);
    if (!overrides || !w->tensors || !w->choices) {
        mem_free(overrides);
        return fail_nomem(err, "the list of tensors", w->n * sizeof *w->tensors);
    }
    for (size_t i = 0; i < p->n_overrides; i++) overrides[i] = (mix_override){ p->overrides[i].pattern, p->overrides[i].type };
    o.overrides = overrides;
    for (size_t i = 0; i < w->n; i++) {
        const gguf_tensor *t = gguf_tensor_at(w->in, (uint32_t)i);
        w->tensors[i] = (mix_tensor){ .name = t->name, .ne = { t->ne[0], t->ne[1], t->ne[2], t->ne[3] }, .type = t->type,
                                      .has_weights = has_weights(p->imatrix, t, &status, err) };
    }
    if (status == LOAM_OK) status = check_matrix(w, err);
    if (status == LOAM_OK) status = mix_plan(&o, &facts.model, w->tensors, w->n, w->choices, err);
    mem_free(overrides);
    return status;
}

static bool is_float(int type) { return type == LOAM_F32 || type == LOAM_F16 || type == LOAM_BF16 || type == LOAM_F64; }

/* What the plan asks for can be done; sums up sizes. */
static loam_status check_plan(work *w, loam_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const mix_choice *c = &w->choices[i];
        const gguf_tensor *t = gguf_tensor_at(w->in, (uint32_t)c->tensor);
        loam_rows shape = { c->type, 1, t->ne[0] };
        uint64_t row = 0, values = (uint64_t)gguf_values(t), bytes = t->bytes;
        w->result.values += values;
        w->result.bytes_before += t->bytes;
        if (c->type != (int)t->type) {
            if (!quant_table[t->type].decode)
                return fail(err, LOAM_E_UNSUPPORTED, "tensor %s: %s cannot be converted", t->name, loam_type_name(t->type));
            if (!is_float(t->type) && !w->p->allow_requantize)
                return fail(err, LOAM_E_UNSUPPORTED,
                            "tensor %s is %s already; quantizing it again loses more than quantizing the original, and "
                            "has to be allowed (--allow-requantize)",
                            t->name, loam_type_name(t->type));
            loam_status status = loam_quant_bytes(&shape, &row, err);
            if (status == LOAM_OK && t->ne[0] > 0) mul_ok(row, values / (uint64_t)t->ne[0], &bytes);
            if (status == LOAM_OK && !w->p->dry_run) status = quant_prepare((loam_type)c->type, err);
            if (status != LOAM_OK) return fail_prefix(err, status, "tensor %s", t->name);
            w->result.n_converted++;
        }
        w->result.n_fell_back += c->fell_back;
        w->result.bytes_after += bytes;
    }
    w->result.n_tensors = (uint32_t)w->n;
    return LOAM_OK;
}

static void set_matrix_keys(work *w)
{
    const loam_quantize_params *p = w->p;
    if (!p->imatrix) return;
    const char *file = p->imatrix_file ? p->imatrix_file : "", *dataset = p->imatrix->n_datasets ? p->imatrix->datasets[0] : "";
    gguf_set_text(w->builder, "quantize.imatrix.file", file, strlen(file));
    gguf_set_text(w->builder, "quantize.imatrix.dataset", dataset, strlen(dataset));
    gguf_set_i32(w->builder, "quantize.imatrix.entries_count", (int32_t)loam_imatrix_n_entries(p->imatrix));
    gguf_set_i32(w->builder, "quantize.imatrix.chunks_count", (int32_t)loam_imatrix_chunk_count(p->imatrix));
}

/* Tensors of each part of the source, for mem_free. */
static uint32_t *part_sizes(const gguf_file *f)
{
    uint32_t *n = mem_zalloc_array(gguf_part_count(f), sizeof *n);
    for (uint32_t i = 0; n && i < gguf_tensor_count(f); i++) n[gguf_tensor_at(f, i)->part]++;
    return n;
}

/* How many files are written. */
static uint32_t out_parts(const work *w) { return w->p->keep_split ? gguf_part_count(w->in) : 1; }

/* No file that is read is written. */
static loam_status check_names(const work *w, const char *out, loam_error *err)
{
    for (uint32_t k = 0; k < out_parts(w); k++) {
        char *name = gguf_part_name(out, k, out_parts(w));
        if (!name) return fail_nomem(err, "a file name", strlen(out));
        bool same = false;
        for (uint32_t i = 0; i < gguf_part_count(w->in); i++) same |= os_same_file(gguf_part_path(w->in, i), name);
        loam_status status = same ? fail(err, LOAM_E_ARG, "%s is the file that is read; name another one to write", name) : LOAM_OK;
        mem_free(name);
        if (status != LOAM_OK) return status;
    }
    return LOAM_OK;
}

static loam_status start_output(work *w, const char *out, loam_error *err)
{
    const mix_info *mix = NULL;
    loam_status status = find_mix(w, &mix, err);
    if (status == LOAM_OK) status = gguf_builder_create(&w->builder, w->in, GGUF_TAKE_KEYS, err);
    if (status != LOAM_OK) return status;
    gguf_set_u32(w->builder, "general.quantization_version", MIX_QUANTIZATION_VERSION);
    if (mix->file_type >= 0) gguf_set_u32(w->builder, "general.file_type", (uint32_t)mix->file_type);
    set_matrix_keys(w);
    for (size_t i = 0; i < w->n; i++) {
        const gguf_tensor *t = gguf_tensor_at(w->in, (uint32_t)w->choices[i].tensor);
        gguf_put_tensor(w->builder, t->name, (loam_type)w->choices[i].type, t->ne, NULL);
    }
    gguf_write_options parts = { .parts = part_sizes(w->in), .n_parts = out_parts(w) > 1 ? out_parts(w) : 0 };
    status = parts.parts ? gguf_writer_open(&w->writer, w->builder, out, &parts, err) : fail_nomem(err, "the parts of a file", 0);
    mem_free((void *)(uintptr_t)parts.parts);
    return status;
}

/* ---- the work ---- */

static loam_status tell(work *w, loam_error *err)
{
    if (!w->p->progress || w->p->progress(w->p->progress_user, &w->step)) return LOAM_OK;
    return fail(err, LOAM_E_ABORTED, "stopped at tensor %s", w->step.name);
}

/* The next rows of the tensor are converted. */
static loam_status put_rows(void *user, const void *data, uint64_t bytes, uint64_t source_bytes, loam_error *err)
{
    work *w = user;
    loam_status status = gguf_writer_put(w->writer, data, bytes, err);
    w->step.done += source_bytes;
    return status == LOAM_OK ? tell(w, err) : status;
}

static loam_status convert(work *w, const gguf_tensor *t, const mix_choice *c, loam_error *err)
{
    float *weights = NULL;
    loam_status status = LOAM_OK;
    if (c->use_weights) status = imatrix_weights(w->p->imatrix, t->name, t->ne[0], t->ne[2] * t->ne[3], &weights, err);
    convert_job job = { t, c->type, weights, put_rows, w };
    if (status == LOAM_OK) status = convert_tensor(&job, w->threads, err);
    mem_free(weights);
    return status;
}

static loam_status copy_tensor(work *w, const gguf_tensor *t, loam_error *err)
{
    loam_status status = LOAM_OK;
    for (uint64_t at = 0; at < t->bytes && status == LOAM_OK; at += COPY_BYTES) {
        uint64_t n = t->bytes - at < COPY_BYTES ? t->bytes - at : COPY_BYTES;
        status = gguf_writer_put(w->writer, (const uint8_t *)t->data + at, n, err);
        w->step.done += n;
        if (status == LOAM_OK && at + n < t->bytes) status = tell(w, err);
    }
    return status;
}

static loam_status all_tensors(work *w, loam_error *err)
{
    loam_status status = LOAM_OK;
    w->step.total = w->result.bytes_before;
    for (size_t i = 0; i < w->n && status == LOAM_OK; i++) {
        const mix_choice *c = &w->choices[i];
        const gguf_tensor *t = gguf_tensor_at(w->in, (uint32_t)c->tensor);
        loam_rows shape = { c->type, 1, t->ne[0] };
        uint64_t row = 0, done = w->step.done;
        w->step = (loam_quantize_step){ .name = t->name,
                                        .ne = t->ne,
                                        .from = t->type,
                                        .to = c->type,
                                        .fell_back = c->fell_back,
                                        .bytes_before = t->bytes,
                                        .bytes_after = t->bytes,
                                        .done = done,
                                        .total = w->result.bytes_before,
                                        .weighted = c->use_weights,
                                        .lacks_weights = c->lacks_weights };
        if (c->type != (int)t->type && t->ne[0] > 0 && loam_quant_bytes(&shape, &row, NULL) == LOAM_OK)
            w->step.bytes_after = row * (uint64_t)(gguf_values(t) / t->ne[0]);
        status = tell(w, err);
        if (status != LOAM_OK || w->p->dry_run) continue;
        if (i + 1 < w->n) gguf_prefetch(w->in, gguf_tensor_at(w->in, (uint32_t)w->choices[i + 1].tensor));
        status = gguf_hold(w->in, (uint32_t)c->tensor, err);
        if (status == LOAM_OK) status = c->type == (int)t->type ? copy_tensor(w, t, err) : convert(w, t, c, err);
        gguf_let_go(w->in, (uint32_t)c->tensor);
    }
    return status;
}

static loam_status check_call(const char *in, const char *out, const loam_quantize_params *p, loam_error *err)
{
    if (!in || !out) return fail(err, LOAM_E_ARG, "both files have to be named");
    if (p->n_threads < 0 || p->n_threads > LIMIT_THREADS)
        return fail(err, LOAM_E_ARG, "n_threads %d: must be 0 to %d", p->n_threads, LIMIT_THREADS);
    if (p->n_overrides && !p->overrides) return fail(err, LOAM_E_ARG, "overrides: %zu are announced, none given", p->n_overrides);
    return LOAM_OK;
}

loam_status loam_quantize_file(const char *in, const char *out, const loam_quantize_params *params, loam_quantize_result *result,
                               loam_error *err)
{
    loam_quantize_params p = loam_quantize_defaults();
    if (params) {
        if (params->struct_size < sizeof(size_t) || params->struct_size > sizeof p)
            return fail(err, LOAM_E_ARG, "parameters: struct_size %zu; start from loam_quantize_defaults()", params->struct_size);
        memcpy(&p, params, params->struct_size);
    }
    if (p.budget && !p.imatrix) p.imatrix = p.budget->own;
    loam_status status = check_call(in, out, &p, err);
    if (status != LOAM_OK) return status;
    work w = { .p = &p };
    status = gguf_open(&w.in, in, GGUF_LAZY | (p.type && strcasecmp(p.type, "copy") == 0 ? 0 : GGUF_FINE), err);
    if (status == LOAM_OK && !p.dry_run) status = check_names(&w, out, err);
    if (status == LOAM_OK) status = make_plan(&w, err);
    if (status == LOAM_OK) status = check_plan(&w, err);
    if (status == LOAM_OK && !p.dry_run) status = pool_new(&w.threads, p.n_threads ? p.n_threads : os_cpu_count(), err);
    if (status == LOAM_OK && !p.dry_run) status = start_output(&w, out, err);
    if (status == LOAM_OK) status = all_tensors(&w, err);
    if (status == LOAM_OK && w.writer) {
        status = gguf_writer_close(w.writer, err);
        w.writer = NULL;
    }
    gguf_writer_cancel(w.writer);
    gguf_builder_free(w.builder);
    gguf_close(w.in);
    pool_free(w.threads);
    mem_free(w.tensors);
    mem_free(w.choices);
    if (status == LOAM_OK && result) *result = w.result;
    return status;
}
