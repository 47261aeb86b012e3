/* options.c - reads the command line by the tables of commands.def and options.def. Refuses what it does not know, values out of
 * range, options given twice and missing arguments, and names what is allowed. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loam/tensor.h"
#include "util.h"

const command_row commands[CMD_COUNT] = {
#define COMMAND(id, name, function, arguments, least, most, summary) { name, function, arguments, least, most, summary },
#include "commands.def"
#undef COMMAND
};

/* In the rows, commands are written as RUN | BENCH. */
#define COMMAND(id, name, function, arguments, least, most, summary) enum { id = 1ull << CMD_##id };
#include "commands.def"
#undef COMMAND

const option_row option_rows[OPT_COUNT] = {
#define OPTION(id, group, kind, names, argument, lo, hi, fallback, commands, help) \
    { group, KIND_##kind, names, argument, lo, hi, fallback, (uint64_t)(commands), help },
#include "options.def"
#undef OPTION
};

/* ---- names ---- */

const char *option_name(const char *names, char name[32])
{
    size_t n = strcspn(names, ",");
    snprintf(name, 32, "%.*s", (int)n, names);
    return names[n] ? names + n + 1 : NULL;
}

const char *option_shown_name(option_id id)
{
    static char shown[32];
    char name[32];
    shown[0] = 0;
    for (const char *p = option_rows[id].names; p;) {
        p = option_name(p, name);
        if (!shown[0] || (name[1] == '-' && shown[1] != '-')) memcpy(shown, name, sizeof shown);
    }
    return shown;
}

static bool has_name(const option_row *row, const char *word, size_t len)
{
    char name[32];
    for (const char *p = row->names; p;) {
        p = option_name(p, name);
        if (strlen(name) == len && memcmp(name, word, len) == 0) return true;
    }
    return false;
}

static int find_option(int command, const char *word, size_t len)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (option_of(&option_rows[i], command) && has_name(&option_rows[i], word, len)) return i;
    return -1;
}

/* ---- nearest name: edit distance with swaps of neighbours ---- */

static int edit_distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    int d[MOST + 1][MOST + 1], n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST) return MOST;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

void nearest_begin(nearest *n, const char *word)
{
    n->word = word;
    n->best[0] = 0;
    n->distance = 1 + (int)strlen(word) / 3; /* farther is no likeness */
    if (n->distance > 4) n->distance = 4;
}

void nearest_offer(nearest *n, const char *name)
{
    int d = edit_distance(n->word, name);
    size_t len = strlen(n->word);
    bool prefix = len >= (n->word[0] == '-' ? 4 : 2) && strncmp(n->word, name, len) == 0;
    if (prefix && d > 1) d = 1; /* the beginning of a name is as near as one slip */
    if (d > n->distance || (d == n->distance && n->best[0])) return;
    n->distance = d;
    snprintf(n->best, sizeof n->best, "%s", name);
}

/* ---- messages ---- */

static int usage(int command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int usage(int command, const char *fmt, ...)
{
    fprintf(stderr, "loam %s: ", commands[command].name);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nSee: loam help %s\n", commands[command].name);
    return EXIT_USAGE;
}

static int unknown_option(int command, const char *word, size_t len)
{
    char flag[64], name[32];
    snprintf(flag, sizeof flag, "%.*s", (int)len, word);
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!has_name(&option_rows[i], word, len)) continue;
        int other = 0;
        while (!option_of(&option_rows[i], other)) other++;
        return usage(command, "%s is an option of loam %s, not of this command", flag, commands[other].name);
    }
    nearest near;
    nearest_begin(&near, flag);
    for (int i = 0; i < OPT_COUNT; i++)
        for (const char *p = option_of(&option_rows[i], command) ? option_rows[i].names : NULL; p;) {
            p = option_name(p, name);
            nearest_offer(&near, name);
        }
    if (near.best[0]) return usage(command, "unknown option %s; did you mean %s?", flag, near.best);
    return usage(command, "unknown option %s", flag);
}

/* ---- values ---- */

