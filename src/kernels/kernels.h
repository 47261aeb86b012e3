/* kernels.h - the table of compute kernels.
 *
 * Filled at start by kernels_select(): the plain C reference first (src/kernels/ref, the law), then, ascending, what the
 * CPU and the operating system support (src/kernels/x86, src/kernels/arm). LOAM_CPU=ref|avx2|neon|... caps the choice.
 *
 * Written orders. A kernel's result must not depend on how rows and columns are split between calls and threads, nor on
 * how many columns are computed at once:
 *   - products with super-block types (activation A256): a super-block has sub-blocks of 16 or 32 values with an integer
 *     scale each. A sub-block is one exact integer p; f = fma((float)scale, (float)p, f) over the sub-blocks in the order
 *     of k, from +0; then acc = fma(d_w * d_x, f, acc) and, where the type has minima, one exact integer of them,
 *     acc = fma(-(dmin_w * d_x), (float)minima, acc); super-blocks in ascending k, acc starts at +0.
 *   - products with 32-value blocks (A32): per block one exact integer, acc = fma(d_w * d_x, (float)sum, acc) and, where
 *     the type has a minimum m, acc = fma(m_w, d_x * (float)sum_x, acc); blocks in ascending k. NVFP4 has a scale for
 *     each 16 values: two such integers and steps per block of 32.
 *   - F32, F16, BF16 products and every other sum over a row (norms, softmax sums): 16 lanes, lane l takes the elements
 *     k = l mod 16 in ascending order with fused multiply-add, then the fold: halves are added, 16 -> 8 -> 4 -> 2 -> 1
 *     (lane i plus lane i + half).
 *   - attention scores: for each key, fma over the dimensions in ascending order, from +0. Weighted values: for each
 *     output element, fma over the slots of a page in ascending order, from +0. Pages are merged in ascending order.
 * All files are compiled with -ffp-contract=off; fused operations are written out (fmaf or intrinsics). With these
 * orders every kernel of every instruction set gives the same bits; where one cannot, its row in tests/kern says so. */
#ifndef LOAM_KERNELS_H
#define LOAM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/dtype.h"
#include "tensor/pages.h"

/* ---- products -------------------------------------------------------------------------------------------------- */

/* y[c * y_stride + r] = sum over k of W[r][k] * x[c][k], for r < rows, c < cols. */
typedef struct mul_args {
    const void *w;        /* first row, encoded; rows are w_stride bytes apart */
    size_t w_stride;
    const void *x;        /* first column, in the activation form of the weight type; columns are x_stride bytes apart */
    size_t x_stride;
    float *y;
    size_t y_stride;      /* floats */
    int64_t k;            /* values of a row: a multiple of the weight type's block */
    int rows, cols;
    void *scratch;        /* at least mul_scratch bytes of the calling thread, 64-byte aligned */
} mul_args;
typedef void (*mul_fn)(const mul_args *a);

/* Activation forms. A column of k values takes act_bytes(kind, k) bytes (a multiple of 64); x_stride may be larger. */
typedef void (*act_encode_fn)(const float *x, void *out, int64_t k);
size_t act_bytes(act_kind kind, int64_t k);

/* ---- rows of floats --------------------------------------------------------------------------------------------- */

/* y = x / sqrt(mean(x^2) + eps) * w (+ b); y may be x; w and b may be NULL. LayerNorm also subtracts the mean. */
typedef void (*norm_fn)(float *y, const float *x, const float *w, const float *b, int64_t n, float eps);
/* y = f(gate) * up elementwise, or y = f(gate) where up is NULL; y may be either input. */
typedef void (*gate_fn)(float *y, const float *gate, const float *up, int64_t n);
typedef void (*binary_fn)(float *y, const float *a, const float *b, int64_t n);    /* y may be an input */
typedef void (*scale_fn)(float *y, const float *x, float s, int64_t n);            /* y = x * s */
typedef void (*axpy_fn)(float *y, const float *x, float s, int64_t n);             /* y = fma(x, s, y) */
typedef void (*softmax_fn)(float *y, const float *x, int64_t n);                   /* stable; y may be x */
typedef void (*softcap_fn)(float *y, const float *x, float cap, int64_t n);        /* y = cap * tanh(x / cap) */

/* Rotates n_pairs pairs of one head by angles given as cos/sin tables [n_pairs] (magnitude already multiplied in).
 * neox: pairs are (i, i + n_pairs), else (2i, 2i + 1). In place. */
