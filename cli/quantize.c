/* quantize.c - `loam quantize IN OUT TYPE`: a model file in a smaller element type. */
#include <string.h>

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
           s->fell_back ? "  (rows do not fit the type of the rule)" : "");
}

static bool watch(void *user, const loam_quantize_step *step)
{
    watcher *w = user;
    if (opt_given(w->o, OPT_DRY_RUN) || opt_given(w->o, OPT_VERBOSE)) {
        if (strcmp(w->last, step->name) != 0) show_tensor(step);
        snprintf(w->last, sizeof w->last, "%s", step->name);
    }
    w->bar.total = step->total ? step->total : 1;
    progress_at(&w->bar, step->done);
    return !interrupted();
}

int cmd_quantize(const options *o)
{
    watcher w = { .o = o };
    loam_quantize_params p = loam_quantize_defaults();
    loam_quantize_result r;
    loam_error err;
    show_log(o);
    catch_interrupt();
    p.type = o->words[2];
    if (opt_given(o, OPT_QUANT_THREADS)) p.n_threads = (int32_t)opt_int(o, OPT_QUANT_THREADS);
    p.pure = opt_given(o, OPT_PURE);
    p.leave_output = opt_given(o, OPT_LEAVE_OUTPUT);
    p.allow_requantize = opt_given(o, OPT_REQUANTIZE);
    p.dry_run = opt_given(o, OPT_DRY_RUN);
    if (opt_given(o, OPT_OUTPUT_TYPE)) p.output_type = opt_type(o, OPT_OUTPUT_TYPE);
    if (opt_given(o, OPT_TOKEN_TYPE)) p.token_type = opt_type(o, OPT_TOKEN_TYPE);
    p.progress = watch;
    p.progress_user = &w;
    progress_begin(&w.bar, "quantizing", 1);
    loam_status status = loam_quantize_file(o->words[0], o->words[1], &p, &r, &err);
    progress_end(&w.bar);
    if (status == LOAM_E_ARG) return say_usage(o, "%s", err.message);
    if (status != LOAM_OK) return say_error(o, &err);
    double values = r.values ? (double)r.values : 1;
    printf("%s%.1f MB (%.2f bits a weight) -> %.1f MB (%.2f); %u of %u tensors converted", p.dry_run ? "would become: " : "",
           (double)r.bytes_before / 1e6, (double)r.bytes_before * 8 / values, (double)r.bytes_after / 1e6,
           (double)r.bytes_after * 8 / values, r.n_converted, r.n_tensors);
    if (r.n_fell_back) printf(", %u of them to a type with smaller blocks", r.n_fell_back);
    putchar('\n');
    return flush_output(o, stdout, "standard output");
}
