/* job_config.c - the keys of a training run's description. One row a key: where it stands, what it may be, its default.
 *
 *   { "model": {"architecture": "llama", "n_layer": 6, ...}, "tokenizer": "vocabulary.gguf",
 *     "data": {"train": "stories.txt"}, "optimizer": {"rate": 0.001}, "steps": 1000, "output": "model.gguf" } */
#include "train/job_config.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/near.h"

typedef enum kind { INT, NUM, BOOL, TEXT, TEXTS, ONE, OBJECT } kind;

typedef struct row {
    const char *section, *name; /* section "": the document itself */
    kind kind;
    size_t at;                  /* in job_config; TEXTS: the array */
    size_t count_at;            /* TEXTS: its count */
    double lo, hi;              /* INT, NUM; TEXTS: hi is the capacity */
    double fallback;
    const char *choices;        /* ONE: "a|b|c" */
} row;

#define AT(field) offsetof(job_config, field)
#define INT_ROW(section, name, field, lo, hi, otherwise) { section, name, INT, AT(field), 0, lo, hi, otherwise, NULL }
#define NUM_ROW(section, name, field, lo, hi, otherwise) { section, name, NUM, AT(field), 0, lo, hi, otherwise, NULL }
#define BOOL_ROW(section, name, field, otherwise) { section, name, BOOL, AT(field), 0, 0, 0, otherwise, NULL }
#define TEXT_ROW(section, name, field) { section, name, TEXT, AT(field), 0, 0, 0, 0, NULL }
#define TEXTS_ROW(section, name, field, count, cap) { section, name, TEXTS, AT(field), AT(count), 0, cap, 0, NULL }
#define ONE_ROW(section, name, field, choices, otherwise) { section, name, ONE, AT(field), 0, 0, 0, otherwise, choices }

