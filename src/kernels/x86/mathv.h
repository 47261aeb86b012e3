/* mathv.h - exp, tanh, erf of 16 lanes: the operations of ref/mathf.h, in its order. Included after a vec_*.h. */
#ifndef LOAM_KERNELS_MATHV_H
#define LOAM_KERNELS_MATHV_H

#include <math.h>

#include "kernels/ref/mathf_coef.h"

VEC vf v_step(vf p, vf x, float c) { return v_fma(p, x, v_set(c)); }

VEC vf v_exp(vf x)
{
    vf magic = v_set(EXP_MAGIC), t = v_fma(x, v_set(EXP_LOG2E), magic), n = v_sub(t, magic);
    vf r = v_fma(n, v_set(-EXP_LN2_HI), x);
    r = v_fma(n, v_set(-EXP_LN2_LO), r);
    vf p = v_step(v_set(EXP_C6), r, EXP_C5);
    p = v_step(p, r, EXP_C4);
    p = v_step(p, r, EXP_C3);
    p = v_step(p, r, EXP_C2);
    p = v_step(p, r, 1.0f);
    p = v_step(p, r, 1.0f);
    vf y = v_exponent(p, t);
    y = v_select(v_less(x, v_set(EXP_LOW)), v_zero(), y);
    y = v_select(v_less(v_set(EXP_HIGH), x), v_set(INFINITY), y);
    return v_select(v_nan(x), x, y);
}

VEC vf v_tanh(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x);
    vf p = v_step(v_set(TANH_C5), z, TANH_C4);
    p = v_step(p, z, TANH_C3);
    p = v_step(p, z, TANH_C2);
    p = v_step(p, z, TANH_C1);
    vf small = v_fma(v_mul(x, z), p, x);
    vf b = v_min(v_set(TANH_BIG), a), one = v_set(1.0f);
    vf big = v_sub(one, v_div(v_set(2.0f), v_add(v_exp(v_add(b, b)), one)));
    return v_or(v_select(v_less(a, v_set(TANH_SMALL)), small, big), v_sign(x));
}

VEC vf v_erf(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x);
    vf p = v_step(v_set(ERF_S6), z, ERF_S5);
    p = v_step(p, z, ERF_S4);
    p = v_step(p, z, ERF_S3);
    p = v_step(p, z, ERF_S2);
    p = v_step(p, z, ERF_S1);
    p = v_step(p, z, ERF_S0);
    vf small = v_fma(x, p, x);
    vf b = v_min(v_set(ERF_BIG), a);
    vf q = v_step(v_set(ERF_L8), b, ERF_L7);
    q = v_step(q, b, ERF_L6);
    q = v_step(q, b, ERF_L5);
    q = v_step(q, b, ERF_L4);
    q = v_step(q, b, ERF_L3);
    q = v_step(q, b, ERF_L2);
    q = v_step(q, b, ERF_L1);
    q = v_step(q, b, ERF_L0);
    vf big = v_sub(v_set(1.0f), v_exp(q));
    return v_or(v_select(v_less(a, v_set(ERF_SMALL)), small, big), v_sign(x));
}

#endif
