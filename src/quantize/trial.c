/* trial.c - see trial.h.
 *
 *   text ── tokens ── chunks of n_ctx: [ context | every k-th of the rest is compared ]
 *
 * Compared are tokens from n_ctx / 8 on; k grows with the vocabulary, so that logits of a chunk stay within some megabytes.
 * Tokens are as many as a forward pass of about 10^11 products has; all chunks of the text, up to four times as many, go into
 * the importance matrix. */
#include "quantize/trial.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "evaluate/kl.h"

#define LOGITS_OF_CHUNK (16 << 20) /* values */
#define PRODUCTS        150e9      /* of one measurement, about */
#define FLOOR           (-16.0f)

static loam_status decode_chunk(trial *t, int32_t chunk, loam_imatrix *im, loam_error *err)
{
    const loam_token *tokens = t->tokens + (size_t)chunk * (size_t)t->n_ctx;
    loam_token first = tokens[0];
    loam_memory_clear(t->ctx);
    if (t->bos != LOAM_TOKEN_NULL) t->tokens[(size_t)chunk * (size_t)t->n_ctx] = t->bos;
    loam_batch batch = { .n_tokens = t->n_ctx, .token = tokens, .logits = t->wanted };
    loam_error inner = { .code = LOAM_E_NUMERIC };
    int code = im ? loam_imatrix_decode(im, t->ctx, &batch, &inner) : loam_decode(t->ctx, &batch, &inner);
    t->tokens[(size_t)chunk * (size_t)t->n_ctx] = first;
    if (code && err) *err = inner;
    return code ? inner.code : LOAM_OK;
}

/* ---- the original ---- */

static loam_status keep_row(trial *t, const float *logits, loam_error *err)
{
    int32_t n_vocab = loam_model_n_vocab(t->model), n = 0;
    float most;
    double log_sum = kl_log_sum(logits, n_vocab, &most);
    if (!isfinite(log_sum)) return fail(err, LOAM_E_NUMERIC, "the model's logits are not finite");
    for (int32_t i = 0; i < n_vocab; i++) n += (double)logits[i] - log_sum > (double)FLOOR;
    trial_row *r = &t->rows[t->n_rows];
    r->ids = mem_alloc_array((size_t)n, sizeof *r->ids);
    r->log_p = mem_alloc_array((size_t)n, sizeof *r->log_p);
    t->n_rows++;
    if (!r->ids || !r->log_p) return fail_nomem(err, "predictions of the original", (uint64_t)n * 8);
    for (int32_t i = 0; i < n_vocab; i++) {
        double log_p = (double)logits[i] - log_sum;
        if (log_p <= (double)FLOOR || r->n == n) continue;
        r->ids[r->n] = i;
        r->log_p[r->n++] = (float)log_p;
    }
    return LOAM_OK;
}

static loam_status run_original(trial *t, int32_t chunks, const trial_params *p, loam_error *err)
{
    loam_status status = LOAM_OK;
    size_t rows = 0;
    for (int32_t i = 0; i < t->n_ctx; i++) rows += t->wanted[i] != 0;
    t->rows = mem_zalloc_array(rows * (size_t)t->n_chunks, sizeof *t->rows);
    t->probs = mem_alloc_array((size_t)loam_model_n_vocab(t->model), sizeof *t->probs);
    if (!t->rows || !t->probs) return fail_nomem(err, "predictions of the original", rows * sizeof *t->rows);
    if (!p->imatrix) status = loam_imatrix_new(&t->own, err);
    if (t->own) {
        loam_imatrix_set_head(t->own, true);
        loam_imatrix_set_chunk_size(t->own, (uint32_t)t->n_ctx);
        if (status == LOAM_OK) status = loam_imatrix_add_dataset(t->own, "calibration", err);
    }
    for (int32_t c = 0; c < (t->own ? chunks : t->n_chunks) && status == LOAM_OK; c++) {
        status = decode_chunk(t, c, t->own, err);
        for (int32_t i = 0; i < t->n_ctx && c < t->n_chunks && status == LOAM_OK; i++)
            if (t->wanted[i]) status = keep_row(t, loam_logits(t->ctx, i), err);
        if (status == LOAM_OK && p->progress && !p->progress(p->user, "reading the text", (double)(c + 1) / chunks))
            status = fail(err, LOAM_E_ABORTED, "stopped");
    }
    return status;
}

/* ---- opening ---- */

static void choose_rows(trial *t)
{
    int32_t first = t->n_ctx / 8, most = LOGITS_OF_CHUNK / loam_model_n_vocab(t->model), n = t->n_ctx - 1 - first;
    int32_t every = most < 1 ? n : (n + most - 1) / most;
    for (int32_t i = first; i < t->n_ctx - 1; i += every) t->wanted[i] = 1;
}

