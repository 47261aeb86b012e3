/* debug.c - `loam debug eval`, `make-model` and `rows`: small tools for work on the engine. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loam/debug.h"
#include "loam/quant.h"
#include "session.h"

/* Writes a row of logits or embeddings for each of the n tokens of the last batch. */
static bool write_rows(const session *s, bool embd, int32_t n, FILE *out)
{
    size_t width = (size_t)(embd ? loam_model_n_embd(s->model) : s->n_vocab);
    for (int32_t i = 0; i < n; i++) {
        const float *row = embd ? loam_embeddings(s->ctx, i) : loam_logits(s->ctx, i);
        if (!row || fwrite(row, sizeof *row, width, out) != width) return false;
    }
    return true;
}

static int eval(session *s, const options *o, const int32_t *ids, size_t n, FILE *out)
{
    size_t most = loam_context_n_batch(s->ctx);
    int8_t *wanted = need(malloc(most));
    int code = EXIT_DONE;
    bool embd = opt_given(o, OPT_EMBD), first = opt_given(o, OPT_ENCODE_FIRST);
    memset(wanted, 1, most);
    for (size_t at = 0; at < n && code == EXIT_DONE; at += most) {
        int32_t take = (int32_t)(n - at < most ? n - at : most);
        loam_batch batch = { .n_tokens = take, .token = ids + at, .logits = wanted };
        loam_error err;
        bool encode = first || (embd && loam_model_has_encoder(s->model));
        int failed = encode ? loam_encode(s->ctx, &batch, &err) : 0;
        if (!failed && (first || !encode)) failed = loam_decode(s->ctx, &batch, &err);
        if (failed) code = say_error(o, &err);
        else if (!write_rows(s, embd, take, out)) code = say_failed(o, "%s: cannot write: %s", opt_text(o, OPT_OUTPUT), strerror(errno));
    }
    free(wanted);
    return code;
}

int cmd_debug_eval(const options *o)
{
    if (!opt_given(o, OPT_TOKENS) || !opt_given(o, OPT_OUTPUT)) return say_usage(o, "--tokens FILE and -o FILE are needed");
    session s = { 0 };
    buffer text = { 0 };
    int32_t *ids = NULL;
    size_t n = 0;
    FILE *out = NULL;
    int code = session_open(&s, o, false);
    if (code == EXIT_DONE &&
        (!read_file(o, opt_text(o, OPT_TOKENS), &text) || !parse_ids(o, opt_text(o, OPT_TOKENS), &text, &ids, &n)))
        code = EXIT_FAILED;
    if (code == EXIT_DONE && n == 0) code = say_failed(o, "%s holds no ids", opt_text(o, OPT_TOKENS));
    if (code == EXIT_DONE) {
        loam_context_params p = session_params(&s, o);
        p.n_ctx = (uint32_t)n;
        p.embeddings = opt_given(o, OPT_EMBD);
        p.pooling = LOAM_POOLING_NONE;
        if (loam_model_has_encoder(s.model)) p.n_batch = p.n_ubatch = (uint32_t)n;
        if (!p.embeddings && !loam_model_has_decoder(s.model))
            code = say_failed(o, "architecture '%s' has no logits; --embd writes its embeddings", loam_model_architecture(s.model));
        else code = session_context(&s, o, &p);
    }
    if (code == EXIT_DONE && !(out = fopen(opt_text(o, OPT_OUTPUT), "wbe")))
        code = say_failed(o, "%s: cannot be written: %s", opt_text(o, OPT_OUTPUT), strerror(errno));
    if (code == EXIT_DONE) code = eval(&s, o, ids, n, out);
    if (out) {
        int flushed = flush_output(o, out, opt_text(o, OPT_OUTPUT));
        fclose(out);
        if (code == EXIT_DONE) code = flushed;
    }
    free(ids);
    buffer_free(&text);
    session_close(&s);
    return code;
}

