/* loam/sampler.h - choosing the next token from logits.
 *
 * A sampler is a chain of stages with the state they need (recent tokens, generator, mirostat's estimate). It works on
 * plain arrays of logits and needs no model and no tokenizer:
 *
 *     logits [n_vocab] -> bias -> penalties -> dry -> top_n_sigma -> top_k -> typ_p -> top_p -> min_p -> xtc
 *                      -> temperature -> draw -> id
 *
 *     loam_sampler_params p = loam_sampler_defaults();
 *     p.seed = 42;
 *     loam_sampler *s;
 *     if (loam_sampler_new(&s, &p, &err) != LOAM_OK) ...
 *     for (;;) {
 *         int32_t id;
 *         if (loam_sampler_sample(s, logits, n_vocab, &id, &err) != LOAM_OK) ...
 *         loam_sampler_accept(s, id, &err);
 *     }
 *     loam_sampler_free(s);
 *
 * Ties are broken in favour of the lower id everywhere. With the same seed, parameters and logits the same tokens come out
 * on the same machine. A sampler belongs to one thread at a time; several samplers are independent of each other. */
#ifndef LOAM_SAMPLER_H
#define LOAM_SAMPLER_H

#include "loam/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_sampler loam_sampler;

#define LOAM_SEED_RANDOM 0xFFFFFFFFu /* take a seed from the system; loam_sampler_seed tells which */

/* The order of the chain unless another is given: one letter a stage. */
#define LOAM_SAMPLER_ORDER "edskypmxt"

typedef struct loam_logit_bias {
    int32_t id;
    float bias; /* added to the logit; finite, or -INFINITY: the token is never chosen */
} loam_logit_bias;

/* Parameters; always start from loam_sampler_defaults(). "Off" values make a stage do nothing. The arrays and the string
 * are copied by loam_sampler_new. All floats must be finite. */
typedef struct loam_sampler_params {
    size_t struct_size; /* sizeof(loam_sampler_params), filled by loam_sampler_defaults */
    const char *order;  /* stages in order of application: letters ("edskypmxt"), or names separated by ';' or ','.
                                e penalties, d dry, s top_n_sigma, k top_k, y typ_p, p top_p, m min_p, x xtc,
                                t temperature, a adaptive_p (last only). A stage left out is not applied, none twice. */
    uint32_t seed;      /* LOAM_SEED_RANDOM (default): from the system; every other value, 0 too, is a seed */
    int32_t min_keep;   /* 0; truncating stages keep at least so many tokens */
    int32_t n_probs;    /* 0; top candidates kept for loam_sampler_probs, at most LOAM_SAMPLER_PROBS_MAX */

    float temp;              /* 0.8; at most 0: the likeliest token (greedy) */
    float dynatemp_range;    /* 0 (off); temperature moves in temp +- range with the entropy of the candidates; >= 0 */
    float dynatemp_exponent; /* 1; > 0 */

    int32_t top_k;         /* 40; at most 0: off */
    float top_p;           /* 0.95; 1 and more: off; >= 0 */
    float min_p;           /* 0.05; 0: off; up to 1 */
    float typical_p;       /* 1 (off); >= 0 */
    float top_n_sigma;     /* -1 (off), also 0; keep logits within so many standard deviations of the largest */
    float xtc_probability; /* 0 (off); 0..1 */
    float xtc_threshold;   /* 0.1; above 0.5: off; 0..1 */

    int32_t penalty_last_n; /* 64; tokens looked back on, 0: off, -1: all since the start or reset */
    float penalty_repeat;   /* 1 (off); > 0: divides positive logits, multiplies negative ones, once a token */
    float penalty_freq;     /* 0 (off); subtracted once for each occurrence */
    float penalty_present;  /* 0 (off); subtracted once a token that occurred */

    float dry_multiplier;        /* 0 (off); >= 0 */
    float dry_base;              /* 1.75; >= 1: the penalty is multiplier * base^(length of the repeat - allowed_length) */
    int32_t dry_allowed_length;  /* 2; repeats shorter than this are free; >= 0 */
    int32_t dry_last_n;          /* 64; as penalty_last_n */
    const int32_t *dry_breakers; /* [n_dry_breakers] ids across which no repeat is counted; may be NULL */
    size_t n_dry_breakers;

    int32_t mirostat;   /* 0 (off), 1 or 2: then the chain is bias, penalties, dry, temperature, mirostat */
    float mirostat_tau; /* 5; target surprise in bits; >= 0 */
    float mirostat_eta; /* 0.1; learning rate; >= 0 */
    int32_t mirostat_m; /* 100; tokens used by version 1 to estimate the slope; >= 2 */

    float adaptive_target; /* -1 (off); 0..1: probability that chosen tokens should have on average */
    float adaptive_decay;  /* 0.9; 0..0.99: how long past choices count */

    const loam_logit_bias *logit_bias; /* [n_logit_bias]; applied first, several entries of one id add up */
    size_t n_logit_bias;
} loam_sampler_params;

