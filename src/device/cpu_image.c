/* cpu_image.c - convolution and pooling of images, forward and gradients, straight from their definitions: for the small
 * networks of the fitting interface. A row of the batch is one image, [width * height, channels]; each belongs to one thread,
 * gradients of weights are dealt out by output channel. */
#include <math.h>
#include <string.h>

#include "device/grad.h"

typedef struct image {
    const image_params *p;
    int w, h;              /* of the output */
} image;

static image image_of(const value *v)
{
    const image_params *p = &v->p.image;
    int w = (p->width + 2 * p->pad_w - (p->kernel_w - 1) * p->dilation_w - 1) / p->stride_w + 1;
    return (image){ p, w, (int)(v->ne[0] / w) };
}

/* Pixel of the input under tap (kx, ky) of output pixel (x, y); -1 in the padding. */
static int64_t pixel(const image *m, int x, int y, int kx, int ky)
{
    const image_params *p = m->p;
    int ix = x * p->stride_w - p->pad_w + kx * p->dilation_w, iy = y * p->stride_h - p->pad_h + ky * p->dilation_h;
    return ix < 0 || iy < 0 || ix >= p->width || iy >= p->height ? -1 : (int64_t)iy * p->width + ix;
}

/* Runs the statement for every tap inside the image: `at` is the input's pixel, `tap` the weight's place in its plane. */
#define FOR_TAPS(m, x, y, ...) \
    for (int ky = 0; ky < (m)->p->kernel_h; ky++) \
        for (int kx = 0; kx < (m)->p->kernel_w; kx++) { \
            int64_t at = pixel(m, x, y, kx, ky), tap = (int64_t)ky * (m)->p->kernel_w + kx; \
            (void)tap; \
            if (at >= 0) { \
                __VA_ARGS__; \
            } \
        }
#define FOR_PIXELS(m) \
    for (int y = 0; y < (m)->h; y++) \
        for (int x = 0; x < (m)->w; x++)

/* ---- convolution ---- */

void run_conv2d(const step *s, worker *w)
{
    const value *v = s->v, *in = v->src[0], *weights = v->src[1];
    const float *filter = value_data(weights, w), *bias = v->src[2] ? value_data(v->src[2], w) : NULL;
    image m = image_of(v);
    int64_t plane = weights->ne[0] * weights->ne[1], channels = in->ne[1];
    range r = range_of(v->ne[2], 1, w->ith, w->nth);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t o = 0; o < v->ne[1]; o++) {
            float *to = row_at(v, w, t, o * v->ne[0]);
            FOR_PIXELS(&m) {
                float sum = bias ? bias[o] : 0.0f;
                for (int64_t c = 0; c < channels; c++) {
                    const float *from = row_at(in, w, t, c * in->ne[0]), *f = filter + (o * channels + c) * plane;
                    FOR_TAPS(&m, x, y, sum = fmaf(f[tap], from[at], sum));
                }
                to[(int64_t)y * m.w + x] = sum;
            }
        }
}

static void conv_input(const grad_step *g, worker *w, const image *m)
{
    const value *v = g->v, *in = g->in[0], *weights = g->in[1];
    const float *filter = value_data(weights, w);
    int64_t plane = weights->ne[0] * weights->ne[1], channels = in->ne[1];
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0; c < channels; c++) {
            float *to = grad_at(g->dx[0], in, t, c * in->ne[0]);
            if (!grad_adds(g, 0)) memset(to, 0, (size_t)in->ne[0] * 4);
            for (int64_t o = 0; o < v->ne[1]; o++) {
                const float *dy = grad_dy(g, t) + o * v->ne[0], *f = filter + (o * channels + c) * plane;
                FOR_PIXELS(m) FOR_TAPS(m, x, y, to[at] = fmaf(f[tap], dy[(int64_t)y * m->w + x], to[at]));
            }
        }
}

static void conv_weights(const grad_step *g, worker *w, const image *m)
{
    const value *v = g->v, *in = g->in[0], *weights = g->in[1];
    int64_t plane = weights->ne[0] * weights->ne[1], channels = in->ne[1];
    range outs = range_of(v->ne[1], 1, w->ith, w->nth);
    for (int64_t o = outs.first; o < outs.last; o++)
        for (int64_t t = 0; t < v->ne[2]; t++) {
            const float *dy = grad_dy(g, t) + o * v->ne[0];
            if (g->dx[2]) g->dx[2][o] += w->run->k->learn->sum(dy, v->ne[0]);
            for (int64_t c = 0; c < channels && g->dx[1]; c++) {
                const float *from = row_at(in, w, t, c * in->ne[0]);
                float *to = g->dx[1] + (o * channels + c) * plane;
                FOR_PIXELS(m) FOR_TAPS(m, x, y, to[tap] = fmaf(from[at], dy[(int64_t)y * m->w + x], to[tap]));
            }
        }
}

void grad_conv2d(const grad_step *g, worker *w)
{
    image m = image_of(g->v);
    if (g->dx[0]) conv_input(g, w, &m);
    if (g->dx[1] || g->dx[2]) conv_weights(g, w, &m);
}

/* ---- pooling ---- */

static int64_t taps_inside(const image *m, int x, int y)
{
    int64_t n = 0;
    FOR_TAPS(m, x, y, n++);
    return n;
}

/* The first of the largest values; NaN wins, so that it is not lost. */
static int64_t largest(const image *m, const float *from, int x, int y)
{
    int64_t best = -1;
    FOR_TAPS(m, x, y, if (best < 0 || from[at] > from[best] || (isnan(from[at]) && !isnan(from[best]))) best = at);
    return best;
}

void run_pool2d(const step *s, worker *w)
{
    const value *v = s->v, *in = v->src[0];
    image m = image_of(v);
    range r = range_of(v->ne[2], 1, w->ith, w->nth);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0; c < v->ne[1]; c++) {
            const float *from = row_at(in, w, t, c * in->ne[0]);
            float *to = row_at(v, w, t, c * v->ne[0]);
            FOR_PIXELS(&m) {
                float sum = 0.0f;
                if (m.p->mean) FOR_TAPS(&m, x, y, sum += from[at]);
                to[(int64_t)y * m.w + x] = m.p->mean ? sum / (float)taps_inside(&m, x, y) : from[largest(&m, from, x, y)];
            }
        }
}

void grad_pool2d(const grad_step *g, worker *w)
{
    const value *v = g->v, *in = g->in[0];
    image m = image_of(v);
    range r = grad_tokens(g, w);
    for (int64_t t = r.first; t < r.last; t++)
        for (int64_t c = 0; c < v->ne[1]; c++) {
            const float *from = row_at(in, w, t, c * in->ne[0]), *dy = grad_dy(g, t) + c * v->ne[0];
            float *to = grad_at(g->dx[0], in, t, c * in->ne[0]);
            if (!grad_adds(g, 0)) memset(to, 0, (size_t)in->ne[0] * 4);
            FOR_PIXELS(&m) {
                float d = dy[(int64_t)y * m.w + x], each = m.p->mean ? d / (float)taps_inside(&m, x, y) : 0.0f;
                if (m.p->mean) FOR_TAPS(&m, x, y, to[at] += each);
                if (!m.p->mean) to[largest(&m, from, x, y)] += d;
            }
        }
}
