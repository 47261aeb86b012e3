/* hf_special.c - what stands beside the tokens: special ids, added tokens, chat templates, and the settings of
 * generation_config.json.
 *
 * An id comes from the first that has it: the text in tokenizer_config.json, that in special_tokens_map.json, the number in
 * config.json, that in generation_config.json. Whether texts get a begin and an end is what the post-processor of tokenizer.json
 * does, else what tokenizer_config.json says. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf_impl.h"

/* A special token's text: a string, or an object with "content". */
static bool token_text(const js *v, text_view *t) { return js_text(v, t) || js_text(js_get(v, "content"), t); }

static int64_t id_of_text(const hf_vocab *v, text_view t)
{
    uint32_t i = t.data ? map_get(&v->index, t.data, t.len) : MAP_NONE;
    return i == MAP_NONE ? -1 : (int64_t)i;
}

/* The number or the first of a list of them. */
static int64_t first_id(const js *v, uint32_t n)
{
    int64_t id;
    return (js_int(v, &id) || js_int(js_at(v, 0), &id)) && id >= 0 && id < n ? id : -1;
}

static int64_t find_id(const hf_build *b, const hf_vocab *v, const char *role)
{
    char name[32], number[32];
    text_view t;
    snprintf(name, sizeof name, "%s_token", role);
    snprintf(number, sizeof number, "%s_token_id", role);
    if (token_text(js_get(v->config, name), &t) && id_of_text(v, t) >= 0) return id_of_text(v, t);
    if (token_text(js_get(v->special_map, name), &t) && id_of_text(v, t) >= 0) return id_of_text(v, t);
    int64_t id = first_id(hf_config_get(b, number), v->n);
    return id >= 0 ? id : first_id(js_get(v->generation, number), v->n);
}

typedef struct special_ids {
    int64_t bos, eos, cls, sep;
} special_ids;

static void put_id(hf_build *b, const char *key, int64_t id)
{
    char name[64];
    snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", key);
    if (id >= 0) gguf_set_u32(b->b, name, (uint32_t)id);
}

/* Another id that ends a text, from the list of generation_config.json. */
static int64_t second_end(const hf_vocab *v, int64_t eos)
{
    const js *list = js_get(v->generation, "eos_token_id");
    for (size_t i = 0; i < js_count(list); i++) {
        int64_t id;
        if (js_int(js_at(list, i), &id) && id >= 0 && id < v->n && id != eos) return id;
    }
    return -1;
}

static special_ids put_ids(hf_build *b, const hf_vocab *v)
{
    special_ids s = { find_id(b, v, "bos"), find_id(b, v, "eos"), find_id(b, v, "cls"), find_id(b, v, "sep") };
    bool bert = strcmp(v->kind, "bert") == 0;
    int64_t unknown = v->unknown >= 0 && v->unknown < v->n ? v->unknown : find_id(b, v, "unk");
    if (bert && s.cls < 0) s.cls = id_of_text(v, (text_view){ "[CLS]", 5 });
    if (bert && s.sep < 0) s.sep = id_of_text(v, (text_view){ "[SEP]", 5 });
    if (bert && unknown < 0) unknown = id_of_text(v, (text_view){ "[UNK]", 5 });
    put_id(b, "bos", bert ? s.cls : s.bos);
    put_id(b, "eos", s.eos);
    if (s.eos >= 0) put_id(b, "eot", second_end(v, s.eos));
    put_id(b, "unknown", unknown);
    put_id(b, "seperator", s.sep);
    put_id(b, "padding", find_id(b, v, "pad"));
    put_id(b, "cls", s.cls);
    put_id(b, "mask", find_id(b, v, "mask"));
    return s;
}

/* ---- what is added to a text ---- */

/* A step of the post-processor that frames texts; NULL: there is none. */
static const js *find_frame(const js *post)
{
    const js *list = js_get(post, "processors");
    for (size_t i = 0; i < js_count(list); i++)
        if (find_frame(js_at(list, i))) return find_frame(js_at(list, i));
    bool frames = js_is(js_get(post, "type"), "TemplateProcessing") || js_is(js_get(post, "type"), "BertProcessing") ||
                  js_is(js_get(post, "type"), "RobertaProcessing");
    return frames ? post : NULL;
}

static bool names_token(const hf_vocab *v, const js *piece, int64_t id)
{
    text_view t;
    return id >= 0 && js_text(js_get(js_get(piece, "SpecialToken"), "id"), &t) && id_of_text(v, t) == id;
}

