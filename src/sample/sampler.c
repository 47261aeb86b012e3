/* sampler.c - a sampler's life, the run of its chain, and the draw. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/os.h"
#include "sample/sample.h"

/* ---- life ---- */

static int by_id(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static size_t window_of(bool wanted, int32_t last_n) { return !wanted ? 0 : last_n < 0 ? SMP_HISTORY_MAX : (size_t)last_n; }

/* Copies the arrays of p, which belong to somebody else, into s. */
static loam_status own_arrays(loam_sampler *s, const loam_sampler_params *p, loam_error *err)
{
    s->p.order = NULL;
    s->p.logit_bias = NULL;
    s->p.dry_breakers = NULL;
    s->bias = mem_alloc_array(p->n_logit_bias, sizeof *s->bias);
    s->breakers = mem_alloc_array(p->n_dry_breakers, sizeof *s->breakers);
    s->probs = mem_alloc_array((size_t)p->n_probs, sizeof *s->probs);
    if (!s->bias || !s->breakers || !s->probs) return fail_nomem(err, "a sampler", sizeof *s);
    if (p->n_logit_bias) memcpy(s->bias, p->logit_bias, p->n_logit_bias * sizeof *s->bias);
    if (p->n_dry_breakers) memcpy(s->breakers, p->dry_breakers, p->n_dry_breakers * sizeof *s->breakers);
    qsort(s->breakers, p->n_dry_breakers, sizeof *s->breakers, by_id);
    return LOAM_OK;
}

void loam_sampler_reset(loam_sampler *s)
{
    s->rng = s->seed;
    s->history.n = 0;
    s->mu = to_finite(2.0 * s->p.mirostat_tau);
    s->adaptive_weight = 1 / (1 - (double)s->p.adaptive_decay);
    s->adaptive_sum = s->p.adaptive_target * s->adaptive_weight;
    s->drawn = -1;
    s->n_probs = 0;
}

loam_status loam_sampler_new(loam_sampler **out, const loam_sampler_params *params, loam_error *err)
{
    loam_sampler_params p = loam_sampler_defaults();
    if (params) {
        if (params->struct_size < sizeof(size_t) || params->struct_size > sizeof p)
            return fail(err, LOAM_E_ARG, "sampler parameters: struct_size %zu; start from loam_sampler_defaults()",
                        params->struct_size);
        memcpy(&p, params, params->struct_size);
    }
    loam_status status = smp_check_params(&p, err);
    if (status != LOAM_OK) return status;
    loam_sampler *s = mem_zalloc(sizeof *s);
    if (!s) return fail_nomem(err, "a sampler", sizeof *s);
    s->p = p;
    status = smp_build_chain(s, p.order, err);
    if (status == LOAM_OK) status = own_arrays(s, &p, err);
    if (status != LOAM_OK) {
        loam_sampler_free(s);
        return status;
    }
    s->seed = p.seed;
    while (s->seed == LOAM_SEED_RANDOM) s->seed = (uint32_t)os_random_u64();
    for (int i = 0; i < s->n_chain; i++) {
        size_t pen = window_of(s->chain[i]->apply == smp_penalties, p.penalty_last_n);
        size_t dry = window_of(s->chain[i]->apply == smp_dry, p.dry_last_n);
        if (pen > s->history.window) s->history.window = pen;
        if (dry > s->history.window) s->history.window = dry;
    }
    loam_sampler_reset(s);
    *out = s;
    return LOAM_OK;
}

loam_status loam_sampler_clone(loam_sampler **out, const loam_sampler *from, loam_error *err)
{
    loam_sampler *s = mem_zalloc(sizeof *s);
    if (!s) return fail_nomem(err, "a sampler", sizeof *s);
    loam_sampler_params p = from->p;
    p.logit_bias = from->bias;
    p.dry_breakers = from->breakers;
    *s = *from;
    s->set = (smp_set){ 0 };
    s->history = (smp_history){ .window = from->history.window };
    s->tally = NULL;
    s->z = NULL;
    s->tally_cap = s->tally_used = s->z_cap = 0;
    loam_status status = own_arrays(s, &p, err);
    if (status == LOAM_OK && from->history.n) {
        if (mem_grow(&s->history.ids, &s->history.cap, from->history.n, sizeof(int32_t), 2 * s->history.window)) {
            memcpy(s->history.ids, from->history.ids, from->history.n * sizeof(int32_t));
            s->history.n = from->history.n;
        } else {
            status = fail_nomem(err, "the history of a sampler", from->history.n * sizeof(int32_t));
        }
    }
    if (status != LOAM_OK) {
        loam_sampler_free(s);
        return status;
    }
    memcpy(s->probs, from->probs, from->n_probs * sizeof *s->probs);
    *out = s;
    return LOAM_OK;
}

void loam_sampler_free(loam_sampler *s)
{
    if (!s) return;
    mem_free(s->bias);
    mem_free(s->breakers);
    mem_free(s->probs);
    mem_free(s->history.ids);
    mem_free(s->tally);
    mem_free(s->z);
    set_free(&s->set);
    mem_free(s);
}

/* ---- the chain ---- */

static loam_status apply_bias(loam_sampler *s, loam_error *err)
{
    if (s->p.n_logit_bias == 0) return LOAM_OK;
    for (size_t i = 0; i < s->p.n_logit_bias; i++)
        if (s->bias[i].id >= s->set.n_vocab)
            return fail(err, LOAM_E_ARG, "logit_bias: token %d is outside the vocabulary of %d tokens", s->bias[i].id,
                        s->set.n_vocab);
    loam_status status = set_modify(&s->set, err);
    if (status != LOAM_OK) return status;
    for (size_t i = 0; i < s->p.n_logit_bias; i++) {
        const loam_logit_bias *b = &s->bias[i];
        const float *logit = set_logit(&s->set, b->id);
        if (logit) set_change(&s->set, b->id, b->bias == -INFINITY ? -INFINITY : to_finite((double)*logit + b->bias));
    }
    return LOAM_OK;
}

static loam_status run_chain(loam_sampler *s, const float *logits, int32_t n_vocab, loam_error *err)
{
    loam_status status = set_begin(&s->set, logits, n_vocab, err);
    if (status == LOAM_OK) status = apply_bias(s, err);
    if (status != LOAM_OK) return status;
    if (set_max(&s->set) == -INFINITY) return fail(err, LOAM_E_NUMERIC, "no token can be chosen: no logit is finite");
    for (int i = 0; i < s->n_chain && status == LOAM_OK; i++) status = s->chain[i]->apply(s, err);
    if (status == LOAM_OK) status = set_list(&s->set, err);
    if (status == LOAM_OK) set_softmax(&s->set);
    return status;
}

/* The candidate at a uniformly drawn point of the summed probabilities, in order of id. */
static const smp_cand *draw(loam_sampler *s)
{
    const smp_set *set = &s->set;
    double sum = 0, at;
    for (size_t i = 0; i < set->n; i++) sum += set->c[i].p;
    at = smp_uniform(s) * sum;
    const smp_cand *last = &set->c[0];
    for (size_t i = 0; i < set->n; i++) {
        if (set->c[i].p <= 0) continue;
        last = &set->c[i];
        at -= last->p;
        if (at < 0) break;
    }
    return last;
}

static int likeliest_first(const void *a, const void *b)
{
    const loam_token_prob *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Uses up the set: what is not among the n_probs likeliest is dropped. */
static loam_status keep_probs(loam_sampler *s, loam_error *err)
{
    if (s->p.n_probs == 0) return LOAM_OK;
    loam_status status = set_keep_top(&s->set, (size_t)s->p.n_probs, err);
    if (status != LOAM_OK) return status;
    s->n_probs = s->set.n;
    for (size_t i = 0; i < s->n_probs; i++) s->probs[i] = (loam_token_prob){ s->set.c[i].id, s->set.c[i].logit, s->set.c[i].p };
    qsort(s->probs, s->n_probs, sizeof *s->probs, likeliest_first);
    return LOAM_OK;
}

loam_status loam_sampler_sample(loam_sampler *s, const float *logits, int32_t n_vocab, int32_t *id, loam_error *err)
{
    uint64_t rng = s->rng;
    loam_status status = run_chain(s, logits, n_vocab, err);
    if (status != LOAM_OK) {
        s->rng = rng;
        return status;
    }
    const smp_cand *c = draw(s);
    *id = s->drawn = c->id;
    s->drawn_surprise = -log2f(c->p);
    s->drawn_before = c->u.before;
    return keep_probs(s, err);
}

loam_status loam_sampler_accept(loam_sampler *s, int32_t id, loam_error *err)
{
    if (id < 0) return fail(err, LOAM_E_ARG, "token %d is negative", id);
    loam_status status = history_push(&s->history, id, err);
    if (status == LOAM_OK) smp_learn(s, id);
    return status;
}

/* ---- getters ---- */

uint32_t loam_sampler_seed(const loam_sampler *s) { return s->seed; }

size_t loam_sampler_probs(const loam_sampler *s, const loam_token_prob **probs)
{
    *probs = s->probs;
    return s->n_probs;
}

size_t loam_sampler_describe(const loam_sampler *s, char *text, size_t capacity)
{
    size_t need = 0;
    const char *parts[SMP_STAGES_MAX + 2];
    int n = 0;
    if (s->p.n_logit_bias) parts[n++] = "bias";
    for (int i = 0; i < s->n_chain; i++) parts[n++] = s->chain[i]->name;
    parts[n++] = "draw";
    if (capacity) text[0] = 0;
    for (int i = 0; i < n; i++) {
        char piece[64];
        int len = snprintf(piece, sizeof piece, "%s%s", i ? " -> " : "", parts[i]);
        if (need < capacity) snprintf(text + need, capacity - need, "%s", piece);
        need += (size_t)len;
    }
    return need;
}
