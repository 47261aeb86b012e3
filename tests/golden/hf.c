/* hf.c - Hugging Face folders against the logits of the library that wrote them (tools/make-hf-folders), opened as they are and
 * converted: both ways give the same bits. Then adapters of PEFT, switched on and merged; and vocabularies by their ids. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch_files.h"
#include "base/js.h"
#include "data.h"
#include "loam/adapter.h"
#include "loam/quantize.h"
#include "loam/tokenizer.h"

#include "check.h"

#define LIMIT 1e-6

/* Folders inside a folder, sorted. */
static int list_folders(const char *folder, char names[ARCH_FILES][64])
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n < ARCH_FILES;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.' && strcmp(e->d_name, "adapters") && strcmp(e->d_name, "vocab"))
            snprintf(names[n++], 64, "%.63s", e->d_name);
    if (d) closedir(d);
    qsort(names, (size_t)n, 64, (int (*)(const void *, const void *))strcmp);
    return n;
}

static loam_model *open_model(const char *path)
{
    loam_error err;
    loam_model *m;
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    return m;
}

static float *outputs(const loam_model *m, const arch_expected *e)
{
    loam_error err;
    loam_context_params p = loam_context_defaults();
    loam_context *ctx;
    int8_t *wanted = malloc((size_t)e->n);
    bool embd = !loam_model_has_decoder(m);
    p.n_ctx = p.n_batch = p.n_ubatch = (uint32_t)e->n;
    p.n_threads = p.n_threads_batch = 1;
    p.embeddings = embd;
    p.pooling = LOAM_POOLING_NONE;
    memset(wanted, 1, (size_t)e->n);
    assert_int_equal(loam_context_new(&ctx, m, &p, &err), LOAM_OK);
    loam_batch batch = { .n_tokens = e->n, .token = e->ids, .logits = wanted };
    if (loam_model_has_encoder(m)) assert_int_equal(loam_encode(ctx, &batch, &err), 0);
    if (!embd) assert_int_equal(loam_decode(ctx, &batch, &err), 0);
    float *rows = malloc((size_t)e->n * e->width * sizeof *rows);
    for (int i = 0; i < e->n; i++)
        memcpy(rows + (size_t)i * e->width, embd ? loam_embeddings(ctx, i) : loam_logits(ctx, i), e->width * sizeof *rows);
    loam_context_free(ctx);
    free(wanted);
    return rows;
}