static const row rows[] = {
    TEXT_ROW("model", "architecture", architecture),
    INT_ROW("model", "n_layer", n_layer, 1, LIMIT_LAYERS, 0),
    INT_ROW("model", "n_embd", n_embd, 1, LIMIT_WIDTH, 0),
    INT_ROW("model", "n_head", n_head, 1, LIMIT_HEADS, 0),
    INT_ROW("model", "n_head_kv", n_head_kv, 1, LIMIT_HEADS, 0),
    INT_ROW("model", "head_dim", head_dim, 1, LIMIT_WIDTH, 0),
    INT_ROW("model", "n_ff", n_ff, 1, LIMIT_WIDTH, 0),
    INT_ROW("model", "n_ctx", n_ctx, 2, 1 << 20, 512),
    NUM_ROW("model", "norm_eps", norm_eps, 0, 1, 1e-5),
    NUM_ROW("model", "rope_base", rope_base, 1, 1e30, 10000),
    BOOL_ROW("model", "tied", tied, 1),
    { "model", "keys", OBJECT, AT(keys), 0, 0, 0, 0, NULL },
    TEXT_ROW("", "tokenizer", tokenizer),
    TEXT_ROW("", "base", base),
    INT_ROW("lora", "rank", lora_rank, 1, 65536, 0),
    NUM_ROW("lora", "alpha", lora_alpha, 0, 1e6, 16),
    NUM_ROW("lora", "dropout", lora_dropout, 0, 0.999, 0),
    TEXTS_ROW("lora", "targets", targets, n_targets, JOB_TARGETS),
    TEXTS_ROW("data", "train", train, n_train, JOB_FILES),
    TEXTS_ROW("data", "valid", valid, n_valid, JOB_FILES),
    NUM_ROW("data", "hold_out", hold_out, 0, 0.5, 0),
    ONE_ROW("data", "format", format, "auto|text|jsonl", 0),
    ONE_ROW("data", "split", split, "blank|line|file", 0),
    ONE_ROW("data", "too_long", too_long, "split|truncate|refuse", 0),
    BOOL_ROW("data", "shuffle", shuffle, 1),
    ONE_ROW("optimizer", "kind", optimizer, "adamw|sgd|muon", 0),
    NUM_ROW("optimizer", "rate", rate, 0, 1e6, 1e-3),
    NUM_ROW("optimizer", "beta1", beta1, 0, 1, 0.9),
    NUM_ROW("optimizer", "beta2", beta2, 0, 1, 0.95),
    NUM_ROW("optimizer", "eps", eps, 0, 1, 1e-8),
    NUM_ROW("optimizer", "momentum", momentum, 0, 1, -1),
    BOOL_ROW("optimizer", "nesterov", nesterov, 0),
    NUM_ROW("optimizer", "weight_decay", weight_decay, 0, 10, 0.01),
    BOOL_ROW("optimizer", "decay_all", decay_all, 0),
    NUM_ROW("optimizer", "clip", clip, 0, 1e30, 1),
    NUM_ROW("optimizer", "label_smoothing", label_smoothing, 0, 0.999, 0),
    NUM_ROW("optimizer", "muon_rate", muon_rate, 0, 1e6, 20),
    BOOL_ROW("optimizer", "small_state", small_state, 0),
    ONE_ROW("schedule", "kind", schedule, "constant|linear|cosine", 2),
    NUM_ROW("schedule", "floor", floor, 0, 1e6, 0),
    INT_ROW("schedule", "warmup", warmup, 0, 1e15, 0),
    INT_ROW("schedule", "decay", decay, -1, 1e15, -1),
    INT_ROW("batch", "n_ctx", row_tokens, 2, 1 << 20, 0),
    INT_ROW("batch", "rows", rows, 1, 1 << 20, 8),
    INT_ROW("batch", "accumulate", accumulate, 1, 1 << 20, 1),
    INT_ROW("", "steps", steps, 1, 1e15, 0),
    NUM_ROW("", "epochs", epochs, 1e-9, 1e9, 0),
    INT_ROW("", "seed", seed, 0, 9007199254740992.0, 0),
    INT_ROW("", "threads", threads, 0, LIMIT_THREADS, 0),
    BOOL_ROW("", "bf16", bf16, 0),
    BOOL_ROW("", "recompute", recompute, 0),
    INT_ROW("validation", "every", valid_every, 1, 1e15, 0),
    INT_ROW("validation", "rows", valid_rows, 1, 1e15, 0),
    INT_ROW("validation", "patience", patience, 1, 1e15, 0),
    TEXT_ROW("checkpoint", "file", checkpoint),
    INT_ROW("checkpoint", "every", save_every, 1, 1e15, 0),
    TEXT_ROW("", "output", output),
    ONE_ROW("", "type", type, "f32|f16|bf16", 0),
    TEXT_ROW("", "adapter", adapter),
    TEXT_ROW("", "peft", peft),
    TEXT_ROW("", "log", log),
};
#define N_ROWS (sizeof rows / sizeof *rows)

typedef struct reading {
    job_config *c;
    const char *label;
    loam_error *err;
} reading;

#define FIELD(c, offset, type) (*(type *)(void *)((char *)(c) + (offset)))

/* ---- names ---- */

/* "data.train" */
static const char *full_name(char out[96], const char *section, const char *name)
{
    snprintf(out, 96, "%s%s%s", section, *section ? "." : "", name);
    return out;
}

static int distance(const char *a, const char *b) { return near_distance(a, strlen(a), b, strlen(b)); }

static loam_status unknown_key(const reading *r, const char *section, text_view name)
{
    char text[64], near[96] = "", have[96];
    snprintf(text, sizeof text, "%.*s", (int)(name.len < 60 ? name.len : 60), name.data);
    int least = (int)strlen(text) / 2 + 1;
    for (size_t i = 0; i < N_ROWS; i++) {
        /* A key of the right name in the wrong section is near, too; so is the name of a section. */
        bool here = strcmp(rows[i].section, section) == 0;
        int d = here ? distance(text, rows[i].name) : strcmp(text, rows[i].name) == 0 ? 0 : 99;
        int e = !*section && *rows[i].section ? distance(text, rows[i].section) : 99;
        if (d < least) least = d, full_name(near, rows[i].section, rows[i].name);
        if (e < least) least = e, full_name(near, "", rows[i].section);
    }
    full_name(have, section, text);
    if (*near) return fail(r->err, LOAM_E_FORMAT, "%s: there is no key \"%s\"; did you mean \"%s\"?", r->label, have, near);
    return fail(r->err, LOAM_E_FORMAT, "%s: there is no key \"%s\"", r->label, have);
}

