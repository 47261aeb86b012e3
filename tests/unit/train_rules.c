/* train_rules.c - what a trainer promises: cuts of a batch change no bit, masks are where they should be, packed documents do not
 * see each other, one bad gradient changes nothing, rates hit their ends, states resume, adapters leave the model alone. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "loam/adapter.h"
#include "loam/quantize.h"
#include "loam/train.h"

static loam_error err;
#define OK(call) do { if ((call) != LOAM_OK) fail_msg("%s", err.message); } while (0)

#define MOST 256

typedef struct rows {
    int32_t tokens[MOST], labels[MOST], docs[MOST];
    int n;
} rows;

static loam_model *open_model(const char *name)
{
    char path[512];
    loam_model *m;
    OK(loam_model_open(&m, golden_path(path, name), NULL, &err));
    return m;
}

static loam_trainer *trainer(const loam_model *m, const loam_trainer_params *p)
{
    loam_trainer *t;
    OK(loam_trainer_new(&t, m, p, &err));
    return t;
}

static void add_row(rows *r, dice *d, int n, int doc)
{
    for (int i = 0; i < n; i++, r->n++) r->tokens[r->n] = (int32_t)dice_below(d, 40), r->docs[r->n] = doc;
    for (int i = 0; i < n; i++) r->labels[r->n - n + i] = i == n - 1 ? -1 : r->tokens[r->n - n + i + 1];
}

static loam_train_batch batch(const rows *r, int first, int n)
{
    return (loam_train_batch){ .n_tokens = (size_t)n, .tokens = r->tokens + first, .labels = r->labels + first, .documents = r->docs + first };
}

static uint64_t bits_of_tensors(const loam_trainer *t, bool gradients)
{
    uint64_t h = 14695981039346656037ull;
    loam_train_tensor x;
    for (size_t i = 0; loam_trainer_tensor(t, i, &x); i++) {
        const unsigned char *p = (const unsigned char *)(gradients ? x.gradient : x.data);
        for (uint64_t k = 0; k < x.n * 4; k++) h = (h ^ p[k]) * 1099511628211ull;
    }
    return h;
}

static void test_accumulation(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    static const int cuts[][13] = { { 12 }, { 6, 6 }, { 4, 4, 4 }, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 5, 5, 2 } };
    int first[13] = { 0 };
    rows r = { .n = 0 };
    dice d = { 5 };
    for (int i = 0; i < 12; i++) add_row(&r, &d, 3 + (int)dice_below(&d, 17), i), first[i + 1] = r.n;
    uint64_t want = 0;
    double want_loss = 0;
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++)
        for (int threads = 1; threads <= 3; threads++) {
            loam_trainer_params p = loam_trainer_defaults();
            p.n_threads = threads;
            loam_trainer *t = trainer(m, &p);
            double sum = 0, weight = 0, eval = 0;
            for (int i = 0, row = 0; row < 12; row += cuts[c][i++]) {
                loam_train_batch b = batch(&r, first[row], first[row + cuts[c][i]] - first[row]);
                loam_train_loss loss;
                OK(loam_trainer_evaluate(t, &b, &loss, &err));
                eval += loss.sum;
                OK(loam_trainer_accumulate(t, &b, &loss, &err));
                sum += loss.sum, weight += loss.weight;
            }
            uint64_t grads = bits_of_tensors(t, true);
            loam_update info;
            OK(loam_trainer_update(t, 1e-3, &info, &err));
            uint64_t got = bits_of_tensors(t, false) ^ grads;
            if (!want) want = got, want_loss = sum / weight;
            assert_true(got == want);
            assert_true(fabs(sum / weight - want_loss) < 1e-12 * want_loss && fabs(eval / weight - want_loss) < 1e-12 * want_loss);
            assert_true(info.update == 1 && !info.skipped);
            loam_trainer_free(t);
        }
    loam_model_free(m);
}

/* Six prompt tokens, three of an answer, three pads: the targets are predicted from places 5, 6, 7. */
static void test_mask(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    loam_trainer *t = trainer(m, NULL);
    int32_t tokens[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0 }, labels[12];
    for (int i = 0; i < 12; i++) labels[i] = i >= 5 && i <= 7 ? tokens[i + 1] : -1;
    static const int cuts[] = { 12, 9, 8 };
    for (int c = 0; c < 3; c++) {
        int32_t seen[12];
        for (int i = 0; i < cuts[c]; i++) seen[i] = i + 1 < cuts[c] ? labels[i] : -1;
        loam_train_batch b = { .n_tokens = (size_t)cuts[c], .tokens = tokens, .labels = seen };
        loam_train_loss loss;
        OK(loam_trainer_evaluate(t, &b, &loss, &err));
        assert_int_equal(loss.n_targets, c == 2 ? 2 : 3);
    }
    /* What stands behind the last target changes nothing, what a target says does. */
    loam_train_batch b = { .n_tokens = 12, .tokens = tokens, .labels = labels };
    loam_train_loss a, same, other;
    OK(loam_trainer_evaluate(t, &b, &a, &err));
    tokens[8] = 20, tokens[10] = 21;
    OK(loam_trainer_evaluate(t, &b, &same, &err));
    tokens[7] = 22;
    OK(loam_trainer_evaluate(t, &b, &other, &err));
    assert_true(a.sum == same.sum && a.sum != other.sum);
    float weights[12] = { [5] = 2, [6] = 0, [7] = 1 };
    b.weights = weights;
    OK(loam_trainer_evaluate(t, &b, &a, &err));
    assert_true(a.weight == 3.0 && a.n_targets == 3);
    loam_trainer_free(t);
    loam_model_free(m);
}

