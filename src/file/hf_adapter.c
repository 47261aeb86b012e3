/* hf_adapter.c - LoRA adapters as PEFT writes them, presented as GGUF adapters for the model they are opened for.
 *
 *     base_model.model.NAME.lora_A.weight [rank, in]     ─► TARGET.weight.lora_a
 *     base_model.model.NAME.lora_B.weight [out, rank]    ─► TARGET.weight.lora_b, rows of q and k as the model has them
 *     base_model.model.NAME.lora_embedding_A [rank, V]   ─► token_embd.weight.lora_a, transposed
 *
 * A pair adds alpha / rank, with rank-stabilized LoRA (Kalajdzievski 2023) alpha / sqrt(rank), times B A. One alpha stands in
 * the directory; modules that have another are scaled in B. Refuses, by name: other kinds of adapters, DoRA, trained biases and
 * whole modules, tensors that the model has no place for. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf_impl.h"

typedef struct adapter_build {
    hf_build b; /* root and config: adapter_config.json */
    text_view architecture;
    double alpha, shared_alpha; /* of the config; of the directory */
    bool stabilized;
} adapter_build;

static void config_fail(adapter_build *a, loam_status code, const char *what)
{
    if (a->b.status == LOAM_OK) a->b.status = fail(a->b.err, code, "%s/adapter_config.json: %s", a->b.path, what);
}

static bool flag(const adapter_build *a, const char *key)
{
    bool v = false;
    js_bool(js_get(a->b.root, key), &v);
    return v;
}

static void read_config(adapter_build *a)
{
    double rank = 0;
    text_view bias;
    const js *c = a->b.root;
    if (!js_is(js_get(c, "peft_type"), "LORA")) config_fail(a, LOAM_E_UNSUPPORTED, "peft_type is not LORA");
    if (flag(a, "use_dora")) config_fail(a, LOAM_E_UNSUPPORTED, "use_dora: weight-decomposed adapters are not supported");
    if (js_text(js_get(c, "bias"), &bias) && !js_text_is(bias, "none"))
        config_fail(a, LOAM_E_UNSUPPORTED, "bias is not none: trained biases are not supported");
    if (js_count(js_get(c, "modules_to_save")) > 0)
        config_fail(a, LOAM_E_UNSUPPORTED, "modules_to_save: whole modules are not part of an adapter");
    if (!js_number(js_get(c, "r"), &rank) || !(rank >= 1)) config_fail(a, LOAM_E_FORMAT, "r, the rank, is missing");
    a->alpha = rank;
    js_number(js_get(c, "lora_alpha"), &a->alpha);
    a->stabilized = flag(a, "use_rslora");
    a->shared_alpha = a->stabilized ? a->alpha * __builtin_sqrt(rank) : a->alpha;
    if (!(a->shared_alpha > 0) || !(a->shared_alpha < 1e9)) config_fail(a, LOAM_E_FORMAT, "lora_alpha is not a positive number");
}

/* What the model says about itself. */
static void read_base(adapter_build *a, const gguf_file *base)
{
    hf_build *b = &a->b;
    char key[128];
    uint32_t heads = 0, kv = 0, experts = 0;
    b->status = gguf_get_text(base, "general.architecture", GGUF_REQUIRED, &a->architecture, b->err);
    if (b->status != LOAM_OK) return;
    int n = (int)(a->architecture.len < 64 ? a->architecture.len : 64);
    snprintf(key, sizeof key, "%.*s.attention.head_count", n, a->architecture.data);
    gguf_get_per_block(base, key, GGUF_OPTIONAL, &heads, 1, NULL);
    kv = heads;
    snprintf(key, sizeof key, "%.*s.attention.head_count_kv", n, a->architecture.data);
    gguf_get_per_block(base, key, GGUF_OPTIONAL, &kv, 1, NULL);
    snprintf(key, sizeof key, "%.*s.expert_count", n, a->architecture.data);
    gguf_get_u32(base, key, GGUF_OPTIONAL, &experts, NULL);
    b->n_head = heads;
    b->n_head_kv = kv;
    b->n_expert = experts <= LIMIT_EXPERTS ? experts : 0;
    if (!hf_arch_named(a->architecture, 0) && b->status == LOAM_OK)
        b->status = fail(b->err, LOAM_E_UNSUPPORTED, "%s: how PEFT names the tensors of architecture '%s' is not known", b->path,
                         gguf_quote(a->architecture.data, a->architecture.len).text);
}

