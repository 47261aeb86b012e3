/* train.c - `loam train --config FILE` and `loam finetune`: runs a training job, shows how it goes, keeps a log.
 *
 * The log has a JSON object a line: {"step", "loss", "rate", "norm", "tokens", "seconds"} for updates, {"step", "valid_loss", ...}
 * for validations. A run that goes on drops the lines behind its checkpoint and appends. finetune writes the description of
 * the job itself, from its options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loam/job.h"
#include "session.h"

#define SECOND 1000000000u

typedef struct watcher {
    const options *o;
    FILE *log;
    uint64_t drawn_ns;
    bool terminal, drawn;
    double loss; /* smoothed */
} watcher;

/* "1 h 12 min", "45 s" */
static const char *duration(double seconds, char out[32])
{
    if (seconds >= 3600) snprintf(out, 32, "%.0f h %.0f min", floor(seconds / 3600), fmod(seconds, 3600) / 60);
    else if (seconds >= 60) snprintf(out, 32, "%.0f min", seconds / 60);
    else snprintf(out, 32, "%.0f s", seconds);
    return out;
}

static void clear_line(watcher *w)
{
    if (w->drawn) fprintf(stderr, "\r\033[K");
    w->drawn = false;
}

/* On a terminal one line that is redrawn; elsewhere a line every ten seconds. */
static void show_step(watcher *w, const loam_job_event *e)
{
    uint64_t now = now_ns(), pause = w->terminal ? SECOND / 10 : (uint64_t)SECOND * 10;
    char left[32];
    if (e->skipped) {
        clear_line(w);
        say_note(w->o, "step %lld: a gradient was not finite; the batch was skipped", (long long)e->step + 1);
        return;
    }
    w->loss = w->loss > 0 ? 0.95 * w->loss + 0.05 * e->loss : e->loss;
    if (w->drawn_ns && now - w->drawn_ns < pause && e->step < e->steps) return;
    w->drawn_ns = now;
    clear_line(w);
    fprintf(stderr, "step %lld of %lld  loss %.4f  rate %.2e  %.0f tokens/s  %.0f MB  %s left%s", (long long)e->step, (long long)e->steps,
            w->loss, e->rate, e->tokens_per_second, (double)resident_bytes(NULL) / 1e6, duration(e->seconds_left, left),
            w->terminal ? "" : "\n");
    fflush(stderr);
    w->drawn = w->terminal;
}

static void log_event(const watcher *w, const loam_job_event *e)
{
    json j;
    if (!w->log || e->kind > LOAM_JOB_VALID) return;
    json_begin(&j, w->log);
    j.one_line = true;
    json_open(&j, NULL, '{');
    json_int(&j, "step", e->step);
    json_num(&j, e->kind == LOAM_JOB_VALID ? "valid_loss" : "loss", e->loss);
    if (e->kind == LOAM_JOB_VALID) {
        json_num(&j, "bits_per_byte", e->bits_per_byte);
        json_bool(&j, "best", e->best);
    } else {
        json_num(&j, "rate", e->rate);
        json_num(&j, "norm", e->norm);
        if (e->skipped) json_bool(&j, "skipped", true);
    }
    json_int(&j, "epoch", e->epoch);
    json_int(&j, "tokens", e->tokens);
    json_num(&j, "seconds", e->seconds);
    json_close(&j, '}');
    fflush(w->log);
}

static bool watch(void *user, const loam_job_event *e)
{
    watcher *w = user;
    log_event(w, e);
    switch (e->kind) {
    case LOAM_JOB_STEP: show_step(w, e); break;
    case LOAM_JOB_VALID:
        clear_line(w);
        fprintf(stderr, "step %lld: validation loss %.4f", (long long)e->step, e->loss);
        if (e->bits_per_byte > 0) fprintf(stderr, ", %.4f bits per byte", e->bits_per_byte);
        fprintf(stderr, "%s\n", e->best ? ", the best so far" : "");
        break;
    case LOAM_JOB_EARLY:
        clear_line(w);
        fprintf(stderr, "step %lld: no improvement any more; the best model is kept\n", (long long)e->step);
        break;
    case LOAM_JOB_SAVED:
    case LOAM_JOB_WRITTEN: break;
    }
    return !interrupted();
}

/* ---- the log ---- */

static long long step_of(const char *line)
{
    const char *p = strstr(line, "\"step\":");
    return p ? strtoll(p + 7, NULL, 10) : 0;
}

/* Drops the lines of steps behind `resumed`: into another file, which takes the place of the log when it is whole. */
static bool cut_log(const options *o, const char *path, int64_t resumed)
{
    buffer old = { 0 }, other = { 0 };
    if (!read_file(o, path, &old)) return false;
    buffer_add(&other, path, strlen(path));
    buffer_add(&other, ".new", 4);
    FILE *f = fopen(other.data, "we");
    for (char *line = old.data, *end; f && line && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (step_of(line) <= resumed) fprintf(f, "%s\n", line);
    }
    bool done = f && fclose(f) == 0 && rename(other.data, path) == 0;
    buffer_free(&old);
    buffer_free(&other);
    return done;
}