static void test_documents(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    uint64_t alone = 0;
    double loss_alone = 0;
    for (int k = 0; k < 3; k++) { /* B alone, behind A, behind another A */
        loam_trainer *t = trainer(m, NULL);
        rows r = { .n = 0 };
        dice d = { 17 + (uint64_t)k }, e = { 99 };
        if (k) add_row(&r, &d, 11, 0);
        for (int i = 0; i < r.n; i++) r.labels[i] = -1;
        add_row(&r, &e, 20, 1);
        loam_train_batch b = batch(&r, 0, r.n);
        loam_train_loss loss;
        OK(loam_trainer_accumulate(t, &b, &loss, &err));
        if (k == 0) alone = bits_of_tensors(t, true), loss_alone = loss.sum;
        assert_true(loss.sum == loss_alone);
        assert_true(bits_of_tensors(t, true) == alone);
        loam_trainer_free(t);
    }
    loam_model_free(m);
}

static void test_bad_gradient(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    loam_trainer *t = trainer(m, NULL);
    rows r = { .n = 0 };
    dice d = { 1 };
    add_row(&r, &d, 30, 0);
    loam_train_batch b = batch(&r, 0, r.n);
    loam_update info;
    OK(loam_trainer_accumulate(t, &b, NULL, &err));
    OK(loam_trainer_update(t, 1e-3, &info, &err));
    uint64_t before = bits_of_tensors(t, false);
    loam_train_tensor x;
    OK(loam_trainer_accumulate(t, &b, NULL, &err));
    assert_true(loam_trainer_tensor(t, 3, &x));
    ((float *)(uintptr_t)x.gradient)[2] = INFINITY;
    OK(loam_trainer_update(t, 1e-3, &info, &err));
    assert_true(info.skipped && strcmp(info.tensor, x.name) == 0);
    assert_true(bits_of_tensors(t, false) == before && loam_trainer_updates(t) == 1);
    /* Huge but finite: clipped, without overflow of the length. */
    OK(loam_trainer_accumulate(t, &b, NULL, &err));
    for (uint64_t i = 0; i < x.n; i++) ((float *)(uintptr_t)x.gradient)[i] = 1e20f;
    OK(loam_trainer_update(t, 1e-3, &info, &err));
    assert_true(!info.skipped && isfinite(info.norm) && info.norm > 1e18 && loam_trainer_updates(t) == 2);
    for (uint64_t i = 0; i < x.n; i++) assert_true(isfinite(x.data[i]));
    /* A weight that is not finite gives a loss that is not: refused, and what was accumulated is gone. */
    x.data[0] = NAN;
    assert_int_equal(loam_trainer_accumulate(t, &b, NULL, &err), LOAM_E_NUMERIC);
    OK(loam_trainer_update(t, 1e-3, &info, &err));
    assert_true(info.update == 2);
    loam_trainer_free(t);
    loam_model_free(m);
}

