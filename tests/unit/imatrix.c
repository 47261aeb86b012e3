/* imatrix.c - importance matrices: what is counted is the sum of squares of the inputs, whatever the batches and the type of the
 * weights; experts have their own; adding up, files there and back, the older form, hostile files, refusals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"
#include "data.h"
#include "imatrix/imatrix.h"
#include "loam/debug.h"
#include "loam/gguf.h"
#include "raw.h"

#define TOKENS 24

static char path[512], path2[512];
static int32_t ids[TOKENS];

static loam_model *model_of(const char *type)
{
    loam_model *m;
    loam_error err;
    if (type && loam_debug_make_model(path, "tiny", type, 1, &err) != LOAM_OK) fail_msg("%s", err.message);
    if (loam_model_open(&m, path, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    return m;
}

static loam_context *context_of(const loam_model *m, uint32_t n_ubatch)
{
    loam_context *ctx;
    loam_error err;
    loam_context_params p = loam_context_defaults();
    p.n_threads = 2, p.n_ubatch = n_ubatch, p.type_k = p.type_v = LOAM_F32;
    if (loam_context_new(&ctx, m, &p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return ctx;
}

static loam_imatrix *empty(void)
{
    loam_imatrix *im;
    assert_int_equal(loam_imatrix_new(&im, NULL), LOAM_OK);
    return im;
}

/* Counts ids [first, first + n) in batches of `batch`. */
static void count(loam_imatrix *im, loam_context *ctx, int first, int n, int batch)
{
    loam_error err;
    for (int at = 0; at < n; at += batch) {
        loam_batch b = { .n_tokens = n - at < batch ? n - at : batch, .token = ids + first + at };
        if (loam_imatrix_decode(im, ctx, &b, &err)) fail_msg("%s", err.message);
    }
}

static void same(const loam_imatrix *a, const loam_imatrix *b, double tolerance)
{
    loam_imatrix_entry x;
    assert_int_equal(loam_imatrix_n_entries(a), loam_imatrix_n_entries(b));
    for (size_t i = 0; loam_imatrix_entry_at(a, i, &x); i++) {
        const imatrix_entry *y = imatrix_find(b, x.name);
        assert_non_null(y);
        assert_true(x.n == y->n && x.n_mats == y->n_mats && x.n_counts == y->n_counts);
        for (int64_t k = 0; k < x.n_counts; k++) assert_int_equal(x.counts[k], y->counts[k]);
        for (int64_t k = 0; k < x.n * x.n_mats; k++) assert_true(fabs(x.sums[k] - y->sums[k]) <= tolerance * (x.sums[k] + 1e-12));
    }
}

/* ---- what is counted ---- */

/* Sums of one weight's input as an observer sees it. */
typedef struct seen {
    const char *weight;
    double sums[2048];
    int64_t rows;
} seen;

static bool look(void *user, const loam_node *n, bool ask)
{
    seen *s = user;
    if (strcmp(n->op, "MATMUL") != 0 || strcmp(n->src[0]->name, s->weight) != 0) return false;
    if (ask) return true;
    for (int64_t t = 0; t < n->src[1]->ne[2]; t++, s->rows++)
        for (int64_t j = 0; j < n->src[0]->ne[0]; j++) {
            double x = (double)*(const float *)(const void *)((const char *)n->src[1]->data + t * n->src[1]->nb[2] + j * 4);
            s->sums[j] += x * x;
        }
    return true;
}

