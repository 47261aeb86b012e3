/* train.c - seconds of a training step on llama shapes: forward, backward, AdamW.
 *
 *   bench_train [10m|100m] [threads] [steps] [recompute|bf16|small]...       weights are random, data too
 *   bench_train FILE.gguf [threads] [steps] lora [tokens] [part of labels]   LoRA of rank 16 on an existing model
 *
 * Prints the median and best step, CPU time of a step (all threads), tokens per second, and the memory beyond weights, gradients and optimizer state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "loam/gguf.h"
#include "loam/train.h"
#include "median.h"

typedef struct shape {
    const char *name;
    int layers, width, heads, inner, vocab, rows, length;
} shape;

static const shape shapes[] = {
    { "10m", 6, 320, 5, 864, 8192, 8, 256 },
    { "100m", 12, 768, 12, 2048, 16384, 4, 512 },
};

static uint64_t state = 1;

static float next_float(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (float)((int64_t)(state >> 40) - (1 << 23)) * (0.04f / (1 << 23));
}

static void add(loam_gguf_builder *b, const char *name, int64_t ne0, int64_t ne1)
{
    int64_t n = ne0 * ne1;
    float *x = mem_alloc((size_t)n * 4);
    for (int64_t i = 0; i < n; i++) x[i] = ne1 == 1 ? 1.0f : next_float();
    loam_gguf_set_tensor(b, name, LOAM_F32, (int64_t[4]){ ne0, ne1, 1, 1 }, x); /* kept until the program ends */
}

static void make_model(const shape *s, const char *path)
{
    loam_gguf_builder *b;
    loam_error err;
    loam_gguf_builder_create(&b, NULL, false, &err);
    loam_gguf_set_text(b, "general.architecture", "llama", 5);
    loam_gguf_set_text(b, "tokenizer.ggml.model", "test", 4);
    loam_gguf_set_u32(b, "llama.context_length", (uint32_t)s->length);
    loam_gguf_set_u32(b, "llama.embedding_length", (uint32_t)s->width);
    loam_gguf_set_u32(b, "llama.block_count", (uint32_t)s->layers);
    loam_gguf_set_u32(b, "llama.attention.head_count", (uint32_t)s->heads);
    loam_gguf_set_u32(b, "llama.feed_forward_length", (uint32_t)s->inner);
    loam_gguf_set_u32(b, "llama.vocab_size", (uint32_t)s->vocab);
    loam_gguf_set_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    add(b, "token_embd.weight", s->width, s->vocab);
    add(b, "output_norm.weight", s->width, 1);
    add(b, "output.weight", s->width, s->vocab);
    for (int i = 0; i < s->layers; i++) {
        const struct { const char *name; int64_t in, out; } tensors[] = {
            { "attn_norm", s->width, 1 }, { "attn_q", s->width, s->width }, { "attn_k", s->width, s->width },
            { "attn_v", s->width, s->width }, { "attn_output", s->width, s->width }, { "ffn_norm", s->width, 1 },
            { "ffn_gate", s->width, s->inner }, { "ffn_up", s->width, s->inner }, { "ffn_down", s->inner, s->width },
        };
        for (size_t k = 0; k < sizeof tensors / sizeof tensors[0]; k++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, tensors[k].name);
            add(b, name, tensors[k].in, tensors[k].out);
        }
    }
    if (loam_gguf_write(b, path, NULL, &err) != LOAM_OK) fprintf(stderr, "%s\n", err.message), exit(1);
    loam_gguf_builder_free(b);
}

static void run(const loam_model *model, const loam_trainer_params *p, int rows, int length, int steps, double part)
{
    int n = rows * length;
    loam_error err;
    loam_train_memory m;
    loam_trainer *t;
    int32_t *tokens = mem_alloc((size_t)n * 4), *labels = mem_alloc((size_t)n * 4), *docs = mem_alloc((size_t)n * 4);
    double *took = mem_alloc((size_t)steps * sizeof *took);
    for (int i = 0; i < n; i++) {
        next_float();
        tokens[i] = (int32_t)((state >> 33) % (uint64_t)loam_model_n_vocab(model)), docs[i] = i / length;
    }
    for (int i = 0; i < n; i++) labels[i] = i % length < length * (1 - part) ? -1 : tokens[(i + 1) % n];
    loam_train_batch b = { .n_tokens = (size_t)n, .tokens = tokens, .labels = labels, .documents = docs };
    if (loam_trainer_estimate(model, p, n, &m, &err) != LOAM_OK || loam_trainer_new(&t, model, p, &err) != LOAM_OK)
        fprintf(stderr, "%s\n", err.message), exit(1);
    loam_train_loss loss = { 0 };
    clock_t cpu = 0;
    for (int s = -1; s < steps; s++) {
        if (s == 0) cpu = clock();
        uint64_t start = os_now_ns();
        if (loam_trainer_accumulate(t, &b, &loss, &err) != LOAM_OK || loam_trainer_update(t, 1e-4, NULL, &err) != LOAM_OK)
            fprintf(stderr, "%s\n", err.message), exit(1);
        if (s >= 0) took[s] = (double)(os_now_ns() - start) * 1e-9;
    }
    double middle = median(took, steps);
    printf("%.1f M values learn; a step of %d tokens: median %.3f s, best %.3f s, %.3f s of CPU, %.0f tokens/s; loss %.3f; MB: weights %llu, gradients %llu, "
           "state %llu, work %llu\n", (double)m.n_trainable * 1e-6, n, middle, took[0], (double)(clock() - cpu) / CLOCKS_PER_SEC / steps, n / middle, loss.sum / loss.weight,
           (unsigned long long)(m.weights >> 20), (unsigned long long)(m.gradients >> 20), (unsigned long long)(m.state >> 20),
           (unsigned long long)(m.work >> 20));
    loam_trainer_free(t);
    mem_free(tokens);
    mem_free(labels);
    mem_free(docs);
    mem_free(took);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "10m";
    loam_trainer_params p = loam_trainer_defaults();
    p.n_threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    int steps = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 3;
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "recompute") == 0) p.recompute = true;
        if (strcmp(argv[i], "bf16") == 0) p.bf16 = true;
        if (strcmp(argv[i], "small") == 0) p.small_state = true;
        if (strcmp(argv[i], "lora") == 0) p.lora_rank = 16;
    }
    char path[256];
    int rows = 1, length = argc > 5 && p.lora_rank ? (int)strtol(argv[5], NULL, 10) : 512;
    double part = argc > 6 && p.lora_rank ? strtod(argv[6], NULL) : 1.0;
    snprintf(path, sizeof path, "%s", what);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(shapes[i].name, what) == 0) {
            snprintf(path, sizeof path, "/tmp/bench-train-%d.gguf", (int)getpid());
            make_model(&shapes[i], path);
            rows = shapes[i].rows, length = shapes[i].length;
        }
    loam_model *model;
    loam_error err;
    if (loam_model_open(&model, path, NULL, &err) != LOAM_OK) fprintf(stderr, "%s\n", err.message), exit(1);
    if (strcmp(path, what) != 0) unlink(path);
    printf("%s: ", what);
    run(model, &p, rows, length, steps, part);
    loam_model_free(model);
}
