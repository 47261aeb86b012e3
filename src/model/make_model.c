/* make_model.c - writes models with random weights, in the shapes that benchmarks use; see loam/debug.h.
 *
 * Tensors are generated and written a megabyte at a time, so a model of any size needs little memory. Element types follow
 * the rules of a mix as if there were an importance matrix. Unknown shapes and types are refused by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "file/gguf_write.h"
#include "loam/debug.h"
#include "model/random_blocks.h"
#include "quant/mix.h"
#include "tensor/dtype.h"

typedef struct shape {
    const char *name, *arch;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab;
    bool tied;
    uint32_t n_expert, n_expert_used, n_ff_expert;
    uint32_t n_ctx;
    float freq_base;
} shape;

static const shape shapes[] = {
    { "tiny", "llama", 4, 256, 4, 2, 64, 768, 4096, false, 0, 0, 0, 32768, 10000 },
    { "0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, true, 0, 0, 0, 32768, 1000000 },
    { "1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, true, 0, 0, 0, 131072, 500000 },
    { "8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, false, 0, 0, 0, 131072, 500000 },
    { "moe", "qwen3moe", 12, 1024, 16, 4, 64, 2048, 151936, true, 32, 4, 512, 32768, 1000000 },
};

#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* ---- types ---- */

/* How element types are chosen: by the rules of a mix, or (pure) its default type for every matrix. */
typedef struct plan {
    const char *name;
    const mix_info *mix;
    bool pure;
} plan;

static loam_status find_plan(const char *name, plan *p, loam_error *err)
{
    int type = loam_type_from_name(name);
    for (int i = 0; type >= 0 && random_blocks_can((loam_type)type) && mix_at(i); i++)
        if (mix_at(i)->type == type) {
            *p = (plan){ .name = loam_type_name(type), .mix = mix_at(i), .pure = true };
            return LOAM_OK;
        }
    loam_status s = mix_find(name, &p->mix, err);
    if (s != LOAM_OK) return s;
    if (p->mix->id == MIX_COPY) return fail(err, LOAM_E_ARG, "make-model: there is nothing to copy types from");
    p->name = p->mix->name;
    p->pure = false;
    return LOAM_OK;
}

/* ---- metadata ---- */

/* "llama." + "block_count" */
static const char *model_key(char out[96], const shape *s, const char *rest)
{
    snprintf(out, 96, "%s.%s", s->arch, rest);
    return out;
}

static void set_keys(gguf_builder *b, const shape *s, const plan *p)
{
    char key[96], name[64];
    snprintf(name, sizeof name, "random %s %s", s->name, p->name);
    gguf_set_word(b, "general.architecture", s->arch);
    gguf_set_word(b, "general.type", "model");
    gguf_set_word(b, "general.name", name);
    gguf_set_u32(b, model_key(key, s, "block_count"), s->n_layer);
    gguf_set_u32(b, model_key(key, s, "context_length"), s->n_ctx);
    gguf_set_u32(b, model_key(key, s, "embedding_length"), s->n_embd);
    gguf_set_u32(b, model_key(key, s, "feed_forward_length"), s->n_ff);
    gguf_set_u32(b, model_key(key, s, "attention.head_count"), s->n_head);
    gguf_set_u32(b, model_key(key, s, "attention.head_count_kv"), s->n_head_kv);
    gguf_set_u32(b, model_key(key, s, "attention.key_length"), s->head_dim);
    gguf_set_u32(b, model_key(key, s, "attention.value_length"), s->head_dim);
    gguf_set_f32(b, model_key(key, s, "attention.layer_norm_rms_epsilon"), 1e-5f);
    gguf_set_u32(b, model_key(key, s, "rope.dimension_count"), s->head_dim);
    gguf_set_f32(b, model_key(key, s, "rope.freq_base"), s->freq_base);
    gguf_set_u32(b, model_key(key, s, "vocab_size"), s->n_vocab);
    if (s->n_expert) {
        gguf_set_u32(b, model_key(key, s, "expert_count"), s->n_expert);
        gguf_set_u32(b, model_key(key, s, "expert_used_count"), s->n_expert_used);
        gguf_set_u32(b, model_key(key, s, "expert_feed_forward_length"), s->n_ff_expert);
    }
    gguf_set_u32(b, "general.file_type", (uint32_t)p->mix->file_type);
    gguf_set_u32(b, "general.quantization_version", MIX_QUANTIZATION_VERSION);
}