static void counts_squares(void **unused)
{
    (void)unused;
    static const char *const names[] = { "blk.0.attn_q.weight", "blk.1.attn_output.weight", "blk.2.ffn_down.weight", "blk.3.ffn_up.weight" };
    loam_model *m = model_of("f32");
    loam_context *ctx = context_of(m, 512);
    loam_imatrix *im = empty();
    int8_t all[TOKENS];
    loam_error err;
    memset(all, 1, sizeof all);
    loam_batch b = { .n_tokens = TOKENS, .token = ids, .logits = all };
    count(im, ctx, 0, TOKENS, TOKENS);
    assert_int_equal(loam_imatrix_n_entries(im), 4 * 7);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static seen s;
        s = (seen){ .weight = names[i] };
        loam_memory_clear(ctx);
        loam_context_set_observer(ctx, look, &s);
        assert_int_equal(loam_decode(ctx, &b, &err), 0);
        loam_context_set_observer(ctx, NULL, NULL);
        const imatrix_entry *e = imatrix_find(im, names[i]);
        assert_non_null(e);
        assert_int_equal(e->counts[0], TOKENS); /* all tokens, although one output was wanted */
        assert_int_equal(s.rows, TOKENS);
        for (int64_t j = 0; j < e->n; j++) assert_true(e->sums[j] == s.sums[j]);
    }
    const imatrix_entry *q = imatrix_find(im, "blk.0.attn_q.weight"), *v = imatrix_find(im, "blk.0.attn_v.weight");
    assert_memory_equal(q->sums, v->sums, (size_t)q->n * sizeof *q->sums);
    assert_null(imatrix_find(im, "output.weight"));
    loam_imatrix_free(im);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* Decoding gives the same logits; batches and micro-batches change nothing but the order of additions. */
static void any_batch(void **unused)
{
    (void)unused;
    static const char *const types[] = { "f32", "q8_0", "q4_K_M" };
    for (size_t i = 0; i < 3; i++) {
        loam_model *m = model_of(types[i]);
        loam_context *one = context_of(m, 512), *small = context_of(m, 5);
        loam_imatrix *a = empty(), *b = empty(), *c = empty();
        count(a, one, 0, TOKENS, TOKENS);
        count(b, small, 0, TOKENS, TOKENS);
        same(a, b, 1e-12);
        size_t bytes = (size_t)loam_model_n_vocab(m) * sizeof(float);
        float *counted = malloc(bytes);
        memcpy(counted, loam_logits(one, -1), bytes);
        loam_memory_clear(one);
        loam_batch plain = { .n_tokens = TOKENS, .token = ids };
        assert_int_equal(loam_decode(one, &plain, NULL), 0);
        assert_memory_equal(counted, loam_logits(one, -1), bytes);
        free(counted);
        loam_memory_clear(one);
        count(c, one, 0, TOKENS, 7);
        same(a, c, 1e-12);
        loam_imatrix_free(a);
        loam_imatrix_free(b);
        loam_imatrix_free(c);
        loam_context_free(one);
        loam_context_free(small);
        loam_model_free(m);
    }
}

