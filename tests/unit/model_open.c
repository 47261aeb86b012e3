/* model_open.c - what opening a model refuses, and that the message names the key or tensor: metadata with keys taken away, of
 * the wrong kind, zero or absurd; tensors taken away or of another shape; unknown and unsupported architectures. The
 * variants are made from the committed models with expected logits. */
#include <stdio.h>
#include <string.h>

#include "data.h"
#include "file/gguf_write.h"
#include "loam/context.h"
#include "loam/model.h"
#include "model/arch.h"

#include "check.h"

typedef void (*edit_fn)(gguf_builder *b, const void *arg);

static char variant_path[512];

/* Writes a variant of golden model `name` to the scratch file. */
static void make_variant(const char *name, edit_fn edit, const void *arg)
{
    char rel[80], path[512];
    loam_error err = { 0 };
    gguf_file *f;
    gguf_builder *b;
    snprintf(rel, sizeof rel, "arch/%s.gguf", name);
    assert_int_equal(gguf_open(&f, golden_path(path, rel), 0, &err), LOAM_OK);
    assert_int_equal(gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, &err), LOAM_OK);
    edit(b, arg);
    if (gguf_write(b, scratch_path(variant_path, "model_open.gguf"), NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    gguf_builder_free(b);
    gguf_close(f);
}

/* The variant must be refused with this status and a message that has `part`. */
static void refused(const char *name, edit_fn edit, const void *arg, loam_status want, const char *part)
{
    make_variant(name, edit, arg);
    loam_error err = { 0 };
    loam_model *m = (loam_model *)&err;
    loam_status s = loam_model_open(&m, variant_path, NULL, &err);
    remove(variant_path);
    assert_null(m);
    if (s != want || err.code != want || !strstr(err.message, part))
        fail_msg("%s: status %d (wanted %d), message '%s' (wanted '%s')", name, s, want, err.message, part);
}

/* ---- keys ---- */

static void remove_key(gguf_builder *b, const void *key) { assert_true(gguf_remove(b, key)); }

static void required_keys(void **state)
{
    (void)state;
    static const struct {
        const char *model, *key;
    } cases[] = {
        { "llama-dense-yarn", "llama.context_length" }, { "llama-dense-yarn", "llama.embedding_length" },
        { "llama-dense-yarn", "llama.block_count" }, { "llama-dense-yarn", "llama.attention.head_count" },
        { "llama-dense-yarn", "llama.feed_forward_length" }, { "llama-dense-yarn", "llama.attention.layer_norm_rms_epsilon" },
        { "gpt2", "gpt2.attention.layer_norm_epsilon" }, { "minicpm3", "minicpm3.attention.q_lora_rank" },
        { "minicpm3", "minicpm3.attention.kv_lora_rank" }, { "gpt-oss-moe", "gpt-oss.expert_count" },
        { "gpt-oss-moe", "gpt-oss.expert_used_count" }, { "gpt-oss-moe", "gpt-oss.expert_feed_forward_length" },
        { "gpt-oss-moe", "gpt-oss.attention.sliding_window" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].model, remove_key, cases[i].key, LOAM_E_FORMAT, cases[i].key);
}

static void remove_architecture(gguf_builder *b, const void *arg)
{
    (void)arg;
    gguf_remove(b, "general.architecture");
}

static void set_architecture(gguf_builder *b, const void *name) { gguf_set_text(b, "general.architecture", name, strlen(name)); }

static void architectures(void **state)
{
    (void)state;
    refused("gpt2", remove_architecture, NULL, LOAM_E_FORMAT, "general.architecture");
    refused("gpt2", set_architecture, "kimi-linear", LOAM_E_UNSUPPORTED, "'kimi-linear' (hybrid of latent attention and recurrence) is not supported yet");
    refused("gpt2", set_architecture, "gemma4", LOAM_E_UNSUPPORTED, "'gemma4' (decoder with per-layer inputs) is not supported yet");
    refused("gpt2", set_architecture, "qwen33", LOAM_E_UNSUPPORTED, "nearest known name is 'qwen3'");
    refused("gpt2", set_architecture, "LLAMA", LOAM_E_UNSUPPORTED, "nearest known name is 'llama'");
    refused("gpt2", set_architecture, "a\nb", LOAM_E_UNSUPPORTED, "'a?b'");
}

typedef struct key_value {
    const char *key;
    uint32_t value;
} key_value;

static void set_u32(gguf_builder *b, const void *arg)
{
    const key_value *kv = arg;
    gguf_set_u32(b, kv->key, kv->value);
}

static void set_float(gguf_builder *b, const void *key) { gguf_set_f32(b, key, 1.5f); }
static void set_nan(gguf_builder *b, const void *key) { gguf_set_f32(b, key, __builtin_nanf("")); }
static void set_word(gguf_builder *b, const void *key) { gguf_set_text(b, key, "word", 4); }

static void short_array(gguf_builder *b, const void *key)
{
    uint32_t two[2] = { 4, 4 };
    gguf_set_array(b, key, GGUF_U32, two, 2);
}

static void bad_values(void **state)
{
    (void)state;
    static const key_value zero[] = {
        { "llama.context_length", 0 }, { "llama.embedding_length", 0 }, { "llama.block_count", 0 },
        { "llama.attention.head_count", 0 },
        { "llama.attention.head_count_kv", 0 }, { "llama.feed_forward_length", 0 },
    };
    static const key_value absurd[] = {
        { "llama.context_length", UINT32_MAX }, { "llama.embedding_length", UINT32_MAX }, { "llama.block_count", 1000000 },
        { "llama.attention.head_count", 1000000 }, { "llama.attention.head_count_kv", 3 },
        { "llama.feed_forward_length", UINT32_MAX },
        { "llama.attention.key_length", UINT32_MAX }, { "llama.rope.dimension_count", 15 },
        { "llama.rope.dimension_count", 4096 },
        { "llama.nextn_predict_layers", 4 }, { "llama.expert_count", 100000 },
    };
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        refused("llama-dense-yarn", set_u32, &zero[i], LOAM_E_FORMAT, zero[i].key);
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        refused("llama-dense-yarn", set_u32, &absurd[i], LOAM_E_FORMAT, absurd[i].key);
    static const char *const integers[] = { "llama.context_length", "llama.attention.head_count", "llama.rope.dimension_count" };
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        refused("llama-dense-yarn", set_float, integers[i], LOAM_E_FORMAT, integers[i]);
        refused("llama-dense-yarn", set_word, integers[i], LOAM_E_FORMAT, integers[i]);
    }
    refused("llama-dense-yarn", short_array, "llama.attention.head_count", LOAM_E_FORMAT,
            "llama.attention.head_count has 2 values for 4 blocks");
    refused("llama-dense-yarn", set_nan, "llama.attention.layer_norm_rms_epsilon", LOAM_E_FORMAT, "layer_norm_rms_epsilon");
    refused("llama-dense-yarn", set_nan, "llama.rope.freq_base", LOAM_E_FORMAT, "llama.rope.freq_base");
    refused("llama-dense-yarn", set_word, "llama.rope.scaling.type", LOAM_E_UNSUPPORTED, "llama.rope.scaling.type");
    static const key_value experts[] = { { "gpt-oss.expert_used_count", 100 }, { "gpt-oss.expert_used_count", 0 },
                                         { "gpt-oss.expert_count", 0 } };
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        refused("gpt-oss-moe", set_u32, &experts[i], LOAM_E_FORMAT, experts[i].key);
}

