/* penalties.c - the history of tokens, and the stages that lower the logits of tokens found in it. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sample/sample.h"

/* ---- history: an array that is moved to its front when it holds twice the window ---- */

loam_status history_push(smp_history *h, int32_t id, loam_error *err)
{
    if (h->window == 0) return LOAM_OK;
    if (h->n >= 2 * h->window) {
        memmove(h->ids, h->ids + h->n - h->window, h->window * sizeof *h->ids);
        h->n = h->window;
    }
    if (!mem_grow(&h->ids, &h->cap, h->n + 1, sizeof *h->ids, 2 * h->window))
        return fail_nomem(err, "the history of a sampler", (h->n + 1) * sizeof *h->ids);
    h->ids[h->n++] = id;
    return LOAM_OK;
}

size_t history_last(const smp_history *h, int32_t last_n, const int32_t **ids)
{
    size_t n = last_n < 0 ? SMP_HISTORY_MAX : (size_t)last_n;
    if (n > h->n) n = h->n;
    if (n > h->window) n = h->window;
    *ids = n ? h->ids + (h->n - n) : NULL;
    return n;
}

/* ---- a small map from token to a number, rebuilt at each use ---- */

static loam_status tally_begin(loam_sampler *s, size_t most, loam_error *err)
{
    size_t size = 64;
    while (size < 2 * most) size *= 2;
    if (!mem_grow(&s->tally, &s->tally_cap, size, sizeof *s->tally, 4 * (size_t)SMP_HISTORY_MAX))
        return fail_nomem(err, "token counts of a sampler", size * sizeof *s->tally);
    s->tally_used = size;
    for (size_t i = 0; i < size; i++) s->tally[i] = (smp_tally){ -1, 0 };
    return LOAM_OK;
}

static int32_t *tally_at(loam_sampler *s, int32_t id)
{
    size_t mask = s->tally_used - 1, i = (uint32_t)id * 0x9E3779B1u & mask;
    while (s->tally[i].id != id && s->tally[i].id != -1) i = (i + 1) & mask;
    s->tally[i].id = id;
    return &s->tally[i].value;
}

/* ---- stages ---- */

loam_status smp_penalties(loam_sampler *s, loam_error *err)
{
    const int32_t *ids;
    size_t n = history_last(&s->history, s->p.penalty_last_n, &ids);
    if (n == 0) return LOAM_OK;
    loam_status status = tally_begin(s, n, err);
    if (status == LOAM_OK) status = set_modify(&s->set, err);
    if (status != LOAM_OK) return status;
    for (size_t i = 0; i < n; i++) ++*tally_at(s, ids[i]);
    for (size_t i = 0; i < s->tally_used; i++) {
        const float *logit = s->tally[i].id < 0 ? NULL : set_logit(&s->set, s->tally[i].id);
        if (!logit) continue;
        double x = *logit > 0 ? *logit / (double)s->p.penalty_repeat : *logit * (double)s->p.penalty_repeat;
        x -= s->tally[i].value * (double)s->p.penalty_freq + s->p.penalty_present;
        set_change(&s->set, s->tally[i].id, to_finite(x));
    }
    return LOAM_OK;
}

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Positions counted back from the newest token: t(0) is the newest. */
#define T(i) ids[n - 1 - (i)]

/* z[i] = how many tokens agree between the end of the history and the text that ends i tokens earlier, at most `most`; the
 * Z algorithm (Gusfield 1997, section 1.3) on the reversed history, linear in n. */
static void match_lengths(const int32_t *ids, size_t n, int32_t most, int32_t *z)
{
    size_t left = 0, right = 0; /* the match that reaches farthest: t(left..right) = t(0..right-left) */
    z[0] = 0;
    for (size_t i = 1; i < n; i++) {
        size_t k = 0;
        if (i < right) {
            k = (size_t)z[i - left];
            if (k > right - i) k = right - i;
        }
        while (i + k < n && T(k) == T(i + k)) k++;
        if (i + k > right) {
            left = i;
            right = i + k;
        }
        z[i] = (int32_t)k;
    }
    for (size_t i = 1; i < n; i++)
        if (z[i] > most) z[i] = most;
}

/* DRY ("don't repeat yourself"): a token that would prolong a repetition of at least allowed_length tokens loses
 * multiplier * base^(length - allowed_length), with the longest repetition that it would prolong. */
loam_status smp_dry(loam_sampler *s, loam_error *err)
{
    const int32_t *ids;
    size_t n = history_last(&s->history, s->p.dry_last_n, &ids);
    int32_t allowed = s->p.dry_allowed_length;
    if (n < 2 || n <= (size_t)allowed) return LOAM_OK;
    size_t most = 0; /* a repetition ends at the newest breaker */
    while (most < n && !(s->p.n_dry_breakers && bsearch(&T(most), s->breakers, s->p.n_dry_breakers, sizeof *ids, by_id))) most++;
    if (most < (size_t)allowed) return LOAM_OK;

    if (!mem_grow(&s->z, &s->z_cap, n, sizeof *s->z, SMP_HISTORY_MAX))
        return fail_nomem(err, "repetition lengths of a sampler", n * sizeof *s->z);
    loam_status status = tally_begin(s, n, err);
    if (status == LOAM_OK) status = set_modify(&s->set, err);
    if (status != LOAM_OK) return status;

    match_lengths(ids, n, (int32_t)most, s->z);
    for (size_t i = 1; i < n; i++) {
        if (s->z[i] < allowed) continue;
        int32_t *longest = tally_at(s, T(i - 1));
        if (s->z[i] + 1 > *longest) *longest = s->z[i] + 1; /* 0 stays "none" */
    }
    for (size_t i = 0; i < s->tally_used; i++) {
        const smp_tally *t = &s->tally[i];
        const float *logit = t->id < 0 || t->value == 0 ? NULL : set_logit(&s->set, t->id);
        if (!logit) continue;
        set_change(&s->set, t->id, to_finite(*logit - s->p.dry_multiplier * pow(s->p.dry_base, t->value - 1 - allowed)));
    }
    return LOAM_OK;
}
