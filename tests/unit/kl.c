/* kl.c - comparisons with a stored base: files there and back within their precision, statistics against plain sums, hostile
 * files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data.h"
#include "loam/evaluate.h"
#include "raw.h"

#define VOCAB 7
#define CTX   9
#define ROWS  4 /* of a chunk: loam_kl_rows(9) */

static char path[512];
static int32_t tokens[2 * CTX];

/* ln p of logits. */
static void log_softmax(const float *x, double *out)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < VOCAB; i++) most = fmax(most, (double)x[i]);
    for (int i = 0; i < VOCAB; i++) sum += exp((double)x[i] - most);
    for (int i = 0; i < VOCAB; i++) out[i] = (double)x[i] - most - log(sum);
}

static void make_logits(dice *d, float *x, float spread)
{
    for (int i = 0; i < VOCAB; i++) x[i] = spread * dice_normal(d);
}

static void write_base(int chunks, float logits[][VOCAB])
{
    loam_kl_writer *w;
    loam_error err;
    loam_kl_text t = { CTX, VOCAB, chunks, tokens };
    if (loam_kl_writer_open(&w, path, &t, &err) != LOAM_OK) fail_msg("%s", err.message);
    for (int r = 0; r < chunks * ROWS; r++) assert_int_equal(loam_kl_writer_put(w, logits[r], &err), LOAM_OK);
    assert_int_equal(loam_kl_writer_put(w, logits[0], &err), LOAM_E_ARG); /* one too many */
    if (loam_kl_writer_close(w, &err) != LOAM_OK) fail_msg("%s", err.message);
}

static void there_and_back(void **unused)
{
    (void)unused;
    static float logits[2 * ROWS][VOCAB];
    dice d = { 3 };
    loam_kl_base *b;
    loam_error err;
    assert_int_equal(loam_kl_rows(CTX), ROWS);
    assert_int_equal(loam_kl_rows(512), 255);
    for (int r = 0; r < 2 * ROWS; r++) make_logits(&d, logits[r], r == 3 ? 20 : 3);
    for (int i = 0; i < VOCAB; i++) logits[5][i] = 1; /* all equal: no scale */
    write_base(2, logits);
    if (loam_kl_base_open(&b, path, &err) != LOAM_OK) fail_msg("%s", err.message);
    loam_kl_text t = loam_kl_base_text(b);
    assert_true(t.n_ctx == CTX && t.n_vocab == VOCAB && t.n_chunks == 2);
    assert_memory_equal(t.tokens, tokens, sizeof tokens);
    for (int r = 0; r < 2 * ROWS; r++) {
        float got[VOCAB];
        double want[VOCAB], top = -INFINITY;
        assert_true(loam_kl_base_row(b, r, got));
        log_softmax(logits[r], want);
        for (int i = 0; i < VOCAB; i++) top = fmax(top, want[i]);
        for (int i = 0; i < VOCAB; i++) assert_true(fabs((double)got[i] - fmax(want[i], top - 16)) < 16.0 / 65535);
    }
    assert_false(loam_kl_base_row(b, 2 * ROWS, NULL));
    loam_kl_base_free(b);
}

