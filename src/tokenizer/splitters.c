/* splitters.c - the splitters of pre.h: lists of matchers, tried in order at a position.
 *
 * A matcher looks at position p of a piece and returns the end of its match, or p where it has none. `m` gives it its
 * parameters: a class, a count, a switch. Beyond the end of the piece there is no character (glyph 0).
 * The names follow the expressions that model files were trained with; the scanners give what those give, in linear time. */
#include "tokenizer/pre.h"
#include "tokenizer/ranges.tab.h"

typedef struct matcher {
    size_t (*match)(pre_level *v, const glyph *t, size_t p, const struct matcher *m);
    glyph class;
    size_t count;
    bool more; /* the matcher's own switch */
} matcher;

#define NO_LIMIT SIZE_MAX
#define LM       (G_L | G_M)

/* ---- characters ---- */

static inline glyph at(const pre_level *v, const glyph *t, size_t p) { return p < v->end ? t[p] : 0; }
static inline bool is(glyph g, uint32_t cp) { return g && glyph_cp(g) == cp; }
static inline bool is_crlf(glyph g) { return is(g, '\n') || is(g, '\r'); }
static inline bool is_other(glyph g) { return g & (G_M | G_P | G_S | G_C | G_U) && !(g & G_WS); }
static inline bool is_digit(glyph g) { return g && glyph_cp(g) >= '0' && glyph_cp(g) <= '9'; }
static inline bool is_lower(glyph g) { return glyph_cp(g) >= 'a' && glyph_cp(g) <= 'z'; }
static inline bool is_upper(glyph g) { return glyph_cp(g) >= 'A' && glyph_cp(g) <= 'Z'; }
static inline bool is_alpha(glyph g) { return is_lower(g) || is_upper(g); }

