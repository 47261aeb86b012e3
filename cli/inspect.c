/* inspect.c - `loam inspect`: the metadata and tensors of a GGUF file, of any architecture. Long arrays are shown by their
 * first elements; as JSON by kind and count where they have more than SHORT elements. With --memory: what a context would take. */
#include <stdlib.h>
#include <string.h>

#include "loam/gguf.h"
#include "session.h"

#define SHORT 64
#define FIRST 6 /* elements of an array that are printed */

static char *key_of(const loam_gguf_value *v)
{
    char *key = need(malloc(v->key_len + 1));
    memcpy(key, v->key, v->key_len);
    key[v->key_len] = 0;
    return key;
}

static void json_element(json *j, const char *key, const loam_gguf_value *v, uint64_t i, uint64_t *cursor)
{
    int64_t n;
    double x;
    bool b;
    const char *text;
    size_t len;
    if (loam_gguf_text(v, cursor, &text, &len)) json_text(j, key, text, len);
    else if (loam_gguf_int(v, i, &n)) json_int(j, key, n);
    else if (loam_gguf_float(v, i, &x)) json_num(j, key, x);
    else if (loam_gguf_bool(v, i, &b)) json_bool(j, key, b);
    else json_null(j, key);
}

static void json_value(json *j, const char *key, const loam_gguf_value *v)
{
    uint64_t cursor = 0;
    if (v->kind != LOAM_GGUF_ARRAY) {
        json_element(j, key, v, 0, &cursor);
    } else if (v->count <= SHORT) {
        json_open(j, key, '[');
        for (uint64_t i = 0; i < v->count; i++) json_element(j, NULL, v, i, &cursor);
        json_close(j, ']');
    } else {
        json_open(j, key, '{');
        json_string(j, "item", loam_gguf_kind_name(v->item));
        json_int(j, "count", (int64_t)v->count);
        json_close(j, '}');
    }
}

