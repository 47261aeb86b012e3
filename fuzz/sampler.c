/* sampler.c - fuzz target: parameters, tokens and logits from bytes. Whatever they are, a sampler is refused or gives a token
 * of the vocabulary whose logit is not -infinity, with probabilities that sum to one.
 *
 *     bytes: [ parameters, field by field ][ n_vocab ][ rounds: tokens accepted, then logits ] */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loam/sampler.h"

typedef struct bytes {
    const uint8_t *p, *end;
} bytes;

static void take(bytes *b, void *to, size_t n)
{
    memset(to, 0, n);
    size_t have = (size_t)(b->end - b->p);
    memcpy(to, b->p, have < n ? have : n);
    b->p += have < n ? have : n;
}

static uint8_t byte(bytes *b)
{
    uint8_t v;
    take(b, &v, 1);
    return v;
}

/* Mostly usual values, sometimes any bits. */
static float number(bytes *b, float usual)
{
    uint8_t how = byte(b);
    float v = usual;
    if (how < 64) take(b, &v, sizeof v);
    else if (how < 160) v = (float)(how - 64) / 48;
    return v;
}

static int32_t integer(bytes *b, int32_t usual)
{
    uint8_t how = byte(b);
    int32_t v = usual;
    if (how < 32) take(b, &v, sizeof v);
    else if (how < 160) v = how - 40;
    return v;
}

static void require(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void parameters(bytes *b, loam_sampler_params *p)
{
    float *floats[] = {
        &p->temp,         &p->dynatemp_range,  &p->dynatemp_exponent, &p->top_p,         &p->min_p,
        &p->typical_p,    &p->top_n_sigma,     &p->xtc_probability,   &p->xtc_threshold, &p->penalty_repeat,
        &p->penalty_freq, &p->penalty_present, &p->dry_multiplier,    &p->dry_base,      &p->mirostat_tau,
        &p->mirostat_eta, &p->adaptive_target, &p->adaptive_decay,
    };
    int32_t *integers[] = {
        &p->top_k, &p->min_keep, &p->n_probs, &p->penalty_last_n, &p->dry_allowed_length, &p->dry_last_n, &p->mirostat_m,
    };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) *floats[i] = number(b, *floats[i]);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) *integers[i] = integer(b, *integers[i]);
    p->mirostat = byte(b) < 200 ? 0 : byte(b) % 4;
    p->seed = byte(b);
}

static void check(const loam_sampler *s, const float *logits, int32_t n, int32_t id)
{
    const loam_token_prob *probs;
    size_t count = loam_sampler_probs(s, &probs);
    double sum = 0;
    require(id >= 0 && id < n, "an id outside the vocabulary");
    require(logits[id] > -INFINITY, "a token that cannot be chosen");
    for (size_t i = 0; i < count; i++) {
        require(probs[i].id >= 0 && probs[i].id < n, "a candidate outside the vocabulary");
        require(probs[i].p >= 0 && probs[i].p <= 1.00001f, "a probability outside 0..1");
        require(i == 0 || probs[i].logit <= probs[i - 1].logit, "candidates out of order");
        sum += probs[i].p;
    }
    require(sum < 1.001, "probabilities sum to more than 1");
    require(count < (size_t)n || sum > 0.999, "probabilities sum to less than 1");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes b = { data, data + size };
    loam_sampler_params p = loam_sampler_defaults();
    loam_logit_bias bias[2];
    int32_t breakers[2] = { byte(&b), byte(&b) };
    char order[12] = LOAM_SAMPLER_ORDER;
    parameters(&b, &p);
    if (byte(&b) < 100) {
        take(&b, order, 1 + byte(&b) % 10);
        order[11] = 0;
        p.order = order;
    }
    for (int i = 0; i < 2; i++) bias[i] = (loam_logit_bias){ integer(&b, 1), number(&b, 1) };
    if (byte(&b) < 100) p.logit_bias = bias, p.n_logit_bias = 2;
    if (byte(&b) < 100) p.dry_breakers = breakers, p.n_dry_breakers = 2;

    loam_error err;
    loam_sampler *s = NULL, *copy = NULL;
    if (loam_sampler_new(&s, &p, &err) != LOAM_OK) {
        require(s == NULL && err.message[0], "a refusal without a message");
        return 0;
    }
    int32_t n = 1 + byte(&b) + (byte(&b) < 40 ? 37 * byte(&b) : 0);
    float *logits = malloc((size_t)n * sizeof *logits);
    uint8_t kind = byte(&b);
    for (int32_t i = 0; logits && i < n; i++)
        logits[i] = kind < 80 ? number(&b, (float)(i % 13)) : (float)((i * 2654435761u >> 16 & 0xFF) / 16);
    while (logits && b.p < b.end) {
        int32_t id = -1;
        for (int i = byte(&b) % 32; i > 0; i--) loam_sampler_accept(s, integer(&b, i % 3), &err);
        loam_status status = loam_sampler_sample(s, logits, n, &id, &err);
        if (status == LOAM_OK) check(s, logits, n, id);
        else require(id == -1 && err.message[0] && (status == LOAM_E_NUMERIC || status == LOAM_E_ARG), "an odd failure");
        if (!copy && byte(&b) < 40) loam_sampler_clone(&copy, s, &err);
        if (byte(&b) < 20) loam_sampler_reset(s);
    }
    free(logits);
    loam_sampler_free(s);
    loam_sampler_free(copy);
    return 0;
}
