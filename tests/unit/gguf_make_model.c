/* Random-weight models: every type makes a file that opens, with weights of the promised spread; the same arguments give the
 * same bytes; what is unknown is refused with the list. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "file/gguf.h"
#include "loam/debug.h"
#include "loam/quant.h"
#include "model/random_blocks.h"

/* Mean and root mean square of a tensor, which must be finite throughout. */
static void statistics(const gguf_tensor *t, double *mean, double *rms)
{
    loam_rows shape = { .type = t->type, .rows = t->ne[1], .n = t->ne[0] };
    size_t n = (size_t)gguf_values(t);
    float *x = malloc(n * sizeof *x);
    loam_error err;
    if (loam_quant_check(&shape, t->data, t->bytes, &err) != LOAM_OK) fail_msg("%s: %s", t->name, err.message);
    if (loam_quant_decode(&shape, t->data, t->bytes, x, &err) != LOAM_OK) fail_msg("%s: %s", t->name, err.message);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    free(x);
    *mean = sum / (double)n;
    *rms = sqrt(squares / (double)n);
}

static void every_type(void **state)
{
    char path[512];
    (void)state;
    scratch_path(path, "tiny.gguf");
    int made = 0;
    for (int type = 0; type < LOAM_TYPE_LIMIT; type++) {
        gguf_file *f;
        loam_error err;
        double mean, rms;
        if (!loam_type_name(type) || !random_blocks_can((loam_type)type)) continue;
        if (loam_debug_make_model(path, "tiny", loam_type_name(type), 7, &err) != LOAM_OK) fail_msg("%s", err.message);
        if (gguf_open(&f, path, 0, &err) != LOAM_OK) fail_msg("%s", err.message);
        const gguf_tensor *t = gguf_tensor_find(f, "blk.1.ffn_up.weight");
        assert_non_null(t);
        assert_int_equal(t->type, type);
        statistics(t, &mean, &rms);
        double ratio = rms * 16; /* rows of 256: 1/16 is promised */
        double slack = type == LOAM_MXFP4 || type == LOAM_NVFP4 ? 0.45 : 0.05; /* scales that are powers of two */
        if (fabs(ratio - 1) > slack || fabs(mean) > 0.15 * rms)
            fail_msg("%s: rms %.4f, mean %.4f", loam_type_name(type), rms, mean);
        gguf_close(f);
        made++;
    }
    remove(path);
    printf("%d types\n", made);
    assert_int_equal(made, 28);
}

static void tensors_and_vocabulary(void **state)
{
    char path[512];
    gguf_file *f;
    gguf_vocab v;
    loam_error err;
    uint32_t n = 0;
    (void)state;
    scratch_path(path, "tiny.gguf");
    assert_int_equal(loam_debug_make_model(path, "TINY", "Q4_k_m", 1, &err), LOAM_OK);
    assert_int_equal(gguf_open(&f, path, 0, &err), LOAM_OK);
    assert_int_equal(gguf_tensor_count(f), 3 + 4 * 9);
    assert_int_equal(gguf_tensor_find(f, "output.weight")->type, LOAM_Q6_K);
    assert_int_equal(gguf_tensor_find(f, "blk.0.attn_q.weight")->type, LOAM_Q4_K);
    assert_int_equal(gguf_tensor_find(f, "blk.2.attn_v.weight")->type, LOAM_Q6_K);
    assert_int_equal(gguf_get_u32(f, "llama.block_count", GGUF_REQUIRED, &n, &err), LOAM_OK);
    assert_int_equal(n, 4);
    assert_int_equal(gguf_vocab_view(&v, f, &err), LOAM_OK);
    assert_int_equal(v.view.n_tokens, 4096);
    for (uint32_t i = 1; i < v.view.n_tokens; i++)
        for (uint32_t k = i > 50 ? i - 50 : 0; k < i; k++)
            assert_false(v.view.tokens[i].len == v.view.tokens[k].len &&
                         memcmp(v.view.tokens[i].data, v.view.tokens[k].data, v.view.tokens[i].len) == 0);
    assert_memory_equal(v.view.tokens[3 + 0x41].data, "<0x41>", 6);
    assert_int_equal(v.view.types[0], 2);
    assert_int_equal(v.view.types[1], 3);
    assert_int_equal(v.view.types[3], 6);
    assert_true(v.view.scores[300] > v.view.scores[301]);
    gguf_vocab_free(&v);
    gguf_close(f);
    remove(path);
}

static void same_bytes(void **state)
{
    char path[512];
    size_t n[3];
    char *x[3];
    (void)state;
    scratch_path(path, "tiny.gguf");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(loam_debug_make_model(path, "tiny", "q2_K", i == 2 ? 6 : 5, NULL), LOAM_OK);
        x[i] = slurp(path, &n[i]);
    }
    assert_int_equal(n[0], n[1]);
    assert_int_equal(n[0], n[2]);
    assert_memory_equal(x[0], x[1], n[0]);
    assert_memory_not_equal(x[0], x[2], n[0]);
    for (int i = 0; i < 3; i++) free(x[i]);
    remove(path);
}

static void refusals(void **state)
{
    loam_error err;
    (void)state;
    assert_int_equal(loam_debug_make_model("x.gguf", "2b", "q8_0", 1, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'2b'"));
    assert_non_null(strstr(err.message, "moe"));
    assert_int_equal(loam_debug_make_model("x.gguf", "tiny", "q9", 1, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "'q9'"));
    assert_int_equal(loam_debug_make_model("x.gguf", "tiny", "i32", 1, &err), LOAM_E_ARG);
    assert_int_equal(loam_debug_make_model("x.gguf", NULL, "q8_0", 1, &err), LOAM_E_ARG);
    assert_int_equal(loam_debug_make_model("/no/such/folder/x.gguf", "tiny", "q8_0", 1, &err), LOAM_E_IO);
    assert_non_null(strstr(err.message, "/no/such/folder/x.gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type), cmocka_unit_test(tensors_and_vocabulary),
                                        cmocka_unit_test(same_bytes), cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
