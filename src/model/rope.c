/* rope.c - rotary scaling.
 *
 * Linear (Chen et al. 2023): all angles times freq_scale = 1/s. NTK: a changed base. YaRN (Peng et al. 2023): angles of
 * pairs that turn less than beta_slow times within the original context O are interpolated, those above beta_fast kept, with a
 * ramp over the pairs between; cos and sin grow by 1 + 0.1 ln s. LongRoPE (Ding et al. 2024): a table of divisors, one for
 * sequences within O and one for longer ones. */
#include "model/rope.h"

#include "base/mathd.h"

#define PI 3.14159265358979323846

typedef struct scaling {
    double base, freq_scale, ext, af, beta_fast, beta_slow, n_original;
} scaling;

/* The usual YaRN magnitude for scaling s: 1 + 0.1 k ln s, 1 where nothing is stretched. */
static double magnitude(double ln_s, double k) { return ln_s <= 0 ? 1 : 1 + 0.1 * k * ln_s; }

/* Attention factor af; the magnitude of the angles then is af (1 + 0.1 ln s). */
static double attention_factor(const loam_model *m, const build_params *p, double ext, double ln_s)
{
    const rope_facts *r = &m->hp.rope;
    unsigned yarn = m->spec.rope.yarn;
    double l = r->yarn_log, af;
    if (ext == 0) af = p->yarn_attn_factor >= 0 ? p->yarn_attn_factor : r->yarn_attn;
    else if (l == 0) af = magnitude(ln_s, 1) / (1 + 0.1 * ln_s);
    else af = magnitude(ln_s, yarn & YARN_LOG_TENTH ? l : 1) / magnitude(ln_s, l) / (1 + 0.1 * ln_s);
    return af * r->magnitude;
}

static scaling resolve(const loam_model *m, const build_params *p)
{
    const rope_facts *r = &m->hp.rope;
    int type = p->rope_scaling >= 0 ? p->rope_scaling : (int)r->scaling;
    scaling s = { .base = r->base, .n_original = r->n_original, .beta_fast = r->beta_fast, .beta_slow = r->beta_slow };
    s.freq_scale = r->scaling == ROPE_SCALING_NONE ? 1 : 1.0 / r->factor;
    if (!m->spec.rope.plain) {
        if (p->rope_freq_base > 0) s.base = p->rope_freq_base;
        if (p->rope_freq_scale > 0) s.freq_scale = p->rope_freq_scale;
    }
    if (type == ROPE_SCALING_NONE) s.freq_scale = 1;
    s.ext = p->yarn_ext_factor >= 0 ? p->yarn_ext_factor : r->yarn_ext >= 0 ? r->yarn_ext : type == ROPE_SCALING_YARN;
    if (m->spec.rope.plain) s.ext = 0;
    if (p->yarn_orig_ctx > 0) s.n_original = p->yarn_orig_ctx;
    if (p->yarn_beta_fast >= 0) s.beta_fast = p->yarn_beta_fast;
    if (p->yarn_beta_slow >= 0) s.beta_slow = p->yarn_beta_slow;
    s.af = m->spec.rope.plain ? 1 : attention_factor(m, p, s.ext, -mathd_ln(s.freq_scale));
    return s;
}

/* The pair, as a real number, that turns n times within the original context. */
static double pair_turning(const scaling *s, int n_rot, double n)
{
    if (n <= 0) n = 1e-9;
    return n_rot * mathd_ln(s->n_original / (n * 2 * PI)) / (2 * mathd_ln(s->base));
}

static rope_params params_of(const hparams *h, const scaling *s)
{
    rope_params r = {
        .kind = h->rope.kind, .n_rot = (int)SYM(h->sym, R), .base = (float)s->base, .freq_scale = (float)s->freq_scale,
        .ext_factor = (float)s->ext, .magnitude = (float)s->af,
        .sections = { h->rope.sections[0], h->rope.sections[1], h->rope.sections[2], h->rope.sections[3] },
    };
    if (s->ext == 0) return r;
    double lo = __builtin_floor(pair_turning(s, r.n_rot, s->beta_fast));
    double hi = __builtin_ceil(pair_turning(s, r.n_rot, s->beta_slow));
    r.ramp_low = (float)(lo > 0 ? lo : 0);
    r.ramp_high = (float)(hi < r.n_rot - 1 ? hi : r.n_rot - 1);
    r.magnitude = (float)(s->af * (1 - 0.1 * mathd_ln(s->freq_scale)));
    return r;
}

static scaling window_scaling(const loam_model *m, const scaling *full)
{
    const rope_facts *r = &m->hp.rope;
    scaling s = *full;
    switch (m->spec.rope.window) {
    case WINDOW_BASE_SAME: break;
    case WINDOW_BASE_TRAINED:
        s.base = r->base_window;
        s.freq_scale = r->scaling == ROPE_SCALING_NONE ? 1 : 1.0 / r->factor;
        break;
    case WINDOW_BASE_10000:
        s.base = r->base_window;
        s.freq_scale = 1;
        break;
    case WINDOW_BASE_PLAIN:
        s.base = r->base;
        s.freq_scale = s.af = 1;
        s.ext = 0;
        break;
    }
    return s;
}

static const weight *angle_factors(const loam_model *m, const build_params *p)
{
    const bound *t = m->globals.t;
    if (!m->spec.rope.factors) return NULL;
    if (t[T_ROPE_FREQS].w) return t[T_ROPE_FREQS].w;
    return p->rope_long ? t[T_ROPE_LONG].w : t[T_ROPE_SHORT].w;
}

int64_t model_rope_short(const loam_model *m)
{
    const bound *t = m->globals.t;
    bool two = m->spec.rope.factors && !t[T_ROPE_FREQS].w && (t[T_ROPE_LONG].w || t[T_ROPE_SHORT].w);
    if (!two) return INT64_MAX;
    return m->hp.rope.n_original >= 1 ? (int64_t)m->hp.rope.n_original : 1;
}

void rope_resolve(const loam_model *m, const build_params *p, rope_setup *out)
{
    scaling full = resolve(m, p), window = window_scaling(m, &full);
    *out = (rope_setup) {
        .full = params_of(&m->hp, &full), .window = params_of(&m->hp, &window), .attn_factor = full.af,
        .ln_s = -mathd_ln(full.freq_scale), .log_multiplier = m->hp.rope.yarn_log, .factors = angle_factors(m, p),
    };
}
