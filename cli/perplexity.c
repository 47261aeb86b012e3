/* perplexity.c - `loam perplexity`: how well a model predicts a text (chunks.h), and how far it is from another model.
 *
 *   -f TEXT                       exp(mean of -ln p), with the standard error of the mean carried through the exponential
 *   -f TEXT --kl-base FILE        the same; the probabilities of all scored tokens go to FILE
 *   --kl-base FILE --kl           the text of FILE again, and how the predictions differ from those in it */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "loam/evaluate.h"

typedef struct measuring {
    const session *s;
    const options *o;
    chunks c;
    int64_t chunk;
    score sum;
    loam_kl_writer *writer; /* of the base, or NULL */
    loam_kl_base *base;     /* that is compared with, or NULL */
    loam_kl *kl;
    float *base_row;
} measuring;

/* ---- output ---- */

static void print_result(const measuring *m, int64_t chunks_done)
{
    const score *t = &m->sum;
    if (!opt_given(m->o, OPT_JSON)) {
        printf("\nperplexity %.4f +/- %.5f (%lld chunks of %d tokens, %lld scored)\n", score_perplexity(t), score_uncertainty(t),
               (long long)chunks_done, m->c.n_ctx, (long long)t->n);
        return;
    }
    json j;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "model", opt_text(m->o, OPT_MODEL));
    json_string(&j, "description", loam_model_description(m->s->model));
    json_int(&j, "n_ctx", m->c.n_ctx);
    json_int(&j, "chunks", chunks_done);
    json_int(&j, "tokens", (int64_t)m->c.n);
    json_int(&j, "scored", t->n);
    json_num(&j, "nll", t->sum / (double)t->n);
    json_num(&j, "perplexity", score_perplexity(t));
    json_num(&j, "uncertainty", score_uncertainty(t));
    json_close(&j, '}');
}

static const char *point_name(int i, char name[16])
{
    double p = loam_kl_point(i) * 100;
    if (p == 100 || p == 0 || p == 50) return p == 100 ? "Maximum" : p == 0 ? "Minimum" : "Median";
    snprintf(name, 16, "%g%%", p);
    return name;
}

/* In bytes, for 30 characters. */
static int label_width(const char *label) { return strstr(label, "Δ") ? 31 : 30; }

static void print_points(const char *what, const double *points, double factor, const char *unit)
{
    char name[16], label[48];
    for (int i = 0; i < LOAM_KL_POINTS; i++) {
        if (factor == 1 && (loam_kl_point(i) == .75 || loam_kl_point(i) == .25)) continue;
        snprintf(label, sizeof label, "%s %s", point_name(i, name), what);
        printf("%-*s: %10.6f%s\n", label_width(label), label, points[i] * factor, unit);
    }
}

static void print_measure(const char *label, loam_measure v, double factor, const char *unit)
{
    printf("%-*s: %10.6f +/- %10.6f%s\n", label_width(label), label, v.value * factor, v.error * factor, unit);
}

static void print_summary(const loam_kl_summary *s)
{
    printf("\n====== Perplexity statistics ======\n");
    print_measure("Mean PPL(Q)", s->ppl, 1, "");
    print_measure("Mean PPL(base)", s->ppl_base, 1, "");
    printf("%-30s: %9.2f%%\n", "Cor(ln(PPL(Q)), ln(PPL(base)))", s->correlation * 100);
    print_measure("Mean ln(PPL(Q)/PPL(base))", s->ln_ratio, 1, "");
    print_measure("Mean PPL(Q)/PPL(base)", s->ratio, 1, "");
    print_measure("Mean PPL(Q)-PPL(base)", s->difference, 1, "");
    printf("\n====== KL divergence statistics ======\n");
    print_measure("Mean KLD", s->mean_kld, 1, "");
    print_points("KLD", s->kld, 1, "");
    printf("\n====== Token probability statistics ======\n");
    print_measure("Mean Δp", s->mean_dp, 100, " %");
    print_points("Δp", s->dp, 100, " %");
    print_measure("RMS Δp", s->rms_dp, 100, " %");
    print_measure("Same top p", s->same_top, 100, " %");
}

static void json_measure(json *j, const char *key, loam_measure v)
{
    json_open(j, key, '{');
    json_num(j, "value", v.value);
    json_num(j, "error", v.error);
    json_close(j, '}');
}

