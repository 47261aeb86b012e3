/* adapters.c - --lora and --control-vector: what a context adds to its model.
 *
 * A control vector file is a GGUF whose tensors direction.1, direction.2, ... have n_embd floats for the block of that number;
 * blocks without one get nothing. Several files are summed, each with its strength. */
#include <stdlib.h>
#include <string.h>

#include "loam/gguf.h"
#include "loam/quant.h"
#include "session.h"

/* FILE[=STRENGTH]: a number behind the last '=' is a strength, anything else belongs to the name. */
static char *split_strength(const char *text, float *strength)
{
    char *path = need(strdup(text)), *equals = strrchr(path, '='), *end;
    *strength = 1.0f;
    if (!equals || !equals[1]) return path;
    double v = strtod(equals + 1, &end);
    if (*end || v - v != 0) return path;
    *strength = (float)v;
    *equals = 0;
    return path;
}

static int open_adapters(session *s, const options *o)
{
    float strengths[LOAM_MAX_ADAPTERS];
    loam_error err;
    for (int i = 0; i < o->n_list; i++) {
        if (o->list_of[i] != OPT_LORA) continue;
        if (s->n_adapters == LOAM_MAX_ADAPTERS) return say_usage(o, "--lora: at most %d adapters", LOAM_MAX_ADAPTERS);
        char *path = split_strength(o->list[i], &strengths[s->n_adapters]);
        loam_status status = loam_adapter_open(&s->adapters[s->n_adapters], s->model, path, &err);
        free(path);
        if (status != LOAM_OK) return say_error(o, &err);
        s->n_adapters++;
    }
    if (s->n_adapters == 0) return EXIT_DONE;
    loam_status status = loam_context_set_adapters(s->ctx, s->adapters, strengths, (size_t)s->n_adapters, &err);
    return status == LOAM_OK ? EXIT_DONE : say_error(o, &err);
}

/* FIRST-LAST of --control-vector-layers; all blocks without it. */
static int layer_range(const session *s, const options *o, int32_t range[2])
{
    const char *text = opt_text(o, OPT_CONTROL_LAYERS);
    int32_t most = loam_model_n_layer(s->model) - 1;
    char *end;
    range[0] = 1;
    range[1] = most;
    if (!text) return EXIT_DONE;
    long first = strtol(text, &end, 10), last = first;
    bool fine = end != text && first >= 1;
    if (fine && (*end == '-' || *end == ',')) {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        fine = end != second;
    }
    if (!fine || *end || last < first || last > most)
        return say_usage(o, "--control-vector-layers %s: must be FIRST-LAST within 1-%d", text, most);
    range[0] = (int32_t)first;
    range[1] = (int32_t)last;
    return EXIT_DONE;
}

/* Adds strength times one tensor of the file to the block's row. */
static int add_direction(const session *s, const options *o, const loam_gguf_tensor *t, float strength, float *sum)
{
    int32_t n_embd = loam_model_n_embd(s->model), n_layer = loam_model_n_layer(s->model);
    char *end;
    loam_error err;
    long block = strtol(t->name + 10, &end, 10);
    if (end == t->name + 10 || *end || block < 1 || block >= n_layer)
        return say_failed(o, "%s: the model has the blocks 1 to %d beside its first", t->name, n_layer - 1);
    if (t->ne[0] != n_embd || t->ne[1] != 1)
        return say_failed(o, "%s has %lld x %lld values, the model is %d wide", t->name, (long long)t->ne[0], (long long)t->ne[1], n_embd);
    float *row = need(malloc((size_t)n_embd * sizeof *row));
    loam_rows shape = { .type = t->type, .rows = 1, .n = n_embd };
    int code = loam_quant_decode(&shape, t->data, t->bytes, row, &err) == LOAM_OK ? EXIT_DONE : say_error(o, &err);
    for (int32_t i = 0; i < n_embd && code == EXIT_DONE; i++) sum[(block - 1) * n_embd + i] += strength * row[i];
    free(row);
    return code;
}

static int add_file(const session *s, const options *o, const char *path, float strength, float *sum)
{
    loam_gguf *f;
    loam_gguf_tensor t;
    loam_gguf_value v;
    loam_error err;
    int code = EXIT_DONE, found = 0;
    const char *arch = loam_model_architecture(s->model), *hint;
    size_t len;
    uint64_t cursor = 0;
    if (loam_gguf_open(&f, path, NULL, &err) != LOAM_OK) return say_error(o, &err);
    if (loam_gguf_key_find(f, "controlvector.model_hint", &v) && loam_gguf_text(&v, &cursor, &hint, &len) &&
        (len != strlen(arch) || memcmp(hint, arch, len) != 0))
        code = say_failed(o, "%s: a control vector for '%.*s', the model is '%s'", path, (int)len, hint, arch);
    for (uint32_t i = 0; code == EXIT_DONE && loam_gguf_tensor_at(f, i, &t); i++) {
        if (strncmp(t.name, "direction.", 10) != 0) continue;
        code = add_direction(s, o, &t, strength, sum);
        found++;
    }
    if (code == EXIT_DONE && !found) code = say_failed(o, "%s: no control vector: it has no tensor direction.N", path);
    loam_gguf_free(f);
    return code;
}

static int set_control(session *s, const options *o)
{
    int32_t n_embd = loam_model_n_embd(s->model), range[2];
    size_t n = (size_t)n_embd * (size_t)(loam_model_n_layer(s->model) - 1);
    loam_error err;
    if (!opt_given(o, OPT_CONTROL))
        return opt_given(o, OPT_CONTROL_LAYERS) ? say_usage(o, "--control-vector-layers is about --control-vector, which is not given") : EXIT_DONE;
    int code = layer_range(s, o, range);
    if (code != EXIT_DONE) return code;
    float *sum = need(calloc(n + 1, sizeof *sum));
    for (int i = 0; i < o->n_list && code == EXIT_DONE; i++) {
        float strength;
        if (o->list_of[i] != OPT_CONTROL) continue;
        char *path = split_strength(o->list[i], &strength);
        code = add_file(s, o, path, strength, sum);
        free(path);
    }
    if (code == EXIT_DONE && loam_context_set_control(s->ctx, sum, n, n_embd, range[0], range[1], &err) != LOAM_OK) code = say_error(o, &err);
    free(sum);
    return code;
}

int session_adapters(session *s, const options *o)
{
    int code = open_adapters(s, o);
    return code == EXIT_DONE ? set_control(s, o) : code;
}

void session_drop_adapters(session *s)
{
    for (int i = 0; i < s->n_adapters; i++) loam_adapter_free(s->adapters[i]);
    s->n_adapters = 0;
}
