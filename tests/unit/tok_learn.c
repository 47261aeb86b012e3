/* Learning a vocabulary: against a slow reference that counts everything anew before each merge; the written file gives the
 * same segmentation when it is read; refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "loam/model.h"
#include "loam/tokenizer.h"
#include "tokenizer/learn.h"

#define WORDS 400

/* ---- the reference: words of symbols, texts as they are ---- */

typedef struct ref_word {
    char text[32];
    int n, symbols[32];
    long count;
} ref_word;

typedef struct reference {
    ref_word words[WORDS];
    int n_words;
    char names[2000][32];
    int lens[2000], n_names;
    int left[2000], right[2000], n_merges;
} reference;

/* Words of lower-case letters with at most one space before them: all splitters agree on those. */
static void ref_add(reference *r, const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = 1 + strcspn(p + 1, " ");
        int k = 0;
        while (k < r->n_words && (strlen(r->words[k].text) != n || memcmp(r->words[k].text, p, n))) k++;
        if (k == r->n_words) {
            ref_word *w = &r->words[r->n_words++];
            memset(w, 0, sizeof *w);
            memcpy(w->text, p, n);
            for (size_t i = 0; i < n; i++) w->symbols[w->n++] = (unsigned char)p[i];
        }
        r->words[k].count++;
        p += n;
    }
}

static bool ref_merge(reference *r, long least)
{
    static long counts[600][600];
    memset(counts, 0, sizeof counts);
    for (int w = 0; w < r->n_words; w++)
        for (int i = 0; i + 1 < r->words[w].n; i++) counts[r->words[w].symbols[i]][r->words[w].symbols[i + 1]] += r->words[w].count;
    int left = 0, right = 0;
    for (int a = 0; a < 600; a++)
        for (int b = 0; b < 600; b++)
            if (counts[a][b] > counts[left][right]) left = a, right = b;
    if (counts[left][right] < least) return false;
    char name[64];
    int len = r->lens[left] + r->lens[right], id = 0;
    memcpy(name, r->names[left], (size_t)r->lens[left]);
    memcpy(name + r->lens[left], r->names[right], (size_t)r->lens[right]);
    while (id < r->n_names && (r->lens[id] != len || memcmp(r->names[id], name, (size_t)len))) id++;
    if (id == r->n_names) {
        memcpy(r->names[id], name, (size_t)len);
        r->lens[r->n_names++] = len;
    }
    r->left[r->n_merges] = left;
    r->right[r->n_merges++] = right;
    for (int w = 0; w < r->n_words; w++) {
        ref_word *word = &r->words[w];
        int out = 0;
        for (int i = 0; i < word->n; i++) {
            bool here = i + 1 < word->n && word->symbols[i] == left && word->symbols[i + 1] == right;
            word->symbols[out++] = here ? id : word->symbols[i];
            i += here;
        }
        word->n = out;
    }
    return true;
}

/* A text whose words have shared parts and repeated letters. */
static char *make_text(uint64_t seed, size_t n_words)
{
    static const char *const parts[] = { "a", "b", "an", "ba", "na", "aa", "ing", "st", "re", "s" };
    dice d = { seed };
    char *text = malloc(n_words * 24 + 1), *p = text;
    for (size_t i = 0; i < n_words; i++) {
        if (i) *p++ = ' ';
        for (uint32_t k = 1 + dice_below(&d, 3); k > 0; k--) p += sprintf(p, "%s", parts[dice_below(&d, 10)]);
    }
    *p = 0;
    return text;
}

static void test_equals_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        reference *r = calloc(1, sizeof *r);
        for (int i = 0; i < 256; i++) r->names[i][0] = (char)i, r->lens[i] = 1;
        r->n_names = 256;
        char *text = make_text(seed, 600);
        loam_error err;
        bpe_learner *l;
        assert_int_equal(learner_new(&l, "qwen2", &err), LOAM_OK);
        assert_int_equal(learner_add(l, text, strlen(text), &err), LOAM_OK);
        assert_int_equal(learner_learn(l, 330, 2, NULL, NULL, &err), LOAM_OK);
        ref_add(r, text);
        while (r->n_names < 330 && ref_merge(r, 2)) {
        }
        uint32_t n_names, n_merges;
        const text_view *names = learner_symbols(l, &n_names);
        const bpe_merge *merges = learner_merges(l, &n_merges);
        assert_int_equal(n_merges, r->n_merges);
        assert_int_equal(n_names, r->n_names);
        assert_true(n_merges > 20);
        for (uint32_t i = 0; i < n_merges; i++) {
            assert_int_equal(merges[i].left, r->left[i]);
            assert_int_equal(merges[i].right, r->right[i]);
        }
        for (uint32_t i = 0; i < n_names; i++) {
            assert_int_equal(names[i].len, r->lens[i]);
            assert_memory_equal(names[i].data, r->names[i], names[i].len);
        }
        learner_free(l);
        free(text);
        free(r);
    }
}

