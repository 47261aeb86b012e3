/* hf_folder.c - folders that are damaged or meant for another program: each refused with the file, key or tensor by name, and the
 * keys that a good one gives. Folders are made by replacing a text in a copy of tests/golden/data/hf. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "file/gguf.h"
#include "loam/adapter.h"

#include "check.h"

static char work[512];

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char file[1200];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') remove(file);
    }
    if (d) closedir(d);
    rmdir(path);
}

/* Copies a folder of the golden data to `work`; in file `in`, `from` becomes `to`. to NULL: the file is left out. */
static void copy_folder(const char *name, const char *in, const char *from, const char *to)
{
    char rel[128], folder[512];
    snprintf(rel, sizeof rel, "hf/%s", name);
    golden_path(folder, rel);
    remove_folder(work);
    assert_int_equal(mkdir(work, 0700), 0);
    DIR *d = opendir(folder);
    assert_non_null(d);
    bool changed = in == NULL;
    for (struct dirent *e; (e = readdir(d));) {
        char path[1200];
        size_t size;
        if (e->d_type != DT_REG) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *data = slurp(path, &size);
        assert_non_null(data);
        snprintf(path, sizeof path, "%s/%s", work, e->d_name);
        if (in && strcmp(e->d_name, in) == 0) {
            changed = true;
            if (!to) {
                free(data);
                continue;
            }
            char *at = from ? memmem(data, size, from, strlen(from)) : data;
            if (!at) fail_msg("%s has no '%s'", in, from ? from : "");
            size_t tail = from ? size - (size_t)(at - data) - strlen(from) : 0, head = (size_t)(at - data);
            char *made = malloc(head + strlen(to) + tail + 1);
            memcpy(made, data, head);
            memcpy(made + head, to, strlen(to));
            if (from) memcpy(made + head + strlen(to), at + strlen(from), tail);
            free(data);
            data = made;
            size = head + strlen(to) + tail;
        }
        assert_true(spill(path, data, size));
        free(data);
    }
    closedir(d);
    assert_true(changed);
}

