/* open.c - opening a model: file, architecture, hyper-parameters, weights, tokenizer; and the facts about it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "model/fresh.h"
#include "model/model_impl.h"
#include "quant/quant.h"

loam_model_params loam_model_defaults(void)
{
    return (loam_model_params) { .struct_size = sizeof(loam_model_params), .use_mmap = true, .n_gpu_layers = -1 };
}

/* ---- description ---- */

/* Names of general.file_type. */
static const char *const file_types[] = {
    [0] = "F32",      [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",     [7] = "Q8_0",    [8] = "Q5_0",    [9] = "Q5_1",
    [10] = "Q2_K",    [11] = "Q3_K_S",  [12] = "Q3_K_M", [13] = "Q3_K_L",  [14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S",
    [17] = "Q5_K_M",  [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS", [23] = "IQ3_XXS",
    [24] = "IQ1_S",   [25] = "IQ4_NL",  [26] = "IQ3_S",  [27] = "IQ3_M",   [28] = "IQ2_S",  [29] = "IQ2_M",  [30] = "IQ4_XS",
    [31] = "IQ1_M",   [32] = "BF16",    [36] = "TQ1_0",  [37] = "TQ2_0",   [38] = "MXFP4",
};

/* The file's own word for its mix of types, else the type that most bytes have; in capitals. */
static void print_mix(const gguf_file *f, char out[16])
{
    int64_t type = -1;
    gguf_get_i64(f, "general.file_type", GGUF_OPTIONAL, &type, NULL);
    bool named = type >= 0 && type < (int64_t)(sizeof file_types / sizeof *file_types) && file_types[type];
    snprintf(out, 16, "%s", named ? file_types[type] : "");
    if (*out) return;
    uint64_t bytes[LOAM_TYPE_LIMIT] = { 0 };
    int most = LOAM_F32;
    for (uint32_t i = 0; i < gguf_tensor_count(f); i++) {
        const gguf_tensor *t = gguf_tensor_at(f, i);
        bytes[t->type] += t->bytes;
        if (bytes[t->type] > bytes[most]) most = (int)t->type;
    }
    snprintf(out, 16, "%s", loam_type_name(most));
    for (char *c = out; *c; c++) *c = (char)toupper((unsigned char)*c);
}

/* A count with three digits: "270 M", "1.24 B". */
static void print_count(uint64_t n, char *out, size_t size)
{
    static const char *const units[] = { "", " K", " M", " B", " T" };
    int u = 0;
    uint64_t unit = 1;
    while (u < 4 && n >= unit * 1000) unit *= 1000, u++;
    unsigned long long whole = n / unit, hundredths = n % unit * 100 / unit;
    if (u == 0 || whole >= 100) snprintf(out, size, "%llu%s", whole, units[u]);
    else if (whole >= 10) snprintf(out, size, "%llu.%llu%s", whole, hundredths / 10, units[u]);
    else snprintf(out, size, "%llu.%02llu%s", whole, hundredths, units[u]);
}

static void describe(loam_model *m)
{
    char count[32], mix[16];
    for (uint32_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        m->n_params += (uint64_t)gguf_values(t);
        m->bytes += t->bytes;
    }
    print_count(m->n_params, count, sizeof count);
    print_mix(m->file, mix);
    if (m->vocab_only) snprintf(m->description, sizeof m->description, "%s vocabulary", m->architecture);
    else snprintf(m->description, sizeof m->description, "%s %s %s", m->architecture, count, mix);
}

void model_set_weight(loam_model *m, uint32_t i, loam_type type, const void *data)
{
    const gguf_tensor *t = gguf_tensor_at(m->file, i);
    weight *w = &m->weights[i];
    w->type = data ? type : t->type;
    w->data = data ? data : t->data;
    dtype_row_bytes(w->type, w->ne[0], &w->row_bytes);
}

/* ---- fingerprint ---- */

static uint64_t fingerprint(const loam_model *m)
{
    size_t prefix = strlen(m->architecture);
    uint64_t h = XXH3_64bits(m->architecture, prefix);
    for (uint32_t i = 0; i < gguf_key_count(m->file); i++) {
        const gguf_key *k = gguf_key_at(m->file, i);
        if (k->name_len <= prefix || memcmp(k->name, m->architecture, prefix) || k->name[prefix] != '.') continue;
        h = XXH3_64bits_withSeed(k->name, k->name_len, h);
        h = XXH3_64bits_withSeed(k->data, k->bytes, h);
    }
    for (uint32_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        h = XXH3_64bits_withSeed(t->name, strlen(t->name), h ^ (uint64_t)t->type);
        h = XXH3_64bits_withSeed(t->ne, sizeof t->ne, h);
    }
    return h;
}

/* ---- opening ---- */

static loam_status find_architecture(loam_model *m, loam_error *err)
{
    text_view name = { NULL, 0 };
    const char *path = gguf_path(m->file);
    loam_status s = gguf_get_text(m->file, "general.architecture", GGUF_OPTIONAL, &name, err);
    if (s != LOAM_OK) return s;
    if (!name.len)
        return fail(err, LOAM_E_FORMAT, "%s: key 'general.architecture' is missing: what model the file holds is unknown", path);
    const arch_spec *a = arch_find(name.data, name.len);
    if (!a && !m->vocab_only) return arch_refuse(name.data, name.len, path, err);
    if (a) m->spec = *a;
    arch_printable(m->architecture, name.data, name.len);
    return LOAM_OK;
}

static loam_status check_tensors(const loam_model *m, loam_error *err)
{
    for (uint32_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        loam_rows rows = { t->type, t->ne[1] * t->ne[2] * t->ne[3], t->ne[0] };
        loam_status s = quant_check_rows(&rows, t->data, err);
        if (s != LOAM_OK) return fail_prefix(err, s, "%s: tensor '%s'", gguf_path(m->file), t->name);
    }
    return LOAM_OK;
}

static loam_status load(loam_model *m, const char *path, const loam_model_params *p, loam_error *err)
{
    loam_status s = gguf_open(&m->file, path, p->use_mmap ? 0 : GGUF_READ, err);
    if (s == LOAM_OK) s = find_architecture(m, err);
    if (s == LOAM_OK && !m->vocab_only) {
        s = hparams_read(&m->hp, &m->spec, m->file, err);
        if (s == LOAM_OK) s = model_bind(m, err);
        if (s == LOAM_OK && p->check_tensors) s = check_tensors(m, err);
    }
    if (s == LOAM_OK) s = model_attach_tokenizer(m, err);
    if (s != LOAM_OK) return s;
    if (!m->vocab_only) m->n_vocab = (int32_t)SYM(m->hp.sym, V);
    if (!m->vocab_only) s = model_place(m, p, err);
    if (s != LOAM_OK) return s;
    describe(m);
    m->fingerprint = fingerprint(m);
    if (p->use_mlock && !gguf_lock(m->file)) log_at(LOAM_LOG_WARN, "%s: the system refuses to keep the weights in memory", path);
    return LOAM_OK;
}

loam_status loam_model_open(loam_model **out, const char *path, const loam_model_params *params, loam_error *err)
{
    if (!out) return fail(err, LOAM_E_ARG, "loam_model_open: out is NULL");
    *out = NULL;
    if (!path) return fail(err, LOAM_E_ARG, "loam_model_open: path is NULL");
    loam_model_params p = loam_model_defaults();
    if (params) {
        if (params->struct_size < sizeof params->struct_size || params->struct_size > sizeof p)
            return fail(err, LOAM_E_ARG, "loam_model_params.struct_size is %zu; begin with loam_model_defaults()",
                        params->struct_size);
        memcpy(&p, params, params->struct_size);
    }
    loam_model *m = mem_zalloc(sizeof *m);
    if (!m) return fail_nomem(err, "model", sizeof *m);
    m->vocab_only = p.vocab_only;
    loam_status s = load(m, path, &p, err);
    if (s != LOAM_OK) {
        loam_model_free(m);
        return s;
    }
    *out = m;
    return LOAM_OK;
}

loam_status model_wishes(const char *path, wishes *w, loam_error *err)
{
    loam_model *m = mem_zalloc(sizeof *m);
    if (!m) return fail_nomem(err, "model", sizeof *m);
    m->wishes = w;
    loam_status s = gguf_open(&m->file, path, GGUF_READ, err);
    if (s == LOAM_OK) s = find_architecture(m, err);
    if (s == LOAM_OK) s = hparams_read(&m->hp, &m->spec, m->file, err);
    if (s == LOAM_OK) s = model_bind(m, err);
    loam_model_free(m);
    return s;
}

void loam_model_free(loam_model *m)
{
    if (!m) return;
    model_detach_tokenizer(m);
    model_unplace(m);
    for (int i = 0; m->owned && i < 2 * m->hp.n_layer; i++) mem_free(m->owned[i]);
    mem_free(m->owned);
    mem_free(m->owned_weights);
    mem_free(m->blocks);
    mem_free(m->encoder);
    mem_free(m->used);
    mem_free(m->weights);
    hparams_free(&m->hp);
    gguf_close(m->file);
    mem_free(m);
}

/* ---- facts ---- */

const loam_tokenizer *loam_model_tokenizer(const loam_model *m) { return m->tokenizer; }
const char *loam_model_architecture(const loam_model *m) { return m->architecture; }
const char *loam_model_description(const loam_model *m) { return m->description; }
int32_t loam_model_n_vocab(const loam_model *m) { return m->n_vocab; }
int32_t loam_model_n_ctx_train(const loam_model *m) { return (int32_t)SYM(m->hp.sym, P); }
int32_t loam_model_n_embd(const loam_model *m) { return (int32_t)SYM(m->hp.sym, D); }
int32_t loam_model_n_layer(const loam_model *m) { return m->hp.n_layer; }
uint64_t loam_model_n_params(const loam_model *m) { return m->n_params; }
uint64_t loam_model_bytes(const loam_model *m) { return m->bytes; }
bool loam_model_is_causal(const loam_model *m) { return m->vocab_only || m->hp.causal; }

/* The largest of the blocks: they may differ. */
int32_t loam_model_n_head(const loam_model *m)
{
    int64_t n = 0;
    for (int i = 0; i < m->hp.n_layer; i++) n = m->hp.layers[i].n_head > n ? m->hp.layers[i].n_head : n;
    return (int32_t)n;
}

int32_t loam_model_n_head_kv(const loam_model *m)
{
    int64_t n = 0;
    for (int i = 0; i < m->hp.n_layer; i++) n = m->hp.layers[i].n_head_kv > n ? m->hp.layers[i].n_head_kv : n;
    return (int32_t)n;
}

/* The decimal point of a locale becomes '.'. */
static void print_float(double v, char *out, size_t size)
{
    char text[40];
    size_t n = 0;
    snprintf(text, sizeof text, "%.9g", v);
    for (const char *c = text; *c && n + 1 < size; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || *c == '-' || *c == '+';
        if (plain || n == 0 || out[n - 1] != '.') out[n++] = plain ? *c : '.';
    }
    out[n] = 0;
}

/* A number or flag as text. */
static void print_scalar(const gguf_file *f, const char *key, gguf_kind kind, char out[40])
{
    int64_t i = 0;
    uint64_t u = 0;
    float x = 0;
    bool b = false;
    bool is_float = kind == GGUF_F32 || kind == GGUF_F64;
    if (kind == GGUF_BOOL && gguf_get_bool(f, key, GGUF_REQUIRED, &b, NULL) == LOAM_OK) snprintf(out, 40, b ? "true" : "false");
    else if (is_float && gguf_get_f32(f, key, GGUF_REQUIRED, &x, NULL) == LOAM_OK) print_float(x, out, 40);
    else if (gguf_get_i64(f, key, GGUF_REQUIRED, &i, NULL) == LOAM_OK) snprintf(out, 40, "%lld", (long long)i);
    else if (gguf_get_u64(f, key, GGUF_REQUIRED, &u, NULL) == LOAM_OK) snprintf(out, 40, "%llu", (unsigned long long)u);
}

bool loam_model_meta(const loam_model *m, const char *key, char *text, size_t size, size_t *len)
{
    char number[40] = "";
    text_view v = { number, 0 };
    const gguf_key *k = key ? gguf_key_find(m->file, key) : NULL;
    if (!k || k->kind == GGUF_ARRAY) return false;
    if (k->kind == GGUF_STRING) {
        gguf_get_text(m->file, key, GGUF_REQUIRED, &v, NULL);
    } else {
        print_scalar(m->file, key, k->kind, number);
        v.len = strlen(number);
    }
    if (len) *len = v.len;
    if (text && size) {
        size_t n = v.len < size - 1 ? v.len : size - 1;
        if (n) memcpy(text, v.data, n);
        text[n] = 0;
    }
    return true;
}

/* ---- what the context asks ---- */

int model_n_layer(const loam_model *m) { return m->hp.n_layer; }

layer_cache model_layer_cache(const loam_model *m, int layer)
{
    const hparams *h = &m->hp;
    if (layer < 0 || layer >= model_n_cache(m)) return (layer_cache) { .present = false };
    const layer_facts *l = &h->layers[layer % h->n_layer];
    int part = layer / h->n_layer; /* of two stacks: 0 decoder, 1 encoder, 2 cross attention */
    bool skipped = m->spec.block_kinds && !l->n_ff;
    if (model_has_cross(m) && part != 1 && layer % h->n_layer >= h->n_decoder) skipped = true;
    bool state = l->mixer == MIXER_RECURRENT || l->mixer == MIXER_BOTH;
    int64_t r_row = 0, s_row = 0;
    if (state) hparams_state_rows(h, &r_row, &s_row);
    return (layer_cache) {
        .r_row = r_row, .s_row = s_row, .encode = model_keeps_nothing(m) || part > 0,
        .present = (l->mixer == MIXER_ATTENTION || l->mixer == MIXER_BOTH) && l->n_head && l->n_head_kv && !skipped,
        .n_kv_head = (int)l->n_head_kv,
        .k_dim = (int)SYM(h->sym, K), .v_dim = (int)SYM(h->sym, W), .window = l->window ? h->window : WINDOW_NONE,
        .window_size = l->window ? h->window_size : 0,
    };
}

bool model_causal(const loam_model *m) { return m->hp.causal; }

bool model_can_shift(const loam_model *m)
{
    rope_kind k = m->hp.rope.kind;
    bool turns = m->hp.rope.none || k == ROPE_NORM || k == ROPE_NEOX;
    return m->spec.stack == STACK_DECODER && !m->globals.t[T_POSITION_EMBD].w && turns;
}

int32_t model_position_limit(const loam_model *m)
{
    return m->globals.t[T_POSITION_EMBD].w ? (int32_t)SYM(m->hp.sym, P) : INT32_MAX;
}

const gguf_file *model_file(const loam_model *m) { return m->file; }

uint64_t model_fingerprint(const loam_model *m) { return m->fingerprint; }

bool model_tensor_data(const loam_model *m, uint32_t i, const uint8_t **data, uint64_t *bytes)
{
    if (i >= gguf_tensor_count(m->file)) return false;
    *data = gguf_tensor_at(m->file, i)->data;
    *bytes = gguf_tensor_at(m->file, i)->bytes;
    return true;
}

bool model_vocab_only(const loam_model *m) { return m->vocab_only; }