/* ASCII punctuation and symbols. */
static bool is_ascii_mark(glyph g)
{
    uint32_t c = glyph_cp(g);
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

static bool in_ranges(uint32_t cp, const uint32_t ranges[][2], size_t n)
{
    size_t low = 0; /* ranges before it end before cp */
    while (n > low) {
        size_t mid = low + (n - low) / 2;
        if (ranges[mid][1] < cp) low = mid + 1;
        else n = mid;
        if (n == mid && ranges[mid][0] <= cp) return true;
    }
    return false;
}

#define IN_RANGES(g, table) in_ranges(glyph_cp(g), table, sizeof(table) / sizeof *(table))

static inline size_t run(const pre_level *v, const glyph *t, size_t p, glyph class)
{
    while (p < v->end && t[p] & class) p++;
    return p;
}

/* The end of the run of white space or digits at p, remembered so that a run is walked once however often it is asked for. */
static size_t space_end(pre_level *v, const glyph *t, size_t p)
{
    if (p >= v->run_end) v->run_end = run(v, t, p, G_WS);
    return v->run_end;
}

static size_t number_end(pre_level *v, const glyph *t, size_t p)
{
    if (p >= v->run_end) v->run_end = run(v, t, p, G_N);
    return v->run_end;
}

static size_t digits_end(pre_level *v, const glyph *t, size_t p)
{
    if (p >= v->run_end)
        for (v->run_end = p; v->run_end < v->end && is_digit(t[v->run_end]);) v->run_end++;
    return v->run_end;
}

/* ---- matchers of many splitters ---- */

/* 's 't 'm 'd 're 've 'll; with `more` in any case. */
static size_t contraction(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    if (!is(at(v, t, p), '\'')) return p;
    uint32_t fold = m->more ? 0x20 : 0, a = glyph_cp(at(v, t, p + 1)) | fold, b = glyph_cp(at(v, t, p + 2)) | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? p + 3 : p;
}

static const matcher any_contraction = { contraction, 0, 0, true };

/* A run of the class, with one character before it that is none of CR, LF, N; with `more` a contraction behind it. */
static size_t word(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = p;
    if (!(t[p] & m->class)) {
        if (t[p] & G_N || is_crlf(t[p]) || !(at(v, t, p + 1) & m->class)) return p;
        from = p + 1;
    }
    size_t end = run(v, t, from, m->class);
    return m->more ? contraction(v, t, end, &any_contraction) : end;
}

static size_t numbers(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t end = p;
    while (end < v->end && end - p < m->count && t[end] & G_N) end++;
    return end;
}

/* An optional space, a run of "other" characters (not of the class), then up to `count` of CR, LF and, with `more`, '/'. */
static size_t others(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = is(t[p], ' ') ? p + 1 : p, end = from;
    while (end < v->end && is_other(t[end]) && !(t[end] & m->class)) end++;
    if (end == from) return p;
    for (size_t k = 0; k < m->count && (is_crlf(at(v, t, end)) || (m->more && is(at(v, t, end), '/'))); k++) end++;
    return end;
}

/* White space; its last character stays for what follows. With `more` it ends behind its last line end instead. */
static size_t spaces(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t end = run(v, t, p, G_WS);
    if (m->more)
        for (size_t i = end; i > p; i--)
            if (is_crlf(t[i - 1])) return i;
    return end > p + 1 && end < v->end ? end - 1 : end;
}

/* ---- words by case: U is the class without a-z, V the class without A-Z ---- */

static size_t run_upper(const pre_level *v, const glyph *t, size_t p, glyph class)
{
    while (p < v->end && t[p] & class && !is_lower(t[p])) p++;
    return p;
}

static size_t run_lower(const pre_level *v, const glyph *t, size_t p, glyph class)
{
    while (p < v->end && t[p] & class && !is_upper(t[p])) p++;
    return p;
}

/* U*V+ from s; s where it does not match. */
static size_t capitalized(const pre_level *v, const glyph *t, size_t s, glyph class)
{
    size_t i = run_upper(v, t, s, class), j = run_lower(v, t, i, class);
    if (j > i) return j;
    while (i > s && is_upper(t[i - 1])) i--;
    return i;
}

/* U+V* from s; s where it does not match. */
static size_t capitals(const pre_level *v, const glyph *t, size_t s, glyph class)
{
    size_t i = run_upper(v, t, s, class);
    return i > s ? run_lower(v, t, i, class) : s;
}

static size_t cased(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    bool pre = !(t[p] & (G_L | G_N)) && !is_crlf(t[p]);
    size_t end;
    if (pre && (end = capitalized(v, t, p + 1, m->class)) > p + 1) goto matched;
    if ((end = capitalized(v, t, p, m->class)) > p) goto matched;
    if (pre && (end = capitals(v, t, p + 1, m->class)) > p + 1) goto matched;
    if ((end = capitals(v, t, p, m->class)) == p) return p;
matched:
    return m->more ? contraction(v, t, end, &any_contraction) : end;
}

/* ---- matchers of few splitters ---- */

/* An optional space and a run of letters, of numbers or of others. */
static size_t gpt2_run(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = is(t[p], ' ') ? p + 1 : p;
    glyph g = at(v, t, from);
    (void)m;
    if (g & G_L) return run(v, t, from, G_L);
    if (g & G_N) return run(v, t, from, G_N);
    size_t end = from;
    while (end < v->end && is_other(t[end])) end++;
    return end > from ? end : p;
}

static bool is_han(glyph g) { return g && glyph_cp(g) >= 0x3400 && IN_RANGES(g, han_ranges); }

static size_t han(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    while (p < v->end && is_han(t[p])) p++;
    return p;
}

static bool kimi_letter(glyph g) { return g & G_L && !is_han(g); }

static size_t kimi_word(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t end = p;
    (void)m;
    if (!kimi_letter(t[p])) {
        if (t[p] & (G_L | G_N) || is_crlf(t[p]) || !kimi_letter(at(v, t, p + 1))) return p;
        end = p + 1;
    }
    while (kimi_letter(at(v, t, end))) end++;
    return contraction(v, t, end, &any_contraction);
}

static size_t digits3(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    return is_digit(t[p]) && is_digit(at(v, t, p + 1)) && is_digit(at(v, t, p + 2)) ? p + 3 : p;
}

static size_t one_line_end(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)v;
    (void)m;
    return is_crlf(t[p]) ? p + 1 : p;
}

static size_t no_space(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    while (p < v->end && !(t[p] & G_WS)) p++;
    return p;
}

static size_t final_space(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    return t[p] & G_WS && space_end(v, t, p) == v->end ? v->end : p;
}

