/* tokenize.c - `loam tokenize` and `loam detokenize`: text to ids and back, by the vocabulary of a model file. */
#include <stdlib.h>
#include <string.h>

#include "session.h"

static int open_vocabulary(session *s, const options *o)
{
    if (!opt_given(o, OPT_MODEL)) return say_usage(o, "-m FILE is missing: the model whose vocabulary is meant");
    int code = session_open(s, o, true);
    return code == EXIT_DONE ? session_need_tokenizer(s, o) : code;
}

static int print_pieces(const session *s, const options *o, const loam_token *ids, size_t n)
{
    json j;
    json_begin(&j, stdout);
    if (opt_given(o, OPT_JSON)) json_open(&j, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        buffer piece = { 0 };
        char few[512];
        size_t len = 0;
        loam_error err;
        loam_status status = loam_tokenizer_piece(s->tokenizer, ids[i], LOAM_DECODE_SPECIAL, few, sizeof few, &len, &err);
        if (status == LOAM_E_FULL) {
            piece.data = need(malloc(len + 1));
            status = loam_tokenizer_piece(s->tokenizer, ids[i], LOAM_DECODE_SPECIAL, piece.data, len, &len, &err);
        }
        if (status != LOAM_OK) {
            buffer_free(&piece);
            return say_error(o, &err);
        }
        const char *text = piece.data ? piece.data : few;
        if (opt_given(o, OPT_JSON)) {
            json_open(&j, NULL, '{');
            json_int(&j, "id", ids[i]);
            json_text(&j, "piece", text, len);
            json_close(&j, '}');
        } else {
            json line = { .f = stdout };
            printf("%6d ", ids[i]);
            json_text(&line, NULL, text, len);
            putchar('\n');
        }
        buffer_free(&piece);
    }
    if (opt_given(o, OPT_JSON)) json_close(&j, ']');
    return EXIT_DONE;
}

static void print_line(const loam_token *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s%d", i ? " " : "", ids[i]);
    putchar('\n');
}

/* JSON lines; empty lines are passed over. */
static int tokenize_cases(const session *s, const options *o)
{
    const char *path = opt_text(o, OPT_CASES), *why = NULL;
    buffer all = { 0 };
    int code = read_file(o, path, &all) ? EXIT_DONE : EXIT_FAILED, line = 1;
    for (size_t at = 0; at < all.len && code == EXIT_DONE; line++) {
        const char *end = memchr(all.data + at, '\n', all.len - at);
        size_t len = end ? (size_t)(end - all.data) - at : all.len - at;
        buffer text = { 0 };
        loam_token *ids = NULL;
        size_t n;
        if (strspn(all.data + at, " \t\r") < len) {
            if (!json_find_text(all.data + at, len, "text", &text, &why))
                code = say_failed(o, "%s: line %d: needs an object with a string \"text\": %s", path, line, why);
            else code = session_encode(s, o, &text, 0, &ids, &n);
            if (code == EXIT_DONE) print_line(ids, n);
        }
        loam_tokens_free(ids);
        buffer_free(&text);
        at += len + 1;
    }
    buffer_free(&all);
    return code;
}

static int tokenize_text(const session *s, const options *o)
{
    buffer text = { 0 };
    int code = EXIT_DONE;
    if (opt_given(o, OPT_PROMPT)) {
        buffer_add(&text, opt_text(o, OPT_PROMPT), strlen(opt_text(o, OPT_PROMPT)));
        if (opt_given(o, OPT_ESCAPE)) unescape(&text);
    } else if (!read_file(o, opt_given(o, OPT_FILE) ? opt_text(o, OPT_FILE) : "-", &text)) {
        code = EXIT_FAILED;
    }
    loam_token *ids = NULL;
    size_t n = 0;
    unsigned flags = (opt_given(o, OPT_NO_BOS) ? 0 : LOAM_ENCODE_ADD_SPECIAL) |
                     (opt_given(o, OPT_NO_PARSE_SPECIAL) ? 0 : LOAM_ENCODE_PARSE_SPECIAL);
    if (code == EXIT_DONE) code = session_encode(s, o, &text, flags, &ids, &n);
    if (code == EXIT_DONE && (opt_given(o, OPT_PIECES) || opt_given(o, OPT_JSON))) code = print_pieces(s, o, ids, n);
    else if (code == EXIT_DONE) print_line(ids, n);
    loam_tokens_free(ids);
    buffer_free(&text);
    return code;
}

