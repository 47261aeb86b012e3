/* cpu_rope.c - rotary positions: one table of cosines and sines per step and kind of block, then the rotation. */
#include <string.h>

#include "base/mathd.h"
#include "device/cpu.h"

/* Which of the four position streams pair i follows; text has the position in the first three and 0 in the last. */
static bool pair_turns(const rope_params *p, int i)
{
    int sum = p->sections[0] + p->sections[1] + p->sections[2] + p->sections[3];
    if ((p->kind != ROPE_MROPE && p->kind != ROPE_IMROPE) || sum == 0) return true;
    int c = i % sum;
    if (p->kind == ROPE_MROPE) return c < p->sections[0] + p->sections[1] + p->sections[2];
    return c < 3 * p->sections[c % 3];
}

/* Angles in binary32 as the field computes them: position times base^(-2/R) once per pair, then the pair's factor. YaRN
 * (Peng et al. 2023) mixes the interpolated and the plain angle along a ramp over the pairs. */
void run_rope_table(const step *s, worker *w)
{
    const value *v = s->v;
    const rope_params *p = &v->p.rope;
    const int32_t *pos = value_data(v->src[0], w);
    const float *factors = v->src[1] ? value_data(v->src[1], w) : NULL;
    int pairs = p->n_rot / 2;
    float step_factor = (float)mathd_pow(p->base, -2.0 / p->n_rot);
    part r = part_of(s, w);
    for (int64_t t = r.t0; t < r.t1; t++) {
        float *cosines = row_at(v, w, t, 0), *sines = cosines + pairs, angle = (float)pos[t];
        for (int i = 0; i < pairs; i++, angle *= step_factor) {
            float plain = (pair_turns(p, i) ? angle : 0.0f) / (factors ? factors[i] : 1.0f), turned = p->freq_scale * plain;
            if (p->ext_factor != 0.0f) {
                float width = p->ramp_high - p->ramp_low;
                float y = ((float)i - p->ramp_low) / (width > 0.001f ? width : 0.001f);
                float mix = (1.0f - (y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y)) * p->ext_factor;
                turned = turned * (1.0f - mix) + plain * mix;
            }
            double sn, cs;
            mathd_sincos(turned, &sn, &cs);
            cosines[i] = (float)cs * p->magnitude;
            sines[i] = (float)sn * p->magnitude;
        }
    }
}

void run_rope(const step *s, worker *w)
{
    const value *v = s->v, *x = v->src[0], *table = v->src[1];
    int pairs = (int)table->ne[0] / 2;
    part p = part_of(s, w);
    for (int64_t t = p.t0; t < p.t1; t++) {
        const float *cosines = row_at(table, w, t, 0);
        for (int64_t m = p.c0 / v->ne[0]; m < p.c1 / v->ne[0]; m++) {
            float *y = row_at(v, w, t, m * v->ne[0]);
            const float *in = row_at(x, w, t, m * x->ne[0]);
            if (y != in) memcpy(y, in, (size_t)v->ne[0] * 4);
            w->run->k->rope(y + v->p.turn.offset, cosines, cosines + pairs, pairs, v->p.turn.neox);
        }
    }
}