/* ---- tensors ---- */

static void remove_tensor(gguf_builder *b, const void *name) { assert_true(gguf_remove_tensor(b, name)); }

static const float zeros[128 * 1024];

static void misshape(gguf_builder *b, const void *name)
{
    int64_t ne[LIMIT_DIMS] = { 32, 3, 1, 1 };
    gguf_put_tensor(b, name, LOAM_F32, ne, zeros);
}

static void as_integers(gguf_builder *b, const void *name)
{
    int64_t ne[LIMIT_DIMS] = { 64, 64, 1, 1 };
    gguf_put_tensor(b, name, LOAM_I32, ne, zeros);
}

static void half_norm(gguf_builder *b, const void *name)
{
    int64_t ne[LIMIT_DIMS] = { 64, 1, 1, 1 };
    gguf_put_tensor(b, name, LOAM_F16, ne, zeros);
}

static void tensors(void **state)
{
    (void)state;
    static const struct {
        const char *model, *tensor;
    } cases[] = {
        { "llama-dense-yarn", "token_embd.weight" }, { "llama-dense-yarn", "output_norm.weight" },
        { "llama-dense-yarn", "blk.0.attn_norm.weight" }, { "llama-dense-yarn", "blk.3.attn_q.weight" },
        { "llama-dense-yarn", "blk.1.attn_k.weight" }, { "llama-dense-yarn", "blk.1.attn_output.weight" },
        { "llama-dense-yarn", "blk.2.ffn_gate.weight" }, { "llama-dense-yarn", "blk.2.ffn_down.weight" },
        { "gpt2", "position_embd.weight" }, { "gpt2", "blk.0.attn_norm.bias" }, { "gpt2", "blk.1.ffn_up.bias" },
        { "gpt-oss-moe", "blk.0.attn_sinks.weight" }, { "gpt-oss-moe", "blk.2.ffn_up_exps.weight" },
        { "gpt-oss-moe", "blk.2.ffn_gate_inp.bias" }, { "minicpm3", "blk.0.attn_kv_b.weight" },
        { "gemma3-dense", "blk.0.post_ffw_norm.weight" }, { "olmo2", "output.weight" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(cases[i].model, remove_tensor, cases[i].tensor, LOAM_E_FORMAT, cases[i].tensor);
        refused(cases[i].model, misshape, cases[i].tensor, LOAM_E_FORMAT, "expected");
    }
    refused("llama-dense-yarn", misshape, "blk.3.attn_q.weight", LOAM_E_FORMAT,
            "'blk.3.attn_q.weight' has shape 32 x 3, expected 64 x 64");
    refused("llama-dense-yarn", as_integers, "blk.0.attn_q.weight", LOAM_E_UNSUPPORTED, "'blk.0.attn_q.weight' has type i32");
    refused("llama-dense-yarn", half_norm, "blk.0.attn_norm.weight", LOAM_E_UNSUPPORTED, "'blk.0.attn_norm.weight' is f16");
}

/* ---- what is taken ---- */

static char last_log[400];
static void keep_log(void *user, loam_log_level level, const char *text)
{
    (void)user;
    if (level == LOAM_LOG_WARN) snprintf(last_log, sizeof last_log, "%s", text);
}

static void add_stranger(gguf_builder *b, const void *name)
{
    int64_t ne[LIMIT_DIMS] = { 64, 1, 1, 1 };
    gguf_put_tensor(b, name, LOAM_F32, ne, zeros);
}

static void warns_of_strangers(void **state)
{
    (void)state;
    loam_error err = { 0 };
    loam_model *m;
    make_variant("llama-dense-yarn", add_stranger, "blk.0.attn_gate.weight");
    loam_set_log(keep_log, NULL);
    assert_int_equal(loam_model_open(&m, variant_path, NULL, &err), LOAM_OK);
    loam_set_log(NULL, NULL);
    assert_non_null(strstr(last_log, "'blk.0.attn_gate.weight'"));
    loam_model_free(m);
    remove(variant_path);
}

static void three_blocks_and_a_draft_block(gguf_builder *b, const void *arg)
{
    (void)arg;
    gguf_set_u32(b, "llama.nextn_predict_layers", 1);
    gguf_remove_tensor(b, "blk.3.attn_q.weight");
}

static void skips_draft_blocks(void **state)
{
    (void)state;
    loam_error err = { 0 };
    loam_model *m;
    make_variant("llama-dense-yarn", three_blocks_and_a_draft_block, NULL);
    last_log[0] = 0;
    loam_set_log(keep_log, NULL);
    assert_int_equal(loam_model_open(&m, variant_path, NULL, &err), LOAM_OK);
    loam_set_log(NULL, NULL);
    assert_int_equal(loam_model_n_layer(m), 3);
    assert_string_equal(last_log, "");
    loam_model_free(m);
    remove(variant_path);
}

static void facts(void **state)
{
    (void)state;
    char path[512], text[64];
    size_t len;
    loam_error err = { 0 };
    loam_model *m;
    assert_int_equal(loam_model_open(&m, golden_path(path, "arch/gemma3-dense.gguf"), NULL, &err), LOAM_OK);
    assert_string_equal(loam_model_architecture(m), "gemma3");
    assert_int_equal(loam_model_n_vocab(m), 128);
    assert_int_equal(loam_model_n_embd(m), 64);
    assert_int_equal(loam_model_n_layer(m), 4);
    assert_int_equal(loam_model_n_head(m), 4);
    assert_int_equal(loam_model_n_head_kv(m), 2);
    assert_int_equal(loam_model_n_ctx_train(m), 256);
    assert_true(loam_model_is_causal(m));
    assert_null(loam_model_tokenizer(m));
    assert_true(loam_model_n_params(m) > 100000 && loam_model_bytes(m) == 4 * loam_model_n_params(m));
    assert_non_null(strstr(loam_model_description(m), "gemma3"));
    assert_non_null(strstr(loam_model_description(m), "F32"));
    assert_true(loam_model_meta(m, "general.architecture", text, sizeof text, &len));
    assert_string_equal(text, "gemma3");
    assert_int_equal(len, 6);
    assert_true(loam_model_meta(m, "gemma3.context_length", text, 3, &len));
    assert_string_equal(text, "25");
    assert_int_equal(len, 3);
    assert_true(loam_model_meta(m, "gemma3.rope.freq_base", text, sizeof text, NULL));
    assert_string_equal(text, "10000");
    assert_true(loam_model_meta(m, "gemma3.attention.causal", text, sizeof text, NULL));
    assert_string_equal(text, "true");
    assert_false(loam_model_meta(m, "no.such.key", text, sizeof text, NULL));
    assert_false(loam_model_meta(m, "tokenizer.ggml.tokens", text, sizeof text, NULL));
    loam_model_free(m);
}

static void arguments(void **state)
{
    (void)state;
    loam_error err = { 0 };
    loam_model *m;
    loam_model_params p = loam_model_defaults();
    assert_int_equal(loam_model_open(NULL, "x", NULL, &err), LOAM_E_ARG);
    assert_int_equal(loam_model_open(&m, NULL, NULL, &err), LOAM_E_ARG);
    assert_int_equal(loam_model_open(&m, "/no/such/file.gguf", NULL, &err), LOAM_E_IO);
    assert_non_null(strstr(err.message, "/no/such/file.gguf"));
    p.struct_size = 1;
    assert_int_equal(loam_model_open(&m, "x", &p, &err), LOAM_E_ARG);
    loam_model_free(NULL);
}

/* Every bad weight of a model is found when asked for, and named. */
static void poison(gguf_builder *b, const void *name)
{
    static float bad[64 * 64];
    int64_t ne[LIMIT_DIMS] = { 64, 64, 1, 1 };
    bad[100] = __builtin_inff();
    gguf_put_tensor(b, name, LOAM_F32, ne, bad);
}

static void checks_weights(void **state)
{
    (void)state;
    loam_error err = { 0 };
    loam_model *m;
    loam_model_params p = loam_model_defaults();
    p.check_tensors = true;
    make_variant("llama-dense-yarn", poison, "blk.1.attn_q.weight");
    assert_int_not_equal(loam_model_open(&m, variant_path, &p, &err), LOAM_OK);
    assert_non_null(strstr(err.message, "'blk.1.attn_q.weight'"));
    p.check_tensors = false;
    assert_int_equal(loam_model_open(&m, variant_path, &p, &err), LOAM_OK);
    loam_model_free(m);
    remove(variant_path);
}

/* Learned positions end. */
static void position_limit(void **state)
{
    (void)state;
    char path[512];
    loam_error err = { 0 };
    loam_model *m;
    loam_context *ctx;
    assert_int_equal(loam_model_open(&m, golden_path(path, "arch/gpt2.gguf"), NULL, &err), LOAM_OK);
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 512;
    assert_int_equal(loam_context_new(&ctx, m, &p, &err), LOAM_OK);
    int32_t id = 5, pos = 255;
    loam_batch batch = { .n_tokens = 1, .token = &id, .pos = &pos };
    assert_int_equal(loam_decode(ctx, &batch, &err), 0);
    pos = 256;
    assert_int_equal(loam_decode(ctx, &batch, &err), -1);
    assert_non_null(strstr(err.message, "position 256"));
    loam_context_free(ctx);
    loam_model_free(m);
}

/* ---- the table ---- */

/* Names are unique, found, and not among the refused. */
static void table(void **state)
{
    (void)state;
    const arch_spec *a;
    int n = 0;
    for (; (a = arch_at(n)); n++) assert_ptr_equal(arch_find(a->name, strlen(a->name)), a);
    printf("  %d architectures\n", n);
    assert_null(arch_find("llam", 4));
    assert_null(arch_find("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(required_keys), cmocka_unit_test(architectures), cmocka_unit_test(bad_values), cmocka_unit_test(tensors),
        cmocka_unit_test(warns_of_strangers), cmocka_unit_test(skips_draft_blocks), cmocka_unit_test(facts),
        cmocka_unit_test(arguments),
        cmocka_unit_test(checks_weights), cmocka_unit_test(position_limit), cmocka_unit_test(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
