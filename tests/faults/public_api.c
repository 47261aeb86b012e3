/* public_api.c - every public function under failing allocations, and every function that can be stopped stopped at each step.
 *
 * The table below says for each function of include/loam where that is shown: another file of tests/faults, or here. A test
 * reads the headers and fails where a function is missing from the table, where the table names one that is gone, or where the file
 * that is named does not call it. Functions that ask for no memory are called once more with none to be had. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"

#include "loam/debug.h"
#include "loam/gguf.h"
#include "loam/loam.h"
#include "loam/quant.h"
#include "loam/quantize.h"

#define HERE "tests/faults/public_api.c"
#define F(name) "tests/faults/" name ".c"

static const struct {
    const char *function, *where;
} table[] = {
    { "loam_adapter_alpha", HERE }, { "loam_adapter_free", HERE }, { "loam_adapter_invocation", HERE }, { "loam_adapter_n_weights", HERE },
    { "loam_adapter_open", HERE }, { "loam_context_attach_pools", HERE }, { "loam_context_defaults", F("generate") },
    { "loam_context_detach_pools", HERE }, { "loam_context_estimate", HERE }, { "loam_context_free", F("generate") },
    { "loam_context_memory_use", HERE }, { "loam_context_model", HERE }, { "loam_context_n_batch", HERE }, { "loam_context_n_ctx", HERE },
    { "loam_context_n_ctx_seq", HERE }, { "loam_context_n_seq_max", HERE }, { "loam_context_n_threads", HERE },
    { "loam_context_n_threads_batch", HERE }, { "loam_context_n_ubatch", HERE }, { "loam_context_new", F("generate") },
    { "loam_context_perf", HERE }, { "loam_context_perf_reset", HERE }, { "loam_context_pooling", HERE }, { "loam_context_set_abort", HERE },
    { "loam_context_set_adapters", HERE }, { "loam_context_set_causal", HERE }, { "loam_context_set_control", HERE },
    { "loam_context_set_embeddings", HERE }, { "loam_context_set_observer", HERE }, { "loam_context_set_seq_adapters", HERE },
    { "loam_context_set_threads", HERE }, { "loam_context_settings", HERE },
    { "loam_context_splits", "tests/golden/devices.c" }, { "loam_context_warm_up", HERE }, { "loam_debug_limits", HERE },
    { "loam_debug_make_model", HERE }, { "loam_decode", F("generate") }, { "loam_detokenizer_finish", HERE },
    { "loam_detokenizer_free", F("tok_alloc") }, { "loam_detokenizer_new", F("tok_alloc") }, { "loam_detokenizer_push", F("tok_alloc") },
    { "loam_embeddings", HERE }, { "loam_embeddings_seq", HERE }, { "loam_encode", F("encode") }, { "loam_gguf_alignment", HERE },
    { "loam_gguf_bool", HERE }, { "loam_gguf_builder_create", HERE }, { "loam_gguf_builder_free", HERE }, { "loam_gguf_bytes", HERE },
    { "loam_gguf_defaults", HERE }, { "loam_gguf_float", HERE }, { "loam_gguf_free", HERE }, { "loam_gguf_int", HERE },
    { "loam_gguf_key_at", HERE }, { "loam_gguf_key_find", HERE }, { "loam_gguf_kind_name", HERE }, { "loam_gguf_n_keys", HERE },
    { "loam_gguf_n_parts", HERE }, { "loam_gguf_n_tensors", HERE }, { "loam_gguf_open", HERE }, { "loam_gguf_open_memory", HERE },
    { "loam_gguf_remove_key", HERE }, { "loam_gguf_remove_tensor", HERE }, { "loam_gguf_set_array", HERE }, { "loam_gguf_set_bool", HERE },
    { "loam_gguf_set_f32", HERE }, { "loam_gguf_set_i32", HERE }, { "loam_gguf_set_tensor", HERE }, { "loam_gguf_set_text", HERE },
    { "loam_gguf_set_texts", HERE }, { "loam_gguf_set_u32", HERE }, { "loam_gguf_set_u64", HERE }, { "loam_gguf_set_value", HERE },
    { "loam_gguf_tensor_at", HERE }, { "loam_gguf_tensor_find", HERE }, { "loam_gguf_text", HERE }, { "loam_gguf_version", HERE },
    { "loam_gguf_write", HERE }, { "loam_gguf_write_defaults", HERE }, { "loam_gguf_writer_cancel", HERE }, { "loam_gguf_writer_close", HERE },
    { "loam_gguf_writer_due", HERE }, { "loam_gguf_writer_open", HERE }, { "loam_gguf_writer_put", HERE }, { "loam_logits", F("generate") },
    { "loam_memory_can_shift", HERE }, { "loam_memory_clear", HERE }, { "loam_memory_n_tokens", HERE }, { "loam_memory_seq_add", HERE },
    { "loam_memory_seq_cp", HERE }, { "loam_memory_seq_div", HERE }, { "loam_memory_seq_keep", HERE }, { "loam_memory_seq_pos_max", HERE },
    { "loam_memory_seq_pos_min", HERE }, { "loam_memory_seq_rm", HERE }, { "loam_model_architecture", HERE }, { "loam_model_bytes", HERE },
    { "loam_model_decoder_start", HERE }, { "loam_model_defaults", HERE }, { "loam_model_description", HERE },
    { "loam_model_free", F("generate") }, { "loam_model_has_decoder", HERE }, { "loam_model_has_encoder", HERE },
    { "loam_model_is_causal", HERE }, { "loam_model_label", HERE }, { "loam_model_meta", HERE }, { "loam_model_n_ctx_train", HERE },
    { "loam_model_n_embd", HERE }, { "loam_model_n_head", HERE }, { "loam_model_n_head_kv", HERE }, { "loam_model_n_labels", HERE },
    { "loam_model_n_layer", HERE }, { "loam_model_n_params", HERE }, { "loam_model_n_vocab", HERE }, { "loam_model_open", F("generate") },
    { "loam_model_pooling", HERE }, { "loam_model_tokenizer", HERE }, { "loam_n_outputs", HERE }, { "loam_n_pooled", HERE },
    { "loam_pool_free", HERE }, { "loam_pool_n_threads", HERE }, { "loam_pool_new", HERE }, { "loam_quant_bytes", HERE },
    { "loam_quant_check", HERE }, { "loam_quant_decode", HERE }, { "loam_quant_encode", HERE }, { "loam_quant_weight_need", HERE },
    { "loam_quantize_defaults", F("quantize") }, { "loam_quantize_file", F("quantize") }, { "loam_sampler_accept", F("sample") },
    { "loam_sampler_clone", F("sample") }, { "loam_sampler_defaults", F("sample") }, { "loam_sampler_describe", HERE },
    { "loam_sampler_free", F("sample") }, { "loam_sampler_new", F("sample") }, { "loam_sampler_probs", HERE }, { "loam_sampler_reset", HERE },
    { "loam_sampler_sample", F("sample") }, { "loam_sampler_seed", HERE }, { "loam_set_allocator", "tests/support/fault.c" },
    { "loam_set_log", HERE }, { "loam_state_load", HERE }, { "loam_state_load_file", HERE }, { "loam_state_save", HERE },
    { "loam_state_save_file", HERE }, { "loam_state_size", HERE }, { "loam_state_write", HERE }, { "loam_status_text", HERE },
    { "loam_tokenizer_adds_bos", HERE }, { "loam_tokenizer_adds_eos", HERE }, { "loam_tokenizer_adds_sep", HERE },
    { "loam_tokenizer_attributes", HERE }, { "loam_tokenizer_decode", F("tok_alloc") }, { "loam_tokenizer_encode", F("generate") },
    { "loam_tokenizer_encode_all", F("tok_alloc") }, { "loam_tokenizer_find", HERE }, { "loam_tokenizer_free", F("tok_alloc") },
    { "loam_tokenizer_is_control", HERE }, { "loam_tokenizer_is_eog", HERE }, { "loam_tokenizer_kind_of", HERE },
    { "loam_tokenizer_piece", HERE }, { "loam_tokenizer_score", HERE }, { "loam_tokenizer_size", HERE }, { "loam_tokenizer_special", HERE },
    { "loam_tokenizer_suppressed", HERE }, { "loam_tokenizer_text", HERE }, { "loam_tokens_free", F("tok_alloc") },
    { "loam_version", HERE }, { "loam_vocab_builder_add", F("tok_learn") }, { "loam_vocab_builder_create", F("tok_learn") },
    { "loam_vocab_builder_free", F("tok_learn") }, { "loam_vocab_builder_write", F("tok_learn") }, { "loam_vocab_defaults", F("tok_learn") },
    { "loam_gguf_open_adapter", HERE }, { "loam_gguf_hash", HERE }, { "loam_gguf_set_scalar", HERE },
};
#define N_TABLE (sizeof table / sizeof *table)

/* ---- the table against the headers ---- */

