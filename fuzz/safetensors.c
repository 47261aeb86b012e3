/* safetensors.c - fuzz target: bytes as a safetensors file, and as the JSON and SentencePiece files of a folder. Whatever they
 * are, they are refused or every extent that is handed out lies inside the bytes.
 *
 *     bytes: [ what: 0 a safetensors file, 1 config.json, 2 tokenizer.json, 3 tokenizer.model ][ the rest: its contents ] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/gguf.h"
#include "file/safetensors.h"

static void demand(int ok)
{
    if (!ok) abort();
}

static unsigned sum; /* what was read; kept so that no read is removed */

static void as_safetensors(const uint8_t *data, size_t size)
{
    st_file *f;
    if (st_open_memory(&f, data, size, "input", NULL) != LOAM_OK) {
        demand(f == NULL);
        return;
    }
    for (size_t i = 0; i < f->n_tensors; i++) {
        const st_tensor *t = &f->tensors[i];
        demand(t->data >= data && t->bytes <= size && (size_t)(t->data - data) <= size - t->bytes);
        demand(t->offset == (uint64_t)(t->data - data));
        for (uint64_t j = 0; j < t->bytes; j++) sum += t->data[j];
        for (size_t j = 0; j < t->name.len; j++) sum += (uint8_t)t->name.data[j];
    }
    st_close(f);
}

static char folder[128];

static void write_file(const char *name, const void *data, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    demand(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static void clear(void)
{
    static const char *const names[] = { "config.json", "tokenizer.json", "tokenizer.model", "model.safetensors" };
    char path[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

static void as_folder(int what, const uint8_t *data, size_t size)
{
    static const char config[] = "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 1, \"num_hidden_layers\": 1,"
                                 " \"num_attention_heads\": 1, \"head_dim\": 2, \"intermediate_size\": 1}";
    static const char header[] = "{\"model.embed_tokens.weight\": {\"dtype\": \"I8\", \"shape\": [0, 1], \"data_offsets\": [0, 0]}}";
    static const char weights[] = "{\"model.embed_tokens.weight\": {\"dtype\": \"F16\", \"shape\": [9, 1], \"data_offsets\": [0, 18]}}";
    static const char *const names[] = { "", "config.json", "tokenizer.json", "tokenizer.model" };
    uint8_t file[200] = { 0 };
    const char *head = what == 1 ? header : weights;
    uint64_t n = strlen(head);
    memcpy(file, &n, 8);
    memcpy(file + 8, head, n);
    mkdir(folder, 0700);
    write_file("config.json", config, sizeof config - 1);
    write_file("model.safetensors", file, 8 + n + (what == 1 ? 0 : 18));
    write_file(names[what], data, size);
    gguf_file *f;
    gguf_vocab v;
    if (gguf_open(&f, folder, 0, NULL) == LOAM_OK) {
        if (gguf_vocab_view(&v, f, NULL) == LOAM_OK) gguf_vocab_free(&v);
        gguf_close(f);
    } else demand(f == NULL);
    clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!folder[0]) snprintf(folder, sizeof folder, "/tmp/loam-fuzz-%ld", (long)getpid());
    if (size == 0) return 0;
    int what = data[0] & 3;
    if (what == 0) as_safetensors(data + 1, size - 1);
    else as_folder(what, data + 1, size - 1);
    return 0;
}