/* The alpha of a module: that of the first alpha_pattern that its name is or ends in. */
static double alpha_of(const adapter_build *a, text_view module)
{
    const js *patterns = js_get(a->b.root, "alpha_pattern");
    double alpha = a->alpha;
    for (js_member m = js_first(patterns); m.value; m = js_next(patterns, m)) {
        size_t at = module.len - m.key.len;
        if (m.key.len > module.len || memcmp(module.data + at, m.key.data, m.key.len)) continue;
        if (at > 0 && module.data[at - 1] != '.') continue;
        js_number(m.value, &alpha);
        break;
    }
    return alpha;
}

/* Takes the end off a name. */
static bool take_end(text_view *name, const char *end)
{
    size_t n = strlen(end);
    if (name->len <= n || memcmp(name->data + name->len - n, end, n)) return false;
    name->len -= n;
    return true;
}

static bool take_front(text_view *name, const char *front)
{
    size_t n = strlen(front);
    if (name->len <= n || memcmp(name->data, front, n)) return false;
    name->data += n;
    name->len -= n;
    return true;
}

static const hf_rule *find_target(adapter_build *a, text_view module, int64_t numbers[2])
{
    for (int i = 0; hf_arch_named(a->architecture, i); i++) {
        a->b.arch = hf_arch_named(a->architecture, i);
        text_view stem = module;
        const char *at = a->b.arch->prefixes;
        const hf_rule *r = hf_find_rule(a->b.arch, stem, numbers);
        for (; !r && at && *at; at += strspn(at, " ")) {
            char prefix[64];
            size_t n = strcspn(at, " ");
            snprintf(prefix, sizeof prefix, "%.*s", (int)n, at);
            if (take_front(&stem, prefix)) r = hf_find_rule(a->b.arch, stem, numbers);
            at += n;
        }
        if (r && r->change != HF_DROP && r->change != HF_GATE_UP) return r;
    }
    return NULL;
}

static void place_half(adapter_build *a, const st_tensor *t)
{
    hf_build *b = &a->b;
    text_view module = t->name;
    char name[LIMIT_NAME_BYTES + 1];
    int64_t numbers[2];
    take_front(&module, "base_model.model.");
    if (take_end(&module, ".base_layer.weight")) return; /* the model's own table, saved beside its pair */
    bool embedding = take_end(&module, ".lora_embedding_A"), left = embedding || take_end(&module, ".lora_A.weight");
    bool right = !left && (take_end(&module, ".lora_embedding_B") || take_end(&module, ".lora_B.weight"));
    const hf_rule *r = left || right ? find_target(a, module, numbers) : NULL;
    if (!left && !right) hf_tensor_fail(b, t, LOAM_E_UNSUPPORTED, "is not a factor of a low-rank pair");
    else if (!r || t->n_dims != 2) hf_tensor_fail(b, t, LOAM_E_UNSUPPORTED, "has no place in the model");
    else if (!hf_target_name(name, r->to, numbers[0], left ? ".weight.lora_a" : ".weight.lora_b") || numbers[1] >= b->n_expert)
        hf_tensor_fail(b, t, LOAM_E_FORMAT, "has a number beyond the model's");
    if (b->status != LOAM_OK) return;
    bool expert = numbers[1] >= 0;
    hf_item *item = hf_place(b, name, expert ? (uint32_t)b->n_expert : 1, expert ? (uint32_t)numbers[1] : 0,
                             (hf_part){ t, NULL, 0, t->shape[0] });
    if (!item) return;
    item->transpose = embedding;
    if (left) return;
    if (b->arch->adjacent && r->change == HF_Q_ROWS) item->heads = b->n_head;
    if (b->arch->adjacent && r->change == HF_K_ROWS) item->heads = b->n_head_kv;
    double rank = (double)t->shape[1], alpha = alpha_of(a, module);
    double wanted = a->stabilized ? alpha / __builtin_sqrt(rank) : alpha / rank;
    item->factor = (float)(wanted / (a->shared_alpha / rank));
}