/* Headers whose functions are looked at one by one. */
static const char *const headers[] = { "adapter", "context", "debug", "gguf", "model", "pool", "quant", "quantize", "sampler", "status", "tokenizer" };
/* The others, and why not here. */
static const struct {
    const char *header, *why;
} others[] = {
    { "loam", "includes the others" },
    { "budget", "plans of sizes: tests of quantization" },
    { "data", "tests/faults/train_data.c" },
    { "device", "lower tier: tests of devices" },
    { "evaluate", "tests/unit/kl.c" },
    { "imatrix", "tests/unit/imatrix.c" },
    { "job", "the training command as a library call: tests of training" },
    { "tensor", "lower tier: tests/unit/tensor_*.c" },
    { "train", "tests of training" },
    { "convert", "lower tier: tests/unit/convert.c" },
};

static const char *source_path(char out[600], const char *rel)
{
    snprintf(out, 600, "%s/../../../%s", LOAM_TEST_DATA, rel);
    return out;
}

static bool calls(const char *text, const char *function)
{
    size_t n = strlen(function);
    for (const char *p = text; (p = strstr(p, function)); p += n) {
        bool begins = p == text || !(p[-1] == '_' || (p[-1] >= 'a' && p[-1] <= 'z') || p[-1] == '"');
        if (begins && (p[n] == '(' || p[n] == ',' || p[n] == ')')) return true;
    }
    return false;
}

