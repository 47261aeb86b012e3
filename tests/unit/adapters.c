/* adapters.c - LoRA adapters: refused by name when they do not fit; their effect is the merged weight's; strengths by sequence
 * in one batch, activation ids; control vectors. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "base/mem.h"
#include "loam/adapter.h"
#include "loam/debug.h"
#include "loam/gguf.h"

#define RANK 4
#define WIDTH 256

static loam_model *model;
static char adapter_path[512];

/* What is wrong with an adapter file. */
typedef enum damage { FINE, OTHER_ARCH, NO_TYPE, OTHER_KIND, NO_HALF, OTHER_SUFFIX, UNKNOWN, WRONG_SHAPE, WRONG_RANK, ACTIVATED, BAD_ID, OTHER_PREFIX,
                      EMPTY, NORMS } damage;

static void write_adapter(damage d)
{
    loam_error err;
    loam_gguf_builder *b = NULL;
    static float a[RANK * WIDTH], bb[RANK * WIDTH];
    for (int i = 0; i < RANK * WIDTH; i++) a[i] = (float)(i * 37 % 101 - 50) / 300.0f, bb[i] = (float)(i * 53 % 89 - 44) / 200.0f;
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.architecture", d == OTHER_ARCH ? "gpt2" : "llama", d == OTHER_ARCH ? 4 : 5);
    if (d != NO_TYPE) loam_gguf_set_text(b, "general.type", "adapter", 7);
    loam_gguf_set_text(b, "adapter.type", d == OTHER_KIND ? "ia3" : "lora", d == OTHER_KIND ? 3 : 4);
    loam_gguf_set_f32(b, "adapter.lora.alpha", 8.0f);
    uint32_t ids[2] = { 300, d == BAD_ID ? 1u << 20 : 301 };
    if (d == ACTIVATED || d == BAD_ID) loam_gguf_set_array(b, "adapter.alora.invocation_tokens", 4, ids, 2);
    int64_t in[4] = { d == WRONG_SHAPE ? WIDTH / 2 : WIDTH, RANK, 1, 1 }, out[4] = { d == WRONG_RANK ? RANK / 2 : RANK, WIDTH, 1, 1 };
    const char *stem = d == UNKNOWN        ? "blk.99.attn_q.weight"
                       : d == OTHER_PREFIX ? "language_model.blk.1.attn_q.weight"
                       : d == NORMS        ? "blk.1.attn_norm.weight"
                                           : "blk.1.attn_q.weight";
    char name[64];
    snprintf(name, sizeof name, "%s.%s", stem, d == OTHER_SUFFIX ? "lora_c" : "lora_a");
    if (d != EMPTY) loam_gguf_set_tensor(b, name, LOAM_F32, in, a);
    snprintf(name, sizeof name, "%s.lora_b", stem);
    if (d != NO_HALF && d != EMPTY) loam_gguf_set_tensor(b, name, LOAM_F32, out, bb);
    if (loam_gguf_write(b, adapter_path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
}

static int set_up(void **state)
{
    (void)state;
    char path[512];
    loam_error err;
    scratch_path(path, "adapters.gguf");
    scratch_path(adapter_path, "adapter.gguf");
    if (loam_debug_make_model(path, "tiny", "f32", 9, &err) != LOAM_OK) return -1;
    loam_status status = loam_model_open(&model, path, NULL, &err);
    unlink(path);
    return status == LOAM_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loam_model_free(model);
    unlink(adapter_path);
    return 0;
}

static void refusals_name_the_culprit(void **state)
{
    (void)state;
    static const struct {
        damage d;
        loam_status status;
        const char *says;
    } cases[] = {
        { OTHER_ARCH, LOAM_E_FORMAT, "gpt2" },        { NO_TYPE, LOAM_E_FORMAT, "general.type" },
        { OTHER_KIND, LOAM_E_UNSUPPORTED, "ia3" },    { NO_HALF, LOAM_E_FORMAT, "lora_b" },
        { OTHER_SUFFIX, LOAM_E_FORMAT, "lora_c" },    { UNKNOWN, LOAM_E_FORMAT, "blk.99.attn_q.weight" },
        { WRONG_SHAPE, LOAM_E_FORMAT, "128" },        { WRONG_RANK, LOAM_E_FORMAT, "blk.1.attn_q.weight" },
        { BAD_ID, LOAM_E_FORMAT, "1048576" },         { OTHER_PREFIX, LOAM_E_FORMAT, "named like 'blk." },
        { EMPTY, LOAM_E_FORMAT, "none of its 0" },    { NORMS, LOAM_E_FORMAT, "none of its 2" },
    };
    loam_adapter *a;
    loam_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_adapter(cases[i].d);
        assert_int_equal(loam_adapter_open(&a, model, adapter_path, &err), cases[i].status);
        assert_null(a);
        if (!strstr(err.message, cases[i].says)) fail_msg("case %zu says: %s", i, err.message);
    }
    assert_int_equal(loam_adapter_open(&a, model, "/nonexistent", &err), LOAM_E_IO);
    assert_int_equal(loam_adapter_open(&a, NULL, adapter_path, &err), LOAM_E_ARG);
}

static loam_context *fresh(void)
{
    loam_error err;
    loam_context *ctx;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_seq_max = 2, p.n_threads = 1, p.type_k = p.type_v = LOAM_F32;
    if (loam_context_new(&ctx, model, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static size_t n_vocab(void) { return (size_t)loam_model_n_vocab(model); }

/* Logits of the last of 12 tokens on sequence seq; with both true the other sequence runs in the same batch. */
static void logits_of(loam_context *ctx, int32_t seq, bool both, float *out)
{
    static const int32_t zero = 0, one = 1;
    int32_t ids[24], pos[24], n = 0, mine = 0;
    const int32_t *seqs[24];
    int8_t want[24];
    loam_error err;
    loam_memory_clear(ctx);
    for (int i = 0; i < 12; i++)
        for (int q = 0; q < 2; q++) {
            if (q != seq && !both) continue;
            ids[n] = 296 + i * (q == seq ? 1 : 7), pos[n] = i, seqs[n] = q ? &one : &zero, want[n] = i == 11;
            if (q == seq) mine = n;
            n++;
        }
    loam_batch b = { .n_tokens = n, .token = ids, .pos = pos, .seq_id = seqs, .logits = want };
    if (loam_decode(ctx, &b, &err)) fail_msg("%s", err.message);
    memcpy(out, loam_logits(ctx, mine), n_vocab() * 4);
}

static double distance(const float *a, const float *b) { return nmse(a, b, n_vocab()); }

static void strengths_and_sequences(void **state)
{
    (void)state;
    loam_error err;
    loam_adapter *a;
    write_adapter(FINE);
    if (loam_adapter_open(&a, model, adapter_path, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_adapter_n_weights(a), 1);
    assert_true(loam_adapter_alpha(a) == 8.0f);
    loam_context *ctx = fresh();
    float *plain = mem_alloc(n_vocab() * 4), *full = mem_alloc(n_vocab() * 4), *got = mem_alloc(n_vocab() * 4);
    logits_of(ctx, 0, false, plain);
    float strength = 1.0f, off = 0.0f, bad = NAN;
    assert_int_equal(loam_context_set_adapters(ctx, &a, &bad, 1, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_set_adapters(ctx, &a, &strength, 1, &err), LOAM_OK);
    logits_of(ctx, 0, false, full);
    assert_true(distance(full, plain) > 1e-4);
    assert_int_equal(loam_context_set_seq_adapters(ctx, 1, &off, 1, &err), LOAM_OK);
    assert_int_equal(loam_context_set_seq_adapters(ctx, 2, &off, 1, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_set_seq_adapters(ctx, 0, &off, 0, &err), LOAM_E_ARG);
    logits_of(ctx, 0, true, got);
    assert_memory_equal(got, full, n_vocab() * 4);
    logits_of(ctx, 1, true, got);
    assert_true(distance(got, plain) < 1e-12);
    loam_adapter *two[2] = { a, a };
    float halves[2] = { 0.5f, 0.5f };
    assert_int_equal(loam_context_set_adapters(ctx, two, halves, 2, &err), LOAM_OK);
    logits_of(ctx, 0, false, got);
    assert_true(distance(got, full) < 1e-9);
    assert_int_equal(loam_context_set_adapters(ctx, NULL, NULL, 0, &err), LOAM_OK);
    logits_of(ctx, 0, false, got);
    assert_memory_equal(got, plain, n_vocab() * 4);
    mem_free(plain);
    mem_free(full);
    mem_free(got);
    loam_context_free(ctx);
    loam_adapter_free(a);
}

static void activation(void **state)
{
    (void)state;
    loam_error err;
    loam_adapter *a, *always;
    size_t n;
    loam_context *ctx = fresh();
    float strength = 1.0f, *plain = mem_alloc(n_vocab() * 4), *got = mem_alloc(n_vocab() * 4);
    write_adapter(ACTIVATED);
    assert_int_equal(loam_adapter_open(&a, model, adapter_path, &err), LOAM_OK);
    assert_int_equal(loam_adapter_invocation(a, &n)[1], 301);
    assert_int_equal(n, 2);
    /* sequence 0 holds 296 .. 307: 300, 301 switch it on there; sequence 1 holds other ids */
    logits_of(ctx, 0, false, plain);
    assert_int_equal(loam_context_set_adapters(ctx, &a, &strength, 1, &err), LOAM_OK);
    logits_of(ctx, 0, false, got);
    assert_true(distance(got, plain) > 1e-6);
    write_adapter(FINE);
    assert_int_equal(loam_adapter_open(&always, model, adapter_path, &err), LOAM_OK);
    assert_int_equal(loam_context_set_adapters(ctx, &always, &strength, 1, &err), LOAM_OK);
    float *full = mem_alloc(n_vocab() * 4);
    logits_of(ctx, 0, false, full);
    assert_true(distance(got, full) > 1e-9);
    mem_free(full);
    mem_free(plain);
    mem_free(got);
    loam_context_free(ctx);
    loam_adapter_free(a);
    loam_adapter_free(always);
}

static void control_vectors(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx = fresh();
    int32_t n_embd = loam_model_n_embd(model), n_layer = loam_model_n_layer(model);
    size_t len = (size_t)n_embd * (size_t)(n_layer - 1);
    float *data = mem_alloc(len * 4), *plain = mem_alloc(n_vocab() * 4), *got = mem_alloc(n_vocab() * 4);
    for (size_t i = 0; i < len; i++) data[i] = (float)(i % 7) - 3;
    logits_of(ctx, 0, false, plain);
    assert_int_equal(loam_context_set_control(ctx, data, len, n_embd + 1, 1, 2, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_set_control(ctx, data, len - 1, n_embd, 1, 2, &err), LOAM_E_ARG);
    assert_int_equal(loam_context_set_control(ctx, data, len, n_embd, 1, 2, &err), LOAM_OK);
    logits_of(ctx, 0, false, got);
    assert_true(distance(got, plain) > 1e-4);
    assert_int_equal(loam_context_set_control(ctx, data, len, n_embd, 7, 9, &err), LOAM_OK);
    logits_of(ctx, 0, false, got);
    assert_memory_equal(got, plain, n_vocab() * 4);
    assert_int_equal(loam_context_set_control(ctx, NULL, 0, 0, 0, 0, &err), LOAM_OK);
    mem_free(data);
    mem_free(plain);
    mem_free(got);
    loam_context_free(ctx);
}

static loam_status open_and_free(void *arg, loam_error *err)
{
    (void)arg;
    loam_adapter *a;
    loam_status status = loam_adapter_open(&a, model, adapter_path, err);
    loam_adapter_free(a);
    return status;
}

static void allocations_fail(void **state)
{
    (void)state;
    write_adapter(ACTIVATED);
    assert_true(fault_loop("open an adapter", open_and_free, NULL) > 3);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_the_culprit), cmocka_unit_test(strengths_and_sequences), cmocka_unit_test(activation),
        cmocka_unit_test(control_vectors), cmocka_unit_test(allocations_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
