/* vec_avx2.h - the vector vocabulary of the kernel templates, with AVX2, FMA and F16C: two registers make the 16 lanes.
 * vec_avx512.h says what the names mean. */
#ifndef LOAM_KERNELS_VEC_H
#define LOAM_KERNELS_VEC_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/x86/vec_common.h"

typedef struct vf {
    __m256 a, b; /* lanes 0 .. 7, 8 .. 15 */
} vf;
typedef vf vm; /* all bits of a lane, or none */
typedef __m256 nf;
#define N_LANES 8
#define N_PARTS 2

/* Tiles that fill 16 registers. */
#define TILE_ROWS 2
#define TILE_COLS 3
#define TILE_QUERIES 3
#define TILE_VECTORS 4

/* ---- one register ---- */

VEC nf n_zero(void) { return _mm256_setzero_ps(); }
VEC nf n_set(float f) { return _mm256_set1_ps(f); }
VEC nf n_load(const float *p) { return _mm256_loadu_ps(p); }
VEC void n_store(float *p, nf v) { _mm256_storeu_ps(p, v); }
VEC nf n_mul(nf a, nf b) { return _mm256_mul_ps(a, b); }
VEC nf n_of_i8(const void *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p))); }
VEC nf n_fma(nf a, nf b, nf c) { return _mm256_fmadd_ps(a, b, c); }
VEC nf n_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
VEC nf n_load_bf16(const void *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

/* ---- 16 lanes ---- */

#define PAIR(expr_a, expr_b) ((vf){ (expr_a), (expr_b) })
#define EACH2(op, x, y) PAIR(op(x.a, y.a), op(x.b, y.b))

VEC vf v_set(float f) { return PAIR(_mm256_set1_ps(f), _mm256_set1_ps(f)); }
VEC vf v_zero(void) { return v_set(0.0f); }
VEC vf v_load(const float *p) { return PAIR(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
VEC void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}
VEC __m256i lane_numbers(int first)
{
    return _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
}
VEC vm v_first(int n)
{
    __m256i limit = _mm256_set1_epi32(n);
    return PAIR(_mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, lane_numbers(0))),
                _mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, lane_numbers(8))));
}
VEC __m256 bits8(uint32_t bits, int shift)
{
    __m256i one = _mm256_sllv_epi32(_mm256_set1_epi32(1), lane_numbers(shift));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), one), one));
}
VEC vm v_bits(uint32_t bits) { return PAIR(bits8(bits, 0), bits8(bits, 8)); }
VEC vf v_load_first(const float *p, int n)
{
    vm m = v_first(n);
    vf v = PAIR(_mm256_maskload_ps(p, _mm256_castps_si256(m.a)), _mm256_setzero_ps());
    if (n > 8) v.b = _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b));
    return v;
}
VEC void v_store_first(float *p, vf v, int n)
{
    vm m = v_first(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), v.a);
    if (n > 8) _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), v.b);
}
VEC vf v_add(vf x, vf y) { return EACH2(_mm256_add_ps, x, y); }
VEC vf v_sub(vf x, vf y) { return EACH2(_mm256_sub_ps, x, y); }
VEC vf v_mul(vf x, vf y) { return EACH2(_mm256_mul_ps, x, y); }
VEC vf v_div(vf x, vf y) { return EACH2(_mm256_div_ps, x, y); }
VEC vf v_fma(vf x, vf y, vf z) { return PAIR(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)); }
VEC vf v_fmaddsub(vf x, vf y, vf z) { return PAIR(_mm256_fmaddsub_ps(x.a, y.a, z.a), _mm256_fmaddsub_ps(x.b, y.b, z.b)); }
VEC vf v_max(vf x, vf y) { return EACH2(_mm256_max_ps, x, y); }
VEC vf v_min(vf x, vf y) { return EACH2(_mm256_min_ps, x, y); }
VEC vm v_less(vf x, vf y) { return PAIR(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)); }
VEC vm v_nan(vf x) { return PAIR(_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)); }
VEC vf v_select(vm m, vf yes, vf no) { return PAIR(_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)); }
VEC vf v_keep(vm m, vf v) { return EACH2(_mm256_and_ps, m, v); }
VEC vf v_or(vf x, vf y) { return EACH2(_mm256_or_ps, x, y); }
VEC vf v_abs(vf x) { return EACH2(_mm256_andnot_ps, v_set(-0.0f), x); }
VEC vf v_sign(vf x) { return EACH2(_mm256_and_ps, v_set(-0.0f), x); }
VEC vf v_neg(vf x) { return EACH2(_mm256_xor_ps, v_set(-0.0f), x); }
VEC __m256 exponent8(__m256 p, __m256 t)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}
VEC vf v_exponent(vf p, vf t) { return EACH2(exponent8, p, t); }
VEC vf v_swap_pairs(vf x) { return PAIR(_mm256_permute_ps(x.a, 0xB1), _mm256_permute_ps(x.b, 0xB1)); }
VEC vf v_load_twice(const float *p)
{
    __m256 v = _mm256_loadu_ps(p);
    return PAIR(_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
                _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7)));
}
VEC vf v_load_f16(const void *p) { return PAIR(n_load_f16(p), n_load_f16((const uint8_t *)p + 16)); }
VEC vf v_load_bf16(const void *p) { return PAIR(n_load_bf16(p), n_load_bf16((const uint8_t *)p + 16)); }
VEC __m256i v_to_f16(vf v)
{
    return f16_quiet(_mm256_set_m128i(_mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                                      _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)));
}
VEC __m256i bf16_of8(__m256 v)
{
    __m256i u = _mm256_castps_si256(v), nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
    return _mm256_srli_epi32(rounded, 16);
}
VEC __m256i v_to_bf16(vf v) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(bf16_of8(v.a), bf16_of8(v.b)), 0xD8); }