static int row_of(const char *name, size_t n)
{
    for (size_t i = 0; i < N_TABLE; i++)
        if (strlen(table[i].function) == n && memcmp(table[i].function, name, n) == 0) return (int)i;
    return -1;
}

/* Every function declared with LOAM_API is in the table; marks its row. */
static void look_through(const char *header, bool seen[N_TABLE])
{
    char rel[128], path[600];
    snprintf(rel, sizeof rel, "include/loam/%s.h", header);
    char *text = slurp(source_path(path, rel), NULL);
    if (!text) fail_msg("%s cannot be read", path);
    for (char *p = text; (p = strstr(p, "\nLOAM_API ")); p++) {
        char *end = p + strcspn(p, "("), *begin = end;
        while (begin[-1] == '_' || (begin[-1] >= 'a' && begin[-1] <= 'z') || (begin[-1] >= '0' && begin[-1] <= '9')) begin--;
        int row = row_of(begin, (size_t)(end - begin));
        if (row < 0) fail_msg("%s: %.*s is not in the table of " HERE, rel, (int)(end - begin), begin);
        seen[row] = true;
    }
    free(text);
}

static void the_table_is_whole(void **state)
{
    (void)state;
    bool seen[N_TABLE] = { false };
    char path[600];
    if (access(source_path(path, HERE), R_OK) != 0) skip();
    DIR *folder = opendir(source_path(path, "include/loam"));
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        size_t n = strlen(e->d_name);
        bool known = n < 3 || strcmp(e->d_name + n - 2, ".h") != 0;
        for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) known = known || (strlen(headers[i]) == n - 2 && !memcmp(headers[i], e->d_name, n - 2));
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) known = known || (strlen(others[i].header) == n - 2 && !memcmp(others[i].header, e->d_name, n - 2));
        if (!known) fail_msg("include/loam/%s is in neither list of %s", e->d_name, HERE);
    }
    closedir(folder);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) look_through(headers[i], seen);
    for (size_t i = 0; i < N_TABLE; i++) {
        char *text = slurp(source_path(path, table[i].where), NULL);
        if (!seen[i]) fail_msg("%s is in no header", table[i].function);
        if (!text || !calls(text, table[i].function)) fail_msg("%s is not called in %s", table[i].function, table[i].where);
        free(text);
    }
    print_message("%zu public functions\n", N_TABLE);
}

/* ---- what the scenarios need ---- */

static char model_path[512], lora_path[512], file_path[512];
static loam_model *model;
static int32_t ids[64];
static float factor_a[4 * 256], factor_b[4 * 256];

static loam_status write_adapter(const char *path, loam_error *err)
{
    loam_gguf_builder *g = NULL;
    loam_status status = loam_gguf_builder_create(&g, NULL, false, err);
    if (status != LOAM_OK) return status;
    loam_gguf_set_text(g, "general.architecture", "llama", 5);
    loam_gguf_set_text(g, "general.type", "adapter", 7);
    loam_gguf_set_text(g, "adapter.type", "lora", 4);
    loam_gguf_set_f32(g, "adapter.lora.alpha", 8);
    loam_gguf_set_tensor(g, "blk.1.attn_q.weight.lora_a", LOAM_F32, (int64_t[]){ 256, 4, 1, 1 }, factor_a);
    loam_gguf_set_tensor(g, "blk.1.attn_q.weight.lora_b", LOAM_F32, (int64_t[]){ 4, 256, 1, 1 }, factor_b);
    status = loam_gguf_write(g, path, NULL, err);
    loam_gguf_builder_free(g);
    return status;
}

static int set_up(void **state)
{
    (void)state;
    loam_error err;
    for (int i = 0; i < 64; i++) ids[i] = 300 + 11 * i;
    for (int i = 0; i < 4 * 256; i++) factor_a[i] = (float)(i % 7 - 3) / 20, factor_b[i] = (float)(i % 5 - 2) / 20;
    scratch_path(model_path, "api.gguf");
    scratch_path(lora_path, "api-lora.gguf");
    scratch_path(file_path, "api-file");
    if (loam_debug_make_model(model_path, "tiny", "q8_0", 5, &err) || write_adapter(lora_path, &err)) return -1;
    return loam_model_open(&model, model_path, NULL, &err) == LOAM_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loam_model_free(model);
    unlink(model_path);
    unlink(lora_path);
    unlink(file_path);
    return 0;
}

static loam_status new_context(loam_context **ctx, loam_error *err)
{
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 8, p.n_seq_max = 3, p.n_threads = 2;
    return loam_context_new(ctx, model, &p, err);
}

