/* gguf.c - opens any bytes as a GGUF file and uses everything that comes out: every getter on every key, every element of
 * every array, the first and last byte of every tensor, the vocabulary. What is refused must come with a message; what is
 * accepted must keep its promises, and be the same after it was written and read again. A file that says that it is a
 * part of several is put on disk as all of them, and opened.
 *
 * Scratch files lie in TMPDIR, else in memory (/dev/shm), else in /tmp. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "file/gguf_write.h"
#include "loam/gguf.h"

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

/* ---- on disk ---- */

static const char *scratch(char out[512], const char *tail)
{
    static const char *folder;
    if (!folder) folder = env_get("TMPDIR");
    if (!folder) folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, 512, "%s/loam-fuzz-%ld%s", folder, (long)getpid(), tail);
    return out;
}

static void spill(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    demand(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static bool is_split(const gguf_key *k) { return k->name_len > 6 && memcmp(k->name, "split.", 6) == 0; }

/* Every key (but split.*) and tensor of a is in b, in order, with the same bytes. */
static void demand_same(const gguf_file *a, const gguf_file *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < gguf_key_count(a); i++) {
        const gguf_key *x = gguf_key_at(a, i), *y;
        if (is_split(x)) continue;
        while ((y = gguf_key_at(b, n)) && is_split(y)) n++; /* a part that was opened alone stays one */
        demand(y && x->name_len == y->name_len && memcmp(x->name, y->name, x->name_len) == 0);
        demand(x->kind == y->kind && x->item == y->item && x->count == y->count && x->bytes == y->bytes);
        demand(memcmp(x->data, y->data, x->bytes) == 0);
        n++;
    }
    demand(gguf_tensor_count(a) == gguf_tensor_count(b));
    for (uint32_t i = 0; i < gguf_tensor_count(a); i++) {
        const gguf_tensor *x = gguf_tensor_at(a, i), *y = gguf_tensor_find(b, x->name);
        demand(y && x->type == y->type && x->bytes == y->bytes && memcmp(x->ne, y->ne, sizeof x->ne) == 0);
        demand(x->bytes == 0 || memcmp(x->data, y->data, x->bytes) == 0);
    }
}

/* Written whole, and in parts of two tensors, it is the same when read again. */
static void round_trip(const gguf_file *f)
{
    char path[512], first[512], tail[64];
    gguf_builder *b;
    gguf_file *again;
    loam_error err = { .code = LOAM_OK };
    if (gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, &err) != LOAM_OK) {
        demand(err.message[0]);
        return;
    }
    demand(gguf_write(b, scratch(path, ".gguf"), NULL, &err) == LOAM_OK);
    demand(gguf_open(&again, path, GGUF_READ | GGUF_PART, &err) == LOAM_OK);
    demand_same(f, again);
    gguf_close(again);
    remove(path);
    uint32_t parts = (gguf_tensor_count(f) + 1) / 2;
    if (parts > 1) {
        demand(gguf_write(b, path, &(gguf_write_options){ .part_tensors = 2 }, &err) == LOAM_OK);
        snprintf(tail, sizeof tail, "-00001-of-%05u.gguf", parts);
        demand(gguf_open(&again, scratch(first, tail), 0, &err) == LOAM_OK && gguf_part_count(again) == parts);
        demand_same(f, again);
        gguf_close(again);
        for (uint32_t i = 1; i <= parts; i++) {
            snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", i, parts);
            remove(scratch(first, tail));
        }
    }
    gguf_builder_free(b);
}

/* The file as part 1, and again as part 2 with its number changed. */
static void open_parts(const gguf_file *f, const uint8_t *data, size_t size)
{
    uint32_t count = 0;
    const gguf_key *no = gguf_key_find(f, "split.no");
    if (gguf_get_u32(f, "split.count", GGUF_OPTIONAL, &count, NULL) != LOAM_OK || count != 2 || !no || no->bytes > 8) return;
    char first[512], second[512];
    gguf_file *whole;
    loam_error err = { .code = LOAM_OK };
    uint8_t *copy = malloc(size);
    demand(copy != NULL);
    memcpy(copy, data, size);
    copy[no->data - data] ^= 1;
    spill(scratch(first, "-00001-of-00002.gguf"), data, size);
    spill(scratch(second, "-00002-of-00002.gguf"), copy, size);
    if (gguf_open(&whole, first, 0, &err) == LOAM_OK) demand(gguf_part_count(whole) == 2);
    else demand(!whole && err.message[0]);
    gguf_close(whole);
    remove(first);
    remove(second);
    free(copy);
}

