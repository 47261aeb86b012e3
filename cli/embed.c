/* embed.c - `loam embed` and `loam rerank`: texts to vectors, and documents to scores for a query.
 *
 *   texts ── ids ── batches of up to 64 sequences ── one result each (without pooling: one a token) ── scaled ── written */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define SEQUENCES 64
#define ROOM 512 /* tokens of a batch, or those of the longest text */

typedef struct text {
    const char *data;
    size_t len;
    int32_t *ids;
    size_t n;
    float *rows;   /* [n_rows][width] */
    size_t n_rows;
} text;

typedef struct job {
    const options *o;
    session s;
    buffer input;
    text *texts;
    size_t n, width;
} job;

/* ---- texts ---- */

static text *add_text(job *j, const char *data, size_t len)
{
    j->texts = need(realloc(j->texts, (j->n + 1) * sizeof *j->texts));
    j->texts[j->n] = (text){ .data = data, .len = len };
    return &j->texts[j->n++];
}

/* Every line that is not empty. */
static void add_lines(job *j)
{
    for (const char *p = j->input.data, *end = p + j->input.len, *next; p && p < end; p = next) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        size_t len = (size_t)((stop ? stop : end) - p);
        if (len && p[len - 1] == '\r') len--;
        if (len) add_text(j, p, len);
    }
}

static void close_job(job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        free(j->texts[i].ids);
        free(j->texts[i].rows);
    }
    free(j->texts);
    buffer_free(&j->input);
    session_close(&j->s);
}

/* Adds the ids of a piece of text to those of t. */
static int append_text(const job *j, text *t, const char *data, size_t len, unsigned flags)
{
    loam_token *ids;
    size_t n;
    loam_error err;
    if (loam_tokenizer_encode_all(j->s.tokenizer, data, len, flags, &ids, &n, &err) != LOAM_OK) return say_error(j->o, &err);
    t->ids = need(realloc(t->ids, (t->n + n + 1) * sizeof *t->ids));
    memcpy(t->ids + t->n, ids, n * sizeof *ids);
    t->n += n;
    loam_tokens_free(ids);
    return EXIT_DONE;
}

static void append_id(text *t, loam_token id)
{
    if (id < 0) return;
    t->ids = need(realloc(t->ids, (t->n + 1) * sizeof *t->ids));
    t->ids[t->n++] = id;
}

/* ---- computing ---- */

static int make_context(job *j, loam_pooling pooling)
{
    size_t longest = ROOM;
    for (size_t i = 0; i < j->n; i++) longest = j->texts[i].n > longest ? j->texts[i].n : longest;
    if (longest > 1048576) return say_failed(j->o, "a text has %zu tokens, at most 1048576 go at once", longest);
    loam_context_params p = session_params(&j->s, j->o);
    p.n_ctx = p.n_batch = p.n_ubatch = (uint32_t)longest;
    p.n_seq_max = j->n < SEQUENCES ? (uint32_t)j->n : SEQUENCES;
    p.embeddings = true;
    p.pooling = pooling;
    int code = session_context(&j->s, j->o, &p);
    if (code != EXIT_DONE) return code;
    bool pooled = loam_context_pooling(j->s.ctx) != LOAM_POOLING_NONE;
    j->width = (size_t)(pooled ? loam_n_pooled(j->s.ctx) : loam_model_n_embd(j->s.model));
    return EXIT_DONE;
}