VEC __m256 trunc8(__m256 v) { return _mm256_round_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
VEC vf v_trunc(vf v) { return PAIR(trunc8(v.a), trunc8(v.b)); }
VEC __m256 of_i8x8(const void *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p))); }
VEC vf v_of_i8(const void *p) { return PAIR(of_i8x8(p), of_i8x8((const uint8_t *)p + 8)); }
VEC __m128i low_bytes8(__m256 v)
{
    __m256i u = _mm256_and_si256(_mm256_cvttps_epi32(v), _mm256_set1_epi32(0xFF));
    return _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
}
VEC void v_to_i8(void *p, vf v) { _mm_storeu_si128(p, _mm_packus_epi16(low_bytes8(v.a), low_bytes8(v.b))); }

/* ---- folds ---- */

VEC float v_fold(vf v) { return fold8(_mm256_add_ps(v.a, v.b)); }

VEC float v_fold_max(vf v) { return fold8_max(_mm256_max_ps(v.a, v.b)); }

VEC __m128 v_fold4(vf a, vf b, vf c, vf d)
{
    return _mm_setr_ps(v_fold(a), v_fold(b), v_fold(c), v_fold(d));
}

VEC vf v_of_parts(const nf *part) { return PAIR(part[0], part[1]); }
VEC void v_to_parts(nf *part, vf v)
{
    part[0] = v.a;
    part[1] = v.b;
}

VEC void transpose8(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    __m256 r[8], t[8];
    UNROLL(8) for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(in + (size_t)i * in_stride);
    UNROLL(2) for (int i = 0; i < 8; i += 4) {
        __m256 a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
        __m256 c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
    UNROLL(4) for (int j = 0; j < 4; j++) {
        _mm256_storeu_ps(out + (size_t)j * out_stride, _mm256_permute2f128_ps(t[j], t[j + 4], 0x20));
        _mm256_storeu_ps(out + (size_t)(j + 4) * out_stride, _mm256_permute2f128_ps(t[j], t[j + 4], 0x31));
    }
}

VEC void v_transpose(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    for (size_t i = 0; i < 16; i += 8)
        for (size_t j = 0; j < 16; j += 8) transpose8(in + i * in_stride + j, in_stride, out + j * out_stride + i, out_stride);
}

#endif