static loam_status decode(loam_context *ctx, int first, int n, loam_error *err)
{
    loam_batch b = { .n_tokens = n, .token = ids + first };
    int code = loam_decode(ctx, &b, err);
    return code == 0 ? LOAM_OK : code == -2 ? LOAM_E_NOMEM : code == 2 ? LOAM_E_ABORTED : LOAM_E_ARG;
}

/* ---- scenarios: each takes all it needs and gives it back ---- */

static loam_status contexts(void *arg, loam_error *err)
{
    (void)arg;
    loam_context *ctx = NULL;
    loam_pool *pool = NULL;
    loam_memory_use use;
    loam_status status = loam_context_estimate(model, NULL, &use, err);
    if (status == LOAM_OK) status = loam_pool_new(&pool, 2, err);
    if (status == LOAM_OK) status = new_context(&ctx, err);
    if (status == LOAM_OK) status = loam_context_set_threads(ctx, 3, 2, err);
    if (status == LOAM_OK) status = loam_context_warm_up(ctx, err);
    if (status == LOAM_OK) status = loam_context_attach_pools(ctx, pool, NULL, err);
    if (status == LOAM_OK) loam_context_set_embeddings(ctx, true);
    if (status == LOAM_OK) loam_context_set_causal(ctx, false);
    if (status == LOAM_OK) status = decode(ctx, 0, 5, err);
    if (status == LOAM_OK) assert_true(loam_logits(ctx, -1) && loam_embeddings(ctx, -1));
    if (status == LOAM_OK) loam_context_detach_pools(ctx);
    if (status == LOAM_OK) status = decode(ctx, 5, 3, err);
    loam_context_free(ctx);
    loam_pool_free(pool);
    return status;
}

static loam_status adapters(void *arg, loam_error *err)
{
    (void)arg;
    loam_context *ctx = NULL;
    loam_adapter *a = NULL;
    float one = 1.0f, half = 0.5f;
    static float control[3 * 256];
    loam_status status = loam_adapter_open(&a, model, lora_path, err);
    if (status == LOAM_OK) status = new_context(&ctx, err);
    if (status == LOAM_OK) status = loam_context_set_adapters(ctx, &a, &one, 1, err);
    if (status == LOAM_OK) status = loam_context_set_seq_adapters(ctx, 0, &half, 1, err);
    if (status == LOAM_OK) status = loam_context_set_control(ctx, control, 3 * 256, 256, 1, 3, err);
    if (status == LOAM_OK) status = decode(ctx, 0, 9, err);
    if (status == LOAM_OK) status = loam_context_set_adapters(ctx, NULL, NULL, 0, err);
    loam_context_free(ctx);
    loam_adapter_free(a);
    return status;
}

static loam_status sequences(void *arg, loam_error *err)
{
    (void)arg;
    loam_context *ctx = NULL;
    loam_status status = new_context(&ctx, err);
    if (status == LOAM_OK) status = decode(ctx, 0, 40, err);
    if (status == LOAM_OK) status = loam_memory_seq_cp(ctx, 0, 1, -1, -1, err);
    if (status == LOAM_OK) status = loam_memory_seq_cp(ctx, 0, 2, 3, 30, err);
    if (status == LOAM_OK) assert_true(loam_memory_seq_rm(ctx, 0, 20, 25));
    if (status == LOAM_OK) status = loam_memory_seq_add(ctx, 0, 25, -1, -5, err);
    if (status == LOAM_OK) status = loam_memory_seq_div(ctx, 1, 0, -1, 2, err);
    if (status == LOAM_OK) status = decode(ctx, 40, 3, err);
    if (status == LOAM_OK) assert_true(loam_memory_seq_keep(ctx, 0));
    if (status == LOAM_OK) loam_memory_clear(ctx);
    loam_context_free(ctx);
    return status;
}

static bool count_bytes(void *user, const void *data, size_t n)
{
    (void)data;
    *(size_t *)user += n;
    return true;
}

static loam_status states(void *arg, loam_error *err)
{
    (void)arg;
    loam_context *ctx = NULL;
    static char blob[1 << 20];
    int32_t stored[8];
    size_t n = 0, counted = 0;
    loam_state_tokens t = { stored, 8, 0 };
    loam_writer w = { count_bytes, &counted };
    loam_status status = new_context(&ctx, err);
    if (status == LOAM_OK) status = decode(ctx, 0, 20, err);
    if (status == LOAM_OK) status = loam_state_save(ctx, 0, blob, sizeof blob, &n, err);
    if (status == LOAM_OK) status = loam_state_write(ctx, -1, ids, 4, &w, err);
    if (status == LOAM_OK) status = loam_state_load(ctx, 1, blob, n, err);
    if (status == LOAM_OK) status = loam_state_save_file(ctx, 0, file_path, ids, 8, err);
    if (status == LOAM_OK) status = loam_state_load_file(ctx, 2, file_path, &t, err);
    if (status == LOAM_OK) assert_true(t.n == 8 && counted > 0 && loam_memory_seq_pos_max(ctx, 2) == 19);
    if (ctx && status == LOAM_E_NOMEM) assert_true(loam_memory_seq_pos_max(ctx, 0) == 19 || loam_memory_seq_pos_max(ctx, 0) == -1);
    loam_context_free(ctx);
    return status;
}