static void json_points(json *j, const char *key, const double *points)
{
    char name[16];
    json_open(j, key, '{');
    for (int i = 0; i < LOAM_KL_POINTS; i++) {
        snprintf(name, sizeof name, "%g", loam_kl_point(i) * 100);
        json_num(j, name, points[i]);
    }
    json_close(j, '}');
}

static void print_kl_json(const measuring *m, const loam_kl_summary *s, int64_t chunks_done)
{
    json j;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "model", opt_text(m->o, OPT_MODEL));
    json_string(&j, "base", opt_text(m->o, OPT_KL_BASE));
    json_int(&j, "n_ctx", m->c.n_ctx);
    json_int(&j, "chunks", chunks_done);
    json_int(&j, "scored", s->n);
    json_measure(&j, "ppl", s->ppl);
    json_measure(&j, "ppl_base", s->ppl_base);
    json_num(&j, "correlation", s->correlation);
    json_measure(&j, "ln_ppl_ratio", s->ln_ratio);
    json_measure(&j, "ppl_ratio", s->ratio);
    json_measure(&j, "ppl_difference", s->difference);
    json_measure(&j, "kld", s->mean_kld);
    json_points(&j, "kld_percentiles", s->kld);
    json_measure(&j, "dp", s->mean_dp);
    json_points(&j, "dp_percentiles", s->dp);
    json_measure(&j, "rms_dp", s->rms_dp);
    json_measure(&j, "same_top", s->same_top);
    json_close(&j, '}');
}

static int print_comparison(const measuring *m, int64_t chunks_done)
{
    loam_kl_summary s;
    loam_error err;
    if (loam_kl_summarize(m->kl, &s, &err) != LOAM_OK) return say_error(m->o, &err);
    if (opt_given(m->o, OPT_JSON)) print_kl_json(m, &s, chunks_done);
    else print_summary(&s);
    return EXIT_DONE;
}

/* What is known after each chunk. */
static int print_chunk(const measuring *m)
{
    if (opt_given(m->o, OPT_JSON)) return EXIT_DONE;
    if (!m->kl) {
        printf("%s[%lld]%.4f", m->chunk ? "," : "", (long long)m->chunk + 1, score_perplexity(&m->sum));
        fflush(stdout);
        return EXIT_DONE;
    }
    loam_kl_summary s;
    loam_error err;
    if (loam_kl_summarize(m->kl, &s, &err) != LOAM_OK) return say_error(m->o, &err);
    if (m->chunk == 0) printf("chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS            Same top p\n");
    printf("%4lld   %10.4f +/- %8.4f   %10.5f +/- %8.5f   %10.5f +/- %8.5f   %6.3f +/- %6.3f %%   %6.3f +/- %6.3f %%\n",
           (long long)m->chunk + 1, s.ppl.value, s.ppl.error, s.ln_ratio.value, s.ln_ratio.error, s.mean_kld.value, s.mean_kld.error,
           s.rms_dp.value * 100, s.rms_dp.error * 100, s.same_top.value * 100, s.same_top.error * 100);
    fflush(stdout);
    return EXIT_DONE;
}

/* ---- work ---- */

static bool take_row(void *user, int32_t i, const float *logits, loam_error *err)
{
    measuring *m = user;
    int32_t next = m->c.ids[m->chunk * m->c.n_ctx + i + 1];
    score_add(&m->sum, logits, m->s->n_vocab, next);
    if (m->writer) return loam_kl_writer_put(m->writer, logits, err) == LOAM_OK;
    if (!m->base) return true;
    int64_t row = m->chunk * loam_kl_rows(m->c.n_ctx) + i - m->c.n_ctx / 2;
    loam_kl_base_row(m->base, row, m->base_row);
    return loam_kl_add(m->kl, m->base_row, logits, next, err) == LOAM_OK;
}

static int measure(measuring *m)
{
    int8_t *wanted = chunk_scored(m->c.n_ctx);
    chunk_run run = { .row = take_row, .user = m, .wanted = wanted };
    int code = EXIT_DONE;
    progress bar;
    progress_begin(&bar, "perplexity", (uint64_t)m->c.count);
    for (; m->chunk < m->c.count && code == EXIT_DONE && !interrupted(); m->chunk++) {
        loam_error err = { .code = LOAM_OK };
        int failed = chunk_compute(m->s, &m->c, m->chunk, &run, &err);
        if (failed == 2 && interrupted()) break;
        progress_end(&bar);
        if (failed) code = say_error(m->o, &err);
        else code = print_chunk(m);
        progress_at(&bar, (uint64_t)m->chunk + 1);
    }
    progress_end(&bar);
    free(wanted);
    if (code != EXIT_DONE) return code;
    if (m->chunk == 0) return say_failed(m->o, "stopped before the first chunk was measured");
    if (m->writer && m->chunk < m->c.count) return say_failed(m->o, "stopped: no base file was written");
    if (!isfinite(score_perplexity(&m->sum))) return say_failed(m->o, "the model's logits are not finite");
    if (m->kl) return print_comparison(m, m->chunk);
    print_result(m, m->chunk);
    return EXIT_DONE;
}