/* Texts [first, first + n) as sequences 0.. of one batch. */
static int compute(job *j, size_t first, int32_t n)
{
    size_t total = 0, at = 0;
    for (int32_t q = 0; q < n; q++) total += j->texts[first + (size_t)q].n;
    int32_t *ids = need(malloc(total * sizeof *ids)), *ones = need(malloc(total * sizeof *ones)), seqs[SEQUENCES];
    const int32_t **seq = need(malloc(total * sizeof *seq));
    int8_t *wanted = need(malloc(total));
    memset(wanted, 1, total);
    for (int32_t q = 0; q < n; q++) {
        const text *t = &j->texts[first + (size_t)q];
        seqs[q] = q;
        for (size_t i = 0; i < t->n; i++, at++) ids[at] = t->ids[i], ones[at] = 1, seq[at] = &seqs[q];
    }
    loam_batch batch = { .n_tokens = (int32_t)total, .token = ids, .n_seq_id = ones, .seq_id = seq, .logits = wanted };
    loam_error err;
    loam_memory_clear(j->s.ctx);
    int code = loam_model_has_encoder(j->s.model) ? loam_encode(j->s.ctx, &batch, &err) : loam_decode(j->s.ctx, &batch, &err);
    code = code ? say_error(j->o, &err) : EXIT_DONE;
    bool pooled = loam_context_pooling(j->s.ctx) != LOAM_POOLING_NONE;
    at = 0;
    for (int32_t q = 0; q < n && code == EXIT_DONE; q++) {
        text *t = &j->texts[first + (size_t)q];
        t->n_rows = pooled ? 1 : t->n;
        t->rows = need(malloc(t->n_rows * j->width * sizeof *t->rows));
        for (size_t r = 0; r < t->n_rows; r++, at++)
            memcpy(t->rows + r * j->width, pooled ? loam_embeddings_seq(j->s.ctx, q) : loam_embeddings(j->s.ctx, (int32_t)at),
                   j->width * sizeof *t->rows);
    }
    free(ids);
    free(ones);
    free(seq);
    free(wanted);
    return code;
}

static int compute_all(job *j)
{
    int code = EXIT_DONE;
    size_t room = loam_context_n_ubatch(j->s.ctx), most = loam_context_n_seq_max(j->s.ctx);
    for (size_t first = 0, n; first < j->n && code == EXIT_DONE; first += n) {
        size_t tokens = 0;
        for (n = 0; first + n < j->n && n < most && (n == 0 || tokens + j->texts[first + n].n <= room); n++)
            tokens += j->texts[first + n].n;
        code = interrupted() ? say_failed(j->o, "stopped") : compute(j, first, (int32_t)n);
    }
    return code;
}

/* ---- embed ---- */

/* Scales a row: by 0 so that its largest magnitude becomes 32760, by p >= 1 to length 1 in the p-norm. */
static void normalise(float *x, size_t n, int p)
{
    double sum = 0;
    if (p < 0) return;
    for (size_t i = 0; i < n; i++) {
        double a = fabs((double)x[i]);
        if (p == 0) sum = a > sum ? a : sum;
        else sum += p == 1 ? a : p == 2 ? a * a : pow(a, p);
    }
    double length = p == 0 ? sum / 32760.0 : p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1.0 / p);
    for (size_t i = 0; i < n; i++) x[i] = length > 0 ? (float)(x[i] / length) : 0.0f;
}

static void write_row(json *out, const float *x, size_t n)
{
    json_open(out, NULL, '[');
    for (size_t i = 0; i < n; i++) json_num(out, NULL, x[i]);
    json_close(out, ']');
}

static void write_json(const job *j)
{
    json out;
    json_begin(&out, stdout);
    json_open(&out, NULL, '[');
    for (size_t i = 0; i < j->n; i++) {
        const text *t = &j->texts[i];
        json_open(&out, NULL, '{');
        json_int(&out, "index", (int64_t)i);
        json_int(&out, "tokens", (int64_t)t->n);
        json_open(&out, loam_context_pooling(j->s.ctx) == LOAM_POOLING_NONE ? "embeddings" : "embedding", '[');
        for (size_t r = 0; r < t->n_rows; r++) {
            if (loam_context_pooling(j->s.ctx) == LOAM_POOLING_NONE) write_row(&out, t->rows + r * j->width, j->width);
            else for (size_t d = 0; d < j->width; d++) json_num(&out, NULL, t->rows[d]);
        }
        json_close(&out, ']');
        json_close(&out, '}');
    }
    json_close(&out, ']');
    putchar('\n');
}