typedef void (*rope_fn)(float *x, const float *cos_, const float *sin_, int n_pairs, bool neox);
/* Orthonormal Hadamard transform of blocks of a power of two, in place; it undoes itself. n: a multiple of block. */
typedef void (*hadamard_fn)(float *x, int64_t n, int64_t block);

/* ---- attention -------------------------------------------------------------------------------------------------- */

/* Partial results of n_q queries against one page of one key-value head (chunk c of the written order). */
typedef struct attn_args {
    page_head page;
    page_head next;           /* likely to be wanted next: may be fetched meanwhile; NULL pointers: not known */
    loam_type k_type, v_type;
    int k_dim, v_dim;
    const float *q;           /* [n_q][q_stride] floats; already multiplied by the score scale */
    size_t q_stride;
    int n_q;
    const uint64_t *visible;  /* [n_q] bit s: slot s is visible; a query with 0 gets m = -inf, s = 0, o = 0 */
    float softcap;            /* 0: none; else score = softcap * tanh(score / softcap) */
    const float *bias;        /* [n_q][PAGE_SLOTS] added after the soft cap (ALiBi), or NULL */
    float *m, *s;             /* [n_q] maximum score and sum of exp(score - m) over the visible slots */
    float *o;                 /* [n_q][o_stride] sum of exp(score - m) * value */
    size_t o_stride;
    void *scratch;            /* at least attn_scratch bytes of the calling thread, 64-byte aligned */
} attn_args;
typedef void (*attn_fn)(const attn_args *a);

/* Merges page results in ascending order into the running state (M, S, O), which starts as (-inf, 0, 0):
 * M' = max(M, m); a = exp(M - M'), b = exp(m - M'); S' = fma(S, a, s * b); O' = fma(O, a, o * b). m = -inf changes nothing. */
typedef struct attn_state {
    float *m, *s, *o;         /* o: [v_dim] */
} attn_state;
typedef struct attn_part {
    float m, s;
    const float *o;           /* [v_dim] */
} attn_part;
typedef void (*attn_merge_fn)(attn_state into, attn_part part, int v_dim);

/* ---- recurrent states: one token --------------------------------------------------------------------------------- */

/* Short causal convolution of n channels: y = w[0] win[0] + ... + w[taps - 1] x (+ bias), fma by ascending tap from +0; then
 * the window moves on by x. */
typedef struct conv_args {
    float *y, *win;           /* win [taps - 1][win_stride], oldest first */
    const float *x, *w;       /* w [taps][w_stride] */
    const float *bias;        /* NULL: none */
    size_t win_stride, w_stride;
    int taps;
    int64_t n;
} conv_args;
typedef void (*conv_fn)(const conv_args *a);

/* Selective scan: each row holds n states. s = fma(s, exp(dt a), (dt x) b); y = fma(d, x, sum of s c). Sums over the row. */
typedef struct scan_args {
    float *s, *y;             /* s [rows][n]; y [rows] */
    const float *x, *b, *c;   /* x [rows]; b, c [n] */
    const float *dt, *a, *d;  /* each: [rows], [rows][n], [rows]; shared: one value of each */
    int64_t rows, n;
} scan_args;
typedef void (*scan_fn)(const scan_args *a);

/* Gated delta rule: t = s decay; u = beta (v - sum of t k); s = fma(u, k, t); y = sum of s q. */
typedef struct delta_args {
    float *s, *y;             /* s [rows][n]; y [rows] */
    const float *q, *k, *v;   /* q, k [n]; v [rows] */
    const float *decay;       /* each: [n]; else one */
    float beta;
    bool each;
    int64_t rows, n;
} delta_args;
typedef void (*delta_fn)(const delta_args *a);

/* RWKV 6: s [n keys][n values], keys ascending: with u: y = fma(r, fma(u k, v, s), y), then s = fma(s, w, k v); without: the
 * state first, y = fma(r, s, y). y starts at +0. */
typedef struct wkv6_args {
    float *s, *y;
    const float *r, *k, *v, *w, *u; /* [n]; u NULL: none */
    int64_t n;
} wkv6_args;
typedef void (*wkv6_fn)(const wkv6_args *a);

/* RWKV 7: e = -(sum of s kk); s = fma(s, w, fma(v, k, e ka)); y = sum of s r. */
typedef struct wkv7_args {
    float *s, *y;             /* s [rows][n]; y [rows] */
    const float *r, *w, *k, *v, *kk, *ka; /* [n]; v [rows] */
    int64_t rows, n;
} wkv7_args;
typedef void (*wkv7_fn)(const wkv7_args *a);

