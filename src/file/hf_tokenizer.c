/* hf_tokenizer.c - tokenizer.json: the models BPE (byte-level, or merges over SentencePiece text), Unigram and WordPiece.
 *
 *   BPE, byte-level      "gpt2": tokens and merges as they are, the pre-tokenizer known by its content (hf_pre.c)
 *   BPE over "▁" text    "llama": a token's score is minus the rank of the merge that makes it, which gives the same merges
 *   Unigram              "t5": scores, normalization table
 *   WordPiece            "bert": "##x" becomes "x", other words get "▁" in front
 *
 * Refuses other models and pre-tokenizers, ids and texts that are none, by name. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/hf_impl.h"

static void json_fail(hf_build *b, loam_status code, const char *what)
{
    if (b->status == LOAM_OK) b->status = fail(b->err, code, "%s/tokenizer.json: %s", b->path, what);
}

static void no_memory(hf_build *b)
{
    if (b->status == LOAM_OK) b->status = fail_nomem(b->err, "the vocabulary", 0);
}

static void set_token(hf_build *b, hf_vocab *v, int64_t id, text_view text)
{
    if (id < 0 || id >= LIMIT_VOCAB) json_fail(b, LOAM_E_FORMAT, "a token has an id that is none");
    else if (!hf_vocab_room(v, (uint32_t)id + 1)) no_memory(b);
    else if (v->tokens[id].data && (v->tokens[id].len != text.len || memcmp(v->tokens[id].data, text.data, text.len)))
        json_fail(b, LOAM_E_FORMAT, "two tokens have one id");
    else v->tokens[id] = text.data ? text : (text_view){ "", 0 };
}

/* "vocab": {text: id, ...} */
static void read_object(hf_build *b, hf_vocab *v, const js *vocab)
{
    if (!js_is_object(vocab)) json_fail(b, LOAM_E_FORMAT, "model.vocab is missing");
    for (js_member m = js_first(vocab); m.value && b->status == LOAM_OK; m = js_next(vocab, m)) {
        int64_t id;
        if (!js_int(m.value, &id)) json_fail(b, LOAM_E_FORMAT, "a token has an id that is none");
        else set_token(b, v, id, m.key);
    }
}

/* "vocab": [[text, score], ...] */
static void read_list(hf_build *b, hf_vocab *v, const js *vocab)
{
    if (!js_is_array(vocab) || js_count(vocab) == 0) json_fail(b, LOAM_E_FORMAT, "model.vocab is missing");
    for (size_t i = 0; i < js_count(vocab) && b->status == LOAM_OK; i++) {
        text_view text;
        double score;
        if (!js_text(js_at(js_at(vocab, i), 0), &text) || !js_number(js_at(js_at(vocab, i), 1), &score))
            json_fail(b, LOAM_E_FORMAT, "model.vocab has an entry that is not a text with its score");
        else set_token(b, v, (int64_t)i, text);
        if (b->status == LOAM_OK) v->scores[i] = (float)score;
    }
}

/* Tokens that were added to the model's own. */
static void read_added(hf_build *b, hf_vocab *v)
{
    const js *list = js_get(v->tokenizer, "added_tokens");
    for (size_t i = 0; i < js_count(list) && b->status == LOAM_OK; i++) {
        const js *entry = js_at(list, i);
        int64_t id;
        text_view text;
        bool special = false;
        if (!js_int(js_get(entry, "id"), &id) || !js_text(js_get(entry, "content"), &text)) {
            json_fail(b, LOAM_E_FORMAT, "added_tokens has an entry without id or content");
            return;
        }
        js_bool(js_get(entry, "special"), &special);
        if (id >= 0 && id < v->n && v->tokens[id].data) v->tokens[id] = (text_view){ NULL, 0 }; /* the added text counts */
        set_token(b, v, id, text);
        if (b->status != LOAM_OK) return;
        v->types[id] = special ? HF_CONTROL : HF_USER;
        v->special[id] = special;
    }
}

/* ---- BPE ---- */