/* Sets that are no class. Where the expressions have no classes, white space beyond ASCII is in none of their ranges. */
typedef enum set { DSPUNCT, DSCASED, DEFPUNCT, FALPUNCT, CJKKANA, CJKHANGUL, SEASIA, BLOOM } set;

static bool in_set(glyph g, size_t which)
{
    uint32_t c = glyph_cp(g);
    if (!g) return false;
    switch ((set)which) {
    case DSPUNCT:
        return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x7E) || (c >= 0xFF01 && c <= 0xFF0F) ||
               (c >= 0xFF1A && c <= 0xFF5E) || (c >= 0x2018 && c <= 0x201F) || c == 0x3001 || c == 0x3002;
    case DSCASED: return IN_RANGES(g, cased_ranges);
    case FALPUNCT:
        if (c == '`') return true; /* fall through */
    case DEFPUNCT: return g & G_P || c == '$' || c == '+' || (c >= '<' && c <= '>') || c == '^' || c == '~' || c == '|';
    case CJKKANA: return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
    case CJKHANGUL: return ((c >= 0x800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF)) && !(g & G_WS);
    case SEASIA: return c >= 0xE40 && IN_RANGES(g, seasia_ranges);
    case BLOOM:
        return !(g & G_WS) && c != '(' && c != ')' && c != '|' && c != '.' && c != ',' && c != '!' && c != '?' && c != 0x2026 &&
               c != 0x3002 && c != 0xFF0C && c != 0x3001 && c != 0x964 && c != 0x6D4 && c != 0x60C;
    }
    return false;
}

/* A run of the set numbered `count`; with a class, one character of it may come before. */
static size_t set_run(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = t[p] & m->class ? p + 1 : p, end = from;
    while (end < v->end && in_set(t[end], m->count)) end++;
    return end > from ? end : p;
}

static size_t class_run(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = t[p] & G_WS ? p + 1 : p, end = run(v, t, from, m->class);
    return end > from ? end : p;
}

static size_t bloom(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = is(t[p], ' ') ? p + 1 : p, end = from;
    (void)m;
    while (end < v->end && in_set(t[end], BLOOM)) end++;
    return end > from ? end : p;
}

static size_t one_mark(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)v;
    (void)m;
    return t[p] & G_P || is_ascii_mark(t[p]) ? p + 1 : p;
}

/* The end of an ASCII text at p; 0 where the piece has another. */
static size_t literal(const pre_level *v, const glyph *t, size_t p, const char *text)
{
    for (; *text; text++, p++)
        if (!is(at(v, t, p), (uint32_t)*text)) return 0;
    return p;
}

static size_t sentinel(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = literal(v, t, p, "<sentinel:"), end = from;
    (void)m;
    while (from && is_digit(at(v, t, end))) end++;
    return end > from && is(at(v, t, end), '>') ? end + 1 : p;
}

static size_t image(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = literal(v, t, p, "IMGIMG"), end = from;
    (void)m;
    while (from && end - from < 4 && at(v, t, end) && glyph_cp(t[end]) >= 'A' && glyph_cp(t[end]) <= 'I') end++;
    return end > from && is(at(v, t, end), 'Z') ? end + 1 : p;
}

static size_t chameleon_space(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    if (is(t[p], '\t') || is(t[p], '\n')) return p + 1;
    size_t end = literal(v, t, p, "    ");
    if (!end) end = literal(v, t, p, "  ");
    return end ? end : p;
}

/* Hangul; full-width marks; Bopomofo; ideographs and kana. */
static int youtu_class(glyph g)
{
    uint32_t c = glyph_cp(g);
    if ((c >= 0xAC00 && c <= 0xD7A3) || (c >= 0x3131 && c <= 0x318E)) return 1;
    if (c == 0xFF01 || c == 0x2026 || c == 0x201C || c == 0x201D || c == 0x2018 || c == 0x2019 || c == 0x2014 || c == 0xFF1A ||
        c == 0xFF1B || c == 0xFF0C || (c >= 0x3001 && c <= 0x303F) || (c >= 0xFE30 && c <= 0xFE4F))
        return 2;
    if (c >= 0x3105 && c <= 0x312F) return 3;
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF) ? 4 : 0;
}

static size_t youtu_cjk(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    int class = youtu_class(t[p]);
    (void)m;
    while (class && p < v->end && youtu_class(t[p]) == class) p++;
    return p;
}

