/* shape_expr.c - see shape_expr.h. Recursive descent; nesting is bounded, although only our own tables come through here. */
#include "model/shape_expr.h"

#define MAX_NESTING 4

typedef struct parser {
    const char *at;
    const symbols *symbols;
    int nesting;
    bool ok;
} parser;

static int64_t sum(parser *p);

static int64_t factor_of(parser *p)
{
    char c = *p->at;
    int64_t v = 0;
    if (c >= '0' && c <= '9') {
        for (; *p->at >= '0' && *p->at <= '9' && v < INT32_MAX; p->at++) v = v * 10 + (*p->at - '0');
        return v;
    }
    if (c >= 'A' && c <= 'Z') return p->at++, p->symbols->s[c - 'A'];
    if (c != '(' || p->nesting == MAX_NESTING) return p->ok = false, 0;
    p->at++, p->nesting++;
    v = sum(p);
    p->nesting--;
    if (*p->at++ != ')') p->ok = false, p->at--;
    return v;
}

static bool starts_factor(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '('; }

static int64_t product(parser *p)
{
    int64_t v = factor_of(p);
    while (p->ok) {
        if (*p->at == '/') {
            p->at++;
            int64_t d = factor_of(p);
            if (d <= 0) return p->ok = false, 0;
            v /= d;
        } else if (starts_factor(*p->at)) {
            if (__builtin_mul_overflow(v, factor_of(p), &v)) p->ok = false;
        } else {
            break;
        }
    }
    return v;
}

static int64_t sum(parser *p)
{
    int64_t v = product(p);
    while (p->ok && (*p->at == '+' || *p->at == '-')) {
        bool minus = *p->at++ == '-';
        int64_t t = product(p);
        if (minus ? __builtin_sub_overflow(v, t, &v) : __builtin_add_overflow(v, t, &v)) p->ok = false;
    }
    return v;
}

bool expr_value(const char *text, const symbols *table, int64_t *value)
{
    parser p = { text, table, 0, true };
    *value = sum(&p);
    return p.ok && !*p.at && *value >= 0;
}

bool expr_shape(const char *text, const symbols *table, int64_t ne[4], int *n)
{
    parser p = { text, table, 0, true };
    for (int i = 0; i < 4; i++) ne[i] = 1;
    for (*n = 0; p.ok && *n < 4;) {
        ne[*n] = sum(&p);
        if (ne[(*n)++] < 0) return false;
        if (*p.at != ',') break;
        p.at++;
    }
    return p.ok && !*p.at;
}