static loam_status build_file(loam_gguf_builder *g, const loam_gguf_value *v)
{
    static const char *const texts[] = { "a", "bc" };
    static const size_t lens[] = { 1, 2 };
    static const uint32_t numbers[] = { 1, 2, 3 };
    int64_t ne[4] = { 256, 4, 1, 1 };
    loam_gguf_set_u32(g, "t.u32", 1);
    loam_gguf_set_i32(g, "t.i32", -1);
    loam_gguf_set_u64(g, "t.u64", 1);
    loam_gguf_set_bool(g, "t.bool", true);
    loam_gguf_set_scalar(g, "t.scalar", LOAM_GGUF_U32, &numbers[1]);
    loam_gguf_set_text(g, "general.architecture", "llama", 5);
    loam_gguf_set_array(g, "t.array", LOAM_GGUF_U32, numbers, 3);
    loam_gguf_set_texts(g, "t.texts", texts, lens, 2);
    if (v) loam_gguf_set_value(g, "t.value", v);
    loam_gguf_remove_key(g, "t.u64");
    loam_gguf_set_tensor(g, "gone", LOAM_F32, ne, factor_a);
    loam_gguf_remove_tensor(g, "gone");
    loam_gguf_set_tensor(g, "there", LOAM_F32, ne, NULL);
    return LOAM_OK;
}

static loam_status files(void *arg, loam_error *err)
{
    (void)arg;
    loam_gguf *f = NULL, *again = NULL;
    loam_gguf_builder *g = NULL;
    loam_gguf_writer *w = NULL;
    loam_gguf_value v;
    size_t size;
    char *bytes = NULL;
    loam_gguf_write_params wp = loam_gguf_write_defaults();
    loam_status status = loam_gguf_open(&f, lora_path, NULL, err);
    if (status == LOAM_OK) status = loam_gguf_open_adapter(&again, lora_path, f, err);
    loam_gguf_free(again);
    again = NULL;
    if (status == LOAM_OK) assert_true(loam_gguf_key_find(f, "general.type", &v));
    if (status == LOAM_OK) status = loam_gguf_builder_create(&g, f, true, err);
    if (status == LOAM_OK) status = build_file(g, &v);
    if (status == LOAM_OK) status = loam_gguf_writer_open(&w, g, file_path, &wp, err);
    if (status == LOAM_OK) assert_string_equal(loam_gguf_writer_due(w), "blk.1.attn_q.weight.lora_a");
    for (int i = 0; i < 3 && status == LOAM_OK; i++) status = loam_gguf_writer_put(w, i == 1 ? factor_b : factor_a, sizeof factor_a, err);
    if (status == LOAM_OK) status = loam_gguf_writer_close(w, err);
    else loam_gguf_writer_cancel(w);
    loam_gguf_free(f);
    loam_gguf_builder_free(g);
    if (status != LOAM_OK) return status;
    bytes = slurp(file_path, &size);
    status = loam_gguf_open_memory(&again, bytes, size, err);
    loam_gguf_free(again);
    free(bytes);
    return status;
}

static loam_status rows(void *arg, loam_error *err)
{
    static float in[512], out[512];
    static uint8_t encoded[4096];
    loam_rows shape = { .type = *(int *)arg, .rows = 2, .n = 256 };
    uint64_t bytes;
    for (int i = 0; i < 512; i++) in[i] = (float)(i * 37 % 101 - 50) / 30;
    loam_status status = loam_quant_bytes(&shape, &bytes, err);
    if (status == LOAM_OK) status = loam_quant_encode(&shape, in, loam_quant_weight_need(shape.type) == LOAM_WEIGHTS_REQUIRED ? out : NULL, encoded, bytes, err);
    if (status == LOAM_OK) status = loam_quant_check(&shape, encoded, bytes, err);
    if (status == LOAM_OK) status = loam_quant_decode(&shape, encoded, bytes, out, err);
    for (int i = 0; i < 512; i++) out[i] = 1;
    return status;
}

static loam_status pieces(void *arg, loam_error *err)
{
    (void)arg;
    char text[64];
    const char *more;
    size_t len;
    loam_detokenizer *d = NULL;
    const loam_tokenizer *t = loam_model_tokenizer(model);
    loam_status status = loam_tokenizer_piece(t, 300, 0, text, sizeof text, &len, err);
    if (status == LOAM_OK) status = loam_detokenizer_new(&d, t, 0, err);
    if (status == LOAM_OK) status = loam_detokenizer_push(d, 3 + 0xC3, &more, &len, err);
    if (status == LOAM_OK) loam_detokenizer_finish(d, &more, &len);
    loam_detokenizer_free(d);
    return status;
}

