/* params.c - the parameters of a sampler: defaults, ranges, and the order of the chain as text. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sample/sample.h"

loam_sampler_params loam_sampler_defaults(void)
{
    return (loam_sampler_params){
        .struct_size = sizeof(loam_sampler_params),
        .order = LOAM_SAMPLER_ORDER,
        .seed = LOAM_SEED_RANDOM,
        .temp = 0.8f,
        .dynatemp_exponent = 1.0f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1.0f,
        .top_n_sigma = -1.0f,
        .xtc_threshold = 0.1f,
        .penalty_last_n = 64,
        .penalty_repeat = 1.0f,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_last_n = 64,
        .mirostat_tau = 5.0f,
        .mirostat_eta = 0.1f,
        .mirostat_m = 100,
        .adaptive_target = -1.0f,
        .adaptive_decay = 0.9f,
    };
}

/* ---- ranges ---- */

typedef struct range {
    const char *name;
    size_t at;
    bool is_float;
    double lo, hi;
} range;

#define F(field, lo, hi)                                           \
    {                                                              \
#field, offsetof(loam_sampler_params, field), true, lo, hi \
    }
#define I(field, lo, hi)                                            \
    {                                                               \
#field, offsetof(loam_sampler_params, field), false, lo, hi \
    }

static const range ranges[] = {
    F(temp, -FLT_MAX, FLT_MAX),
    F(dynatemp_range, 0, FLT_MAX),
    F(dynatemp_exponent, FLT_MIN, FLT_MAX),
    I(top_k, INT32_MIN, INT32_MAX),
    F(top_p, 0, FLT_MAX),
    F(min_p, 0, 1),
    F(typical_p, 0, FLT_MAX),
    F(top_n_sigma, -FLT_MAX, FLT_MAX),
    F(xtc_probability, 0, 1),
    F(xtc_threshold, 0, 1),
    I(penalty_last_n, -1, SMP_HISTORY_MAX),
    F(penalty_repeat, FLT_MIN, FLT_MAX),
    F(penalty_freq, -FLT_MAX, FLT_MAX),
    F(penalty_present, -FLT_MAX, FLT_MAX),
    F(dry_multiplier, 0, FLT_MAX),
    F(dry_base, 1, FLT_MAX),
    I(dry_allowed_length, 0, INT32_MAX),
    I(dry_last_n, -1, SMP_HISTORY_MAX),
    I(mirostat, 0, 2),
    F(mirostat_tau, 0, FLT_MAX),
    F(mirostat_eta, 0, FLT_MAX),
    I(mirostat_m, 2, SMP_HISTORY_MAX),
    F(adaptive_target, -FLT_MAX, 1),
    F(adaptive_decay, 0, 0.99f),
    I(min_keep, 0, INT32_MAX),
    I(n_probs, 0, LOAM_SAMPLER_PROBS_MAX),
};

static loam_status check_range(const loam_sampler_params *p, const range *r, loam_error *err)
{
    double v;
    if (r->is_float) {
        float x;
        memcpy(&x, (const char *)p + r->at, sizeof x);
        v = x;
    } else {
        int32_t x;
        memcpy(&x, (const char *)p + r->at, sizeof x);
        v = x;
    }
    if (v >= r->lo && v <= r->hi) return LOAM_OK;
    if (r->hi >= FLT_MAX && r->lo <= -FLT_MAX) return fail(err, LOAM_E_ARG, "%s %g: must be finite", r->name, v);
    if (r->hi >= FLT_MAX)
        return fail(err, LOAM_E_ARG, "%s %g: must be finite and %s", r->name, v,
                    r->lo == 0   ? "at least 0"
                    : r->lo == 1 ? "at least 1"
                                 : "above 0");
    if (r->lo <= -FLT_MAX) return fail(err, LOAM_E_ARG, "%s %g: must be finite and at most %g", r->name, v, r->hi);
    return fail(err, LOAM_E_ARG, "%s %g: must be %.10g to %.10g", r->name, v, r->lo, r->hi);
}

loam_status smp_check_params(const loam_sampler_params *p, loam_error *err)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        loam_status status = check_range(p, &ranges[i], err);
        if (status != LOAM_OK) return status;
    }
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        const loam_logit_bias *b = &p->logit_bias[i];
        if (b->id < 0) return fail(err, LOAM_E_ARG, "logit_bias: token %d is negative", b->id);
        if (isnan(b->bias) || b->bias > FLT_MAX)
            return fail(err, LOAM_E_ARG, "logit_bias of token %d: must be finite or -infinity", b->id);
    }
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        if (p->dry_breakers[i] < 0) return fail(err, LOAM_E_ARG, "dry_breakers: token %d is negative", p->dry_breakers[i]);
    return LOAM_OK;
}

/* ---- the chain ---- */

