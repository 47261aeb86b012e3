/* cpu_state.c - operations that carry a state from token to token. Each thread takes channels, rows or heads of the state for
 * all tokens, so nobody waits for anybody; the tokens of a run come in order. A run begins by bringing its part of the
 * state to the cell that it writes: rows of a state belong to one thread. */
#include <string.h>

#include "device/cpu.h"

#define POLL 64 /* tokens between two looks at the abort flag */

static float *head_at(const value *v, const worker *w, int64_t t, int64_t head)
{
    return (float *)((char *)value_data(v, w) + t * v->nb[2] + head * v->nb[1]);
}

/* n floats from `offset` of the rows of the cell, as the run found them, in the cell that it writes. */
static float *bring(float *cells, int64_t row, const state_run *r, int64_t offset, int64_t n)
{
    float *to = cells + r->to * row + offset;
    if (r->from < 0) memset(to, 0, (size_t)n * sizeof *to);
    else if (r->from != r->to) memcpy(to, cells + r->from * row + offset, (size_t)n * sizeof *to);
    return to;
}

/* Works off the runs of the step in order. */
#define FOR_RUNS(w, ...) \
    for (int r_ = 0; r_ < (w)->run->kv->n_state_runs; r_++) { \
        const state_run *run = &(w)->run->kv->state_runs[r_]; \
        __VA_ARGS__ \
    }

/* ---- inputs of earlier tokens ---- */

/* Taps of the channels [c0, c1) as [taps][channels]. */
static void turn_weights(float *out, const float *w, int64_t taps, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        for (int64_t t = 0; t < taps; t++) out[t * n + c] = w[c * taps + t];
}

void run_conv(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0], *taps = v->src[1], *bias = v->src[2];
    const state_params *p = &v->p.state;
    const state_layer *l = &w->run->kv->states[p->layer];
    range c = range_of(v->ne[0], ROW_UNIT, w->ith, w->nth);
    int64_t n = c.last - c.first, n_taps = taps->ne[0], width = v->ne[0];
    if (n == 0) return;
    turn_weights((float *)w->scratch, (const float *)value_data(taps, w) + (p->first + c.first) * n_taps, n_taps, n);
    conv_args a = { .w = (float *)w->scratch, .w_stride = (size_t)n, .win_stride = (size_t)width, .taps = (int)n_taps,
                    .bias = bias ? (const float *)value_data(bias, w) + p->first + c.first : NULL };
    FOR_RUNS(w, {
        for (int64_t k = 0; k + 1 < n_taps; k++) bring(l->r, l->r_row, run, p->at + k * width + c.first, n);
        for (int i = 0; i < run->count && !(i % POLL == 0 && worker_stopped(w)); i++)
            for (int64_t from = c.first, e; from < c.last; from = e) {
                e = row_whole(x) ? c.last : min64(c.last, (from / x->ne[0] + 1) * x->ne[0]);
                conv_args piece = a;
                piece.n = e - from;
                piece.w += from - c.first;
                if (bias) piece.bias += from - c.first;
                piece.x = row_at(x, w, run->tokens[i], from);
                piece.y = row_at(v, w, run->tokens[i], from);
                piece.win = l->r + run->to * l->r_row + p->at + from;
                w->run->k->conv(&piece);
            }
    })
}

void run_token_shift(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0];
    const state_layer *l = &w->run->kv->states[v->p.state.layer];
    range c = range_of(row_values(v), ROW_UNIT, w->ith, w->nth);
    if (c.first == c.last) return;
    FOR_RUNS(w, {
        float *last = bring(l->r, l->r_row, run, v->p.state.at + c.first, c.last - c.first);
        for (int i = 0; i < run->count; i++) {
            const float *in = row_at(x, w, run->tokens[i], c.first);
            float *y = row_at(v, w, run->tokens[i], c.first);
            for (int64_t j = 0; j < c.last - c.first; j++) {
                y[j] = last[j] - in[j];
                last[j] = in[j];
            }
        }
    })
}

/* ---- states proper: rows dealt out to threads ---- */

/* Rows of one head that this thread has. */
typedef struct rows {
    int64_t head, first, count;
} rows;

/* Rows [at, end) of all heads, each of `height`: takes the next piece within one head. */
static bool next_rows(int64_t *at, int64_t end, int64_t height, rows *out)
{
    if (*at >= end) return false;
    out->head = *at / height;
    out->first = *at % height;
    out->count = min64(height - out->first, end - *at);
    *at += out->count;
    return true;
}

#define ROWS_AT_ONCE 8 /* what stays in the nearest cache while the tokens pass */

static void scan_rows(const value *v, worker *w, const rows *h, bool each)
{
    const value *x = v->src[0], *dt = v->src[1], *b = v->src[2], *c = v->src[3];
    const state_layer *l = &w->run->kv->states[v->p.state.layer];
    const float *a = value_data(v->src[4], w), *d = value_data(v->src[5], w);
    int64_t n = b->ne[0], group = h->head / (x->ne[1] / b->ne[1]), row = h->head * x->ne[0] + h->first;
    scan_fn f = each ? w->run->k->scan_each : w->run->k->scan_shared;
    scan_args g = { .rows = h->count, .n = n, .a = each ? a + row * n : a + h->head, .d = each ? d + row : d + h->head };
    FOR_RUNS(w, {
        g.s = bring(l->s, l->s_row, run, row * n, h->count * n);
        for (int i = 0; i < run->count && !(i % POLL == 0 && worker_stopped(w)); i++) {
            int64_t t = run->tokens[i];
            g.x = head_at(x, w, t, h->head) + h->first;
            g.y = head_at(v, w, t, h->head) + h->first;
            g.dt = row_at(dt, w, t, each ? row : h->head);
            g.b = head_at(b, w, t, group);
            g.c = head_at(c, w, t, group);
            f(&g);
        }
    })
}