/* ---- values ---- */

static loam_status wrong(const reading *r, const row *k, const char *want)
{
    char name[96];
    return fail(r->err, LOAM_E_FORMAT, "%s: \"%s\" must be %s", r->label, full_name(name, k->section, k->name), want);
}

static const char *plain_text(const js *v)
{
    text_view t;
    return js_text(v, &t) && t.len && strlen(t.data) == t.len ? t.data : NULL;
}

static loam_status read_number(const reading *r, const row *k, const js *v)
{
    double x = 0;
    int64_t i = 0;
    char want[96];
    bool good = k->kind == INT ? js_int(v, &i) : js_number(v, &x);
    if (k->kind == INT) x = (double)i;
    if (good && x >= k->lo && x <= k->hi) {
        if (k->kind == INT) FIELD(r->c, k->at, int64_t) = i;
        else FIELD(r->c, k->at, double) = x;
        return LOAM_OK;
    }
    snprintf(want, sizeof want, "%s from %.10g to %.10g", k->kind == INT ? "a whole number" : "a number", k->lo, k->hi);
    return wrong(r, k, want);
}

static loam_status read_choice(const reading *r, const row *k, const js *v)
{
    text_view t;
    char want[96];
    int64_t at = 0;
    bool text = js_text(v, &t);
    for (const char *c = k->choices; text && *c; at++) {
        size_t n = strcspn(c, "|");
        if (t.len == n && memcmp(t.data, c, n) == 0) return FIELD(r->c, k->at, int64_t) = at, LOAM_OK;
        c += n;
        c += *c == '|';
    }
    snprintf(want, sizeof want, "one of %s", k->choices);
    return wrong(r, k, want);
}

/* A text, or an array of them. */
static loam_status read_texts(const reading *r, const row *k, const js *v)
{
    const char **out = &FIELD(r->c, k->at, const char *);
    size_t n = js_is_array(v) ? js_count(v) : 1;
    if (n == 0 || (double)n > k->hi) return wrong(r, k, "a text or a short list of them");
    for (size_t i = 0; i < n; i++)
        if (!(out[i] = plain_text(js_is_array(v) ? js_at(v, i) : v))) return wrong(r, k, "a text or a list of texts");
    FIELD(r->c, k->count_at, size_t) = n;
    return LOAM_OK;
}

static loam_status read_value(const reading *r, const row *k, const js *v)
{
    switch (k->kind) {
    case INT: case NUM: return read_number(r, k, v);
    case BOOL: return js_bool(v, &FIELD(r->c, k->at, bool)) ? LOAM_OK : wrong(r, k, "true or false");
    case TEXT: return (FIELD(r->c, k->at, const char *) = plain_text(v)) ? LOAM_OK : wrong(r, k, "a text");
    case TEXTS: return read_texts(r, k, v);
    case ONE: return read_choice(r, k, v);
    case OBJECT: return (FIELD(r->c, k->at, const js *) = js_is_object(v) ? v : NULL) ? LOAM_OK : wrong(r, k, "an object");
    }
    return LOAM_OK;
}

static const row *find_row(const char *section, text_view name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].section, section) == 0 && js_text_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

static bool is_section(text_view name, char out[32])
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (*rows[i].section && js_text_is(name, rows[i].section)) return snprintf(out, 32, "%s", rows[i].section), true;
    return false;
}