static void write_text(const job *j)
{
    for (size_t i = 0; i < j->n; i++)
        for (size_t r = 0; r < j->texts[i].n_rows; r++)
            for (size_t d = 0; d < j->width; d++)
                printf("%.9g%c", (double)j->texts[i].rows[r * j->width + d], d + 1 < j->width ? ' ' : '\n');
}

static loam_pooling pooling_of(const options *o)
{
    static const char *const names[] = { "none", "mean", "cls", "last", "rank" };
    for (int i = 0; opt_given(o, OPT_POOLING) && i < 5; i++)
        if (strcasecmp(opt_text(o, OPT_POOLING), names[i]) == 0) return (loam_pooling)i;
    return LOAM_POOLING_MODEL;
}

static int read_texts(job *j)
{
    const options *o = j->o;
    if (opt_given(o, OPT_PROMPT) == opt_given(o, OPT_FILE)) return say_usage(o, "one of -p TEXT and -f FILE is needed");
    if (opt_given(o, OPT_PROMPT)) {
        buffer_add(&j->input, opt_text(o, OPT_PROMPT), strlen(opt_text(o, OPT_PROMPT)));
        if (opt_given(o, OPT_ESCAPE)) unescape(&j->input);
        add_text(j, j->input.data, j->input.len);
        return EXIT_DONE;
    }
    if (!read_file(o, opt_text(o, OPT_FILE), &j->input)) return EXIT_FAILED;
    add_lines(j);
    return j->n ? EXIT_DONE : say_failed(o, "%s holds no text", opt_text(o, OPT_FILE));
}

int cmd_embed(const options *o)
{
    job j = { .o = o };
    int code = read_texts(&j);
    if (code == EXIT_DONE) code = session_open(&j.s, o, false);
    if (code == EXIT_DONE) code = session_need_tokenizer(&j.s, o);
    for (size_t i = 0; i < j.n && code == EXIT_DONE; i++) {
        code = append_text(&j, &j.texts[i], j.texts[i].data, j.texts[i].len, LOAM_ENCODE_ADD_SPECIAL);
        if (code == EXIT_DONE && j.texts[i].n == 0) code = say_failed(o, "text %zu has no tokens", i + 1);
    }
    catch_interrupt();
    if (code == EXIT_DONE) code = make_context(&j, pooling_of(o));
    if (code == EXIT_DONE) code = compute_all(&j);
    if (code == EXIT_DONE) {
        bool scores = loam_context_pooling(j.s.ctx) == LOAM_POOLING_RANK;
        for (size_t i = 0; i < j.n && !scores; i++)
            for (size_t r = 0; r < j.texts[i].n_rows; r++)
                normalise(j.texts[i].rows + r * j.width, j.width, (int)opt_int(o, OPT_NORMALIZE));
        if (opt_given(o, OPT_JSON)) write_json(&j);
        else write_text(&j);
        code = flush_output(o, stdout, "standard output");
    }
    close_job(&j);
    return code;
}

/* ---- rerank ---- */

#define TEMPLATE "tokenizer.chat_template.rerank"

/* The model's own form with {query} and {document} replaced. */
static int pair_by_template(const job *j, text *t, const char *form)
{
    const char *query = opt_text(j->o, OPT_QUERY);
    buffer whole = { 0 };
    for (const char *p = form; *p;) {
        if (strncmp(p, "{query}", 7) == 0) {
            buffer_add(&whole, query, strlen(query));
            p += 7;
        } else if (strncmp(p, "{document}", 10) == 0) {
            buffer_add(&whole, t->data, t->len);
            p += 10;
        } else {
            buffer_add(&whole, p++, 1);
        }
    }
    int code = append_text(j, t, whole.data, whole.len, LOAM_ENCODE_ADD_SPECIAL | LOAM_ENCODE_PARSE_SPECIAL);
    buffer_free(&whole);
    return code;
}

/* BOS query EOS SEP document EOS, each mark where the vocabulary adds it; SEP stands in for a missing EOS, and ends the pair where
 * only it is added (BERT: [CLS] query [SEP] document [SEP]). */