/* A merge as two texts, from "a b" or ["a", "b"]. */
static bool read_merge(const js *m, text_view *left, text_view *right)
{
    text_view t;
    if (js_text(m, &t)) {
        const char *space = t.len > 1 ? memchr(t.data + 1, ' ', t.len - 1) : NULL;
        if (!space) return false;
        *left = (text_view){ t.data, (size_t)(space - t.data) };
        *right = (text_view){ space + 1, t.len - left->len - 1 };
        return true;
    }
    return js_count(m) == 2 && js_text(js_at(m, 0), left) && js_text(js_at(m, 1), right);
}

/* In a list of merges the parts (of 500 bytes together) are told apart by a space; one inside a part is written as U+0120. */
static text_view join_merge(hf_vocab *v, text_view left, text_view right)
{
    char text[1024];
    size_t n = 0;
    text_view parts[2] = { left, right };
    for (int p = 0; p < 2; p++) {
        for (size_t i = 0; i < parts[p].len; i++) {
            if (parts[p].data[i] == ' ') text[n++] = '\xC4', text[n++] = '\xA0';
            else text[n++] = parts[p].data[i];
        }
        if (p == 0) text[n++] = ' ';
    }
    return hf_vocab_keep(v, text, n);
}

static void put_merges(hf_build *b, hf_vocab *v, const js *merges)
{
    size_t n = js_count(merges);
    text_view *texts = mem_alloc_array(n + 1, sizeof *texts);
    if (!js_is_array(merges)) json_fail(b, LOAM_E_FORMAT, "model.merges is missing");
    if (!texts) no_memory(b);
    for (size_t i = 0; i < n && b->status == LOAM_OK; i++) {
        text_view left, right;
        if (!read_merge(js_at(merges, i), &left, &right)) json_fail(b, LOAM_E_FORMAT, "model.merges has an entry that is not two texts");
        else if (left.len + right.len > 500) json_fail(b, LOAM_E_FORMAT, "model.merges has an entry of over 500 bytes");
        else texts[i] = join_merge(v, left, right);
        if (b->status == LOAM_OK && !texts[i].data) no_memory(b);
    }
    if (b->status == LOAM_OK) gguf_set_texts(b->b, "tokenizer.ggml.merges", texts, n);
    mem_free(texts);
}

/* Scores from the ranks of merges: what no merge makes cannot be merged into. */
static void score_merges(hf_build *b, hf_vocab *v, const js *merges)
{
    map index;
    if (!map_init(&index, v->n)) {
        no_memory(b);
        return;
    }
    for (uint32_t i = 0; i < v->n && b->status == LOAM_OK; i++) {
        v->scores[i] = -1e9f;
        if (v->tokens[i].data && !map_put(&index, v->tokens[i].data, v->tokens[i].len, i, NULL)) no_memory(b);
    }
    for (size_t i = 0; i < js_count(merges) && b->status == LOAM_OK; i++) {
        text_view left, right;
        char text[1024];
        if (!read_merge(js_at(merges, i), &left, &right) || left.len + right.len > sizeof text) {
            json_fail(b, LOAM_E_FORMAT, "model.merges has an entry that is not two texts");
            break;
        }
        memcpy(text, left.data, left.len);
        memcpy(text + left.len, right.data, right.len);
        uint32_t id = map_get(&index, text, left.len + right.len);
        if (id != MAP_NONE && v->scores[id] == -1e9f) v->scores[id] = -(float)i;
    }
    map_free(&index);
}

static bool is_byte_token(text_view t)
{
    static const char hex[] = "0123456789ABCDEF";
    return t.data && t.len == 6 && memcmp(t.data, "<0x", 3) == 0 && t.data[5] == '>' && t.data[3] && strchr(hex, t.data[3]) &&
           t.data[4] && strchr(hex, t.data[4]);
}

/* Whether any step of a pipeline, or the one step that it is, has that type. */
static const js *find_step(const js *steps, const char *list, const char *type)
{
    if (js_is(js_get(steps, "type"), type)) return steps;
    const js *inner = js_get(steps, list);
    for (size_t i = 0; i < js_count(inner); i++) {
        const js *found = find_step(js_at(inner, i), list, type);
        if (found) return found;
    }
    return NULL;
}

