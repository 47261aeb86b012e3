/* pre.c - the table of pre-tokenizers and the walk over their pieces: each level cuts the current piece of the one above, so
 * that no list of pieces is ever kept. */
#include "tokenizer/pre.h"

#include <string.h>

#include "tokenizer/pre.tab.h"

/* True where name is one of the words of a list. */
static bool listed(const char *list, const char *name, size_t len)
{
    for (const char *p = list; *p;) {
        size_t word = strcspn(p, " ");
        if (word == len && memcmp(p, name, len) == 0) return true;
        p += word;
        p += *p == ' ';
    }
    return false;
}

const pre_row *pre_find(const char *name, size_t len)
{
    if (len == 0) return &pre_rows[0];
    for (size_t i = 0; i < sizeof pre_rows / sizeof *pre_rows; i++)
        if (listed(pre_rows[i].names, name, len)) return &pre_rows[i];
    return NULL;
}

void pre_start(pre_walk *w, const pre_row *row, const glyph *t, size_t n)
{
    w->row = row;
    w->t = t;
    w->depth = 0;
    while (w->depth + 1 < PRE_SPLITTERS && row->splitters[w->depth + 1] != SPLIT_END) w->depth++;
    for (int k = 0; k <= w->depth; k++) w->level[k] = (pre_level){ 0 };
    w->level[0].end = n;
}

bool pre_next(pre_walk *w, size_t *begin, size_t *end)
{
    int k = w->depth;
    while (w->level[k].at == w->level[k].end)
        if (k-- == 0) return false;
    for (;; k++) {
        pre_level *v = &w->level[k];
        size_t from = v->at;
        v->at = splitter_cut(w->row->splitters[k], v, w->t);
        if (k == w->depth) {
            *begin = from;
            *end = v->at;
            return true;
        }
        w->level[k + 1] = (pre_level){ .at = from, .end = v->at };
    }
}
