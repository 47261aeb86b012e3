/* chunks.c - see chunks.h. */
#include "chunks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOGIT_BYTES (64u << 20) /* of one decode call: longer pieces are cut */

int chunks_check_model(const session *s, const options *o)
{
    int code = session_need_tokenizer(s, o);
    if (code == EXIT_DONE && loam_tokenizer_adds_eos(s->tokenizer))
        code = say_failed(o, "the vocabulary ends texts with a token of its own: perplexity is not defined for it");
    return code;
}

int chunks_read(chunks *c, const session *s, const options *o)
{
    buffer text = { 0 };
    *c = (chunks){ .n_ctx = (int32_t)opt_int(o, OPT_PPL_CTX), .bos = LOAM_TOKEN_NULL };
    if (loam_tokenizer_adds_bos(s->tokenizer)) c->bos = loam_tokenizer_special(s->tokenizer, LOAM_TOKEN_BOS);
    int code = read_file(o, opt_text(o, OPT_FILE), &text) ? EXIT_DONE : EXIT_FAILED;
    if (code == EXIT_DONE) code = session_encode(s, o, &text, LOAM_ENCODE_ADD_SPECIAL, &c->ids, &c->n);
    buffer_free(&text);
    if (code != EXIT_DONE) return code;
    if (c->n < 2 * (size_t)c->n_ctx)
        return say_failed(o, "%s has %zu tokens; at least two chunks of %d (-c) are needed", opt_text(o, OPT_FILE), c->n, c->n_ctx);
    c->total = c->count = (int64_t)(c->n / (size_t)c->n_ctx);
    if (opt_given(o, OPT_CHUNKS) && opt_int(o, OPT_CHUNKS) < c->count) c->count = opt_int(o, OPT_CHUNKS);
    return EXIT_DONE;
}

void chunks_free(chunks *c)
{
    loam_tokens_free(c->ids);
    c->ids = NULL;
}

int8_t *chunk_scored(int32_t n_ctx)
{
    int8_t *wanted = need(malloc((size_t)n_ctx));
    for (int32_t i = 0; i < n_ctx; i++) wanted[i] = i >= n_ctx / 2 && i < n_ctx - 1;
    return wanted;
}

int chunk_compute(const session *s, const chunks *c, int64_t chunk, const chunk_run *run, loam_error *err)
{
    int32_t rows = (int32_t)(LOGIT_BYTES / sizeof(float)) / s->n_vocab, most = (int32_t)loam_context_n_batch(s->ctx);
    loam_token *ids = need(malloc((size_t)c->n_ctx * sizeof *ids));
    int code = 0;
    memcpy(ids, c->ids + chunk * c->n_ctx, (size_t)c->n_ctx * sizeof *ids);
    if (c->bos != LOAM_TOKEN_NULL) ids[0] = c->bos;
    loam_memory_clear(s->ctx);
    for (int32_t at = 0, n; at < c->n_ctx && code == 0; at += n) {
        int32_t outputs = 0;
        for (n = 0; n < most && at + n < c->n_ctx && outputs < (rows < 1 ? 1 : rows); n++) outputs += run->wanted[at + n] != 0;
        loam_batch batch = { .n_tokens = n, .token = ids + at, .logits = run->wanted + at };
        code = run->decode ? run->decode(run->user, s->ctx, &batch, err) : loam_decode(s->ctx, &batch, err);
        for (int32_t i = 0; i < n && code == 0; i++)
            if (run->row && run->wanted[at + i] && !run->row(run->user, at + i, loam_logits(s->ctx, i), err)) code = 2;
    }
    free(ids);
    return code;
}

void score_add(score *t, const float *logits, int32_t n_vocab, int32_t target)
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

double score_perplexity(const score *t) { return exp(t->sum / (double)t->n); }

double score_uncertainty(const score *t)
{
    double mean = t->sum / (double)t->n, variance = t->squares / (double)t->n - mean * mean;
    return t->n > 1 && variance > 0 ? sqrt(variance / (double)(t->n - 1)) * exp(mean) : 0;
}
