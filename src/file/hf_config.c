/* hf_config.c - config.json to the keys of a GGUF model. Refuses, by key: what is missing, is no number, is out of range, or
 * means something that the architecture does not compute. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "file/hf_impl.h"

void hf_fail(hf_build *b, loam_status code, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (b->status != LOAM_OK) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    b->status = fail(b->err, code, "%s/config.json: %s", b->path, text);
}

/* ---- reading ---- */

static const js *find_in(const js *object, const char *keys)
{
    for (const char *at = keys; *at; at += strspn(at, " ")) {
        char key[64];
        size_t n = strcspn(at, " ");
        snprintf(key, sizeof key, "%.*s", (int)n, at);
        const js *v = js_get(object, key);
        double x;
        bool flag;
        text_view t;
        if (js_is_object(v) || js_is_array(v) || js_number(v, &x) || js_bool(v, &flag) || js_text(v, &t)) return v; /* not null */
        at += n;
    }
    return NULL;
}

const js *hf_config_get(const hf_build *b, const char *keys)
{
    const js *v = find_in(b->config, keys);
    if (!v && b->config != b->root) v = find_in(b->root, keys);
    return v ? v : find_in(b->defaults, keys);
}

int64_t hf_config_int(hf_build *b, const char *keys, int64_t otherwise)
{
    int64_t v = otherwise;
    const js *found = hf_config_get(b, keys);
    if (found && (!js_int(found, &v) || v < 0 || v > INT32_MAX)) {
        hf_fail(b, LOAM_E_FORMAT, "key '%s' is not a whole number from 0 to %d", keys, INT32_MAX);
        return otherwise;
    }
    return v;
}

double hf_config_float(hf_build *b, const char *keys, double otherwise)
{
    double v = otherwise;
    const js *found = hf_config_get(b, keys);
    if (found && (!js_number(found, &v) || !isfinite((float)v))) {
        hf_fail(b, LOAM_E_FORMAT, "key '%s' is not a number", keys);
        return otherwise;
    }
    return v;
}

bool hf_config_bool(const hf_build *b, const char *keys, bool otherwise)
{
    bool v = otherwise;
    js_bool(hf_config_get(b, keys), &v);
    return v;
}

/* ---- writing ---- */

static const char *full_name(const hf_build *b, const char *key, char out[128])
{
    snprintf(out, 128, "%s.%s", b->arch->name, key);
    return out;
}

void hf_set_int(hf_build *b, const char *key, int64_t v)
{
    char name[128];
    gguf_set_u32(b->b, full_name(b, key, name), (uint32_t)v);
}

void hf_set_float(hf_build *b, const char *key, double v)
{
    char name[128];
    gguf_set_f32(b->b, full_name(b, key, name), (float)v);
}

void hf_set_bool(hf_build *b, const char *key, bool v)
{
    char name[128];
    gguf_set_bool(b->b, full_name(b, key, name), v);
}

void hf_set_text(hf_build *b, const char *key, const char *v)
{
    char name[128];
    gguf_set_text(b->b, full_name(b, key, name), v, strlen(v));
}

/* ---- config.json ---- */

static void put_key(hf_build *b, const hf_key *k)
{
    if (!hf_config_get(b, k->from)) {
        if (!k->optional) hf_fail(b, LOAM_E_FORMAT, "key '%s' is missing", k->from);
        return;
    }
    if (k->kind == HF_INT) hf_set_int(b, k->to, hf_config_int(b, k->from, 0));
    else if (k->kind == HF_FLOAT) hf_set_float(b, k->to, hf_config_float(b, k->from, 0));
    else hf_set_bool(b, k->to, hf_config_bool(b, k->from, false));
}

