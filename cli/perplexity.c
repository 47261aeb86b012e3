/* perplexity.c - `loam perplexity`: how well a model predicts a text.
 *
 *     tokens of the whole text:  [ chunk 0: n_ctx tokens ][ chunk 1 ] ... [ remainder, not used ]
 *     a chunk:                   [BOS | context, not scored | n_ctx/2 ... n_ctx-2: each scored on the token after it ]
 *
 * Each chunk is computed alone from position 0; where the vocabulary begins texts with a token, that replaces the chunk's
 * first. The result is exp(mean of -ln p), with the standard error of the mean carried through the exponential. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define LOGIT_BYTES (64u << 20) /* of one decode call: longer pieces are cut */

typedef struct score {
    double sum, squares; /* of -ln p */
    int64_t n;
} score;

static void add_score(score *t, const float *logits, int32_t n_vocab, int32_t target)
{
    float most = logits[0];
    double sum = 0;
    for (int32_t i = 1; i < n_vocab; i++) most = logits[i] > most ? logits[i] : most;
    for (int32_t i = 0; i < n_vocab; i++) sum += expf(logits[i] - most);
    double v = log(sum) - (double)(logits[target] - most);
    t->sum += v;
    t->squares += v * v;
    t->n++;
}

static double perplexity(const score *t) { return exp(t->sum / (double)t->n); }

static double uncertainty(const score *t)
{
    double mean = t->sum / (double)t->n, variance = t->squares / (double)t->n - mean * mean;
    return t->n > 1 && variance > 0 ? sqrt(variance / (double)(t->n - 1)) * exp(mean) : 0;
}

/* One chunk: tokens [n_ctx], whose first one may be replaced by `bos`. 0 or a code of loam_decode. */
static int score_chunk(session *s, const loam_token *tokens, int32_t n_ctx, loam_token bos, score *t, loam_error *err)
{
    int32_t first_scored = n_ctx / 2, rows = (int32_t)(LOGIT_BYTES / sizeof(float)) / s->n_vocab,
            most = (int32_t)loam_context_n_batch(s->ctx);
    loam_token *ids = need(malloc((size_t)n_ctx * sizeof *ids));
    int8_t *wanted = need(malloc((size_t)n_ctx));
    int code = 0;
    memcpy(ids, tokens, (size_t)n_ctx * sizeof *ids);
    if (bos != LOAM_TOKEN_NULL) ids[0] = bos;
    for (int32_t i = 0; i < n_ctx; i++) wanted[i] = i >= first_scored && i < n_ctx - 1;
    loam_memory_clear(s->ctx);
    for (int32_t at = 0, n; at < n_ctx && code == 0; at += n) {
        n = at < first_scored ? first_scored - at : rows < 1 ? 1 : rows;
        if (n > most) n = most;
        if (n > n_ctx - at) n = n_ctx - at;
        loam_batch batch = { .n_tokens = n, .token = ids + at, .logits = wanted + at };
        code = loam_decode(s->ctx, &batch, err);
        for (int32_t i = 0; i < n && code == 0; i++)
            if (wanted[at + i]) add_score(t, loam_logits(s->ctx, i), s->n_vocab, tokens[at + i + 1]);
    }
    free(ids);
    free(wanted);
    return code;
}

typedef struct text_tokens {
    loam_token *ids;
    size_t n;
} text_tokens;

static int read_tokens(const session *s, const options *o, text_tokens *t)
{
    buffer text = { 0 };
    int code = read_file(o, opt_text(o, OPT_FILE), &text) ? EXIT_DONE : EXIT_FAILED;
    if (code == EXIT_DONE) code = session_encode(s, o, &text, LOAM_ENCODE_ADD_SPECIAL, &t->ids, &t->n);
    buffer_free(&text);
    return code;
}

static void print_result(const session *s, const options *o, const score *t, int64_t chunks, size_t tokens)
{
    if (!opt_given(o, OPT_JSON)) {
        printf("\nperplexity %.4f +/- %.5f (%lld chunks of %lld tokens, %lld scored)\n", perplexity(t), uncertainty(t),
               (long long)chunks, (long long)opt_int(o, OPT_PPL_CTX), (long long)t->n);
        return;
    }
    json j;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    json_string(&j, "model", opt_text(o, OPT_MODEL));
    json_string(&j, "description", loam_model_description(s->model));
    json_int(&j, "n_ctx", opt_int(o, OPT_PPL_CTX));
    json_int(&j, "chunks", chunks);
    json_int(&j, "tokens", (int64_t)tokens);
    json_int(&j, "scored", t->n);
    json_num(&j, "nll", t->sum / (double)t->n);
    json_num(&j, "perplexity", perplexity(t));
    json_num(&j, "uncertainty", uncertainty(t));
    json_close(&j, '}');
}

static int measure(session *s, const options *o, const text_tokens *t)
{
    int64_t n_ctx = opt_int(o, OPT_PPL_CTX), chunks = (int64_t)t->n / n_ctx, done = 0;
    if ((int64_t)t->n < 2 * n_ctx)
        return say_failed(o, "%s has %zu tokens; at least two chunks of %lld (-c) are needed", opt_text(o, OPT_FILE), t->n,
                          (long long)n_ctx);
    if (opt_given(o, OPT_CHUNKS) && opt_int(o, OPT_CHUNKS) < chunks) chunks = opt_int(o, OPT_CHUNKS);
    loam_token bos =
        loam_tokenizer_adds_bos(s->tokenizer) ? loam_tokenizer_special(s->tokenizer, LOAM_TOKEN_BOS) : LOAM_TOKEN_NULL;
    score sum = { 0 };
    progress bar;
    progress_begin(&bar, "perplexity", (uint64_t)chunks);
    for (; done < chunks && !interrupted(); done++) {
        loam_error err;
        int code = score_chunk(s, t->ids + done * n_ctx, (int32_t)n_ctx, bos, &sum, &err);
        if (code == 2) break;
        if (code) {
            progress_end(&bar);
            return say_error(o, &err);
        }
        if (!opt_given(o, OPT_JSON)) {
            progress_end(&bar);
            printf("%s[%lld]%.4f", done ? "," : "", (long long)done + 1, perplexity(&sum));
            fflush(stdout);
        }
        progress_at(&bar, (uint64_t)done + 1);
    }
    progress_end(&bar);
    if (sum.n == 0) return say_failed(o, "stopped before the first chunk was measured");
    if (!isfinite(perplexity(&sum))) return say_failed(o, "the model's logits are not finite");
    print_result(s, o, &sum, done, t->n);
    return EXIT_DONE;
}

int cmd_perplexity(const options *o)
{
    if (!opt_given(o, OPT_FILE)) return say_usage(o, "-f FILE is missing: the text to predict");
    session s = { 0 };
    text_tokens tokens = { 0 };
    int code = session_open(&s, o, false);
    catch_interrupt();
    if (code == EXIT_DONE) code = session_need_tokenizer(&s, o);
    if (code == EXIT_DONE && loam_tokenizer_adds_eos(s.tokenizer))
        code = say_failed(o, "the vocabulary ends texts with a token of its own: perplexity is not defined for it");
    if (code == EXIT_DONE) code = read_tokens(&s, o, &tokens);
    if (code == EXIT_DONE) {
        loam_context_params p = session_params(&s, o);
        p.n_ctx = (uint32_t)opt_int(o, OPT_PPL_CTX);
        code = session_context(&s, o, &p);
    }
    if (code == EXIT_DONE) code = measure(&s, o, &tokens);
    loam_tokens_free(tokens.ids);
    session_close(&s);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}
