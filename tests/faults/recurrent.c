/* recurrent.c - every allocation on the way from a recurrent or hybrid model to logits, through copies, a removal and a saved
 * state, fails in turn: no crash, no leak, the right status. */
#include "check.h"
#include "data.h"
#include "fault.h"

#include "base/mem.h"
#include "loam/context.h"

static loam_status decode(loam_context *ctx, int32_t seq, int n, loam_error *err)
{
    int32_t ids[16];
    const int32_t *seqs[16];
    for (int i = 0; i < n; i++) ids[i] = 3 * i + 1, seqs[i] = &seq;
    loam_batch b = { .n_tokens = n, .token = ids, .seq_id = seqs };
    switch (loam_decode(ctx, &b, err)) {
    case 0: return LOAM_OK;
    case -2: return LOAM_E_NOMEM;
    default: return err->code;
    }
}

static loam_status save_and_load(loam_context *ctx, loam_error *err)
{
    size_t size = loam_state_size(ctx, 0), written = 0;
    void *bytes = size ? mem_alloc(size) : NULL;
    if (!bytes) {
        if (err) *err = (loam_error){ .code = LOAM_E_NOMEM, .message = "out of memory: a state" };
        return LOAM_E_NOMEM;
    }
    loam_status status = loam_state_save(ctx, 0, bytes, size, &written, err);
    if (status == LOAM_OK) status = loam_state_load(ctx, 2, bytes, written, err);
    mem_free(bytes);
    return status;
}

static loam_status whole_way(void *arg, loam_error *err)
{
    loam_model *m = NULL;
    loam_context *ctx = NULL;
    loam_context_params p = loam_context_defaults();
    p.n_ctx = 256, p.n_ubatch = 4, p.n_threads = 1, p.n_seq_max = 3, p.n_rs_seq = 2;
    loam_status status = loam_model_open(&m, arg, NULL, err);
    if (status == LOAM_OK) status = loam_context_new(&ctx, m, &p, err);
    if (status == LOAM_OK) status = decode(ctx, 0, 9, err);
    if (status == LOAM_OK) status = loam_memory_seq_cp(ctx, 0, 1, -1, -1, err);
    if (status == LOAM_OK) status = decode(ctx, 1, 5, err);
    if (status == LOAM_OK) loam_memory_seq_rm(ctx, 1, 12, -1);
    if (status == LOAM_OK) status = decode(ctx, 1, 3, err);
    if (status == LOAM_OK) status = save_and_load(ctx, err);
    if (status == LOAM_OK) status = decode(ctx, 2, 3, err);
    loam_context_free(ctx);
    loam_model_free(m);
    return status;
}

static void models(void **state)
{
    (void)state;
    static const char *const names[] = { "arch/lfm2-dense.gguf", "arch/rwkv6.gguf" };
    char path[512];
    for (int i = 0; i < 2; i++) {
        golden_path(path, names[i]);
        assert_true(fault_loop(names[i], whole_way, path) > 20);
    }
}

int main(void)
{
    fault_install();
    const struct CMUnitTest tests[] = { cmocka_unit_test(models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
