/* Learning a vocabulary and writing it, with each allocation failing in turn. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "loam/tokenizer.h"

static char path[512];

static loam_status learn(void *arg, loam_error *err)
{
    static const char text[] = "a cat and a bat sat on a mat \xFF and \xC3\xA9 banana bandana banana the cat sat there";
    loam_vocab_builder *b;
    loam_vocab_params p = loam_vocab_defaults();
    p.n_vocab = 300;
    (void)arg;
    loam_status s = loam_vocab_builder_create(&b, &p, err);
    if (s == LOAM_OK) s = loam_vocab_builder_add(b, text, sizeof text - 1, err);
    if (s == LOAM_OK) s = loam_vocab_builder_write(b, path, NULL, err);
    loam_vocab_builder_free(b);
    return s;
}

static void test_learn(void **state)
{
    (void)state;
    scratch_path(path, "learn-faults.gguf");
    assert_true(fault_loop("learn a vocabulary", learn, NULL) > 20);
    unlink(path);
    scratch_path(path, "learn-faults.json");
    assert_true(fault_loop("learn a tokenizer.json", learn, NULL) > 20);
    unlink(path);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_learn) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
