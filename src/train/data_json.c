/* data_json.c - one line of a JSON lines file, as the segments of a document.
 *
 *   {"text": T}                       T, all of it to be learned
 *   {"prompt": P, "completion": C}    P, then C and the end token; C and the end are to be learned
 *   {"messages": [{"role": R, "content": T}, ...]}     what assistants say, and the end of it, is to be learned:
 *        with <|im_start|> and <|im_end|> in the vocabulary      <|im_start|>R\nT<|im_end|>\n
 *        without                                                 R: T\n     (behind an assistant's T the end token)
 *
 * Other keys of the object are passed over. Refused: keys of two of these forms together, values of another kind, messages
 * without any assistant's. */
#include <stdio.h>
#include <string.h>

#include "base/js.h"
#include "train/data.h"

void data_segments_free(data_segments *s)
{
    for (size_t i = 0; i < s->n; i++) mem_free(s->items[i].text);
    mem_free(s->items);
    *s = (data_segments){ 0 };
}

static loam_status add(data_segments *out, const char *text, size_t len, data_segment how, loam_error *err)
{
    if (!mem_grow(&out->items, &out->cap, out->n + 1, sizeof *out->items, SIZE_MAX / 64))
        return fail_nomem(err, "a document", len);
    how.text = mem_strdup(text, len);
    how.len = len;
    if (!how.text) return fail_nomem(err, "a document", len);
    out->items[out->n++] = how;
    return LOAM_OK;
}

/* The string of a key; false after a message. */
static bool text_of(const js *object, const char *key, text_view *t, loam_error *err)
{
    if (js_text(js_get(object, key), t)) return true;
    fail(err, LOAM_E_FORMAT, js_get(object, key) ? "\"%s\" is no string" : "\"%s\" is missing", key);
    return false;
}

static loam_status add_view(data_segments *out, text_view t, data_segment how, loam_error *err) { return add(out, t.data, t.len, how, err); }

static loam_status add_pair(const js *object, data_segments *out, loam_error *err)
{
    text_view prompt, completion;
    if (!text_of(object, "prompt", &prompt, err) || !text_of(object, "completion", &completion, err)) return LOAM_E_FORMAT;
    loam_status s = add_view(out, prompt, (data_segment){ 0 }, err);
    return s == LOAM_OK ? add_view(out, completion, (data_segment){ .counts = true, .ends = true }, err) : s;
}

static bool plain_word(text_view t)
{
    for (size_t i = 0; i < t.len; i++)
        if (t.data[i] <= ' ' || strchr("<>:|", t.data[i])) return false;
    return t.len > 0 && t.len <= 64;
}

static loam_status add_message(const js *message, bool chat, data_segments *out, loam_error *err)
{
    text_view role, content;
    char head[128];
    if (!js_is_object(message)) return fail(err, LOAM_E_FORMAT, "a message is no object");
    if (!text_of(message, "role", &role, err) || !text_of(message, "content", &content, err)) return LOAM_E_FORMAT;
    if (!plain_word(role)) return fail(err, LOAM_E_FORMAT, "\"role\" is no plain word");
    bool own = js_text_is(role, "assistant");
    snprintf(head, sizeof head, chat ? "<|im_start|>%.*s\n" : "%.*s: ", (int)role.len, role.data);
    loam_status s = add(out, head, strlen(head), (data_segment){ .special = true }, err);
    if (s == LOAM_OK) s = add_view(out, content, (data_segment){ .counts = own, .ends = own && !chat }, err);
    if (s == LOAM_OK && chat) s = add(out, "<|im_end|>", 10, (data_segment){ .counts = own, .special = true }, err);
    return s == LOAM_OK ? add(out, "\n", 1, (data_segment){ 0 }, err) : s;
}

static loam_status add_messages(const js *list, bool chat, data_segments *out, loam_error *err)
{
    if (!js_is_array(list)) return fail(err, LOAM_E_FORMAT, "\"messages\" is no array");
    loam_status s = LOAM_OK;
    bool own = false;
    for (size_t i = 0; i < js_count(list) && s == LOAM_OK; i++) s = add_message(js_at(list, i), chat, out, err);
    for (size_t i = 0; i < out->n; i++) own = own || out->items[i].counts;
    if (s == LOAM_OK && !own) s = fail(err, LOAM_E_FORMAT, "\"messages\" has none of an assistant: there is nothing to learn");
    return s;
}

static loam_status read_object(const js *o, bool chat, data_segments *out, loam_error *err)
{
    const js *messages = js_get(o, "messages");
    text_view text;
    bool pair = js_get(o, "prompt") || js_get(o, "completion");
    if ((js_get(o, "text") != NULL) + (messages != NULL) + pair > 1)
        return fail(err, LOAM_E_FORMAT, "has more than one of \"text\", \"prompt\" with \"completion\", and \"messages\"");
    if (messages) return add_messages(messages, chat, out, err);
    if (pair) return add_pair(o, out, err);
    if (!js_get(o, "text")) return fail(err, LOAM_E_FORMAT, "has none of \"text\", \"prompt\" with \"completion\", and \"messages\"");
    if (!text_of(o, "text", &text, err)) return LOAM_E_FORMAT;
    return add_view(out, text, (data_segment){ .counts = true, .ends = true }, err);
}

loam_status data_json_segments(const char *line, size_t len, bool chat, data_segments *out, loam_error *err)
{
    js *o;
    loam_error why;
    *out = (data_segments){ 0 };
    loam_status s = js_parse(&o, (text_view){ line, len }, 0, "JSON", &why);
    if (s != LOAM_OK) {
        /* The parser counts lines of its own text, which is one line. */
        const char *place = s == LOAM_E_FORMAT ? strstr(why.message, "column") : NULL;
        return fail(err, s, "%s", place ? place : why.message);
    }
    s = js_is_object(o) ? read_object(o, chat, out, err) : fail(err, LOAM_E_FORMAT, "is no JSON object");
    js_free(o);
    if (s != LOAM_OK) data_segments_free(out);
    return s;
}