/* A space before the text: the normalizer puts it there, or the Metaspace step. */
static bool adds_space(const js *tokenizer)
{
    const js *space = find_step(js_get(tokenizer, "pre_tokenizer"), "pretokenizers", "Metaspace");
    bool add = false;
    if (find_step(js_get(tokenizer, "normalizer"), "normalizers", "Prepend")) return true;
    if (!space) return false;
    text_view scheme;
    if (js_text(js_get(space, "prepend_scheme"), &scheme)) return !js_text_is(scheme, "never");
    add = true;
    js_bool(js_get(space, "add_prefix_space"), &add);
    return add;
}

/* User-defined tokens of SentencePiece vocabularies have spaces where the others have "▁". */
static void with_spaces(hf_build *b, hf_vocab *v, uint32_t id)
{
    char text[1024];
    text_view t = v->tokens[id];
    size_t n = 0;
    if (!t.data || t.len > sizeof text) return;
    for (size_t i = 0; i < t.len;) {
        bool mark = i + 3 <= t.len && memcmp(t.data + i, "\xE2\x96\x81", 3) == 0;
        text[n++] = mark ? ' ' : t.data[i];
        i += mark ? 3 : 1;
    }
    if (n == t.len) return;
    v->tokens[id] = hf_vocab_keep(v, text, n);
    if (!v->tokens[id].data) no_memory(b);
}

static void read_bpe(hf_build *b, hf_vocab *v, const js *model)
{
    const js *merges = js_get(model, "merges");
    bool bytes = false;
    js_bool(js_get(model, "byte_fallback"), &bytes);
    read_object(b, v, js_get(model, "vocab"));
    read_added(b, v);
    if (b->status != LOAM_OK) return;
    bool byte_level = find_step(js_get(v->tokenizer, "pre_tokenizer"), "pretokenizers", "ByteLevel") ||
                      find_step(js_get(v->tokenizer, "decoder"), "decoders", "ByteLevel");
    if (byte_level) {
        const char *pre = hf_pre_name(v->tokenizer);
        if (!pre) json_fail(b, LOAM_E_UNSUPPORTED, "a pre-tokenizer that is not known");
        else gguf_set_text(b->b, "tokenizer.ggml.pre", pre, strlen(pre));
        v->kind = "gpt2";
        put_merges(b, v, merges);
        return;
    }
    if (!bytes) {
        json_fail(b, LOAM_E_UNSUPPORTED, "a BPE model that is neither byte-level nor falls back to bytes");
        return;
    }
    v->kind = "llama";
    score_merges(b, v, merges);
    for (uint32_t i = 0; i < v->n && b->status == LOAM_OK; i++) {
        if (is_byte_token(v->tokens[i])) v->types[i] = HF_BYTE;
        if (v->types[i] == HF_USER) with_spaces(b, v, i);
    }
    gguf_set_text(b->b, "tokenizer.ggml.pre", "default", 7);
    gguf_set_bool(b->b, "tokenizer.ggml.add_space_prefix", adds_space(v->tokenizer));
}

/* ---- Unigram ---- */