#define LOAM_SAMPLER_PROBS_MAX 4096

/* The default parameters, struct_size filled. */
LOAM_API loam_sampler_params loam_sampler_defaults(void);

/* Builds a sampler; *out is set on success only and is freed with loam_sampler_free. params NULL means the defaults.
 * LOAM_E_ARG names the parameter that is out of range, LOAM_E_NOMEM. */
LOAM_API loam_status loam_sampler_new(loam_sampler **out, const loam_sampler_params *params, loam_error *err);

/* A copy with the same history, generator state and estimates: both go on with the same draws. */
LOAM_API loam_status loam_sampler_clone(loam_sampler **out, const loam_sampler *sampler, loam_error *err);

LOAM_API void loam_sampler_free(loam_sampler *sampler); /* NULL is fine */

/* Chooses a token from logits [n_vocab], which are not modified. Tells nothing to the history: call loam_sampler_accept with
 * the id that is really used. A logit that is NaN or infinite is never chosen. LOAM_E_NUMERIC: no logit is finite;
 * LOAM_E_ARG: n_vocab below 1 or above 2^24, or a biased id outside the vocabulary; LOAM_E_NOMEM. After a failure the
 * sampler is as before the call. */
LOAM_API loam_status loam_sampler_sample(loam_sampler *sampler, const float *logits, int32_t n_vocab, int32_t *id,
                                         loam_error *err);

/* Appends a token (of the prompt, or the one chosen) to the history that penalties, DRY, mirostat and adaptive-p look at.
 * Ids outside the vocabulary sampled from later are kept but have no effect. LOAM_E_ARG for a negative id, LOAM_E_NOMEM. */
LOAM_API loam_status loam_sampler_accept(loam_sampler *sampler, int32_t id, loam_error *err);

/* As just built: no history, the generator at the start of its seed (of the seed taken, where it was random). */
LOAM_API void loam_sampler_reset(loam_sampler *sampler);

/* The seed in use: the given one, or the one that was taken from the system. Giving it to a new sampler repeats the draws. */
LOAM_API uint32_t loam_sampler_seed(const loam_sampler *sampler);

typedef struct loam_token_prob {
    int32_t id;
    float logit; /* after the chain */
    float p;     /* probability of being drawn, 0..1 */
} loam_token_prob;

/* The likeliest candidates of the last successful loam_sampler_sample after the whole chain, likeliest first; at most n_probs
 * of the parameters. Returns their number, 0 before the first sample. *probs belongs to the sampler and is valid until its
 * next call. */
LOAM_API size_t loam_sampler_probs(const loam_sampler *sampler, const loam_token_prob **probs);

/* Writes the stages that will run, in order, as "bias -> top_k -> temperature -> draw" into text [capacity], always terminated;
 * returns the length that was needed without the terminator. */
LOAM_API size_t loam_sampler_describe(const loam_sampler *sampler, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
