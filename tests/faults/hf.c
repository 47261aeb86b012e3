/* Every allocation of opening folders and adapters fails in turn. */
#include <stdio.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "file/gguf.h"
#include "loam/adapter.h"

static loam_status open_folder(void *arg, loam_error *err)
{
    gguf_file *f;
    loam_status s = gguf_open(&f, arg, 0, err);
    if (s != LOAM_OK) assert_null(f);
    gguf_close(f);
    return s;
}

static loam_model *model;

static loam_status open_adapter(void *arg, loam_error *err)
{
    loam_adapter *a;
    loam_status s = loam_adapter_open(&a, model, arg, err);
    loam_adapter_free(a);
    return s;
}

static void points(void **state)
{
    static const char *const names[] = { "llama-shards", "qwen3moe", "phi3-longrope", "qwen3-fp8-block", "vocab/gpt2", "vocab/bpe",
                                         "vocab/bpe-model", "vocab/unigram", "vocab/wordpiece", "gemma3-vision", "t5" };
    (void)state;
    char path[512], rel[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(rel, sizeof rel, "hf/%s", names[i]);
        fault_loop(names[i], open_folder, (void *)(uintptr_t)golden_path(path, rel));
    }
    assert_int_equal(loam_model_open(&model, golden_path(path, "hf/llama"), NULL, NULL), LOAM_OK);
    fault_loop("adapter", open_adapter, (void *)(uintptr_t)golden_path(path, "hf/adapters/llama-embed"));
    loam_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(points) };
    fault_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
