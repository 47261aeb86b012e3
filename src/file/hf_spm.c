/* hf_spm.c - tokenizer.model, a SentencePiece model in protobuf form, where there is no tokenizer.json.
 *
 *   field 1  pieces: 1 text, 2 score (float), 3 type          field 3  normalizer: 2 charsmap, 3 dummy prefix, 4 extra spaces
 *   field 2  trainer: 3 kind (1 unigram, 2 BPE), 40 id of unknown
 *
 * All bytes go through the bounded reader. Refuses what ends early, wire types that no field has, other kinds of models. Tokens
 * that tokenizer_config.json and added_tokens.json add follow. */
#include <string.h>

#include "base/mem.h"
#include "base/reader.h"
#include "file/hf_impl.h"

typedef struct field {
    uint64_t number;
    uint64_t value;      /* of a varint or fixed field */
    const uint8_t *data; /* of a field with a length */
    uint64_t len;
} field;

static uint64_t read_varint(reader *r)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t *p = reader_take(r, 1);
        if (!p) return 0;
        v |= (uint64_t)(*p & 0x7F) << shift;
        if (!(*p & 0x80)) return v;
    }
    r->failed = true;
    return 0;
}

/* The next field; false at the end, or where r->failed. */
static bool next_field(reader *r, field *f)
{
    if (reader_left(r) == 0 || r->failed) return false;
    uint64_t tag = read_varint(r);
    *f = (field){ .number = tag >> 3 };
    switch (tag & 7) {
    case 0: f->value = read_varint(r); break;
    case 1: f->value = reader_u64(r); break;
    case 5: f->value = reader_u32(r); break;
    case 2:
        f->len = read_varint(r);
        f->data = reader_take(r, f->len);
        break;
    default: r->failed = true;
    }
    return !r->failed;
}

static loam_status broken(hf_build *b, const char *what)
{
    if (b->status == LOAM_OK) b->status = fail(b->err, LOAM_E_FORMAT, "%s/tokenizer.model: %s", b->path, what);
    return b->status;
}

static reader inside(const field *f) { return (reader){ .data = f->data, .end = f->len }; }

static void read_piece(hf_build *b, hf_vocab *v, const field *message)
{
    reader r = inside(message);
    field f;
    uint32_t id = v->n, bits = 0;
    if (!hf_vocab_room(v, id + 1)) {
        b->status = fail_nomem(b->err, "the vocabulary", id);
        return;
    }
    v->tokens[id] = (text_view){ "", 0 };
    while (next_field(&r, &f)) {
        if (f.number == 1 && f.data) v->tokens[id] = (text_view){ (const char *)f.data, (size_t)f.len };
        else if (f.number == 2) bits = (uint32_t)f.value;
        else if (f.number == 3) v->types[id] = f.value >= 1 && f.value <= 6 ? (int32_t)f.value : HF_NORMAL;
    }
    memcpy(&v->scores[id], &bits, sizeof bits);
    v->special[id] = v->types[id] == HF_CONTROL;
    if (r.failed) broken(b, "a piece ends early");
    if (v->types[id] == HF_UNKNOWN) v->unknown = id;
}

static void read_normalizer(hf_build *b, const hf_vocab *v, const field *message)
{
    reader r = inside(message);
    field f;
    bool prefix = true, collapse = true;
    while (next_field(&r, &f)) {
        if (f.number == 2 && f.data && f.len && strcmp(v->kind, "t5") == 0)
            gguf_set_array(b->b, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, f.data, f.len);
        if (f.number == 3) prefix = f.value != 0;
        if (f.number == 4) collapse = f.value != 0;
    }
    if (r.failed) broken(b, "the normalizer ends early");
    gguf_set_bool(b->b, "tokenizer.ggml.add_space_prefix", prefix);
    gguf_set_bool(b->b, "tokenizer.ggml.remove_extra_whitespaces", collapse);
}

static uint64_t read_kind(hf_build *b, const field *message)
{
    reader r = inside(message);
    field f;
    uint64_t kind = 1;
    while (next_field(&r, &f))
        if (f.number == 3) kind = f.value;
    if (r.failed) broken(b, "the trainer's settings end early");
    return kind;
}

/* Ids beyond the pieces, from a file {text: id} or from tokenizer_config.json {"id": {"content": text, "special": true}}. */
static void add_tokens(hf_build *b, hf_vocab *v, const js *added, const js *decoder)
{
    for (js_member m = js_first(added); m.value && b->status == LOAM_OK; m = js_next(added, m)) {
        int64_t id;
        if (!js_int(m.value, &id) || id < 0 || id >= LIMIT_VOCAB) {
            broken(b, "added_tokens.json has an id that is none");
            return;
        }
        if (!hf_vocab_room(v, (uint32_t)id + 1)) {
            b->status = fail_nomem(b->err, "the vocabulary", (uint64_t)id);
            return;
        }
        v->tokens[id] = hf_vocab_keep(v, m.key.data, m.key.len);
        v->types[id] = HF_USER;
        v->scores[id] = -1000;
        if (!v->tokens[id].data) b->status = fail_nomem(b->err, "the vocabulary", m.key.len);
    }
    for (js_member m = js_first(decoder); m.value && b->status == LOAM_OK; m = js_next(decoder, m)) {
        int64_t id = 0;
        text_view text;
        bool special = false;
        for (size_t i = 0; i < m.key.len && i < 9; i++) id = m.key.data[i] >= '0' && m.key.data[i] <= '9' ? id * 10 + (m.key.data[i] - '0') : LIMIT_VOCAB;
        if (id >= LIMIT_VOCAB || !js_text(js_get(m.value, "content"), &text)) continue;
        js_bool(js_get(m.value, "special"), &special);
        if (!hf_vocab_room(v, (uint32_t)id + 1)) {
            b->status = fail_nomem(b->err, "the vocabulary", (uint64_t)id);
            return;
        }
        if (v->types[id] == HF_BYTE || v->types[id] == HF_UNKNOWN) continue;
        v->tokens[id] = text;
        v->types[id] = special ? HF_CONTROL : HF_USER;
        v->special[id] = special;
    }
}

void hf_read_spm(hf_build *b, hf_vocab *v)
{
    reader r = { .data = v->model_file.data, .end = v->model_file.size };
    field f, normalizer = { 0 };
    uint64_t kind = 1;
    while (b->status == LOAM_OK && next_field(&r, &f)) {
        if (f.number == 1 && f.data) read_piece(b, v, &f);
        else if (f.number == 2 && f.data) kind = read_kind(b, &f);
        else if (f.number == 3 && f.data) normalizer = f;
    }
    if (r.failed || v->n == 0) broken(b, "not a SentencePiece model, or it ends early");
    if (kind != 1 && kind != 2) broken(b, "a SentencePiece model that is neither Unigram nor BPE");
    if (b->status != LOAM_OK) return;
    v->kind = kind == 1 ? "t5" : "llama";
    gguf_set_text(b->b, "tokenizer.ggml.pre", "default", 7);
    if (normalizer.data) read_normalizer(b, v, &normalizer);
    js *added = NULL;
    if (b->status == LOAM_OK) b->status = hf_open_json(&added, b->path, "added_tokens.json", b->err);
    if (b->status == LOAM_OK) add_tokens(b, v, added, js_get(v->config, "added_tokens_decoder"));
    js_free(added);
}
