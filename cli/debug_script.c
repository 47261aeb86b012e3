/* debug_script.c - `loam debug script`: calls of a context from a text file, one a line.
 *
 *     D seqs pos t0 n        decode stream[t0..t0+n) at pos.. for the sequences (comma list: shared); writes all logits
 *     B q:p:t0:n ...         one batch of several such groups
 *     X id pos q             a batch of one token that may be bad
 *     RM q p0 p1   CP q r p0 p1   KEEP q   ADD q p0 p1 d   DIV q p0 p1 d   CLEAR   POS q
 *     POOL kind              1 mean, 2 first, 3 last, 4 rank: D and B write one result per sequence in place of logits
 *     NCTX n   UBATCH n   SWA 0|1   STREAMS   YARN scale orig   LINEAR scale   FREQBASE base      before the first call
 *
 *     LORA file strength   NOLORA   CVEC first last amp   SAVELOAD
 *
 * The stream is 512 made-up ids. The log has `LINE -> value` for D, B, X, RM, POS, CVEC and SAVELOAD. Other lines are refused by number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loam/adapter.h"
#include "session.h"

#define STREAM           512
#define SCRIPT_CONTEXT   512
#define SCRIPT_SEQUENCES 4
#define GROUP_SEQUENCES  16

typedef struct script {
    const options *o;
    session s;
    loam_context_params p;
    FILE *out, *log;
    int line;
    const char *text; /* of the line */
    /* the batch that is being put together */
    int32_t *ids, *pos, *n_seq;
    const int32_t **seq;
    int32_t (*seq_sets)[GROUP_SEQUENCES];
    int8_t *wanted;
    int32_t n;
    loam_adapter *adapter;
} script;

#define BATCH_MAX 4096

static int bad_line(const script *c, const char *why)
{
    return say_failed(c->o, "%s: line %d: %s: %s", opt_text(c->o, OPT_SCRIPT_FILE), c->line, c->text, why);
}

static int32_t stream_id(const script *c, int32_t i)
{
    uint64_t s = 12345;
    for (int32_t k = 0; k <= i; k++) s = s * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((s >> 33) % (uint64_t)c->s.n_vocab);
}

static int need_context(script *c) { return c->s.ctx ? EXIT_DONE : session_context(&c->s, c->o, &c->p); }

static void log_value(const script *c, const char *value)
{
    if (c->log) fprintf(c->log, "%s -> %s\n", c->text, value);
}

static void log_int(const script *c, int v)
{
    char value[16];
    snprintf(value, sizeof value, "%d", v);
    log_value(c, value);
}

/* ---- batches ---- */

/* Appends a group of n tokens for the sequences of a comma list. */
static int add_group(script *c, const char *seqs, const int32_t at[3])
{
    int32_t set[GROUP_SEQUENCES], count = 0, pos = at[0], t0 = at[1], n = at[2];
    char *end;
    for (const char *p = seqs; *p; p = *end ? end + 1 : end) {
        long q = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || count == GROUP_SEQUENCES || q < -1000000 || q > 1000000)
            return bad_line(c, "bad list of sequences");
        set[count++] = (int32_t)q;
    }
    if (count == 0) return bad_line(c, "bad list of sequences");
    if (n < 1 || t0 < 0 || n > STREAM || t0 > STREAM - n || c->n > BATCH_MAX - n)
        return bad_line(c, "tokens outside the stream of 512");
    for (int32_t i = 0; i < n; i++, c->n++) {
        c->ids[c->n] = stream_id(c, t0 + i);
        c->pos[c->n] = pos + i;
        c->n_seq[c->n] = count;
        memcpy(c->seq_sets[c->n], set, sizeof set);
        c->seq[c->n] = c->seq_sets[c->n];
    }
    return EXIT_DONE;
}

/* One result per sequence of the batch. */
static int write_pooled(script *c)
{
    size_t width = (size_t)loam_n_pooled(c->s.ctx);
    for (int32_t q = 0; q < (int32_t)loam_context_n_seq_max(c->s.ctx); q++) {
        const float *row = loam_embeddings_seq(c->s.ctx, q);
        if (row && fwrite(row, sizeof *row, width, c->out) != width)
            return say_failed(c->o, "%s: cannot write: %s", opt_text(c->o, OPT_OUTPUT), strerror(errno));
    }
    return EXIT_DONE;
}