void run_scan(const step *s, worker *w)
{
    const value *v = s->v;
    bool each = v->src[4]->ne[0] * v->src[4]->ne[1] * v->src[4]->ne[2] != v->ne[1];
    range r = range_of(row_values(v), ROWS_AT_ONCE, w->ith, w->nth);
    rows h;
    for (int64_t at = r.first; next_rows(&at, min64(at + ROWS_AT_ONCE, r.last), v->ne[0], &h);) scan_rows(v, w, &h, each);
}

static void delta_rows(const value *v, worker *w, const rows *h)
{
    const value *x = v->src[0], *q = v->src[1], *k = v->src[2], *decay = v->src[3], *beta = v->src[4];
    const state_layer *l = &w->run->kv->states[v->p.state.layer];
    int64_t n = q->ne[0], row = h->head * x->ne[0] + h->first;
    int64_t key = v->p.state.spread ? h->head / (x->ne[1] / q->ne[1]) : h->head % q->ne[1];
    delta_args g = { .rows = h->count, .n = n, .each = row_values(decay) != x->ne[1] };
    FOR_RUNS(w, {
        g.s = bring(l->s, l->s_row, run, row * n, h->count * n);
        for (int i = 0; i < run->count && !(i % POLL == 0 && worker_stopped(w)); i++) {
            int64_t t = run->tokens[i];
            g.q = head_at(q, w, t, key);
            g.k = head_at(k, w, t, key);
            g.v = head_at(x, w, t, h->head) + h->first;
            g.y = head_at(v, w, t, h->head) + h->first;
            g.decay = row_at(decay, w, t, g.each ? h->head * n : h->head);
            g.beta = *row_at(beta, w, t, h->head);
            w->run->k->delta(&g);
        }
    })
}

void run_delta(const step *s, worker *w)
{
    range r = range_of(row_values(s->v), ROWS_AT_ONCE, w->ith, w->nth);
    rows h;
    for (int64_t at = r.first; next_rows(&at, min64(at + ROWS_AT_ONCE, r.last), s->v->ne[0], &h);) delta_rows(s->v, w, &h);
}

static void wkv7_rows(const value *v, worker *w, const rows *h)
{
    const state_layer *l = &w->run->kv->states[v->p.state.layer];
    int64_t n = v->ne[0], row = h->head * n + h->first;
    wkv7_args g = { .rows = h->count, .n = n };
    FOR_RUNS(w, {
        g.s = bring(l->s, l->s_row, run, row * n, h->count * n);
        for (int i = 0; i < run->count && !(i % POLL == 0 && worker_stopped(w)); i++) {
            int64_t t = run->tokens[i];
            g.v = head_at(v->src[0], w, t, h->head) + h->first;
            g.y = head_at(v, w, t, h->head) + h->first;
            g.r = head_at(v->src[1], w, t, h->head);
            g.k = head_at(v->src[2], w, t, h->head);
            g.w = head_at(v->src[3], w, t, h->head);
            g.kk = head_at(v->src[4], w, t, h->head);
            g.ka = head_at(v->src[5], w, t, h->head);
            w->run->k->wkv7(&g);
        }
    })
}

void run_wkv7(const step *s, worker *w)
{
    range r = range_of(row_values(s->v), ROWS_AT_ONCE, w->ith, w->nth);
    rows h;
    for (int64_t at = r.first; next_rows(&at, min64(at + ROWS_AT_ONCE, r.last), s->v->ne[0], &h);) wkv7_rows(s->v, w, &h);
}

/* Whole heads: the keys of a head are summed. */
void run_wkv6(const step *s, worker *w)
{
    const value *v = s->v;
    const state_layer *l = &w->run->kv->states[v->p.state.layer];
    const float *u = v->src[4] ? value_data(v->src[4], w) : NULL;
    int64_t n = v->ne[0];
    range heads = range_of(v->ne[1], 1, w->ith, w->nth);
    for (int64_t h = heads.first; h < heads.last; h++) {
        wkv6_args g = { .n = n, .u = u ? u + h * n : NULL };
        FOR_RUNS(w, {
            g.s = bring(l->s, l->s_row, run, h * n * n, n * n);
            for (int i = 0; i < run->count && !(i % POLL == 0 && worker_stopped(w)); i++) {
                int64_t t = run->tokens[i];
                g.v = head_at(v->src[0], w, t, h);
                g.y = head_at(v, w, t, h);
                g.r = head_at(v->src[1], w, t, h);
                g.k = head_at(v->src[2], w, t, h);
                g.w = head_at(v->src[3], w, t, h);
                w->run->k->wkv6(&g);
            }
        })
    }
}

/* Sums in the 16 lanes of every row sum. */
static float dot(const float *a, const float *b, int64_t n)
{
    float lane[16] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % 16] += a[i] * b[i];
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

void run_head_dot(const step *s, worker *w)
{
    const value *v = s->v;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++)
        for (int64_t h = 0; h < v->ne[1]; h++) {
            float d = dot(head_at(v->src[1], w, t, h), head_at(v->src[2], w, t, h), v->ne[0]);
            w->run->k->scale(head_at(v, w, t, h), head_at(v->src[0], w, t, h), d, v->ne[0]);
        }
}