/* Opens the log: of a run that goes on for appending, else anew. */
static int open_log(watcher *w, const char *path, int64_t resumed)
{
    if (!path) return EXIT_DONE;
    bool cut = resumed == 0 || access(path, F_OK) != 0 || cut_log(w->o, path, resumed);
    w->log = cut ? fopen(path, resumed ? "ae" : "we") : NULL;
    return w->log ? EXIT_DONE : say_failed(w->o, "%s: the log cannot be written", path);
}

/* ---- running ---- */

static void show_facts(const loam_job_facts *f)
{
    fprintf(stderr, "model: %s; %.3g M values learn, %.0f MB\n", f->model, (double)f->n_trainable / 1e6, (double)f->memory / 1e6);
    fprintf(stderr, "data: %lld documents, %lld held back for validation; %lld steps of %lld tokens\n", (long long)f->n_train,
            (long long)f->n_valid, (long long)f->steps, (long long)f->step_tokens);
    if (f->resumed) fprintf(stderr, "going on after step %lld\n", (long long)f->resumed);
}

static int run_job(const options *o, const char *text, size_t len, const char *label)
{
    loam_error err;
    loam_job *job;
    watcher w = { .o = o, .terminal = isatty(STDERR_FILENO) };
    show_log(o);
    if (loam_job_open(&job, text, len, label, opt_given(o, OPT_FRESH), &err) != LOAM_OK) return say_error(o, &err);
    loam_job_facts facts = loam_job_describe(job);
    show_facts(&facts);
    int code = open_log(&w, opt_given(o, OPT_TRAIN_LOG) ? opt_text(o, OPT_TRAIN_LOG) : facts.log, facts.resumed);
    catch_interrupt();
    loam_status status = code == EXIT_DONE ? loam_job_run(job, watch, &w, &err) : LOAM_OK;
    clear_line(&w);
    if (status != LOAM_OK) code = say_error(o, &err);
    if (w.log && fclose(w.log) != 0 && code == EXIT_DONE) code = say_failed(o, "the log could not be written to its end");
    loam_job_free(job);
    return code;
}

int cmd_train(const options *o)
{
    buffer text = { 0 };
    if (!opt_given(o, OPT_CONFIG)) return say_usage(o, "--config FILE is missing: the description of the run, see docs/training.md");
    const char *path = opt_text(o, OPT_CONFIG);
    int code = read_file(o, path, &text) ? run_job(o, text.data ? text.data : "", text.len, path) : EXIT_FAILED;
    buffer_free(&text);
    return code;
}

/* ---- finetune: the options as a description ---- */

static void texts(json *j, const options *o, const char *key, option_id id)
{
    json_open(j, key, '[');
    for (int i = 0; i < o->n_list; i++)
        if (o->list_of[i] == id) json_string(j, NULL, o->list[i]);
    json_close(j, ']');
}

static void data_section(json *j, const options *o)
{
    json_open(j, "data", '{');
    texts(j, o, "train", OPT_DATA);
    if (opt_given(o, OPT_VALID)) texts(j, o, "valid", OPT_VALID);
    if (opt_given(o, OPT_HOLD_OUT)) json_num(j, "hold_out", opt_num(o, OPT_HOLD_OUT));
    if (opt_given(o, OPT_SPLIT)) json_string(j, "split", opt_text(o, OPT_SPLIT));
    if (opt_given(o, OPT_TOO_LONG)) json_string(j, "too_long", opt_text(o, OPT_TOO_LONG));
    json_close(j, '}');
}

/* "attn_q,attn_v" as a list. */
static void lora_section(json *j, const options *o)
{
    if (!opt_given(o, OPT_LEARN_LORA)) return;
    json_open(j, "lora", '{');
    json_int(j, "rank", opt_int(o, OPT_LORA_RANK));
    json_num(j, "alpha", opt_num(o, OPT_LORA_ALPHA));
    json_num(j, "dropout", opt_num(o, OPT_LORA_DROPOUT));
    if (opt_given(o, OPT_LORA_TARGETS)) {
        json_open(j, "targets", '[');
        for (const char *p = opt_text(o, OPT_LORA_TARGETS); *p;) {
            size_t n = strcspn(p, ",");
            json_text(j, NULL, p, n);
            p += n + (p[n] == ',');
        }
        json_close(j, ']');
    }
    json_close(j, '}');
}

