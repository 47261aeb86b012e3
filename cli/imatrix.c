/* imatrix.c - `loam imatrix`: how large the activations are that each column of a model's weights meets, for quantization.
 *
 *   --in FILE... ── added up ──► matrix ◄── chunks of the text (-m, -f) ──► -o FILE
 *
 * Without -f the files of --in are only added up. A run that is stopped writes what it has, and --in takes it up again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chunks.h"
#include "loam/imatrix.h"

typedef struct counting {
    loam_imatrix *im;
    const session *s;
    const chunks *c;
    int64_t chunk;
    score ppl;
} counting;

static int add_files(loam_imatrix *im, const options *o)
{
    for (int i = 0; i < o->n_list; i++) {
        loam_imatrix *from;
        loam_error err;
        if (o->list_of[i] != OPT_MATRIX_IN) continue;
        if (loam_imatrix_open(&from, o->list[i], &err) != LOAM_OK) return say_error(o, &err);
        loam_status status = loam_imatrix_merge(im, from, &err);
        if (!opt_given(o, OPT_FILE)) loam_imatrix_set_chunk_size(im, loam_imatrix_chunk_size(from));
        loam_imatrix_free(from);
        if (status != LOAM_OK) return say_failed(o, "%s: %s", o->list[i], err.message);
    }
    return EXIT_DONE;
}

static int decode(void *user, loam_context *ctx, const loam_batch *batch, loam_error *err)
{
    return loam_imatrix_decode(((counting *)user)->im, ctx, batch, err);
}

static bool add_score(void *user, int32_t i, const float *logits, loam_error *err)
{
    counting *k = user;
    (void)err;
    if (i < k->c->n_ctx - 1) score_add(&k->ppl, logits, k->s->n_vocab, k->c->ids[k->chunk * k->c->n_ctx + i + 1]);
    return true;
}

static int count_text(loam_imatrix *im, const session *s, const options *o, const chunks *c)
{
    counting k = { .im = im, .s = s, .c = c, .chunk = opt_int(o, OPT_FROM_CHUNK) };
    int8_t *wanted = chunk_scored(c->n_ctx);
    int64_t first = k.chunk, end = first + c->count < c->total ? first + c->count : c->total;
    int code = EXIT_DONE;
    progress bar;
    loam_error err;
    if (opt_given(o, OPT_PROCESS_OUTPUT)) memset(wanted, 1, (size_t)c->n_ctx);
    else if (!opt_given(o, OPT_PPL)) memset(wanted, 0, (size_t)c->n_ctx);
    chunk_run run = { .decode = decode, .row = opt_given(o, OPT_PPL) ? add_score : NULL, .user = &k, .wanted = wanted };
    progress_begin(&bar, "imatrix", (uint64_t)(end - first));
    for (; k.chunk < end && !interrupted(); k.chunk++) {
        int failed = chunk_compute(s, c, k.chunk, &run, &err);
        if (failed == 2) break;
        if (failed) {
            code = say_error(o, &err);
            break;
        }
        progress_at(&bar, (uint64_t)(k.chunk + 1 - first));
    }
    progress_end(&bar);
    free(wanted);
    if (code == EXIT_DONE && k.chunk == first) return say_failed(o, "no chunk was read");
    if (code == EXIT_DONE && k.chunk < end)
        say_note(o, "stopped after %lld chunks; go on with --in %s --from-chunk %lld", (long long)(k.chunk - first),
                 opt_text(o, OPT_MATRIX_OUT), (long long)k.chunk);
    if (code == EXIT_DONE && k.ppl.n) printf("perplexity %.4f +/- %.5f\n", score_perplexity(&k.ppl), score_uncertainty(&k.ppl));
    return code;
}

static int count_with_model(loam_imatrix *im, const options *o)
{
    session s = { 0 };
    chunks c = { 0 };
    loam_error err;
    int code = session_open(&s, o, false);
    if (code == EXIT_DONE) code = chunks_check_model(&s, o);
    if (code == EXIT_DONE) code = chunks_read(&c, &s, o);
    if (code == EXIT_DONE && opt_int(o, OPT_FROM_CHUNK) >= c.total)
        code = say_failed(o, "--from-chunk %lld: the text has %lld chunks", (long long)opt_int(o, OPT_FROM_CHUNK), (long long)c.total);
    if (code == EXIT_DONE) {
        loam_context_params p = session_params(&s, o);
        p.n_ctx = (uint32_t)c.n_ctx;
        code = session_context(&s, o, &p);
    }
    loam_imatrix_set_chunk_size(im, (uint32_t)opt_int(o, OPT_PPL_CTX));
    loam_imatrix_set_head(im, opt_given(o, OPT_PROCESS_OUTPUT));
    if (code == EXIT_DONE && loam_imatrix_add_dataset(im, opt_text(o, OPT_FILE), &err) != LOAM_OK) code = say_error(o, &err);
    if (code == EXIT_DONE) code = count_text(im, &s, o, &c);
    chunks_free(&c);
    session_close(&s);
    return code;
}

int cmd_imatrix(const options *o)
{
    loam_error err;
    loam_imatrix *im;
    bool text = opt_given(o, OPT_FILE);
    if (!opt_given(o, OPT_MATRIX_OUT)) return say_usage(o, "-o FILE is missing: where the matrix goes");
    if (!text && !opt_given(o, OPT_MATRIX_IN)) return say_usage(o, "-f FILE (a text, with -m) or --in FILE (a matrix) is missing");
    if (text && !opt_given(o, OPT_MODEL)) return say_usage(o, "-m FILE is missing");
    show_log(o);
    catch_interrupt();
    if (loam_imatrix_new(&im, &err) != LOAM_OK) return say_error(o, &err);
    int code = add_files(im, o);
    if (code == EXIT_DONE && text) code = count_with_model(im, o);
    if (code == EXIT_DONE && loam_imatrix_save(im, opt_text(o, OPT_MATRIX_OUT), &err) != LOAM_OK) code = say_error(o, &err);
    if (code == EXIT_DONE)
        printf("%s: %zu weights, %u chunks of %u tokens\n", opt_text(o, OPT_MATRIX_OUT), loam_imatrix_n_entries(im),
               loam_imatrix_chunk_count(im), loam_imatrix_chunk_size(im));
    loam_imatrix_free(im);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}
