/* make_model.c - writes models with random weights, in the shapes that benchmarks use; see loam/debug.h.
 *
 * Tensors are generated and written a megabyte at a time, so a model of any size needs little memory. Unknown shapes and
 * types are refused with the list of what there is. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "file/gguf_write.h"
#include "loam/debug.h"
#include "model/random_blocks.h"
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

/* A mix: most matrices have `base`; the head `head`; attn_v and ffn_down `better`, in all blocks or in some. */
typedef enum which { NEVER, SOME, FIRST, ALWAYS } which;
typedef struct mix {
    const char *name;
    uint32_t file_type;
    loam_type base, head, v, down;
    which v_where, down_where;
} mix;

static const mix mixes[] = {
    { "q3_K_S", 11, LOAM_Q3_K, LOAM_Q6_K, LOAM_Q3_K, LOAM_Q3_K, NEVER, NEVER },
    { "q3_K_M", 12, LOAM_Q3_K, LOAM_Q6_K, LOAM_Q4_K, LOAM_Q4_K, ALWAYS, ALWAYS },
    { "q3_K_L", 13, LOAM_Q3_K, LOAM_Q6_K, LOAM_Q5_K, LOAM_Q5_K, ALWAYS, ALWAYS },
    { "q4_K_S", 14, LOAM_Q4_K, LOAM_Q6_K, LOAM_Q5_K, LOAM_Q5_K, FIRST, FIRST },
    { "q4_K_M", 15, LOAM_Q4_K, LOAM_Q6_K, LOAM_Q6_K, LOAM_Q6_K, SOME, SOME },
    { "q5_K_S", 16, LOAM_Q5_K, LOAM_Q6_K, LOAM_Q5_K, LOAM_Q5_K, NEVER, NEVER },
    { "q5_K_M", 17, LOAM_Q5_K, LOAM_Q6_K, LOAM_Q6_K, LOAM_Q6_K, SOME, SOME },
};

/* general.file_type of files of one type. */
static uint32_t pure_file_type(loam_type t)
{
    static const uint8_t labels[LOAM_TYPE_LIMIT] = {
        [LOAM_F16] = 1,     [LOAM_Q4_0] = 2,     [LOAM_Q4_1] = 3,   [LOAM_Q8_0] = 7,    [LOAM_Q5_0] = 8,   [LOAM_Q5_1] = 9,
        [LOAM_Q2_K] = 10,   [LOAM_Q3_K] = 11,    [LOAM_Q4_K] = 14,  [LOAM_Q5_K] = 16,   [LOAM_Q6_K] = 18,  [LOAM_IQ2_XXS] = 19,
        [LOAM_IQ2_XS] = 20, [LOAM_IQ3_XXS] = 23, [LOAM_IQ1_S] = 24, [LOAM_IQ4_NL] = 25, [LOAM_IQ3_S] = 26, [LOAM_IQ2_S] = 28,
        [LOAM_IQ4_XS] = 30, [LOAM_IQ1_M] = 31,   [LOAM_BF16] = 32,  [LOAM_TQ1_0] = 36,  [LOAM_TQ2_0] = 37, [LOAM_MXFP4] = 38,
        [LOAM_NVFP4] = 39,  [LOAM_Q1_0] = 40,    [LOAM_Q2_0] = 41,
    };
    return labels[t];
}