static void print_json(const loam_gguf *f, const char *path)
{
    json j;
    loam_gguf_value v;
    loam_gguf_tensor t;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "file", path);
    json_int(&j, "bytes", (int64_t)loam_gguf_bytes(f));
    json_int(&j, "version", loam_gguf_version(f));
    json_int(&j, "alignment", loam_gguf_alignment(f));
    json_int(&j, "parts", loam_gguf_n_parts(f));
    json_open(&j, "metadata", '{');
    for (uint32_t i = 0; loam_gguf_key_at(f, i, &v); i++) {
        char *key = key_of(&v);
        json_value(&j, key, &v);
        free(key);
    }
    json_close(&j, '}');
    json_open(&j, "tensors", '[');
    for (uint32_t i = 0; loam_gguf_tensor_at(f, i, &t); i++) {
        json_open(&j, NULL, '{');
        json_string(&j, "name", t.name);
        json_string(&j, "type", loam_type_name(t.type));
        json_open(&j, "shape", '[');
        for (int d = 0; d < t.n_dims; d++) json_int(&j, NULL, t.ne[d]);
        json_close(&j, ']');
        json_int(&j, "bytes", (int64_t)t.bytes);
        json_int(&j, "offset", (int64_t)t.offset);
        json_int(&j, "part", t.part);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

/* One line whatever the text holds: control characters as in JSON; long texts are cut. */
static void print_element(const loam_gguf_value *v, uint64_t i, uint64_t *cursor)
{
    json j = { .f = stdout };
    const char *text;
    size_t len;
    if (v->item == LOAM_GGUF_STRING && loam_gguf_text(v, cursor, &text, &len)) {
        json_text(&j, NULL, text, len > 100 ? 100 : len);
        if (len > 100) printf(" ... (%zu bytes)", len);
        return;
    }
    json_element(&j, NULL, v, i, cursor);
}

static void print_key(const loam_gguf_value *v)
{
    uint64_t cursor = 0, shown = v->count < FIRST ? v->count : FIRST;
    printf("  %-44.*s ", (int)v->key_len, v->key);
    if (v->kind != LOAM_GGUF_ARRAY) {
        print_element(v, 0, &cursor);
    } else {
        printf("%s[%llu]", loam_gguf_kind_name(v->item), (unsigned long long)v->count);
        for (uint64_t i = 0; i < shown; i++) {
            fputs(i ? ", " : " ", stdout);
            print_element(v, i, &cursor);
        }
        if (shown < v->count) fputs(", ...", stdout);
    }
    putchar('\n');
}

typedef struct sums {
    uint64_t bytes[LOAM_TYPE_LIMIT], values[LOAM_TYPE_LIMIT];
    uint32_t tensors[LOAM_TYPE_LIMIT];
} sums;

static void print_sums(const sums *s)
{
    uint64_t bytes = 0, values = 0;
    for (int t = 0; t < LOAM_TYPE_LIMIT; t++) {
        bytes += s->bytes[t];
        values += s->values[t];
        if (s->tensors[t])
            printf("  %-8s %6u tensors %16llu values %14llu bytes\n", loam_type_name(t), s->tensors[t],
                   (unsigned long long)s->values[t], (unsigned long long)s->bytes[t]);
    }
    printf("  all      %llu values in %llu bytes, %.2f bits a value\n", (unsigned long long)values, (unsigned long long)bytes,
           values ? (double)bytes * 8 / (double)values : 0.0);
}

static void print_text(const loam_gguf *f, const char *path)
{
    loam_gguf_value v;
    loam_gguf_tensor t;
    sums s = { { 0 }, { 0 }, { 0 } };
    printf("%s: GGUF version %u, %llu bytes, %u part%s, %u keys, %u tensors\n\nmetadata\n", path, loam_gguf_version(f),
           (unsigned long long)loam_gguf_bytes(f), loam_gguf_n_parts(f), loam_gguf_n_parts(f) == 1 ? "" : "s",
           loam_gguf_n_keys(f), loam_gguf_n_tensors(f));
    for (uint32_t i = 0; loam_gguf_key_at(f, i, &v); i++) print_key(&v);
    printf("\ntensors\n");
    for (uint32_t i = 0; loam_gguf_tensor_at(f, i, &t); i++) {
        char shape[96];
        size_t n = 0;
        uint64_t values = 1;
        for (int d = 0; d < t.n_dims; d++) {
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%lld", d ? " x " : "", (long long)t.ne[d]);
            values *= (uint64_t)t.ne[d];
        }
        printf("  %-44s %-8s %s\n", t.name, loam_type_name(t.type), shape);
        s.bytes[t.type] += t.bytes;
        s.values[t.type] += values;
        s.tensors[t.type]++;
    }
    printf("\ntypes\n");
    print_sums(&s);
}

/* ---- --memory ---- */

static void print_use(const options *o, const loam_context_params *p, const loam_memory_use *u)
{
    const struct { const char *name; uint64_t bytes; } parts[] = {
        { "weights", u->weights }, { "cache", u->cache }, { "buffers", u->buffers }, { "outputs", u->outputs }, { "tables", u->tables },
        { "total", u->weights + u->cache + u->buffers + u->outputs + u->tables },
    };
    json j;
    if (opt_given(o, OPT_JSON)) {
        json_begin(&j, stdout);
        json_open(&j, NULL, '{');
        json_int(&j, "n_ctx", p->n_ctx);
        json_int(&j, "n_batch", p->n_batch);
        json_int(&j, "n_ubatch", p->n_ubatch);
        json_int(&j, "n_seq_max", p->n_seq_max);
        json_string(&j, "cache_type_k", loam_type_name((int)p->type_k));
        json_string(&j, "cache_type_v", loam_type_name((int)p->type_v));
    } else {
        printf("%u tokens, %u sequence%s, batches of %u in steps of %u, cache of %s keys and %s values\n", p->n_ctx, p->n_seq_max,
               p->n_seq_max == 1 ? "" : "s", p->n_batch, p->n_ubatch, loam_type_name((int)p->type_k), loam_type_name((int)p->type_v));
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (opt_given(o, OPT_JSON)) json_int(&j, parts[i].name, (int64_t)parts[i].bytes);
        else printf("  %-8s %15llu bytes %12.1f MiB%s\n", parts[i].name, (unsigned long long)parts[i].bytes, (double)parts[i].bytes / 1048576,
                    i == 0 ? "  (mapped, shared by all contexts)" : "");
    }
    if (opt_given(o, OPT_JSON)) json_close(&j, '}');
}

static int inspect_memory(const options *o, const char *path)
{
    session s = { 0 };
    loam_error err;
    loam_memory_use use;
    show_log(o);
    if (loam_model_open(&s.model, path, NULL, &err) != LOAM_OK) return say_error(o, &err);
    loam_context_params p = session_params(&s, o);
    p.n_ctx = (uint32_t)opt_int(o, OPT_INSPECT_CTX);
    p.n_seq_max = (uint32_t)opt_int(o, OPT_PARALLEL);
    int code = loam_context_estimate(s.model, &p, &use, &err) == LOAM_OK ? EXIT_DONE : say_error(o, &err);
    if (code == EXIT_DONE) {
        if (p.n_ctx == 0) p.n_ctx = (uint32_t)loam_model_n_ctx_train(s.model);
        print_use(o, &p, &use);
    }
    session_close(&s);
    return code == EXIT_DONE ? flush_output(o, stdout, "standard output") : code;
}

/* Options of a context say something only with --memory. */
static int check_memory_options(const options *o)
{
    static const option_id about[] = { OPT_INSPECT_CTX, OPT_PARALLEL, OPT_BATCH, OPT_UBATCH, OPT_THREADS, OPT_THREADS_BATCH, OPT_TYPE_K, OPT_TYPE_V,
                                       OPT_ROPE_SCALING, OPT_ROPE_FREQ_BASE, OPT_ROPE_FREQ_SCALE, OPT_YARN_ORIG_CTX };
    for (size_t i = 0; i < sizeof about / sizeof *about; i++)
        if (opt_given(o, about[i]) && !opt_given(o, OPT_MEMORY)) return say_usage(o, "%s has an effect only with --memory", option_shown_name(about[i]));
    return EXIT_DONE;
}

int cmd_inspect(const options *o)
{
    const char *path = o->n_words ? o->words[0] : opt_text(o, OPT_MODEL);
    if (!path) return say_usage(o, "name a FILE, or give it by -m");
    if (o->n_words && opt_given(o, OPT_MODEL)) return say_usage(o, "name one file, either as a word or by -m");
    int code = check_memory_options(o);
    if (code != EXIT_DONE) return code;
    if (opt_given(o, OPT_MEMORY)) return inspect_memory(o, path);
    loam_gguf *f;
    loam_error err;
    if (loam_gguf_open(&f, path, NULL, &err) != LOAM_OK) return say_error(o, &err);
    if (opt_given(o, OPT_JSON)) print_json(f, path);
    else print_text(f, path);
    loam_gguf_free(f);
    return flush_output(o, stdout, "standard output");
}
