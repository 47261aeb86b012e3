/* Training data: every token once an epoch, labels and masks of each form of document, packing, order, position, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "loam/data.h"
#include "train/data.h"
#include "vocabulary.h"

static const char words[] = "one two three four five six seven eight nine ten a the cat sat on mat";
static char path[512];
static loam_model *vocabulary, *chat_vocabulary;

static loam_data *open_text(const char *text, const char *name, const loam_data_params *p, const loam_model *vocab)
{
    loam_error err;
    loam_data *d = NULL;
    scratch_path(path, name);
    assert_true(spill(path, text, strlen(text)));
    const char *paths[] = { path };
    if (loam_data_open(&d, paths, 1, loam_model_tokenizer(vocab), p, &err) != LOAM_OK) fail_msg("%s", err.message);
    unlink(path);
    return d;
}

/* n documents of one to `most` words. */
static char *documents(int n, int most, uint64_t seed)
{
    dice d = { seed };
    char *text = malloc((size_t)n * (size_t)most * 16 + 1), *p = text;
    for (int i = 0; i < n; i++) {
        p += sprintf(p, "d%d", i);
        for (uint32_t k = dice_below(&d, (uint32_t)most); k > 0; k--) p += sprintf(p, " w%u", dice_below(&d, 50));
        p += sprintf(p, i % 3 ? "\n\n" : "\n \n\n");
    }
    *p = 0;
    return text;
}

/* What must hold of any rows. Returns how many different documents (padding too) they hold. */
static int check_rows(const loam_data_rows *r)
{
    int n = r->n_rows * r->n_ctx, last = -1;
    int64_t tokens = 0, labels = 0;
    for (int i = 0; i < n; i++) {
        bool begins = i % r->n_ctx == 0 || r->documents[i] != r->documents[i - 1];
        if (begins) {
            assert_int_equal(r->documents[i], last + 1);
            last = r->documents[i];
        }
        assert_int_equal(r->positions[i], begins ? 0 : r->positions[i - 1] + 1);
        bool more = (i + 1) % r->n_ctx != 0 && r->documents[i + 1] == r->documents[i];
        if (r->labels[i] >= 0 && more) assert_int_equal(r->labels[i], r->ids[i + 1]);
        if (r->mask[i]) assert_true(r->labels[i] >= 0);
        tokens += r->labels[i] >= 0;
        labels += r->mask[i];
    }
    assert_int_equal(tokens, r->n_tokens);
    assert_int_equal(labels, r->n_labels);
    return last + 1;
}

static int64_t drain(loam_data *d, int32_t n_rows, uint64_t *sum, int64_t *labels)
{
    loam_error err;
    loam_data_rows r;
    int64_t tokens = 0;
    *sum = 0;
    *labels = 0;
    do {
        assert_int_equal(loam_data_next(d, n_rows, &r, &err), LOAM_OK);
        check_rows(&r);
        for (int i = 0; i < r.n_rows * r.n_ctx; i++)
            if (r.labels[i] >= 0) *sum += (uint64_t)r.ids[i] * 31 + (uint64_t)r.labels[i] * 17;
        tokens += r.n_tokens;
        *labels += r.n_labels;
    } while (r.n_rows);
    return tokens;
}

static void test_every_token_once(void **state)
{
    (void)state;
    loam_error err;
    char *text = documents(300, 60, 1);
    uint64_t sums[3];
    int64_t labels;
    for (int k = 0; k < 3; k++) {
        loam_data_params p = loam_data_defaults();
        p.n_ctx = 32;
        p.endless = false;
        p.shuffle = k > 0;
        p.seed = (uint64_t)k;
        loam_data *d = open_text(text, "data.txt", &p, vocabulary);
        int64_t want, want_labels, bytes;
        assert_int_equal(loam_data_n_documents(d), 300);
        assert_int_equal(loam_data_count(d, &want, &want_labels, &bytes, &err), LOAM_OK);
        assert_int_equal(drain(d, 3, &sums[k], &labels), want);
        assert_int_equal(labels, want_labels);
        assert_int_equal(labels, want); /* all of a plain text counts */
        assert_true(want > 300 && bytes > 3000);
        loam_data_free(d);
    }
    assert_int_equal(sums[0], sums[1]);
    assert_int_equal(sums[0], sums[2]);
    free(text);
}

static void test_packing(void **state)
{
    (void)state;
    loam_error err;
    loam_data_rows r;
    char *text = documents(400, 20, 2);
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 128;
    loam_data *d = open_text(text, "data.txt", &p, vocabulary);
    int64_t tokens = 0, room = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(loam_data_next(d, 4, &r, &err), LOAM_OK);
        assert_int_equal(r.n_rows, 4);
        assert_true(check_rows(&r) > 8); /* several documents a row */
        for (int k = 0; k < 4; k++) assert_int_equal(r.ids[k * 128], 0); /* <s>: rows begin with a document */
        tokens += r.n_tokens;
        room += 4 * 128;
    }
    assert_true(tokens * 100 > room * 98);
    loam_data_free(d);
    free(text);
}

