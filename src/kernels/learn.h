/* learn.h - row kernels of training: derivatives of row.c's functions, sums, and the steps of the optimizers.
 *
 * Sums over a row go through the 16 lanes of kernels.h; sums of squares for norms through 8 lanes of binary64. Every
 * instruction set gives the bits of ref/learn.c. Gradients are written, or added where `add` says so. */
#ifndef LOAM_KERNELS_LEARN_H
#define LOAM_KERNELS_LEARN_H

#include <stdbool.h>
#include <stdint.h>

/* y = (x - mean) r w (+ b): with g = dy w, dx = r (g - mean(g) - xh mean(g xh)), xh = (x - mean) r. RMS: mean is 0 and mean(g)
 * is left out. stats receives mean and r. */
typedef struct norm_back_args {
    float *dx;                 /* NULL: only stats are wanted */
    const float *x, *dy, *w;   /* w NULL: 1 */
    float *stats;              /* [2] */
    int64_t n;
    float eps;
    bool add;
} norm_back_args;
typedef void (*norm_back_fn)(const norm_back_args *a);

/* y = f(gate) up. */
typedef struct gate_back_args {
    float *dgate, *dup;             /* NULL: not wanted; may be dy's memory only where dy is not needed afterwards */
    const float *gate, *up, *dy;    /* up NULL: y = f(gate) */
    int64_t n;
    bool add_gate, add_up;
} gate_back_args;
typedef void (*gate_back_fn)(const gate_back_args *a);

/* AdamW (Loshchilov and Hutter 2019). g is multiplied by g_scale first. */
typedef struct adamw_args {
    float *p, *m, *v;
    const float *g;
    int64_t n;
    float g_scale, beta1, beta2, eps;
    float rate;                /* learning rate / (1 - beta1^t) */
    float root;                /* 1 / sqrt(1 - beta2^t) */
    float keep;                /* 1 - learning rate * weight decay */
} adamw_args;

/* Stochastic gradient descent with momentum: d = g + decay p; m = momentum m + d; p -= rate m (nesterov: d + momentum m). */
typedef struct sgd_args {
    float *p, *m;              /* m NULL: no momentum */
    const float *g;
    int64_t n;
    float g_scale, rate, momentum, decay;
    bool nesterov;
} sgd_args;

typedef struct learn_kernels {
    norm_back_fn rms_back, layer_back;
    gate_back_fn silu, gelu, gelu_erf, gelu_quick, relu, relu2, sigmoid, softplus, exp_, tanh_;
    float (*dot)(const float *a, const float *b, int64_t n);
    float (*sum)(const float *a, int64_t n);
    void (*mul_add)(float *y, const float *a, const float *b, int64_t n);               /* y = fma(a, b, y) */
    void (*norm_weight)(float *dw, const float *dy, const float *x, const float *stats, int64_t n); /* fma(dy, xh, dw) */
    float (*exp_sum)(float *y, const float *x, float *max, int64_t n);                  /* y = exp(x - max), gives its sum */
    void (*exp_from)(float *y, const float *x, float from, int64_t n);                  /* y = exp(x - from) */
    void (*soft_back)(float *ds, const float *p, float d, float s, int64_t n);          /* ds = p (ds - d) s */
    double (*square_sum)(const float *x, int64_t n);
    void (*adamw)(const adamw_args *a);
    void (*sgd)(const sgd_args *a);
} learn_kernels;

#endif