/* ---- through the public interface ---- */

/* Sets what a key holds under names of its own, by each setter. */
static void set_all(loam_gguf_builder *b, const loam_gguf_value *v)
{
    int64_t n = 0;
    double x = 0;
    bool flag = false;
    uint64_t cursor = 0, texts = 0;
    const char *text[64];
    size_t len[64];
    for (uint64_t k = 0; k < v->count; k++)
        sum += loam_gguf_int(v, k, &n) + loam_gguf_float(v, k, &x) + loam_gguf_bool(v, k, &flag);
    demand(!loam_gguf_int(v, v->count, &n) && !loam_gguf_float(v, v->count, &x) && !loam_gguf_bool(v, v->count, &flag));
    while (loam_gguf_text(v, &cursor, &text[texts % 64], &len[texts % 64])) texts++;
    demand(texts == (v->item == LOAM_GGUF_STRING ? v->count : 0));
    loam_gguf_set_value(b, "copy", v);
    loam_gguf_set_u32(b, "u32", (uint32_t)n);
    loam_gguf_set_i32(b, "i32", (int32_t)n);
    loam_gguf_set_u64(b, "u64", (uint64_t)n);
    loam_gguf_set_f32(b, "f32", (float)x);
    loam_gguf_set_bool(b, "bool", flag);
    loam_gguf_set_text(b, "text", v->key, v->key_len);
    loam_gguf_set_array(b, "bytes", LOAM_GGUF_U8, v->data, v->bytes);
    loam_gguf_set_texts(b, "texts", text, len, texts < 64 ? texts : 64);
    if (flag) loam_gguf_remove_key(b, "u32");
}

static void stream(loam_gguf_builder *b, const loam_gguf *f)
{
    char path[512];
    loam_gguf_writer *w;
    loam_gguf_tensor t;
    loam_gguf_write_params params = loam_gguf_write_defaults();
    loam_error err = { .code = LOAM_OK };
    if (loam_gguf_writer_open(&w, b, scratch(path, "-stream.gguf"), &params, &err) != LOAM_OK) {
        demand(!w && err.message[0]);
        return;
    }
    while (loam_gguf_writer_due(w)) {
        demand(loam_gguf_tensor_find(f, loam_gguf_writer_due(w), &t));
        demand(loam_gguf_writer_put(w, t.data, t.bytes / 2, &err) == LOAM_OK);
        demand(loam_gguf_writer_put(w, (const uint8_t *)t.data + t.bytes / 2, t.bytes - t.bytes / 2, &err) == LOAM_OK);
    }
    demand(loam_gguf_writer_close(w, &err) == LOAM_OK);
    remove(path);
}

static void use_public(const uint8_t *data, size_t size)
{
    loam_gguf *f;
    loam_gguf_value v;
    loam_gguf_tensor t;
    loam_gguf_builder *b;
    demand(loam_gguf_open_memory(&f, data, size, NULL) == LOAM_OK);
    demand(loam_gguf_builder_create(&b, f, false, NULL) == LOAM_OK);
    for (uint32_t i = 0; loam_gguf_key_at(f, i, &v); i++) set_all(b, &v);
    for (uint32_t i = 0; loam_gguf_tensor_at(f, i, &t); i++) loam_gguf_set_tensor(b, t.name, t.type, t.ne, NULL);
    if (loam_gguf_n_tensors(f) % 2) loam_gguf_remove_tensor(b, "a");
    stream(b, f);
    loam_gguf_builder_free(b);
    loam_gguf_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file *f;
    loam_error err = { .code = LOAM_OK };
    if (gguf_open_memory(&f, data, size, "input", &err) != LOAM_OK) {
        demand(!f && err.code != LOAM_OK && strncmp(err.message, "input: ", 7) == 0);
        return 0;
    }
    for (uint32_t i = 0; i < gguf_key_count(f); i++) use_key(f, gguf_key_at(f, i));
    for (uint32_t i = 0; i < gguf_tensor_count(f); i++) use_tensor(f, gguf_tensor_at(f, i), size);
    use_vocabulary(f);
    use_public(data, size);
    round_trip(f);
    open_parts(f, data, size);
    gguf_close(f);
    return 0;
}
