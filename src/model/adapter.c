/* adapter.c - LoRA adapters (GGUF files, PEFT folders): checked against the model and bound to its weights once.
 *
 * For base tensor NAME the file has NAME.lora_a and NAME.lora_b:
 *
 *     matrix   W [in, out]       a [in, r]       b [r, out]
 *     experts  W [in, out, E]    a [in, r, E]    b [r, out, E]
 *     table    W [D, V]          a [r, V]        b [r, D]        token_embd.weight: a row of a for each token */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf.h"
#include "model/model_impl.h"

const weight *model_weight(const loam_model *m, const char *name)
{
    const gguf_tensor *t = gguf_tensor_find(m->file, name);
    for (uint32_t i = 0; t && i < gguf_tensor_count(m->file); i++)
        if (gguf_tensor_at(m->file, i) == t) return &m->weights[i];
    return NULL;
}

static bool text_is(text_view t, const char *s) { return t.data && t.len == strlen(s) && memcmp(t.data, s, t.len) == 0; }

static loam_status check_kind(const loam_adapter *a, loam_error *err)
{
    const gguf_file *f = a->file;
    text_view general = { 0 }, architecture = { 0 }, kind = { 0 };
    loam_status status = gguf_get_text(f, "general.type", GGUF_REQUIRED, &general, err);
    if (status == LOAM_OK) status = gguf_get_text(f, "general.architecture", GGUF_REQUIRED, &architecture, err);
    if (status != LOAM_OK) return status;
    if (!text_is(general, "adapter")) return fail(err, LOAM_E_FORMAT, "%s: general.type is '%.*s', not an adapter", gguf_path(f), (int)general.len, general.data);
    status = gguf_get_text(f, "adapter.type", GGUF_REQUIRED, &kind, err);
    if (status != LOAM_OK) return status;
    if (!text_is(kind, "lora")) return fail(err, LOAM_E_UNSUPPORTED, "%s: adapter.type is '%.*s', only lora is known", gguf_path(f), (int)kind.len, kind.data);
    if (!text_is(architecture, loam_model_architecture(a->model)))
        return fail(err, LOAM_E_FORMAT, "%s: an adapter for architecture '%.*s', the model is '%s'", gguf_path(f), (int)architecture.len,
                    architecture.data, loam_model_architecture(a->model));
    return LOAM_OK;
}

