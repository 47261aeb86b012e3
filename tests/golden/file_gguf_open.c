/* Opens every GGUF file of the expected results, mapped and read, compares what the two ways give, writes it again, and
 * compares the bytes of the two files. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "file/gguf_write.h"

/* The file written again from what was read is the same file, but for padding after the metadata of a file without tensors. */
static void check_rewrite(const gguf_file *f, const char *path)
{
    gguf_builder *b;
    loam_error err;
    char copy[512];
    scratch_path(copy, "rewritten.gguf");
    assert_int_equal(gguf_builder_create(&b, f, GGUF_TAKE_KEYS | GGUF_TAKE_TENSORS, &err), LOAM_OK);
    if (gguf_write(b, copy, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    gguf_builder_free(b);
    size_t n, m;
    char *x = slurp(path, &n), *y = slurp(copy, &m);
    assert_non_null(x);
    assert_non_null(y);
    if (gguf_tensor_count(f) > 0) assert_int_equal(n, m);
    else assert_true(m >= n && m - n < 32);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    remove(copy);
}

static void check_file(const char *path)
{
    gguf_file *a, *b;
    loam_error err;
    if (gguf_open(&a, path, 0, &err) != LOAM_OK) fail_msg("%s", err.message);
    if (gguf_open(&b, path, GGUF_READ, &err) != LOAM_OK) fail_msg("%s", err.message);
    text_view arch;
    assert_int_equal(gguf_get_text(a, "general.architecture", GGUF_REQUIRED, &arch, &err), LOAM_OK);
    assert_int_equal(gguf_key_count(a), gguf_key_count(b));
    assert_int_equal(gguf_tensor_count(a), gguf_tensor_count(b));
    for (uint32_t i = 0; i < gguf_tensor_count(a); i++) {
        const gguf_tensor *t = gguf_tensor_at(a, i), *u = gguf_tensor_find(b, t->name);
        assert_non_null(u);
        assert_int_equal(t->bytes, u->bytes);
        assert_int_equal(t->offset, u->offset);
        if (t->bytes) assert_memory_equal(t->data, u->data, t->bytes);
    }
    gguf_vocab v;
    if (gguf_vocab_view(&v, a, &err) != LOAM_OK) fail_msg("%s", err.message);
    if (v.view.n_tokens) {
        assert_non_null(v.view.tokens[v.view.n_tokens - 1].data);
        assert_non_null(v.view.model.data);
    }
    gguf_vocab_free(&v);
    check_rewrite(a, path);
    gguf_close(a);
    gguf_close(b);
}

static void check_folder(const char *folder)
{
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/%s/*.gguf", LOAM_SHARED_DIR, folder);
    glob_t g;
    if (glob(pattern, 0, NULL, &g) != 0) {
        printf("skipped: no %s\n", pattern);
        skip();
    }
    for (size_t i = 0; i < g.gl_pathc; i++) check_file(g.gl_pathv[i]);
    printf("%s: %zu files\n", folder, g.gl_pathc);
    globfree(&g);
}

static void arch_files(void **state) { (void)state; check_folder("golden/arch"); }
static void tokenizer_files(void **state) { (void)state; check_folder("golden/tokenizers"); }
static void model_files(void **state) { (void)state; check_folder("models"); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(arch_files), cmocka_unit_test(tokenizer_files),
                                        cmocka_unit_test(model_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