/* ---- vocabulary ---- */

enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };
#define PIECE_BYTES 24

/* Made-up words: the digits of n to base 75 as syllables, lowest first, so that no two are the same; every other one
 * begins with SentencePiece's mark of a space, U+2581. */
static void made_up(char out[PIECE_BYTES], uint32_t n)
{
    static const char consonants[] = "bdfghjklmnprstv", vowels[] = "aeiou";
    char *p = out;
    if (n % 2 == 0) {
        memcpy(p, "\xE2\x96\x81", 3);
        p += 3;
    }
    for (n /= 2;; n /= 75) {
        *p++ = consonants[n % 75 / 5];
        *p++ = vowels[n % 5];
        if (n < 75) break;
    }
    *p = 0;
}

/* Piece i: 3 special ones, 256 bytes, the space mark and the printable letters of ASCII, then words. */
static int32_t make_piece(char out[PIECE_BYTES], uint32_t i)
{
    static const char *const special[] = { "<unk>", "<s>", "</s>" };
    const uint32_t bytes = 3, mark = bytes + 256, letters = mark + 1, words = letters + 94;
    if (i < bytes) {
        snprintf(out, PIECE_BYTES, "%s", special[i]);
        return i == 0 ? TOKEN_UNKNOWN : TOKEN_CONTROL;
    }
    if (i < mark) {
        snprintf(out, PIECE_BYTES, "<0x%02X>", i - bytes);
        return TOKEN_BYTE;
    }
    if (i == mark) snprintf(out, PIECE_BYTES, "\xE2\x96\x81");
    else if (i < words) snprintf(out, PIECE_BYTES, "%c", (int)('!' + (i - letters)));
    else made_up(out, i - words);
    return TOKEN_NORMAL;
}

