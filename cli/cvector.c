/* cvector.c - `loam cvector`: a control vector from pairs of prompts.
 *
 *     line i of --positive and line i of --negative: a pair
 *     of each block but the first:  d_i = output at the last token of the positive prompt - that of the negative one
 *     direction = the mean of all d_i (--method mean), or the axis on which they vary most about zero (--method pca), by power
 *                 iteration on the sum of d_i d_i^T, pointing the way of the mean. Each has length 1.
 *
 * After "Representation Engineering" (Zou et al. 2023). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loam/gguf.h"
#include "session.h"

#define POWER_STEPS 1000

typedef struct lines {
    buffer text;
    const char **line;
    size_t *len, n;
} lines;

typedef struct maker {
    const options *o;
    session s;
    lines side[2];       /* positive, negative */
    size_t width, blocks;
    float *last;         /* [blocks + 1][width]: of the prompt that runs */
    float *diff;         /* [blocks][pairs][width] */
} maker;

static int read_lines(const options *o, option_id id, lines *l)
{
    const char *path = opt_text(o, id);
    if (!read_file(o, path, &l->text)) return EXIT_FAILED;
    for (char *p = l->text.data, *end = p + l->text.len, *next; p < end; p = next) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        size_t len = (size_t)((stop ? stop : end) - p);
        if (len && p[len - 1] == '\r') len--;
        if (!len) continue;
        l->line = need(realloc(l->line, (l->n + 1) * sizeof *l->line));
        l->len = need(realloc(l->len, (l->n + 1) * sizeof *l->len));
        l->line[l->n] = p;
        l->len[l->n++] = len;
    }
    return l->n ? EXIT_DONE : say_failed(o, "%s holds no prompt", path);
}

/* The last row as wide as the model that a block makes is its output. */
static bool watch(void *user, const loam_node *n, bool ask)
{
    maker *m = user;
    bool wide = n->type == LOAM_F32 && n->layer >= 1 && (size_t)n->layer <= m->blocks && (size_t)(n->ne[0] * n->ne[1]) == m->width;
    if (ask || !wide) return ask ? wide : true;
    memcpy(m->last + (size_t)n->layer * m->width, (const char *)n->data + (n->ne[2] - 1) * n->nb[2], m->width * sizeof(float));
    return true;
}

static int run_prompt(maker *m, int side, size_t pair)
{
    loam_token *ids;
    size_t n;
    loam_error err;
    const lines *l = &m->side[side];
    unsigned flags = LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL;
    if (loam_tokenizer_encode_all(m->s.tokenizer, l->line[pair], l->len[pair], flags, &ids, &n, &err) != LOAM_OK) return say_error(m->o, &err);
    loam_memory_clear(m->s.ctx);
    int code = EXIT_DONE, failed = n ? session_feed(&m->s, ids, n, &err) : 0;
    if (n == 0) code = say_failed(m->o, "%s: prompt %zu has no tokens", side ? "--negative" : "--positive", pair + 1);
    else if (failed) code = failed == 2 ? say_failed(m->o, "stopped") : say_error(m->o, &err);
    loam_tokens_free(ids);
    for (size_t b = 0; b < m->blocks && code == EXIT_DONE; b++) {
        float *d = m->diff + (b * m->side[0].n + pair) * m->width;
        for (size_t i = 0; i < m->width; i++) d[i] += (side ? -1.0f : 1.0f) * m->last[(b + 1) * m->width + i];
    }
    return code;
}

/* Scales to length 1; false where there is no length. */
static bool unit(double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    if (!(sum > 0)) return false;
    for (size_t i = 0; i < n; i++) x[i] /= sqrt(sum);
    return true;
}

/* next = sum of d_i (d_i . x) */
static void apply(const maker *m, const float *diff, const double *x, double *next)
{
    memset(next, 0, m->width * sizeof *next);
    for (size_t p = 0; p < m->side[0].n; p++) {
        const float *d = diff + p * m->width;
        double dot = 0;
        for (size_t i = 0; i < m->width; i++) dot += (double)d[i] * x[i];
        for (size_t i = 0; i < m->width; i++) next[i] += (double)d[i] * dot;
    }
}

/* Of one block; false where the prompts of all pairs give the same. */
static bool direction(const maker *m, const float *diff, bool pca, float *out)
{
    double *x = need(calloc(3 * m->width, sizeof *x)), *next = x + m->width, *mean = next + m->width;
    for (size_t p = 0; p < m->side[0].n; p++)
        for (size_t i = 0; i < m->width; i++) mean[i] += (double)diff[p * m->width + i];
    bool some = unit(mean, m->width);
    memcpy(x, mean, m->width * sizeof *x);
    if (pca && !some)
        for (size_t i = 0; i < m->width; i++) x[i] = (double)diff[i]; /* pairs that cancel out: begin with the first */
    some = unit(x, m->width);
    for (int step = 0; pca && some && step < POWER_STEPS; step++) {
        double change = 0;
        apply(m, diff, x, next);
        some = unit(next, m->width);
        for (size_t i = 0; i < m->width; i++) change += fabs(next[i] - x[i]);
        memcpy(x, next, m->width * sizeof *x);
        if (change < 1e-9) break;
    }
    double along = 0;
    for (size_t i = 0; i < m->width; i++) along += x[i] * mean[i];
    for (size_t i = 0; i < m->width; i++) out[i] = (float)(along < 0 ? -x[i] : x[i]);
    free(x);
    return some;
}

