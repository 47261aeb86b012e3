/* attn.c - attention of some queries over one page, in plain C: the law for the vector forms.
 *
 * Keys and values of the page are first decoded to floats, then per query:
 *
 *   score[slot] = fma over the dimensions, ascending, from +0        (then soft cap, then bias)
 *   m           = largest score of the visible slots; at least -FLT_MAX, so that a NaN cannot hide behind m = -inf
 *   p[slot]     = exp(score - m) where visible, else 0;  s = sum of p in 16 lanes
 *   o[d]        = fma over the visible slots, ascending, from +0: what an invisible slot holds is never touched
 *
 * Scratch is that of ref/attn.h. */
#include <float.h>
#include <math.h>

#include "kernels/fold.h"
#include "kernels/kernels.h"
#include "kernels/ref/attn.h"
#include "kernels/ref/mathf.h"

size_t attn_scratch(int k_dim, int v_dim)
{
    size_t k = attn_pad(k_dim), v = attn_pad(v_dim);
    return sizeof(float) * (PAGE_SLOTS * (k + v) + ATTN_ROWS * (k > v ? k : v));
}

static bool is_float(loam_type t) { return t == LOAM_F32 || t == LOAM_F16 || t == LOAM_BF16; }

static size_t row_bytes(loam_type t, int dim)
{
    uint64_t bytes = 0;
    dtype_row_bytes(t, dim, &bytes);
    return (size_t)bytes;
}

static void decode_keys(const attn_args *a, const kernels *ref, float *keys, float *row)
{
    if (is_float(a->k_type)) {
        ref->decode[a->k_type](a->page.k, keys, (int64_t)a->k_dim * PAGE_SLOTS);
        return;
    }
    size_t bytes = row_bytes(a->k_type, a->k_dim);
    for (int s = 0; s < PAGE_SLOTS; s++) {
        ref->decode[a->k_type]((const uint8_t *)a->page.k + (size_t)s * bytes, row, a->k_dim);
        for (int d = 0; d < a->k_dim; d++) keys[d * PAGE_SLOTS + s] = row[d];
    }
}

static void decode_values(const attn_args *a, const kernels *ref, float *values)
{
    size_t bytes = row_bytes(a->v_type, a->v_dim);
    for (int s = 0; s < PAGE_SLOTS; s++)
        ref->decode[a->v_type]((const uint8_t *)a->page.v + (size_t)s * bytes, values + (size_t)s * a->v_dim, a->v_dim);
}

/* p: in scores, out probabilities. */
static void normalize(const attn_args *a, int q, float p[PAGE_SLOTS])
{
    uint64_t visible = a->visible[q];
    float m = -FLT_MAX, lane[LANES] = { 0 };
    for (int s = 0; s < PAGE_SLOTS; s++) {
        if (a->softcap != 0.0f) p[s] = a->softcap * math_tanh(p[s] / a->softcap);
        if (a->bias) p[s] += a->bias[(size_t)q * PAGE_SLOTS + s];
        if ((visible >> s & 1) && p[s] > m) m = p[s];
    }
    for (int s = 0; s < PAGE_SLOTS; s++) {
        p[s] = visible >> s & 1 ? math_exp(p[s] - m) : 0.0f;
        lane[s % LANES] += p[s];
    }
    a->m[q] = visible ? m : -INFINITY;
    a->s[q] = fold_lanes(lane);
}

static void attn(const attn_args *a)
{
    const kernels *ref = kernels_for("ref");
    float *keys = a->scratch, *values = keys + PAGE_SLOTS * attn_pad(a->k_dim);
    decode_keys(a, ref, keys, values + PAGE_SLOTS * attn_pad(a->v_dim));
    decode_values(a, ref, values);
    for (int q = 0; q < a->n_q; q++) {
        const float *query = a->q + (size_t)q * a->q_stride;
        float *o = a->o + (size_t)q * a->o_stride, p[PAGE_SLOTS];
        for (int s = 0; s < PAGE_SLOTS; s++) {
            p[s] = 0.0f;
            for (int d = 0; d < a->k_dim; d++) p[s] = fmaf(query[d], keys[d * PAGE_SLOTS + s], p[s]);
        }
        normalize(a, q, p);
        for (int d = 0; d < a->v_dim; d++) {
            o[d] = 0.0f;
            for (int s = 0; s < PAGE_SLOTS; s++)
                if (a->visible[q] >> s & 1) o[d] = fmaf(p[s], values[(size_t)s * a->v_dim + d], o[d]);
        }
    }
}

static void attn_merge(attn_state into, attn_part part, int v_dim)
{
    if (part.m == -INFINITY) return;
    float max = part.m > *into.m ? part.m : *into.m, a = math_exp(*into.m - max), b = math_exp(part.m - max);
    *into.m = max;
    *into.s = fmaf(*into.s, a, part.s * b);
    for (int d = 0; d < v_dim; d++) into.o[d] = fmaf(into.o[d], a, part.o[d] * b);
}

void kernels_ref_attn(kernels *k)
{
    k->attn = attn;
    k->attn_merge = attn_merge;
}