static loam_status read_invocation(loam_adapter *a, loam_error *err)
{
    gguf_array ids;
    loam_status status = gguf_get_array(a->file, "adapter.alora.invocation_tokens", GGUF_OPTIONAL, GGUF_INTS, &ids, err);
    if (status != LOAM_OK || ids.count == 0) return status;
    if (ids.count > 65536) return fail(err, LOAM_E_FORMAT, "%s: %llu invocation tokens", gguf_path(a->file), (unsigned long long)ids.count);
    a->invocation = mem_alloc_array((size_t)ids.count, sizeof *a->invocation);
    if (!a->invocation) return fail_nomem(err, "invocation tokens", ids.count * 4);
    for (uint64_t i = 0; i < ids.count; i++) {
        int64_t id = gguf_int_at(&ids, i);
        if (id < 0 || id >= loam_model_n_vocab(a->model)) return fail(err, LOAM_E_FORMAT, "%s: invocation token %lld is not in the vocabulary", gguf_path(a->file), (long long)id);
        a->invocation[a->n_invocation++] = (int32_t)id;
    }
    return LOAM_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static loam_status check_shapes(const loam_adapter *a, const adapter_pair *p, loam_error *err)
{
    const weight *w = p->base, *x = p->a, *y = p->b;
    bool table = strcmp(w->name, "token_embd.weight") == 0;
    bool fits = table ? w->ne[1] == x->ne[1] && w->ne[0] == y->ne[1] : w->ne[0] == x->ne[0] && w->ne[1] == y->ne[1] && x->ne[1] == y->ne[0];
    if (table) fits = fits && x->ne[0] == y->ne[0];
    fits = fits && x->ne[2] == w->ne[2] && y->ne[2] == w->ne[2] && y->ne[0] > 0;
    if (fits) return LOAM_OK;
    return fail(err, LOAM_E_FORMAT, "%s: the pair of %s is %lld x %lld x %lld and %lld x %lld x %lld, the weight %lld x %lld x %lld",
                gguf_path(a->file), w->name, (long long)x->ne[0], (long long)x->ne[1], (long long)x->ne[2], (long long)y->ne[0],
                (long long)y->ne[1], (long long)y->ne[2], (long long)w->ne[0], (long long)w->ne[1], (long long)w->ne[2]);
}

static loam_status make_weight(const loam_adapter *a, const gguf_tensor *t, weight *w, loam_error *err)
{
    if (dtype_table[t->type].act == ACT_NONE)
        return fail(err, LOAM_E_UNSUPPORTED, "%s: tensor '%s' is of type %s", gguf_path(a->file), t->name, loam_type_name((int)t->type));
    *w = (weight){ .name = t->name, .type = t->type, .data = t->data };
    memcpy(w->ne, t->ne, sizeof w->ne);
    return dtype_row_bytes(t->type, t->ne[0], &w->row_bytes) ? LOAM_OK : fail(err, LOAM_E_FORMAT, "%s: tensor '%s' has broken rows", gguf_path(a->file), t->name);
}

/* One tensor NAME.lora_a with its other half. */
static loam_status bind_pair(loam_adapter *a, const gguf_tensor *t, loam_error *err)
{
    char name[sizeof t->name + 8];
    size_t stem = strlen(t->name) - strlen(".lora_a");
    snprintf(name, sizeof name, "%.*s.lora_b", (int)stem, t->name);
    const gguf_tensor *other = gguf_tensor_find(a->file, name);
    if (!other) return fail(err, LOAM_E_FORMAT, "%s: tensor '%s' has no '%s'", gguf_path(a->file), t->name, name);
    name[stem] = 0;
    if (ends_with(name, "_norm.weight")) return LOAM_OK;
    adapter_pair *p = &a->pairs[a->n_pairs];
    weight *w = &a->weights[2 * a->n_pairs];
    *p = (adapter_pair){ model_weight(a->model, name), &w[0], &w[1], 1.0f };
    if (!p->base) return fail(err, LOAM_E_FORMAT, "%s: the model has no tensor '%s'; its own are named like '%s'", gguf_path(a->file), name,
                              gguf_tensor_at(a->model->file, gguf_tensor_count(a->model->file) / 2)->name);
    loam_status status = make_weight(a, t, &w[0], err);
    if (status == LOAM_OK) status = make_weight(a, other, &w[1], err);
    if (status == LOAM_OK) status = check_shapes(a, p, err);
    if (status == LOAM_OK && a->alpha != 0.0f) p->scale = a->alpha / (float)w[1].ne[0];
    if (status == LOAM_OK) a->n_pairs++;
    return status;
}

static loam_status bind_pairs(loam_adapter *a, loam_error *err)
{
    uint32_t n = gguf_tensor_count(a->file), halves = 0;
    a->pairs = mem_zalloc_array((size_t)n + 1, sizeof *a->pairs);
    a->weights = mem_zalloc_array(2 * (size_t)n + 2, sizeof *a->weights);
    if (!a->pairs || !a->weights) return fail_nomem(err, "an adapter", (uint64_t)n * sizeof(weight));
    loam_status status = LOAM_OK;
    for (uint32_t i = 0; i < n && status == LOAM_OK; i++) {
        const gguf_tensor *t = gguf_tensor_at(a->file, i);
        if (ends_with(t->name, ".lora_a")) halves++, status = bind_pair(a, t, err);
        else if (ends_with(t->name, ".lora_b")) halves--;
        else status = fail(err, LOAM_E_FORMAT, "%s: tensor '%s' is neither .lora_a nor .lora_b", gguf_path(a->file), t->name);
    }
    if (status != LOAM_OK) return status;
    if (halves != 0) return fail(err, LOAM_E_FORMAT, "%s: a .lora_b without its .lora_a", gguf_path(a->file));
    if (a->n_pairs == 0) return fail(err, LOAM_E_FORMAT, "%s: none of its %u tensors adds to a weight of the model", gguf_path(a->file), n);
    return LOAM_OK;
}

loam_status loam_adapter_open(loam_adapter **out, const loam_model *model, const char *path, loam_error *err)
{
    if (!out || !model || !path) return fail(err, LOAM_E_ARG, "loam_adapter_open: %s is NULL", !out ? "out" : !model ? "model" : "path");
    *out = NULL;
    if (model->vocab_only) return fail(err, LOAM_E_ARG, "%s was opened for its vocabulary only", gguf_path(model->file));
    loam_adapter *a = mem_zalloc(sizeof *a);
    if (!a) return fail_nomem(err, "an adapter", sizeof *a);
    a->model = model;
    gguf_file *f = NULL;
    loam_status status = hf_open_adapter(&f, path, model->file, err);
    a->file = f;
    if (status == LOAM_OK) status = check_kind(a, err);
    if (status == LOAM_OK) status = gguf_get_f32(f, "adapter.lora.alpha", GGUF_OPTIONAL, &a->alpha, err);
    if (status == LOAM_OK) status = read_invocation(a, err);
    if (status == LOAM_OK) status = bind_pairs(a, err);
    if (status != LOAM_OK) {
        loam_adapter_free(a);
        return status;
    }
    *out = a;
    return LOAM_OK;
}

void loam_adapter_free(loam_adapter *a)
{
    if (!a) return;
    gguf_close(a->file);
    mem_free(a->pairs);
    mem_free(a->weights);
    mem_free(a->invocation);
    mem_free(a);
}

int32_t loam_adapter_n_weights(const loam_adapter *a) { return a ? a->n_pairs : 0; }
float loam_adapter_alpha(const loam_adapter *a) { return a ? a->alpha : 0; }

const int32_t *loam_adapter_invocation(const loam_adapter *a, size_t *n)
{
    if (n) *n = a ? (size_t)a->n_invocation : 0;
    return a ? a->invocation : NULL;
}
