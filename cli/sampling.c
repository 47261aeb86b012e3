/* sampling.c - a sampler as the options want it. Refuses options that would have no effect. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* An option that matters only together with another. */
static const struct {
    option_id id, with[3];
} dependent[] = {
    { OPT_MIROSTAT_ENT, { OPT_MIROSTAT, OPT_COUNT, OPT_COUNT } },
    { OPT_MIROSTAT_LR, { OPT_MIROSTAT, OPT_COUNT, OPT_COUNT } },
    { OPT_DRY_BASE, { OPT_DRY_MULTIPLIER, OPT_COUNT, OPT_COUNT } },
    { OPT_DRY_ALLOWED_LENGTH, { OPT_DRY_MULTIPLIER, OPT_COUNT, OPT_COUNT } },
    { OPT_DRY_LAST_N, { OPT_DRY_MULTIPLIER, OPT_COUNT, OPT_COUNT } },
    { OPT_DRY_BREAKER, { OPT_DRY_MULTIPLIER, OPT_COUNT, OPT_COUNT } },
    { OPT_XTC_THRESHOLD, { OPT_XTC_PROBABILITY, OPT_COUNT, OPT_COUNT } },
    { OPT_DYNATEMP_EXP, { OPT_DYNATEMP_RANGE, OPT_COUNT, OPT_COUNT } },
    { OPT_ADAPTIVE_DECAY, { OPT_ADAPTIVE_TARGET, OPT_COUNT, OPT_COUNT } },
    { OPT_REPEAT_LAST_N, { OPT_REPEAT_PENALTY, OPT_PRESENCE_PENALTY, OPT_FREQUENCY_PENALTY } },
};

/* What mirostat replaces. */
static const option_id truncations[] = {
    OPT_TOP_K,           OPT_TOP_P,           OPT_MIN_P,    OPT_TYPICAL,  OPT_TOP_N_SIGMA,
    OPT_XTC_PROBABILITY, OPT_ADAPTIVE_TARGET, OPT_MIN_KEEP, OPT_SAMPLERS, OPT_SAMPLING_SEQ,
};

static int check_together(const options *o)
{
    char name[32];
    for (size_t i = 0; i < sizeof dependent / sizeof *dependent; i++) {
        bool with = false;
        for (int k = 0; k < 3; k++) with |= dependent[i].with[k] != OPT_COUNT && opt_given(o, dependent[i].with[k]);
        if (!opt_given(o, dependent[i].id) || with) continue;
        memcpy(name, option_shown_name(dependent[i].id), sizeof name);
        return say_usage(o, "%s has an effect only together with %s", name, option_shown_name(dependent[i].with[0]));
    }
    if (opt_int(o, OPT_MIROSTAT))
        for (size_t i = 0; i < sizeof truncations / sizeof *truncations; i++)
            if (opt_given(o, truncations[i]))
                return say_usage(o, "%s has no effect with --mirostat", option_shown_name(truncations[i]));
    if (opt_given(o, OPT_SAMPLERS) && opt_given(o, OPT_SAMPLING_SEQ))
        return say_usage(o, "give either --samplers or --sampling-seq");
    return EXIT_DONE;
}

/* ---- logit bias ---- */

typedef struct biases {
    loam_logit_bias *items;
    size_t n;
} biases;

static void add_bias(biases *b, int32_t id, float bias)
{
    b->items = need(realloc(b->items, (b->n + 1) * sizeof *b->items));
    b->items[b->n++] = (loam_logit_bias){ id, bias };
}

/* "15043+1.5", "15043-inf" */
static int read_bias(const options *o, const session *s, const char *text, biases *b)
{
    char *end, *after;
    long long id = strtoll(text, &end, 10);
    double bias = (*end == '+' || *end == '-') && end > text ? strtod(end, &after) : NAN;
    if (isnan(bias) || *after || bias > 3.4e38)
        return say_usage(o, "--logit-bias %s: must be an id, then + or - and a number, such as 15043-1.5 or 15043-inf", text);
    if (id < 0 || id >= s->n_vocab)
        return say_usage(o, "--logit-bias %s: the vocabulary has the tokens 0 to %d", text, s->n_vocab - 1);
    add_bias(b, (int32_t)id, bias < -3.4e38 ? -INFINITY : (float)bias);
    return EXIT_DONE;
}

static int collect_biases(const options *o, const session *s, biases *b)
{
    for (int i = 0; i < o->n_list; i++) {
        int code = o->list_of[i] == OPT_LOGIT_BIAS ? read_bias(o, s, o->list[i], b) : EXIT_DONE;
        if (code != EXIT_DONE) return code;
    }
    size_t n = 0;
    const loam_token *never = loam_tokenizer_suppressed(s->tokenizer, &n);
    for (size_t i = 0; i < n; i++) add_bias(b, never[i], -INFINITY);
    for (int32_t id = 0; opt_given(o, OPT_IGNORE_EOS) && id < s->n_vocab; id++)
        if (loam_tokenizer_is_eog(s->tokenizer, id)) add_bias(b, id, -INFINITY);
    return EXIT_DONE;
}