static loam_status set_vocabulary(gguf_builder *b, uint32_t n, loam_error *err)
{
    size_t each = PIECE_BYTES + sizeof(text_view) + sizeof(float) + sizeof(int32_t);
    text_view *texts = mem_alloc_array(n, each);
    if (!texts) return fail_nomem(err, "a vocabulary", n * each);
    float *scores = (float *)(texts + n);
    int32_t *types = (int32_t *)(scores + n);
    char *pieces = (char *)(types + n);
    for (uint32_t i = 0; i < n; i++) {
        char *piece = pieces + (size_t)i * PIECE_BYTES;
        types[i] = make_piece(piece, i);
        scores[i] = types[i] == TOKEN_NORMAL ? -(float)(i - 258) : 0;
        texts[i] = (text_view){ piece, strlen(piece) };
    }
    gguf_set_word(b, "tokenizer.ggml.model", "llama");
    gguf_set_texts(b, "tokenizer.ggml.tokens", texts, n);
    gguf_set_array(b, "tokenizer.ggml.scores", GGUF_F32, scores, n);
    gguf_set_array(b, "tokenizer.ggml.token_type", GGUF_I32, types, n);
    gguf_set_u32(b, "tokenizer.ggml.unknown_token_id", 0);
    gguf_set_u32(b, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_u32(b, "tokenizer.ggml.eos_token_id", 2);
    gguf_set_bool(b, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(b, "tokenizer.ggml.add_eos_token", false);
    mem_free(texts);
    return LOAM_OK;
}

/* ---- tensors ---- */

/* How the values of a tensor are drawn. */
typedef enum draw { DRAW_MATRIX, DRAW_NORM, DRAW_BIAS } draw;

typedef struct item {
    char name[LIMIT_NAME_BYTES + 1];
    loam_type type;
    int64_t ne[LIMIT_DIMS];
    draw how;
} item;

typedef struct item_list {
    item *items;
    size_t count, cap;
    bool failed;
} item_list;

static void add(item_list *l, item t)
{
    if (l->failed || !mem_grow(&l->items, &l->cap, l->count + 1, sizeof t, LIMIT_TENSORS)) {
        l->failed = true;
        return;
    }
    l->items[l->count++] = t;
}

static void add_block(item_list *l, uint32_t block, const char *part, item t)
{
    snprintf(t.name, sizeof t.name, "blk.%u.%s", block, part);
    add(l, t);
}

static item vector(uint32_t n, draw how) { return (item){ .type = LOAM_F32, .ne = { n, 1, 1, 1 }, .how = how }; }

/* Its type is chosen later. */
static item matrix(uint32_t n_in, uint32_t n_out, uint32_t stack)
{
    return (item){ .type = LOAM_F32, .ne = { n_in, n_out, stack, 1 }, .how = DRAW_MATRIX };
}

static item named(const char *name, item t)
{
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static void add_layer(item_list *l, const shape *s, uint32_t i)
{
    uint32_t q = s->n_head * s->head_dim, kv = s->n_head_kv * s->head_dim;
    add_block(l, i, "attn_norm.weight", vector(s->n_embd, DRAW_NORM));
    add_block(l, i, "attn_q.weight", matrix(s->n_embd, q, 1));
    add_block(l, i, "attn_k.weight", matrix(s->n_embd, kv, 1));
    add_block(l, i, "attn_v.weight", matrix(s->n_embd, kv, 1));
    if (strcmp(s->arch, "qwen2") == 0) {
        add_block(l, i, "attn_q.bias", vector(q, DRAW_BIAS));
        add_block(l, i, "attn_k.bias", vector(kv, DRAW_BIAS));
        add_block(l, i, "attn_v.bias", vector(kv, DRAW_BIAS));
    }
    if (s->n_expert) {
        add_block(l, i, "attn_q_norm.weight", vector(s->head_dim, DRAW_NORM));
        add_block(l, i, "attn_k_norm.weight", vector(s->head_dim, DRAW_NORM));
    }
    add_block(l, i, "attn_output.weight", matrix(q, s->n_embd, 1));
    add_block(l, i, "ffn_norm.weight", vector(s->n_embd, DRAW_NORM));
    if (s->n_expert) {
        add_block(l, i, "ffn_gate_inp.weight", matrix(s->n_embd, s->n_expert, 1));
        add_block(l, i, "ffn_gate_exps.weight", matrix(s->n_embd, s->n_ff_expert, s->n_expert));
        add_block(l, i, "ffn_up_exps.weight", matrix(s->n_embd, s->n_ff_expert, s->n_expert));
        add_block(l, i, "ffn_down_exps.weight", matrix(s->n_ff_expert, s->n_embd, s->n_expert));
    } else {
        add_block(l, i, "ffn_gate.weight", matrix(s->n_embd, s->n_ff, 1));
        add_block(l, i, "ffn_up.weight", matrix(s->n_embd, s->n_ff, 1));
        add_block(l, i, "ffn_down.weight", matrix(s->n_ff, s->n_embd, 1));
    }
}

static loam_status choose_types(item_list *l, const shape *s, const plan *p, loam_error *err)
{
    size_t each = sizeof(mix_tensor) + sizeof(mix_choice);
    mix_tensor *tensors = mem_zalloc_array(l->count, each);
    if (!tensors) return fail_nomem(err, "the choice of types", l->count * each);
    mix_choice *choices = (mix_choice *)(tensors + l->count);
    for (size_t i = 0; i < l->count; i++) {
        tensors[i] = (mix_tensor){ .name = l->items[i].name, .type = LOAM_F32, .has_weights = true };
        memcpy(tensors[i].ne, l->items[i].ne, sizeof tensors[i].ne);
    }
    mix_model model = { s->arch, s->n_layer, s->n_head, s->n_head_kv, s->n_expert };
    mix_options options = {
        .mix = p->mix, .pure = p->pure, .keep_order = true, .has_matrix = true, .output_type = -1, .token_type = -1
    };
    loam_status st = mix_plan(&options, &model, tensors, l->count, choices, err);
    for (size_t i = 0; st == LOAM_OK && i < l->count; i++) l->items[choices[i].tensor].type = (loam_type)choices[i].type;
    mem_free(tensors);
    return st;
}

static loam_status list_tensors(item_list *l, const shape *s, const plan *p, loam_error *err)
{
    add(l, named("token_embd.weight", matrix(s->n_embd, s->n_vocab, 1)));
    for (uint32_t i = 0; i < s->n_layer; i++) add_layer(l, s, i);
    add(l, named("output_norm.weight", vector(s->n_embd, DRAW_NORM)));
    if (!s->tied) add(l, named("output.weight", matrix(s->n_embd, s->n_vocab, 1)));
    if (l->failed) return fail_nomem(err, "the list of tensors", (l->count + 1) * sizeof *l->items);
    return choose_types(l, s, p, err);
}

/* Norm weights are near 1, biases small. */
static loam_status put_vector(gguf_writer *w, const item *t, uint64_t *state, loam_error *err)
{
    float mean = t->how == DRAW_NORM ? 1.0f : 0.0f, v[256];
    for (int64_t done = 0; done < t->ne[0];) {
        size_t n = t->ne[0] - done < 256 ? (size_t)(t->ne[0] - done) : 256;
        random_blocks(LOAM_F32, 0.1f, (uint8_t *)v, n, state);
        for (size_t i = 0; i < n; i++) v[i] += mean;
        loam_status s = gguf_writer_put(w, v, n * sizeof *v, err);
        if (s != LOAM_OK) return s;
        done += (int64_t)n;
    }
    return LOAM_OK;
}

#define CHUNK_BYTES (1u << 20)

static loam_status put_matrix(gguf_writer *w, const item *t, uint8_t *chunk, uint64_t *state, loam_error *err)
{
    const dtype_info *d = &dtype_table[t->type];
    uint64_t left = (uint64_t)(t->ne[0] * t->ne[1] * t->ne[2]) / (uint64_t)d->values;
    const uint64_t most = CHUNK_BYTES / (uint64_t)d->bytes;
    float deviation = 1 / sqrtf((float)t->ne[0]);
    while (left > 0) {
        uint64_t n = left < most ? left : most;
        random_blocks(t->type, deviation, chunk, (size_t)n, state);
        loam_status s = gguf_writer_put(w, chunk, n * (uint64_t)d->bytes, err);
        if (s != LOAM_OK) return s;
        left -= n;
    }
    return LOAM_OK;
}

static loam_status write_model(const gguf_builder *b, const item_list *l, const char *path, uint64_t seed, loam_error *err)
{
    gguf_writer *w;
    uint8_t *chunk = mem_alloc(CHUNK_BYTES);
    if (!chunk) return fail_nomem(err, "a piece of a tensor", CHUNK_BYTES);
    loam_status s = gguf_writer_open(&w, b, path, NULL, err);
    for (size_t i = 0; s == LOAM_OK && i < l->count; i++) {
        const item *t = &l->items[i];
        s = t->how == DRAW_MATRIX ? put_matrix(w, t, chunk, &seed, err) : put_vector(w, t, &seed, err);
        if (s != LOAM_OK) gguf_writer_cancel(w);
    }
    mem_free(chunk);
    return s == LOAM_OK ? gguf_writer_close(w, err) : s;
}

static loam_status make(const shape *s, const plan *p, const char *path, uint64_t seed, loam_error *err)
{
    gguf_builder *b;
    loam_status st = gguf_builder_create(&b, NULL, 0, err);
    if (st != LOAM_OK) return st;
    item_list l = { 0 };
    set_keys(b, s, p);
    st = set_vocabulary(b, s->n_vocab, err);
    if (st == LOAM_OK) st = list_tensors(&l, s, p, err);
    for (size_t i = 0; st == LOAM_OK && i < l.count; i++)
        gguf_put_tensor(b, l.items[i].name, l.items[i].type, l.items[i].ne, NULL);
    if (st == LOAM_OK) st = write_model(b, &l, path, seed, err);
    mem_free(l.items);
    gguf_builder_free(b);
    return st;
}

loam_status loam_debug_make_model(const char *path, const char *shape_name, const char *type, uint64_t seed, loam_error *err)
{
    plan p;
    if (!path || !shape_name || !type) return fail(err, LOAM_E_ARG, "make-model: path, shape and type are needed");
    loam_status s = find_plan(type, &p, err);
    if (s != LOAM_OK) return s;
    for (size_t i = 0; i < N_SHAPES; i++)
        if (strcasecmp(shape_name, shapes[i].name) == 0) return make(&shapes[i], &p, path, seed, err);
    return fail(err, LOAM_E_ARG, "no shape '%.40s'; there are tiny, 0.5b, 1b, 8b and moe", shape_name);
}
