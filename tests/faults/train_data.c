/* Training data, with each allocation failing in turn. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "fault.h"
#include "loam/data.h"
#include "vocabulary.h"

static loam_model *vocabulary;
static char text_path[512], line_path[512];

static loam_status read_rows(void *arg, loam_error *err)
{
    const char *paths[] = { text_path, line_path };
    loam_data_params p = loam_data_defaults();
    loam_data *d;
    loam_data_rows r;
    int64_t numbers[512];
    size_t n;
    (void)arg;
    p.n_ctx = 16;
    loam_status s = loam_data_open(&d, paths, 2, loam_model_tokenizer(vocabulary), &p, err);
    for (int i = 0; i < 3 && s == LOAM_OK; i++) s = loam_data_next(d, 2, &r, err);
    if (s == LOAM_OK) s = loam_data_tell(d, numbers, 512, &n, err);
    if (s == LOAM_OK) s = loam_data_seek(d, numbers, n, err);
    if (s == LOAM_OK) s = loam_data_next(d, 2, &r, err);
    loam_data_free(d);
    return s;
}

static void test_rows(void **state)
{
    (void)state;
    scratch_path(text_path, "faults.txt");
    scratch_path(line_path, "faults.jsonl");
    assert_true(spill(text_path, "one two three\n\nfour five six seven eight nine ten\n\none", 55 - 3));
    const char *lines = "{\"prompt\": \"one\", \"completion\": \" two\"}\n{\"messages\": [{\"role\": \"assistant\", \"content\": \"three\"}]}\n";
    assert_true(spill(line_path, lines, strlen(lines)));
    assert_true(fault_loop("rows of training data", read_rows, NULL) > 20);
    unlink(text_path);
    unlink(line_path);
}

/* A call that fails on the way leaves the data as they were: the next one gives what it would have given. */
static void test_failed_rows_are_not_lost(void **state)
{
    (void)state;
    loam_error err;
    loam_data *d;
    loam_data_rows r;
    int64_t want = 0, have = 0;
    scratch_path(text_path, "faults.txt");
    char text[4096] = "";
    for (int i = 0; i < 90; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "one two %d three four\n\n", i);
    assert_true(spill(text_path, text, strlen(text)));
    const char *paths[] = { text_path };
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 32;
    p.endless = false;
    assert_int_equal(loam_data_open(&d, paths, 1, loam_model_tokenizer(vocabulary), &p, &err), LOAM_OK);
    assert_int_equal(loam_data_count(d, &want, NULL, NULL, &err), LOAM_OK);
    for (int i = 0;; i++) {
        fault_arm(1 + i % 40, false);
        loam_status s = loam_data_next(d, 3, &r, &err);
        fault_arm(0, false);
        if (s != LOAM_OK) {
            assert_int_equal(s, LOAM_E_NOMEM);
            assert_int_equal(loam_data_next(d, 3, &r, &err), LOAM_OK);
        }
        if (!r.n_rows) break;
        have += r.n_tokens;
    }
    assert_int_equal(have, want);
    loam_data_free(d);
    unlink(text_path);
}

int main(void)
{
    fault_install();
    vocabulary = vocabulary_open("one two three four five six seven eight nine ten", 300, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_failed_rows_are_not_lost),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    loam_model_free(vocabulary);
    return failed;
}