static void test_order(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 70; n++) {
        uint8_t seen[70] = { 0 };
        for (uint64_t i = 0; i < n; i++) {
            uint64_t k = data_shuffled(i, n, 7);
            assert_true(k < n && !seen[k]);
            seen[k] = 1;
        }
    }
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++) same += data_shuffled(i, 1000, 1) == data_shuffled(i, 1000, 2);
    assert_true(same < 20);
}

static void test_hold_out(void **state)
{
    (void)state;
    char *text = documents(100, 10, 3);
    uint64_t all, kept, held;
    int64_t labels;
    loam_data_params p = loam_data_defaults();
    p.endless = false;
    p.n_ctx = 64;
    loam_data *d = open_text(text, "data.txt", &p, vocabulary);
    drain(d, 2, &all, &labels);
    loam_data_free(d);
    p.hold_out = 0.1;
    d = open_text(text, "data.txt", &p, vocabulary);
    assert_int_equal(loam_data_n_documents(d), 90);
    drain(d, 2, &kept, &labels);
    loam_data_free(d);
    p.held_out = true;
    d = open_text(text, "data.txt", &p, vocabulary);
    assert_int_equal(loam_data_n_documents(d), 10);
    drain(d, 2, &held, &labels);
    loam_data_free(d);
    assert_true(kept + held == all);
    free(text);
}

/* The text of the labels that count, and of all labels, in the order of the rows. */
static void texts_of(loam_data *d, const loam_model *m, char *counted, char *all)
{
    loam_error err;
    loam_data_rows r;
    loam_token ids[2][512];
    size_t n[2] = { 0 }, len;
    assert_int_equal(loam_data_next(d, 1, &r, &err), LOAM_OK);
    check_rows(&r);
    for (int i = 0; i < r.n_ctx; i++) {
        if (r.mask[i]) ids[0][n[0]++] = r.labels[i];
        if (r.labels[i] >= 0) ids[1][n[1]++] = r.labels[i];
    }
    for (int k = 0; k < 2; k++) {
        char *out = k ? all : counted;
        assert_int_equal(loam_tokenizer_decode(loam_model_tokenizer(m), ids[k], n[k], LOAM_DECODE_SPECIAL, out, 511, &len, &err), LOAM_OK);
        out[len] = 0;
    }
}

static void check_masks(const char *line, const loam_model *m, const char *counted, const char *all)
{
    char have_counted[512], have_all[512];
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 256;
    p.endless = false;
    loam_data *d = open_text(line, "data.jsonl", &p, m);
    texts_of(d, m, have_counted, have_all);
    assert_string_equal(have_counted, counted);
    assert_string_equal(have_all, all);
    loam_data_free(d);
}

static void test_masks(void **state)
{
    (void)state;
    check_masks("{\"text\": \"the cat <s> sat\"}", vocabulary, "the cat <s> sat</s>", "the cat <s> sat</s>");
    check_masks("{\"prompt\": \"the cat\", \"completion\": \" sat\", \"id\": 7}\n", vocabulary, " sat</s>", "the cat sat</s>");
    const char *talk = "{\"messages\": [{\"role\": \"user\", \"content\": \"two?\"}, {\"role\": \"assistant\", \"content\": \"three\"},"
                       "{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"the\"}]}";
    check_masks(talk, chat_vocabulary, "three<|im_end|>the<|im_end|>",
                "<|im_start|>user\ntwo?<|im_end|>\n<|im_start|>assistant\nthree<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
                "<|im_start|>assistant\nthe<|im_end|>\n");
    check_masks(talk, vocabulary, "three</s>the</s>", "user: two?\nassistant: three</s>\nuser: a\nassistant: the</s>\n");
    /* What a user writes makes no control token. */
    check_masks("{\"messages\": [{\"role\": \"assistant\", \"content\": \"<|im_end|>\"}]}", chat_vocabulary, "<|im_end|><|im_end|>",
                "<|im_start|>assistant\n<|im_end|><|im_end|>\n");
}

static void refused(const char *text, const char *name, const char *part)
{
    loam_error err;
    loam_data *d;
    scratch_path(path, name);
    assert_true(spill(path, text, strlen(text)));
    const char *paths[] = { path };
    loam_status s = loam_data_open(&d, paths, 1, loam_model_tokenizer(vocabulary), NULL, &err);
    unlink(path);
    assert_int_equal(s, LOAM_E_FORMAT);
    assert_null(d);
    if (!strstr(err.message, part)) fail_msg("'%s' is not in: %s", part, err.message);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("", "data.txt", "no text");
    refused(" \n\n \t\n", "data.txt", "no text");
    refused("\n\n", "data.jsonl", "no text");
    refused("{\"text\": \"a\"}\n\n{\"text\": \"b\"\n", "data.jsonl", "line 3");
    refused("{\"text\": \"a\"}\n[1]\n", "data.jsonl", "line 2");
    refused("{\"text\": 7}", "data.jsonl", "\"text\" is no string");
    refused("{\"txt\": \"a\"}", "data.jsonl", "line 1: has none of");
    refused("{\"prompt\": \"a\"}", "data.jsonl", "\"completion\" is missing");
    refused("{\"prompt\": \"a\", \"completion\": \"b\", \"text\": \"c\"}", "data.jsonl", "more than one");
    refused("{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}", "data.jsonl", "nothing to learn");
    refused("{\"messages\": [{\"role\": \"as|sistant\", \"content\": \"b\"}]}", "data.jsonl", "no plain word");
    loam_error err;
    loam_data *d;
    const char *none[] = { "/nowhere/at/all.txt" };
    assert_int_equal(loam_data_open(&d, none, 1, loam_model_tokenizer(vocabulary), NULL, &err), LOAM_E_IO);
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 1;
    assert_int_equal(loam_data_open(&d, none, 1, loam_model_tokenizer(vocabulary), &p, &err), LOAM_E_ARG);
}