/* The numbers that other parts need. */
static void read_facts(hf_build *b)
{
    b->n_layer = hf_config_int(b, "num_hidden_layers n_layer num_layers", 0);
    b->n_head = hf_config_int(b, "num_attention_heads n_head num_heads", 0);
    b->n_head_kv = hf_config_int(b, "num_key_value_heads", b->n_head);
    b->width = hf_config_int(b, "hidden_size n_embd d_model", 0);
    b->n_expert = hf_config_int(b, "num_local_experts num_experts", 0);
    if (b->n_layer < 1 || b->n_layer > LIMIT_LAYERS) hf_fail(b, LOAM_E_FORMAT, "%lld layers (1 to %d)", (long long)b->n_layer, LIMIT_LAYERS);
    if (b->n_head < 1 || b->n_head > LIMIT_HEADS || b->n_head_kv < 1 || b->n_head_kv > b->n_head)
        hf_fail(b, LOAM_E_FORMAT, "%lld attention heads with %lld key heads", (long long)b->n_head, (long long)b->n_head_kv);
    if (b->n_expert > LIMIT_EXPERTS) hf_fail(b, LOAM_E_FORMAT, "%lld experts (at most %d)", (long long)b->n_expert, LIMIT_EXPERTS);
    if (b->status != LOAM_OK) return;
    b->head_dim = hf_config_int(b, "head_dim d_kv", b->width / b->n_head);
    if (b->width < 1 || b->head_dim < 1) hf_fail(b, LOAM_E_FORMAT, "hidden_size %lld for %lld heads", (long long)b->width, (long long)b->n_head);
}

static void check_activation(hf_build *b)
{
    static const char keys[] = "hidden_activation hidden_act activation_function feed_forward_proj";
    text_view act;
    if (!js_text(hf_config_get(b, keys), &act) || hf_word_in(b->arch->acts, act)) return;
    hf_fail(b, LOAM_E_UNSUPPORTED, "activation '%s'; models of '%s' compute %s", gguf_quote(act.data, act.len).text, b->arch->name,
            b->arch->acts);
}

static void check_quantization(hf_build *b)
{
    text_view method, format;
    const js *q = hf_config_get(b, "quantization_config");
    if (!js_text(js_get(q, "quant_method"), &method)) return;
    bool floats = js_text_is(method, "fp8") || js_text_is(method, "fbgemm_fp8");
    if (js_text_is(method, "compressed-tensors")) floats = js_text(js_get(q, "format"), &format) && js_text_is(format, "float-quantized");
    if (!floats)
        hf_fail(b, LOAM_E_UNSUPPORTED, "weights quantized by '%s'; only scaled 8-bit floats are read",
                gguf_quote(method.data, method.len).text);
}

/* The last part of the folder's path. */
static void put_name(hf_build *b)
{
    size_t end = strlen(b->path);
    while (end > 1 && b->path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && b->path[begin - 1] != '/') begin--;
    if (end > begin) gguf_set_text(b->b, "general.name", b->path + begin, end - begin);
}

/* GGUF models of some architectures see everything where the folder's has a window: the same within the window. */
static void warn_window(hf_build *b)
{
    int64_t window = hf_config_int(b, "sliding_window", 0), context = hf_config_int(b, "max_position_embeddings", 0);
    for (const hf_key *k = b->arch->keys; k->from; k++)
        if (strcmp(k->from, "sliding_window") == 0) return;
    if (window > 0 && window < context && hf_config_bool(b, "use_sliding_window", true))
        log_at(LOAM_LOG_WARN, "%s: models of '%s' have no sliding window; beyond its %lld tokens they see more than this one was trained with",
               b->path, b->arch->name, (long long)window);
}

void hf_put_config(hf_build *b)
{
    gguf_set_text(b->b, "general.architecture", b->arch->name, strlen(b->arch->name));
    gguf_set_text(b->b, "general.type", "model", 5);
    put_name(b);
    read_facts(b);
    check_activation(b);
    check_quantization(b);
    for (const hf_key *k = b->arch->keys; k->from && b->status == LOAM_OK; k++) put_key(b, k);
    if (b->status != LOAM_OK) return;
    warn_window(b);
    if (hf_config_get(b, "num_key_value_heads")) hf_set_int(b, "attention.head_count_kv", b->n_head_kv);
    if (hf_config_get(b, "head_dim")) {
        hf_set_int(b, "attention.key_length", b->head_dim);
        hf_set_int(b, "attention.value_length", b->head_dim);
    }
}