/* The text comes from the base. */
static int open_base(measuring *m)
{
    loam_error err;
    const options *o = m->o;
    const char *path = opt_text(o, OPT_KL_BASE);
    if (loam_kl_base_open(&m->base, path, &err) != LOAM_OK) return say_error(o, &err);
    loam_kl_text t = loam_kl_base_text(m->base);
    if (t.n_vocab != m->s->n_vocab)
        return say_failed(o, "%s was made by a model with %d tokens, this one has %d", path, t.n_vocab, m->s->n_vocab);
    if (opt_given(o, OPT_PPL_CTX) && opt_int(o, OPT_PPL_CTX) != t.n_ctx)
        return say_usage(o, "-c: the chunks of %s have %d tokens", path, t.n_ctx);
    m->c = (chunks){ .n = (size_t)t.n_ctx * (size_t)t.n_chunks, .n_ctx = t.n_ctx, .total = t.n_chunks, .count = t.n_chunks,
                     .bos = LOAM_TOKEN_NULL };
    if (loam_tokenizer_adds_bos(m->s->tokenizer)) m->c.bos = loam_tokenizer_special(m->s->tokenizer, LOAM_TOKEN_BOS);
    if (opt_given(o, OPT_CHUNKS) && opt_int(o, OPT_CHUNKS) < m->c.count) m->c.count = opt_int(o, OPT_CHUNKS);
    m->c.ids = (loam_token *)(uintptr_t)t.tokens;
    m->base_row = need(malloc((size_t)t.n_vocab * sizeof *m->base_row));
    return loam_kl_new(&m->kl, t.n_vocab, &err) == LOAM_OK ? EXIT_DONE : say_error(o, &err);
}

static int start_base(measuring *m)
{
    loam_error err;
    loam_kl_text t = { m->c.n_ctx, m->s->n_vocab, (int32_t)m->c.count, m->c.ids };
    return loam_kl_writer_open(&m->writer, opt_text(m->o, OPT_KL_BASE), &t, &err) == LOAM_OK ? EXIT_DONE : say_error(m->o, &err);
}

static int finish(measuring *m, int code)
{
    loam_error err;
    if (m->writer && code == EXIT_DONE) {
        loam_status status = loam_kl_writer_close(m->writer, &err);
        m->writer = NULL;
        if (status != LOAM_OK) code = say_error(m->o, &err);
    }
    loam_kl_writer_cancel(m->writer);
    if (!m->base) chunks_free(&m->c);
    loam_kl_base_free(m->base);
    loam_kl_free(m->kl);
    free(m->base_row);
    return code;
}

int cmd_perplexity(const options *o)
{
    bool compare = opt_given(o, OPT_KL);
    if (compare && !opt_given(o, OPT_KL_BASE)) return say_usage(o, "--kl needs --kl-base FILE: what the model is compared with");
    if (!compare && !opt_given(o, OPT_FILE)) return say_usage(o, "-f FILE is missing: the text to predict");
    if (compare && opt_given(o, OPT_FILE)) return say_usage(o, "-f has no effect with --kl: the text comes from the base file");
    session s = { 0 };
    measuring m = { .s = &s, .o = o };
    int code = session_open(&s, o, false);
    catch_interrupt();
    if (code == EXIT_DONE) code = chunks_check_model(&s, o);
    if (code == EXIT_DONE) code = compare ? open_base(&m) : chunks_read(&m.c, &s, o);
    if (code == EXIT_DONE) {
        loam_context_params p = session_params(&s, o);
        p.n_ctx = (uint32_t)m.c.n_ctx;
        code = session_context(&s, o, &p);
    }
    if (code == EXIT_DONE && !compare && opt_given(o, OPT_KL_BASE)) code = start_base(&m);
    if (code == EXIT_DONE) code = measure(&m);
    code = finish(&m, code);
    session_close(&s);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}
