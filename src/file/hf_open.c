/* hf_open.c - opens a folder: config.json decides the architecture, then weights, keys and vocabulary are put together.
 * Refuses folders that are none of a model, architectures that are not in the table (hf_arch.c), and what the parts refuse. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/gguf_build.h"
#include "file/hf_impl.h"

static loam_status find_arch(hf_build *b)
{
    text_view name = { NULL, 0 };
    b->arch = hf_arch_of(b->root, &name);
    b->config = b->root;
    if (js_is_object(js_get(b->root, "text_config"))) b->config = js_get(b->root, "text_config");
    if (b->arch) return LOAM_OK;
    if (!name.data) return fail(b->err, LOAM_E_FORMAT, "%s/config.json: neither architectures nor model_type says what it is", b->path);
    return fail(b->err, LOAM_E_UNSUPPORTED, "%s/config.json: architecture '%s' is not known", b->path,
                gguf_quote(name.data, name.len).text);
}

static loam_status read_config(hf_build *b)
{
    loam_status s = hf_open_json(&b->root, b->path, "config.json", b->err);
    if (s == LOAM_OK && !b->root) s = fail(b->err, LOAM_E_IO, "%s: a folder without config.json is no model", b->path);
    if (s == LOAM_OK && !js_is_object(b->root)) s = fail(b->err, LOAM_E_FORMAT, "%s/config.json: not an object", b->path);
    if (s == LOAM_OK) s = find_arch(b);
    const char *defaults = b->arch ? b->arch->defaults : NULL;
    if (s == LOAM_OK && defaults) s = js_parse(&b->defaults, (text_view){ defaults, strlen(defaults) }, 0, "defaults", b->err);
    return s;
}

/* The type that most bytes have, as general.file_type; rows of the token table. */
static void put_types(hf_build *b)
{
    uint64_t bytes[LOAM_TYPE_LIMIT] = { 0 };
    for (size_t i = 0; i < b->b->n_tensors; i++) {
        const build_tensor *t = &b->b->tensors[i];
        bytes[t->type] += t->bytes;
        if (strcmp(t->name, "token_embd.weight") == 0) b->n_vocab = t->ne[1];
    }
    bool f16 = bytes[LOAM_F16] > bytes[LOAM_F32], bf16 = bytes[LOAM_BF16] > bytes[LOAM_F32] && bytes[LOAM_BF16] > bytes[LOAM_F16];
    gguf_set_u32(b->b, "general.file_type", bf16 ? 32 : f16 ? 1 : 0);
    hf_set_int(b, "vocab_size", b->n_vocab);
    if (b->n_vocab > LIMIT_VOCAB) hf_fail(b, LOAM_E_FORMAT, "the token table has %lld rows", (long long)b->n_vocab);
}

static void put_all(hf_build *b, unsigned flags)
{
    b->status = read_config(b);
    if (b->status == LOAM_OK) hf_put_config(b);
    if (b->status == LOAM_OK) b->status = hf_open_shards(b->w, b->path, "model", !(flags & GGUF_READ), b->err);
    if (b->status == LOAM_OK) hf_map_weights(b, flags & GGUF_FINE);
    if (b->status == LOAM_OK && b->arch->finish) b->arch->finish(b);
    if (b->status == LOAM_OK) hf_put_rope(b);
    if (b->status == LOAM_OK) hf_put_weights(b);
    if (b->status == LOAM_OK) put_types(b);
    if (b->status == LOAM_OK) hf_put_vocab(b);
}

loam_status hf_open(gguf_file *f, unsigned flags, loam_error *err)
{
    hf_build b = { .path = f->path, .err = err };
    b.w = f->weights = mem_zalloc(sizeof *b.w);
    if (!b.w) return fail_nomem(err, "a folder", sizeof *b.w);
    loam_status s = gguf_builder_create(&b.b, NULL, 0, err);
    if (s != LOAM_OK) return s;
    f->built = b.b;
    put_all(&b, flags);
    js_free(b.root);
    js_free(b.defaults);
    if (b.status == LOAM_OK) b.status = gguf_adopt(f, err);
    return b.status;
}
