/* quantize.c - `loam quantize IN OUT TYPE`: a model file in a smaller element type. */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "loam/quantize.h"
#include "session.h"

typedef struct watcher {
    const options *o;
    progress bar;
    char last[80];
} watcher;

static void show_tensor(const loam_quantize_step *s)
{
    char shape[96];
    int n = 4;
    while (n > 1 && s->ne[n - 1] == 1) n--;
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(shape + len, sizeof shape - len, "%s%lld", i ? " x " : "", (long long)s->ne[i]);
    printf("%-40s %-22s %7s -> %-7s %9.2f MB -> %9.2f MB%s\n", s->name, shape, loam_type_name(s->from), loam_type_name(s->to),
           (double)s->bytes_before / 1e6, (double)s->bytes_after / 1e6,
           s->lacks_weights ? "  (needs an importance matrix)" : s->fell_back ? "  (rows do not fit the type of the rule)"
           : s->weighted    ? "  weighted" : "");
}

static bool watch(void *user, const loam_quantize_step *step)
{
    watcher *w = user;
    if ((opt_given(w->o, OPT_DRY_RUN) || opt_given(w->o, OPT_VERBOSE)) && !opt_given(w->o, OPT_BUDGET)) {
        if (strcmp(w->last, step->name) != 0) show_tensor(step);
        snprintf(w->last, sizeof w->last, "%s", step->name);
    }
    w->bar.total = step->total ? step->total : 1;
    progress_at(&w->bar, step->done);
    return !interrupted();
}

/* --tensor-type REGEX=TYPE, in order: *list [*n] for free(), with the patterns behind it. */
static int read_overrides(const options *o, loam_quantize_override **list, size_t *n)
{
    *list = need(malloc(((size_t)o->n_list + 1) * sizeof **list));
    *n = 0;
    for (int i = 0; i < o->n_list; i++) {
        const char *text = o->list[i], *sign = strrchr(text, '=');
        if (o->list_of[i] != OPT_TENSOR_TYPE) continue;
        int type = sign ? loam_type_from_name(sign + 1) : -1;
        if (type < 0 || sign == text) return say_usage(o, "--tensor-type '%s': must be REGEX=TYPE with an element type such as q6_K", text);
        char *pattern = need(strdup(text));
        pattern[sign - text] = 0;
        (*list)[(*n)++] = (loam_quantize_override){ pattern, type };
    }
    return EXIT_DONE;
}

static void free_overrides(loam_quantize_override *list, size_t n)
{
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)list[i].pattern);
    free(list);
}

static loam_quantize_params params_of(const options *o, watcher *w)
{
    loam_quantize_params p = loam_quantize_defaults();
    if (opt_given(o, OPT_QUANT_THREADS)) p.n_threads = (int32_t)opt_int(o, OPT_QUANT_THREADS);
    p.pure = opt_given(o, OPT_PURE);
    p.leave_output = opt_given(o, OPT_LEAVE_OUTPUT);
    p.allow_requantize = opt_given(o, OPT_REQUANTIZE);
    p.dry_run = opt_given(o, OPT_DRY_RUN);
    p.keep_split = opt_given(o, OPT_KEEP_SPLIT);
    if (opt_given(o, OPT_OUTPUT_TYPE)) p.output_type = opt_type(o, OPT_OUTPUT_TYPE);
    if (opt_given(o, OPT_TOKEN_TYPE)) p.token_type = opt_type(o, OPT_TOKEN_TYPE);
    p.progress = watch;
    p.progress_user = w;
    return p;
}

static void print_result(const loam_quantize_params *p, const loam_quantize_result *r)
{
    double values = r->values ? (double)r->values : 1;
    printf("%s%.1f MB (%.2f bits a weight) -> %.1f MB (%.2f); %u of %u tensors converted", p->dry_run ? "would become: " : "",
           (double)r->bytes_before / 1e6, (double)r->bytes_before * 8 / values, (double)r->bytes_after / 1e6,
           (double)r->bytes_after * 8 / values, r->n_converted, r->n_tensors);
    if (r->n_fell_back) printf(", %u of them to a type with smaller blocks", r->n_fell_back);
    putchar('\n');
}

int cmd_quantize(const options *o)
{
    watcher w = { .o = o };
    loam_quantize_params p = params_of(o, &w);
    loam_quantize_result r;
    loam_imatrix *im = NULL;
    loam_budget *plan = NULL;
    loam_quantize_override *overrides;
    loam_error err;
    show_log(o);
    catch_interrupt();
    if (opt_given(o, OPT_BUDGET) == (o->n_words == 3)) return say_usage(o, "either TYPE or --budget says what becomes of the model");
    if (!opt_given(o, OPT_BUDGET) && (opt_given(o, OPT_PLOT) || opt_given(o, OPT_CALIBRATION) || opt_given(o, OPT_ROUNDS) || opt_given(o, OPT_PPL_CTX) ||
                                      opt_given(o, OPT_CALIBRATION_TOKENS)))
        return say_usage(o, "-f, -c, --plot, --rounds and --calibration-tokens have an effect only with --budget");
    if (o->n_words == 3) p.type = o->words[2];
    int code = read_overrides(o, &overrides, &p.n_overrides);
    p.overrides = overrides;
    if (code == EXIT_DONE && opt_given(o, OPT_MATRIX) && loam_imatrix_open(&im, opt_text(o, OPT_MATRIX), &err) != LOAM_OK)
        code = say_error(o, &err);
    p.imatrix = im;
    p.imatrix_file = opt_text(o, OPT_MATRIX);
    if (code == EXIT_DONE && opt_given(o, OPT_BUDGET)) code = budget_from_options(&plan, o, im);
    p.budget = plan;
    if (code == EXIT_DONE) {
        progress_begin(&w.bar, "quantizing", 1);
        loam_status status = loam_quantize_file(o->words[0], o->words[1], &p, &r, &err);
        progress_end(&w.bar);
        if (status == LOAM_OK) print_result(&p, &r);
        else code = status == LOAM_E_ARG ? say_usage(o, "%s", err.message) : say_error(o, &err);
    }
    free_overrides(overrides, p.n_overrides);
    loam_budget_free(plan);
    loam_imatrix_free(im);
    int flushed = flush_output(o, stdout, "standard output");
    return code != EXIT_DONE ? code : flushed;
}