static bool check_folder(const char *folder, const char *name)
{
    char path[600], converted[512];
    loam_error err;
    arch_expected e;
    snprintf(path, sizeof path, "%s/%.63s", folder, name);
    loam_model *m = open_model(path);
    if (!arch_load(&e, folder, name, m)) fail_msg("%s: expected data is missing", name);
    double d = arch_distance(m, &e, &err);
    float *a = outputs(m, &e);
    loam_model_free(m);

    loam_quantize_params p = loam_quantize_defaults();
    p.type = "copy";
    if (loam_quantize_file(path, scratch_path(converted, "converted.gguf"), &p, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    m = open_model(converted);
    float *b = outputs(m, &e);
    bool same = memcmp(a, b, (size_t)e.n * e.width * sizeof *a) == 0;
    loam_model_free(m);
    remove(converted);
    printf("  %-18s nmse %.2e%s, converted: %s\n", name, d, d < 0 || d > LIMIT ? " TOO FAR" : "", same ? "the same bits" : "DIFFERS");
    free(a);
    free(b);
    arch_free(&e);
    return d >= 0 && d <= LIMIT && same;
}

static void folders(void **state)
{
    static char names[ARCH_FILES][64];
    char folder[512];
    (void)state;
    golden_path(folder, "hf");
    int n = list_folders(folder, names), bad = 0;
    assert_true(n > 25);
    for (int i = 0; i < n; i++) bad += !check_folder(folder, names[i]);
    assert_int_equal(bad, 0);
}

static void tinystories(void **state)
{
    char path[512], converted[512];
    loam_error err;
    int32_t ids[40];
    (void)state;
    SHARED_OR_SKIP(path, "models/tinystories-656K");
    for (int i = 0; i < 40; i++) ids[i] = i * 37 % 2048;
    arch_expected e = { .ids = ids, .n = 40, .width = 2048 };
    loam_quantize_params p = loam_quantize_defaults();
    p.type = "copy";
    assert_int_equal(loam_quantize_file(path, scratch_path(converted, "stories.gguf"), &p, NULL, &err), LOAM_OK);
    loam_model *m = open_model(path), *c = open_model(converted);
    float *a = outputs(m, &e), *b = outputs(c, &e);
    assert_memory_equal(a, b, 40 * 2048 * sizeof *a);
    free(a);
    free(b);
    loam_model_free(m);
    loam_model_free(c);
    remove(converted);
}

/* ---- adapters ---- */

static double with_adapter(const loam_model *m, const char *path, const arch_expected *e)
{
    loam_error err;
    loam_adapter *a;
    loam_context_params p = loam_context_defaults();
    loam_context *ctx;
    int8_t wanted[64];
    p.n_ctx = p.n_batch = (uint32_t)e->n;
    p.type_k = p.type_v = LOAM_F32;
    memset(wanted, 1, sizeof wanted);
    if (loam_adapter_open(&a, m, path, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(loam_context_new(&ctx, m, &p, &err), LOAM_OK);
    assert_int_equal(loam_context_set_adapters(ctx, &a, (const float[]){ 1 }, 1, &err), LOAM_OK);
    loam_batch batch = { .n_tokens = e->n, .token = e->ids, .logits = wanted };
    assert_int_equal(loam_decode(ctx, &batch, &err), 0);
    double d = nmse(loam_logits(ctx, 0), e->logits, e->width);
    for (int i = 1; i < e->n; i++) {
        double x = nmse(loam_logits(ctx, i), e->logits + (size_t)i * e->width, e->width);
        d = x > d ? x : d;
    }
    loam_context_free(ctx);
    loam_adapter_free(a);
    return d;
}

static void adapters(void **state)
{
    static char names[ARCH_FILES][64];
    char folder[512], path[700], base[700];
    (void)state;
    golden_path(folder, "hf/adapters");
    int n = list_folders(folder, names);
    assert_true(n >= 4);
    for (int i = 0; i < n; i++) {
        arch_expected e = { 0 };
        size_t count, n_ids;
        snprintf(path, sizeof path, "%s/%.63s/base", folder, names[i]);
        char *of = slurp(path, NULL);
        assert_non_null(of);
        snprintf(base, sizeof base, "%s/../%.63s", folder, of);
        loam_model *m = open_model(base);
        snprintf(path, sizeof path, "%s/../%.63s.tokens.txt", folder, of);
        e.ids = slurp_ids(path, &n_ids);
        snprintf(path, sizeof path, "%s/%.63s.logits.f32", folder, names[i]);
        e.logits = slurp_f32(path, &count);
        assert_true(e.ids && e.logits && n_ids <= 64);
        e.n = (int)n_ids;
        e.width = count / n_ids;
        snprintf(path, sizeof path, "%s/%.63s", folder, names[i]);
        double d = with_adapter(m, path, &e);
        printf("  %-18s largest nmse of a row %.2e\n", names[i], d);
        assert_true(d < 1e-9);
        loam_model_free(m);
        free(of);
        arch_free(&e);
    }
}

/* ---- vocabularies ---- */

static void check_cases(const loam_tokenizer *t, const char *name, char *cases)
{
    int n = 0;
    for (char *line = cases, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        js *c;
        text_view text;
        loam_error err;
        loam_token *ids;
        size_t count;
        assert_int_equal(js_parse(&c, (text_view){ line, (size_t)(end - line) }, 0, name, &err), LOAM_OK);
        const js *want = js_get(c, "ids");
        assert_true(js_text(js_get(c, "text"), &text));
        assert_int_equal(loam_tokenizer_encode_all(t, text.data, text.len, LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL, &ids, &count, &err), LOAM_OK);
        bool same = count == js_count(want);
        for (size_t i = 0; same && i < count; i++) {
            int64_t id = -1;
            js_int(js_at(want, i), &id);
            same = id == ids[i];
        }
        if (!same) fail_msg("%s: '%.*s' gives %zu ids, %zu other ones are expected", name, (int)text.len, text.data, count, js_count(want));
        loam_tokens_free(ids);
        js_free(c);
    }
    printf("  %-18s %d texts\n", name, n);
    assert_true(n > 10);
}

static void vocabularies(void **state)
{
    static char names[ARCH_FILES][64];
    char folder[512], path[700];
    (void)state;
    golden_path(folder, "hf/vocab");
    int n = list_folders(folder, names);
    assert_true(n >= 9);
    for (int i = 0; i < n; i++) {
        loam_error err;
        loam_model *m;
        loam_model_params p = loam_model_defaults();
        p.vocab_only = true;
        snprintf(path, sizeof path, "%s/%.63s", folder, names[i]);
        if (loam_model_open(&m, path, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
        snprintf(path, sizeof path, "%s/%.63s.cases.jsonl", folder, names[i]);
        char *cases = slurp(path, NULL);
        assert_non_null(cases);
        check_cases(loam_model_tokenizer(m), names[i], cases);
        free(cases);
        loam_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(folders), cmocka_unit_test(tinystories), cmocka_unit_test(adapters),
                                        cmocka_unit_test(vocabularies) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
