/* run.c - `loam run`: a prompt, its completion on standard output, what it took on standard error.
 *
 * Standard output is the completion and one newline, nothing else (with --display-prompt the prompt before it). The context is
 * as large as prompt and -n ask for unless -c says otherwise; a prompt that does not fit is an error and is never cut. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

#define CONTEXT_USUAL 4096 /* tokens where neither -c nor -n says how long the text may become */

/* Without any prompt run shows what it can do, and the prompt is written as well: */
static const char usual_prompt[] = "Once upon a time there was a";
#define USUAL_LENGTH 300 /* tokens: a story of Loam's own model ends before */

typedef struct run {
    session s;
    loam_sampler *sampler;
    loam_detokenizer *text;
    buffer prompt;
    loam_token *ids; /* of the prompt */
    size_t n_ids;
    bool usual;    /* nobody gave a prompt */
    int64_t limit; /* tokens to write, -1 none */
    int64_t written;
    uint64_t prompt_ns, write_ns;
    int32_t *fed; /* [n_ctx] ids that the context holds */
    size_t n_fed, reused;
} run;

/* Editors and echo end a text with a newline that nobody means: one is dropped. */
static bool read_prompt_file(run *r, const options *o, const char *path)
{
    if (!read_file(o, path, &r->prompt)) return false;
    if (r->prompt.len && r->prompt.data[r->prompt.len - 1] == '\n') r->prompt.data[--r->prompt.len] = 0;
    return true;
}

static bool read_prompt(run *r, const options *o)
{
    if (opt_given(o, OPT_PROMPT)) {
        buffer_add(&r->prompt, opt_text(o, OPT_PROMPT), strlen(opt_text(o, OPT_PROMPT)));
        if (opt_given(o, OPT_ESCAPE)) unescape(&r->prompt);
        return true;
    }
    if (opt_given(o, OPT_FILE)) return read_prompt_file(r, o, opt_text(o, OPT_FILE));
    if (!isatty(STDIN_FILENO)) {
        if (!read_prompt_file(r, o, "-")) return false;
        if (r->prompt.len || opt_given(o, OPT_MODEL)) return true;
    }
    buffer_add(&r->prompt, usual_prompt, sizeof usual_prompt - 1);
    r->usual = true;
    if (!opt_given(o, OPT_PREDICT)) r->limit = USUAL_LENGTH;
    say_note(o, "no prompt is given; continuing \"%s\"", usual_prompt);
    return true;
}

static int check_options(const options *o)
{
    if (opt_given(o, OPT_PROMPT) && opt_given(o, OPT_FILE)) return say_usage(o, "give the prompt by either -p or -f");
    if (opt_given(o, OPT_ESCAPE) && !opt_given(o, OPT_PROMPT)) return say_usage(o, "-e is about -p, which is not given");
    if (opt_given(o, OPT_DISPLAY_PROMPT) && opt_given(o, OPT_NO_DISPLAY_PROMPT))
        return say_usage(o, "give either --display-prompt or --no-display-prompt");
    return EXIT_DONE;
}

/* Tokens of the context, see above. */
static uint32_t context_size(const run *r, const options *o)
{
    uint64_t trained = (uint64_t)loam_model_n_ctx_train(r->s.model), wanted;
    if (opt_given(o, OPT_CTX)) return (uint32_t)(opt_int(o, OPT_CTX) ? opt_int(o, OPT_CTX) : (int64_t)trained);
    wanted = r->n_ids + (r->limit >= 0 ? (uint64_t)r->limit : CONTEXT_USUAL);
    return (uint32_t)(trained && wanted > trained ? trained : wanted < 1 ? 1 : wanted);
}

static int need_text_model(const run *r, const options *o)
{
    const loam_model *m = r->s.model;
    if (!loam_model_has_decoder(m))
        return say_failed(o, "architecture '%s' gives embeddings, not text: see loam embed", loam_model_architecture(m));
    if (loam_model_has_encoder(m) && loam_model_decoder_start(m) < 0)
        return say_failed(o, "architecture '%s' reads whole texts and does not continue one", loam_model_architecture(m));
    return EXIT_DONE;
}

