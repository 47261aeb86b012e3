/* cli_train.c - training from the outside: a run that is killed again and again ends with the same weights; Ctrl-C saves;
 * descriptions that are wrong are refused by name; fine-tuning and adapters; the log and its picture. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

static char dir[512];

static const char *in_dir(char out[600], const char *name)
{
    snprintf(out, 600, "%s/%s", dir, name);
    return out;
}

static void put_file(const char *name, const char *text)
{
    char path[600];
    assert_true(spill(in_dir(path, name), text, strlen(text)));
}

static void done(command_result r)
{
    if (r.code) fail_msg("%d: %s", r.code, r.err);
    command_free(&r);
}

/* A small world of sentences, so that there is something to learn. */
static void make_texts(void)
{
    static const char *const who[] = { "the cat", "a dog", "the old man", "my friend" };
    static const char *const does[] = { "saw", "liked", "found", "lost" };
    static const char *const what[] = { "a ball", "the house", "a red hat", "the moon" };
    char *text = malloc(1 << 17), *p = text, *lines = malloc(1 << 17), *q = lines;
    dice d = { 5 };
    for (int i = 0; i < 300; i++) {
        for (uint32_t k = 2 + dice_below(&d, 4); k > 0; k--)
            p += sprintf(p, "%s %s %s. ", who[dice_below(&d, 4)], does[dice_below(&d, 4)], what[dice_below(&d, 4)]);
        p += sprintf(p, "\n\n");
        q += sprintf(q, "{\"prompt\": \"%s %s\", \"completion\": \" the sea.\"}\n", who[dice_below(&d, 4)], does[dice_below(&d, 4)]);
    }
    put_file("text.txt", text);
    put_file("pairs.jsonl", lines);
    free(text);
    free(lines);
}

static int setup(void **state)
{
    char text[600], vocab[600];
    (void)state;
    scratch_path(dir, "train-e2e");
    mkdir(dir, 0700);
    make_texts();
    done(command("tokenizer", "train", "-f", in_dir(text, "text.txt"), "--vocab", "320", "-o", in_dir(vocab, "vocab.gguf")));
    return 0;
}

static int teardown(void **state)
{
    char line[700];
    (void)state;
    snprintf(line, sizeof line, "rm -r '%s'", dir);
    return system(line);
}

/* A description; `more` goes into it, and what is named twice there counts as given by it. */
static const char *config(char path[600], const char *name, int steps, const char *more)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{\"model\": {\"architecture\": \"llama\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_head_kv\": 2, \"n_ff\": 64, \"n_ctx\": 64},\n"
             "\"tokenizer\": \"%s/vocab.gguf\", \"data\": {\"train\": \"%s/text.txt\", \"hold_out\": 0.05},\n"
             "\"optimizer\": {\"rate\": 0.01}, \"schedule\": {\"kind\": \"cosine\", \"warmup\": 3}, \"batch\": {\"rows\": 2, \"accumulate\": 2},\n"
             "\"validation\": {\"every\": 7}, \"steps\": %d, \"seed\": 3, \"output\": \"%s/%s.gguf\", \"log\": \"%s/%s.log\"%s%s}\n",
             dir, dir, steps, dir, name, dir, name, more ? ", " : "", more ? more : "");
    char file[64];
    snprintf(file, sizeof file, "%s.json", name);
    put_file(file, text);
    return in_dir(path, file);
}