int cmd_debug_make_model(const options *o)
{
    if (!opt_given(o, OPT_SHAPE) || !opt_given(o, OPT_MAKE_TYPE))
        return say_usage(o, "--shape %s and --type TYPE are needed", option_rows[OPT_SHAPE].argument);
    loam_error err;
    loam_status status = loam_debug_make_model(o->words[0], opt_text(o, OPT_SHAPE), opt_text(o, OPT_MAKE_TYPE), 1, &err);
    if (status == LOAM_OK) return EXIT_DONE;
    return status == LOAM_E_ARG ? say_usage(o, "%s", err.message) : say_error(o, &err);
}

/* ---- rows ---- */

typedef struct conversion {
    loam_rows shape;
    buffer in, weights;
    void *out;
    uint64_t out_bytes;
} conversion;

static int convert(conversion *c, const options *o, bool encode)
{
    loam_error err;
    uint64_t row_bytes, float_bytes = (uint64_t)opt_int(o, OPT_COLS) * sizeof(float);
    c->shape = (loam_rows){ .type = opt_type(o, OPT_ROW_TYPE), .rows = 1, .n = opt_int(o, OPT_COLS) };
    if (loam_quant_bytes(&c->shape, &row_bytes, &err) != LOAM_OK) return say_error(o, &err);
    uint64_t in_row = encode ? float_bytes : row_bytes;
    if (c->in.len % in_row)
        return say_failed(o, "%s: %zu bytes are no whole number of rows of %llu bytes", o->words[1], c->in.len,
                          (unsigned long long)in_row);
    c->shape.rows = (int64_t)(c->in.len / in_row);
    c->out_bytes = (uint64_t)c->shape.rows * (encode ? row_bytes : float_bytes);
    c->out = need(malloc(c->out_bytes ? c->out_bytes : 1));
    if (c->weights.data && c->weights.len != float_bytes)
        return say_failed(o, "%s: %zu bytes, but a row has %llu weights", opt_text(o, OPT_WEIGHTS), c->weights.len,
                          (unsigned long long)opt_int(o, OPT_COLS));
    loam_status status = encode ? loam_quant_encode(&c->shape, (const float *)(const void *)c->in.data,
                                                    (const float *)(const void *)c->weights.data, c->out, c->out_bytes, &err)
                                : loam_quant_decode(&c->shape, c->in.data, c->in.len, c->out, &err);
    return status == LOAM_OK ? EXIT_DONE : say_error(o, &err);
}

int cmd_debug_rows(const options *o)
{
    bool encode = strcmp(o->words[0], "encode") == 0;
    if (!encode && strcmp(o->words[0], "decode") != 0)
        return say_usage(o, "'%s': the first argument must be encode or decode", o->words[0]);
    if (!opt_given(o, OPT_ROW_TYPE) || !opt_given(o, OPT_COLS)) return say_usage(o, "--type TYPE and --cols N are needed");
    if (!encode && opt_given(o, OPT_WEIGHTS)) return say_usage(o, "--imatrix has an effect only with encode");
    conversion c = { 0 };
    int code = read_file(o, o->words[1], &c.in) ? EXIT_DONE : EXIT_FAILED;
    if (code == EXIT_DONE && opt_given(o, OPT_WEIGHTS) && !read_file(o, opt_text(o, OPT_WEIGHTS), &c.weights)) code = EXIT_FAILED;
    if (code == EXIT_DONE) code = convert(&c, o, encode);
    FILE *out = code == EXIT_DONE ? fopen(o->words[2], "wbe") : NULL;
    if (code == EXIT_DONE && !out) code = say_failed(o, "%s: cannot be written: %s", o->words[2], strerror(errno));
    if (out) {
        fwrite(c.out, 1, c.out_bytes, out);
        code = flush_output(o, out, o->words[2]);
        fclose(out);
    }
    free(c.out);
    buffer_free(&c.in);
    buffer_free(&c.weights);
    return code;
}