static int pair(const job *j, text *t, const char *form)
{
    const loam_tokenizer *v = j->s.tokenizer;
    const char *query = opt_text(j->o, OPT_QUERY);
    if (form) return pair_by_template(j, t, form);
    loam_token eos = loam_tokenizer_special(v, LOAM_TOKEN_EOS), sep = loam_tokenizer_special(v, LOAM_TOKEN_SEP);
    if (eos < 0) eos = sep;
    if (loam_tokenizer_adds_bos(v)) append_id(t, loam_tokenizer_special(v, LOAM_TOKEN_BOS));
    int code = append_text(j, t, query, strlen(query), 0);
    if (loam_tokenizer_adds_eos(v)) append_id(t, eos);
    if (loam_tokenizer_adds_sep(v)) append_id(t, sep);
    if (code == EXIT_DONE) code = append_text(j, t, t->data, t->len, 0);
    if (loam_tokenizer_adds_eos(v) || loam_tokenizer_adds_sep(v)) append_id(t, eos);
    return code;
}

static char *template_of(const loam_model *m)
{
    size_t len = 0;
    if (!loam_model_meta(m, TEMPLATE, NULL, 0, &len)) return NULL;
    char *form = need(malloc(len + 1));
    loam_model_meta(m, TEMPLATE, form, len + 1, &len);
    return form;
}

/* Best first; equal scores in the order of the file. */
static int by_score(const void *a, const void *b)
{
    const text *x = *(const text *const *)a, *y = *(const text *const *)b;
    if (x->rows[0] != y->rows[0]) return x->rows[0] < y->rows[0] ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void write_ranking(const job *j)
{
    const text **order = need(malloc(j->n * sizeof *order));
    json out;
    for (size_t i = 0; i < j->n; i++) order[i] = &j->texts[i];
    qsort(order, j->n, sizeof *order, by_score);
    if (opt_given(j->o, OPT_JSON)) json_begin(&out, stdout), json_open(&out, NULL, '[');
    for (size_t i = 0; i < j->n; i++) {
        const text *t = order[i];
        if (!opt_given(j->o, OPT_JSON)) {
            printf("%.6f\t%zu\t%.*s\n", (double)t->rows[0], (size_t)(t - j->texts), (int)t->len, t->data);
            continue;
        }
        json_open(&out, NULL, '{');
        json_int(&out, "index", t - j->texts);
        json_num(&out, "score", t->rows[0]);
        json_text(&out, "document", t->data, t->len);
        json_close(&out, '}');
    }
    if (opt_given(j->o, OPT_JSON)) json_close(&out, ']'), putchar('\n');
    free(order);
}

int cmd_rerank(const options *o)
{
    if (!opt_given(o, OPT_QUERY) || !opt_given(o, OPT_DOCUMENTS)) return say_usage(o, "-q QUERY and -f DOCS are needed");
    job j = { .o = o };
    char *form = NULL;
    int code = read_file(o, opt_text(o, OPT_DOCUMENTS), &j.input) ? EXIT_DONE : EXIT_FAILED;
    if (code == EXIT_DONE) add_lines(&j);
    if (code == EXIT_DONE && j.n == 0) code = say_failed(o, "%s holds no text", opt_text(o, OPT_DOCUMENTS));
    if (code == EXIT_DONE) code = session_open(&j.s, o, false);
    if (code == EXIT_DONE) code = session_need_tokenizer(&j.s, o);
    if (code == EXIT_DONE) form = template_of(j.s.model);
    for (size_t i = 0; i < j.n && code == EXIT_DONE; i++) code = pair(&j, &j.texts[i], form);
    catch_interrupt();
    if (code == EXIT_DONE) code = make_context(&j, LOAM_POOLING_RANK);
    if (code == EXIT_DONE) code = compute_all(&j);
    if (code == EXIT_DONE) {
        write_ranking(&j);
        code = flush_output(o, stdout, "standard output");
    }
    free(form);
    close_job(&j);
    return code;
}
