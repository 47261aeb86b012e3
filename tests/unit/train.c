/* train.c - the trainer on small models: the loss falls, gradients are those of differences, cuts and threads change no bit. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "loam/train.h"

#define TOKENS 48

typedef struct fixture {
    loam_model *model;
    int32_t tokens[TOKENS], labels[TOKENS], docs[TOKENS];
} fixture;

static void setup(fixture *f, const char *name)
{
    char path[512];
    loam_error err;
    if (loam_model_open(&f->model, golden_path(path, name), NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    dice d = { 7 };
    int32_t n = loam_model_n_vocab(f->model);
    for (int i = 0; i < TOKENS; i++) {
        f->tokens[i] = (int32_t)dice_below(&d, (uint32_t)n);
        f->docs[i] = i / 16;
    }
    for (int i = 0; i < TOKENS; i++) f->labels[i] = i % 16 == 15 ? -1 : f->tokens[i + 1];
}

static loam_train_batch batch_of(const fixture *f)
{
    return (loam_train_batch){ .n_tokens = TOKENS, .tokens = f->tokens, .labels = f->labels, .documents = f->docs };
}

static loam_trainer *trainer_of(const fixture *f, const loam_trainer_params *p)
{
    loam_trainer *t;
    loam_error err;
    if (loam_trainer_new(&t, f->model, p, &err) != LOAM_OK) fail_msg("%s", err.message);
    return t;
}

static double loss_of(loam_trainer *t, const loam_train_batch *b)
{
    loam_train_loss loss;
    loam_error err;
    if (loam_trainer_evaluate(t, b, &loss, &err) != LOAM_OK) fail_msg("%s", err.message);
    return loss.sum / loss.weight;
}

static void learn(loam_trainer *t, const loam_train_batch *b, double rate, loam_update *info)
{
    loam_error err;
    if (loam_trainer_accumulate(t, b, NULL, &err) != LOAM_OK || loam_trainer_update(t, rate, info, &err) != LOAM_OK) fail_msg("%s", err.message);
}

static void test_loss_falls(void **state)
{
    (void)state;
    static const loam_optimizer all[] = { LOAM_ADAMW, LOAM_SGD, LOAM_MUON };
    for (int i = 0; i < 3; i++) {
        fixture f;
        setup(&f, "arch/xverse.gguf");
        loam_trainer_params p = loam_trainer_defaults();
        p.optimizer = all[i];
        p.n_threads = 2;
        loam_trainer *t = trainer_of(&f, &p);
        loam_train_batch b = batch_of(&f);
        double first = loss_of(t, &b);
        for (int s = 0; s < 30; s++) learn(t, &b, i == 1 ? 0.1 : 1e-3, NULL);
        double last = loss_of(t, &b);
        printf("optimizer %d: %.4f -> %.4f\n", i, first, last);
        assert_true(last < 0.8 * first);
        loam_trainer_free(t);
        loam_model_free(f.model);
    }
}

/* Central differences of the whole model's loss in a few values of every tensor. A value may lie where an expert is chosen or
 * dropped: there the loss jumps, so a few of them may disagree. */
static void check_gradients(const char *name)
{
    fixture f;
    setup(&f, name);
    loam_trainer_params p = loam_trainer_defaults();
    p.n_threads = 1;
    loam_trainer *t = trainer_of(&f, &p);
    loam_train_batch b = batch_of(&f);
    loam_train_loss loss;
    loam_error err;
    if (loam_trainer_accumulate(t, &b, &loss, &err) != LOAM_OK) fail_msg("%s", err.message);
    dice d = { 3 };
    int n = 0, bad = 0;
    for (size_t i = 0; i < loam_trainer_n_tensors(t); i++) {
        loam_train_tensor x;
        assert_true(loam_trainer_tensor(t, i, &x));
        for (int k = 0; k < 2; k++, n++) {
            uint64_t at = dice_below(&d, (uint32_t)x.n);
            float old = x.data[at], h = 2e-3f;
            loam_train_loss up, down;
            x.data[at] = old + h;
            loam_trainer_evaluate(t, &b, &up, &err);
            x.data[at] = old - h;
            loam_trainer_evaluate(t, &b, &down, &err);
            double slope = (up.sum - down.sum) / (double)((old + h) - (old - h)), off = fabs(slope - (double)x.gradient[at]);
            x.data[at] = old;
            if (off <= 0.03 * fabs(slope) + 0.03) continue;
            bad++;
            printf("%s %s[%llu]: %.5f, by differences %.5f\n", name, x.name, (unsigned long long)at, (double)x.gradient[at], slope);
        }
    }
    printf("%s: %d values, %d disagree\n", name, n, bad);
    assert_true(bad * 20 <= n);
    loam_trainer_free(t);
    loam_model_free(f.model);
}

static void test_gradients(void **state)
{
    (void)state;
    static const char *const names[] = {
        "xverse", "gpt2", "gemma3-dense", "falcon", "olmo2", "cohere2", "mpt", "stablelm", "minicpm3",
        "olmoe", "gpt-oss-moe", "glm4moe",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "arch/%s.gguf", names[i]);
        check_gradients(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
