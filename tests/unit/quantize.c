/* quantize.c - quantizing whole files: every value as its type's codec gives it, whatever the threads and pieces; metadata;
 * refusals that leave both files as they were. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data.h"
#include "loam/gguf.h"
#include "loam/quant.h"
#include "loam/quantize.h"

#define COLS 256
#define ROWS 70

static char in[512], out[512];
static float matrix[ROWS * COLS], vector[COLS];

/* A small file: two matrices (one of rows that 32 does not divide), a norm, a vector. */
static void make_file(int type, const void *data)
{
    loam_gguf_builder *b;
    loam_error err;
    int64_t ne[4] = { COLS, ROWS, 1, 1 }, odd[4] = { 40, 8, 1, 1 }, flat[4] = { COLS, 1, 1, 1 };
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.architecture", "llama", 5);
    loam_gguf_set_u32(b, "llama.block_count", 1);
    loam_gguf_set_u32(b, "general.file_type", 0);
    loam_gguf_set_text(b, "some.key", "kept", 4);
    loam_gguf_set_tensor(b, "blk.0.ffn_up.weight", type, ne, data);
    loam_gguf_set_tensor(b, "blk.0.ffn_gate.weight", LOAM_F32, odd, matrix);
    loam_gguf_set_tensor(b, "blk.0.ffn_norm.weight", LOAM_F32, flat, vector);
    if (loam_gguf_write(b, in, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
}

static void converts(void **unused)
{
    (void)unused;
    static uint8_t want[ROWS * COLS * 4];
    const struct {
        const char *name;
        int type, odd, file_type;
    } cases[] = {
        { "q8_0", LOAM_Q8_0, LOAM_F16, 7 },
        { "Q4_0", LOAM_Q4_0, LOAM_F16, 2 },
        { "BF16", LOAM_BF16, LOAM_BF16, 32 },
        { "q6_K", LOAM_Q6_K, LOAM_F16, 18 },
    };
    make_file(LOAM_F32, matrix);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int threads = 1; threads <= 3; threads++) {
            loam_quantize_params p = loam_quantize_defaults();
            loam_quantize_result r;
            loam_error err;
            p.type = cases[k].name;
            p.n_threads = threads;
            if (loam_quantize_file(in, out, &p, &r, &err) != LOAM_OK) fail_msg("%s", err.message);
            assert_int_equal(r.n_tensors, 3);
            assert_int_equal(r.n_converted, 2);
            loam_gguf *f;
            loam_gguf_tensor t;
            loam_gguf_value v;
            int64_t n = 0;
            assert_int_equal(loam_gguf_open(&f, out, NULL, &err), LOAM_OK);
            assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_up.weight", &t));
            assert_int_equal(t.type, cases[k].type);
            loam_rows shape = { cases[k].type, ROWS, COLS };
            assert_int_equal(loam_quant_encode(&shape, matrix, NULL, want, t.bytes, &err), LOAM_OK);
            assert_memory_equal(t.data, want, t.bytes);
            assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_gate.weight", &t));
            assert_int_equal(t.type, cases[k].odd);
            assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_norm.weight", &t));
            assert_memory_equal(t.data, vector, sizeof vector);
            assert_true(loam_gguf_key_find(f, "general.file_type", &v) && loam_gguf_int(&v, 0, &n));
            assert_int_equal(n, cases[k].file_type);
            assert_true(loam_gguf_key_find(f, "general.quantization_version", &v) && loam_gguf_int(&v, 0, &n));
            assert_int_equal(n, 2);
            assert_true(loam_gguf_key_find(f, "some.key", &v));
            loam_gguf_free(f);
        }
    remove(out);
}

static bool stop(void *user, const loam_quantize_step *step)
{
    ++*(int *)user;
    return step->done == 0;
}

/* The call fails so, the message names `part`, and no file appears. */
static void refused(const loam_quantize_params *p, const char *to, loam_status want, const char *part)
{
    loam_error err = { 0 };
    loam_status status = loam_quantize_file(in, to, p, NULL, &err);
    if (status != want || !strstr(err.message, part)) fail_msg("%d, '%s'; expected %d and '%s'", status, err.message, want, part);
    if (to == out) assert_int_equal(access(out, F_OK), -1);
}

static void refusals(void **unused)
{
    (void)unused;
    static uint8_t blocks[ROWS * COLS * 2];
    char other[530];
    size_t before, after;
    loam_quantize_params p = loam_quantize_defaults();
    make_file(LOAM_F32, matrix);
    p.type = "q8_1x";
    refused(&p, out, LOAM_E_ARG, "nearest");
    p = loam_quantize_defaults();
    p.n_threads = -1;
    refused(&p, out, LOAM_E_ARG, "n_threads");
    p = loam_quantize_defaults();
    p.struct_size = 3;
    refused(&p, out, LOAM_E_ARG, "struct_size");
    p = loam_quantize_defaults();
    p.type = "iq1_s";
    refused(&p, out, LOAM_E_ARG, "importance matrix");

    char *bytes = slurp(in, &before); /* the output is the input, by name and by link */
    p = loam_quantize_defaults();
    refused(&p, in, LOAM_E_ARG, "is the file that is read");
    snprintf(other, sizeof other, "%s.link", in);
    assert_int_equal(link(in, other), 0);
    refused(&p, other, LOAM_E_ARG, "is the file that is read");
    remove(other);
    assert_int_equal(symlink(in, other), 0);
    refused(&p, other, LOAM_E_ARG, "is the file that is read");
    remove(other);
    char *again = slurp(in, &after);
    assert_int_equal(before, after);
    assert_memory_equal(bytes, again, before);
    free(bytes);
    free(again);

    int calls = 0;
    p.progress = stop;
    p.progress_user = &calls;
    refused(&p, out, LOAM_E_ABORTED, "stopped at tensor");
    assert_true(calls >= 2);
    p = loam_quantize_defaults();
    refused(&p, "/no-such-folder/out.gguf", LOAM_E_IO, "no-such-folder");

    float kept = matrix[3 * COLS + 7]; /* weights that are no numbers, named by place */
    const float odd[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 3; i++) {
        matrix[3 * COLS + 7] = odd[i];
        make_file(LOAM_F32, matrix);
        refused(&p, out, LOAM_E_NUMERIC, "blk.0.ffn_");
        matrix[3 * COLS + 7] = kept;
    }
    matrix[60 * COLS + 9] = NAN;
    make_file(LOAM_F32, matrix);
    refused(&p, out, LOAM_E_NUMERIC, "tensor blk.0.ffn_up.weight: row 60, column 9 is NaN");
    matrix[60 * COLS + 9] = 1;

    loam_rows shape = { LOAM_Q8_0, ROWS, COLS };
    loam_error err;
    uint64_t size;
    assert_int_equal(loam_quant_bytes(&shape, &size, &err), LOAM_OK);
    assert_int_equal(loam_quant_encode(&shape, matrix, NULL, blocks, size, &err), LOAM_OK);
    make_file(LOAM_Q8_0, blocks);
    p.type = "q4_0";
    refused(&p, out, LOAM_E_UNSUPPORTED, "blk.0.ffn_up.weight is q8_0 already");
    p.allow_requantize = true;
    assert_int_equal(loam_quantize_file(in, out, &p, NULL, &err), LOAM_OK);
    remove(out);
}

/* ---- column weights ---- */

#define MATS 3

/* A stack of three matrices and one of another name; a matrix of weights in which the second was never met. */
static loam_imatrix *make_stack(float weights[MATS * COLS])
{
    loam_gguf_builder *b;
    loam_imatrix *im;
    loam_error err;
    static float stack[MATS * 4 * COLS], sums[MATS * COLS], counts[MATS] = { 2, 0, 5 };
    int64_t ne[4] = { COLS, 4, MATS, 1 }, n_sums[4] = { COLS, MATS, 1, 1 }, n_counts[4] = { 1, MATS, 1, 1 };
    const char *set = "text";
    size_t len = 4;
    memcpy(stack, matrix, sizeof stack);
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.architecture", "llama", 5);
    loam_gguf_set_u32(b, "llama.block_count", 1);
    loam_gguf_set_tensor(b, "blk.0.ffn_up_exps.weight", LOAM_F32, ne, stack);
    loam_gguf_set_tensor(b, "blk.0.ffn_gate_exps.weight", LOAM_F32, ne, stack);
    if (loam_gguf_write(b, in, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
    for (int i = 0; i < MATS * COLS; i++) {
        sums[i] = (float)(1 + i % 13) * counts[i / COLS];
        weights[i] = counts[i / COLS] ? (float)(1 + i % 13) : 1;
    }
    assert_int_equal(loam_gguf_builder_create(&b, NULL, false, &err), LOAM_OK);
    loam_gguf_set_text(b, "general.type", "imatrix", 7);
    loam_gguf_set_u32(b, "imatrix.chunk_count", 1);
    loam_gguf_set_u32(b, "imatrix.chunk_size", 1);
    loam_gguf_set_texts(b, "imatrix.datasets", &set, &len, 1);
    loam_gguf_set_tensor(b, "blk.0.ffn_up_exps.weight.in_sum2", LOAM_F32, n_sums, sums);
    loam_gguf_set_tensor(b, "blk.0.ffn_up_exps.weight.counts", LOAM_F32, n_counts, counts);
    if (loam_gguf_write(b, out, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
    if (loam_imatrix_open(&im, out, &err) != LOAM_OK) fail_msg("%s", err.message);
    remove(out);
    return im;
}

static void with_weights(void **unused)
{
    (void)unused;
    static float weights[MATS * COLS];
    static uint8_t want[MATS * 4 * COLS * 4];
    loam_imatrix *im = make_stack(weights);
    loam_quantize_params p = loam_quantize_defaults();
    loam_error err;
    loam_gguf *f;
    loam_gguf_tensor t;
    loam_gguf_value v;
    p.type = "q4_K_S", p.imatrix = im, p.imatrix_file = "the matrix";
    for (int threads = 1; threads <= 3; threads++) { /* pieces of threads begin inside of matrices */
        p.n_threads = threads;
        if (loam_quantize_file(in, out, &p, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
        assert_int_equal(loam_gguf_open(&f, out, NULL, &err), LOAM_OK);
        assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_up_exps.weight", &t) && t.type == LOAM_Q4_K);
        loam_rows shape = { LOAM_Q4_K, 4, COLS };
        for (int m = 0; m < MATS; m++)
            assert_int_equal(loam_quant_encode(&shape, matrix + m * 4 * COLS, weights + m * COLS, want + (uint64_t)m * (t.bytes / MATS),
                                               t.bytes / MATS, &err), LOAM_OK);
        assert_memory_equal(t.data, want, t.bytes);
        uint64_t cursor = 0;
        const char *text;
        size_t len;
        assert_true(loam_gguf_key_find(f, "quantize.imatrix.file", &v) && loam_gguf_text(&v, &cursor, &text, &len) && len == 10);
        assert_true(loam_gguf_key_find(f, "quantize.imatrix.dataset", &v) && loam_gguf_key_find(f, "quantize.imatrix.chunks_count", &v));
        int64_t n = 0;
        assert_true(loam_gguf_key_find(f, "quantize.imatrix.entries_count", &v) && loam_gguf_int(&v, 0, &n) && n == 1);
        loam_gguf_free(f);
    }
    remove(out);
    p.type = "iq2_xs"; /* one has weights, the other has none */
    refused(&p, out, LOAM_E_ARG, "blk.0.ffn_gate_exps.weight: iq2_xs needs an importance matrix, and the one given has no entry");
    loam_quantize_override other = { "gate", LOAM_Q6_K };
    p.overrides = &other, p.n_overrides = 1;
    if (loam_quantize_file(in, out, &p, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    remove(out);
    make_file(LOAM_F32, matrix); /* another model */
    p.type = "q4_K_S";
    refused(&p, out, LOAM_E_ARG, "no entry for any tensor");
    loam_imatrix_free(im);
}

/* A split source: as many parts with the same tensors, and never over the source. */
static void parts(void **unused)
{
    (void)unused;
    char first[600], part[600];
    loam_gguf *f;
    loam_gguf_builder *b;
    loam_gguf_tensor t;
    loam_error err;
    loam_gguf_write_params w = loam_gguf_write_defaults();
    loam_quantize_params p = loam_quantize_defaults();
    w.part_tensors = 1;
    make_file(LOAM_F32, matrix);
    assert_int_equal(loam_gguf_open(&f, in, NULL, &err), LOAM_OK);
    assert_int_equal(loam_gguf_builder_create(&b, f, true, &err), LOAM_OK);
    if (loam_gguf_write(b, in, &w, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_gguf_builder_free(b);
    loam_gguf_free(f);
    snprintf(first, sizeof first, "%.*s-00001-of-00003.gguf", (int)strlen(in) - 5, in);
    p.keep_split = true;
    assert_int_equal(loam_quantize_file(first, in, &p, NULL, &err), LOAM_E_ARG); /* its parts would be those of the source */
    assert_non_null(strstr(err.message, "is the file that is read"));
    if (loam_quantize_file(first, out, &p, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(access(out, F_OK), -1);
    snprintf(part, sizeof part, "%.*s-00001-of-00003.gguf", (int)strlen(out) - 5, out);
    assert_int_equal(loam_gguf_open(&f, part, NULL, &err), LOAM_OK);
    assert_int_equal(loam_gguf_n_parts(f), 3);
    assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_up.weight", &t) && t.type == LOAM_Q8_0 && t.part == 0);
    assert_true(loam_gguf_tensor_find(f, "blk.0.ffn_norm.weight", &t) && t.part == 2);
    loam_gguf_free(f);
    p.keep_split = false;
    if (loam_quantize_file(first, out, &p, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    assert_int_equal(access(out, F_OK), 0);
    remove(out);
    for (int i = 1; i <= 3; i++) {
        snprintf(part, sizeof part, "%.*s-%05d-of-00003.gguf", (int)strlen(out) - 5, out, i);
        remove(part);
        snprintf(part, sizeof part, "%.*s-%05d-of-00003.gguf", (int)strlen(in) - 5, in, i);
        remove(part);
    }
}

/* Weights that say nothing (all zero, only where the row is zero, one huge): finite blocks, at most twice the plain error. */
static void weights_of_nothing(void **unused)
{
    (void)unused;
    enum { N = 256 };
    static const int types[] = { LOAM_Q4_0, LOAM_Q4_1, LOAM_Q5_0, LOAM_Q5_1, LOAM_Q2_K, LOAM_Q3_K, LOAM_Q4_K, LOAM_Q5_K, LOAM_Q6_K,
                                 LOAM_IQ2_XXS, LOAM_IQ2_XS, LOAM_IQ2_S, LOAM_IQ3_XXS, LOAM_IQ3_S, LOAM_IQ1_S, LOAM_IQ1_M, LOAM_IQ4_NL,
                                 LOAM_IQ4_XS };
    dice d = { 8 };
    float x[N], y[N], plain[N], none[N] = { 0 }, zeros[N], huge[N] = { 1e20f };
    uint8_t blocks[N * 4];
    for (int i = 0; i < N; i++) x[i] = i % 4 ? dice_normal(&d) : 0, plain[i] = 1, zeros[i] = i % 4 == 0;
    const float *cases[] = { plain, none, zeros, huge };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        double law = 0;
        for (int c = 0; c < 4; c++) {
            loam_rows shape = { types[k], 1, N };
            uint64_t bytes;
            double sum = 0;
            loam_error err;
            assert_int_equal(loam_quant_bytes(&shape, &bytes, NULL), LOAM_OK);
            if (loam_quant_encode(&shape, x, cases[c], blocks, bytes, &err) != LOAM_OK) fail_msg("%s: %s", loam_type_name(types[k]), err.message);
            assert_int_equal(loam_quant_decode(&shape, blocks, bytes, y, NULL), LOAM_OK);
            for (int i = 0; i < N; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
            if (c == 0) law = sum;
            if (!(sum <= 2 * law)) fail_msg("%s, weights %d: error %g, plain %g", loam_type_name(types[k]), c, sum, law);
        }
    }
}

int main(void)
{
    dice d = { 5 };
    for (int i = 0; i < ROWS * COLS; i++) matrix[i] = dice_normal(&d);
    for (int i = 0; i < COLS; i++) vector[i] = dice_normal(&d);
    scratch_path(in, "in.gguf");
    scratch_path(out, "out.gguf");
    const struct CMUnitTest tests[] = { cmocka_unit_test(converts), cmocka_unit_test(refusals), cmocka_unit_test(with_weights),
                                        cmocka_unit_test(parts), cmocka_unit_test(weights_of_nothing) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(in);
    return failed;
}