/* ---- DRY's breakers: the tokens whose text holds one of the strings ---- */

typedef struct breakers {
    int32_t *ids;
    size_t n;
} breakers;

static void add_breakers(breakers *b, const session *s, const char *text, size_t len)
{
    if (len == 0) return;
    for (int32_t id = 0; id < s->n_vocab; id++) {
        char piece[1024];
        size_t n = 0;
        if (loam_tokenizer_piece(s->tokenizer, id, LOAM_DECODE_SPECIAL, piece, sizeof piece, &n, NULL) != LOAM_OK) continue;
        if (!memmem(piece, n, text, len)) continue;
        if ((b->n & (b->n - 1)) == 0) b->ids = need(realloc(b->ids, (b->n ? 2 * b->n : 1) * sizeof *b->ids));
        b->ids[b->n++] = id;
    }
}

static void collect_breakers(const options *o, const session *s, breakers *b)
{
    if (opt_num(o, OPT_DRY_MULTIPLIER) <= 0) return;
    if (!opt_given(o, OPT_DRY_BREAKER)) {
        const char *usual[] = { "\n", ":", "\"", "*" };
        for (int i = 0; i < 4; i++) add_breakers(b, s, usual[i], 1);
    }
    for (int i = 0; i < o->n_list; i++) {
        if (o->list_of[i] != OPT_DRY_BREAKER || strcmp(o->list[i], "none") == 0) continue;
        buffer text = { 0 };
        buffer_add(&text, o->list[i], strlen(o->list[i]));
        unescape(&text);
        add_breakers(b, s, text.data, text.len);
        buffer_free(&text);
    }
}

int sampler_from_options(loam_sampler **out, const options *o, const session *s)
{
    int code = check_together(o);
    if (code != EXIT_DONE) return code;
    loam_sampler_params p = loam_sampler_defaults();
    const struct {
        option_id id;
        float *to;
    } numbers[] = {
        { OPT_TEMP, &p.temp },
        { OPT_DYNATEMP_RANGE, &p.dynatemp_range },
        { OPT_DYNATEMP_EXP, &p.dynatemp_exponent },
        { OPT_TOP_P, &p.top_p },
        { OPT_MIN_P, &p.min_p },
        { OPT_TYPICAL, &p.typical_p },
        { OPT_TOP_N_SIGMA, &p.top_n_sigma },
        { OPT_XTC_PROBABILITY, &p.xtc_probability },
        { OPT_XTC_THRESHOLD, &p.xtc_threshold },
        { OPT_REPEAT_PENALTY, &p.penalty_repeat },
        { OPT_FREQUENCY_PENALTY, &p.penalty_freq },
        { OPT_PRESENCE_PENALTY, &p.penalty_present },
        { OPT_DRY_MULTIPLIER, &p.dry_multiplier },
        { OPT_DRY_BASE, &p.dry_base },
        { OPT_MIROSTAT_ENT, &p.mirostat_tau },
        { OPT_MIROSTAT_LR, &p.mirostat_eta },
        { OPT_ADAPTIVE_TARGET, &p.adaptive_target },
        { OPT_ADAPTIVE_DECAY, &p.adaptive_decay },
    };
    const struct {
        option_id id;
        int32_t *to;
    } integers[] = {
        { OPT_TOP_K, &p.top_k },
        { OPT_MIN_KEEP, &p.min_keep },
        { OPT_REPEAT_LAST_N, &p.penalty_last_n },
        { OPT_DRY_ALLOWED_LENGTH, &p.dry_allowed_length },
        { OPT_DRY_LAST_N, &p.dry_last_n },
        { OPT_MIROSTAT, &p.mirostat },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i].to = (float)opt_num(o, numbers[i].id);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) *integers[i].to = (int32_t)opt_int(o, integers[i].id);
    p.seed = (uint32_t)opt_int(o, OPT_SEED);
    p.order = opt_given(o, OPT_SAMPLERS) ? opt_text(o, OPT_SAMPLERS) : opt_text(o, OPT_SAMPLING_SEQ);
    biases bias = { 0 };
    breakers brk = { 0 };
    code = collect_biases(o, s, &bias);
    if (code == EXIT_DONE) {
        collect_breakers(o, s, &brk);
        p.logit_bias = bias.items, p.n_logit_bias = bias.n;
        p.dry_breakers = brk.ids, p.n_dry_breakers = brk.n;
        loam_error err;
        loam_status status = loam_sampler_new(out, &p, &err);
        if (status != LOAM_OK) code = status == LOAM_E_ARG ? say_usage(o, "%s", err.message) : say_error(o, &err);
    }
    free(bias.items);
    free(brk.ids);
    return code;
}
