/* vec_neon.h - the vector vocabulary of the kernel templates with NEON: four registers make the 16 lanes.
 * kernels/x86/vec_avx512.h says what the names mean. */
#ifndef LOAM_KERNELS_VEC_H
#define LOAM_KERNELS_VEC_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VEC static inline __attribute__((always_inline))
#define PRAGMA(x) _Pragma(#x)
#if defined(__clang__)
#define UNROLL(n) PRAGMA(unroll)
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif
#define HOLD(v) __asm__("" : "+w"(v))

typedef struct vf {
    float32x4_t p[4]; /* lanes 0 .. 3, 4 .. 7, ... */
} vf;
typedef vf vm; /* all bits of a lane, or none */
typedef float32x4_t nf;
#define N_LANES 4
#define N_PARTS 4

/* Tiles that fill 32 registers. */
#define TILE_ROWS 2
#define TILE_COLS 3
#define TILE_QUERIES 6
#define TILE_VECTORS 4

/* ---- one register ---- */

VEC nf n_zero(void) { return vdupq_n_f32(0.0f); }
VEC nf n_set(float f) { return vdupq_n_f32(f); }
VEC nf n_load(const float *p) { return vld1q_f32(p); }
VEC void n_store(float *p, nf v) { vst1q_f32(p, v); }
VEC nf n_mul(nf a, nf b) { return vmulq_f32(a, b); }
VEC nf n_fma(nf a, nf b, nf c) { return vfmaq_f32(c, a, b); }
VEC nf n_of_i8(const void *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
VEC uint16x4_t n_halves(const void *p)
{
    uint16x4_t h;
    memcpy(&h, p, 8);
    return h;
}
VEC nf n_load_f16(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u16(n_halves(p))); }
VEC nf n_load_bf16(const void *p) { return vreinterpretq_f32_u32(vshll_n_u16(n_halves(p), 16)); }

VEC uint32x4_t n_bits(nf v) { return vreinterpretq_u32_f32(v); }
VEC nf n_of_bits(uint32x4_t u) { return vreinterpretq_f32_u32(u); }
VEC nf n_select(nf m, nf yes, nf no) { return vbslq_f32(n_bits(m), yes, no); }
VEC nf n_max(nf a, nf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
VEC nf n_min(nf a, nf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }

/* ---- 16 lanes ---- */

#define EACH(expr) \
    vf r_; \
    UNROLL(4) for (int i_ = 0; i_ < 4; i_++) r_.p[i_] = (expr); \
    return r_

VEC vf v_set(float f) { EACH(vdupq_n_f32(f)); }
VEC vf v_zero(void) { return v_set(0.0f); }
VEC vf v_load(const float *p) { EACH(vld1q_f32(p + 4 * i_)); }
VEC void v_store(float *p, vf v)
{
    UNROLL(4) for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, v.p[i]);
}
VEC uint32x4_t lane_numbers(int part)
{
    static const uint32_t first[4] = { 0, 1, 2, 3 };
    return vaddq_u32(vld1q_u32(first), vdupq_n_u32(4 * (uint32_t)part));
}
VEC vm v_first(int n) { EACH(n_of_bits(vcgtq_u32(vdupq_n_u32((uint32_t)n), lane_numbers(i_)))); }
VEC vm v_bits(uint32_t bits)
{
    EACH(n_of_bits(vtstq_u32(vdupq_n_u32(bits), vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(lane_numbers(i_))))));
}
VEC vf v_load_first(const float *p, int n)
{
    float t[16] = { 0 };
    memcpy(t, p, (size_t)n * sizeof *t);
    return v_load(t);
}
VEC void v_store_first(float *p, vf v, int n)
{
    float t[16];
    v_store(t, v);
    memcpy(p, t, (size_t)n * sizeof *t);
}
VEC vf v_add(vf x, vf y) { EACH(vaddq_f32(x.p[i_], y.p[i_])); }
VEC vf v_sub(vf x, vf y) { EACH(vsubq_f32(x.p[i_], y.p[i_])); }
VEC vf v_mul(vf x, vf y) { EACH(vmulq_f32(x.p[i_], y.p[i_])); }
VEC vf v_div(vf x, vf y) { EACH(vdivq_f32(x.p[i_], y.p[i_])); }
VEC vf v_fma(vf x, vf y, vf z) { EACH(vfmaq_f32(z.p[i_], x.p[i_], y.p[i_])); }
VEC vf v_fmaddsub(vf x, vf y, vf z)
{
    const uint32x4_t even = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
    EACH(vfmaq_f32(n_of_bits(veorq_u32(n_bits(z.p[i_]), even)), x.p[i_], y.p[i_]));
}
VEC vf v_max(vf x, vf y) { EACH(n_max(x.p[i_], y.p[i_])); }
VEC vf v_min(vf x, vf y) { EACH(n_min(x.p[i_], y.p[i_])); }
VEC vm v_less(vf x, vf y) { EACH(n_of_bits(vcltq_f32(x.p[i_], y.p[i_]))); }
VEC vm v_nan(vf x) { EACH(n_of_bits(vmvnq_u32(vceqq_f32(x.p[i_], x.p[i_])))); }
VEC vf v_select(vm m, vf yes, vf no) { EACH(n_select(m.p[i_], yes.p[i_], no.p[i_])); }
VEC vf v_keep(vm m, vf v) { EACH(n_of_bits(vandq_u32(n_bits(m.p[i_]), n_bits(v.p[i_])))); }
VEC vf v_or(vf x, vf y) { EACH(n_of_bits(vorrq_u32(n_bits(x.p[i_]), n_bits(y.p[i_])))); }
VEC vf v_abs(vf x) { EACH(vabsq_f32(x.p[i_])); }
VEC vf v_neg(vf x) { EACH(vnegq_f32(x.p[i_])); }
VEC vf v_sign(vf x) { EACH(n_of_bits(vandq_u32(n_bits(x.p[i_]), vdupq_n_u32(0x80000000u)))); }
VEC vf v_exponent(vf p, vf t) { EACH(n_of_bits(vaddq_u32(n_bits(p.p[i_]), vshlq_n_u32(n_bits(t.p[i_]), 23)))); }
VEC vf v_swap_pairs(vf x) { EACH(vrev64q_f32(x.p[i_])); }
VEC vf v_load_twice(const float *p)
{
    float32x4_t a = vld1q_f32(p), b = vld1q_f32(p + 4);
    return (vf){ { vzip1q_f32(a, a), vzip2q_f32(a, a), vzip1q_f32(b, b), vzip2q_f32(b, b) } };
}
VEC vf v_load_f16(const void *p) { EACH(n_load_f16((const uint8_t *)p + 8 * i_)); }
VEC vf v_load_bf16(const void *p) { EACH(n_load_bf16((const uint8_t *)p + 8 * i_)); }