/* The words of the reference, segmented by its merges, against the tokenizer made from the file. */
static void test_same_when_read(void **state)
{
    (void)state;
    char path[512];
    scratch_path(path, "learned.gguf");
    reference *r = calloc(1, sizeof *r);
    for (int i = 0; i < 256; i++) r->names[i][0] = (char)i, r->lens[i] = 1;
    r->n_names = 256;
    char *text = make_text(9, 900);
    ref_add(r, text);
    while (r->n_names < 320 && ref_merge(r, 2)) {
    }
    loam_error err;
    loam_vocab_params p = loam_vocab_defaults();
    loam_vocab_builder *b;
    int32_t n;
    p.n_vocab = 322;
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_add(b, text, strlen(text), &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_write(b, path, &n, &err), LOAM_OK);
    assert_int_equal(n, r->n_names + 2);
    assert_int_equal(loam_vocab_builder_write(b, path, &n, &err), LOAM_E_ARG);
    loam_vocab_builder_free(b);
    loam_model_params mp = loam_model_defaults();
    mp.vocab_only = true;
    loam_model *m;
    assert_int_equal(loam_model_open(&m, path, &mp, &err), LOAM_OK);
    const loam_tokenizer *t = loam_model_tokenizer(m);
    assert_int_equal(loam_tokenizer_size(t), n);
    for (int w = 0; w < r->n_words; w++) {
        loam_token ids[64];
        size_t count;
        assert_int_equal(loam_tokenizer_encode(t, r->words[w].text, strlen(r->words[w].text), 0, ids, 64, &count, &err), LOAM_OK);
        assert_int_equal(count, r->words[w].n);
        for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], r->words[w].symbols[i] + 2);
    }
    /* Any bytes come back as they were. */
    static const char odd[] = "Zo\xC3\xAB saw 12 \xF0\x9F\xA6\x8A\n\n  and\tleft. <s>";
    loam_token ids[128];
    size_t count, len;
    char back[128];
    assert_int_equal(loam_tokenizer_encode(t, odd, sizeof odd - 1, 0, ids, 128, &count, &err), LOAM_OK);
    assert_int_equal(loam_tokenizer_decode(t, ids, count, 0, back, sizeof back, &len, &err), LOAM_OK);
    assert_int_equal(len, sizeof odd - 1);
    assert_memory_equal(back, odd, len);
    loam_model_free(m);
    unlink(path);
    free(text);
    free(r);
}

static uint32_t learn(const char *const *texts, size_t n, bpe_merge *out, uint32_t cap)
{
    loam_error err;
    bpe_learner *l;
    uint32_t count;
    assert_int_equal(learner_new(&l, "qwen2", &err), LOAM_OK);
    for (size_t i = 0; i < n; i++) assert_int_equal(learner_add(l, texts[i], strlen(texts[i]), &err), LOAM_OK);
    assert_int_equal(learner_learn(l, 300, 2, NULL, NULL, &err), LOAM_OK);
    const bpe_merge *m = learner_merges(l, &count);
    assert_true(count <= cap);
    memcpy(out, m, count * sizeof *m);
    learner_free(l);
    return count;
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    bpe_merge a[64], b[64];
    const char *forth[] = { "the cat sat on the mat", "a bat and a rat sat there", "banana bandana" };
    const char *back[] = { "banana bandana", "a bat and a rat sat there", "the cat sat on the mat" };
    uint32_t n = learn(forth, 3, a, 64);
    assert_true(n > 5);
    assert_int_equal(learn(back, 3, b, 64), n);
    assert_memory_equal(a, b, n * sizeof *a);
}

static void test_refusals(void **state)
{
    (void)state;
    loam_error err;
    loam_vocab_builder *b;
    loam_vocab_params p = loam_vocab_defaults();
    p.n_vocab = 257;
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "257"));
    p = loam_vocab_defaults();
    p.pre = "no-such-thing";
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "no-such-thing"));
    p.pre = "gemma4";
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_E_ARG);
    p = loam_vocab_defaults();
    const char *twice[] = { "<x>", "<s>" };
    p.special = twice;
    p.n_special = 2;
    assert_int_equal(loam_vocab_builder_create(&b, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "<s>"));
    assert_int_equal(loam_vocab_builder_create(&b, NULL, &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_write(b, "/tmp/never.gguf", NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "no text"));
    loam_vocab_builder_free(b);
}

static void test_json(void **state)
{
    (void)state;
    char path[512];
    scratch_path(path, "tokenizer.json");
    loam_error err;
    loam_vocab_builder *b;
    assert_int_equal(loam_vocab_builder_create(&b, NULL, &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_add(b, "tap tap \"tap\"", 13, &err), LOAM_OK);
    assert_int_equal(loam_vocab_builder_write(b, path, NULL, &err), LOAM_OK);
    loam_vocab_builder_free(b);
    char *text = slurp(path, NULL);
    assert_non_null(strstr(text, "\"a p\""));
    assert_non_null(strstr(text, "\"t ap\""));
    assert_non_null(strstr(text, "\"\\\"\": 36")); /* the byte 34, behind two special tokens */
    assert_non_null(strstr(text, "\"type\": \"BPE\""));
    free(text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_reference), cmocka_unit_test(test_same_when_read), cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