static bool has_penalties(const loam_sampler_params *p)
{
    return p->penalty_last_n != 0 && (p->penalty_repeat != 1 || p->penalty_freq != 0 || p->penalty_present != 0);
}
static bool has_dry(const loam_sampler_params *p) { return p->dry_multiplier > 0 && p->dry_last_n != 0; }
static bool has_sigma(const loam_sampler_params *p) { return p->top_n_sigma > 0; }
static bool has_top_k(const loam_sampler_params *p) { return p->top_k > 0; }
static bool has_typical(const loam_sampler_params *p) { return p->typical_p < 1; }
static bool has_top_p(const loam_sampler_params *p) { return p->top_p < 1; }
static bool has_min_p(const loam_sampler_params *p) { return p->min_p > 0; }
static bool has_xtc(const loam_sampler_params *p) { return p->xtc_probability > 0 && p->xtc_threshold <= 0.5f; }
static bool has_temperature(const loam_sampler_params *p) { return p->temp != 1 || p->dynatemp_range > 0; }
static bool has_adaptive(const loam_sampler_params *p) { return p->adaptive_target >= 0; }
static bool has_mirostat1(const loam_sampler_params *p) { return p->mirostat == 1; }
static bool has_mirostat2(const loam_sampler_params *p) { return p->mirostat == 2; }

#define ADAPTIVE  9
#define MIROSTAT1 10

static const smp_stage stages[] = {
    { 'e', "penalties", "penalty", smp_penalties, has_penalties },
    { 'd', "dry", NULL, smp_dry, has_dry },
    { 's', "top_n_sigma", "top-n-sigma", smp_top_n_sigma, has_sigma },
    { 'k', "top_k", "top-k", smp_top_k, has_top_k },
    { 'y', "typ_p", "typical", smp_typical, has_typical },
    { 'p', "top_p", "top-p", smp_top_p, has_top_p },
    { 'm', "min_p", "min-p", smp_min_p, has_min_p },
    { 'x', "xtc", NULL, smp_xtc, has_xtc },
    { 't', "temperature", "temp", smp_temperature, has_temperature },
    { 'a', "adaptive_p", "adaptive-p", smp_adaptive, has_adaptive },
    { 0, "mirostat", NULL, smp_mirostat1, has_mirostat1 },
    { 0, "mirostat_v2", NULL, smp_mirostat2, has_mirostat2 },
};

static const smp_stage *by_letter(char c)
{
    for (int i = 0; i <= ADAPTIVE; i++)
        if (stages[i].letter == c) return &stages[i];
    return NULL;
}

static bool same(const char *name, const char *text, size_t n) { return name && strlen(name) == n && memcmp(name, text, n) == 0; }

static const smp_stage *by_name(const char *text, size_t n)
{
    for (int i = 0; i <= ADAPTIVE; i++)
        if (same(stages[i].name, text, n) || same(stages[i].alias, text, n)) return &stages[i];
    return NULL;
}

typedef struct chain_builder {
    loam_sampler *s;
    unsigned seen;
    bool ended;
} chain_builder;

static loam_status add_stage(chain_builder *b, const smp_stage *stage, loam_error *err)
{
    unsigned bit = 1u << (stage - stages);
    if (b->seen & bit) return fail(err, LOAM_E_ARG, "sampler order: %s is named twice", stage->name);
    if (b->ended) return fail(err, LOAM_E_ARG, "sampler order: adaptive_p must be the last stage");
    b->seen |= bit;
    b->ended = stage == &stages[ADAPTIVE];
    if (stage->active(&b->s->p)) b->s->chain[b->s->n_chain++] = stage;
    return LOAM_OK;
}

static loam_status add_ordered(chain_builder *b, const char *order, loam_error *err)
{
    /* One word without separators that is no name is a row of letters. */
    size_t n = strlen(order);
    bool letters = !strpbrk(order, ";,") && !by_name(order, n);
    for (size_t at = 0; at < n;) {
        size_t len = letters ? 1 : strcspn(order + at, ";,");
        const smp_stage *stage = letters ? by_letter(order[at]) : by_name(order + at, len);
        if (!stage)
            return fail(err, LOAM_E_ARG,
                        "sampler order: '%.*s' is no stage; letters are e d s k y p m x t a, names penalties dry "
                        "top_n_sigma top_k typ_p top_p min_p xtc temperature adaptive_p",
                        len > 40 ? 40 : (int)len, order + at);
        loam_status status = add_stage(b, stage, err);
        if (status != LOAM_OK) return status;
        at += len + (letters ? 0 : 1);
    }
    if (b->s->p.adaptive_target >= 0 && !b->ended) return add_stage(b, &stages[ADAPTIVE], err);
    return LOAM_OK;
}

loam_status smp_build_chain(loam_sampler *s, const char *order, loam_error *err)
{
    chain_builder b = { s, 0, false };
    s->n_chain = 0;
    loam_status status = add_ordered(&b, order ? order : LOAM_SAMPLER_ORDER, err);
    if (status != LOAM_OK || s->p.mirostat == 0) return status;
    /* Mirostat does its own truncation: what raises and lowers logits stays, the rest gives way. */
    const char *fixed = "edt";
    s->n_chain = 0;
    for (int i = 0; fixed[i]; i++) {
        const smp_stage *stage = by_letter(fixed[i]);
        if (stage->active(&s->p)) s->chain[s->n_chain++] = stage;
    }
    s->chain[s->n_chain++] = &stages[MIROSTAT1 + s->p.mirostat - 1];
    return LOAM_OK;
}