/* Decodes what was put together; refusals are results, not failures. */
static int decode(script *c, bool write_outputs)
{
    loam_error err;
    int code = need_context(c);
    if (code != EXIT_DONE) return code;
    memset(c->wanted, 1, (size_t)c->n);
    loam_batch batch = {
        .n_tokens = c->n, .token = c->ids, .pos = c->pos, .n_seq_id = c->n_seq, .seq_id = c->seq, .logits = c->wanted
    };
    int result = loam_decode(c->s.ctx, &batch, &err);
    log_int(c, result);
    if (result && opt_given(c->o, OPT_VERBOSE)) say_note(c->o, "line %d: %s", c->line, err.message);
    if (result == 0 && write_outputs && loam_n_pooled(c->s.ctx)) return write_pooled(c);
    for (int32_t i = 0; i < c->n && result == 0 && write_outputs; i++) {
        const float *row = loam_logits(c->s.ctx, i);
        if (!row) return bad_line(c, "no logits");
        if (fwrite(row, sizeof *row, (size_t)c->s.n_vocab, c->out) != (size_t)c->s.n_vocab)
            return say_failed(c->o, "%s: cannot write: %s", opt_text(c->o, OPT_OUTPUT), strerror(errno));
    }
    return EXIT_DONE;
}

static int do_decode(script *c, const char *arguments)
{
    char seqs[128];
    int32_t at[3];
    if (sscanf(arguments, "%127s %d %d %d", seqs, &at[0], &at[1], &at[2]) != 4) return bad_line(c, "needs: seqs pos t0 n");
    int code = add_group(c, seqs, at);
    return code == EXIT_DONE ? decode(c, true) : code;
}

static int do_batch(script *c, const char *arguments)
{
    int used;
    char seqs[128];
    int32_t at[3];
    for (const char *p = arguments; *p; p += used) {
        if (sscanf(p, " %127[^: ]:%d:%d:%d%n", seqs, &at[0], &at[1], &at[2], &used) != 4)
            return bad_line(c, "needs groups q:p:t0:n");
        int code = add_group(c, seqs, at);
        if (code != EXIT_DONE) return code;
    }
    return c->n ? decode(c, true) : bad_line(c, "needs groups q:p:t0:n");
}

static int do_bad_token(script *c, const char *arguments)
{
    if (sscanf(arguments, "%d %d %d", &c->ids[0], &c->pos[0], &c->seq_sets[0][0]) != 3) return bad_line(c, "needs: id pos q");
    c->n = c->n_seq[0] = 1;
    c->seq[0] = c->seq_sets[0];
    return decode(c, false);
}

/* ---- memory ---- */

static int do_memory(script *c, const char *word, const char *arguments)
{
    int32_t a[4] = { 0 };
    int n = sscanf(arguments, "%d %d %d %d", &a[0], &a[1], &a[2], &a[3]), code = need_context(c);
    loam_context *ctx = c->s.ctx;
    loam_error err;
    loam_status status = LOAM_OK;
    if (code != EXIT_DONE) return code;
    if (strcmp(word, "RM") == 0 && n == 3) {
        log_int(c, loam_memory_seq_rm(ctx, a[0], a[1], a[2]));
    } else if (strcmp(word, "CP") == 0 && n == 4) {
        status = loam_memory_seq_cp(ctx, a[0], a[1], a[2], a[3], &err);
    } else if (strcmp(word, "ADD") == 0 && n == 4) {
        status = loam_memory_seq_add(ctx, a[0], a[1], a[2], a[3], &err);
    } else if (strcmp(word, "DIV") == 0 && n == 4) {
        status = loam_memory_seq_div(ctx, a[0], a[1], a[2], a[3], &err);
    } else if (strcmp(word, "KEEP") == 0 && n == 1) {
        if (!loam_memory_seq_keep(ctx, a[0])) return bad_line(c, "no such sequence");
    } else if (strcmp(word, "CLEAR") == 0) {
        loam_memory_clear(ctx);
    } else if (strcmp(word, "POS") == 0 && n == 1) {
        char value[32];
        snprintf(value, sizeof value, "%d %d", loam_memory_seq_pos_min(ctx, a[0]), loam_memory_seq_pos_max(ctx, a[0]));
        log_value(c, value);
    } else {
        return bad_line(c, "wrong number of arguments");
    }
    return status == LOAM_OK ? EXIT_DONE : bad_line(c, err.message);
}

