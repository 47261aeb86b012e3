/* learn_plain.h - the parts of learn.h whose loops compilers turn into vectors without changing a bit: each element by
 * itself, or lanes written out. Every instruction set compiles them once. */
#ifndef LOAM_KERNELS_LEARN_PLAIN_H
#define LOAM_KERNELS_LEARN_PLAIN_H

#include <math.h>

#include "kernels/learn.h"

static void plain_adamw(const adamw_args *a)
{
    float *restrict p = a->p, *restrict m = a->m, *restrict v = a->v;
    const float *restrict g = a->g;
    float b1 = 1.0f - a->beta1, b2 = 1.0f - a->beta2, beta2 = a->beta2, scale = a->g_scale, eps = a->eps, root = a->root;
    float rate = a->rate, keep = a->keep;
    for (int64_t i = 0; i < a->n; i++) {
        float x = g[i] * scale;
        m[i] = m[i] + (x - m[i]) * b1;
        v[i] = v[i] * beta2 + x * x * b2;
        p[i] = p[i] * keep - rate * (m[i] / (sqrtf(v[i]) * root + eps));
    }
}

static void plain_sgd(const sgd_args *a)
{
    float *restrict p = a->p, *restrict m = a->m;
    const float *restrict g = a->g;
    float scale = a->g_scale, rate = a->rate, momentum = a->momentum, decay = a->decay;
    if (!m) {
        for (int64_t i = 0; i < a->n; i++) p[i] -= rate * (g[i] * scale + decay * p[i]);
        return;
    }
    for (int64_t i = 0; i < a->n; i++) {
        float d = g[i] * scale + decay * p[i];
        m[i] = m[i] * momentum + d;
        p[i] -= rate * (a->nesterov ? d + momentum * m[i] : m[i]);
    }
}

static double plain_square_sum(const float *x, int64_t n)
{
    double lane[8] = { 0 };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i < n; i++, l++) lane[l] += (double)x[i] * (double)x[i];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#endif