typedef struct halves {
    uint16x4_t p[4];
} halves;
VEC void v_store_halves(void *p, halves h) { memcpy(p, &h, sizeof h); }
/* The hardware keeps a part of a NaN's payload; the format's rule drops it. */
VEC halves v_to_f16(vf v)
{
    halves h;
    UNROLL(4) for (int i = 0; i < 4; i++) {
        uint16x4_t x = vreinterpret_u16_f16(vcvt_f16_f32(v.p[i])), sign = vand_u16(x, vdup_n_u16(0x8000));
        uint16x4_t number = vmovn_u32(vceqq_f32(v.p[i], v.p[i]));
        h.p[i] = vbsl_u16(number, x, vorr_u16(sign, vdup_n_u16(0x7E00)));
    }
    return h;
}
VEC halves v_to_bf16(vf v)
{
    halves h;
    UNROLL(4) for (int i = 0; i < 4; i++) {
        uint32x4_t u = n_bits(v.p[i]), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
        uint32x4_t rounded = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
        rounded = vbslq_u32(vceqq_f32(v.p[i], v.p[i]), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
        h.p[i] = vshrn_n_u32(rounded, 16);
    }
    return h;
}

VEC vf v_trunc(vf v) { EACH(vrndq_f32(v.p[i_])); }
VEC vf v_of_i8(const void *p) { EACH(n_of_i8((const uint8_t *)p + 4 * i_)); }
VEC void v_to_i8(void *p, vf v)
{
    int16x8_t a = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v.p[0])), vmovn_s32(vcvtq_s32_f32(v.p[1])));
    int16x8_t b = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v.p[2])), vmovn_s32(vcvtq_s32_f32(v.p[3])));
    vst1q_s8(p, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
}

/* ---- folds: 16 -> 8 -> 4 -> 2 -> 1 ---- */

VEC float v_fold(vf v)
{
    float32x4_t t = vaddq_f32(vaddq_f32(v.p[0], v.p[2]), vaddq_f32(v.p[1], v.p[3]));
    float32x2_t h = vadd_f32(vget_low_f32(t), vget_high_f32(t));
    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}

VEC float v_fold_max(vf v)
{
    float32x4_t t = n_max(n_max(v.p[0], v.p[2]), n_max(v.p[1], v.p[3]));
    t = n_max(t, vextq_f32(t, t, 2));
    return vgetq_lane_f32(n_max(t, vextq_f32(t, t, 1)), 0);
}

VEC nf v_fold4(vf a, vf b, vf c, vf d) { return (nf){ v_fold(a), v_fold(b), v_fold(c), v_fold(d) }; }
VEC void v_store_fold4(float *p, nf v) { vst1q_f32(p, v); }

VEC vf v_of_parts(const nf *part) { EACH(part[i_]); }
VEC void v_to_parts(nf *part, vf v)
{
    UNROLL(4) for (int i = 0; i < 4; i++) part[i] = v.p[i];
}

VEC void v_transpose(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    for (size_t i = 0; i < 16; i += 4)
        for (size_t j = 0; j < 16; j += 4) {
            const float *p = in + i * in_stride + j;
            float32x4x2_t a = vtrnq_f32(vld1q_f32(p), vld1q_f32(p + in_stride));
            float32x4x2_t b = vtrnq_f32(vld1q_f32(p + 2 * in_stride), vld1q_f32(p + 3 * in_stride));
            float *q = out + j * out_stride + i;
            vst1q_f32(q, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
            vst1q_f32(q + out_stride, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
            vst1q_f32(q + 2 * out_stride, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
            vst1q_f32(q + 3 * out_stride, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
        }
}

#endif