static void same_files(const char *a, const char *b)
{
    char path[600];
    size_t n, m;
    char *x = slurp(in_dir(path, a), &n), *y = slurp(in_dir(path, b), &m);
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

/* Runs a command in the background; kills it after some milliseconds unless it ends before. Its exit code, -1 where killed. */
static int run_and_kill(const char *config_path, int milliseconds, int signal_number)
{
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        execl(LOAM_COMMAND, LOAM_COMMAND, "train", "--config", config_path, (char *)NULL);
        _exit(127);
    }
    int status;
    for (int i = 0; i < milliseconds; i++) {
        if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        usleep(1000);
    }
    kill(child, signal_number);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_killed_runs(void **state)
{
    char path[600], name[640], more[700];
    (void)state;
    done(command("train", "--config", config(path, "whole", 60, NULL)));
    snprintf(more, sizeof more, "\"checkpoint\": {\"file\": \"%s/cut.ckpt\", \"every\": 2}", dir);
    config(path, "cut", 60, more);
    dice d = { 11 };
    int kills = 0, code = -1;
    for (int i = 0; i < 200 && code != 0; i++) {
        code = run_and_kill(path, i < 5 ? 15 + (int)dice_below(&d, 120) : 200000, SIGKILL);
        kills += code == -1;
        if (code > 0) fail_msg("exit code %d", code);
    }
    assert_int_equal(code, 0);
    print_message("%d kills\n", kills);
    assert_true(kills > 0);
    same_files("whole.gguf", "cut.gguf");
    /* What a killed run leaves beside its files is gone or has a name of its own. */
    assert_int_equal(access(in_dir(name, "cut.gguf.fresh"), F_OK), -1);
}

static void test_interrupt(void **state)
{
    char path[600], file[600], more[700];
    (void)state;
    snprintf(more, sizeof more, "\"checkpoint\": {\"file\": \"%s/int.ckpt\", \"every\": 100000}", dir);
    config(path, "int", 60, more);
    int code = -1;
    for (int wait = 60; wait < 2000 && access(in_dir(file, "int.ckpt"), F_OK) != 0; wait *= 2) code = run_and_kill(path, wait, SIGINT);
    assert_int_equal(access(in_dir(file, "int.ckpt"), F_OK), 0); /* though no checkpoint was due */
    (void)code;
    command_result r = command("train", "--config", path);
    assert_int_equal(r.code, 0);
    command_free(&r);
    same_files("whole.gguf", "int.gguf");
}

static void test_log_and_plot(void **state)
{
    char path[600], svg[600];
    (void)state;
    char *log = slurp(in_dir(path, "cut.log"), NULL);
    int lines = 0, valid = 0;
    long last = 0;
    for (char *p = log; p && *p; p = strchr(p, '\n') + 1) {
        long step = strtol(strstr(p, "\"step\":") + 7, NULL, 10);
        bool is_valid = strstr(p, "valid_loss") && strstr(p, "valid_loss") < strchr(p, '\n');
        assert_true(step == last + !is_valid); /* each step once, although runs were cut */
        last = step;
        lines++;
        valid += is_valid;
    }
    free(log);
    assert_int_equal(last, 60);
    assert_int_equal(valid, 9);
    assert_int_equal(lines, 69);
    done(command("train", "plot", path, "-o", in_dir(svg, "plot.svg")));
    char *text = slurp(svg, NULL);
    assert_non_null(strstr(text, "<svg"));
    assert_non_null(strstr(text, "class=\"valid\""));
    free(text);
    command_result r = command("train", "plot", in_dir(path, "text.txt"));
    assert_int_equal(r.code, 1);
    command_free(&r);
}

static void refused(const char *text, const char *part)
{
    char path[600];
    put_file("bad.json", text);
    command_result r = command("train", "--config", in_dir(path, "bad.json"));
    assert_int_equal(r.code, 1);
    if (!strstr(r.err, part)) fail_msg("'%s' is not in: %s", part, r.err);
    command_free(&r);
}

static void test_refusals(void **state)
{
    char path[600], text[2400];
    (void)state;
    refused("{", "line");
    refused("[]", "no JSON object");
    refused("{\"stepps\": 3}", "did you mean \"steps\"");
    refused("{\"optimizer\": {\"rat\": 3}}", "did you mean \"optimizer.rate\"");
    refused("{\"rate\": 3}", "did you mean \"optimizer.rate\"");
    refused("{\"optimiser\": {}}", "did you mean \"optimizer\"");
    refused("{\"steps\": 1.5}", "a whole number");
    refused("{\"steps\": 0}", "a whole number from 1");
    refused("{\"optimizer\": {\"kind\": \"adam\"}}", "adamw|sgd|muon");
    refused("{\"steps\": 5, \"steps\": 6}", "duplicate");
    refused("{\"base\": \"b\", \"model\": {\"n_layer\": 3}}", "leave out \"model\"");
    refused("{\"data\": {\"train\": \"a\"}, \"steps\": 1}", "\"model.architecture\" is missing");
    snprintf(text, sizeof text, "{\"base\": \"%s/whole.gguf\", \"steps\": 1, \"output\": \"x\"}", dir);
    refused(text, "\"data.train\" is missing");
    snprintf(text, sizeof text, "{\"base\": \"%s/whole.gguf\", \"steps\": 1, \"output\": \"x\", \"data\": {\"train\": \"%s/none.txt\"}}", dir, dir);
    refused(text, "none.txt");
    snprintf(text, sizeof text,
             "{\"base\": \"%s/whole.gguf\", \"steps\": 1, \"output\": \"x\", \"data\": {\"train\": \"%s/text.txt\"}, \"batch\": {\"n_ctx\": 128}}", dir, dir);
    refused(text, "the context of the model is 64");
    snprintf(text, sizeof text,
             "{\"model\": {\"architecture\": \"llama\", \"n_layer\": 900, \"n_embd\": 8192, \"n_head\": 64, \"n_ff\": 32768},"
             "\"tokenizer\": \"%s/vocab.gguf\", \"steps\": 1, \"output\": \"%s/x\", \"data\": {\"train\": \"%s/text.txt\"}}", dir, dir, dir);
    refused(text, "MB left");
    assert_int_equal(access(in_dir(path, "x.fresh"), F_OK), -1);
    put_file("empty.txt", "\n\n");
    snprintf(text, sizeof text, "{\"base\": \"%s/whole.gguf\", \"steps\": 1, \"output\": \"x\", \"data\": {\"train\": \"%s/empty.txt\"}}", dir, dir);
    refused(text, "no text");
    put_file("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": }\n");
    snprintf(text, sizeof text, "{\"base\": \"%s/whole.gguf\", \"steps\": 1, \"output\": \"x\", \"data\": {\"train\": \"%s/bad.jsonl\"}}", dir, dir);
    refused(text, "line 2");
    snprintf(text, sizeof text, "\"recompute\": true, \"bf16\": false, \"threads\": 1, \"type\": \"f16\"");
    done(command("train", "--config", config(path, "extras", 2, text)));
    /* A rate that cannot work: the loss is not finite, and the step is named. */
    char *wild = slurp(in_dir(path, "extras.json"), NULL), *rate = strstr(wild, "0.01}");
    memcpy(rate, "1e6}}", 4);
    rate[3] = '}';
    rate[4] = ' ';
    char *steps = strstr(wild, "\"steps\": 2,");
    memcpy(steps, "\"steps\": 90", 11);
    char *patched = malloc(strlen(wild) + 64);
    size_t head = (size_t)(steps - wild) + 11;
    memcpy(patched, wild, head);
    sprintf(patched + head, ",%s", steps + 11);
    refused(patched, "step ");
    free(wild);
    free(patched);
}

/* Twenty documents of random letters can be learned by heart only: validation soon gets worse, and the best model is kept. */
static void test_early_stop(void **state)
{
    char text[4096] = "", path[600];
    dice d = { 3 };
    (void)state;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 30; k++) snprintf(text + strlen(text), sizeof text - strlen(text), "%c%s", 'a' + (int)dice_below(&d, 26), k % 3 ? "" : " ");
        snprintf(text + strlen(text), sizeof text - strlen(text), "\n\n");
    }
    put_file("letters.txt", text);
    snprintf(text, sizeof text,
             "{\"base\": \"%s/whole.gguf\", \"data\": {\"train\": \"%s/letters.txt\", \"hold_out\": 0.3}, \"optimizer\": {\"rate\": 0.01},"
             "\"schedule\": {\"kind\": \"constant\"}, \"batch\": {\"rows\": 4}, \"steps\": 3000, \"validation\": {\"every\": 4, \"patience\": 3},"
             "\"output\": \"%s/early.gguf\", \"log\": \"%s/early.log\"}", dir, dir, dir, dir);
    put_file("early.json", text);
    command_result r = command("train", "--config", in_dir(path, "early.json"));
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "no improvement any more"));
    command_free(&r);
    char *log = slurp(in_dir(path, "early.log"), NULL);
    double best = 1e9, last = 0;
    for (char *p = log; (p = strstr(p, "\"valid_loss\":")); p++) {
        last = strtod(p + 13, NULL);
        if (last < best) best = last;
    }
    assert_true(last > best);
    free(log);
    assert_int_equal(access(in_dir(path, "early.gguf"), F_OK), 0);
}