static void statistics(void **unused)
{
    (void)unused;
    enum { N = 500 };
    dice d = { 9 };
    loam_kl *kl;
    loam_kl_summary s;
    loam_error err;
    double nll = 0, base_nll = 0, kld = 0, dp = 0, dp2 = 0, least = INFINITY, most = 0;
    int same = 0;
    assert_int_equal(loam_kl_new(&kl, VOCAB, &err), LOAM_OK);
    assert_int_equal(loam_kl_summarize(kl, &s, &err), LOAM_E_ARG);
    for (int k = 0; k < N; k++) {
        float a[VOCAB], b[VOCAB], base[VOCAB];
        double p[VOCAB], q[VOCAB], sum = 0;
        int next = (int)dice_below(&d, VOCAB), top_p = 0, top_q = 0;
        make_logits(&d, a, 2);
        for (int i = 0; i < VOCAB; i++) b[i] = a[i] + 0.3f * dice_normal(&d);
        log_softmax(a, p);
        log_softmax(b, q);
        for (int i = 0; i < VOCAB; i++) {
            base[i] = (float)p[i];
            sum += exp(p[i]) * (p[i] - q[i]);
            top_p = p[i] > p[top_p] ? i : top_p;
            top_q = q[i] > q[top_q] ? i : top_q;
        }
        nll -= q[next] / N, base_nll -= p[next] / N, kld += sum / N;
        dp += (exp(q[next]) - exp(p[next])) / N, dp2 += pow(exp(q[next]) - exp(p[next]), 2) / N;
        least = fmin(least, sum), most = fmax(most, sum);
        same += top_p == top_q;
        assert_int_equal(loam_kl_add(kl, base, b, next, &err), LOAM_OK);
    }
    float bad[VOCAB] = { NAN }, fine[VOCAB] = { 0 };
    assert_int_equal(loam_kl_add(kl, fine, bad, 0, &err), LOAM_E_NUMERIC);
    assert_int_equal(loam_kl_add(kl, fine, fine, VOCAB, &err), LOAM_E_ARG);
    assert_int_equal(loam_kl_summarize(kl, &s, &err), LOAM_OK);
    assert_int_equal(s.n, N);
    assert_true(fabs(s.ppl.value / exp(nll) - 1) < 1e-6 && fabs(s.ppl_base.value / exp(base_nll) - 1) < 1e-6);
    assert_true(fabs(s.ln_ratio.value - (nll - base_nll)) < 1e-6 && fabs(s.ratio.value - exp(nll - base_nll)) < 1e-6);
    assert_true(fabs(s.mean_kld.value - kld) < 1e-6 && s.mean_kld.error > 0 && s.mean_kld.error < kld);
    assert_true(fabs(s.kld[0] - most) < 1e-5 && fabs(s.kld[LOAM_KL_POINTS - 1] - least) < 1e-5);
    for (int i = 1; i < LOAM_KL_POINTS; i++) assert_true(s.kld[i] <= s.kld[i - 1] && s.dp[i] <= s.dp[i - 1]);
    assert_true(fabs(s.mean_dp.value - dp) < 1e-6 && fabs(s.rms_dp.value - sqrt(dp2)) < 1e-6);
    assert_true(fabs(s.same_top.value - (double)same / N) < 1e-12);
    assert_true(s.correlation > 0.9 && s.correlation <= 1);
    assert_true(s.ln_ratio.error < s.ppl.error / s.ppl.value); /* both read the same text */
    loam_kl_free(kl);
    assert_int_equal(loam_kl_new(&kl, 0, &err), LOAM_E_ARG);
}

static void hostile(void **unused)
{
    (void)unused;
    static float logits[ROWS][VOCAB];
    size_t size;
    loam_kl_base *b;
    loam_kl_writer *w;
    loam_error err;
    write_base(1, logits);
    uint8_t *good = (uint8_t *)slurp(path, &size);
    assert_int_equal(loam_kl_base_open_memory(&b, good, size, &err), LOAM_OK);
    loam_kl_base_free(b);
    for (size_t cut = 0; cut < size; cut++) assert_int_equal(loam_kl_base_open_memory(&b, good, cut, &err), LOAM_E_FORMAT);
    for (size_t at = 0; at < 20 + 4 * CTX; at++) { /* head and tokens: a changed byte is refused or harmless */
        uint8_t kept = good[at];
        for (int v = 0; v < 256; v++) {
            good[at] = (uint8_t)v;
            if (loam_kl_base_open_memory(&b, good, size, &err) == LOAM_OK) {
                float row[VOCAB + 1];
                if (loam_kl_base_text(b).n_vocab <= VOCAB + 1) loam_kl_base_row(b, 0, row);
                loam_kl_base_free(b);
            } else {
                assert_true(err.message[0]);
            }
        }
        good[at] = kept;
    }
    free(good);
    loam_kl_text t = { CTX, VOCAB, 1, tokens };
    assert_int_equal(loam_kl_writer_open(&w, "/no-such-folder/base", &t, &err), LOAM_E_IO);
    remove(path);
    assert_int_equal(loam_kl_writer_open(&w, path, &t, &err), LOAM_OK);
    logits[0][2] = NAN;
    assert_int_equal(loam_kl_writer_put(w, logits[0], &err), LOAM_E_NUMERIC);
    assert_int_equal(loam_kl_writer_close(w, &err), LOAM_E_ARG); /* rows are missing: no file */
    assert_int_equal(loam_kl_base_open(&b, path, &err), LOAM_E_IO);
    t.n_vocab = 2;
    assert_int_equal(loam_kl_writer_open(&w, path, &t, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "token"));
}

int main(void)
{
    for (int i = 0; i < 2 * CTX; i++) tokens[i] = i % VOCAB;
    scratch_path(path, "base.kl");
    const struct CMUnitTest tests[] = { cmocka_unit_test(there_and_back), cmocka_unit_test(statistics), cmocka_unit_test(hostile) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    return failed;
}
