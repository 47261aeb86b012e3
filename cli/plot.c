/* plot.c - `loam train plot LOG`: the curves of a training log as an SVG picture.
 *
 * Loss over steps: every update as a thin line, their moving mean, validations as points; below it the learning rate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define WIDTH  860
#define HEIGHT 520
#define LEFT   70
#define RIGHT  20
#define TOP    40
#define BOTTOM 330 /* of the loss */
#define RATE_TOP    380
#define RATE_BOTTOM 470

typedef struct point {
    double x, y;
} point;

typedef struct curve {
    point *p;
    size_t n, cap;
} curve;

typedef struct plot {
    curve loss, rate, valid;
    double x_max, lo, hi, rate_max;
} plot;

static void add(curve *c, double x, double y)
{
    if (!isfinite(x) || !isfinite(y)) return;
    if (c->n == c->cap) c->p = need(realloc(c->p, (c->cap = c->cap ? 2 * c->cap : 256) * sizeof *c->p));
    c->p[c->n++] = (point){ x, y };
}

/* The number of a key in a line of the log; false where it is not there. */
static bool number(const char *line, const char *key, double *out)
{
    char quoted[40], *end;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(line, quoted);
    if (!p) return false;
    p += strlen(quoted);
    *out = strtod(p, &end);
    return end != p;
}

static int read_log(const options *o, const char *path, plot *g)
{
    buffer all = { 0 };
    if (!read_file(o, path, &all)) return EXIT_FAILED;
    for (char *line = all.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) break;
        *end = 0;
        double step, y;
        if (!number(line, "step", &step)) continue;
        if (number(line, "loss", &y)) add(&g->loss, step, y);
        if (number(line, "rate", &y)) add(&g->rate, step, y);
        if (number(line, "valid_loss", &y)) add(&g->valid, step, y);
    }
    buffer_free(&all);
    return g->loss.n + g->valid.n ? EXIT_DONE : say_failed(o, "%s: there is no step of a training run in it", path);
}

static void find_range(plot *g)
{
    const curve *both[] = { &g->loss, &g->valid };
    g->lo = INFINITY, g->hi = -INFINITY;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++) {
            g->lo = fmin(g->lo, both[k]->p[i].y);
            g->hi = fmax(g->hi, both[k]->p[i].y);
            g->x_max = fmax(g->x_max, both[k]->p[i].x);
        }
    if (g->hi - g->lo < 1e-6) g->hi = g->lo + 1;
    for (size_t i = 0; i < g->rate.n; i++) g->rate_max = fmax(g->rate_max, g->rate.p[i].y);
    if (g->x_max <= 0) g->x_max = 1;
    if (g->rate_max <= 0) g->rate_max = 1;
}

static double at_x(const plot *g, double x) { return LEFT + x / g->x_max * (WIDTH - LEFT - RIGHT); }
static double at_y(const plot *g, double y) { return BOTTOM - (y - g->lo) / (g->hi - g->lo) * (BOTTOM - TOP); }
static double at_rate(const plot *g, double y) { return RATE_BOTTOM - y / g->rate_max * (RATE_BOTTOM - RATE_TOP); }

/* A step of 1, 2 or 5 times a power of ten that cuts the range into about n. */
static double nice(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw)));
    return raw / power < 1.5 ? power : raw / power < 3.5 ? 2 * power : raw / power < 7.5 ? 5 * power : 10 * power;
}

static void axes(FILE *f, const plot *g)
{
    double dy = nice(g->hi - g->lo, 6), dx = nice(g->x_max, 8);
    for (double y = ceil(g->lo / dy) * dy; y <= g->hi; y += dy) {
        fprintf(f, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, at_y(g, y), at_y(g, y));
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT - 8, at_y(g, y) + 4, y);
    }
    for (double x = 0; x <= g->x_max * 1.0001; x += dx) {
        fprintf(f, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", at_x(g, x), at_x(g, x), TOP, RATE_BOTTOM);
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", at_x(g, x), RATE_BOTTOM + 18, x);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", (LEFT + WIDTH - RIGHT) / 2, RATE_BOTTOM + 36);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.2g</text>\n", LEFT - 8, RATE_TOP + 4, g->rate_max);
    fprintf(f, "<text x=\"%d\" y=\"%d\">learning rate</text>\n", LEFT, RATE_TOP - 8);
}

static void line(FILE *f, const char *class, const plot *g, const curve *c, double (*y)(const plot *, double))
{
    /* More points than columns show nothing more: every k-th is drawn. */
    size_t every = c->n / 4000 + 1;
    if (!c->n) return;
    fprintf(f, "<polyline class=\"%s\" points=\"", class);
    for (size_t i = 0; i < c->n; i += every) fprintf(f, "%.1f,%.1f ", at_x(g, c->p[i].x), y(g, c->p[i].y));
    fprintf(f, "\"/>\n");
}

/* An exponential mean over about a fiftieth of the run, without the bias of its first value. */
static curve smoothed(const curve *c)
{
    curve out = { 0 };
    double keep = 1 - 1 / fmax(1, (double)c->n / 50), sum = 0, weight = 0;
    for (size_t i = 0; i < c->n; i++) {
        sum = keep * sum + (1 - keep) * c->p[i].y;
        weight = keep * weight + (1 - keep);
        add(&out, c->p[i].x, sum / weight);
    }
    return out;
}

static void draw(FILE *f, const plot *g, const char *title)
{
    curve mean = smoothed(&g->loss);
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", WIDTH, HEIGHT);
    fprintf(f, "<style>polyline{fill:none}.grid{stroke:#ddd}.loss{stroke:#9bc;stroke-width:0.7}.mean{stroke:#258;stroke-width:2}"
               ".valid{stroke:#c52;stroke-width:1.5}.rate{stroke:#484}circle{fill:#c52}</style>\n");
    fprintf(f, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">%s</text>\n", WIDTH, HEIGHT, LEFT, title);
    fprintf(f, "<text x=\"%d\" y=\"22\" text-anchor=\"end\" fill=\"#258\">loss <tspan fill=\"#c52\">validation</tspan></text>\n", WIDTH - RIGHT);
    axes(f, g);
    line(f, "loss", g, &g->loss, at_y);
    line(f, "mean", g, &mean, at_y);
    line(f, "valid", g, &g->valid, at_y);
    for (size_t i = 0; i < g->valid.n; i++)
        fprintf(f, "<circle r=\"3\" cx=\"%.1f\" cy=\"%.1f\"><title>%.4f</title></circle>\n", at_x(g, g->valid.p[i].x), at_y(g, g->valid.p[i].y), g->valid.p[i].y);
    line(f, "rate", g, &g->rate, at_rate);
    fprintf(f, "</svg>\n");
    free(mean.p);
}

int cmd_train_plot(const options *o)
{
    plot g = { 0 };
    const char *path = opt_text(o, OPT_PLOT_OUT);
    int code = read_log(o, o->words[0], &g);
    FILE *f = code != EXIT_DONE || !path ? stdout : fopen(path, "we");
    if (!f) code = say_failed(o, "%s cannot be written", path);
    if (code == EXIT_DONE) {
        find_range(&g);
        draw(f, &g, "training");
        code = flush_output(o, f, path ? path : "standard output");
    }
    if (f && f != stdout) fclose(f);
    free(g.loss.p);
    free(g.rate.p);
    free(g.valid.p);
    return code;
}