static int digit64(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Base64 to bytes; false where it is none. out has room for 3/4 of the text. */
static bool decode64(text_view t, uint8_t *out, size_t *n)
{
    uint32_t bits = 0;
    int have = 0;
    *n = 0;
    while (t.len > 0 && t.data[t.len - 1] == '=') t.len--;
    for (size_t i = 0; i < t.len; i++) {
        int d = digit64(t.data[i]);
        if (d < 0) return false;
        bits = bits << 6 | (uint32_t)d;
        have += 6;
        if (have >= 8) have -= 8, out[(*n)++] = (uint8_t)(bits >> have);
    }
    return true;
}

static void put_charsmap(hf_build *b, const js *tokenizer)
{
    const js *step = find_step(js_get(tokenizer, "normalizer"), "normalizers", "Precompiled");
    text_view text;
    size_t n;
    if (!js_text(js_get(step, "precompiled_charsmap"), &text) || text.len == 0) return;
    uint8_t *map_bytes = mem_alloc(text.len);
    if (!map_bytes) no_memory(b);
    else if (!decode64(text, map_bytes, &n)) json_fail(b, LOAM_E_FORMAT, "precompiled_charsmap is not base64");
    else gguf_set_array(b->b, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map_bytes, n);
    mem_free(map_bytes);
}

static void read_unigram(hf_build *b, hf_vocab *v, const js *model)
{
    read_list(b, v, js_get(model, "vocab"));
    read_added(b, v);
    if (b->status != LOAM_OK) return;
    js_int(js_get(model, "unk_id"), &v->unknown);
    if (v->unknown >= 0 && v->unknown < v->n) v->types[v->unknown] = HF_UNKNOWN;
    v->kind = "t5";
    put_charsmap(b, v->tokenizer);
    const js *normalizer = js_get(v->tokenizer, "normalizer"), *pre = js_get(v->tokenizer, "pre_tokenizer");
    bool collapse = find_step(normalizer, "normalizers", "Replace") || find_step(normalizer, "normalizers", "Precompiled") ||
                    find_step(pre, "pretokenizers", "WhitespaceSplit");
    gguf_set_bool(b->b, "tokenizer.ggml.add_space_prefix", adds_space(v->tokenizer));
    gguf_set_bool(b->b, "tokenizer.ggml.remove_extra_whitespaces", collapse);
}

/* ---- WordPiece ---- */

static void read_wordpiece(hf_build *b, hf_vocab *v, const js *model)
{
    text_view prefix;
    read_object(b, v, js_get(model, "vocab"));
    read_added(b, v);
    if (js_text(js_get(model, "continuing_subword_prefix"), &prefix) && !js_text_is(prefix, "##"))
        json_fail(b, LOAM_E_UNSUPPORTED, "continuing_subword_prefix is not ##");
    if (b->status != LOAM_OK) return;
    v->kind = "bert";
    for (uint32_t i = 0; i < v->n && b->status == LOAM_OK; i++) {
        text_view t = v->tokens[i];
        if (!t.data || v->types[i] != HF_NORMAL) continue;
        if (t.len > 2 && memcmp(t.data, "##", 2) == 0) v->tokens[i] = (text_view){ t.data + 2, t.len - 2 };
        else {
            char text[1024];
            int n = snprintf(text, sizeof text, "\xE2\x96\x81%.*s", t.len > 1000 ? 1000 : (int)t.len, t.data);
            v->tokens[i] = hf_vocab_keep(v, text, (size_t)n);
            if (!v->tokens[i].data) no_memory(b);
        }
    }
    const js *normalizer = find_step(js_get(v->tokenizer, "normalizer"), "normalizers", "BertNormalizer");
    bool lower = true, strip;
    js_bool(js_get(normalizer, "lowercase"), &lower);
    strip = lower;
    js_bool(js_get(normalizer, "strip_accents"), &strip);
    gguf_set_bool(b->b, "tokenizer.ggml.normalizer.lowercase", lower);
    gguf_set_bool(b->b, "tokenizer.ggml.normalizer.strip_accents", strip);
}

void hf_read_tokenizer_json(hf_build *b, hf_vocab *v)
{
    const js *model = js_get(v->tokenizer, "model"), *vocab = js_get(model, "vocab");
    text_view type;
    if (!js_text(js_get(model, "type"), &type)) { /* old files leave it out */
        const char *guess = js_is_array(vocab) ? "Unigram" : js_get(model, "merges") ? "BPE" : "WordPiece";
        type = (text_view){ guess, strlen(guess) };
    }
    if (js_text_is(type, "BPE")) read_bpe(b, v, model);
    else if (js_text_is(type, "Unigram")) read_unigram(b, v, model);
    else if (js_text_is(type, "WordPiece")) read_wordpiece(b, v, model);
    else json_fail(b, LOAM_E_UNSUPPORTED, "model.type is none of BPE, Unigram, WordPiece");
    text_view unknown;
    if (v->unknown < 0 && b->status == LOAM_OK && js_text(js_get(model, "unk_token"), &unknown))
        for (uint32_t i = 0; i < v->n; i++)
            if (v->tokens[i].data && v->tokens[i].len == unknown.len && !memcmp(v->tokens[i].data, unknown.data, unknown.len)) {
                v->unknown = i;
                if (strcmp(v->kind, "llama") == 0) v->types[i] = HF_UNKNOWN;
            }
}