static loam_status read_section(const reading *r, const char *section, const js *object)
{
    for (js_member m = js_first(object); m.value; m = js_next(object, m)) {
        char inner[32];
        const row *k = find_row(section, m.key);
        loam_status s;
        if (k) s = read_value(r, k, m.value);
        else if (!*section && is_section(m.key, inner))
            s = js_is_object(m.value) ? read_section(r, inner, m.value) : fail(r->err, LOAM_E_FORMAT, "%s: \"%s\" must be an object", r->label, inner);
        else s = unknown_key(r, section, m.key);
        if (s != LOAM_OK) return s;
    }
    return LOAM_OK;
}

/* ---- the whole ---- */

static void set_defaults(job_config *c)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const row *k = &rows[i];
        if (k->kind == INT || k->kind == ONE) FIELD(c, k->at, int64_t) = (int64_t)k->fallback;
        else if (k->kind == NUM) FIELD(c, k->at, double) = k->fallback;
        else if (k->kind == BOOL) FIELD(c, k->at, bool) = k->fallback != 0;
    }
}

static loam_status missing(const reading *r, const char *key, const char *why)
{
    return fail(r->err, LOAM_E_FORMAT, "%s: \"%s\" is missing%s%s", r->label, key, why ? ": " : "", why ? why : "");
}

static loam_status check_model(const reading *r)
{
    const job_config *c = r->c;
    if (c->base && (js_get(c->document, "model") || c->tokenizer))
        return fail(r->err, LOAM_E_FORMAT, "%s: \"base\" brings its own sizes and vocabulary; leave out \"model\" and \"tokenizer\"", r->label);
    if (c->base) return LOAM_OK;
    if (!c->architecture) return missing(r, "model.architecture", "or \"base\", to tune a model");
    if (!c->n_layer) return missing(r, "model.n_layer", NULL);
    if (!c->n_embd) return missing(r, "model.n_embd", NULL);
    if (!c->n_head) return missing(r, "model.n_head", NULL);
    if (!c->n_ff) return missing(r, "model.n_ff", NULL);
    if (!c->tokenizer) return missing(r, "tokenizer", "a GGUF file whose vocabulary is taken; see loam tokenizer train");
    return LOAM_OK;
}

static loam_status check(const reading *r)
{
    job_config *c = r->c;
    loam_status s = check_model(r);
    if (s != LOAM_OK) return s;
    if (!c->n_train) return missing(r, "data.train", NULL);
    if (!c->steps && c->epochs == 0) return missing(r, "steps", "or \"epochs\"");
    if (c->steps && c->epochs > 0) return fail(r->err, LOAM_E_FORMAT, "%s: give either \"steps\" or \"epochs\"", r->label);
    if (c->n_valid && c->hold_out > 0) return fail(r->err, LOAM_E_FORMAT, "%s: give either \"data.valid\" or \"data.hold_out\"", r->label);
    bool lora = c->lora_rank > 0;
    if (!lora && (c->adapter || c->peft || c->n_targets))
        return fail(r->err, LOAM_E_FORMAT, "%s: an adapter needs \"lora.rank\"", r->label);
    if (!c->output && !c->adapter && !c->peft) return missing(r, "output", lora ? "or \"adapter\", or \"peft\"" : NULL);
    if (c->save_every && !c->checkpoint) return missing(r, "checkpoint.file", NULL);
    bool valid = c->n_valid || c->hold_out > 0;
    if (!valid && (c->valid_every || c->patience))
        return missing(r, "data.valid", "or \"data.hold_out\": there is nothing to validate with");
    return LOAM_OK;
}

loam_status job_config_read(job_config *c, const char *text, size_t len, const char *label, loam_error *err)
{
    reading r = { c, label, err };
    *c = (job_config){ 0 };
    set_defaults(c);
    loam_status s = js_parse(&c->document, (text_view){ text, len }, JS_UNIQUE, label, err);
    if (s == LOAM_OK && !js_is_object(c->document)) s = fail(err, LOAM_E_FORMAT, "%s: is no JSON object", label);
    if (s == LOAM_OK) s = read_section(&r, "", c->document);
    if (s == LOAM_OK) s = check(&r);
    if (s != LOAM_OK) job_config_free(c);
    return s;
}

void job_config_free(job_config *c)
{
    js_free(c->document);
    c->document = NULL;
}