static void test_rates(void **state)
{
    (void)state;
    loam_schedule s = { LOAM_DECAY_LINEAR, 1.0, 0.0, 4, 10, -1 };
    static const double linear[] = { 0.25, 0.5, 0.75, 1.0, 5 / 6.0, 4 / 6.0, 3 / 6.0, 2 / 6.0, 1 / 6.0, 0.0 };
    for (int i = 0; i < 10; i++) assert_true(fabs(loam_schedule_rate(&s, i + 1) - linear[i]) < 1e-15);
    static const int64_t warm[] = { 0, 1, 4, 10, 12 }, total[] = { 10, 1, 4, 10, 10 };
    for (int k = 0; k < 5; k++)
        for (int kind = 0; kind < 3; kind++)
            for (int f = 0; f < 2; f++) {
                loam_schedule q = { (loam_decay)kind, 1.0, f ? 0.1 : 0.0, warm[k], total[k], -1 };
                bool reached = false;
                for (int64_t u = 1; u <= q.total; u++) {
                    double rate = loam_schedule_rate(&q, u);
                    reached = reached || rate == 1.0;
                    assert_true(isfinite(rate) && rate <= 1.0 && (rate > 0.0 || (u == q.total && !f && kind)));
                }
                if (q.warmup <= q.total) assert_true(reached && loam_schedule_rate(&q, q.warmup > 1 ? q.warmup : 1) == 1.0);
                if (kind && q.total > q.warmup && q.total > 1) assert_true(loam_schedule_rate(&q, q.total) == q.floor);
            }
    s.decay = 3;
    assert_true(loam_schedule_rate(&s, 7) == 1.0 && loam_schedule_rate(&s, 8) < 1.0 && loam_schedule_rate(&s, 10) == 0.0);
    s.decay = 0;
    assert_true(loam_schedule_rate(&s, 10) == 1.0);
}

static void some_updates(loam_trainer *t, int from, int to)
{
    for (int i = from; i < to; i++) {
        rows r = { .n = 0 };
        dice d = { 1000 + (uint64_t)i };
        add_row(&r, &d, 24, 0);
        add_row(&r, &d, 24, 1);
        loam_train_batch b = batch(&r, 0, r.n);
        OK(loam_trainer_accumulate(t, &b, NULL, &err));
        OK(loam_trainer_update(t, 1e-3, NULL, &err));
    }
}

static void test_resume(void **state)
{
    (void)state;
    char path[512];
    scratch_path(path, "train.state");
    for (int k = 0; k < 5; k++) {
        loam_model *m = open_model("arch/xverse.gguf");
        loam_trainer_params p = loam_trainer_defaults();
        p.seed = 5;
        if (k == 1) p.optimizer = LOAM_SGD, p.momentum = 0.9f;
        if (k == 2) p.optimizer = LOAM_MUON;
        if (k == 3) p.lora_rank = 4, p.lora_dropout = 0.2f;
        if (k == 4) p.small_state = true, p.recompute = true, p.bf16 = true;
        loam_trainer *a = trainer(m, &p);
        some_updates(a, 0, 3);
        OK(loam_trainer_save(a, path, "position", 8, &err));
        some_updates(a, 3, 6);
        p.n_threads = 3;
        loam_trainer *b = trainer(m, &p);
        void *extra;
        size_t size;
        OK(loam_trainer_load(b, path, &extra, &size, &err));
        assert_true(size == 8 && memcmp(extra, "position", 8) == 0 && loam_trainer_updates(b) == 3);
        loam_train_free(extra);
        some_updates(b, 3, 6);
        assert_true(bits_of_tensors(a, false) == bits_of_tensors(b, false));
        loam_trainer_free(b);
        /* Another run, a damaged file: refused, and the trainer as before. */
        uint64_t before = bits_of_tensors(a, false);
        size_t n;
        char *bytes = slurp(path, &n);
        bytes[n / 2] ^= 1;
        assert_true(spill(path, bytes, n));
        free(bytes);
        assert_int_equal(loam_trainer_load(a, path, NULL, NULL, &err), LOAM_E_FORMAT);
        assert_true(bits_of_tensors(a, false) == before && loam_trainer_updates(a) == 6);
        loam_trainer_free(a);
        loam_model_free(m);
    }
    unlink(path);
}