static void put_frame(hf_build *b, const hf_vocab *v, const special_ids *s)
{
    const js *frame = find_frame(js_get(v->tokenizer, "post_processor"));
    bool begin = strcmp(v->kind, "llama") == 0 && !v->tokenizer, end = strcmp(v->kind, "t5") == 0 && !v->tokenizer;
    js_bool(js_get(v->config, "add_bos_token"), &begin);
    js_bool(js_get(v->config, "add_eos_token"), &end);
    if (frame) {
        const js *single = js_get(frame, "single");
        size_t n = js_count(single);
        bool pair = !js_is(js_get(frame, "type"), "TemplateProcessing");
        begin = pair || names_token(v, js_at(single, 0), s->bos);
        end = pair || (n > 0 && names_token(v, js_at(single, n - 1), s->eos));
    }
    gguf_set_bool(b->b, "tokenizer.ggml.add_bos_token", begin && s->bos >= 0);
    gguf_set_bool(b->b, "tokenizer.ggml.add_eos_token", end && s->eos >= 0);
}

/* ---- chat templates ---- */

static void put_named(hf_build *b, const js *list)
{
    text_view names[32];
    size_t n = 0;
    for (size_t i = 0; i < js_count(list); i++) {
        text_view name, text;
        char key[128];
        if (!js_text(js_get(js_at(list, i), "name"), &name) || !js_text(js_get(js_at(list, i), "template"), &text)) continue;
        if (js_text_is(name, "default")) {
            gguf_set_text(b->b, "tokenizer.chat_template", text.data, text.len);
            continue;
        }
        if (n == 32 || name.len == 0 || name.len > 64 || memchr(name.data, 0, name.len)) continue;
        snprintf(key, sizeof key, "tokenizer.chat_template.%.*s", (int)name.len, name.data);
        gguf_set_text(b->b, key, text.data, text.len);
        names[n++] = name;
    }
    if (n) gguf_set_texts(b->b, "tokenizer.chat_templates", names, n);
}

static bool put_template_file(hf_build *b)
{
    char *path = hf_path(b->path, "chat_template.jinja");
    os_file f;
    bool there = path && os_is_file(path);
    if (!path) b->status = fail_nomem(b->err, "a file name", strlen(b->path));
    if (there) b->status = os_file_open(&f, path, true, b->err);
    if (there && b->status == LOAM_OK) {
        gguf_set_text(b->b, "tokenizer.chat_template", f.data ? (const char *)f.data : "", (size_t)f.size);
        os_file_close(&f);
    }
    mem_free(path);
    return there;
}

static void put_templates(hf_build *b, const hf_vocab *v)
{
    text_view text;
    js *file;
    const js *given = js_get(v->config, "chat_template");
    if (js_is_array(given)) put_named(b, given);
    if (put_template_file(b) || b->status != LOAM_OK) return;
    if (js_text(given, &text)) gguf_set_text(b->b, "tokenizer.chat_template", text.data, text.len);
    if (given) return;
    b->status = hf_open_json(&file, b->path, "chat_template.json", b->err);
    if (b->status != LOAM_OK) return;
    if (js_text(js_get(file, "chat_template"), &text)) gguf_set_text(b->b, "tokenizer.chat_template", text.data, text.len);
    js_free(file);
}

/* ---- generation_config.json ---- */

static void put_sampling(hf_build *b, const js *generation)
{
    static const struct { const char *from, *to; bool whole; } known[] = {
        { "top_k", "general.sampling.top_k", true }, { "top_p", "general.sampling.top_p", false },
        { "min_p", "general.sampling.min_p", false }, { "temperature", "general.sampling.temp", false },
        { "repetition_penalty", "general.sampling.penalty_repeat", false },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double x;
        if (!js_number(js_get(generation, known[i].from), &x) || !(x >= 0 && x <= 1e6)) continue;
        if (known[i].whole) gguf_set_i32(b->b, known[i].to, (int32_t)x);
        else gguf_set_f32(b->b, known[i].to, (float)x);
    }
}

void hf_put_special(hf_build *b, hf_vocab *v)
{
    special_ids s = put_ids(b, v);
    if (strcmp(v->kind, "bert") != 0) put_frame(b, v, &s);
    put_templates(b, v);
    put_sampling(b, v->generation);
}
