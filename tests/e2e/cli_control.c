/* cli_control.c - `loam cvector`, --control-vector, --lora: what they change, what is refused and how; sessions made with
 * them; `loam inspect --memory`; values of options that name what is wrong; outputs that are links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

#include "loam/debug.h"
#include "loam/gguf.h"
#include "loam/tensor.h"

static char model[512], positive[512], negative[512], vector[512], lora[512], session[512], target[512];

static loam_status write_adapter(loam_error *err)
{
    static float a[4 * 256], b[4 * 256];
    for (int i = 0; i < 4 * 256; i++) a[i] = (float)(i * 37 % 101 - 50) / 60, b[i] = (float)(i * 53 % 89 - 44) / 40;
    loam_gguf_builder *g = NULL;
    loam_status status = loam_gguf_builder_create(&g, NULL, false, err);
    if (status != LOAM_OK) return status;
    loam_gguf_set_text(g, "general.architecture", "llama", 5);
    loam_gguf_set_text(g, "general.type", "adapter", 7);
    loam_gguf_set_text(g, "adapter.type", "lora", 4);
    loam_gguf_set_f32(g, "adapter.lora.alpha", 8);
    loam_gguf_set_tensor(g, "blk.1.attn_q.weight.lora_a", LOAM_F32, (int64_t[]){ 256, 4, 1, 1 }, a);
    loam_gguf_set_tensor(g, "blk.1.attn_q.weight.lora_b", LOAM_F32, (int64_t[]){ 4, 256, 1, 1 }, b);
    status = loam_gguf_write(g, lora, NULL, err);
    loam_gguf_builder_free(g);
    return status;
}

static int set_up(void **state)
{
    (void)state;
    loam_error err;
    const char up[] = "ab cd\nef gh\nij\n", down[] = "kl mn\nop\nqr st uv\n";
    scratch_path(model, "control.gguf");
    scratch_path(positive, "control-p.txt");
    scratch_path(negative, "control-n.txt");
    scratch_path(vector, "control-v.gguf");
    scratch_path(lora, "control-l.gguf");
    scratch_path(session, "control.state");
    scratch_path(target, "control-link.gguf");
    if (!spill(positive, up, sizeof up - 1) || !spill(negative, down, sizeof down - 1)) return -1;
    return loam_debug_make_model(model, "tiny", "q8_0", 1, &err) || write_adapter(&err) ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    const char *all[] = { model, positive, negative, vector, lora, session, target };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) unlink(all[i]);
    return 0;
}

/* The text of a run with two more arguments (NULL: none). */
static char *text_with(const char *flag, const char *value)
{
    command_result r = flag ? command("run", "-m", model, "-p", "ab cd ef", "-n", "10", "--temp", "0", "--no-perf", flag, value)
                            : command("run", "-m", model, "-p", "ab cd ef", "-n", "10", "--temp", "0", "--no-perf");
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    char *text = strdup(r.out);
    command_free(&r);
    return text;
}

static void compare(const char *flag, const char *value, bool same)
{
    char *plain = text_with(NULL, NULL), *other = text_with(flag, value);
    if ((strcmp(plain, other) == 0) != same) fail_msg("%s %s: '%s' against '%s'", flag, value, other, plain);
    free(plain);
    free(other);
}

#define REFUSED(status, says, ...) \
    do { \
        command_result r_ = command(__VA_ARGS__); \
        if (r_.code != (status) || !strstr(r_.err, says)) fail_msg("exit %d in place of %d: %s", r_.code, status, r_.err); \
        command_free(&r_); \
    } while (0)

static void make_vector(const char *method)
{
    command_result r = command("cvector", "-m", model, "--positive", positive, "--negative", negative, "-o", vector, "--method", method);
    if (r.code) fail_msg("exit %d: %s", r.code, r.err);
    command_free(&r);
}

static void vectors(void **state)
{
    (void)state;
    loam_gguf *f;
    loam_gguf_tensor t;
    loam_error err;
    static float rows[2][3][256];
    char value[600];
    for (int method = 0; method < 2; method++) {
        make_vector(method ? "mean" : "pca");
        assert_int_equal(loam_gguf_open(&f, vector, NULL, &err), LOAM_OK);
        assert_int_equal(loam_gguf_n_tensors(f), 3);
        for (int i = 0; i < 3; i++) {
            char name[32];
            double length = 0;
            snprintf(name, sizeof name, "direction.%d", i + 1);
            assert_true(loam_gguf_tensor_find(f, name, &t) && t.type == LOAM_F32 && t.ne[0] == 256);
            memcpy(rows[method][i], t.data, sizeof rows[method][i]);
            for (int d = 0; d < 256; d++) length += (double)rows[method][i][d] * (double)rows[method][i][d];
            assert_true(length > 0.9999 && length < 1.0001);
        }
        loam_gguf_free(f);
    }
    for (int i = 0; i < 3; i++) {
        double dot = 0;
        for (int d = 0; d < 256; d++) dot += (double)rows[0][i][d] * (double)rows[1][i][d];
        assert_true(dot > 0 && dot < 0.99999); /* the same way, not the same axis */
    }
    snprintf(value, sizeof value, "%s=0", vector);
    compare("--control-vector", value, true);
    snprintf(value, sizeof value, "%s=60", vector);
    compare("--control-vector", value, false);
    REFUSED(2, "1-3", "run", "-m", model, "-p", "a", "--control-vector", vector, "--control-vector-layers", "2-9");
    REFUSED(2, "--control-vector-layers", "run", "-m", model, "-p", "a", "--control-vector-layers", "1-2");
    REFUSED(1, "direction.N", "run", "-m", model, "-p", "a", "--control-vector", lora);
    REFUSED(1, "cannot open", "run", "-m", model, "-p", "a", "--control-vector", "/nonexistent");
    REFUSED(1, "pairs", "cvector", "-m", model, "--positive", positive, "--negative", model, "-o", vector);
    REFUSED(2, "--positive", "cvector", "-m", model, "-o", vector);
    REFUSED(1, "the same", "cvector", "-m", model, "--positive", positive, "--negative", positive, "-o", vector);
}

