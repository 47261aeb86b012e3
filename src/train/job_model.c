/* job_model.c - the model of a training run.
 *
 * From nothing: hyper-parameters and the vocabulary of another file become the keys of a new one, OUTPUT.fresh, whose weights
 * are random; it is removed when the job ends. The same description makes the same file, so a run that goes on finds its model. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "model/fresh.h"
#include "train/job.h"

/* "llama." + "block_count" */
static const char *own_key(char out[192], const job_config *c, const char *rest)
{
    snprintf(out, 192, "%.64s.%.120s", c->architecture, rest);
    return out;
}

static void set_sizes(gguf_builder *b, const job_config *c)
{
    char key[192];
    int64_t kv = c->n_head_kv ? c->n_head_kv : c->n_head, head = c->head_dim ? c->head_dim : c->n_embd / c->n_head;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        { "block_count", c->n_layer },          { "context_length", c->n_ctx },        { "embedding_length", c->n_embd },
        { "feed_forward_length", c->n_ff },     { "attention.head_count", c->n_head }, { "attention.head_count_kv", kv },
        { "attention.key_length", head },       { "attention.value_length", head },    { "rope.dimension_count", head },
    };
    gguf_set_word(b, "general.architecture", c->architecture);
    gguf_set_word(b, "general.type", "model");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) gguf_set_u32(b, own_key(key, c, sizes[i].name), (uint32_t)sizes[i].value);
    gguf_set_f32(b, own_key(key, c, "attention.layer_norm_rms_epsilon"), (float)c->norm_eps);
    gguf_set_f32(b, own_key(key, c, "attention.layer_norm_epsilon"), (float)c->norm_eps);
    gguf_set_f32(b, own_key(key, c, "rope.freq_base"), (float)c->rope_base);
}

/* JSON does not tell 50 from 50.0: these keys are floats. */
static bool is_float_key(const char *name)
{
    static const char *const parts[] = { "scale", "softcapping", "epsilon", "freq_base", "factor", "clamp", "alibi", "mscale" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i])) return true;
    return false;
}

static loam_status set_further(gguf_builder *b, const job_config *c, loam_error *err)
{
    for (js_member m = js_first(c->keys); m.value; m = js_next(c->keys, m)) {
        char name[128], key[192];
        text_view t;
        int64_t i;
        double x;
        bool flag;
        snprintf(name, sizeof name, "%.*s", (int)(m.key.len < 120 ? m.key.len : 120), m.key.data);
        own_key(key, c, name);
        if (js_text(m.value, &t)) gguf_set_text(b, key, t.data, t.len);
        else if (js_bool(m.value, &flag)) gguf_set_bool(b, key, flag);
        else if (!is_float_key(name) && js_int(m.value, &i) && i >= 0 && i <= INT32_MAX) gguf_set_u32(b, key, (uint32_t)i);
        else if (js_number(m.value, &x)) gguf_set_f32(b, key, (float)x);
        else return fail(err, LOAM_E_FORMAT, "\"model.keys.%s\" must be a number, a text, true or false", name);
    }
    return LOAM_OK;
}

/* The vocabulary of any GGUF file: its keys are copied. */
static loam_status set_vocabulary(gguf_builder *b, const gguf_file *f, int64_t *n_vocab, loam_error *err)
{
    gguf_array tokens;
    loam_status s = gguf_get_array(f, "tokenizer.ggml.tokens", GGUF_REQUIRED, GGUF_STRINGS, &tokens, err);
    if (s != LOAM_OK) return s;
    for (uint32_t i = 0; i < gguf_key_count(f); i++) {
        const gguf_key *k = gguf_key_at(f, i);
        char name[256];
        if (k->name_len < 10 || k->name_len >= sizeof name || memcmp(k->name, "tokenizer.", 10)) continue;
        snprintf(name, sizeof name, "%.*s", (int)k->name_len, k->name);
        gguf_set_key(b, name, k);
    }
    *n_vocab = (int64_t)tokens.count;
    return LOAM_OK;
}

static loam_status write_fresh(loam_job *j, const gguf_file *vocabulary, loam_error *err)
{
    const job_config *c = &j->c;
    gguf_builder *b;
    fresh_shape shape = { .n_embd = c->n_embd, .n_layer = (int)c->n_layer, .tied = c->tied, .seed = (uint64_t)c->seed };
    shape.max_values = os_memory_available() / 16; /* in binary32: weight, gradient, two moments */
    if (!c->head_dim && c->n_embd % c->n_head)
        return fail(err, LOAM_E_FORMAT, "\"model.n_embd\" %lld is no multiple of its %lld heads; give \"model.head_dim\"", (long long)c->n_embd,
                    (long long)c->n_head);
    loam_status s = gguf_builder_create(&b, NULL, 0, err);
    if (s != LOAM_OK) return s;
    set_sizes(b, c);
    s = set_further(b, c, err);
    if (s == LOAM_OK) s = set_vocabulary(b, vocabulary, &shape.n_vocab, err);
    if (s == LOAM_OK) s = model_fresh_write(b, &shape, j->fresh, err);
    gguf_builder_free(b);
    return s;
}

static loam_status make_fresh(loam_job *j, loam_error *err)
{
    const char *output = j->c.output ? j->c.output : j->c.adapter ? j->c.adapter : j->c.peft;
    size_t n = strlen(output);
    gguf_file *vocabulary;
    j->fresh = mem_alloc(n + 7);
    if (!j->fresh) return fail_nomem(err, "a file's name", n);
    memcpy(j->fresh, output, n);
    memcpy(j->fresh + n, ".fresh", 7);
    loam_status s = gguf_open(&vocabulary, j->c.tokenizer, 0, err);
    if (s != LOAM_OK) return s;
    s = write_fresh(j, vocabulary, err);
    gguf_close(vocabulary);
    return s;
}

loam_status job_open_model(loam_job *j, loam_error *err)
{
    loam_status s = j->c.base ? LOAM_OK : make_fresh(j, err);
    if (s == LOAM_OK) s = loam_model_open(&j->model, j->c.base ? j->c.base : j->fresh, NULL, err);
    if (s != LOAM_OK) return s;
    if (!loam_model_tokenizer(j->model)) return fail(err, LOAM_E_FORMAT, "%s has no vocabulary that text can be turned into", j->c.base);
    int32_t most = loam_model_n_ctx_train(j->model);
    int64_t n = j->c.row_tokens ? j->c.row_tokens : j->c.base && most > 512 ? 512 : most;
    if (n > most)
        return fail(err, LOAM_E_FORMAT, "\"batch.n_ctx\" is %lld, but the context of the model is %d", (long long)n, most);
    j->n_ctx = (int32_t)n;
    return LOAM_OK;
}