static loam_status find_mix(const char *name, mix *m, loam_error *err)
{
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (strcasecmp(name, mixes[i].name) == 0) {
            *m = mixes[i];
            return LOAM_OK;
        }
    int type = loam_type_from_name(name);
    if (type >= 0 && random_blocks_can((loam_type)type)) {
        loam_type t = (loam_type)type;
        *m = (mix){ dtype_table[t].name, pure_file_type(t), t, t, t, t, NEVER, NEVER };
        return LOAM_OK;
    }
    char list[256];
    size_t n = 0;
    for (int t = 0; t < LOAM_TYPE_LIMIT; t++)
        if (dtype_table[t].name && random_blocks_can((loam_type)t) && n < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s ", dtype_table[t].name);
    return fail(err, LOAM_E_ARG, "no type '%.40s'; there are %sand mixes such as q4_K_M", name, list);
}

/* Whether block i of n is one that gets better types: an eighth at either end, and every third between. */
static bool chosen(which w, uint32_t i, uint32_t n)
{
    uint32_t eighth = n / 8;
    if (w == FIRST) return i < eighth;
    return w == ALWAYS || (w == SOME && (i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2));
}

/* What the field takes for rows that do not fit the blocks of a type. */
static loam_type fitting(loam_type t, int64_t row)
{
    if (row % dtype_table[t].values == 0) return t;
    loam_type next = t;
    switch (t) {
    case LOAM_Q2_K:
    case LOAM_Q3_K:
    case LOAM_TQ1_0:
    case LOAM_TQ2_0:
    case LOAM_Q2_0: next = LOAM_Q4_0; break;
    case LOAM_Q4_K: next = LOAM_Q5_0; break;
    case LOAM_Q5_K: next = LOAM_Q5_1; break;
    case LOAM_Q6_K: next = LOAM_Q8_0; break;
    case LOAM_IQ1_S:
    case LOAM_IQ1_M:
    case LOAM_IQ2_XXS:
    case LOAM_IQ2_XS:
    case LOAM_IQ2_S:
    case LOAM_IQ3_XXS:
    case LOAM_IQ3_S:
    case LOAM_IQ4_XS: next = LOAM_IQ4_NL; break;
    default: return LOAM_F16;
    }
    return row % dtype_table[next].values == 0 ? next : LOAM_F16;
}

/* ---- metadata ---- */

static void set_text(gguf_builder *b, const char *key, const char *text) { gguf_set_text(b, key, text, strlen(text)); }

/* "llama." + "block_count" */
static const char *model_key(char out[96], const shape *s, const char *rest)
{
    snprintf(out, 96, "%s.%s", s->arch, rest);
    return out;
}

static void set_keys(gguf_builder *b, const shape *s, const mix *m)
{
    char key[96], name[64];
    snprintf(name, sizeof name, "random %s %s", s->name, m->name);
    set_text(b, "general.architecture", s->arch);
    set_text(b, "general.type", "model");
    set_text(b, "general.name", name);
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
    gguf_set_u32(b, "general.file_type", m->file_type);
    gguf_set_u32(b, "general.quantization_version", 2);
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
    set_text(b, "tokenizer.ggml.model", "llama");
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

static item matrix(loam_type t, uint32_t in, uint32_t out, uint32_t stack)
{
    return (item){ .type = fitting(t, in), .ne = { in, out, stack, 1 }, .how = DRAW_MATRIX };
}

static item named(const char *name, item t)
{
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static void add_layer(item_list *l, const shape *s, const mix *m, uint32_t i)
{
    uint32_t q = s->n_head * s->head_dim, kv = s->n_head_kv * s->head_dim;
    loam_type v = chosen(m->v_where, i, s->n_layer) ? m->v : m->base,
              down = chosen(m->down_where, i, s->n_layer) ? m->down : m->base;
    add_block(l, i, "attn_norm.weight", vector(s->n_embd, DRAW_NORM));
    add_block(l, i, "attn_q.weight", matrix(m->base, s->n_embd, q, 1));
    add_block(l, i, "attn_k.weight", matrix(m->base, s->n_embd, kv, 1));
    add_block(l, i, "attn_v.weight", matrix(v, s->n_embd, kv, 1));
    if (strcmp(s->arch, "qwen2") == 0) {
        add_block(l, i, "attn_q.bias", vector(q, DRAW_BIAS));
        add_block(l, i, "attn_k.bias", vector(kv, DRAW_BIAS));
        add_block(l, i, "attn_v.bias", vector(kv, DRAW_BIAS));
    }
    if (s->n_expert) {
        add_block(l, i, "attn_q_norm.weight", vector(s->head_dim, DRAW_NORM));
        add_block(l, i, "attn_k_norm.weight", vector(s->head_dim, DRAW_NORM));
    }
    add_block(l, i, "attn_output.weight", matrix(m->base, q, s->n_embd, 1));
    add_block(l, i, "ffn_norm.weight", vector(s->n_embd, DRAW_NORM));
    if (s->n_expert) {
        add_block(l, i, "ffn_gate_inp.weight", matrix(LOAM_F32, s->n_embd, s->n_expert, 1));
        add_block(l, i, "ffn_gate_exps.weight", matrix(m->base, s->n_embd, s->n_ff_expert, s->n_expert));
        add_block(l, i, "ffn_up_exps.weight", matrix(m->base, s->n_embd, s->n_ff_expert, s->n_expert));
        add_block(l, i, "ffn_down_exps.weight", matrix(down, s->n_ff_expert, s->n_embd, s->n_expert));
    } else {
        add_block(l, i, "ffn_gate.weight", matrix(m->base, s->n_embd, s->n_ff, 1));
        add_block(l, i, "ffn_up.weight", matrix(m->base, s->n_embd, s->n_ff, 1));
        add_block(l, i, "ffn_down.weight", matrix(down, s->n_ff, s->n_embd, 1));
    }
}

static void list_tensors(item_list *l, const shape *s, const mix *m)
{
    add(l, named("token_embd.weight", matrix(s->tied ? m->head : m->base, s->n_embd, s->n_vocab, 1)));
    for (uint32_t i = 0; i < s->n_layer; i++) add_layer(l, s, m, i);
    add(l, named("output_norm.weight", vector(s->n_embd, DRAW_NORM)));
    if (!s->tied) add(l, named("output.weight", matrix(m->head, s->n_embd, s->n_vocab, 1)));
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

static loam_status make(const shape *s, const mix *m, const char *path, uint64_t seed, loam_error *err)
{
    gguf_builder *b;
    loam_status st = gguf_builder_create(&b, NULL, 0, err);
    if (st != LOAM_OK) return st;
    item_list l = { 0 };
    set_keys(b, s, m);
    st = set_vocabulary(b, s->n_vocab, err);
    list_tensors(&l, s, m);
    if (st == LOAM_OK && l.failed) st = fail_nomem(err, "the list of tensors", l.count * sizeof *l.items);
    for (size_t i = 0; st == LOAM_OK && i < l.count; i++)
        gguf_put_tensor(b, l.items[i].name, l.items[i].type, l.items[i].ne, NULL);
    if (st == LOAM_OK) st = write_model(b, &l, path, seed, err);
    mem_free(l.items);
    gguf_builder_free(b);
    return st;
}

loam_status loam_debug_make_model(const char *path, const char *shape_name, const char *type, uint64_t seed, loam_error *err)
{
    mix m;
    if (!path || !shape_name || !type) return fail(err, LOAM_E_ARG, "make-model: path, shape and type are needed");
    loam_status s = find_mix(type, &m, err);
    if (s != LOAM_OK) return s;
    for (size_t i = 0; i < N_SHAPES; i++)
        if (strcasecmp(shape_name, shapes[i].name) == 0) return make(&shapes[i], &m, path, seed, err);
    return fail(err, LOAM_E_ARG, "no shape '%.40s'; there are tiny, 0.5b, 1b, 8b and moe", shape_name);
}