static int write_vector(maker *m)
{
    const options *o = m->o;
    loam_error err;
    loam_gguf_builder *b = NULL;
    bool pca = !opt_given(o, OPT_CVECTOR_METHOD) || strcasecmp(opt_text(o, OPT_CVECTOR_METHOD), "pca") == 0;
    const char *arch = loam_model_architecture(m->s.model);
    float *rows = need(malloc((m->blocks * m->width + 1) * sizeof *rows));
    loam_status status = loam_gguf_builder_create(&b, NULL, false, &err);
    int code = status == LOAM_OK ? EXIT_DONE : say_error(o, &err);
    if (code == EXIT_DONE) {
        loam_gguf_set_text(b, "general.architecture", "controlvector", 13);
        loam_gguf_set_text(b, "controlvector.model_hint", arch, strlen(arch));
        loam_gguf_set_u32(b, "controlvector.layer_count", (uint32_t)m->blocks);
    }
    for (size_t i = 0; i < m->blocks && code == EXIT_DONE; i++) {
        char name[32];
        int64_t ne[4] = { (int64_t)m->width, 1, 1, 1 };
        float *row = rows + i * m->width;
        snprintf(name, sizeof name, "direction.%zu", i + 1);
        if (direction(m, m->diff + i * m->side[0].n * m->width, pca, row)) loam_gguf_set_tensor(b, name, LOAM_F32, ne, row);
        else code = say_failed(o, "block %zu: the two sides of every pair give the same", i + 1);
    }
    if (code == EXIT_DONE && loam_gguf_write(b, opt_text(o, OPT_CVECTOR_OUTPUT), NULL, &err) != LOAM_OK) code = say_error(o, &err);
    if (code == EXIT_DONE) printf("%zu pairs, %zu blocks of %zu values: %s\n", m->side[0].n, m->blocks, m->width, opt_text(o, OPT_CVECTOR_OUTPUT));
    loam_gguf_builder_free(b);
    free(rows);
    return code;
}

static int prepare(maker *m)
{
    const options *o = m->o;
    int code = read_lines(o, OPT_POSITIVE, &m->side[0]);
    if (code == EXIT_DONE) code = read_lines(o, OPT_NEGATIVE, &m->side[1]);
    if (code == EXIT_DONE && m->side[0].n != m->side[1].n)
        code = say_failed(o, "%zu positive prompts and %zu negative ones: they come in pairs", m->side[0].n, m->side[1].n);
    if (code == EXIT_DONE) code = session_open(&m->s, o, false);
    if (code == EXIT_DONE) code = session_need_tokenizer(&m->s, o);
    if (code != EXIT_DONE) return code;
    if (loam_model_has_encoder(m->s.model) || !loam_model_has_decoder(m->s.model) || loam_model_n_layer(m->s.model) < 2)
        return say_failed(o, "control vectors are for decoders of several blocks");
    loam_context_params p = session_params(&m->s, o);
    p.n_ctx = 0;
    code = session_context(&m->s, o, &p);
    if (code != EXIT_DONE) return code;
    m->width = (size_t)loam_model_n_embd(m->s.model);
    m->blocks = (size_t)loam_model_n_layer(m->s.model) - 1;
    m->last = need(calloc((m->blocks + 1) * m->width, sizeof *m->last));
    m->diff = need(calloc(m->blocks * m->side[0].n * m->width, sizeof *m->diff));
    loam_context_set_observer(m->s.ctx, watch, m);
    return EXIT_DONE;
}

int cmd_cvector(const options *o)
{
    if (!opt_given(o, OPT_POSITIVE) || !opt_given(o, OPT_NEGATIVE) || !opt_given(o, OPT_CVECTOR_OUTPUT))
        return say_usage(o, "--positive FILE, --negative FILE and -o FILE are needed");
    maker m = { .o = o };
    catch_interrupt();
    int code = prepare(&m);
    progress bar;
    progress_begin(&bar, "prompts", 2 * m.side[0].n);
    for (size_t i = 0; i < 2 * m.side[0].n && code == EXIT_DONE; i++) {
        code = run_prompt(&m, (int)(i % 2), i / 2);
        progress_at(&bar, i + 1);
    }
    progress_end(&bar);
    if (code == EXIT_DONE) code = write_vector(&m);
    for (int i = 0; i < 2; i++) {
        buffer_free(&m.side[i].text);
        free(m.side[i].line);
        free(m.side[i].len);
    }
    free(m.last);
    free(m.diff);
    session_close(&m.s);
    int flushed = flush_output(o, stdout, "standard output");
    return code == EXIT_DONE ? flushed : code;
}
