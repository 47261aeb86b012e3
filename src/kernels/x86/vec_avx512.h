/* vec_avx512.h - the vector vocabulary of the kernel templates, with AVX-512 (F, BW, DQ, VL).
 *
 *   vf   16 floats: the 16 lanes of the written orders      vm   one flag per lane
 *   nf   N_LANES floats: one register. The register tiles of products and attention are made of these.
 *
 * vec_avx2.h offers the same names with two registers per vf. Everything is internal to the including file. */
#ifndef LOAM_KERNELS_VEC_H
#define LOAM_KERNELS_VEC_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/x86/vec_common.h"

typedef __m512 vf;
typedef __mmask16 vm;
typedef __m512 nf;
#define N_LANES 16
#define N_PARTS 1 /* registers of a vf */

/* Tiles that fill 32 registers: products ROWS x COLS sums, attention QUERIES x VECTORS sums. */
#define TILE_ROWS 4
#define TILE_COLS 6
#define TILE_QUERIES 6
#define TILE_VECTORS 4

/* ---- one register ---- */

VEC nf n_zero(void) { return _mm512_setzero_ps(); }
VEC nf n_set(float f) { return _mm512_set1_ps(f); }
VEC nf n_load(const float *p) { return _mm512_loadu_ps(p); }
VEC void n_store(float *p, nf v) { _mm512_storeu_ps(p, v); }
VEC nf n_mul(nf a, nf b) { return _mm512_mul_ps(a, b); }
VEC nf n_of_i8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))); }
VEC nf n_fma(nf a, nf b, nf c) { return _mm512_fmadd_ps(a, b, c); }
VEC nf n_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
VEC nf n_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

/* ---- 16 lanes ---- */

VEC vf v_zero(void) { return _mm512_setzero_ps(); }
VEC vf v_set(float f) { return _mm512_set1_ps(f); }
VEC vf v_load(const float *p) { return _mm512_loadu_ps(p); }
VEC void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
VEC vm v_first(int n) { return (vm)((1u << n) - 1); }                     /* n = 0 .. 16 */
VEC vm v_bits(uint32_t bits) { return (vm)bits; }                         /* the low 16 */
VEC vf v_load_first(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); } /* the others 0 */
VEC void v_store_first(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, v_first(n), v); }
VEC vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }       /* a * b + c */
VEC vf v_fmaddsub(vf a, vf b, vf c) { return _mm512_fmaddsub_ps(a, b, c); } /* even lanes a * b - c, odd a * b + c */
VEC vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }                  /* a > b ? a : b */
VEC vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }                  /* a < b ? a : b */
VEC vm v_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VEC vm v_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
VEC vf v_select(vm m, vf yes, vf no) { return _mm512_mask_mov_ps(no, m, yes); }
VEC vf v_keep(vm m, vf v) { return _mm512_maskz_mov_ps(m, v); }           /* 0 where not m */
VEC vf v_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
VEC vf v_sign(vf a) { return _mm512_and_ps(_mm512_set1_ps(-0.0f), a); }   /* the sign bit */
VEC vf v_or(vf a, vf b) { return _mm512_or_ps(a, b); }
VEC vf v_neg(vf a) { return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a); }
/* bits of p + (bits of t << 23): multiplies by a power of two. */
VEC vf v_exponent(vf p, vf t)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}
VEC vf v_swap_pairs(vf a) { return _mm512_permute_ps(a, 0xB1); }          /* 1 0 3 2 ... */
VEC vf v_load_twice(const float *p)                                       /* p0 p0 p1 p1 ... p7 p7 */
{
    __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
VEC vf v_load_f16(const void *p) { return n_load_f16(p); }
VEC vf v_load_bf16(const void *p) { return n_load_bf16(p); }
VEC __m256i v_to_f16(vf v) { return f16_quiet(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
VEC __m256i v_to_bf16(vf v)
{
    __m512i u = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    rounded = _mm512_mask_or_epi32(rounded, v_nan(v), u, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

VEC vf v_trunc(vf v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
VEC vf v_of_i8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))); }
/* The low 8 bits of the integers; NaN gives 0. */
VEC void v_to_i8(void *p, vf v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v))); }

/* ---- folds ---- */

VEC float v_fold(vf v)
{
    return fold8(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

VEC float v_fold_max(vf v)
{
    return fold8_max(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

/* Four folds at once: each step folds the halves of two vectors into the halves of one. */
VEC __m128 v_fold4(vf a, vf b, vf c, vf d)
{
    vf ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    vf cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    vf t = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    t = _mm512_add_ps(t, _mm512_permute_ps(t, 0x4E));
    t = _mm512_add_ps(t, _mm512_permute_ps(t, 0xB1));
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), t));
}

/* The sums of a product, one vf each in registers. */
VEC vf v_of_parts(const nf *part) { return part[0]; }
VEC void v_to_parts(nf *part, vf v) { part[0] = v; }

/* 16 x 16 floats: column i of the rows becomes row i. */
VEC void v_transpose(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    vf r[16], t[16];
    UNROLL(16) for (int i = 0; i < 16; i++) r[i] = v_load(in + (size_t)i * in_stride);
    UNROLL(8) for (int i = 0; i < 16; i += 4) {
        vf a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
        vf c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm512_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
        t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
    }
    /* t[4 g + j]: column 4 q + j of the rows 4 g .. 4 g + 3 in quarter q. */
    UNROLL(4) for (int j = 0; j < 4; j++) {
        vf lo01 = _mm512_shuffle_f32x4(t[j], t[j + 4], 0x44), hi01 = _mm512_shuffle_f32x4(t[j], t[j + 4], 0xEE);
        vf lo23 = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0x44), hi23 = _mm512_shuffle_f32x4(t[j + 8], t[j + 12], 0xEE);
        v_store(out + (size_t)j * out_stride, _mm512_shuffle_f32x4(lo01, lo23, 0x88));
        v_store(out + (size_t)(j + 4) * out_stride, _mm512_shuffle_f32x4(lo01, lo23, 0xDD));
        v_store(out + (size_t)(j + 8) * out_stride, _mm512_shuffle_f32x4(hi01, hi23, 0x88));
        v_store(out + (size_t)(j + 12) * out_stride, _mm512_shuffle_f32x4(hi01, hi23, 0xDD));
    }
}

#endif
