/* trace.c - `loam debug trace`: every operation of one decode, in order: block, operation, name, extents, type, sum, time. */
#include <inttypes.h>
#include <stdlib.h>

#include "session.h"

typedef struct tracer {
    FILE *out;
    uint64_t total_ns;
    int steps;
} tracer;

/* Sum of all values of a result of floats or of 32-bit integers; other types have none. */
static bool sum_of(const loam_node *n, double *sum)
{
    *sum = 0;
    if (n->type != LOAM_F32 && n->type != LOAM_I32) return false;
    for (int64_t t = 0; t < n->ne[2]; t++)
        for (int64_t m = 0; m < n->ne[1]; m++) {
            const char *row = (const char *)n->data + t * n->nb[2] + m * n->nb[1];
            for (int64_t i = 0; i < n->ne[0]; i++) *sum += n->type == LOAM_F32 ? (double)((const float *)row)[i] : ((const int32_t *)row)[i];
        }
    return true;
}

static bool show(void *user, const loam_node *n, bool ask)
{
    tracer *t = user;
    if (ask) return true;
    double sum;
    char shape[64], block[16] = "-", total[32] = "-";
    snprintf(shape, sizeof shape, "%" PRId64 "x%" PRId64 "x%" PRId64, n->ne[0], n->ne[1], n->ne[2]);
    if (n->layer >= 0) snprintf(block, sizeof block, "%d", n->layer);
    if (sum_of(n, &sum)) snprintf(total, sizeof total, "%.6g", sum);
    const char *name = n->n_src && n->src[0]->op[0] == 'W' ? n->src[0]->name : n->name;
    fprintf(t->out, "%5d  %5s  %-13s %-32s %-16s %-5s %14s %10.1f\n", t->steps++, block, n->op, name, shape, loam_type_name((int)n->type),
            total, (double)n->ns / 1e3);
    t->total_ns += n->ns;
    return true;
}

int cmd_debug_trace(const options *o)
{
    if (!opt_given(o, OPT_TOKENS)) return say_usage(o, "--tokens FILE is needed");
    session s = { 0 };
    buffer text = { 0 };
    int32_t *ids = NULL;
    size_t n = 0;
    tracer t = { .out = stdout };
    loam_error err;
    int code = session_open(&s, o, false);
    if (code == EXIT_DONE && (!read_file(o, opt_text(o, OPT_TOKENS), &text) || !parse_ids(o, opt_text(o, OPT_TOKENS), &text, &ids, &n))) code = EXIT_FAILED;
    if (code == EXIT_DONE && n == 0) code = say_failed(o, "%s holds no ids", opt_text(o, OPT_TOKENS));
    if (code == EXIT_DONE) {
        loam_context_params p = session_params(&s, o);
        p.n_ctx = p.n_batch = p.n_ubatch = (uint32_t)n;
        code = session_context(&s, o, &p);
    }
    if (code == EXIT_DONE) {
        printf("%5s  %5s  %-13s %-32s %-16s %-5s %14s %10s\n", "step", "block", "operation", "name", "extents", "type", "sum", "us");
        loam_context_set_observer(s.ctx, show, &t);
        loam_batch batch = { .n_tokens = (int32_t)n, .token = ids };
        if (loam_decode(s.ctx, &batch, &err)) code = say_error(o, &err);
        else printf("%d operations, %.1f us\n", t.steps, (double)t.total_ns / 1e3);
    }
    free(ids);
    buffer_free(&text);
    session_close(&s);
    return code;
}