/* ---- parameters ---- */

static int do_parameter(script *c, const char *word, const char *arguments)
{
    double x = 0, y = 0;
    int n = sscanf(arguments, "%lf %lf", &x, &y);
    loam_context_params *p = &c->p;
    if (c->s.ctx) return bad_line(c, "parameters come before the first call");
    if (strcmp(word, "STREAMS") == 0) {
        p->unified = false;
        return EXIT_DONE;
    }
    if (n < 1 || x < 0 || x > 1e9) return bad_line(c, "needs a number");
    if (strcmp(word, "NCTX") == 0) p->n_ctx = (uint32_t)x;
    if (strcmp(word, "UBATCH") == 0) p->n_ubatch = (uint32_t)x;
    if (strcmp(word, "SWA") == 0) p->window_full = x != 0;
    if (strcmp(word, "POOL") == 0) p->pooling = (loam_pooling)x, p->embeddings = true;
    if (strcmp(word, "FREQBASE") == 0) p->rope_freq_base = (float)x;
    if (strcmp(word, "LINEAR") == 0 || strcmp(word, "YARN") == 0) {
        p->rope_scaling = word[0] == 'Y' ? LOAM_ROPE_YARN : LOAM_ROPE_LINEAR;
        p->rope_freq_scale = (float)x;
    }
    if (strcmp(word, "YARN") == 0) {
        if (n != 2 || y < 1 || y > 1e9) return bad_line(c, "needs: scale orig");
        p->yarn_orig_ctx = (uint32_t)y;
    }
    return EXIT_DONE;
}

/* ---- adapters, control vectors, state ---- */

static void drop_adapter(script *c)
{
    loam_error err;
    if (c->s.ctx) loam_context_set_adapters(c->s.ctx, NULL, NULL, 0, &err);
    loam_adapter_free(c->adapter);
    c->adapter = NULL;
}

/* LORA file strength: exactly this adapter; the path is relative to the script. */
static int set_adapter(script *c, const char *arguments)
{
    char name[256], path[1024];
    float strength;
    loam_error err;
    if (sscanf(arguments, "%255s %f", name, &strength) != 2) return bad_line(c, "needs: file strength");
    const char *script_path = opt_text(c->o, OPT_SCRIPT_FILE), *slash = strrchr(script_path, '/');
    snprintf(path, sizeof path, "%.*s%s", slash && name[0] != '/' ? (int)(slash + 1 - script_path) : 0, script_path, name);
    drop_adapter(c);
    if (loam_adapter_open(&c->adapter, c->s.model, path, &err) != LOAM_OK) return bad_line(c, err.message);
    return loam_context_set_adapters(c->s.ctx, &c->adapter, &strength, 1, &err) == LOAM_OK ? EXIT_DONE : bad_line(c, err.message);
}

/* CVEC first last amp: made-up control vectors. */
static int set_control(script *c, const char *arguments)
{
    int first, last;
    float amp;
    loam_error err;
    if (sscanf(arguments, "%d %d %f", &first, &last, &amp) != 3) return bad_line(c, "needs: first last amp");
    int32_t n_embd = loam_model_n_embd(c->s.model);
    size_t n = (size_t)n_embd * (size_t)(loam_model_n_layer(c->s.model) - 1);
    float *data = need(malloc((n + 1) * sizeof *data));
    uint64_t z = 777;
    for (size_t i = 0; i < n; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        data[i] = amp * ((float)(z >> 40) / 8388608.0f - 1.0f);
    }
    log_int(c, loam_context_set_control(c->s.ctx, data, n, n_embd, first, last, &err) == LOAM_OK ? 0 : -1);
    free(data);
    return EXIT_DONE;
}

static int save_and_load(script *c)
{
    loam_error err;
    size_t n = loam_state_size(c->s.ctx, -1);
    void *data = need(malloc(n + 1));
    loam_status status = loam_state_save(c->s.ctx, -1, data, n, NULL, &err);
    loam_memory_clear(c->s.ctx);
    if (status == LOAM_OK) status = loam_state_load(c->s.ctx, -1, data, n, &err);
    free(data);
    log_int(c, status == LOAM_OK);
    return EXIT_DONE;
}