static loam_status make(void *arg, loam_error *err)
{
    (void)arg;
    return loam_debug_make_model(file_path, "tiny", "f16", 1, err);
}

static loam_status measured(void *arg, loam_error *err)
{
    (void)arg;
    loam_limits best = { 0 };
    loam_status s = loam_debug_limits(model_path, 2, &best, err);
    assert_int_equal(best.reads, s == LOAM_OK); /* a failed call leaves it as it was */
    return s;
}

static void every_allocation(void **state)
{
    (void)state;
    assert_true(fault_loop("contexts, pools, threads", contexts, NULL) > 20);
    assert_true(fault_loop("adapters and control vectors", adapters, NULL) > 20);
    assert_true(fault_loop("sequences", sequences, NULL) > 20);
    assert_true(fault_loop("states", states, NULL) > 20);
    assert_true(fault_loop("files", files, NULL) > 10);
    assert_true(fault_loop("pieces of text", pieces, NULL) > 0);
    assert_true(fault_loop("a random model", make, NULL) > 5);
    assert_true(fault_loop("limits of the machine", measured, NULL) > 1);
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++)
        if (loam_type_name(type) && loam_quant_weight_need(type) != LOAM_WEIGHTS_REQUIRED && loam_type_block_values(type) <= 256 &&
            rows(&type, &(loam_error){ 0 }) == LOAM_OK)
            fault_loop(loam_type_name(type), rows, &type); /* 0 points: encoding asks for nothing */
}

/* ---- functions that ask for no memory ---- */

static void ask_model(void)
{
    const loam_model *m = model;
    const loam_tokenizer *t = loam_model_tokenizer(m);
    char text[64];
    size_t n;
    assert_true(loam_model_defaults().use_mmap && loam_model_architecture(m) && loam_model_description(m));
    assert_true(loam_model_n_vocab(m) > 0 && loam_model_n_ctx_train(m) > 0 && loam_model_n_embd(m) == 256 && loam_model_n_layer(m) == 4);
    assert_true(loam_model_n_head(m) == 4 && loam_model_n_head_kv(m) == 2 && loam_model_n_params(m) > 0 && loam_model_bytes(m) > 0);
    assert_true(loam_model_is_causal(m) && !loam_model_has_encoder(m) && loam_model_has_decoder(m) && loam_model_decoder_start(m) == -1);
    assert_true(loam_model_pooling(m) == LOAM_POOLING_NONE && loam_model_n_labels(m) == 0 && !loam_model_label(m, 0, &n));
    assert_true(loam_model_meta(m, "general.architecture", text, sizeof text, &n));
    assert_true(loam_tokenizer_kind_of(t) == LOAM_TOKENIZER_SPM && loam_tokenizer_size(t) == loam_model_n_vocab(m));
    assert_true(loam_tokenizer_special(t, LOAM_TOKEN_BOS) >= 0 && loam_tokenizer_adds_bos(t) && !loam_tokenizer_adds_eos(t));
    assert_true(!loam_tokenizer_adds_sep(t) && loam_tokenizer_text(t, 300, &n) && loam_tokenizer_is_control(t, 1));
    assert_true(!loam_tokenizer_is_eog(t, 300) && loam_tokenizer_attributes(t, 1) != 0 && !loam_tokenizer_suppressed(t, &n));
    assert_true(loam_tokenizer_score(t, 300) <= 0 || loam_tokenizer_score(t, 300) > 0);
    const char *piece = loam_tokenizer_text(t, 300, &n);
    assert_int_equal(loam_tokenizer_find(t, piece, n), 300);
}

static void ask_context(loam_context *ctx)
{
    loam_memory_use use;
    loam_context_memory_use(ctx, &use);
    assert_true(use.cache > 0 && loam_context_model(ctx) == model && loam_context_n_ctx(ctx) == 256 && loam_context_n_ctx_seq(ctx) == 256);
    assert_true(loam_context_n_batch(ctx) == 256 && loam_context_n_ubatch(ctx) == 8 && loam_context_n_seq_max(ctx) == 3);
    assert_true(loam_context_n_threads(ctx) == 2 && loam_context_n_threads_batch(ctx) == 2 && loam_context_settings(ctx).n_ubatch == 8);
    assert_true(loam_context_pooling(ctx) == LOAM_POOLING_NONE && loam_n_pooled(ctx) == 0 && loam_n_outputs(ctx) == 1);
    assert_true(loam_logits(ctx, -1) && !loam_embeddings(ctx, -1) && !loam_embeddings_seq(ctx, 0));
    assert_true(loam_memory_can_shift(ctx) && loam_memory_n_tokens(ctx) == 10 && loam_memory_seq_pos_min(ctx, 0) == 0);
    assert_true(loam_memory_seq_pos_max(ctx, 0) == 9 && loam_context_perf(ctx).n_prompt == 10 && loam_state_size(ctx, 7) == 0);
    loam_context_perf_reset(ctx);
    loam_context_set_abort(ctx, NULL, NULL);
    loam_context_set_observer(ctx, NULL, NULL);
    loam_context_set_causal(ctx, true);
    loam_context_set_embeddings(ctx, false);
    assert_true(loam_memory_seq_rm(ctx, 0, 9, -1) && loam_memory_seq_keep(ctx, 0));
    loam_memory_clear(ctx);
}

