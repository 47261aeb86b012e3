/* sample.h - the inside of a sampler: its candidate set and the stages that work on it.
 *
 * A set is in one of two states. Dense: logits[id] for the whole vocabulary, and the largest logit of each block of SET_BLOCK of
 * them; a truncation looks into the few blocks that matter. Listed: candidates c[0..n) in ascending order of id, none of them
 * -infinity. The first stage that needs it turns the first into the second; nothing ever sorts the vocabulary. */
#ifndef LOAM_SAMPLE_SAMPLE_H
#define LOAM_SAMPLE_SAMPLE_H

#include <stdbool.h>

#include "base/error.h"
#include "loam/sampler.h"

#define SET_BLOCK 64

typedef struct smp_cand {
    int32_t id;
    float logit;
    float p; /* after set_softmax */
    union {
        uint32_t key; /* order of a cut: larger stays longer */
        float before; /* adaptive-p: the probability before its change */
    } u;
} smp_cand;

typedef struct smp_set {
    const float *logits; /* [n_vocab] of the caller, or `work` once something was modified */
    float *work;
    size_t work_cap;
    int32_t n_vocab;
    float *block_max; /* [blocks] */
    size_t block_cap;
    float *heap; /* scratch of dense top-k */
    size_t heap_cap;
    bool dense;
    smp_cand *c;
    size_t n, cap;
} smp_set;

loam_status set_begin(smp_set *s, const float *logits, int32_t n_vocab, loam_error *err); /* NaN, +infinity: no candidates */
loam_status set_list(smp_set *s, loam_error *err);                                        /* dense -> listed, all tokens */
loam_status set_modify(smp_set *s, loam_error *err);                                      /* dense: makes logits writable */
const float *set_logit(const smp_set *s, int32_t id);                                     /* NULL: not a candidate */
void set_change(smp_set *s, int32_t id, float logit);                                     /* of a candidate; after set_modify */
float set_max(const smp_set *s);                                 /* largest logit; -INFINITY: no candidate */
loam_status set_keep_top(smp_set *s, size_t k, loam_error *err); /* the k largest logits */
loam_status set_keep_above(smp_set *s, double floor, size_t min_keep, loam_error *err); /* logit >= floor */
void set_softmax(smp_set *s);                                                           /* listed: fills p */
double set_entropy(const smp_set *s);                                                   /* listed, after softmax; in nats */
/* Listed, keys filled: keeps the candidates of the largest keys (ties: lower id) until there are min_keep of them and, where
 * by_p is set, their probabilities sum to `mass`. */
void set_cut(smp_set *s, bool by_p, double mass, size_t min_keep);
void set_free(smp_set *s);

/* Maps floats to unsigned integers of the same order; both zeros are equal. */
static inline uint32_t order_key(float x)
{
    union {
        float f;
        uint32_t u;
    } v = { x + 0.0f };
    return v.u >> 31 ? ~v.u : v.u | 0x80000000u;
}

/* The float nearest to x that is finite: nothing inside the chain may turn into an infinity or NaN. */
static inline float to_finite(double x)
{
    const double most = 3.4028234663852886e38;
    return (float)(x > most ? most : x < -most ? -most : x);
}

/* Recent tokens, oldest first; at most `window` of the last are of interest. */
typedef struct smp_history {
    int32_t *ids;
    size_t n, cap, window;
} smp_history;

typedef struct smp_tally { /* open addressing; id -1: free */
    int32_t id;
    int32_t value;
} smp_tally;

#define SMP_STAGES_MAX  16
#define SMP_HISTORY_MAX (1u << 20) /* "all tokens" ends here: a bound for memory and for the time of a call */

typedef loam_status smp_stage_fn(loam_sampler *s, loam_error *err);

typedef struct smp_stage {
    char letter;
    const char *name, *alias;
    smp_stage_fn *apply;
    bool (*active)(const loam_sampler_params *p);
} smp_stage;

struct loam_sampler {
    loam_sampler_params p;                  /* pointers are NULL or owned copies below */
    const smp_stage *chain[SMP_STAGES_MAX]; /* only active ones */
    int n_chain;
    loam_logit_bias *bias;
    int32_t *breakers; /* ascending */
    uint32_t seed;
    uint64_t rng; /* state of SplitMix64 */
    smp_history history;
    smp_set set;
    smp_tally *tally; /* scratch of penalties and DRY */
    size_t tally_cap, tally_used;
    int32_t *z; /* scratch of DRY */
    size_t z_cap;
    float mu; /* mirostat: largest surprise allowed now, in bits */
    double adaptive_sum, adaptive_weight;
    int32_t drawn;          /* id of the last draw, -1: none since the last accept or reset */
    float drawn_surprise;   /* bits */
    float drawn_before;     /* probability before adaptive-p */
    loam_token_prob *probs; /* [p.n_probs] */
    size_t n_probs;
};

/* params.c */
loam_status smp_check_params(const loam_sampler_params *p, loam_error *err);
loam_status smp_build_chain(loam_sampler *s, const char *order, loam_error *err);

/* rng.c: uniform in [0, 1) */
double smp_uniform(loam_sampler *s);

/* history.c, penalties.c */
loam_status history_push(smp_history *h, int32_t id, loam_error *err);
size_t history_last(const smp_history *h, int32_t last_n, const int32_t **ids); /* the last_n last ids, oldest first */
smp_stage_fn smp_penalties, smp_dry;

/* truncate.c, temperature.c, mirostat.c */
smp_stage_fn smp_top_n_sigma, smp_top_k, smp_typical, smp_top_p, smp_min_p, smp_xtc;
smp_stage_fn smp_temperature, smp_mirostat1, smp_mirostat2, smp_adaptive;
void smp_learn(loam_sampler *s, int32_t id); /* mirostat and adaptive-p, after a token was accepted */

#endif