static void put_invocation(adapter_build *a)
{
    const js *list = js_get(a->b.root, "alora_invocation_tokens");
    size_t n = js_count(list);
    uint32_t ids[256];
    if (n == 0) return;
    if (n > 256) config_fail(a, LOAM_E_UNSUPPORTED, "alora_invocation_tokens: over 256 tokens");
    for (size_t i = 0; i < n && a->b.status == LOAM_OK; i++) {
        int64_t id;
        if (!js_int(js_at(list, i), &id) || id < 0 || id > INT32_MAX) config_fail(a, LOAM_E_FORMAT, "alora_invocation_tokens has no ids");
        else ids[i] = (uint32_t)id;
    }
    if (a->b.status == LOAM_OK) gguf_set_array(a->b.b, "adapter.alora.invocation_tokens", GGUF_U32, ids, n);
}

static void put_all(adapter_build *a, const gguf_file *base)
{
    hf_build *b = &a->b;
    b->status = hf_open_json(&b->root, b->path, "adapter_config.json", b->err);
    if (b->status == LOAM_OK && !b->root)
        b->status = fail(b->err, LOAM_E_IO, "%s: a folder without adapter_config.json is no adapter", b->path);
    b->config = b->root;
    if (b->status == LOAM_OK) read_config(a);
    if (b->status == LOAM_OK) read_base(a, base);
    if (b->status == LOAM_OK) b->status = hf_open_shards(b->w, b->path, "adapter_model", true, b->err);
    for (size_t i = 0; i < b->w->n_stored && b->status == LOAM_OK; i++) place_half(a, b->w->stored[i]);
    map_free(&b->w->item_index);
    if (b->status != LOAM_OK) return;
    gguf_set_text(b->b, "general.type", "adapter", 7);
    gguf_set_text(b->b, "general.architecture", a->architecture.data, a->architecture.len);
    gguf_set_text(b->b, "adapter.type", "lora", 4);
    gguf_set_f32(b->b, "adapter.lora.alpha", (float)a->shared_alpha);
    put_invocation(a);
    if (b->status == LOAM_OK) hf_put_weights(b);
}

static loam_status open_folder(gguf_file *f, const gguf_file *base, loam_error *err)
{
    adapter_build a = { .b = { .path = f->path, .err = err } };
    a.b.w = f->weights = mem_zalloc(sizeof *f->weights);
    if (!f->weights) return fail_nomem(err, "a folder", sizeof *f->weights);
    loam_status s = gguf_builder_create(&a.b.b, NULL, 0, err);
    if (s != LOAM_OK) return s;
    f->built = a.b.b;
    put_all(&a, base);
    js_free(a.b.root);
    if (a.b.status == LOAM_OK) a.b.status = gguf_adopt(f, err);
    return a.b.status == LOAM_OK ? gguf_hold_all(f, err) : a.b.status;
}

loam_status hf_open_adapter(gguf_file **out, const char *path, const gguf_file *base, loam_error *err)
{
    if (!os_is_folder(path)) return gguf_open(out, path, 0, err);
    *out = NULL;
    gguf_file *f = gguf_new(path);
    if (!f) return fail_nomem(err, "a file handle", sizeof *f);
    loam_status s = open_folder(f, base, err);
    if (s != LOAM_OK) gguf_close(f);
    else *out = f;
    return s;
}