/* Memory is saved, bits are not lost. */
static void test_recompute(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    uint64_t bits[2];
    loam_train_memory mem[2];
    for (int k = 0; k < 2; k++) {
        loam_trainer_params p = loam_trainer_defaults();
        p.recompute = k == 1;
        OK(loam_trainer_estimate(m, &p, 512, &mem[k], &err));
        loam_trainer *t = trainer(m, &p);
        some_updates(t, 0, 3);
        bits[k] = bits_of_tensors(t, false);
        loam_trainer_free(t);
    }
    assert_true(bits[0] == bits[1] && mem[1].work < mem[0].work);
    loam_model_free(m);
}

static bool only_attention(void *user, const char *name)
{
    (void)user;
    return strstr(name, "attn_output") != NULL;
}

static void test_frozen_and_tied(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    loam_trainer_params p = loam_trainer_defaults();
    p.filter = only_attention;
    loam_trainer *t = trainer(m, &p);
    assert_int_equal(loam_trainer_n_tensors(t), 4);
    some_updates(t, 0, 2);
    char path[512];
    OK(loam_trainer_save_model(t, scratch_path(path, "frozen.gguf"), LOAM_F32, &err));
    loam_trainer_free(t);
    loam_model *other;
    OK(loam_model_open(&other, path, NULL, &err));
    loam_trainer *a = trainer(m, NULL), *b = trainer(other, NULL);
    for (size_t i = 0; i < loam_trainer_n_tensors(a); i++) {
        loam_train_tensor x, y;
        assert_true(loam_trainer_tensor(a, i, &x) && loam_trainer_tensor(b, i, &y));
        assert_true((memcmp(x.data, y.data, x.n * 4) == 0) == (strstr(x.name, "attn_output") == NULL));
    }
    loam_trainer_free(a);
    loam_trainer_free(b);
    loam_model_free(other);
    loam_model_free(m);
    unlink(path);
    /* A tied table is one tensor, with the gradients of both its uses. */
    m = open_model("arch/cohere2.gguf");
    t = trainer(m, NULL);
    int tables = 0;
    loam_train_tensor x;
    for (size_t i = 0; loam_trainer_tensor(t, i, &x); i++) tables += strcmp(x.name, "token_embd.weight") == 0 || strcmp(x.name, "output.weight") == 0;
    assert_int_equal(tables, 1);
    loam_trainer_free(t);
    loam_model_free(m);
    p.filter = NULL;
    p.lora_rank = 4;
    const char *targets[] = { "q_proj", "nothing" };
    p.lora_targets = targets, p.n_lora_targets = 2;
    m = open_model("arch/gemma3-dense.gguf");
    assert_int_equal(loam_trainer_new(&t, m, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "nothing"));
    loam_model_free(m);
}