/* A mark and the ASCII letters behind it. */
static size_t marked_word(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t end = p + 1;
    (void)m;
    if (!is_ascii_mark(t[p])) return p;
    while (end < v->end && is_alpha(t[end])) end++;
    return end > p + 1 ? end : p;
}

/* Letters with marks; the character before them is none of CR, LF, P, S (a digit is allowed). */
static size_t deepseek_word(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    if (t[p] & LM) return run(v, t, p, LM);
    if (t[p] & (G_P | G_S) || is_crlf(t[p]) || !(at(v, t, p + 1) & LM)) return p;
    return run(v, t, p + 1, LM);
}

/* An optional space, punctuation and symbols, and with `more` all line ends behind them. */
static size_t punctuation(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t from = is(t[p], ' ') ? p + 1 : p, end = run(v, t, from, G_P | G_S);
    if (end == from) return p;
    while (m->more && is_crlf(at(v, t, end))) end++;
    return end;
}

/* White space in blocks of 512, 256, ... 1; through the last line end where there is one. */
static size_t space_blocks(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    (void)m;
    if (!(t[p] & G_WS)) return p;
    bool fresh = p >= v->run_end; /* what follows the last line end of a run has no line end */
    size_t end = space_end(v, t, p), length = end - p;
    if (fresh)
        for (size_t i = end; i > p; i--)
            if (is_crlf(t[i - 1])) return i;
    for (size_t k = 512; k > 1; k /= 2)
        if (length > k || (length == k && end == v->end)) return p + k;
    return p + 1;
}

/* Words joined by single spaces; one character before the first, as in `word`. */
static size_t phrase(pre_level *v, const glyph *t, size_t p, const matcher *m)
{
    size_t i = p;
    (void)m;
    if (!(t[p] & G_L)) {
        if (t[p] & G_N || is_crlf(t[p]) || !(at(v, t, p + 1) & G_L)) return p;
        i = p + 1;
    }
    for (;;) {
        i = run(v, t, i + 1, G_M);
        if (is(at(v, t, i), ' ') && at(v, t, i + 1) & G_L) i++;
        else if (!(at(v, t, i) & G_L)) return i;
    }
}

/* ---- splitters ---- */

#include "tokenizer/splitters.tab.h"

static inline size_t match(const matcher *m, pre_level *v, const glyph *t, size_t p)
{
    for (; m->match; m++) {
        size_t end = m->match(v, t, p, m);
        if (end > p) return end;
    }
    return p;
}

/* Groups of three digits counted from the end of each run; a cut before each group but none before the run itself, unless its
 * length is a multiple of three. */
static size_t cut_groups(pre_level *v, const glyph *t)
{
    for (size_t q = v->at; q < v->end;) {
        if (!is_digit(t[q])) {
            q++;
            continue;
        }
        size_t end = digits_end(v, t, q), cut = q + (end - q) % 3;
        if (cut == v->at) cut += 3;
        if (cut < end) return cut;
        q = end;
    }
    return v->end;
}

/* Groups of three numbers counted from the end of each run; a cut behind each, so that text before a run stays with its first. */
static size_t cut_behind_groups(pre_level *v, const glyph *t)
{
    size_t q = v->at;
    while (q < v->end && !(t[q] & G_N)) q++;
    if (q == v->end) return q;
    size_t rest = (number_end(v, t, q) - q) % 3;
    return q + (rest ? rest : 3);
}

static size_t cut_lines(const pre_level *v, const glyph *t)
{
    bool newline = is(t[v->at], '\n');
    size_t q = v->at;
    while (q < v->end && is(t[q], '\n') == newline) q++;
    return q;
}

size_t splitter_cut(enum splitter which, pre_level *v, const glyph *t)
{
    if (which == SPLIT_GROUP3) return cut_groups(v, t);
    if (which == SPLIT_DIGITS) return cut_behind_groups(v, t);
    if (which == SPLIT_NEWLINES) return cut_lines(v, t);
    const matcher *list = lists[which];
    size_t end = match(list, v, t, v->at);
    if (end > v->at) return end;
    for (end = v->at + 1; end < v->end && match(list, v, t, end) == end;) end++;
    return end;
}