static const struct {
    const char *folder, *file, *from, *to;
    loam_status status;
    const char *says;
} cases[] = {
    { "llama", "config.json", NULL, NULL, LOAM_E_IO, "config.json" },
    { "llama", "config.json", NULL, "{\"architectures\": [", LOAM_E_FORMAT, "config.json: line 1" },
    { "llama", "config.json", NULL, "[1]", LOAM_E_FORMAT, "config.json" },
    { "llama", "config.json", NULL, "{}", LOAM_E_FORMAT, "model_type" },
    { "llama", "config.json", "LlamaForCausalLM", "OtherForCausalLM", LOAM_OK, NULL },
    { "llama", "config.json", NULL, "{\"architectures\": [\"OtherForCausalLM\"]}", LOAM_E_UNSUPPORTED, "OtherForCausalLM" },
    { "llama", "config.json", "\"hidden_size\": 16", "\"hidden_size\": \"16\"", LOAM_E_FORMAT, "hidden_size" },
    { "llama", "config.json", "\"hidden_size\": 16", "\"hidden_size\": -16", LOAM_E_FORMAT, "hidden_size" },
    { "llama", "config.json", "\"hidden_size\": 16", "\"hidden_size\": 32", LOAM_E_FORMAT, "token_embd.weight" },
    { "llama", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0", LOAM_E_FORMAT, "layers" },
    { "llama", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", LOAM_E_FORMAT, "blk.2" },
    { "llama", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1e9", LOAM_E_FORMAT, "layers" },
    { "llama", "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 0", LOAM_E_FORMAT, "heads" },
    { "llama", "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 3", LOAM_E_FORMAT, "3 heads" },
    { "llama", "config.json", "\"silu\"", "\"relu\"", LOAM_E_UNSUPPORTED, "'relu'" },
    { "llama", "config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"spiral\"", LOAM_E_UNSUPPORTED, "'spiral'" },
    { "llama", "config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"linear\"", LOAM_E_FORMAT, "factor" },
    { "llama", "config.json", "\"mlp_bias\"", "\"quantization_config\": {\"quant_method\": \"gptq\"}, \"mlp_bias\"", LOAM_E_UNSUPPORTED, "'gptq'" },
    { "phi3-longrope", "config.json", "6.0", "\"x\"", LOAM_E_FORMAT, "long_factor[3]" },
    { "phi3-longrope", "config.json", "6.0", "6.0, 7.0", LOAM_E_FORMAT, "long_factor" },
    { "qwen3moe", "config.json", "\"norm_topk_prob\": true", "\"norm_topk_prob\": false", LOAM_E_UNSUPPORTED, "norm_topk_prob" },
    { "smollm3", "config.json", "\"no_rope_layer_interval\"", "\"no_rope_layers\": [0, 0, 0, 0], \"x\"", LOAM_OK, NULL },
    { "llama", "model.safetensors", NULL, NULL, LOAM_E_IO, "model.safetensors" },
    { "llama", "model.safetensors", "layers.0.mlp.up_proj", "layers.0.mlp.un_proj", LOAM_E_UNSUPPORTED, "layers.0.mlp.un_proj" },
    { "llama", "model.safetensors", "layers.0.mlp.up_proj", "layers.9.mlp.up_proj", LOAM_E_FORMAT, "blk.0.ffn_up" },
    { "llama", "model.safetensors", "\"shape\":[16]", "\"shape\":[17]", LOAM_E_FORMAT, "dtype and shape ask for" },
    { "llama", "model.safetensors", "\"dtype\":\"F32\"", "\"dtype\":\"I32\"", LOAM_E_UNSUPPORTED, "integers" },
    { "qwen3moe", "model.safetensors", "experts.1.gate_proj", "experts.7.gate_proj", LOAM_E_FORMAT, "experts.7.gate_proj" },
    { "qwen3moe", "model.safetensors", "experts.1.gate_proj", "experts.0.up_projxx", LOAM_E_UNSUPPORTED, "experts.0.up_projxx" },
    { "llama-shards", "model-00002-of-00005.safetensors", NULL, NULL, LOAM_E_IO, "model-00002-of-00005.safetensors" },
    { "llama-shards", "model.safetensors.index.json", "model-00002-of-00005", "model-00001-of-00005", LOAM_E_FORMAT, "is not in" },
    { "llama-shards", "model.safetensors.index.json", "model-00002-of-00005.safetensors", "../model.safetensors", LOAM_E_FORMAT, "../model" },
    { "llama-shards", "model.safetensors.index.json", NULL, "{\"weight_map\": {}}", LOAM_E_FORMAT, "weight_map" },
    { "llama-shards", "model.safetensors.index.json", NULL, "{\"weight_map\": {\"x\": 1}}", LOAM_E_FORMAT, "'x'" },
    { "qwen3-fp8-block", "model.safetensors", "\"shape\":[4,2]", "\"shape\":[8,1]", LOAM_E_UNSUPPORTED, "scales" },
    { "vocab/gpt2", "tokenizer.json", NULL, "{\"model\": {\"type\": \"Magic\"}}", LOAM_E_UNSUPPORTED, "model.type" },
    { "vocab/gpt2", "tokenizer.json", NULL, "{\"model\": {\"type\": \"BPE\"}}", LOAM_E_FORMAT, "vocab" },
    { "vocab/gpt2", "tokenizer.json", NULL, "{\"model\": ", LOAM_E_FORMAT, "tokenizer.json: line 1" },
    { "vocab/gpt2", "tokenizer.json", "\"use_regex\":true", "\"use_regex\":false", LOAM_E_UNSUPPORTED, "pre-tokenizer" },
    { "vocab/qwen2", "tokenizer.json", "\\\\p{N}|", "\\\\p{N}{1,7}|", LOAM_E_UNSUPPORTED, "pre-tokenizer" },
    { "vocab/unigram", "tokenizer.json", "[[\"<pad>\",0.0]", "[[\"<pad>\",null]", LOAM_E_FORMAT, "score" },
    { "vocab/bpe-model", "tokenizer.model", NULL, "\x0A\x7F", LOAM_E_FORMAT, "tokenizer.model" },
    { "vocab/bpe-model", "tokenizer.model", NULL, "", LOAM_E_FORMAT, "tokenizer.model" },
};

static void refuses(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loam_error err = { 0 };
        loam_model *m;
        loam_model_params p = loam_model_defaults();
        p.vocab_only = strncmp(cases[i].folder, "vocab/", 6) == 0;
        copy_folder(cases[i].folder, cases[i].file, cases[i].from, cases[i].to);
        loam_status s = loam_model_open(&m, work, &p, &err);
        loam_model_free(m);
        bool fits = s == cases[i].status && (!cases[i].says || strstr(err.message, cases[i].says));
        if (!fits) printf("  %s, %s, '%s' -> '%s': status %d, %s\n", cases[i].folder, cases[i].file, cases[i].from ? cases[i].from : "all",
                          cases[i].to ? cases[i].to : "missing", (int)s, s == LOAM_OK ? "opened" : err.message);
        bad += !fits;
    }
    remove_folder(work);
    assert_int_equal(bad, 0);
}

static bool key_is(const gguf_file *f, const char *key, const char *text)
{
    text_view t = { NULL, 0 };
    return gguf_get_text(f, key, GGUF_REQUIRED, &t, NULL) == LOAM_OK && t.len == strlen(text) && !memcmp(t.data, text, t.len);
}

static void keys(void **state)
{
    (void)state;
    gguf_file *f;
    loam_error err;
    uint32_t n = 0;
    bool adds = false;
    float score = 0;
    copy_folder("vocab/gpt2", NULL, NULL, NULL);
    char path[600];
    snprintf(path, sizeof path, "%s/generation_config.json", work);
    const char *generation = "{\"eos_token_id\": [1, 7], \"top_k\": 64, \"temperature\": 0.5}";
    assert_true(spill(path, generation, strlen(generation)));
    assert_int_equal(gguf_open(&f, work, 0, &err), LOAM_OK);
    assert_true(key_is(f, "tokenizer.ggml.model", "gpt2"));
    assert_true(key_is(f, "tokenizer.ggml.pre", "gpt-2"));
    assert_true(key_is(f, "tokenizer.chat_template", "{{ messages[0]['content'] }}"));
    assert_int_equal(gguf_get_u32(f, "tokenizer.ggml.eos_token_id", GGUF_REQUIRED, &n, &err), LOAM_OK);
    assert_int_equal(n, 1);
    assert_int_equal(gguf_get_u32(f, "tokenizer.ggml.eot_token_id", GGUF_REQUIRED, &n, &err), LOAM_OK);
    assert_int_equal(n, 7);
    assert_int_equal(gguf_get_f32(f, "general.sampling.temp", GGUF_REQUIRED, &score, &err), LOAM_OK);
    assert_true(score == 0.5f);
    gguf_close(f);
    snprintf(path, sizeof path, "%s/chat_template.jinja", work);
    assert_true(spill(path, "newer", 5));
    assert_int_equal(gguf_open(&f, work, 0, &err), LOAM_OK);
    assert_true(key_is(f, "tokenizer.chat_template", "newer"));
    gguf_close(f);
    copy_folder("vocab/llama3", NULL, NULL, NULL);
    assert_int_equal(gguf_open(&f, work, 0, &err), LOAM_OK);
    assert_true(key_is(f, "tokenizer.ggml.pre", "llama-bpe"));
    assert_int_equal(gguf_get_bool(f, "tokenizer.ggml.add_bos_token", GGUF_REQUIRED, &adds, &err), LOAM_OK);
    assert_true(adds);
    gguf_close(f);
    remove_folder(work);
}

/* In place where the bits are as they are; computed only when asked for with GGUF_LAZY. */
static void places(void **state)
{
    (void)state;
    gguf_file *f;
    loam_error err;
    char folder[512];
    golden_path(folder, "hf/llama-shards");
    assert_int_equal(gguf_open(&f, folder, GGUF_LAZY, &err), LOAM_OK);
    assert_true(gguf_part_count(f) > 2);
    const gguf_tensor *v = gguf_tensor_find(f, "blk.1.attn_v.weight"), *q = gguf_tensor_find(f, "blk.1.attn_q.weight");
    assert_true(v && q && v->data && v->part > 0 && !q->data);
    uint32_t i = 0;
    while (gguf_tensor_at(f, i) != q) i++;
    assert_int_equal(gguf_hold(f, i, &err), LOAM_OK);
    assert_non_null(q->data);
    gguf_let_go(f, i);
    assert_null(q->data);
    gguf_close(f);
    assert_int_equal(gguf_open(&f, folder, GGUF_READ, &err), LOAM_OK);
    assert_non_null(gguf_tensor_find(f, "blk.1.attn_q.weight")->data);
    gguf_close(f);
}

static const struct {
    const char *folder, *file, *from, *to;
    loam_status status;
    const char *says;
} adapter_cases[] = {
    { "llama-all", "adapter_config.json", "\"LORA\"", "\"IA3\"", LOAM_E_UNSUPPORTED, "peft_type" },
    { "llama-all", "adapter_config.json", "\"r\": 3", "\"r\": null", LOAM_E_FORMAT, "rank" },
    { "llama-all", "adapter_config.json", "\"use_dora\": false", "\"use_dora\": true", LOAM_E_UNSUPPORTED, "use_dora" },
    { "llama-all", "adapter_config.json", "\"bias\": \"none\"", "\"bias\": \"all\"", LOAM_E_UNSUPPORTED, "bias" },
    { "llama-all", "adapter_config.json", "\"modules_to_save\": null", "\"modules_to_save\": [\"x\"]", LOAM_E_UNSUPPORTED, "modules_to_save" },
    { "llama-all", "adapter_config.json", NULL, NULL, LOAM_E_IO, "adapter_config.json" },
    { "llama-all", "adapter_model.safetensors", NULL, NULL, LOAM_E_IO, "adapter_model.safetensors" },
    { "llama-all", "adapter_model.safetensors", "0.mlp.up_proj.lora_A", "0.mlp.un_proj.lora_A", LOAM_E_UNSUPPORTED, "un_proj" },
    { "llama-all", "adapter_model.safetensors", "0.mlp.up_proj.lora_A", "5.mlp.up_proj.lora_A", LOAM_E_FORMAT, "blk.5" },
    { "llama-all", "adapter_model.safetensors", "lora_A.weight", "lora_X.weight", LOAM_E_UNSUPPORTED, "lora_X" },
};

static void refuses_adapters(void **state)
{
    (void)state;
    char folder[512];
    loam_error err;
    loam_model *m;
    assert_int_equal(loam_model_open(&m, golden_path(folder, "hf/llama"), NULL, &err), LOAM_OK);
    for (size_t i = 0; i < sizeof adapter_cases / sizeof *adapter_cases; i++) {
        char name[64];
        loam_adapter *a;
        snprintf(name, sizeof name, "adapters/%s", adapter_cases[i].folder);
        copy_folder(name, adapter_cases[i].file, adapter_cases[i].from, adapter_cases[i].to);
        loam_status s = loam_adapter_open(&a, m, work, &err);
        if (s != adapter_cases[i].status || !strstr(err.message, adapter_cases[i].says))
            fail_msg("%s -> %s: status %d, %s", adapter_cases[i].from ? adapter_cases[i].from : "", adapter_cases[i].to ? adapter_cases[i].to : "", (int)s, err.message);
        assert_null(a);
    }
    loam_model_free(m);
    remove_folder(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(refuses), cmocka_unit_test(keys), cmocka_unit_test(places),
                                        cmocka_unit_test(refuses_adapters) };
    scratch_path(work, "folder");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
