/* dump.c - a graph as text, as DOT, and as a drawing (SVG) in layers: a value stands one layer below its lowest input. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "compute/compute.h"

typedef struct printer {
    loam_dump_fn sink;
    void *user;
    bool stopped;
} printer;

static void put(printer *p, const char *fmt, ...) LOAM_PRINTF(2, 3);
static void put(printer *p, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || p->stopped) return;
    p->stopped = !p->sink(p->user, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* Text between the marks of DOT and XML. */
static const char *safe(const char *from, char *to, size_t n)
{
    size_t at = 0;
    for (; *from && at + 7 < n; from++) {
        const char *as = *from == '<' ? "&lt;" : *from == '>' ? "&gt;" : *from == '&' ? "&amp;" : *from == '"' ? "&quot;" : *from == '\\' ? "/" : NULL;
        if (as) at += (size_t)snprintf(to + at, n - at, "%s", as);
        else to[at++] = (unsigned char)*from < 32 ? ' ' : *from;
    }
    to[at] = 0;
    return to;
}

typedef struct label {
    char name[4 * NAME_BYTES], shape[96];
} label;

/* The tensor that stands for v, else what the value itself knows. */
static label label_of(const loam_graph *g, const value *v)
{
    label l;
    const loam_tensor *x = g->tensors;
    const weight *w = v->op == OP_WEIGHT ? v->p.w : v->op == OP_INPUT ? v->p.in.bound : NULL;
    while (x && (x->v != v || x->is_view)) x = x->next;
    safe(x ? loam_tensor_name(x) : w ? w->name : v->name, l.name, sizeof l.name);
    const int64_t *ne = x ? x->ne : v->ne;
    int n = x ? x->n_axes : 4;
    while (!x && n > 1 && ne[n - 1] == 1) n--;
    size_t at = 0;
    for (int i = 0; i < n; i++) at += (size_t)snprintf(l.shape + at, sizeof l.shape - at, "%s%lld", i ? " x " : "", (long long)ne[i]);
    snprintf(l.shape + at, sizeof l.shape - at, " %s", loam_type_name((int)v->type));
    return l;
}

static void dump_text(const loam_graph *g, const graph *all, printer *p)
{
    for (int i = 0; i < all->n_values; i++) {
        const value *v = all->values[i];
        label l = label_of(g, v);
        put(p, "%%%d = %s(", v->id, op_name(v->op));
        for (int s = 0, n = 0; s < GRAPH_MAX_SRC; s++)
            if (v->src[s]) put(p, "%s%%%d", n++ ? ", " : "", v->src[s]->id);
        put(p, ") [%s] %s%s\n", l.shape, l.name, v->place ? " -> output" : "");
    }
}

static void dump_dot(const loam_graph *g, const graph *all, printer *p)
{
    put(p, "digraph loam {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n");
    for (int i = 0; i < all->n_values; i++) {
        const value *v = all->values[i];
        label l = label_of(g, v);
        bool source = v->op == OP_INPUT || v->op == OP_WEIGHT;
        put(p, "  v%d [label=\"%s\\n%s\\n%s\"%s];\n", v->id, op_name(v->op), l.name, l.shape,
            source ? ", style=filled, fillcolor=\"#e8eef7\"" : v->place ? ", style=bold" : "");
        for (int s = 0; s < GRAPH_MAX_SRC; s++)
            if (v->src[s]) put(p, "  v%d -> v%d;\n", v->src[s]->id, v->id);
    }
    put(p, "}\n");
}

/* ---- the drawing ---- */

enum { BOX_W = 190, BOX_H = 44, GAP_X = 24, GAP_Y = 36, MARGIN = 16 };

typedef struct place {
    int layer, column;
} place;

