/* Every allocation of opening, viewing, building and writing GGUF files fails in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "file/gguf_write.h"
#include "loam/debug.h"

static char model[512], split[512];

static loam_status open_with(const char *path, unsigned flags, loam_error *err)
{
    gguf_file *f;
    gguf_vocab v;
    loam_status s = gguf_open(&f, path, flags, err);
    if (s != LOAM_OK) {
        assert_null(f);
        return s;
    }
    s = gguf_vocab_view(&v, f, err);
    if (s == LOAM_OK) assert_int_equal(v.view.n_tokens, 4096);
    gguf_vocab_free(&v);
    gguf_close(f);
    return s;
}

static loam_status open_mapped(void *arg, loam_error *err) { return open_with(arg, 0, err); }
static loam_status open_read(void *arg, loam_error *err) { return open_with(arg, GGUF_READ, err); }

static loam_status open_parts(void *arg, loam_error *err)
{
    gguf_file *f;
    loam_status s = gguf_open(&f, arg, 0, err);
    if (s == LOAM_OK) assert_int_equal(gguf_part_count(f), 4);
    gguf_close(f);
    return s;
}

static loam_status rewrite(void *arg, loam_error *err)
{
    gguf_file *f;
    gguf_builder *b;
    char path[512];
    loam_status s = gguf_open(&f, arg, 0, err);
    if (s != LOAM_OK) return s;
    s = gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, err);
    if (s == LOAM_OK) {
        gguf_set_texts(b, "some.texts", (const text_view[]){ { "x", 1 }, { "yz", 2 } }, 2);
        gguf_set_u32(b, "some.number", 1);
        gguf_put_tensor(b, "some.weight", LOAM_F32, (const int64_t[LIMIT_DIMS]){ 2, 1, 1, 1 }, "12345678");
        s = gguf_write(b, scratch_path(path, "rewritten.gguf"), NULL, err);
        gguf_builder_free(b);
        if (s == LOAM_OK) remove(path);
        else assert_null(fopen(path, "rb"));
    }
    gguf_close(f);
    return s;
}

static loam_status make(void *arg, loam_error *err) { return loam_debug_make_model(arg, "tiny", "q2_K", 1, err); }

static void points(void **state)
{
    char path[512];
    (void)state;
    fault_loop("open mapped", open_mapped, model);
    fault_loop("open read", open_read, model);
    fault_loop("open in parts", open_parts, split);
    fault_loop("build and write", rewrite, model);
    fault_loop("make a model", make, (void *)(uintptr_t)scratch_path(path, "made.gguf"));
    remove(path);
}

/* The model, and the same in four parts. */
static int setup(void **state)
{
    char base[512];
    gguf_file *f;
    gguf_builder *b;
    (void)state;
    scratch_path(model, "model.gguf");
    scratch_path(base, "parts.gguf");
    snprintf(split, sizeof split, "%.*s-00001-of-00004.gguf", (int)strlen(base) - 5, base);
    if (loam_debug_make_model(model, "tiny", "q2_K", 1, NULL) != LOAM_OK || gguf_open(&f, model, 0, NULL) != LOAM_OK) return 1;
    int bad = gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, NULL) != LOAM_OK;
    if (!bad) bad = gguf_write(b, base, &(gguf_write_options){ .part_tensors = 10 }, NULL) != LOAM_OK;
    if (!bad) gguf_builder_free(b);
    gguf_close(f);
    return bad;
}

static int teardown(void **state)
{
    (void)state;
    remove(model);
    for (int i = 1; i <= 4; i++) {
        char *number = strstr(split, "-0000") + 5;
        *number = (char)('0' + i);
        remove(split);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(points) };
    fault_install();
    return cmocka_run_group_tests(tests, setup, teardown);
}
