/* budget.c - see budget.h. The plot is SVG: size across, divergence upwards on a logarithmic scale; the line is the best choice at
 * each size, dots are the named mixes, the ring is what was chosen. */
#include "budget.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* "4.2bpw": bits a value; "900M", "1.5G", "123456": bytes (powers of 1000; KiB, MiB, GiB of 1024). */
static bool parse_budget(const char *text, loam_budget_params *p)
{
    static const struct { const char *name; double factor; } units[] = {
        { "", 1 }, { "b", 1 }, { "k", 1e3 }, { "kb", 1e3 }, { "m", 1e6 }, { "mb", 1e6 }, { "g", 1e9 }, { "gb", 1e9 },
        { "ki", 1024.0 }, { "kib", 1024.0 }, { "mi", 1048576.0 }, { "mib", 1048576.0 }, { "gi", 1073741824.0 }, { "gib", 1073741824.0 },
    };
    char *end;
    double x = strtod(text, &end);
    if (end == text || !(x > 0) || x > 1e18) return false;
    if (strcasecmp(end, "bpw") == 0) {
        p->bits = x;
        return x <= 64;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].name) == 0) {
            p->bytes = (uint64_t)(x * units[i].factor);
            return p->bytes > 0;
        }
    return false;
}

typedef struct stages {
    progress bar;
    char stage[40];
} stages;

static bool show_stage(void *user, const char *stage, double share)
{
    stages *s = user;
    if (strcmp(s->stage, stage) != 0) {
        progress_end(&s->bar);
        snprintf(s->stage, sizeof s->stage, "%s", stage);
        progress_begin(&s->bar, s->stage, 1000);
    }
    progress_at(&s->bar, (uint64_t)(share * 1000));
    return !interrupted();
}

/* ---- the table ---- */

static void print_point(const char *label, const loam_budget_point *p)
{
    printf("%-10s %10.2f MB %8.3f bpw %12.6f\n", label, (double)p->bytes / 1e6, p->bits, p->kld);
}

static void print_types(const loam_budget *b)
{
    uint64_t bytes[LOAM_TYPE_LIMIT] = { 0 };
    double kld[LOAM_TYPE_LIMIT] = { 0 };
    int n[LOAM_TYPE_LIMIT] = { 0 };
    loam_budget_tensor t;
    for (size_t i = 0; loam_budget_tensor_at(b, i, &t); i++) bytes[t.to] += t.bytes, kld[t.to] += t.kld, n[t.to]++;
    printf("\ntype       tensors            size   divergence\n");
    for (int k = 0; k < LOAM_TYPE_LIMIT; k++)
        if (n[k]) printf("%-10s %7d %12.2f MB %12.6f\n", loam_type_name(k), n[k], (double)bytes[k] / 1e6, kld[k]);
}

static void print_tensors(const loam_budget *b)
{
    loam_budget_tensor t;
    printf("\n%-40s %-18s %12s %8s %12s\n", "tensor", "type", "size", "bpw", "divergence");
    for (size_t i = 0; loam_budget_tensor_at(b, i, &t); i++)
        printf("%-40s %-7s -> %-7s %9.3f MB %8.3f %12.6f\n", t.name, loam_type_name(t.from), loam_type_name(t.to), (double)t.bytes / 1e6,
               8 * (double)t.bytes / (double)t.values, t.kld);
}

static void print_plan(const loam_budget *b, const options *o)
{
    loam_budget_facts f = loam_budget_get(b);
    loam_budget_point p;
    const char *name;
    if (opt_given(o, OPT_VERBOSE) || opt_given(o, OPT_DRY_RUN)) print_tensors(b);
    print_types(b);
    printf("\ntrade-off          size                divergence (predicted, nats a token)\n");
    bool shown = false;
    for (size_t i = 0; loam_budget_point_at(b, i, &p); i++) {
        if (!shown && p.bytes > f.chosen.bytes) print_point("chosen", &f.chosen), shown = true;
        print_point("", &p);
    }
    if (!shown) print_point("chosen", &f.chosen);
    for (size_t i = 0; loam_budget_mix_at(b, i, &name, &p); i++) print_point(name, &p);
    printf("\nchosen: %.3f bits a weight, divergence %.6f measured on %d of %d tokens of calibration (%.6f predicted), %d passes\n",
           f.chosen.bits, f.measured, f.n_rows, f.n_tokens, f.chosen.kld, f.n_passes);
}

/* ---- the plot ---- */

typedef struct plot {
    FILE *f;
    double x0, x1, y0, y1; /* bits; log10 of the divergence */
} plot;

#define LEFT   80.0
#define TOP    30.0
#define WIDTH  640.0
#define HEIGHT 400.0

static double at_x(const plot *g, double bits) { return LEFT + (bits - g->x0) / (g->x1 - g->x0) * WIDTH; }
static double at_y(const plot *g, double kld) { return TOP + (g->y1 - log10(kld)) / (g->y1 - g->y0) * HEIGHT; }
static bool inside(const plot *g, const loam_budget_point *p)
{
    return p->kld > 0 && p->bits >= g->x0 && p->bits <= g->x1 && log10(p->kld) >= g->y0 && log10(p->kld) <= g->y1;
}