static int do_change(script *c, const char *word, const char *arguments)
{
    int code = need_context(c);
    if (code != EXIT_DONE) return code;
    if (strcmp(word, "LORA") == 0) return set_adapter(c, arguments);
    if (strcmp(word, "CVEC") == 0) return set_control(c, arguments);
    if (strcmp(word, "SAVELOAD") == 0) return save_and_load(c);
    drop_adapter(c);
    return EXIT_DONE;
}

static bool among(const char *word, const char *list) /* list: " A B C " */
{
    char padded[40];
    snprintf(padded, sizeof padded, " %.30s ", word);
    return strstr(list, padded) != NULL;
}

static int do_line(script *c)
{
    char word[32];
    int used = 0;
    if (sscanf(c->text, "%31s%n", word, &used) != 1 || word[0] == '#') return EXIT_DONE;
    const char *arguments = c->text + used;
    c->n = 0;
    if (strcmp(word, "D") == 0) return do_decode(c, arguments);
    if (strcmp(word, "B") == 0) return do_batch(c, arguments);
    if (strcmp(word, "X") == 0) return do_bad_token(c, arguments);
    if (among(word, " RM CP KEEP ADD DIV CLEAR POS ")) return do_memory(c, word, arguments);
    if (among(word, " NCTX UBATCH SWA STREAMS YARN LINEAR FREQBASE POOL ")) return do_parameter(c, word, arguments);
    if (among(word, " LORA NOLORA CVEC SAVELOAD ")) return do_change(c, word, arguments);
    return bad_line(c, "unknown line");
}

static int run_lines(script *c, buffer *text)
{
    int code = EXIT_DONE;
    for (char *p = text->data, *next; p && code == EXIT_DONE; p = next) {
        next = strchr(p, '\n');
        if (next) *next++ = 0;
        size_t len = strlen(p);
        while (len && (p[len - 1] == '\r' || p[len - 1] == ' ')) p[--len] = 0;
        c->line++;
        c->text = p;
        code = do_line(c);
    }
    return code;
}

static void allocate(script *c)
{
    c->ids = need(malloc(BATCH_MAX * sizeof *c->ids));
    c->pos = need(malloc(BATCH_MAX * sizeof *c->pos));
    c->n_seq = need(malloc(BATCH_MAX * sizeof *c->n_seq));
    c->seq = need(malloc(BATCH_MAX * sizeof *c->seq));
    c->seq_sets = need(malloc(BATCH_MAX * sizeof *c->seq_sets));
    c->wanted = need(malloc(BATCH_MAX));
}

static int close_file(const options *o, FILE *f, const char *name, int code)
{
    int flushed = f ? flush_output(o, f, name) : EXIT_DONE;
    if (f) fclose(f);
    return code != EXIT_DONE ? code : flushed;
}

int cmd_debug_script(const options *o)
{
    if (!opt_given(o, OPT_SCRIPT_FILE) || !opt_given(o, OPT_OUTPUT)) return say_usage(o, "--script FILE and -o FILE are needed");
    script c = { .o = o };
    buffer text = { 0 };
    int code = session_open(&c.s, o, false);
    if (code == EXIT_DONE) {
        c.p = session_params(&c.s, o);
        c.p.n_ctx = SCRIPT_CONTEXT;
        c.p.n_seq_max = SCRIPT_SEQUENCES;
    }
    if (code == EXIT_DONE && !read_file(o, opt_text(o, OPT_SCRIPT_FILE), &text)) code = EXIT_FAILED;
    if (code == EXIT_DONE && !(c.out = fopen(opt_text(o, OPT_OUTPUT), "wbe")))
        code = say_failed(o, "%s: cannot be written: %s", opt_text(o, OPT_OUTPUT), strerror(errno));
    if (code == EXIT_DONE && opt_given(o, OPT_LOG) && !(c.log = fopen(opt_text(o, OPT_LOG), "we")))
        code = say_failed(o, "%s: cannot be written: %s", opt_text(o, OPT_LOG), strerror(errno));
    allocate(&c);
    if (code == EXIT_DONE) code = run_lines(&c, &text);
    code = close_file(o, c.out, opt_text(o, OPT_OUTPUT), code);
    code = close_file(o, c.log, opt_text(o, OPT_LOG), code);
    drop_adapter(&c);
    free(c.ids);
    free(c.pos);
    free(c.n_seq);
    free(c.seq);
    free(c.seq_sets);
    free(c.wanted);
    buffer_free(&text);
    session_close(&c.s);
    return code;
}