static void test_long_documents(void **state)
{
    (void)state;
    loam_error err;
    loam_data_rows r;
    const char *text = "one two three four five six seven eight nine ten one two three four five six seven\n\nthe cat";
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 8;
    p.endless = false;
    p.shuffle = false;
    int64_t whole, cut;
    loam_data *d = open_text(text, "data.txt", &p, vocabulary);
    assert_int_equal(loam_data_count(d, &whole, NULL, NULL, &err), LOAM_OK);
    assert_int_equal(loam_data_next(d, 9, &r, &err), LOAM_OK);
    check_rows(&r);
    assert_true(r.n_rows >= 3);
    assert_int_equal(r.n_tokens, whole);
    assert_int_equal(r.labels[7], r.ids[8]); /* the label of a row's last token: the piece after it follows here */
    loam_data_free(d);
    p.too_long = LOAM_LONG_TRUNCATE;
    d = open_text(text, "data.txt", &p, vocabulary);
    assert_int_equal(loam_data_count(d, &cut, NULL, NULL, &err), LOAM_OK);
    assert_int_equal(loam_data_next(d, 9, &r, &err), LOAM_OK);
    assert_int_equal(r.n_tokens, cut);
    assert_true(cut < whole);
    loam_data_free(d);
    p.too_long = LOAM_LONG_REFUSE;
    d = open_text(text, "data.txt", &p, vocabulary);
    assert_int_equal(loam_data_next(d, 9, &r, &err), LOAM_E_FORMAT);
    assert_non_null(strstr(err.message, "longer than the context of 8"));
    assert_non_null(strstr(err.message, "line 1"));
    loam_data_free(d);
}

static void test_position(void **state)
{
    (void)state;
    loam_error err;
    loam_data_rows a, b;
    char *text = documents(120, 40, 4);
    loam_data_params p = loam_data_defaults();
    p.n_ctx = 32;
    loam_data *d = open_text(text, "data.txt", &p, vocabulary), *e = open_text(text, "data.txt", &p, vocabulary);
    int64_t numbers[1024];
    size_t n;
    for (int k = 0; k < 120; k++) {
        assert_int_equal(loam_data_tell(d, numbers, 1024, &n, &err), LOAM_OK);
        assert_int_equal(loam_data_seek(e, numbers, n, &err), LOAM_OK);
        assert_int_equal(loam_data_next(d, 2, &a, &err), LOAM_OK);
        assert_int_equal(loam_data_next(e, 2, &b, &err), LOAM_OK);
        assert_memory_equal(a.ids, b.ids, 64 * sizeof *a.ids);
        assert_memory_equal(a.labels, b.labels, 64 * sizeof *a.ids);
        assert_memory_equal(a.mask, b.mask, 64);
    }
    assert_true(loam_data_epoch(d) > 0);
    assert_int_equal(loam_data_tell(d, numbers, 2, &n, &err), LOAM_E_FULL);
    assert_int_equal(loam_data_tell(d, numbers, n, &n, &err), LOAM_OK);
    numbers[3] = 5000;
    assert_int_equal(loam_data_seek(e, numbers, n, &err), LOAM_E_FORMAT);
    numbers[0]++;
    assert_int_equal(loam_data_seek(e, numbers, n, &err), LOAM_E_FORMAT);
    assert_int_equal(loam_data_next(d, 2, &a, &err), LOAM_OK); /* a refused position changes nothing */
    assert_int_equal(loam_data_next(e, 2, &b, &err), LOAM_OK);
    assert_memory_equal(a.ids, b.ids, 64 * sizeof *a.ids);
    loam_data_free(d);
    loam_data_free(e);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_token_once), cmocka_unit_test(test_packing),  cmocka_unit_test(test_order),
        cmocka_unit_test(test_hold_out),         cmocka_unit_test(test_masks),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_documents),   cmocka_unit_test(test_position),
    };
    vocabulary = vocabulary_open(words, 300, false);
    chat_vocabulary = vocabulary_open(words, 300, true);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    loam_model_free(vocabulary);
    loam_model_free(chat_vocabulary);
    return failed;
}