/* Decodes / encodes rows of an element type (src/quant is the reference; fast forms for hot types). */
typedef void (*row_decode_fn)(const void *in, float *out, int64_t n);
typedef void (*row_encode_fn)(const float *in, void *out, int64_t n);

/* ---- training: learn.h and gemm.h have the arguments ---- */

typedef struct gemm_kernel gemm_kernel;
typedef struct learn_kernels learn_kernels;

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef struct kernels {
    const char *name;                       /* highest instruction set in use: "ref", "avx2", "avx512", "avx512vnni"; "neon", "dotprod", "i8mm" */
    mul_fn mul[LOAM_TYPE_LIMIT];            /* by weight type; NULL where no product is defined */
    act_encode_fn act_encode[ACT_NONE];     /* by act_kind; ACT_F32 copies */
    row_decode_fn decode[LOAM_TYPE_LIMIT];
    row_encode_fn encode[LOAM_TYPE_LIMIT];  /* only cache types: F32 F16 BF16 Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 IQ4_NL */
    norm_fn rms_norm, layer_norm;
    gate_fn silu, gelu, gelu_erf, gelu_quick, relu, relu2, sigmoid;
    gate_fn softplus, exp_, tanh_;
    binary_fn add, mul2;
    scale_fn scale;
    axpy_fn axpy;
    softmax_fn softmax;
    softcap_fn softcap;
    rope_fn rope;
    hadamard_fn hadamard;
    attn_fn attn;
    attn_merge_fn attn_merge;
    conv_fn conv;
    scan_fn scan_each, scan_shared;
    delta_fn delta;
    wkv6_fn wkv6;
    wkv7_fn wkv7;
    const gemm_kernel *gemm;
    const learn_kernels *learn;
} kernels;

/* Bytes of scratch that one thread needs for any product with rows of up to k values, for attention heads up to dim. */
size_t mul_scratch(int64_t k);
size_t attn_scratch(int k_dim, int v_dim);

/* The table for this machine, capped by LOAM_CPU. Built once, thread-safe, never fails; frozen afterwards. */
const kernels *kernels_get(void);

/* The table capped at a named set ("ref", "avx2", ...): for tests that compare all sets in one process. NULL where the
 * machine lacks it or the name is unknown. kernels_set_name(i) walks the names in ascending order, NULL at the end. */
const kernels *kernels_for(const char *name);
const char *kernels_set_name(int i);
/* The most multiply-adds per second of the calling thread with the instructions of that set, 8-bit integers or floats; 0: not
 * known. Takes about a millisecond: the best of short loops, so that other programs count little. */
double kernels_peak(const kernels *set, bool floats);

/* Each set overrides what it does better; called in ascending order. X_mul fills the products with quantized weights and
 * calls X_mulf for those with F32, F16 and BF16. */
void kernels_ref_mul(kernels *k);
void kernels_ref_mulf(kernels *k);
void kernels_ref_row(kernels *k);
void kernels_ref_attn(kernels *k);
void kernels_ref_state(kernels *k);
void kernels_ref_gemm(kernels *k);
void kernels_ref_learn(kernels *k);
#if defined(__x86_64__)
void kernels_avx2_mul(kernels *k);
void kernels_avx2_mulf(kernels *k);
void kernels_avx2_row(kernels *k);
void kernels_avx2_state(kernels *k);
void kernels_avx2_gemm(kernels *k);
void kernels_avx2_learn(kernels *k);
void kernels_avx512_mul(kernels *k);      /* F, BW, DQ, VL */
void kernels_avx512_mulf(kernels *k);
void kernels_avx512_row(kernels *k);
void kernels_avx512_state(kernels *k);
void kernels_avx512_gemm(kernels *k);
void kernels_avx512_learn(kernels *k);
void kernels_avx512vnni_mul(kernels *k);  /* + VNNI */
#elif defined(__aarch64__)
void kernels_neon_mul(kernels *k);
void kernels_neon_mulf(kernels *k);
void kernels_neon_row(kernels *k);
void kernels_neon_attn(kernels *k);
void kernels_neon_state(kernels *k);
void kernels_neon_gemm(kernels *k);
void kernels_neon_learn(kernels *k);
void kernels_dotprod_mul(kernels *k);     /* + SDOT */
void kernels_i8mm_mul(kernels *k);        /* + SMMLA */
#endif

#endif
