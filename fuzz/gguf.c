/* gguf.c - opens any bytes as a GGUF file and uses everything that comes out: every getter on every key, every element of
 * every array, the first and last byte of every tensor, the vocabulary, a builder that takes it all. What is refused must
 * come with a message, what is accepted must keep its promises. */
#include <stdlib.h>
#include <string.h>

#include "file/gguf_write.h"

/* Aborts the fuzzer: a promise is broken. */
static void demand(bool ok)
{
    if (!ok) __builtin_trap();
}

static uint64_t sum; /* what was read; kept so that no read is removed */

static void use_array(const gguf_file *f, const char *name, const gguf_key *k)
{
    gguf_array a;
    for (int cls = GGUF_INTS; cls <= GGUF_STRINGS; cls++) {
        if (gguf_get_array(f, name, GGUF_REQUIRED, (gguf_class)cls, &a, NULL) != LOAM_OK) continue;
        demand(a.count == k->count && a.bytes == k->bytes);
        gguf_strings it = gguf_strings_of(&a);
        text_view s;
        for (uint64_t i = 0; i < a.count; i++) {
            if (cls == GGUF_INTS) sum += (uint64_t)gguf_int_at(&a, i);
            if (cls == GGUF_FLOATS) sum += gguf_f32_at(&a, i) > 0;
            if (cls == GGUF_BOOLS) sum += gguf_bool_at(&a, i);
            if (cls == GGUF_STRINGS) {
                demand(gguf_next(&it, &s));
                if (s.len) sum += (uint8_t)s.data[0] + (uint8_t)s.data[s.len - 1];
            }
        }
        if (cls == GGUF_STRINGS) demand(!gguf_next(&it, &s));
    }
}

static void use_key(const gguf_file *f, const gguf_key *k)
{
    char name[LIMIT_KEY_BYTES + 1];
    uint32_t u = 0, blocks[8];
    int64_t i = 0;
    uint64_t w = 0;
    float x = 0;
    bool b = false;
    text_view t = { NULL, 0 };
    memcpy(name, k->name, k->name_len);
    name[k->name_len] = 0;
    demand(gguf_key_find(f, name) == k);
    int taken = 0;
    taken +=
        gguf_get_i64(f, name, GGUF_REQUIRED, &i, NULL) == LOAM_OK || gguf_get_u64(f, name, GGUF_REQUIRED, &w, NULL) == LOAM_OK;
    taken += gguf_get_f32(f, name, GGUF_REQUIRED, &x, NULL) == LOAM_OK;
    taken += gguf_get_bool(f, name, GGUF_REQUIRED, &b, NULL) == LOAM_OK;
    taken += gguf_get_text(f, name, GGUF_REQUIRED, &t, NULL) == LOAM_OK;
    demand(taken <= 1 && (taken == 0 || k->kind != GGUF_ARRAY));
    if (t.len) sum += (uint8_t)t.data[t.len - 1];
    gguf_get_u32(f, name, GGUF_OPTIONAL, &u, NULL);
    gguf_get_per_block(f, name, GGUF_OPTIONAL, blocks, 8, NULL);
    if (k->kind == GGUF_ARRAY) use_array(f, name, k);
}

static void use_tensor(const gguf_file *f, const gguf_tensor *t, size_t size)
{
    demand(gguf_tensor_find(f, t->name) == t);
    demand(loam_type_name(t->type) != NULL && gguf_values(t) >= 0 && (t->data != NULL) == (t->bytes > 0));
    if (!t->data) return;
    demand(t->offset <= size && t->bytes <= size - t->offset && t->offset % gguf_alignment(f) == 0);
    sum += ((const uint8_t *)t->data)[0] + ((const uint8_t *)t->data)[t->bytes - 1];
}

static void use_vocabulary(const gguf_file *f)
{
    gguf_vocab v;
    loam_error err = { .code = LOAM_OK };
    if (gguf_vocab_view(&v, f, &err) != LOAM_OK) {
        demand(err.message[0] && !v.memory);
        return;
    }
    for (uint32_t i = 0; i < v.view.n_tokens; i++) sum += v.view.tokens[i].len;
    for (uint32_t i = 0; i < v.view.n_merges; i++) sum += v.view.merges[i].len ? (uint8_t)v.view.merges[i].data[0] : 0;
    sum += (uint64_t)v.view.get_int(v.view.keys, "tokenizer.ggml.bos_token_id");
    sum += v.view.get_text(v.view.keys, "tokenizer.chat_template").len;
    gguf_vocab_free(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file *f;
    gguf_builder *b;
    loam_error err = { .code = LOAM_OK };
    if (gguf_open_memory(&f, data, size, "input", &err) != LOAM_OK) {
        demand(!f && err.code != LOAM_OK && strncmp(err.message, "input: ", 7) == 0);
        return 0;
    }
    for (uint32_t i = 0; i < gguf_key_count(f); i++) use_key(f, gguf_key_at(f, i));
    for (uint32_t i = 0; i < gguf_tensor_count(f); i++) use_tensor(f, gguf_tensor_at(f, i), size);
    use_vocabulary(f);
    if (gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, &err) == LOAM_OK) gguf_builder_free(b);
    else demand(err.message[0]);
    gguf_close(f);
    return 0;
}