static void adapters(void **state)
{
    (void)state;
    char value[600];
    snprintf(value, sizeof value, "%s=4", lora);
    compare("--lora", value, false);
    snprintf(value, sizeof value, "%s=0", lora);
    compare("--lora", value, true);
    REFUSED(1, "cannot open", "run", "-m", model, "-p", "a", "--lora", "/nonexistent=2");
    REFUSED(1, model, "run", "-m", model, "-p", "a", "--lora", model);
}

/* A state that was computed with an adapter is not taken up without it, nor the other way round. */
static void sessions_and_adapters(void **state)
{
    (void)state;
    char strong[600], weak[600];
    snprintf(strong, sizeof strong, "%s=4", lora);
    snprintf(weak, sizeof weak, "%s=2", lora);
    const char *order[] = { strong, weak, NULL, strong, strong, NULL };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char *cold = text_with(order[i] ? "--lora" : NULL, order[i]);
        command_result r = order[i] ? command("run", "-m", model, "-p", "ab cd ef", "-n", "10", "--temp", "0", "--no-perf", "--session", session,
                                              "--lora", order[i])
                                    : command("run", "-m", model, "-p", "ab cd ef", "-n", "10", "--temp", "0", "--no-perf", "--session", session);
        assert_int_equal(r.code, 0);
        assert_string_equal(r.out, cold);
        if (i && i != 4) assert_non_null(strstr(r.err, "not used"));
        free(cold);
        command_free(&r);
    }
}

static long number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at) fail_msg("no %s in %s", key, text);
    return strtol(at + strlen(key), NULL, 10);
}

static void memory_of_a_context(void **state)
{
    (void)state;
    command_result r = command("inspect", model, "--memory", "--json", "-c", "4096", "-ub", "64", "--parallel", "4", "-ctk", "q8_0", "-t", "1");
    assert_int_equal(r.code, 0);
    long cache = number_after(r.out, "\"cache\": "), total = number_after(r.out, "\"total\": "), sum = 0;
    const char *parts[] = { "\"weights\": ", "\"cache\": ", "\"buffers\": ", "\"outputs\": ", "\"tables\": " };
    for (int i = 0; i < 5; i++) sum += number_after(r.out, parts[i]);
    assert_int_equal(sum, total);
    command_free(&r);
    r = command("inspect", model, "--memory", "--json", "-c", "4096", "-ub", "64", "--parallel", "4", "-ctk", "f16", "-t", "1");
    assert_true(number_after(r.out, "\"cache\": ") > cache);
    command_free(&r);
    r = command("inspect", model, "--memory", "-c", "4096");
    assert_true(r.code == 0 && strstr(r.out, "weights") && strstr(r.out, "MiB"));
    command_free(&r);
    REFUSED(2, "--memory", "inspect", model, "-c", "5");
}

static void wrong_words(void **state)
{
    (void)state;
    REFUSED(2, "'extra' is no part of the command 'run'", "help", "run", "extra");
    REFUSED(2, "no type of a cache", "run", "-m", model, "-p", "a", "-ctk", "q4_k");
    REFUSED(2, "empty", "run", "-m", "", "-p", "a");
}

static void links_are_written_through(void **state)
{
    (void)state;
    struct stat st;
    unlink(vector);
    unlink(target);
    assert_true(spill(vector, "old", 3));
    assert_int_equal(symlink(vector, target), 0);
    command_result r = command("cvector", "-m", model, "--positive", positive, "--negative", negative, "-o", target);
    assert_int_equal(r.code, 0);
    command_free(&r);
    assert_true(lstat(target, &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(stat(vector, &st) == 0 && st.st_size > 1000);
    unlink(vector);
    REFUSED(1, "leads nowhere", "cvector", "-m", model, "--positive", positive, "--negative", negative, "-o", target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors), cmocka_unit_test(adapters), cmocka_unit_test(sessions_and_adapters), cmocka_unit_test(memory_of_a_context),
        cmocka_unit_test(wrong_words), cmocka_unit_test(links_are_written_through),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