int cmd_tokenize(const options *o)
{
    static const option_id not_with_cases[] = {
        OPT_PROMPT, OPT_FILE, OPT_ESCAPE, OPT_NO_BOS, OPT_NO_PARSE_SPECIAL, OPT_PIECES, OPT_JSON,
    };
    bool cases = opt_given(o, OPT_CASES);
    for (size_t i = 0; cases && i < sizeof not_with_cases / sizeof *not_with_cases; i++)
        if (opt_given(o, not_with_cases[i]))
            return say_usage(o, "%s has no effect with --cases", option_shown_name(not_with_cases[i]));
    if (opt_given(o, OPT_PROMPT) && opt_given(o, OPT_FILE)) return say_usage(o, "give the text by either -p or -f");
    if (opt_given(o, OPT_ESCAPE) && !opt_given(o, OPT_PROMPT)) return say_usage(o, "-e is about -p, which is not given");
    session s = { 0 };
    int code = open_vocabulary(&s, o);
    if (code == EXIT_DONE) code = cases ? tokenize_cases(&s, o) : tokenize_text(&s, o);
    session_close(&s);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}

/* Leaves out what `loam tokenize` puts around a text, so that the two commands are inverse. */
static const int32_t *without_added(const session *s, const int32_t *ids, size_t *n)
{
    const loam_tokenizer *t = s->tokenizer;
    if (*n && loam_tokenizer_adds_eos(t) && ids[*n - 1] == loam_tokenizer_special(t, LOAM_TOKEN_EOS)) --*n;
    bool begins = *n && loam_tokenizer_adds_bos(t) && ids[0] == loam_tokenizer_special(t, LOAM_TOKEN_BOS);
    if (begins) --*n;
    return begins ? ids + 1 : ids;
}

int cmd_detokenize(const options *o)
{
    if (o->n_words && opt_given(o, OPT_FILE)) return say_usage(o, "give the ids either as words or by -f");
    session s = { 0 };
    buffer text = { 0 };
    int32_t *ids = NULL;
    size_t n = 0, len = 0;
    char *out = NULL;
    loam_error err;
    int code = open_vocabulary(&s, o);
    for (int i = 0; i < o->n_words && code == EXIT_DONE; i++) {
        buffer_add(&text, o->words[i], strlen(o->words[i]));
        buffer_add(&text, " ", 1);
    }
    const char *path = opt_given(o, OPT_FILE) ? opt_text(o, OPT_FILE) : "-";
    if (code == EXIT_DONE && !o->n_words && !read_file(o, path, &text)) code = EXIT_FAILED;
    if (code == EXIT_DONE && !parse_ids(o, o->n_words ? "arguments" : path, &text, &ids, &n)) code = EXIT_FAILED;
    unsigned flags = opt_given(o, OPT_SPECIAL) ? LOAM_DECODE_SPECIAL : 0;
    if (code == EXIT_DONE) {
        const int32_t *first = flags ? ids : without_added(&s, ids, &n);
        loam_status status = loam_tokenizer_decode(s.tokenizer, first, n, flags, NULL, 0, &len, &err);
        if (status == LOAM_E_FULL) {
            out = need(malloc(len + 1));
            status = loam_tokenizer_decode(s.tokenizer, first, n, flags, out, len, &len, &err);
        }
        if (status != LOAM_OK) code = say_error(o, &err);
        else if (len) fwrite(out, 1, len, stdout);
    }
    if (code == EXIT_DONE) {
        putchar('\n');
        code = flush_output(o, stdout, "standard output");
    }
    free(out);
    free(ids);
    buffer_free(&text);
    session_close(&s);
    return code;
}