/* An adapter on a quantized base: the loss falls, the merged model has the loss of base and adapter. */
static void test_adapter(void **state)
{
    (void)state;
    char base[512], small[512], adapter[512], merged[512];
    SHARED_OR_SKIP(base, "models/stories260K-f32.gguf");
    loam_quantize_params q = loam_quantize_defaults();
    static const char *const types[] = { "q8_0", "f16", "bf16" };
    for (int k = 0; k < 3; k++) {
        q.type = types[k];
        OK(loam_quantize_file(base, scratch_path(small, "base.gguf"), &q, NULL, &err));
        loam_model *m, *after;
        OK(loam_model_open(&m, small, NULL, &err));
        loam_trainer_params p = loam_trainer_defaults();
        p.lora_rank = 8;
        loam_trainer *t = trainer(m, &p);
        rows r = { .n = 0 };
        dice d = { 4 };
        for (int i = 0; i < 4; i++) add_row(&r, &d, 32, i);
        loam_train_batch b = batch(&r, 0, r.n);
        loam_train_loss first, last, whole;
        OK(loam_trainer_evaluate(t, &b, &first, &err));
        for (int i = 0; i < 40; i++) {
            OK(loam_trainer_accumulate(t, &b, NULL, &err));
            OK(loam_trainer_update(t, 5e-3, NULL, &err));
        }
        OK(loam_trainer_evaluate(t, &b, &last, &err));
        OK(loam_trainer_save_model(t, scratch_path(merged, "merged.gguf"), LOAM_F32, &err));
        OK(loam_trainer_save_adapter(t, scratch_path(adapter, "adapter.gguf"), &err));
        loam_adapter *ad;
        OK(loam_adapter_open(&ad, m, adapter, &err));
        assert_true(loam_adapter_n_weights(ad) * 2 == (int32_t)loam_trainer_n_tensors(t));
        loam_adapter_free(ad);
        OK(loam_model_open(&after, merged, NULL, &err));
        loam_trainer *e = trainer(after, NULL);
        OK(loam_trainer_evaluate(e, &b, &whole, &err));
        printf("%s: %.4f -> %.4f, merged %.4f\n", types[k], first.sum / first.weight, last.sum / last.weight, whole.sum / whole.weight);
        assert_true(last.sum < 0.8 * first.sum && fabs(whole.sum - last.sum) < 0.02 * last.sum);
        loam_trainer_free(e);
        loam_trainer_free(t);
        loam_model_free(after);
        loam_model_free(m);
    }
    unlink(small), unlink(merged), unlink(adapter);
}

static void test_refusals(void **state)
{
    (void)state;
    loam_model *m = open_model("arch/xverse.gguf");
    loam_trainer_params p = loam_trainer_defaults();
    loam_trainer *t;
    p.beta1 = 1.5f;
    assert_int_equal(loam_trainer_new(&t, m, &p, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "beta1"));
    t = trainer(m, NULL);
    int32_t tokens[2] = { 0, 40 }, labels[2] = { -1, -1 }, back[2] = { 3, 3 };
    loam_train_batch b = { .n_tokens = 2, .tokens = tokens, .labels = labels };
    assert_int_equal(loam_trainer_accumulate(t, &b, NULL, &err), LOAM_E_ARG);
    assert_non_null(strstr(err.message, "token 1"));
    tokens[1] = 1, labels[0] = 77;
    assert_int_equal(loam_trainer_accumulate(t, &b, NULL, &err), LOAM_E_ARG);
    labels[0] = -1, b.positions = back;
    assert_int_equal(loam_trainer_accumulate(t, &b, NULL, &err), LOAM_E_ARG);
    b.positions = NULL;
    OK(loam_trainer_accumulate(t, &b, NULL, &err)); /* no targets */
    loam_update info;
    OK(loam_trainer_update(t, 1, &info, &err));
    assert_true(info.update == 0 && !info.skipped);
    assert_int_equal(loam_trainer_update(t, NAN, &info, &err), LOAM_E_ARG);
    loam_trainer_free(t);
    loam_model_free(m);
    m = open_model("arch/mamba2-dense.gguf");
    assert_int_equal(loam_trainer_new(&t, m, NULL, &err), LOAM_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "CONV"));
    loam_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accumulation), cmocka_unit_test(test_mask), cmocka_unit_test(test_documents),
        cmocka_unit_test(test_bad_gradient), cmocka_unit_test(test_rates), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_recompute), cmocka_unit_test(test_frozen_and_tied), cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
