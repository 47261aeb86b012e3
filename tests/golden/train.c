/* train.c - the losses of fifty updates against those of PyTorch (tools/train-parity, which says what the run is). */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "loam/train.h"

#define ROWS 4
#define LENGTH 32
#define STEPS 50
#define N (ROWS * LENGTH)

typedef struct stream {
    uint64_t state;
} stream;

static int32_t next_id(stream *s, int32_t n_vocab)
{
    s->state = s->state * 6364136223846793005ull + 1442695040888963407ull;
    return (int32_t)((s->state >> 33) % (uint64_t)n_vocab);
}

static void next_batch(stream *s, int32_t n_vocab, int32_t *tokens, int32_t *labels, int32_t *docs)
{
    for (int r = 0; r < ROWS; r++) {
        int32_t id = next_id(s, n_vocab);
        for (int i = 0; i < LENGTH; i++) {
            int at = r * LENGTH + i;
            tokens[at] = id;
            labels[at] = id = next_id(s, n_vocab);
            docs[at] = r;
        }
    }
}

static double expected(const char *text, const char *run, int step)
{
    char key[32];
    snprintf(key, sizeof key, "%s %d ", run, step);
    const char *at = text;
    while (at && strncmp(at, key, strlen(key)) != 0) at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    return at ? strtod(at + strlen(key), NULL) : NAN;
}

static void compare(const char *run, loam_trainer_params p, double rate)
{
    char path[512];
    char *text = slurp(golden_path(path, "train/parity.txt"), NULL);
    loam_model *model;
    loam_trainer *t;
    loam_error err;
    assert_non_null(text);
    if (loam_model_open(&model, golden_path(path, "arch/xverse.gguf"), NULL, &err) != LOAM_OK || loam_trainer_new(&t, model, &p, &err) != LOAM_OK)
        fail_msg("%s", err.message);
    stream s = { 12345 };
    int32_t tokens[N], labels[N], docs[N];
    double worst = 0;
    for (int step = 1; step <= STEPS; step++) {
        next_batch(&s, loam_model_n_vocab(model), tokens, labels, docs);
        loam_train_batch b = { .n_tokens = N, .tokens = tokens, .labels = labels, .documents = docs };
        loam_train_loss loss;
        if (loam_trainer_accumulate(t, &b, &loss, &err) != LOAM_OK || loam_trainer_update(t, rate, NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
        double want = expected(text, run, step), e = fabs(loss.sum / loss.weight - want) / want;
        if (!(e <= worst)) worst = e;
    }
    printf("%s: largest relative difference %.2g\n", run, worst);
    assert_true(worst <= 1e-4);
    loam_trainer_free(t);
    loam_model_free(model);
    free(text);
}

static void test_adamw(void **state)
{
    (void)state;
    compare("adamw", loam_trainer_defaults(), 1e-3);
}

static void test_sgd(void **state)
{
    (void)state;
    loam_trainer_params p = loam_trainer_defaults();
    p.optimizer = LOAM_SGD;
    p.momentum = 0.9f;
    compare("sgd", p, 0.02);
}

static void test_lora(void **state)
{
    (void)state;
    loam_trainer_params p = loam_trainer_defaults();
    p.lora_rank = 4;
    p.lora_alpha = 8;
    compare("lora", p, 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_lora),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