static void ask_file(const loam_gguf *f)
{
    loam_gguf_value v;
    loam_gguf_tensor t;
    int64_t i;
    double x;
    bool b;
    const char *text;
    size_t n;
    uint64_t cursor = 0;
    assert_true(loam_gguf_defaults().use_mmap && loam_gguf_n_keys(f) == 4 && loam_gguf_n_tensors(f) == 2 && loam_gguf_n_parts(f) == 1);
    assert_true(loam_gguf_version(f) == 3 && loam_gguf_alignment(f) == 32 && loam_gguf_bytes(f) > 8192 && loam_gguf_kind_name(LOAM_GGUF_U8));
    assert_true(loam_gguf_hash(f, 0) != loam_gguf_hash(f, LOAM_GGUF_ALL));
    assert_true(loam_gguf_key_at(f, 0, &v) && loam_gguf_text(&v, &cursor, &text, &n) && !loam_gguf_int(&v, 0, &i) && !loam_gguf_bool(&v, 0, &b));
    assert_true(loam_gguf_key_find(f, "adapter.lora.alpha", &v) && loam_gguf_float(&v, 0, &x) && x == 8);
    assert_true(loam_gguf_tensor_at(f, 0, &t) && loam_gguf_tensor_find(f, t.name, &t) && loam_gguf_write_defaults().part_bytes == 0);
}

static void what_takes_no_memory(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    loam_adapter *a;
    loam_gguf *f;
    loam_pool *pool;
    loam_sampler *s;
    int32_t id;
    size_t n;
    char text[128];
    const loam_token_prob *probs;
    loam_sampler_params sp = loam_sampler_defaults();
    sp.n_probs = 3;
    assert_int_equal(new_context(&ctx, &err), LOAM_OK);
    assert_int_equal(decode(ctx, 0, 10, &err), LOAM_OK);
    assert_int_equal(loam_adapter_open(&a, model, lora_path, &err), LOAM_OK);
    assert_int_equal(loam_gguf_open(&f, lora_path, NULL, &err), LOAM_OK);
    assert_int_equal(loam_pool_new(&pool, 1, &err), LOAM_OK);
    assert_int_equal(loam_sampler_new(&s, &sp, &err), LOAM_OK);
    assert_int_equal(loam_sampler_sample(s, loam_logits(ctx, -1), loam_model_n_vocab(model), &id, &err), LOAM_OK);
    fault_arm(1, true);
    ask_model();
    ask_context(ctx);
    ask_file(f);
    assert_true(loam_adapter_n_weights(a) == 1 && loam_adapter_alpha(a) == 8 && !loam_adapter_invocation(a, &n));
    assert_true(loam_pool_n_threads(pool) == 1 && loam_sampler_probs(s, &probs) > 0 && loam_sampler_describe(s, text, sizeof text) > 0);
    loam_sampler_reset(s);
    (void)loam_sampler_seed(s);
    assert_true(loam_status_text(LOAM_OK) && loam_version() && loam_type_from_name("q8_0") == LOAM_Q8_0 && loam_type_name(LOAM_Q8_0));
    assert_true(loam_type_block_values(LOAM_Q8_0) == 32 && loam_type_block_bytes(LOAM_Q8_0) == 34);
    loam_set_log(NULL, NULL);
    loam_pool_free(NULL);
    bool hit = fault_hit();
    fault_arm(0, false);
    assert_false(hit);
    loam_sampler_free(s);
    loam_pool_free(pool);
    loam_gguf_free(f);
    loam_adapter_free(a);
    loam_context_free(ctx);
}

/* ---- stopping at each step ---- */

typedef struct stopper {
    long left;
    bool hit;
} stopper;

static bool stop(void *user)
{
    stopper *s = user;
    if (s->left-- != 0) return false;
    return s->hit = true;
}

static bool stop_seeing(void *user, const loam_node *node, bool ask)
{
    (void)node;
    return ask || !stop(user);
}