static void draw_axes(const plot *g)
{
    fprintf(g->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<g stroke=\"#ddd\">\n", LEFT + WIDTH + 40, TOP + HEIGHT + 60);
    for (double x = ceil(g->x0 * 2) / 2; x <= g->x1; x += 0.5)
        fprintf(g->f, "<path d=\"M%.1f %gV%g\"/>\n", at_x(g, x), TOP, TOP + HEIGHT);
    for (double y = g->y0; y <= g->y1; y += 1) fprintf(g->f, "<path d=\"M%g %.1fH%g\"/>\n", LEFT, at_y(g, pow(10, y)), LEFT + WIDTH);
    fprintf(g->f, "</g>\n<g text-anchor=\"middle\">\n");
    for (double x = ceil(g->x0); x <= g->x1; x += 1) fprintf(g->f, "<text x=\"%.1f\" y=\"%g\">%g</text>\n", at_x(g, x), TOP + HEIGHT + 18, x);
    fprintf(g->f, "<text x=\"%g\" y=\"%g\">bits a weight</text>\n</g>\n<g text-anchor=\"end\">\n", LEFT + WIDTH / 2, TOP + HEIGHT + 40);
    for (double y = g->y0; y <= g->y1; y += 1) fprintf(g->f, "<text x=\"%g\" y=\"%.1f\">%g</text>\n", LEFT - 8, at_y(g, pow(10, y)) + 4, pow(10, y));
    fprintf(g->f, "</g>\n<text x=\"%g\" y=\"18\">KL divergence, nats a token, predicted from the calibration text</text>\n", LEFT);
}

static void draw(const plot *g, const loam_budget *b)
{
    loam_budget_facts facts = loam_budget_get(b);
    loam_budget_point p;
    const char *name;
    char pen = 'M';
    draw_axes(g);
    fprintf(g->f, "<path fill=\"none\" stroke=\"#1f6fb4\" stroke-width=\"2\" d=\"");
    for (size_t i = 0; loam_budget_point_at(b, i, &p); i++) {
        if (!inside(g, &p)) continue;
        fprintf(g->f, "%c%.1f %.1f", pen, at_x(g, p.bits), at_y(g, p.kld));
        pen = 'L';
    }
    fprintf(g->f, "\"/>\n<g fill=\"#c8501e\">\n");
    for (size_t i = 0; loam_budget_mix_at(b, i, &name, &p); i++)
        if (inside(g, &p))
            fprintf(g->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/><text x=\"%.1f\" y=\"%.1f\" font-size=\"9\">%s</text>\n", at_x(g, p.bits),
                    at_y(g, p.kld), at_x(g, p.bits) + 5, at_y(g, p.kld) - 3, name);
    fprintf(g->f, "</g>\n");
    if (inside(g, &facts.chosen))
        fprintf(g->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"black\" stroke-width=\"2\"/>\n", at_x(g, facts.chosen.bits),
                at_y(g, facts.chosen.kld));
    fprintf(g->f, "</svg>\n");
}

static int write_plot(const loam_budget *b, const options *o)
{
    const char *path = opt_text(o, OPT_PLOT);
    plot g = { .f = fopen(path, "we"), .x0 = 64, .y0 = 1, .y1 = -6 };
    loam_budget_point p;
    if (!g.f) return say_failed(o, "%s: cannot be written: %s", path, strerror(errno));
    for (size_t i = 0; loam_budget_point_at(b, i, &p); i++) {
        g.x0 = fmin(g.x0, p.bits), g.x1 = fmax(g.x1, p.bits);
        if (p.kld > 1e-6) g.y0 = fmin(g.y0, floor(log10(p.kld))), g.y1 = fmax(g.y1, ceil(log10(p.kld)));
    }
    if (g.x1 <= g.x0) g.x1 = g.x0 + 1;
    if (g.y1 <= g.y0) g.y1 = g.y0 + 1;
    draw(&g, b);
    int code = flush_output(o, g.f, path);
    fclose(g.f);
    return code;
}

int budget_from_options(loam_budget **out, const options *o, const loam_imatrix *im)
{
    loam_budget_params p = loam_budget_defaults();
    buffer text = { 0 };
    loam_error err;
    stages s = { .stage = "" };
    *out = NULL;
    if (!parse_budget(opt_text(o, OPT_BUDGET), &p))
        return say_usage(o, "--budget '%s': must be bits a weight (4.2bpw) or bytes (900M)", opt_text(o, OPT_BUDGET));
    if (!opt_given(o, OPT_CALIBRATION)) return say_usage(o, "--budget needs -f FILE: a text to measure on");
    if (!read_file(o, opt_text(o, OPT_CALIBRATION), &text)) return EXIT_FAILED;
    p.text = text.data ? text.data : "";
    p.text_len = text.len;
    p.imatrix = im;
    p.allow_requantize = opt_given(o, OPT_REQUANTIZE);
    if (opt_given(o, OPT_QUANT_THREADS)) p.n_threads = (int32_t)opt_int(o, OPT_QUANT_THREADS);
    p.n_ctx = (int32_t)opt_int(o, OPT_PPL_CTX);
    if (opt_given(o, OPT_ROUNDS)) p.n_rounds = (int32_t)opt_int(o, OPT_ROUNDS);
    if (opt_given(o, OPT_CALIBRATION_TOKENS)) p.n_tokens = (int32_t)opt_int(o, OPT_CALIBRATION_TOKENS);
    p.progress = show_stage;
    p.progress_user = &s;
    progress_begin(&s.bar, s.stage, 1000);
    loam_status status = loam_budget_plan(out, o->words[0], &p, &err);
    progress_end(&s.bar);
    buffer_free(&text);
    if (status == LOAM_E_ARG) return say_usage(o, "%s", err.message);
    if (status != LOAM_OK) return say_error(o, &err);
    print_plan(*out, o);
    return opt_given(o, OPT_PLOT) ? write_plot(*out, o) : EXIT_DONE;
}
