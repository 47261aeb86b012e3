/* train.c - every allocation on the way through a step of training, a saved and loaded state, an adapter, a fitted network fails
 * in turn: no crash, no leak, the right status. */
#include "check.h"

#include <stdio.h>
#include <unistd.h>

#include "data.h"
#include "fault.h"
#include "loam/train.h"

typedef struct job {
    loam_model *model;
    loam_trainer_params p;
    char path[512];
} job;

static loam_status whole_way(void *arg, loam_error *err)
{
    job *j = arg;
    loam_trainer *t = NULL;
    int32_t tokens[20], labels[20], docs[20];
    for (int i = 0; i < 20; i++) tokens[i] = i * 3 % 40, labels[i] = i % 10 == 9 ? -1 : (i + 1) * 3 % 40, docs[i] = i / 10;
    loam_train_batch b = { .n_tokens = 20, .tokens = tokens, .labels = labels, .documents = docs };
    loam_train_memory m;
    void *extra = NULL;
    size_t size;
    loam_status status = loam_trainer_estimate(j->model, &j->p, 20, &m, err);
    if (status == LOAM_OK) status = loam_trainer_new(&t, j->model, &j->p, err);
    if (status == LOAM_OK) status = loam_trainer_accumulate(t, &b, NULL, err);
    if (status == LOAM_OK) status = loam_trainer_update(t, 1e-3, NULL, err);
    if (status == LOAM_OK) status = loam_trainer_save(t, j->path, "x", 1, err);
    if (status == LOAM_OK) status = loam_trainer_load(t, j->path, &extra, &size, err);
    loam_train_free(extra);
    if (status == LOAM_OK) status = loam_trainer_save_model(t, j->path, LOAM_F16, err);
    if (status == LOAM_OK && j->p.lora_rank) status = loam_trainer_save_adapter(t, j->path, err);
    loam_trainer_free(t);
    return status;
}

static void test_trainer(void **state)
{
    (void)state;
    job j = { 0 };
    char path[512];
    loam_error err;
    if (loam_model_open(&j.model, golden_path(path, "arch/xverse.gguf"), NULL, &err) != LOAM_OK) fail_msg("%s", err.message);
    scratch_path(j.path, "faults.train");
    for (int k = 0; k < 3; k++) {
        static const char *const targets[] = { "ffn_up" };
        j.p = loam_trainer_defaults();
        j.p.n_threads = 1;
        if (k == 1) j.p.lora_rank = 2, j.p.lora_targets = targets, j.p.n_lora_targets = 1;
        if (k == 2) j.p.optimizer = LOAM_MUON, j.p.bf16 = true;
        fault_loop(k == 1 ? "adapter" : k ? "muon" : "adamw", whole_way, &j);
    }
    loam_model_free(j.model);
    unlink(j.path);
}

static loam_status fit(void *arg, loam_error *err)
{
    (void)arg;
    loam_graph *g = NULL;
    loam_dataset *ds = NULL;
    float w[2] = { 0.5f, 0.25f };
    loam_status status = loam_graph_new(&g, err);
    if (status != LOAM_OK) return status;
    loam_tensor *x = loam_tensor_new(g, "x", LOAM_F32, 2, (int64_t[]){ 2, 3 }), *t = loam_tensor_new(g, "w", LOAM_F32, 1, (int64_t[]){ 2 });
    if (t) status = loam_tensor_bind(t, w, sizeof w, err);
    loam_opt_params p = loam_opt_defaults(LOAM_LOSS_CROSS_ENTROPY);
    p.graph = g, p.inputs = x, p.outputs = loam_op_mul(g, x, t), p.parameters = &t, p.n_parameters = 1, p.n_threads = 1;
    if (status == LOAM_OK) status = loam_graph_check(g, err);
    if (status == LOAM_OK) status = loam_dataset_new(&ds, &(loam_dataset_params){ LOAM_F32, LOAM_F32, 2, 2, 6, 1 }, err);
    if (status == LOAM_OK) status = loam_opt_fit(&p, ds, &(loam_fit_params){ .n_epochs = 2, .n_logical = 3, .validation = 0.5 }, err);
    loam_dataset_free(ds);
    loam_graph_free(g);
    return status;
}

static void test_fit(void **state)
{
    (void)state;
    fault_loop("fit", fit, NULL);
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trainer), cmocka_unit_test(test_fit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
