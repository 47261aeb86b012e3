/* convert.c - `loam convert DIR OUT`: a Hugging Face folder as one GGUF file, the values as they are stored unless --type says
 * otherwise. OUT appears when it is whole. */
#include <string.h>

#include "loam/quantize.h"
#include "session.h"

typedef struct watcher {
    const options *o;
    progress bar;
    char last[80];
} watcher;

static bool watch(void *user, const loam_quantize_step *step)
{
    watcher *w = user;
    if (opt_given(w->o, OPT_VERBOSE) && strcmp(w->last, step->name) != 0)
        say_note(w->o, "%s: %lld x %lld x %lld, %s -> %s", step->name, (long long)step->ne[0], (long long)step->ne[1],
                 (long long)step->ne[2], loam_type_name(step->from), loam_type_name(step->to));
    snprintf(w->last, sizeof w->last, "%s", step->name);
    w->bar.total = step->total ? step->total : 1;
    progress_at(&w->bar, step->done);
    return !interrupted();
}

int cmd_convert(const options *o)
{
    watcher w = { .o = o };
    loam_quantize_params p = loam_quantize_defaults();
    loam_quantize_result r;
    loam_error err;
    show_log(o);
    catch_interrupt();
    const char *type = opt_given(o, OPT_CONVERT_TYPE) ? opt_text(o, OPT_CONVERT_TYPE) : "auto";
    p.type = strcmp(type, "auto") == 0 ? "copy" : type;
    if (opt_given(o, OPT_QUANT_THREADS)) p.n_threads = (int32_t)opt_int(o, OPT_QUANT_THREADS);
    p.progress = watch;
    p.progress_user = &w;
    progress_begin(&w.bar, "converting", 1);
    loam_status status = loam_quantize_file(o->words[0], o->words[1], &p, &r, &err);
    progress_end(&w.bar);
    if (status == LOAM_E_ARG) return say_usage(o, "%s", err.message);
    if (status != LOAM_OK) return say_error(o, &err);
    printf("%s: %u tensors, %.1f MB (%.2f bits a weight)\n", o->words[1], r.n_tensors, (double)r.bytes_after / 1e6,
           (double)r.bytes_after * 8 / (r.values ? (double)r.values : 1));
    return flush_output(o, stdout, "standard output");
}