static int prepare(run *r, const options *o)
{
    int code = session_open(&r->s, o, false);
    if (code == EXIT_DONE) code = need_text_model(r, o);
    if (code == EXIT_DONE) code = session_need_tokenizer(&r->s, o);
    unsigned flags = (opt_given(o, OPT_NO_BOS) ? 0 : LOAM_ENCODE_ADD_SPECIAL) |
                     (opt_given(o, OPT_NO_PARSE_SPECIAL) ? 0 : LOAM_ENCODE_PARSE_SPECIAL);
    if (code == EXIT_DONE) code = session_encode(&r->s, o, &r->prompt, flags, &r->ids, &r->n_ids);
    if (code == EXIT_DONE) code = sampler_from_options(&r->sampler, o, &r->s);
    if (code != EXIT_DONE) return code;
    if (r->n_ids == 0) return say_failed(o, "the prompt is empty, and the model has no token to begin a text with");
    loam_context_params p = session_params(&r->s, o);
    p.n_ctx = context_size(r, o);
    if (r->n_ids > p.n_ctx)
        return say_failed(o, "the prompt has %zu tokens, the context %u; give a larger one by -c", r->n_ids, p.n_ctx);
    if (loam_model_has_encoder(r->s.model)) p.n_batch = p.n_ubatch = p.n_ctx; /* the prompt is encoded at once */
    if (opt_given(o, OPT_SESSION) && loam_model_has_encoder(r->s.model))
        return say_failed(o, "--session is for models that only decode; this one reads the prompt with an encoder");
    loam_error err;
    unsigned shown = (opt_given(o, OPT_SPECIAL) ? LOAM_DECODE_SPECIAL : 0) | (r->prompt.len == 0 ? LOAM_DECODE_FROM_START : 0);
    if (loam_detokenizer_new(&r->text, r->s.tokenizer, shown, &err) != LOAM_OK) return say_error(o, &err);
    return session_context(&r->s, o, &p);
}

/* ---- --session: the state of an earlier run, as far as its tokens begin this prompt ---- */

static void take_up(run *r, const options *o)
{
    loam_error err;
    FILE *f = fopen(opt_text(o, OPT_SESSION), "re");
    if (!f) return; /* the first run of a session */
    fclose(f);
    loam_state_tokens t = { r->fed, loam_context_n_ctx(r->s.ctx), 0 };
    if (loam_state_load_file(r->s.ctx, 0, opt_text(o, OPT_SESSION), &t, &err) != LOAM_OK) {
        say_note(o, "the session is not used: %s", err.message);
        return;
    }
    size_t same = 0;
    while (same < t.n && same < r->n_ids && r->fed[same] == r->ids[same]) same++;
    if (same == r->n_ids) same--; /* the last token is computed again, for its logits */
    if (same < t.n && !loam_memory_seq_rm(r->s.ctx, 0, (int32_t)same, -1)) {
        loam_memory_clear(r->s.ctx);
        same = 0;
    }
    r->n_fed = r->reused = same;
}

static int keep(const run *r, const options *o)
{
    loam_error err;
    if (!opt_given(o, OPT_SESSION)) return EXIT_DONE;
    if (loam_state_save_file(r->s.ctx, 0, opt_text(o, OPT_SESSION), r->fed, r->n_fed, &err) != LOAM_OK) return say_error(o, &err);
    return EXIT_DONE;
}

static int feed(run *r, const int32_t *ids, size_t n, loam_error *err)
{
    int code = session_feed(&r->s, ids, n, err);
    if (code) return code;
    if (r->n_fed + n > loam_context_n_ctx(r->s.ctx)) return 0; /* T5: only the text is counted */
    memcpy(r->fed + r->n_fed, ids, n * sizeof *ids);
    r->n_fed += n;
    return 0;
}

static int failed_decode(const options *o, int code, const loam_error *err)
{
    return code == 2 ? EXIT_DONE : say_error(o, err); /* 2: stopped by Ctrl-C */
}