static int bad_number(int command, const option_row *row, const char *flag, const char *text)
{
    const char *what = row->kind == KIND_INT ? "a whole number" : "a number";
    if (fabs(row->lo) >= 2147483647 && row->hi >= 2147483647) return usage(command, "%s %s: must be %s", flag, text, what);
    if (row->hi >= 3e38) return usage(command, "%s %s: must be %s of at least %.10g", flag, text, what, row->lo);
    return usage(command, "%s %s: must be %s from %.10g to %.10g", flag, text, what, row->lo, row->hi);
}

static int bad_type(int command, const char *flag, const char *text)
{
    char list[512] = "";
    size_t n = 0;
    nearest near;
    char lower[32];
    snprintf(lower, sizeof lower, "%s", text);
    nearest_begin(&near, lower);
    for (int t = 0; t < LOAM_TYPE_LIMIT; t++) {
        const char *name = loam_type_name(t);
        if (!name) continue;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? " " : "", name);
        nearest_offer(&near, name);
    }
    if (near.best[0]) return usage(command, "%s %s: no such type; did you mean %s? Types: %s", flag, text, near.best, list);
    return usage(command, "%s %s: no such type; types: %s", flag, text, list);
}

static int bad_choice(int command, const option_row *row, const char *flag, const char *text)
{
    nearest near;
    nearest_begin(&near, text);
    for (const char *p = row->argument; *p;) {
        char name[32];
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        nearest_offer(&near, name);
        p += n + (p[n] == '|');
    }
    if (near.best[0]) return usage(command, "%s %s: must be one of %s; did you mean %s?", flag, text, row->argument, near.best);
    return usage(command, "%s %s: must be one of %s", flag, text, row->argument);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && strncasecmp(p, text, n) == 0) return true;
        p += n + (p[n] == '|');
    }
    return false;
}

/* Types that a cache can have: the library says the same, with the exit code of a failure. */
static int read_cache_type(const options *o, option_value *v, const char *flag)
{
    static const loam_type types[] = { LOAM_F32, LOAM_F16, LOAM_BF16, LOAM_Q8_0, LOAM_Q5_1, LOAM_Q5_0, LOAM_Q4_1, LOAM_Q4_0, LOAM_IQ4_NL };
    v->i = loam_type_from_name(v->s);
    if (v->i < 0) return bad_type(o->command, flag, v->s);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (v->i == (int64_t)types[i]) return EXIT_DONE;
    return usage(o->command, "%s %s: no type of a cache; there are f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl", flag, v->s);
}

static int read_value(options *o, option_id id, const char *flag, const char *text)
{
    const option_row *row = &option_rows[id];
    option_value *v = &o->v[id];
    char *end;
    errno = 0;
    v->s = text;
    switch (row->kind) {
    case KIND_INT:
        v->i = strtoll(text, &end, 10);
        if (end == text || *end || errno || text[0] == ' ' || (double)v->i < row->lo || (double)v->i > row->hi)
            return bad_number(o->command, row, flag, text);
        return EXIT_DONE;
    case KIND_NUM:
        v->f = strtod(text, &end);
        if (end == text || *end || text[0] == ' ' || !(v->f >= row->lo && v->f <= row->hi))
            return bad_number(o->command, row, flag, text);
        return EXIT_DONE;
    case KIND_CACHE: return read_cache_type(o, v, flag);
    case KIND_FILE: return *text ? EXIT_DONE : usage(o->command, "%s: the name of the file is empty", flag);
    case KIND_TYPE: v->i = loam_type_from_name(text); return v->i < 0 ? bad_type(o->command, flag, text) : EXIT_DONE;
    case KIND_ONE: return is_choice(row->argument, text) ? EXIT_DONE : bad_choice(o->command, row, flag, text);
    case KIND_LIST:
        o->list[o->n_list] = text;
        o->list_of[o->n_list++] = id;
        return EXIT_DONE;
    default: return EXIT_DONE;
    }
}

/* ---- the line ---- */

/* Two words before one: "train plot" is not "train" with an argument. */
int command_find(int argc, char **argv, int *used)
{
    for (*used = argc < 2 ? argc : 2; *used > 0; --*used) {
        char words[64];
        snprintf(words, sizeof words, "%s%s%s", argv[0], *used > 1 ? " " : "", *used > 1 ? argv[1] : "");
        for (int c = 0; c < CMD_COUNT; c++)
            if (strcmp(words, commands[c].name) == 0) return c;
    }
    return -1;
}