static void optimizer_section(json *j, const options *o)
{
    json_open(j, "optimizer", '{');
    json_string(j, "kind", opt_given(o, OPT_OPTIMIZER) ? opt_text(o, OPT_OPTIMIZER) : "adamw");
    json_num(j, "rate", opt_num(o, OPT_RATE));
    if (opt_given(o, OPT_WEIGHT_DECAY)) json_num(j, "weight_decay", opt_num(o, OPT_WEIGHT_DECAY));
    json_close(j, '}');
    json_open(j, "schedule", '{');
    json_string(j, "kind", opt_given(o, OPT_SCHEDULE) ? opt_text(o, OPT_SCHEDULE) : "cosine");
    json_int(j, "warmup", opt_int(o, OPT_WARMUP));
    json_close(j, '}');
}

static void run_section(json *j, const options *o)
{
    json_open(j, "batch", '{');
    json_int(j, "rows", opt_int(o, OPT_ROWS));
    json_int(j, "accumulate", opt_int(o, OPT_ACCUMULATE));
    if (opt_given(o, OPT_ROW_TOKENS)) json_int(j, "n_ctx", opt_int(o, OPT_ROW_TOKENS));
    json_close(j, '}');
    if (opt_given(o, OPT_STEPS)) json_int(j, "steps", opt_int(o, OPT_STEPS));
    else json_num(j, "epochs", opt_num(o, OPT_EPOCHS));
    json_int(j, "seed", opt_int(o, OPT_TRAIN_SEED));
    json_int(j, "threads", opt_given(o, OPT_TRAIN_THREADS) ? opt_int(o, OPT_TRAIN_THREADS) : 0);
    json_bool(j, "recompute", opt_given(o, OPT_RECOMPUTE));
    json_bool(j, "bf16", opt_given(o, OPT_BF16));
    if (opt_given(o, OPT_VALID_EVERY) || opt_given(o, OPT_PATIENCE)) {
        json_open(j, "validation", '{');
        if (opt_given(o, OPT_VALID_EVERY)) json_int(j, "every", opt_int(o, OPT_VALID_EVERY));
        if (opt_given(o, OPT_PATIENCE)) json_int(j, "patience", opt_int(o, OPT_PATIENCE));
        json_close(j, '}');
    }
    if (opt_given(o, OPT_CHECKPOINT)) {
        json_open(j, "checkpoint", '{');
        json_string(j, "file", opt_text(o, OPT_CHECKPOINT));
        json_int(j, "every", opt_int(o, OPT_SAVE_EVERY));
        json_close(j, '}');
    }
}

static void describe(json *j, const options *o)
{
    bool lora = opt_given(o, OPT_LEARN_LORA);
    json_open(j, NULL, '{');
    json_string(j, "base", opt_text(o, OPT_MODEL));
    data_section(j, o);
    lora_section(j, o);
    optimizer_section(j, o);
    run_section(j, o);
    if (opt_given(o, OPT_TUNED)) json_string(j, lora ? "adapter" : "output", opt_text(o, OPT_TUNED));
    if (opt_given(o, OPT_MERGED)) json_string(j, "output", opt_text(o, OPT_MERGED));
    if (opt_given(o, OPT_PEFT)) json_string(j, "peft", opt_text(o, OPT_PEFT));
    json_string(j, "type", opt_given(o, OPT_TUNED_TYPE) ? opt_text(o, OPT_TUNED_TYPE) : "f32");
    json_close(j, '}');
}

static int check_finetune(const options *o)
{
    static const option_id of_adapters[] = { OPT_LORA_RANK, OPT_LORA_ALPHA, OPT_LORA_DROPOUT, OPT_LORA_TARGETS, OPT_MERGED, OPT_PEFT };
    bool lora = opt_given(o, OPT_LEARN_LORA);
    if (!opt_given(o, OPT_MODEL)) return say_usage(o, "-m FILE is missing: the model to tune");
    if (!opt_given(o, OPT_DATA)) return say_usage(o, "--data FILE is missing: what to learn from");
    if (!opt_given(o, OPT_TUNED) && !(lora && (opt_given(o, OPT_MERGED) || opt_given(o, OPT_PEFT))))
        return say_usage(o, "-o FILE is missing: where the %s goes", lora ? "adapter" : "model");
    for (size_t i = 0; i < sizeof of_adapters / sizeof *of_adapters; i++)
        if (!lora && opt_given(o, of_adapters[i])) return say_usage(o, "%s has no effect without --lora", option_shown_name(of_adapters[i]));
    if (opt_given(o, OPT_STEPS) && opt_given(o, OPT_EPOCHS)) return say_usage(o, "give either --steps or --epochs");
    if (opt_given(o, OPT_VALID) && opt_given(o, OPT_HOLD_OUT)) return say_usage(o, "give either --valid or --hold-out");
    return EXIT_DONE;
}

int cmd_finetune(const options *o)
{
    int code = check_finetune(o);
    if (code != EXIT_DONE) return code;
    char *text = NULL;
    size_t len = 0;
    FILE *f = need(open_memstream(&text, &len));
    json j;
    json_begin(&j, f);
    describe(&j, o);
    fclose(f);
    code = run_job(o, text, len, "finetune");
    free(text);
    return code;
}
