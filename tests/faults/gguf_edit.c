/* gguf_edit.c - editing and splitting a file while its allocations fail, one after the other: no crash, no leak, no file left
 * behind. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "loam/debug.h"
#include "loam/gguf.h"

static char in[512], out[512];

static loam_status edit(void *arg, loam_error *err)
{
    (void)arg;
    loam_gguf *f = NULL;
    loam_gguf_builder *b = NULL;
    char parts[2][540];
    for (int i = 0; i < 2; i++) {
        snprintf(parts[i], sizeof parts[i], "%.*s-%05d-of-00002.gguf", (int)strlen(out) - 5, out, i + 1);
        remove(parts[i]);
    }
    loam_gguf_write_params p = loam_gguf_write_defaults();
    p.part_tensors = 20;
    loam_status s = loam_gguf_open(&f, in, NULL, err);
    if (s == LOAM_OK) s = loam_gguf_builder_create(&b, f, true, err);
    if (s == LOAM_OK) {
        loam_gguf_set_texts(b, "x.texts", (const char *const[]){ "a", "b" }, (const size_t[]){ 1, 1 }, 2);
        loam_gguf_set_scalar(b, "x.byte", LOAM_GGUF_U8, "\7");
        loam_gguf_remove_key(b, "general.name");
        s = loam_gguf_write(b, out, &p, err);
    }
    loam_gguf_builder_free(b);
    loam_gguf_free(f);
    for (int i = 0; i < 2; i++) {
        bool there = access(parts[i], F_OK) == 0;
        assert_int_equal(there, s == LOAM_OK);
        remove(parts[i]);
    }
    return s;
}

static void every_allocation(void **unused)
{
    (void)unused;
    loam_error err;
    if (loam_debug_make_model(in, "tiny", "f16", 1, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_true(fault_loop("edit and split", edit, NULL) > 20);
    remove(in);
}

int main(void)
{
    fault_install();
    scratch_path(in, "in.gguf");
    scratch_path(out, "out.gguf");
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