static double valid_loss(const char *log)
{
    char path[600];
    char *text = slurp(in_dir(path, log), NULL), *p = text, *last = NULL;
    while ((p = strstr(p, "\"valid_loss\":"))) last = p += 13;
    assert_non_null(last);
    double loss = strtod(last, NULL);
    free(text);
    return loss;
}

static double first_loss(const char *log)
{
    char path[600];
    char *text = slurp(in_dir(path, log), NULL);
    double loss = strtod(strstr(text, "\"loss\":") + 7, NULL);
    free(text);
    return loss;
}

static double perplexity_of(command_result r)
{
    if (r.code) fail_msg("%d: %s", r.code, r.err);
    const char *p = strstr(r.out, "\"perplexity\":");
    assert_non_null(p);
    double v = strtod(p + 13, NULL);
    command_free(&r);
    return v;
}
#define perplexity(...) perplexity_of(command("perplexity", __VA_ARGS__))

static void test_finetune(void **state)
{
    char base[600], data[600], out[600], adapter[600], merged[600], again[600], log[600], peft[600], config_json[700];
    size_t n, m;
    (void)state;
    in_dir(base, "whole.gguf");
    in_dir(data, "pairs.jsonl");
    char *before = slurp(base, &n);
    done(command("finetune", "-m", base, "--data", data, "--hold-out", "0.1", "--steps", "25", "--rate", "0.003", "-o", in_dir(out, "full.gguf"),
                 "--log", in_dir(log, "full.log")));
    assert_true(valid_loss("full.log") < 0.5 * first_loss("full.log"));
    done(command("finetune", "-m", base, "--data", data, "--hold-out", "0.1", "--steps", "60", "--rate", "0.01", "--lora", "--rank", "4",
                 "--targets", "attn_q,attn_v,ffn_up,ffn_down", "--dropout", "0.05", "-o", in_dir(adapter, "adapter.gguf"), "--merged",
                 in_dir(merged, "merged.gguf"), "--peft", in_dir(peft, "peft"), "--log", in_dir(log, "lora.log")));
    assert_true(valid_loss("lora.log") < 0.5 * first_loss("lora.log"));
    char *after = slurp(base, &m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n); /* the base is as it was */
    free(before);
    free(after);
    /* The merged model, the base merged by the tool, and the base with the adapter beside it predict alike. */
    done(command("lora", "merge", base, adapter, in_dir(again, "again.gguf")));
    in_dir(log, "text.txt");
    double a = perplexity("-m", merged, "-f", log, "-c", "64", "--chunks", "4", "--json");
    double b = perplexity("-m", again, "-f", log, "-c", "64", "--chunks", "4", "--json");
    double c = perplexity("-m", base, "--lora", adapter, "-f", log, "-c", "64", "--chunks", "4", "--json");
    double plain = perplexity("-m", base, "-f", log, "-c", "64", "--chunks", "4", "--json");
    print_message("merged %.6f, merged by the tool %.6f, with adapter %.6f, without %.6f\n", a, b, c, plain);
    assert_true(a > 1 && a < b * 1.0001 && b < a * 1.0001 && a < c * 1.0001 && c < a * 1.0001);
    assert_true(a > plain * 1.001 || a < plain * 0.999);
    snprintf(config_json, sizeof config_json, "%s/adapter_config.json", peft);
    char *text = slurp(config_json, NULL);
    assert_non_null(strstr(text, "\"r\": 4"));
    assert_non_null(strstr(text, "\"q_proj\""));
    free(text);
    snprintf(config_json, sizeof config_json, "%s/adapter_model.safetensors", peft);
    text = slurp(config_json, &n);
    assert_non_null(strstr(text + 8, "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"));
    free(text);
    command_result r = command("finetune", "-m", base, "--data", data, "-o", out, "--rank", "4");
    assert_int_equal(r.code, 2);
    command_free(&r);
}