static void experts(void **unused)
{
    (void)unused;
    char file[512];
    loam_model *m;
    loam_error err;
    loam_imatrix_entry e;
    int stacks = 0;
    if (loam_model_open(&m, golden_path(file, "arch/olmoe.gguf"), NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_context *ctx = context_of(m, 512), *small = context_of(m, 4);
    loam_imatrix *im = empty(), *other = empty();
    count(im, ctx, 0, TOKENS, TOKENS);
    count(other, small, 0, TOKENS, 9);
    same(im, other, 1e-12);
    for (size_t i = 0; loam_imatrix_entry_at(im, i, &e); i++) {
        if (!strstr(e.name, "_exps.weight")) continue;
        int64_t rows = 0;
        stacks++;
        assert_true(e.n_mats > 1 && e.n_counts == e.n_mats);
        for (int64_t k = 0; k < e.n_mats; k++) {
            double sum = 0;
            rows += e.counts[k];
            for (int64_t j = 0; j < e.n; j++) sum += e.sums[k * e.n + j];
            assert_int_equal(sum > 0, e.counts[k] > 0);
        }
        assert_int_equal(rows % TOKENS, 0);
        assert_true(rows >= TOKENS); /* each token goes to its experts */
    }
    assert_true(stacks > 3);
    loam_imatrix_free(im);
    loam_imatrix_free(other);
    loam_context_free(ctx);
    loam_context_free(small);
    loam_model_free(m);
}

static bool stop(void *user)
{
    return --*(int *)user < 0;
}

static void all_or_nothing(void **unused)
{
    (void)unused;
    loam_model *m = model_of("q8_0");
    loam_context *ctx = context_of(m, 8);
    loam_imatrix *im = empty(), *before = empty();
    loam_error err;
    count(im, ctx, 0, 8, 8);
    assert_int_equal(loam_imatrix_merge(before, im, NULL), LOAM_OK);
    int polls = 40;
    loam_context_set_abort(ctx, stop, &polls);
    loam_batch b = { .n_tokens = TOKENS - 8, .token = ids + 8 };
    assert_int_equal(loam_imatrix_decode(im, ctx, &b, &err), 2);
    loam_context_set_abort(ctx, NULL, NULL);
    same(before, im, 0);
    int32_t bad = 1 << 30;
    loam_batch wrong = { .n_tokens = 1, .token = &bad };
    assert_int_equal(loam_imatrix_decode(im, ctx, &wrong, &err), -1);
    assert_int_equal(loam_imatrix_decode(NULL, ctx, &wrong, &err), -1);
    same(before, im, 0);
    loam_imatrix_free(im);
    loam_imatrix_free(before);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* ---- files ---- */

static void there_and_back(void **unused)
{
    (void)unused;
    loam_model *m = model_of("f32");
    loam_context *ctx = context_of(m, 512);
    loam_imatrix *whole = empty(), *first = empty(), *second = empty(), *read;
    loam_error err;
    count(whole, ctx, 0, TOKENS, TOKENS);
    loam_memory_clear(ctx);
    count(first, ctx, 0, 10, 10);
    count(second, ctx, 10, TOKENS - 10, TOKENS);
    loam_imatrix_set_chunk_size(first, 5);
    assert_int_equal(loam_imatrix_add_dataset(first, "one", NULL), LOAM_OK);
    assert_int_equal(loam_imatrix_add_dataset(first, "one", NULL), LOAM_OK);
    assert_int_equal(loam_imatrix_add_dataset(second, "two", NULL), LOAM_OK);
    if (loam_imatrix_save(first, path2, &err) != LOAM_OK) fail_msg("%s", err.message);
    if (loam_imatrix_open(&read, path2, &err) != LOAM_OK) fail_msg("%s", err.message);
    same(read, first, 1e-6);
    assert_int_equal(loam_imatrix_chunk_size(read), 5);
    assert_int_equal(loam_imatrix_chunk_count(read), 2);
    assert_int_equal(loam_imatrix_merge(read, second, &err), LOAM_OK);
    same(read, whole, 1e-6);
    assert_int_equal(read->n_datasets, 2);
    assert_string_equal(read->datasets[1], "two");
    loam_gguf *f;
    loam_gguf_tensor t, last = { .name = "" };
    assert_int_equal(loam_gguf_open(&f, path2, NULL, &err), LOAM_OK);
    for (uint32_t i = 0; loam_gguf_tensor_at(f, i, &t); i += 2) {
        assert_true(strcmp(last.name, t.name) < 0); /* sorted by name */
        last = t;
    }
    loam_gguf_free(f);
    loam_imatrix *none = empty();
    assert_int_equal(loam_imatrix_save(none, path2, &err), LOAM_E_ARG);
    loam_imatrix_free(none);
    loam_imatrix_free(read);
    loam_imatrix_free(whole);
    loam_imatrix_free(first);
    loam_imatrix_free(second);
    loam_context_free(ctx);
    loam_model_free(m);
}

/* One entry made by hand. */
static void put(loam_imatrix *im, const char *name, imatrix_shape s, const double *sums, const int64_t *counts)
{
    imatrix_entry *e;
    assert_int_equal(imatrix_entry_of(im, name, s, &e, NULL), LOAM_OK);
    memcpy(e->sums, sums, (size_t)(s.n * s.n_mats) * sizeof *sums);
    memcpy(e->counts, counts, (size_t)s.n_counts * sizeof *counts);
}

static void weights_and_shapes(void **unused)
{
    (void)unused;
    const double sums[6] = { 2, 4, 6, 8, 10, 12 };
    const int64_t counts[3] = { 2, 0, 4 }, one[1] = { 2 };
    const float want[6] = { 1, 2, 1, 1, 2.5f, 3 };
    float *w;
    loam_error err;
    loam_imatrix *im = empty(), *run = empty(), *other = empty();
    put(im, "blk.0.ffn_up_exps.weight", (imatrix_shape){ 2, 3, 3 }, sums, counts);
    assert_int_equal(imatrix_weights(im, "blk.0.ffn_up_exps.weight", 2, 3, &w, &err), LOAM_OK);
    assert_memory_equal(w, want, sizeof want); /* a matrix that was never met: ones */
    mem_free(w);
    assert_int_equal(imatrix_weights(im, "blk.0.absent.weight", 2, 3, &w, &err), LOAM_OK);
    assert_null(w);
    assert_int_equal(imatrix_weights(im, "blk.0.ffn_up_exps.weight", 3, 2, &w, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "blk.0.ffn_up_exps.weight"));

    /* sums in one run, with one count, for three matrices */
    put(run, "blk.0.ffn_up_exps.weight", (imatrix_shape){ 6, 1, 1 }, sums, one);
    assert_int_equal(imatrix_weights(run, "blk.0.ffn_up_exps.weight", 2, 3, &w, &err), LOAM_OK);
    for (int i = 0; i < 6; i++) assert_true(w[i] == (float)(sums[i] / 2));
    mem_free(w);
    assert_int_equal(loam_imatrix_merge(run, im, &err), LOAM_OK); /* takes the finer shape; its count is everybody's */
    const imatrix_entry *e = imatrix_find(run, "blk.0.ffn_up_exps.weight");
    assert_true(e->n == 2 && e->n_mats == 3 && e->n_counts == 3);
    assert_true(e->counts[0] == 4 && e->counts[1] == 2 && e->counts[2] == 6 && e->sums[5] == 24);
    put(other, "blk.0.ffn_up_exps.weight", (imatrix_shape){ 5, 1, 1 }, sums, one);
    assert_int_equal(loam_imatrix_merge(run, other, &err), LOAM_E_ARG);
    assert_true(e->counts[0] == 4 && e->sums[5] == 24);
    loam_imatrix_free(im);
    loam_imatrix_free(run);
    loam_imatrix_free(other);
}

static void older_form(void **unused)
{
    (void)unused;
    static raw r;
    loam_imatrix *im;
    loam_error err;
    float values[3] = { 3, 6, 9 };
    raw_u32(&r, 1);
    raw_u32(&r, 19);
    raw_bytes(&r, "blk.0.attn_q.weight", 19);
    raw_u32(&r, 3); /* calls */
    raw_u32(&r, 3);
    raw_bytes(&r, values, sizeof values);
    size_t entries = r.size;
    raw_u32(&r, 3);
    raw_u32(&r, 4);
    raw_bytes(&r, "text", 4);
    for (int tail = 0; tail < 2; tail++) {
        float *w;
        if (imatrix_open_memory(&im, r.data, tail ? r.size : entries, "old", &err) != LOAM_OK) fail_msg("%s", err.message);
        assert_int_equal(imatrix_weights(im, "blk.0.attn_q.weight", 3, 1, &w, &err), LOAM_OK);
        assert_true(w[0] == 1 && w[1] == 2 && w[2] == 3);
        mem_free(w);
        assert_int_equal(im->n_datasets, tail);
        loam_imatrix_free(im);
    }
    for (size_t cut = 0; cut < r.size; cut++) {
        if (cut >= entries && cut < entries + 8) continue;
        loam_status status = imatrix_open_memory(&im, r.data, cut, "old", &err);
        assert_int_equal(status, LOAM_E_FORMAT);
        assert_null(im);
    }
}

/* A GGUF matrix with one value changed is refused, and the message says what. */
static void refuse(int what, loam_status want, const char *part)
{
    loam_gguf_builder *b;
    loam_imatrix *im;
    loam_error err = { 0 };
    float sums[4] = { 1, 2, 3, 4 }, counts[2] = { 5, 6 };
    int64_t ne[4] = { 2, 2, 1, 1 }, nc[4] = { 1, what == 1 ? 1 : 2, 1, 1 };
    const char *sets[1] = { "text" };
    size_t lens[1] = { 4 };
    if (what == 2) sums[3] = -1;
    if (what == 3) sums[1] = NAN;
    if (what == 4) counts[0] = INFINITY;
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.type", what == 5 ? "model" : "imatrix", what == 5 ? 5 : 7);
    if (what != 6) loam_gguf_set_u32(b, "imatrix.chunk_count", 1);
    loam_gguf_set_u32(b, "imatrix.chunk_size", what == 7 ? 0 : 512);
    if (what != 8) loam_gguf_set_texts(b, "imatrix.datasets", sets, lens, 1);
    loam_gguf_set_tensor(b, "a.weight.in_sum2", what == 9 ? LOAM_I32 : LOAM_F32, ne, sums);
    if (what != 10) loam_gguf_set_tensor(b, what == 11 ? "b.weight.counts" : "a.weight.counts", LOAM_F32, nc, counts);
    if (what == 12) loam_gguf_set_tensor(b, "a.weight", LOAM_F32, ne, sums);
    if (loam_gguf_write(b, path2, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
    loam_status status = loam_imatrix_open(&im, path2, &err);
    if (status != want || (part && !strstr(err.message, part))) fail_msg("%d: %d, '%s'; expected %d and '%s'", what, status, err.message, want, part);
    loam_imatrix_free(im);
    remove(path2);
}

static void hostile(void **unused)
{
    (void)unused;
    loam_imatrix *im;
    loam_error err;
    refuse(0, LOAM_OK, NULL);
    refuse(1, LOAM_OK, NULL); /* one count for both matrices */
    refuse(2, LOAM_E_NUMERIC, "a.weight.in_sum2: column 1 of matrix 1 is -1");
    refuse(3, LOAM_E_NUMERIC, "a.weight.in_sum2: column 1 of matrix 0 is");
    refuse(4, LOAM_E_NUMERIC, "a.weight.counts");
    refuse(5, LOAM_E_FORMAT, "general.type");
    refuse(6, LOAM_E_FORMAT, "imatrix.chunk_count");
    refuse(7, LOAM_E_FORMAT, "imatrix.chunk_size");
    refuse(8, LOAM_E_FORMAT, "imatrix.datasets");
    refuse(9, LOAM_E_FORMAT, "a.weight.in_sum2");
    refuse(10, LOAM_E_FORMAT, "has no .counts beside it");
    refuse(11, LOAM_E_FORMAT, "beside it");
    refuse(12, LOAM_E_FORMAT, "a.weight belongs in no importance matrix");
    assert_int_equal(loam_imatrix_open(&im, "/no-such-file", &err), LOAM_E_IO);
}

int main(void)
{
    dice d = { 11 };
    for (int i = 0; i < TOKENS; i++) ids[i] = (int32_t)dice_below(&d, 37) + 3;
    scratch_path(path, "model.gguf");
    scratch_path(path2, "matrix.gguf");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_squares), cmocka_unit_test(any_batch), cmocka_unit_test(experts), cmocka_unit_test(all_or_nothing),
        cmocka_unit_test(there_and_back), cmocka_unit_test(weights_and_shapes), cmocka_unit_test(older_form), cmocka_unit_test(hostile),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    remove(path2);
    return failed;
}
