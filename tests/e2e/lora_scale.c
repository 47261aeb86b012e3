/* lora_scale.c - by how much an adapter counts: alpha over rank, over the root of the rank where it is rank-stabilised, times
 * the strength; in files of F32, F16 and BF16, as GGUF and as a folder of PEFT. A weight of zeros becomes scale * B A, and with A
 * and B all ones every value of it is scale * rank; the model that runs with the adapter says what the merged model says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

#include "loam/debug.h"
#include "loam/gguf.h"
#include "loam/tensor.h"

#define WIDTH 256 /* of the tiny model */
#define TARGET "blk.1.attn_output.weight"
#define MODULE "base_model.model.model.layers.1.self_attn.o_proj"

static char base[512], adapter[512], merged[512], folder[512], path[600], scratch[512];
static float ones[128 * WIDTH], zeros[WIDTH * WIDTH];
static uint16_t ones16[128 * WIDTH], ones_bf16[128 * WIDTH];

static void put(loam_gguf_builder *b, const char *file)
{
    loam_error err;
    if (loam_gguf_write(b, file, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
}

static void make_base(void)
{
    loam_error err;
    loam_gguf *f;
    loam_gguf_builder *b;
    if (loam_debug_make_model(scratch, "tiny", "f32", 1, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_gguf_open(&f, scratch, NULL, &err), LOAM_OK);
    assert_int_equal(loam_gguf_builder_create(&b, f, true, &err), LOAM_OK);
    loam_gguf_set_tensor(b, TARGET, LOAM_F32, (int64_t[]){ WIDTH, WIDTH, 1, 1 }, zeros);
    put(b, base);
    loam_gguf_free(f);
}

static const void *ones_of(int type) { return type == LOAM_F32 ? (const void *)ones : type == LOAM_F16 ? ones16 : ones_bf16; }

static void make_adapter(int rank, float alpha, int type)
{
    loam_error err;
    loam_gguf_builder *b;
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.architecture", "llama", 5);
    loam_gguf_set_text(b, "general.type", "adapter", 7);
    loam_gguf_set_text(b, "adapter.type", "lora", 4);
    loam_gguf_set_f32(b, "adapter.lora.alpha", alpha);
    loam_gguf_set_tensor(b, TARGET ".lora_a", type, (int64_t[]){ WIDTH, rank, 1, 1 }, ones_of(type));
    loam_gguf_set_tensor(b, TARGET ".lora_b", type, (int64_t[]){ rank, WIDTH, 1, 1 }, ones_of(type));
    put(b, adapter);
}

static void make_peft(int rank, int alpha, bool stabilised, int type)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "{\"peft_type\": \"LORA\", \"r\": %d, \"lora_alpha\": %d, \"use_rslora\": %s, \"target_modules\": [\"o_proj\"]}",
                     rank, alpha, stabilised ? "true" : "false");
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    assert_true(spill(path, text, (size_t)n));
    const char *name = type == LOAM_F32 ? "F32" : type == LOAM_F16 ? "F16" : "BF16";
    size_t bytes = (size_t)rank * WIDTH * (type == LOAM_F32 ? 4 : 2);
    n = snprintf(text, sizeof text,
                 "{\"" MODULE ".lora_A.weight\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
                 "\"" MODULE ".lora_B.weight\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]}}",
                 name, rank, WIDTH, bytes, name, WIDTH, rank, bytes, 2 * bytes);
    while (n % 8) text[n++] = ' ';
    char *file = malloc(8 + (size_t)n + 2 * bytes);
    uint64_t length = (uint64_t)n;
    memcpy(file, &length, 8);
    memcpy(file + 8, text, (size_t)n);
    memcpy(file + 8 + n, ones_of(type), bytes);
    memcpy(file + 8 + n + bytes, ones_of(type), bytes);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    assert_true(spill(path, file, 8 + (size_t)n + 2 * bytes));
    free(file);
}

/* Every value of the merged weight. */
static void expect(const char *from, const char *strength, float value)
{
    loam_error err;
    loam_gguf *f;
    loam_gguf_tensor t;
    command_result r = command("lora", "merge", "--strength", strength, base, from, merged);
    if (r.code) fail_msg("%s", r.err);
    command_free(&r);
    assert_int_equal(loam_gguf_open(&f, merged, NULL, &err), LOAM_OK);
    assert_true(loam_gguf_tensor_find(f, TARGET, &t));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        if (((const float *)t.data)[i] != value) fail_msg("%s, strength %s: %g, not %g", from, strength, (double)((const float *)t.data)[i], (double)value);
    loam_gguf_free(f);
}

static void files(void **state)
{
    (void)state;
    static const struct { int rank; float alpha, value; } cases[] = { { 16, 16, 16 }, { 8, 16, 16 }, { 64, 64, 64 }, { 4, 1, 1 } };
    static const int types[] = { LOAM_F32, LOAM_F16, LOAM_BF16 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 3; k++) {
            make_adapter(cases[i].rank, cases[i].alpha, types[k]);
            expect(adapter, "1", cases[i].value);
            expect(adapter, "0.5", cases[i].value / 2);
        }
}

static void folders(void **state)
{
    (void)state;
    static const int types[] = { LOAM_F32, LOAM_F16, LOAM_BF16 };
    for (size_t k = 0; k < 3; k++) {
        make_peft(16, 16, false, types[k]);
        expect(folder, "1", 16);
        make_peft(16, 16, true, types[k]);
        expect(folder, "1", 64);
        expect(folder, "0.5", 32);
        make_peft(8, 16, false, types[k]);
        expect(folder, "1", 16);
    }
}

/* Largest difference of the logits of the model with the adapter and of the merged one, by the size of the largest. */
static double distance(const char *from)
{
    char with[560], without[560], tokens[560];
    snprintf(with, sizeof with, "%s.with", scratch);
    snprintf(without, sizeof without, "%s.merged", scratch);
    snprintf(tokens, sizeof tokens, "%s.tokens", scratch);
    assert_true(spill(tokens, "5 9 300 17 4", 12));
    command_result r = command("debug", "eval", "-m", base, "--tokens", tokens, "-o", with, "--lora", from);
    if (r.code) fail_msg("%s", r.err);
    command_free(&r);
    r = command("debug", "eval", "-m", merged, "--tokens", tokens, "-o", without);
    if (r.code) fail_msg("%s", r.err);
    command_free(&r);
    size_t n, m;
    float *a = (float *)slurp(with, &n), *b = (float *)slurp(without, &m);
    assert_true(a && b && n == m && n > 0);
    double off = 0, size = 0;
    for (size_t i = 0; i < n / 4; i++) {
        double x = (double)a[i] - (double)b[i];
        off = x * x > off ? x * x : off, size = (double)b[i] * (double)b[i] > size ? (double)b[i] * (double)b[i] : size;
    }
    free(a), free(b);
    unlink(with), unlink(without), unlink(tokens);
    return off / size;
}

static void at_run_time(void **state)
{
    (void)state;
    make_adapter(16, 16, LOAM_F32);
    expect(adapter, "1", 16);
    assert_true(distance(adapter) < 1e-8);
    make_peft(16, 16, true, LOAM_BF16);
    expect(folder, "1", 64);
    assert_true(distance(folder) < 1e-8);
    make_adapter(16, 16, LOAM_F32); /* another scale is another model: the comparison can fail */
    assert_true(distance(adapter) > 1e-6);
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 128 * WIDTH; i++) ones[i] = 1, ones16[i] = 0x3C00, ones_bf16[i] = 0x3F80;
    scratch_path(scratch, "scale.gguf");
    scratch_path(base, "scale-base.gguf");
    scratch_path(adapter, "scale-adapter.gguf");
    scratch_path(merged, "scale-merged.gguf");
    scratch_path(folder, "scale-peft");
    make_base();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const inside[] = { "adapter_config.json", "adapter_model.safetensors" };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, inside[i]);
        unlink(path);
    }
    rmdir(folder);
    unlink(scratch), unlink(base), unlink(adapter), unlink(merged);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(files), cmocka_unit_test(folders), cmocka_unit_test(at_run_time) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