/* Two sequences; a batch for the second, which shares the first one's beginning, is stopped at each poll in turn. */
static void stopped_decodes(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    static float law[4096];
    size_t bytes = (size_t)loam_model_n_vocab(model) * sizeof *law;
    assert_int_equal(new_context(&ctx, &err), LOAM_OK);
    assert_int_equal(loam_context_set_threads(ctx, 1, 1, &err), LOAM_OK);
    assert_int_equal(decode(ctx, 0, 32, &err), LOAM_OK);
    memcpy(law, loam_logits(ctx, -1), bytes);
    for (int observed = 0; observed < 2; observed++) {
        stopper s = { .hit = true };
        long n = 0;
        for (; s.hit; n++) {
            loam_memory_clear(ctx);
            assert_int_equal(decode(ctx, 0, 12, &err), LOAM_OK);
            assert_int_equal(loam_memory_seq_cp(ctx, 0, 1, -1, -1, &err), LOAM_OK);
            s = (stopper){ .left = n };
            if (observed) loam_context_set_observer(ctx, stop_seeing, &s);
            else loam_context_set_abort(ctx, stop, &s);
            loam_status status = decode(ctx, 12, 20, &err);
            loam_context_set_observer(ctx, NULL, NULL);
            loam_context_set_abort(ctx, NULL, NULL);
            assert_int_equal(status, s.hit ? LOAM_E_ABORTED : LOAM_OK);
            assert_true(loam_memory_seq_pos_max(ctx, 0) == (s.hit ? 11 : 31) && loam_memory_seq_pos_max(ctx, 1) == 11);
            if (s.hit) assert_int_equal(decode(ctx, 12, 20, &err), LOAM_OK);
            assert_memory_equal(loam_logits(ctx, -1), law, bytes);
        }
        print_message("decode, stopped by the %s: %ld steps\n", observed ? "observer" : "abort callback", n - 1);
        assert_true(n > 20);
    }
    loam_context_free(ctx);
}

static void stopped_warming(void **state)
{
    (void)state;
    loam_error err;
    loam_context *ctx;
    assert_int_equal(new_context(&ctx, &err), LOAM_OK);
    stopper s = { .hit = true };
    long n = 0;
    for (; s.hit; n++) {
        s = (stopper){ .left = n };
        loam_context_set_abort(ctx, stop, &s);
        loam_status status = loam_context_warm_up(ctx, &err);
        assert_int_equal(status, s.hit ? LOAM_E_ABORTED : LOAM_OK);
    }
    assert_true(n > 2);
    loam_context_free(ctx);
}

static bool stop_quantizing(void *user, const loam_quantize_step *step)
{
    (void)step;
    return !stop(user);
}

static void stopped_quantizing(void **state)
{
    (void)state;
    loam_error err;
    stopper s = { .hit = true };
    long n = 0;
    for (; s.hit; n++) {
        s = (stopper){ .left = n };
        loam_quantize_params p = loam_quantize_defaults();
        p.type = "q4_0", p.allow_requantize = true, p.n_threads = 1, p.progress = stop_quantizing, p.progress_user = &s;
        unlink(file_path);
        loam_status status = loam_quantize_file(model_path, file_path, &p, NULL, &err);
        assert_int_equal(status, s.hit ? LOAM_E_ABORTED : LOAM_OK);
        assert_int_equal(access(file_path, F_OK) == 0, !s.hit);
    }
    print_message("quantize: %ld steps\n", n - 1);
    assert_true(n > 10);
}

/* ---- a callback that comes back in ---- */

typedef struct intruder {
    loam_context *same, *other;
    int codes[2];
} intruder;

static bool intrude(void *user, const loam_node *node, bool ask)
{
    intruder *i = user;
    (void)node;
    if (ask) return true;
    loam_batch b = { .n_tokens = 1, .token = ids };
    i->codes[0] = loam_decode(i->same, &b, NULL);
    i->codes[1] = loam_decode(i->other, &b, NULL);
    return true;
}

static void callbacks_cannot_come_back_in(void **state)
{
    (void)state;
    loam_error err;
    loam_pool *pool;
    intruder i = { 0 };
    assert_int_equal(loam_pool_new(&pool, 2, &err), LOAM_OK);
    assert_int_equal(new_context(&i.same, &err), LOAM_OK);
    assert_int_equal(new_context(&i.other, &err), LOAM_OK);
    assert_int_equal(loam_context_attach_pools(i.same, pool, NULL, &err), LOAM_OK);
    assert_int_equal(loam_context_attach_pools(i.other, pool, NULL, &err), LOAM_OK);
    loam_context_set_observer(i.same, intrude, &i);
    assert_int_equal(decode(i.same, 0, 3, &err), LOAM_OK);
    assert_int_equal(i.codes[0], -1);
    assert_int_equal(i.codes[1], -3);
    assert_int_equal(loam_memory_seq_pos_max(i.same, 0), 2);
    assert_int_equal(loam_memory_seq_pos_max(i.other, 0), -1);
    loam_context_set_observer(i.same, NULL, NULL);
    assert_int_equal(decode(i.other, 0, 3, &err), LOAM_OK);
    loam_context_free(i.same);
    loam_context_free(i.other);
    loam_pool_free(pool);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole), cmocka_unit_test(every_allocation), cmocka_unit_test(what_takes_no_memory),
        cmocka_unit_test(stopped_decodes), cmocka_unit_test(stopped_warming), cmocka_unit_test(stopped_quantizing),
        cmocka_unit_test(callbacks_cannot_come_back_in),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