static void draw_line(printer *p, const place *from, const place *to)
{
    int x1 = MARGIN + from->column * (BOX_W + GAP_X) + BOX_W / 2, y1 = MARGIN + from->layer * (BOX_H + GAP_Y) + BOX_H;
    int x2 = MARGIN + to->column * (BOX_W + GAP_X) + BOX_W / 2, y2 = MARGIN + to->layer * (BOX_H + GAP_Y);
    put(p, "<path d=\"M%d %dC%d %d %d %d %d %d\" class=\"e\"/>\n", x1, y1, x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
}

static void draw_box(const loam_graph *g, printer *p, const value *v, const place *at)
{
    label l = label_of(g, v);
    int x = MARGIN + at->column * (BOX_W + GAP_X), y = MARGIN + at->layer * (BOX_H + GAP_Y);
    const char *class = v->op == OP_INPUT || v->op == OP_WEIGHT ? "s" : v->place ? "o" : "v";
    put(p, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" class=\"%s\"/>\n", x, y, BOX_W, BOX_H, class);
    bool named = strcmp(l.name, op_name(v->op)) != 0;
    put(p, "<text x=\"%d\" y=\"%d\">%s%s%.24s</text><text x=\"%d\" y=\"%d\">%s</text>\n", x + 8, y + 18, op_name(v->op), named ? " " : "",
        named ? l.name : "", x + 8, y + 35, l.shape);
}

static loam_status dump_svg(const loam_graph *g, const graph *all, printer *p, loam_error *err)
{
    size_t n = (size_t)all->n_values;
    place *at = mem_zalloc_array(n + 1, sizeof *at);
    int *used = mem_zalloc_array(n + 1, sizeof *used), layers = 0, columns = 0;
    if (!at || !used) {
        mem_free(at);
        mem_free(used);
        return fail_nomem(err, "a drawing", n * sizeof *at);
    }
    for (size_t i = 0; i < n; i++) {
        const value *v = all->values[i];
        for (int s = 0; s < GRAPH_MAX_SRC; s++)
            if (v->src[s] && at[v->src[s]->id].layer + 1 > at[i].layer) at[i].layer = at[v->src[s]->id].layer + 1;
        at[i].column = used[at[i].layer]++;
        if (at[i].layer + 1 > layers) layers = at[i].layer + 1;
        if (at[i].column + 1 > columns) columns = at[i].column + 1;
    }
    put(p, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n",
        2 * MARGIN + columns * (BOX_W + GAP_X), 2 * MARGIN + layers * (BOX_H + GAP_Y));
    put(p, "<style>.v{fill:#fff;stroke:#345}.s{fill:#e8eef7;stroke:#89a}.o{fill:#fff;stroke:#345;stroke-width:2.5}.e{fill:none;stroke:#9ab}</style>\n");
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < GRAPH_MAX_SRC; s++)
            if (all->values[i]->src[s]) draw_line(p, &at[all->values[i]->src[s]->id], &at[i]);
    for (size_t i = 0; i < n; i++) draw_box(g, p, all->values[i], &at[i]);
    put(p, "</svg>\n");
    mem_free(at);
    mem_free(used);
    return LOAM_OK;
}

loam_status loam_graph_dump(const loam_graph *g, loam_dump form, loam_dump_fn sink, void *user, loam_error *err)
{
    if (!g || !sink) return fail(err, LOAM_E_ARG, "loam_graph_dump: %s is NULL", g ? "sink" : "the graph");
    const graph *all = g->p ? &g->p->g : &g->g;
    printer p = { sink, user, false };
    loam_status status = LOAM_OK;
    switch (form) {
    case LOAM_DUMP_TEXT: dump_text(g, all, &p); break;
    case LOAM_DUMP_DOT: dump_dot(g, all, &p); break;
    case LOAM_DUMP_SVG: status = dump_svg(g, all, &p, err); break;
    default: return fail(err, LOAM_E_ARG, "there is no form %d of a dump", (int)form);
    }
    return status == LOAM_OK && p.stopped ? fail(err, LOAM_E_ABORTED, "the dump was stopped") : status;
}