static loam_status read_text(trial *t, const trial_params *p, int32_t *chunks, loam_error *err)
{
    const loam_tokenizer *tok = loam_model_tokenizer(t->model);
    size_t n = 0;
    if (!tok || !loam_model_has_decoder(t->model) || loam_model_has_encoder(t->model))
        return fail(err, LOAM_E_UNSUPPORTED, "%s: measuring needs a decoder with a vocabulary that text can be turned into", p->path);
    loam_status status = loam_tokenizer_encode_all(tok, p->text, p->text_len, LOAM_ENCODE_ADD_SPECIAL, &t->tokens, &n, err);
    if (status != LOAM_OK) return status;
    t->bos = loam_tokenizer_adds_bos(tok) ? loam_tokenizer_special(tok, LOAM_TOKEN_BOS) : LOAM_TOKEN_NULL;
    int32_t trained = loam_model_n_ctx_train(t->model);
    t->n_ctx = trained > 0 && trained < p->n_ctx ? trained : p->n_ctx;
    if (n < (size_t)t->n_ctx)
        return fail(err, LOAM_E_ARG, "the calibration text has %zu tokens; at least %d are needed", n, t->n_ctx);
    double tokens = p->n_tokens ? p->n_tokens : PRODUCTS / (double)(loam_model_n_params(t->model) + 1);
    tokens = !p->n_tokens && tokens > 4096 ? 4096 : tokens;
    *chunks = (int32_t)(n / (size_t)t->n_ctx < INT32_MAX ? n / (size_t)t->n_ctx : INT32_MAX);
    t->n_chunks = tokens / t->n_ctx < 1 ? 1 : tokens / t->n_ctx > *chunks ? *chunks : (int32_t)(tokens / t->n_ctx);
    if (*chunks > 4 * (int64_t)t->n_chunks) *chunks = 4 * t->n_chunks;
    t->wanted = mem_zalloc((size_t)t->n_ctx);
    if (!t->wanted) return fail_nomem(err, "a calibration", (uint64_t)t->n_ctx);
    choose_rows(t);
    return LOAM_OK;
}

loam_status trial_open(trial *t, const trial_params *p, loam_error *err)
{
    int32_t chunks = 0;
    *t = (trial){ 0 };
    loam_status status = loam_model_open(&t->model, p->path, NULL, err);
    if (status == LOAM_OK) status = read_text(t, p, &chunks, err);
    if (status == LOAM_OK) {
        loam_context_params cp = loam_context_defaults();
        cp.n_ctx = cp.n_batch = (uint32_t)t->n_ctx;
        cp.n_threads = p->n_threads;
        status = loam_context_new(&t->ctx, t->model, &cp, err);
    }
    if (status == LOAM_OK) status = run_original(t, chunks, p, err);
    if (status != LOAM_OK) trial_close(t);
    return status;
}

void trial_close(trial *t)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        mem_free(t->rows[i].ids);
        mem_free(t->rows[i].log_p);
    }
    mem_free(t->rows);
    mem_free(t->probs);
    mem_free(t->wanted);
    loam_tokens_free(t->tokens);
    loam_imatrix_free(t->own);
    loam_context_free(t->ctx);
    loam_model_free(t->model);
    *t = (trial){ 0 };
}

/* ---- measuring ---- */

void trial_set(trial *t, uint32_t i, loam_type type, const void *data)
{
    model_set_weight(t->model, i, type, data);
    context_drop_plans(t->ctx);
}

static double divergence(trial *t, const trial_row *r, const float *logits)
{
    int32_t n = loam_model_n_vocab(t->model), top = 0;
    double kld = 0;
    t->ctx->k->softmax(t->probs, logits, n);
    for (int32_t i = 1; i < n; i++) top = logits[i] > logits[top] ? i : top;
    double log_sum = (double)logits[top] - log((double)t->probs[top]);
    for (int32_t k = 0; k < r->n; k++)
        kld += (double)expf(r->log_p[k]) * ((double)r->log_p[k] - ((double)logits[r->ids[k]] - log_sum));
    return kld;
}

loam_status trial_measure(trial *t, double *kld, loam_error *err)
{
    double sum = 0;
    size_t row = 0;
    for (int32_t c = 0; c < t->n_chunks; c++) {
        loam_status status = decode_chunk(t, c, NULL, err);
        if (status != LOAM_OK) return status;
        for (int32_t i = 0; i < t->n_ctx; i++)
            if (t->wanted[i]) sum += divergence(t, &t->rows[row++], loam_logits(t->ctx, i));
    }
    *kld = sum / (double)row;
    return isfinite(*kld) ? LOAM_OK : fail(err, LOAM_E_NUMERIC, "the divergence is not finite");
}