static void test_architectures(void **state)
{
    static const char *const names[] = { "llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "olmo2", "gpt2", "smollm3", "stablelm" };
    char path[600], text[4096], name[32];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text,
                 "{\"model\": {\"architecture\": \"%s\", \"n_layer\": 2, \"n_embd\": 32, \"n_head\": 4, \"n_ff\": 64, \"n_ctx\": 64%s},\n"
                 "\"tokenizer\": \"%s/vocab.gguf\", \"data\": {\"train\": \"%s/text.txt\"}, \"optimizer\": {\"rate\": 0.01},\n"
                 "\"batch\": {\"rows\": 2}, \"steps\": 20, \"output\": \"%s/arch.gguf\", \"log\": \"%s/arch.log\"}\n",
                 names[i], strncmp(names[i], "gemma", 5) == 0 && names[i][5] ? ", \"keys\": {\"attention.sliding_window\": 32}" : "", dir, dir, dir, dir);
        snprintf(name, sizeof name, "arch.json");
        put_file(name, text);
        command_result r = command("train", "--config", in_dir(path, name));
        if (r.code) fail_msg("%s: %s", names[i], r.err);
        command_free(&r);
        char *log = slurp(in_dir(path, "arch.log"), NULL), *p = log, *last = log;
        while ((p = strstr(p, "\"loss\":"))) last = p += 7;
        double first = strtod(strstr(log, "\"loss\":") + 7, NULL), end = strtod(last, NULL);
        print_message("%-10s loss %.3f -> %.3f\n", names[i], first, end);
        assert_true(end < 0.8 * first);
        free(log);
        r = command("run", "-m", in_dir(path, "arch.gguf"), "-p", "the cat", "-n", "4", "--temp", "0");
        if (r.code) fail_msg("%s: %s", names[i], r.err);
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_runs), cmocka_unit_test(test_interrupt), cmocka_unit_test(test_log_and_plot),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_finetune),  cmocka_unit_test(test_early_stop),
        cmocka_unit_test(test_architectures),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