/* Chooses tokens until one ends the text, the limit, the end of the context or Ctrl-C. */
static int write_text(run *r, const options *o)
{
    const char *text;
    size_t len;
    loam_error err;
    /* The context is rounded up; what -c said holds all the same. */
    uint32_t room = opt_given(o, OPT_CTX) && opt_int(o, OPT_CTX) ? (uint32_t)opt_int(o, OPT_CTX) : loam_context_n_ctx(r->s.ctx);
    uint32_t used = (uint32_t)r->n_ids;
    while (!interrupted() && r->written != r->limit) {
        int32_t id;
        const float *logits = loam_logits(r->s.ctx, -1);
        if (!logits) return say_failed(o, "the model gave no logits");
        if (loam_sampler_sample(r->sampler, logits, r->s.n_vocab, &id, &err) != LOAM_OK ||
            loam_sampler_accept(r->sampler, id, &err) != LOAM_OK)
            return say_error(o, &err);
        r->written++;
        bool last = loam_tokenizer_is_eog(r->s.tokenizer, id);
        if (!last || opt_given(o, OPT_SPECIAL)) {
            if (loam_detokenizer_push(r->text, id, &text, &len, &err) != LOAM_OK) return say_error(o, &err);
            fwrite(text, 1, len, stdout);
            int code = len ? flush_output(o, stdout, "standard output") : EXIT_DONE;
            if (code != EXIT_DONE) return code;
        }
        if (last || r->written == r->limit) break;
        if (used >= room) {
            say_note(o, "the context of %u tokens is full", room);
            break;
        }
        int code = feed(r, &id, 1, &err);
        if (code) return failed_decode(o, code, &err);
        used++;
    }
    return EXIT_DONE;
}

static double per_second(uint64_t n, uint64_t ns) { return ns ? (double)n * 1e9 / (double)ns : 0; }

static void report(const run *r, const options *o)
{
    loam_memory_use use;
    loam_context_memory_use(r->s.ctx, &use);
    const double mb = 1e6;
    if (opt_given(o, OPT_VERBOSE)) {
        char chain[256];
        loam_sampler_describe(r->sampler, chain, sizeof chain);
        fprintf(stderr, "%s; seed %u; %s\n", loam_model_description(r->s.model), loam_sampler_seed(r->sampler), chain);
    }
    if (opt_given(o, OPT_NO_PERF)) return;
    fprintf(stderr,
            "prompt %zu tokens, %.1f/s; written %lld tokens, %.1f/s; loaded in %.0f ms; memory: weights %.1f MB, cache %.1f MB, "
            "buffers %.1f MB, resident %.1f MB\n",
            r->n_ids, per_second(r->n_ids, r->prompt_ns), (long long)r->written,
            per_second((uint64_t)(r->written > 1 ? r->written - 1 : 0), r->write_ns), (double)r->s.load_ns / 1e6,
            (double)use.weights / mb, (double)use.cache / mb, (double)(use.buffers + use.outputs) / mb,
            (double)peak_resident_bytes() / mb);
}

static int go(run *r, const options *o)
{
    loam_error err;
    if (opt_given(o, OPT_DISPLAY_PROMPT) || (r->usual && !opt_given(o, OPT_NO_DISPLAY_PROMPT))) fwrite(r->prompt.data, 1, r->prompt.len, stdout);
    int code = flush_output(o, stdout, "standard output");
    for (size_t i = 0; i < r->n_ids && code == EXIT_DONE; i++)
        if (loam_sampler_accept(r->sampler, r->ids[i], &err) != LOAM_OK) code = say_error(o, &err);
    if (code != EXIT_DONE) return code;
    uint64_t start = now_ns();
    r->fed = need(malloc(((size_t)loam_context_n_ctx(r->s.ctx) + 1) * sizeof *r->fed));
    int decoded;
    if (opt_given(o, OPT_SESSION)) {
        take_up(r, o);
        decoded = feed(r, r->ids + r->reused, r->n_ids - r->reused, &err);
    } else {
        decoded = session_prompt(&r->s, r->ids, r->n_ids, &err);
    }
    r->prompt_ns = decoded ? 0 : now_ns() - start;
    if (decoded) code = failed_decode(o, decoded, &err);
    start = now_ns();
    if (!decoded) code = write_text(r, o);
    r->write_ns = now_ns() - start;
    const char *text;
    size_t len;
    loam_detokenizer_finish(r->text, &text, &len);
    fwrite(text, 1, len, stdout);
    putchar('\n');
    int written = flush_output(o, stdout, "standard output");
    report(r, o);
    if (code == EXIT_DONE) code = keep(r, o);
    return code != EXIT_DONE ? code : written;
}

int cmd_run(const options *o)
{
    run r = { .limit = opt_int(o, OPT_PREDICT) };
    int code = check_options(o);
    if (code != EXIT_DONE) return code;
    if (!read_prompt(&r, o)) code = EXIT_FAILED;
    if (code == EXIT_DONE) {
        catch_interrupt();
        code = prepare(&r, o);
    }
    if (code == EXIT_DONE) code = go(&r, o);
    loam_sampler_free(r.sampler);
    loam_detokenizer_free(r.text);
    loam_tokens_free(r.ids);
    free(r.fed);
    session_close(&r.s);
    buffer_free(&r.prompt);
    return code;
}