const char *command_tool(int c, const char *group)
{
    const char *space = strchr(commands[c].name, ' ');
    if (!space) return NULL;
    size_t n = (size_t)(space - commands[c].name);
    return !group || (strlen(group) == n && memcmp(group, commands[c].name, n) == 0) ? space + 1 : NULL;
}

void group_tools(const char *group, const char *between, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int c = 0; c < CMD_COUNT && n < size; c++) {
        const char *tool = command_tool(c, group);
        if (tool) n += (size_t)snprintf(text + n, size - n, "%s%s", n ? between : "", tool);
    }
}

int next_group(int after, char group[32])
{
    for (int c = after + 1; c < CMD_COUNT; c++) {
        if (!command_tool(c, NULL)) continue;
        snprintf(group, 32, "%.*s", (int)strcspn(commands[c].name, " "), commands[c].name);
        int first = 0;
        while (!command_tool(first, group)) first++;
        if (first == c) return c;
    }
    return -1;
}

static int take_option(options *o, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    int id = find_option(o->command, word, len);
    if (id < 0) return unknown_option(o->command, word, len);
    const option_row *row = &option_rows[id];
    char flag[64];
    snprintf(flag, sizeof flag, "%.*s", (int)len, word);
    if (o->v[id].given && row->kind != KIND_LIST) return usage(o->command, "%s is given twice", flag);
    o->v[id].given = true;
    if (row->kind == KIND_FLAG) return equals ? usage(o->command, "%s takes no value", flag) : EXIT_DONE;
    if (!equals && *at + 1 >= argc) return usage(o->command, "%s needs a value: %s", flag, row->argument);
    return read_value(o, (option_id)id, flag, equals ? equals + 1 : argv[++*at]);
}

/* -5 and -.5 are words: no option begins so. */
static bool negative_number(const char *word) { return strchr("0123456789.", word[1]) != NULL; }

int options_parse(options *o, int argc, char **argv)
{
    int used = 0;
    memset(o, 0, sizeof *o);
    o->command = command_find(argc - 1, argv + 1, &used);
    o->list = need(malloc((size_t)(argc + 1) * sizeof *o->list));
    o->list_of = need(malloc((size_t)(argc + 1) * sizeof *o->list_of));
    o->words = need(malloc((size_t)(argc + 1) * sizeof *o->words));
    bool only_words = false;
    for (int i = 1 + used; i < argc; i++) {
        const char *word = argv[i];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1] && !negative_number(word)) {
            int code = take_option(o, argc, argv, &i);
            if (code != EXIT_DONE) return code;
        } else {
            o->words[o->n_words++] = word;
        }
    }
    if (o->v[OPT_HELP_FLAG].given) return EXIT_DONE;
    const command_row *c = &commands[o->command];
    if (o->n_words > c->most)
        return usage(o->command, "unexpected argument '%s'; usage: loam %s [option...]%s%s", o->words[c->most], c->name,
                     *c->arguments ? " " : "", c->arguments);
    if (o->n_words < c->least)
        return usage(o->command, "missing arguments; usage: loam %s [option...] %s", c->name, c->arguments);
    return EXIT_DONE;
}

void options_free(options *o)
{
    free(o->list);
    free(o->list_of);
    free(o->words);
}

bool opt_given(const options *o, option_id id) { return o->v[id].given; }
int64_t opt_int(const options *o, option_id id)
{
    return o->v[id].given ? o->v[id].i : strtoll(option_rows[id].fallback, NULL, 10);
}
double opt_num(const options *o, option_id id) { return o->v[id].given ? o->v[id].f : strtod(option_rows[id].fallback, NULL); }
int opt_type(const options *o, option_id id)
{
    return o->v[id].given ? (int)o->v[id].i : loam_type_from_name(option_rows[id].fallback);
}
const char *opt_text(const options *o, option_id id) { return o->v[id].given ? o->v[id].s : NULL; }
